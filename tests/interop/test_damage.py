"""Cut, malformed and hostile versions of every export: a clear error, or a listed loss."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ragdiag
from ragdiag.interop.values import MAX_LITERAL, python_literal

FILES = [
    "openinference/llamaindex_spans.jsonl",
    "openinference/llamaindex_otlp.json",
    "otel_genai/pydantic_ai_spans.jsonl",
    "langsmith/langchain_runs.jsonl",
    "langsmith/sdk_wrap_openai_batch.json",
    "langfuse/llamaindex.trace.json",
    "mlflow/traces.jsonl",
    "mlflow/eval_results_table.json",
    "mlflow/eval_results_table.csv",
    "trulens/record_root_span.json",
    "deepeval/goldens.json",
    "deepeval/goldens.csv",
    "deepeval/test_run_sample.json",
    "promptfoo/eval_output.json",
    "promptfoo/eval_output.jsonl",
    "promptfoo/eval_output.csv",
    "llama_index/embedding_qa_dataset.json",
    "autorag/qa.parquet",
    "ragas/evaluation_dataset.jsonl",
    "ragas/evaluation_result.csv",
]


def read(path: Path) -> ragdiag.Run | str:
    """Return the run, or what the error says; anything but a RunFormatError is a fault of ours."""
    try:
        run = ragdiag.load_run(path)
    except ragdiag.RunFormatError as error:
        message = str(error)
    else:
        ragdiag.diagnose(run)
        return run
    assert path.name in message
    return message


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.97])
def test_cut_short(formats: Path, write, name: str, share: float):
    data = (formats / name).read_bytes()
    found = read(write(Path(name).name, data[: int(len(data) * share)]))
    if isinstance(found, ragdiag.Run) and name.endswith("l") and share:
        # A line-based file gives what was whole; the torn line is listed with its number.
        assert found.info["skipped"][-1]["place"].startswith("line ")
        assert "not valid JSON" in found.info["skipped"][-1]["reason"]


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".json")])
def test_a_document_cut_short_is_placed(formats: Path, write, name: str):
    data = (formats / name).read_bytes()
    found = read(write(Path(name).name, data[: len(data) // 2]))
    assert isinstance(found, str)
    assert "not valid JSON at line" in found
    assert "column" in found


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith("jsonl")])
def test_a_bad_line_among_good_ones_is_listed(formats: Path, write, name: str):
    lines = (formats / name).read_text().splitlines()
    whole = ragdiag.load_run(formats / name)
    lines[1:1] = ["{oops", "[1, 2]"]
    run = read(write(Path(name).name, "\n".join(lines)))
    assert isinstance(run, ragdiag.Run)
    assert len(run) == len(whole)
    places = {each["place"]: each["reason"] for each in run.info["skipped"]}
    assert places["line 2"].startswith("not valid JSON at column 2")
    assert places["line 3"] == "not an object: [1, 2]"
    assert run.info["n_skipped"] == 2
    assert sum("left out" in note for note in ragdiag.diagnose(run).notes) == 2


def test_bytes_that_are_not_utf8_are_placed(formats: Path, write):
    data = (formats / "ragas/evaluation_dataset.jsonl").read_bytes()
    at = data.index(b"\n") + 5
    found = read(write("a.jsonl", data[:at] + b"\xff" + data[at:]))
    assert isinstance(found, str)
    assert "line 2: not UTF-8: byte 0xff" in found


#: What is put in the place of a value, wherever it stands.
WRONG = [None, True, 7, -1e308, "", "text", [], {}, [None], [[]], {"": None}, "[", "{'a': "]


def _places(value: object, path: tuple = ()):
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*path, key))
    elif isinstance(value, list):
        for at in range(min(len(value), 3)):
            yield from _places(value[at], (*path, at))


def _replaced(value: object, path: tuple, new: object) -> object:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)  # type: ignore[call-overload]
    copy[path[0]] = _replaced(copy[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith((".json", "jsonl"))])
@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_a_wrong_value_anywhere(formats: Path, tmp_path: Path, name: str, data: st.DataObject):
    text = (formats / name).read_text()
    lines = name.endswith("jsonl")
    rows = [json.loads(line) for line in text.splitlines()] if lines else [json.loads(text)]
    at = data.draw(st.integers(0, len(rows) - 1))
    path = data.draw(st.sampled_from(list(_places(rows[at]))))
    rows[at] = _replaced(rows[at], path, data.draw(st.sampled_from(WRONG)))
    file = tmp_path / Path(name).name
    file.write_text("\n".join(map(json.dumps, rows)))
    read(file)


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".csv")])
@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
@given(at=st.integers(0, 10_000), junk=st.sampled_from(['"', ",", "\n", "['", "[" * 200, "\x00"]))
def test_junk_in_a_csv_file(formats: Path, tmp_path: Path, name: str, at: int, junk: str):
    text = (formats / name).read_text()
    file = tmp_path / Path(name).name
    file.write_text(text[: at % len(text)] + junk + text[at % len(text) :])
    read(file)


class TestPythonReprs:
    @pytest.mark.parametrize(
        "text",
        [
            "__import__('os').system('true')",
            "[" * 10_000 + "]" * 10_000,
            "[" * 40 + "1" + "]" * 40,
            "(lambda: 1)()",
            "array(['a'], dtype=object)",
            "['open",
            "[1 2]",
            "{[]: 1}",
            "1" + "+1" * 5000,
            "f'{1}'",
        ],
    )
    def test_nothing_is_run_and_nothing_breaks(self, text: str):
        with pytest.raises(ValueError, match="Python"):
            python_literal(text)

    def test_too_long(self):
        with pytest.raises(ValueError, match="at most"):
            python_literal("'" + "a" * MAX_LITERAL + "'")

    def test_brackets_in_texts_do_not_count(self):
        assert python_literal(repr(["(" * 100, 'it\'s "so"'])) == ["(" * 100, 'it\'s "so"']

    @given(st.lists(st.text() | st.integers() | st.none() | st.lists(st.text())))
    def test_what_python_writes_is_read(self, value: list):
        assert python_literal(repr(value)) == value


def test_deep_nesting_in_a_span(write):
    deep = "[" * 5000 + "]" * 5000
    line = (
        '{"context": {"trace_id": "1"}, "attributes": {"openinference.span.kind": "LLM", "x": %s}}'
    )
    found = read(write("deep.jsonl", line % deep))
    assert isinstance(found, str)
    nested = {"a": None}
    for _ in range(60):
        nested = {"input": nested}
    span = {
        "context": {"trace_id": "1"},
        "attributes": {"openinference.span.kind": "LLM", "input.value": json.dumps(nested)},
    }
    assert "no question" in str(read(write("nested.jsonl", json.dumps(span))))


def test_a_circle_of_parents_ends(write):
    spans = [
        {
            "context": {"trace_id": "t", "span_id": span_id},
            "parent_id": parent,
            "attributes": {"openinference.span.kind": "CHAIN", "input.value": "Who?"},
        }
        for span_id, parent in (("a1", "b1"), ("b1", "a1"), ("c1", "c1"))
    ]
    run = read(write("circle.jsonl", "\n".join(map(json.dumps, spans))))
    assert isinstance(run, ragdiag.Run)
    assert run.queries["query"].tolist() == ["Who?"]


def test_half_a_surrogate_pair(write):
    row = r'{"user_input": "Who \ud83d?", "retrieved_contexts": ["half \ud83d"], "response": "."}'
    run = read(write("half.jsonl", row))
    assert isinstance(run, ragdiag.Run)
    assert run.queries["query"][0] == "Who \ufffd?"
    assert run.retrieved["text"][0] == "half \ufffd"
