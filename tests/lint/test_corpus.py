from __future__ import annotations

import gzip
import json

import pandas as pd
import pytest

from ragdiag import DatasetLoadError
from ragdiag.corpus import read_corpus

ROWS = [{"_id": "a", "title": "T", "text": "one"}, {"_id": "b", "title": "", "text": "two"}]


def lines(rows):
    return "\n".join(map(json.dumps, rows)) + "\n"


def test_every_form_gives_the_same(tmp_path):
    (tmp_path / "corpus.jsonl").write_text(lines(ROWS), encoding="utf-8")
    with gzip.open(tmp_path / "packed.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.write(lines(ROWS))
    frame = pd.DataFrame(ROWS)
    frame.rename(columns={"_id": "chunk_id", "text": "page_content"}).to_csv(
        tmp_path / "corpus.csv", index=False
    )
    frame.rename(columns={"_id": "doc_id", "text": "contents"}).to_parquet(
        tmp_path / "corpus.parquet"
    )
    wanted = read_corpus(frame)
    assert wanted["text"].tolist() == ["one", "two"]
    for source in ("corpus.jsonl", "packed.jsonl.gz", "corpus.csv", "corpus.parquet", ""):
        pd.testing.assert_frame_equal(read_corpus(tmp_path / source), wanted)


def test_ids_may_be_numbers_and_texts_missing():
    table = read_corpus(pd.DataFrame({"id": [1, 2], "text": ["x", None]}))
    assert table["chunk_id"].tolist() == ["1", "2"]
    assert table["text"].tolist() == ["x", ""]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"_id": "a", "text": "x"}\n{"_id"', "line 2: not valid JSON"),
        ("[1]\n", "line 1: must be an object, got"),
        (lines([{"_id": "a"}]), "needs one of the fields text, contents"),
        (lines([{"text": "a"}]), "needs one of the fields chunk_id, _id"),
        (lines([{"_id": "a", "text": "x"}] * 2), "the id 'a' occurs more than once"),
        (lines([{"_id": None, "text": "x"}]), "row 0: _id is missing"),
        (lines([{"_id": " ", "text": "x"}]), "row 0: _id must not be empty"),
    ],
)
def test_faults_say_where(tmp_path, content, message):
    path = tmp_path / "c.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DatasetLoadError, match=message) as caught:
        read_corpus(path)
    assert str(path) in str(caught.value)


def test_files_that_are_no_corpus(tmp_path):
    with pytest.raises(DatasetLoadError, match="in this folder"):
        read_corpus(tmp_path)
    with pytest.raises(DatasetLoadError, match="a corpus is a"):
        read_corpus(tmp_path / "corpus.txt")
    with pytest.raises(DatasetLoadError, match="no such file"):
        read_corpus(tmp_path / "corpus.jsonl")
    with pytest.raises(DatasetLoadError, match="no such file"):
        read_corpus(tmp_path / "corpus.parquet")
    path = tmp_path / "bad.parquet"
    path.write_bytes(b"not parquet")
    with pytest.raises(DatasetLoadError, match="not a readable Parquet file"):
        read_corpus(path)
    with pytest.raises(DatasetLoadError, match="larger than 4 bytes"):
        read_corpus(path, max_bytes=4)
    (tmp_path / "bad.csv").write_text('id,text\n"a' + "x" * 200_000, encoding="utf-8")
    with pytest.raises(DatasetLoadError, match="not valid CSV"):
        read_corpus(tmp_path / "bad.csv")
