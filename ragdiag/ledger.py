"""What the records of a run add up to: the latest of each kind for each query, and the tables.

Records are of two families. *Rows* (``query``, ``qrels``, ``evidence``, ``retrieved``, ``outcome``,
``verdict``) are parts of the tables as they stand. *Events* (``retrieval``, ``generation``,
``answer``, ``error``, ``reply``) are written while a run goes on, the moment each exists; of the
same kind and query the latest counts. A saved run has rows only; a store has the rows of its
dataset and events.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import pandas as pd
import pyarrow as pa

from ragdiag.codec import decode, decode_column, decode_dtype
from ragdiag.journal import Record
from ragdiag.tables import (
    EVIDENCE,
    MEASURE,
    OUTCOMES,
    QRELS,
    QUERIES,
    RETRIEVED,
    TEXT,
    VERDICTS,
    empty_table,
)

__all__ = ["PROVENANCE", "Ledger", "judge_key", "reply_error"]

#: Keys of ``Run.info`` that a header holds under a name of its own.
PROVENANCE = {
    "dataset_digest": ("dataset", "digest"),
    "pipeline_source": ("pipeline", "source"),
    "pipeline_stages": ("pipeline", "stages"),
}

_STAGE_RECORDS = ("retrieval", "generation", "answer")
_ROWS = ("retrieved", "outcome", "verdict")
_SIDES = ("correct", "grounded")


def judge_key(identity: Mapping[str, Any]) -> str:
    """Return the digest under which a judge's replies are kept.

    Examples
    --------
    >>> judge_key({"judge": "lexical"}) == judge_key({"judge": "lexical"})
    True
    """
    text = json.dumps(identity, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Ledger:
    """The state of a run, kept up to date record by record."""

    def __init__(self) -> None:
        self.header: Record = {}
        #: What the pipeline does: retrieval, retrieval and generation, or answer.
        self.stages: list[str] = ["retrieval"]
        self.queries: dict[str, Record] = {}
        self.qrels: list[Record] = []
        self.passages: list[Record] = []
        self.rows: dict[str, list[Record]] = {kind: [] for kind in _ROWS}
        self._rows_of: dict[str, dict[str, list[Record]]] = {kind: {} for kind in _ROWS}
        self.events: dict[str, dict[str, Record]] = {name: {} for name in _STAGE_RECORDS}
        self.errors: dict[str, Record] = {}
        self.judge: Record = {}
        self.replies: dict[str, dict[str, dict[int, Record]]] = {}
        self._texts: dict[str, str] = {}
        self._saved_judge = ""
        self._saved: dict[str, set[str]] = {"outcome": set(), "verdict": set()}

    @classmethod
    def of(cls, records: Iterable[Record]) -> Ledger:
        """Add up `records`, the header first."""
        ledger = cls()
        for record in records:
            ledger.apply(record)
        return ledger

    def apply(self, record: Record) -> None:
        """Take one more record into account; kinds this version does not know are passed over."""
        kind = record["record"]
        query_id = record.get("query_id", "")
        if kind in self.events:
            self.events[kind][query_id] = record
            self.errors.pop(query_id, None)
        elif kind == "reply":
            of_judge = self.replies.setdefault(record["judge"], {})
            of_judge.setdefault(query_id, {})[record["repeat"]] = record
        elif kind == "error":
            self.errors[query_id] = record
        elif kind == "query":
            self._take_query(query_id, record)
        elif kind == "qrels":
            self.qrels.append(record)
        elif kind == "evidence":
            self.passages.append(record)
        elif kind in self.rows:
            self._take_row(kind, query_id, record)
        elif kind == "judge":
            self.judge = record
        elif kind == "header":
            self.header, self.queries = record, {}
            self.qrels, self.passages = [], []
            self.stages = list(record.get("pipeline", {}).get("stages") or ["retrieval"])
            identity = decode(record.get("info", {})).get("judge")
            self._saved_judge = "" if identity is None else judge_key(identity)

    def _take_query(self, query_id: str, record: Record) -> None:
        # A later header may bring a changed dataset: what was said to another question is void.
        if self._texts.get(query_id, record["query"]) != record["query"]:
            self.forget(query_id)
        self._texts[query_id] = record["query"]
        self.queries[query_id] = record

    def _take_row(self, kind: str, query_id: str, record: Record) -> None:
        self.rows[kind].append(record)
        self._rows_of[kind].setdefault(query_id, []).append(record)
        if kind == "outcome" and record.get("status") == "completed":
            self._saved[kind].add(query_id)
        if kind == "verdict" and not (record.get("correct_error") or record.get("grounded_error")):
            self._saved[kind].add(query_id)

    def forget(self, query_id: str) -> None:
        """Drop everything known about a query but the question itself."""
        for latest in (*self.events.values(), *self.replies.values(), self.errors):
            latest.pop(query_id, None)  # type: ignore[attr-defined]
        for kind in _ROWS:
            if self._rows_of[kind].pop(query_id, None):
                self.rows[kind] = [row for row in self.rows[kind] if row["query_id"] != query_id]
        for done in self._saved.values():
            done.discard(query_id)

    # What is done ---------------------------------------------------------------------------

    def finished(self, query_id: str) -> bool:
        """Whether the pipeline's work on a query is complete."""
        if query_id in self._saved["outcome"]:
            return True
        return query_id not in self.errors and all(
            query_id in self.events[stage] for stage in self.stages
        )

    def evidence(self, query_id: str) -> tuple[list[Record], str | None]:
        """Return chunks and answer of a finished query."""
        for kind in ("answer", "retrieval"):
            if query_id in self.events[kind]:
                record = self.events[kind][query_id]
                answer = self.events["generation"].get(query_id, record).get("answer")
                return record["chunks"], answer
        rows = self._rows_of["retrieved"].get(query_id, [])
        answer = self._rows_of["outcome"][query_id][0].get("answer")
        return [chunk for row in rows for chunk in row["chunks"]], answer

    def judged(self, query_id: str, key: str, repeat: int) -> bool:
        """Whether a judge's reply is there and has no error."""
        reply = self.replies.get(key, {}).get(query_id, {}).get(repeat)
        if reply is not None:
            return reply_error(reply) is None
        return repeat == 0 and key == self._saved_judge and query_id in self._saved["verdict"]

    # The tables -----------------------------------------------------------------------------

    def run_fields(
        self,
        queries: pd.DataFrame | None = None,
        qrels: pd.DataFrame | None = None,
        evidence: pd.DataFrame | None = None,
    ) -> dict[str, Any]:
        """Return the arguments that make a ``Run``; the dataset's tables may be at hand."""
        dataset, pipeline = self.header.get("dataset", {}), self.header.get("pipeline", {})
        info: dict[str, Any] = decode(self.header.get("info", {}))
        for name, (section, key) in PROVENANCE.items():
            if self.header.get(section, {}).get(key) is not None:
                info[name] = self.header[section][key]
        retrieved, outcomes, verdicts = self._evidence_tables(info)
        return {
            "queries": self._query_table() if queries is None else queries,
            "qrels": self._qrels_table() if qrels is None else qrels,
            "evidence": self._passage_table() if evidence is None else evidence,
            "retrieved": retrieved,
            "outcomes": outcomes,
            "verdicts": verdicts,
            "pipeline_name": pipeline.get("name", "pipeline"),
            "pipeline_version": pipeline.get("version", ""),
            "dataset_name": dataset.get("name", "dataset"),
            "dataset_version": dataset.get("version", "unversioned"),
            "info": info,
        }

    def _qrels_table(self) -> pd.DataFrame:
        pairs = [(row["query_id"], *pair) for row in self.qrels for pair in row["pairs"]]
        return _table(pairs, QRELS)

    def _passage_table(self) -> pd.DataFrame:
        return _table([tuple(map(row.get, EVIDENCE)) for row in self.passages], EVIDENCE)

    def _query_table(self) -> pd.DataFrame:
        records = list(self.queries.values())
        frame = _table([[record.get(name) for name in QUERIES] for record in records], QUERIES)
        for column in self.header.get("columns", []):
            cells = [record["metadata"][column["name"]] for record in records]
            values = decode_column(cells, decode_dtype(column["dtype"]))
            frame[column["name"]] = values.set_axis(frame.index)
        return frame

    def _evidence_tables(self, info: dict[str, Any]) -> tuple[pd.DataFrame, ...]:
        rows: list[Iterable[list[Record]]] = [[self.rows[kind]] for kind in _ROWS]
        touched = {query_id for latest in self.events.values() for query_id in latest}
        touched |= set(self.errors)
        if touched or self.judge:
            retrieved, outcomes, verdicts = (dict(self._rows_of[kind]) for kind in _ROWS)
            for query_id in self.queries:
                if query_id in touched:
                    self._fold(query_id, retrieved, outcomes, info)
            if self.judge:
                info["judge"] = self.judge["identity"]
                if self.judge.get("host"):
                    info["judge_host"] = self.judge["host"]
                if self.judge["key"] != self._saved_judge:
                    verdicts = {}
                    for name in ("judge_details", "judge_replies"):
                        info.pop(name, None)
            replies = self.replies.get(self.judge.get("key", ""), {})
            for query_id, of_query in replies.items():
                self._fold_replies(query_id, of_query, outcomes, verdicts, info)
            # In the order of the dataset, whatever order they came in.
            rows = [
                [grouped[query_id] for query_id in self.queries if query_id in grouped]
                for grouped in (retrieved, outcomes, verdicts)
            ]
        flat = [list(chain.from_iterable(groups)) for groups in rows]
        # An event's chunks are in the order of their ranks; a saved row has its own rank.
        names = list(RETRIEVED)[2:]
        chunks = [
            (row["query_id"], chunk.get("rank", rank), *map(chunk.get, names))
            for row in flat[0]
            for rank, chunk in enumerate(row["chunks"], 1)
        ]
        return (
            _table(chunks, RETRIEVED),
            _table([tuple(map(row.get, OUTCOMES)) for row in flat[1]], OUTCOMES),
            _table([tuple(map(row.get, VERDICTS)) for row in flat[2]], VERDICTS),
        )

    def _fold(
        self,
        query_id: str,
        retrieved: dict[str, list[Record]],
        outcomes: dict[str, list[Record]],
        info: dict[str, Any],
    ) -> None:
        """Replace a query's rows by what its events say; a query half done has none."""
        error = self.errors.get(query_id)
        if error is None and not self.finished(query_id):
            return
        for kind in ("flags", "tracebacks"):
            info.get(kind, {}).pop(query_id, None)
        outcome: Record = {"query_id": query_id, "status": "completed"}
        flags: list[str] = []
        for kind in self.stages:
            record = self.events[kind].get(query_id)
            if record is None:
                continue
            flags += record.get("flags", [])
            outcome[_ms_column(kind)] = record.get("ms")
            if "answer" in record:
                outcome["answer"] = record["answer"]
            if "chunks" in record:
                retrieved[query_id] = [record]
        if error is not None:
            outcome |= {"status": "failed", "error": f"{error['stage']} failed: {error['error']}"}
            outcome.pop("answer", None)
            outcome[_ms_column(error["stage"])] = error.get("ms")
            if error.get("traceback"):
                info.setdefault("tracebacks", {})[query_id] = error["traceback"]
        if "total_ms" not in outcome:
            columns = [_ms_column(stage) for stage in self.stages]
            parts = [outcome[column] for column in columns if column in outcome]
            outcome["total_ms"] = None if None in parts else sum(parts)
        if flags:
            info.setdefault("flags", {})[query_id] = flags
        outcomes[query_id] = [outcome]

    def _fold_replies(
        self,
        query_id: str,
        replies: Mapping[int, Record],
        outcomes: Mapping[str, list[Record]],
        verdicts: dict[str, list[Record]],
        info: dict[str, Any],
    ) -> None:
        """Make one verdict of a judge's replies, if the answer they are about is still there."""
        outcome = outcomes.get(query_id, [{}])[0]
        if outcome.get("status") != "completed" or outcome.get("answer") is None:
            return
        ordered = [replies[repeat] for repeat in sorted(replies)]
        verdicts[query_id] = [_verdict(query_id, self.judge["name"], ordered)]
        if len(ordered) > 1:
            found = [[reply["result"].get(key) for key in _FINDINGS] for reply in ordered]
            info.setdefault("judge_replies", {})[query_id] = found
        details = {
            key: value
            for key, value in ordered[0].get("result", {}).items()
            if key in _DETAILS and value
        }
        if details:
            info.setdefault("judge_details", {})[query_id] = details


_FINDINGS = ("answer_correct", "grounded")

#: What a judge says beyond the columns of the verdict table.
_DETAILS = (
    "claims",
    "missing_facts",
    "wrong_facts",
    "model",
    "prompt_tokens",
    "completion_tokens",
)


def _ms_column(stage: str) -> str:
    """Return the column of a stage's time; answering in one step has the total alone."""
    return "total_ms" if stage == "answer" else f"{stage}_ms"


def reply_error(reply: Record) -> str | None:
    """Return the first error of a judge's reply, if there is one."""
    result = reply["result"]
    return result.get("correct_error") or result.get("grounded_error") or None


def _verdict(query_id: str, judge: str, replies: list[Record]) -> Record:
    """Return the verdict row of one query: for each side what most replies found."""
    results = [reply["result"] for reply in replies]
    row: Record = {"query_id": query_id, "judge": judge}
    reasons = []
    for finding, side in zip(_FINDINGS, _SIDES, strict=True):
        usable = [result for result in results if not result.get(f"{side}_error")]
        if usable:
            findings = [result.get(finding) for result in usable]
            # The first of equally frequent findings is taken.
            row[finding] = max(findings, key=findings.count)
            chosen = usable[findings.index(row[finding])]
            row[f"{side}_confidence"] = chosen.get(f"{side}_confidence")
            reasons.append(chosen.get("reason"))
        else:
            row[f"{side}_error"] = results[0].get(f"{side}_error")
    reason = next(iter(reasons), results[0].get("reason"))
    row["screened"] = any(bool(result.get("screened")) for result in results)
    row["judge_reason"] = reason or None
    row["judge_ms"] = replies[0].get("ms")
    return row


def _table(rows: Iterable[Iterable[Any]], spec: Mapping[str, Any]) -> pd.DataFrame:
    """Return rows of JSON values as a table of `spec`."""
    columns = list(zip(*rows, strict=True))
    if not columns:
        return empty_table(spec)
    return pd.DataFrame(
        {
            name: _column(cells, dtype)
            for (name, dtype), cells in zip(spec.items(), columns, strict=True)
        }
    )


def _column(cells: Sequence[Any], dtype: Any) -> pd.Series:
    if dtype == TEXT:
        # Straight through Arrow: pandas would look at each text twice.
        return pd.Series(pd.array(pa.array(cells, pa.large_string()), dtype=dtype))
    if dtype == MEASURE:
        cells = [decode(cell) if type(cell) is dict else cell for cell in cells]
    column: pd.Series = pd.Series(cells, dtype=dtype)
    return column
