"""A dataset's questions one at a time, as dicts: to build models of, to digest and to write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ragdiag.cells import plain_list
from ragdiag.tables import EVIDENCE, QRELS
from ragdiag.validation import CheckedDataset

__all__ = ["file_record", "json_value", "records_of"]


def records_of(checked: CheckedDataset) -> Iterator[dict[str, Any]]:
    """Yield each question as a dict without the fields it lacks; ``grades`` has all labels."""
    frame = checked.frame.rename(columns={"query_id": "id"})
    names = list(frame.columns)
    columns = [plain_list(frame[name]) for name in names]
    labels: dict[str, dict[str, int]] = {query_id: {} for query_id in columns[0]}
    for query_id, chunk_id, grade in zip(
        *(plain_list(checked.qrels[name]) for name in QRELS), strict=True
    ):
        labels[query_id][chunk_id] = grade
    passages: dict[str, list[dict[str, Any]]] = {}
    for query_id, *place in zip(
        *(plain_list(checked.evidence[name]) for name in EVIDENCE), strict=True
    ):
        fields = zip(list(EVIDENCE)[1:], place, strict=True)
        passages.setdefault(query_id, []).append(
            {name: value for name, value in fields if value is not None}
        )
    for row in zip(*columns, strict=True):
        record = {name: value for name, value in zip(names, row, strict=True) if value is not None}
        record["relevant_chunk_ids"] = list(labels[row[0]])
        record["grades"] = labels[row[0]]
        if row[0] in passages:
            record["evidence"] = passages[row[0]]
        yield record


def file_record(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record as files have it: a grade only where it says something."""
    grades = record.pop("grades")
    record["relevant_chunk_ids"] = [
        chunk_id if grade == 1 else {"id": chunk_id, "grade": grade}
        for chunk_id, grade in grades.items()
    ]
    return record


def json_value(value: Any) -> Any:
    """Return what JSON has for a value of a type it does not know."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
