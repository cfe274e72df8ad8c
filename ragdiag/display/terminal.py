"""Reports in a terminal: rich tables that read at 80 columns, and when they are piped.

Everything a pipeline, a dataset or a judge said goes through :func:`clean` and into ``Text``
objects: it is never read as markup, and no control sequence reaches the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ragdiag.display.clean import clean, shorten
from ragdiag.display.numbers import (
    ascii_signs,
    change,
    count,
    measure,
    milliseconds,
    milliseconds_change,
    plural,
)
from ragdiag.taxonomy import DISPLAY_ORDER, FailureCategory

if TYPE_CHECKING:
    from ragdiag.dataset_summary import DatasetSummary
    from ragdiag.report_models import ComparisonReport, EvaluationReport, QueryTypeMetrics

__all__ = ["Terminal"]

#: Lines longer than this are hard to read, however wide the window is.
MAX_COLUMNS = 100
PIPED_COLUMNS = 80
#: Ids and queries that are listed; the CSV and the JSON have the others.
MAX_IDS = 12
MAX_OUTCOMES = 20
QUESTION_LIMIT = 200
NOT_MEASURED = "not measured"
NOT_JUDGED = "not judged"
NOT_TIMED = "not timed"

Justify = Literal["left", "right"]
Heading = tuple[str, Justify]


class Terminal:
    """Writes reports to a rich console.

    Parameters
    ----------
    console : rich.console.Console, optional
        Standard output by default: at most 100 columns wide, 80 when it is not a terminal.
    """

    def __init__(self, console: Console | None = None) -> None:
        if console is None:
            console = Console(highlight=False, markup=False, emoji=False)
            wide = console.width if console.is_terminal else PIPED_COLUMNS
            console.width = min(wide, MAX_COLUMNS)
        self.console = console

    # -- pieces -----------------------------------------------------------------------------------

    def line(self, text: str = "", style: str = "") -> None:
        """Write one paragraph."""
        self.console.print(_text(text, style), soft_wrap=False)

    def title(self, text: str) -> None:
        """Write the heading of a section."""
        self.console.print()
        self.line(text, "bold")

    def item(self, text: str, style: str = "") -> None:
        """Write a paragraph behind a dash, indented."""
        grid = Table.grid(padding=(0, 1))
        grid.add_row(Text("-"), _text(text, style))
        self.console.print(grid)

    def table(self, headings: Sequence[Heading], rows: Iterable[Sequence[str | Text]]) -> None:
        """Write a table without borders, its heads muted; without heads, pairs."""
        table = Table(
            box=None,
            padding=(0, 2, 0, 0),
            header_style="dim",
            pad_edge=False,
            show_header=any(name for name, _ in headings),
        )
        for name, justify in headings:
            table.add_column(_text(name), justify=justify, overflow="fold")
        for row in rows:
            table.add_row(*(cell if isinstance(cell, Text) else _text(cell) for cell in row))
        self.console.print(table)

    # -- reports ----------------------------------------------------------------------------------

    def dataset(self, summary: DatasetSummary) -> None:
        """Write what a dataset consists of."""
        self.line(
            f"{summary.name} {summary.version}: {plural(summary.total_samples, 'query', 'queries')}"
            f", valid",
            "bold",
        )
        if summary.description:
            self.line(summary.description)
        types = [f"{name} {count(n)}" for name, n in summary.query_type_counts.items()]
        rows: list[tuple[str, str]] = []
        if types or summary.without_type:
            none = [f"none {count(summary.without_type)}"] if summary.without_type else []
            rows.append(("Query types", ", ".join([*types, *none])))
        rows.append(
            (
                "Relevant chunks",
                f"{count(summary.total_relevant)} labels of "
                f"{count(summary.distinct_relevant)} chunks"
                + (", graded" if summary.graded else ""),
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
        self.table([("", "left"), ("", "left")], rows)
        if summary.warnings:
            self.title("Warnings")
            for warning in summary.warnings:
                self.item(warning, "yellow")

    def report(self, report: EvaluationReport, seconds: float | None = None) -> None:
        """Write the system report of one pipeline."""
        name = report.pipeline_name or "pipeline"
        passed = report.diagnosis_counts.get(FailureCategory.PASS, 0)
        self.line(
            f"{name}: {count(passed)} of {count(report.total_queries)} queries passed", "bold"
        )
        where = f"{report.dataset_name} {report.dataset_version}".strip()
        self.line(f"on {where or 'an unnamed dataset'}, k = {report.retrieval.k}", "dim")
        self._measures(report)
        self._latency(report)
        self._failures(report)
        self._types(report)
        self.title("Insights")
        for insight in report.overall_insights or ["Nothing stands out."]:
            self.item(insight)
        for note in report.notes:
            self.item(f"Note: {note}", "dim")
        self._closing(report, seconds)

    def _closing(self, report: EvaluationReport, seconds: float | None) -> None:
        self.console.print()
        parts = [
            f"{count(report.completed_queries)} completed",
            f"{count(report.failed_queries)} failed",
        ]
        if report.judge_failures:
            parts.append(f"judge failed on {count(report.judge_failures)}")
        if seconds is not None:
            parts.append(f"{seconds:.1f} s")
        self.line(", ".join(parts))

    def _measures(self, report: EvaluationReport) -> None:
        k, retrieval, semantic = report.retrieval.k, report.retrieval, report.semantic
        n = retrieval.measured_queries
        of = f"{count(n)} of {count(report.total_queries)}" if n is not None else ""
        judged = f"{count(report.judged_queries)} of {count(report.total_queries)}"
        rows = [
            (f"Recall@{k}", measure(retrieval.mean_recall_at_k, NOT_MEASURED), of),
            (f"Precision@{k}", measure(retrieval.mean_precision_at_k, NOT_MEASURED), of),
            ("MRR", measure(retrieval.mrr, NOT_MEASURED), of),
        ]
        self.title("Overall retrieval measures")
        self.table([("measure", "left"), ("mean", "right"), ("queries", "left")], rows)
        self.title("Answers")
        if semantic is None:
            self.line("not judged: no judge was asked (--judge lexical works offline)")
            return
        self.table(
            [("measure", "left"), ("mean", "right"), ("queries", "left")],
            [
                ("Answer correct", measure(semantic.answer_correctness_rate, NOT_JUDGED), judged),
                ("Grounded", measure(semantic.groundedness_rate, NOT_JUDGED), judged),
                (
                    "Judge confidence, stated",
                    measure(semantic.mean_judge_confidence, NOT_JUDGED),
                    judged,
                ),
            ],
        )

    def _latency(self, report: EvaluationReport) -> None:
        stats = report.latency
        self.title("Retrieval latency")
        if not stats.count:
            self.line(NOT_TIMED)
            return
        names = ("mean", "p50", "p95", "p99", "min", "max")
        values = [milliseconds(getattr(stats, f"{name}_ms"), NOT_TIMED) for name in names]
        right: Justify = "right"
        self.table(
            [*((name, right) for name in names), ("queries", right)],
            [[*values, count(stats.count)]],
        )

    def _failures(self, report: EvaluationReport) -> None:
        self.title("Failure analysis")
        total = max(report.total_queries, 1)
        rows = []
        for name, n in report.diagnosis_counts.items():
            info = FailureCategory(name).info if name in FailureCategory.__members__ else None
            what = info.short_action if info and n else ""
            style = info.colour if info and n else ("" if n else "dim")
            rows.append((_text(name, style), count(n), f"{100 * n / total:.0f} %", what))
        if report.undiagnosed_queries:
            rows.append((Text(NOT_MEASURED), count(report.undiagnosed_queries), "", "add evidence"))
        self.table(
            [
                ("category", "left"),
                ("queries", "right"),
                ("share", "right"),
                ("what to do", "left"),
            ],
            rows,
        )

    def _types(self, report: EvaluationReport) -> None:
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
        self.title("Query types")
        self.table(
            headings, (_type_row(each, judged) for each in report.metrics_by_query_type.values())
        )

    def causes(self, report: EvaluationReport) -> None:
        """Write what fails most, the queries concerned, and the action for each cause."""
        failed = {
            name: n
            for name, n in report.diagnosis_counts.items()
            if n and name != FailureCategory.PASS
        }
        name = report.pipeline_name or "pipeline"
        passed = report.diagnosis_counts.get(FailureCategory.PASS, 0)
        self.line(
            f"{name}: {count(passed)} of {count(report.total_queries)} queries passed", "bold"
        )
        self.title("What fails most")
        if not failed:
            self.line("nothing: no measured check failed")
        actions = {each.category: each.action for each in report.top_failures}
        for category, n in sorted(failed.items(), key=lambda item: -item[1]):
            info = FailureCategory(category).info if category in DISPLAY_ORDER else None
            self.console.print()
            heading = _text(category, f"bold {info.colour}" if info else "bold")
            heading.append(f"  {plural(n, 'query', 'queries')}", style="not bold default")
            self.console.print(heading)
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
            self.table([("", "left"), ("", "left")], rows)
        if report.top_failures:
            self.title("Worst queries")
            for failure in report.top_failures:
                self.console.print()
                self.line(f"{failure.query_id}  {shorten(failure.query, QUESTION_LIMIT)}")
                rows = [
                    ("cause", f"{failure.category}, {failure.severity}"),
                    ("why", failure.reason),
                ]
                rows += [("", fact) for fact in failure.evidence]
                self.table([("", "left"), ("", "left")], rows)
        self._closing(report, None)

    # -- comparison -------------------------------------------------------------------------------

    def comparison(
        self, report: ComparisonReport, seconds: float | None = None, sentence: str | None = None
    ) -> None:
        """Write the comparison of two pipelines, the decision with its reasons included."""
        a, b = report.pipeline_a_report, report.pipeline_b_report
        names = report.pipeline_a_name, report.pipeline_b_name
        self.line(sentence or report.summary, "bold")
        n = plural(len(report.query_outcomes), "query", "queries")
        self.line(f"{names[0]} (A) against {names[1]} (B): {n}, k = {a.retrieval.k}", "dim")
        self._delta_measures(report, a, b, names)
        self._delta_failures(report, a, b, names)
        self._delta_types(report, a, b)
        self._decision(report)
        self._outcomes(report)
        if seconds is not None:
            self.console.print()
            self.line(f"{seconds:.1f} s")

    def _delta_measures(
        self,
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
        self.title("Overall metrics")
        right: Justify = "right"
        self.table(
            [("measure", "left"), *((name, right) for name in names), ("B - A", right)], rows
        )

    def _delta_failures(
        self,
        report: ComparisonReport,
        a: EvaluationReport,
        b: EvaluationReport,
        names: tuple[str, str],
    ) -> None:
        self.title("Failure counts")
        right: Justify = "right"
        self.table(
            [("category", "left"), *((name, right) for name in names), ("B - A", right)],
            (
                (
                    _text(name, "" if left or other else "dim"),
                    count(left),
                    count(other),
                    f"{delta:+,}" if delta else "0",
                )
                for name, delta in report.diagnosis_deltas.items()
                for left in [a.diagnosis_counts.get(name, 0)]
                for other in [b.diagnosis_counts.get(name, 0)]
            ),
        )

    def _delta_types(
        self, report: ComparisonReport, a: EvaluationReport, b: EvaluationReport
    ) -> None:
        if not report.query_type_deltas:
            return
        k = a.retrieval.k
        self.title("Query types")
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
        self.table(
            [("type", "left"), (f"Recall@{k}", "left"), ("MRR", "left"), ("failures", "right")],
            rows,
        )

    def _decision(self, report: ComparisonReport) -> None:
        self.title("Decision")
        self.table(
            [("", "left"), ("", "left")],
            [
                ("winner", report.overall_winner),
                ("why", report.summary),
                ("trade-off", report.trade_off or "none"),
                ("quality", report.quality_winner),
                ("latency", report.latency_winner),
            ],
        )

    def _outcomes(self, report: ComparisonReport) -> None:
        self.title("Query outcomes")
        self.line(
            f"improved {count(report.queries_improved)}, regressed "
            f"{count(report.queries_regressed)}, unchanged {count(report.queries_unchanged)}"
        )
        changed = [each for each in report.query_outcomes if each.outcome != "unchanged"]
        changed.sort(key=lambda each: each.outcome != "regressed")
        if not changed:
            return
        self.table(
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
            self.line(f"showing {MAX_OUTCOMES} of {count(len(changed))}", "dim")


def _text(text: str, style: str = "") -> Text:
    """Make text of a string that may be hostile."""
    return Text(ascii_signs(clean(text)), style=style)


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


def _arrow(values: Iterable[float | None]) -> str:
    return " -> ".join(measure(value, NOT_MEASURED) for value in values)


def _rate(report: EvaluationReport, name: str) -> float | None:
    rate: float | None = getattr(report.semantic, name, None)
    return rate
