"""Insights: rules on numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragdiag.insights import deeper_k, insights
from ragdiag.report import (
    EvaluationReport,
    LatencySummary,
    QueryTypeMetrics,
    RetrievalSummary,
    SemanticSummary,
)


def report(**fields) -> EvaluationReport:
    counts = fields.pop("counts", {})
    types = fields.pop("types", {})
    measured = fields.pop("measured", fields.get("completed_queries"))
    return EvaluationReport(
        diagnosis_counts=counts,
        retrieval=RetrievalSummary(k=5, measured_queries=measured),
        metrics_by_query_type={
            name: QueryTypeMetrics(query_type=name, **numbers) for name, numbers in types.items()
        },
        **fields,
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"completed_queries": 3, "counts": {"PASS": 3}},
            ["All 3 queries passed retrieval; answers were not judged."],
        ),
        (
            {"completed_queries": 1, "counts": {"PASS": 1}, "judged_queries": 1},
            ["The one query passed, and its answer was judged."],
        ),
        (
            {
                "completed_queries": 3,
                "counts": {"PASS": 3},
                "judged_queries": 2,
                "judge_failures": 1,
            },
            [
                "All 3 queries passed, but only 2 of 3 answers were judged.",
                "The judge failed on 1 query; the rates of correct and grounded answers leave "
                "them out.",
            ],
        ),
        (
            {"completed_queries": 3, "counts": {"PASS": 2}, "undiagnosed_queries": 1},
            ["All 2 queries that could be diagnosed passed retrieval; answers were not judged."],
        ),
        (
            {"completed_queries": 1, "counts": {"PASS": 1}, "measured": 0},
            [
                "The one query passed what was measured, but retrieval was not measured; "
                "answers were not judged."
            ],
        ),
        (
            {"completed_queries": 3, "counts": {"PASS": 3}, "judged_queries": 3, "measured": 2},
            [
                "All 3 queries passed what was measured, but retrieval was measured on only "
                "2 of 3 queries; all answers were judged."
            ],
        ),
        (
            {
                "completed_queries": 3,
                "counts": {"PASS": 3},
                "judged_queries": 3,
                "semantic": SemanticSummary(correctness_judged=1, groundedness_judged=3),
            },
            ["All 3 queries passed, but correctness was judged on only 1 of 3 answers."],
        ),
        (
            {"completed_queries": 2, "counts": {"PASS": 2}, "measured": None},
            [
                "All 2 queries passed what was measured, but retrieval was not measured; "
                "answers were not judged."
            ],
        ),
        ({}, []),
        (
            {"counts": {"PASS": 6, "UNKNOWN": 1, "WRONG_CHUNK_RANK": 3}, "failed_queries": 1},
            [
                "WRONG_CHUNK_RANK is the main cause (3 of 4 failures, 75%).",
                "The pipeline failed on 1 query (UNKNOWN); the means leave them out.",
            ],
        ),
        (
            {"counts": {"WRONG_CHUNK_RANK": 2, "INSUFFICIENT_CONTEXT": 2}},
            [
                "WRONG_CHUNK_RANK and INSUFFICIENT_CONTEXT are equally common (2 of 4 failures, "
                "50% each)."
            ],
        ),
    ],
)
def test_what_happened_on_the_whole(fields, expected):
    assert insights(report(**fields)) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (
            *(0.8, 0.9),
            ["'multi-hop' queries have the weakest retrieval: Recall@5 0.80, 'factual' 0.90."],
        ),
        (0.81, 0.9, []),
        (0.69, 0.75, ["'multi-hop' queries have low recall: Recall@5 0.69."]),
        (0.7, 0.75, []),
    ],
)
def test_the_weakest_query_type(low, high, expected):
    types = {"factual": {"mean_recall_at_k": high}, "multi-hop": {"mean_recall_at_k": low}}
    assert insights(report(types=types)) == expected


def test_a_type_without_a_mean_is_not_the_weakest():
    types = {"factual": {"mean_recall_at_k": 0.2}, "multi-hop": {"mean_recall_at_k": None}}
    assert insights(report(types=types)) == []


@pytest.mark.parametrize(("low", "named"), [(0.8, True), (0.81, False)])
def test_a_gap_in_groundedness(low, named):
    types = {"factual": {"groundedness_rate": 0.9}, "multi-hop": {"groundedness_rate": low}}
    found = insights(report(types=types))
    assert found == (
        ["Answers to 'multi-hop' queries are grounded least often: 0.80, 'factual' 0.90."]
        if named
        else []
    )


def test_a_type_that_passes_far_less_often():
    def part(passed, total):
        return {"total_queries": total, "diagnosis_counts": {"PASS": passed}}

    types = {"factual": part(20, 32), "multi-hop": part(2, 10)}
    assert insights(report(types=types)) == [
        "'multi-hop' queries pass 2 of 10, all others 20 of 32."
    ]
    types["multi-hop"] = part(0, 4)
    assert insights(report(types=types)) == [], "too few to say"
    types["multi-hop"] = part(5, 10)
    assert insights(report(types=types)) == [], "not far less often"


@pytest.mark.parametrize(
    ("outliers", "p95", "expected"),
    [
        (2, 800.0, ["2 queries passed every check but retrieval time (p95 800 ms)."]),
        (0, 1000.5, ["Retrieval is slow at the tail: p95 1,000 ms."]),
        (0, 1000.0, []),
        (0, None, []),
    ],
)
def test_slow_retrieval(outliers, p95, expected):
    slow = report(counts={"LATENCY_OUTLIER": outliers}, latency=LatencySummary(count=9, p95_ms=p95))
    assert insights(slow)[-1:] == expected if expected else insights(slow) == []


def test_suspected_labels():
    assert insights(report(suspect_labels=3)) == [
        "Labels are suspected on 3 queries: the answer is correct and grounded without the "
        "labelled chunk."
    ]


@pytest.mark.parametrize(
    ("needed", "expected"),
    [
        ([1, 2, 5], None),
        ([6], (6, 1, 1)),
        ([6, np.inf, np.nan, 2], (6, 1, 2)),
        ([np.inf], None),
        ([6, 7, 8, 9, 100], (9, 4, 5)),
        ([], None),
    ],
)
def test_a_deeper_k(needed, expected):
    assert deeper_k(needed, k=5) == expected


def test_the_depth_is_an_insight():
    found = insights(report(), pd.Series([7.0, 9.0, np.inf, 1.0]))
    assert found == ["k = 9 would complete 2 of the 3 queries that lack a chunk at k = 5."]


def test_the_insights_of_results_know_the_depth(results):
    queries = {"q1": {"retrieved": ["x", "y", "a"]}, "q2": {"retrieved": ["a"]}}
    found = results("a", queries, k=2).insights
    assert "k = 3 would complete the one query that lacks a chunk at k = 2." in found
