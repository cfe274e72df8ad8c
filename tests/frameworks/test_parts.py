"""Runs in parts, a Dask DataFrame or a folder of Parquet files, equal the whole."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ragdiag
from ragdiag import GoldenDataset, Run, diagnose, load_run
from ragdiag.errors import RunError, RunFormatError
from ragdiag.interop import detect

N, DEPTH = 60, 8


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """One row a chunk: 60 queries of which some fail, some are slow, some find nothing."""
    random = np.random.default_rng(7)
    query = np.repeat(np.arange(N), DEPTH)
    frame = pd.DataFrame(
        {
            "query_id": [f"q{number:03}" for number in query],
            "query": [f"question {number}" for number in query],
            "query_type": np.where(query % 3 == 0, "multi-hop", "factual"),
            "rank": np.tile(np.arange(1, DEPTH + 1), N),
            "chunk_id": [f"d{number}" for number in random.integers(0, 12, len(query))],
            "score": random.random(len(query)),
            "text": [f"text {number}" for number in range(len(query))],
            "retrieval_ms": np.repeat(random.gamma(2, 300, N), DEPTH),
            "error": np.where(query % 20 == 7, "timed out", None),
        }
    )
    nothing = frame["query_id"].isin(["q005", "q011"])
    frame.loc[nothing, ["chunk_id", "text", "score", "rank"]] = None
    return frame[~(nothing & frame["query_id"].duplicated())].reset_index(drop=True)


@pytest.fixture(scope="module")
def dataset(rows: pd.DataFrame) -> GoldenDataset:
    frame = rows.drop_duplicates("query_id")[["query_id", "query", "query_type"]]
    labels = [sorted({f"d{place % 12}", f"d{place % 7}"}) for place in range(len(frame))]
    return GoldenDataset.from_frame(
        frame.assign(relevant_chunk_ids=labels), query_types=["factual", "multi-hop"]
    )


def assert_same(parts: ragdiag.Results, whole: ragdiag.Results) -> None:
    pd.testing.assert_frame_equal(parts.frame, whole.frame)
    pd.testing.assert_frame_equal(parts.summary(), whole.summary())
    pd.testing.assert_frame_equal(parts.latency(), whole.latency())
    pd.testing.assert_frame_equal(parts.by("query_type"), whole.by("query_type"))
    assert parts.report().diagnosis_counts == whole.report().diagnosis_counts
    ours, theirs = (each.chunks.drop(columns=["text", "metadata"]) for each in (parts, whole))
    pd.testing.assert_frame_equal(ours, theirs)
    assert parts.chunks["text"].isna().all()
    pd.testing.assert_frame_equal(parts.rediagnose(k=2).frame, whole.rediagnose(k=2).frame)


def write_parts(folder: Path, rows: pd.DataFrame, n: int) -> Path:
    cuts = np.linspace(0, N, n + 1).astype(int)
    ids = rows["query_id"].unique()
    for part, (start, end) in enumerate(pairwise(cuts)):
        inside = rows[rows["query_id"].isin(ids[start:end])]
        (folder / f"day={part}").mkdir(parents=True)
        inside.to_parquet(folder / f"day={part}" / "part.parquet")
    (folder / "_metadata.parquet").write_bytes(b"not for reading")
    return folder


@pytest.fixture
def folder(tmp_path: Path, rows: pd.DataFrame) -> Path:
    return write_parts(tmp_path / "runs", rows, 4)


def test_a_folder_of_parts_equals_the_whole(
    folder: Path, rows: pd.DataFrame, dataset: GoldenDataset
) -> None:
    found = detect(folder)
    assert found.format == "parts"
    assert found.why == (
        "a folder of 4 Parquet files, the first with the fields 'query_id' and 'chunk_id'"
    )
    run = load_run(folder)
    assert run.info["notes"] == [
        "texts and metadata of the chunks were not kept: the run was put together from 4 parts; "
        "relevance by passages of text is not measured"
    ]
    parts = diagnose(folder, dataset, latency_threshold_ms=700)
    assert_same(parts, diagnose(Run.from_frame(rows), dataset, latency_threshold_ms=700))
    counts = parts.counts()["queries"]
    assert counts["UNKNOWN"] == 3
    assert (counts[["PASS", "LATENCY_OUTLIER", "INSUFFICIENT_CONTEXT"]] > 0).all()


def test_labels_in_the_parts_and_one_row_a_query(tmp_path: Path) -> None:
    for part in range(2):
        frame = pd.DataFrame(
            {
                "query": [f"question {part}"],
                "retrieved_chunk_ids": [["a", "b"]],
                "retrieved_texts": [["t", "u"]],
                "relevant_chunk_ids": [["b"]],
                "answer": ["yes"],
            }
        )
        frame.to_parquet(tmp_path / f"{part}.parquet")
    results = diagnose(tmp_path)
    assert results.frame["first_relevant_rank"].tolist() == [2, 2]
    assert results.frame["answer"].tolist() == ["yes", "yes"]
    assert results.run.info["query_ids_made_from_text"] is True


def test_ids_are_made_of_texts_before_these_are_dropped(tmp_path: Path) -> None:
    frame = pd.DataFrame({"query_id": ["q1"], "query": ["?"], "text": ["Seven days."]})
    frame.to_parquet(tmp_path / "0.parquet")
    run = load_run(tmp_path, format="parts")
    assert run.retrieved["chunk_id"].tolist() == ["text-f2e8f744b6b8"]
    assert run.retrieved["text"].isna().all()


def test_texts_are_kept_where_passages_are_the_truth(tmp_path: Path) -> None:
    for part, evidence in enumerate(["Seven days.", "Nine days."]):
        frame = pd.DataFrame(
            {
                "query_id": [f"q{part}"],
                "query": ["How long?"],
                "retrieved_chunk_ids": [["a"]],
                "retrieved_texts": [["A refund takes seven days."]],
                "evidence": [[evidence]],
            }
        )
        frame.to_parquet(tmp_path / f"{part}.parquet")
    results = diagnose(tmp_path)
    assert results.chunks["text"].tolist() == ["A refund takes seven days."] * 2
    assert results.frame["category"].tolist() == ["PASS", "WRONG_CHUNK_RETRIEVED"]
    assert "notes" not in results.run.info


def test_a_query_in_two_parts_is_refused(tmp_path: Path, rows: pd.DataFrame) -> None:
    rows.head(12).to_parquet(tmp_path / "a.parquet")
    rows.iloc[12:20].to_parquet(tmp_path / "b.parquet")
    message = r"query 'q001' is in the parts a\.parquet and b\.parquet; a part must hold whole"
    with pytest.raises(RunFormatError, match=message):
        load_run(tmp_path)


def test_parts_that_are_at_fault(tmp_path: Path) -> None:
    with pytest.raises(RunFormatError, match="no Parquet file in this folder"):
        load_run(tmp_path, format="parts")
    good = pd.DataFrame({"query_id": ["q1"], "chunk_id": ["a"]})
    good.head(0).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(RunFormatError, match="there is no row in any part"):
        load_run(tmp_path)
    good.to_parquet(tmp_path / "b.parquet")
    assert len(load_run(tmp_path)) == 1
    good.assign(rank=-1).to_parquet(tmp_path / "c.parquet")
    with pytest.raises(RunFormatError, match=r"part c\.parquet: row 0: rank must be"):
        load_run(tmp_path)
    (tmp_path / "c.parquet").write_bytes(b"PAR1 cut off")
    with pytest.raises(RunFormatError, match=r"c\.parquet: cannot be read as Parquet"):
        load_run(tmp_path)


def test_what_is_neither_frame_nor_run() -> None:
    with pytest.raises(RunError, match="expected a DataFrame, of pandas or Dask, got dict"):
        diagnose({"query": "?"})


def test_a_dask_frame_equals_the_whole(rows: pd.DataFrame, dataset: GoldenDataset) -> None:
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(rows.set_index("query_id"), npartitions=5, sort=True).reset_index()
    parts = diagnose(frame, dataset, latency_threshold_ms=700)
    assert_same(parts, diagnose(Run.from_frame(rows), dataset, latency_threshold_ms=700))


def test_a_dask_frame_with_other_names_and_labels(rows: pd.DataFrame) -> None:
    dd = pytest.importorskip("dask.dataframe")
    qrels = pd.DataFrame({"query_id": ["q000", "q001"], "chunk_id": ["d1", "d2"]})
    named = {"passage": "chunk_id", "body": "text"}
    yours = rows.rename(columns={ours: yours for yours, ours in named.items()})
    frame = dd.from_pandas(yours.set_index("query_id"), npartitions=3).reset_index()
    run = Run.from_frame(
        frame, named, qrels=dd.from_pandas(qrels, npartitions=1), pipeline_name="nightly"
    )
    whole = Run.from_frame(rows, qrels=qrels)
    assert (run.pipeline_name, run.info["format"]) == ("nightly", "dask")
    pd.testing.assert_frame_equal(run.qrels, whole.qrels)
    names = ["query_id", "rank", "chunk_id", "score"]
    pd.testing.assert_frame_equal(run.retrieved[names], whole.retrieved[names])
    assert run.retrieved["text"].isna().all()


def test_a_dask_frame_that_splits_a_query(rows: pd.DataFrame) -> None:
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(rows.reset_index(drop=True), npartitions=7)
    with pytest.raises(RunError, match=r"is in the parts 0 and 1; .*frame\.shuffle"):
        Run.from_frame(frame)
    whole: Any = Run.from_frame(frame.shuffle(on="query_id"))
    assert len(whole) == N
