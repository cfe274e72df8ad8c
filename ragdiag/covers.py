r"""How much of the evidence came, and how deep: numpy arrays in, numpy arrays out.

Where relevance is known as passages of text and not as chunk ids, everything follows from the
*covers*: for every passage and every chunk that holds some of it, how many of its characters no
better ranked chunk held. :mod:`ragdiag.passages` finds them once; any k and any threshold follow.

Measures of a query with :math:`E` characters of evidence, of which the top k hold :math:`c_k`, in
chunks of :math:`n_k` characters (all without white space):

* recall@k :math:`= c_k / E`
* precision@k :math:`= c_k / n_k`: what comes twice counts once, and keeps its place below the line
* IoU@k :math:`= c_k / (n_k + E - c_k)`
* hit rate@k: whether a relevant chunk is in the top k; reciprocal rank: of the first relevant one
* average precision :math:`= \sum_i \mathrm{precision@}i \, (\mathrm{recall@}i -
  \mathrm{recall@}(i - 1))`
* nDCG@k :math:`= \sum_{i \le k} (\mathrm{recall@}i - \mathrm{recall@}(i - 1)) / \log_2(i + 1)`:
  the gain is what is new, and the ideal is all of it in the first chunk

None of them knows how the corpus was cut, so pipelines with different chunkers can be compared.
Precision, recall and IoU are those of B. Smith and A. Troynikov, "Evaluating Chunking Strategies
for Retrieval", Chroma technical report, 2024, by characters instead of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["RELEVANT_OVERLAP", "Covers", "complete_ranks", "cover_measures", "covered_at"]

#: A chunk is relevant when it shares this part of its characters, or of a passage's if that is
#: shorter, with the passage: neighbours that overlap by a few words do not count.
RELEVANT_OVERLAP = 0.1

#: Characters that rounding may add to a threshold.
TINY = 1e-9

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Covers:
    """What the retrieved chunks hold of the evidence: the sufficient statistic.

    Attributes
    ----------
    passage_query, passage_row, passage_size : numpy.ndarray of int, shape (n_passages,)
        Query of each passage (does not decrease), its row in the table of evidence, and its
        characters without white space.
    hit_passage, hit_chunk, hit_size, hit_new : numpy.ndarray of int, shape (n_hits,)
        A passage, a chunk that holds some of it, how much, and how much of that no better ranked
        chunk holds; by passage, then rank.
    hit_cut : numpy.ndarray of bool, shape (n_hits,)
        Whether the chunk begins or ends within the passage.
    chunk_query, chunk_row, chunk_rank, chunk_size : numpy.ndarray of int, shape (n_chunks,)
        The retrieved chunks of the queries that have passages, by query and rank: query, row in
        the table of retrieved chunks, rank, and characters without white space.
    comparable : numpy.ndarray of bool, shape (n_queries,)
        Where every chunk could be compared with the evidence: by offsets or by text.
    """

    passage_query: Ints
    passage_row: Ints
    passage_size: Ints
    hit_passage: Ints
    hit_chunk: Ints
    hit_size: Ints
    hit_new: Ints
    hit_cut: Bools
    chunk_query: Ints
    chunk_row: Ints
    chunk_rank: Ints
    chunk_size: Ints
    comparable: Bools

    @property
    def hit_rank(self) -> Ints:
        """Rank of the chunk of each hit."""
        return self.chunk_rank[self.hit_chunk]

    @property
    def has_passages(self) -> Bools:
        """Which queries have evidence at all."""
        return np.bincount(self.passage_query, minlength=len(self.comparable)) > 0

    @property
    def chunk_new(self) -> Ints:
        """Characters of evidence that each chunk adds to the better ranked ones."""
        new = np.bincount(self.hit_chunk, self.hit_new, len(self.chunk_query))
        return np.asarray(new.astype(np.int64))

    @property
    def chunk_held(self) -> Ints:
        """Characters of evidence in each chunk."""
        held = np.bincount(self.hit_chunk, self.hit_size, len(self.chunk_query))
        return np.asarray(held.astype(np.int64))

    @property
    def chunk_relevant(self) -> Bools:
        """Which chunks share enough with a passage, see :data:`RELEVANT_OVERLAP`."""
        smaller = np.minimum(self.passage_size[self.hit_passage], self.chunk_size[self.hit_chunk])
        enough = (self.hit_size > 0) & (self.hit_size + TINY >= RELEVANT_OVERLAP * smaller)
        relevant = np.zeros(len(self.chunk_query), dtype=bool)
        relevant[self.hit_chunk[enough]] = True
        return relevant

    @property
    def passage_split(self) -> Bools:
        """Which passages a chunk's border cuts, no chunk that came holding them whole."""
        whole = self.hit_size >= self.passage_size[self.hit_passage]
        n = len(self.passage_query)
        cut = np.bincount(self.hit_passage[self.hit_cut], minlength=n) > 0
        return np.asarray(cut & (np.bincount(self.hit_passage[whole], minlength=n) == 0))


def covered_at(covers: Covers, k: int | None = None) -> Ints:
    """Return how many characters of each passage the top k chunks hold, all chunks without k."""
    new = covers.hit_new if k is None else covers.hit_new * (covers.hit_rank <= k)
    covered = np.bincount(covers.hit_passage, new, len(covers.passage_query))
    return np.asarray(covered.astype(np.int64))


def complete_ranks(covers: Covers, threshold: float) -> Ints:
    """Return the depth at which each passage is there, 0 where it never is.

    Parameters
    ----------
    covers : Covers
    threshold : float
        Share of its characters, in (0, 1], that must have come.

    Examples
    --------
    >>> ints = lambda *values: np.array(values, dtype=np.int64)
    >>> covers = Covers(
    ...     passage_query=ints(0), passage_row=ints(0), passage_size=ints(10),
    ...     hit_passage=ints(0, 0), hit_chunk=ints(0, 2), hit_size=ints(6, 4),
    ...     hit_new=ints(6, 4), hit_cut=np.array([True, True]), chunk_query=ints(0, 0, 0),
    ...     chunk_row=ints(0, 1, 2), chunk_rank=ints(1, 2, 3), chunk_size=ints(20, 20, 20),
    ...     comparable=np.array([True]))
    >>> complete_ranks(covers, 0.5).tolist(), complete_ranks(covers, 1.0).tolist()
    ([1], [3])
    >>> cover_measures(covers, [1, 3])["recall_at_1"].tolist()
    [0.6]
    """
    total = np.cumsum(covers.hit_new)
    before = np.concatenate([[0], total])
    first = np.searchsorted(covers.hit_passage, covers.hit_passage, side="left")
    so_far = total - before[first]
    done = so_far + TINY >= threshold * covers.passage_size[covers.hit_passage]
    never = np.iinfo(np.int64).max
    ranks = np.full(len(covers.passage_query), never)
    np.minimum.at(ranks, covers.hit_passage[done], covers.hit_rank[done])
    ranks[ranks == never] = 0
    return ranks


def cover_measures(covers: Covers, ks: list[int]) -> dict[str, Floats]:
    """Return the measures of every query, NaN for a query without passages.

    Returns
    -------
    dict of str to numpy.ndarray of float, each of shape (n_queries,)
        For each k ``precision_at_{k}, recall_at_{k}, iou_at_{k}, hit_rate_at_{k}, ndcg_at_{k}``;
        over all that was retrieved ``reciprocal_rank, average_precision`` and
        ``first_relevant_rank`` (NaN where nothing relevant came).
    """
    n = len(covers.comparable)
    query, rank = covers.chunk_query, covers.chunk_rank
    size = np.bincount(covers.passage_query, covers.passage_size, n)
    evidence: Floats = np.where(covers.has_passages, size, np.nan)
    new = covers.chunk_new.astype(np.float64)
    measures: dict[str, Floats] = {}
    for k in ks:
        top = rank <= k
        covered = np.bincount(query[top], new[top], n)
        came = np.bincount(query[top], covers.chunk_size[top], n)
        discounted = np.bincount(query[top], new[top] / np.log2(rank[top] + 1.0), n)
        relevant = np.bincount(query[top & covers.chunk_relevant], minlength=n) > 0
        measures[f"precision_at_{k}"] = _ratio(covered, came, evidence)
        measures[f"recall_at_{k}"] = covered / evidence
        measures[f"iou_at_{k}"] = _ratio(covered, came + evidence - covered, evidence)
        measures[f"hit_rate_at_{k}"] = np.where(np.isnan(evidence), np.nan, relevant)
        measures[f"ndcg_at_{k}"] = discounted / evidence
    first = np.full(n, np.inf)
    np.minimum.at(first, query[covers.chunk_relevant], rank[covers.chunk_relevant])
    measures["first_relevant_rank"] = np.where(np.isinf(first), np.nan, first)
    measures["reciprocal_rank"] = np.where(np.isnan(evidence), np.nan, 1.0 / first)
    area = np.bincount(query, new * _precision_at_own_rank(covers), n)
    measures["average_precision"] = area / evidence
    return measures


def _precision_at_own_rank(covers: Covers) -> Floats:
    """Return for each chunk the precision of the list down to it."""
    start = np.searchsorted(covers.chunk_query, covers.chunk_query, side="left")
    parts = []
    for values in (covers.chunk_new, covers.chunk_size):
        before = np.concatenate([[0], np.cumsum(values)])
        parts.append(before[1:] - before[start])
    return _ratio(parts[0], parts[1], np.ones(len(start)))


def _ratio(part: Floats | Ints, whole: Floats | Ints, known: Floats) -> Floats:
    """Return part of whole, at most 1 and 0 of nothing, NaN where it is not known."""
    ratio = np.divide(part, whole, out=np.zeros(len(known)), where=np.asarray(whole) > 0)
    return np.where(np.isnan(known), np.nan, np.minimum(ratio, 1.0))
