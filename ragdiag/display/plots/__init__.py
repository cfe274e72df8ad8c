"""Plots: ``plot(obj, kind)`` draws on matplotlib axes, ``plot_data`` gives the numbers in it.

The figure is left open for the notebook to show; nothing is shown, closed or configured here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ragdiag.errors import SettingsError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["kinds", "plot", "plot_data"]

#: Class name → module of its plots; the first kind there is the default.
_PLOTS = {"Comparison": "comparison", "Results": "results"}


def plot(obj: Any, kind: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw `obj` and return the axes.

    Parameters
    ----------
    obj : Results or Comparison
        What to draw.
    kind : str, optional
        One of :func:`kinds`; the first by default.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    SettingsError
        There is no such kind.
    """
    module, kind = _find(obj, kind)
    axes: Axes = module.DRAW[kind](obj, module.DATA[kind](obj), ax)
    return axes


def plot_data(obj: Any, kind: str | None = None) -> pd.DataFrame:
    """Return the numbers that :func:`plot` draws, as a frame in long form."""
    module, kind = _find(obj, kind)
    data: pd.DataFrame = module.DATA[kind](obj)
    return data


def kinds(obj: Any) -> tuple[str, ...]:
    """Return the kinds of plot that `obj` has, the default first."""
    return tuple(_module(obj).DRAW)


def _module(obj: Any) -> Any:
    for base in type(obj).__mro__:
        if base.__name__ in _PLOTS and base.__module__.split(".")[0] == "ragdiag":
            return import_module(f"ragdiag.display.plots.{_PLOTS[base.__name__]}")
    raise TypeError(f"there is no plot of a {type(obj).__name__}")


def _find(obj: Any, kind: str | None) -> tuple[Any, str]:
    module = _module(obj)
    known = tuple(module.DRAW)
    if kind is None:
        return module, known[0]
    if kind not in known:
        raise SettingsError(f"kind must be one of {', '.join(known)}, got {kind!r}")
    return module, kind
