"""What is shown of a comparison: the decision, the measures, the queries, the moves, the types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragdiag.display.blocks import (
    Cell,
    Column,
    Drill,
    Folder,
    Folders,
    Line,
    Row,
    Run,
    Section,
    Span,
    Table,
    View,
    ident,
    line,
    muted,
    strong,
)
from ragdiag.display.clean import shorten
from ragdiag.display.numbers import milliseconds, of, plural
from ragdiag.display.views.common import category_colour, id_list, short_id, short_name
from ragdiag.display.views.comparison_report import decision, types_of
from ragdiag.display.views.measures import MeasureRow, measure_rows, tested
from ragdiag.display.views.pair import OUTCOMES, Sides, sides_of
from ragdiag.display.views.query import depth, first_ranks
from ragdiag.schema import EvaluationResult
from ragdiag.taxonomy import SEVERITY_ORDER, FailureCategory

if TYPE_CHECKING:
    from ragdiag.comparison import Comparison

__all__ = ["headline", "view"]

MAX_DRILLS = {"regressed": 8, "improved": 4}
QUESTION_LIMIT = 80
#: Categories of the matrix, and ids that one of its cells opens.
MAX_CATEGORIES = 12
MAX_CELL_IDS = 5
DRILL_LIMIT = 200
NOT_DIAGNOSED = "not diagnosed"
AXIS = "worse \N{LEFTWARDS ARROW} 0 \N{RIGHTWARDS ARROW} better"
PASS = FailureCategory.PASS.value


def view(comparison: Comparison, text_limit: int) -> View:
    """Show the decision first, then what it rests on; regressed before improved."""
    rows = measure_rows(comparison)
    many = len(comparison.names) > 2
    sections = [_measures_of_many(comparison, rows) if many else _measures(comparison, rows)]
    if many:
        sections.append(_pairs(comparison))
        lead = line(_decisions(comparison))
        hints = _hints_of_many(comparison)
    else:
        outcomes = comparison.outcomes
        limit = min(text_limit, DRILL_LIMIT)
        sections += [_queries(comparison, outcomes, limit), _transitions(comparison)]
        sections += types_of(comparison.report)
        lead = line(_outcome_counts(comparison))
        hints = ('.select(outcome="regressed")', ".explore()", ".plot()", '.plot("transitions")')
    return View(
        headline(comparison),
        lead=lead,
        note=line(_note(comparison, rows)),
        sections=tuple(sections),
        hints=hints,
    )


def headline(comparison: Comparison) -> str:
    """Return the decision in one sentence, the same in every display of a comparison."""
    return str(comparison.headline)


def _outcome_counts(comparison: Comparison) -> str:
    return (
        f"{comparison.queries_regressed:,} regressed, {comparison.queries_improved:,} improved, "
        f"{comparison.queries_unchanged:,} unchanged."
    )


def _note(comparison: Comparison, rows: list[MeasureRow]) -> str:
    a = comparison.results[comparison.names.index(comparison.baseline)]
    dataset = f"{short_name(a.dataset_name)} {shorten(a.dataset_version, 20)}"
    parts = [
        f"Comparison with {short_name(comparison.baseline)} (baseline): "
        f"{plural(len(comparison), 'query', 'queries')} of {dataset}, k = {comparison.k}."
    ]
    for name, results in zip(comparison.names, comparison.results, strict=True):
        failed = int((results.frame["status"] == "failed").sum())
        if failed:
            parts.append(f"{failed:,} failed in {short_name(name)}.")
    for name, number in comparison.left_out.items():
        if number:
            parts.append(f"{plural(number, 'query', 'queries')} of {short_name(name)} left out.")
    if not tested(rows):
        parts.append("Differences are not tested for chance.")
    if len(comparison.names) == 2:
        parts.append(f"By the fixed rule: {decision(comparison.report)}")
    return " ".join(parts)


# --------------------------------------------------------------------------------------- measures
def _measures(comparison: Comparison, rows: list[MeasureRow]) -> Section:
    a, b = comparison.baseline, _other(comparison)
    has_interval = tested(rows)
    reach = _reach(rows)
    rests_on = "Won to lost" if has_interval else "Queries"
    columns = (
        Column("Measure", head=True, tight=True),
        Column(short_name(a), "right", brief=shorten(a, 10)),
        Column(short_name(b), "right", brief=shorten(b, 10)),
        Column("Difference", "right", brief="change"),
        *([Column("95 % interval", "right", tight=True)] if has_interval else []),
        Column(AXIS, tight=True, in_text=False),
        Column("Verdict" if has_interval else "Direction"),
        Column(rests_on, "right", tight=True, in_text=not has_interval),
    )
    table_rows = tuple(
        Row(
            (
                Cell(line(row.label)),
                Cell(line(row.value_text(baseline=True))),
                Cell(line(row.value_text())),
                Cell(line(strong(row.change_text))),
                *([Cell(line(row.interval_text))] if has_interval else []),
                Cell(span=_span(row, reach)),
                _verdict(row),
                Cell(line(row.n_text)),
            )
        )
        for row in rows
    )
    what = (
        "on paired queries, verdicts after correction; right of 0 is better, times are ratios"
        if has_interval
        else "differences of the means; right of 0 is better, times are relative"
    )
    return Section("Measures", Table(columns, table_rows, wide=True), line(what))


def _verdict(row: MeasureRow) -> Cell:
    word = strong(row.verdict)
    said = line(word, muted(f": {row.note}")) if row.note else line(word)
    return Cell(said, brief=line(word), edge=row.colour)


def _reach(rows: list[MeasureRow]) -> float:
    ends = [abs(end) for row in rows for end in row.span if end == end]
    return max([*ends, 0.05])


def _span(row: MeasureRow, reach: float) -> Span | None:
    low, middle, high = row.span
    if middle != middle:
        return None
    if not row.is_tested:
        low = high = middle
    return Span(low / reach, middle / reach, high / reach)


def _measures_of_many(comparison: Comparison, rows: list[MeasureRow]) -> Section:
    others = [name for name in comparison.names if name != comparison.baseline]
    columns = (
        Column("Measure", head=True, tight=True),
        Column(f"{short_name(comparison.baseline)} (baseline)", "right", brief="baseline"),
        *(Column(short_name(name), brief=shorten(name, 14)) for name in others),
    )
    by_label: dict[str, list[MeasureRow]] = {}
    for row in rows:
        by_label.setdefault(row.label, []).append(row)
    table_rows = []
    for label, found in by_label.items():
        cells = [Cell(line(label)), Cell(line(found[0].value_text(baseline=True)))]
        for row in found:
            words: list[str | Run] = [f"{row.value_text()} ", strong(row.change_text)]
            cells.append(Cell(line(*words, f" {row.verdict}"), edge=row.colour))
        table_rows.append(Row(tuple(cells)))
    note = line("value, difference to the baseline, direction")
    return Section("Measures", Table(columns, tuple(table_rows), wide=True), note)


def _pairs(comparison: Comparison) -> Section:
    columns = (
        Column("Pipeline", head=True, tight=True),
        Column("Regressed", "right"),
        Column("Improved", "right"),
        Column("Unchanged", "right"),
        Column("By the fixed rule"),
    )
    rows = tuple(
        Row(
            (
                Cell(line(short_name(_other(pair)))),
                *(
                    Cell(line(f"{number:,}"))
                    for number in (
                        pair.queries_regressed,
                        pair.queries_improved,
                        pair.queries_unchanged,
                    )
                ),
                Cell(line(shorten(pair.trade_off or f"winner: {pair.winner}", 120))),
            )
        )
        for pair in comparison.pairs
    )
    note = line(f"each against {short_name(comparison.baseline)}")
    return Section("Queries", Table(columns, rows), note)


def _decisions(comparison: Comparison) -> str:
    said = [f"{short_name(_other(pair))}: {pair.trade_off}" for pair in comparison.pairs]
    return f"{'; '.join(said)}."


def _hints_of_many(comparison: Comparison) -> tuple[str, ...]:
    a, b = (shorten(name, 20) for name in (comparison.baseline, _other(comparison)))
    return f'.pair("{a}", "{b}")', ".deltas", ".plot()", ".explore()"


def _other(comparison: Comparison) -> str:
    return next(name for name in comparison.names if name != comparison.baseline)


# ---------------------------------------------------------------------------------------- queries
def _queries(comparison: Comparison, outcomes: pd.DataFrame, limit: int) -> Section:
    found = {name: _worst_first(outcomes[outcomes["outcome"] == name]) for name in OUTCOMES}
    opened = {name: found[name]["query_id"].tolist()[:most] for name, most in MAX_DRILLS.items()}
    sides = sides_of(comparison, [query_id for ids in opened.values() for query_id in ids])
    folders = []
    said: list[str | Run | Line] = []
    for outcome, rows in found.items():
        ids = rows["query_id"].tolist()
        drills = tuple(
            _drill(comparison, sides[query_id], limit) for query_id in opened.get(outcome, ())
        )
        words = _outcome_words(comparison, rows, outcome)
        folders.append(
            Folder(
                line(strong(f"{len(ids):,} {outcome}"), " ", muted(words)),
                drills,
                _folder_note(outcome, rows, len(drills)),
            )
        )
        named = line(" (", id_list(ids, 4), ")") if outcome == "regressed" and ids else ()
        said += ["; "] * bool(said) + [f"{len(ids):,} {outcome}", named]
    return Section(
        "Queries", Folders(tuple(folders)), line("open one for both sides"), brief=(line(*said),)
    )


def _worst_first(found: pd.DataFrame) -> pd.DataFrame:
    order = found["severity_b"].map(lambda name: -SEVERITY_ORDER.index(name) if name == name else 0)
    return found.loc[order.sort_values(kind="stable").index]


def _outcome_words(comparison: Comparison, found: pd.DataFrame, outcome: str) -> str:
    a, b = short_name(comparison.baseline), short_name(_other(comparison))
    passed_a, passed_b = found["category_a"] == PASS, found["category_b"] == PASS
    if outcome == "regressed":
        return f"{int((passed_a & ~passed_b).sum()):,} passed in {a} and fail in {b}"
    if outcome == "improved":
        return f"{int((~passed_a & passed_b).sum()):,} failed in {a} and pass in {b}"
    both = int((passed_a & passed_b).sum())
    return f"{both:,} pass in both, {len(found) - both:,} do not pass in either"


def _folder_note(outcome: str, found: pd.DataFrame, n_drills: int) -> Line:
    """Say which queries are not opened here, and how to get at them."""
    if outcome == "unchanged":
        found = found[found["category_b"] != PASS]
        if found.empty:
            return ()
        return line("Fail in both: ", id_list(found["query_id"].tolist(), 10), ".")
    rest = found["query_id"].tolist()[n_drills:]
    if not rest:
        return ()
    return line("Also: ", id_list(rest, 10), f'; all: .select(outcome="{outcome}")')


def _drill(comparison: Comparison, sides: Sides, limit: int) -> Drill:
    """Make the line of one query and, below it, what both sides did with it."""
    name_a, name_b = comparison.baseline, _other(comparison)
    a, b = sides[name_a], sides[name_b]
    moved = f"{_category(a)} \N{RIGHTWARDS ARROW} {_category(b)}"
    summary = line(short_id(a.query_id), f" {shorten(a.query, QUESTION_LIMIT)} ", muted(moved))
    pairs: list[tuple[str, Line]] = [
        ("Why", line(shorten(b.diagnosis.reason, limit))),
        ("Relevant", _moves(a, b)),
    ]
    for name, item in ((name_a, a), (name_b, b)):
        said = item.error or item.generated_answer
        if said is not None:
            pairs.append((shorten(name, 12), line(shorten(said, limit, tell=True))))
    judged = [
        f"{shorten(name, 20)}: {item.metrics['judge_reason']}"
        for name, item in ((name_a, a), (name_b, b))
        if item.metrics.get("judge_reason")
    ]
    if judged:
        pairs.append(("Judge", line(shorten(" ".join(judged), 2 * limit))))
    times = [milliseconds(item.latency.get("retrieval_ms"), "not run") for item in (a, b)]
    pairs.append(("Retrieval", line(f"{times[0]} \N{RIGHTWARDS ARROW} {times[1]}")))
    return Drill(summary, category_colour(_category(b)), tuple(pairs))


def _category(item: EvaluationResult) -> str:
    category = item.diagnosis.category
    return NOT_DIAGNOSED if category is None else short_name(category)


def _moves(a: EvaluationResult, b: EvaluationResult) -> Line:
    """Say where each relevant chunk came on either side."""
    if not a.expected_chunk_ids:
        return line("no relevant chunk is labelled")
    ranks = first_ranks(a.retrieved_chunks), first_ranks(b.retrieved_chunks)
    k = depth(a) or depth(b)
    parts: list[Line] = []
    for chunk in a.expected_chunk_ids[:4]:
        places = [side.get(chunk) for side in ranks]
        words = ["not retrieved" if rank is None else f"rank {rank}" for rank in places]
        same = "in both" if places[0] == places[1] else ""
        moved = f"{words[0]} {same}" if same else f"{words[0]} \N{RIGHTWARDS ARROW} {words[1]}"
        parts.append(line("; " if parts else "", short_id(chunk), f" {moved}"))
    hidden = len(a.expected_chunk_ids) - 4
    tail = f"; and {hidden} more" if hidden > 0 else ""
    return line(*parts, tail, f" (k is {k})" if k else "")


# ------------------------------------------------------------------------------------ transitions
def _transitions(comparison: Comparison) -> Section:
    matrix = comparison.transitions
    before = [name for name in matrix.index if matrix.loc[name].sum()][:MAX_CATEGORIES]
    after = [name for name in matrix.columns if matrix[name].sum()][:MAX_CATEGORIES]
    ids = _ids_by_move(comparison)
    a, b = shorten(comparison.baseline, 16), shorten(_other(comparison), 16)
    corner = f"{a} \N{DOWNWARDS ARROW} {b} \N{RIGHTWARDS ARROW}"
    columns = (
        Column(corner, head=True, tight=True),
        *(Column(short_name(name), "center") for name in after),
        Column("All", "center"),
    )
    rows = [
        Row(
            (
                Cell(line(ident(short_name(name)))),
                *(_move(name, other, int(matrix.loc[name, other]), ids) for other in after),
                Cell(line(f"{int(matrix.loc[name].sum()):,}")),
            )
        )
        for name in before
    ]
    totals = [f"{int(matrix[name].sum()):,}" for name in after]
    rows.append(Row(tuple(Cell(line(text)) for text in ("All", *totals, f"{len(comparison):,}"))))
    numbers = matrix.to_numpy(dtype=np.int64)
    at = list(matrix.index).index(PASS)
    both, stayed = int(numbers[at, at]), int(np.trace(numbers))
    gained, lost = int(numbers[:, at].sum()) - both, int(numbers[at].sum()) - both
    said = line(
        f"{gained:,} now pass, {lost:,} no longer pass, "
        f"{of(stayed, len(comparison))} kept their category"
    )
    note = "column PASS: now pass; row PASS: no longer pass; diagonal: unchanged; blank: none"
    return Section(
        "Transitions",
        Table(columns, tuple(rows), matrix=True),
        line(said, f"; {note}; open a count for its queries"),
        brief=(said,),
    )


def _ids_by_move(comparison: Comparison) -> dict[tuple[str, str], list[str]]:
    outcomes = comparison.outcomes
    sides = (outcomes[name].astype("object").fillna(NOT_DIAGNOSED) for name in _SIDES)
    moves: dict[tuple[str, str], list[str]] = {}
    for a, b, query_id in zip(*sides, outcomes["query_id"], strict=True):
        moves.setdefault((str(a), str(b)), []).append(query_id)
    return moves


_SIDES = ("category_a", "category_b")


def _move(a: str, b: str, n: int, ids: dict[tuple[str, str], list[str]]) -> Cell:
    tint: Any = "same" if a == b else None
    if n and a != b and PASS in (a, b):
        tint = "good" if b == PASS else "bad"
    if not n:
        return Cell(tint=tint)
    found = ids.get((a, b), [])
    opens = tuple(shorten(each, 24) for each in found[:MAX_CELL_IDS])
    if len(found) > MAX_CELL_IDS:
        opens += (f"and {len(found) - MAX_CELL_IDS:,} more",)
    return Cell(line(f"{n:,}"), tint=tint, opens=opens if (a, b) != (PASS, PASS) else ())
