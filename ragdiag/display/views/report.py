"""What is shown of an evaluation's typed report."""

from __future__ import annotations

from collections.abc import Mapping

from ragdiag.display.blocks import Bullets, Line, Section, View, line, muted
from ragdiag.display.clean import shorten
from ragdiag.display.numbers import of
from ragdiag.display.views.common import category_order, id_list, short_id, short_name
from ragdiag.display.views.parts import (
    CategoryRow,
    TypeRow,
    categories_section,
    figure,
    figures_section,
    insights_section,
    milliseconds_figure,
    types_section,
)
from ragdiag.report import EvaluationReport, QueryTypeMetrics
from ragdiag.taxonomy import FailureCategory

__all__ = ["view"]

MAX_FAILURES = 5
MAX_NOTES = 4
PASS = FailureCategory.PASS.value


def view(report: EvaluationReport, text_limit: int) -> View:
    """Show the measures, the causes, the query types, insights and the worst failures."""
    passed = report.diagnosis_counts.get(PASS, 0)
    name = short_name(report.pipeline_name or "the pipeline")
    causes = [
        f"{number:,} × {short_name(cause)}"
        for cause, number in sorted(report.diagnosis_counts.items(), key=lambda item: -item[1])
        if cause != PASS and number
    ]
    note = f"Report on {short_name(report.dataset_name)} {shorten(report.dataset_version, 20)}"
    note += f" at k = {report.retrieval.k}. {_judged(report)}"
    note += "".join(f" {shorten(each, 160).rstrip('.')}." for each in report.notes[:MAX_NOTES])
    sections: list[Section | None] = [
        _measures(report),
        _categories(report),
        _types(report),
        insights_section(report.overall_insights),
        _failures(report, text_limit),
    ]
    return View(
        f"{name}: {of(passed, report.total_queries)} passed",
        lead=line(f"· {' · '.join(causes[:3])}." if causes else ""),
        note=line(note),
        sections=tuple(section for section in sections if section),
        hints=(".model_dump_json(indent=2)", ".top_failures", ".diagnosis_counts"),
    )


def _judged(report: EvaluationReport) -> str:
    if not report.judged_queries:
        return "Answers not judged."
    failed = f", the judge failed on {report.judge_failures:,}" if report.judge_failures else ""
    return f"Judged: {of(report.judged_queries, report.total_queries)} answers{failed}."


def _measures(report: EvaluationReport) -> Section:
    total, retrieval, semantic = report.total_queries, report.retrieval, report.semantic
    used = report.completed_queries
    if retrieval.measured_queries is not None:
        used = retrieval.measured_queries
    k = retrieval.k
    figures = [
        figure(name, value, used, total, k)
        for name, value in (
            (f"recall_at_{k}", retrieval.mean_recall_at_k),
            (f"precision_at_{k}", retrieval.mean_precision_at_k),
            ("reciprocal_rank", retrieval.mrr),
        )
    ]
    for name, value, judged in (
        (
            "answer_correct",
            semantic.answer_correctness_rate if semantic else None,
            semantic.correctness_judged if semantic else 0,
        ),
        (
            "grounded",
            semantic.groundedness_rate if semantic else None,
            semantic.groundedness_judged if semantic else 0,
        ),
    ):
        n = report.judged_queries if judged is None else judged
        figures.append(figure(name, value, n, total, k, "judged"))
    times = report.latency
    for percent, value in ((50, times.p50_ms), (95, times.p95_ms)):
        names = f"Retrieval p{percent}", f"p{percent}"
        figures.append(milliseconds_figure(*names, value, times.count, total))
    return figures_section(figures)


def _categories(report: EvaluationReport) -> Section:
    rows = [
        CategoryRow(name, report.diagnosis_counts[name], None, _severity(name), "")
        for name in category_order(report.diagnosis_counts)
    ]
    return categories_section(rows, report.total_queries, None)


def _severity(name: str) -> str:
    return FailureCategory(name).severity if name in FailureCategory.__members__ else "own rule"


def _types(report: EvaluationReport) -> Section | None:
    rows = [_type_row(name, part) for name, part in report.metrics_by_query_type.items()]
    return types_section(rows, report.retrieval.k) if rows else None


def _type_row(name: str, part: QueryTypeMetrics) -> TypeRow:
    counts = part.diagnosis_counts
    cause, number = _main_cause(counts)
    return TypeRow(
        name,
        part.total_queries,
        counts.get(PASS, 0),
        part.mean_recall_at_k,
        part.mrr,
        part.answer_correctness_rate,
        part.groundedness_rate,
        cause,
        number,
    )


def _main_cause(counts: Mapping[str, int]) -> tuple[str | None, int | None]:
    failures = {name: number for name, number in counts.items() if name != PASS and number}
    if not failures:
        return None, None
    most = max(failures.values())
    leading = [name for name, number in failures.items() if number == most]
    return (leading[0], most) if len(leading) == 1 else (None, None)


def _failures(report: EvaluationReport, limit: int) -> Section | None:
    items: list[Line] = [
        line(
            short_id(item.query_id),
            f" {shorten(item.query, 90)} ",
            muted(f"{short_name(item.category)}: "),
            shorten(item.reason, limit),
        )
        for item in report.top_failures[:MAX_FAILURES]
    ]
    if not items:
        return None
    note = line(f"the worst {len(items)}; all ids are in .failing_queries")
    ids = [item.query_id for item in report.top_failures]
    return Section("Failures", Bullets(tuple(items)), note, brief=(id_list(ids, MAX_FAILURES),))
