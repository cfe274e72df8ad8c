"""Samples, files and faults for the tests of loading."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragdiag import DatasetValidationError, load_dataset

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="session")
def sample() -> Callable[..., dict[str, Any]]:
    """Make a sample without a fault; a field given as ``...`` is left out."""

    def make(number: int = 1, **fields: Any) -> dict[str, Any]:
        whole = {
            "id": f"q{number}",
            "query": f"What is {number}?",
            "expected_answer": f"It is {number}.",
            "relevant_chunk_ids": [f"c{number}"],
            "query_type": "factual",
            **fields,
        }
        return {key: value for key, value in whole.items() if value is not ...}

    return make


@pytest.fixture
def write_json(tmp_path: Path) -> Callable[..., Path]:
    """Write a ``.json`` dataset of these samples."""

    def write(*samples: Any, **header: Any) -> Path:
        path = tmp_path / "golden.json"
        document = {"name": "golden", "version": "1", **header, "samples": list(samples)}
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def faults_of() -> Callable[..., tuple[str, ...]]:
    """Call something and return the faults it reports; each must stand in the message."""

    def call(load: Callable[..., Any], *args: Any, **options: Any) -> tuple[str, ...]:
        with pytest.raises(DatasetValidationError) as caught:
            load(*args, **options)
        assert caught.value.faults
        assert all(fault in str(caught.value) for fault in caught.value.faults)
        return caught.value.faults

    return call


@pytest.fixture
def json_faults(
    write_json: Callable[..., Path], faults_of: Callable[..., tuple[str, ...]]
) -> Callable[..., tuple[str, ...]]:
    """Return the faults of a ``.json`` dataset of these samples."""

    def load(*samples: Any, **header: Any) -> tuple[str, ...]:
        return faults_of(load_dataset, write_json(*samples, **header))

    return load


@pytest.fixture(scope="session")
def naughty_strings() -> list[str]:
    """An extract of the Big List of Naughty Strings."""
    return json.loads((DATA / "naughty_strings" / "extract.json").read_text(encoding="utf-8"))
