"""Plots of a comparison, and the numbers in them as frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from ragdiag import aggregates
from ragdiag.display.numbers import milliseconds_change, plural
from ragdiag.display.plots.house import (
    BETTER,
    MUTED,
    OPEN,
    WORSE,
    ink,
    label,
    new_axes,
    no_data,
    say,
    signed_axis,
    strips,
    tick_names,
    title,
    wrap_category,
)
from ragdiag.display.views.comparison import headline
from ragdiag.display.views.measures import MeasureRow, measure_rows
from ragdiag.errors import ComparisonError
from ragdiag.taxonomy import FailureCategory

if TYPE_CHECKING:
    from ragdiag.comparison import Comparison

__all__ = ["DATA", "DRAW"]

#: Queries that the dumbbells show at most, half of them regressions if there are as many.
MAX_QUERIES = 40
#: Ranks that name positions on the axis of reciprocal ranks.
RANK_TICKS = (8, 5, 3, 2, 1)


def _pair(comparison: Comparison, kind: str) -> Comparison:
    """Return `comparison` if it has two sides; a matrix of three cannot be drawn."""
    if len(comparison.names) > 2:
        a, b = comparison.names[:2]
        raise ComparisonError(
            f"the plot {kind!r} needs two pipelines and here are {len(comparison.names)}; "
            f"take .pair({a!r}, {b!r}).plot({kind!r})"
        )
    return comparison


# ----------------------------------------------------------------------------------------- deltas
def deltas_data(comparison: Comparison) -> pd.DataFrame:
    """Return a row a measure and pipeline, as drawn.

    ``pipeline, measure, baseline, value, difference``, then ``low, position, high``: the difference
    and its interval (missing without one) with better to the right, times relative and turned
    round; then ``verdict`` and ``note``.
    """
    rows = measure_rows(comparison)
    columns = ("pipeline", "label", "baseline", "value", "difference", "verdict", "note")
    table = pd.DataFrame({name: [getattr(row, name) for row in rows] for name in columns})
    spans = np.array([row.span for row in rows], dtype=float).reshape(-1, 3)
    table.insert(5, "low", spans[:, 0])
    table.insert(6, "position", spans[:, 1])
    table.insert(7, "high", spans[:, 2])
    return table.rename(columns={"label": "measure"})


def draw_deltas(comparison: Comparison, data: pd.DataFrame, ax: Axes | None) -> Axes:
    """Draw the differences, with intervals where there are some; right is better, always."""
    rows = [row for row in measure_rows(comparison) if not np.isnan(row.position)]
    ax = new_axes(ax, 9.6, 0.36 * max(len(rows), 1) + 1.7)
    sentence = headline(comparison).rstrip(".")
    if not rows:
        return no_data(ax, sentence, "no measure has a value on both sides")
    ends = [abs(end) for row in rows for end in row.span if not np.isnan(end)]
    reach = min(max([*ends, 0.05]) * 1.12, 1.15)
    tested = any(row.is_tested for row in rows)
    ax.axvline(0, color=ink(ax), linewidth=1, alpha=0.6)
    for y, row in enumerate(rows):
        _delta_row(ax, y, row, reach)
    many = len(comparison.names) > 2
    names = [
        f"{label(row.label)}, {label(row.pipeline, 20)}" if many else row.label for row in rows
    ]
    tick_names(ax.yaxis, names)
    ax.set_ylim(len(rows) - 0.5, -0.6)
    noted = any(row.note for row in rows)
    ax.set_xlim(-reach, reach * (3.9 if noted else 2.4))
    ax.spines["bottom"].set_bounds(-reach, reach)
    ax.set_xticks(
        [
            t
            for t in MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(-reach, reach)
            if abs(t) <= reach
        ]
    )
    signed_axis(ax.xaxis, 1 if reach > 0.25 else 2)
    base = label(comparison.baseline, 20)
    other = "others" if many else label(_other(comparison), 20)
    ax.set_xlabel(
        f"difference, {other} \N{MINUS SIGN} {base} (times: relative, turned round)",
        loc="left",
        parse_math=False,
    )
    frame = ("data", "axes fraction")
    say(ax, "\N{LEFTWARDS ARROW} worse", (-reach, 1), (0, 2), frame)
    say(ax, "better \N{RIGHTWARDS ARROW}", (reach, 1), (0, 2), frame, ha="right")
    note = (
        "paired differences with 95 % intervals"
        if tested
        else (
            f"differences of means over {plural(len(comparison), 'query', 'queries')}, "
            "not tested for chance"
        )
    )
    title(ax, sentence, note, gap=14)
    return ax


def _delta_row(ax: Axes, y: int, row: MeasureRow, reach: float) -> None:
    colour = {"better": BETTER, "worse": WORSE}.get(row.verdict, ink(ax))
    low, middle, high = (float(np.clip(end, -reach, reach)) for end in row.span)
    if row.is_tested:
        ax.plot(
            [low, high],
            [y, y],
            color=colour,
            linewidth=3,
            alpha=0.6,
            solid_capstyle="butt",
            gid="interval",
        )
    else:
        ax.plot([0, middle], [y, y], color=colour, linewidth=1.5, alpha=0.6, gid="stem")
    ax.plot(middle, y, "s", color=colour, markersize=7, gid="difference")
    say(ax, row.verdict, (reach * 1.06, y), va="center", fontweight="bold")
    beside = ", ".join(part for part in (row.change_text, row.note) if part)
    say(ax, beside, (reach * 1.8, y), va="center", alpha=MUTED)


def _other(comparison: Comparison) -> str:
    return next(name for name in comparison.names if name != comparison.baseline)


# ------------------------------------------------------------------------------------ transitions
def transitions_data(comparison: Comparison) -> pd.DataFrame:
    """Return ``category_a, category_b, queries``, one row for each move that happened."""
    matrix = _pair(comparison, "transitions").transitions
    moves = [(a, b, int(n)) for a, row in matrix.iterrows() for b, n in row.items() if n]
    return pd.DataFrame(moves, columns=["category_a", "category_b", "queries"])


def draw_transitions(comparison: Comparison, data: pd.DataFrame, ax: Axes | None) -> Axes:
    """Count the category in the baseline (rows) against the category in the other (columns)."""
    matrix = comparison.transitions
    before = [name for name in matrix.index if matrix.loc[name].sum()]
    after = [name for name in matrix.columns if matrix[name].sum()]
    passed = FailureCategory.PASS.value
    ax = new_axes(ax, max(1.05 * len(after) + 3.0, 6.0), 0.38 * len(before) + 1.9)
    if not before:
        return no_data(ax, "No queries to compare", "nothing to count")
    for y, a in enumerate(before):
        for x, b in enumerate(after):
            n = int(matrix.loc[a, b])
            colour = OPEN if a == b else BETTER if b == passed else WORSE
            if a == b or (n and passed in (a, b)):
                corner = (x - 0.5, y - 0.5)
                ax.add_patch(Rectangle(corner, 1, 1, color=colour, alpha=0.3, linewidth=0))
            if n:
                weight = "normal" if a == b else "bold"
                say(ax, f"{n:,}", (x, y), ha="center", va="center", fontsize=11, fontweight=weight)
    lines = np.arange(len(before) - 1) + 0.5
    ax.hlines(lines, -0.5, len(after) - 0.5, color=ink(ax), linewidth=0.5, alpha=0.3)
    tick_names(ax.xaxis, [wrap_category(name) for name in after], fontsize=7)
    tick_names(ax.yaxis, [label(name) for name in before], fontsize=8.5)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    names = label(comparison.baseline, 16), label(_other(comparison), 16)
    corner_words = f"{names[0]} \N{DOWNWARDS ARROW}   {names[1]} \N{RIGHTWARDS ARROW}"
    say(ax, corner_words, (0, 1), (-8, 5), "axes fraction", ha="right", alpha=MUTED)
    ax.set_xlim(-0.5, len(after) - 0.5)
    ax.set_ylim(len(before) - 0.5, -0.5)
    ax.spines["bottom"].set_visible(False)
    moved = data[data["category_a"] != data["category_b"]]
    gained = int(moved.loc[moved["category_b"] == passed, "queries"].sum())
    lost = int(moved.loc[moved["category_a"] == passed, "queries"].sum())
    note = (
        f"n = {len(comparison):,}; column PASS: now pass; row PASS: no longer; diagonal: unchanged"
    )
    title(ax, f"{gained:,} now pass, {lost:,} no longer pass", note, gap=32)
    return ax


# ---------------------------------------------------------------------------------------- queries
def queries_data(comparison: Comparison) -> pd.DataFrame:
    """Return ``query_id, reciprocal_rank_a, reciprocal_rank_b, change``, worst regression first.

    All queries that have the measure on both sides are there, also those that did not change.
    """
    outcomes = _pair(comparison, "queries").outcomes
    table = outcomes[["query_id", "reciprocal_rank_a", "reciprocal_rank_b"]]
    table = table.assign(change=table["reciprocal_rank_b"] - table["reciprocal_rank_a"])
    paired = table[table["change"].notna()]
    return paired.sort_values(["change", "query_id"]).reset_index(drop=True)


def draw_queries(comparison: Comparison, data: pd.DataFrame, ax: Axes | None) -> Axes:
    """Draw a line a query from one side to the other, worst regression on top; ties are counted."""
    worse = data[data["change"] < 0]
    better = data[data["change"] > 0].iloc[::-1]
    half = MAX_QUERIES // 2
    n_worse = min(len(worse), max(half, MAX_QUERIES - len(better)))
    worse_shown = worse.head(n_worse)
    better_shown = better.head(MAX_QUERIES - n_worse)
    shown = pd.concat([worse_shown, better_shown])
    names = label(comparison.baseline, 20), label(_other(comparison), 20)
    ax = new_axes(ax, 8.0, 0.25 * len(shown) + 1.7)
    sentence = f"First relevant chunk, from {names[0]} (ring) to {names[1]} (dot)"
    changed = len(worse) + len(better)
    note = (
        f"{changed:,} of {len(data):,} paired queries changed, regressions first; "
        f"{plural(len(data) - changed, 'tie')} not shown"
    )
    if changed > len(shown):
        note += f"; showing {len(shown)}, the largest changes"
    if shown.empty:
        return no_data(ax, sentence, note)
    for y, (a, b) in enumerate(
        zip(shown["reciprocal_rank_a"], shown["reciprocal_rank_b"], strict=True)
    ):
        colour = WORSE if b < a else BETTER
        ax.plot([a, b], [y, y], color=colour, linewidth=2.5, alpha=0.6, zorder=1, gid="change")
        ax.plot(a, y, "o", color=ax.get_facecolor(), markeredgecolor=ink(ax), markersize=6)
        ax.plot(b, y, "o", color=colour, markersize=7, gid="after")
    if n_worse and len(better_shown):
        ax.axhline(n_worse - 0.5, color=ink(ax), linewidth=0.8, alpha=0.4)
    if n_worse:
        say(ax, f"{len(worse):,} worse", (1.03, (n_worse - 1) / 2), va="center", fontweight="bold")
    if len(better_shown):
        middle = n_worse + (len(better_shown) - 1) / 2
        say(ax, f"{len(better):,} better", (1.03, middle), va="center", fontweight="bold")
    ids = [label(query_id, 24) for query_id in shown["query_id"]]
    tick_names(ax.yaxis, ids, fontsize=8.5, family="monospace")
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlim(-0.03, 1.16)
    ax.set_xticks([0, *(1 / rank for rank in RANK_TICKS)], ["none", *map(str, RANK_TICKS)])
    ax.grid(axis="x", alpha=0.2)
    ax.set_xlabel("rank of the first relevant chunk (on the scale of its reciprocal)")
    title(ax, sentence, note)
    return ax


# ---------------------------------------------------------------------------------------- latency
def latency_data(comparison: Comparison) -> pd.DataFrame:
    """Return ``pipeline, query_id, ms``: retrieval times, one row a pipeline and query."""
    parts = [
        pd.DataFrame(
            {
                "pipeline": name,
                "query_id": results.frame["query_id"],
                "ms": results.frame["retrieval_ms"],
            }
        )
        for name, results in zip(comparison.names, comparison.results, strict=True)
    ]
    table = pd.concat(parts, ignore_index=True)
    return table[table["ms"].notna()].reset_index(drop=True)


def draw_latency(comparison: Comparison, data: pd.DataFrame, ax: Axes | None) -> Axes:
    """Draw a row of dots a pipeline, with its percentiles and the limit."""
    rows, medians = [], {}
    for name in comparison.names:
        values = data.loc[data["pipeline"] == name, "ms"].to_numpy(dtype=float)
        stats = aggregates.latency(values)
        medians[name] = stats.p50_ms
        rows.append((name, values, (stats.p50_ms, stats.p95_ms, stats.p99_ms)))
    ax = new_axes(ax, 8.0, 0.95 * len(rows) + 1.5)
    if data.empty:
        return no_data(ax, "No retrieval times", "no query of any pipeline was timed")
    settings = comparison.results[0].settings
    slow = FailureCategory.LATENCY_OUTLIER.colour
    strips(ax, rows, limit_ms=settings.latency_threshold_ms, slow_colour=slow)
    ax.set_xlabel("retrieval, milliseconds, one dot a query; rings are p50, p95 and p99")
    said = []
    base = medians[comparison.baseline]
    for name, value in medians.items():
        if name != comparison.baseline and base is not None and value is not None:
            said.append(f"{label(name)} {milliseconds_change(value - base)}")
    words = f"{', '.join(said)} at the median against {label(comparison.baseline)}"
    counts = ", ".join(f"{label(name)} {len(values):,}" for name, values, _ in rows)
    sentence = f"Retrieval time: {words}" if said else "Retrieval time"
    title(ax, sentence, f"queries timed: {counts} of {len(comparison):,}")
    return ax


DATA: Mapping[str, Any] = {
    "deltas": deltas_data,
    "transitions": transitions_data,
    "queries": queries_data,
    "latency": latency_data,
}
DRAW: Mapping[str, Any] = {
    "deltas": draw_deltas,
    "transitions": draw_transitions,
    "queries": draw_queries,
    "latency": draw_latency,
}
