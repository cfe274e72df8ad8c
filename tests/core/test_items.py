"""One query as an object: nothing lost, nothing invented, nothing rounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from ragdiag.items import BATCH
from ragdiag.recording import Run
from ragdiag.results import Results
from ragdiag.schema import EvaluationResult

MakeRun = Callable[..., Run]

FULL: dict[str, Any] = {
    "id": "001",
    "query": "How long?",
    "query_type": "factual",
    "expected_answer": "5 days",
    "relevant": {"a": 2, "b": 0},
    "retrieved": ["x", "y", "a"],
    "answer": "5 days",
    "ms": 1.0 / 3.0,
    "generation_ms": 2.0,
    "total_ms": 2.0 + 1.0 / 3.0,
    "answer_correct": True,
    "grounded": True,
    "correct_confidence": 0.9,
    "grounded_confidence": 0.8,
    "judge": "m",
    "judge_reason": "fits",
    "judge_ms": 7.0,
    "screened": False,
    "metadata": {"team": "red", "tags": ["t"], "gone": None},
}


def test_everything_known_is_there(make_run: MakeRun) -> None:
    run = make_run(FULL)
    retrieved = run.retrieved
    retrieved["score"] = [0.5, None, 0.25]
    retrieved["metadata"] = ['{"page": 3}', None, "{}"]
    item = Results(Run(run.queries, run.qrels, retrieved, run.outcomes, run.verdicts))["001"]
    assert item.query == "How long?"
    assert (item.query_type, item.expected_answer) == ("factual", "5 days")
    assert item.expected_chunk_ids == ["a"]
    assert [(c.id, c.text, c.score, c.metadata) for c in item.retrieved_chunks] == [
        ("x", "of x", 0.5, {"page": 3}),
        ("y", "of y", None, None),
        ("a", "of a", 0.25, {}),
    ]
    assert item.generated_answer == "5 days"
    assert item.metrics == {
        "precision_at_5": 1 / 3,
        "recall_at_5": 1.0,
        "hit_rate_at_5": 1.0,
        "ndcg_at_5": 0.5,
        "reciprocal_rank": 1 / 3,
        "average_precision": 1 / 3,
        "first_relevant_rank": 3,
        "answer_correct": True,
        "grounded": True,
        "judge_confidence": 0.8,
        "judge_reason": "fits",
    }
    assert item.latency == {
        "retrieval_ms": 1.0 / 3.0,
        "generation_ms": 2.0,
        "total_ms": 2.0 + 1.0 / 3.0,
        "judge_ms": 7.0,
    }
    assert (item.status, item.error, item.judge_error) == ("completed", None, None)
    assert item.suspect_label is False
    assert item.metadata == {"team": "red", "tags": ["t"]}
    assert item.diagnosis.category == "PASS"
    assert item.diagnosis.confidence == 1.0
    assert EvaluationResult.model_validate_json(item.model_dump_json()) == item


def test_a_failed_query_has_no_metrics(make_run: MakeRun) -> None:
    item = Results(make_run({**FULL, "status": "failed", "error": "generation failed: X: y"}))[0]
    assert item.metrics == {}
    assert (item.status, item.error) == ("failed", "generation failed: X: y")
    assert item.diagnosis.category == "UNKNOWN"
    assert len(item.retrieved_chunks) == 3


def test_what_was_not_measured_has_no_key(make_run: MakeRun) -> None:
    item = Results(make_run({"query": None, "retrieved": ["x"]}))[0]
    assert item.metrics == {}
    assert item.latency == {}
    assert item.query == ""
    assert item.query_type is None
    assert item.generated_answer is None
    assert item.suspect_label is None


@pytest.mark.parametrize(
    ("errors", "metrics", "error"),
    [
        ({"correct_error": "no"}, {"grounded": True, "judge_confidence": 0.8}, "no"),
        (
            {"grounded_error": "nor"},
            {"answer_correct": True, "judge_confidence": 0.9},
            "nor",
        ),
        ({"correct_error": "no", "grounded_error": "nor"}, {}, "no"),
    ],
)
def test_a_side_that_could_not_be_judged_has_no_key(
    make_run: MakeRun, errors: dict[str, str], metrics: dict[str, Any], error: str
) -> None:
    item = Results(make_run({**FULL, **errors}))[0]
    judged = {
        key: value
        for key, value in item.metrics.items()
        if key in ("answer_correct", "grounded", "judge_confidence")
    }
    assert judged == metrics
    assert item.judge_error == f"judge failed: {error}"


def test_many_are_built_in_parts(make_run: MakeRun) -> None:
    n = BATCH + 3
    queries = [{"relevant": [f"c{i}"], "retrieved": ["x", f"c{i}"][i % 2 :]} for i in range(n)]
    items = list(Results(make_run(*queries)))
    assert [item.query_id for item in items] == [f"q{i + 1}" for i in range(n)]
    assert all(item.retrieved_chunks[-1].id == item.expected_chunk_ids[0] for item in items)


def test_chunks_without_text_read_as_empty(make_run: MakeRun) -> None:
    run = make_run({"retrieved": ["x"]})
    bare = Run(run.queries, retrieved=run.retrieved.drop(columns="text"))
    item = Results(bare)[0]
    assert item.retrieved_chunks[0].text == ""
    assert item.status == "completed"
    assert pd.isna(Results(bare).frame["status"].iloc[0])
