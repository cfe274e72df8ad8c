"""Means, rates, percentiles and counts: the only place that averages.

A number over many queries is never alone: it carries how many queries it rests on (``n_used``), how
many have no value because the pipeline failed (``n_failed``) and how many for another reason
(``n_missing``: no label, no verdict, not run). The mean over nothing is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

__all__ = [
    "LatencyStats",
    "Mean",
    "as_floats",
    "category_counts",
    "grouped_mean",
    "grouped_percentile",
    "latency",
    "mean",
    "rate",
    "summary_table",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: The percentiles of a latency, in per cent.
LATENCY_PERCENTILES = (50.0, 95.0, 99.0)


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean and what it rests on; ``n_used + n_failed + n_missing`` is the number of queries.

    Attributes
    ----------
    value : float or None
        None where there was nothing to average.
    n_used, n_failed, n_missing : int
        Queries with a value; without one since the pipeline failed; without one otherwise.
    """

    value: float | None
    n_used: int
    n_failed: int
    n_missing: int


@dataclass(frozen=True, slots=True)
class LatencyStats:
    """What is known of one stage's milliseconds; all None when ``count`` is 0.

    Percentiles interpolate linearly between the two nearest values (numpy's default, method 7 of
    Hyndman and Fan 1996).
    """

    count: int
    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    min_ms: float | None
    max_ms: float | None


def as_floats(values: Any) -> Floats:
    """Return numbers or nullable booleans as ``float64``, NaN where missing.

    Examples
    --------
    >>> as_floats(pd.array([True, None, False], dtype="boolean"))
    array([ 1., nan,  0.])
    """
    if isinstance(values, pd.Series | pd.Index):
        values = values.array
    if isinstance(values, pd.api.extensions.ExtensionArray):
        return np.asarray(values.to_numpy(dtype="float64", na_value=np.nan))
    return np.asarray(values, dtype=np.float64)


def mean(values: Any, failed: Any = None) -> Mean:
    """Return the mean of `values`, missing ones left out and counted.

    The sum is exact (``math.fsum``), so that the order of the queries cannot change the result.

    Parameters
    ----------
    values : array-like of float or nullable boolean, shape (n,)
        One value a query.
    failed : array-like of bool, shape (n,), optional
        Where the pipeline failed.

    Examples
    --------
    >>> mean([1.0, 0.5, float("nan"), float("nan")], failed=[False, False, True, False])
    Mean(value=0.75, n_used=2, n_failed=1, n_missing=1)
    >>> mean([]).value is None
    True
    """
    numbers = as_floats(values)
    absent = np.isnan(numbers)
    n_failed = 0 if failed is None else int((absent & np.asarray(failed, dtype=bool)).sum())
    used = numbers[~absent]
    value = math.fsum(used) / used.size if used.size else None
    return Mean(value, used.size, n_failed, numbers.size - used.size - n_failed)


def rate(values: Any, failed: Any = None) -> Mean:
    """Return the share of True among the True and False; missing ones left out and counted.

    Examples
    --------
    >>> rate(pd.array([True, False, True, None], dtype="boolean"))
    Mean(value=0.6666666666666666, n_used=3, n_failed=0, n_missing=1)
    """
    return mean(values, failed)


def latency(values: Any) -> LatencyStats:
    """Return count, mean, percentiles and range of `values`, missing ones left out.

    Parameters
    ----------
    values : array-like of float, shape (n,)
        Milliseconds.

    Examples
    --------
    >>> latency([10.0, 20.0, 30.0, float("nan")]).p50_ms
    20.0
    >>> latency([]).mean_ms is None
    True
    """
    numbers = as_floats(values)
    used = numbers[~np.isnan(numbers)]
    if not used.size:
        return LatencyStats(0, None, None, None, None, None, None)
    p50, p95, p99 = np.percentile(used, LATENCY_PERCENTILES).tolist()
    return LatencyStats(
        count=used.size,
        mean_ms=math.fsum(used) / used.size,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        min_ms=float(used.min()),
        max_ms=float(used.max()),
    )


def grouped_mean(values: Any, groups: Ints, n_groups: int) -> tuple[Floats, Ints]:
    """Return the mean of `values` in each group, and how many values it rests on.

    Parameters
    ----------
    values : array-like of float or nullable boolean, shape (n,)
        One value a query, missing ones left out.
    groups : numpy.ndarray of int, shape (n,)
        Group of each query, ``0 ... n_groups - 1``.
    n_groups : int
        Number of groups.

    Returns
    -------
    means : numpy.ndarray of float, shape (n_groups,)
        NaN where a group has no value.
    counts : numpy.ndarray of int, shape (n_groups,)

    Examples
    --------
    >>> grouped_mean([1.0, 0.0, float("nan")], np.array([0, 0, 1]), 2)
    (array([0.5, nan]), array([2, 0]))
    """
    numbers = as_floats(values)
    present = ~np.isnan(numbers)
    counts = np.bincount(groups[present], minlength=n_groups)
    sums = np.bincount(groups[present], weights=numbers[present], minlength=n_groups)
    means = np.divide(sums, counts, out=np.full(n_groups, np.nan), where=counts > 0)
    return means, counts


def grouped_percentile(values: Any, groups: Ints, n_groups: int, percent: float) -> Floats:
    """Return the percentile of `values` in each group, NaN where a group has no value.

    Examples
    --------
    >>> grouped_percentile([1.0, 3.0, 9.0], np.array([0, 0, 1]), 2, 50.0)
    array([2., 9.])
    """
    numbers = as_floats(values)
    present = ~np.isnan(numbers)
    numbers, groups = numbers[present], groups[present]
    order = np.lexsort((numbers, groups))
    numbers = numbers[order]
    counts = np.bincount(groups, minlength=n_groups)
    starts = np.cumsum(counts) - counts
    result = np.full(n_groups, np.nan)
    filled = counts > 0
    place = (counts[filled] - 1) * (percent / 100.0)
    low = np.floor(place).astype(np.int64)
    lower = numbers[starts[filled] + low]
    upper = numbers[starts[filled] + np.minimum(low + 1, counts[filled] - 1)]
    result[filled] = lower + (upper - lower) * (place - low)
    return result


def category_counts(
    codes: Ints, n_categories: int, groups: Ints | None = None, n_groups: int = 1
) -> Ints:
    """Return how many queries have each category, in each group.

    Parameters
    ----------
    codes : numpy.ndarray of int, shape (n,)
        Category of each query, -1 where it is missing: not counted.
    n_categories : int
        Number of categories.
    groups : numpy.ndarray of int, shape (n,), optional
        Group of each query; all are one group without it.
    n_groups : int
        Number of groups.

    Returns
    -------
    numpy.ndarray of int, shape (n_groups, n_categories)

    Examples
    --------
    >>> category_counts(np.array([0, 2, 0, -1]), 3)
    array([[2, 0, 1]])
    """
    known = codes >= 0
    flat = codes[known].astype(np.int64)
    if groups is not None:
        flat = flat + groups[known] * n_categories
    return np.bincount(flat, minlength=n_groups * n_categories).reshape(n_groups, n_categories)


def summary_table(means: Mapping[str, Mean]) -> pd.DataFrame:
    """Return named means as a table: ``measure, value, n_used, n_failed, n_missing``.

    Examples
    --------
    >>> float(summary_table({"recall_at_5": mean([1.0, 0.0])}).loc[0, "value"])
    0.5
    """
    return pd.DataFrame(
        {
            "measure": pd.Series(list(means), dtype=pd.StringDtype("pyarrow")),
            "value": np.array([_nan(each.value) for each in means.values()], dtype=np.float64),
            "n_used": np.array([each.n_used for each in means.values()], dtype=np.int64),
            "n_failed": np.array([each.n_failed for each in means.values()], dtype=np.int64),
            "n_missing": np.array([each.n_missing for each in means.values()], dtype=np.int64),
        }
    )


def _nan(value: float | None) -> float:
    return math.nan if value is None else value
