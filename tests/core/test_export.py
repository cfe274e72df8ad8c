"""Files that other programs read: CSV that is safe to open, JSON, Parquet."""

from __future__ import annotations

import csv
import datetime
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdiag.errors import ExportError
from ragdiag.export import csv_text, json_text, neutralised, write_parquet
from ragdiag.recording import Run
from ragdiag.results import Results

MakeRun = Callable[..., Run]

FORMULAS = [
    "=1+1",
    "+1",
    "-1 degree",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "  =1+1",
    "\ufeff=1",
    "\u00a0@x",
    "\uff1dcmd",
    "=cmd|' /C calc'!A0",
    "|x",
]
QUERY: dict[str, Any] = {
    "relevant": ["a"],
    "retrieved": ["a"],
    "ms": -0.5,
    "answer": "=HYPERLINK(1)",
    "metadata": {"tags": ["x", "=y"], "=bad name": "@x", "n": 1, "facts": {"a": None}},
}


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_are_neutralised(text: str) -> None:
    assert neutralised(text) == "'" + text


@pytest.mark.parametrize("text", ["", "a=1", "1-2", "'=1", "(=1)", "é", "a\n=1"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert neutralised(text) == text


def test_csv_is_safe_by_default(make_run: MakeRun) -> None:
    results = Results(make_run(QUERY))
    (row,) = read(results.to_csv() or "")
    assert row["answer"] == "'=HYPERLINK(1)"
    assert row["'=bad name"] == "'@x"
    assert row["retrieval_ms"] == "-0.5"
    assert json.loads(row["tags"]) == ["x", "=y"]
    assert json.loads(row["facts"]) == {"a": None}
    assert json.loads(row["not_measured"]) == ["RETRIEVED_BUT_NOT_GROUNDED", "ANSWER_INCORRECT"]
    assert row["category"] == "PASS"
    assert row["error"] == ""
    (raw,) = read(results.to_csv(safe=False) or "")
    assert raw["answer"] == "=HYPERLINK(1)"
    assert raw["=bad name"] == "@x"


def test_csv_has_no_cell_that_runs(make_run: MakeRun) -> None:
    queries = [
        {"id": f"q{i}", "query": text, "answer": text, "query_type": text, "error": text}
        for i, text in enumerate(FORMULAS)
    ]
    for row in read(Results(make_run(*queries)).to_csv() or ""):
        for name in ("query", "answer", "query_type", "error"):
            assert row[name].startswith("'"), row


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=5))
def test_csv_gives_every_text_back(texts: list[str]) -> None:
    frame = pd.DataFrame({"text": pd.array(texts, dtype=pd.StringDtype("pyarrow")), "n": 1})
    back = [row["text"] for row in read(csv_text(frame, safe=False))]
    assert back == texts


def test_files_are_written_whole(make_run: MakeRun, tmp_path: Path) -> None:
    results = Results(make_run(QUERY, {"query": "é?"}))
    for name, write, text in (
        ("r.csv", results.to_csv, results.to_csv()),
        ("r.json", results.to_json, results.to_json()),
    ):
        assert write(tmp_path / name) is None
        assert (tmp_path / name).read_bytes() == (text or "").encode()
    results.to_parquet(tmp_path / "r.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.csv", "r.json", "r.parquet"]


@pytest.mark.parametrize("method", ["to_csv", "to_json", "to_parquet", "save"])
def test_a_folder_that_is_not_there(make_run: MakeRun, tmp_path: Path, method: str) -> None:
    with pytest.raises(ExportError):
        getattr(Results(make_run(QUERY)), method)(tmp_path / "none" / "file")


def test_json_has_null_for_what_is_missing(make_run: MakeRun) -> None:
    rows = json.loads(Results(make_run(QUERY, {"query": "?"})).to_json() or "")
    assert list(rows[0]) == list(Results(make_run(QUERY)).frame.columns)
    assert rows[0]["retrieval_ms"] == -0.5
    assert rows[0]["tags"] == ["x", "=y"]
    assert rows[1]["recall_at_5"] is None
    assert rows[1]["category"] is None
    assert rows[1]["signal_answer_incorrect"] is None
    assert rows[1]["n_relevant"] == 0


def test_json_of_odd_cells() -> None:
    frame = pd.DataFrame(
        {
            "odd": pd.Series(
                [
                    np.int64(3),
                    {"b", "a"},
                    np.array([1.5, np.nan]),
                    datetime.date(2024, 2, 29),
                    float("inf"),
                    pd.NaT,
                    1 + 2j,
                    {1: (True, None)},
                ],
                dtype=object,
            )
        }
    )
    values = [row["odd"] for row in json.loads(json_text(frame))]
    assert values == [
        *(3, ["a", "b"], [1.5, None], "2024-02-29", "inf", None, "(1+2j)", {"1": [True, None]}),
    ]
    assert json.loads(json_text(pd.DataFrame({"a": []}))) == []


def test_parquet_gives_the_frame_back(make_run: MakeRun, tmp_path: Path) -> None:
    results = Results(make_run(QUERY, {"query": "?", "metadata": {"tags": None}}))
    results.to_parquet(tmp_path / "r.parquet")
    back = pd.read_parquet(tmp_path / "r.parquet")
    frame = results.frame
    assert list(back.columns) == list(frame.columns)
    assert back["recall_at_5"].equals(frame["recall_at_5"])
    assert back["category"].tolist()[0] == "PASS"
    assert back["tags"].tolist()[0].tolist() == ["x", "=y"]
    assert back["not_measured"].map(list).tolist() == frame["not_measured"].map(list).tolist()
    assert json.loads(back["facts"].iloc[0]) == {"a": None}


def test_parquet_of_cells_of_several_kinds(tmp_path: Path) -> None:
    frame = pd.DataFrame({"mixed": pd.Series(["x", 1, None], dtype=object)})
    write_parquet(frame, tmp_path / "m.parquet")
    back = pd.read_parquet(tmp_path / "m.parquet")
    assert back["mixed"].tolist()[:2] == ['"x"', "1"]
    assert pd.isna(back["mixed"].iloc[2])
