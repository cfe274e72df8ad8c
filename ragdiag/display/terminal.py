"""The report of one pipeline, and the summary of a dataset, in a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from ragdiag.display.clean import shorten
from ragdiag.display.numbers import count, measure, milliseconds, plural
from ragdiag.display.sheet import Heading, Justify, Sheet, hostile
from ragdiag.taxonomy import DISPLAY_ORDER, FailureCategory

if TYPE_CHECKING:
    import pandas as pd

    from ragdiag.dataset_summary import DatasetSummary
    from ragdiag.report_models import EvaluationReport, QueryTypeMetrics
    from ragdiag.results import Results

__all__ = ["show_causes", "show_dataset", "show_lint", "show_report"]

#: Ids that are listed; the CSV and the JSON have the others.
MAX_IDS = 12
QUESTION_LIMIT = 200
MAX_FINDINGS = 30
MAX_ERRORS = 3
ERROR_LIMIT = 300
FINDING = ["severity", "check", "query_id", "detail", "remedy"]
NOT_MEASURED = "not measured"
NOT_JUDGED = "not judged"
NOT_TIMED = "not timed"


def show_dataset(sheet: Sheet, summary: DatasetSummary) -> None:
    """Write what a dataset consists of."""
    sheet.line(
        f"{summary.name} {summary.version}: {plural(summary.total_samples, 'query', 'queries')}"
        f", valid",
        "bold",
    )
    if summary.description:
        sheet.line(summary.description)
    types = [f"{name} {count(n)}" for name, n in summary.query_type_counts.items()]
    rows: list[tuple[str, str]] = []
    if types or summary.without_type:
        none = [f"none {count(summary.without_type)}"] if summary.without_type else []
        rows.append(("Query types", ", ".join([*types, *none])))
    rows.append(
        (
            "Relevant chunks",
            f"{count(summary.total_relevant)} labels of "
            f"{count(summary.distinct_relevant)} chunks" + (", graded" if summary.graded else ""),
        )
    )
    for name, spread in (
        ("Relevant per query", summary.relevant_per_query),
        ("Question length", summary.query_characters),
        ("Answer length", summary.answer_characters),
    ):
        if spread is not None:
            rows.append(
                (
                    name,
                    f"median {spread.median:g}, 95 % up to {spread.p95:g}, "
                    f"largest {spread.max:g}" + (" characters" if "length" in name else ""),
                )
            )
    for name, n in (
        ("Without an answer", summary.without_answer),
        ("Without labels", summary.without_labels),
    ):
        if n:
            rows.append((name, f"{count(n)}: what needs them is not measured"))
    if summary.metadata_columns:
        rows.append(("Metadata", ", ".join(summary.metadata_columns)))
    sheet.table([("", "left"), ("", "left")], rows)
    if summary.warnings:
        sheet.title("Warnings")
        for warning in summary.warnings:
            sheet.item(warning, "yellow")


def show_lint(sheet: Sheet, found: pd.DataFrame) -> None:
    """Write what is probably wrong with the labels, and which checks lacked what they need."""
    sheet.title("Labels")
    if found.empty:
        sheet.line("nothing suspicious")
    for severity, check, query, detail, remedy in found.head(MAX_FINDINGS)[FINDING].to_numpy():
        sheet.item(f"{severity} {check}, {query}: {detail}")
        sheet.line(f"  {remedy}", "dim")
    if len(found) > MAX_FINDINGS:
        sheet.line(f"showing {MAX_FINDINGS} of {count(len(found))}", "dim")
    if missing := found.attrs.get("not_checked"):
        sheet.line(
            f"not checked, for want of a corpus or of judged runs: {', '.join(missing)}", "dim"
        )


def show_report(
    sheet: Sheet,
    report: EvaluationReport,
    seconds: float | None = None,
    results: Results | None = None,
) -> None:
    """Write the system report of one pipeline, with the errors of its calls from `results`."""
    _headline(sheet, report, results)
    where = f"{report.dataset_name} {report.dataset_version}".strip()
    sheet.line(f"on {where or 'an unnamed dataset'}, k = {report.retrieval.k}", "dim")
    _measures(sheet, report)
    _latency(sheet, report)
    _failures(sheet, report)
    _types(sheet, report)
    sheet.title("Insights")
    for insight in report.overall_insights or ["Nothing stands out."]:
        sheet.item(insight)
    for note in report.notes:
        sheet.item(f"Note: {note}", "dim")
    _errors(sheet, [] if results is None else _errors_of(results))
    _closing(sheet, report, seconds)


def _errors_of(results: Results) -> list[str]:
    """Return what failed, one text for each query whose pipeline or judge raised."""
    frame = results.frame
    judge = frame["correct_error"].fillna(frame["grounded_error"])
    return [str(text) for text in frame["error"].fillna("judge: " + judge).dropna()]


def _errors(sheet: Sheet, errors: Sequence[str]) -> None:
    """Write the most frequent errors: they say what to repair before anything else counts."""
    if not errors:
        return
    sheet.title("Errors")
    ranked = Counter(errors).most_common()
    for error, n in ranked[:MAX_ERRORS]:
        sheet.item(f"{plural(n, 'query', 'queries')}: {shorten(error, ERROR_LIMIT)}")
    if len(ranked) > MAX_ERRORS:
        sheet.line(f"showing {MAX_ERRORS} of {count(len(ranked))}", "dim")


def _closing(sheet: Sheet, report: EvaluationReport, seconds: float | None) -> None:
    sheet.console.print()
    parts = [
        f"{count(report.completed_queries)} completed",
        f"{count(report.failed_queries)} failed",
    ]
    if report.judge_failures:
        parts.append(f"judge failed on {count(report.judge_failures)}")
    if seconds is not None:
        parts.append(f"{seconds:.1f} s")
    sheet.line(", ".join(parts))


def _measures(sheet: Sheet, report: EvaluationReport) -> None:
    k, retrieval, semantic = report.retrieval.k, report.retrieval, report.semantic
    n = retrieval.measured_queries
    of = f"{count(n)} of {count(report.total_queries)}" if n is not None else ""
    rows = [
        (f"Recall@{k}", measure(retrieval.mean_recall_at_k, NOT_MEASURED), of),
        (f"Precision@{k}", measure(retrieval.mean_precision_at_k, NOT_MEASURED), of),
        ("MRR", measure(retrieval.mrr, NOT_MEASURED), of),
    ]
    sheet.title("Overall retrieval measures")
    sheet.table([("measure", "left"), ("mean", "right"), ("queries", "left")], rows)
    sheet.title("Answers")
    if semantic is None:
        sheet.line("not judged: no judge was asked (--judge lexical works offline)")
        return
    what = "suspected by the offline judge" if semantic.screened else "stated, uncalibrated"
    sheet.table(
        [("measure", "left"), ("mean", "right"), ("queries", "left")],
        [
            _judged(
                "Answer correct",
                semantic.answer_correctness_rate,
                semantic.correctness_judged,
                report,
            ),
            _judged("Grounded", semantic.groundedness_rate, semantic.groundedness_judged, report),
            ("Confidence", measure(semantic.mean_judge_confidence, NOT_JUDGED), what),
        ],
    )


def _judged(
    label: str, rate: float | None, n: int | None, report: EvaluationReport
) -> tuple[str, str, str]:
    """Make the row of a rate; files of earlier releases have one count for both sides."""
    judged = report.judged_queries if n is None else n
    return label, measure(rate, NOT_JUDGED), f"{count(judged)} of {count(report.total_queries)}"


def _latency(sheet: Sheet, report: EvaluationReport) -> None:
    stats = report.latency
    sheet.title("Retrieval latency")
    if not stats.count:
        sheet.line(NOT_TIMED)
        return
    names = ("mean", "p50", "p95", "p99", "min", "max")
    values = [milliseconds(getattr(stats, f"{name}_ms"), NOT_TIMED) for name in names]
    right: Justify = "right"
    sheet.table(
        [*((name, right) for name in names), ("queries", right)],
        [[*values, count(stats.count)]],
    )


def _failures(sheet: Sheet, report: EvaluationReport) -> None:
    sheet.title("Failure analysis")
    headings: list[Heading] = [("category", "left"), ("queries", "right"), ("share", "right")]
    rows = [_category_row(report, name, n) for name, n in report.diagnosis_counts.items()]
    if report.undiagnosed_queries:
        rows.append((NOT_MEASURED, count(report.undiagnosed_queries), "", "", "add evidence"))
    unmeasured: list[Heading] = [("not\nmeasured", "right")]
    if not report.not_measured:
        unmeasured, rows = [], [(*row[:3], *row[4:]) for row in rows]
    sheet.table([*headings, *unmeasured, ("what to do", "left")], rows)


def _category_row(report: EvaluationReport, name: str, n: int) -> tuple[str | Text, ...]:
    """Make the row of a category; a rule that lacked evidence everywhere found no zero."""
    info = FailureCategory(name).info if name in FailureCategory.__members__ else None
    lacking = report.not_measured.get(name, 0)
    if not n and lacking and lacking == report.total_queries:
        return hostile(name, "dim"), "", "", "all", ""
    style = (info.colour if info else "") if n else "dim"
    share = f"{100 * n / max(report.total_queries, 1):.0f} %"
    action = info.short_action if info and n else ""
    return hostile(name, style), count(n), share, count(lacking), action


def _types(sheet: Sheet, report: EvaluationReport) -> None:
    if not report.metrics_by_query_type:
        return
    k = report.retrieval.k
    judged = report.semantic is not None
    headings: list[Heading] = [
        ("type", "left"),
        ("passed", "right"),
        (f"Recall@{k}", "right"),
        (f"Prec.@{k}", "right"),
        ("MRR", "right"),
    ]
    headings += [("correct", "right"), ("grounded", "right")] if judged else []
    sheet.title("Query types")
    sheet.table(
        headings, (_type_row(each, judged) for each in report.metrics_by_query_type.values())
    )


def _headline(sheet: Sheet, report: EvaluationReport, results: Results | None) -> None:
    name = report.pipeline_name or "pipeline"
    passed = report.diagnosis_counts.get(FailureCategory.PASS, 0)
    # That of the results says as well what a pass leaves open.
    said = (
        f"{count(passed)} of {count(report.total_queries)} queries passed"
        if results is None
        else results.headline
    )
    sheet.line(f"{name}: {said}", "bold")


def show_causes(sheet: Sheet, report: EvaluationReport, results: Results | None = None) -> None:
    """Write what fails most, the queries concerned, and the action for each cause."""
    failed = {
        name: n for name, n in report.diagnosis_counts.items() if n and name != FailureCategory.PASS
    }
    _headline(sheet, report, results)
    sheet.title("What fails most")
    if not failed:
        sheet.line("nothing: no measured check failed")
    actions = {each.category: each.action for each in report.top_failures}
    for category, n in sorted(failed.items(), key=lambda item: -item[1]):
        info = FailureCategory(category).info if category in DISPLAY_ORDER else None
        sheet.console.print()
        heading = hostile(category, f"bold {info.colour}" if info else "bold")
        heading.append(f"  {plural(n, 'query', 'queries')}", style="not bold default")
        sheet.console.print(heading)
        ids = report.failing_queries.get(category) or [
            each.query_id for each in report.top_failures if each.category == category
        ]
        shown = ", ".join(shorten(each, 40) for each in ids[:MAX_IDS])
        rest = n - min(len(ids), MAX_IDS)
        more = f" and {count(rest)} more" if rest > 0 else ""
        rows = [
            ("queries", f"{shown}{more}"),
            ("do", info.action if info else actions.get(category, "")),
        ]
        sheet.table([("", "left"), ("", "left")], rows)
    if report.top_failures:
        sheet.title("Worst queries")
        for failure in report.top_failures:
            sheet.console.print()
            sheet.line(f"{failure.query_id}  {shorten(failure.query, QUESTION_LIMIT)}")
            rows = [
                ("cause", f"{failure.category}, {failure.severity}"),
                ("why", failure.reason),
            ]
            rows += [("", fact) for fact in failure.evidence if fact != failure.reason]
            sheet.table([("", "left"), ("", "left")], rows)
    _closing(sheet, report, None)


def _type_row(metrics: QueryTypeMetrics, judged: bool) -> list[str]:
    passed = metrics.diagnosis_counts.get(FailureCategory.PASS, 0)
    row = [
        metrics.query_type,
        f"{count(passed)} of {count(metrics.total_queries)}",
        measure(metrics.mean_recall_at_k, NOT_MEASURED),
        measure(metrics.mean_precision_at_k, NOT_MEASURED),
        measure(metrics.mrr, NOT_MEASURED),
    ]
    if judged:
        row += [
            measure(metrics.answer_correctness_rate, NOT_JUDGED),
            measure(metrics.groundedness_rate, NOT_JUDGED),
        ]
    return row
