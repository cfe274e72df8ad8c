"""Ranking measures: numpy arrays in, numpy arrays out, for all queries and any list of k at once.

Everything follows from one small table, the *relevant ranks*: for each labelled pair of query and
chunk the rank at which the chunk came (0 = not retrieved) and its grade, and for each query the
number of chunks retrieved. :mod:`ragdiag.relevance` makes that table; nothing here looks at ids.

For one query there are plain functions of lists of ids, each its measure's definition:
:func:`precision_at_k`, :func:`recall_at_k`, :func:`hit_rate_at_k`, :func:`ndcg_at_k`,
:func:`reciprocal_rank`, :func:`average_precision`.

Conventions
-----------
* A chunk is *relevant* when its grade is at least :data:`RELEVANT_GRADE`.
* A chunk retrieved twice counts once, at its first rank, and keeps its place in the denominator of
  precision.
* A query without a relevant chunk has no measures: they are NaN, "not measured", never 0.
* A query with relevant chunks for which nothing was retrieved has 0.0 in every measure.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ragdiag.errors import SettingsError

__all__ = [
    "RELEVANT_GRADE",
    "average_precision",
    "hit_rate_at_k",
    "mean_reciprocal_rank",
    "ndcg_at_k",
    "precision_at_k",
    "recall_at_k",
    "reciprocal_rank",
    "retrieval_measures",
]

#: A labelled chunk is relevant from this grade on; grade 0 means "judged, and not relevant".
RELEVANT_GRADE = 1

PrecisionDenominator = Literal["retrieved", "k"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def retrieval_measures(
    pair_query: Integers,
    pair_rank: Integers,
    pair_grade: Floats,
    n_retrieved: Integers,
    *,
    ks: Sequence[int],
    precision_denominator: PrecisionDenominator = "retrieved",
) -> dict[str, NDArray[Any]]:
    r"""Return every retrieval measure of every query, for each k of `ks`.

    Parameters
    ----------
    pair_query : numpy.ndarray of int64, shape (n_pairs,)
        The query of each labelled pair, as a position in ``0 .. n_queries - 1``; in any order.
    pair_rank : numpy.ndarray of int64, shape (n_pairs,)
        1-based rank at which the pair's chunk first came, 0 when it was not retrieved. No two
        chunks of one query share a rank.
    pair_grade : numpy.ndarray of float64, shape (n_pairs,)
        Grade of the pair, a whole number; negative grades gain nothing.
    n_retrieved : numpy.ndarray of int64, shape (n_queries,)
        How many chunks were retrieved for each query, duplicates included.
    ks : sequence of int
        Depths, each at least 1.
    precision_denominator : {"retrieved", "k"}
        Whether precision divides by min(k, number retrieved) or by k, as trec_eval does.

    Returns
    -------
    dict of str to numpy.ndarray, each of shape (n_queries,)
        For each k ``precision_at_{k}``, ``recall_at_{k}``, ``hit_rate_at_{k}``, ``ndcg_at_{k}``
        (float64 in [0, 1]) and ``n_found_at_{k}`` (int64, relevant chunks in the top k); over all
        that was retrieved ``reciprocal_rank`` and ``average_precision`` (float64 in [0, 1]),
        ``first_relevant_rank`` (float64, NaN when nothing relevant came) and ``n_relevant``
        (int64). Measures are NaN for a query without a relevant chunk; counts are then 0.

    Raises
    ------
    SettingsError
        A k is below 1, or the denominator is unknown.

    Notes
    -----
    With :math:`R` the relevant chunks, :math:`f_k` the number of them in the top k, :math:`n` the
    number retrieved, :math:`r_1 < r_2 < \dots` the ranks of those found, :math:`g_i` the grade of
    the chunk at rank i and :math:`g^*_i` the i-th largest grade that is labelled:

    * precision@k :math:`= f_k / \min(k, n)`, 0 when nothing was retrieved
    * recall@k :math:`= f_k / |R|`
    * hit rate@k :math:`= [f_k > 0]`
    * reciprocal rank :math:`= 1 / r_1`, 0 when nothing relevant came
    * average precision :math:`= \frac{1}{|R|} \sum_j j / r_j`
    * nDCG@k :math:`= \sum_{i \le k} \frac{g_i}{\log_2(i + 1)} \,/\,
      \sum_{i \le k} \frac{g^*_i}{\log_2(i + 1)}`, linear gain as in trec_eval

    References
    ----------
    K. Järvelin and J. Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM
    Transactions on Information Systems 20(4), 2002. C. D. Manning, P. Raghavan and H. Schütze,
    *Introduction to Information Retrieval*, 2008, chapter 8. The conventions of nDCG, average
    precision and reciprocal rank are those of NIST's trec_eval.

    Examples
    --------
    Query 0 has two relevant chunks, found at rank 2 and not at all; query 1 has one, at rank 1.

    >>> measures = retrieval_measures(
    ...     np.array([0, 0, 1]), np.array([2, 0, 1]), np.array([1.0, 1.0, 1.0]), np.array([4, 4]),
    ...     ks=[1, 3])
    >>> measures["recall_at_3"].tolist(), measures["reciprocal_rank"].tolist()
    ([0.5, 1.0], [0.5, 1.0])
    """
    for k in ks:
        if k < 1:
            raise SettingsError(f"k must be 1 or more, got {k!r}")
    _require_denominator(precision_denominator)
    n_queries = len(n_retrieved)
    relevant = pair_grade >= RELEVANT_GRADE
    n_relevant = _count(pair_query[relevant], n_queries)
    unmeasured = n_relevant == 0

    # The relevant chunks that came, by query and rank.
    found = np.flatnonzero(relevant & (pair_rank > 0))
    found = found[np.lexsort((pair_rank[found], pair_query[found]))]
    found_query, found_rank = pair_query[found], pair_rank[found]
    nth_found = _place_in_group(found_query)
    first_rank = np.full(n_queries, np.nan)
    first_rank[found_query[nth_found == 1]] = found_rank[nth_found == 1]

    measures: dict[str, NDArray[Any]] = {}
    ideal_rank = _ideal_ranks(pair_query, pair_grade)
    for k in ks:
        n_found = _count(found_query[found_rank <= k], n_queries)
        depth = np.minimum(k, n_retrieved) if precision_denominator == "retrieved" else k
        measures[f"precision_at_{k}"] = n_found / np.maximum(depth, 1)
        measures[f"recall_at_{k}"] = n_found / np.maximum(n_relevant, 1)
        measures[f"hit_rate_at_{k}"] = (n_found > 0).astype(np.float64)
        gain, ideal_gain = (
            _discounted_gain(pair_query, rank, pair_grade, k, n_queries)
            for rank in (pair_rank, ideal_rank)
        )
        measures[f"ndcg_at_{k}"] = gain / np.where(ideal_gain > 0, ideal_gain, 1.0)
        measures[f"n_found_at_{k}"] = n_found
    measures["reciprocal_rank"] = np.nan_to_num(1.0 / first_rank)
    precisions = _sum(found_query, nth_found / found_rank, n_queries)
    measures["average_precision"] = precisions / np.maximum(n_relevant, 1)
    for name, values in measures.items():
        if not name.startswith("n_found"):
            values[unmeasured] = np.nan
    measures["first_relevant_rank"] = first_rank
    measures["n_relevant"] = n_relevant
    return measures


def _require_denominator(name: str) -> None:
    if name not in ("retrieved", "k"):
        raise SettingsError(f"precision_denominator must be 'retrieved' or 'k', got {name!r}")


def _ideal_ranks(pair_query: Integers, pair_grade: Floats) -> Integers:
    """Return the rank of each pair if its query's chunks came by grade, best first."""
    best_first = np.lexsort((-pair_grade, pair_query))
    ranks = np.empty_like(best_first)
    ranks[best_first] = _place_in_group(pair_query[best_first])
    return ranks


def _discounted_gain(
    query: Integers, rank: Integers, grade: Floats, k: int, n_queries: int
) -> Floats:
    within = (rank > 0) & (rank <= k) & (grade > 0)
    return _sum(query[within], grade[within] / np.log2(rank[within] + 1), n_queries)


def _count(groups: Integers, n_groups: int) -> Integers:
    return np.bincount(groups, minlength=n_groups).astype(np.int64, copy=False)


def _sum(groups: Integers, values: Floats, n_groups: int) -> Floats:
    # Of nothing at all, bincount makes integers.
    return np.bincount(groups, values, n_groups).astype(np.float64, copy=False)


def _place_in_group(groups: Integers) -> Integers:
    """Return 1, 2, 3, ... within each run of equal values of the sorted `groups`."""
    places = np.arange(len(groups))
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    return places - np.repeat(starts, np.diff(starts, append=len(groups))) + 1


# For one query: the definitions, on lists of ids.


def precision_at_k(
    relevant_chunk_ids: Iterable[str],
    retrieved_chunks: Iterable[Any],
    k: int = 5,
    *,
    precision_denominator: PrecisionDenominator = "retrieved",
) -> float:
    """Return the share of the top k that is relevant.

    Parameters
    ----------
    relevant_chunk_ids : iterable of str
        The labelled chunks.
    retrieved_chunks : iterable of str or of objects with an ``id``
        What was retrieved, best first. A repeated id counts once but keeps its place.
    k : int
        Depth; below 1 it holds nothing.
    precision_denominator : {"retrieved", "k"}
        Whether to divide by min(k, number retrieved) or by k.

    Returns
    -------
    float
        In [0, 1]; 0.0 when nothing was retrieved, NaN when no chunk is labelled relevant.

    Raises
    ------
    SettingsError
        One text is given where several ids or chunks are needed, or the denominator is unknown.

    Examples
    --------
    >>> precision_at_k(["a", "b"], ["x", "a", "y", "b"], k=3)
    0.3333333333333333
    """
    _require_denominator(precision_denominator)
    relevant, top = _relevant(relevant_chunk_ids), _top(retrieved_chunks, k)
    depth = len(top) if precision_denominator == "retrieved" else k
    return _share(len(relevant.intersection(top)), depth, measured=bool(relevant))


def recall_at_k(
    relevant_chunk_ids: Iterable[str], retrieved_chunks: Iterable[Any], k: int = 5
) -> float:
    """Return the share of the relevant chunks that the top k holds.

    Parameters, errors and the value without labels are those of :func:`precision_at_k`.

    Examples
    --------
    >>> recall_at_k(["a", "b"], ["x", "a", "y", "b"], k=3)
    0.5
    """
    relevant, top = _relevant(relevant_chunk_ids), _top(retrieved_chunks, k)
    return _share(len(relevant.intersection(top)), len(relevant), measured=bool(relevant))


def hit_rate_at_k(
    relevant_chunk_ids: Iterable[str], retrieved_chunks: Iterable[Any], k: int = 5
) -> float:
    """Return 1.0 when the top k holds any relevant chunk, else 0.0.

    Parameters, errors and the value without labels are those of :func:`precision_at_k`.

    Examples
    --------
    >>> hit_rate_at_k(["a", "b"], ["x", "a", "y", "b"], k=3)
    1.0
    """
    relevant, top = _relevant(relevant_chunk_ids), _top(retrieved_chunks, k)
    return _share(not relevant.isdisjoint(top), 1, measured=bool(relevant))


def reciprocal_rank(relevant_chunk_ids: Iterable[str], retrieved_chunks: Iterable[Any]) -> float:
    """Return 1 / rank of the first relevant chunk, 0.0 when none was retrieved.

    Parameters, errors and the value without labels are those of :func:`precision_at_k`.

    Examples
    --------
    >>> reciprocal_rank(["a", "b"], ["x", "a", "y", "b"])
    0.5
    """
    relevant = _relevant(relevant_chunk_ids)
    ranks = _first_ranks(relevant, _ids(retrieved_chunks))
    return _share(bool(ranks), min(ranks, default=1), measured=bool(relevant))


def average_precision(relevant_chunk_ids: Iterable[str], retrieved_chunks: Iterable[Any]) -> float:
    """Return the mean, over all relevant chunks, of the precision at the rank where each came.

    A chunk that was not retrieved contributes 0. Parameters, errors and the value without labels
    are those of :func:`precision_at_k`.

    Examples
    --------
    >>> average_precision(["a", "b"], ["x", "a", "y", "b"])
    0.5
    """
    relevant = _relevant(relevant_chunk_ids)
    ranks = _first_ranks(relevant, _ids(retrieved_chunks))
    total = math.fsum(nth / rank for nth, rank in enumerate(ranks, 1))
    return _share(total, len(relevant), measured=bool(relevant))


def ndcg_at_k(
    relevant_chunk_ids: Iterable[str] | Mapping[str, float],
    retrieved_chunks: Iterable[Any],
    k: int = 5,
) -> float:
    """Return the normalised discounted cumulated gain of the top k, with linear gain.

    Parameters
    ----------
    relevant_chunk_ids : iterable of str, or mapping of str to float
        The labelled chunks; a mapping gives their grades, which are 1 otherwise.
    retrieved_chunks, k
        As in :func:`precision_at_k`.

    Returns
    -------
    float
        In [0, 1]; NaN when no chunk is labelled relevant.

    Examples
    --------
    >>> round(ndcg_at_k({"a": 2, "b": 1}, ["x", "a", "y", "b"], k=3), 4)
    0.4796
    """
    grades = (
        relevant_chunk_ids
        if isinstance(relevant_chunk_ids, Mapping)
        else dict.fromkeys(_relevant(relevant_chunk_ids), 1.0)
    )
    gains = {chunk_id: grade for chunk_id, grade in grades.items() if grade > 0}
    top = _top(retrieved_chunks, k)
    gained = math.fsum(
        gains[top[rank - 1]] / math.log2(rank + 1) for rank in _first_ranks(gains, top)
    )
    best = sorted(gains.values(), reverse=True)[: max(k, 0)]
    possible = math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(best, 1))
    return _share(gained, possible, measured=bool(_relevant(grades)))


def mean_reciprocal_rank(reciprocal_ranks: Iterable[float]) -> float:
    """Return the mean of the reciprocal ranks of several queries.

    Parameters
    ----------
    reciprocal_ranks : iterable of float
        One value a query; NaN (not measured) is left out.

    Returns
    -------
    float
        In [0, 1]; NaN when there is no value.

    Examples
    --------
    >>> mean_reciprocal_rank([1.0, 0.5, 0.0])
    0.5
    """
    values = [value for value in reciprocal_ranks if not math.isnan(value)]
    return _share(math.fsum(values), len(values), measured=bool(values))


def _share(part: float, whole: float, *, measured: bool) -> float:
    if not measured:
        return math.nan
    return part / whole if whole > 0 else 0.0


def _relevant(labelled: Iterable[str] | Mapping[str, float]) -> frozenset[str]:
    if isinstance(labelled, str):
        raise SettingsError(
            f"relevant_chunk_ids must be several ids, got the one text {labelled!r}"
        )
    if isinstance(labelled, Mapping):
        return frozenset(key for key, grade in labelled.items() if grade >= RELEVANT_GRADE)
    return frozenset(labelled)


def _ids(retrieved: Iterable[Any]) -> list[str]:
    if isinstance(retrieved, str):
        raise SettingsError(f"retrieved_chunks must be several chunks, got the text {retrieved!r}")
    return [chunk if isinstance(chunk, str) else chunk.id for chunk in retrieved]


def _top(retrieved: Iterable[Any], k: int) -> list[str]:
    return _ids(retrieved)[: max(k, 0)]


def _first_ranks(wanted: Collection[str], ids: Sequence[str]) -> list[int]:
    """Return the 1-based ranks at which wanted ids come for the first time, ascending."""
    first = {chunk_id: rank for rank, chunk_id in reversed([*enumerate(ids, 1)])}
    return sorted(rank for chunk_id, rank in first.items() if chunk_id in wanted)
