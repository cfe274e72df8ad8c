"""How results and comparisons show themselves: one line each, the rooms are below."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Shown"]


class Shown:
    """What shows itself as text and HTML, plots, opens as widgets and becomes a report."""

    def plot(self, kind: str | None = None, *, ax: Axes | None = None) -> Axes:
        """Draw it; the kinds are listed at :func:`ragdiag.display.plots.kinds`.

        Parameters
        ----------
        kind : str, optional
            Results: ``"categories"`` (default), ``"latency"``, ``"rank"``, ``"recall_at_k"``.
            Comparisons: ``"deltas"`` (default), ``"transitions"``, ``"queries"``, ``"latency"``.
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        """
        from ragdiag.display import plots

        return plots.plot(self, kind, ax)

    def plot_data(self, kind: str | None = None) -> pd.DataFrame:
        """Return the numbers that :meth:`plot` draws."""
        from ragdiag.display import plots

        return plots.plot_data(self, kind)

    def explore(self) -> Any:
        """Return widgets to filter, search and step through the queries."""
        from ragdiag.display import explorer

        return explorer.explore(self)

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write a self-contained HTML report, every query to be opened."""
        from ragdiag.display import html

        html.write_report(self, path)

    def to_markdown(self) -> str:
        """Return the report as Markdown, for pull requests."""
        from ragdiag.display import text

        return text.markdown(self)

    def __repr__(self) -> str:
        from ragdiag.display import text

        return text.render(self)

    def _repr_html_(self) -> str:
        from ragdiag.display import html

        return html.render(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from ragdiag import display

        return display.bundle(self)
