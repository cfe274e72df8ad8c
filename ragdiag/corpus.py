"""A corpus as one table: the chunks that a pipeline can find, from whatever file holds them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from ragdiag.cells import plain_list, shown, text_of
from ragdiag.errors import DatasetLoadError
from ragdiag.files import read_text
from ragdiag.tables import TEXT

__all__ = ["CORPUS_MAX_BYTES", "read_corpus"]

#: The largest corpus read, bytes after unpacking.
CORPUS_MAX_BYTES = 2 * 1024**3

#: Names of the fields, the first that is there counts; BEIR's are among them.
ID_FIELDS = ("chunk_id", "_id", "id", "doc_id", "document_id")
TEXT_FIELDS = ("text", "contents", "content", "page_content")
TITLE_FIELD = "title"


def read_corpus(
    corpus: pd.DataFrame | Mapping[str, str] | str | PathLike[str],
    *,
    max_bytes: int = CORPUS_MAX_BYTES,
) -> pd.DataFrame:
    """Return ``chunk_id, title, text``, one row a chunk.

    Parameters
    ----------
    corpus : DataFrame, mapping of id to text, or path
        A ``.jsonl``, ``.csv`` (each also with ``.gz``) or ``.parquet`` file, or a BEIR folder. The
        id is called ``chunk_id, _id, id, doc_id`` or ``document_id``, the text ``text, contents,
        content`` or ``page_content``; a ``title`` is optional.
    max_bytes : int
        Larger files are refused, bytes after unpacking.

    Raises
    ------
    DatasetLoadError
        There is no such file, it is not what its name says, a chunk has no id, or an id comes
        twice.

    Examples
    --------
    >>> read_corpus({"refunds": "Refunds take seven days."})["chunk_id"].tolist()
    ['refunds']
    """
    if isinstance(corpus, pd.DataFrame):
        return _table(corpus, "the corpus")
    if isinstance(corpus, Mapping):
        return _table(pd.DataFrame({"id": list(corpus), "text": list(corpus.values())}), "corpus")
    path = Path(corpus).expanduser()
    if path.is_dir():
        folder = path
        candidates = [folder / "corpus.jsonl", folder / "corpus.jsonl.gz"]
        found = [each for each in candidates if each.is_file()]
        if not found:
            raise DatasetLoadError(f"{folder}: there is no corpus.jsonl in this folder")
        path = found[0]
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".parquet"):
        return _table(_parquet(path, max_bytes), str(path))
    if not name.endswith((".jsonl", ".csv")):
        raise DatasetLoadError(
            f"{path}: a corpus is a .jsonl, .csv or .parquet file or a BEIR folder"
        )
    text = read_text(path, max_bytes=max_bytes, error=DatasetLoadError)
    if name.endswith(".csv"):
        try:
            rows: list[Any] = list(csv.DictReader(io.StringIO(text, newline="")))
        except csv.Error as error:
            raise DatasetLoadError(f"{path}: not valid CSV: {error}") from error
    else:
        rows = list(_json_lines(path, text))
    return _table(pd.DataFrame(rows), str(path))


def _json_lines(path: Path, text: str) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DatasetLoadError(f"{path}, line {number}: not valid JSON: {error}") from error
        if not isinstance(row, Mapping):
            raise DatasetLoadError(f"{path}, line {number}: must be an object, got {shown(row)}")
        yield row


def _parquet(path: Path, max_bytes: int) -> pd.DataFrame:
    if not path.is_file():
        raise DatasetLoadError(f"{path}: there is no such file")
    if path.stat().st_size > max_bytes:
        raise DatasetLoadError(f"{path}: larger than {max_bytes:,} bytes; raise max_bytes=")
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise DatasetLoadError(f"{path}: not a readable Parquet file: {error}") from error


def _table(frame: pd.DataFrame, source: str) -> pd.DataFrame:
    names = list(map(str, frame.columns))
    id_field = next((name for name in ID_FIELDS if name in names), None)
    text_field = next((name for name in TEXT_FIELDS if name in names), None)
    for field, known in ((id_field, ID_FIELDS), (text_field, TEXT_FIELDS)):
        if field is None:
            raise DatasetLoadError(
                f"{source}: a corpus needs one of the fields {', '.join(known)}; it has {names}"
            )
    ids: list[str] = []
    for row, value in enumerate(plain_list(frame[id_field])):
        chunk_id, problem = text_of(value, numbers=True)
        if chunk_id is None:
            raise DatasetLoadError(f"{source}, row {row}: {id_field} {problem or 'is missing'}")
        ids.append(chunk_id)
    table = pd.DataFrame({"chunk_id": pd.Series(ids, dtype=TEXT)})
    for name, field in (("title", TITLE_FIELD), ("text", text_field)):
        values = plain_list(frame[field]) if field in names else [None] * len(ids)
        texts = [value if isinstance(value, str) else "" for value in values]
        table[name] = pd.Series(texts, dtype=TEXT)
    twice = table["chunk_id"].duplicated()
    if twice.any():
        raise DatasetLoadError(
            f"{source}: the id {table['chunk_id'][twice].iloc[0]!r} occurs more than once"
        )
    return table
