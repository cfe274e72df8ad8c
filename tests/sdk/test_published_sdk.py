"""The published SDK, name by name and field by field, as people's scripts use it."""

from __future__ import annotations

import json

import pytest

import ragdiag
from ragdiag import (
    Comparator,
    ComparisonReport,
    EvaluationReport,
    EvaluationResult,
    Evaluator,
    FailureCategory,
    QuerySample,
    QueryType,
    Results,
    RetrievedChunk,
    TopFailure,
    build_report,
    mean_reciprocal_rank,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
)
from ragdiag.dataset import load_dataset
from ragdiag.pipeline import load_pipeline
from ragdiag.testing import FixedClock

CLOCK = FixedClock(retrieval_ms=12.5, generation_ms=100.0, judge_ms=40.0)

RESULT_FIELDS = (
    *("query_id", "query", "query_type", "expected_chunk_ids", "expected_answer"),
    *("retrieved_chunks", "generated_answer", "metrics", "diagnosis", "latency"),
    *("status", "error", "judge_error"),
)
REPORT_FIELDS = (
    *("dataset_name", "dataset_version", "pipeline_name", "total_queries", "completed_queries"),
    *("failed_queries", "judged_queries", "judge_failures", "retrieval", "semantic", "latency"),
    *("diagnosis_counts", "diagnosis_by_query_type", "metrics_by_query_type", "top_failures"),
    "overall_insights",
)
COMPARISON_FIELDS = (
    *("dataset_name", "dataset_version", "pipeline_a_name", "pipeline_b_name"),
    *("pipeline_a_report", "pipeline_b_report", "metric_deltas", "diagnosis_deltas"),
    *("query_type_deltas", "query_outcomes", "queries_improved", "queries_regressed"),
    *("queries_unchanged", "quality_winner", "latency_winner", "overall_winner", "winner"),
    *("trade_off", "summary"),
)


def evaluated(search, dataset, judge=None) -> Results:
    return Evaluator(k=5, judge=judge, clock_factory=CLOCK).evaluate(search("dense"), dataset)


def test_evaluate_and_read_each_item(search, dataset, judge):
    results = evaluated(search, dataset, judge)
    assert isinstance(results, Results)
    assert len(results) == 3
    for item, sample in zip(results, dataset.samples, strict=True):
        assert isinstance(item, EvaluationResult)
        assert item.query_id == sample.id
        assert all(hasattr(item, name) for name in RESULT_FIELDS)
    first = results[0]
    assert first.retrieved_chunks[0] == RetrievedChunk(id="doc_17", text="About doc_17.", score=0.5)
    assert first.generated_answer == "See doc_17."
    assert first.expected_chunk_ids == ["doc_17"]
    assert first.query_type == QueryType.FACTUAL
    expected = {
        "precision_at_5": 0.5,
        "recall_at_5": 1.0,
        "reciprocal_rank": 1.0,
        "answer_correct": True,
        "grounded": True,
        "judge_confidence": 0.8,
        "judge_reason": "Looked at the id.",
    }
    assert {name: first.metrics[name] for name in expected} == expected
    assert first.latency == {
        "retrieval_ms": 12.5,
        "generation_ms": 100.0,
        "total_ms": 112.5,
        "judge_ms": 40.0,
    }
    assert first.diagnosis.category is FailureCategory.PASS
    assert (first.diagnosis.severity, first.diagnosis.confidence) == ("info", 1.0)
    assert first.diagnosis.reason
    assert isinstance(first.diagnosis.evidence, list)
    assert (first.status, first.error, first.judge_error) == ("completed", None, None)
    assert set(RESULT_FIELDS) <= set(json.loads(first.model_dump_json(indent=2)))


def test_a_judge_that_fails_is_an_error_and_not_a_score(search, dataset, judge):
    second = evaluated(search, dataset, judge)[1]
    assert second.judge_error == "judge failed: TimeoutError: no reply"
    assert "answer_correct" not in second.metrics
    assert "grounded" not in second.metrics
    assert second.status == "completed"
    assert second.diagnosis.category == "INSUFFICIENT_CONTEXT"


@pytest.mark.parametrize(
    ("found", "error"),
    [
        ([], "generation failed: RuntimeError: no context"),
        (None, "retrieval failed: KeyError: 'How long do refunds take?'"),
    ],
)
def test_a_pipeline_that_fails_is_one_unknown_row(search, dataset, found, error):
    question = "How long do refunds take?"
    known = {sample.query: ["doc_17"] for sample in dataset.samples if sample.query != question}
    broken = search("broken", known if found is None else {**known, question: found})
    results = ragdiag.evaluate(broken, dataset, clock_factory=CLOCK)
    first = results["q1"]
    assert (first.status, first.error) == ("failed", error)
    assert first.metrics == {}
    assert first.generated_answer is None
    assert first.diagnosis.category == "UNKNOWN"
    assert first.latency["retrieval_ms"] == 12.5
    assert ("generation_ms" in first.latency) == (found is not None)
    assert results["q2"].status == "completed"


def test_without_a_judge_nothing_is_said_of_answers(search, dataset):
    results = evaluated(search, dataset)
    assert "answer_correct" not in results[0].metrics
    assert build_report(results).semantic is None


def test_build_report_and_load_it_back(search, dataset, judge, tmp_path):
    results = evaluated(search, dataset, judge)
    report = build_report(
        results,
        dataset_name=dataset.name,
        dataset_version=dataset.version,
        pipeline_name="dense",
        k=5,
    )
    assert all(hasattr(report, name) for name in REPORT_FIELDS)
    assert (report.total_queries, report.judged_queries, report.judge_failures) == (3, 2, 1)
    assert report.retrieval.k == 5
    assert report.retrieval.mean_recall_at_k == pytest.approx((1 + 0.5 + 1) / 3)
    assert report.semantic.answer_correctness_rate == 0.5
    assert report.semantic.groundedness_rate == 1.0
    assert report.semantic.mean_judge_confidence == pytest.approx(0.8)
    assert (report.latency.count, report.latency.p95_ms) == (3, 12.5)
    assert report.diagnosis_counts["INSUFFICIENT_CONTEXT"] == 1
    assert report.diagnosis_by_query_type["factual"]["PASS"] == 1
    assert report.metrics_by_query_type["multi-hop"].mrr == pytest.approx(1 / 3)
    assert isinstance(report.top_failures[0], TopFailure)
    assert report.overall_insights
    path = tmp_path / "report.json"
    path.write_text(report.model_dump_json(indent=2), encoding="utf-8")
    assert EvaluationReport.model_validate_json(path.read_text(encoding="utf-8")) == report


def test_a_report_of_a_plain_list(search, dataset, judge):
    results = evaluated(search, dataset, judge)
    listed = [EvaluationResult.model_validate(item.model_dump()) for item in results]
    report = build_report(listed, "payments", "1.0", "dense", 5)
    assert report.diagnosis_counts == build_report(results).diagnosis_counts


def test_compare_two_pipelines(search, dataset, judge, tmp_path):
    better = {**search("x").found, "Why was my card declined twice?": ["doc_03", "doc_11"]}
    comparator = Comparator(
        k=5, judge=judge, quality_tolerance=0.02, latency_tolerance_ms=10.0, clock_factory=CLOCK
    )
    report = comparator.compare(search("dense"), search("hybrid", better), dataset)
    assert all(hasattr(report, name) for name in COMPARISON_FIELDS)
    assert (report.pipeline_a_name, report.pipeline_b_name) == ("dense", "hybrid")
    assert report.metric_deltas.recall_at_k == 0.1667
    assert report.metric_deltas.mean_retrieval_ms == 0.0
    assert report.diagnosis_deltas["PASS"] == 1
    assert report.query_type_deltas["reasoning"].recall_at_k == 0.5
    assert [query.outcome for query in report.query_outcomes] == [
        *("unchanged", "improved", "unchanged")
    ]
    assert (report.queries_improved, report.queries_regressed) == (1, 0)
    assert report.queries_unchanged == 2
    assert report.winner == report.overall_winner == report.quality_winner == "hybrid"
    assert report.latency_winner == "TIE"
    assert report.trade_off == "Higher quality with comparable latency"
    assert report.summary.startswith("hybrid outperforms dense on retrieval quality")
    text = report.model_dump_json(indent=2)
    assert set(COMPARISON_FIELDS) <= set(json.loads(text))
    assert ComparisonReport.model_validate_json(text).winner == "hybrid"


def test_a_dataset_and_a_pipeline_from_files(pipeline_file, tmp_path):
    path = tmp_path / "golden.json"
    sample = {
        "id": "q1",
        "query": "How long do refunds take?",
        "expected_answer": "Seven days.",
        "relevant_chunk_ids": ["doc_17"],
        "query_type": "factual",
    }
    path.write_text(json.dumps({"name": "g", "version": "2", "samples": [sample]}))
    dataset, pipeline = load_dataset(path), load_pipeline(pipeline_file)
    assert (dataset.name, dataset.version, pipeline.name) == ("g", "2", "from_file")
    assert isinstance(dataset.samples[0], QuerySample)
    results = Evaluator(k=3).evaluate(pipeline, dataset)
    assert results[0].metrics["recall_at_3"] == 1.0


def test_measures_of_one_query():
    chunks = [RetrievedChunk(id=name, text="") for name in ("x", "a", "b")]
    assert precision_at_k(["a", "c"], chunks, k=2) == 0.5
    assert recall_at_k({"a", "c"}, ["x", "a", "b"], k=3) == 0.5
    assert reciprocal_rank(["b"], chunks) == pytest.approx(1 / 3)
    assert mean_reciprocal_rank([1.0, 0.5]) == 0.75


def test_every_public_name_is_there():
    for name in ragdiag.__all__:
        assert getattr(ragdiag, name) is not None, name
