"""``Comparison``: what follows from laying results side by side."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragdiag.comparison import Comparison
from ragdiag.diagnosis import Rule
from ragdiag.errors import ComparisonError, QueryNotFoundError
from ragdiag.outcomes import OUTCOMES_IN_ORDER
from ragdiag.pairing import NOT_DIAGNOSED
from ragdiag.report import ComparisonReport


@pytest.fixture
def comparison(dense, hybrid) -> Comparison:
    return Comparison(dense, hybrid)


def test_the_decision_of_a_pair(comparison):
    assert comparison.winner == comparison.overall_winner == comparison.quality_winner == "hybrid"
    assert comparison.latency_winner == "dense"
    assert comparison.trade_off == "Higher quality <-> higher latency"
    assert comparison.summary == (
        "hybrid improves Recall@5 by 20 percentage points and MRR by 0 points, while increasing "
        "mean retrieval latency by 20.0 ms."
    )


def test_the_differences_of_a_pair(comparison):
    deltas = comparison.metric_deltas
    assert deltas.model_dump() == {
        "precision_at_k": 0.1333,
        "recall_at_k": 0.2,
        "mrr": 0.0,
        "answer_correctness": None,
        "groundedness": None,
        "mean_retrieval_ms": 20.0,
        "p95_retrieval_ms": 20.0,
    }
    assert comparison.diagnosis_deltas["PASS"] == 2
    assert comparison.diagnosis_deltas["INSUFFICIENT_CONTEXT"] == -2
    assert sum(comparison.diagnosis_deltas.values()) == 0
    types = comparison.query_type_deltas
    assert list(types) == ["factual", "reasoning", "multi-hop"]
    assert (types["reasoning"].recall_at_k, types["reasoning"].mrr) == (0.25, 0.0)
    assert (types["multi-hop"].recall_at_k, types["multi-hop"].total_failure_delta) == (0.5, -1)
    assert types["factual"].failure_deltas["PASS"] == 0


def test_each_query(comparison):
    assert [query.outcome for query in comparison] == [*["unchanged"] * 3, *["improved"] * 2]
    assert (comparison.queries_improved, comparison.queries_regressed) == (2, 0)
    assert comparison.queries_unchanged == 3
    fourth = comparison["q4"]
    assert fourth == comparison[3] == comparison[-2]
    assert (fourth.diagnosis_a, fourth.diagnosis_b) == ("INSUFFICIENT_CONTEXT", "PASS")
    assert (fourth.recall_a, fourth.recall_b) == (0.5, 1.0)
    sides = comparison.sides("q4")
    assert list(sides) == ["dense", "hybrid"]
    assert sides["hybrid"].metrics["recall_at_5"] == 1.0
    with pytest.raises(QueryNotFoundError, match="no query 'q9' in this comparison of 5 queries"):
        comparison["q9"]
    with pytest.raises(IndexError):
        comparison[5]


def test_outcomes_are_a_table_whose_index_is_the_dataset_position(comparison):
    table = comparison.outcomes
    assert table.index.tolist() == [0, 1, 2, 3, 4]
    assert table["query_id"].tolist() == ["q1", "q2", "q3", "q4", "q5"]
    assert table["outcome"].cat.categories.tolist() == list(OUTCOMES_IN_ORDER)
    assert table["retrieval_ms_b"].tolist() == [25.0] * 5
    table["outcome"] = "regressed"
    assert comparison.outcomes["outcome"].tolist()[0] == "unchanged", "nobody can harm it"


def test_transitions_count_every_query_once(comparison):
    table = comparison.transitions
    assert table.index.tolist() == table.columns.tolist()
    assert (table.index.name, table.columns.name) == ("dense", "hybrid")
    assert table.index[0] == "UNKNOWN"
    assert table.index[-1] == "PASS"
    assert table.loc["INSUFFICIENT_CONTEXT", "PASS"] == 2
    assert table.loc["PASS", "PASS"] == 3
    assert int(table.to_numpy().sum()) == len(comparison) == 5


def test_deltas_have_a_row_for_each_measure(comparison):
    table = comparison.deltas.set_index("measure")
    assert set(table["pipeline"]) == {"hybrid"}
    row = table.loc["recall_at_5"]
    assert (row["baseline"], row["value"], row["n_baseline"], row["n"]) == (0.8, 1.0, 5, 5)
    assert row["delta"] == pytest.approx(0.2)
    assert np.isnan(table.loc["grounded", "delta"])


def test_the_json_is_the_published_one(comparison):
    loaded = ComparisonReport.model_validate_json(comparison.model_dump_json(indent=2))
    assert loaded == comparison.report
    assert json.loads(comparison.model_dump_json())["winner"] == "hybrid"
    assert comparison.model_dump()["queries_improved"] == 2
    published = {name: getattr(comparison, name) for name in ComparisonReport.model_fields}
    for name, value in published.items():
        assert value == getattr(comparison.report, name), name


def test_a_file_of_the_published_release_loads(comparison):
    saved = json.loads(comparison.model_dump_json())
    saved["regression_analysis"] = {"overall_regression": False}
    saved["pipeline_a_report"]["health_profile"] = {"score": 80.0}
    for name in ("failing_queries", "settings", "notes"):
        del saved["pipeline_a_report"][name]
    for query in saved["query_outcomes"]:
        del query["status_a"], query["status_b"]
    assert ComparisonReport.model_validate(saved).winner == "hybrid"


# --- narrowing -------------------------------------------------------------------------------


def test_select_by_outcome_column_mask_and_callable(comparison):
    assert comparison.select(outcome="improved").query_ids.tolist() == ["q4", "q5"]
    assert comparison.select(outcome=["improved", "unchanged"]).query_ids.size == 5
    both = comparison.select(outcome="improved", query_type="multi-hop")
    assert both.query_ids.tolist() == ["q5"]
    assert comparison.select(category_a="PASS").query_ids.tolist() == ["q1", "q2", "q3"]
    mask = [True, False, False, False, True]
    assert comparison.select(mask).query_ids.tolist() == ["q1", "q5"]
    assert comparison[mask].query_ids.tolist() == ["q1", "q5"]
    assert comparison[1:3].query_ids.tolist() == ["q2", "q3"]
    assert comparison[:0].queries_improved == 0
    slower = comparison.select(lambda f: f.recall_b > f.recall_a)
    assert slower.query_ids.tolist() == ["q4", "q5"]
    assert slower.query_ids.index.tolist() == [3, 4], "the dataset position stays"


def test_a_selection_is_a_comparison_of_its_own(comparison):
    improved = comparison.select(outcome="improved")
    assert isinstance(improved, Comparison)
    assert improved.metric_deltas.recall_at_k == 0.5
    assert improved.queries_unchanged == 0
    assert len(improved.pipeline_a_report.top_failures) == 2


def test_select_by_a_metadata_column(results):
    queries = {f"q{i}": {"team": "billing" if i < 2 else "search"} for i in range(4)}
    comparison = Comparison(results("a", queries), results("b", queries))
    assert comparison.select(team="billing").query_ids.tolist() == ["q0", "q1"]
    assert comparison.select(team=["billing", "search"]).query_ids.size == 4


def test_select_refuses_what_it_cannot_mean(comparison):
    with pytest.raises(ComparisonError, match="outcome must be one of regressed, improved, unchan"):
        comparison.select(outcome="better")
    with pytest.raises(ComparisonError, match="no column 'colour'; there are query_id"):
        comparison.select(colour="red")
    with pytest.raises(ComparisonError, match="one value for each of 5 queries, got 2"):
        comparison.select([True, False])


# --- several ---------------------------------------------------------------------------------


@pytest.fixture
def three(dense, hybrid, results) -> Comparison:
    slow = {
        query_id: {"relevant": labels, "retrieved": labels, "retrieval_ms": 2000.0}
        for query_id, labels in [
            *[("q1", ["a"]), ("q2", ["b"]), ("q3", ["c"])],
            *[("q4", ["d", "e"]), ("q5", ["f", "g"])],
        ]
    }
    return Comparison(dense, hybrid, results("slow", slow))


def test_several_are_compared_with_the_baseline(three):
    assert three.names == ("dense", "hybrid", "slow")
    assert three.baseline == "dense"
    assert [pair.names for pair in three.pairs] == [("dense", "hybrid"), ("dense", "slow")]
    assert three.pair("hybrid", "slow").queries_regressed == 5
    assert three.pair(2, 0).summary.startswith("dense")
    assert set(three.deltas["pipeline"]) == {"hybrid", "slow"}
    assert three.outcomes.columns[0] == "pipeline"
    assert len(three.outcomes) == 10
    assert three.transitions.loc[("slow", "PASS"), "LATENCY_OUTLIER"] == 3
    assert three.select(outcome="regressed").query_ids.tolist() == ["q1", "q2", "q3"]
    assert len(three.select(outcome="improved", pipeline="hybrid")) == 2
    assert len(three.select(category_b="LATENCY_OUTLIER", pipeline="slow")) == 5
    assert list(three.sides("q1")) == ["dense", "hybrid", "slow"]


def test_the_fields_of_a_pair_ask_for_a_pair(three):
    for field in ("winner", "report", "summary", "query_outcomes"):
        with pytest.raises(ComparisonError, match=r"compares 3 pipelines.*\.pair\('dense', 'hybri"):
            getattr(three, field)
    with pytest.raises(ComparisonError, match="is the baseline itself"):
        three.select(outcome="improved", pipeline="dense")


def test_the_baseline_may_be_any(dense, hybrid, three):
    other = Comparison(dense, hybrid, baseline="hybrid")
    assert (other.pipeline_a_name, other.pipeline_b_name) == ("hybrid", "dense")
    assert other.queries_regressed == 2
    assert other.trade_off == "Faster latency at the expense of lower quality"
    assert Comparison(dense, hybrid, baseline=-1).baseline == "hybrid"
    with pytest.raises(ComparisonError, match=r"no side is called 'sparse'; there are \['dense'"):
        Comparison(dense, hybrid, baseline="sparse")
    with pytest.raises(ComparisonError, match="there is no side 2; there are 2"):
        Comparison(dense, hybrid, baseline=2)


def test_one_alone_is_no_comparison(dense):
    with pytest.raises(ComparisonError, match="at least two results, got 1"):
        Comparison(dense)


@pytest.mark.parametrize("option", ["quality_tolerance", "latency_tolerance_ms"])
@pytest.mark.parametrize("value", [-0.1, float("nan")])
def test_a_tolerance_is_not_negative(dense, hybrid, option, value):
    with pytest.raises(ComparisonError, match=f"{option} must be 0 or more"):
        Comparison(dense, hybrid, **{option: value})


# --- what was not measured -------------------------------------------------------------------


def test_a_failed_query_is_told_by_its_status(results):
    failed = {"status": "failed", "error": "retrieval failed: ValueError: no", "retrieved": []}
    comparison = Comparison(results("a", {"q1": failed, "q2": {}}), results("b", ["q1", "q2"]))
    first = comparison["q1"]
    assert (first.status_a, first.status_b, first.outcome) == ("failed", "completed", "improved")
    assert first.recall_a == 0.0, "as published"
    assert np.isnan(comparison.outcomes["recall_a"][0]), "and missing in the table"


def test_a_mean_over_nothing_is_no_difference(results):
    failed = {"status": "failed", "retrieved": [], "error": "retrieval failed: E: e"}
    comparison = Comparison(results("a", {"q1": failed}), results("b", ["q1"]))
    assert comparison.metric_deltas.recall_at_k is None
    assert comparison.query_type_deltas["factual"].recall_at_k is None
    assert (comparison.winner, comparison.trade_off) == ("TIE", None)
    assert "cannot be compared" in comparison.summary
    assert comparison.queries_improved == 1


def test_queries_of_which_nothing_is_known(results):
    nothing = {"relevant": [], "retrieved": [], "retrieval_ms": None}
    comparison = Comparison(results("a", {"q1": nothing}), results("b", {"q1": nothing}))
    assert comparison["q1"].diagnosis_a is None
    assert comparison["q1"].recall_a is None
    assert comparison.transitions.loc[NOT_DIAGNOSED, NOT_DIAGNOSED] == 1
    assert comparison.queries_unchanged == 1


def test_rules_of_ones_own_take_part(results):
    rule = Rule(
        "SHORT", "warning", lambda f: f["n_retrieved"] < 2, reason="Too few.", action="More."
    )
    a = results("a", {"q1": {"retrieved": ["a", "b"]}}, rules=[rule])
    b = results("b", ["q1"], rules=[rule])
    comparison = Comparison(a, b)
    assert comparison["q1"].outcome == "regressed"
    assert comparison.diagnosis_deltas["SHORT"] == 1
    assert comparison.transitions.loc["PASS", "SHORT"] == 1


# --- properties ------------------------------------------------------------------------------

chunk = st.sampled_from("abcde")
one_side = st.fixed_dictionaries(
    {
        "retrieved": st.lists(chunk, max_size=6),
        "status": st.sampled_from(["completed"] * 4 + ["failed"]),
        "retrieval_ms": st.sampled_from([5.0, 15.0, 25.0, 1500.0]),
        "answer_correct": st.sampled_from([True, False, None]),
        "grounded": st.sampled_from([True, False, None]),
    }
)
case = st.lists(
    st.tuples(
        st.lists(chunk, min_size=1, max_size=3, unique=True),
        st.sampled_from(["factual", "multi-hop"]),
        one_side,
        one_side,
    ),
    min_size=1,
    max_size=12,
)
few = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def sides_of(case, order=None):
    rows = list(enumerate(case))
    for place in (2, 3):
        yield {
            f"q{i}": {"relevant": row[0], "query_type": row[1], **row[place]}
            for i, row in (rows if order is None else [rows[i] for i in order])
        }


@few
@given(case)
def test_swapping_mirrors_deltas_outcomes_and_winners(results, case):
    a, b = (results(name, side) for name, side in zip("ab", sides_of(case), strict=True))
    there, back = Comparison(a, b), Comparison(b, a)
    assert (there.winner, there.quality_winner, there.latency_winner) == (
        back.winner,
        back.quality_winner,
        back.latency_winner,
    )
    for (measure, one), (_, other) in zip(there.metric_deltas, back.metric_deltas, strict=True):
        assert (one is None) == (other is None), measure
        assert one is None or one == -other, measure
    mirror = {"improved": "regressed", "regressed": "improved", "unchanged": "unchanged"}
    assert [mirror[query.outcome] for query in there] == [query.outcome for query in back]
    assert there.queries_improved == back.queries_regressed
    assert (there.transitions.to_numpy() == back.transitions.to_numpy().T).all()


@few
@given(case, st.randoms(use_true_random=False))
def test_the_order_of_queries_never_matters(results, case, random):
    order = list(range(len(case)))
    random.shuffle(order)
    a, b = (results(name, side) for name, side in zip("ab", sides_of(case), strict=True))
    shuffled = results("b", list(sides_of(case, order))[1])
    expected, found = Comparison(a, b).report, Comparison(a, shuffled).report
    varying = {"top_failures", "failing_queries"}
    for side in ("pipeline_a_report", "pipeline_b_report"):
        one, other = getattr(expected, side), getattr(found, side)
        assert one.model_dump(exclude=varying) == other.model_dump(exclude=varying)
        assert one.top_failures == other.top_failures
    reports = {"pipeline_a_report", "pipeline_b_report"}
    assert found.model_dump(exclude=reports) == expected.model_dump(exclude=reports)


@few
@given(case)
def test_counts_add_up(results, case):
    a, b = (results(name, side) for name, side in zip("ab", sides_of(case), strict=True))
    report = Comparison(a, b).report
    n = len(case)
    outcomes = report.queries_improved, report.queries_regressed, report.queries_unchanged
    assert sum(outcomes) == len(report.query_outcomes) == n
    for side in (report.pipeline_a_report, report.pipeline_b_report):
        assert sum(side.diagnosis_counts.values()) + side.undiagnosed_queries == n
        assert side.completed_queries + side.failed_queries == n
        assert sum(part.total_queries for part in side.metrics_by_query_type.values()) == n
        assert sum(map(len, side.failing_queries.values())) == n - side.diagnosis_counts["PASS"]
    for part in report.query_type_deltas.values():
        assert sum(part.failure_deltas.values()) == 0
        assert part.total_failure_delta == -part.failure_deltas["PASS"]


def test_queries_are_compared_in_bulk(results):
    """Nothing goes query by query until the list is asked for."""
    n = 3_000
    queries = {f"q{i}": {"retrieved": ["a", "b"] if i % 3 else ["b"]} for i in range(n)}
    comparison = Comparison(results("a", queries), results("b", [f"q{i}" for i in range(n)]))
    assert comparison.queries_improved == n // 3
    assert isinstance(comparison.outcomes, pd.DataFrame)
    assert "query_outcomes" not in vars(comparison._pair)
    assert len(comparison.query_outcomes) == n
