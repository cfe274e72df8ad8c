"""Small runs, written down query by query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import pytest

from ragdiag.recording import Run
from ragdiag.results import Results
from ragdiag.schema import Settings

#: One query: its labels, what came back, and anything of the other tables.
Query = Mapping[str, Any]

OUTCOME_FIELDS = ("status", "error", "answer", "retrieval_ms", "generation_ms", "total_ms")
VERDICT_FIELDS = (
    *("answer_correct", "grounded", "correct_confidence", "grounded_confidence"),
    *("correct_error", "grounded_error", "screened", "judge_reason"),
)


def make_run(queries: Mapping[str, Query], **names: Any) -> Run:
    """Return a run of `queries`: id → ``relevant, retrieved`` and any field of the tables."""
    known = {"relevant", "retrieved", *OUTCOME_FIELDS, *VERDICT_FIELDS}
    rows = [
        {
            "query_id": query_id,
            "query": query.get("query", f"Question {query_id}?"),
            "query_type": query.get("query_type", "factual"),
            "expected_answer": query.get("expected_answer", "yes"),
            **{name: value for name, value in query.items() if name not in known},
        }
        for query_id, query in queries.items()
    ]
    qrels = [
        {"query_id": query_id, "chunk_id": chunk, "grade": 1}
        for query_id, query in queries.items()
        for chunk in query.get("relevant", ["a"])
    ]
    retrieved = [
        {"query_id": query_id, "rank": rank, "chunk_id": chunk, "text": f"Text of {chunk}."}
        for query_id, query in queries.items()
        for rank, chunk in enumerate(query.get("retrieved", ["a"]), start=1)
    ]
    outcomes = [
        {
            "query_id": query_id,
            "status": "completed",
            "retrieval_ms": 10.0,
            **{name: query[name] for name in OUTCOME_FIELDS if name in query},
        }
        for query_id, query in queries.items()
    ]
    verdicts = [
        {"query_id": query_id, **{name: query[name] for name in VERDICT_FIELDS if name in query}}
        for query_id, query in queries.items()
        if any(name in query for name in VERDICT_FIELDS)
    ]
    return Run(
        pd.DataFrame(rows, columns=None if rows else ["query_id", "query"]),
        pd.DataFrame(qrels, columns=["query_id", "chunk_id", "grade"]),
        pd.DataFrame(
            retrieved, columns=None if retrieved else ["query_id", "rank", "chunk_id", "text"]
        ),
        pd.DataFrame(outcomes, columns=None if outcomes else ["query_id", "status"]),
        pd.DataFrame(verdicts) if verdicts else None,
        **{"dataset_name": "payments", "dataset_version": "1.0", **names},
    )


@pytest.fixture
def results() -> Callable[..., Results]:
    """Return a maker of results: ``results(name, {id: query}, k=5)``."""

    def make(
        name: str, queries: Mapping[str, Query] | Sequence[str], *, rules: Any = (), **settings: Any
    ) -> Results:
        if not isinstance(queries, Mapping):
            queries = {query_id: {} for query_id in queries}
        return Results(make_run(queries, pipeline_name=name), Settings(**settings), rules)

    return make


DENSE = {
    "q1": {"relevant": ["a"], "retrieved": ["a", "x"], "retrieval_ms": 5.0},
    "q2": {"relevant": ["b"], "retrieved": ["b", "y", "z"], "retrieval_ms": 5.0},
    "q3": {
        "relevant": ["c"],
        "retrieved": ["c"],
        "retrieval_ms": 5.0,
        "query_type": "reasoning",
    },
    "q4": {
        "relevant": ["d", "e"],
        "retrieved": ["d", "x"],
        "retrieval_ms": 5.0,
        "query_type": "reasoning",
    },
    "q5": {
        "relevant": ["f", "g"],
        "retrieved": ["x", "y", "f"],
        "retrieval_ms": 5.0,
        "query_type": "multi-hop",
    },
}
HYBRID = {
    **{q: {**DENSE[q], "retrieval_ms": 25.0} for q in ("q1", "q2", "q3")},
    "q4": {**DENSE["q4"], "retrieved": ["d", "e"], "retrieval_ms": 25.0},
    "q5": {**DENSE["q5"], "retrieved": ["x", "y", "f", "g"], "retrieval_ms": 25.0},
}


@pytest.fixture
def dense(results) -> Results:
    """Return a pipeline that misses one of two chunks twice."""
    return results("dense", DENSE)


@pytest.fixture
def hybrid(results) -> Results:
    """Return a slower pipeline that finds all."""
    return results("hybrid", HYBRID)
