"""Results: tables, selection, indexing, other settings; immutable."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragdiag.errors import QueryNotFoundError, RunError, SettingsError
from ragdiag.recording import Run
from ragdiag.results import Results
from ragdiag.rules import Rule
from ragdiag.schema import EvaluationResult, Settings
from ragdiag.tables import BOOLEAN, COUNT, MEASURE, OUTCOMES, QUERIES, TEXT, VERDICTS
from ragdiag.taxonomy import DISPLAY_ORDER, PRECEDENCE, QUALITY_ORDER

MakeRun = Callable[..., Run]

QUERIES_GIVEN: list[dict[str, Any]] = [
    {"relevant": ["a"], "retrieved": ["a", "x"], "ms": 10.0, "query_type": "factual",
     "metadata": {"team": "red", "size": 1, "tags": ["b"]},
     "answer_correct": True, "grounded": True,
     "correct_confidence": 0.9, "grounded_confidence": 0.8},
    {"relevant": ["a"], "retrieved": ["x"], "ms": 2000.0, "query_type": "multi-hop",
     "metadata": {"team": "blue", "size": 2}, "answer_correct": False,
     "correct_confidence": 0.5},
    {"relevant": ["a", "b"], "retrieved": ["b", "y", "z", "w", "v", "a"], "ms": 20.0,
     "query_type": "multi-hop", "metadata": {"team": "red", "size": None}},
    {"status": "failed", "error": "retrieval failed: OSError: no", "relevant": ["a"],
     "query_type": "factual", "metadata": {"team": None, "size": 4}},
    {"relevant": [], "retrieved": ["x"], "ms": 30.0, "grounded": False,
     "grounded_confidence": 0.7, "metadata": {"team": "blue", "size": 5}},
    {"status": None, "relevant": ["a"], "query_type": "own", "metadata": {"team": "red"}},
]  # fmt: skip


@pytest.fixture
def results(make_run: MakeRun) -> Results:
    return Results(
        make_run(*QUERIES_GIVEN, pipeline_name="p", dataset_name="d", dataset_version="2")
    )


def test_names(results: Results) -> None:
    assert (results.name, results.dataset_name, results.dataset_version) == ("p", "d", "2")
    assert (results.k, results.settings, results.rules) == (5, Settings(), ())
    assert results.category_order == tuple(each.value for each in DISPLAY_ORDER)
    assert results.precedence == tuple(each.value for each in PRECEDENCE)
    assert results.query_ids == ["q1", "q2", "q3", "q4", "q5", "q6"]


# -- tables ---------------------------------------------------------------------------------------


def test_frame_has_the_columns_of_the_design(results: Results) -> None:
    frame = results.frame
    assert list(frame.columns) == [
        *QUERIES,
        *("team", "size", "tags"),
        *(name for name in OUTCOMES if name != "query_id"),
        *(name for name in VERDICTS if name != "query_id"),
        *("precision_at_5", "recall_at_5", "hit_rate_at_5", "ndcg_at_5"),
        *("reciprocal_rank", "average_precision", "first_relevant_rank"),
        *("n_relevant", "n_retrieved", "n_found"),
        *(f"signal_{each.lower()}" for each in PRECEDENCE),
        *("not_measured", "category", "severity", "confidence", "suspect_label"),
        *("reason", "action"),
    ]
    assert frame.index.tolist() == [0, 1, 2, 3, 4, 5]


def test_frame_has_the_types_of_the_design(results: Results) -> None:
    types = results.frame.dtypes
    for name in (*QUERIES, "status", "error", "severity", "reason", "action", "judge"):
        assert types[name] == TEXT, name
    for name in ("recall_at_5", "reciprocal_rank", "retrieval_ms", "confidence"):
        assert types[name] == MEASURE, name
    for name in ("first_relevant_rank", "n_relevant", "n_retrieved", "n_found"):
        assert types[name] == COUNT, name
    for name in ("answer_correct", "signal_unknown", "signal_pass", "suspect_label"):
        assert types[name] == BOOLEAN, name
    assert types["category"].ordered
    assert types["category"].categories.tolist() == [each.value for each in QUALITY_ORDER]


def test_frame_has_measures_or_says_they_are_missing(results: Results) -> None:
    frame = results.frame
    assert frame["recall_at_5"].tolist()[:3] == [1.0, 0.0, 0.5]
    assert frame["recall_at_5"].isna().tolist() == [False, False, False, True, True, True]
    assert frame["reciprocal_rank"].tolist()[:3] == [1.0, 0.0, 1.0]
    assert frame["n_found"].tolist()[:3] == [1, 0, 1]
    assert frame["n_found"].isna().tolist() == [False, False, False, True, True, True]
    assert frame["first_relevant_rank"].isna().tolist() == [False, True, False, True, True, True]
    assert frame["n_retrieved"].tolist()[:5] == [2, 1, 6, 0, 1]
    assert frame["n_retrieved"].isna().tolist()[5]
    assert frame["n_relevant"].tolist() == [1, 1, 2, 1, 0, 1]


def test_a_category_can_be_compared(results: Results) -> None:
    worse = results.frame["category"] > "INSUFFICIENT_CONTEXT"
    assert worse.tolist() == [False, True, False, True, True, False]


def test_chunks(results: Results) -> None:
    chunks = results.chunks
    assert list(chunks.columns) == [
        *("query_id", "rank", "chunk_id", "score", "text", "metadata"),
        *("relevant", "grade", "in_top_k"),
    ]
    third = chunks[chunks["query_id"] == "q3"]
    assert third["relevant"].tolist() == [True, False, False, False, False, True]
    assert third["in_top_k"].tolist() == [True] * 5 + [False]
    assert third["grade"].isna().tolist() == [False, True, True, True, True, False]
    unlabelled = chunks[chunks["query_id"] == "q5"]
    assert unlabelled["relevant"].isna().all()


def test_chunks_that_came_twice_are_relevant_twice(make_run: MakeRun) -> None:
    chunks = Results(
        make_run({"relevant": {"a": 2, "b": 0}, "retrieved": ["b", "a", "x", "a"]})
    ).chunks
    assert chunks["relevant"].tolist() == [False, True, False, True]
    assert chunks["grade"].tolist()[:2] == [0, 2]


def test_tables_do_not_depend_on_the_order_of_rows(make_run: MakeRun) -> None:
    run = make_run(*QUERIES_GIVEN)
    shuffled = Run(
        run.queries,
        *(
            table.sample(frac=1, random_state=7)
            for table in (run.qrels, run.retrieved, run.outcomes, run.verdicts)
        ),
    )
    one, other = Results(run), Results(shuffled)
    pd.testing.assert_frame_equal(one.frame, other.frame)
    pd.testing.assert_frame_equal(one.chunks, other.chunks)
    assert [each.model_dump() for each in one if each.query_id != "q3"] == [
        each.model_dump() for each in other if each.query_id != "q3"
    ]


def test_rows_of_unknown_queries_are_left_out_and_told(make_run: MakeRun) -> None:
    whole = make_run(*QUERIES_GIVEN)
    part = Results(
        Run(
            whole.queries.iloc[[1, 4]],
            whole.qrels,
            whole.retrieved,
            whole.outcomes,
            whole.verdicts,
        )
    )
    assert part.chunks["chunk_id"].tolist() == ["x", "x"]
    assert part.frame["category"].tolist() == [
        "WRONG_CHUNK_RETRIEVED",
        "RETRIEVED_BUT_NOT_GROUNDED",
    ]
    notes = "\n".join(part.notes)
    assert "3 rows of outcomes left out: no such query in the dataset" in notes
    assert "1 row of verdicts left out" in notes


def test_expected(results: Results) -> None:
    expected = results.expected
    assert list(expected.columns) == ["query_id", "chunk_id", "grade", "rank", "in_top_k"]
    assert expected["query_id"].tolist() == ["q1", "q2", "q3", "q3", "q4", "q6"]
    assert expected["rank"].fillna(0).tolist() == [1, 0, 6, 1, 0, 0]
    assert expected["in_top_k"].tolist()[:4] == [True, False, False, True]
    assert expected["in_top_k"].isna().tolist() == [False] * 4 + [True, True]


def test_tables_of_no_queries(make_run: MakeRun) -> None:
    empty = Results(make_run())
    assert len(empty) == 0
    assert len(empty.frame) == len(empty.chunks) == len(empty.expected) == 0
    assert empty.headline == "no queries"
    assert empty.counts()["queries"].sum() == 0
    assert empty.summary()["n_used"].sum() == 0
    assert len(empty.by("query_type")) == len(empty.failures()) == 0
    assert list(empty) == []


@pytest.mark.parametrize("table", ["outcomes", "verdicts"])
def test_a_query_twice_in_a_table_of_one_row_a_query(make_run: MakeRun, table: str) -> None:
    run = make_run({"answer_correct": True}, {"answer_correct": True})
    tables = {"outcomes": run.outcomes, "verdicts": run.verdicts}
    tables[table] = pd.concat([tables[table], tables[table].head(1)])
    with pytest.raises(RunError, match=f"table '{table}': query 'q1' occurs more than once"):
        Results(Run(run.queries, **tables))


@pytest.mark.parametrize("name", ["category", "recall_at_7", "signal_mine"])
def test_a_metadata_column_may_not_take_our_names(make_run: MakeRun, name: str) -> None:
    with pytest.raises(RunError, match=f"metadata column '{name}'"):
        Results(make_run({"metadata": {name: 1}}))


# -- nobody can harm them -------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["frame", "chunks", "expected"])
def test_tables_handed_out_cannot_harm(results: Results, table: str) -> None:
    before = getattr(results, table).copy(deep=True)
    taken = getattr(results, table)
    taken.loc[0, "query_id"] = "harmed"
    taken.iloc[0, taken.columns.get_loc("query_id")] = "harmed"
    taken["extra"] = 1
    del taken["query_id"]
    pd.testing.assert_frame_equal(getattr(results, table), before)


def test_the_runs_tables_cannot_be_harmed_through_results(make_run: MakeRun) -> None:
    run = make_run(*QUERIES_GIVEN)
    frame = Results(run).frame
    for column in ("retrieval_ms", "size", "n_retrieved"):
        frame.loc[0, column] = 99
    frame.loc[0, "query"] = "harmed"
    assert run.outcomes["retrieval_ms"].iloc[0] == 10.0
    assert run.queries["query"].iloc[0] == "why?"
    assert Results(run).frame["n_retrieved"].iloc[0] == 2


@pytest.mark.parametrize("name", ["k", "headline", "run", "frame", "anything"])
def test_attributes_cannot_be_set(results: Results, name: str) -> None:
    with pytest.raises(AttributeError, match=f"results never change: '{name}' cannot be set"):
        setattr(results, name, None)
    assert copy.copy(results).headline == results.headline


def test_a_users_rule_cannot_harm(make_run: MakeRun) -> None:
    def when(frame: pd.DataFrame) -> Any:
        frame["recall_at_5"] = 0.0
        frame.loc[frame.index[0], "query"] = "harmed"
        return frame["recall_at_5"] > 0

    frame = Results(make_run(*QUERIES_GIVEN), rules=[Rule("R", "info", when, "r", "a")]).frame
    assert frame["recall_at_5"].iloc[0] == 1.0
    assert frame["query"].iloc[0] == "why?"


# -- selection ------------------------------------------------------------------------------------


def test_select_takes_masks_callables_and_values(results: Results) -> None:
    frame = results.frame
    assert results.select(frame["retrieval_ms"] > 15).query_ids == ["q2", "q3", "q5"]
    assert results.select(lambda f: f.retrieval_ms > 15).query_ids == ["q2", "q3", "q5"]
    assert results.select(team="red").query_ids == ["q1", "q3", "q6"]
    assert results.select(team=["blue", None]).query_ids == ["q2", "q4", "q5"]
    assert results.select(team=None).query_ids == ["q4"]
    assert results.select(category=None).query_ids == ["q6"]
    assert results.select(category=PRECEDENCE[0]).query_ids == ["q4"]
    assert results.select(answer_correct=False).query_ids == ["q2"]
    assert results.select(grounded=None).query_ids == ["q2", "q3", "q4", "q6"]
    assert results.select(size=4).query_ids == ["q4"]
    assert results.select(reason="retrieval failed: OSError: no").query_ids == ["q4"]
    assert results.select(frame["team"] == "red", query_type="multi-hop").query_ids == ["q3"]
    assert results.select(tags=[["b"]]).query_ids == ["q1"]
    assert results.select(tags={"b"}).query_ids == []
    assert results.select(query_type=3).query_ids == []
    assert results.select(retrieval_ms="x").query_ids == []
    assert results.select().query_ids == results.query_ids
    assert len(results.select(team="none")) == 0


def test_masks_align_by_position_in_the_dataset(results: Results) -> None:
    mask = results.frame["team"] == "red"
    failures = results.failures()
    assert failures.select(mask).query_ids == ["q3"]
    assert failures[mask].query_ids == ["q3"]
    assert failures.select(mask.sample(frac=1, random_state=1)).query_ids == ["q3"]


def test_a_selection_keeps_what_it_is_of(results: Results) -> None:
    part = results.select(query_type="multi-hop")
    assert isinstance(part, Results)
    assert part.frame.index.tolist() == [1, 2]
    pd.testing.assert_frame_equal(part.frame, results.frame.iloc[1:3])
    assert part.run.queries["query_id"].tolist() == ["q2", "q3"]
    assert set(part.chunks["query_id"]) == set(part.expected["query_id"]) == {"q2", "q3"}
    assert part.summary()["n_used"].max() == 2
    assert part.rediagnose(k=6).frame["category"].tolist() == ["WRONG_CHUNK_RETRIEVED", "PASS"]
    assert results.run is results.run


@pytest.mark.parametrize(
    ("where", "columns", "message"),
    [
        ([True], {}, "the mask has 1 values for 6 queries"),
        ([1, 2, 3], {}, "expected a mask of True and False, one a query, got list"),
        (pd.Series([True] * 6, index=list("abcdef")), {}, "does not hold all 6 queries"),
        (pd.Series([True] * 6, index=[0, 0, 1, 2, 3, 4]), {}, "does not hold all 6 queries"),
        (None, {"categry": "PASS"}, "no column 'categry' to select by; did you mean 'category'"),
        (None, {"zzz": 1}, "no column 'zzz' to select by$"),
        (None, {"category": "INSUFICIENT_CONTEXT"}, "one of PASS, .*, got .INSUFICIENT_CONTEXT.$"),
    ],
)
def test_a_selection_that_makes_no_sense(
    results: Results, where: Any, columns: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        results.select(where, **columns)


def test_failures_are_the_worst_first(make_run: MakeRun) -> None:
    wrong = {"answer_correct": False, "grounded": True, "ms": 1.0}
    results = Results(
        make_run(
            {"id": "pass", "ms": 1.0},
            {"id": "nothing"},
            {"id": "slow", "ms": 5000.0},
            {"id": "unsure", **wrong, "correct_confidence": 0.2},
            {"id": "unstated", **wrong},
            {"id": "sure", **wrong, "correct_confidence": 0.9},
            {"id": "none-b", "relevant": ["a"], "retrieved": ["x"]},
            {"id": "none-a", "relevant": ["a"], "retrieved": ["x"]},
            {"id": "broken", "status": "failed"},
            {"id": "part", "relevant": ["a", "b"], "retrieved": ["a"]},
        )
    )
    worst = ["none-a", "none-b", "broken", "sure", "unsure", "unstated", "part", "slow"]
    assert results.failures().query_ids == worst
    assert results.failures(category="ANSWER_INCORRECT").query_ids == ["sure", "unsure", "unstated"]
    assert results.failures(category=["LATENCY_OUTLIER", "UNKNOWN"]).query_ids == [
        "broken",
        "slow",
    ]
    assert results.failures(category="PASS").query_ids == []


def test_failures_by_columns(results: Results) -> None:
    assert results.failures(query_type="multi-hop", team="blue").query_ids == ["q2"]
    assert [item.query_id for item in results.failures()] == results.failures().query_ids


# -- indexing -------------------------------------------------------------------------------------


def test_index_by_id_and_by_place(results: Results) -> None:
    assert results["q3"].query_id == results[2].query_id == results[-4].query_id == "q3"
    assert results[np.int64(2)].query_id == "q3"
    failures = results.failures()
    assert failures[0].query_id == failures.query_ids[0]
    assert isinstance(results["q1"], EvaluationResult)
    assert "q1" in results
    assert "q1" not in failures
    assert 1 not in results


def test_index_by_many(results: Results) -> None:
    assert results[1:3].query_ids == ["q2", "q3"]
    assert results[::-1].query_ids[0] == "q6"
    assert results[["q5", "q1"]].query_ids == ["q5", "q1"]
    assert results[[4, 0]].query_ids == ["q5", "q1"]
    assert results[np.array([4, 0])].query_ids == ["q5", "q1"]
    assert results[results.frame["query_id"].tail(2)].query_ids == ["q5", "q6"]
    assert results[pd.Index(["q2"])].query_ids == ["q2"]
    assert results[[True, False] * 3].query_ids == ["q1", "q3", "q5"]
    assert results[np.array([True] + [False] * 5)].query_ids == ["q1"]
    assert results[results.frame["answer_correct"]].query_ids == ["q1"]
    assert results[[]].query_ids == []


def test_index_by_what_is_not_there(results: Results) -> None:
    with pytest.raises(QueryNotFoundError, match=r"no query 'q11' among these 6; similar ids are"):
        results["q11"]
    with pytest.raises(QueryNotFoundError, match=r"no query 'zebra' among these 6$"):
        results[["zebra"]]
    with pytest.raises(QueryNotFoundError, match="among these 1"):
        results[:1]["q2"]
    with pytest.raises(IndexError, match="position 6 is out of range for 6 queries"):
        results[6]
    with pytest.raises(IndexError):
        results[-7]
    with pytest.raises(TypeError, match=r"indexed by a query id, .* got float"):
        results[1.5]
    with pytest.raises(SettingsError, match="the mask has 2 values"):
        results[[True, False]]


def test_it_is_sized_and_iterable_and_no_sequence(results: Results) -> None:
    assert len(results) == 6
    assert [item.query_id for item in results] == results.query_ids
    assert not isinstance(results, Sequence)
    assert [item.model_dump() for item in results] == [
        results[place].model_dump() for place in range(6)
    ]


# -- other settings -------------------------------------------------------------------------------


def test_rediagnose_equals_results_at_these_settings(results: Results) -> None:
    again = results.rediagnose(
        k=6, rank_threshold=1, latency_threshold_ms=5.0, precision_denominator="k"
    )
    fresh = Results(
        results.run,
        Settings(k=6, rank_threshold=1, latency_threshold_ms=5.0, precision_denominator="k"),
    )
    pd.testing.assert_frame_equal(again.frame, fresh.frame)
    assert results.k == 5
    assert again.k == 6
    assert again.frame["precision_at_6"].iloc[0] == pytest.approx(1 / 6)
    assert results.rediagnose().settings == results.settings


def test_rediagnose_keeps_or_changes_rules(make_run: MakeRun) -> None:
    own = Rule("MINE", "info", lambda f: f["n_found"] > 0, "r", "a")
    results = Results(make_run(*QUERIES_GIVEN), rules=[own])
    assert results.rediagnose(k=1).rules == (own,)
    assert results.rediagnose(rules=()).rules == ()
    with pytest.raises(SettingsError, match="k must be"):
        results.rediagnose(k=0)


def test_notes_say_what_the_recording_cannot_answer(make_run: MakeRun) -> None:
    deep = {"relevant": ["a"], "retrieved": [*"abcdef"], "ms": 1.0}
    assert Results(make_run(deep)).notes == ()
    results = Results(make_run(deep, {**deep, "retrieved": ["a"]}, {"status": None}))
    assert results.notes == (
        "fewer than k = 5 chunks were recorded for 1 of 2 queries (at most 6 for any): "
        "what lies deeper is not known",
        "1 of 3 queries have not been run",
    )
    assert (
        results.rediagnose(k=10)
        .notes[0]
        .startswith("fewer than k = 10 chunks were recorded for 2 of 2 queries (at most 6 for any)")
    )
    shallow = results.rediagnose(k=2, rank_threshold=2).notes
    assert any("WRONG_CHUNK_RANK cannot fire: rank_threshold is 2" in note for note in shallow)


def test_notes_tell_repeated_labels_and_those_of_the_run(make_run: MakeRun) -> None:
    run = make_run({"relevant": ["a"], "retrieved": [*"abcde"], "ms": 1.0})
    twice = Run(
        run.queries,
        pd.concat([run.qrels, run.qrels]),
        run.retrieved,
        run.outcomes,
        info={"notes": ["the file ended early"]},
    )
    assert Results(twice).notes == (
        "1 labels left out: the same chunk of the same query is labelled before",
        "the file ended early",
    )


# -- the rooms below ------------------------------------------------------------------------------


def test_what_points_down_arrives(results: Results, tmp_path: Path) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    assert "WRONG_CHUNK_RETRIEVED" in repr(results)
    assert "WRONG_CHUNK_RETRIEVED" in results._repr_html_()
    assert set(results._repr_mimebundle_()) == {"text/plain", "text/html"}
    assert "WRONG_CHUNK_RETRIEVED" in results.to_markdown()
    results.to_html(tmp_path / "r.html")
    assert "WRONG_CHUNK_RETRIEVED" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert len(results.plot_data())
    assert results.plot("latency") is not None
    pyplot.close("all")
    assert results.explore() is not None
    assert results.report().total_queries == 6
    assert results.insights == results.report().overall_insights
