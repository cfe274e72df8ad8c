"""Which side is better: for one query, and for two pipelines as a whole.

Two rules live here, apart from everything that carries them out. :func:`compare_queries` says of
each query whether it improved, for all queries at once; :func:`decide` names the winners of a pair
from the differences of its means. Both are fixed rules without inference: whether a difference
could be chance is a question for :mod:`ragdiag.statistics`.

Signs are seen from B: +1 when B is better, -1 when A is, 0 when neither is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag.aggregates import as_floats
from ragdiag.taxonomy import QUALITY_ORDER, SEVERITY_ORDER

__all__ = ["OUTCOMES_IN_ORDER", "TIE", "Decision", "Outcome", "Sign", "compare_queries", "decide"]

Outcome = Literal["improved", "regressed", "unchanged"]
Sign = Literal[-1, 0, 1]

#: As people read them: what got worse comes first.
OUTCOMES_IN_ORDER: tuple[Outcome, ...] = ("regressed", "improved", "unchanged")

#: What a winner is called when there is none.
TIE = "TIE"

#: Two recalls closer than this are the same.
RECALL_MARGIN = 0.001

#: The measures that may name a quality winner, first that differs enough decides.
QUALITY_MEASURES: tuple[str, ...] = ("recall_at_k", "mrr", "groundedness", "answer_correctness")


def compare_queries(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    recall: str = "recall_at_5",
    quality_order: Sequence[str] = QUALITY_ORDER,
) -> npt.NDArray[np.int8]:
    """Return for each query whether B is better than A (+1), worse (-1) or neither (0).

    The first of these that differs decides: severity (info < warning < major); recall, when it
    differs by more than 0.001; groundedness and then correctness, where both sides were judged
    (True beats False); the category's place in `quality_order`. What is missing on either side
    decides nothing.

    Parameters
    ----------
    a, b : pandas.DataFrame, shape (n, ...)
        One row a query, the same query in the same row: ``severity, category, grounded,
        answer_correct`` and the column `recall`.
    recall : str
        Name of the recall column.
    quality_order : sequence of str
        Categories from best to worst, rules of the user's own included.

    Returns
    -------
    numpy.ndarray of int8, shape (n,)

    Examples
    --------
    >>> row = {"severity": "info", "category": "PASS", "recall_at_5": 1.0,
    ...        "grounded": True, "answer_correct": True}
    >>> compare_queries(pd.DataFrame([row]), pd.DataFrame([{**row, "grounded": False}])).tolist()
    [-1]
    """
    recall_a, recall_b = as_floats(a[recall]), as_floats(b[recall])
    # Lower is better for both ranks, hence A - B; a missing value compares as neither.
    steps: tuple[npt.NDArray[np.float64], ...] = (
        _ranks(a["severity"], SEVERITY_ORDER) - _ranks(b["severity"], SEVERITY_ORDER),
        np.where(recall_b > recall_a + RECALL_MARGIN, 1.0, 0.0)
        - np.where(recall_b < recall_a - RECALL_MARGIN, 1.0, 0.0),
        as_floats(b["grounded"]) - as_floats(a["grounded"]),
        as_floats(b["answer_correct"]) - as_floats(a["answer_correct"]),
        _ranks(a["category"], quality_order) - _ranks(b["category"], quality_order),
    )
    sign = np.zeros(len(a), dtype=np.int8)
    for step in steps:
        undecided = sign == 0
        sign[undecided] = np.sign(np.nan_to_num(step[undecided])).astype(np.int8)
    return sign


def _ranks(column: pd.Series, order: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return the place of each value in `order`; a value without a place is not ranked (NaN)."""
    places = pd.Index(list(map(str, order)), dtype=object).get_indexer(
        pd.Index(column.astype(object))
    )
    return np.where(places < 0, np.nan, places)


@dataclass(frozen=True, slots=True)
class Decision:
    """Who wins, by the fixed rules.

    Attributes
    ----------
    quality, latency, overall : int
        +1 for B, -1 for A, 0 for a tie.
    trade_off : str or None
        What B costs or gains against A; None when nothing was measured on both sides.
    summary : str
        One sentence of why.
    """

    quality: Sign
    latency: Sign
    overall: Sign
    trade_off: str | None
    summary: str


def decide(
    deltas: Mapping[str, float | None],
    name_a: str,
    name_b: str,
    *,
    k: int = 5,
    quality_tolerance: float = 0.02,
    latency_tolerance_ms: float = 10.0,
) -> Decision:
    """Name the winners of a pair from the differences of its means.

    Parameters
    ----------
    deltas : mapping of str to float or None
        B minus A, unrounded: ``recall_at_k, mrr, groundedness, answer_correctness,
        mean_retrieval_ms``; None where a side has no mean.
    name_a, name_b : str
        What to call the sides.
    k : int
        Depth that the texts name.
    quality_tolerance : float
        A difference of a measure up to this is a tie.
    latency_tolerance_ms : float
        A difference of mean retrieval time up to this is a tie, milliseconds.

    Examples
    --------
    >>> decision = decide({"recall_at_k": 0.2, "mrr": 0.0, "mean_retrieval_ms": 20.3},
    ...                   "dense_pipeline", "hybrid_pipeline")
    >>> decision.trade_off
    'Higher quality <-> higher latency'
    >>> print(decision.summary)
    hybrid_pipeline improves Recall@5 by 20 percentage points and MRR by 0 points, while increasing
    mean retrieval latency by 20.3 ms.
    """
    measured = [d for m in QUALITY_MEASURES if (d := deltas.get(m)) is not None]
    milliseconds = deltas.get("mean_retrieval_ms")
    quality: Sign = next((sign for d in measured if (sign := _beyond(d, quality_tolerance))), 0)
    latency = None if milliseconds is None else _beyond(-milliseconds, latency_tolerance_ms)
    faster = name_b if (latency or 0) > 0 else name_a
    return Decision(
        quality=quality,
        latency=latency or 0,
        overall=quality or latency or 0,
        trade_off=_trade_off(quality, latency, judged=bool(measured), faster=faster),
        summary=_summary(quality, latency, deltas, (name_a, name_b), k),
    )


def _beyond(difference: float, tolerance: float) -> Sign:
    """Return the sign of `difference` when it is larger than `tolerance`."""
    if difference > tolerance:
        return 1
    return -1 if difference < -tolerance else 0


#: (quality, latency) → the trade-off as seen from B.
_TRADE_OFFS: dict[tuple[int, int], str] = {
    (1, -1): "Higher quality <-> higher latency",
    (1, 1): "Higher quality with improved latency",
    (1, 0): "Higher quality with comparable latency",
    (-1, 1): "Faster latency at the expense of lower quality",
    (-1, -1): "Lower quality and higher latency",
    (-1, 0): "Lower quality with comparable latency",
    (0, 1): "Equivalent quality; {faster} is faster",
    (0, -1): "Equivalent quality; {faster} is faster",
    (0, 0): "Roughly equal performance within comparison tolerance",
}


def _trade_off(quality: Sign, latency: Sign | None, *, judged: bool, faster: str) -> str | None:
    """Return the trade-off; `latency` None means that a side has no retrieval times."""
    if judged and latency is not None:
        return _TRADE_OFFS[quality, latency].format(faster=faster)
    if judged:
        better = {1: "Higher quality", -1: "Lower quality", 0: "Equivalent quality"}[quality]
        return f"{better}; latency was not measured on both sides"
    if latency:
        return f"Quality was not measured on both sides; {faster} is faster"
    return None


def _summary(
    quality: Sign,
    latency: Sign | None,
    deltas: Mapping[str, float | None],
    names: tuple[str, str],
    k: int,
) -> str:
    """Return one sentence of why, with the points of recall and MRR and the milliseconds."""
    recall, mrr = deltas.get("recall_at_k"), deltas.get("mrr")
    milliseconds = deltas.get("mean_retrieval_ms")
    if recall is None or mrr is None or milliseconds is None or latency is None:
        return _incomplete_summary(quality, latency, deltas, names, k)
    name_a, name_b = names
    points, gap = f"{abs(recall) * 100:.0f}", f"{abs(milliseconds):.1f} ms"
    if quality == 0 and latency == 0:
        return (
            "The pipelines perform similarly within the configured comparison tolerance "
            f"(Recall delta: {recall:+.2f}, latency delta: {milliseconds:+.1f} ms)."
        )
    if quality == 0:
        return (
            "The pipelines perform similarly on retrieval quality within tolerance, with "
            f"{name_b if latency > 0 else name_a} achieving lower latency ({gap} difference)."
        )
    if quality > 0 > latency:
        return (
            f"{name_b} improves Recall@{k} by {points} percentage points and MRR by "
            f"{abs(mrr) * 100:.0f} points, while increasing mean retrieval latency by "
            f"{milliseconds:.1f} ms."
        )
    if quality < 0 < latency:
        return (
            f"{name_b} is faster ({gap} lower mean latency), but {name_a} provides substantially "
            f"higher retrieval quality (Recall@{k} +{points} points)."
        )
    winner, loser = (name_b, name_a) if quality > 0 else (name_a, name_b)
    if latency == 0:
        return (
            f"{winner} outperforms {loser} on retrieval quality (Recall@{k} +{points} points), "
            f"while retrieval latency is comparable (delta: {milliseconds:+.1f} ms)."
        )
    return (
        f"{winner} outperforms {loser} on both retrieval quality (Recall@{k} +{points} points) "
        f"and retrieval latency ({gap} faster)."
    )


#: How a sentence calls the measures.
_WORDS = {
    "recall_at_k": "Recall@{k}",
    "mrr": "MRR",
    "groundedness": "groundedness",
    "answer_correctness": "answer correctness",
}


def _incomplete_summary(
    quality: Sign,
    latency: Sign | None,
    deltas: Mapping[str, float | None],
    names: tuple[str, str],
    k: int,
) -> str:
    """Return one sentence that says what could be compared and what could not."""
    name_a, name_b = names
    differences = {
        words.format(k=k): delta
        for measure, words in _WORDS.items()
        if (delta := deltas.get(measure)) is not None
    }
    listed = ", ".join(f"{words} {delta:+.2f}" for words, delta in differences.items())
    if quality:
        winner, loser = (name_b, name_a) if quality > 0 else (name_a, name_b)
        found = f"{winner} has higher quality than {loser} ({name_b} against {name_a}: {listed})"
    elif differences:
        found = f"{name_a} and {name_b} have similar quality within tolerance ({listed})"
    else:
        found = f"The quality of {name_a} and {name_b} cannot be compared: a side has no measure"
    milliseconds = deltas.get("mean_retrieval_ms")
    if milliseconds is None:
        return f"{found}; retrieval latency was not measured on both sides."
    if not latency:
        return f"{found}; retrieval latency is comparable (delta: {milliseconds:+.1f} ms)."
    return f"{found}; {name_b if latency > 0 else name_a} is {abs(milliseconds):.1f} ms faster."
