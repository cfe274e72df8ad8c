"""Which results can be compared, and what the others are told."""

from __future__ import annotations

import pytest

from ragdiag.comparison import Comparison
from ragdiag.diagnosis import Rule
from ragdiag.errors import ComparisonError


def test_other_queries_are_refused_with_the_difference_named(results):
    a, b = results("a", ["q1", "q2", "q3"]), results("b", ["q2", "q3", "q4", "q5"])
    with pytest.raises(ComparisonError) as error:
        Comparison(a, b)
    message = str(error.value)
    assert "1 only in 'a', not in 'b': 'q1'" in message
    assert "2 only in 'b', not in 'a': 'q4', 'q5'" in message
    assert "on='intersection'" in message


def test_many_missing_queries_are_counted(results):
    with pytest.raises(ComparisonError, match="'q6' and 3 more"):
        Comparison(results("a", ["q1"]), results("b", [f"q{i}" for i in range(1, 10)]))


def test_the_intersection_is_compared_and_counted(results):
    a, b = results("a", ["q1", "q2", "q3"]), results("b", ["q3", "q5", "q2"])
    comparison = Comparison(a, b, on="intersection")
    assert comparison.query_ids.tolist() == ["q2", "q3"]
    assert comparison.left_out == {"a": 1, "b": 1}
    assert comparison.pipeline_a_report.total_queries == 2
    assert comparison.select(query_id="q3").left_out == {"a": 1, "b": 1}
    assert Comparison(a, a, on="intersection").left_out == {"a": 0, "a (2)": 0}
    nothing = Comparison(results("a", ["q1"]), results("b", ["q2"]), on="intersection")
    assert (len(nothing), nothing.winner) == (0, "TIE")


def test_on_has_two_values(dense, hybrid):
    with pytest.raises(ComparisonError, match="'all' or 'intersection', got 'left'"):
        Comparison(dense, hybrid, on="left")


def test_the_order_of_queries_is_the_baselines(results):
    a = results("a", {"q2": {}, "q1": {"retrieved": ["x"]}})
    b = results("b", {"q1": {"retrieved": ["x"]}, "q2": {}})
    comparison = Comparison(a, b)
    assert comparison.query_ids.tolist() == ["q2", "q1"]
    assert comparison.queries_unchanged == 2


def test_other_settings_are_refused_with_the_remedy(results):
    a, b = results("a", ["q1"], k=5), results("b", ["q1"], k=10, rank_threshold=2)
    with pytest.raises(ComparisonError) as error:
        Comparison(a, b)
    message = str(error.value)
    assert "k is 5 in 'a' and 10 in 'b', rank_threshold is 3 in 'a' and 2 in 'b'" in message
    assert "compare(a, b, k=5, rank_threshold=3)" in message


def test_other_rules_are_refused(results):
    rule = Rule("SHORT", "warning", lambda f: f["n_retrieved"] < 2, reason="r", action="a")
    with pytest.raises(ComparisonError, match="rules of your own differ between 'a' and 'b'"):
        Comparison(results("a", ["q1"], rules=[rule]), results("b", ["q1"]))


def test_one_query_twice_is_refused(dense, hybrid):
    twice = dense[["q1", "q1", "q2"]]
    with pytest.raises(ComparisonError, match="'dense' holds 'q1' more than once"):
        Comparison(twice, hybrid)


def test_one_id_for_two_questions_is_refused(results):
    a = results("a", {"q1": {"query": "How long?"}, "q2": {}})
    b = results("b", {"q1": {"query": "How much?"}, "q2": {}})
    with pytest.raises(ComparisonError, match=r"'q1': 'How long\?' in 'a', 'How much\?' in 'b'"):
        Comparison(a, b)


def test_a_text_that_one_side_does_not_know_is_no_difference(results):
    a, b = results("a", {"q1": {"query": None}}), results("b", {"q1": {"query": "How much?"}})
    assert len(Comparison(a, b)) == 1


def test_other_labels_are_refused(results):
    a = results("a", {"q1": {"relevant": ["a"]}, "q2": {"relevant": ["a", "b"]}})
    b = results("b", {"q1": {"relevant": ["a"]}, "q2": {"relevant": ["a", "c"]}})
    with pytest.raises(ComparisonError, match=r"relevant chunks of 'q2' differ.*diagnose\(run, "):
        Comparison(a, b)


def test_the_order_of_labels_is_no_difference(results):
    a = results("a", {"q1": {"relevant": ["a", "b"]}, "q2": {}})
    b = results("b", {"q2": {}, "q1": {"relevant": ["b", "a"]}})
    assert len(Comparison(a, b)) == 2


# --- names -----------------------------------------------------------------------------------


def test_two_of_one_name_are_told_apart(dense):
    comparison = Comparison(dense, dense, dense)
    assert comparison.names == ("dense", "dense (2)", "dense (3)")
    assert comparison.pair(0, 1).winner == "TIE"


def test_a_name_that_is_taken_is_passed_over(results):
    named = [results(name, ["q1"]) for name in ("dense", "dense (2)", "dense")]
    assert Comparison(*named).names == ("dense", "dense (2)", "dense (3)")


def test_versions_tell_apart(results):
    from ragdiag.recording import Run
    from ragdiag.results import Results

    plain = results("dense", ["q1"])
    versions = [
        Results(
            Run(
                plain.run.queries,
                plain.run.qrels,
                plain.run.retrieved,
                plain.run.outcomes,
                pipeline_name="dense",
                pipeline_version=version,
            )
        )
        for version in ("1.0", "1.1")
    ]
    assert Comparison(*versions).names == ("dense 1.0", "dense 1.1")


def test_no_name_and_the_name_of_no_winner(results):
    assert Comparison(results("", ["q1"]), results("TIE", ["q1"])).names == (
        "Pipeline A",
        "TIE (2)",
    )


def test_names_may_be_given(dense, hybrid):
    comparison = Comparison(dense, hybrid, names=["old", "new"])
    assert comparison.winner == "new"
    assert comparison.pipeline_b_report.pipeline_name == "new"


@pytest.mark.parametrize("names", [["a"], ["a", "a"], ["a", ""], ["a", "TIE"], ["a", "b", "c"]])
def test_names_that_tell_nothing_apart_are_refused(dense, hybrid, names):
    with pytest.raises(ComparisonError, match="names="):
        Comparison(dense, hybrid, names=names)
