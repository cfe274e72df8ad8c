"""From what a reader found, one record a query, to a ``Run``; and an account of what was left out.

A reader knows a format; what makes a good run is known here. Ids that a file does not give are
made, doubles are told apart, and everything that cannot be used is counted and listed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ragdiag.cells import inferred_column
from ragdiag.codec import json_text
from ragdiag.errors import RunFormatError
from ragdiag.interop.documents import Chunk
from ragdiag.interop.values import chunk_id_of, query_id_of
from ragdiag.recording import Run
from ragdiag.schema import RESERVED_COLUMNS, RESERVED_PREFIXES
from ragdiag.tables import OUTCOMES, QRELS, QUERIES, RETRIEVED, TEXT, VERDICTS

__all__ = ["Record", "RunBuilder", "Skipped"]

#: So many of the things left out are listed one by one; all are counted.
MAX_LISTED = 100

#: A second query of the same id gets this and its number behind the id.
DOUBLE = "#"

_DECIMAL = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")


@dataclass(slots=True)
class Record:
    """One query as a tool recorded it.

    Attributes
    ----------
    place : str
        Where it stands in the file, for messages: ``line 3``, ``trace 5b8e...``.
    query, query_id, expected_answer, query_type : str or None
        An id of None is made from the text of the question.
    chunks : list of Chunk or None
        What was retrieved, in order; None where no retrieval was recorded, which is not the same
        as one that found nothing.
    labels : list of (Chunk, int) or None
        Chunks known to be relevant, with their grade; None where nothing is known.
    failed : bool
        Whether the pipeline failed, for the reason `error`.
    n_retrievals : int
        How many calls of a retriever `chunks` are merged from.
    verdict : dict
        Columns of the verdicts that the tool's own judge filled.
    """

    place: str
    query: str | None = None
    query_id: str | None = None
    expected_answer: str | None = None
    query_type: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    chunks: list[Chunk] | None = None
    labels: list[tuple[Chunk, int]] | None = None
    failed: bool = False
    error: str | None = None
    traceback: str | None = None
    answer: str | None = None
    retrieval_ms: float | None = None
    generation_ms: float | None = None
    total_ms: float | None = None
    n_retrievals: int = 1
    verdict: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Skipped:
    """One thing of a file that is not in the run, where it stands and why."""

    place: str
    reason: str


class RunBuilder:
    """Collects records column by column.

    Parameters
    ----------
    source : str
        The file, for messages.
    format : str
        Name of the format, kept in ``run.info``.
    cells_are_text : bool
        Whether the file has no numbers of its own (CSV): metadata that looks like numbers
        throughout is then taken as such.

    Examples
    --------
    >>> builder = RunBuilder("traces.jsonl", "ours")
    >>> builder.add(Record("line 1", query="How long?", chunks=[Chunk(None, "Seven days.")]))
    >>> builder.skip("line 2", "no question")
    >>> run = builder.run()
    >>> run.retrieved["chunk_id"].tolist(), run.info["notes"][0]
    (['text-f2e8f744b6b8'], '1 record of traces.jsonl left out: no question (line 2)')
    """

    def __init__(self, source: str, format: str, *, cells_are_text: bool = False) -> None:
        self.source = source
        self.format = format
        self._cells_are_text = cells_are_text
        self.notes: list[str] = []
        self.pipeline_name: str | None = None
        self._queries: dict[str, list[Any]] = {name: [] for name in QUERIES}
        self._metadata: list[dict[str, Any]] = []
        self._qrels: dict[str, list[Any]] = {name: [] for name in QRELS}
        self._retrieved: dict[str, list[Any]] = {name: [] for name in RETRIEVED}
        self._outcomes: dict[str, list[Any]] = {name: [] for name in OUTCOMES}
        self._verdicts: list[dict[str, Any]] = []
        self._skipped: list[Skipped] = []
        self._reasons: Counter[str] = Counter()
        self._first_place: dict[str, str] = {}
        self._seen: dict[str, int] = {}
        self._doubles = 0
        self._made_query_ids = 0
        self._made_chunk_ids = 0
        self._texts: dict[str, str] = {}
        self._flags: dict[str, list[str]] = {}
        self._tracebacks: dict[str, str] = {}
        self._unrecorded: dict[str, str] = {}
        self._merged = 0

    def __len__(self) -> int:
        return len(self._metadata)

    def skip(self, place: str, reason: str) -> None:
        """Note that something of the file is not in the run."""
        self._reasons[reason] += 1
        self._first_place.setdefault(reason, place)
        if len(self._skipped) < MAX_LISTED:
            self._skipped.append(Skipped(place, reason))

    def add(self, record: Record, *, was_run: bool = True) -> None:
        """Take a record in; one without a question and an id is left out and noted."""
        if record.query is None and record.query_id is None:
            self.skip(record.place, "no question")
            return
        query_id = self._id_of(record)
        values = (query_id, record.query or query_id, record.expected_answer, record.query_type)
        for name, value in zip(QUERIES, values, strict=True):
            self._queries[name].append(value)
        self._metadata.append(record.metadata)
        for chunk, grade in record.labels or ():
            self._append(self._qrels, query_id, self._chunk_id(chunk), grade)
        if not was_run:
            return
        if record.chunks is None and not record.failed:
            self._unrecorded[query_id] = record.place
        for rank, chunk in enumerate(record.chunks or (), start=1):
            # The same passage comes back for many queries: keep its text once.
            text = None if chunk.text is None else self._texts.setdefault(chunk.text, chunk.text)
            metadata = json_text(chunk.metadata) if chunk.metadata else None
            self._append(
                self._retrieved, query_id, rank, self._chunk_id(chunk), chunk.score, text, metadata
            )
        self._append(
            self._outcomes,
            query_id,
            "failed" if record.failed else "completed",
            record.error,
            record.answer,
            record.retrieval_ms,
            record.generation_ms,
            record.total_ms,
        )
        if record.n_retrievals > 1:
            self._merged += 1
            self._flags[query_id] = [f"{record.n_retrievals} retrieval calls were merged in order"]
        if record.traceback:
            self._tracebacks[query_id] = record.traceback
        if record.verdict:
            self._verdicts.append({"query_id": query_id, **record.verdict})

    def run(self, *, name: str | None = None, dataset_name: str | None = None) -> Run:
        """Return the run of all that was added.

        Raises
        ------
        RunFormatError
            Nothing could be used; the message has the first reasons.
        """
        self._require_something()
        return Run(
            self.queries(),
            self.qrels(),
            pd.DataFrame(self._retrieved) if self._retrieved["query_id"] else None,
            pd.DataFrame(self._outcomes) if self._outcomes["query_id"] else None,
            pd.DataFrame(self._verdicts, columns=list(VERDICTS)) if self._verdicts else None,
            pipeline_name=self.pipeline_name or name or "pipeline",
            dataset_name=dataset_name or name or "dataset",
            info=self._info(),
        )

    def queries(self) -> pd.DataFrame:
        """Return the table of queries, metadata columns included."""
        columns: dict[str, Any] = {
            name: pd.Series(values, dtype=TEXT) for name, values in self._queries.items()
        }
        names = dict.fromkeys(key for metadata in self._metadata for key in metadata)
        for name in names:
            values = [metadata.get(name) for metadata in self._metadata]
            if self._cells_are_text and all(map(_is_decimal, values)):
                values = [None if value is None else float(value) for value in values]
            if any(value is not None for value in values):
                columns[self._free(name, columns)] = inferred_column(values)
        return pd.DataFrame(columns)

    def qrels(self) -> pd.DataFrame | None:
        """Return the labels, None without any; the first grade of a pair counts."""
        if not self._qrels["query_id"]:
            return None
        return pd.DataFrame(self._qrels).drop_duplicates(["query_id", "chunk_id"])

    def all_notes(self) -> list[str]:
        """Return what limits the run, a sentence each: what was left out, made or merged."""
        notes = list(self.notes)
        for reason, count in self._reasons.most_common():
            records = "record" if count == 1 else "records"
            where = (
                self._first_place[reason] if count == 1 else f"first {self._first_place[reason]}"
            )
            notes.append(f"{count:,} {records} of {self.source} left out: {reason} ({where})")
        if self._doubles:
            notes.append(
                f"{self._doubles:,} of {len(self):,} queries had the id of one before them; a "
                f"number was put behind it ({DOUBLE}2, ...)"
            )
        if self._merged:
            notes.append(
                f"several retrieval calls were merged in order for {self._merged:,} of "
                f"{len(self):,} queries"
            )
        if self._unrecorded:
            notes.append(
                f"no retrieval was recorded for {len(self._unrecorded):,} of {len(self):,} "
                "queries: it is not measured there"
            )
        if self._made_chunk_ids:
            notes.append(
                "chunks have no ids in this file; theirs are made from their texts, so labels "
                "match where the text is the same"
            )
        return notes

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"source": self.source, "format": self.format}
        notes = self.all_notes()
        if notes:
            info["notes"] = notes
        if self._skipped:
            info["skipped"] = [
                {"place": each.place, "reason": each.reason} for each in self._skipped
            ]
            info["n_skipped"] = self._reasons.total()
        if self._made_query_ids:
            info["query_ids_made_from_text"] = True
        parts = {
            "flags": self._flags,
            "tracebacks": self._tracebacks,
            "retrieval_not_recorded": self._unrecorded,
        }
        info.update({name: part for name, part in parts.items() if part})
        return info

    def _require_something(self) -> None:
        if self._metadata:
            return
        reasons = "; ".join(
            f"{self._first_place[reason]}: {reason}" for reason, _ in self._reasons.most_common(3)
        )
        raise RunFormatError(
            f"{self.source}: nothing in it can be used as {self.format}"
            f"{f': {reasons}' if reasons else ': it holds no records'}"
        )

    def _id_of(self, record: Record) -> str:
        wanted = record.query_id
        if wanted is None:
            wanted = query_id_of(str(record.query))
            self._made_query_ids += 1
        count = self._seen.get(wanted, 0) + 1
        self._seen[wanted] = count
        if count == 1:
            return wanted
        self._doubles += 1
        numbered = f"{wanted}{DOUBLE}{count}"
        self._seen.setdefault(numbered, 1)
        return numbered

    def _chunk_id(self, chunk: Chunk) -> str:
        if chunk.id is not None:
            return chunk.id
        self._made_chunk_ids += 1
        return chunk_id_of(chunk.text or "")

    def _free(self, name: str, taken: Mapping[str, Any]) -> str:
        """Return a name for a metadata column that no other column has."""
        if name in RESERVED_COLUMNS or name.startswith(RESERVED_PREFIXES) or name in taken:
            return f"{self.format}_{name}"
        return name

    @staticmethod
    def _append(columns: dict[str, list[Any]], *values: Any) -> None:
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)


def _is_decimal(value: Any) -> bool:
    """Return whether a cell is missing or a number as measures are written: ``007`` is none."""
    return value is None or (isinstance(value, str) and _DECIMAL.fullmatch(value) is not None)
