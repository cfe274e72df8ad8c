"""From two aligned frames to rows of evidence: which measures, of which queries, which family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag.aggregates import as_floats
from ragdiag.statistics import Evidence, Family, Plan, examine, examine_latency
from ragdiag.taxonomy import FailureCategory

__all__ = [
    "EXPLORATORY",
    "LATENCY",
    "MEDIAN_LATENCY",
    "PRIMARY",
    "Applicability",
    "cluster_labels",
    "measure_values",
    "pair_evidence",
]

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

#: The declared family: these decide, and they share one level.
PRIMARY = ("recall_at_{k}", "reciprocal_rank", "grounded", "answer_correct")
#: Looked at as well, and corrected among themselves.
EXPLORATORY = ("precision_at_{k}", "ndcg_at_{k}")
#: Column of the times that are compared, and what the evidence calls its median.
LATENCY = "retrieval_ms"
MEDIAN_LATENCY = "p50_retrieval_ms"
#: Measures that need a relevant chunk to look for.
RETRIEVAL = ("recall", "reciprocal", "precision", "ndcg")


def measure_values(frame: pd.DataFrame, k: int, categories: Sequence[str]) -> dict[str, Floats]:
    """Return every measure of one pipeline as floats, NaN where missing."""
    wanted = [name.format(k=k) for name in (*PRIMARY, *EXPLORATORY)] + [LATENCY]
    values = {name: as_floats(frame[name]) for name in wanted if name in frame}
    category = frame["category"]
    unknown = category.isna().to_numpy(dtype=bool)
    for name in map(str, categories):
        share = (category == name).to_numpy(dtype=np.float64, na_value=0.0)
        passed = name == FailureCategory.PASS.value
        values["passed" if passed else name] = np.where(unknown, np.nan, share)
    return values


class Applicability:
    """Which queries a measure is about."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._labelled: npt.NDArray[np.bool_] | None = None
        if "n_relevant" in frame:
            self._labelled = np.nan_to_num(as_floats(frame["n_relevant"])) > 0
        self._expected = np.ones(len(frame), dtype=bool)
        if "expected_answer" in frame:
            self._expected = frame["expected_answer"].notna().to_numpy(dtype=bool)

    def of(self, measure: str, a: Floats, b: Floats) -> npt.NDArray[np.bool_] | None:
        """Return a mask of the queries that `measure` is about, None for all of them."""
        if measure.startswith(RETRIEVAL):
            return self._labelled
        if measure == "answer_correct":
            return np.asarray(self._expected | ~np.isnan(a) | ~np.isnan(b))
        return None


def pair_evidence(
    a: Mapping[str, Floats],
    b: Mapping[str, Floats],
    about: Applicability,
    labels: Labels | None,
    plan: Plan,
    *,
    k: int,
) -> list[Evidence]:
    """Return undecided evidence of every measure that either side has.

    The order is the one people read: what decides, the pass rate, the other measures, times, and
    the share of each cause that occurred.
    """
    primary = [name.format(k=k) for name in PRIMARY]
    rest = [name.format(k=k) for name in EXPLORATORY]
    causes = [name for name in a if name not in (*primary, "passed", *rest, LATENCY)]
    found = []
    for name in (*primary, "passed", *rest, LATENCY, *causes):
        if name not in a or name not in b or (np.isnan(a[name]).all() and np.isnan(b[name]).all()):
            continue
        if name in causes and not (np.nansum(a[name]) or np.nansum(b[name])):
            continue
        if name == LATENCY:
            found.append(
                examine_latency(MEDIAN_LATENCY, a[name], b[name], clusters=labels, plan=plan)
            )
            continue
        family: Family = "primary" if name in primary else "exploratory"
        found.append(
            examine(
                name,
                a[name],
                b[name],
                clusters=labels,
                applicable=about.of(name, a[name], b[name]),
                family=family,
                higher_is_better=name not in causes,
                plan=plan,
            )
        )
    return found


def cluster_labels(clusters: npt.ArrayLike) -> Labels:
    """Return labels as 0 ... m - 1; every missing one is a cluster of its own."""
    series = pd.Series(clusters)
    codes = pd.factorize(series, sort=False)[0].astype(np.int64)
    alone = codes < 0
    codes[alone] = codes.max(initial=-1) + 1 + np.arange(int(alone.sum()))
    return codes
