"""Langfuse: a trace with its observations; inputs and outputs are JSON inside strings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragdiag.interop.documents import Chunk, chunks_in, is_document
from ragdiag.interop.records import RunBuilder
from ragdiag.interop.source import Source
from ragdiag.interop.spans import Kind, Span, TraceCollector
from ragdiag.interop.values import (
    ANSWER_KEYS,
    QUESTION_KEYS,
    json_or_text,
    text_in,
    text_or_none,
    time_ns,
)
from ragdiag.recording import Run

__all__ = ["read"]

KINDS: dict[str, Kind] = {"RETRIEVER": "retriever", "GENERATION": "generator"}

#: Before there was a type for retrievers they were spans; so were tools.
UNTYPED = ("SPAN", "TOOL", "CHAIN")


def read(source: Source, format: str) -> Run:
    """Return the run that traces record: one document a trace, a list of them, or one a line."""
    builder = RunBuilder(source.name, format)
    traces = TraceCollector()
    for place, item in source.objects(builder.skip):
        held = item.get("trace")
        trace: Mapping[str, Any] = held if isinstance(held, Mapping) else item
        observations = item.get("observations", trace.get("observations"))
        trace_id = text_or_none(trace.get("id"))
        if trace_id is None or not isinstance(observations, list):
            builder.skip(place, "not a trace with observations")
            continue
        traces.add(_root(trace, trace_id, observations))
        for observation in observations:
            if isinstance(observation, Mapping):
                traces.add(_span(observation, trace_id))
    for record in traces.records():
        builder.add(record)
    return builder.run(name=source.stem)


def _root(trace: Mapping[str, Any], trace_id: str, observations: list[Any]) -> Span:
    """Return the trace itself as the span that holds all others."""
    times = [
        (time_ns(each.get("startTime")), time_ns(each.get("endTime")))
        for each in observations
        if isinstance(each, Mapping)
    ]
    starts = [start for start, _ in times if start is not None]
    ends = [end for _, end in times if end is not None]
    span = Span(trace_id, _root_id(trace_id), None)
    span.start, span.end = min(starts, default=None), max(ends, default=None)
    span.question = text_in(_unpacked(trace.get("input")), QUESTION_KEYS, role="user")
    span.answer = text_in(_unpacked(trace.get("output")), ANSWER_KEYS, role="assistant")
    tops = [
        each
        for each in observations
        if isinstance(each, Mapping) and not each.get("parentObservationId")
    ]
    span.failed = any(each.get("level") == "ERROR" for each in tops)
    metadata = _unpacked(trace.get("metadata"))
    if isinstance(metadata, Mapping):
        span.query_id = text_or_none(metadata.get("query_id"))
    return span


def _root_id(trace_id: str) -> str:
    return f"trace:{trace_id}"


def _span(observation: Mapping[str, Any], trace_id: str) -> Span:
    kind_name = str(observation.get("type", "")).upper()
    output = _unpacked(observation.get("output"))
    chunks = _documents(output, kind_name)
    kind = KINDS.get(kind_name, "retriever" if chunks is not None else "other")
    span = Span(
        trace_id,
        text_or_none(observation.get("id")),
        text_or_none(observation.get("parentObservationId")) or _root_id(trace_id),
        kind,
        time_ns(observation.get("startTime")),
        time_ns(observation.get("endTime")),
    )
    span.chunks = chunks
    if kind != "other":
        span.question = text_in(_unpacked(observation.get("input")), QUESTION_KEYS, role="user")
    if kind == "generator":
        span.answer = text_in(output, ANSWER_KEYS, role="assistant")
    if observation.get("level") == "ERROR":
        span.failed = True
        span.error = text_or_none(observation.get("statusMessage"))
    return span


def _documents(output: Any, kind_name: str) -> list[Chunk] | None:
    if kind_name == "RETRIEVER":
        return None if output is None else chunks_in(output)
    if kind_name in UNTYPED and isinstance(output, list) and output:
        return chunks_in(output) if all(map(is_document, output)) else None
    return None


def _unpacked(value: Any) -> Any:
    """Return what a string of JSON holds, also where that is a string of JSON again."""
    found = json_or_text(value)
    return json_or_text(found) if isinstance(found, str) else found
