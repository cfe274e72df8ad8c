"""From tables to relevant ranks: the only place that reads the big table of retrieved chunks.

All retrieval measures, at any k, and all retrieval rules follow from one integer a labelled pair:
the rank at which its chunk came, 0 if it did not. :func:`relevant_ranks` finds it, by chunk id, in
one pass over the retrieved rows; whatever comes later works on arrays as long as the labels.

The pass is exact for every id and fast because most retrieved chunks are not relevant:

1. Each run of rows with one query id is looked up once among the query ids.
2. A six-bit *fingerprint* of each chunk id (a few of its bytes, mixed) is compared with the
   fingerprints of its query's labelled chunks, kept as the bits of one word a query. Equal ids have
   equal fingerprints, so no hit is lost; of the misses, a few per cent remain as candidates.
3. Only the candidates' ids are looked up among the labelled ids, as whole texts.

Ids whose fingerprints are all equal make every row a candidate: slower, and just as exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ragdiag.errors import RunError
from ragdiag.metrics import RELEVANT_GRADE

__all__ = ["RelevantRanks", "query_positions", "relevant_ranks"]

#: Rows handled at a time: what a block needs stays in the processor's cache.
BLOCK = 1 << 15

#: Fingerprints are below this, so that a 64-bit word can hold the set of a query's.
FINGERPRINTS = 64

#: Odd factors, so that ids that differ in few digits spread over the fingerprints.
MIXING = (11, 37)

#: Arrow types that are text too: of a column of nothing, and one that older Arrow does not know.
ALSO_TEXT = ("null", "string_view")

#: Position of what is not there.
UNKNOWN = -1

#: Rank of a chunk before it was seen.
NEVER = np.iinfo(np.int64).max

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class RelevantRanks:
    """Where each labelled chunk came: all that measures and retrieval rules need to know.

    Attributes
    ----------
    pair_query : numpy.ndarray of int64, shape (n_pairs,)
        Position of the pair's query among the query ids; does not decrease.
    pair_row : numpy.ndarray of int64, shape (n_pairs,)
        Row of the pair in the qrels table.
    pair_rank : numpy.ndarray of int64, shape (n_pairs,)
        1-based rank at which the chunk first came, 0 when it was not retrieved.
    pair_grade : numpy.ndarray of float64, shape (n_pairs,)
        Grade of the pair, 0 included; 1 where the table has none.
    n_retrieved : numpy.ndarray of int64, shape (n_queries,)
        Chunks retrieved for each query, repeated ones included.
    n_unknown_pairs : int
        Labelled pairs left out because their query is not among the query ids.
    n_repeated_pairs : int
        Labelled pairs left out because an earlier row has the same query and chunk.
    n_unknown_retrieved : int
        Retrieved rows left out because their query is not among the query ids.
    """

    pair_query: Integers
    pair_row: Integers
    pair_rank: Integers
    pair_grade: NDArray[np.float64]
    n_retrieved: Integers
    n_unknown_pairs: int = 0
    n_repeated_pairs: int = 0
    n_unknown_retrieved: int = 0


def relevant_ranks(
    query_ids: pd.Series, qrels: pd.DataFrame, retrieved: pd.DataFrame
) -> RelevantRanks:
    """Find at which rank each labelled chunk was retrieved for its query.

    Parameters
    ----------
    query_ids : pandas.Series of text
        The queries, each once; positions in the result refer to this order.
    qrels : pandas.DataFrame
        ``query_id, chunk_id`` and, optionally, ``grade``; in any order.
    retrieved : pandas.DataFrame
        ``query_id, rank, chunk_id``, one row a chunk; in any order, quickest when the rows of a
        query stand together. Of a chunk that came twice the better rank counts. Any text type of
        pandas will do: ``str``, ``string``, ``object``, categories, Arrow.

    Returns
    -------
    RelevantRanks
        Pairs by query, in the order of their rows. Rows of unknown queries are counted in it.

    Raises
    ------
    RunError
        A query id occurs twice, a rank is below 1 or missing, two relevant chunks of one query have
        the same rank, or ids are not text.

    Examples
    --------
    >>> queries = pd.Series(["q1", "q2"])
    >>> qrels = pd.DataFrame({"query_id": ["q1", "q1", "q2"], "chunk_id": ["a", "b", "a"]})
    >>> retrieved = pd.DataFrame(
    ...     {"query_id": ["q1", "q1", "q2"], "rank": [1, 2, 1], "chunk_id": ["x", "a", "b"]})
    >>> ranks = relevant_ranks(queries, qrels, retrieved)
    >>> ranks.pair_rank.tolist(), ranks.n_retrieved.tolist()
    ([2, 0, 0], [2, 1])
    """
    queries = _texts(query_ids, "queries", "query_id")
    _require_distinct(queries)

    pair_query = _positions(_column(qrels, "qrels", "query_id"), queries)
    pair_row = np.flatnonzero(pair_query != UNKNOWN)
    pair_row = pair_row[np.argsort(pair_query[pair_row], kind="stable")]
    pair_query = pair_query[pair_row].astype(np.int64)
    pair_ids = _take(_column(qrels, "qrels", "chunk_id"), pair_row)
    pairs = _PairIndex(pair_query, pair_ids)

    run_ids, run_lengths = _runs(_column(retrieved, "retrieved", "query_id"))
    run_query = _positions(run_ids, queries)
    row_query = np.repeat(run_query, run_lengths)
    # Unknown queries are counted in front of the first.
    n_rows = np.bincount(run_query - UNKNOWN, run_lengths, len(queries) + 1).astype(np.int64)

    chunk_ids = _column(retrieved, "retrieved", "chunk_id")
    wanted = _fingerprint_sets(pair_query, _fingerprints(pair_ids), len(queries))
    candidate = _candidates(row_query, _fingerprints(chunk_ids), wanted)
    hit, pair = pairs.find(row_query[candidate], _take(chunk_ids, candidate))
    pair_rank = np.full(len(pair_row), NEVER)
    np.minimum.at(pair_rank, pair, _ranks(retrieved, candidate[hit]))
    pair_rank[pair_rank == NEVER] = 0

    kept = pairs.distinct
    ranks = RelevantRanks(
        pair_query=pair_query[kept],
        pair_row=pair_row[kept],
        pair_rank=pair_rank[kept],
        pair_grade=_grades(qrels, pair_row[kept]),
        n_retrieved=n_rows[1:],
        n_unknown_pairs=len(qrels) - len(pair_row),
        n_repeated_pairs=len(pair_row) - len(kept),
        n_unknown_retrieved=int(n_rows[0]),
    )
    _require_one_chunk_a_rank(ranks, queries)
    return ranks


def query_positions(ids: pd.Series, query_ids: pd.Series) -> Integers:
    """Return for each of `ids` its position among the distinct `query_ids`, -1 where it has none.

    Examples
    --------
    >>> query_positions(pd.Series(["b", "b", "x"]), pd.Series(["a", "b"])).tolist()
    [1, 1, -1]
    """
    run_ids, run_lengths = _runs(_texts(ids, "table", "query_id"))
    run_query = _positions(run_ids, _texts(query_ids, "queries", "query_id"))
    return np.repeat(run_query, run_lengths).astype(np.int64, copy=False)


class _PairIndex:
    """Labelled pairs, to be found by query position and chunk id.

    A pair becomes one integer from its query's position and its id's code, which is the position
    of the id among the distinct labelled ids.
    """

    def __init__(self, query: Integers, ids: pa.ChunkedArray) -> None:
        self._distinct_ids = pc.unique(ids)
        keys = self._keys(query, _positions(ids, self._distinct_ids))
        self._sorted_keys, self._first = np.unique(keys, return_index=True)
        #: The pairs that do not repeat an earlier one, in their order.
        self.distinct = np.sort(self._first)

    def find(self, query: Integers, ids: pa.ChunkedArray) -> tuple[Integers, Integers]:
        """Return which of the asked are labelled pairs, and which pairs these are."""
        code = _positions(ids, self._distinct_ids)
        asked = np.flatnonzero(code != UNKNOWN)
        keys = self._keys(query[asked], code[asked])
        place = np.searchsorted(self._sorted_keys, keys)
        place[place == len(self._sorted_keys)] = 0
        labelled = self._sorted_keys[place] == keys
        return asked[labelled], self._first[place[labelled]]

    def _keys(self, query: Integers, code: Integers) -> Integers:
        # From UNKNOWN to the last code: the code of a missing id is UNKNOWN.
        return query.astype(np.int64) * (len(self._distinct_ids) + 1) + code


def _fingerprints(ids: pa.ChunkedArray) -> NDArray[np.uint8]:
    """Return a number below FINGERPRINTS for each id, the same for equal ids."""
    return np.concatenate([np.empty(0, np.uint8), *map(_chunk_fingerprints, ids.chunks)])


def _chunk_fingerprints(ids: pa.Array) -> NDArray[np.uint8]:
    _, offset_buffer, text_buffer = ids.buffers()
    offset_type = np.int32 if ids.type == pa.string() else np.int64
    offsets = np.frombuffer(offset_buffer or b"", offset_type)[ids.offset :][: len(ids) + 1]
    text = np.frombuffer(text_buffer or b"\0", np.uint8)
    fingerprints = np.empty(len(ids), np.uint8)
    for start in range(0, len(ids), BLOCK):
        edges = offsets[start : start + BLOCK + 1].astype(np.int64)
        begin, end = edges[:-1], edges[1:]
        middle = (begin + end) >> 1
        late = (middle + end) >> 1
        mixed = text.take(end - 1, mode="clip")
        mixed += MIXING[0] * text.take(late, mode="clip")
        mixed += MIXING[1] * text.take(middle, mode="clip")
        mixed %= FINGERPRINTS
        # An empty id has no bytes: those read were its neighbour's.
        mixed[begin == end] = 0
        fingerprints[start : start + BLOCK] = mixed
    return fingerprints


def _fingerprint_sets(
    query: Integers, fingerprints: NDArray[np.uint8], n_queries: int
) -> NDArray[np.uint64]:
    """Return for each query the set of its labelled fingerprints as bits; last, an empty set."""
    sets = np.zeros(n_queries + 1, np.uint64)
    np.bitwise_or.at(sets, query, np.uint64(1) << fingerprints.astype(np.uint64))
    return sets


def _candidates(
    row_query: Integers, fingerprints: NDArray[np.uint8], wanted: NDArray[np.uint64]
) -> Integers:
    """Return the rows whose fingerprint is in their query's set."""
    found = [np.empty(0, np.int64)]
    for start in range(0, len(row_query), BLOCK):
        block = slice(start, start + BLOCK)
        # UNKNOWN, the position before the first, wraps around to the empty set.
        sets = wanted.take(row_query[block], mode="wrap")
        sets >>= fingerprints[block]
        sets &= np.uint64(1)
        found.append(np.flatnonzero(sets.astype(bool)) + start)
    return np.concatenate(found)


def _column(frame: pd.DataFrame, table: str, column: str) -> pa.ChunkedArray:
    _require_column(frame, table, column)
    return _texts(frame[column], table, column)


def _require_column(frame: pd.DataFrame, table: str, column: str) -> None:
    if column not in frame:
        raise RunError(
            f"table {table!r} has no column {column!r}; its columns are "
            f"{list(map(str, frame.columns))}"
        )


def _texts(values: pd.Series, table: str, column: str) -> pa.ChunkedArray:
    """Return a column of any text type as Arrow strings, without a copy where it is one."""
    try:
        is_object = values.dtype == object
        array = pa.array(values, pa.large_string()) if is_object else pa.array(values)
    except (pa.ArrowException, UnicodeError) as error:
        raise RunError(f"table {table!r}, column {column!r}: ids must be text: {error}") from error
    chunked = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    if pa.types.is_dictionary(chunked.type):
        chunked = chunked.cast(chunked.type.value_type)
    if chunked.type in (pa.string(), pa.large_string()):
        return chunked
    if str(chunked.type) in ALSO_TEXT:
        return chunked.cast(pa.large_string())
    raise RunError(f"table {table!r}, column {column!r}: ids must be text, got {values.dtype}")


def _runs(ids: pa.ChunkedArray) -> tuple[pa.ChunkedArray, Integers]:
    """Return the id and the length of each run of equal ids."""
    runs = [pc.run_end_encode(chunk, run_end_type=pa.int64()) for chunk in ids.chunks]
    lengths = [np.diff(run.run_ends.to_numpy(), prepend=0) for run in runs]
    return (
        pa.chunked_array([run.values for run in runs], ids.type),
        np.concatenate([np.empty(0, np.int64), *lengths]),
    )


def _positions(ids: pa.ChunkedArray, among: pa.Array | pa.ChunkedArray) -> Integers:
    """Return the position of each id in `among`, UNKNOWN where it is missing or not there."""
    found = pc.index_in(ids, value_set=among.cast(ids.type), skip_nulls=True)
    positions: Integers = pc.fill_null(found, UNKNOWN).to_numpy()
    return positions


def _take(ids: pa.ChunkedArray, rows: Integers) -> pa.ChunkedArray:
    return ids.take(pa.array(rows))


def _ranks(retrieved: pd.DataFrame, rows: Integers) -> Integers:
    ranks = _numbers(retrieved, "retrieved", "rank", rows)
    wrong = np.flatnonzero(~(ranks >= 1))
    if len(wrong):
        row, rank = rows[wrong[0]], ranks[wrong[0]]
        raise RunError(f"table 'retrieved', row {row}: ranks count from 1, got {rank:g}")
    return ranks.astype(np.int64)


def _grades(qrels: pd.DataFrame, rows: Integers) -> NDArray[np.float64]:
    if "grade" not in qrels:
        return np.ones(len(rows))
    grades = _numbers(qrels, "qrels", "grade", rows)
    return np.where(np.isnan(grades), float(RELEVANT_GRADE), grades)


def _numbers(frame: pd.DataFrame, table: str, column: str, rows: Integers) -> NDArray[np.float64]:
    """Return some rows of a numeric column, NaN where missing."""
    _require_column(frame, table, column)
    try:
        values = frame[column].array.take(rows)
        return np.asarray(values.to_numpy(np.float64, na_value=np.nan))
    except (TypeError, ValueError) as error:
        raise RunError(f"table {table!r}, column {column!r}: not a number: {error}") from error


def _require_distinct(queries: pa.ChunkedArray) -> None:
    counts = pc.value_counts(queries)
    if len(counts) < len(queries):
        repeated = counts.filter(pc.greater(counts.field("counts"), 1))[0]["values"]
        raise RunError(f"table 'queries': query id {repeated.as_py()!r} occurs more than once")


def _require_one_chunk_a_rank(ranks: RelevantRanks, queries: pa.ChunkedArray) -> None:
    """Refuse tied ranks: more than k chunks could then be in the top k."""
    found = np.flatnonzero(ranks.pair_rank)
    query, rank = ranks.pair_query[found], ranks.pair_rank[found]
    places, counts = np.unique(query * (rank.max(initial=0) + 1) + rank, return_counts=True)
    if len(places) < len(found):
        query_at, rank_at = divmod(places[np.argmax(counts)], rank.max() + 1)
        raise RunError(
            f"table 'retrieved', query {queries[int(query_at)].as_py()!r}: several chunks have "
            f"rank {rank_at}; the ranks of a query must be 1, 2, 3, ..."
        )
