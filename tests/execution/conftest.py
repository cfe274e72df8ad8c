"""Datasets, pipelines and judges for the tests of runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from ragdiag import GoldenDataset, Judge, JudgeResult, Pipeline, Run
from ragdiag.errors import JudgeAuthenticationError

TABLES = ("queries", "qrels", "retrieved", "outcomes", "verdicts")


class Recorder(Pipeline):
    """Answers every query, fails where it is told to, and counts its calls."""

    def __init__(self, failing: dict[str, Any] | None = None) -> None:
        super().__init__("recorder")
        self.failing = dict(failing or {})
        self.retrieved: list[str] = []
        self.generated: list[str] = []
        self._lock = threading.Lock()

    def retrieve(self, query: str) -> Any:
        with self._lock:
            self.retrieved.append(query)
        return self._fail(("retrieve", query), [(f"d-{query}", f"text of {query}", 0.5)])

    def generate(self, query: str, chunks: Any) -> Any:
        with self._lock:
            self.generated.append(query)
        return self._fail(("generate", query), f"answer to {query}")

    def _fail(self, place: tuple[str, str], value: Any) -> Any:
        what = self.failing.get(place[1] if place[0] == "retrieve" else f"{place[1]}!")
        if isinstance(what, BaseException):
            raise type(what)(*what.args)
        return value if what is None else what[0]


class CountingJudge(Judge):
    """Finds every answer correct, and not grounded where told; counts its calls."""

    def __init__(self, version: str = "1", ungrounded: tuple[str, ...] = ()) -> None:
        self.version = version
        self.ungrounded = ungrounded
        self.asked: list[str] = []
        self.seen: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    @property
    def identity(self) -> dict[str, Any]:
        return {"judge": "counting", "version": self.version}

    def evaluate(
        self, query: str, expected_answer: Any, generated_answer: str, context: Any
    ) -> JudgeResult:
        with self._lock:
            self.asked.append(query)
            self.seen.append(
                {"expected": expected_answer, "answer": generated_answer, "context": context}
            )
        return JudgeResult(
            answer_correct=True, grounded=query not in self.ungrounded, confidence=0.9, reason="so"
        )


class BrokenJudge(Judge):
    """Fails always, in the way it is told to."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error or JudgeAuthenticationError("401: key sk-canary-123456 was refused")
        self.asked = 0

    def evaluate(
        self, query: str, expected_answer: Any, generated_answer: str, context: Any
    ) -> JudgeResult:
        self.asked += 1
        raise self.error


def make_dataset(size: int = 6, **columns: Any) -> GoldenDataset:
    frame = pd.DataFrame(
        {
            "query_id": [f"q{i}" for i in range(size)],
            "query": [f"query {i}" for i in range(size)],
            "expected_answer": [f"answer to query {i}" for i in range(size)],
            "relevant_chunk_ids": [[f"d-query {i}"] for i in range(size)],
            **columns,
        }
    )
    return GoldenDataset.from_frame(frame, name="numbers", version="1")


def assert_same(one: Run, other: Run) -> None:
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name), obj=name)
    assert dict(one.info) == dict(other.info)
    names = ("pipeline_name", "pipeline_version", "dataset_name", "dataset_version")
    assert [getattr(one, n) for n in names] == [getattr(other, n) for n in names]


@pytest.fixture
def dataset() -> GoldenDataset:
    return make_dataset()


@pytest.fixture
def recorder() -> type[Recorder]:
    return Recorder


@pytest.fixture
def counting_judge() -> type[CountingJudge]:
    return CountingJudge


@pytest.fixture
def broken_judge() -> type[BrokenJudge]:
    return BrokenJudge


@pytest.fixture
def numbers() -> Callable[..., GoldenDataset]:
    return make_dataset


@pytest.fixture
def same() -> Callable[[Run, Run], None]:
    return assert_same
