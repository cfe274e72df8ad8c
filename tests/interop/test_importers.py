"""Each importer on a real file, against values read off the file by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import ragdiag
from ragdiag.interop import chunk_id_of, detect, query_id_of

DOWN = "What happens when the vector store is down?"
RUSH = (
    'Which Canadian rock band released a song called "Counterparts" and had a drummer who was '
    "inducted into the Modern Drummer Hall of Fame?"
)
FORECAST = "which method of forecasting uses averages to predict future weather"
TIMEOUT = "retrieval failed: TimeoutError: vector store timed out after 30s"


class TestOpenInference:
    def test_spans_a_line(self, formats: Path, seen):
        run = ragdiag.load_run(formats / "openinference" / "llamaindex_spans.jsonl")
        first, second, third, down = seen(run)
        assert run.pipeline_name == "demo-rag"
        assert (first.query, first.status) == (RUSH, "completed")
        # The retriever appears as `retrieve` and, inside, `_retrieve`: it is counted once.
        assert first.chunk_ids == ["hp-00016", "hp-00018", "hp-00017", "hp-00019"]
        assert first.texts[0].startswith("Push-and-run, also known as a one-two")
        assert first.scores == [pytest.approx(1.0)] * 4
        assert first.answer.startswith("text text")
        # .813688 to .820874; the outermost LLM span .825261 to .826757; .812848 to .827478.
        assert first.ms == pytest.approx((7.186, 1.496, 14.63))
        assert [second.status, third.status] == ["completed", "completed"]
        assert (down.query, down.status, down.error) == (DOWN, "failed", TIMEOUT)
        assert (down.answer, down.chunk_ids) == (None, [])
        assert down.ms == (pytest.approx(1.301), None, pytest.approx(7.328))
        assert run.info["tracebacks"][down.query_id].startswith("Traceback")
        assert run.queries["trace_id"][0] == "ab80ae40abd961e6dc7f9b02a019d293"
        metadata = json.loads(run.retrieved["metadata"][0])
        assert metadata == {"title": "Push and run"}

    def test_otlp_says_the_same(self, formats: Path, seen):
        lines = ragdiag.load_run(formats / "openinference" / "llamaindex_spans.jsonl")
        run = ragdiag.load_run(formats / "openinference" / "llamaindex_otlp.json")
        by_id = {each.query_id: each for each in seen(lines)}
        both = seen(run)
        assert [each.query for each in both] == [RUSH, DOWN]
        for each in both:
            other = by_id[each.query_id]
            assert (each.chunk_ids, each.scores, each.error) == (
                other.chunk_ids,
                other.scores,
                other.error,
            )
            # Nanoseconds here, microseconds there.
            assert each.ms == pytest.approx(other.ms, abs=0.002)

    def test_spans_may_come_in_any_order(self, formats: Path, write):
        path = formats / "openinference" / "llamaindex_spans.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        forth = ragdiag.load_run(path)
        back = ragdiag.load_run(write("back.jsonl", "".join(reversed(lines))))
        order = list(reversed(range(len(forth))))
        for table in ("outcomes", "queries"):
            pd.testing.assert_frame_equal(
                getattr(forth, table), getattr(back, table).iloc[order].reset_index(drop=True)
            )

    def test_an_otlp_export_a_line(self, formats: Path, write):
        text = (formats / "openinference" / "llamaindex_otlp.json").read_text().strip()
        run = ragdiag.load_run(write("collector.jsonl", f"{text}\n{text[:-30]}\n"))
        assert len(run) == 2
        assert run.info["n_skipped"] == 1
        assert run.info["skipped"][0]["place"] == "line 2"


class TestGenAI:
    def test_documents_are_the_result_of_a_tool(self, formats: Path, seen):
        run = ragdiag.load_run(formats / "otel_genai" / "pydantic_ai_spans.jsonl")
        first, second = seen(run)
        assert first.query == RUSH
        assert first.chunk_ids == ["hp-00008", "hp-00007", "hp-00002"]
        assert first.answer == "Rush"
        # The tool .740911 to .743870; two calls of the model, 20.741 + 1.103 ms.
        assert first.ms == pytest.approx((2.959, 21.844, 29.854))
        assert (second.chunk_ids, second.answer) == (["hp-00017", "hp-00015", "hp-00012"], "Spurs")

    def test_a_retrieval_span(self, write, seen):
        span = {
            "name": "retrieval",
            "context": {"trace_id": "0x1", "span_id": "0x2"},
            "parent_id": None,
            "start_time": "2026-01-01T00:00:00Z",
            "end_time": "2026-01-01T00:00:01Z",
            "attributes": {
                "gen_ai.operation.name": "retrieval",
                "gen_ai.retrieval.query.text": "How long?",
                "gen_ai.retrieval.documents": '[{"id": "d1", "score": 0.5}, {"id": "d2"}]',
            },
        }
        run = ragdiag.load_run(write("spans.jsonl", json.dumps(span)))
        (only,) = seen(run)
        assert (only.query, only.chunk_ids) == ("How long?", ["d1", "d2"])
        assert (only.texts, only.scores, only.ms[0]) == ([None, None], [0.5, None], 1000.0)

    def test_a_trace_of_another_kind_is_told_as_such(self, formats: Path):
        with pytest.raises(ragdiag.RunFormatError, match=r"otlp_trace_example.json: nothing in it"):
            ragdiag.load_run(formats / "otel_genai" / "otlp_trace_example.json")


class TestLangSmith:
    def test_runs_a_line(self, formats: Path, seen):
        run = ragdiag.load_run(formats / "langsmith" / "langchain_runs.jsonl")
        first, down = seen(run)
        assert first.query_id == "5a7f6fd75542992e7d278cfa"  # from extra.metadata.query_id
        assert first.chunk_ids == ["hp-00008", "hp-00007", "hp-00002", "hp-00003"]
        assert first.scores == [45.884201, 44.107445, 42.891041, 42.651226]
        assert first.answer == "Rush"
        assert first.ms == pytest.approx((0.3, 0.933, 12.241))
        assert (down.query, down.status, down.error) == (DOWN, "failed", TIMEOUT)
        assert down.ms == (pytest.approx(0.736), None, pytest.approx(13.846))

    def test_a_batch_of_the_sdk(self, formats: Path, seen):
        run = ragdiag.load_run(formats / "langsmith" / "sdk_wrap_openai_batch.json")
        (only,) = seen(run)
        assert (only.query, only.answer) == ("howdy", "Howdy! How can I assist you today?")
        assert only.ms == (None, pytest.approx(1118.333), pytest.approx(1118.333))
        assert "no retrieval was recorded for 1 of 1 queries" in run.info["notes"][0]


class TestLangfuse:
    @pytest.mark.parametrize(("name", "total"), [("llamaindex", 2779.0), ("pydantic-ai", 4795.0)])
    def test_a_trace_with_observations(self, formats: Path, seen, name: str, total: float):
        run = ragdiag.load_run(formats / "langfuse" / f"{name}.trace.json")
        (only,) = seen(run)
        assert only.query == "What is Langfuse?"
        assert only.answer.startswith("Langfuse is a tool designed")
        assert only.ms[2] == total
        # Messages of a conversation are not documents.
        assert only.chunk_ids == []
        assert only.query_id in run.info["retrieval_not_recorded"]

    def test_retrievers_typed_and_untyped(self, write, seen):
        def observation(name, kind, output, **more):
            times = {"startTime": "2026-01-01T00:00:00Z", "endTime": "2026-01-01T00:00:00.5Z"}
            return {"id": name, "type": kind, "output": json.dumps(output), **times, **more}

        documents = [{"page_content": "Seven days.", "metadata": {"chunk_id": "d1"}}]
        trace = {
            "trace": {"id": "t1", "input": json.dumps(json.dumps("How long?")), "output": '"7"'},
            "observations": [
                observation("a", "SPAN", {"text": "x"}),
                observation("b", "SPAN", documents, parentObservationId="a"),
                observation("c", "RETRIEVER", ["Two weeks."], parentObservationId="a"),
                observation("d", "GENERATION", "7", parentObservationId="a"),
            ],
        }
        run = ragdiag.load_run(write("traces.jsonl", json.dumps(trace)))
        (only,) = seen(run)
        assert (only.query, only.answer) == ("How long?", "7")
        assert only.chunk_ids == ["d1", chunk_id_of("Two weeks.")]
        assert run.info["flags"] == {only.query_id: ["2 retrieval calls were merged in order"]}

    def test_an_error(self, write, seen):
        trace = {
            "id": "t1",
            "input": "How long?",
            "observations": [
                {"id": "a", "type": "GENERATION", "level": "ERROR", "statusMessage": "quota"}
            ],
        }
        (only,) = seen(ragdiag.load_run(write("traces.jsonl", json.dumps(trace))))
        assert (only.status, only.error) == ("failed", "generation failed: quota")


class TestMLflow:
    def test_traces(self, formats: Path, seen):
        run = ragdiag.load_run(formats / "mlflow" / "traces.jsonl")
        down, minister, forecast = seen(run)
        assert (down.query, down.status, down.error) == (DOWN, "failed", TIMEOUT)
        assert minister.query == "what is the role of the prime minister in canada"
        assert minister.chunk_ids == ["c50c86496402e9d53cf88c1ac309a265"]  # metadata.doc_uri
        assert minister.answer.startswith("The role of the Prime Minister in Canada is")
        assert minister.ms == pytest.approx((0.118957, 0.100349, 0.572513))
        assert forecast.query == FORECAST

    def test_assessments_become_verdicts(self, formats: Path, write):
        lines = (formats / "mlflow" / "traces.jsonl").read_text().splitlines()
        trace = json.loads(lines[1])
        trace["info"]["assessments"] = [
            {"assessment_name": "correctness", "feedback": {"value": "no"}},
            {"assessment_name": "retrieval_groundedness", "feedback": {"value": "yes"}},
            {"assessment_name": "tone", "feedback": {"value": "yes"}},
            {"assessment_name": "groundedness", "feedback": {"value": ["yes"]}},
        ]
        run = ragdiag.load_run(write("traces.jsonl", json.dumps(trace)))
        verdict = run.verdicts.iloc[0]
        assert (verdict["answer_correct"], verdict["grounded"]) == (False, True)
        assert ragdiag.diagnose(run)[0].diagnosis.category == "ANSWER_INCORRECT"

    def test_tables(self, formats: Path, seen):
        split = ragdiag.load_run(formats / "mlflow" / "eval_results_table.json")
        comma = ragdiag.load_run(formats / "mlflow" / "eval_results_table.csv")
        assert detect(formats / "mlflow" / "eval_results_table.json").format == "mlflow_table"
        first = seen(split)[0]
        assert first.query == FORECAST
        assert first.expected_answer.startswith("Seasonality, in which data experiences")
        assert [text[:30] for text in first.texts] == ["Seasonality is a characteristi"]
        assert split.queries["answer_tokens/score"].tolist()[:3] == [19, 92, 64]
        assert comma.queries["answer_tokens/score"].tolist()[:3] == [19.0, 92.0, 64.0]
        pd.testing.assert_frame_equal(split.retrieved, comma.retrieved)
        pd.testing.assert_frame_equal(split.outcomes, comma.outcomes)


class TestTruLens:
    def test_a_folder_of_spans(self, formats: Path, seen):
        run = ragdiag.load_run(formats / "trulens")
        (only,) = seen(run)
        assert run.pipeline_name == "coffee_rag"
        assert (only.query, only.expected_answer) == (
            "What is the best coffee?",
            "Like attention but with more heads.",
        )
        assert len(only.chunk_ids) == 4
        assert only.texts[0].startswith("\nStarbucks Corporation is an American")
        assert only.answer.startswith("Hello! I'm happy to help.")
        assert only.ms == pytest.approx((362.313, 1809.682, 2172.22))

    def test_one_span(self, formats: Path, seen):
        (only,) = seen(ragdiag.load_run(formats / "trulens" / "retrieval_span.json"))
        assert (len(only.chunk_ids), only.answer) == (4, None)


class TestDeepEval:
    def test_goldens_as_json_and_as_csv(self, formats: Path, seen):
        json_run = ragdiag.load_run(formats / "deepeval" / "goldens.json")
        csv_run = ragdiag.load_run(formats / "deepeval" / "goldens.csv")
        first = seen(json_run)[0]
        assert len(json_run) == 15
        assert first.query == "What is the tallest mountain in the world?"
        assert (first.answer, first.expected_answer) == ("Mount Everest", "Mount Everest")
        assert first.texts == ["Mountain heights list", "Moutain list"]
        assert first.relevant == [chunk_id_of("Geography"), chunk_id_of("Mountains")]
        for table in ("queries", "qrels", "retrieved", "outcomes"):
            pd.testing.assert_frame_equal(getattr(json_run, table), getattr(csv_run, table))

    def test_a_test_run(self, formats: Path, seen):
        run = ragdiag.load_run(formats / "deepeval" / "test_run_sample.json")
        (only,) = seen(run)
        assert only.status == "failed"
        assert only.error == (
            "generation failed: openai.RateLimitError: Rate limit exceeded for gpt-4o (tier 1)."
        )
        assert only.scores == [0.93, 0.87, 0.71]
        # The model call inside the retriever is part of the retrieval.
        assert only.ms == (2050.0, 4960.0, 11420.0)
        verdict = run.verdicts.iloc[0]
        assert (verdict["grounded"], verdict["judge"]) == (False, "deepeval: Faithfulness")

    def test_a_trace_without_a_retriever_span(self, formats: Path, seen):
        run = ragdiag.load_run(formats / "deepeval" / "llama_index_rag_trace.json")
        (only,) = seen(run)
        assert (only.query, only.chunk_ids, only.scores) == (
            "What is Python?",
            ["fixed_node_python"],
            [0.95],
        )
        assert only.ms == (None, 703.0, 705.0)

    def test_conversations_are_refused_with_the_reason(self, formats: Path):
        with pytest.raises(ragdiag.RunFormatError, match="a conversation of several turns"):
            ragdiag.load_run(formats / "deepeval" / "convo_goldens.json")


class TestRagas:
    def test_a_dataset(self, formats: Path, seen):
        run = ragdiag.load_run(formats / "ragas" / "evaluation_dataset.jsonl")
        first = seen(run)[0]
        assert len(run) == 6
        assert (first.query, first.query_id) == (FORECAST, query_id_of(FORECAST))
        assert first.chunk_ids == first.relevant == [chunk_id_of(first.texts[0])]
        assert first.answer.startswith("The document does not provide information")
        assert first.expected_answer.startswith("Seasonality, in which data experiences")
        results = ragdiag.diagnose(run)
        assert results.headline == "6 of 6 passed retrieval; answers not judged"

    def test_a_result_has_its_metrics_as_columns(self, formats: Path):
        run = ragdiag.load_run(formats / "ragas" / "evaluation_result.csv")
        assert run.queries["rouge_score(mode=fmeasure)"][0] == pytest.approx(0.24)
        plain = ragdiag.load_run(formats / "ragas" / "evaluation_dataset.jsonl")
        for table in ("qrels", "retrieved", "outcomes"):
            pd.testing.assert_frame_equal(getattr(run, table), getattr(plain, table))

    def test_names_before_version_0_2(self, write, seen):
        old = {
            "question": "How long?",
            "contexts": ["Seven days.", "Two weeks."],
            "answer": "7",
            "ground_truths": ["7 days", "a week"],
        }
        (only,) = seen(ragdiag.load_run(write("old.json", json.dumps([old]))))
        assert (only.query, only.answer, only.expected_answer) == ("How long?", "7", "7 days")
        assert only.texts == ["Seven days.", "Two weeks."]
        assert only.relevant == []

    def test_ids_where_there_are_some(self, write, seen):
        row = {
            "user_input": [{"content": "Hi", "type": "human"}, {"content": "Yes?", "type": "ai"}],
            "retrieved_contexts": ["Seven days."],
            "retrieved_context_ids": ["d1"],
            "reference_context_ids": ["d1", 7],
            "response": "7",
        }
        (only,) = seen(ragdiag.load_run(write("ids.jsonl", json.dumps(row))))
        assert (only.query, only.chunk_ids, only.relevant) == ("Hi", ["d1"], ["d1", "7"])


class TestPromptfoo:
    LABEL = "pipeline-a: Answer from context. Context: {{context}} Question: {{question}}"

    @pytest.mark.parametrize("name", ["eval_output.json", "eval_output.jsonl", "eval_output.csv"])
    def test_an_output(self, formats: Path, seen, name: str):
        path = formats / "promptfoo" / name
        run = ragdiag.load_run(path)
        forecast, mars, catalan = seen(run)
        assert run.pipeline_name == self.LABEL
        assert forecast.query == FORECAST
        assert forecast.texts == ["Seasonality is a characteristic of a time series ..."]
        assert forecast.answer.startswith("Answer from context. Context: Seasonality")
        # A failed assertion is not a failed pipeline.
        assert [each.status for each in (forecast, mars, catalan)] == ["completed"] * 3
        assert catalan.query == 'Què és <b>això</b>? "quoted", =1+1'
        assert run.queries["success"].tolist() == [True, False, False]
        assert run.queries["assertion_score"].tolist() == [1.0, 0.0, 0.0]
        other = ragdiag.load_run(path, pipeline=1)
        assert other.pipeline_name == "pipeline-a: {{question}}"
        assert seen(other)[0].answer == FORECAST
        assert repr(other.pipeline_name) in run.info["notes"][0]
        with pytest.raises(ragdiag.RunFormatError, match=r"no pipeline 'x'; it holds \['pipe"):
            ragdiag.load_run(path, pipeline="x")

    def test_an_empty_context_found_nothing(self, formats: Path):
        run = ragdiag.load_run(formats / "promptfoo" / "eval_output.jsonl")
        mars = run.queries["query_id"][1]
        assert mars not in run.retrieved["query_id"].tolist()
        assert mars not in run.info.get("retrieval_not_recorded", {})

    def test_latency_and_errors_of_the_provider(self, formats: Path, write, seen):
        run = ragdiag.load_run(formats / "promptfoo" / "eval_output.json")
        assert [each.ms[2] for each in seen(run)] == [11.0, 1.0, 1.0]
        row = {"vars": {"question": "How long?"}, "success": False, "failureReason": 2}
        failed = row | {"error": "API error: 500", "response": None, "promptIdx": 0}
        (only,) = seen(ragdiag.load_run(write("out.jsonl", json.dumps(failed))))
        assert (only.status, only.error) == ("failed", "generation failed: API error: 500")

    def test_reference_answers_of_assertions(self, write, seen):
        row = {
            "vars": {"question": "How long?", "context": ["a", "b"]},
            "response": {"output": "7"},
            "success": True,
            "promptIdx": 0,
            "testCase": {
                "assert": [
                    {"type": "contains", "value": "x"},
                    {"type": "equals", "value": "7 days"},
                ]
            },
        }
        (only,) = seen(ragdiag.load_run(write("out.jsonl", json.dumps(row))))
        assert (only.expected_answer, only.texts) == ("7 days", ["a", "b"])


class TestDatasets:
    def test_llama_index(self, formats: Path, seen):
        path = formats / "llama_index" / "embedding_qa_dataset.json"
        dataset = ragdiag.load_dataset(path)
        assert len(dataset) == 5
        assert dataset[0].query == RUSH
        assert dataset[0].relevant_chunk_ids == ["hp-00006", "hp-00004"]
        run = ragdiag.load_run(path)
        assert len(run.outcomes) == 0
        assert "5 of 5 queries have not been run" in ragdiag.diagnose(run).notes

    def test_autorag(self, formats: Path):
        for path in (formats / "autorag", formats / "autorag" / "qa.parquet"):
            dataset = ragdiag.load_dataset(path)
            assert dataset[0].relevant_chunk_ids == ["hp-00006", "hp-00004"]
            assert [sample.expected_answer for sample in dataset][:3] == ["Rush", "Spurs", "1974"]

    def test_autorag_results_are_a_run(self, tmp_path: Path, seen):
        frame = pd.DataFrame(
            {
                "qid": ["q1"],
                "query": ["How long?"],
                "retrieval_gt": [[["d1", "d9"], ["d2"]]],
                "generation_gt": [["7 days"]],
                "retrieved_ids": [["d2", "d1"]],
                "retrieved_contents": [["Two.", "One."]],
                "retrieve_scores": [[0.9, 0.1]],
                "generated_texts": ["7"],
            }
        )
        frame.to_parquet(tmp_path / "0.parquet")
        run = ragdiag.load_run(tmp_path / "0.parquet")
        (only,) = seen(run)
        assert (only.chunk_ids, only.scores, only.answer) == (["d2", "d1"], [0.9, 0.1], "7")
        assert only.relevant == ["d1", "d9", "d2"]
        assert "1 queries accept one of several chunks" in run.info["notes"][0]

    @pytest.mark.parametrize("name", ["ragas/evaluation_result.csv", "deepeval/goldens.json"])
    def test_datasets_in_files_of_runs(self, formats: Path, name: str):
        dataset = ragdiag.load_dataset(formats / name)
        run = ragdiag.load_run(formats / name)
        pd.testing.assert_frame_equal(
            dataset.qrels.reset_index(drop=True), run.qrels.reset_index(drop=True)
        )
        assert dataset.frame["query"].tolist() == run.queries["query"].tolist()
