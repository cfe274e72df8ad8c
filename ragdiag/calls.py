"""One call of a pipeline or a judge: timed, isolated, and told as a record of the journal.

Whatever user code does, a record comes of it: exceptions, wrong types, ``sys.exit`` and generators
become an error record with stage, message and traceback. Only ``KeyboardInterrupt`` passes.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from ragdiag.codec import encode, json_text
from ragdiag.errors import JudgeAuthenticationError, PipelineError
from ragdiag.journal import Record
from ragdiag.pipeline import Stages, check_answer, to_answer_and_chunks, to_chunks
from ragdiag.redaction import describe_error, redact, trace
from ragdiag.schema import JudgeResult, RetrievedChunk
from ragdiag.tables import storable_text

__all__ = ["BackgroundLoop", "Caller", "Task", "chunks_of", "judge_record", "pipeline_records"]

#: Seconds before the first, second, ... repetition of a failed call.
RETRY_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)

Clock = Callable[[], float]
ClockFactory = Callable[[str, str], Clock]


class BackgroundLoop:
    """One event loop in a thread of its own, for whatever turns out to be awaitable."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def resolve(self, value: Any) -> Any:
        """Return `value`, or what it comes to if it is awaitable."""
        if not inspect.isawaitable(value):
            return value

        async def wait() -> Any:
            return await value

        return asyncio.run_coroutine_threadsafe(wait(), self._running()).result()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="ragdiag-loop", daemon=True
                )
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """Stop the loop; nothing may be waiting for it any more."""
        with self._lock:
            loop, thread, self._loop = self._loop, self._thread, None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, and end it in its own thread: a caller may have another."""
    loop.run_forever()
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


@dataclass
class Caller:
    """How calls are made: by which clock, how often again, and until when."""

    clock_factory: ClockFactory | None = None
    retries: int = 0
    loop: BackgroundLoop = field(default_factory=BackgroundLoop)
    stop: threading.Event = field(default_factory=threading.Event)

    def clock(self, query_id: str, stage: str) -> Clock:
        """Return the clock for one stage of one query; it counts seconds."""
        if self.clock_factory is None:
            return time.perf_counter
        return self.clock_factory(query_id, stage)


@dataclass(frozen=True)
class Task:
    """The pipeline's work on one query; `chunks` are given when only the answer is missing."""

    query_id: str
    query: str
    chunks: tuple[RetrievedChunk, ...] | None = None


def pipeline_records(stages: Stages, task: Task, caller: Caller) -> Iterator[Record]:
    """Make the calls for one query and yield the record of each as soon as it has returned."""
    if stages.answer is not None:
        answer = stages.answer
        yield _attempt(task, "answer", lambda: answer(task.query), _answer_fields, caller)
        return
    chunks = task.chunks
    if chunks is None and stages.retrieve is not None:
        retrieve = stages.retrieve
        kept: list[RetrievedChunk] = []

        def convert(returned: object) -> Record:
            kept[:] = to_chunks(returned)
            return _chunk_fields(kept)

        record = _attempt(task, "retrieval", lambda: retrieve(task.query), convert, caller)
        yield record
        if record["record"] == "error":
            return
        chunks = tuple(kept)
    if stages.generate is not None and not caller.stop.is_set():
        generate, context = stages.generate, list(chunks or ())
        yield _attempt(
            task, "generation", lambda: generate(task.query, context), _text_fields, caller
        )


def _attempt(
    task: Task,
    stage: str,
    call: Callable[[], Any],
    convert: Callable[[Any], Record],
    caller: Caller,
) -> Record:
    """Make one call, again if it raises and may be repeated, and return its record."""
    for attempt in count():
        clock = caller.clock(task.query_id, stage)
        start = clock()
        elapsed: float | None = None
        try:
            returned = caller.loop.resolve(call())
            elapsed = (clock() - start) * 1000.0
            fields = convert(returned)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # A stage that raised has run as well, and took its time.
            if elapsed is None:
                elapsed = (clock() - start) * 1000.0
            pause = RETRY_PAUSES[min(attempt, len(RETRY_PAUSES) - 1)]
            # A wrong type comes again; an exception of the user's code may be a passing fault.
            wrong_type = isinstance(error, PipelineError)
            if wrong_type or attempt >= caller.retries or caller.stop.wait(pause):
                return {
                    "record": "error",
                    "query_id": task.query_id,
                    "stage": stage,
                    "ms": elapsed,
                    "error": describe_error(error),
                    "traceback": "" if wrong_type else trace(error),
                }
        else:
            return {"record": stage, "query_id": task.query_id, "ms": elapsed, **fields}
    raise AssertionError("unreachable")


def _chunk_fields(chunks: Sequence[RetrievedChunk]) -> Record:
    flags: list[str] = []
    counts = Counter(chunk.id for chunk in chunks)
    flags += [
        f"chunk id {_storable(id_)!r} was returned {n} times" for id_, n in counts.items() if n > 1
    ]
    stored = []
    for rank, chunk in enumerate(chunks, 1):
        record: Record = {"chunk_id": chunk.id, "text": chunk.text}
        if chunk.score is not None:
            record["score"] = encode(chunk.score)
        if chunk.metadata is not None:
            record["metadata"] = json_text(chunk.metadata)
        for name, value in record.items():
            if isinstance(value, str) and (whole := storable_text(value)) is not value:
                record[name] = whole
                flags.append(f"rank {rank}: {name} was not valid Unicode and was repaired")
        stored.append(record)
    return {"chunks": stored, **({"flags": flags} if flags else {})}


def _text_fields(returned: object) -> Record:
    answer = check_answer(returned)
    whole = storable_text(answer)
    flags = [] if whole is answer else ["the answer was not valid Unicode and was repaired"]
    return {"answer": whole, **({"flags": flags} if flags else {})}


def _answer_fields(returned: object) -> Record:
    answer, chunks = to_answer_and_chunks(returned)
    of_text, of_chunks = _text_fields(answer), _chunk_fields(chunks)
    flags = of_chunks.pop("flags", []) + of_text.pop("flags", [])
    return {**of_chunks, **of_text, **({"flags": flags} if flags else {})}


def chunks_of(records: Sequence[Mapping[str, Any]]) -> tuple[RetrievedChunk, ...]:
    """Return recorded chunks as the objects a generator or a judge is given."""
    return tuple(
        RetrievedChunk.model_construct(
            id=record["chunk_id"],
            text=record.get("text") or "",
            score=record["score"] if isinstance(record.get("score"), float | int) else None,
            metadata=json.loads(record["metadata"]) if record.get("metadata") else None,
        )
        for record in records
    )


def judge_record(
    judge: Any,
    task: Task,
    expected_answer: str | None,
    generated_answer: str,
    *,
    key: str,
    repeat: int,
    again: bool,
    caller: Caller,
) -> tuple[Record, bool]:
    """Ask the judge once; return its reply as a record, and whether asking on is of no use."""
    arguments = {
        "query": task.query,
        "expected_answer": expected_answer,
        "generated_answer": generated_answer,
        "context": list(task.chunks or ()),
    }
    record = {"record": "reply", "query_id": task.query_id, "judge": key, "repeat": repeat}
    clock = caller.clock(task.query_id, "judge")
    start = clock()
    fatal = False
    try:
        if again and hasattr(judge, "evaluate_again"):
            returned = caller.loop.resolve(judge.evaluate_again(repeat, **arguments))
        else:
            returned = caller.loop.resolve(judge.evaluate(**arguments))
        record["ms"] = (clock() - start) * 1000.0
        result = _result_fields(returned)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        record.setdefault("ms", (clock() - start) * 1000.0)
        text = describe_error(error)
        result = {"correct_error": text, "grounded_error": text}
        fatal = bool(getattr(error, "fatal", isinstance(error, JudgeAuthenticationError)))
    return record | {"result": result}, fatal


def _result_fields(returned: object) -> Record:
    if not isinstance(returned, JudgeResult):
        if not isinstance(returned, Mapping):
            raise TypeError(f"the judge must return a JudgeResult, got {type(returned).__name__}")
        returned = JudgeResult.model_validate(returned)
    fields: Record = _storable(returned.model_dump(mode="json", exclude_defaults=True))
    for side in ("correct_error", "grounded_error"):
        if fields.get(side):
            fields[side] = redact(fields[side])
    return fields


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {key: _storable(item) for key, item in value.items()}
    return value
