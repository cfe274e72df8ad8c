"""Rows for the tools that want one object a query: what is known of each, texts included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ragdiag.cells import plain_list
from ragdiag.codec import json_text
from ragdiag.metrics import RELEVANT_GRADE
from ragdiag.recording import Run

__all__ = ["AnswerRow", "answer_rows", "json_lines"]


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One query that was completed.

    Attributes
    ----------
    query_id, query : str
    answer, expected_answer : str or None
    chunk_ids : list of str or None
        In order of rank; None where no retrieval was recorded.
    texts : list of str or None
        Of these chunks; None where the text of one is not known.
    reference_ids : list of str or None
        The relevant chunks; None where none are known.
    reference_texts : list of str or None
        Of these; None where the text of one is not known.
    total_ms : float or None
    """

    query_id: str
    query: str
    answer: str | None
    expected_answer: str | None
    chunk_ids: list[str] | None
    texts: list[str] | None
    reference_ids: list[str] | None
    reference_texts: list[str] | None
    total_ms: float | None


def answer_rows(run: Run) -> Iterator[AnswerRow]:
    """Yield the completed queries of a run, in order."""
    text_of: dict[str, str] = {}
    retrieved: dict[str, list[tuple[int, str, str | None]]] = {}
    for query_id, rank, chunk_id, text in _cells(
        run.retrieved, "query_id", "rank", "chunk_id", "text"
    ):
        retrieved.setdefault(query_id, []).append((rank, chunk_id, text))
        if text is not None:
            text_of.setdefault(chunk_id, text)
    relevant: dict[str, list[str]] = {}
    for query_id, chunk_id, grade in _cells(run.qrels, "query_id", "chunk_id", "grade"):
        if grade is None or grade >= RELEVANT_GRADE:
            relevant.setdefault(query_id, []).append(chunk_id)
    outcomes = {
        query_id: (status, answer, total)
        for query_id, status, answer, total in _cells(
            run.outcomes, "query_id", "status", "answer", "total_ms"
        )
    }
    unrecorded = run.info.get("retrieval_not_recorded", {})
    for query_id, query, expected in _cells(run.queries, "query_id", "query", "expected_answer"):
        status, answer, total = outcomes.get(query_id, ("failed", None, None))
        if status != "completed":
            continue
        chunks = sorted(retrieved.get(query_id, []), key=lambda chunk: chunk[0])
        known = query_id not in unrecorded
        references = relevant.get(query_id)
        yield AnswerRow(
            query_id=query_id,
            query=query_id if query is None else query,
            answer=answer,
            expected_answer=expected,
            chunk_ids=[chunk_id for _, chunk_id, _ in chunks] if known else None,
            texts=_all_known(text for _, _, text in chunks) if known else None,
            reference_ids=references,
            reference_texts=_all_known(map(text_of.get, references)) if references else None,
            total_ms=total,
        )


def json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return objects as JSON lines."""
    return "".join(f"{json_text(row)}\n" for row in rows)


def _all_known(texts: Iterable[str | None]) -> list[str] | None:
    found = list(texts)
    return None if any(text is None for text in found) else [str(text) for text in found]


def _cells(table: Any, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(plain_list(table[name]) for name in names), strict=True)
