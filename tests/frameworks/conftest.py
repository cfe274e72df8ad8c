"""What the tests of frameworks share; no framework may report to its makers while we test it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from ragdiag import GoldenDataset, evaluate
from ragdiag.results import Results

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
os.environ["ANONYMIZED_TELEMETRY"] = "False"

TEXTS = {
    "refunds": "A refund to a card takes seven days.",
    "disputes": "A dispute costs fifteen euros.",
    "webhooks": "A webhook is sent again for three days.",
}


@pytest.fixture
def texts() -> dict[str, str]:
    """Chunk ids and their texts."""
    return dict(TEXTS)


@pytest.fixture
def dataset() -> GoldenDataset:
    frame = pd.DataFrame(
        {
            "query_id": ["q1", "q2"],
            "query": ["How long does a refund take?", "What does a dispute cost?"],
            "relevant_chunk_ids": [["refunds"], ["disputes"]],
        }
    )
    return GoldenDataset.from_frame(frame)


@pytest.fixture
def run(dataset: GoldenDataset) -> Callable[..., Results]:
    """Evaluate a pipeline on the two questions; no query may fail."""

    def evaluated(pipeline: Any, **options: Any) -> Results:
        results = evaluate(pipeline, dataset, progress=False, **options)
        assert results.frame["error"].dropna().tolist() == []
        return results

    return evaluated


def best_first(query: str) -> list[str]:
    """Chunk ids by the number of words their texts share with a question."""
    asked = {word.strip("?.") for word in query.lower().split()}
    return sorted(
        TEXTS, key=lambda name: (-len(asked & set(TEXTS[name].lower().strip(".").split())), name)
    )


@pytest.fixture
def ranked() -> Callable[[str], list[str]]:
    return best_first
