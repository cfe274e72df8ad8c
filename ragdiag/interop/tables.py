"""The reader of tables: one row a query, under the names that evaluation tools use.

ragas, deepeval, MLflow and AutoRAG write the same thing under other names. What the names are is
data; how a row becomes a record is here, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ragdiag.interop.documents import Chunk, chunks_in
from ragdiag.interop.records import Record, RunBuilder
from ragdiag.interop.values import (
    ANSWER_KEYS,
    QUESTION_KEYS,
    first_of,
    list_of,
    number_of,
    text_in,
    text_or_none,
)

__all__ = ["Names", "fill", "record_of"]


@dataclass(frozen=True)
class Names:
    """Under which names a tool keeps what; the first that has a value counts.

    Attributes
    ----------
    query, query_id, answer, expected_answer, query_type : tuple of str
    contexts, context_ids, context_scores : tuple of str
        What was retrieved: documents or texts, their ids, their scores.
    references, reference_ids : tuple of str
        What should have been: documents or texts, and their ids.
    error, retrieval_ms, generation_ms, total_ms, failed : tuple of str
    dropped : tuple of str
        Columns that say nothing of use; any other becomes metadata.
    separator : str, optional
        What joins the items of a list cell that is neither JSON nor a Python repr.
    """

    query: tuple[str, ...]
    query_id: tuple[str, ...] = ("query_id", "id")
    answer: tuple[str, ...] = ()
    expected_answer: tuple[str, ...] = ()
    query_type: tuple[str, ...] = ("query_type",)
    contexts: tuple[str, ...] = ()
    context_ids: tuple[str, ...] = ()
    context_scores: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    reference_ids: tuple[str, ...] = ()
    error: tuple[str, ...] = ("error",)
    retrieval_ms: tuple[str, ...] = ("retrieval_ms",)
    generation_ms: tuple[str, ...] = ("generation_ms",)
    total_ms: tuple[str, ...] = ("total_ms", "latency_ms")
    dropped: tuple[str, ...] = ("", "Unnamed: 0")
    separator: str | None = None
    _known: frozenset[str] = field(init=False, repr=False, default=frozenset())

    def __post_init__(self) -> None:
        groups = (value for value in vars(self).values() if isinstance(value, tuple))
        object.__setattr__(self, "_known", frozenset(name for group in groups for name in group))

    def is_known(self, name: str) -> bool:
        """Return whether a column is one of ours, and not metadata."""
        return name in self._known


def fill(builder: RunBuilder, rows: Iterable[tuple[str, Mapping[str, Any]]], names: Names) -> None:
    """Add a record to `builder` for each row."""
    for place, row in rows:
        builder.add(record_of(place, row, names))


def record_of(place: str, row: Mapping[str, Any], names: Names) -> Record:
    """Return a row as a record.

    Examples
    --------
    >>> names = Names(query=("question",), contexts=("contexts",))
    >>> record = record_of("row 1", {"question": "Who?", "contexts": "['Me.']", "team": "a"}, names)
    >>> record.query, record.chunks[0].text, record.metadata
    ('Who?', 'Me.', {'team': 'a'})
    """
    record = Record(place)
    record.query = text_in(first_of(row, names.query), QUESTION_KEYS, role="user")
    record.query_id = text_or_none(first_of(row, names.query_id))
    record.query_type = text_or_none(first_of(row, names.query_type))
    record.answer = text_in(first_of(row, names.answer), ANSWER_KEYS, role="assistant")
    record.expected_answer = _expected(first_of(row, names.expected_answer))
    record.chunks = _chunks(row, names.contexts, names.context_ids, names.separator)
    scores = [number_of(score) for score in list_of(first_of(row, names.context_scores))]
    if record.chunks and len(scores) == len(record.chunks):
        record.chunks = [
            Chunk(chunk.id, chunk.text, score, chunk.metadata)
            for chunk, score in zip(record.chunks, scores, strict=True)
        ]
    labels = _chunks(row, names.references, names.reference_ids, names.separator)
    record.labels = [(chunk, 1) for chunk in labels] if labels else None
    record.error = text_or_none(first_of(row, names.error))
    record.failed = record.error is not None
    record.retrieval_ms = number_of(first_of(row, names.retrieval_ms))
    record.generation_ms = number_of(first_of(row, names.generation_ms))
    record.total_ms = number_of(first_of(row, names.total_ms))
    record.metadata = {
        str(name): value
        for name, value in row.items()
        if value is not None and not names.is_known(str(name))
    }
    return record


def _expected(value: Any) -> str | None:
    """Return the reference answer: the first where a tool keeps several."""
    if isinstance(value, list | tuple):
        return next((text for text in map(text_or_none, value) if text is not None), None)
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        return _expected(list_of(value)) if len(list_of(value)) > 0 else None
    return text_in(value, ANSWER_KEYS)


def _chunks(
    row: Mapping[str, Any],
    texts: tuple[str, ...],
    ids: tuple[str, ...],
    separator: str | None,
) -> list[Chunk] | None:
    """Return the chunks of a row; None where none of the columns has anything, not even a list."""
    held, named = first_of(row, texts), first_of(row, ids)
    if held is None and named is None:
        return None
    names = list_of(named)
    if isinstance(held, str) and separator is not None:
        held = list_of(held, separator=separator)
    chunks = chunks_in(held)
    if names and len(names) == len(chunks):
        return [
            Chunk(text_or_none(name) or chunk.id, chunk.text, chunk.score, chunk.metadata)
            for name, chunk in zip(names, chunks, strict=True)
        ]
    if names and not chunks:
        given = (text_or_none(name) for name in names)
        return [Chunk(name, None) for name in given if name is not None]
    return chunks
