"""How many queries a difference needs, and what difference a number of queries can show.

A plan is made for the difference one *wants* to see, never for the one that was observed: a plan
made from the observed difference only restates its p-value (Hoenig & Heisey 2001). What may be
taken from data is how much the two pipelines disagree at all.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ragdiag.errors import SettingsError

Floats = NDArray[np.float64]

__all__ = ["detectable_difference", "paired_power", "planning_moment", "sample_size"]

#: Share of queries on which two pipelines are assumed to disagree when nothing is known.
DISCORDANCE = 0.2
#: Beyond this the answer is "more than anyone will ask".
MOST_QUERIES = 10_000_000
#: Above this many queries :func:`sample_size` is a closed form: "about 900" is all one needs.
CLOSED_FORM_FROM = 300
#: What exactness costs a pass / fail test, in queries times `delta`.
EXACTNESS = 2.0
#: From so many queries on the normal approximation serves for pass / fail, too.
EXACT_BELOW = 5_000


def sample_size(
    delta: float = 0.05,
    *,
    discordance: float = DISCORDANCE,
    power: float = 0.8,
    alpha: float = 0.05,
    measures: int = 1,
) -> int:
    """Return about how many queries two pipelines must answer to show a difference of `delta`.

    Parameters
    ----------
    delta : float
        The smallest difference worth showing, in (0, 1]: 0.05 is five points.
    discordance : float
        Share of queries on which the two disagree; for graded measures the mean squared
        difference. It cannot be below `delta` and is raised to it.
    power : float
        Chance of showing a true difference of `delta`.
    alpha : float
        Level of the test.
    measures : int
        Size of the family of measures that share `alpha`.

    Returns
    -------
    int
        Queries that both pipelines must have answered.

    Raises
    ------
    SettingsError
        If a value is outside its range.

    See Also
    --------
    detectable_difference : the inverse.

    Examples
    --------
    >>> sample_size(0.10)
    168
    >>> sample_size(0.02) > 3_900
    True
    """
    _check(delta, discordance, power, alpha, measures)
    return _sample_size(delta, round(max(discordance, delta), 4), power, alpha / measures)


@lru_cache(maxsize=1024)
def _sample_size(delta: float, moment: float, power: float, alpha: float) -> int:
    def enough(n: int) -> bool:
        return paired_power(n, delta, moment, alpha=alpha) >= power

    low, high = 1, _rough_sample_size(delta, moment, power, alpha)
    if high > CLOSED_FORM_FROM:
        return high + math.ceil(EXACTNESS / delta)
    while not enough(high):
        if high >= MOST_QUERIES:
            return MOST_QUERIES
        low, high = high, math.ceil(1.1 * high) + 1
    if low == 1 and high > 20 and not enough(int(0.9 * high)):
        low = int(0.9 * high)
    while high - low > max(1, high // 500):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _rough_sample_size(delta: float, moment: float, power: float, alpha: float) -> int:
    """Return the answer of the normal approximation (Miettinen 1968), where the search begins."""
    from scipy.special import ndtri

    quantiles = -float(ndtri(alpha / 2)) * math.sqrt(moment)
    quantiles += float(ndtri(power)) * math.sqrt(max(moment - delta * delta, 0.0))
    return min(MOST_QUERIES, max(2, math.ceil((quantiles / delta) ** 2)))


def detectable_difference(
    n: int,
    *,
    discordance: float = DISCORDANCE,
    power: float = 0.8,
    alpha: float = 0.05,
    measures: int = 1,
) -> float:
    """Return the smallest true difference that `n` queries show with the chance `power`.

    Parameters
    ----------
    n : int
        Queries both pipelines answered.
    discordance, power, alpha, measures
        As for :func:`sample_size`.

    Returns
    -------
    float
        NaN if even the largest difference could not be shown.

    Examples
    --------
    >>> round(detectable_difference(200), 2)
    0.09
    >>> detectable_difference(5)
    nan
    """
    _check(0.5, discordance, power, alpha, measures)
    level = alpha / measures

    def shown(delta: float) -> bool:
        return paired_power(n, delta, discordance, alpha=level) >= power

    low, high = 0.0, 1.0
    if n < 2 or not shown(high):
        return math.nan
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high


def paired_power(
    n: int,
    delta: float,
    discordance: float = DISCORDANCE,
    *,
    alpha: float = 0.05,
) -> float:
    """Return the chance that `n` queries show a true mean difference of `delta`.

    Parameters
    ----------
    n : int
        Queries.
    delta : float
        True difference.
    discordance : float
        As for :func:`sample_size`.
    alpha : float
        Level of the two-sided test.

    Returns
    -------
    float

    Notes
    -----
    The power of the exact McNemar test, summed over the number of discordant pairs (what Connor
    1987 approximates), the normal approximation from 5,000 queries on. A graded measure of the
    same mean square differs on more queries and has at least this power.

    Examples
    --------
    >>> round(paired_power(200, 0.1, 0.2), 2)
    0.88
    """
    moment = min(1.0, max(discordance, delta))
    if n > EXACT_BELOW:
        return _power_of_z(n, delta, moment, alpha)
    return _power_of_mcnemar(n, delta, moment, alpha)


def _power_of_z(n: int, delta: float, moment: float, alpha: float) -> float:
    from scipy.special import ndtr, ndtri

    shift = delta * math.sqrt(n / max(moment - delta * delta, 1e-9))
    critical = -float(ndtri(alpha / 2))
    return float(ndtr(shift - critical) + ndtr(-shift - critical))


def _power_of_mcnemar(n: int, delta: float, moment: float, alpha: float) -> float:
    from scipy.special import bdtr, gammaln, ndtri, xlogy

    # Numbers of discordant pairs with a chance worth adding up.
    reach = 8.0 * math.sqrt(n * moment * (1.0 - moment)) + 2.0
    m = np.arange(max(1, math.floor(n * moment - reach)), min(n, math.ceil(n * moment + reach)) + 1)
    ways = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)
    chance = np.exp(ways + xlogy(m, moment) + xlogy(n - m, 1.0 - moment))
    # The largest number of losses that is still significant, from the normal approximation to it;
    # -1 where none is.
    losses = np.floor(m / 2.0 + float(ndtri(alpha / 2)) * np.sqrt(m) / 2.0)
    losses = np.clip(losses, -1.0, None)
    while (wrong := _tail(losses, m) > alpha / 2).any():
        losses = losses - wrong
    while (wrong := _tail(losses + 1.0, m) <= alpha / 2).any():
        losses = losses + wrong
    wins_share = (moment + delta) / (2.0 * moment)
    few = np.maximum(losses, 0.0)
    shown = bdtr(few, m, 1.0 - wins_share) + bdtr(few, m, wins_share)
    return float(np.sum(chance * np.where(losses >= 0, shown, 0.0)))


def _tail(losses: Floats, m: NDArray[np.int64]) -> Floats:
    """Return P(at most `losses` of `m` fair coins), 0 below zero."""
    from scipy.special import bdtr

    at_most = bdtr(np.clip(losses, 0.0, m), m, 0.5)
    return np.asarray(np.where(losses < 0, 0.0, at_most))


def planning_moment(second_moment: float, n: int) -> float:
    """Return the mean squared difference to plan with, from the observed one of `n` queries.

    One differing and one tied query are added: five ties do not mean that no query ever differs.

    Examples
    --------
    >>> planning_moment(0.0, 8)
    0.1
    """
    return (second_moment * n + 1.0) / (n + 2.0)


def _check(delta: float, discordance: float, power: float, alpha: float, measures: int) -> None:
    if not 0.0 < delta <= 1.0:
        raise SettingsError(f"delta must lie in (0, 1], got {delta!r}: 0.05 is five points")
    if not 0.0 <= discordance <= 1.0:
        raise SettingsError(f"discordance must lie in [0, 1], got {discordance!r}")
    for name, value in (("power", power), ("alpha", alpha)):
        if not 0.0 < value < 1.0:
            raise SettingsError(f"{name} must lie between 0 and 1, got {value!r}")
    if measures < 1:
        raise SettingsError(f"measures must be at least 1, got {measures!r}")
