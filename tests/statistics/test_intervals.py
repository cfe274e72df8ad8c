"""Intervals against published values, exact coverage, and what they must never do."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import gammaln, ndtri, stdtrit

from ragdiag.intervals import paired_mean, paired_ratio, percentile_interval, wilson_interval

DIFFERENCES = st.lists(
    st.sampled_from([-1.0, -0.5, -1 / 3, 0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=30
)


def trinomial(wins: int, losses: int, n: int):
    return np.repeat([1.0, -1.0, 0.0], [wins, losses, n - wins - losses])


def tango(wins: int, losses: int, n: int, critical: float) -> tuple[float, float]:
    """Tango's interval from his own closed form of the restricted estimate."""

    def score(delta: float) -> float:
        b = -wins - losses + (2 * n - wins + losses) * delta
        c = -losses * delta * (1 - delta)
        q = (math.sqrt(b * b - 8 * n * c) - b) / (4 * n)
        return (wins - losses - n * delta) / math.sqrt(n * (2 * q + delta * (1 - delta)))

    centre = (wins - losses) / n
    return (
        brentq(lambda x: score(x) - critical, -1 + 1e-9, centre - 1e-9),
        brentq(lambda x: score(x) + critical, centre + 1e-9, 1 - 1e-9),
    )


@pytest.mark.parametrize(("wins", "losses", "n"), [(8, 3, 40), (1, 0, 10), (10, 7, 100), (3, 3, 9)])
def test_pass_fail_is_tango_with_students_quantile(wins, losses, n):
    found = paired_mean(trinomial(wins, losses, n))
    expected = tango(wins, losses, n, float(stdtrit(n - 1, 0.975)))
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("n", [5, 10, 20, 40])
def test_pass_fail_covers_at_least_93_percent_everywhere(n):
    """Exact coverage over all outcomes, for many true differences and shares of discordance."""
    outcomes = [(b, c) for b in range(n + 1) for c in range(n + 1 - b)]
    found = [paired_mean(trinomial(b, c, n)) for b, c in outcomes]
    low, high = np.array([(each.low, each.high) for each in found]).T
    b, c = np.array(outcomes, dtype=float).T
    ways = gammaln(n + 1) - gammaln(b + 1) - gammaln(c + 1) - gammaln(n - b - c + 1)
    for moment in (0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.9):
        for share in (0.5, 0.6, 0.75, 0.9, 1 - 1e-9):
            win, loss = moment * share, moment * (1 - share)
            chance = np.exp(
                ways + b * math.log(win) + c * math.log(loss) + (n - b - c) * math.log(1 - moment)
            )
            held = (low <= win - loss + 1e-12) & (win - loss <= high + 1e-12)
            assert chance[held].sum() >= 0.93, (moment, share)


@given(DIFFERENCES)
def test_swapping_mirrors_exactly_and_order_never_matters(differences):
    there, back = paired_mean(differences), paired_mean([-d for d in differences])
    assert (back.low, back.high) == (-there.high, -there.low)
    assert back.mean == -there.mean
    assert back.p_equivalence == there.p_equivalence
    # By their text, since a missing value does not equal itself.
    assert str(paired_mean(sorted(differences))) == str(paired_mean(differences))


@given(DIFFERENCES)
def test_intervals_hold_the_mean_and_stay_in_range(differences):
    found = paired_mean(differences, tolerance=0.05)
    assert -1.0 <= found.low <= found.mean <= found.high <= 1.0
    assert 0.0 <= found.p_equivalence <= 1.0


def test_ties_alone_prove_nothing():
    five = paired_mean([0.0] * 5, tolerance=0.02)
    assert five.low == pytest.approx(-five.high)
    assert five.high > 0.5
    assert five.p_equivalence > 0.05
    many = paired_mean([0.0] * 500, tolerance=0.02)
    assert many.p_equivalence < 0.05
    assert math.isnan(five.effect_size)


def test_equivalence_agrees_with_the_interval_of_90_percent():
    rng = np.random.default_rng(0)
    for n in (10, 60, 400):
        d = rng.choice([-0.5, 0.0, 0.5], p=[0.05, 0.9, 0.05], size=n)
        narrow = paired_mean(d, confidence=0.90)
        for tolerance in (0.01, 0.03, 0.1, 0.3):
            inside = -tolerance <= narrow.low and narrow.high <= tolerance
            assert (paired_mean(d, tolerance=tolerance).p_equivalence <= 0.05) == inside


def test_a_tolerance_at_or_beyond_the_mean_is_no_fault():
    assert paired_mean([0.5, 0.5], tolerance=0.5).p_equivalence >= 0.5
    assert paired_mean([1.0, 1.0], tolerance=0.02).p_equivalence > 0.5
    assert paired_mean([1.0, 1.0]).high == 1.0
    assert paired_mean([0.1], tolerance=2.0).p_equivalence < 0.5
    assert math.isnan(paired_mean([0.5]).sd)


def test_large_samples_give_the_t_interval():
    d = np.random.default_rng(4).normal(0.05, 0.2, size=20_000).clip(-1, 1)
    found = paired_mean(d)
    half = 1.96 * d.std(ddof=1) / math.sqrt(len(d))
    assert (found.low, found.high) == pytest.approx((d.mean() - half, d.mean() + half), abs=2e-5)
    assert found.effect_size == pytest.approx(d.mean() / d.std(ddof=1))


def test_clusters_widen_the_interval():
    rng = np.random.default_rng(1)
    base = np.repeat(rng.choice([-1.0, 0.0, 0.0, 1.0], size=40), 5)
    clusters = np.repeat(np.arange(40), 5)
    alone, grouped = paired_mean(base), paired_mean(base, clusters)
    assert grouped.design_effect == pytest.approx(5.0, rel=0.05)
    assert grouped.n_units == 40
    assert grouped.high - grouped.low > 2 * (alone.high - alone.low)
    # Clusters that cancel out are not rewarded: an interval never gets narrower.
    assert paired_mean([1.0, -1.0] * 10, np.repeat(np.arange(10), 2)).design_effect == 1.0
    # Without any variation, as many facts as clusters.
    assert paired_mean([0.0] * 20, np.repeat(np.arange(4), 5)).design_effect == 5.0


# -- rates and percentiles -----------------------------------------------------------------------
def test_wilson_equals_statsmodels():
    # statsmodels 0.15: proportion_confint(15, 40, method="wilson")
    found = wilson_interval(15, 40)
    assert (found.low, found.high) == pytest.approx((0.2422297916723327, 0.529675608626989))
    assert (wilson_interval(0, 5).low, wilson_interval(5, 5).high) == (0.0, 1.0)
    assert math.isnan(wilson_interval(0, 0).value)


def test_the_median_lies_between_known_order_statistics():
    # Conover, Practical Nonparametric Statistics: n = 10 gives the 2nd and 9th value (97.9 %).
    found = percentile_interval([7, 1, 3, 9, 5, 2, 10, 8, 4, 6], 50)
    assert (found.low, found.high) == (2.0, 9.0)


def test_a_bound_outside_the_sample_is_missing():
    few = percentile_interval(np.arange(1, 60), 95)
    assert math.isnan(few.high)
    assert not math.isnan(few.low)
    many = percentile_interval(np.arange(1, 201), 95)
    assert many.low < many.value < many.high
    assert math.isnan(percentile_interval(np.arange(5), 50).low)


@pytest.mark.parametrize(("percentile", "least"), [(50, 1), (95, 20), (99, 100)])
def test_percentiles_need_their_queries(percentile, least):
    assert math.isnan(percentile_interval(np.arange(least - 1), percentile).value)
    assert not math.isnan(percentile_interval(np.arange(least), percentile).value)


def test_percentile_intervals_cover():
    rng = np.random.default_rng(0)
    for n, percentile in ((15, 50), (120, 95), (500, 99)):
        truth = math.exp(float(ndtri(percentile / 100)))
        held = 0
        for _ in range(400):
            found = percentile_interval(rng.lognormal(size=n), percentile)
            low = -math.inf if math.isnan(found.low) else found.low
            high = math.inf if math.isnan(found.high) else found.high
            held += low <= truth <= high
        assert held / 400 >= 0.93


def test_percentiles_of_clusters_are_wider():
    rng = np.random.default_rng(0)
    values = np.repeat(rng.lognormal(size=30), 4)
    alone = percentile_interval(values, 50)
    grouped = percentile_interval(values, 50, np.repeat(np.arange(30), 4))
    assert grouped.low <= alone.low
    assert grouped.high >= alone.high
    assert math.isnan(percentile_interval(values[:8], 50, [0, 0, 0, 0, 1, 1, 1, 1]).low)


def test_ratios_of_times():
    found = paired_ratio([10.0] * 8, [12.0] * 7 + [5.0])
    assert found.ratio.value == pytest.approx(1.2)
    assert (found.slower, found.equal, found.faster) == (7, 0, 1)
    assert found.p_value == pytest.approx(0.0703125)
    assert found.smallest_p == 2**-7


def test_ratios_of_zero_times():
    both = paired_ratio([0.0, 0.0], [0.0, 0.0])
    assert (both.ratio.value, both.p_value, both.equal) == (1.0, 1.0, 2)
    assert paired_ratio([0.0, 0.0], [1.0, 1.0]).ratio.value == math.inf


def test_ratios_of_clusters_are_flipped_whole():
    found = paired_ratio([1.0] * 12, [2.0] * 12, np.repeat(np.arange(3), 4))
    assert found.p_value == 0.25
