"""The folder layout of the BEIR benchmark: queries, a corpus, and judgements by split.

::

    folder/
    ├── queries.jsonl        {"_id", "text", "metadata": {"answer", ...}}
    ├── corpus.jsonl[.gz]    {"_id", "title", "text"}; only its ids are looked at
    └── qrels/*.tsv          query-id  corpus-id  score
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragdiag.cells import shown
from ragdiag.errors import DatasetLoadError
from ragdiag.files import read_text
from ragdiag.readers import placed, read_json_lines
from ragdiag.schema import QueryType
from ragdiag.validation import QueryTypes, RawDataset, columns_of

__all__ = ["read_beir"]

#: Where the reference answer and the kind of question are, in a query's metadata.
ANSWER = "answer"
KIND = "type"

#: What the layout itself writes into the top level of a query, and our name for it.
TOP_LEVEL = {"_id": "id", "text": "query"}

WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")


def read_beir(
    folder: Path, *, max_bytes: int, split: str | None, query_types: QueryTypes
) -> RawDataset:
    """Read a BEIR folder.

    Parameters
    ----------
    folder : pathlib.Path
        The folder.
    max_bytes : int
        The largest size read of any of its files, unpacked. A larger corpus is not an error: the
        labels are then not checked against it, and a warning says so.
    split : str, optional
        Take the labels of ``qrels/{split}.tsv`` alone, and only the queries that have one there;
        by default all queries and the labels of all splits.
    query_types : list of str or "any"
        When it declares any, ``metadata.type`` is the query type. Without, ``type`` becomes the
        query type only where each of its values is a standard one, and stays metadata otherwise.

    Raises
    ------
    DatasetLoadError
        A file of the layout is missing or cannot be read.
    """
    queries = _existing(folder, "queries")
    if queries is None:
        raise DatasetLoadError(f"{folder}: a BEIR folder has queries.jsonl, and this one does not")
    faults: list[tuple[int, str]] = []
    text = read_text(queries, max_bytes=max_bytes, error=DatasetLoadError)
    found, places = read_json_lines(text, faults, f"{queries.name} ")
    records = [_sample(record) for record in found]
    warnings: list[str] = []
    pairs = list(_labels(folder, split, max_bytes, faults))
    if split is not None and not faults:
        labelled = {query_id for _, query_id, _, _ in pairs}
        kept = [at for at, record in enumerate(records) if _key(record, "id") in labelled]
        records, places = [records[at] for at in kept], [places[at] for at in kept]
    elif pairs:
        labelled = {query_id for _, query_id, _, _ in pairs}
        without = sum(_key(record, "id") not in labelled for record in records)
        if without:
            warnings.append(
                f"{without:,} of {len(records):,} queries have no label; split= keeps the others"
            )
    _decide_type(records, query_types)
    warnings.extend(_corpus_warnings(folder, max_bytes, {chunk_id for _, _, chunk_id, _ in pairs}))
    return RawDataset(
        source=str(folder),
        columns=columns_of(records),
        where=placed(places),
        name=folder.resolve().name,
        pairs=pairs,
        faults=faults,
        warnings=warnings,
    )


def _existing(folder: Path, name: str) -> Path | None:
    candidates = (folder / f"{name}.jsonl", folder / f"{name}.jsonl.gz")
    return next((path for path in candidates if path.is_file()), None)


def _key(record: dict[str, Any], field: str) -> str:
    """Return an id as the tables of labels have it."""
    return str(record.get(field)).strip()


def _sample(record: dict[str, Any]) -> dict[str, Any]:
    """Return a query in our words; whatever else it says is metadata."""
    sample = {ours: record.get(theirs) for theirs, ours in TOP_LEVEL.items()}
    rest = {key: value for key, value in record.items() if key not in (*TOP_LEVEL, "metadata")}
    metadata = record.get("metadata")
    if isinstance(metadata, dict):
        rest.update(metadata)
    elif metadata is not None:
        rest["metadata"] = metadata
    if ANSWER in rest:
        answer = rest.pop(ANSWER)
        # The layout has no other way to say that an answer is not known.
        rest.setdefault("expected_answer", None if answer == "" else answer)
    return {**rest, **sample}


def _decide_type(records: list[dict[str, Any]], query_types: QueryTypes) -> None:
    """Let ``type`` be the query type where it was declared to be, or plainly is."""
    kinds = [record[KIND] for record in records if record.get(KIND) is not None]
    standard = [kind.value for kind in QueryType]
    plainly = bool(kinds) and all(kind in standard for kind in kinds)
    if not (query_types or plainly) or any("query_type" in record for record in records):
        return
    for record in records:
        record["query_type"] = record.pop(KIND, None)


def _labels(
    folder: Path, split: str | None, max_bytes: int, faults: list[tuple[int, str]]
) -> Iterator[tuple[str, str, str, int]]:
    """Yield place, query id, corpus id and grade of every judgement."""
    files = sorted((folder / "qrels").glob("*.tsv"))
    if split is not None:
        named = ", ".join(path.stem for path in files) or "none"
        files = [path for path in files if path.stem == split]
        if not files:
            raise DatasetLoadError(f"{folder}: no qrels/{split}.tsv; splits there are: {named}")
    if not files:
        raise DatasetLoadError(f"{folder}: a BEIR folder has qrels/*.tsv, and this one does not")
    for path in files:
        text = read_text(path, max_bytes=max_bytes, error=DatasetLoadError)
        for number, line in enumerate(text.split("\n"), start=1):
            cells = line.rstrip("\r").split("\t")
            if cells == [""]:
                continue
            place = f"qrels/{path.name} line {number}"
            is_grade = len(cells) == 3 and WHOLE_NUMBER.fullmatch(cells[2].strip())
            if is_grade:
                yield place, cells[0].strip(), cells[1].strip(), int(cells[2])
            elif number > 1 or len(cells) != 3:
                faults.append(
                    (
                        -1,
                        f"{place}: must be query id, corpus id and a whole number, separated by "
                        f"tabs, got {shown(line)}",
                    )
                )


def _corpus_warnings(folder: Path, max_bytes: int, labelled: set[str]) -> Iterator[str]:
    """Yield what the corpus says about the labels: ids that it does not have."""
    path = _existing(folder, "corpus")
    if path is None:
        return
    try:
        text = read_text(path, max_bytes=max_bytes, error=DatasetLoadError)
    except DatasetLoadError as error:
        yield f"labels were not checked against the corpus: {error}"
        return
    faults: list[tuple[int, str]] = []
    records, _ = read_json_lines(text, faults, f"{path.name} ")
    if faults:
        yield f"{path.name}: {len(faults):,} lines cannot be read, the first: {faults[0][1]}"
    absent = labelled - {_key(record, "_id") for record in records}
    if absent:
        yield (
            f"{len(absent):,} labelled chunk ids are not in {path.name}, such as {min(absent)!r}; "
            "no pipeline can find them"
        )
