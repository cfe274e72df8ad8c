"""Recorded runs that meet a dataset, a judge, or another run; and the shared walker by itself."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import ragdiag
from ragdiag import GoldenDataset, Run
from ragdiag.interop.documents import Chunk
from ragdiag.interop.spans import Span, TraceCollector
from ragdiag.judging import judged


@pytest.fixture
def questions() -> GoldenDataset:
    return GoldenDataset.from_frame(
        pd.DataFrame(
            {
                "query_id": ["a", "b", "c", "d"],
                "query": ["How long?", "How  much?", "Who?", "Who?"],
                "relevant_chunk_ids": [["x"], ["y"], ["x"], ["x"]],
            }
        ),
        name="golden",
    )


def recorded(*asked: str, **columns: list) -> Run:
    return Run.from_frame(
        pd.DataFrame({"query": list(asked), "retrieved_chunk_ids": [["x"]] * len(asked), **columns})
    )


class TestDatasets:
    def test_by_the_text_of_the_question(self, questions: GoldenDataset):
        run = recorded("How much?", "How long?\n", error=["boom", None])
        results = ragdiag.diagnose(run, questions)
        assert results.dataset_name == "golden"
        category = results.frame.set_index("query_id")["category"]
        assert category["a"] == "PASS"
        assert category["b"] == "UNKNOWN"
        assert category[["c", "d"]].isna().all()
        assert any(note.startswith("2 queries were found in the data") for note in results.notes)

    def test_what_does_not_fit_is_left_out_and_counted(self, questions: GoldenDataset):
        run = recorded("How long?", "Where?", "How long?", "Who?")
        notes = " ".join(ragdiag.diagnose(run, questions).notes)
        # "Who?" stands for two questions of the dataset, so it is neither.
        assert "2 queries of the run left out: not in the dataset" in notes
        assert "1 queries of the run left out: asked before, the first counts" in notes

    def test_nothing_in_common(self, questions: GoldenDataset):
        with pytest.raises(ragdiag.RunError, match="nor by the text of the question"):
            ragdiag.diagnose(recorded("Where?"), questions)

    def test_ids_come_first(self, questions: GoldenDataset):
        run = Run.from_frame(
            pd.DataFrame({"query_id": ["b"], "query": ["How long?"], "retrieved_texts": [["t"]]})
        )
        results = ragdiag.diagnose(run, questions)
        assert results.run.outcomes["query_id"].tolist() == ["b"]
        assert any("they may not be ids of the same chunks" in note for note in results.notes)

    def test_a_run_of_ours_has_to_fit(self, questions: GoldenDataset):
        run = Run.from_frame(pd.DataFrame({"query_id": ["z"], "query": ["How long?"]}))
        with pytest.raises(ragdiag.RunError, match="queries that dataset 'golden' does not have"):
            ragdiag.diagnose(run, questions)

    def test_what_is_kept_by_query_follows(self, formats: Path):
        path = formats / "openinference" / "llamaindex_spans.jsonl"
        run = ragdiag.load_run(path)
        down = run.queries["query"][3]
        frame = pd.DataFrame({"query_id": ["down"], "query": [down], "relevant_chunk_ids": [["x"]]})
        results = ragdiag.diagnose(path, frame)
        assert list(results.run.info["tracebacks"]) == ["down"]


class TestRetrievalNotRecorded:
    def test_it_is_not_measured_though_labels_are_there(self, formats: Path):
        path = formats / "langsmith" / "sdk_wrap_openai_batch.json"
        frame = pd.DataFrame({"query_id": ["q"], "query": ["howdy"], "relevant_chunk_ids": [["x"]]})
        results = ragdiag.diagnose(path, frame)
        assert results.frame["recall_at_5"].isna().all()
        assert "WRONG_CHUNK_RETRIEVED" in results.frame["not_measured"][0]
        assert results.expected["in_top_k"].isna().all()

    def test_a_retrieval_that_found_nothing_is(self, questions: GoldenDataset):
        run = recorded("How long?", retrieved_chunk_ids=[[]])
        results = ragdiag.diagnose(run, questions)
        assert results["a"].diagnosis.category == "WRONG_CHUNK_RETRIEVED"


class TestJudging:
    def test_verdicts_come_and_the_rest_stays(self, formats: Path):
        run = ragdiag.load_run(formats / "ragas" / "evaluation_dataset.jsonl")
        asked = run.judge("lexical", progress=False)
        assert len(asked.verdicts) == 6
        assert asked.info["judge"]["judge"] == "lexical"
        for table in ("queries", "qrels", "retrieved", "outcomes"):
            pd.testing.assert_frame_equal(getattr(asked, table), getattr(run, table))
        assert ragdiag.diagnose(asked).counts().loc["ANSWER_INCORRECT", "queries"] == 1

    def test_failed_queries_are_not_asked_about(self, formats: Path):
        run = ragdiag.load_run(formats / "openinference" / "llamaindex_spans.jsonl")
        asked = judged(run, "lexical", progress=False)
        assert len(asked.verdicts) == 3
        assert asked.outcomes.equals(run.outcomes)

    def test_nothing_to_judge(self):
        with pytest.raises(ragdiag.RunError, match="nothing to judge"):
            recorded("How long?").judge("lexical")


class TestWalker:
    def record(self, *spans: Span):
        traces = TraceCollector()
        for span in spans:
            traces.add(span)
        return next(traces.records())

    def test_retrievals_are_merged_in_order_of_time(self):
        record = self.record(
            Span("t", "root", None, question="Who?"),
            Span("t", "late", "root", "retriever", 50, 60, chunks=[Chunk("c", None)]),
            Span("t", "early", "root", "retriever", 10, 30, chunks=[Chunk("a", None)]),
            Span("t", "inner", "early", "retriever", 15, 20, chunks=[Chunk("b", None)]),
        )
        assert [chunk.id for chunk in record.chunks] == ["a", "c"]
        assert record.n_retrievals == 2
        assert record.retrieval_ms == 30 / 1e6

    def test_an_outer_retriever_that_says_nothing(self):
        record = self.record(
            Span("t", "outer", None, "retriever", 0, 10, question="Who?"),
            Span("t", "inner", "outer", "retriever", 2, 9, chunks=[Chunk("b", None)]),
        )
        assert [chunk.id for chunk in record.chunks] == ["b"]
        assert record.retrieval_ms == 10 / 1e6

    def test_times_that_overlap_count_once(self):
        record = self.record(
            Span("t", "root", None, start=0, end=100, question="Who?"),
            Span("t", "a", "root", "retriever", 0, 40, chunks=[]),
            Span("t", "b", "root", "retriever", 20, 60, chunks=[]),
            Span("t", "g", "root", "generator", 60, 90, answer="Me"),
            Span("t", "r", "a", "generator", 5, 10, answer="rewritten"),
        )
        assert (record.retrieval_ms, record.generation_ms) == (60 / 1e6, 30 / 1e6)
        assert (record.answer, record.chunks) == ("Me", [])

    def test_an_error_that_was_caught_is_no_failure(self):
        record = self.record(
            Span("t", "root", None, question="Who?", answer="Me"),
            Span("t", "a", "root", "retriever", failed=True, error="boom"),
        )
        assert (record.failed, record.answer, record.error) == (False, "Me", None)

    def test_a_failure_without_a_reason(self):
        record = self.record(Span("t", "root", None, question="Who?", failed=True))
        assert record.error == "the trace says that it failed and not of what"

    def test_a_trace_without_its_root(self):
        record = self.record(
            Span("t", "a", "gone", "retriever", 0, 10, question="Who?", chunks=[]),
        )
        assert (record.query, record.total_ms) == ("Who?", 10 / 1e6)


def test_two_recordings_of_the_same_questions_compare(formats: Path, write):
    rows = (formats / "ragas" / "evaluation_dataset.jsonl").read_text().splitlines()
    worse = [json.loads(line) for line in reversed(rows)]
    worse[0]["retrieved_contexts"] = ["Something else."]
    path = write("worse.jsonl", "\n".join(map(json.dumps, worse)))
    comparison = ragdiag.compare(formats / "ragas" / "evaluation_dataset.jsonl", path)
    outcomes = comparison.outcomes.set_index("query_id")["outcome"]
    assert outcomes.tolist().count("unchanged") == 5
    assert outcomes.tolist().count("regressed") == 1


def test_a_second_question_of_the_same_text_gets_a_number(write):
    row = '{"user_input": "Who?", "retrieved_contexts": ["a"], "response": "b"}\n'
    run = ragdiag.load_run(write("twice.jsonl", row * 3))
    ids = run.queries["query_id"].tolist()
    assert ids == [ids[0], f"{ids[0]}#2", f"{ids[0]}#3"]
    assert any("2 of 3 queries had the id of one before" in note for note in run.info["notes"])


def test_metadata_with_reserved_names_is_renamed(write):
    row = {"user_input": "Who?", "response": "Me", "category": "x", "recall_at_5": 0.5}
    run = ragdiag.load_run(write("reserved.jsonl", json.dumps(row)))
    assert run.queries["ragas_category"].tolist() == ["x"]
    assert run.queries["ragas_recall_at_5"].tolist() == [0.5]
    assert len(ragdiag.diagnose(run)) == 1
