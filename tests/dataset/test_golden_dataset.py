"""``GoldenDataset`` as people use it."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import ragdiag
from ragdiag import (
    DatasetValidationError,
    ExportError,
    GoldenDataset,
    QueryNotFoundError,
    QuerySample,
    QueryType,
    load_dataset,
    validate_dataset,
)
from ragdiag.tables import QRELS, QUERIES, TEXT


@pytest.fixture
def dataset() -> GoldenDataset:
    return GoldenDataset(
        name="support",
        version="1.2",
        samples=[
            QuerySample(
                id="q1",
                query="How long do refunds take?",
                expected_answer="7 days",
                relevant_chunk_ids=["r1", {"id": "r2", "grade": 2}],
                query_type=QueryType.FACTUAL,
                team="billing",
            ),
            {"id": "q2", "query": "Why was it declined?", "query_type": "diagnosis", "hops": 2},
            QuerySample(id="q3", query="Who?", relevant_chunk_ids=["r1"]),
        ],
        description="Questions of customers",
        query_types=["diagnosis"],
    )


def test_frames_have_the_columns_of_the_tables(dataset):
    assert dataset.frame.columns.tolist() == [*QUERIES, "team", "hops"]
    assert dataset.frame.index.equals(pd.RangeIndex(3))
    assert dataset.qrels.columns.tolist() == list(QRELS)
    for frame, spec in ((dataset.frame, QUERIES), (dataset.qrels, QRELS)):
        assert all(frame[name].dtype == dtype for name, dtype in spec.items())
    assert dataset.frame["team"].dtype == TEXT


def test_frames_are_copies(dataset):
    frame, qrels = dataset.frame, dataset.qrels
    frame.loc[0, "query"] = "changed"
    qrels.loc[0, "grade"] = 9
    dataset.samples.clear()

    assert dataset.samples[0].query == "How long do refunds take?"
    assert dataset.qrels["grade"].tolist() == [1, 2, 1]


def test_attributes_cannot_be_set(dataset):
    with pytest.raises(AttributeError):
        dataset.name = "other"


def test_samples_come_back_as_models(dataset):
    first, second, third = dataset

    assert first.grades == {"r1": 1, "r2": 2}
    assert first.query_type is QueryType.FACTUAL
    assert first.metadata == {"team": "billing"}
    assert second.query_type == "diagnosis"
    assert second.expected_answer is None
    assert third == dataset.samples[2]


def test_items(dataset):
    assert dataset[0] is dataset["q1"]
    assert dataset[-1].id == "q3"
    assert dataset[np.int64(1)].id == "q2"
    assert "q2" in dataset
    assert "q9" not in dataset
    with pytest.raises(QueryNotFoundError, match="no query has the id 'q9'"):
        dataset["q9"]
    with pytest.raises(IndexError):
        dataset[3]


def test_parts_are_datasets(dataset):
    frame = dataset.frame
    parts = [
        dataset[::2],
        dataset[["q1", "q3"]],
        dataset[[True, False, True]],
        dataset[frame["query_type"].ne("diagnosis").fillna(True)],
        dataset[np.array([True, False, True])],
    ]

    assert all(part == parts[0] for part in parts)
    assert parts[0].frame["query_id"].tolist() == ["q1", "q3"]
    assert parts[0].frame.index.tolist() == [0, 1]
    assert parts[0].qrels["query_id"].tolist() == ["q1", "q1", "q3"]
    assert dataset[["q3", "q1"]].frame["query_id"].tolist() == ["q3", "q1"]
    assert dataset[frame["query_type"] == "diagnosis"].frame["query_id"].tolist() == ["q2"]


def test_parts_that_make_no_sense(dataset):
    with pytest.raises(IndexError, match="a mask of 2 values for 3 questions"):
        dataset[[True, False]]
    with pytest.raises(TypeError, match="expected a position, an id, a slice, a mask or ids"):
        dataset[1.5]
    with pytest.raises(DatasetValidationError, match="no question is left"):
        dataset[:0]


def test_equality_is_that_of_content(dataset):
    same = GoldenDataset("support", "1.2", dataset, dataset.description, dataset.query_types)

    assert same == dataset
    assert hash(same) == hash(dataset)
    assert dataset != GoldenDataset("support", "1.3", dataset, query_types="any")
    assert dataset != dataset[:2]
    assert dataset != "support"
    assert copy.deepcopy(dataset) == dataset
    assert pickle.loads(pickle.dumps(dataset)) == dataset


def test_digest_depends_on_content_alone(dataset):
    renamed = GoldenDataset("other", "2", dataset, query_types="any")
    records = [sample.model_dump() for sample in dataset]

    def digest(**changes):
        return GoldenDataset(
            "d", "1", [{**records[0], **changes}, *records[1:]], query_types="any"
        ).digest

    assert renamed.digest == dataset.digest == digest()
    assert digest(relevant_chunk_ids=["r2", "r1"]) == dataset.digest
    changes = [
        {"query": "x"},
        {"expected_answer": "x"},
        {"query_type": "reasoning"},
        {"grades": {"r1": 2}},
        {"team": "x"},
    ]
    assert len({dataset.digest, *(digest(**change) for change in changes)}) == 6
    # A digest that changed between releases would make every store look foreign.
    assert GoldenDataset("d", "1", [{"id": "q", "query": "é"}]).digest == (
        "8c452a68ac1427b7d601a4743909926cf1af4cad5de0521714fd3a8bc3c5cb11"
    )


def test_summary(dataset):
    summary = validate_dataset(dataset)

    assert summary == dataset.summary()
    assert summary.model_dump() == {
        "name": "support",
        "version": "1.2",
        "description": "Questions of customers",
        "total_samples": 3,
        "query_type_counts": {"factual": 1, "diagnosis": 1},
        "without_type": 1,
        "without_answer": 2,
        "without_labels": 1,
        "total_relevant": 3,
        "distinct_relevant": 2,
        "graded": True,
        "relevant_per_query": {"min": 1, "median": 1.5, "p95": 1.95, "max": 2, "mean": 1.5},
        "query_characters": {"min": 4, "median": 20, "p95": 24.5, "max": 25, "mean": 49 / 3},
        "answer_characters": {"min": 6, "median": 6, "p95": 6, "max": 6, "mean": 6},
        "metadata_columns": ["team", "hops"],
        "warnings": [],
    }


def test_summary_of_questions_alone():
    summary = GoldenDataset("d", "1", [{"id": "q", "query": "?"}]).summary()

    assert summary.relevant_per_query is None
    assert summary.answer_characters is None
    assert not summary.graded


def test_validate_says_what_it_wants():
    with pytest.raises(TypeError, match="expected a GoldenDataset, got str; see load_dataset"):
        validate_dataset("golden.json")


def test_repr(dataset):
    assert repr(dataset) == (
        "<GoldenDataset 'support', version '1.2': 3 queries (1 factual, 1 diagnosis), "
        "3 relevant chunks>"
    )
    doubtful = GoldenDataset("d", "1", [{"id": case, "query": "?"} for case in "aA"])
    assert repr(doubtful) == (
        "<GoldenDataset 'd', version '1': 2 queries, 0 relevant chunks; 1 warnings, see .warnings>"
    )


def test_samples_must_be_samples():
    with pytest.raises(DatasetValidationError, match=r"samples\[1\]: must be a QuerySample or a"):
        GoldenDataset("d", "1", [{"id": "q", "query": "?"}, "q2"])


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_save_and_load(dataset, tmp_path, suffix):
    path = dataset.save(tmp_path / f"golden{suffix}")

    again = load_dataset(path, strict=False, query_types=["diagnosis"])

    assert again.samples == dataset.samples
    assert again.digest == dataset.digest
    pd.testing.assert_frame_equal(again.frame, dataset.frame)
    assert (again == dataset) == (suffix == ".json")
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


def test_saved_json_is_the_published_format(tmp_path, sample, write_json):
    dataset = load_dataset(write_json(sample(1), sample(2)))

    text = dataset.save(tmp_path / "again.json").read_text()

    assert text.startswith('{\n  "name": "golden",\n  "version": "1",\n')
    assert '"relevant_chunk_ids": ["c1"]' in text
    assert load_dataset(tmp_path / "again.json") == dataset


def test_metadata_of_other_types_is_saved_as_json_has_it(tmp_path):
    frame = pd.DataFrame({"id": ["a"], "query": ["b"], "when": pd.to_datetime(["2024-05-01"])})
    frame["array"] = [np.arange(2)]
    frame["set"] = [{"y", "x"}]
    frame["number"] = pd.Series([np.float32(0.5)], dtype=object)
    frame["other"] = [complex(1, 2)]

    path = GoldenDataset.from_frame(frame).save(tmp_path / "golden.jsonl")

    assert load_dataset(path).samples[0].metadata == {
        "when": "2024-05-01T00:00:00",
        "array": [0, 1],
        "set": ["x", "y"],
        "number": 0.5,
        "other": "(1+2j)",
    }


def test_what_cannot_be_saved(dataset, tmp_path):
    with pytest.raises(ExportError, match=r"saved as \.json or \.jsonl, got '\.csv'"):
        dataset.save(tmp_path / "golden.csv")
    with pytest.raises(ExportError, match="cannot be written"):
        dataset.save(tmp_path / "none" / "golden.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(ExportError, match="cannot be written"):
        dataset.save(tmp_path / "folder.json")
    infinite = GoldenDataset("d", "1", [{"id": "q", "query": "?", "x": float("inf")}])
    with pytest.raises(ExportError, match="metadata that JSON cannot hold"):
        infinite.save(tmp_path / "golden.json")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.json"]


def test_keys_of_nested_metadata_must_be_text(faults_of):
    record = {"id": "q", "query": "?", "map": {"a": {1: "x"}}}

    assert faults_of(GoldenDataset, "d", "1", [record]) == (
        "samples[0] (id 'q'): map.a: has the key 1, and keys are text; remove it",
    )


def test_a_hundred_thousand_samples():
    count = 100_000
    frame = pd.DataFrame({"id": range(count), "query": "what?", "labels": [["c"]] * count})

    dataset = GoldenDataset.from_frame(frame, {"labels": "relevant_chunk_ids"})

    assert len(dataset) == len(dataset.qrels) == count
    assert dataset.frame["query_id"].iloc[-1] == "99999"


def test_public_names():
    assert ragdiag.GoldenDataset is GoldenDataset
    assert ragdiag.dataset.load_dataset is load_dataset
