"""MLflow: traces, one a line, and tables of evaluation results.

Attributes of spans are JSON inside strings; a retriever's outputs are documents with
``page_content`` and ``metadata`` (``doc_uri``, ``chunk_id``), as MLflow's own judges expect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragdiag.interop.documents import chunks_in
from ragdiag.interop.raw import RawSpan, span_of
from ragdiag.interop.records import RunBuilder
from ragdiag.interop.source import Source
from ragdiag.interop.spans import Kind, Span, TraceCollector
from ragdiag.interop.tables import Names, fill
from ragdiag.interop.values import (
    ANSWER_KEYS,
    QUESTION_KEYS,
    json_or_text,
    text_in,
    text_or_none,
    time_ns,
)
from ragdiag.recording import Run

__all__ = ["NAMES", "read", "read_table"]

KINDS: dict[str, Kind] = {"RETRIEVER": "retriever", "LLM": "generator", "CHAT_MODEL": "generator"}

#: The columns that ``mlflow.evaluate`` and ``mlflow.genai.evaluate`` write.
NAMES = Names(
    query=("inputs", "request", "question", "query"),
    query_id=("query_id", "request_id"),
    answer=("outputs", "response", "predictions", "output", "answer"),
    expected_answer=("ground_truth", "expected_response", "targets", "expected_answer"),
    contexts=("retrieved_context", "context", "contexts"),
    references=("expected_retrieved_context",),
)

#: What MLflow's own judges are called, and the verdict they amount to.
ASSESSMENTS = {
    "correctness": "answer_correct",
    "retrieval_groundedness": "grounded",
    "groundedness": "grounded",
}
YES_OR_NO = {"yes": True, "no": False, "true": True, "false": False}


def read_table(source: Source, format: str) -> Run:
    """Return the run that a table of evaluation results holds."""
    builder = RunBuilder(source.name, format, cells_are_text=source.shape == "csv")
    fill(builder, source.table_rows(builder.skip), NAMES)
    return builder.run(name=source.stem)


def read(source: Source, format: str) -> Run:
    """Return the run that traces record, one query a trace."""
    builder = RunBuilder(source.name, format)
    traces = TraceCollector()
    for place, item in source.objects(builder.skip):
        info, data = item.get("info"), item.get("data")
        spans = data.get("spans") if isinstance(data, Mapping) else None
        trace_id = None
        if isinstance(info, Mapping):
            trace_id = text_or_none(info.get("trace_id")) or text_or_none(info.get("request_id"))
        if trace_id is None or not isinstance(info, Mapping) or not isinstance(spans, list):
            builder.skip(place, "not a trace with spans")
            continue
        found = [_span(span, trace_id) for span in spans if isinstance(span, Mapping)]
        roots = [span for span in found if span.parent_id is None]
        for span in roots[:1]:
            span.verdict = _verdict(info.get("assessments"))
        for span in found:
            traces.add(span)
    for record in traces.records():
        builder.add(record)
    return builder.run(name=source.stem)


def _span(span: Mapping[str, Any], trace_id: str) -> Span:
    given = span.get("attributes")
    attributes = {
        key: json_or_text(value)
        for key, value in (given.items() if isinstance(given, Mapping) else ())
    }
    status = span.get("status")
    status = status if isinstance(status, Mapping) else {"code": span.get("status_code")}
    raw = RawSpan(
        trace_id=trace_id,
        span_id=text_or_none(span.get("span_id")),
        parent_id=text_or_none(span.get("parent_span_id", span.get("parent_id"))),
        name=str(span.get("name", "")),
        start=time_ns(span.get("start_time_unix_nano", span.get("start_time"))),
        end=time_ns(span.get("end_time_unix_nano", span.get("end_time"))),
        failed=str(status.get("code", "")).endswith("ERROR"),
        message=status.get("message"),
        attributes=attributes,
        events=[
            (str(event.get("name", "")), event.get("attributes") or {})
            for event in span.get("events") or ()
            if isinstance(event, Mapping)
        ],
    )
    found = span_of(raw, KINDS.get(str(attributes.get("mlflow.spanType", "")).upper(), "other"))
    inputs, outputs = attributes.get("mlflow.spanInputs"), attributes.get("mlflow.spanOutputs")
    found.question = text_in(inputs, QUESTION_KEYS, role="user")
    if found.kind == "retriever":
        found.chunks = None if outputs is None else chunks_in(outputs)
    elif found.kind == "generator" or raw.parent_id is None:
        found.answer = text_in(outputs, ANSWER_KEYS, role="assistant")
    return found


def _verdict(assessments: Any) -> dict[str, Any]:
    """Return what MLflow's judges said, as columns of the verdicts."""
    verdict: dict[str, Any] = {}
    for each in assessments if isinstance(assessments, list) else ():
        if not isinstance(each, Mapping):
            continue
        name = str(each.get("assessment_name", each.get("name", "")))
        feedback = each.get("feedback")
        value = feedback.get("value") if isinstance(feedback, Mapping) else None
        said = YES_OR_NO.get(str(value).lower())
        if name in ASSESSMENTS and said is not None:
            verdict[ASSESSMENTS[name]] = said
            verdict["judge"] = "mlflow"
    return verdict
