"""Results, diagnosis and files where relevance is known as passages."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ragdiag
from ragdiag.display import text as shown

PASSAGE = "Refunds are paid back to the card within seven working days."
OTHER = "Fees for currency conversion are not refunded in any case."
NOISE = "Parcels are handed to the carrier on the day after the order."


def category(results):
    return str(results["q1"].diagnosis.category)


def test_a_passage_that_came_passes(evaluated):
    results = evaluated(PASSAGE, [NOISE, f"Terms. {PASSAGE} More."])
    row = results.frame.iloc[0]
    assert category(results) == "PASS"
    assert row["recall_at_5"] == 1.0
    assert 0 < row["precision_at_5"] < 1
    assert row["iou_at_5"] == row["precision_at_5"]
    assert row["reciprocal_rank"] == 0.5
    assert (row["n_relevant"], row["n_found"], row["first_relevant_rank"]) == (1, 1, 2)
    assert results.chunks["relevant"].tolist() == [False, True]
    assert results.chunks["evidence_share"].tolist() == [0.0, 1.0]
    item = results["q1"]
    assert item.expected_chunk_ids == []
    assert item.relevant_ranks == [2]
    assert item.evidence[0]["covered"] == 1.0
    assert "iou_at_5" in item.metrics


def test_nothing_of_it(evaluated):
    results = evaluated([PASSAGE, OTHER], [NOISE])
    found = results["q1"].diagnosis
    assert category(results) == "WRONG_CHUNK_RETRIEVED"
    assert found.reason == (
        "None of the evidence is in the top 5, nothing of it retrieved at any rank."
    )
    assert found.evidence[-1] != "recall@5: 0.00"
    assert any(line.startswith("recall@5: 0.00 of the evidence's") for line in found.evidence)


def test_it_came_deeper(evaluated):
    results = evaluated(PASSAGE, [NOISE, NOISE, PASSAGE], k=2)
    assert category(results) == "WRONG_CHUNK_RETRIEVED"
    assert results["q1"].diagnosis.reason == (
        "None of the evidence is in the top 2, the first of it came at rank 3."
    )
    deep = results.rediagnose(k=3, rank_threshold=2)
    assert category(deep) == "WRONG_CHUNK_RANK"
    assert deep["q1"].diagnosis.reason == (
        "The first chunk with evidence came at rank 3, after the limit of 2."
    )
    assert any("c3 at rank 3 (limit 2)" in step.detail for step in deep["q1"].trail)


def test_one_of_two_passages(evaluated):
    results = evaluated([PASSAGE, OTHER], [PASSAGE, NOISE])
    assert category(results) == "INSUFFICIENT_CONTEXT"
    reason = results["q1"].diagnosis.reason
    assert reason == (
        "50% of the evidence is in the top 5 (1 of 2 passages there), the rest not retrieved."
    )
    assert results.frame["recall_at_5"][0] == pytest.approx(50 / 99)


def test_a_passage_split_over_a_border_is_named(evaluated):
    results = evaluated(PASSAGE, [f"Terms. {PASSAGE[:30]}", NOISE, f"{PASSAGE[30:]} More."], k=2)
    assert category(results) == "INSUFFICIENT_CONTEXT"
    found = results["q1"].diagnosis
    assert found.reason == (
        "48% of the evidence is in the top 2 (0 of 1 passage there), 100% with all that was "
        "retrieved; a chunk's border splits 1 of the passages that are missing."
    )
    assert any(
        "48% (a chunk's border splits it; 100% with all that was retrieved)" in line
        for line in found.evidence
    )
    passages = results.passages
    assert passages["split"].tolist() == [True]
    assert passages["rank"].tolist() == [3]
    assert passages["in_top_k"].tolist() == [False]
    whole = results.rediagnose(k=3)
    assert category(whole) == "PASS"
    assert whole.frame["recall_at_3"].tolist() == [1.0]


def test_the_threshold_is_for_the_rules(evaluated):
    results = evaluated(PASSAGE, [f"Terms. {PASSAGE[:50]}"])
    share = results.frame["recall_at_5"][0]
    assert 0.5 < share < 0.9
    assert category(results) == "INSUFFICIENT_CONTEXT"
    lenient = results.rediagnose(evidence_threshold=0.5)
    assert category(lenient) == "PASS"
    assert lenient.frame["recall_at_5"][0] == share
    assert lenient.frame["n_found"][0] == 1
    assert category(lenient.rediagnose(evidence_threshold=0.9)) == "INSUFFICIENT_CONTEXT"


def test_ids_win_unless_the_setting_says_otherwise(evaluated):
    results = evaluated(PASSAGE, [NOISE, PASSAGE], labels=["c1"])
    assert results.frame["reciprocal_rank"][0] == 1.0
    assert results["q1"].expected_chunk_ids == ["c1"]
    assert results.passages.empty
    other = results.rediagnose(relevance="evidence")
    assert other.frame["reciprocal_rank"][0] == 0.5
    assert len(other.passages) == 1
    back = other.rediagnose(relevance="ids")
    pd.testing.assert_frame_equal(back.frame[list(results.frame)], results.frame, check_dtype=False)


def test_both_kinds_in_one_dataset():
    dataset = ragdiag.GoldenDataset(
        "support",
        "1",
        [
            {"id": "a", "query": "By id?", "relevant_chunk_ids": ["c2"]},
            {"id": "b", "query": "By passage?", "evidence": [PASSAGE]},
            {"id": "c", "query": "Not at all?"},
        ],
    )
    chunks = [("c1", NOISE), ("c2", PASSAGE)]
    results = ragdiag.evaluate(lambda query: chunks, dataset, progress=False)
    assert results.frame["reciprocal_rank"].tolist()[:2] == [0.5, 0.5]
    assert results.frame["iou_at_5"].notna().tolist() == [False, True, False]
    assert results.frame["recall_at_5"].isna().tolist() == [False, False, True]
    assert results.chunks["relevant"].tolist()[:4] == [False, True, False, True]
    assert results.chunks["relevant"].isna().tolist()[4:] == [True, True]
    assert results.expected["chunk_id"].tolist() == ["c2", f"“{PASSAGE[:59]}…”"] or (
        results.expected["chunk_id"].tolist() == ["c2", f"“{PASSAGE}”"]
    )
    assert results.smallest_k()["complete_k"].tolist() == [2, 2]
    assert [item.relevant_ranks for item in results] == [[2], [2], []]
    part = results[["b", "a"]]
    assert part.frame["query_id"].tolist() == ["b", "a"]
    assert part.passages["query_id"].tolist() == ["b"]
    assert part.run.evidence["query_id"].tolist() == ["b"]
    assert results.plot_data("recall_at_k")["n"].tolist()[0] == 2


def test_without_texts_it_is_not_measured():
    run = ragdiag.Run(
        queries=pd.DataFrame({"query_id": ["q1"], "query": ["How long?"]}),
        retrieved=pd.DataFrame({"query_id": ["q1"], "rank": [1], "chunk_id": ["c1"]}),
        outcomes=pd.DataFrame({"query_id": ["q1"], "status": ["completed"]}),
        evidence=pd.DataFrame({"query_id": ["q1"], "text": [PASSAGE]}),
    )
    results = ragdiag.diagnose(run)
    assert np.isnan(results.frame["recall_at_5"][0])
    assert "WRONG_CHUNK_RETRIEVED" in results.frame["not_measured"][0]
    item = results["q1"]
    assert item.evidence[0]["covered"] is None
    assert any("could not be compared with the evidence" in step.detail for step in item.trail)
    assert results.chunks["relevant"].isna().all()
    assert any(note.startswith("retrieval of 1 queries not measured") for note in results.notes)
    assert "not measured" in shown.render(item)


def test_a_failed_query_has_no_measures():
    def fails(query):
        raise OSError("down")

    dataset = ragdiag.GoldenDataset("s", "1", [{"id": "q1", "query": "?", "evidence": [PASSAGE]}])
    results = ragdiag.evaluate(fails, dataset, progress=False)
    assert category(results) == "UNKNOWN"
    assert np.isnan(results.frame["recall_at_5"][0])
    assert results["q1"].metrics == {}


def test_files_keep_evidence(evaluated, tmp_path):
    span = {"document": "terms", "start": 0, "end": len(PASSAGE), "text": PASSAGE}
    results = evaluated(
        [span, OTHER],
        [(PASSAGE, {"document": "terms", "start": 0, "end": 40})],
        evidence_threshold=0.5,
    )
    results.save(tmp_path / "results.jsonl")
    again = ragdiag.load_results(tmp_path / "results.jsonl")
    assert again.settings == results.settings
    pd.testing.assert_frame_equal(again.run.evidence, results.run.evidence)
    pd.testing.assert_frame_equal(again.frame, results.frame)
    pd.testing.assert_frame_equal(again.passages, results.passages)


def test_a_store_keeps_evidence(tmp_path):
    dataset = ragdiag.GoldenDataset("s", "1", [{"id": "q1", "query": "?", "evidence": [PASSAGE]}])
    store = tmp_path / "run.jsonl"
    first = ragdiag.evaluate(lambda q: [("a", PASSAGE)], dataset, store=store, progress=False)
    run = ragdiag.load_run(store)
    pd.testing.assert_frame_equal(run.evidence, dataset.evidence)
    assert ragdiag.diagnose(run).frame["recall_at_5"].tolist() == [1.0]
    assert first.frame["recall_at_5"].tolist() == [1.0]


def test_a_recorded_run_is_seen_with_a_datasets_evidence():
    rows = pd.DataFrame(
        {"query_id": ["q1"], "query": ["?"], "retrieved_chunks": [[{"id": "c", "text": PASSAGE}]]}
    )
    dataset = ragdiag.GoldenDataset("s", "1", [{"id": "q1", "query": "?", "evidence": [PASSAGE]}])
    assert ragdiag.diagnose(rows, dataset).frame["recall_at_5"].tolist() == [1.0]


def test_pipelines_with_other_chunks_compare(evaluated):
    whole = evaluated(PASSAGE, [PASSAGE])
    parts = evaluated(PASSAGE, [PASSAGE[:30], PASSAGE[30:]], k=5)
    comparison = ragdiag.compare(whole, parts)
    assert len(comparison.outcomes) == 1
    with pytest.raises(ragdiag.ComparisonError, match="relevant chunks of 'q1' differ"):
        ragdiag.compare(whole, evaluated(OTHER, [PASSAGE]))
    with pytest.raises(ragdiag.ComparisonError, match=r"evidence_threshold is 0\.9"):
        ragdiag.compare(whole, parts.rediagnose(evidence_threshold=0.5))


def test_a_query_shows_its_passages(evaluated):
    results = evaluated([PASSAGE, OTHER], [f"Terms. {PASSAGE[:30]}", PASSAGE], k=1)
    text = shown.render(results["q1"])
    assert "Evidence" in text
    assert "48%" in text
    html = results["q1"]._repr_html_()
    assert "with all that was retrieved" in html
    assert "Evidence" in results._repr_html_()


def test_settings_stay_quiet_about_their_defaults():
    assert repr(ragdiag.Settings()) == (
        "Settings(k=5, rank_threshold=3, latency_threshold_ms=1000.0, "
        "precision_denominator='retrieved')"
    )
    assert set(ragdiag.Settings().model_dump()) == {
        *("k", "rank_threshold", "latency_threshold_ms", "precision_denominator")
    }
    changed = ragdiag.Settings(evidence_threshold=0.5, relevance="evidence")
    assert ragdiag.Settings(**changed.model_dump()) == changed
    assert "evidence_threshold=0.5, relevance='evidence'" in repr(changed)


@pytest.mark.parametrize("value", [0, -1, 1.1, True, "0.5", None])
def test_a_threshold_is_a_share(value):
    with pytest.raises(ragdiag.SettingsError, match="evidence_threshold must be above 0"):
        ragdiag.Settings(evidence_threshold=value)


def test_relevance_is_by_ids_or_evidence():
    with pytest.raises(ragdiag.SettingsError, match="relevance must be 'ids' or 'evidence'"):
        ragdiag.Settings(relevance="text")


def test_a_frame_may_carry_evidence():
    rows = pd.DataFrame(
        {
            "query_id": ["q1", "q2", "q3"],
            "query": ["?", "??", "???"],
            "evidence": [[PASSAGE], f'["{OTHER}"]', None],
            "retrieved_chunks": [[{"id": "c", "text": PASSAGE}]] * 3,
        }
    )
    results = ragdiag.diagnose(rows)
    assert results.frame["recall_at_5"].tolist()[:2] == [1.0, 0.0]
    assert results.run.evidence["query_id"].tolist() == ["q1", "q2"]
    bad = rows.assign(evidence=[[PASSAGE, 7], None, None])
    with pytest.raises(ragdiag.RunError, match=r"query 'q1': evidence\[1\]: must be a text or"):
        ragdiag.diagnose(bad)
