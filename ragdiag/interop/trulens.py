"""TruLens: spans with ``ai.observability.*`` attributes, as JSON or as CSV of Python reprs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragdiag.interop.documents import chunks_in
from ragdiag.interop.records import RunBuilder
from ragdiag.interop.source import Source
from ragdiag.interop.spans import Kind, Span, TraceCollector
from ragdiag.interop.values import (
    ANSWER_KEYS,
    QUESTION_KEYS,
    literal_or_text,
    text_in,
    text_or_none,
    time_ns,
)
from ragdiag.recording import Run

__all__ = ["PREFIX", "read"]

PREFIX = "ai.observability."

KINDS: dict[str, Kind] = {"retrieval": "retriever", "generation": "generator"}


def read(source: Source, format: str) -> Run:
    """Return the run that spans of TruLens record, one query a record."""
    builder = RunBuilder(source.name, format)
    traces = TraceCollector()
    name: str | None = None
    for place, item in _events(source, builder):
        attributes = literal_or_text(item.get("record_attributes"))
        if not isinstance(attributes, Mapping):
            builder.skip(place, "a span whose record_attributes cannot be read")
            continue
        ids = _mapping(item.get("trace"))
        trace_id = text_or_none(attributes.get(f"{PREFIX}record_id"))
        trace_id = trace_id or text_or_none(ids.get("trace_id"))
        if trace_id is None:
            builder.skip(place, "a span without a record or trace id")
            continue
        name = name or text_or_none(attributes.get(f"{PREFIX}app_name"))
        traces.add(_span(item, attributes, ids, trace_id))
    for record in traces.records():
        builder.add(record)
    builder.pipeline_name = name
    return builder.run(name=source.stem)


def _events(source: Source, builder: RunBuilder) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the events of a file, or of all the files of a folder: TruLens may write one each."""
    if source.shape == "folder":
        for path in source.files():
            inner = Source(path)
            if inner.shape in ("document", "lines", "csv"):
                for place, item in _events(inner, builder):
                    if "record_attributes" in item:
                        yield f"{inner.name}, {place}", item
        return
    rows = source.table_rows if source.shape in ("csv", "parquet") else source.objects
    yield from rows(builder.skip)


def _mapping(value: Any) -> Mapping[str, Any]:
    found = literal_or_text(value)
    return found if isinstance(found, Mapping) else {}


def _span(
    item: Mapping[str, Any], attributes: Mapping[str, Any], ids: Mapping[str, Any], trace_id: str
) -> Span:
    said = {
        name.removeprefix(PREFIX): value
        for name, value in attributes.items()
        if name.startswith(PREFIX)
    }
    kind = KINDS.get(str(said.get("span_type", "")), "other")
    record = _mapping(item.get("record"))
    parent = text_or_none(ids.get("parent_id")) or text_or_none(record.get("parent_span_id"))
    span = Span(trace_id, text_or_none(ids.get("span_id")), parent, kind)
    span.start, span.end = time_ns(item.get("start_timestamp")), time_ns(item.get("timestamp"))
    arguments = {
        name.removeprefix("call.kwargs."): value
        for name, value in said.items()
        if name.startswith("call.kwargs.")
    }
    asked = said.get("record_root.input", said.get("retrieval.query_text", arguments))
    span.question = text_in(asked, QUESTION_KEYS, role="user")
    if kind == "retriever":
        found = said.get("retrieval.retrieved_contexts")
        span.chunks = None if found is None else chunks_in(found)
    elif kind == "generator" or said.get("span_type") == "record_root":
        returned = said.get("record_root.output", said.get("call.return"))
        span.answer = text_in(returned, ANSWER_KEYS, role="assistant")
    span.expected_answer = text_or_none(said.get("record_root.ground_truth_output"))
    error = said.get("record_root.error", said.get("call.error"))
    span.error = text_or_none(error)
    span.failed = span.error is not None or str(record.get("status", "")).endswith("ERROR")
    return span
