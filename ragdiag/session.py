"""One run from its first call to its last: who works on what, when, and what an interrupt does.

Worker threads make the calls and write each record themselves, under locks; the thread that began
the run only hands out work, draws progress, and reacts to the interrupt. So an interrupt can strike
it anywhere and nothing that was paid for is lost.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeVar

from ragdiag.calls import Caller, Task, chunks_of, judge_record, pipeline_records
from ragdiag.codec import json_text
from ragdiag.errors import JudgeError, PipelineError
from ragdiag.journal import Record
from ragdiag.ledger import judge_key, reply_error
from ragdiag.pipeline import Pipeline, stages_of
from ragdiag.progress import Counts, Progress
from ragdiag.recording import Run
from ragdiag.remote import Remote, capacity
from ragdiag.store import Store

__all__ = ["ExecutionInterrupted", "Session", "calls_came_back"]

P = ParamSpec("P")
T = TypeVar("T")

#: After this many hopeless errors of the judge in a row it is not asked any more.
FATAL_LIMIT = 5

#: Seconds that calls in flight may still take after an interrupt before control returns.
GRACE = 0.8

#: Seconds between two looks at the progress while nothing happens.
TICK = 0.1


class ExecutionInterrupted(KeyboardInterrupt):
    """The run was interrupted.

    Attributes
    ----------
    run : Run
        Everything that had finished.
    """

    def __init__(self, message: str, run: Run) -> None:
        super().__init__(message)
        self.run = run


def calls_came_back(say: Callable[[str], None]) -> bool:
    """Wait, before a process ends, for calls that an interrupted run left in flight.

    Parameters
    ----------
    say : callable
        Is told once what is waited for, where that is not over at once.

    Returns
    -------
    bool
        False when the wait was interrupted as well: some calls still hang.
    """
    ours = threading.main_thread(), threading.current_thread()
    calls = [each for each in threading.enumerate() if not each.daemon and each not in ours]
    try:
        for call in calls:
            call.join(GRACE)
        if any(call.is_alive() for call in calls):
            say("for calls in flight to come back; interrupt again to leave at once")
        for call in calls:
            call.join()
    except KeyboardInterrupt:
        return False
    return True


@dataclass(frozen=True)
class _Question:
    """A call to the judge that is to be made."""

    query_id: str
    query: str
    repeat: int


class _InlinePool(Executor):
    """Makes each call at once, in the thread that submits it."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Session:
    """One run from its first call to its last."""

    def __init__(
        self,
        store: Store,
        pipeline: Pipeline,
        remote: Remote | None,
        judge: Any,
        repeats: int,
        caller: Caller,
        on_error: str,
        progress: Progress,
    ) -> None:
        self._store, self._ledger = store, store.ledger
        self._stages, self._remote = stages_of(pipeline), remote
        self._judge, self._repeats, self._caller = judge, repeats, caller
        self._on_error, self._progress = on_error, progress
        self._work: deque[Task] = deque()
        self._questions: deque[_Question] = deque()
        self._running: dict[Future[Any], Task | _Question] = {}
        self._arrived: SimpleQueue[Future[Any]] = SimpleQueue()
        self._expected: dict[str, str | None] = {}
        self._key = ""
        self._failure: BaseException | None = None
        self._fatal_in_a_row = 0
        self._given_up = ""
        self._counts = Counts()

    def run(self, executor: Executor | None, workers: int, judge_workers: int) -> Run:
        """Make all calls that are missing and return the run."""
        pools: list[Executor] = []
        state, hits = "stopped", self._hits()
        try:
            self._plan()
            if executor is None:
                executor = ThreadPoolExecutor(workers, "ragdiag") if workers else _InlinePool()
                pools.append(executor)
            else:
                workers = max(workers, capacity(executor))
            judges = ThreadPoolExecutor(judge_workers, "ragdiag-judge")
            pools.append(judges)
            while self._work or self._questions or self._running:
                self._hand_out(executor, workers, judges, judge_workers)
                self._take_in()
                self._counts.cache_hits = self._hits() - hits
                self._progress.update(self._counts)
            self._store.flush()
            state = "done"
        except KeyboardInterrupt:
            state = "interrupted"
            self._stop()
            raise ExecutionInterrupted(self._farewell(), self._salvage()) from None
        except BaseException as error:
            self._stop()
            error.run = self._salvage()  # type: ignore[attr-defined]
            if self._counts.done:
                error.add_note("what had finished is in the attribute run of this error")
            raise
        finally:
            self._caller.stop.set()
            self._store.close(self._caller.loop.close)
            for pool in pools:
                pool.shutdown(wait=state == "done", cancel_futures=True)
            self._progress.finish(self._counts, state)
        return self._store.run()

    def _hits(self) -> int:
        """Return how many requests the judge's cache has answered so far."""
        return int(getattr(getattr(self._judge, "cache", None), "hits", 0))

    def _plan(self) -> None:
        """Find out which calls are missing."""
        if self._judge is not None:
            self._announce_judge()
        frame = self._store.queries
        texts = frame["expected_answer"]
        self._expected = dict(
            zip(frame["query_id"], texts.astype(object).where(texts.notna(), None), strict=True)
        )
        stages, counts = self._ledger.stages, self._counts
        counts.total = len(frame)
        counts.calls = len(frame) * len(stages)
        if self._judge is not None and stages != ["retrieval"]:
            counts.calls += len(frame) * self._repeats
        for query_id, query in zip(frame["query_id"], frame["query"], strict=True):
            if self._ledger.finished(query_id):
                counts.reused += len(stages)
                counts.completed += 1
                self._ask_about(query_id, query)
                continue
            retrieved = self._ledger.events["retrieval"].get(query_id)
            if retrieved is None:
                self._work.append(Task(query_id, query))
            else:
                counts.reused += 1
                self._work.append(Task(query_id, query, chunks_of(retrieved["chunks"])))
        if counts.reused:
            self._progress.note(f"reused {counts.reused} of {counts.calls} calls")
        if self._judge is not None and (self._questions or self._work):
            self._prepare_judge()

    def _announce_judge(self) -> None:
        identity = getattr(self._judge, "identity", None) or {"judge": type(self._judge).__name__}
        identity = json.loads(json_text(identity))
        self._key = judge_key(identity)
        name = str(getattr(self._judge, "name", None) or type(self._judge).__name__)
        record = {"record": "judge", "key": self._key, "name": name, "identity": identity}
        host = getattr(self._judge, "host", None)
        if host:
            record["host"] = str(host)
        if self._ledger.judge != record:
            self._store.write(record)

    def _prepare_judge(self) -> None:
        """Say who receives text, and let the judge make sure that it can work."""
        name, host = self._ledger.judge["name"], self._ledger.judge.get("host")
        if host:
            self._progress.note(f"judge {name}: questions, answers and chunks are sent to {host}")
        prepare = getattr(self._judge, "prepare", None)
        if callable(prepare):
            prepare()

    def _ask_about(self, query_id: str, query: str) -> None:
        """Queue the questions to the judge about a query that has an answer."""
        if self._judge is None or self._ledger.evidence(query_id)[1] is None:
            return
        self._counts.to_judge += self._repeats
        for repeat in range(self._repeats):
            if self._ledger.judged(query_id, self._key, repeat):
                self._counts.reused += 1
                self._counts.judged += 1
            else:
                self._questions.append(_Question(query_id, query, repeat))

    def _hand_out(self, pool: Executor, workers: int, judges: Executor, judge_workers: int) -> None:
        """Submit up to twice what can run, so that no worker waits for this thread."""
        busy = sum(isinstance(item, Task) for item in self._running.values())
        asking = len(self._running) - busy
        while self._work and busy < max(1, 2 * workers):
            task = self._work.popleft()
            if self._remote is None:
                # In a copy of the caller's context, what a pipeline prints lands in its cell.
                self._track(pool.submit(copy_context().run, self._do, task), task)
            else:
                future = self._remote.submit(task)
                self._store.enter()
                self._track(future, task)
            busy += 1
        while self._questions and (self._given_up or asking < 2 * judge_workers):
            question = self._questions.popleft()
            if self._given_up:
                self._refuse(question)
            else:
                reply = judges.submit(copy_context().run, self._ask, question)
                self._track(reply, question)
                asking += 1

    def _track(self, future: Future[Any], item: Task | _Question) -> None:
        self._running[future] = item
        far = self._remote is not None and isinstance(item, Task)
        future.add_done_callback(self._land if far else self._arrived.put)

    # In the threads of the pools ------------------------------------------------------------

    def _do(self, task: Task) -> None:
        """Do the pipeline's work on one query and write each record as it comes."""
        with self._store.writing():
            if not self._caller.stop.is_set():
                for record in pipeline_records(self._stages, task, self._caller):
                    self._store.write(record)

    def _land(self, future: Future[list[Record]]) -> None:
        """Write what came back from another process."""
        try:
            if not future.cancelled() and future.exception() is None:
                for record in future.result():
                    self._store.write(record)
        except BaseException as error:
            self._failure = error
        finally:
            self._store.leave()
            self._arrived.put(future)

    def _ask(self, question: _Question) -> tuple[Record, bool] | None:
        """Ask the judge and write its reply."""
        with self._store.writing():
            if self._caller.stop.is_set() or self._given_up:
                return None
            records, answer = self._ledger.evidence(question.query_id)
            reply = judge_record(
                self._judge,
                Task(question.query_id, question.query, chunks_of(records)),
                self._expected[question.query_id],
                answer or "",
                key=self._key,
                repeat=question.repeat,
                again=self._repeats > 1,
                caller=self._caller,
            )
            self._store.write(reply[0])
            return reply

    # In the thread that waits ---------------------------------------------------------------

    def _take_in(self) -> None:
        """Wait a moment for calls that have come back, and count them."""
        try:
            future = self._arrived.get(timeout=TICK)
            while True:
                item = self._running.pop(future)
                if isinstance(item, Task):
                    self._take_work(item, future)
                else:
                    self._take_reply(item, future)
                future = self._arrived.get_nowait()
        except Empty:
            pass

    def _take_work(self, task: Task, future: Future[Any]) -> None:
        future.result()
        if self._failure is not None:
            raise self._failure
        error = self._ledger.errors.get(task.query_id)
        if error is None:
            self._counts.completed += 1
            self._ask_about(task.query_id, task.query)
            return
        self._counts.failed += 1
        if self._on_error == "raise":
            raise PipelineError(
                f"query {task.query_id!r}: {error['stage']} failed: {error['error']}\n"
                f"{error['traceback']}".rstrip()
            )

    def _take_reply(self, question: _Question, future: Future[Any]) -> None:
        reply = None if future.cancelled() else future.result()
        if reply is None:
            self._refuse(question)
            return
        record, fatal = reply
        error = reply_error(record)
        if error is None:
            self._counts.judged += 1
            self._fatal_in_a_row = 0
            return
        self._counts.judge_failed += 1
        if self._on_error == "raise":
            raise JudgeError(f"query {question.query_id!r}: {error}")
        self._fatal_in_a_row += fatal
        if self._fatal_in_a_row >= FATAL_LIMIT and not self._given_up:
            self._give_up(error)

    def _give_up(self, error: str) -> None:
        """Ask the judge no more; the pipeline goes on, its work is worth keeping."""
        self._given_up = (
            f"the judge was given up after {FATAL_LIMIT} errors in a row that would come again; "
            f"the last: {error}"
        )
        self._progress.note(self._given_up)
        self._store.notes.append(self._given_up)
        for future, item in self._running.items():
            if isinstance(item, _Question):
                future.cancel()

    def _refuse(self, question: _Question) -> None:
        """Record that a question was not asked."""
        text = f"not judged: {self._given_up}"
        self._counts.judge_failed += 1
        self._store.write(
            {
                "record": "reply",
                "query_id": question.query_id,
                "judge": self._key,
                "repeat": question.repeat,
                "result": {"correct_error": text, "grounded_error": text},
            }
        )

    # The end --------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Start no further call and give those in flight a moment; again interrupted, none."""
        self._caller.stop.set()
        cancel = getattr(self._judge, "cancel", None)
        if callable(cancel):  # a judge that waits to ask again gives up
            cancel()
        with suppress(KeyboardInterrupt):
            wait([future for future in self._running if not future.cancel()], GRACE)

    def _salvage(self) -> Run:
        """Return what there is; one more press of the interrupt button does not cost it."""
        with suppress(KeyboardInterrupt):
            return self._store.run()
        return self._store.run()

    def _farewell(self) -> str:
        path = self._store.path
        again = (
            f"run the same call again to go on from {path}"
            if path is not None
            else "with store='FILE' the same call would go on from here"
        )
        return (
            f"interrupted after {self._counts.done} of {self._counts.total} queries; what had "
            f"finished is in sys.last_value.results; {again}"
        )
