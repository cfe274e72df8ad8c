"""How often the verdicts are wrong: simulated pipelines whose true difference is known.

    python tests/benchmarks/simulate_null.py            # tables in full size, minutes
    python tests/benchmarks/simulate_null.py --reps 200 # a quick look

Two pipelines answer the same n queries. With probability rho a query ends alike in both, else it
is drawn anew from the same law, so that every measure correlates by rho and neither is better.
Measures follow from one another as they do in life: ranks of one to three relevant chunks give
recall and reciprocal rank, a found chunk makes a grounded and a correct answer more likely.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np

from ragdiag.intervals import paired_mean
from ragdiag.power import detectable_difference
from ragdiag.statistics import Plan, decide, examine
from ragdiag.verdicts import judge_pair

SIZES = (5, 10, 20, 50, 100, 200, 500, 1_000)
CORRELATIONS = (0.5, 0.8, 0.95)
MISSING = ("none", "at random", "B's failures")
QUALITIES = (("equal", 0.0), ("B better", 0.1))
K, DEPTH = 5, 10
Measures = dict[str, np.ndarray]


def outcomes(rng: np.random.Generator, n_relevant: np.ndarray, quality: float = 0.0) -> Measures:
    """Draw what one pipeline makes of n queries; `quality` moves every measure up."""
    n = len(n_relevant)
    ranks = rng.geometric(0.35 + quality, size=(n, 3)).astype(float)
    ranks[np.arange(3) >= n_relevant[:, None]] = np.inf
    recall = (ranks <= K).sum(axis=1) / n_relevant
    first = ranks.min(axis=1)
    found = first <= K
    grounded = rng.random(n) < np.where(found, 0.85, 0.5) + quality
    correct = rng.random(n) < np.where(found & grounded, 0.85, 0.35) + quality
    return {
        "recall_at_5": recall,
        "reciprocal_rank": np.where(first <= DEPTH, 1.0 / first, 0.0),
        "grounded": grounded.astype(float),
        "answer_correct": correct.astype(float),
    }


def pair(
    rng: np.random.Generator, n: int, rho: float, quality: float = 0.0, missing: str = "none"
) -> tuple[Measures, Measures]:
    """Draw both pipelines; B is better by `quality`."""
    n_relevant = rng.integers(1, 4, size=n)
    a = outcomes(rng, n_relevant)
    other = outcomes(rng, n_relevant, quality)
    alike = rng.random(n) < rho
    b = {name: np.where(alike, a[name], other[name]) for name in a}
    for name in ("grounded", "answer_correct"):
        if missing == "at random":
            for side in (a, b):
                side[name] = np.where(rng.random(n) < 0.1, np.nan, side[name])
        elif missing == "B's failures":
            lost = (b[name] == 0) & (rng.random(n) < 0.3)
            b[name] = np.where(lost, np.nan, b[name])
    return a, b


def winner(a: Measures, b: Measures, plan: Plan) -> str | None:
    """Return who the verdict names."""
    rows = decide([examine(name, a[name], b[name], plan=plan) for name in a], plan)
    return judge_pair(rows, "a", "b", len(a["grounded"])).winner


def false_winners(
    n: int, rho: float, *, missing: str = "none", reps: int = 1_000, seed: int = 0
) -> float:
    """Return the share of null comparisons in which any winner is named."""
    rng = np.random.default_rng([seed, n, round(rho * 100), MISSING.index(missing)])
    plan = Plan()
    return float(
        np.mean(
            [winner(*pair(rng, n, rho, missing=missing), plan) is not None for _ in range(reps)]
        )
    )


def coverage(
    n: int, rho: float, *, quality: float = 0.0, reps: int = 1_000, seed: int = 0
) -> dict[str, float]:
    """Return for each measure how often the 95 % interval holds the true difference."""
    rng = np.random.default_rng([seed, n, round(rho * 100), round(quality * 100)])
    a, b = pair(rng, 300_000, rho, quality)
    truth = {name: float(np.mean(b[name] - a[name])) for name in a}
    if quality == 0.0:
        truth = dict.fromkeys(truth, 0.0)
    held = dict.fromkeys(truth, 0)
    for _ in range(reps):
        a, b = pair(rng, n, rho, quality)
        for name in a:
            found = paired_mean(b[name] - a[name])
            held[name] += found.low <= truth[name] <= found.high
    return {name: count / reps for name, count in held.items()}


def power_at_detectable(
    n: int, discordance: float, *, graded: bool, reps: int = 1_000, seed: int = 0
) -> tuple[float, float]:
    """Return the stated detectable difference and how often a measure alone shows it."""
    delta = detectable_difference(n, discordance=discordance)
    if np.isnan(delta):
        return delta, np.nan
    rng = np.random.default_rng([seed, n, round(discordance * 100), graded])
    shown = 0
    plan = dataclasses.replace(Plan(), tolerance=0.0)
    for _ in range(reps):
        d = _differences(rng, n, delta, max(discordance, delta), graded=graded)
        row = decide([examine("m", (1 - d) / 2, (1 + d) / 2, plan=plan)], plan)[0]
        shown += row.verdict == "better"
    return delta, shown / reps


def _differences(
    rng: np.random.Generator, n: int, delta: float, moment: float, *, graded: bool
) -> np.ndarray:
    """Draw differences of the mean `delta` and the mean square `moment`."""
    if not graded:
        win = (moment + delta) / 2
        return rng.choice([1.0, -1.0, 0.0], size=n, p=[win, moment - win, 1 - moment])
    # Differences of a half, as recall has them, unless that leaves no room for the mean square.
    size = max(0.5, float(np.sqrt(moment)))
    share = moment / size**2
    win = (1 + min(1.0, delta / (share * size))) / 2
    signs = rng.choice([1.0, -1.0], size=n, p=[win, 1 - win])
    return np.where(rng.random(n) < share, size * signs, 0.0)


def tables(reps: int) -> Iterator[str]:
    """Yield the tables as Markdown, line by line."""
    yield f"False winners between equally good pipelines, {reps:,} runs a cell (5 % allowed)"
    yield from _head(f"{missing}, rho {rho}" for missing in MISSING for rho in CORRELATIONS)
    for n in SIZES:
        yield _row(
            n,
            (
                f"{false_winners(n, rho, missing=missing, reps=reps):.3f}"
                for missing in MISSING
                for rho in CORRELATIONS
            ),
        )
    yield f"\nCoverage of 95 % intervals, {reps:,} runs: lowest to highest of four measures"
    conditions = [(words, q, rho) for words, q in QUALITIES for rho in CORRELATIONS]
    yield from _head(f"{words}, rho {rho}" for words, _, rho in conditions)
    for n in SIZES:
        found = [coverage(n, rho, quality=q, reps=reps).values() for _, q, rho in conditions]
        yield _row(n, (f"{min(each):.3f}-{max(each):.3f}" for each in found))
    yield f"\nPower at the stated detectable difference (80 % meant), {reps:,} runs"
    kinds = [(graded, moment) for graded in (False, True) for moment in (0.1, 0.2, 0.4)]
    yield from _head(f"{'graded' if graded else 'pass/fail'} {moment}" for graded, moment in kinds)
    for n in SIZES:
        powers = [power_at_detectable(n, m, graded=graded, reps=reps) for graded, m in kinds]
        yield _row(n, ("none" if np.isnan(d) else f"{p:.2f} at {d:.3f}" for d, p in powers))


def _head(columns: Iterable[str]) -> Iterator[str]:
    names = list(columns)
    yield f"| n | {' | '.join(names)} |"
    yield "|---" * (len(names) + 1) + "|"


def _row(n: int, cells: Iterable[str]) -> str:
    return f"| {n} | {' | '.join(cells)} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=2_000)
    for line in tables(parser.parse_args().reps):
        print(line, flush=True)
