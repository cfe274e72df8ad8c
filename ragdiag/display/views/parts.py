"""Sections that results and a report have in common, built from plain numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragdiag.display.blocks import (
    Bullets,
    Cell,
    Column,
    Figure,
    Figures,
    Line,
    Row,
    Run,
    Section,
    Table,
    ident,
    line,
)
from ragdiag.display.clean import shorten
from ragdiag.display.numbers import count, is_missing, measure, milliseconds, of
from ragdiag.display.views.common import (
    category_colour,
    share_cell,
    short_name,
)
from ragdiag.taxonomy import FailureCategory

__all__ = [
    "CategoryRow",
    "TypeRow",
    "categories_section",
    "figure",
    "figures_section",
    "insights_section",
    "measure_label",
    "milliseconds_figure",
    "types_section",
]

#: Query types and insights that are shown; the frame has the others.
MAX_TYPES = 10
MAX_INSIGHTS = 8
INSIGHT_LIMIT = 240
NOT_MEASURED = "not measured"

_LABELS = {
    "recall": "Recall@{k}",
    "precision": "Precision@{k}",
    "reciprocal_rank": "MRR",
    "ndcg": "nDCG@{k}",
    "hit_rate": "Hit rate@{k}",
    "average_precision": "MAP",
    "answer_correct": "Answer correct",
    "grounded": "Grounded",
    "passed": "Passed",
    "retrieval_ms": "Retrieval",
    "generation_ms": "Generation",
    "total_ms": "Total",
    "judge_ms": "Judge",
    "judge_confidence": "Judge confidence",
}


def measure_label(name: str, k: int) -> str:
    """Return what a column or summary row is called where people read.

    Examples
    --------
    >>> measure_label("recall_at_5", 5), measure_label("reciprocal_rank", 5)
    ('Recall@5', 'MRR')
    """
    stem, _, depth = name.partition("_at_")
    return _LABELS.get(stem, stem.replace("_", " ").capitalize()).format(k=depth or k)


def figure(
    name: str, value: float | None, used: int, total: int, k: int, how: str = "measured"
) -> Figure:
    """Make the figure of a measure; without a value it says that there is none."""
    label = measure_label(name, k)
    brief = {"Answer correct": "correct", "Grounded": "grounded"}.get(label, label)
    return Figure(label, measure(value, f"not {how}"), f"{of(used, total)} {how}", brief)


def milliseconds_figure(
    label: str, brief: str, value: float | None, used: int, total: int
) -> Figure:
    """Make the figure of a percentile of retrieval time."""
    return Figure(label, milliseconds(value, "not timed"), f"{of(used, total)} timed", brief)


# ------------------------------------------------------------------------------------- categories
@dataclass(frozen=True)
class CategoryRow:
    """A category's counts; None where no query could be measured for it."""

    name: str
    queries: int | None
    also_fired: int | None
    severity: str
    action: str
    not_measured: int | None = None


def categories_section(
    rows: Sequence[CategoryRow], total: int, unjudged_passes: int | None
) -> Section:
    """Make the table of causes in the order given, rows of zero folded in text."""
    also = any(row.also_fired is not None for row in rows)
    unmeasured = any(row.not_measured for row in rows)
    columns = (
        Column("Category", head=True, tight=True),
        Column("Queries", "right", brief="count"),
        Column("Share", tight=True, in_text=False),
        *([Column("Also fired", "right", brief="also")] if also else []),
        *([Column("Not measured", "right", in_text=False)] if unmeasured else []),
        Column("Severity"),
        Column("What to do"),
    )
    table_rows = tuple(
        Row(
            (
                *_count_cells(row, total),
                *([_also_cell(row)] if also else []),
                *([Cell(line(count(row.not_measured or 0)))] if unmeasured else []),
                Cell(line(row.severity)),
                Cell(line(_action(row, unjudged_passes))),
            ),
            in_text=bool(row.queries or row.also_fired),
        )
        for row in rows
    )
    none = [short_name(row.name) for row in rows if row.queries == 0 and not row.also_fired]
    never = [short_name(row.name) for row in rows if row.queries is None]
    rest = [f"no query: {', '.join(none)}"] * bool(none)
    rest += [f"{NOT_MEASURED}: {', '.join(never)}"] * bool(never)
    note = "one primary cause a query, in order of precedence"
    if also:
        note += '; "also fired" counts it behind another cause'
    table = Table(columns, table_rows, wide=True, rest=tuple(line(words) for words in rest))
    return Section("Categories", table, line(note))


def _count_cells(row: CategoryRow, total: int) -> tuple[Cell, ...]:
    name = Cell(line(ident(short_name(row.name))))
    if row.queries is None:
        return name, Cell(line(NOT_MEASURED)), Cell()
    share = share_cell(row.queries, total, category_colour(row.name))
    return name, Cell(line(count(row.queries))), share


def _also_cell(row: CategoryRow) -> Cell:
    if row.also_fired is None:
        return Cell(line(NOT_MEASURED))
    return Cell(line(f"+{row.also_fired:,}" if row.also_fired else "0"))


def _action(row: CategoryRow, unjudged_passes: int | None) -> str:
    if row.name == FailureCategory.PASS:
        if unjudged_passes and row.queries:
            everywhere = unjudged_passes == row.queries
            part = "all" if everywhere else f"{unjudged_passes:,}"
            return f"{part} without a judged answer"
        return "nothing to do"
    if row.name in FailureCategory.__members__:
        short = FailureCategory(row.name).info.short_action
        return short[0].upper() + short[1:]
    return shorten(row.action, 100)


# ------------------------------------------------------------------------------------ query types
@dataclass(frozen=True)
class TypeRow:
    """What is known of the queries of one type."""

    name: str
    queries: int
    passed: int
    recall: float | None
    reciprocal_rank: float | None
    correct: float | None
    grounded: float | None
    main_cause: str | None
    main_count: int | None = None


def types_section(rows: Sequence[TypeRow], k: int, title: str = "Query types") -> Section:
    """Make the table of query types, and its one line for text."""
    judged = any(not is_missing(row.correct) for row in rows)
    grounded = any(not is_missing(row.grounded) for row in rows)
    columns = [
        Column("Type", head=True, tight=True),
        Column("Passed", tight=True),
        Column("Share passed", tight=True),
        Column(f"Recall@{k}", "right"),
        Column("MRR", "right"),
        *([Column("Correct", "right")] if judged else []),
        *([Column("Grounded", "right")] if grounded else []),
        Column("Main cause of failure"),
    ]
    table_rows = []
    brief: list[str] = []
    for row in rows[:MAX_TYPES]:
        name = short_name(row.name)
        table_rows.append(Row(tuple(_type_cells(row, name, judged=judged, grounded=grounded))))
        brief.append(f"{name} {row.passed:,}/{row.queries:,}")
    hidden = len(rows) - MAX_TYPES
    if hidden > 0:
        table_rows.append(Row(cut=line(f"showing {MAX_TYPES} of {len(rows):,} types")))
        brief.append(f"and {hidden:,} more types")
    said = f"{', '.join(brief)} passed"
    return Section(title, Table(tuple(columns), tuple(table_rows)), brief=(line(said),))


def _type_cells(row: TypeRow, name: str, *, judged: bool, grounded: bool) -> list[Cell]:
    cause: Line = line("none")
    if row.main_cause:
        runs: list[str | Run] = [ident(short_name(row.main_cause))]
        runs += [f" ({row.main_count:,})"] if row.main_count else []
        cause = line(*runs)
    elif row.passed < row.queries:
        cause = line("none leads")
    passed = category_colour(FailureCategory.PASS)
    return [
        Cell(line(name)),
        Cell(line(of(row.passed, row.queries))),
        share_cell(row.passed, row.queries, passed, track=True),
        Cell(line(measure(row.recall))),
        Cell(line(measure(row.reciprocal_rank))),
        *([Cell(line(measure(row.correct, "not judged")))] if judged else []),
        *([Cell(line(measure(row.grounded, "not judged")))] if grounded else []),
        Cell(cause),
    ]


# --------------------------------------------------------------------------------------- insights
def insights_section(insights: Sequence[str]) -> Section | None:
    """Make the list of what the numbers say."""
    if not insights:
        return None
    items = [line(shorten(item, INSIGHT_LIMIT)) for item in insights[:MAX_INSIGHTS]]
    if len(insights) > MAX_INSIGHTS:
        items.append(line(f"showing {MAX_INSIGHTS} of {len(insights)}"))
    return Section("Insights", Bullets(tuple(items)))


def figures_section(figures: Iterable[Figure]) -> Section:
    """Make the row of measures."""
    return Section("Measures", Figures(tuple(figures)))
