"""Plots of one pipeline's results, and the numbers in them as frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from ragdiag import aggregates
from ragdiag.display.numbers import measure, milliseconds, plural
from ragdiag.display.plots.house import (
    BETTER,
    MUTED,
    OPEN,
    ink,
    label,
    legible_on,
    new_axes,
    no_data,
    say,
    strips,
    tick_names,
    title,
)
from ragdiag.display.views.common import category_colour, category_order
from ragdiag.evidence import RunEvidence
from ragdiag.facts import facts_of
from ragdiag.insights import deeper_k
from ragdiag.taxonomy import FailureCategory

if TYPE_CHECKING:
    from ragdiag.results import Results

__all__ = ["DATA", "DRAW"]

#: What stands for a query without a type, and for one without any measured rule.
NO_TYPE = "no type"
NOT_DIAGNOSED = "not diagnosed"
MAX_TYPES = 20
#: Depth up to which recall and precision are drawn, and ranks are counted one by one.
MAX_DEPTH = 100
MAX_RANKS = 20
STAGES = {"retrieval_ms": "retrieval", "generation_ms": "generation", "total_ms": "total"}


# ------------------------------------------------------------------------------------- categories
def categories_data(results: Results) -> pd.DataFrame:
    """Return ``query_type, category, queries``: queries by type and primary category."""
    frame = results.frame
    pairs = pd.DataFrame(
        {
            "query_type": frame["query_type"].astype("object").fillna(NO_TYPE),
            "category": frame["category"].astype("object").fillna(NOT_DIAGNOSED),
        }
    )
    counts = pairs.groupby(["query_type", "category"], sort=False).size()
    return counts.rename("queries").reset_index()


def draw_categories(results: Results, data: pd.DataFrame, ax: Axes | None) -> Axes:
    """Stack the categories of each type; PASS starts at the axis, so passes compare by length."""
    table = data.pivot_table("queries", "query_type", "category", "sum", 0, sort=False)
    totals = table.sum(axis=1)
    passes = table["PASS"] if "PASS" in table else totals * 0
    shown = totals.sort_values(ascending=False, kind="stable").index[:MAX_TYPES]
    share = (passes / totals).loc[shown].sort_values(ascending=False, kind="stable")
    table = table.loc[share.index]
    order = category_order(data["category"])
    order = [name for name in order if name == "PASS"] + [n for n in order if n != "PASS"]
    ax = new_axes(ax, 8.0, 0.52 * len(table) + 1.9)
    total = int(totals.sum())
    if not total:
        return no_data(ax, f"{label(results.name)}: no queries", "nothing to count")
    left = np.zeros(len(table))
    least = totals.max() / 60
    for category in order:
        width = table[category].to_numpy(dtype=float)
        colour = category_colour(category)
        edge = ax.get_facecolor()
        ax.barh(range(len(table)), width, 0.66, left, color=colour, edgecolor=edge, linewidth=1.5)
        for y in np.flatnonzero(width > least).tolist():
            middle = (float(left[y] + width[y] / 2), float(y))
            number = f"{width[y]:,.0f}"
            say(ax, number, middle, ha="center", va="center", color=legible_on(colour))
        left += width
    for y, name in enumerate(table.index):
        words = f"{passes[name]:,.0f} of {totals[name]:,.0f} passed"
        say(ax, words, (float(left[y]), y), (9, 0), va="center", alpha=MUTED)
    tick_names(ax.yaxis, [label(name) for name in table.index])
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.set_xlim(0, left.max() * 1.22)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("queries")
    note = "primary category by query type"
    if len(totals) > MAX_TYPES:
        note += f"; showing the {MAX_TYPES} largest of {len(totals)} types"
    title(ax, f"{label(results.name)} passed {int(passes.sum()):,} of {total:,} queries", note)
    patches = [Patch(color=category_colour(name), label=label(name)) for name in order]
    legend = ax.legend(
        handles=patches,
        ncols=3,
        fontsize=8,
        handlelength=1,
        handleheight=1,
        loc="upper left",
        bbox_to_anchor=(-0.01, -0.55 / (0.52 * len(table) + 0.3)),
        borderaxespad=0,
        frameon=False,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    return ax


# ---------------------------------------------------------------------------------------- latency
def latency_data(results: Results) -> pd.DataFrame:
    """Return ``stage, query_id, ms``: one row a timed stage of a query."""
    frame = results.frame
    parts = [
        pd.DataFrame({"stage": name, "query_id": frame["query_id"], "ms": frame[column]})
        for column, name in STAGES.items()
    ]
    table = pd.concat(parts, ignore_index=True)
    return table[table["ms"].notna()].reset_index(drop=True)


def draw_latency(results: Results, data: pd.DataFrame, ax: Axes | None) -> Axes:
    """Draw a row of dots a stage, with its percentiles, and the limit of retrieval."""
    limit = results.settings.latency_threshold_ms
    rows = []
    for name in STAGES.values():
        values = data.loc[data["stage"] == name, "ms"].to_numpy(dtype=float)
        if len(values):
            stats = aggregates.latency(values)
            rows.append((name, values, (stats.p50_ms, stats.p95_ms, stats.p99_ms)))
    ax = new_axes(ax, 8.0, 0.95 * max(len(rows), 1) + 1.5)
    if not rows:
        return no_data(ax, f"{label(results.name)}: no times", "no stage of any query was timed")
    timed = data[data["stage"] == "retrieval"]["ms"].to_numpy(dtype=float)
    retrieval_row = 0 if len(timed) else -1
    strips(
        ax,
        rows,
        limit_ms=limit,
        limit_row=retrieval_row,
        slow_colour=category_colour(FailureCategory.LATENCY_OUTLIER),
    )
    ax.set_xlabel("milliseconds, one dot a query; rings are p50, p95 and p99")
    if not len(timed):
        title(ax, f"{label(results.name)}: retrieval was not timed", "other stages below")
        return ax
    slow = int((timed > limit).sum())
    note = f"retrieval timed in {len(timed):,} of {len(results):,} queries"
    if len(timed) < 100:
        note += "; below 100, p99 is close to the maximum"
    words = f"half of the retrievals take under {milliseconds(float(np.median(timed)))}"
    exceed = f"{slow:,} {'exceeds' if slow == 1 else 'exceed'} the limit"
    title(ax, f"{label(results.name)}: {words}, {exceed}", note)
    return ax


# ------------------------------------------------------------------------------------------- rank
def rank_data(results: Results) -> pd.DataFrame:
    """Return ``rank, queries``: where the first relevant chunk came; missing: not retrieved."""
    frame = results.frame
    labelled = frame[frame["reciprocal_rank"].notna()]
    counts = labelled["first_relevant_rank"].value_counts(dropna=False)
    ranks = pd.array([None if pd.isna(r) else int(r) for r in counts.index], dtype="Int64")
    table = pd.DataFrame({"rank": ranks, "queries": counts.to_numpy(dtype=np.int64)})
    return table.sort_values("rank", na_position="last").reset_index(drop=True)


def draw_rank(results: Results, data: pd.DataFrame, ax: Axes | None) -> Axes:
    """Draw how many queries got their first relevant chunk at each rank."""
    ax = new_axes(ax, 8.0, 3.6)
    total = int(data["queries"].sum())
    name = label(results.name)
    if not total:
        return no_data(ax, f"{name}: no ranks", "no completed query has a labelled chunk")
    found = data[data["rank"].notna()]
    counts = {int(rank): int(n) for rank, n in zip(found["rank"], found["queries"], strict=True)}
    lost = total - sum(counts.values())
    deepest = min(max([*counts, results.k]), MAX_RANKS)
    bars = [
        (str(rank), counts.get(rank, 0), _rank_colour(rank, results))
        for rank in range(1, deepest + 1)
    ]
    beyond = sum(n for rank, n in counts.items() if rank > deepest)
    wrong = category_colour(FailureCategory.WRONG_CHUNK_RETRIEVED)
    if beyond:
        bars.append((f"beyond {deepest}", beyond, wrong))
    bars.append(("not\nretrieved", lost, wrong))
    ax.bar(range(len(bars)), [n for _, n, _ in bars], 0.72, color=[colour for _, _, colour in bars])
    for x, (_, n, _) in enumerate(bars):
        if n:
            say(ax, f"{n:,}", (x, n), (0, 3), ha="center")
    tick_names(ax.xaxis, [text for text, _, _ in bars])
    ax.set_yticks([])
    ax.set_ylim(0, max(n for _, n, _ in bars) * 1.15)
    ax.axvline(results.k - 0.5, color=ink(ax), linestyle=(0, (4, 3)), linewidth=1, alpha=0.7)
    say(ax, f"k = {results.k}", (results.k - 0.5, 1), (4, -9), ("data", "axes fraction"))
    ax.set_xlabel("rank of the first relevant chunk")
    limit = results.settings.rank_threshold
    note = (
        f"{plural(total, 'query', 'queries')} with labels; green up to rank {limit}, "
        f"the rank limit; orange beyond k"
    )
    title(
        ax, f"{name}: the first relevant chunk is on top in {counts.get(1, 0):,} of {total:,}", note
    )
    return ax


def _rank_colour(rank: int, results: Results) -> str:
    if rank > results.k:
        return category_colour(FailureCategory.WRONG_CHUNK_RETRIEVED)
    if rank > results.settings.rank_threshold:
        return category_colour(FailureCategory.WRONG_CHUNK_RANK)
    return category_colour(FailureCategory.PASS)


# ------------------------------------------------------------------------------------ recall at k
def recall_data(results: Results) -> pd.DataFrame:
    """Return ``k, recall, precision, n``: means over the labelled queries at every depth."""
    evidence = RunEvidence(results.run).under(results.settings)
    deepest = int(min(max([results.k, *evidence.n_retrieved.tolist()]), MAX_DEPTH))
    depths = range(1, deepest + 1)
    failed = evidence.failed
    measured = evidence.measures(depths, results.settings.precision_denominator)
    rows = []
    for k in depths:
        recall = aggregates.mean(np.where(failed, np.nan, measured[f"recall_at_{k}"]), failed)
        precision = aggregates.mean(np.where(failed, np.nan, measured[f"precision_at_{k}"]), failed)
        rows.append(
            {"k": k, "recall": recall.value, "precision": precision.value, "n": recall.n_used}
        )
    return pd.DataFrame(rows).astype({"recall": float, "precision": float})


def draw_recall(results: Results, data: pd.DataFrame, ax: Axes | None) -> Axes:
    """Draw recall and precision at every depth, the k in use, and the smallest k that helps."""
    ax = new_axes(ax, 8.0, 3.8)
    name, n = label(results.name), int(data["n"].max())
    if not n:
        return no_data(ax, f"{name}: no recall", "no completed query has a labelled chunk")
    depths = data["k"].to_numpy()
    better = deeper_k(facts_of(results).frame["smallest_k"], results.k)
    marks = [results.k] + ([better[0]] if better and better[0] <= depths[-1] else [])
    for column, style in (("recall", "-"), ("precision", "--")):
        values = data[column].to_numpy(dtype=float)
        _line_with_marks(ax, depths, values, column, style, marks)
    words = [f"k = {results.k} in use"]
    if better:
        words.append(f"k = {better[0]} is enough for {better[1]:,} of {better[2]:,}")
    for k, text, colour in zip(marks, words, (OPEN, BETTER), strict=False):
        ax.axvline(k, color=colour, linewidth=2, alpha=0.7, zorder=0)
        to_left = k > 0.45 * depths[-1]
        say(ax, text, (k, 1.045), (-6 if to_left else 6, 0), ha="right" if to_left else "left")
    ax.set_xlim(0.8, depths[-1] + max(1.3, 0.13 * depths[-1]))
    ax.set_ylim(0, 1.12)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12))
    ax.grid(axis="y", alpha=0.2)
    ax.set_xlabel("k, chunks that count")
    ax.set_ylabel("mean over queries")
    if better:
        rest = better[2] - better[1]
        note = f"n = {n:,}; for the other {rest:,} a relevant chunk is not in what was retrieved"
        sentence = f"{name}: a larger k completes {better[1]:,} of {better[2]:,} incomplete queries"
    else:
        note = f"n = {n:,} completed queries with labels"
        sentence = f"{name}: no larger k would complete more queries"
    title(ax, sentence, note)
    return ax


def _line_with_marks(
    ax: Axes, depths: Any, values: Any, name: str, style: str, marks: list[int]
) -> None:
    at = [k - 1 for k in marks]
    ax.plot(
        depths,
        values,
        style,
        color=ink(ax),
        linewidth=1.6,
        marker="o",
        markersize=7,
        markerfacecolor=ax.get_facecolor(),
        markevery=at,
        gid=name,
    )
    say(ax, name, (depths[-1], values[-1]), (8, 0), va="center", fontsize=10)
    for k in marks:
        say(ax, measure(values[k - 1]), (k, values[k - 1]), (-6, 7), ha="right")


DATA: Mapping[str, Any] = {
    "categories": categories_data,
    "latency": latency_data,
    "rank": rank_data,
    "recall_at_k": recall_data,
}
DRAW: Mapping[str, Any] = {
    "categories": draw_categories,
    "latency": draw_latency,
    "rank": draw_rank,
    "recall_at_k": draw_recall,
}
