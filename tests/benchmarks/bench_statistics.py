"""All inference for two pipelines against scipy's permutation test, measure by measure.

ragdiag: sign-flip p-values (exact where cheaper than 10,000 draws), score intervals, equivalence,
worst cases, needed queries, Holm and verdicts of ten measures. scipy: ``permutation_test`` with
9,999 draws for each measure, p-values alone. At least 50 times faster is wanted at 1,000 queries.
Then 100,000 queries and 5 pipelines through :func:`ragdiag.inference.infer`: under 2 GB, linear in
both.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from measuring import milliseconds, peak_bytes, print_table, processor_seconds
from scipy import stats

from ragdiag.inference import infer
from ragdiag.statistics import decide, examine, examine_latency

CATEGORIES = ("PASS", "WRONG_CHUNK_RETRIEVED", "WRONG_CHUNK_RANK", "ANSWER_INCORRECT")


def pipeline(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """Draw ten measures as they are in life: pass / fail, fractions, reciprocals, discounted."""
    first = rng.geometric(0.4, size=n)
    found = first <= 5
    return {
        "recall_at_5": rng.binomial(3, 0.7, size=n) / 3 * found,
        "reciprocal_rank": np.where(first <= 10, 1.0 / first, 0.0),
        "grounded": (rng.random(n) < 0.8).astype(float),
        "answer_correct": (rng.random(n) < 0.7).astype(float),
        "passed": (rng.random(n) < 0.6).astype(float),
        "precision_at_5": rng.binomial(5, 0.3, size=n) / 5,
        "ndcg_at_5": np.where(found, 1.0 / np.log2(first + 1.0), 0.0) * rng.beta(5, 1, size=n),
        "WRONG_CHUNK_RETRIEVED": (~found).astype(float),
        "WRONG_CHUNK_RANK": (found & (first > 3)).astype(float),
        "retrieval_ms": rng.lognormal(3, 0.4, size=n),
    }


def ours(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> None:
    rows = [examine(name, a[name], b[name]) for name in a if name != "retrieval_ms"]
    rows.append(examine_latency("retrieval_ms", a["retrieval_ms"], b["retrieval_ms"]))
    decide(rows)


def scipys(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> None:
    for name in a:
        stats.permutation_test(
            (b[name] - a[name],),
            lambda x, axis: np.mean(x, axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=9_999,
        )


def frame(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Return one pipeline's rows as results have them."""
    table = pd.DataFrame(pipeline(rng, n)).drop(
        columns=["passed", "WRONG_CHUNK_RETRIEVED", "WRONG_CHUNK_RANK"]
    )
    return table.assign(category=rng.choice(CATEGORIES, size=n), n_relevant=1)


def against_scipy(quick: bool) -> None:
    rows = []
    for n in (200, 1_000):
        rng = np.random.default_rng(n)
        a, b = pipeline(rng, n), pipeline(rng, n)
        seconds = processor_seconds(
            {"ragdiag": lambda a=a, b=b: ours(a, b), "scipy": lambda a=a, b=b: scipys(a, b)},
            1 if quick else 3,
        )
        ratio = seconds["scipy"] / seconds["ragdiag"]
        rows.append([f"{n:,}", *map(milliseconds, seconds.values()), f"{ratio:.0f}"])
    print_table(["queries", "ragdiag", "scipy, p-values alone", "ratio"], rows)


def at_scale(quick: bool) -> None:
    rows = []
    sizes = ((10_000, 2), (10_000, 5)) if quick else ((25_000, 5), (100_000, 2), (100_000, 5))
    for n, pipelines in sizes:
        rng = np.random.default_rng(n)
        frames = [frame(rng, n) for _ in range(pipelines)]
        names = [f"p{at}" for at in range(pipelines)]

        def work(frames: list[pd.DataFrame] = frames, names: list[str] = names) -> None:
            infer(frames, names, k=5)

        seconds = processor_seconds({"infer": work}, 1)["infer"]
        each = seconds / (n * (pipelines - 1)) * 1e6
        rows.append(
            [
                f"{n:,}",
                str(pipelines),
                milliseconds(seconds),
                f"{each:.2f} µs",
                f"{peak_bytes(work) / 1e6:,.0f} MB",
            ]
        )
    print_table(["queries", "pipelines", "infer", "per query and pair", "memory at its peak"], rows)


def run(quick: bool) -> None:
    against_scipy(quick)
    at_scale(quick)
