"""The page of saved runs, and the command that serves it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import ipywidgets as widgets
import pytest

import ragdiag
from ragdiag import dashboard
from ragdiag.errors import MissingDependencyError, RagdiagError, SettingsError

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    paths = []
    for name in ("dense", "hybrid"):
        paths.append(folder / f"{name}.jsonl")
        ragdiag.evaluate(
            str(EXAMPLES / f"{name}_pipeline.py"),
            EXAMPLES / "demo_dataset.json",
            store=paths[-1],
            progress=False,
        )
    return paths


@pytest.fixture
def voila(monkeypatch: pytest.MonkeyPatch) -> None:
    """What serves is not started here, so that it need not be installed."""
    monkeypatch.setattr(dashboard.importlib.util, "find_spec", lambda name: object())


def parts(page: widgets.VBox) -> dict[str, widgets.Widget]:
    (tabs,) = page.children
    return dict(zip(tabs.titles, tabs.children, strict=True))


def test_one_run_is_shown_with_its_queries_and_plots(stores):
    shown = parts(dashboard.page(stores[:1]))
    assert "3 of 5 passed" in shown["Overview"].value
    assert len(shown["Queries"].selected) == 5
    pictures = shown["Plots"].children
    assert len(pictures) >= 3
    assert all(bytes(picture.value).startswith(b"\x89PNG") for picture in pictures)


def test_two_runs_are_compared(stores):
    shown = parts(dashboard.page(stores))
    assert "5 queries cannot settle it" in shown["Overview"].value
    assert isinstance(shown["Queries"].selected, ragdiag.Comparison)


def test_the_server_names_its_runs_in_the_environment(stores, monkeypatch):
    monkeypatch.setenv(dashboard.RUNS_VARIABLE, os.pathsep.join(map(str, stores)))
    assert "hybrid_pipeline" in parts(dashboard.page())["Overview"].value


def test_no_run_is_a_clear_error(monkeypatch):
    monkeypatch.delenv(dashboard.RUNS_VARIABLE, raising=False)
    with pytest.raises(SettingsError, match="no run to show"):
        dashboard.page()


@pytest.mark.usefixtures("voila")
def test_serve_reads_the_runs_first_and_then_starts_voila_on_loopback(stores, monkeypatch):
    started = {}

    class Done:
        returncode = 0

    def run(command, env, check):
        started.update(command=command, runs=env[dashboard.RUNS_VARIABLE])
        started["cells"] = json.loads(Path(command[3]).read_text("utf-8"))["cells"]
        return Done

    monkeypatch.setattr(dashboard.subprocess, "run", run)
    assert dashboard.serve(stores, port=9123, browser=False) == 0
    assert "--Voila.ip=127.0.0.1" in started["command"]
    assert "--port=9123" in started["command"]
    assert "--no-browser" in started["command"]
    assert started["runs"].split(os.pathsep) == [str(path.resolve()) for path in stores]
    assert started["cells"][0]["source"] == dashboard.SOURCE
    started.clear()
    with pytest.raises(RagdiagError, match="missing"):
        dashboard.serve([stores[0].with_name("missing.jsonl")])
    assert not started


@pytest.mark.usefixtures("voila")
def test_an_interrupt_of_the_server_is_its_normal_end(stores, monkeypatch):
    def run(command, env, check):
        raise KeyboardInterrupt

    monkeypatch.setattr(dashboard.subprocess, "run", run)
    assert dashboard.serve(stores) == 0


def test_without_voila_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(dashboard.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"ragdiag\[dashboard\]"):
        dashboard.voila_command(Path("x.ipynb"), 1, browser=True)


def test_the_notebook_of_the_folder_is_the_one_that_is_served(repository):
    notebook = json.loads((repository / "notebooks" / "dashboard.ipynb").read_text("utf-8"))
    (cell,) = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert cell["source"] == dashboard.SOURCE
