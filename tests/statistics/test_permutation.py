"""Sign flips, McNemar, Holm and marginal homogeneity against enumeration, scipy, statsmodels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ragdiag import permutation
from ragdiag.permutation import (
    cluster_sums,
    holm,
    marginal_homogeneity,
    mcnemar_exact,
    sign_flip_test,
)

FRACTIONS = [0.0, 1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 2 / 3, -1.0, -1 / 2, -1 / 3, -1 / 6, -3 / 4]
DIFFERENCES = st.lists(st.sampled_from(FRACTIONS), min_size=1, max_size=12)


def enumerated(differences) -> float:
    """The definition, word for word."""
    d = np.asarray(differences, dtype=float)
    totals = np.abs(np.array(list(product((1, -1), repeat=len(d)))) @ np.abs(d))
    return float(np.mean(totals >= abs(d.sum()) - 1e-9))


@given(DIFFERENCES)
def test_small_samples_equal_full_enumeration(differences):
    test = sign_flip_test(differences)
    assert test.p_value == pytest.approx(enumerated(differences), abs=1e-12)
    assert test.method == "exact"
    assert test.draws == 0


@given(DIFFERENCES, st.randoms(use_true_random=False))
def test_order_never_matters_and_swapping_changes_nothing(differences, random):
    shuffled = random.sample(differences, len(differences))
    test = sign_flip_test(differences)
    assert sign_flip_test(shuffled) == test
    assert sign_flip_test([-d for d in differences]) == test


@given(DIFFERENCES)
def test_no_p_value_is_below_what_the_differences_could_reach(differences):
    test = sign_flip_test(differences)
    assert test.smallest_p <= test.p_value <= 1.0
    assert test.smallest_p == min(1.0, 2.0 ** (1 - np.count_nonzero(differences)))


def test_nothing_differs():
    assert sign_flip_test([0.0] * 9).p_value == 1.0
    assert sign_flip_test([0.0] * 9).n_nonzero == 0


def test_the_ways_to_the_exact_p_agree():
    """Enumeration, lattice and binomial are one number wherever two of them apply."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        sizes = np.sort(rng.choice([1 / 6, 1 / 3, 1 / 2, 1.0], size=20))
        observed = abs(float(rng.choice([-1, 1], size=20) @ sizes))
        values, counts = np.unique(sizes, return_counts=True)
        by_lattice = permutation._by_lattice(
            np.rint(values * 6).astype(int), counts, round(observed * 6)
        )
        assert by_lattice == pytest.approx(permutation._enumerated(sizes, observed), abs=1e-12)
    ones = np.array([1]), np.array([200])
    assert permutation._by_lattice(*ones, 20) == pytest.approx(mcnemar_exact(110, 90), abs=1e-12)


def test_the_lattice_is_found_or_refused():
    assert permutation._lattice(np.array([1 / 6, 1 / 4])) == 12
    assert permutation._lattice(np.array([1.0])) == 1
    assert permutation._lattice(np.array([np.pi / 4])) == 0
    primes = np.array([1 / p for p in (211, 223, 227, 229)])
    assert permutation._lattice(primes) == 0, "finer than is any use"


def test_large_samples_equal_scipy():
    rng = np.random.default_rng(5)
    d = rng.normal(0.02, 0.3, size=100)
    ours = sign_flip_test(d, draws=100_000)
    # The argument that seeds scipy's draws has changed its name: seven standard errors, unseeded.
    theirs = stats.permutation_test(
        (d,), np.mean, permutation_type="samples", n_resamples=20_000
    ).pvalue
    assert ours.method == "sampled"
    assert ours.p_value == pytest.approx(theirs, abs=7 * np.sqrt(theirs / 20_000))


def test_scipy_gives_the_same_exact_p():
    d = np.array([0.5, -0.25, 1.0, 0.3, 0.3, -0.7, 0.2, 0.9, 0.05])
    exact = stats.permutation_test(
        (d,), np.mean, permutation_type="samples", n_resamples=np.inf
    ).pvalue
    assert sign_flip_test(d).p_value == pytest.approx(exact, abs=1e-12)


def test_sampling_counts_the_observed_pattern_and_is_seeded():
    d = np.random.default_rng(1).normal(5.0, 0.1, size=100)
    assert sign_flip_test(d, draws=999).p_value == 1 / 1000
    noise = np.random.default_rng(1).normal(size=100)
    assert sign_flip_test(noise, seed=1) == sign_flip_test(noise, seed=1)
    assert sign_flip_test(noise, seed=1).p_value != sign_flip_test(noise, seed=2).p_value
    assert sign_flip_test(noise[::-1], seed=1) == sign_flip_test(noise, seed=1)


def test_many_queries_on_a_lattice_are_exact():
    rng = np.random.default_rng(2)
    d = rng.choice([0, 0.5, -0.5, 1 / 3, -1 / 3, 1.0], size=5_000)
    test = sign_flip_test(d)
    assert test.method == "exact"
    sizes, counts = np.unique(np.abs(d[d != 0]), return_counts=True)
    rng = np.random.default_rng(0)
    for draw in (permutation._by_counts, permutation._by_bytes):
        totals = draw(sizes, counts, 20_000, rng)
        assert test.p_value == pytest.approx(np.mean(np.abs(totals) >= abs(d.sum())), abs=0.015)
    assert permutation._sampled(sizes, counts, abs(d.sum()), 20_000, 0) == pytest.approx(
        test.p_value, abs=0.015
    )


def test_differences_that_round_apart_are_tied():
    """0.1 + 0.2 - 0.3 is not 0 and 1/3 - 1/2 is not -1/6, but they mean it."""
    assert sign_flip_test([0.1 + 0.2 - 0.3] * 5).n_nonzero == 0
    assert sign_flip_test([1 / 3 - 1 / 2, 1 / 6]).p_value == 1.0


def test_clusters_are_flipped_whole():
    d = np.array([0.5, 0.5, 0.5, -0.25, 0.0, 1.0])
    clusters = ["a", "a", "b", "b", "c", "d"]
    test = sign_flip_test(d, clusters)
    assert test.p_value == pytest.approx(enumerated([1.0, 0.25, 0.0, 1.0]), abs=1e-12)
    assert (test.n_units, test.n_nonzero) == (4, 3)
    assert cluster_sums(d, clusters).tolist() == [1.0, 0.25, 0.0, 1.0]
    lonely = sign_flip_test(d, np.arange(6))
    assert lonely.p_value == sign_flip_test(d).p_value


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_is_the_binomial_test(wins, losses):
    expected = stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert mcnemar_exact(wins, losses) == pytest.approx(expected, rel=1e-10)
    d = np.repeat([1.0, -1.0, 0.0], [wins, losses, 3])
    assert sign_flip_test(d).p_value == pytest.approx(expected, rel=1e-9)


def test_mcnemar_equals_statsmodels():
    # statsmodels 0.15: mcnemar([[10, 8], [3, 9]], exact=True)
    assert mcnemar_exact(8, 3) == pytest.approx(0.2265625)


def test_holm_equals_statsmodels():
    # statsmodels 0.15: multipletests(..., method="holm")
    corrected = holm([0.01, 0.04, 0.03, 0.005, 0.2])
    assert corrected == pytest.approx([0.04, 0.09, 0.09, 0.025, 0.2])
    assert holm([]).tolist() == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_helps_and_keeps_the_order(p):
    corrected = holm(p)
    assert (corrected >= np.asarray(p)).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(corrected[order]) >= 0).all()


# -- marginal homogeneity ------------------------------------------------------------------------
TABLE = np.array([[20, 10, 5], [3, 30, 15], [0, 5, 40]])


def classes(table):
    cells = [(i, j) for i, j in np.ndindex(*table.shape) for _ in range(table[i, j])]
    return np.array(cells).T


def test_stuart_maxwell_equals_statsmodels():
    # statsmodels 0.15: SquareTable(TABLE, shift_zeros=False).homogeneity("stuart_maxwell")
    found = marginal_homogeneity(*classes(TABLE))
    assert found.statistic == pytest.approx(13.76470588235294)
    assert found.p_asymptotic == pytest.approx(0.0010257277265580678)
    assert (found.df, found.n_discordant) == (2, 38)
    assert found.p_value == pytest.approx(found.p_asymptotic, abs=0.002)


@given(st.integers(0, 30), st.integers(0, 30))
@settings(max_examples=30)
def test_two_classes_are_mcnemar(wins, losses):
    a, b = classes(np.array([[4, wins], [losses, 2]]))
    found = marginal_homogeneity(a, b)
    assert found.p_value == pytest.approx(mcnemar_exact(wins, losses), rel=1e-9)
    assert found.method == "exact"


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=9))
@settings(max_examples=50)
def test_sparse_tables_equal_full_enumeration(pairs):
    a, b = np.array(pairs).T
    k = 4
    moves = np.eye(k)[b] - np.eye(k)[a]
    inverse = np.linalg.pinv(moves.T @ moves, rcond=1e-10)
    signs = np.array(list(product((1, -1), repeat=len(pairs))))
    totals = signs @ moves
    statistics = np.einsum("ij,jk,ik->i", totals, inverse, totals)
    expected = np.mean(statistics >= statistics[0] - 1e-9)
    found = marginal_homogeneity(a, b)
    assert found.p_value == pytest.approx(expected, abs=1e-9)
    assert marginal_homogeneity(b, a).p_value == pytest.approx(expected, abs=1e-9)


def test_clusters_of_moves_are_flipped_whole():
    a, b = np.zeros(8, dtype=int), np.array([1, 1, 1, 1, 2, 2, 2, 0])
    alone = marginal_homogeneity(a, b)
    grouped = marginal_homogeneity(a, b, [0, 0, 1, 1, 2, 2, 3, 3])
    assert grouped.p_value > alone.p_value
    back_and_forth = marginal_homogeneity([0, 1], [1, 0], ["same", "same"])
    assert back_and_forth.p_value == 1.0


def test_nothing_moved():
    found = marginal_homogeneity([0, 1, 2], [0, 1, 2])
    assert (found.p_value, found.df, found.n_discordant) == (1.0, 0, 0)


def test_many_moves_are_sampled():
    rng = np.random.default_rng(0)
    found = marginal_homogeneity(rng.integers(0, 5, 3_000), rng.integers(0, 5, 3_000))
    assert found.method == "sampled"
    assert found.p_value == pytest.approx(found.p_asymptotic, abs=0.03)
