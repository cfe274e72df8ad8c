"""The comparison of two pipelines in a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ragdiag.display.clean import shorten
from ragdiag.display.numbers import (
    change,
    count,
    measure,
    milliseconds,
    milliseconds_change,
    plural,
)
from ragdiag.display.sheet import Justify, Sheet, hostile
from ragdiag.display.terminal import NOT_JUDGED, NOT_MEASURED, NOT_TIMED

if TYPE_CHECKING:
    from ragdiag.report_models import ComparisonReport, EvaluationReport

__all__ = ["show_comparison"]

#: Changed queries that are listed; the CSV and the JSON have the others.
MAX_OUTCOMES = 20
#: Names longer than this would break the columns; the line above the tables says who A and B are.
MAX_NAME = 20


def show_comparison(
    sheet: Sheet,
    report: ComparisonReport,
    seconds: float | None = None,
    sentence: str | None = None,
) -> None:
    """Write the comparison of two pipelines, the decision with its reasons included."""
    a, b = report.pipeline_a_report, report.pipeline_b_report
    names = report.pipeline_a_name, report.pipeline_b_name
    sheet.line(sentence or report.summary, "bold")
    n = plural(len(report.query_outcomes), "query", "queries")
    sheet.line(f"{names[0]} (A) against {names[1]} (B): {n}, k = {a.retrieval.k}", "dim")
    heads = names if max(map(len, names)) <= MAX_NAME else ("A", "B")
    _measures(sheet, report, a, b, heads)
    _failures(sheet, report, a, b, heads)
    _types(sheet, report, a, b)
    _decision(sheet, report)
    _outcomes(sheet, report)
    if seconds is not None:
        sheet.console.print()
        sheet.line(f"{seconds:.1f} s")


def _measures(
    sheet: Sheet,
    report: ComparisonReport,
    a: EvaluationReport,
    b: EvaluationReport,
    names: tuple[str, str],
) -> None:
    k, deltas = a.retrieval.k, report.metric_deltas
    rows = [
        (label, measure(left, missing), measure(right, missing), change(delta, missing))
        for label, left, right, delta, missing in (
            (
                f"Precision@{k}",
                a.retrieval.mean_precision_at_k,
                b.retrieval.mean_precision_at_k,
                deltas.precision_at_k,
                NOT_MEASURED,
            ),
            (
                f"Recall@{k}",
                a.retrieval.mean_recall_at_k,
                b.retrieval.mean_recall_at_k,
                deltas.recall_at_k,
                NOT_MEASURED,
            ),
            ("MRR", a.retrieval.mrr, b.retrieval.mrr, deltas.mrr, NOT_MEASURED),
            (
                "Answer correct",
                _rate(a, "answer_correctness_rate"),
                _rate(b, "answer_correctness_rate"),
                deltas.answer_correctness,
                NOT_JUDGED,
            ),
            (
                "Grounded",
                _rate(a, "groundedness_rate"),
                _rate(b, "groundedness_rate"),
                deltas.groundedness,
                NOT_JUDGED,
            ),
        )
    ]
    rows += [
        (
            f"Retrieval {name}",
            milliseconds(getattr(a.latency, f"{name}_ms"), NOT_TIMED),
            milliseconds(getattr(b.latency, f"{name}_ms"), NOT_TIMED),
            milliseconds_change(delta, NOT_TIMED),
        )
        for name, delta in (
            ("mean", deltas.mean_retrieval_ms),
            ("p95", deltas.p95_retrieval_ms),
        )
    ]
    sheet.title("Overall metrics")
    right: Justify = "right"
    sheet.table([("measure", "left"), *((name, right) for name in names), ("B - A", right)], rows)


def _failures(
    sheet: Sheet,
    report: ComparisonReport,
    a: EvaluationReport,
    b: EvaluationReport,
    names: tuple[str, str],
) -> None:
    sheet.title("Failure counts")
    right: Justify = "right"
    sheet.table(
        [("category", "left"), *((name, right) for name in names), ("B - A", right)],
        (
            (
                hostile(name, "" if left or other else "dim"),
                count(left),
                count(other),
                f"{delta:+,}" if delta else "0",
            )
            for name, delta in report.diagnosis_deltas.items()
            for left in [a.diagnosis_counts.get(name, 0)]
            for other in [b.diagnosis_counts.get(name, 0)]
        ),
    )


def _types(
    sheet: Sheet, report: ComparisonReport, a: EvaluationReport, b: EvaluationReport
) -> None:
    if not report.query_type_deltas:
        return
    k = a.retrieval.k
    sheet.title("Query types")
    rows = []
    for name, delta in report.query_type_deltas.items():
        sides = [each.metrics_by_query_type.get(name) for each in (a, b)]
        rows.append(
            (
                name,
                _arrow(each.mean_recall_at_k if each else None for each in sides),
                _arrow(each.mrr if each else None for each in sides),
                f"{delta.total_failure_delta:+,}" if delta.total_failure_delta else "0",
            )
        )
    sheet.table(
        [("type", "left"), (f"Recall@{k}", "left"), ("MRR", "left"), ("failures", "right")],
        rows,
    )


def _decision(sheet: Sheet, report: ComparisonReport) -> None:
    sheet.title("Decision")
    sheet.table(
        [("", "left"), ("", "left")],
        [
            ("winner", report.overall_winner),
            ("why", report.summary),
            ("trade-off", report.trade_off or "none"),
            ("quality", report.quality_winner),
            ("latency", report.latency_winner),
        ],
    )


def _outcomes(sheet: Sheet, report: ComparisonReport) -> None:
    sheet.title("Query outcomes")
    sheet.line(
        f"improved {count(report.queries_improved)}, regressed "
        f"{count(report.queries_regressed)}, unchanged {count(report.queries_unchanged)}"
    )
    changed = [each for each in report.query_outcomes if each.outcome != "unchanged"]
    changed.sort(key=lambda each: each.outcome != "regressed")
    if not changed:
        return
    sheet.table(
        [("query", "left"), ("outcome", "left"), ("A", "left"), ("B", "left")],
        (
            (
                shorten(each.query_id, 24),
                each.outcome,
                each.diagnosis_a or NOT_MEASURED,
                each.diagnosis_b or NOT_MEASURED,
            )
            for each in changed[:MAX_OUTCOMES]
        ),
    )
    if len(changed) > MAX_OUTCOMES:
        sheet.line(f"showing {MAX_OUTCOMES} of {count(len(changed))}", "dim")


def _arrow(values: Iterable[float | None]) -> str:
    return " -> ".join(measure(value, NOT_MEASURED) for value in values)


def _rate(report: EvaluationReport, name: str) -> float | None:
    rate: float | None = getattr(report.semantic, name, None)
    return rate
