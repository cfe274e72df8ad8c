"""All queries at once against one query at a time, on random evidence."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
from hypothesis import given, settings

from ragdiag.diagnosis import (
    FIRED,
    NOT_APPLICABLE,
    NOT_MEASURED,
    PASSED,
    Evidence,
    diagnose_table,
)
from ragdiag.schema import Settings
from ragdiag.taxonomy import PRECEDENCE, FailureCategory

NAN = float("nan")
VERDICT = st.sampled_from([1.0, 0.0, NAN])
STATED = st.sampled_from([0.0, 0.5, 1.0, NAN])

QUERY = st.fixed_dictionaries(
    {
        "has_outcome": st.booleans(),
        "fails": st.booleans(),
        "n_relevant": st.integers(0, 3),
        "ranks": st.lists(st.integers(1, 8), max_size=3, unique=True),
        "retrieval_ms": st.sampled_from([NAN, 1.0, 1000.0, 1001.0]),
        "grounded": VERDICT,
        "answer_correct": VERDICT,
        "grounded_confidence": STATED,
        "correct_confidence": STATED,
    }
)


def one_at_a_time(query: dict[str, Any], config: Settings) -> tuple[list[int], str | None, float]:
    """The rules as sentences about one query: states, category, confidence."""
    failed = query["has_outcome"] and query["fails"]
    ranks = sorted(query["ranks"])[: query["n_relevant"]]
    found = [rank for rank in ranks if rank <= config.k]
    looked = query["n_relevant"] > 0 and query["has_outcome"] and not failed

    def state(measured: bool, fires: bool, applies: bool = True) -> int:
        if not measured:
            return NOT_MEASURED
        if not applies:
            return NOT_APPLICABLE
        return FIRED if fires else PASSED

    def judged(value: float) -> bool:
        return not failed and value == value

    complete = len(found) == query["n_relevant"]
    states = [
        state(query["has_outcome"], failed),
        state(looked, not found),
        state(looked, not complete, bool(found)),
        state(looked, bool(found) and found[0] > config.rank_threshold, complete),
        state(judged(query["grounded"]), query["grounded"] == 0),
        state(judged(query["answer_correct"]), query["answer_correct"] == 0),
        state(query["retrieval_ms"] == query["retrieval_ms"], query["retrieval_ms"] > 1000),
    ]
    for category, each in zip(PRECEDENCE, states, strict=False):
        if each == FIRED:
            stated = {
                FailureCategory.RETRIEVED_BUT_NOT_GROUNDED: query["grounded_confidence"],
                FailureCategory.ANSWER_INCORRECT: query["correct_confidence"],
            }
            return states, category.value, stated.get(category, 1.0)
    if all(each == NOT_MEASURED for each in states[1:]):
        return states, None, NAN
    return states, "PASS", 1.0


@settings(deadline=None)
@given(st.lists(QUERY, max_size=12), st.integers(1, 6), st.integers(1, 6))
def test_all_at_once_equals_one_at_a_time(
    queries: list[dict[str, Any]], k: int, rank_threshold: int
) -> None:
    config = Settings(k=k, rank_threshold=rank_threshold)
    columns = pd.DataFrame(queries, columns=list(queries[0]) if queries else ["ranks"])
    relevant_ranks = [sorted(query["ranks"])[: query["n_relevant"]] for query in queries]

    def column(name: str, dtype: type = float) -> Any:
        return np.array([query[name] for query in queries], dtype=dtype)

    has_outcome = column("has_outcome", bool)
    failed = has_outcome & column("fails", bool)
    n_relevant = column("n_relevant", int)
    measured = (n_relevant > 0) & has_outcome & ~failed
    first = np.array([ranks[0] if ranks else NAN for ranks in relevant_ranks], dtype=float)
    evidence = Evidence(
        settings=config,
        has_outcome=has_outcome,
        failed=failed,
        retrieval_measured=measured,
        n_relevant=n_relevant,
        n_found=np.array([sum(r <= k for r in ranks) for ranks in relevant_ranks], dtype=int),
        first_relevant_rank=np.where(measured, first, NAN),
        **{
            name: column(name)
            for name in (
                *("retrieval_ms", "grounded", "answer_correct"),
                *("grounded_confidence", "correct_confidence"),
            )
        },
    )
    found = diagnose_table(evidence)
    assert len(columns) == len(found.primary)
    for place, query in enumerate(queries):
        states, category, confidence = one_at_a_time(query, config)
        assert found.states[:, place].tolist() == states
        code = int(found.primary[place])
        assert (None if code < 0 else found.book.names[code]) == category
        assert found.confidence[place] == confidence or (
            np.isnan(found.confidence[place]) and np.isnan(confidence)
        )
    extra = sum(
        sum(each == FIRED for each in states) - (category not in (None, "PASS"))
        for states, category, _ in (one_at_a_time(query, config) for query in queries)
    )
    assert found.also_fired().sum() == extra
    lists, which = found.not_measured
    assert [lists[each] for each in which.tolist()] == [
        tuple(
            name
            for name, state in zip(found.book.names, found.states[:, place], strict=False)
            if state == NOT_MEASURED
        )
        for place in range(len(queries))
    ]
