"""Saving and loading a run: every table equal, whatever is in it."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from ragdiag import Run
from ragdiag.codec import decode, decode_dtype, dumps, encode, encode_dtype, json_text
from ragdiag.errors import ExportError, QueryNotFoundError, RunError, RunFormatError
from ragdiag.recording import load_run

ODD_IDS = ["001", "NA", "1e5", "ü ", "a\nb", 'quo"te', "{}", "\u2028", "🙂"]

COLUMNS: dict[str, Any] = {
    "text or missing": pd.array(["a", None, ""] * 3, dtype="string"),
    "python strings": pd.array(["a", None, ""] * 3, dtype=pd.StringDtype("python")),
    "objects": pd.Series(
        [None, float("nan"), pd.NA, 1, 1.0, True, "1", [1, [2, None]], {"a": {"b": (1, 2)}}],
        dtype=object,
    ),
    "more objects": pd.Series(
        [
            dt.date(2020, 1, 2),
            dt.datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
            dt.time(1, 2),
            Decimal("1.10"),
            b"\x00\xff",
            {1, 2},
            {1: "int key", "$x": "dollar"},
            np.int8(3),
            np.array([[1.5, np.nan]]),
        ],
        dtype=object,
    ),
    "still more": pd.Series(
        [
            pd.NaT,
            pd.Timestamp("2020-01-01 01:02:03.123456789", tz="Asia/Tokyo"),
            pd.Timedelta(3, "ns"),
            pd.Period("2020-03", "M"),
            np.datetime64("2020-01-02", "D"),
            np.float32(0.1),
            float("-inf"),
            -0.0,
            2**70,
        ],
        dtype=object,
    ),
    "whole": np.arange(9, dtype="int16"),
    "whole or missing": pd.array([1, None, 2**62] * 3, dtype="Int64"),
    "float": np.array([0.1, np.nan, np.inf] * 3),
    "small float": np.array([0.1, np.nan, 1e30] * 3, dtype="float32"),
    "yes or no": np.array([True, False, True] * 3),
    "yes, no or missing": pd.array([True, None, False] * 3, dtype="boolean"),
    "category": pd.Categorical(["b", None, "a"] * 3, categories=["b", "a", "never"], ordered=True),
    "numbers as categories": pd.Categorical([2, 1, 2] * 3),
    "date": pd.to_datetime(
        ["2020-01-01", None, "2021-02-03T04:05:06.000000007"] * 3, format="mixed"
    ),
    "date in seconds": np.array(["2020-01-01", "NaT", "2021-01-01"] * 3, dtype="M8[s]"),
    "date and zone": pd.to_datetime(["2020-07-01", None, "2020-10-25"] * 3).tz_localize(
        "Europe/Berlin"
    ),
    "duration": pd.to_timedelta(["1s", None, "3ns"] * 3),
    "period": pd.period_range("2020-01", periods=9, freq="M"),
    "arrow": pd.array([[1, 2], None, []] * 3, dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
    "arrow struct": pd.array(
        [{"a": 1.5}, None, {"a": None}] * 3,
        dtype=pd.ArrowDtype(pa.struct([("a", pa.float64())])),
    ),
}


class NamelessType(pd.api.extensions.ExtensionDtype):  # type: ignore[misc]
    name = "nameless"
    type = object


def make_run(**columns: Any) -> Run:
    queries = pd.DataFrame(
        {
            "query_id": ODD_IDS,
            "query": [f"what is {name!r}?" for name in ODD_IDS],
            "expected_answer": ["", None, *ODD_IDS[2:]],
            "query_type": [None, "multi-hop", *["factual"] * 7],
            **columns,
        }
    )
    return Run(
        queries,
        pd.DataFrame(
            {"query_id": ["NA", "001", "NA"], "chunk_id": ["1", "1", "2"], "grade": [2, 0, 1]}
        ),
        pd.DataFrame(
            {
                "query_id": ["1e5", "001", "1e5"],
                "rank": [1, 7, 2],
                "chunk_id": ["nan", "", "c"],
                "score": [0.1 + 0.2, np.nan, -np.inf],
                "text": ["", None, "two\nlines"],
                "metadata": ["{}", None, '{"page": 3}'],
            }
        ),
        pd.DataFrame(
            {
                "query_id": ["1e5", "001", "NA"],
                "status": ["completed", "failed", "completed"],
                "error": [None, "retrieval failed: ValueError: x", None],
                "answer": ["", None, "42"],
                "retrieval_ms": [0.1, np.nan, 1e-9],
            }
        ),
        pd.DataFrame(
            {"query_id": ["1e5"], "grounded": [False], "screened": [True], "judge": ["j"]}
        ),
        pipeline_name="p",
        pipeline_version="2",
        dataset_name="ü",
        dataset_version="3",
        info={"flags": {"1e5": ["odd"]}, "pair": (1, 2), "dataset_digest": "d", "n": np.int64(3)},
    )


def round_trip(run: Run, path: Path) -> Run:
    run.save(path)
    loaded = load_run(path)
    loaded.save(path.with_suffix(".again"))
    assert path.read_bytes() == path.with_suffix(".again").read_bytes()
    return loaded


def test_every_table_comes_back(same: Any, tmp_path: Path) -> None:
    run = make_run()
    loaded = round_trip(run, tmp_path / "run.jsonl")
    same(run, loaded)
    assert type(loaded.info["n"]) is np.int64
    assert repr(loaded) == "<ragdiag.Run of 'p' on 'ü': 3 of 9 queries, 1 judged>"


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_of_metadata_comes_back(same: Any, tmp_path: Path, name: str) -> None:
    run = make_run(**{name: COLUMNS[name]})
    loaded = round_trip(run, tmp_path / "run.jsonl")
    before, after = run.queries[name], loaded.queries[name]
    pd.testing.assert_series_equal(before, after)
    if before.dtype == object:
        assert [type(cell) for cell in before] == [type(cell) for cell in after]
        assert [cell is pd.NA for cell in before] == [cell is pd.NA for cell in after]


def test_an_empty_run_comes_back(same: Any, tmp_path: Path) -> None:
    queries = pd.DataFrame({"query_id": [], "query": [], "topic": pd.Series([], dtype="Int64")})
    run = Run(queries)
    same(run, round_trip(run, tmp_path / "run.jsonl"))


def test_what_has_no_faithful_form_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with pytest.raises(RunError, match=r"column 'x': a builtins.object cannot be stored"):
        make_run(x=pd.Series([object()] * 9, dtype=object)).save(path)
    with pytest.raises(RunError, match=r"'x': a pandas.*Interval cannot be stored"):
        make_run(x=pd.interval_range(0, periods=9)).save(path)
    with pytest.raises(RunError, match=r"a column of type .* cannot be stored; convert it first"):
        encode_dtype(NamelessType())
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ExportError, match="cannot be written"):
        make_run().save(tmp_path / "nowhere" / "run.jsonl")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5) | st.just("$float"), inner, max_size=3)
        | st.tuples(inner, inner)
    ),
    max_leaves=8,
)


@given(values)
@settings(max_examples=200, deadline=None)
def test_any_value_comes_back_through_text(value: Any) -> None:
    restored = decode(json.loads(dumps({"value": encode(value)}))["value"])
    assert repr(restored) == repr(value)


@pytest.mark.parametrize("text", ["a\ud800", "\udc00", "\ud800x\udc00", "é\ud800"])
def test_lone_surrogates_survive_in_metadata(same: Any, tmp_path: Path, text: str) -> None:
    run = make_run(note=pd.Series([text] * 9, dtype=object))
    same(run, round_trip(run, tmp_path / "run.jsonl"))


@given(st.data())
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_runs_of_any_texts_come_back(same: Any, tmp_path: Path, data: st.DataObject) -> None:
    texts = st.text(st.characters(codec="utf-8"), max_size=6)
    ids = data.draw(st.lists(texts, min_size=1, max_size=4, unique=True))
    some = st.lists(st.sampled_from(ids), max_size=6)
    chosen, judged = data.draw(some), data.draw(some.map(lambda found: list(dict.fromkeys(found))))
    maybe = st.none() | texts
    run = Run(
        pd.DataFrame({"query_id": ids, "query": [data.draw(texts) for _ in ids]}),
        retrieved=pd.DataFrame(
            {
                "query_id": chosen,
                "rank": range(len(chosen)),
                "chunk_id": [data.draw(texts) for _ in chosen],
                "score": [data.draw(st.floats()) for _ in chosen],
                "text": [data.draw(maybe) for _ in chosen],
            }
        ),
        outcomes=pd.DataFrame(
            {"query_id": judged, "status": ["completed"] * len(judged), "answer": judged}
        ),
        verdicts=pd.DataFrame(
            {"query_id": judged, "grounded": [data.draw(st.none() | st.booleans()) for _ in judged]}
        ),
    )
    same(run, round_trip(run, tmp_path / "run.jsonl"))


def test_a_subset_keeps_what_belongs_to_its_queries(tmp_path: Path) -> None:
    part = make_run().subset(["1e5", "001"])
    assert part.queries["query_id"].tolist() == ["001", "1e5"]
    assert part.retrieved["query_id"].tolist() == ["1e5", "001", "1e5"]
    assert part.qrels["query_id"].tolist() == ["001"]
    assert (len(part.outcomes), len(part.verdicts)) == (2, 1)
    assert part.info["flags"] == {"1e5": ["odd"]}
    assert make_run().subset(["NA"]).info["flags"] == {}
    with pytest.raises(QueryNotFoundError, match="the run has no query 'nope'"):
        make_run().subset(["nope"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r["columns"][0].update(dtype={"odd": 1}), "unknown column type"),
        (lambda r: r["info"].update(x={"$odd": 1}), "unknown value tag"),
        (lambda r: r.update(columns=[{"name": "absent", "dtype": {"numpy": "|O"}}]), "KeyError"),
    ],
)
def test_a_file_of_another_hand_is_refused_in_words(
    tmp_path: Path, change: Any, message: str
) -> None:
    path = tmp_path / "run.jsonl"
    make_run(topic=range(9)).save(path)
    lines = path.read_text(encoding="utf-8").split("\n")
    header = json.loads(lines[0])
    change(header)
    path.write_text("\n".join([json.dumps(header), *lines[1:]]), encoding="utf-8")
    with pytest.raises(RunFormatError, match=message):
        load_run(path)


def test_records_and_keys_of_the_future_are_passed_over(same: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    run = make_run()
    run.save(path)
    with path.open("ab") as stream:
        stream.write(b'{"record":"weather","sun":true}\n')
    same(load_run(path), run)
    with pytest.raises(RunFormatError, match="unknown format 'xml'"):
        load_run(path, format="xml")
    with pytest.raises(RunFormatError, match="cannot be read"):
        load_run(tmp_path / "absent.jsonl", format="ragdiag")
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(RunFormatError, match="the file is empty"):
        load_run(tmp_path / "empty.jsonl", format="ragdiag")


def test_json_for_people_is_strict() -> None:
    value = {"a": np.array([1, 2]), 3: (np.float32(0.5), float("inf")), "d": dt.date(2020, 1, 2)}
    assert json_text(value) == '{"a": [1, 2], "3": [0.5, null], "d": "2020-01-02"}'
    assert json_text([True, None, {1}]) == "[true, null, [1]]"


def test_types_have_a_form() -> None:
    for dtype in (np.dtype("float32"), pd.Int8Dtype(), pd.StringDtype("python")):
        assert decode_dtype(json.loads(json.dumps(encode_dtype(dtype)))) == dtype
