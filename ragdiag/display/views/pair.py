"""What is shown of one query in a comparison: every side beside the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ragdiag.display.blocks import (
    Cell,
    Column,
    Line,
    Row,
    Run,
    Section,
    Table,
    View,
    ident,
    line,
    muted,
    strong,
)
from ragdiag.display.clean import shorten
from ragdiag.display.numbers import measure, milliseconds
from ragdiag.display.views.common import category_colour, differences, short_id, short_name
from ragdiag.display.views.query import (
    MAX_EXPECTED,
    RELEVANT_COLOUR,
    STAGES,
    came,
    depth,
    first_ranks,
    shown_ranks,
    verdicts,
)
from ragdiag.schema import EvaluationResult

if TYPE_CHECKING:
    from ragdiag.comparison import Comparison

__all__ = ["OUTCOMES", "Sides", "outcome_of_each", "sides_of", "view"]

Sides = Mapping[str, EvaluationResult]
NOT_DIAGNOSED = "not diagnosed"
#: What people look at first comes first.
OUTCOMES = ("regressed", "improved", "unchanged")


def outcome_of_each(comparison: Comparison) -> dict[str, str]:
    """Return the outcome of every query by id; with several pairs the worst of them."""
    found: dict[str, str] = dict.fromkeys(comparison.query_ids, OUTCOMES[-1])
    for outcome in reversed(OUTCOMES):
        for each in comparison.pairs:
            outcomes = each.outcomes
            ids = outcomes.loc[(outcomes["outcome"] == outcome).to_numpy(), "query_id"]
            found.update(dict.fromkeys(ids, outcome))
    return found


def sides_of(comparison: Comparison, query_ids: Sequence[str]) -> dict[str, Sides]:
    """Return several queries as each side answered them, by id; one by one would be slow."""
    ids = list(query_ids)
    items = [list(results[ids]) for results in comparison.results]
    return {
        query_id: dict(zip(comparison.names, each, strict=True))
        for query_id, *each in zip(ids, *items, strict=True)
    }


def view(sides: Sides, outcome: str, text_limit: int) -> View:
    """Show what each side did with one query."""
    first = next(iter(sides.values()))
    query_id = first.query_id
    causes = [f"{short_name(name)} {_category(item)}" for name, item in sides.items()]
    kind = f"type {short_name(first.query_type)}" if first.query_type else "no type"
    return View(
        f"{shorten(query_id, 40)} {outcome}.",
        lead=line("; ".join(causes), "."),
        note=line(f"One query of {len(sides)} pipelines, {kind}."),
        quote=shorten(first.query, 2 * text_limit, tell=True),
        sections=tuple(sections(sides, text_limit)),
        hints=(f'.sides("{shorten(query_id, 24)}")',),
    )


def sections(sides: Sides, limit: int) -> list[Section]:
    """Return the parts of the view: trail, measures, chunks, answers, judge and times."""
    parts = [_trail(sides), _measures(sides), _expected(sides), _retrieved(sides, limit)]
    parts.append(_answers(sides, limit))
    reasons = [item.metrics.get("judge_reason") or item.judge_error for item in sides.values()]
    if any(reasons):
        said = [line(shorten(reason, limit) if reason else "nothing said") for reason in reasons]
        parts.append(_beside("Judge", sides, said))
    return parts


def _category(item: EvaluationResult) -> str:
    category = item.diagnosis.category
    return NOT_DIAGNOSED if category is None else short_name(category)


def _names(sides: Sides, *, tight: bool = False) -> list[Column]:
    return [Column(short_name(name), tight=tight) for name in sides]


def _beside(title: str, sides: Sides, said: Sequence[Line], note: Line = ()) -> Section:
    """Put one line of each side beside the others."""
    columns = tuple(Column(short_name(name), prose=True) for name in sides)
    row = Row(tuple(Cell(words) for words in said))
    brief = tuple(
        line(f"{short_name(name)}: ", words) for name, words in zip(sides, said, strict=True)
    )
    return Section(title, Table(columns, (row,), even=True), note, brief=brief)


def _trail(sides: Sides) -> Section:
    rules = [step.rule for step in next(iter(sides.values())).trail]
    states = [{step.rule: step for step in item.trail} for item in sides.values()]
    rows = []
    for rule in rules:
        cells = [Cell(line(ident(short_name(rule))))]
        for found in states:
            step = found.get(rule)
            if step is None or step.state != "fired":
                cells.append(Cell(line(muted(step.state if step else "not tried"))))
            else:
                words = "fired, primary" if step.primary else "fired"
                cells.append(Cell(line(strong(words)), edge=category_colour(rule)))
        rows.append(Row(tuple(cells)))
    columns = (Column("Category", head=True, tight=True), *_names(sides, tight=True))
    return Section("Decision trail", Table(columns, tuple(rows)))


def _measures(sides: Sides) -> Section:
    k = next((found for item in sides.values() if (found := depth(item))), None)
    rows = []
    for label, key in (
        (f"Recall@{k}", f"recall_at_{k}"),
        (f"Precision@{k}", f"precision_at_{k}"),
        ("Reciprocal rank", "reciprocal_rank"),
    ):
        if k is not None:
            values = [measure(item.metrics.get(key)) for item in sides.values()]
            rows.append(_row(label, values))
    for key, stage in STAGES:
        values = [milliseconds(item.latency.get(key), "not run") for item in sides.values()]
        if any(key in item.latency for item in sides.values()):
            rows.append(_row(stage, values))
    columns = (
        Column("Measure", head=True, tight=True),
        *(Column(short_name(name), "right") for name in sides),
    )
    return Section("Measures", Table(columns, tuple(rows)))


def _row(label: str, values: Sequence[str]) -> Row:
    return Row((Cell(line(label)), *(Cell(line(value)) for value in values)))


def _expected(sides: Sides) -> Section:
    first = next(iter(sides.values()))
    if not first.expected_chunk_ids:
        return _beside("Expected chunks", sides, [line("no label") for _ in sides])
    ranks = [first_ranks(item.retrieved_chunks) for item in sides.values()]
    rows = []
    for chunk in first.expected_chunk_ids[:MAX_EXPECTED]:
        cells = [Cell(line(short_id(chunk)))]
        for item, found in zip(sides.values(), ranks, strict=True):
            where = came(found.get(chunk), depth(item), failed=item.status == "failed")
            cells.append(Cell(where))
        rows.append(Row(tuple(cells)))
    hidden = len(first.expected_chunk_ids) - MAX_EXPECTED
    if hidden > 0:
        rows.append(Row(cut=line(f"and {hidden:,} more")))
    columns = (Column("Chunk", head=True, tight=True), *_names(sides))
    return Section("Expected chunks", Table(columns, tuple(rows)))


def _retrieved(sides: Sides, limit: int) -> Section:
    items = list(sides.values())
    longest = max(len(item.retrieved_chunks) for item in items)
    expected = set(items[0].expected_chunk_ids)
    relevant = sorted(
        {
            rank
            for item in items
            for rank, chunk in enumerate(item.retrieved_chunks, 1)
            if chunk.id in expected
        }
    )
    k = next((found for item in items if (found := depth(item))), None)
    rows: list[Row] = []
    ranks = shown_ranks(longest, relevant, k)
    previous = 0
    for rank in ranks:
        if k is not None and previous <= k < rank:
            rows.append(Row(cut=line(f"cut at k = {k}: the chunks below do not count")))
        cells = [_chunk(item, rank, expected, limit) for item in items]
        rows.append(Row((Cell(line(str(rank))), *cells)))
        previous = rank
    columns = (
        Column("Rank", "right", head=True),
        *(Column(short_name(name), prose=True) for name in sides),
    )
    note = line(f"showing {len(ranks)} of {longest}" if len(ranks) < longest else "")
    return Section("Retrieved chunks", Table(columns, tuple(rows), wide=True), note)


def _chunk(item: EvaluationResult, rank: int, expected: set[str], limit: int) -> Cell:
    if rank > len(item.retrieved_chunks):
        return Cell(line(muted("nothing")))
    chunk = item.retrieved_chunks[rank - 1]
    text = f" {shorten(chunk.text, limit // 2, tell=True)}"
    if chunk.id in expected:
        words: list[str | Run] = [strong("relevant "), short_id(chunk.id), text]
        return Cell(line(*words), edge=RELEVANT_COLOUR)
    return Cell(line(short_id(chunk.id), text))


def _answers(sides: Sides, limit: int) -> Section:
    items = list(sides.values())
    texts = [item.generated_answer for item in items]
    lines = [
        line(shorten(item.error or "", limit) or muted("nothing was generated"))
        if text is None
        else line(shorten(text, 2 * limit, tell=True))
        for item, text in zip(items, texts, strict=True)
    ]
    if len(items) == 2 and texts[0] is not None and texts[1] is not None:
        lines = list(differences(texts[0], texts[1], 2 * limit))
    expected = items[0].expected_answer
    said = [
        line(words, muted(f" ({'; '.join(verdicts(item))})"))
        for words, item in zip(lines, items, strict=True)
    ]
    known = line("Expected: ", shorten(expected or "no expected answer is known", 2 * limit))
    differs = any(run.kind == "marked" for words in lines for run in words)
    note = line("words that differ are marked; " if differs else "", known)
    return _beside("Answers", sides, said, note)
