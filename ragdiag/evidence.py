"""The tables of a run lined up query by query: what every view of it shares, at any settings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag.aggregates import as_floats
from ragdiag.errors import RunError
from ragdiag.metrics import RELEVANT_GRADE
from ragdiag.recording import Run
from ragdiag.relevance import query_positions, relevant_ranks
from ragdiag.schema import RESERVED_COLUMNS, RESERVED_PREFIXES
from ragdiag.tables import QUERIES

__all__ = ["RunEvidence"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


class RunEvidence:
    """A run's tables by query position; position i is row i of ``run.queries``.

    Parameters
    ----------
    run : Run
        The evidence.
    index : sequence of int, optional
        Positions in the dataset, where the run holds a part of one; ``0 ... n - 1`` by default.

    Attributes
    ----------
    queries, outcomes, verdicts : pandas.DataFrame, one row a query
        Missing where a query was not run or not judged.
    ranks : RelevantRanks
        At which rank each labelled chunk came.
    has_outcome, failed, judged : numpy.ndarray of bool, shape (n_queries,)
    n_relevant, n_retrieved : numpy.ndarray of int, shape (n_queries,)
    retrieval_measured : numpy.ndarray of bool, shape (n_queries,)
        Where relevant chunks are known, the query was run, its pipeline did not fail, and what it
        retrieved was recorded: a trace without a retrieval is not one that found nothing.
    n_unknown : dict of str to int
        Rows of each table left out since their query is not among the queries.

    Raises
    ------
    RunError
        A query id occurs twice in a table that has one row a query, or a metadata column has a
        reserved name.
    """

    def __init__(self, run: Run, index: Sequence[int] | None = None) -> None:
        self.run = run
        self.index = pd.RangeIndex(len(run)) if index is None else pd.Index(index)
        self.queries = run.queries
        self.query_ids = self.queries["query_id"]
        _require_free_names(self.queries)
        self._retrieved = run.retrieved
        self._qrels = run.qrels
        self.ranks = relevant_ranks(self.query_ids, self._qrels, self._retrieved)
        self.outcomes, self.has_outcome, lost_outcomes = _by_query(
            run.outcomes, self.query_ids, "outcomes"
        )
        self.verdicts, self.judged, lost_verdicts = _by_query(
            run.verdicts, self.query_ids, "verdicts"
        )
        self.n_unknown = {
            "qrels": self.ranks.n_unknown_pairs,
            "retrieved": self.ranks.n_unknown_retrieved,
            "outcomes": lost_outcomes,
            "verdicts": lost_verdicts,
        }
        self.failed: Bools = (self.outcomes["status"] == "failed").to_numpy(
            dtype=bool, na_value=False
        )
        self.n_retrieved: Ints = self.ranks.n_retrieved
        self.n_relevant: Ints = np.bincount(
            self.ranks.pair_query[self.pair_relevant], minlength=len(self)
        )
        self.was_run: Bools = self.has_outcome | (self.n_retrieved > 0)
        recorded = ~self.query_ids.isin(list(run.info.get("retrieval_not_recorded", ())))
        self.retrieval_measured: Bools = (
            (self.n_relevant > 0) & self.was_run & ~self.failed & recorded.to_numpy(dtype=bool)
        )

    def __len__(self) -> int:
        return len(self.queries)

    @cached_property
    def pair_relevant(self) -> Bools:
        """Which of the labelled pairs are relevant."""
        return self.ranks.pair_grade >= RELEVANT_GRADE

    @cached_property
    def by_id(self) -> Any:
        """The query ids as an index, to find positions by."""
        return pd.Index(self.query_ids)

    @cached_property
    def metadata(self) -> list[str]:
        """Names of the user's own columns."""
        return [name for name in self.queries.columns if name not in QUERIES]

    def verdict(self, finding: str, side: str) -> Floats:
        """Return a finding as 1, 0 or NaN; a side whose judge failed has none."""
        values = as_floats(self.verdicts[finding])
        return np.where(self.verdicts[f"{side}_error"].notna(), np.nan, values)

    @cached_property
    def _row_order(self) -> tuple[Ints, Ints]:
        """Rows of the retrieved table by query and rank, and where each query's begin."""
        query = query_positions(self._retrieved["query_id"], self.query_ids)
        rank = self._retrieved["rank"].to_numpy(dtype=np.int64)
        step, down = np.diff(query), np.diff(rank) < 0
        if (step < 0).any() or (down & (step == 0)).any():
            order = np.lexsort((rank, query))
        else:
            order = np.arange(len(query))
        unknown = int((query < 0).sum())
        return order, np.concatenate([[0], np.cumsum(self.n_retrieved)]) + unknown

    def pairs_of(self, positions: Ints) -> tuple[Ints, Ints]:
        """Return the labelled pairs of some queries, and how many each has."""
        counts = np.bincount(self.ranks.pair_query, minlength=len(self))
        starts = np.cumsum(counts) - counts
        return _ranges(starts[positions], counts[positions]), counts[positions]

    def chunk_rows(self, positions: Ints) -> pd.DataFrame:
        """Return the retrieved rows of some queries, in their order and by rank."""
        order, starts = self._row_order
        rows = order[_ranges(starts[positions], self.n_retrieved[positions])]
        return self._retrieved.take(rows).reset_index(drop=True)

    def pair_chunk_ids(self, pairs: Ints) -> list[str]:
        """Return the chunk ids of labelled pairs."""
        ids: list[str] = self._qrels["chunk_id"].take(self.ranks.pair_row[pairs]).tolist()
        return ids

    def chunks(self, positions: Ints, k: int) -> pd.DataFrame:
        """Return the retrieved chunks of some queries with ``relevant, grade, in_top_k``."""
        chunks = self.chunk_rows(positions)
        counts = self.n_retrieved[positions]
        pairs, pair_counts = self.pairs_of(positions)
        labels = pd.DataFrame(
            {
                "query": np.repeat(positions, pair_counts),
                "chunk_id": self._qrels["chunk_id"].take(self.ranks.pair_row[pairs]).array,
                "grade": _grades(self.ranks.pair_grade[pairs]),
            }
        )
        keys = pd.DataFrame({"query": np.repeat(positions, counts), "chunk_id": chunks["chunk_id"]})
        grade = keys.merge(labels, how="left", on=["query", "chunk_id"])["grade"].array
        relevant = pd.array(grade >= RELEVANT_GRADE, dtype="boolean")
        # A chunk without a label is not relevant, unless its query has no labels at all.
        labelled = np.repeat(self.n_relevant[positions] > 0, counts)
        relevant[np.asarray(pd.isna(grade)) & labelled] = False
        relevant[~labelled] = pd.NA
        chunks["relevant"] = relevant
        chunks["grade"] = grade
        chunks["in_top_k"] = (chunks["rank"] <= k).astype("boolean")
        return chunks

    def expected(self, positions: Ints, k: int) -> pd.DataFrame:
        """Return the labelled pairs of some queries with ``rank`` and ``in_top_k``."""
        pairs, counts = self.pairs_of(positions)
        source = self.ranks.pair_row[pairs]
        qrels = self._qrels
        rank = self.ranks.pair_rank[pairs]
        looked = (self.n_retrieved > 0) | self.retrieval_measured
        known = np.repeat(looked[positions], counts)
        in_top_k = pd.array((rank > 0) & (rank <= k), dtype="boolean")
        in_top_k[~known] = pd.NA
        return pd.DataFrame(
            {
                "query_id": qrels["query_id"].take(source).array,
                "chunk_id": qrels["chunk_id"].take(source).array,
                "grade": _grades(self.ranks.pair_grade[pairs]),
                "rank": pd.arrays.IntegerArray(rank.copy(), rank == 0),
                "in_top_k": in_top_k,
            }
        )


def _by_query(
    table: pd.DataFrame, query_ids: pd.Series, name: str
) -> tuple[pd.DataFrame, Bools, int]:
    """Return `table` with one row a query, which queries it has, and how many rows were left."""
    n = len(query_ids)
    ids = table["query_id"]
    table = table.drop(columns="query_id")
    if ids.equals(query_ids):  # as a run that is complete has it; spares looking up every id
        return table, np.ones(n, dtype=bool), 0
    place = query_positions(ids, query_ids)
    rows = np.flatnonzero(place >= 0)
    place = place[rows]
    has = np.zeros(n, dtype=bool)
    has[place] = True
    if has.sum() < len(rows):
        twice = int(np.flatnonzero(np.bincount(place, minlength=n) > 1)[0])
        raise RunError(f"table {name!r}: query {query_ids.iloc[twice]!r} occurs more than once")
    lined_up = table.take(rows).set_axis(pd.Index(place)).reindex(pd.RangeIndex(n))
    return lined_up, has, len(table) - len(rows)


def _grades(grades: Floats) -> pd.arrays.IntegerArray:
    return pd.arrays.IntegerArray(grades.astype(np.int64), np.zeros(len(grades), dtype=bool))


def _require_free_names(queries: pd.DataFrame) -> None:
    for name in queries.columns:
        if name in QUERIES:
            continue
        if name in RESERVED_COLUMNS or str(name).startswith(RESERVED_PREFIXES):
            raise RunError(
                f"table 'queries': the metadata column {name!r} has a name that the results use "
                "themselves; rename it"
            )


def _ranges(starts: Ints, counts: Ints) -> Ints:
    """Return ``start, start + 1, ...`` of every range, one after the other."""
    offsets = np.cumsum(counts) - counts
    return np.repeat(starts - offsets, counts) + np.arange(counts.sum())
