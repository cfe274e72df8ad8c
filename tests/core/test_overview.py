"""Many queries at once: means with their n, counts, groups, the headline."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from ragdiag.errors import SettingsError
from ragdiag.recording import Run
from ragdiag.results import Results
from ragdiag.rules import Rule

MakeRun = Callable[..., Run]

HIT: dict[str, Any] = {"relevant": ["a"], "retrieved": ["a"], "ms": 10.0}
MISS: dict[str, Any] = {"relevant": ["a"], "retrieved": ["x"], "ms": 30.0}
JUDGED: dict[str, Any] = {"answer_correct": True, "grounded": True}
BROKEN: dict[str, Any] = {"status": "failed", "relevant": ["a"], "ms": 999.0}


def rows(results: Results) -> dict[str, list[Any]]:
    return {row[0]: list(row[1:]) for row in results.summary().itertuples(index=False)}


def test_summary_counts_what_each_mean_rests_on(make_run: MakeRun) -> None:
    unlabelled = {"retrieved": ["x"], "ms": 20.0, "grounded": False}
    results = Results(make_run({**HIT, **JUDGED}, MISS, BROKEN, unlabelled, {"status": None}))
    found = rows(results)
    assert found["recall_at_5"] == [0.5, 2, 1, 2]
    assert found["reciprocal_rank"] == [0.5, 2, 1, 2]
    assert found["answer_correct"] == [1.0, 1, 1, 3]
    assert found["grounded"] == [0.5, 2, 1, 2]
    assert found["passed"] == [0.25, 4, 0, 1]
    # A failed query took time as well; what it says of the retriever is not a latency.
    assert found["mean_retrieval_ms"] == [20.0, 3, 1, 1]
    assert found["p95_retrieval_ms"] == [pytest.approx(29.0), 3, 1, 1]
    assert math.isnan(found["mean_generation_ms"][0])
    assert all(sum(counts[1:]) == 5 for counts in found.values())


def test_a_verdict_on_a_failed_query_is_not_averaged(make_run: MakeRun) -> None:
    found = rows(Results(make_run({**BROKEN, **JUDGED}, {**HIT, "grounded": False})))
    assert found["grounded"] == [0.0, 1, 1, 0]


def test_latency_has_one_row_a_stage(make_run: MakeRun) -> None:
    table = Results(make_run({**HIT, "generation_ms": 5.0, "judge_ms": 7.0}, MISS)).latency()
    assert table.index.tolist() == ["retrieval", "generation", "total", "judge"]
    assert table["count"].tolist() == [2, 1, 0, 1]
    assert table.loc["retrieval", "p50_ms"] == 20.0
    assert math.isnan(table.loc["total", "max_ms"])


def test_counts_are_in_display_order(make_run: MakeRun) -> None:
    slow_miss = {**MISS, "ms": 5000.0}
    results = Results(make_run(HIT, slow_miss, BROKEN, {"query": "?"}))
    counts = results.counts()
    assert counts.index.tolist() == list(results.category_order)
    assert counts["queries"].to_dict() | {} == {
        "PASS": 1,
        "WRONG_CHUNK_RETRIEVED": 1,
        "WRONG_CHUNK_RANK": 0,
        "INSUFFICIENT_CONTEXT": 0,
        "RETRIEVED_BUT_NOT_GROUNDED": 0,
        "ANSWER_INCORRECT": 0,
        "LATENCY_OUTLIER": 0,
        "UNKNOWN": 1,
    }
    assert counts.loc["LATENCY_OUTLIER", "also_fired"] == 1
    assert counts.loc["PASS", "also_fired"] == 0
    assert counts.loc["ANSWER_INCORRECT", "not_measured"] == 4
    assert counts.loc["LATENCY_OUTLIER", "not_measured"] == 1
    assert counts.loc["UNKNOWN", "severity"] == "major"
    assert counts.loc["PASS", "action"] == "Nothing to do."


def test_by_query_type(make_run: MakeRun) -> None:
    results = Results(
        make_run(
            {**MISS, "query_type": "zeta"},
            {**HIT, **JUDGED, "query_type": "multi-hop"},
            {**MISS, "query_type": "multi-hop"},
            {**BROKEN, "query_type": "factual"},
            {**HIT, "query_type": "alpha"},
            HIT,
        )
    )
    table = results.by("query_type")
    assert table.index.tolist() == ["factual", "multi-hop", "alpha", "zeta", None]
    assert table.index.name == "query_type"
    assert table["queries"].tolist() == [1, 2, 1, 1, 1]
    assert table["passed"].tolist() == [0, 1, 1, 0, 1]
    assert table["completed"].tolist() == [0, 2, 1, 1, 1]
    assert table["failed"].tolist() == [1, 0, 0, 0, 0]
    assert table.loc["multi-hop", "recall_at_5"] == 0.5
    assert table.loc["multi-hop", "n_recall_at_5"] == 2
    assert table.loc["multi-hop", "n_answer_correct"] == 1
    assert math.isnan(table.loc["factual", "recall_at_5"])
    assert table.loc["multi-hop", "p50_retrieval_ms"] == 20.0
    assert table["main_cause"].fillna("-").tolist() == [
        *("UNKNOWN", "WRONG_CHUNK_RETRIEVED", "-", "WRONG_CHUNK_RETRIEVED", "-")
    ]


def test_by_any_column(make_run: MakeRun) -> None:
    queries = [{**HIT, "metadata": {"size": size}} for size in (3, 1, 3, None)]
    table = Results(make_run(*queries)).by("size")
    assert table["queries"].tolist() == [1, 2, 1]
    assert table.index.tolist()[:2] == [1, 3]
    assert pd.isna(table.index[2])
    assert Results(make_run(HIT, MISS)).by("answer_correct")["queries"].tolist() == [2]
    assert Results(make_run(HIT, MISS)).by("category").index.tolist() == [
        "PASS",
        "WRONG_CHUNK_RETRIEVED",
    ]


def test_by_values_that_have_no_order(make_run: MakeRun) -> None:
    queries = [{**HIT, "metadata": {"mixed": value}} for value in ("x", 1, "x")]
    table = Results(make_run(*queries)).by("mixed")
    assert table["queries"].to_dict() == {"x": 2, 1: 1}


def test_main_cause_of_a_tie_is_the_first_in_display_order(make_run: MakeRun) -> None:
    queries = [{**BROKEN, "query_type": "t"}, {**MISS, "query_type": "t"}]
    table = Results(make_run(*queries)).by("query_type")
    assert table["main_cause"].tolist() == ["WRONG_CHUNK_RETRIEVED"]


def test_by_what_cannot_be_grouped(make_run: MakeRun) -> None:
    results = Results(make_run({**HIT, "metadata": {"tags": ["a"]}}))
    with pytest.raises(SettingsError, match="no column 'tag'; the columns are query_id"):
        results.by("tag")
    with pytest.raises(SettingsError, match="'tags' cannot be grouped by"):
        results.by("tags")


@pytest.mark.parametrize(
    ("queries", "headline"),
    [
        ([HIT] * 5, "5 of 5 passed retrieval; answers not judged"),
        ([{**HIT, **JUDGED}] * 2, "2 of 2 passed"),
        (
            [HIT, MISS, MISS],
            "1 of 3 passed retrieval · 2 × WRONG_CHUNK_RETRIEVED; answers not judged",
        ),
        (
            [{**HIT, **JUDGED}, HIT, HIT, {**HIT, "grounded": True}],
            "4 of 4 passed; 2 answers not judged; correctness of 1 more not judged",
        ),
        (
            [{**HIT, **JUDGED}, {**HIT, "answer_correct": True}, HIT],
            "3 of 3 passed; 1 answer not judged; grounding of 1 more not judged",
        ),
        (
            [{"ms": 1.0, **JUDGED}, {"ms": 1.0, "answer_correct": False, "grounded": True}],
            "1 of 2 passed · 1 × ANSWER_INCORRECT; retrieval not measured",
        ),
        ([{"ms": 1.0}], "1 of 1 passed; retrieval not measured; answers not judged"),
        (
            [HIT, {"ms": 1.0}],
            "2 of 2 passed retrieval; 1 without labels; answers not judged",
        ),
        (
            [{"query": "?"}],
            "0 of 1 passed; 1 without any evidence; retrieval not measured; answers not judged",
        ),
        ([BROKEN], "0 of 1 passed · 1 × UNKNOWN; retrieval not measured"),
        (
            [{**HIT, "answer_correct": False, "grounded": True, "screened": True}],
            "0 of 1 passed · 1 × ANSWER_INCORRECT; 1 only suspected by the offline judge",
        ),
        (
            [
                MISS,
                MISS,
                {**HIT, "ms": 5000.0},
                {**HIT, "retrieved": [*"xyza"]},
                {**HIT, "relevant": ["a", "b"]},
                BROKEN,
            ],
            "0 of 6 passed retrieval · 2 × WRONG_CHUNK_RETRIEVED · 1 × WRONG_CHUNK_RANK · "
            "1 × INSUFFICIENT_CONTEXT · 2 with other causes; answers not judged",
        ),
    ],
)
def test_headline(make_run: MakeRun, queries: list[dict[str, Any]], headline: str) -> None:
    assert Results(make_run(*queries)).headline == headline


def test_headline_names_users_causes(make_run: MakeRun) -> None:
    own = Rule("MINE", "info", lambda f: f["retrieval_ms"] > 5, "r", "a")
    assert "1 × MINE" in Results(make_run(HIT), rules=[own]).headline
