"""Intervals and equivalence for rates, mean differences and latencies; numpy and scipy only.

The interval of a mean difference is a *score* interval: it holds every true mean under which the
observed one is not surprising, and asks for each the variance that the data would have if that
mean were true. For pass / fail it is Tango's interval of a paired difference of proportions; for
graded measures it is the same idea over the observed values. Unlike the t interval it does not
collapse to a point where no query differed: five ties say little about the sixth query.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragdiag.permutation import DECIMALS, cluster_sums, mcnemar_exact, sign_flip_test

__all__ = [
    "Interval",
    "PairedMean",
    "PairedRatio",
    "paired_mean",
    "paired_ratio",
    "percentile_interval",
    "wilson_interval",
]

Floats = NDArray[np.float64]

#: Percentiles need this many values, else they are the extremes under another name.
PERCENTILE_FLOOR = {50.0: 1, 95.0: 20, 99.0: 100}


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its interval; a bound that the data cannot give is NaN.

    Attributes
    ----------
    value, low, high : float
        Estimate and bounds.
    n : int
        Values it rests on.
    """

    value: float
    low: float
    high: float
    n: int


def wilson_interval(passed: int, n: int, *, confidence: float = 0.95) -> Interval:
    """Return a rate with its score interval (Wilson 1927).

    Examples
    --------
    >>> rate = wilson_interval(8, 10)
    >>> round(rate.low, 4), round(rate.high, 4)
    (0.4902, 0.9433)
    """
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0)
    z = _normal_quantile(confidence)
    rate = passed / n
    centre = (passed + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(n * rate * (1 - rate) + z * z / 4)
    return Interval(rate, max(0.0, centre - half), min(1.0, centre + half), n)


@dataclass(frozen=True, slots=True)
class PairedMean:
    """The mean of paired differences, what it may truly be, and how it compares with zero.

    Attributes
    ----------
    mean, low, high : float
        Mean difference and its interval.
    sd : float
        Standard deviation of the differences (n - 1 in the denominator).
    second_moment : float
        Mean of the squared differences; for pass / fail the share of discordant pairs.
    effect_size : float
        Cohen's dz, mean / sd; NaN where nothing varies.
    design_effect : float
        Variance of the mean with clusters over that without; 1.0 without clusters.
    n, n_units : int
        Queries, and independent units (clusters where there are some).
    p_equivalence : float
        The larger p-value of the two one-sided tests that the mean lies within the tolerance.
    """

    mean: float
    low: float
    high: float
    sd: float
    second_moment: float
    effect_size: float
    design_effect: float
    n: int
    n_units: int
    p_equivalence: float


def paired_mean(
    differences: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    tolerance: float = 0.0,
    confidence: float = 0.95,
    limit: float = 1.0,
) -> PairedMean:
    """Return the mean of paired differences with a score interval and an equivalence test.

    Parameters
    ----------
    differences : array_like of float, shape (n,), n >= 1
        B minus A, one a query, each in [-limit, limit]; no NaN.
    clusters : array_like, shape (n,), optional
        Labels of queries that belong together; the interval widens by the design effect.
    tolerance : float
        Half-width of the zone that counts as no difference; 0 makes ``p_equivalence`` 1.0.
    confidence : float
        Of the interval.
    limit : float
        The largest difference there can be: 1 for measures in [0, 1].

    Returns
    -------
    PairedMean

    Notes
    -----
    For each candidate mean the values are re-weighted as little as possible (empirical
    likelihood, Owen 1988), with room for differences that did not occur (up to the limit where
    nothing differs, down to the largest one seen where many do), and the score
    (d - mean) / sqrt(variance / n) is compared with Student's t of n - 1 degrees of freedom. On
    differences of -1, 0 and 1 this is Tango (1998), who has the normal quantile: at n < 50 that
    covers as little as 92 %. Equivalence is by two one-sided tests (Schuirmann 1987) with the
    same score.

    Examples
    --------
    >>> ties = paired_mean([0.0] * 5)
    >>> round(ties.low, 2), ties.mean, round(ties.high, 2)
    (-0.61, 0.0, 0.61)
    """
    d = np.asarray(differences, dtype=np.float64)
    n = len(d)
    mean = math.fsum(d) / n
    centred = np.sort(np.abs(d - mean))
    sd = math.sqrt(float(centred @ centred) / (n - 1)) if n > 1 else math.nan
    second = float(np.sum(np.sort(np.abs(d)) ** 2)) / n
    design, units = _design_effect(d, mean, clusters)
    reach = _reach(d, limit)
    curve = _ScoreCurve(d / reach, n / design)
    critical = _critical(confidence, units)
    p_equivalence = 1.0
    if tolerance > 0.0:
        # Evidence against "B is better by the tolerance or more", and against the mirror image.
        below, above = curve.score(tolerance / reach), curve.mirrored().score(tolerance / reach)
        p_equivalence = max(
            _upper_tail(below, units),
            _upper_tail(above, units),
        )
    return PairedMean(
        mean=mean,
        low=-curve.mirrored().upper(critical) * reach,
        high=curve.upper(critical) * reach,
        sd=sd,
        second_moment=second,
        effect_size=mean / sd if n > 1 and sd > 0.0 else math.nan,
        design_effect=design,
        n=n,
        n_units=units,
        p_equivalence=p_equivalence,
    )


def _reach(d: Floats, limit: float) -> float:
    """Return the largest difference to reckon with: the more differ, the nearer to those seen."""
    largest = float(np.abs(d).max())
    return largest + (limit - largest) / (1.0 + int(np.count_nonzero(d)))


def _design_effect(d: Floats, mean: float, clusters: ArrayLike | None) -> tuple[float, int]:
    """Return how much clusters inflate the variance of the mean, at least 1, and their number."""
    n = len(d)
    if clusters is None:
        return 1.0, n
    sums = np.sort(np.abs(cluster_sums(d - mean, clusters)))
    units = len(sums)
    plain = np.sort(np.abs(d - mean))
    total = float(plain @ plain)
    # Without variation nothing tells how alike the queries of a cluster are: take them as one.
    if total == 0.0 or units < 2:
        return n / units, units
    return max(1.0, float(sums @ sums) * units / (units - 1) / total), units


class _ScoreCurve:
    """The least re-weighted distributions of some differences, from their own mean upwards.

    Weights proportional to 1 / (1 - t x) for t in [0, 1) move the mean up; at t = 1 the value 1
    could not be weighted up further, and if it was not observed it takes over the mass t - 1
    (t up to 2). Every quantity is a closed form in t.
    """

    def __init__(self, x: Floats, n: float) -> None:
        self._values, self._counts = np.unique(np.round(x, DECIMALS + 2), return_counts=True)
        self._n = n
        self._mean = math.fsum(self._values * self._counts) / len(x)
        self._end = 1.0 - 1e-12 if self._values[-1] >= 1.0 else 2.0

    def mirrored(self) -> _ScoreCurve:
        """Return the curve of the negated differences."""
        other = object.__new__(_ScoreCurve)
        other._values, other._counts = -self._values[::-1], self._counts[::-1]
        other._n, other._mean = self._n, -self._mean
        other._end = 1.0 - 1e-12 if other._values[-1] >= 1.0 else 2.0
        return other

    def _moments(self, t: float) -> tuple[float, float]:
        """Return mean and variance at `t`."""
        weights = self._counts / (1.0 - min(t, 1.0) * self._values)
        total = weights.sum()
        first = float(weights @ self._values / total)
        second = float(weights @ (self._values * self._values) / total)
        extra = max(0.0, t - 1.0)
        first += extra * (1.0 - first)
        second += extra * (1.0 - second)
        return float(first), max(0.0, float(second - first * first))

    def _score_at(self, t: float) -> float:
        mean, variance = self._moments(t)
        away = mean - self._mean
        if away <= 0.0:
            return 0.0
        return math.sqrt(self._n) * away / math.sqrt(variance) if variance > 0.0 else math.inf

    def upper(self, critical: float) -> float:
        """Return the mean at which the score reaches `critical`: the upper bound."""
        if self._mean >= 1.0:
            return 1.0
        t = _root(lambda u: min(self._score_at(u), 1e6) - critical, 0.0, self._end)
        return self._moments(t)[0]

    def score(self, target: float) -> float:
        """Return how many standard errors the observed mean lies below `target`."""
        if target <= self._mean:
            return -math.inf if target < self._mean else 0.0
        if target >= 1.0:
            return math.inf
        t = _root(lambda u: self._moments(u)[0] - target, 0.0, self._end)
        return self._score_at(t)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a rising `function` crosses 0; an end where it does not within rounding."""
    from scipy.optimize import brentq

    if function(low) >= 0.0:
        return low
    return float(brentq(function, low, high, xtol=1e-13)) if function(high) > 0.0 else high


def _normal_quantile(confidence: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + confidence / 2))


def _critical(confidence: float, units: int) -> float:
    """Return the two-sided critical value of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(max(1, units - 1), 0.5 + confidence / 2))


def _upper_tail(score: float, units: int) -> float:
    from scipy.special import stdtr

    return float(stdtr(max(1, units - 1), -score))


def percentile_interval(
    values: ArrayLike,
    percentile: float,
    clusters: ArrayLike | None = None,
    *,
    confidence: float = 0.95,
) -> Interval:
    """Return a percentile with an interval from order statistics.

    Parameters
    ----------
    values : array_like of float, shape (n,)
        No NaN.
    percentile : float
        In (0, 100).
    clusters : array_like, shape (n,), optional
        Labels of values that belong together; the interval then is Woodruff's (1952), with the
        variance of the share of values below the percentile taken between clusters.
    confidence : float
        Of the interval.

    Returns
    -------
    Interval
        NaN for the value where there are too few (p95 from 20, p99 from 100 values on), NaN for a
        bound that lies outside the sample: 59 values cannot bound a 95th percentile from above.

    Notes
    -----
    Exact for independent values of any distribution (David & Nagaraja, *Order Statistics*, 7.1).

    Examples
    --------
    >>> percentile_interval(range(1, 11), 50)
    Interval(value=5.5, low=2.0, high=9.0, n=10)
    """
    x = np.sort(np.asarray(values, dtype=np.float64))
    n = len(x)
    if n == 0 or n < PERCENTILE_FLOOR.get(percentile, 1):
        return Interval(math.nan, math.nan, math.nan, n)
    share = percentile / 100.0
    with np.errstate(invalid="ignore"):
        value = float(np.percentile(x, percentile))
    if math.isnan(value):  # between two infinite ratios
        value = float(np.percentile(x, percentile, method="lower"))
    if clusters is None:
        low, high = _order_statistics(n, share, (1.0 - confidence) / 2)
    else:
        below = (np.asarray(values, dtype=np.float64) <= value).astype(np.float64)
        sums = cluster_sums(below - share, clusters)
        units = len(sums)
        error = math.sqrt(float(sums @ sums) * units / max(1, units - 1)) / n
        # Never narrower than independent values would be.
        error = max(error, math.sqrt(share * (1 - share) / n))
        half = _critical(confidence, units) * error
        low, high = math.floor(n * (share - half)), math.ceil(n * (share + half)) + 1
    return Interval(
        value,
        float(x[low - 1]) if low >= 1 else math.nan,
        float(x[high - 1]) if high <= n else math.nan,
        n,
    )


def _order_statistics(n: int, share: float, tail: float) -> tuple[int, int]:
    """Return the ranks (1-based) whose values bound a quantile; 0 or n + 1 where none does."""
    from scipy.special import bdtr

    # Only ranks within ten standard deviations can matter.
    reach = 10.0 * math.sqrt(n * share * (1 - share)) + 10.0
    first = max(0, math.floor(n * share - reach))
    ranks = np.arange(first, min(n, math.ceil(n * share + reach)) + 1)
    below = bdtr(ranks.astype(np.float64), n, share)  # P(at most `rank` values lie below)
    fits = np.flatnonzero(below <= tail)
    low = int(ranks[fits[-1]]) + 1 if len(fits) else 0
    high = int(ranks[np.flatnonzero(below >= 1.0 - tail)[0]]) + 1
    return low, high


@dataclass(frozen=True, slots=True)
class PairedRatio:
    """How the times of two pipelines compare, query by query.

    Attributes
    ----------
    ratio : Interval
        Median of B / A; above 1 means that B is slower.
    p_value, smallest_p : float
        Exact sign test that the median ratio is 1, and the smallest p it could have reached.
    slower, equal, faster : int
        Queries on which B was.
    """

    ratio: Interval
    p_value: float
    smallest_p: float
    slower: int
    equal: int
    faster: int


def paired_ratio(
    a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None = None, *, confidence: float = 0.95
) -> PairedRatio:
    """Return the median ratio of paired times with its interval and an exact test.

    Parameters
    ----------
    a, b : array_like of float, shape (n,), n >= 1
        Milliseconds, at least 0; no NaN.
    clusters : array_like, shape (n,), optional
        Labels of queries that belong together.
    confidence : float
        Of the interval.

    Returns
    -------
    PairedRatio

    Notes
    -----
    The median and the sign test shrug off the odd slow call that would move a mean.

    Examples
    --------
    >>> paired_ratio([10, 20, 30, 40, 50, 60], [20, 40, 60, 80, 100, 120]).ratio.value
    2.0
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = second / first
    ratios[(first == 0.0) & (second == 0.0)] = 1.0
    signs = np.sign(second - first)
    slower, faster = int((signs > 0).sum()), int((signs < 0).sum())
    if clusters is None:
        p, smallest = mcnemar_exact(slower, faster), min(1.0, math.ldexp(2.0, -slower - faster))
    else:
        test = sign_flip_test(signs, clusters)
        p, smallest = test.p_value, test.smallest_p
    ratio = percentile_interval(ratios, 50.0, clusters, confidence=confidence)
    return PairedRatio(ratio, p, smallest, slower, len(signs) - slower - faster, faster)
