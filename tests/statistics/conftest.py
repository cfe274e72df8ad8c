"""Runs from a few arrays: where the relevant chunk came, what the judge said, how long it took."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragdiag.recording import Run
from ragdiag.results import Results
from ragdiag.schema import Settings

DEPTH = 10


def make_results(
    name: str,
    ranks: Sequence[int],
    *,
    correct: Sequence[bool | None] | None = None,
    grounded: Sequence[bool | None] | None = None,
    ms: Sequence[float] | None = None,
    failed: Sequence[int] = (),
    unlabelled: Sequence[int] = (),
    depth: int = DEPTH,
    info: dict[str, Any] | None = None,
    columns: dict[str, Sequence[Any]] | None = None,
    rules: Sequence[Any] = (),
    **settings: Any,
) -> Results:
    """Return results whose i-th query has its relevant chunk at ``ranks[i]``, 0 for nowhere."""
    n = len(ranks)
    ids = [f"q{i:03d}" for i in range(n)]
    queries = pd.DataFrame(
        {
            "query_id": ids,
            "query": [f"Question {each}?" for each in ids],
            "expected_answer": ["yes"] * n,
            "query_type": ["factual" if i % 2 else "multi-hop" for i in range(n)],
            **(columns or {}),
        }
    )
    labelled = [i for i in range(n) if i not in unlabelled]
    qrels = pd.DataFrame(
        {
            "query_id": [ids[i] for i in labelled],
            "chunk_id": [f"doc_{i // 2}" for i in labelled],
            "grade": 1,
        }
    )
    retrieved = [
        (ids[i], place, f"doc_{i // 2}" if place == rank else f"other_{place}")
        for i, rank in enumerate(ranks)
        for place in range(1, depth + 1)
        if i not in failed
    ]
    outcomes = pd.DataFrame(
        {
            "query_id": ids,
            "status": ["failed" if i in failed else "completed" for i in range(n)],
            "error": ["retrieval failed: OSError: down" if i in failed else None for i in range(n)],
            "answer": [None if i in failed else "yes" for i in range(n)],
            "retrieval_ms": [
                np.nan if i in failed else value for i, value in enumerate(ms or [10.0] * n)
            ],
        }
    )
    verdicts = None
    if correct is not None or grounded is not None:
        verdicts = pd.DataFrame({"query_id": ids})
        for column, values in (("answer_correct", correct), ("grounded", grounded)):
            verdicts[column] = pd.array(values or [None] * n, dtype="boolean")
        verdicts["correct_confidence"] = verdicts["grounded_confidence"] = 0.9
        verdicts = verdicts[[i not in failed for i in range(n)]]
    run = Run(
        queries,
        qrels,
        pd.DataFrame(retrieved, columns=["query_id", "rank", "chunk_id"]),
        outcomes,
        verdicts,
        pipeline_name=name,
        dataset_name="payments",
        info=info,
    )
    return Results(run, Settings(**settings), rules)


@pytest.fixture
def build() -> Callable[..., Results]:
    """The maker of results."""
    return make_results


@pytest.fixture
def ragdiag_gate() -> Any:
    """The plugin's fixture, also where the package was not installed with its entry points."""
    from ragdiag.pytest_plugin import make_gate

    return make_gate()
