"""What a file is taken for, and how that is overruled."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import ragdiag
from ragdiag.interop import FORMATS, Detection, detect

FOUND = {
    "openinference/llamaindex_spans.jsonl": "openinference",
    "openinference/llamaindex_otlp.json": "openinference",
    "otel_genai/pydantic_ai_spans.jsonl": "otel_genai",
    "otel_genai/otlp_trace_example.json": "otlp",
    "langsmith/langchain_runs.jsonl": "langsmith",
    "langsmith/sdk_wrap_openai_batch.json": "langsmith",
    "langfuse/llamaindex.trace.json": "langfuse",
    "mlflow/traces.jsonl": "mlflow",
    "mlflow/eval_results_table.json": "mlflow_table",
    "mlflow/eval_results_table.csv": "mlflow_table",
    "trulens": "trulens",
    "trulens/record_root_span.json": "trulens",
    "deepeval/goldens.json": "deepeval",
    "deepeval/goldens.csv": "deepeval",
    "deepeval/convo_goldens.json": "deepeval",
    "deepeval/test_run_sample.json": "deepeval",
    "deepeval/llama_index_rag_trace.json": "deepeval",
    "promptfoo/eval_output.json": "promptfoo",
    "promptfoo/eval_output.jsonl": "promptfoo",
    "promptfoo/eval_output.csv": "promptfoo",
    "llama_index/embedding_qa_dataset.json": "llama_index",
    "autorag": "autorag",
    "autorag/qa.parquet": "autorag",
    "ragas/evaluation_dataset.jsonl": "ragas",
    "ragas/evaluation_result.csv": "ragas",
}


@pytest.mark.parametrize(("name", "format"), FOUND.items())
def test_every_export_is_told_and_says_why(formats: Path, name: str, format: str):
    found = detect(formats / name)
    assert found.format == format
    assert found.format in FORMATS
    assert "'" in found.why or "folder" in found.why


def test_the_reason_is_kept_with_the_run(formats: Path):
    run = ragdiag.load_run(formats / "ragas" / "evaluation_dataset.jsonl")
    assert run.info["format"] == "ragas"
    assert run.info["detected"] == "fields 'user_input' and 'retrieved_contexts'"


def test_a_packed_file_is_the_same(formats: Path, write):
    text = (formats / "ragas" / "evaluation_dataset.jsonl").read_bytes()
    path = write("data.jsonl.gz", gzip.compress(text))
    assert detect(path).format == "ragas"
    assert len(ragdiag.load_run(path)) == 6


def test_a_guess_is_overruled(write):
    # `input` and `output` of a table of ours, which looks like deepeval's.
    path = write("rows.jsonl", '{"input": "How long?", "actual_output": "7", "query": "Who?"}')
    assert detect(path) == Detection("deepeval", "fields 'input' and 'actual_output'")
    assert ragdiag.load_run(path).queries["query"].tolist() == ["How long?"]
    run = ragdiag.load_run(path, "table")
    assert run.queries["query"].tolist() == ["Who?"]
    assert "detected" not in run.info


def test_unknown_formats_are_listed(write):
    path = write("rows.jsonl", '{"query": "Who?"}')
    with pytest.raises(
        ragdiag.RunFormatError, match=r"unknown format 'nope'; formats are 'auto', "
    ):
        ragdiag.load_run(path, "nope")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", '{"a": 1, "b": 2}', "a lines file with the fields 'a', 'b'"),
        ("a.csv", "a,b\n1,2\n", "a csv file with the fields 'a', 'b'"),
        ("a.json", "[]", "a document file with the fields none"),
        ("a.txt", "Dear Sir,", "text that begins 'Dear Sir,'"),
        ("a.txt", "", "text that begins ''"),
    ],
)
def test_what_is_not_known_is_described(write, name: str, text: str, said: str):
    path = write(name, text)
    with pytest.raises(ragdiag.RunFormatError) as raised:
        detect(path)
    message = str(raised.value)
    assert said in message
    assert str(path) in message
    assert "format= takes one of" in message


def test_a_folder_of_nothing(tmp_path: Path):
    (tmp_path / "notes.md").write_text("x")
    with pytest.raises(ragdiag.RunFormatError, match=r"a folder with notes\.md"):
        detect(tmp_path)


def test_nothing_there(tmp_path: Path):
    with pytest.raises(ragdiag.RunFormatError, match="there is no such file or folder"):
        ragdiag.load_run(tmp_path / "none.jsonl")


def test_our_own_run_by_name_and_by_itself(formats: Path, tmp_path: Path):
    run = ragdiag.load_run(formats / "ragas" / "evaluation_dataset.jsonl")
    run.save(tmp_path / "run.jsonl")
    assert detect(tmp_path / "run.jsonl").format == "ragdiag"
    for format in ("auto", "ragdiag"):
        again = ragdiag.load_run(tmp_path / "run.jsonl", format)
        assert again.retrieved.equals(run.retrieved)
        assert dict(again.info) == dict(run.info)


def test_pipeline_is_for_files_with_several(formats: Path):
    with pytest.raises(ragdiag.RunFormatError, match="pipeline= is for files with several"):
        ragdiag.load_run(formats / "ragas" / "evaluation_dataset.jsonl", pipeline=1)


def test_a_pretty_printed_document_is_no_file_of_lines(write):
    row = {"user_input": "Who?", "retrieved_contexts": ["Me."]}
    for name in ("a.json", "b.txt"):
        path = write(name, json.dumps([row, row], indent=2))
        assert len(ragdiag.load_run(path)) == 2
    lines = "\n".join([json.dumps(row)] * 3)
    assert len(ragdiag.load_run(write("c.json", lines))) == 3
