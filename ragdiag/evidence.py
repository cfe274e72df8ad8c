"""The tables of a run lined up query by query: what every view of it shares, at any settings."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag.aggregates import as_floats
from ragdiag.covers import Covers, complete_ranks, cover_measures, covered_at
from ragdiag.errors import RunError
from ragdiag.metrics import RELEVANT_GRADE, retrieval_measures
from ragdiag.passages import find_covers, passage_names
from ragdiag.recording import Run
from ragdiag.relevance import query_positions, relevant_ranks
from ragdiag.schema import RESERVED_COLUMNS, RESERVED_PREFIXES, Settings
from ragdiag.tables import EVIDENCE, QRELS, QUERIES, TEXT, as_table

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
        At which rank each labelled chunk came; of a query whose evidence are passages, the depth at
        which each passage was there.
    covers : Covers or None
        What the chunks hold of the passages; None where all evidence are chunk ids.
    by_passage : numpy.ndarray of bool, shape (n_queries,)
        Where passages count, and not ids.
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
        self._passages = run.evidence
        self.covers: Covers | None = None
        self.by_passage: Bools = np.zeros(len(run), dtype=bool)
        self._base = self
        self._seen: dict[Any, RunEvidence] = {}
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
        self._retrieval_known = self.was_run & ~self.failed & recorded.to_numpy(dtype=bool)
        self.retrieval_measured: Bools = (self.n_relevant > 0) & self._retrieval_known

    def __len__(self) -> int:
        return len(self.queries)

    def under(self, settings: Settings) -> RunEvidence:
        """Return the evidence as `settings` see it: passages in the place of labels.

        A passage takes the place of a labelled chunk, and comes at the depth at which the share
        ``evidence_threshold`` of it has come. Texts are compared once, whatever the threshold.
        """
        base = self._base
        if not len(base._passages):
            return base
        key = (settings.relevance, settings.evidence_threshold)
        if key not in base._seen:
            base._seen[key] = base._with_passages(*key)
        return base._seen[key]

    def _with_passages(self, relevance: str, threshold: float) -> RunEvidence:
        has = np.zeros(len(self), dtype=bool)
        query = query_positions(self._passages["query_id"], self.query_ids)
        has[query[query >= 0]] = True
        by_passage = has if relevance == "evidence" else has & (self.n_relevant == 0)
        seen = copy.copy(self)
        # What depends on the labels is found anew.
        seen.__dict__.pop("pair_relevant", None)
        own = self._passages[np.append(by_passage, False)[query]].reset_index(drop=True)
        alike = (each for (way, _), each in self._seen.items() if way == relevance)
        covers = next((each.covers for each in alike), None)
        if covers is None:
            covers = find_covers(self.query_ids, own, self._retrieved)
        ids = ~by_passage[self.ranks.pair_query]
        pair_query = np.concatenate([self.ranks.pair_query[ids], covers.passage_query])
        order = np.argsort(pair_query, kind="stable")
        rows = [self.ranks.pair_row[ids], len(self._qrels) + covers.passage_row]
        came = [self.ranks.pair_rank[ids], complete_ranks(covers, threshold)]
        grades = [self.ranks.pair_grade[ids], np.ones(len(covers.passage_query))]
        seen.ranks = dataclasses.replace(
            self.ranks,
            pair_query=pair_query[order],
            pair_row=np.concatenate(rows)[order],
            pair_rank=np.concatenate(came)[order],
            pair_grade=np.concatenate(grades)[order],
        )
        named = own[["query_id"]].assign(chunk_id=passage_names(own), grade=1)
        seen._qrels = pd.concat(
            [self._qrels, as_table(named, QRELS, name="evidence")], ignore_index=True
        )
        seen.covers, seen.by_passage, seen._passages = covers, by_passage, own
        seen.n_relevant = np.bincount(
            seen.ranks.pair_query[seen.pair_relevant], minlength=len(self)
        )
        comparable = covers.comparable | ~by_passage
        seen.retrieval_measured = (seen.n_relevant > 0) & self._retrieval_known & comparable
        return seen

    def measures(self, ks: Sequence[int], precision_denominator: Any) -> dict[str, Any]:
        """Return every retrieval measure of every query, see :mod:`ragdiag.metrics`.

        Where passages count they are those of :mod:`ragdiag.covers`, which adds ``iou_at_{k}``.
        """
        ranks = self.ranks
        measured = retrieval_measures(
            ranks.pair_query,
            ranks.pair_rank,
            ranks.pair_grade,
            ranks.n_retrieved,
            ks=ks,
            precision_denominator=precision_denominator,
        )
        if self.covers is not None:
            for name, values in cover_measures(self.covers, list(ks)).items():
                by_id = measured.get(name, np.full(len(self), np.nan))
                measured[name] = np.where(self.by_passage, values, by_id)
        return measured

    def covered_shares(self, k: int | None = None) -> Floats:
        """Return the share of each query's evidence in the top k, NaN where ids count."""
        if self.covers is None:
            return np.full(len(self), np.nan)
        part, whole = (
            np.bincount(self.covers.passage_query, sizes, len(self))
            for sizes in (covered_at(self.covers, k), self.covers.passage_size)
        )
        shares: Floats = np.full(len(self), np.nan)
        return np.divide(part, whole, out=shares, where=self.by_passage)

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
        if self.covers is not None:
            self._mark_by_passage(chunks, positions, relevant)
        chunks["relevant"] = relevant
        chunks["grade"] = grade
        chunks["in_top_k"] = (chunks["rank"] <= k).astype("boolean")
        return chunks

    def _mark_by_passage(self, chunks: pd.DataFrame, positions: Ints, relevant: Any) -> None:
        """Say which chunks hold evidence, and how much of it, where passages count."""
        assert self.covers is not None
        order, starts = self._row_order
        rows = order[_ranges(starts[positions], self.n_retrieved[positions])]
        held = np.full(len(self._retrieved), np.nan)
        held[self.covers.chunk_row] = self.covers.chunk_held
        held_share = held[rows]
        by_passage = ~np.isnan(held_share)
        flags = np.zeros(len(self._retrieved), dtype=bool)
        flags[self.covers.chunk_row] = self.covers.chunk_relevant
        comparable = np.repeat(self.covers.comparable[positions], self.n_retrieved[positions])
        relevant[by_passage] = flags[rows][by_passage]
        relevant[by_passage & ~comparable] = pd.NA
        sizes = np.bincount(self.covers.passage_query, self.covers.passage_size, len(self))
        whole = np.repeat(sizes[positions], self.n_retrieved[positions])
        chunks["evidence_share"] = np.divide(
            held_share, whole, out=np.full(len(rows), np.nan), where=by_passage & comparable
        )

    def relevant_ranks_of(self, positions: Ints) -> list[list[int]]:
        """Return the ranks of the relevant chunks of some queries."""
        chunks = self.chunks(positions, 1)
        wanted = chunks["relevant"].fillna(False).to_numpy(dtype=bool)
        ends = np.cumsum(self.n_retrieved[positions])[:-1]
        return [
            own[mine].tolist()
            for own, mine in zip(
                np.split(chunks["rank"].to_numpy(dtype=np.int64), ends),
                np.split(wanted, ends),
                strict=True,
            )
        ]

    def passages(self, positions: Ints, k: int) -> pd.DataFrame:
        """Return the passages of some queries, and how much of each came; none where ids count."""
        covers = self.covers
        if covers is None:
            covers = find_covers(self.query_ids, self._passages.head(0), self._retrieved.head(0))
        counts = np.bincount(covers.passage_query, minlength=len(self))
        numbers = _ranges((np.cumsum(counts) - counts)[positions], counts[positions])
        own = self._passages.take(covers.passage_row[numbers]).reset_index(drop=True)
        size = np.maximum(covers.passage_size[numbers], 1)
        known = self.retrieval_measured[covers.passage_query[numbers]]
        ranks = self.completed()[numbers]
        in_top_k = pd.array((ranks > 0) & (ranks <= k), dtype="boolean")
        in_top_k[~known] = pd.NA
        table = own[["query_id"]].assign(passage=pd.array(passage_names(own), dtype=TEXT))
        for name in [*EVIDENCE][1:]:
            table[name] = own[name]
        table["covered"] = np.where(known, covered_at(covers, k)[numbers] / size, np.nan)
        table["covered_at_any_rank"] = np.where(known, covered_at(covers)[numbers] / size, np.nan)
        table["rank"] = pd.arrays.IntegerArray(ranks.copy(), (ranks == 0) | ~known)
        table["in_top_k"] = in_top_k
        table["split"] = pd.array(covers.passage_split[numbers], dtype="boolean")
        return table

    def completed(self) -> Ints:
        """Return the depth at which each passage is there, in the order of the covers."""
        by_passage = self.by_passage[self.ranks.pair_query]
        return self.ranks.pair_rank[by_passage]

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
