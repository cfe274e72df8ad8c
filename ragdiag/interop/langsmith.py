"""LangSmith and the LangChain tracer: runs, one a line, in a list, or as a batch of the SDK.

``run_type`` says what a run is, ``parent_run_id`` and ``trace_id`` place it; a retriever's
``outputs.documents`` are what it returned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ragdiag.interop.documents import chunks_in
from ragdiag.interop.records import RunBuilder
from ragdiag.interop.source import Source
from ragdiag.interop.spans import Kind, Span, TraceCollector
from ragdiag.interop.values import ANSWER_KEYS, QUESTION_KEYS, text_in, text_or_none, time_ns
from ragdiag.recording import Run

__all__ = ["read"]

KINDS: dict[str, Kind] = {"retriever": "retriever", "llm": "generator", "chat_model": "generator"}

#: How a traceback follows the repr of an exception in ``error``.
_ERROR = re.compile(r"(?P<kind>\w[\w.]*)\((?P<quote>['\"])(?P<message>.*?)(?P=quote)\)", re.DOTALL)
TRACEBACK = "Traceback (most recent call last)"


def read(source: Source, format: str) -> Run:
    """Return the run that LangSmith's runs record, one query a trace."""
    builder = RunBuilder(source.name, format)
    traces = TraceCollector()
    for place, item in source.objects(builder.skip):
        for run in _runs(item):
            trace_id = text_or_none(run.get("trace_id")) or text_or_none(run.get("id"))
            if trace_id is None:
                builder.skip(place, "a run without an id")
            else:
                traces.add(_span(run, trace_id))
    for record in traces.records():
        builder.add(record)
    return builder.run(name=source.stem)


def _runs(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the runs of an object: itself with its children, or those of a batch, put together."""
    if not isinstance(item.get("post"), list):
        yield item
        for child in _listed(item.get("child_runs")):
            if isinstance(child, Mapping):
                yield from _runs(child)
        return
    parts = [*item["post"], *_listed(item.get("patch"))]
    merged: dict[Any, dict[str, Any]] = {}
    for part in parts:
        if isinstance(part, Mapping):
            # What a patch has is newer, and what it lacks it does not unsay.
            said = {key: value for key, value in part.items() if value not in (None, {}, [])}
            merged.setdefault(part.get("id"), {}).update(said)
    yield from merged.values()


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _span(run: Mapping[str, Any], trace_id: str) -> Span:
    kind = KINDS.get(str(run.get("run_type", "")), "other")
    span = Span(
        trace_id,
        text_or_none(run.get("id")),
        text_or_none(run.get("parent_run_id")),
        kind,
        time_ns(run.get("start_time")),
        time_ns(run.get("end_time")),
    )
    outputs = run.get("outputs")
    span.question = text_in(run.get("inputs"), QUESTION_KEYS, role="user")
    if kind == "retriever":
        span.chunks = chunks_in(outputs) if outputs else None
    elif kind == "generator" or span.parent_id is None:
        span.answer = text_in(outputs, ANSWER_KEYS, role="assistant")
    error = text_or_none(run.get("error"))
    if error is not None:
        span.failed = True
        span.error, span.traceback = _error(error)
    extra = run.get("extra")
    metadata = extra.get("metadata") if isinstance(extra, Mapping) else None
    if isinstance(metadata, Mapping):
        span.query_id = text_or_none(metadata.get("query_id"))
    return span


def _error(text: str) -> tuple[str, str | None]:
    """Return ``TYPE: MESSAGE`` and the traceback of an error as LangChain writes it."""
    head, mark, rest = text.partition(TRACEBACK)
    match = _ERROR.match(head.strip())
    told = f"{match['kind']}: {match['message']}" if match else head.strip()
    return told or "an error without a message", (mark + rest) or None
