"""``build_report``: the numbers of one pipeline."""

from __future__ import annotations

import json

import pytest

from ragdiag.diagnosis import Rule
from ragdiag.report import EvaluationReport, TopFailure, build_report
from ragdiag.schema import DiagnosisResult, EvaluationResult, RetrievedChunk
from ragdiag.taxonomy import DISPLAY_ORDER

QUERIES = {
    "q1": {
        "answer_correct": True,
        "grounded": True,
        "correct_confidence": 0.9,
        "grounded_confidence": 0.7,
    },
    "q2": {"answer_correct": False, "grounded": True, "correct_confidence": 0.6},
    "q3": {"retrieved": ["x"], "retrieval_ms": 30.0, "query_type": "multi-hop"},
    "q4": {"status": "failed", "error": "retrieval failed: E: e", "retrieved": []},
    "q5": {
        "relevant": ["a", "b"],
        "retrieved": ["x", "x", "a"],
        "query_type": "multi-hop",
        "correct_error": "TimeoutError: no reply",
        "grounded_error": "TimeoutError: no reply",
    },
    "q6": {"retrieved": ["x", "y", "z", "a"], "query_type": "custom"},
}


@pytest.fixture
def mixed(results):
    return results("dense", QUERIES)


def test_the_numbers(mixed):
    report = build_report(mixed)
    assert (report.dataset_name, report.dataset_version) == ("payments", "1.0")
    assert report.pipeline_name == "dense"
    assert (report.total_queries, report.completed_queries, report.failed_queries) == (6, 5, 1)
    assert (report.judged_queries, report.judge_failures) == (2, 1)
    assert report.retrieval.model_dump() == pytest.approx(
        {
            "mean_precision_at_k": (1 + 1 + 0 + 1 / 3 + 1 / 4) / 5,
            "mean_recall_at_k": (1 + 1 + 0 + 0.5 + 1) / 5,
            "mrr": (1 + 1 + 0 + 1 / 3 + 1 / 4) / 5,
            "k": 5,
            "measured_queries": 5,
        }
    )
    assert report.semantic.model_dump() == pytest.approx(
        {
            "answer_correctness_rate": 0.5,
            "groundedness_rate": 1.0,
            "mean_judge_confidence": (0.7 + 0.6) / 2,
            "correctness_judged": 2,
            "groundedness_judged": 2,
            "screened": False,
        }
    )
    assert (report.latency.count, report.latency.mean_ms, report.latency.max_ms) == (5, 14.0, 30.0)
    assert list(report.diagnosis_counts) == list(DISPLAY_ORDER)
    assert {name: count for name, count in report.diagnosis_counts.items() if count} == {
        "PASS": 1,
        "WRONG_CHUNK_RETRIEVED": 1,
        "WRONG_CHUNK_RANK": 1,
        "INSUFFICIENT_CONTEXT": 1,
        "ANSWER_INCORRECT": 1,
        "UNKNOWN": 1,
    }


def test_query_types_stand_in_their_order(mixed):
    report = build_report(mixed)
    assert list(report.metrics_by_query_type) == ["factual", "multi-hop", "custom"]
    assert list(report.diagnosis_by_query_type) == ["factual", "multi-hop", "custom"]
    factual = report.metrics_by_query_type["factual"]
    assert (factual.total_queries, factual.completed_queries, factual.failed_queries) == (3, 2, 1)
    assert (factual.answer_correctness_rate, factual.mean_recall_at_k) == (0.5, 1.0)
    assert report.metrics_by_query_type["custom"].answer_correctness_rate is None


def test_failures_by_severity_confidence_category_and_id(mixed):
    report = build_report(mixed, max_top_failures=10)
    assert [failure.query_id for failure in report.top_failures] == ["q3", "q4", "q2", "q6", "q5"]
    assert build_report(mixed, max_top_failures=2).top_failures == report.top_failures[:2]
    assert report.failing_queries == {
        "WRONG_CHUNK_RETRIEVED": ["q3"],
        "WRONG_CHUNK_RANK": ["q6"],
        "INSUFFICIENT_CONTEXT": ["q5"],
        "ANSWER_INCORRECT": ["q2"],
        "UNKNOWN": ["q4"],
    }
    first = report.top_failures[0]
    assert first.reason == mixed["q3"].diagnosis.reason
    assert first.evidence == mixed["q3"].diagnosis.evidence


def test_a_list_of_items_gives_the_same_report(mixed):
    of_results = build_report(mixed)
    of_items = build_report(list(mixed), "payments", "1.0", "dense", k=5)
    beside = {"settings", "notes"}
    assert of_items.model_dump(exclude=beside) == of_results.model_dump(exclude=beside)
    assert of_items.settings == {"k": 5}


def test_another_k_is_seen_at_that_k(mixed):
    assert build_report(mixed, k=3) == build_report(mixed.rediagnose(k=3))
    assert build_report(mixed, k=3).retrieval.k == 3


def made_by_hand(query_id: str, **changes) -> EvaluationResult:
    fields = {
        "query_id": query_id,
        "query": "?",
        "expected_chunk_ids": ["a", "b"],
        "retrieved_chunks": [RetrievedChunk(id=name, text="") for name in ("a", "x", "b")],
        "diagnosis": DiagnosisResult(
            category="PASS", severity="info", confidence=1.0, reason="By hand."
        ),
    }
    return EvaluationResult(**{**fields, **changes})


def test_measures_that_an_item_lacks_are_computed_from_its_chunks():
    report = build_report([made_by_hand("q1")], k=2)
    assert report.retrieval.model_dump(exclude={"measured_queries"}) == {
        "mean_precision_at_k": 0.5,
        "mean_recall_at_k": 0.5,
        "mrr": 1.0,
        "k": 2,
    }
    stated = made_by_hand("q1", metrics={"recall_at_2": 0.25})
    assert build_report([stated], k=2).retrieval.mean_recall_at_k == 0.25


def test_items_made_by_hand_may_be_odd(mixed):
    own = DiagnosisResult(category="TOO_LONG", severity="warning", confidence=0.5, reason="Long.")
    items = [
        *mixed,
        made_by_hand("q7", diagnosis=own, query_type=None),
        made_by_hand("q8", expected_chunk_ids=[], metrics={"answer_correct": "yes"}),
        made_by_hand("q9", status="failed", metrics={"recall_at_5": 1.0}),
    ]
    report = build_report(items, max_top_failures=20)
    assert list(report.diagnosis_counts)[-1] == "TOO_LONG"
    assert report.diagnosis_counts["TOO_LONG"] == 1
    assert (report.total_queries, report.failed_queries) == (9, 2)
    assert report.retrieval.measured_queries == 6
    assert report.judged_queries == 2
    assert report.top_failures[-1].category == "TOO_LONG"
    assert sum(part.total_queries for part in report.metrics_by_query_type.values()) == 6


def test_a_report_of_nothing_has_no_numbers():
    report = build_report([])
    assert report.retrieval.mean_recall_at_k is None
    assert report.latency.model_dump() == {
        "count": 0,
        **dict.fromkeys(("mean_ms", "p50_ms", "p95_ms", "p99_ms", "min_ms", "max_ms")),
    }
    assert report.semantic is None
    assert report.overall_insights == []


def test_rules_of_ones_own_are_counted(results):
    rule = Rule("SHORT", "warning", lambda f: f["n_retrieved"] < 9, reason="r", action="More.")
    report = build_report(results("a", ["q1"], rules=[rule]))
    assert report.diagnosis_counts["SHORT"] == 1
    assert report.top_failures[0].action == "More."
    assert build_report(results("a", ["q1"])).diagnosis_counts.get("SHORT") is None


def test_queries_of_which_nothing_is_known_are_counted_apart(results):
    report = build_report(
        results("a", {"q1": {"relevant": [], "retrieved": [], "retrieval_ms": None}})
    )
    assert report.undiagnosed_queries == 1
    assert sum(report.diagnosis_counts.values()) == 0
    assert report.top_failures == []


def test_an_offline_judge_is_said_to_be_one(results):
    queries = {"q1": {"answer_correct": True, "grounded": False, "screened": True}}
    report = build_report(results("a", queries))
    assert report.semantic.screened


def test_the_json_loads_back(mixed):
    report = build_report(mixed)
    text = report.model_dump_json(indent=2)
    assert EvaluationReport.model_validate_json(text) == report
    older = json.loads(text)
    for name in ("failing_queries", "settings", "notes", "undiagnosed_queries", "suspect_labels"):
        del older[name]
    older["health_profile"] = {"score": 80.0}
    older["retrieval"]["mean_recall_at_k"] = 0.0
    assert EvaluationReport.model_validate(older).retrieval.mean_recall_at_k == 0.0


def test_the_models_say_in_one_line_what_they_are(mixed):
    assert repr(build_report(mixed)) == (
        "EvaluationReport(pipeline_name='dense', dataset_name='payments', total_queries=6, "
        "failed_queries=1)"
    )


def test_an_action_is_advised_by_the_category():
    given = {"query_id": "q", "query": "?", "severity": "major", "confidence": 1.0, "reason": "r"}
    assert TopFailure(category="UNKNOWN", **given).action.startswith("The pipeline raised an error")
    assert TopFailure(category="OWN", **given).action == ""
