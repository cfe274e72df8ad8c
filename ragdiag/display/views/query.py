"""What is shown of one query: why it ended as it did, on what evidence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ragdiag.display.blocks import (
    Cell,
    Column,
    Figure,
    Figures,
    Line,
    Lines,
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
from ragdiag.display.numbers import is_missing, measure, milliseconds, plural
from ragdiag.display.views.common import (
    ID_LIMIT,
    category_colour,
    differences,
    short_id,
    short_name,
)
from ragdiag.reasons import in_percent
from ragdiag.schema import EvaluationResult, RetrievedChunk

__all__ = [
    "came",
    "depth",
    "first_ranks",
    "headline",
    "sections",
    "shown_ranks",
    "verdicts",
    "view",
]

MAX_EXPECTED = 20
MAX_CHUNKS = 20
MAX_METADATA = 8
RELEVANT_COLOUR = category_colour("PASS")
STAGES = (
    ("retrieval_ms", "Retrieval"),
    ("generation_ms", "Generation"),
    ("total_ms", "Total"),
    ("judge_ms", "Judge"),
)


def view(result: EvaluationResult, text_limit: int, *, conditions: bool = True) -> View:
    """Show the question, the decision trail, the chunks, the answer, the judge and the times.

    Without `conditions` the trail does not say when each rule fires, for narrow places.
    """
    found = result.diagnosis
    note = []
    if result.query_type:
        note.append(f"One query, type {short_name(result.query_type)}.")
    else:
        note.append("One query.")
    if found.category is not None and found.category != "PASS":
        note.append(f"Severity {found.severity}, confidence {measure(found.confidence)}.")
    missing = [short_name(step.rule) for step in result.trail if step.state == "not measured"]
    if missing:
        note.append(f"Not measured: {', '.join(missing[:8])}.")
    if result.suspect_label:
        note.append("Label suspected: correct and grounded without the labelled chunk.")
    failed = found.category not in (None, "PASS")
    return View(
        headline(result),
        lead=line(shorten(found.reason, text_limit)),
        note=line(" ".join(note)),
        quote=shorten(result.query, 2 * text_limit, tell=True),
        advice=line(strong("What to do:"), f" {shorten(found.action, text_limit)}")
        if failed and found.action
        else (),
        sections=tuple(sections(result, text_limit, conditions=conditions)),
        hints=(".retrieved_chunks", ".diagnosis", ".metrics", ".model_dump_json(indent=2)"),
    )


def headline(result: EvaluationResult) -> str:
    """Say in one sentence how the query ended."""
    name = shorten(result.query_id, ID_LIMIT)
    category = result.diagnosis.category
    if category is None:
        return f"{name}: nothing could be measured."
    if category != "PASS":
        return f"{name} failed: {short_name(category)}."
    unjudged = {"answer_correct", "grounded"} - set(result.metrics)
    if len(unjudged) == 2:
        return f"{name} passed retrieval; answer not judged."
    return (
        f"{name} passed." if not unjudged else f"{name} passed; {_unjudged(unjudged)} not judged."
    )


def _unjudged(names: set[str]) -> str:
    return "correctness" if "answer_correct" in names else "grounding"


def sections(result: EvaluationResult, limit: int, *, conditions: bool = True) -> list[Section]:
    """Return the parts of a query's view, in the order in which they are read.

    Without `conditions` the decision trail does not repeat when each rule fires, which a report
    of thousands of queries can do without.
    """
    parts = [_trail(result, limit, conditions=conditions)] if result.trail else []
    parts += [_expected(result, limit), _retrieved(result, limit), _answer(result, limit)]
    judge = _judge(result, limit)
    parts += [judge] if judge else []
    parts.append(_latency(result))
    if result.metadata:
        parts.append(_metadata(result))
    return parts


def depth(result: EvaluationResult) -> int | None:
    """Return the k that the measures were taken at; None where there are none."""
    for name in result.metrics:
        match = re.fullmatch(r"recall_at_(\d+)|precision_at_(\d+)", name)
        if match:
            return int(match[1] or match[2])
    return None


def first_ranks(chunks: Sequence[RetrievedChunk]) -> dict[str, int]:
    """Return the rank at which every chunk first came."""
    ranks: dict[str, int] = {}
    for rank, chunk in enumerate(chunks, 1):
        ranks.setdefault(chunk.id, rank)
    return ranks


# --------------------------------------------------------------------------------- decision trail
def _trail(result: EvaluationResult, limit: int, *, conditions: bool) -> Section:
    rows = []
    for step in result.trail:
        state: Line
        edge = None
        if step.state == "fired":
            state = line(strong("fired, primary" if step.primary else "fired"))
            edge = category_colour(step.rule)
        else:
            state = line(muted(step.state))
        rows.append(
            Row(
                (
                    Cell(line(ident(short_name(step.rule)))),
                    *([Cell(line(shorten(step.condition, limit)))] if conditions else []),
                    Cell(state, edge=edge),
                    Cell(line(shorten(step.detail, limit))),
                )
            )
        )
    columns = (
        Column("Category", head=True, tight=True),
        *([Column("Fires when", in_text=False)] if conditions else []),
        Column("State", tight=True),
        Column("Evidence", prose=True),
    )
    note = line("the first rule that fires is the primary category" if conditions else "")
    return Section("Decision trail", Table(columns, tuple(rows), wide=True), note)


# ----------------------------------------------------------------------------------------- chunks
def _expected(result: EvaluationResult, limit: int) -> Section:
    if result.evidence:
        return _evidence(result, limit)
    expected = result.expected_chunk_ids
    if not expected:
        words = line("no relevant chunk is labelled, so retrieval is not measured")
        return Section("Expected chunks", Lines((words,)))
    k = depth(result)
    ranks = first_ranks(result.retrieved_chunks)
    measured = _measured(result, ("recall", "precision"))
    n_came = sum(k is not None and ranks.get(chunk, k + 1) <= k for chunk in expected)
    note = ([f"{n_came} of {len(expected)} in the top {k}"] if k else []) + measured
    rows, brief = [], []
    for chunk in expected[:MAX_EXPECTED]:
        rank = ranks.get(chunk)
        where = came(rank, k, failed=result.status == "failed")
        rows.append(Row((Cell(line(short_id(chunk))), Cell(where))))
        brief.append(line(short_id(chunk), " ", where))
    if len(expected) > MAX_EXPECTED:
        rows.append(Row(cut=line(f"showing {MAX_EXPECTED} of {len(expected)}")))
    columns = (Column("Chunk", head=True, tight=True), Column("Came at"))
    said: list[Any] = []
    for position, item in enumerate(brief):
        said += ["; "] * bool(position) + [item]
    return Section(
        "Expected chunks",
        Table(columns, tuple(rows), wide=True),
        line("; ".join(note)),
        brief=(line(*said),),
    )


def _measured(result: EvaluationResult, names: Sequence[str]) -> list[str]:
    """Name the measures that there are, those at k first."""
    k = depth(result)
    values = [(f"{name}@{k}", result.metrics.get(f"{name}_at_{k}")) for name in names]
    values.append(("reciprocal rank", result.metrics.get("reciprocal_rank")))
    return [f"{label} {measure(value)}" for label, value in values if not is_missing(value)]


def _evidence(result: EvaluationResult, limit: int) -> Section:
    """Show the passages that count as relevant, and how much of each came."""
    k = depth(result)
    rows: list[Row] = []
    said: list[Any] = []
    for passage in result.evidence[:MAX_EXPECTED]:
        covered, everywhere = passage["covered"], passage["covered_at_any_rank"]
        text = "not measured" if covered is None else in_percent(covered)
        if covered is not None and everywhere > covered:
            text += f" ({in_percent(everywhere)} with all that was retrieved)"
        if covered is not None and passage["split"]:
            text += "; a chunk's border splits it"
        rows.append(Row((Cell(line(shorten(passage["passage"], limit))), Cell(line(text)))))
        said += ["; "] * bool(said) + [line(shorten(passage["passage"], limit), " ", text)]
    if len(result.evidence) > MAX_EXPECTED:
        rows.append(Row(cut=line(f"showing {MAX_EXPECTED} of {len(result.evidence)}")))
    n_there = sum(passage["in_top_k"] is True for passage in result.evidence)
    note = [f"{n_there} of {plural(len(result.evidence), 'passage')} in the top {k}"] if k else []
    note += _measured(result, ("recall", "precision", "iou"))
    columns = (Column("Passage", head=True, prose=True), Column(f"Covered in the top {k}"))
    table = Table(columns, tuple(rows))
    return Section("Evidence", table, line("; ".join(note)), brief=(line(*said),))


def came(rank: int | None, k: int | None, *, failed: bool) -> Line:
    """Say at which rank an expected chunk came."""
    if rank is None:
        return line("not measured") if failed else line(strong("not retrieved"))
    if k is not None and rank > k:
        return line(strong(f"rank {rank}"), f" (k is {k})")
    return line(f"rank {rank}")


def shown_ranks(n_retrieved: int, relevant: Sequence[int], k: int | None) -> list[int]:
    """Choose the ranks to show: the top k, and the relevant ones below it with their neighbours.

    Examples
    --------
    >>> shown_ranks(50, [2, 7, 40], k=5)
    [1, 2, 3, 4, 5, 6, 7, 40]
    """
    top = min(n_retrieved, k or 10, MAX_CHUNKS)
    chosen = set(range(1, top + 1))
    below = sorted(rank for rank in relevant if rank > top)
    for rank in below[: MAX_CHUNKS - top]:
        gap = range(top + 1, rank + 1) if rank - top <= 5 else [rank]
        if len(chosen) + len(gap) > MAX_CHUNKS:
            break
        chosen |= set(gap)
        top = rank
    return sorted(chosen)


def _retrieved(result: EvaluationResult, limit: int) -> Section:
    chunks = result.retrieved_chunks
    if not chunks:
        why = "none: the pipeline failed" if result.status == "failed" else "none came"
        return Section("Retrieved chunks", Lines((line(why),)))
    k = depth(result)
    expected = set(result.expected_chunk_ids)
    if result.evidence:
        expected = {chunks[rank - 1].id for rank in result.relevant_ranks if rank <= len(chunks)}
    relevant = [rank for rank, chunk in enumerate(chunks, 1) if chunk.id in expected]
    ranks = shown_ranks(len(chunks), relevant, k)
    scored = any(chunk.score is not None for chunk in chunks)
    rows: list[Row] = []
    previous = 0
    for rank in ranks:
        if k is not None and previous <= k < rank:
            rows.append(Row(cut=line(f"cut at k = {k}: the chunks below do not count")))
        if rank > previous + 1:
            hidden = plural(rank - previous - 1, "chunk")
            rows.append(Row(cut=line(f"{hidden} without a label not shown")))
        rows.append(_chunk_row(rank, chunks[rank - 1], expected, limit, scored=scored))
        previous = rank
    columns = [
        Column("Rank", "right"),
        Column("Chunk", head=True, tight=True),
        Column("Label", tight=True),
        Column("Score", "right"),
        Column("Text", prose=True),
    ]
    if not scored:
        del columns[3]
    note = f"showing {len(ranks)} of {len(chunks)}" if len(ranks) < len(chunks) else ""
    return Section("Retrieved chunks", Table(tuple(columns), tuple(rows), wide=True), line(note))


def _chunk_row(
    rank: int, chunk: RetrievedChunk, expected: set[str], limit: int, *, scored: bool
) -> Row:
    if chunk.id in expected:
        label = Cell(line(strong("relevant")), edge=RELEVANT_COLOUR)
    else:
        label = Cell(line(muted("no label")))
    score: tuple[Cell, ...] = ()
    if scored:
        score = (Cell(line(measure(chunk.score, "no score"))),)
    return Row(
        (
            Cell(line(str(rank))),
            Cell(line(short_id(chunk.id))),
            label,
            *score,
            Cell(line(shorten(chunk.text, limit, tell=True) or "(empty)")),
        )
    )


# ----------------------------------------------------------------------------- answer, judge, time
def _answer(result: EvaluationResult, limit: int) -> Section:
    generated, expected = result.generated_answer, result.expected_answer
    if result.status == "failed":
        words = line(shorten(result.error or "the pipeline failed", limit))
        return Section("Answer", Lines((words,)))
    if generated is not None and expected is not None:
        left, right = differences(generated, expected, 2 * limit)
    else:
        left = line(shorten(generated, 2 * limit, tell=True)) if generated is not None else ()
        right = line(shorten(expected, 2 * limit, tell=True)) if expected is not None else ()
    left = left or line(muted("nothing was generated" if generated is None else "(empty)"))
    right = right or line(muted("no expected answer is known"))
    both = generated is not None and expected is not None
    note = verdicts(result)
    if both and any(run.kind == "marked" for run in (*left, *right)):
        note.insert(0, "words that differ are marked")
    columns = (Column("Generated", prose=True), Column("Expected", prose=True))
    table = Table(columns, (Row((Cell(left), Cell(right))),), even=True)
    brief = (line("generated: ", left), line("expected: ", right))
    return Section("Answer", table, line("; ".join(note)), brief=brief)


def verdicts(result: EvaluationResult) -> list[str]:
    """Put the judge's two findings and its confidence in words."""
    words = []
    metrics = result.metrics
    for key, yes, no, missing in (
        ("answer_correct", "judged correct", "judged incorrect", "correctness not judged"),
        ("grounded", "judged grounded", "judged not grounded", "grounding not judged"),
    ):
        value = metrics.get(key)
        words.append(missing if is_missing(value) else yes if value else no)
    confidence = metrics.get("judge_confidence")
    if not is_missing(confidence):
        words.append(f"confidence {measure(confidence)}")
    return words


def _judge(result: EvaluationResult, limit: int) -> Section | None:
    said: list[Line] = []
    reason = result.metrics.get("judge_reason")
    if reason:
        said.append(line(shorten(reason, 2 * limit)))
    if result.judge_error:
        said.append(line("judge error: ", shorten(result.judge_error, limit)))
    return Section("Judge", Lines(tuple(said))) if said else None


def _latency(result: EvaluationResult) -> Section:
    items = tuple(
        Figure(title, milliseconds(result.latency.get(key), "not run"), brief=title.lower())
        for key, title in STAGES
        if key != "judge_ms" or key in result.latency
    )
    return Section("Latency", Figures(items, small=True))


def _metadata(result: EvaluationResult) -> Section:
    parts: list[str | Run] = []
    for name, value in list(result.metadata.items())[:MAX_METADATA]:
        parts += ["; "] * bool(parts) + [muted(f"{short_name(name)}: "), short_name(value)]
    hidden = len(result.metadata) - MAX_METADATA
    if hidden > 0:
        parts.append(f"; and {plural(hidden, 'more field')}")
    return Section("Metadata", Lines((line(*parts),)))
