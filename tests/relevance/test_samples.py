"""Evidence as people write it: accepted forms, faults, files."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

import ragdiag
from ragdiag.labels import passages_of

SPAN = {"document": "terms", "start": 3, "end": 8}


def dataset(*evidence, **fields):
    samples = [
        {"id": f"q{n}", "query": "How long?", "evidence": each, **fields}
        for n, each in enumerate(evidence)
    ]
    return ragdiag.GoldenDataset("s", "1", samples)


@pytest.mark.parametrize(
    ("given", "n"),
    [
        (None, 0),
        ([], 0),
        ("Seven days.", 1),
        (SPAN, 1),
        ([SPAN, "Seven days.", {"text": "No fees."}, {**SPAN, "start": 2, "text": "seven "}], 4),
        ((SPAN,), 1),
        (np.array(["one text", "another"], dtype=object), 2),
        ([{**SPAN, "text": None}], 1),
    ],
)
def test_accepted_forms(given, n):
    assert len(dataset(given).evidence) == n


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (7, "evidence: must be a list of texts or of"),
        ([7], "evidence[0]: must be a text or"),
        ([{}], "evidence[0]: must be a text or"),
        ([{"page": 3}], "evidence[0]: must be a text or"),
        ([""], "evidence[0]: text must not be empty"),
        ([{"document": "terms"}], "evidence[0]: start is missing; a place is"),
        ([{"start": 1, "end": 2}], "evidence[0]: document is missing; a place is"),
        ([{**SPAN, "document": " "}], "evidence[0]: document must not be empty"),
        ([{**SPAN, "start": -1}], "evidence[0]: start must be a whole number from 0 on, got -1"),
        ([{**SPAN, "end": "8"}], "evidence[0]: end must be a whole number from 0 on, got '8'"),
        (
            [{**SPAN, "end": 3}],
            "end must be greater than start, got start 3 and end 3",
        ),
        (
            [{**SPAN, "text": "seven days"}],
            "the text has 10 characters and the place 5",
        ),
        (["one", "one"], "evidence[1]: repeats a passage; name it once"),
    ],
)
def test_faults_say_where_and_what(given, fault):
    with pytest.raises(ragdiag.DatasetValidationError) as caught:
        dataset("fine", given)
    assert len(caught.value.faults) == 1
    assert caught.value.faults[0].startswith("samples[1] (id 'q1'): evidence")
    assert fault in caught.value.faults[0]


def test_a_sample_checks_its_evidence_too():
    sample = ragdiag.QuerySample(id="q", query="?", evidence=["Seven days.", SPAN])
    assert sample.evidence == [{"text": "Seven days."}, SPAN]
    with pytest.raises(ValidationError, match="end must be greater"):
        ragdiag.QuerySample(id="q", query="?", evidence=[{**SPAN, "end": 1}])


def test_numbers_name_documents_where_ids_may_be_numbers():
    assert passages_of([{**SPAN, "document": 7}], numbers=True)[0][0]["document"] == "7"
    assert passages_of([{**SPAN, "document": 7}], numbers=False)[1]


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_files_keep_it(tmp_path, suffix):
    given = dataset(["Seven days.", {**SPAN, "text": "seven"}], SPAN)
    path = given.save(tmp_path / f"data{suffix}")
    again = ragdiag.load_dataset(path, strict=False)
    pd.testing.assert_frame_equal(again.evidence, given.evidence)
    assert again.digest == given.digest
    assert again.samples == given.samples


def test_a_strict_file_takes_evidence_for_a_label(tmp_path):
    sample = {"id": "q1", "query": "?", "expected_answer": "7", "query_type": "factual"}
    path = tmp_path / "data.json"
    content = {"name": "s", "version": "1", "samples": [{**sample, "evidence": ["Seven days."]}]}
    path.write_text(json.dumps(content), encoding="utf-8")
    assert len(ragdiag.load_dataset(path).evidence) == 1
    path.write_text(json.dumps({**content, "samples": [sample]}), encoding="utf-8")
    with pytest.raises(ragdiag.DatasetValidationError, match="names no relevant chunk"):
        ragdiag.load_dataset(path)


def test_a_csv_cell_is_a_list_as_json(tmp_path):
    path = tmp_path / "data.csv"
    cells = json.dumps(["Seven days.", SPAN])
    pd.DataFrame({"id": ["q1"], "query": ["?"], "evidence": [cells]}).to_csv(path, index=False)
    assert len(ragdiag.load_dataset(path).evidence) == 2


def test_parquet_holds_structs(tmp_path):
    path = tmp_path / "data.parquet"
    spans = [[SPAN], [{**SPAN, "text": "seven"}]]
    pd.DataFrame({"id": ["q1", "q2"], "query": ["?", "!"], "evidence": spans}).to_parquet(path)
    assert ragdiag.load_dataset(path).evidence["text"].isna().tolist() == [True, False]


def test_the_digest_knows_evidence_and_a_part_keeps_its_own():
    bare = dataset(None, None)
    assert dataset("a passage", None).digest != bare.digest
    given = dataset("first", "second")
    assert given[["q1"]].evidence["text"].tolist() == ["second"]
    harmed = given.evidence
    harmed.loc[:, "text"] = "x"
    assert given.evidence["text"].tolist() == ["first", "second"]
