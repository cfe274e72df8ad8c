"""The house style of all plots: ink of the active style, direct labels, a title that says it.

Nothing here changes ``rcParams`` or shows a figure. Text that comes from data is cleaned, shortened
and never read as mathematics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter

from ragdiag.display.clean import clean, shorten
from ragdiag.display.numbers import MINUS, milliseconds

__all__ = [
    "BETTER",
    "MUTED",
    "OPEN",
    "WORSE",
    "ink",
    "label",
    "legible_on",
    "milliseconds_axis",
    "new_axes",
    "no_data",
    "say",
    "signed_axis",
    "strips",
    "tick_names",
    "title",
    "wrap_category",
]

BETTER, WORSE, OPEN = "#009E73", "#D55E00", "#767676"
MUTED = 0.75
#: Room around a plot, inches.
PADDING = 0.12
#: Characters of a name on an axis.
LABEL_LIMIT = 32
#: Ink on a mark changes from black to white below this luminance (WCAG contrast).
LUMINANCE_LIMIT = 0.179
#: The golden ratio spreads the dots of a strip evenly and the same way every time.
GOLDEN = 0.618033988749895


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return `ax`, or new axes of this size in inches, dressed in the house style."""
    if ax is None:
        figure, ax = plt.subplots(figsize=(width, height), layout="constrained")
        engine = figure.get_layout_engine()
        if engine is not None:
            engine.set(w_pad=PADDING, h_pad=PADDING)  # type: ignore[call-arg]
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_alpha(0.4)
    ax.tick_params(length=0)
    ax.set_axisbelow(True)
    return ax


def ink(ax: Axes) -> Any:
    """Return the text colour of the active style: dark on light, light on dark."""
    return ax.xaxis.label.get_color()


def label(text: object, limit: int = LABEL_LIMIT) -> str:
    """Return hostile text as a short label."""
    return shorten(text, limit)


def say(
    ax: Axes,
    text: str,
    xy: tuple[float, float],
    offset: tuple[float, float] = (0, 0),
    frame: Any = "data",
    **style: Any,
) -> Text:
    """Write a note at `xy`, moved by `offset` points."""
    style = {"fontsize": 9, "color": ink(ax), "parse_math": False, **style}
    return ax.annotate(clean(text), xy, offset, xycoords=frame, textcoords="offset points", **style)


def title(ax: Axes, sentence: str, note: str, gap: float = 0) -> None:
    """Put a sentence that states the finding on top and, muted, what was counted below it."""
    ax.set_title(
        clean(sentence), loc="left", fontsize=11, fontweight="bold", pad=23 + gap, parse_math=False
    )
    say(ax, note, (0, 1), (0, 8 + gap), "axes fraction", alpha=MUTED)


def tick_names(axis: Any, names: Sequence[str], **style: Any) -> None:
    """Write names at 0, 1, 2 …; dollars in them are dollars."""
    axis.set_ticks(range(len(names)), list(names), parse_math=False, **style)


def no_data(ax: Axes, sentence: str, note: str) -> Axes:
    """Say that there is nothing to draw, instead of an empty frame."""
    title(ax, sentence, note)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines["bottom"].set_visible(False)
    return ax


def legible_on(colour: str) -> str:
    """Return black or white, whichever contrasts more with `colour`.

    Examples
    --------
    >>> legible_on("#FFFFFF"), legible_on("#0072B2")
    ('black', 'white')
    """
    channels = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour))
    luminance = float(np.dot(list(channels), (0.2126, 0.7152, 0.0722)))
    return "black" if luminance > LUMINANCE_LIMIT else "white"


def wrap_category(category: str) -> str:
    """Break a category's name at underscores into short lines.

    Examples
    --------
    >>> print(wrap_category("WRONG_CHUNK_RANK"))
    WRONG_
    CHUNK_
    RANK
    """
    lines: list[str] = []
    for word in label(category, 40).split("_"):
        if lines and len(lines[-1]) + len(word) <= 8:
            lines[-1] += f"_{word}"
        else:
            lines.append(word)
    return "_\n".join(lines)


def signed_axis(axis: Any, decimals: int = 1) -> None:
    """Write differences with their sign and a true minus."""

    def write(value: float, _: object) -> str:
        return f"{value:+.{decimals}f}".replace("-", MINUS) if abs(value) > 1e-9 else "0"

    axis.set_major_formatter(FuncFormatter(write))


def milliseconds_axis(axis: Any) -> None:
    """Write thousands with a comma."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


def strips(
    ax: Axes,
    rows: Sequence[tuple[str, npt.NDArray[np.float64], Sequence[float | None]]],
    *,
    limit_ms: float | None = None,
    limit_row: int | None = None,
    slow_colour: str = OPEN,
) -> None:
    """Draw a row of dots for each named set of milliseconds, with its p50, p95 and p99.

    Dots beyond `limit_ms` take `slow_colour`, in row `limit_row` or, if None, in all.
    """
    high = max((float(values.max()) for _, values, _ in rows if len(values)), default=1.0)
    if limit_ms is not None and limit_ms <= 3 * high:
        high = max(high, limit_ms)
    for y, (_, values, percentiles) in enumerate(rows):
        spread = (np.arange(len(values)) * GOLDEN) % 1.0
        heights = y + 0.26 * (spread - 0.5)
        limited = limit_ms is not None and limit_row in (None, y)
        slow = values > (limit_ms if limited and limit_ms is not None else np.inf)
        alpha = 0.45 if len(values) <= 1000 else 0.15
        for chosen, colour, strength in ((~slow, ink(ax), alpha), (slow, slow_colour, 0.9)):
            ax.plot(
                values[chosen],
                heights[chosen],
                "o",
                color=colour,
                alpha=strength,
                markersize=3.5,
                markeredgewidth=0,
                gid="dots" if colour is not slow_colour else "slow",
            )
        known = [float(value) for value in percentiles if value is not None]
        if known:
            ax.plot(
                known,
                [y] * len(known),
                "-o",
                color=ink(ax),
                markerfacecolor=ax.get_facecolor(),
                markersize=7,
                linewidth=1.2,
                gid="percentiles",
            )
        words = ", ".join(
            f"p{p} {milliseconds(v)}"
            for p, v in zip((50, 95, 99), percentiles, strict=True)
            if v is not None
        )
        at = (0.0, y - 0.36)
        say(ax, words or "not run", at, (2, 0), ("axes fraction", "data"), va="center", alpha=MUTED)
        if limited and limit_ms is not None and limit_ms <= high:
            ax.plot(
                [limit_ms] * 2,
                [y - 0.24, y + 0.24],
                color=ink(ax),
                linestyle=(0, (4, 3)),
                linewidth=1,
                alpha=0.7,
                gid="limit",
            )
            say(ax, f"limit {milliseconds(limit_ms)}", (limit_ms, y + 0.24), (4, 2), va="top")
    tick_names(ax.yaxis, [label(name) for name, _, _ in rows])
    ax.set_ylim(len(rows) - 0.5, -0.6)
    ax.set_xlim(0, high * 1.06)
    milliseconds_axis(ax.xaxis)
    ax.grid(axis="x", alpha=0.2)
