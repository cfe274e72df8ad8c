"""Runs made of a few words a query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from ragdiag.recording import Run
from ragdiag.tables import OUTCOMES, QRELS, QUERIES, RETRIEVED, VERDICTS

VERDICT_FIELDS = [name for name in VERDICTS if name != "query_id"]


def build_run(*queries: dict[str, Any], **options: Any) -> Run:
    """Return a run of queries given as dicts.

    Keys: ``id, query, query_type, expected_answer, relevant`` (ids, or id to grade), ``retrieved``
    (ids in order), ``status`` (None = not run), ``error, answer``, ``ms`` (retrieval), the fields
    of a verdict, and ``metadata`` (columns).
    """
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in ("q", "l", "r", "o", "v")}
    for place, given in enumerate(queries):
        query_id = given.get("id", f"q{place + 1}")
        tables["q"].append(
            {
                "query_id": query_id,
                "query": given.get("query", "why?"),
                "expected_answer": given.get("expected_answer"),
                "query_type": given.get("query_type"),
                **given.get("metadata", {}),
            }
        )
        relevant = given.get("relevant", [])
        grades = relevant if isinstance(relevant, dict) else dict.fromkeys(relevant, 1)
        for chunk_id, grade in grades.items():
            tables["l"].append({"query_id": query_id, "chunk_id": chunk_id, "grade": grade})
        for rank, chunk_id in enumerate(given.get("retrieved", []), start=1):
            tables["r"].append(
                {"query_id": query_id, "rank": rank, "chunk_id": chunk_id, "text": f"of {chunk_id}"}
            )
        status = given.get("status", "completed")
        if status is not None:
            tables["o"].append(
                {
                    "query_id": query_id,
                    "status": status,
                    "error": given.get("error"),
                    "answer": given.get("answer"),
                    "retrieval_ms": given.get("ms"),
                    "generation_ms": given.get("generation_ms"),
                    "total_ms": given.get("total_ms"),
                }
            )
        verdict = {name: given[name] for name in VERDICT_FIELDS if name in given}
        if verdict:
            tables["v"].append({"query_id": query_id, **verdict})
    specs = {"q": QUERIES, "l": QRELS, "r": RETRIEVED, "o": OUTCOMES, "v": VERDICTS}
    frames = {
        name: pd.DataFrame(rows) if rows else pd.DataFrame({column: [] for column in specs[name]})
        for name, rows in tables.items()
    }
    return Run(*frames.values(), **options)


@pytest.fixture
def make_run() -> Callable[..., Run]:
    """Build a run of queries given as dicts, see :func:`build_run`."""
    return build_run
