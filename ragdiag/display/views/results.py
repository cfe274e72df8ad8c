"""What is shown of one pipeline's results: what is wrong, how much, where to look."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from ragdiag.display.blocks import Drill, Figure, Folders, Line, Section, View, line, muted
from ragdiag.display.clean import shorten
from ragdiag.display.numbers import count, is_missing, milliseconds
from ragdiag.display.views.common import (
    category_colour,
    category_order,
    id_list,
    short_id,
    short_name,
)
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
from ragdiag.display.views.query import depth, first_ranks
from ragdiag.reasons import in_percent
from ragdiag.schema import EvaluationResult
from ragdiag.taxonomy import FailureCategory

if TYPE_CHECKING:
    from ragdiag.results import Results

__all__ = ["drill", "view"]

#: Failures that open; fewer where they would not fit.
MAX_DRILLS = 10
QUESTION_LIMIT = 90
DRILL_LIMIT = 200
MAX_NOTES = 4
PASS = FailureCategory.PASS.value


def view(results: Results, text_limit: int) -> View:
    """Show the headline, the measures, the causes, the query types, insights and failures."""
    frame = results.frame
    passed, _, rest = results.headline.partition(" · ")
    if not rest:
        passed, _, rest = results.headline.partition("; ")
    sections = [_measures(results, frame), _categories(results, frame)]
    if frame["query_type"].notna().any():
        sections.append(_types(results))
    insights = insights_section(results.insights)
    sections += [insights] if insights else []
    failures = _failures(results, frame, text_limit)
    sections += [failures] if failures else []
    return View(
        f"{short_name(results.name)}: {passed}",
        lead=line(f"· {rest}." if rest else ""),
        note=line(_note(results)),
        sections=tuple(sections),
        hints=_hints(results, frame),
    )


def _note(results: Results) -> str:
    what = f"{short_name(results.dataset_name)} {shorten(results.dataset_version, 20)}"
    parts = [f"Results of {short_name(results.name)} on {what} at k = {results.k}."]
    notes = [shorten(note, 160) for note in results.notes[:MAX_NOTES]]
    parts += [note if note.endswith(".") else f"{note}." for note in notes]
    if len(results.notes) > MAX_NOTES:
        parts.append(f"{len(results.notes) - MAX_NOTES} more in .notes.")
    return " ".join(parts)


def _hints(results: Results, frame: pd.DataFrame) -> tuple[str, ...]:
    first = shorten(frame["query_id"].iloc[0], 24) if len(frame) else ""
    one = (f'["{first}"]',) if first else ()
    return (
        ".failures()",
        *one,
        ".explore()",
        ".plot()",
        ".frame",
        f".rediagnose(k={results.k * 2})",
    )


# --------------------------------------------------------------------------------------- measures
def _measures(results: Results, frame: pd.DataFrame) -> Section:
    k, total = results.k, len(frame)
    table = results.summary().set_index("measure")
    values = {name: None if is_missing(v) else float(v) for name, v in table["value"].items()}
    used = {name: int(n) for name, n in table["n_used"].items()}
    figures: list[Figure] = [
        figure(name, values[name], used[name], total, k, how)
        for name, how in (
            (f"recall_at_{k}", "measured"),
            (f"precision_at_{k}", "measured"),
            ("reciprocal_rank", "measured"),
            ("answer_correct", "judged"),
            ("grounded", "judged"),
        )
    ]
    for percent in (50, 95):
        name = f"p{percent}_retrieval_ms"
        label, brief = f"Retrieval p{percent}", f"p{percent}"
        figures.append(milliseconds_figure(label, brief, values[name], used[name], total))
    return figures_section(figures)


# ------------------------------------------------------------------------------------- categories
def _categories(results: Results, frame: pd.DataFrame) -> Section:
    total = len(frame)
    counts = results.counts().loc[list(results.precedence)]
    rows = []
    for name, row in counts.iterrows():
        measured = not total or int(row["not_measured"]) < total
        rows.append(
            CategoryRow(
                str(name),
                int(row["queries"]) if measured else None,
                int(row["also_fired"]) if measured else None,
                str(row["severity"]),
                str(row["action"]),
                int(row["not_measured"]),
            )
        )
    passed = frame["category"] == PASS
    unjudged = int((passed & frame["answer_correct"].isna() & frame["grounded"].isna()).sum())
    return categories_section(rows, total, unjudged)


# ------------------------------------------------------------------------------------ query types
def _types(results: Results) -> Section:
    k = results.k
    table = results.by("query_type")
    rows = [
        TypeRow(
            str(name),
            int(row["queries"]),
            int(row["passed"]),
            row[f"recall_at_{k}"],
            row["reciprocal_rank"],
            row["answer_correct"],
            row["grounded"],
            None if is_missing(row["main_cause"]) else str(row["main_cause"]),
        )
        for name, row in table.iterrows()
    ]
    return types_section(rows, k)


# --------------------------------------------------------------------------------------- failures
def _failures(results: Results, frame: pd.DataFrame, limit: int) -> Section | None:
    failures = results.failures()
    total = len(failures)
    if not total:
        return None
    category = pd.Series(frame["category"].to_numpy(), index=frame["query_id"].to_numpy())
    positions = _worst_of_each(category.reindex(failures.query_ids))
    limit = min(limit, DRILL_LIMIT)
    chosen = zip(positions, failures[positions], strict=True)
    drills = tuple(replace(drill(item, limit), place=place) for place, item in chosen)
    ids = failures.query_ids[:6]
    brief = line(id_list(ids, 6), f" and {total - len(ids):,} more" if total > len(ids) else "")
    return Section(
        "Failures",
        Folders(drills, total),
        line("worst first, each cause at least once; open one for its evidence"),
        brief=(brief,),
    )


def _worst_of_each(categories: pd.Series) -> list[int]:
    """Choose failures so that every cause is there: the worst of each, then the second ..."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, category in enumerate(categories.astype("object")):
        places[str(category)].append(place)
    chosen: list[int] = []
    order = category_order(places)
    for turn in range(MAX_DRILLS):
        for category in order:
            if turn < len(places[category]) and len(chosen) < MAX_DRILLS:
                chosen.append(places[category][turn])
    return chosen


def drill(item: EvaluationResult, limit: int) -> Drill:
    """Make the line of one failure and what opens below it."""
    category = item.diagnosis.category
    name = "not diagnosed" if category is None else short_name(category)
    summary = line(short_id(item.query_id), f" {shorten(item.query, QUESTION_LIMIT)} ", muted(name))
    pairs: list[tuple[str, Line]] = [("Why", line(shorten(item.diagnosis.reason, limit)))]
    if item.error:
        pairs.append(("Error", line(shorten(item.error, limit))))
    if item.evidence and item.status == "completed":
        words = [f"{each['passage']} {_share(each['covered'])}" for each in item.evidence]
        pairs.append(("Evidence", line(shorten("; ".join(words), limit))))
    elif item.expected_chunk_ids and item.status == "completed":
        pairs.append(("Relevant", _relevant(item)))
    if item.retrieved_chunks:
        ids = [chunk.id for chunk in item.retrieved_chunks[: depth(item) or 5]]
        pairs.append(("Retrieved", id_list(ids, 5)))
    if item.generated_answer is not None:
        pairs.append(("Answer", line(shorten(item.generated_answer, limit, tell=True))))
        if item.expected_answer is not None:
            pairs.append(("Expected", line(shorten(item.expected_answer, limit, tell=True))))
    slow = item.latency.get("retrieval_ms")
    if category == FailureCategory.LATENCY_OUTLIER and slow is not None:
        pairs.append(("Retrieval", line(milliseconds(slow))))
    if item.judge_error:
        pairs.append(("Judge", line(shorten(item.judge_error, limit))))
    colour = category_colour(None if category is None else str(category))
    return Drill(summary, colour, tuple(pairs))


def _share(covered: float | None) -> str:
    return "not measured" if covered is None else f"{in_percent(covered)} covered"


def _relevant(item: EvaluationResult) -> Line:
    ranks = first_ranks(item.retrieved_chunks)
    k = depth(item)
    parts: list[Line] = []
    for chunk in item.expected_chunk_ids[:5]:
        rank = ranks.get(chunk)
        where = "not retrieved" if rank is None else f"rank {rank}"
        where += f" (k is {k})" if rank is not None and k is not None and rank > k else ""
        parts.append(line("; " if parts else "", short_id(chunk), f" {where}"))
    hidden = len(item.expected_chunk_ids) - 5
    return line(*parts, f"; and {count(hidden)} more" if hidden > 0 else "")
