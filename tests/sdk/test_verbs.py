"""``evaluate``, ``diagnose``, ``compare``."""

from __future__ import annotations

import pandas as pd
import pytest

import ragdiag
from ragdiag import (
    Comparator,
    Comparison,
    ComparisonError,
    EvaluationInterrupted,
    GoldenDataset,
    PipelineLoadError,
    Results,
    Rule,
    RunError,
    Settings,
    SettingsError,
    compare,
    diagnose,
    evaluate,
)
from ragdiag.errors import DatasetLoadError
from ragdiag.testing import FixedClock

SHORT = Rule("SHORT", "warning", lambda f: f["n_retrieved"] < 3, reason="Few.", action="More.")


def test_evaluate_takes_what_people_have(search, dataset, pipeline_file, tmp_path):
    assert evaluate(search("p"), dataset).name == "p"
    assert evaluate(pipeline_file, dataset).name == "from_file"
    assert evaluate(str(pipeline_file), dataset).name == "from_file"
    assert evaluate(lambda query: [("doc_17", "Seven days.")], dataset)["q1"].status == "completed"
    frame = dataset.frame.assign(relevant_chunk_ids=[["doc_17"], ["doc_03"], ["doc_05"]])
    assert len(evaluate(search("p"), frame)) == 3
    path = tmp_path / "golden.csv"
    frame.assign(relevant_chunk_ids='["doc_17"]').to_csv(path, index=False)
    assert len(evaluate(search("p"), path)) == 3
    with pytest.raises(DatasetLoadError):
        evaluate(search("p"), tmp_path / "missing.json")


def test_settings_are_checked_before_anything_is_called(search, dataset):
    pipeline = search("p")
    with pytest.raises(SettingsError, match="k must be"):
        evaluate(pipeline, dataset, k=0)
    with pytest.raises(SettingsError, match="rules must hold"):
        evaluate(pipeline, dataset, rules=["no rule"])
    assert pipeline.calls == 0


def test_settings_reach_the_results(search, dataset):
    results = evaluate(
        search("p"),
        dataset,
        k=2,
        rank_threshold=1,
        latency_threshold_ms=5.0,
        precision_denominator="k",
        rules=[SHORT],
        clock_factory=FixedClock(retrieval_ms=6.0),
    )
    assert results.settings == Settings(
        k=2, rank_threshold=1, latency_threshold_ms=5.0, precision_denominator="k"
    )
    assert results["q1"].diagnosis.category == "LATENCY_OUTLIER"
    assert [rule.name for rule in results.rules] == ["SHORT"]


def test_a_judge_may_be_a_word(search, dataset):
    results = evaluate(search("p"), dataset, judge="lexical")
    assert results.frame["screened"].fillna(False).any()


def test_an_interrupt_gives_what_had_finished(search, dataset):
    class Impatient(search):
        def retrieve(self, query):
            if self.calls == 1:
                raise KeyboardInterrupt
            return super().retrieve(query)

    with pytest.raises(EvaluationInterrupted) as interrupt:
        evaluate(Impatient("p"), dataset, k=3, workers=0)
    assert isinstance(interrupt.value.results, Results)
    assert interrupt.value.results.k == 3
    assert interrupt.value.results.frame["status"].notna().sum() == 1


def test_diagnose_calls_nothing(search, dataset, tmp_path):
    pipeline = search("p")
    results = evaluate(pipeline, dataset)
    path = tmp_path / "run.jsonl"
    results.run.save(path)
    for given in (results, results.run, path, str(path)):
        again = diagnose(given, k=2, rank_threshold=1, rules=[SHORT])
        assert (again.k, again.settings.rank_threshold) == (2, 1)
        assert len(again) == 3
    assert pipeline.calls == 3
    with pytest.raises(SettingsError):
        diagnose(results, latency_threshold_ms=0)


def test_diagnose_with_the_labels_of_another_dataset(search, dataset):
    results = evaluate(search("p"), dataset)
    assert results["q2"].diagnosis.category == "INSUFFICIENT_CONTEXT"
    corrected = GoldenDataset(
        name="payments",
        version="1.1",
        samples=[
            sample.model_copy(update={"relevant_chunk_ids": ["doc_03"], "grades": {}})
            if sample.id == "q2"
            else sample
            for sample in dataset.samples
        ],
    )
    again = diagnose(results, corrected)
    assert again["q2"].diagnosis.category == "PASS"
    assert again.dataset_version == "1.1"
    assert again["q1"].generated_answer == results["q1"].generated_answer
    smaller = GoldenDataset(name="payments", version="1", samples=dataset.samples[:2])
    with pytest.raises(RunError, match=r"1 queries that dataset 'payments' does not have.*'q3'"):
        diagnose(results, smaller)


def test_compare_results_runs_files_and_pipelines(search, dataset, tmp_path):
    a, b = (evaluate(search(name), dataset) for name in ("a", "b"))
    run_file, results_file = tmp_path / "run.jsonl", tmp_path / "results.jsonl"
    a.run.save(run_file)
    a.save(results_file)
    for first in (a, a.run, run_file, str(run_file), results_file, search("a")):
        comparison = compare(first, b, dataset=dataset)
        assert isinstance(comparison, Comparison)
        assert comparison.names == ("a", "b")
        assert comparison.queries_unchanged == 3
    assert compare(a, b, search("c"), dataset=dataset, baseline="b").baseline == "b"


def test_compare_at_one_setting_diagnoses_again(search, dataset):
    a = evaluate(search("a"), dataset, k=5)
    b = evaluate(search("b"), dataset, k=3)
    with pytest.raises(ComparisonError, match=r"compare\(a, b, k=5\)"):
        compare(a, b)
    comparison = compare(a, b, k=2)
    assert [results.k for results in comparison.results] == [2, 2]
    assert [results.k for results in (a, b)] == [5, 3]
    ruled = compare(a, b, k=2, rules=[SHORT])
    assert "SHORT" in ruled.diagnosis_deltas


def test_a_pipeline_is_seen_as_the_results_it_is_compared_with(search, dataset):
    a = evaluate(search("a"), dataset, k=2, rules=[SHORT])
    comparison = compare(a, search("b"), dataset=dataset)
    assert comparison.results[1].k == 2
    assert comparison.results[1].rules == (SHORT,)


def test_options_of_evaluate_go_through_compare(search, dataset, judge):
    comparison = compare(
        search("a"), search("b"), dataset=dataset, judge=judge, clock_factory=FixedClock()
    )
    assert comparison.pipeline_a_report.judged_queries == 2
    assert comparison.metric_deltas.mean_retrieval_ms == 0.0


def test_what_compare_refuses(search, dataset):
    results = evaluate(search("a"), dataset)
    with pytest.raises(ComparisonError, match="two or more results or pipelines, got 1"):
        compare(results)
    with pytest.raises(ComparisonError, match="is a pipeline to run, which needs dataset="):
        compare(results, search("b"))
    with pytest.raises(ComparisonError, match="workers= is for running pipelines, and all 2 are"):
        compare(results, results, workers=4)
    with pytest.raises(SettingsError):
        compare(results, results, k=0)
    assert compare(results, results, judge=None).names == ("a", "a (2)")


def test_compare_finds_what_is_wrong_before_a_pipeline_is_called(search, dataset, tmp_path):
    first, second = search("a"), search("b")
    both = str(tmp_path / "both.jsonl")
    for options, message in (
        ({"names": ["a"]}, "names= has 1 names for 2 results"),
        ({"names": ["a", "a"]}, "names= must be distinct"),
        ({"baseline": 2}, "there is no side 2; there are 2"),
        ({"names": ["a", "b"], "baseline": "c"}, "no side is called 'c'"),
        ({"on": "some"}, "on must be 'all' or 'intersection', got 'some'"),
        ({"quality_tolerance": -1}, "quality_tolerance must be 0 or more, got -1"),
        ({"latency_tolerance_ms": "x"}, "latency_tolerance_ms must be 0 or more, got 'x'"),
        ({"store": both}, "store= must name 2 different files, one for each pipeline that is run"),
        ({"store": [both, both]}, "store= must name 2 different files"),
    ):
        with pytest.raises(ComparisonError, match=message):
            compare(first, second, dataset=dataset, **options)
    with pytest.raises(PipelineLoadError, match=r"missing\.py: there is no such file"):
        compare(first, tmp_path / "missing.py", dataset=dataset)
    with pytest.raises(DatasetLoadError, match="must be a GoldenDataset, a DataFrame or the path"):
        compare(first, second, dataset=[{"id": "q1"}])
    assert first.calls == second.calls == 0


def test_each_pipeline_of_a_comparison_has_its_own_store(search, dataset, tmp_path):
    stores = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    compare(search("a"), search("b"), dataset=dataset, store=stores)
    again = search("a"), search("b")
    assert compare(*again, dataset=dataset, store=stores).names == ("a", "b")
    assert [pipeline.calls for pipeline in again] == [0, 0]


def test_the_comparator_takes_results_as_well(search, dataset):
    results = evaluate(search("a"), dataset, k=3)
    comparison = Comparator(k=4).compare(results, results, dataset)
    assert comparison.k == 4


def test_the_readme_example(search, dataset):
    comparison = ragdiag.compare(search("dense"), search("hybrid"), dataset=dataset)
    assert isinstance(comparison.deltas, pd.DataFrame)
    assert comparison.select(outcome="regressed").query_ids.empty
