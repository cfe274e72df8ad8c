"""How often the verdicts are wrong, small enough for every day; the full tables are a benchmark."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import json
import math
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from ragdiag.permutation import mcnemar_exact
from ragdiag.statistics import decide, examine

HERE = Path(__file__).parent
SYSTEMS = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")


@pytest.fixture(scope="module")
def simulate():
    """The benchmark's simulation, which is not a module of any package."""
    path = HERE.parent / "benchmarks" / "simulate_null.py"
    spec = importlib.util.spec_from_file_location("simulate_null", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["simulate_null"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["simulate_null"]


def allowed(share: float, runs: int) -> float:
    """Return `share` and four standard errors of simulation."""
    return share + 4 * math.sqrt(share * (1 - share) / runs)


@pytest.mark.parametrize("missing", ["none", "at random", "B's failures"])
@pytest.mark.parametrize("rho", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("n", [5, 20, 100, 300])
def test_equally_good_pipelines_rarely_have_a_winner(simulate, n, rho, missing):
    runs = 60
    assert simulate.false_winners(n, rho, missing=missing, reps=runs) <= allowed(0.05, runs)


def test_a_fixed_rule_would_name_one_nearly_always(simulate):
    """The same pipelines by "a mean differs by more than 0.02": what the verdict is for."""
    rng = np.random.default_rng(0)
    named = 0
    for _ in range(200):
        a, b = simulate.pair(rng, 50, 0.8)
        named += any(abs(np.mean(b[name] - a[name])) > 0.02 for name in a)
    assert named / 200 > 0.7


@pytest.mark.parametrize("quality", [0.0, 0.1])
@pytest.mark.parametrize("n", [10, 200])
def test_intervals_cover(simulate, n, quality):
    runs = 200
    error = 4 * math.sqrt(0.05 * 0.95 / runs)
    for measure, share in simulate.coverage(n, 0.5, quality=quality, reps=runs).items():
        assert share >= 0.95 - error, measure


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("n", [50, 200])
def test_the_stated_difference_is_shown(simulate, n, graded):
    delta, power = simulate.power_at_detectable(n, 0.2, graded=graded, reps=300)
    assert 0.0 < delta < 0.3
    assert power >= 0.75 - 2 * math.sqrt(0.8 * 0.2 / 300)


def test_a_real_difference_is_found(simulate):
    rng = np.random.default_rng(0)
    plan = simulate.Plan()
    winners = [simulate.winner(*simulate.pair(rng, 400, 0.5, 0.2), plan) for _ in range(20)]
    assert winners.count("b") >= 18
    assert "a" not in winners


def test_the_tables_are_written(simulate, monkeypatch):
    monkeypatch.setattr(simulate, "SIZES", (5,))
    lines = list(simulate.tables(2))
    assert sum(line.startswith("| 5 |") for line in lines) == 3


# -- real answers of five systems to the same questions -------------------------------------------
def check_systems(correct: dict[str, np.ndarray]) -> dict[tuple[str, str], str]:
    rows, pairs = [], list(combinations(SYSTEMS, 2))
    for a, b in pairs:
        row = examine("answer_correct", correct[a], correct[b])
        assert row.p_value == pytest.approx(mcnemar_exact(row.wins, row.losses), rel=1e-6)
        rows.append(row)
    return dict(zip(pairs, [row.verdict for row in decide(rows)], strict=True))


def test_real_systems_on_200_questions():
    with (HERE / "data" / "evouna_nq_200.csv").open(encoding="utf-8") as lines:
        table = list(csv.DictReader(lines))
    correct = {s: np.array([float(row[s] or "nan") for row in table]) for s in SYSTEMS}
    words = check_systems(correct)
    assert set(words.values()) == {"undecided"}, "ten comparisons of 200 questions settle nothing"
    alone = decide([examine("answer_correct", correct["gpt35"], correct["newbing"])])[0]
    assert (alone.verdict, alone.wins, alone.losses) == ("better", 35, 15)


def test_real_systems_on_all_questions(shared_data):
    answers: dict[str, dict[str, float]] = {}
    with gzip.open(shared_data / "correctness" / "evouna_nq.jsonl.gz", "rt", encoding="utf-8") as f:
        for line in f:
            row = json.loads(line)
            question = row["id"].rsplit("-", 1)[0]
            answers.setdefault(question, {})[row["model"]] = float(row["correct"])
    correct = {s: np.array([each.get(s, math.nan) for each in answers.values()]) for s in SYSTEMS}
    words = check_systems(correct)
    assert words.pop(("gpt4", "newbing")) == "undecided"
    assert set(words.values()) <= {"better", "worse"}
