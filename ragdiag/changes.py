"""Why a query got better or worse from one pipeline to another: one line, from the evidence.

Facts are looked for in the order in which the rules of the diagnosis are tried; the first that
points the same way as the query's outcome is its reason. Ranks come last where neither side's
category is one of retrieval: a chunk that moved within the depth then explains little.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ragdiag.aggregates import as_floats
from ragdiag.tables import text_column
from ragdiag.taxonomy import FailureCategory

if TYPE_CHECKING:
    from ragdiag.pairing import Pair

__all__ = ["changes_of"]

#: Causes that lie in what was retrieved.
RETRIEVAL = {
    FailureCategory.WRONG_CHUNK_RETRIEVED.value,
    FailureCategory.INSUFFICIENT_CONTEXT.value,
    FailureCategory.WRONG_CHUNK_RANK.value,
}
SIGNS = {"improved": 1, "regressed": -1}
#: What is said when a verdict turns to True, and to False.
VERDICT_WORDS = {
    "grounded": ("the answer is now grounded", "the answer is no longer grounded"),
    "answer_correct": ("the answer is now correct", "the answer is no longer correct"),
}


class Fact(NamedTuple):
    """Something that changed: +1 for the better, -1 for the worse."""

    sign: int
    words: str


def changes_of(pair: Pair) -> pd.DataFrame:
    """Return every query that improved or regressed, with the reason in one line.

    Parameters
    ----------
    pair : Pair
        Two sides on the same queries.

    Returns
    -------
    pandas.DataFrame
        ``query_id, outcome, category_a, category_b, why``, index as in ``outcomes``; ``why`` is
        missing where only the category differs and no fact explains it.
    """
    outcomes = pair.outcomes
    changed = outcomes[outcomes["outcome"].isin(list(SIGNS))]
    ids = set(changed["query_id"])
    ranks = _rank_facts(pair, ids)
    a = _rows(pair.a.frame, ids)
    b = _rows(pair.b.frame, ids)
    reasons = []
    for query_id, outcome, *categories in zip(
        *(changed[name] for name in ("query_id", "outcome", "category_a", "category_b")),
        strict=True,
    ):
        facts = list(_facts(a[query_id], b[query_id]))
        moves = ranks.get(query_id, [])
        facts = [*moves, *facts] if RETRIEVAL & set(map(str, categories)) else [*facts, *moves]
        facts = [*_failures(a[query_id], b[query_id]), *facts]
        sign = SIGNS[str(outcome)]
        reasons.append(next((fact.words for fact in facts if fact.sign == sign), None))
    table = changed[["query_id", "outcome", "category_a", "category_b"]].copy()
    table["why"] = text_column(reasons, table.index)
    return table


def _rows(frame: pd.DataFrame, ids: set[str]) -> dict[str, dict[str, Any]]:
    columns = ["query_id", "status", "error", "grounded", "answer_correct", "retrieval_ms"]
    rows = frame.loc[frame["query_id"].isin(list(ids)), columns].to_dict("records")
    return {row["query_id"]: {str(key): value for key, value in row.items()} for row in rows}


def _failures(a: dict[str, Any], b: dict[str, Any]) -> Iterator[Fact]:
    """Yield whether the pipeline began or ceased to fail."""
    failed_a, failed_b = (not pd.isna(x["status"]) and x["status"] == "failed" for x in (a, b))
    if failed_a != failed_b:
        error = b["error"] if failed_b else a["error"]
        said = "" if pd.isna(error) else f" ({error})"
        yield (
            Fact(-1, f"the pipeline now fails{said}")
            if failed_b
            else Fact(1, f"the pipeline no longer fails{said}")
        )


def _facts(a: dict[str, Any], b: dict[str, Any]) -> Iterator[Fact]:
    """Yield the verdicts that turned, and the times."""
    for finding, (gained, lost) in VERDICT_WORDS.items():
        before, after = a[finding], b[finding]
        if not pd.isna(before) and not pd.isna(after) and before != after:
            yield Fact(1, gained) if after else Fact(-1, lost)
    slower = b["retrieval_ms"] - a["retrieval_ms"]
    if not np.isnan(slower) and slower:
        words = f"retrieval took {b['retrieval_ms']:,.0f} ms, before {a['retrieval_ms']:,.0f} ms"
        yield Fact(-1 if slower > 0 else 1, words)


def _rank_facts(pair: Pair, ids: set[str]) -> dict[str, list[Fact]]:
    """Return for each query its relevant chunks that moved, the largest move first.

    Moves are measured by reciprocal rank: from 2 to 1 is more than from 20 to 10.
    """
    sides = [_relevant(side.results.expected, ids) for side in (pair.a, pair.b)]
    moves = sides[0].merge(sides[1], on=["query_id", "chunk_id"], suffixes=("_a", "_b"))
    before, after = as_floats(moves["rank_a"]), as_floats(moves["rank_b"])
    gain = np.nan_to_num(1.0 / after) - np.nan_to_num(1.0 / before)
    facts: dict[str, list[Fact]] = {}
    for row in np.argsort(-np.abs(gain), kind="stable"):
        if gain[row] == 0.0:
            break
        query_id, chunk = str(moves["query_id"].iloc[row]), str(moves["chunk_id"].iloc[row])
        fact = Fact(1 if gain[row] > 0 else -1, _move(chunk, before[row], after[row]))
        facts.setdefault(query_id, []).append(fact)
    return facts


def _relevant(expected: pd.DataFrame, ids: set[str]) -> pd.DataFrame:
    kept = expected[(expected["grade"] >= 1) & expected["query_id"].isin(list(ids))]
    return kept.drop_duplicates(["query_id", "chunk_id"])[["query_id", "chunk_id", "rank"]]


def _move(chunk: str, before: float, after: float) -> str:
    if np.isnan(before):
        return f"chunk {chunk} now comes, at rank {after:.0f}"
    if np.isnan(after):
        return f"chunk {chunk} no longer comes; it was at rank {before:.0f}"
    way = "came up" if after < before else "fell"
    return f"chunk {chunk} {way} from rank {before:.0f} to {after:.0f}"
