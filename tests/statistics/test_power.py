"""Plans: against simulation, against known sizes, and out of range."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ragdiag.power as power_module
from ragdiag.errors import SettingsError
from ragdiag.permutation import mcnemar_exact
from ragdiag.power import detectable_difference, paired_power, planning_moment, sample_size


@pytest.mark.parametrize(
    ("n", "delta", "discordance"), [(10, 0.8, 0.8), (20, 0.3, 0.4), (50, 0.2, 0.3), (200, 0.1, 0.2)]
)
def test_power_equals_simulation(n, delta, discordance):
    draws = np.random.default_rng(0).multinomial(
        n, [(discordance + delta) / 2, (discordance - delta) / 2, 1 - discordance], size=4_000
    )
    shown = np.mean([mcnemar_exact(int(won), int(lost)) <= 0.05 for won, lost, _ in draws])
    assert paired_power(n, delta, discordance) == pytest.approx(shown, abs=0.025)


def test_two_points_need_about_four_thousand_queries():
    assert sample_size(0.02, discordance=0.2) == pytest.approx(4_000, rel=0.02)


@pytest.mark.parametrize("delta", [0.03, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("discordance", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("measures", [1, 4])
def test_the_size_gives_the_power_and_not_much_more(delta, discordance, measures):
    n = sample_size(delta, discordance=discordance, measures=measures)
    alpha = 0.05 / measures
    assert paired_power(n, delta, discordance, alpha=alpha) >= 0.795
    assert paired_power(int(n * 0.85), delta, discordance, alpha=alpha) < 0.8


@pytest.mark.parametrize("n", [20, 50, 100, 500])
def test_the_detectable_difference_is_the_inverse(n):
    delta = detectable_difference(n, discordance=0.2)
    assert paired_power(n, delta, 0.2) >= 0.8
    assert paired_power(n, delta - 0.005, 0.2) < 0.8


def test_five_queries_show_nothing():
    assert math.isnan(detectable_difference(5))
    assert math.isnan(detectable_difference(1))
    assert paired_power(5, 0.9, 0.9) == 0.0


def test_the_approximation_joins_the_exact_power(monkeypatch):
    exact = paired_power(4_000, 0.03, 0.2)
    monkeypatch.setattr(power_module, "EXACT_BELOW", 100)
    assert paired_power(4_000, 0.03, 0.2) == pytest.approx(exact, abs=0.01)


def test_a_tiny_difference_has_a_bounded_answer():
    assert sample_size(1e-6) >= 10_000_000


def test_more_is_needed_for_more():
    assert sample_size(0.05) > sample_size(0.1)
    assert sample_size(0.05, measures=4) > sample_size(0.05)
    assert sample_size(0.05, power=0.9) > sample_size(0.05)
    assert sample_size(0.05, alpha=0.01) > sample_size(0.05)
    assert sample_size(0.05, discordance=0.4) > sample_size(0.05)


def test_planning_never_assumes_that_nothing_differs():
    assert planning_moment(0.0, 5) > 0.1
    assert planning_moment(0.2, 100_000) == pytest.approx(0.2, abs=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0.0}, r"delta must lie in \(0, 1\], got 0.0"),
        ({"delta": 1.5}, "delta must lie"),
        ({"discordance": -0.1}, "discordance must lie"),
        ({"power": 1.0}, "power must lie"),
        ({"alpha": 0.0}, "alpha must lie"),
        ({"measures": 0}, "measures must be at least 1"),
    ],
)
def test_senseless_plans_are_refused(options, message):
    with pytest.raises(SettingsError, match=message):
        sample_size(**options)
