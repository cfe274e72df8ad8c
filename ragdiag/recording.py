"""``Run``: what happened when one pipeline met one dataset, as five tables. Immutable."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pandas as pd

from ragdiag.tables import (
    OUTCOMES,
    QRELS,
    QUERIES,
    RETRIEVED,
    VERDICTS,
    as_table,
    empty_table,
    guarded,
)

__all__ = ["Run"]


class Run:
    """The evidence tables of one pipeline on one dataset.

    Parameters
    ----------
    queries : pandas.DataFrame
        One row a query: ``query_id, query, expected_answer, query_type`` and metadata columns.
    qrels : pandas.DataFrame, optional
        Ground truth, one row a pair: ``query_id, chunk_id, grade``.
    retrieved : pandas.DataFrame, optional
        One row a chunk: ``query_id, rank, chunk_id, score, text, metadata``.
    outcomes : pandas.DataFrame, optional
        One row a query that was run: ``query_id, status, error, answer, retrieval_ms,
        generation_ms, total_ms``.
    verdicts : pandas.DataFrame, optional
        One row a judged query, see :data:`ragdiag.tables.VERDICTS`.
    pipeline_name, pipeline_version, dataset_name, dataset_version : str
        Names that reports show.
    info : mapping, optional
        Anything else worth keeping (JSON-like): the judge, notes of an importer, flags.
    """

    def __init__(
        self,
        queries: pd.DataFrame,
        qrels: pd.DataFrame | None = None,
        retrieved: pd.DataFrame | None = None,
        outcomes: pd.DataFrame | None = None,
        verdicts: pd.DataFrame | None = None,
        *,
        pipeline_name: str = "pipeline",
        pipeline_version: str = "",
        dataset_name: str = "dataset",
        dataset_version: str = "unversioned",
        info: Mapping[str, Any] | None = None,
    ) -> None:
        pair = ("query_id", "chunk_id")
        self._queries = as_table(queries, QUERIES, name="queries", keep_extra=True)
        self._qrels = _table(qrels, QRELS, "qrels", pair)
        self._retrieved = _table(retrieved, RETRIEVED, "retrieved", (*pair, "rank"))
        self._outcomes = _table(outcomes, OUTCOMES, "outcomes", ("query_id", "status"))
        self._verdicts = _table(verdicts, VERDICTS, "verdicts", ("query_id",))
        self.pipeline_name = pipeline_name
        self.pipeline_version = pipeline_version
        self.dataset_name = dataset_name
        self.dataset_version = dataset_version
        self.info: Mapping[str, Any] = MappingProxyType(dict(info or {}))

    # What is handed out is a copy that nobody can harm the original through.
    @property
    def queries(self) -> pd.DataFrame:
        """One row a query, metadata columns included."""
        return guarded(self._queries)

    @property
    def qrels(self) -> pd.DataFrame:
        """Ground truth, one row a pair."""
        return guarded(self._qrels)

    @property
    def retrieved(self) -> pd.DataFrame:
        """One row a chunk returned, in the pipeline's order."""
        return guarded(self._retrieved)

    @property
    def outcomes(self) -> pd.DataFrame:
        """One row a query that was run."""
        return guarded(self._outcomes)

    @property
    def verdicts(self) -> pd.DataFrame:
        """One row a judged query."""
        return guarded(self._verdicts)

    def __len__(self) -> int:
        return len(self._queries)


def _table(
    frame: pd.DataFrame | None, spec: Mapping[str, Any], name: str, required: tuple[str, ...]
) -> pd.DataFrame:
    if frame is None:
        return empty_table(spec)
    return as_table(frame, spec, name=name, required=required)
