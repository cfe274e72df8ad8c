"""Datasets and pipelines whose evidence are passages."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import ragdiag

EXAMPLE = Path(__file__).parents[2] / "examples" / "chunking"

Span = tuple[int, int]
Evaluated = Callable[..., ragdiag.Results]


@pytest.fixture
def evaluated() -> Evaluated:
    """Evaluate one question with `evidence` against chunks given as texts or (text, metadata)."""

    def evaluate(evidence: Any, chunks: Sequence[Any], **settings: Any) -> ragdiag.Results:
        labels = settings.pop("labels", [])
        sample = {"id": "q1", "query": "How long do refunds take?", "relevant_chunk_ids": labels}
        dataset = ragdiag.GoldenDataset("support", "1", [{**sample, "evidence": evidence}])
        found = [
            ragdiag.RetrievedChunk(
                id=f"c{place}",
                text=chunk if isinstance(chunk, str) else chunk[0],
                metadata=None if isinstance(chunk, str) else chunk[1],
            )
            for place, chunk in enumerate(chunks, 1)
        ]
        return ragdiag.evaluate(lambda query: found, dataset, progress=False, **settings)

    return evaluate


@pytest.fixture(scope="session")
def speech() -> tuple[dict[str, str], list[dict[str, Any]]]:
    """The committed extract: one document, and questions with the spans that answer them."""
    text = (EXAMPLE / "state_of_the_union.md").read_text(encoding="utf-8")
    lines = (EXAMPLE / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line) for line in lines]
    for question in questions:
        question["corpus_id"] = "state_of_the_union"
    return {"state_of_the_union": text}, questions
