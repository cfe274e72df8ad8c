"""What is shown of a comparison's typed report, which knows the numbers and not the evidence."""

from __future__ import annotations

from ragdiag.display.blocks import (
    Cell,
    Column,
    Line,
    Lines,
    Row,
    Run,
    Section,
    Table,
    View,
    ident,
    line,
    strong,
)
from ragdiag.display.clean import shorten
from ragdiag.display.numbers import change, measure, milliseconds, milliseconds_change, plural
from ragdiag.display.views.common import category_order, id_list, short_name
from ragdiag.report import ComparisonReport, EvaluationReport
from ragdiag.taxonomy import FailureCategory

__all__ = ["decision", "types_of", "view"]

MAX_TYPES = 10
TIE = "TIE"
PASS = FailureCategory.PASS.value


def view(report: ComparisonReport, text_limit: int) -> View:
    """Show the decision, the differences, the queries that changed, categories and types."""
    queries = plural(report.pipeline_a_report.total_queries, "query", "queries")
    dataset = f"{short_name(report.dataset_name)} {shorten(report.dataset_version, 20)}"
    k = report.pipeline_a_report.retrieval.k
    note = (
        f"Comparison report with {short_name(report.pipeline_a_name)} (baseline): {queries} of "
        f"{dataset}, k = {k}. Decided by the fixed rule, not tested for chance."
    )
    return View(
        decision(report),
        lead=line(shorten(report.summary, text_limit)),
        note=line(note),
        sections=(_measures(report), _queries(report), _categories(report), *types_of(report)),
        hints=(".metric_deltas", ".query_outcomes", ".model_dump_json(indent=2)"),
    )


def decision(report: ComparisonReport) -> str:
    """Return who wins by the published fixed rule, and the trade-off, in one sentence."""
    a, b = short_name(report.pipeline_a_name), short_name(report.pipeline_b_name)
    trade_off = shorten(report.trade_off or "", 120)
    trade_off = trade_off[:1].lower() + trade_off[1:]
    tie = report.winner == TIE
    said = f"{a} and {b} tie" if tie else f"{short_name(report.winner)} leads"
    if not trade_off:
        return f"{said}."
    if report.winner == report.pipeline_b_name:
        return f"{said}, {trade_off}."
    return f"{said}; {b} has {trade_off}."


def _measures(report: ComparisonReport) -> Section:
    a, b = report.pipeline_a_report, report.pipeline_b_report
    deltas = report.metric_deltas
    k = a.retrieval.k
    rows = []
    for label, field, delta in (
        (f"Recall@{k}", "mean_recall_at_k", deltas.recall_at_k),
        (f"Precision@{k}", "mean_precision_at_k", deltas.precision_at_k),
        ("MRR", "mrr", deltas.mrr),
    ):
        values = [measure(getattr(side.retrieval, field)) for side in (a, b)]
        rows.append((label, *values, change(delta, "not on both sides")))
    for label, field, delta in (
        ("Answer correct", "answer_correctness_rate", deltas.answer_correctness),
        ("Grounded", "groundedness_rate", deltas.groundedness),
    ):
        values = [_judged(side, field) for side in (a, b)]
        rows.append((label, *values, change(delta, "not on both sides")))
    times = [milliseconds(side.latency.mean_ms, "not timed") for side in (a, b)]
    moved = milliseconds_change(deltas.mean_retrieval_ms, "not on both sides")
    rows.append(("Retrieval mean", *times, moved))
    columns = (
        Column("Measure", head=True, tight=True),
        Column(short_name(report.pipeline_a_name), "right", tight=True),
        Column(short_name(report.pipeline_b_name), "right", tight=True),
        Column("Difference", "right", tight=True),
    )
    table_rows = tuple(
        Row((*(Cell(line(text)) for text in row[:3]), Cell(line(strong(row[3]))))) for row in rows
    )
    return Section("Measures", Table(columns, table_rows), line("differences of the means"))


def _judged(side: EvaluationReport, field: str) -> str:
    return measure(getattr(side.semantic, field, None), "not judged")


def _queries(report: ComparisonReport) -> Section:
    items: list[Line] = []
    for outcome, number in (
        ("regressed", report.queries_regressed),
        ("improved", report.queries_improved),
        ("unchanged", report.queries_unchanged),
    ):
        ids = [query.query_id for query in report.query_outcomes if query.outcome == outcome]
        parts: list[str | Run | Line] = [strong(f"{number:,} {outcome}")]
        if ids and outcome != "unchanged":
            parts += [": ", id_list(ids, 8)]
        items.append(line(*parts))
    return Section("Queries", Lines(tuple(items)))


def _categories(report: ComparisonReport) -> Section:
    a, b = report.pipeline_a_report.diagnosis_counts, report.pipeline_b_report.diagnosis_counts
    names = category_order([*a, *b])
    columns = (
        Column("Category", head=True, tight=True),
        Column(short_name(report.pipeline_a_name), "right"),
        Column(short_name(report.pipeline_b_name), "right"),
        Column("Change", "right"),
    )
    rows = tuple(
        Row(
            (
                Cell(line(ident(short_name(name)))),
                Cell(line(f"{a.get(name, 0):,}")),
                Cell(line(f"{b.get(name, 0):,}")),
                Cell(line(_signed(b.get(name, 0) - a.get(name, 0)))),
            ),
            in_text=bool(a.get(name) or b.get(name)),
        )
        for name in names
    )
    return Section("Categories", Table(columns, rows), line("queries by primary cause"))


def _signed(number: int) -> str:
    return f"{number:+,}".replace("-", "\N{MINUS SIGN}") if number else "0"


def types_of(report: ComparisonReport) -> list[Section]:
    """Return the table of query types, if there are any."""
    a, b = report.pipeline_a_report, report.pipeline_b_report
    deltas = list(report.query_type_deltas.items())
    if not deltas:
        return []
    k = a.retrieval.k
    judged = any(d.answer_correctness is not None for _, d in deltas)
    columns = (
        Column("Type", head=True, tight=True),
        Column(f"Recall@{k}", "right"),
        Column("MRR", "right"),
        *([Column("Correct", "right")] if judged else []),
        Column("Passed"),
    )
    rows, brief = [], []
    for name, delta in deltas[:MAX_TYPES]:
        passed = [
            side.metrics_by_query_type[name].diagnosis_counts.get(PASS, 0)
            if name in side.metrics_by_query_type
            else 0
            for side in (a, b)
        ]
        total = (
            a.metrics_by_query_type[name].total_queries if name in a.metrics_by_query_type else 0
        )
        moved = f"{passed[0]:,} \N{RIGHTWARDS ARROW} {passed[1]:,} of {total:,}"
        rows.append(
            Row(
                (
                    Cell(line(short_name(name))),
                    Cell(line(change(delta.recall_at_k))),
                    Cell(line(change(delta.mrr))),
                    *([Cell(line(change(delta.answer_correctness)))] if judged else []),
                    Cell(line(moved)),
                )
            )
        )
        brief.append(f"{short_name(name)} {moved}")
    if len(deltas) > MAX_TYPES:
        rows.append(Row(cut=line(f"showing {MAX_TYPES} of {len(deltas):,} types")))
    note = line("differences, exploratory: few queries each")
    said = line(f"passed: {', '.join(brief)}")
    return [Section("Query types", Table(columns, tuple(rows)), note, brief=(said,))]
