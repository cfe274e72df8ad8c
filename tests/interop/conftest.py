"""The small exports that every test of an importer starts from."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from ragdiag import Run


@pytest.fixture(scope="session")
def formats(repository: Path) -> Path:
    """The committed extracts of other tools' files."""
    return repository / "tests" / "data" / "formats"


class Seen:
    """One query of a run in plain Python, for comparison with a literal."""

    def __init__(self, run: Run, place: int) -> None:
        query = run.queries.iloc[place]
        self.query_id: str = query["query_id"]
        self.query: str = query["query"]
        self.expected_answer = _plain(query["expected_answer"])
        mine = run.retrieved[run.retrieved["query_id"] == self.query_id]
        self.chunk_ids: list[str] = mine["chunk_id"].tolist()
        self.texts: list[str] = [_plain(text) for text in mine["text"]]
        self.scores: list[float | None] = [_plain(score) for score in mine["score"]]
        assert mine["rank"].tolist() == list(range(1, len(mine) + 1))
        outcome = run.outcomes[run.outcomes["query_id"] == self.query_id].iloc[0]
        self.status: str = outcome["status"]
        self.error = _plain(outcome["error"])
        self.answer = _plain(outcome["answer"])
        self.ms = tuple(
            _plain(outcome[f"{stage}_ms"]) for stage in ("retrieval", "generation", "total")
        )
        labels = run.qrels[run.qrels["query_id"] == self.query_id]
        self.relevant: list[str] = labels["chunk_id"].tolist()


def _plain(value: object) -> object:
    return None if pd.isna(value) else value


@pytest.fixture
def seen():
    """``seen(run)`` returns each query of a run as a :class:`Seen`."""
    return lambda run: [Seen(run, place) for place in range(len(run))]


@pytest.fixture
def write(tmp_path: Path):
    """``write(name, text)`` makes a file and returns its path."""

    def make(name: str, text: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make
