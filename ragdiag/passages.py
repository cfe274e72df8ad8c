"""From passages of evidence and retrieved chunks to covers: relevance without chunk ids.

A passage is a span of a source document (``document, start, end``: characters, from 0, the end not
included), a verbatim text, or both. A chunk says where it comes from in its metadata:

=============  =================================================================================
document       ``document``, or else ``document_id, doc_id, source, file_path, ref_doc_id``
first offset   ``start``, or else ``start_index`` (LangChain), ``start_char_idx`` (LlamaIndex)
last offset    ``end``, or else ``end_index, end_char_idx``, or else start and the chunk's length
=============  =================================================================================

Where both sides have offsets the overlap is arithmetic. Where one has none, the passage's text is
looked for in the chunk's, see :mod:`ragdiag.matching`. A query is only measured when each of its
chunks can be compared with each of its passages in one of the two ways.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ragdiag.covers import Covers
from ragdiag.matching import Found, Interval, Passage, merged, n_characters, normalised
from ragdiag.relevance import query_positions

__all__ = ["DOCUMENT_KEYS", "END_KEYS", "START_KEYS", "find_covers", "passage_names"]

#: Keys of a chunk's metadata, the first that is there counts.
DOCUMENT_KEYS = ("document", "document_id", "doc_id", "source", "file_path", "ref_doc_id")
START_KEYS = ("start", "start_index", "start_char_idx")
END_KEYS = ("end", "end_index", "end_char_idx")

#: Characters of a passage that its name shows.
NAME_LENGTH = 60


@dataclass(frozen=True)
class _Span:
    document: str
    start: int
    end: int


class _Evidence:
    """One passage: where it stands, what it says."""

    def __init__(self, span: _Span | None, text: str | None) -> None:
        self.span = span
        self.passage = None if text is None else Passage(text)
        # Without its text every character counts, white space as well.
        self.size = (
            self.passage.size
            if self.passage is not None
            else 0
            if span is None
            else span.end - span.start
        )
        self._before: list[int] | None = None

    def overlap(self, chunk: _Span) -> Found | None:
        """Return what a chunk with offsets holds of a passage with offsets."""
        assert self.span is not None
        start, end = max(self.span.start, chunk.start), min(self.span.end, chunk.end)
        if chunk.document != self.span.document or start >= end:
            return None
        interval = self._characters(start - self.span.start, end - self.span.start)
        if interval[0] == interval[1]:
            return None
        return Found((interval,), cut=interval != (0, self.size))

    def _characters(self, start: int, end: int) -> Interval:
        if self.passage is None:
            return start, end
        if self._before is None:
            is_character = [not each.isspace() for each in self.passage.text]
            self._before = [0, *np.cumsum(is_character).tolist()]
        return self._before[start], self._before[end]


class _Chunk:
    """One retrieved chunk; its text is normalised when a passage is first looked for in it."""

    def __init__(self, text: str | None, span: _Span | None) -> None:
        self.text = text
        self.span = span
        self._norm: str | None = None

    @property
    def size(self) -> int:
        if self.text:
            return n_characters(self.text)
        return 0 if self.span is None else self.span.end - self.span.start

    @property
    def norm(self) -> str:
        if self._norm is None:
            self._norm = normalised(self.text or "")
        return self._norm


def find_covers(query_ids: pd.Series, evidence: pd.DataFrame, retrieved: pd.DataFrame) -> Covers:
    """Find what the retrieved chunks hold of each query's evidence.

    Texts are read once; whatever k and threshold, measures follow from what is returned.

    Parameters
    ----------
    query_ids : pandas.Series of text
        The queries, each once.
    evidence : pandas.DataFrame
        ``query_id, document, start, end, text``, one row a passage, missing where not known.
    retrieved : pandas.DataFrame
        ``query_id, rank, text, metadata``, one row a chunk; metadata is JSON text.

    Examples
    --------
    >>> evidence = pd.DataFrame({"query_id": ["q1"], "document": ["terms"], "start": [10],
    ...                          "end": [30], "text": [None]})
    >>> retrieved = pd.DataFrame({
    ...     "query_id": ["q1", "q1"], "rank": [1, 2], "text": ["...", "..."],
    ...     "metadata": ['{"document": "terms", "start": 0, "end": 25}',
    ...                  '{"document": "terms", "start": 25, "end": 50}']})
    >>> find_covers(pd.Series(["q1"]), evidence, retrieved).hit_new.tolist()
    [15, 5]
    """
    passage_query = query_positions(evidence["query_id"], query_ids)
    passage_row = np.flatnonzero(passage_query >= 0)
    passage_row = passage_row[np.argsort(passage_query[passage_row], kind="stable")]
    passage_query = passage_query[passage_row]
    passages = list(_passages(evidence.take(passage_row)))

    chunk_query = query_positions(retrieved["query_id"], query_ids)
    asked = np.zeros(len(query_ids) + 1, dtype=bool)  # the last one stands for unknown queries
    asked[passage_query] = True
    chunk_row = np.flatnonzero(asked[chunk_query])
    rank = retrieved["rank"].to_numpy(dtype=np.int64)
    chunk_row = chunk_row[np.lexsort((rank[chunk_row], chunk_query[chunk_row]))]
    chunk_query = chunk_query[chunk_row]
    with_spans = any(passage.span is not None for passage in passages)
    chunks = list(_chunks(retrieved.take(chunk_row), with_spans))

    comparable = np.ones(len(query_ids), dtype=bool)
    hits: list[tuple[int, int, int, int, bool]] = []
    first_chunk = np.searchsorted(chunk_query, passage_query, side="left").tolist()
    last_chunk = np.searchsorted(chunk_query, passage_query, side="right").tolist()
    for number, passage in enumerate(passages):
        own = range(first_chunk[number], last_chunk[number])
        found = _find(passage, [chunks[place] for place in own])
        if found is None:
            comparable[passage_query[number]] = False
            continue
        seen: list[Interval] = []
        for place, part in zip(own, found, strict=True):
            if part is not None:
                union = merged([*seen, *part.intervals])
                new = _length(union) - _length(seen)
                hits.append((number, place, part.size, new, part.cut))
                seen = union
    columns = list(zip(*hits, strict=True)) or [()] * 5
    hit_passage, hit_chunk, hit_size, hit_new = (np.array(c, dtype=np.int64) for c in columns[:4])
    return Covers(
        passage_query=passage_query,
        passage_row=passage_row,
        passage_size=np.array([passage.size for passage in passages], dtype=np.int64),
        hit_passage=hit_passage,
        hit_chunk=hit_chunk,
        hit_size=hit_size,
        hit_new=hit_new,
        hit_cut=np.array(columns[4], dtype=bool),
        chunk_query=chunk_query,
        chunk_row=chunk_row,
        chunk_rank=rank[chunk_row],
        chunk_size=np.array([chunk.size for chunk in chunks], dtype=np.int64),
        comparable=comparable,
    )


def _find(passage: _Evidence, chunks: Sequence[_Chunk]) -> list[Found | None] | None:
    """Return what each chunk holds of a passage, None when one cannot be compared with it."""
    found: list[Found | None] = []
    by_text: list[int] = []
    # Once a chunk held it whole, what other chunks have of its words adds nothing.
    wanted = True
    for place, chunk in enumerate(chunks):
        if passage.span is not None and chunk.span is not None:
            found.append(passage.overlap(chunk.span))
        elif passage.passage is not None and chunk.text is not None:
            part = passage.passage.find(chunk.norm, chunk.text, tokens=wanted)
            wanted = wanted and (part is None or part.size < passage.size)
            found.append(part)
            by_text.append(place)
        else:
            return None
    if by_text and passage.passage is not None:
        _add_remnants(passage.passage, chunks, found, by_text)
    return found


def _add_remnants(
    passage: Passage,
    chunks: Sequence[_Chunk],
    found: list[Found | None],
    by_text: Sequence[int],
) -> None:
    """Look for what is missing at a passage's ends and too short to be looked for alone.

    A chunker that cuts a passage behind its first letters leaves a remnant that proves nothing,
    unless other chunks hold the passage from exactly there on.
    """
    held = merged([each for part in found if part is not None for each in part.intervals])
    if not held:
        return
    for start, end in ((0, held[0][0]), (held[-1][1], passage.size)):
        if start >= end:
            continue
        for place in by_text:
            if passage.completes(chunks[place].norm, start, end):
                part = found[place]
                more = [*(() if part is None else part.intervals), (start, end)]
                found[place] = Found(tuple(merged(more)), cut=True)


def _length(intervals: Sequence[Interval]) -> int:
    return sum(end - start for start, end in intervals)


def _passages(evidence: pd.DataFrame) -> Iterator[_Evidence]:
    for document, start, end, text in zip(
        *(_objects(evidence[name]) for name in ("document", "start", "end", "text")), strict=True
    ):
        known = None not in (document, start, end)
        yield _Evidence(_Span(document, int(start), int(end)) if known else None, text)


def _chunks(retrieved: pd.DataFrame, with_spans: bool) -> Iterator[_Chunk]:
    texts = _objects(retrieved["text"])
    metadata = _objects(retrieved["metadata"]) if with_spans else [None] * len(texts)
    for text, about in zip(texts, metadata, strict=True):
        yield _Chunk(text, _span(json.loads(about), text) if about else None)


def _span(metadata: Any, text: str | None) -> _Span | None:
    """Return where a chunk comes from, if its metadata say so."""
    if not isinstance(metadata, Mapping):
        return None
    document = _first(metadata, DOCUMENT_KEYS, (str, int))
    start = _first(metadata, START_KEYS, int)
    end = _first(metadata, END_KEYS, int)
    if end is None and start is not None and text is not None:
        end = start + len(text)
    if document is None or start is None or end is None or not 0 <= start <= end:
        return None
    return _Span(str(document), start, end)


def _first(metadata: Mapping[str, Any], keys: Sequence[str], kind: Any) -> Any:
    for key in keys:
        value = metadata.get(key)
        if isinstance(value, kind) and not isinstance(value, bool):
            return value
    return None


def _objects(values: pd.Series) -> list[Any]:
    """Return a column as Python objects, None where missing."""
    return values.astype(object).where(values.notna(), None).tolist()


def passage_names(evidence: pd.DataFrame) -> list[str]:
    """Return what to call each passage: where it stands, or how it begins; distinct in a query.

    Examples
    --------
    >>> passage_names(pd.DataFrame({"query_id": ["q1", "q1"], "document": ["terms", None],
    ...     "start": [10, None], "end": [30, None], "text": [None, "Refunds take seven days."]}))
    ['terms[10:30]', '“Refunds take seven days.”']
    """
    names: list[str] = []
    taken: dict[tuple[str, str], int] = {}
    columns = ("query_id", "document", "start", "end", "text")
    for query_id, document, start, end, text in zip(
        *(_objects(evidence[name]) for name in columns), strict=True
    ):
        if None in (document, start, end):
            line = " ".join((text or "").split())
            name = f"“{line if len(line) <= NAME_LENGTH else f'{line[: NAME_LENGTH - 1]}…'}”"
        else:
            name = f"{document}[{int(start)}:{int(end)}]"
        number = taken[query_id, name] = taken.get((query_id, name), 0) + 1
        names.append(name if number == 1 else f"{name} ({number})")
    return names
