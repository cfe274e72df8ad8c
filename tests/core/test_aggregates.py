"""Means, rates, percentiles and counts, against literal numbers and numpy."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdiag.aggregates import (
    Mean,
    as_floats,
    category_counts,
    grouped_mean,
    grouped_percentile,
    latency,
    mean,
    rate,
    summary_table,
)

NAN = math.nan
NUMBERS = st.one_of(st.floats(0, 1), st.just(NAN))


@pytest.mark.parametrize(
    ("values", "failed", "expected"),
    [
        ([], None, Mean(None, 0, 0, 0)),
        ([NAN], None, Mean(None, 0, 0, 1)),
        ([NAN, NAN], [True, False], Mean(None, 0, 1, 1)),
        ([0.0], None, Mean(0.0, 1, 0, 0)),
        ([1.0, 0.0, NAN, NAN], [False, False, True, False], Mean(0.5, 2, 1, 1)),
        # A failed query that has a value all the same is used, not counted twice.
        ([1.0, 0.0], [True, False], Mean(0.5, 2, 0, 0)),
    ],
)
def test_mean_counts_what_it_rests_on(
    values: list[float], failed: list[bool] | None, expected: Mean
) -> None:
    assert mean(np.array(values), failed) == expected


@given(st.lists(st.tuples(NUMBERS, st.booleans()), max_size=30), st.randoms())
def test_mean_accounts_for_every_query_in_any_order(rows: list, random: object) -> None:
    values, failed = [row[0] for row in rows], [row[1] for row in rows]
    result = mean(values, failed)
    assert result.n_used + result.n_failed + result.n_missing == len(rows)
    random.shuffle(rows)  # type: ignore[attr-defined]
    assert mean([row[0] for row in rows], [row[1] for row in rows]) == result


def test_rate_takes_nullable_booleans_and_objects() -> None:
    verdicts = pd.Series([True, False, None, True], dtype="boolean")
    assert rate(verdicts) == Mean(2 / 3, 3, 0, 1)
    assert rate(pd.array([None, None], dtype="boolean")).value is None
    assert as_floats([True, None, False]).tolist()[0] == 1.0


def test_latency_of_nothing_is_unknown_not_zero() -> None:
    stats = latency([NAN, NAN])
    assert (stats.count, stats.mean_ms, stats.p50_ms, stats.max_ms) == (0, None, None, None)


def test_latency_interpolates_linearly() -> None:
    stats = latency([40.0, 10.0, NAN, 30.0, 20.0])
    assert stats.count == 4
    assert stats.mean_ms == 25.0
    assert stats.p50_ms == 25.0
    assert stats.p95_ms == pytest.approx(38.5)
    assert stats.p99_ms == pytest.approx(39.7)
    assert (stats.min_ms, stats.max_ms) == (10.0, 40.0)


@given(
    st.lists(st.tuples(NUMBERS, st.integers(0, 3)), max_size=40),
    st.sampled_from([0.0, 5.0, 50.0, 95.0, 99.0, 100.0]),
)
def test_grouped_equals_one_group_at_a_time(rows: list, percent: float) -> None:
    values = np.array([row[0] for row in rows], dtype=float)
    groups = np.array([row[1] for row in rows], dtype=np.int64)
    means, counts = grouped_mean(values, groups, 4)
    percentiles = grouped_percentile(values, groups, 4, percent)
    for group in range(4):
        alone = mean(values[groups == group])
        assert counts[group] == alone.n_used
        if alone.value is None:
            assert math.isnan(means[group])
            assert math.isnan(percentiles[group])
        else:
            assert means[group] == pytest.approx(alone.value)
            known = values[(groups == group) & ~np.isnan(values)]
            assert percentiles[group] == pytest.approx(np.percentile(known, percent))


def test_category_counts_leave_missing_ones_out() -> None:
    codes = np.array([0, 1, 1, -1, 2])
    assert category_counts(codes, 4).tolist() == [[1, 2, 1, 0]]
    groups = np.array([0, 0, 1, 1, 1])
    assert category_counts(codes, 4, groups, 2).tolist() == [[1, 1, 0, 0], [0, 1, 1, 0]]
    assert category_counts(np.array([], dtype=np.int64), 3).tolist() == [[0, 0, 0]]


def test_summary_table_of_nothing_has_its_columns() -> None:
    table = summary_table({})
    assert list(table.columns) == ["measure", "value", "n_used", "n_failed", "n_missing"]
    table = summary_table({"recall": mean([NAN])})
    assert math.isnan(table.loc[0, "value"])
