"""What must hold for any dataset: it comes back as it went in."""

from __future__ import annotations

import csv
import json
import tempfile
from pathlib import Path

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from ragdiag import GoldenDataset, QuerySample, load_dataset
from ragdiag.schema import RESERVED_COLUMNS, RESERVED_PREFIXES
from ragdiag.strict_json import parse

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
words = texts.map(str.strip).filter(bool)
taken = {*RESERVED_COLUMNS, "id", "grades"}
names = texts.filter(
    lambda name: name.strip() and name not in taken and not name.startswith(RESERVED_PREFIXES)
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
samples = st.fixed_dictionaries(
    {
        "query": words,
        "expected_answer": st.none() | words,
        "query_type": st.none() | st.sampled_from(["factual", "reasoning", "multi-hop", "own"]),
        "relevant_chunk_ids": st.lists(words, max_size=3, unique=True),
        "grade": st.integers(-2, 3),
    },
    optional={"metadata": st.dictionaries(names, json_values, max_size=3)},
)


@st.composite
def datasets(draw):
    records = []
    for query_id in draw(st.lists(words, min_size=1, max_size=4, unique=True)):
        record = draw(samples)
        grade, metadata = record.pop("grade"), record.pop("metadata", {})
        record["grades"] = dict.fromkeys(record["relevant_chunk_ids"][:1], grade)
        records.append({**metadata, **record, "id": query_id})
    return GoldenDataset(draw(words), draw(words), records, draw(st.none() | words), ["own"])


@given(datasets())
def test_frame_to_dataset_to_frame(dataset):
    again = GoldenDataset.from_frame(
        dataset.frame,
        qrels=dataset.qrels,
        name=dataset.name,
        version=dataset.version,
        description=dataset.description,
        query_types=dataset.query_types,
    )

    pd.testing.assert_frame_equal(again.frame, dataset.frame)
    pd.testing.assert_frame_equal(again.qrels, dataset.qrels)
    assert again == dataset


@given(datasets())
def test_samples_to_dataset_to_samples(dataset):
    again = GoldenDataset(
        dataset.name, dataset.version, dataset.samples, dataset.description, dataset.query_types
    )

    assert again.samples == dataset.samples
    assert again == dataset


@given(datasets())
@settings(max_examples=40)
def test_save_and_load(dataset):
    with tempfile.TemporaryDirectory() as folder:
        again = load_dataset(dataset.save(Path(folder) / "d.json"), strict=False)
        lines = load_dataset(dataset.save(Path(folder) / "d.jsonl"), query_types=["own"])

    assert again == dataset
    assert again.samples == dataset.samples
    assert lines.digest == dataset.digest


@given(json_values)
def test_strict_json_reads_what_python_writes(value):
    assert parse(json.dumps(value)) == (value, [])


def naughty_dataset(strings: list[str]) -> GoldenDataset:
    """Each string as id, question, answer, label and metadata; blank and equal ones once."""
    distinct = list(dict.fromkeys(text.strip() for text in strings if text.strip()))
    return GoldenDataset(
        "naughty",
        "1",
        [
            QuerySample(
                id=text,
                query=text,
                expected_answer=text,
                relevant_chunk_ids=[text],
                query_type="factual",
                note=text,
            )
            for text in distinct
        ],
    )


def check_naughty(strings: list[str], folder: Path) -> None:
    dataset = naughty_dataset(strings)
    assert len(dataset) > 50
    dataset.save(folder / "naughty.json")
    dataset.save(folder / "naughty.jsonl")
    frame = dataset.frame
    frame["relevant_chunk_ids"] = [[text] for text in frame["query_id"]]
    frame.to_parquet(folder / "naughty.parquet")
    with (folder / "naughty.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(frame.columns)
        for row in frame.itertuples(index=False):
            writer.writerow([*row[:-1], json.dumps(row[-1])])
    for suffix in ("json", "jsonl", "parquet", "csv"):
        again = load_dataset(folder / f"naughty.{suffix}")
        assert again.samples == dataset.samples, suffix
        assert again.digest == dataset.digest, suffix


def test_naughty_strings(naughty_strings, tmp_path):
    check_naughty(naughty_strings, tmp_path)


def test_all_naughty_strings(shared_data, tmp_path):
    path = shared_data / "hostile" / "blns" / "blns.json"
    check_naughty(json.loads(path.read_text(encoding="utf-8")), tmp_path)
