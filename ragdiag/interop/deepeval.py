"""deepeval: goldens and test cases (JSON, CSV), test runs with their traces, and single traces.

Names are snake_case in datasets and camelCase in test runs. ``context`` is the ideal retrieval and
becomes labels, which match a retrieved text that is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ragdiag.codec import json_text
from ragdiag.files import write_text
from ragdiag.interop.documents import Chunk, chunks_in, is_document
from ragdiag.interop.export_rows import answer_rows
from ragdiag.interop.records import Record, RunBuilder
from ragdiag.interop.source import Source
from ragdiag.interop.spans import Kind, Span, TraceCollector
from ragdiag.interop.tables import Names, record_of
from ragdiag.interop.values import ANSWER_KEYS, QUESTION_KEYS, text_in, text_or_none, time_ns
from ragdiag.recording import Run

__all__ = ["NAMES", "SPAN_LISTS", "read", "to_deepeval"]

NAMES = Names(
    query=("input",),
    answer=("actual_output", "actualOutput"),
    expected_answer=("expected_output", "expectedOutput"),
    contexts=("retrieval_context", "retrievalContext"),
    references=("context",),
    dropped=(
        *("source_file", "sourceFile", "metricsData", "trace", "tools_called", "expected_tools"),
        *("toolsCalled", "expectedTools", "order", "success"),
    ),
    separator="|",
)

SPAN_LISTS: dict[str, Kind] = {
    "baseSpans": "other",
    "agentSpans": "other",
    "llmSpans": "generator",
    "retrieverSpans": "retriever",
    "toolSpans": "other",
}

FAILED = "ERRORED"

#: A metric of deepeval that is one of our verdicts, where it passed or failed at its threshold.
VERDICTS = {"faithfulness": "grounded", "correctness [geval]": "answer_correct"}

CONVERSATION = "a conversation of several turns, not one question"


def read(source: Source, format: str) -> Run:
    """Return the run that goldens, a test run or traces hold."""
    builder = RunBuilder(source.name, format, cells_are_text=source.shape == "csv")
    for place, item in _items(source, builder):
        if "turns" in item or "scenario" in item:
            builder.skip(place, CONVERSATION)
        elif any(name in item for name in SPAN_LISTS):
            builder.add(_trace_record(place, item))
        else:
            builder.add(_test_case(place, item))
    return builder.run(name=source.stem)


def _items(source: Source, builder: RunBuilder) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield test cases, goldens and traces."""
    rows = source.table_rows if source.shape in ("csv", "parquet") else source.objects
    for place, item in rows(builder.skip):
        if not isinstance(item.get("testCases"), list):
            yield place, item
            continue
        for position, case in enumerate(item["testCases"]):
            if isinstance(case, Mapping):
                yield f"testCases[{position}]", case
            else:
                builder.skip(f"testCases[{position}]", "not an object")
        for position, _ in enumerate(item.get("conversationalTestCases") or ()):
            builder.skip(f"conversationalTestCases[{position}]", CONVERSATION)


def _test_case(place: str, case: Mapping[str, Any]) -> Record:
    record = record_of(place, case, NAMES)
    record.verdict = _verdict(case.get("metricsData"))
    trace = case.get("trace")
    if isinstance(trace, Mapping):
        traced = _trace_record(place, trace)
        if record.chunks is None:
            record.chunks, record.n_retrievals = traced.chunks, traced.n_retrievals
        record.answer = record.answer or traced.answer
        record.retrieval_ms, record.generation_ms = traced.retrieval_ms, traced.generation_ms
        record.total_ms = traced.total_ms
        record.failed, record.error = traced.failed, traced.error
        record.traceback = traced.traceback
    return record


def _trace_record(place: str, trace: Mapping[str, Any]) -> Record:
    """Return the record of one trace: its lists of spans under one that is the trace itself."""
    identity = text_or_none(trace.get("uuid")) or place
    traces = TraceCollector()
    root = _timed(trace, identity, identity, None, "other")
    root.question = text_in(trace.get("input"), QUESTION_KEYS, role="user")
    root.answer = text_in(trace.get("output"), ANSWER_KEYS, role="assistant")
    traces.add(root)
    for name, kind in SPAN_LISTS.items():
        for span in trace.get(name) or ():
            if isinstance(span, Mapping):
                traces.add(_span(span, identity, kind))
    record = next(traces.records())
    record.place = place
    return record


def _timed(
    item: Mapping[str, Any], trace_id: str, identity: str | None, parent: str | None, kind: Kind
) -> Span:
    span = Span(trace_id, identity, parent, kind)
    span.start, span.end = time_ns(item.get("startTime")), time_ns(item.get("endTime"))
    span.failed = item.get("status") == FAILED
    span.error = text_or_none(item.get("error"))
    return span


def _span(item: Mapping[str, Any], trace_id: str, kind: Kind) -> Span:
    parent = text_or_none(item.get("parentUuid")) or trace_id
    span = _timed(item, trace_id, text_or_none(item.get("uuid")), parent, kind)
    inputs, output = item.get("input"), item.get("output")
    span.question = text_in(inputs, QUESTION_KEYS, role="user")
    if kind == "retriever":
        listed = output if isinstance(output, list) else item.get("retrievalContext")
        span.chunks = None if listed is None else chunks_in(listed)
    else:
        span.given = _given(inputs)
        if kind == "generator" or parent == trace_id:
            span.answer = text_in(output, ANSWER_KEYS, role="assistant")
    return span


def _given(inputs: Any) -> list[Chunk] | None:
    """Return the documents a span was handed, as a synthesiser is: under ``nodes``."""
    nodes = inputs.get("nodes") if isinstance(inputs, Mapping) else None
    if isinstance(nodes, list) and nodes and all(map(is_document, nodes)):
        return chunks_in(nodes)
    return None


def _verdict(metrics: Any) -> dict[str, Any]:
    """Return what deepeval's own metrics say of the answer, as columns of the verdicts."""
    verdict: dict[str, Any] = {}
    for metric in metrics if isinstance(metrics, list) else ():
        if not isinstance(metric, Mapping):
            continue
        finding = VERDICTS.get(str(metric.get("name", "")).lower())
        if finding is not None and isinstance(metric.get("success"), bool):
            verdict[finding] = metric["success"]
            verdict["judge"] = f"deepeval: {metric['name']}"
            verdict["judge_reason"] = text_or_none(metric.get("reason"))
    return verdict


def to_deepeval(run: Run, path: str | Path | None = None) -> list[dict[str, Any]]:
    """Return deepeval test cases as dicts, and write them as a JSON file.

    Fields: ``name`` (the query id), ``input, actual_output, expected_output, retrieval_context,
    context, completion_time`` (seconds); a field about which nothing is known is not there. Failed
    queries are left out.

    Parameters
    ----------
    run : Run
        What happened.
    path : str or path, optional
        A ``.json`` file, readable with ``EvaluationDataset.add_test_cases_from_json_file``.

    Raises
    ------
    ExportError
        The file cannot be written.
    """
    cases = [
        {name: value for name, value in case.items() if value is not None}
        for case in (
            {
                "name": row.query_id,
                "input": row.query,
                "actual_output": row.answer,
                "expected_output": row.expected_answer,
                "retrieval_context": row.texts,
                "context": row.reference_texts,
                "completion_time": None if row.total_ms is None else row.total_ms / 1000,
            }
            for row in answer_rows(run)
        )
    ]
    if path is not None:
        lines = ",\n".join(map(json_text, cases))
        write_text(Path(path), f"[\n{lines}\n]\n" if cases else "[]\n")
    return cases
