"""Other looks at paired queries: slices of the dataset, moves between categories, times."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag.aggregates import as_floats
from ragdiag.contrasts import LATENCY, Applicability, cluster_labels, measure_values, pair_evidence
from ragdiag.inference import Inference
from ragdiag.intervals import PERCENTILE_FLOOR, percentile_interval
from ragdiag.permutation import MarginalHomogeneity, marginal_homogeneity
from ragdiag.statistics import Evidence, Plan, decide
from ragdiag.tables import TEXT
from ragdiag.taxonomy import FailureCategory

__all__ = ["homogeneity", "latency_percentiles", "slice_evidence"]


def slice_evidence(
    a: pd.DataFrame,
    b: pd.DataFrame,
    groups: pd.Series,
    *,
    k: int,
    clusters: npt.ArrayLike | None = None,
    plan: Plan = Plan(),  # noqa: B008 - frozen
) -> pd.DataFrame:
    """Return the evidence for each value of a column; exploratory, all cells corrected together.

    Parameters
    ----------
    a, b : pandas.DataFrame, each of n rows
        Frames of either pipeline, the same query in the same row.
    groups : pandas.Series, length n
        Value of each query; queries without one are left out.
    k, clusters, plan
        As for :func:`infer`.

    Returns
    -------
    pandas.DataFrame
        ``slice`` and ``n_queries``, then the columns of :attr:`Inference.table`.
        Slices are many looks at the same data: a "better" here is a hint to follow up, whatever
        its p-value, and so every row's family is ``exploratory``.
    """
    labels = None if clusters is None else cluster_labels(clusters)
    values = [measure_values(frame, k, [FailureCategory.PASS.value]) for frame in (a, b)]
    codes, levels = pd.factorize(groups, sort=True)
    found: list[Evidence] = []
    owners: list[int] = []
    for code in range(len(levels)):
        mask = codes == code
        cut_a, cut_b = ({name: each[mask] for name, each in side.items()} for side in values)
        rows = pair_evidence(
            cut_a,
            cut_b,
            Applicability(a.loc[mask]),
            None if labels is None else labels[mask],
            plan,
            k=k,
        )
        rows = [row for row in rows if row.family == "primary" or row.measure == "passed"]
        found += [dataclasses.replace(row, family="exploratory") for row in rows]
        owners += [code] * len(rows)
    table = Inference(
        ("a", "b"), ((0, 1),), (decide(found, plan),), (), plan, len(a), 0
    ).table.drop(columns=["pipeline", "against"])
    table.insert(0, "slice", [levels[code] for code in owners])
    table.insert(1, "n_queries", [int((codes == code).sum()) for code in owners])
    return table


def homogeneity(
    a: pd.Series,
    b: pd.Series,
    clusters: npt.ArrayLike | None = None,
    *,
    plan: Plan = Plan(),  # noqa: B008
) -> MarginalHomogeneity:
    """Test whether two pipelines have the same shares of categories.

    Parameters
    ----------
    a, b : pandas.Series
        Category of each query; queries without one on either side are left out.
    clusters : array_like, optional
        As for :func:`infer`.
    plan : Plan
        Draws and seed.
    """
    both = (a.notna().to_numpy() & b.notna().to_numpy()).astype(bool)
    merged = pd.concat([a[both].astype(str), b[both].astype(str)], ignore_index=True)
    codes = pd.factorize(merged, sort=True)[0]
    half = int(both.sum())
    labels = None if clusters is None else cluster_labels(clusters)[both]
    return marginal_homogeneity(
        codes[:half], codes[half:], labels, draws=plan.draws, seed=plan.seed
    )


def latency_percentiles(
    frames: Sequence[pd.DataFrame],
    names: Sequence[str],
    *,
    column: str = LATENCY,
    clusters: npt.ArrayLike | None = None,
) -> pd.DataFrame:
    """Return percentiles of a stage's milliseconds with intervals, over the queries all share.

    Parameters
    ----------
    frames, names
        As for :func:`infer`.
    column : str
        ``retrieval_ms``, ``generation_ms`` or ``total_ms``.
    clusters : array_like, optional
        As for :func:`infer`.

    Returns
    -------
    pandas.DataFrame
        ``pipeline, percentile, value, low, high, n``; the value is missing where too few queries
        were timed (95th from 20, 99th from 100 on), a bound where it lies outside the sample.
    """
    times = [as_floats(frame[column]) for frame in frames]
    timed = ~np.any([np.isnan(each) for each in times], axis=0)
    labels = None if clusters is None else cluster_labels(clusters)[timed]
    rows = []
    for name, each in zip(names, times, strict=True):
        for percentile in PERCENTILE_FLOOR:
            found = percentile_interval(each[timed], percentile, labels)
            rows.append(
                {
                    "pipeline": name,
                    "percentile": percentile,
                    "value": found.value,
                    "low": found.low,
                    "high": found.high,
                    "n": found.n,
                }
            )
    return pd.DataFrame(rows).astype({"pipeline": TEXT})
