"""Results on disk: everything comes back, and damage is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ragdiag.errors import RunFormatError, SettingsError
from ragdiag.recording import Run, load_run
from ragdiag.results import Results, load_results
from ragdiag.rules import Rule
from ragdiag.schema import Settings

MakeRun = Callable[..., Run]

QUERIES: list[dict[str, Any]] = [
    {"id": "001", "relevant": {"a": 2}, "retrieved": ["a"], "ms": 1 / 3, "query": "é \u2028?"},
    {"id": "=1", "relevant": ["a", "b"], "retrieved": ["b"], "answer_correct": True,
     "grounded": None, "correct_confidence": 0.25, "metadata": {"team": "red", "size": 3}},
    {"id": "NA", "status": "failed", "error": "retrieval failed: X: y", "relevant": ["a"]},
    {"id": "1e5", "status": None},
]  # fmt: skip


@pytest.fixture
def results(make_run: MakeRun) -> Results:
    return Results(make_run(*QUERIES, pipeline_name="p"), Settings(k=3, rank_threshold=2))


def same(one: Results, other: Results) -> None:
    pd.testing.assert_frame_equal(one.frame, other.frame)
    pd.testing.assert_frame_equal(one.chunks, other.chunks)
    pd.testing.assert_frame_equal(one.expected, other.expected)
    assert one.settings == other.settings
    assert (one.headline, one.notes, one.name) == (other.headline, other.notes, other.name)
    assert list(one) == list(other)


def test_everything_comes_back(results: Results, tmp_path: Path) -> None:
    results.save(tmp_path / "r.jsonl")
    same(load_results(tmp_path / "r.jsonl"), results)


def test_a_part_comes_back_in_its_order(results: Results, tmp_path: Path) -> None:
    part = results.failures()
    part.save(tmp_path / "part.jsonl")
    back = load_results(tmp_path / "part.jsonl")
    same(back, part)
    assert back.frame.index.tolist() == [2, 1]
    back[:1].save(tmp_path / "smaller.jsonl")
    same(load_results(tmp_path / "smaller.jsonl"), part[:1])
    back[::-1].save(str(tmp_path / "turned.jsonl"))
    same(load_results(str(tmp_path / "turned.jsonl")), part[::-1])
    assert back[back.frame["error"].notna()].query_ids == ["NA"]


def test_a_file_of_results_can_be_read_as_a_run(results: Results, tmp_path: Path) -> None:
    results.save(tmp_path / "r.jsonl")
    run = load_run(tmp_path / "r.jsonl")
    pd.testing.assert_frame_equal(run.queries, results.run.queries)


def test_rules_must_be_given_again(make_run: MakeRun, tmp_path: Path) -> None:
    own = Rule("MINE", "major", lambda f: f["n_found"] > 0, "r", "a")
    results = Results(make_run(*QUERIES), rules=[own])
    results.save(tmp_path / "r.jsonl")
    with pytest.raises(RunFormatError, match=r"made with rules of your own; .*rules=: MINE"):
        load_results(tmp_path / "r.jsonl")
    same(load_results(tmp_path / "r.jsonl", rules=[own]), results)


def test_a_run_is_not_results(make_run: MakeRun, tmp_path: Path) -> None:
    make_run(*QUERIES).save(tmp_path / "run.jsonl")
    with pytest.raises(RunFormatError, match=r"run without settings; use ragdiag.load_run"):
        load_results(tmp_path / "run.jsonl")


@pytest.mark.parametrize(
    "change",
    [
        {"settings": {"k": 0}},
        {"settings": {"depth": 3}},
        {"settings": None},
        {"rules": None},
        {"index": ["x"]},
        {"index": [0]},
        {"places": [0, 9]},
        {"places": [-1]},
        {"places": ["x"]},
    ],
)
def test_damage_is_named(results: Results, tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "r.jsonl"
    results.save(path)
    header, *rest = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    record = json.loads(header)
    record["info"]["results"].update(change)
    path.write_text("\n".join([json.dumps(record), *rest]) + "\n", encoding="utf-8")
    with pytest.raises((RunFormatError, SettingsError), match="the settings beside the run"):
        load_results(path)
