"""Every rule of a golden dataset, by the message people read when it is broken."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

import ragdiag
from ragdiag import DatasetValidationError, GoldenDataset, QuerySample, load_dataset
from ragdiag.schema import RESERVED_COLUMNS

UNLESS = ", or load with strict=False"


def test_every_fault_of_a_file_is_reported_at_once(json_faults, sample):
    faults = json_faults(
        sample(1, query=" ", query_type="faktual"),
        sample(2, id="q1 ", relevant_chunk_ids=[]),
        "not a sample",
        sample(4, score=3),
        version="",
    )

    assert faults == (
        "version: must not be empty, got ''",
        "samples[0] (id 'q1'): query: must not be empty, got ' '",
        "samples[0] (id 'q1'): query_type: 'faktual' is not one of factual, reasoning, multi-hop; "
        "declare it in the dataset's query_types or pass query_types=",
        "samples[1] (id 'q1'): id: 'q1' is already the id of samples[0]; "
        "every sample needs its own",
        "samples[1] (id 'q1'): relevant_chunk_ids: names no relevant chunk; "
        f"every sample needs one{UNLESS}",
        "samples[2]: must be an object, got 'not a sample'",
        "samples[3] (id 'q4'): score: the results have a column of this name, so a field of yours "
        "cannot; pass rename={'score': 'my_score'}",
    )


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"id": ...}, "samples[0]: id: is missing; every sample needs one"),
        ({"id": None}, "samples[0]: id: is missing; every sample needs one"),
        ({"id": ""}, "samples[0]: id: must not be empty, got ''"),
        ({"id": 7}, "samples[0]: id: must be text, got 7"),
        ({"query": ...}, "query: is missing; every sample needs one"),
        ({"query": "\t\n"}, "query: must not be empty, got '\\t\\n'"),
        ({"query": ["a"]}, "query: must be text, got ['a']"),
        ({"expected_answer": ...}, f"expected_answer: is missing; every sample needs one{UNLESS}"),
        ({"expected_answer": ""}, "expected_answer: must not be empty, got ''"),
        ({"expected_answer": True}, "expected_answer: must be text, got True"),
        ({"query_type": ...}, f"query_type: is missing; every sample needs one{UNLESS}"),
        ({"query_type": ""}, "query_type: must not be empty, got ''"),
        ({"query_type": 1}, "query_type: must be text, got 1"),
        ({"query_type": " factual"}, "query_type: ' factual' is not one of factual, reasoning"),
        ({"query_type": "Factual"}, "query_type: 'Factual' is not one of factual, reasoning"),
        (
            {"relevant_chunk_ids": ...},
            f"relevant_chunk_ids: names no relevant chunk; every sample needs one{UNLESS}",
        ),
        (
            {"relevant_chunk_ids": [{"id": "c1", "grade": 0}]},
            "relevant_chunk_ids: names no relevant chunk",
        ),
        (
            {"relevant_chunk_ids": "c1"},
            'relevant_chunk_ids: must be a list such as ["chunk-1", "chunk-2"], got \'c1\'',
        ),
        ({"relevant_chunk_ids": [""]}, "relevant_chunk_ids[0]: must not be empty, got ''"),
        ({"relevant_chunk_ids": ["a", 1]}, "relevant_chunk_ids[1]: must be text, got 1"),
        ({"relevant_chunk_ids": ["a", None]}, "relevant_chunk_ids[1]: must be text, got None"),
        ({"relevant_chunk_ids": ["a", "a "]}, "relevant_chunk_ids[1]: repeats 'a'; name it once"),
        (
            {"relevant_chunk_ids": [{"id": "a", "rank": 1}]},
            'relevant_chunk_ids[0]: must be an id or {"id": ..., "grade": ...}, '
            "got {'id': 'a', 'rank': 1}",
        ),
        (
            {"relevant_chunk_ids": [{"grade": 2}]},
            'relevant_chunk_ids[0]: must be an id or {"id": ..., "grade": ...}, got {\'grade\': 2}',
        ),
        (
            {"relevant_chunk_ids": [{"id": "a", "grade": "high"}]},
            "relevant_chunk_ids[0]: grade must be a whole number, got 'high'",
        ),
        (
            {"relevant_chunk_ids": [{"id": "a", "grade": 1.5}]},
            "relevant_chunk_ids[0]: grade must be a whole number, got 1.5",
        ),
        (
            {"relevant_chunk_ids": [{"id": "a", "grade": 2**63}]},
            "relevant_chunk_ids[0]: grade must be a whole number, got 9223372036854775808",
        ),
        ({"grades": [2]}, "grades: must be an object, got [2]"),
        ({"grades": {"c9": 2}}, "grades: 'c9' is not among the relevant_chunk_ids"),
        ({"query_id": "q1"}, "both 'id' and 'query_id' are given and either names the sample"),
        ({"recall_at_5": 1}, "recall_at_5: the results have a column of this name"),
        ({"": 1}, "a field is called ''; give it a name that can be read"),
        ({"\ud800": 1}, "a field is called '\\ud800'; give it a name that can be read"),
        (
            {"query": "half \ud83d"},
            "query: half a surrogate pair (U+D83D) at character 5; remove it",
        ),
        (
            {"relevant_chunk_ids": ["\udc00"]},
            "relevant_chunk_ids[0]: half a surrogate pair (U+DC00) at character 0",
        ),
        (
            {"notes": {"a\nb": ["é", "\ud800"]}},
            "notes.'a\\nb'[1]: half a surrogate pair (U+D800) at character 0; remove it",
        ),
        (
            {"notes": {"\ud800": 1}},
            "notes: half a surrogate pair (U+D800) at character 0; remove it",
        ),
        ({"notes": "\ud800"}, "notes: half a surrogate pair (U+D800) at character 0; remove it"),
        ({"notes": json.loads("[" * 80 + "]" * 80)}, "nested deeper than 64 levels; remove it"),
    ],
)
def test_each_rule_has_its_message(json_faults, sample, fields, fault):
    faults = json_faults(sample(**fields))

    assert len(faults) == 1
    assert fault in faults[0]
    if "id" not in fields and not fault.startswith(("a field", "both")):
        assert faults[0].startswith("samples[0] (id 'q1'): ")
    str(faults[0]).encode()  # a message can be printed, whatever it is about


@pytest.mark.parametrize(
    ("header", "fault"),
    [
        ({"name": ""}, "name: must not be empty, got ''"),
        ({"name": None}, "name: is missing"),
        ({"version": 1.0}, "version: must be text, got 1.0"),
        ({"description": ["x"]}, "description: must be text, got ['x']"),
        ({"query_types": "comparison"}, "query_types: must be a list of names, got 'comparison'"),
        ({"query_types": 3}, "query_types: must be a list of names, got 3"),
        ({"query_types": ["a", ""]}, "query_types[1]: must not be empty, got ''"),
        ({"query_types": [None]}, "query_types[0]: must be text, got null"),
        ({"query_types": [1]}, "query_types[0]: must be text, got 1"),
    ],
)
def test_faults_of_the_dataset_itself(json_faults, sample, header, fault):
    assert json_faults(sample(), **header) == (fault,)


def test_a_dataset_needs_a_sample(json_faults):
    assert json_faults() == ("there is no sample in it; a dataset needs at least one",)


def test_the_message_shows_fifty_faults_and_the_error_has_all(write_json, sample):
    path = write_json(*(sample(number, query="") for number in range(60)))

    with pytest.raises(DatasetValidationError) as caught:
        load_dataset(path)

    assert len(caught.value.faults) == 60
    lines = str(caught.value).splitlines()
    assert lines[0] == f"{path}: 60 faults"
    assert len(lines) == 52
    assert lines[-1] == "  ... and 10 more; error.faults lists them all"


@pytest.mark.parametrize(
    "name",
    sorted(
        RESERVED_COLUMNS
        - {"query_id", "query", "expected_answer", "query_type", "relevant_chunk_ids", "evidence"}
    ),
)
def test_reserved_names_are_refused_and_can_be_renamed(write_json, sample, name):
    path = write_json(sample(1), sample(2, **{name: "x"}))

    with pytest.raises(DatasetValidationError) as caught:
        load_dataset(path)
    dataset = load_dataset(path, rename={name: f"my_{name}"})

    assert f"samples[1] (id 'q2'): {name}: " in caught.value.faults[0]
    assert f"rename={{{name!r}: 'my_{name}'}}" in caught.value.faults[0]
    assert dataset.samples[1].metadata == {f"my_{name}": "x"}


def test_the_remedy_fits_the_way_in(faults_of):
    frame = pd.DataFrame({"id": ["q1"], "query": ["a"], "score": [1]})

    of_frame = faults_of(GoldenDataset.from_frame, frame)
    of_samples = faults_of(GoldenDataset, "d", "1", frame.to_dict("records"))

    assert of_frame[0].endswith("cannot; pass columns={'score': 'my_score'}")
    assert of_samples[0].endswith("cannot; call it otherwise")


def test_renaming_must_make_sense(faults_of, write_json, sample):
    path = write_json(sample(team="a", group="b"))

    missing = faults_of(load_dataset, path, rename={"taem": "squad"})
    collision = faults_of(load_dataset, path, rename={"team": "group"})

    assert missing[0].startswith("cannot rename 'taem': there is no such field; fields are 'id', ")
    assert collision == ("two fields would be called 'group'; rename or drop one of them",)


def test_a_renamed_field_is_reported_under_both_names(faults_of):
    frame = pd.DataFrame({"id": ["q1"], "question": [" "]})

    faults = faults_of(GoldenDataset.from_frame, frame, {"question": "query"})

    assert faults == ("row 0 (id 'q1'): query (your 'question'): must not be empty, got ' '",)


def test_a_table_without_a_column_has_one_fault_and_not_one_a_row(faults_of):
    frame = pd.DataFrame({"id": ["q1", "q2"], "question": ["a", "b"]})

    faults = faults_of(GoldenDataset.from_frame, frame)

    assert faults == (
        "query: there is no such field; rename one of 'id', 'question', as in "
        "{'my_query': 'query'}",
    )


class TestQueryTypes:
    def test_the_file_declares_more(self, write_json, sample):
        path = write_json(sample(query_type="comparison"), query_types=["comparison", "factual"])

        assert load_dataset(path).query_types == ("comparison",)

    def test_the_caller_declares_more(self, write_json, sample):
        path = write_json(sample(query_type="b"), query_types=["a"])

        assert load_dataset(path, query_types=["b"]).query_types == ("a", "b")

    def test_any_declares_what_it_meets(self, write_json, sample):
        path = write_json(sample(1, query_type="b"), sample(2, query_type="a"), sample(3))

        assert load_dataset(path, query_types="any").query_types == ("b", "a")

    @pytest.mark.parametrize("query_types", ["comparison", 3, [1], [""]])
    def test_nonsense_is_a_settings_error(self, write_json, sample, query_types):
        with pytest.raises(ragdiag.SettingsError, match="query_types"):
            load_dataset(write_json(sample()), query_types=query_types)


def test_ids_that_differ_only_in_case_are_a_warning(write_json, sample):
    dataset = load_dataset(write_json(sample(1), sample(2, id="Q1"), sample(3)))

    assert dataset.warnings == ("ids 'q1' and 'Q1' differ only in case",)
    assert dataset.summary().warnings == list(dataset.warnings)


def test_many_ids_that_differ_only_in_case_are_counted(write_json, sample):
    pairs = [sample(n, id=f"{case}{n}") for n in range(12) for case in "aA"]

    warnings = load_dataset(write_json(*pairs)).warnings

    assert len(warnings) == 11
    assert warnings[-1] == "2 more ids differ only in case"


def test_surrounding_white_space_is_dropped_from_ids_and_texts(write_json, sample):
    path = write_json(sample(id=" q1\n", query=" Who? ", relevant_chunk_ids=[" c1 "], note=" x "))

    found = load_dataset(path).samples[0]

    assert (found.id, found.query, found.relevant_chunk_ids) == ("q1", "Who?", ["c1"])
    assert found.metadata == {"note": " x "}


def test_grades_may_stand_in_the_list_or_apart(write_json, sample):
    path = write_json(
        sample(1, relevant_chunk_ids=[{"id": "a", "grade": 2}, {"id": "b"}, "c"]),
        sample(2, relevant_chunk_ids=["a", "b"], grades={" b": 3}),
    )

    qrels = load_dataset(path).qrels

    assert qrels["grade"].tolist() == [2, 1, 1, 1, 3]


def test_a_lenient_load_lets_samples_lack_things(write_json, sample):
    path = write_json(sample(expected_answer=..., query_type=..., relevant_chunk_ids=...))

    dataset = load_dataset(path, strict=False)

    assert dataset.samples[0] == QuerySample(id="q1", query="What is 1?")
    assert dataset.qrels.empty


def test_a_strict_load_makes_demands_on_any_format(faults_of, tmp_path):
    path = tmp_path / "golden.csv"
    path.write_text("id,query\nq1,Who?\n")

    assert len(faults_of(load_dataset, path, strict=True)) == 3


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"id": ""},
        {"id": 3},
        {"query": " \n"},
        {"expected_answer": None},
        {"expected_answer": " "},
        {"query_type": "other"},
        {"query_type": None},
        {"relevant_chunk_ids": []},
        {"relevant_chunk_ids": ["a", " a"]},
        {"relevant_chunk_ids": ["", "a"]},
        {"relevant_chunk_ids": [{"id": "a", "grade": 2}]},
        {"relevant_chunk_ids": [{"id": "a", "x": 2}]},
        {"relevant_chunk_ids": "a"},
        {"note": [1, {"a": None}]},
    ],
)
def test_the_rules_for_one_sample_are_those_of_the_model(sample, fields):
    def accepts(build):
        try:
            build()
        except (DatasetValidationError, ValidationError):
            return False
        return True

    record = sample(**fields)
    # Whole numbers as ids are a courtesy of tables.
    expected = accepts(lambda: QuerySample(**record)) or fields == {"id": 3}

    assert accepts(lambda: GoldenDataset("d", "1", [record])) == expected


def test_values_from_numpy_are_understood():
    frame = pd.DataFrame({"id": np.array([1, 2]), "query": ["a", "b"]})
    frame["relevant_chunk_ids"] = [np.array(["x", "y"]), {"z", "w"}]

    qrels = GoldenDataset.from_frame(frame).qrels

    assert qrels["chunk_id"].tolist() == ["x", "y", "w", "z"]


def test_long_and_odd_values_are_shown_bounded(faults_of):
    class Odd:
        def __repr__(self):
            raise RuntimeError

    samples = [{"id": f"q{at}", "query": value} for at, value in enumerate([10**5000, Odd(), "x"])]
    samples.append({"id": "q9", "query": "a", "relevant_chunk_ids": "y" * 10_000})

    faults = faults_of(GoldenDataset, "d", "1", samples)

    assert len(faults) == 3
    assert max(map(len, faults)) < 300
