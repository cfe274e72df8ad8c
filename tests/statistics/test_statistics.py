"""Rows of evidence and their words."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdiag.errors import SettingsError
from ragdiag.permutation import mcnemar_exact
from ragdiag.statistics import Evidence, Plan, decide, examine, examine_latency

NAN = math.nan
VALUES = st.sampled_from([0.0, 0.5, 1.0, NAN])
PAIRS = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=25)
MIRRORED = {"better": "worse", "worse": "better"}


def one(a, b, **options) -> Evidence:
    return decide([examine("m", a, b, **options)], options.get("plan", Plan()))[0]


def binary(wins: int, losses: int, n: int):
    """Return both sides of n queries of which some differ."""
    a = np.repeat([0.0, 1.0, 1.0], [wins, losses, n - wins - losses])
    b = np.repeat([1.0, 0.0, 1.0], [wins, losses, n - wins - losses])
    return a, b


@given(PAIRS)
def test_swapping_mirrors_every_sign_and_verdict(pairs):
    a, b = np.array(pairs).T
    there, back = one(a, b), one(b, a)
    assert back.verdict == MIRRORED.get(there.verdict, there.verdict)
    assert (back.wins, back.losses) == (there.losses, there.wins)
    assert (back.n_missing_a, back.n_missing_b) == (there.n_missing_b, there.n_missing_a)
    if there.n_paired:
        assert back.difference == -there.difference
        assert (back.low, back.high) == (-there.high, -there.low)
        assert (back.bound_low, back.bound_high) == (-there.bound_high, -there.bound_low)
        assert back.p_value == there.p_value
        assert back.p_worst_case == there.p_worst_case
        assert back.direction == -there.direction


@given(PAIRS, st.randoms(use_true_random=False))
def test_order_never_matters(pairs, random):
    shuffled = random.sample(pairs, len(pairs))
    a, b = np.array(pairs).T
    c, d = np.array(shuffled).T
    first, second = one(a, b), one(c, d)
    assert repr(first) == repr(second)  # NaN equals NaN there


@given(PAIRS)
def test_a_winner_is_never_contradicted_by_its_bounds(pairs):
    a, b = np.array(pairs * 4).T
    row = one(a, b)
    if row.verdict == "better":
        assert row.bound_low > 0
    if row.verdict == "worse":
        assert row.bound_high < 0
    if row.n_paired:
        assert row.bound_low <= row.bound_high
        assert row.p_worst_case >= row.p_value


@given(PAIRS)
def test_bounds_hold_whatever_the_missing_values_were(pairs):
    a, b = np.array(pairs).T
    row = examine("m", a, b)
    if not row.n_paired:
        return
    rng = np.random.default_rng(0)
    for _ in range(5):
        full_a = np.where(np.isnan(a), rng.random(len(a)), a)
        full_b = np.where(np.isnan(b), rng.random(len(b)), b)
        assert row.bound_low - 1e-12 <= np.mean(full_b - full_a) <= row.bound_high + 1e-12


def test_pass_fail_is_mcnemar_with_counts():
    row = one(*binary(20, 4, 60))
    assert row.p_value == pytest.approx(mcnemar_exact(20, 4))
    assert (row.wins, row.ties, row.losses) == (20, 36, 4)
    assert row.binary
    assert row.verdict == "better"
    assert row.reason == "p = 0.002"
    assert (row.bound_low, row.bound_high) == (row.difference, row.difference)


def test_lower_is_better_for_shares_of_failures():
    row = one(*binary(20, 4, 60), higher_is_better=False)
    assert row.verdict == "worse"
    assert (row.wins, row.losses) == (4, 20)
    assert row.direction == -1


def test_five_queries_are_too_few_whatever_they_say():
    row = one([0.0] * 5, [1.0] * 5)
    assert row.verdict == "too few queries"
    assert row.reason == "5 differ, 6 needed"


def test_too_few_knows_the_size_of_the_family():
    rows = [examine(str(i), [0.0] * 7, [1.0] * 7) for i in range(2)]
    rows += [examine(str(i), *binary(6, 6, 40)) for i in range(2)]
    decided = decide(rows)
    # Both could be reached only together: 2 * 2^-6 * 4 and 2 * 2^-6 * 3.
    assert [row.verdict for row in decided[:2]] == ["too few queries", "too few queries"]
    assert decided[0].reason == "7 differ, 8 needed"


def test_equal_within_the_tolerance():
    row = one(*binary(3, 3, 2_000))
    assert row.verdict == "equivalent"
    assert row.reason == "within 0.02"
    assert one(*binary(3, 3, 2_000), plan=Plan(tolerance=0.0)).verdict == "undecided"


def test_a_proven_but_trifling_difference_is_equivalent():
    row = one(*binary(30, 2, 10_000))
    assert row.p_corrected < 0.001
    assert row.verdict == "equivalent"


def test_undecided_plans_for_the_smallest_effect_and_not_the_observed_one():
    small, large = one(*binary(12, 11, 60)), one(*binary(14, 9, 60))
    assert small.verdict == large.verdict == "undecided"
    assert small.n_needed == large.n_needed > 60
    assert small.reason == f"about {small.n_needed:,} queries needed to show 0.05"
    coarse = one(*binary(12, 11, 60), plan=Plan(min_effect=0.4))
    assert coarse.n_needed <= 60
    assert coarse.reason == "0.4 would probably have shown"


def test_missing_values_keep_a_winner_from_being_named():
    a, b = binary(20, 4, 60)
    lost = np.append(a, np.ones(10)), np.append(b, np.full(10, NAN))
    row = one(*lost)
    assert row.p_corrected < 0.05
    assert row.verdict == "undecided"
    assert row.reason == "10 missing values could overturn it"
    assert row.n_missing == row.n_missing_b == 10
    assert row.bound_low == pytest.approx((16 - 10) / 70)
    assert row.bound_high == pytest.approx(16 / 70)
    helped = one(np.append(a, np.zeros(10)), np.append(b, np.full(10, NAN)))
    assert helped.verdict == "better", "a query A failed can only be a win for B"


def test_missing_values_keep_pipelines_from_being_equivalent():
    a, b = binary(3, 3, 2_000)
    assert one(np.append(a, np.ones(10)), np.append(b, np.full(10, NAN))).verdict == "equivalent"
    gone = np.append(a, np.ones(200)), np.append(b, np.full(200, NAN))
    assert one(*gone).verdict == "undecided"


def test_a_worst_case_of_the_other_sign_proves_nothing():
    row = examine("m", [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, NAN, NAN])
    assert row.p_worst_case == 1.0


def test_queries_a_measure_is_not_about_are_neither_paired_nor_missing():
    row = examine("m", [0, NAN, 1, 1], [1, NAN, 1, NAN], applicable=[True, False, True, True])
    assert (row.n_paired, row.n_missing) == (2, 1)


def test_nothing_on_both_sides_is_not_measured():
    row = one([1.0, NAN], [NAN, 1.0])
    assert row.verdict == "not measured"
    assert math.isnan(row.p_corrected)
    assert row.direction == 0
    assert one([], []).verdict == "not measured"


def test_a_measure_that_is_not_measured_costs_the_others_nothing():
    first = examine("m", *binary(9, 1, 40))
    alone = decide([first])[0]
    beside = decide([first, examine("n", [NAN], [NAN])])[0]
    assert beside.p_corrected == alone.p_corrected


def test_families_are_corrected_apart():
    rows = [examine(name, *binary(9, 1, 40)) for name in "abc"]
    rows.append(examine("d", *binary(9, 1, 40), family="exploratory"))
    decided = decide(rows)
    assert decided[0].p_corrected == pytest.approx(3 * rows[0].p_value)
    assert decided[3].p_corrected == pytest.approx(rows[0].p_value)
    assert [row.verdict for row in decided] == ["undecided"] * 3 + ["better"]


def test_clusters_count_as_units():
    a, b = binary(20, 4, 60)
    clusters = np.repeat(np.arange(6), 10)
    row = one(a, b, clusters=clusters)
    assert row.n_units == 6
    assert row.p_value > one(a, b).p_value
    few = one([0.0] * 20, [1.0] * 20, clusters=np.repeat(np.arange(4), 5))
    assert few.reason == "4 clusters differ, 6 needed"


def test_unequal_lengths_are_refused():
    with pytest.raises(SettingsError, match=r"one length, got \[1, 2\]"):
        examine("m", [0.0], [0.0, 1.0])
    with pytest.raises(SettingsError, match="one length"):
        examine("m", [0.0, 1.0], [0.0, 1.0], clusters=["x"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha must lie"),
        ({"power": 1.0}, "power must lie"),
        ({"min_effect": 0.0}, "min_effect must lie"),
        ({"tolerance": -0.1}, "tolerance must be 0 or more"),
        ({"latency_tolerance": NAN}, "latency_tolerance must be 0 or more"),
        ({"draws": 0}, "draws must be at least 1"),
    ],
)
def test_senseless_plans_are_refused(options, message):
    with pytest.raises(SettingsError, match=message):
        Plan(**options)


# -- times ---------------------------------------------------------------------------------------
def test_slower_and_faster():
    times = np.random.default_rng(0).lognormal(3, 0.5, size=60)
    slower = decide([examine_latency("ms", times, times * 1.3)])[0]
    faster = decide([examine_latency("ms", times * 1.3, times)])[0]
    assert (slower.verdict, faster.verdict) == ("worse", "better")
    assert slower.difference == pytest.approx(1.3)
    assert faster.difference == pytest.approx(1 / 1.3)
    assert slower.scale == "ratio"
    assert slower.p_corrected == slower.p_value


def test_times_within_the_tolerance_are_equivalent():
    times = np.random.default_rng(0).lognormal(3, 0.5, size=100)
    row = decide([examine_latency("ms", times, times * 1.01)])[0]
    assert row.p_value < 0.001
    assert (row.verdict, row.reason) == ("equivalent", "within a factor of 1.05")
    strict = Plan(latency_tolerance=0.0)
    assert decide([examine_latency("ms", times, times * 1.01, plan=strict)], strict)[0].verdict == (
        "worse"
    )


def test_times_that_vary_are_undecided_and_few_are_too_few():
    rng = np.random.default_rng(0)
    noisy = decide([examine_latency("ms", rng.lognormal(size=40), rng.lognormal(size=40))])[0]
    assert noisy.verdict == "undecided"
    assert noisy.reason.startswith("p = ")
    few = decide([examine_latency("ms", [1.0, 2.0, NAN], [2.0, 4.0, 1.0])])[0]
    assert (few.verdict, few.n_missing) == ("too few queries", 1)
    assert decide([examine_latency("ms", [NAN], [1.0])])[0].verdict == "not measured"


def test_times_of_clusters():
    times = np.random.default_rng(0).lognormal(3, 0.5, size=60)
    clusters = np.repeat(np.arange(4), 15)
    row = decide([examine_latency("ms", times, times * 2, clusters=clusters)])[0]
    assert (row.n_units, row.p_value) == (4, 0.125)


def test_evidence_is_immutable():
    row = examine("m", [0.0], [1.0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        row.verdict = "better"
