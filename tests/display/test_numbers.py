"""How numbers read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragdiag.display import numbers


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan, pd.NA, pd.NaT])
def test_missing_is_said_and_never_a_number(missing):
    assert numbers.is_missing(missing)
    assert numbers.measure(missing) == "not measured"
    assert numbers.milliseconds(missing, "not timed") == "not timed"
    assert numbers.change(missing) == "not measured"
    assert numbers.percent(missing) == "not measured"
    assert numbers.count(missing) == "not measured"
    assert numbers.ratio(missing) == "not measured"
    assert numbers.milliseconds_change(missing) == "not measured"
    assert numbers.interval(0.1, missing) == "not measured"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.785, "0.79"), (1.0, "1.00"), (-0.0001, "0.00"), (1 / 3, "0.33"), (0.005, "0.01")],
)
def test_measures_have_two_decimals_and_no_negative_zero(value, text):
    assert numbers.measure(value + 1e-12) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 ms"), (0.42, "0.4 ms"), (9.0, "9 ms"), (9.96, "10.0 ms"), (12345.6, "12,346 ms")],
)
def test_milliseconds(value, text):
    assert numbers.ascii_signs(numbers.milliseconds(value)) == text


def test_signs_are_true_signs():
    assert numbers.change(-0.25) == "\N{MINUS SIGN}0.25"
    assert numbers.milliseconds_change(-1500.0) == "\N{MINUS SIGN}1,500\N{NO-BREAK SPACE}ms"
    assert numbers.ascii_signs(numbers.ratio(1.15)) == "x1.15"


def test_a_part_is_never_rounded_to_all_or_none():
    assert numbers.percent(9999 / 10000).startswith(">99")
    assert numbers.percent(1 / 10000).startswith("<1")
    assert numbers.percent(0.0).startswith("0")
    assert numbers.percent(1.0).startswith("100")


def test_counts():
    assert numbers.of(3, 1200) == "3 of 1,200"
    assert numbers.plural(1, "tie") == "1 tie"
    assert numbers.plural(2, "query", "queries") == "2 queries"
    assert numbers.size(999) == "999\N{NO-BREAK SPACE}B"
