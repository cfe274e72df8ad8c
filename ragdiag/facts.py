"""The numbers of each query that a report is built from, whatever they come from.

A report can be asked of :class:`~ragdiag.results.Results` or of a list of
:class:`~ragdiag.schema.EvaluationResult`, made by hand or read from a file. Both become the same
table here, so that they cannot be counted in two ways.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag import metrics
from ragdiag.diagnosis import RuleBook
from ragdiag.schema import EvaluationResult
from ragdiag.tables import BOOLEAN, MEASURE, TEXT
from ragdiag.taxonomy import DISPLAY_ORDER

if TYPE_CHECKING:
    from ragdiag.results import Results

__all__ = ["Facts", "facts_of", "is_results"]

#: Columns of :attr:`Facts.frame`.
FACTS: dict[str, Any] = {
    "query_id": TEXT,
    "query_type": TEXT,
    "failed": np.dtype(bool),
    "precision": MEASURE,
    "recall": MEASURE,
    "reciprocal_rank": MEASURE,
    "retrieval_ms": MEASURE,
    "answer_correct": BOOLEAN,
    "grounded": BOOLEAN,
    "judge_confidence": MEASURE,
    "judge_failed": np.dtype(bool),
    "screened": np.dtype(bool),
    "category": TEXT,
    "severity": TEXT,
    "confidence": MEASURE,
    "suspect_label": np.dtype(bool),
    "smallest_k": MEASURE,
}


@dataclass(frozen=True)
class Facts:
    """One row a query, and what is the same for all of them.

    Attributes
    ----------
    frame : pandas.DataFrame
        One row a query. ``smallest_k`` is the k from which on all its relevant chunks are there:
        infinite when one was not retrieved at all, missing without labels or when it failed.
    k : int
        Depth of the measures.
    settings : dict
        k and the thresholds, as far as they are known.
    categories : tuple of str
        All categories in display order, rules of the user's own after the standard ones.
    not_measured : dict of str to int
        Queries for which a category's rule lacked evidence.
    notes : tuple of str
        What limits the numbers.
    items : callable
        Gives the items of some rows, in that order.
    """

    frame: pd.DataFrame
    k: int
    settings: dict[str, Any]
    categories: tuple[str, ...]
    not_measured: dict[str, int]
    notes: tuple[str, ...]
    items: Callable[[list[int]], Iterable[EvaluationResult]]


def is_results(results: object) -> bool:
    """Return whether `results` is a ``Results``, which a module above it cannot import."""
    return hasattr(results, "frame") and hasattr(results, "settings")


def facts_of(results: Results | Iterable[EvaluationResult], k: int | None = None) -> Facts:
    """Return the facts of `results` at depth `k`.

    Parameters
    ----------
    results : Results or iterable of EvaluationResult
        Results seen at another k are diagnosed again at this one, which calls nothing.
    k : int, optional
        Depth; that of the results by default, 5 for a list.
    """
    if is_results(results):
        return _facts_of_results(cast("Results", results), k)
    return _facts_of_items(list(results), 5 if k is None else k)


def _facts_of_results(results: Results, k: int | None) -> Facts:
    if k is not None and k != results.k:
        results = results.rediagnose(k=k)
    frame = results.frame
    failed = (frame["status"] == "failed").to_numpy(dtype=bool, na_value=False)
    error = frame["correct_error"].notna() | frame["grounded_error"].notna()
    facts = pd.DataFrame(
        {
            "query_id": frame["query_id"],
            "query_type": frame["query_type"],
            "failed": failed,
            "precision": frame[f"precision_at_{results.k}"],
            "recall": frame[f"recall_at_{results.k}"],
            "reciprocal_rank": frame["reciprocal_rank"],
            "retrieval_ms": frame["retrieval_ms"],
            "answer_correct": frame["answer_correct"],
            "grounded": frame["grounded"],
            "judge_confidence": frame[["correct_confidence", "grounded_confidence"]].min(axis=1),
            "judge_failed": error.to_numpy(dtype=bool),
            "screened": frame["screened"].fillna(False).to_numpy(dtype=bool),
            "category": frame["category"].astype(TEXT),
            "severity": frame["severity"].astype(TEXT),
            "confidence": frame["confidence"],
            "suspect_label": frame["suspect_label"].fillna(False).to_numpy(dtype=bool),
            "smallest_k": _smallest_k(frame["query_id"], results.expected),
        }
    )
    facts["smallest_k"] = facts["smallest_k"].where(facts["recall"].notna())
    return Facts(
        facts.reset_index(drop=True),
        results.k,
        results.settings.model_dump(),
        RuleBook.of(results.rules).display_order,
        {str(name): int(n) for name, n in results.counts()["not_measured"].items()},
        tuple(results.notes),
        # All at once: an item costs much less among others than alone.
        lambda rows: results[rows],
    )


def _smallest_k(query_ids: pd.Series, expected: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Return the rank of the last relevant chunk of each query, infinite where one never came."""
    relevant = expected[expected["grade"] >= 1]
    ranks = relevant["rank"].astype("Float64").fillna(np.inf)
    last = ranks.groupby(relevant["query_id"]).max()
    position = pd.Index(last.index).get_indexer(pd.Index(query_ids))
    values = np.append(last.to_numpy(dtype=np.float64), np.nan)
    found: npt.NDArray[np.float64] = values[position]
    return found


def _facts_of_items(items: list[EvaluationResult], k: int) -> Facts:
    rows = [_row(item, k) for item in items]
    frame = pd.DataFrame(
        {name: pd.Series([row[name] for row in rows], dtype=dtype) for name, dtype in FACTS.items()}
    )
    standard = tuple(category.value for category in DISPLAY_ORDER)
    own = sorted(set(frame["category"].dropna().unique()) - set(standard))
    not_measured = Counter(
        outcome.rule for item in items for outcome in item.trail if outcome.state == "not measured"
    )

    def chosen(rows: list[int]) -> Iterable[EvaluationResult]:
        return [items[row] for row in rows]

    return Facts(frame, k, {"k": k}, (*standard, *own), dict(not_measured), (), chosen)


def _row(item: EvaluationResult, k: int) -> dict[str, Any]:
    """Return the facts of one item; a measure it does not carry is computed from its chunks."""
    failed = item.status != "completed"
    category = item.diagnosis.category
    return {
        "query_id": item.query_id,
        "query_type": item.query_type,
        "failed": failed,
        **_measures(item, k, failed=failed),
        "retrieval_ms": item.latency.get("retrieval_ms", np.nan),
        "answer_correct": _boolean(item.metrics.get("answer_correct")),
        "grounded": _boolean(item.metrics.get("grounded")),
        "judge_confidence": _number(item.metrics.get("judge_confidence")),
        "judge_failed": item.judge_error is not None,
        "screened": item.metrics.get("screened") is True,
        "category": None if category is None else str(category),
        "severity": item.diagnosis.severity,
        "confidence": item.diagnosis.confidence,
        "suspect_label": item.suspect_label is True,
    }


def _measures(item: EvaluationResult, k: int, *, failed: bool) -> dict[str, float]:
    names = {
        "precision": f"precision_at_{k}",
        "recall": f"recall_at_{k}",
        "reciprocal_rank": "reciprocal_rank",
    }
    if failed:
        return {**dict.fromkeys(names, np.nan), "smallest_k": np.nan}
    found = {name: _number(item.metrics.get(key)) for name, key in names.items()}
    expected = item.expected_chunk_ids
    if not expected:
        return {**found, "smallest_k": np.nan}
    ids = [chunk.id for chunk in item.retrieved_chunks]
    computed: dict[str, Callable[[], float]] = {
        "precision": lambda: metrics.precision_at_k(expected, ids, k),
        "recall": lambda: metrics.recall_at_k(expected, ids, k),
        "reciprocal_rank": lambda: metrics.reciprocal_rank(expected, ids),
    }
    for name, value in found.items():
        if np.isnan(value):
            found[name] = computed[name]()
    first = {chunk_id: rank for rank, chunk_id in reversed(list(enumerate(ids, start=1)))}
    last = max(first.get(chunk_id, np.inf) for chunk_id in expected)
    return {**found, "smallest_k": float(last)}


def _boolean(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else np.nan
