"""Saved runs as a web page: one page of widgets, and voila to serve it on this machine."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ragdiag.comparison import Comparison
from ragdiag.errors import MissingDependencyError, SettingsError
from ragdiag.evaluation import compare, diagnose
from ragdiag.results import Results

if TYPE_CHECKING:
    import ipywidgets as widgets
    from matplotlib.figure import Figure

__all__ = ["RUNS_VARIABLE", "page", "serve", "voila_command"]

#: Paths of the runs, separated as the system separates paths; the page of a server reads it.
RUNS_VARIABLE = "RAGDIAG_RUNS"

#: The whole notebook that is served.
SOURCE = "from ragdiag.dashboard import page\n\npage()"

#: Enough for a sharp picture on a dense screen.
PLOT_DPI = 110


def page(runs: Sequence[str | Path | Results] | None = None) -> widgets.VBox:
    """Return the page of one run, or of several compared with the first.

    Parameters
    ----------
    runs : sequence of path or Results, optional
        What to show; by default the paths in the environment variable ``RAGDIAG_RUNS``.

    Returns
    -------
    ipywidgets.VBox
        What is wrong, the plots, and the explorer.

    Raises
    ------
    SettingsError
        No run is named.
    """
    import ipywidgets as widgets

    named = _named() if runs is None else list(runs)
    if not named:
        raise SettingsError(
            f"no run to show: name saved runs, page(['runs/a.jsonl']), or set {RUNS_VARIABLE}"
        )
    results = [each if isinstance(each, Results) else diagnose(each) for each in named]
    shown = results[0] if len(results) == 1 else compare(*results)
    parts = widgets.Tab(
        children=[
            widgets.HTML(shown._repr_html_()),
            shown.explore(),
            widgets.VBox([_picture(shown, kind) for kind in _drawable(shown)]),
        ],
        titles=["Overview", "Queries", "Plots"],
    )
    return widgets.VBox([parts], layout=widgets.Layout(max_width="1040px", margin="0 auto"))


def _named() -> list[str]:
    return [path for path in os.environ.get(RUNS_VARIABLE, "").split(os.pathsep) if path]


def _drawable(shown: Results | Comparison) -> list[str]:
    """Return the kinds of plot for which there is something to draw."""
    from ragdiag.display.plots import kinds

    return [kind for kind in kinds(shown) if len(shown.plot_data(kind))]


def _picture(shown: Results | Comparison, kind: str) -> widgets.Image:
    """Draw a plot into a picture; a widget that shows output would not survive the server."""
    import ipywidgets as widgets
    from matplotlib import pyplot

    figure = cast("Figure", shown.plot(kind).figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=PLOT_DPI, bbox_inches="tight")
    pyplot.close(figure)
    return widgets.Image(
        value=buffer.getvalue(), format="png", layout=widgets.Layout(max_width="900px")
    )


def voila_command(notebook: Path, port: int, *, browser: bool) -> list[str]:
    """Return the command that serves `notebook` on the loopback address alone.

    Raises
    ------
    MissingDependencyError
        voila is not installed.
    """
    if importlib.util.find_spec("voila") is None:
        raise MissingDependencyError(
            "the dashboard is served by voila, which is not installed: "
            "pip install 'ragdiag[dashboard]'"
        )
    return [
        *(sys.executable, "-m", "voila", str(notebook), f"--port={port}"),
        *("--Voila.ip=127.0.0.1", "--strip_sources=True"),
        *([] if browser else ["--no-browser"]),
    ]


def serve(runs: Sequence[str | Path], *, port: int = 8866, browser: bool = True) -> int:
    """Serve the page of saved runs until it is interrupted; return the server's exit code.

    Raises
    ------
    RunError
        A run cannot be read; nothing is started.
    MissingDependencyError
        voila is not installed.
    """
    paths = [Path(run).resolve() for run in runs]
    for path in paths:
        diagnose(path)
    with tempfile.TemporaryDirectory(prefix="ragdiag-") as folder:
        notebook = Path(folder) / "dashboard.ipynb"
        notebook.write_text(json.dumps(notebook_of(SOURCE)), encoding="utf-8")
        environment = {**os.environ, RUNS_VARIABLE: os.pathsep.join(map(str, paths))}
        command = voila_command(notebook, port, browser=browser)
        try:
            return subprocess.run(command, env=environment, check=False).returncode  # noqa: S603
        except KeyboardInterrupt:
            return 0


def notebook_of(source: str) -> dict[str, Any]:
    """Return a notebook of one cell."""
    cell: dict[str, Any] = {
        "cell_type": "code",
        "id": "page",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": source,
    }
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": [cell],
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
