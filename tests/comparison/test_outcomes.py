"""The rules that compare: each query, and each pair of pipelines."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragdiag.outcomes import compare_queries, decide
from ragdiag.taxonomy import FailureCategory as C

SEVERITY = {"info": 0, "warning": 1, "major": 2}
BEST_TO_WORST = [
    C.PASS,
    C.LATENCY_OUTLIER,
    C.WRONG_CHUNK_RANK,
    C.INSUFFICIENT_CONTEXT,
    C.ANSWER_INCORRECT,
    C.RETRIEVED_BUT_NOT_GROUNDED,
    C.WRONG_CHUNK_RETRIEVED,
    C.UNKNOWN,
]


def query(category: str = "PASS", **changes: Any) -> dict[str, Any]:
    severity = C(category).severity if category in list(C) else "major"
    row = {"recall_at_5": 1.0, "grounded": None, "answer_correct": None, "severity": severity}
    return {"category": category, **row, **changes}


def table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    return frame.astype({"grounded": "boolean", "answer_correct": "boolean"})


def sign(a: dict[str, Any], b: dict[str, Any]) -> int:
    return int(compare_queries(table([a]), table([b]))[0])


@pytest.mark.parametrize(("a", "b"), list(itertools.product(C, C)), ids=lambda c: c.value)
def test_every_pair_of_categories_is_decided_by_severity_and_then_by_quality_order(a, b):
    by_severity = SEVERITY[a.severity] - SEVERITY[b.severity]
    by_quality = BEST_TO_WORST.index(a) - BEST_TO_WORST.index(b)
    assert sign(query(a), query(b)) == np.sign(by_severity or by_quality)


TIE_BREAKS = [
    # a, b, what decides
    ({"recall_at_5": 0.5}, {"recall_at_5": 0.502}, 1),
    ({"recall_at_5": 0.502}, {"recall_at_5": 0.5}, -1),
    ({"recall_at_5": 0.5}, {"recall_at_5": 0.5009}, 0),
    ({"recall_at_5": 0.0, "grounded": True}, {"recall_at_5": 1.0, "grounded": False}, 1),
    ({"grounded": False}, {"grounded": True}, 1),
    ({"grounded": True}, {"grounded": False}, -1),
    ({"grounded": True}, {"grounded": None}, 0),
    ({"grounded": None}, {"grounded": True}, 0),
    (
        {"grounded": False, "answer_correct": True},
        {"grounded": True, "answer_correct": False},
        1,
    ),
    ({"answer_correct": False}, {"answer_correct": True}, 1),
    ({"answer_correct": True}, {"answer_correct": False}, -1),
    ({"answer_correct": False}, {"answer_correct": None}, 0),
    (
        {"grounded": None, "answer_correct": True},
        {"grounded": True, "answer_correct": False},
        -1,
    ),
]


@pytest.mark.parametrize(("a", "b", "expected"), TIE_BREAKS)
def test_tie_breaks_come_in_their_order(a, b, expected):
    assert sign(query(**a), query(**b)) == expected


def test_a_tie_break_comes_before_the_quality_order():
    worse_category = query("RETRIEVED_BUT_NOT_GROUNDED", answer_correct=True)
    assert sign(query("ANSWER_INCORRECT", answer_correct=False), worse_category) == 1


def test_severity_comes_before_every_tie_break():
    a = query("INSUFFICIENT_CONTEXT", recall_at_5=0.9, grounded=True, answer_correct=True)
    b = query("ANSWER_INCORRECT", recall_at_5=1.0, grounded=True, answer_correct=False)
    assert sign(a, b) == -1


@pytest.mark.parametrize("category", list(C))
def test_a_recall_that_was_not_measured_decides_nothing(category):
    assert sign(query(category, recall_at_5=np.nan), query(category)) == 0
    assert sign(query(category), query(category, recall_at_5=np.nan)) == 0


@pytest.mark.parametrize("category", list(C))
def test_a_query_without_a_category_is_no_better_and_no_worse(category):
    unknown = query(severity=None, category=None, recall_at_5=np.nan)
    assert sign(unknown, query(category)) == 0
    assert sign(query(category), unknown) == 0


def test_a_rule_of_the_users_own_has_its_place_in_the_quality_order():
    order = ["PASS", "TOO_LONG", "ANSWER_INCORRECT"]
    a, b = table([query("ANSWER_INCORRECT")]), table([query("TOO_LONG")])
    assert compare_queries(a, b, quality_order=order).tolist() == [1]
    assert compare_queries(a, b).tolist() == [0], "without a place nothing is known"


side = st.fixed_dictionaries(
    {
        "category": st.sampled_from([*C, None]),
        "recall_at_5": st.sampled_from([0.0, 0.333, 0.3335, 0.5, 1.0, np.nan]),
        "grounded": st.sampled_from([True, False, None]),
        "answer_correct": st.sampled_from([True, False, None]),
    }
).map(lambda row: {**row, "severity": row["category"].severity if row["category"] else None})


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(side, side), min_size=1, max_size=20))
def test_swapping_the_sides_mirrors_every_outcome(pairs):
    a, b = (table([pair[place] for pair in pairs]) for place in (0, 1))
    assert (compare_queries(a, b) == -compare_queries(b, a)).all()
    assert not compare_queries(a, a).any()


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(side, side), min_size=1, max_size=20))
def test_each_query_is_compared_on_its_own(pairs):
    a, b = (table([pair[place] for pair in pairs]) for place in (0, 1))
    alone = [int(compare_queries(a.iloc[[i]], b.iloc[[i]])[0]) for i in range(len(pairs))]
    assert compare_queries(a, b).tolist() == alone


# --- winners ---------------------------------------------------------------------------------

CELLS = [
    # recall B - A, ms B - A, quality, latency, trade-off seen from B, summary
    (
        *(0.2, 20.3, 1, -1, "Higher quality <-> higher latency"),
        "B improves Recall@5 by 20 percentage points and MRR by 4 points, while increasing mean "
        "retrieval latency by 20.3 ms.",
    ),
    (
        *(0.2, -20.3, 1, 1, "Higher quality with improved latency"),
        "B outperforms A on both retrieval quality (Recall@5 +20 points) and retrieval latency "
        "(20.3 ms faster).",
    ),
    (
        *(0.2, -3.0, 1, 0, "Higher quality with comparable latency"),
        "B outperforms A on retrieval quality (Recall@5 +20 points), while retrieval latency is "
        "comparable (delta: -3.0 ms).",
    ),
    (
        *(-0.2, -20.3, -1, 1, "Faster latency at the expense of lower quality"),
        "B is faster (20.3 ms lower mean latency), but A provides substantially higher retrieval "
        "quality (Recall@5 +20 points).",
    ),
    (
        *(-0.2, 20.3, -1, -1, "Lower quality and higher latency"),
        "A outperforms B on both retrieval quality (Recall@5 +20 points) and retrieval latency "
        "(20.3 ms faster).",
    ),
    (
        *(-0.2, 3.0, -1, 0, "Lower quality with comparable latency"),
        "A outperforms B on retrieval quality (Recall@5 +20 points), while retrieval latency is "
        "comparable (delta: +3.0 ms).",
    ),
    (
        *(0.0, -20.3, 0, 1, "Equivalent quality; B is faster"),
        "The pipelines perform similarly on retrieval quality within tolerance, with B achieving "
        "lower latency (20.3 ms difference).",
    ),
    (
        *(0.0, 20.3, 0, -1, "Equivalent quality; A is faster"),
        "The pipelines perform similarly on retrieval quality within tolerance, with A achieving "
        "lower latency (20.3 ms difference).",
    ),
    (
        *(0.01, 3.0, 0, 0, "Roughly equal performance within comparison tolerance"),
        "The pipelines perform similarly within the configured comparison tolerance (Recall delta: "
        "+0.01, latency delta: +3.0 ms).",
    ),
]


@pytest.mark.parametrize(("recall", "ms", "quality", "latency", "trade_off", "summary"), CELLS)
def test_each_cell_of_quality_and_latency(recall, ms, quality, latency, trade_off, summary):
    mrr = recall / 5
    found = decide({"recall_at_k": recall, "mrr": mrr, "mean_retrieval_ms": ms}, "A", "B")
    assert (found.quality, found.latency) == (quality, latency)
    assert found.overall == (quality or latency)
    assert found.trade_off == trade_off
    assert found.summary == summary


MEASURES = ["recall_at_k", "mrr", "groundedness", "answer_correctness"]


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("direction", [1, -1])
def test_the_first_measure_beyond_the_tolerance_names_the_winner(place, direction):
    deltas: dict[str, float | None] = dict.fromkeys(MEASURES, -0.5 * direction)
    for measure in MEASURES[:place]:
        deltas[measure] = -0.02 * direction
    deltas[MEASURES[place]] = 0.021 * direction
    assert decide({**deltas, "mean_retrieval_ms": 0.0}, "A", "B").quality == direction


def test_a_difference_of_exactly_the_tolerance_is_a_tie():
    deltas = {"recall_at_k": 0.02, "mrr": -0.02, "mean_retrieval_ms": 10.0}
    found = decide(deltas, "A", "B")
    assert (found.quality, found.latency, found.overall) == (0, 0, 0)
    closer = decide(deltas, "A", "B", quality_tolerance=0.0199, latency_tolerance_ms=9.9)
    assert (closer.quality, closer.latency) == (1, -1)


@pytest.mark.parametrize(
    ("deltas", "trade_off", "summary"),
    [
        (
            {},
            None,
            "The quality of A and B cannot be compared: a side has no measure; retrieval latency "
            "was not measured on both sides.",
        ),
        (
            {"recall_at_k": 0.2, "mrr": 0.1},
            "Higher quality; latency was not measured on both sides",
            "B has higher quality than A (B against A: Recall@5 +0.20, MRR +0.10); retrieval "
            "latency was not measured on both sides.",
        ),
        (
            {"groundedness": -0.2},
            "Lower quality; latency was not measured on both sides",
            "A has higher quality than B (B against A: groundedness -0.20); retrieval latency was "
            "not measured on both sides.",
        ),
        (
            {"answer_correctness": 0.0, "mean_retrieval_ms": 2.0},
            "Roughly equal performance within comparison tolerance",
            "A and B have similar quality within tolerance (answer correctness +0.00); retrieval "
            "latency is comparable (delta: +2.0 ms).",
        ),
        (
            {"mean_retrieval_ms": 20.0},
            "Quality was not measured on both sides; A is faster",
            "The quality of A and B cannot be compared: a side has no measure; A is 20.0 ms "
            "faster.",
        ),
    ],
)
def test_what_was_not_measured_is_said_and_not_compared(deltas, trade_off, summary):
    found = decide(deltas, "A", "B")
    assert (found.trade_off, found.summary) == (trade_off, summary)


number = st.one_of(st.none(), st.floats(-1, 1, allow_nan=False))


@settings(deadline=None, max_examples=60)
@given(st.fixed_dictionaries(dict.fromkeys(MEASURES, number)), st.floats(-100, 100))
def test_swapping_the_sides_mirrors_every_winner(deltas, milliseconds):
    there = decide({**deltas, "mean_retrieval_ms": milliseconds}, "A", "B")
    mirrored = {m: None if d is None else -d for m, d in deltas.items()}
    back = decide({**mirrored, "mean_retrieval_ms": -milliseconds}, "B", "A")
    assert (there.quality, there.latency, there.overall) == (
        -back.quality,
        -back.latency,
        -back.overall,
    )


def test_names_with_braces_stay_as_they_are():
    assert decide({"recall_at_k": 0.0, "mrr": 0.0, "mean_retrieval_ms": 50.0}, "{a}", "b").trade_off
