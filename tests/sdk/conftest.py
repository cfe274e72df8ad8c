"""A dataset, two pipelines and a judge as a user would write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragdiag import GoldenDataset, Judge, JudgeResult, Pipeline, QuerySample, RetrievedChunk

FOUND = {
    "How long do refunds take?": ["doc_17", "doc_02"],
    "Why was my card declined twice?": ["doc_03", "doc_04"],
    "Who pays the fee, and when?": ["doc_08", "doc_09", "doc_05"],
}


class Search(Pipeline):
    def __init__(self, name: str, found: dict[str, list[str]] = FOUND) -> None:
        super().__init__(name)
        self.found = found
        self.calls = 0

    def retrieve(self, query: str) -> list[RetrievedChunk]:
        self.calls += 1
        return [
            RetrievedChunk(id=id_, text=f"About {id_}.", score=0.5) for id_ in self.found[query]
        ]

    def generate(self, query: str, chunks: list[RetrievedChunk]) -> str:
        if not chunks:
            raise RuntimeError("no context")
        return f"See {chunks[0].id}."


class StrictJudge(Judge):
    def evaluate(
        self, query: str, expected_answer: Any, generated_answer: str, context: Any
    ) -> JudgeResult:
        if "declined" in query:
            raise TimeoutError("no reply")
        return JudgeResult(
            answer_correct="doc_17" in generated_answer,
            grounded=True,
            confidence=0.8,
            reason="Looked at the id.",
        )


@pytest.fixture
def dataset() -> GoldenDataset:
    return GoldenDataset(
        name="payments",
        version="1.0",
        samples=[
            QuerySample(
                id="q1",
                query="How long do refunds take?",
                expected_answer="Seven days.",
                relevant_chunk_ids=["doc_17"],
                query_type="factual",
            ),
            QuerySample(
                id="q2",
                query="Why was my card declined twice?",
                expected_answer="Expired.",
                relevant_chunk_ids=["doc_03", "doc_11"],
                query_type="reasoning",
            ),
            QuerySample(
                id="q3",
                query="Who pays the fee, and when?",
                expected_answer="The shop, monthly.",
                relevant_chunk_ids=["doc_05"],
                query_type="multi-hop",
            ),
        ],
    )


@pytest.fixture
def search() -> type[Search]:
    return Search


@pytest.fixture
def judge() -> StrictJudge:
    return StrictJudge()


PIPELINE_FILE = """
from ragdiag import Pipeline, RetrievedChunk

class FromFile(Pipeline):
    name = "from_file"

    def retrieve(self, query):
        return [RetrievedChunk(id="doc_17", text="Seven days.")]

    def generate(self, query, chunks):
        return chunks[0].text

pipeline = FromFile()
"""


@pytest.fixture
def pipeline_file(tmp_path: Path) -> Path:
    path = tmp_path / "my_pipeline.py"
    path.write_text(PIPELINE_FILE, encoding="utf-8")
    return path
