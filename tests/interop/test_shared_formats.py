"""Every file of the developers' data, whole; the committed extracts are parts of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import ragdiag

#: File, queries, failed, chunks retrieved, labels, and the last query's total milliseconds.
WHOLE = [
    ("openinference/llamaindex_spans.jsonl", 4, 1, 12, 0, 7.328),
    ("openinference/llamaindex_otlp.json", 4, 1, 12, 0, 7.328515),
    ("otel_genai/pydantic_ai_spans.jsonl", 2, 0, 6, 0, 8.328),
    ("langsmith/langchain_runs.jsonl", 4, 1, 12, 0, 13.846),
    ("langsmith/sdk_wrap_openai_batch.json", 1, 0, 0, 0, 1118.333),
    ("langfuse/langgraph-python.trace.json", 1, 0, 0, 0, 2610.0),
    ("langfuse/llamaindex.trace.json", 1, 0, 0, 0, 2779.0),
    ("langfuse/pydantic-ai.trace.json", 1, 0, 0, 0, 4795.0),
    ("mlflow/traces.jsonl", 4, 1, 3, 0, 53.238583),
    ("mlflow/eval_results_table.json", 5, 0, 5, 0, None),
    ("mlflow/eval_results_table.csv", 5, 0, 5, 0, None),
    ("trulens/otel_tru_llama_smoke.csv", 1, 0, 3, 0, 3.622),
    ("trulens", 2, 0, 7, 0, 3.622),
    ("deepeval/goldens.json", 15, 0, 17, 30, None),
    ("deepeval/goldens.csv", 15, 0, 17, 30, None),
    ("deepeval/test_run_sample.json", 1, 1, 3, 0, 11420.0),
    ("deepeval/llama_index_rag_trace.json", 1, 0, 1, 0, 705.0),
    ("promptfoo/eval_output.json", 3, 0, 2, 0, 1.0),
    ("promptfoo/eval_output.jsonl", 3, 0, 2, 0, 1.0),
    ("promptfoo/eval_output.csv", 3, 0, 2, 0, None),
    ("ragas/evaluation_dataset.jsonl", 6, 0, 6, 6, None),
    ("ragas/evaluation_dataset.csv", 6, 0, 6, 6, None),
    ("ragas/evaluation_result.csv", 6, 0, 6, 6, None),
]


@pytest.mark.parametrize(("name", "queries", "failed", "chunks", "labels", "last"), WHOLE)
def test_whole_files(
    shared_data: Path, name: str, queries: int, failed: int, chunks: int, labels: int, last: float
):
    run = ragdiag.load_run(shared_data / "formats" / name)
    outcomes = run.outcomes
    assert len(run) == len(outcomes) == queries
    assert outcomes["status"].tolist().count("failed") == failed
    assert (len(run.retrieved), len(run.qrels)) == (chunks, labels)
    total = outcomes["total_ms"].iloc[-1]
    assert total != total if last is None else total == pytest.approx(last)
    assert len(ragdiag.diagnose(run)) == queries


def test_traces_meet_the_dataset_they_are_of(shared_data: Path):
    results = ragdiag.diagnose(
        shared_data / "formats" / "langsmith" / "langchain_runs.jsonl",
        shared_data / "retrieval" / "hotpotqa",
    )
    ran = results.select(lambda frame: frame["status"].notna())
    # hp-00004 and hp-00006 did not come; hp-00013 and hp-00017 did; so did hp-00021 and hp-00027.
    assert ran.frame["recall_at_5"].tolist() == [0.0, 1.0, 1.0]


def test_two_tools_agree_on_the_same_rows(shared_data: Path):
    formats = shared_data / "formats"
    ragas = ragdiag.load_run(formats / "ragas" / "evaluation_dataset.jsonl")
    mlflow = ragdiag.load_run(formats / "mlflow" / "eval_results_table.json")
    both = set(ragas.queries["query_id"]) & set(mlflow.queries["query_id"])
    assert len(both) == 5

    def of(run: ragdiag.Run) -> dict[str, str]:
        rows = run.retrieved[run.retrieved["query_id"].isin(both)]
        return dict(zip(rows["query_id"], rows["chunk_id"], strict=True))

    assert of(ragas) == of(mlflow)


def test_many_spans_are_not_held_as_they_are(shared_data: Path, tmp_path: Path):
    """Spans are cut down as they are read: the peak is far below the size of the file."""
    import tracemalloc

    lines = (shared_data / "formats" / "openinference" / "llamaindex_spans.jsonl").read_text()
    path = tmp_path / "many.jsonl"
    repeats = 60
    with path.open("w") as stream:
        for number in range(repeats):
            # Another trace id each time; span ids may repeat between traces.
            stream.write(lines.replace('"trace_id": "0x', f'"trace_id": "0x{number + 1:02x}'))
    tracemalloc.start()
    run = ragdiag.load_run(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(run) == 4 * repeats
    assert peak < path.stat().st_size
