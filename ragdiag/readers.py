"""One small reader for each format: a file becomes a :class:`~ragdiag.validation.RawDataset`.

A reader knows a format and nothing about what a good dataset is; that is
:mod:`ragdiag.validation`. What it can place itself (a repeated key, a bad line) it adds to the
faults and reads on, so that one call reports everything.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from ragdiag.cells import shown
from ragdiag.errors import DatasetLoadError, DatasetValidationError
from ragdiag.files import read_text
from ragdiag.strict_json import Problem, dotted, parse
from ragdiag.tables import COUNT
from ragdiag.validation import RawDataset, columns_of

__all__ = ["from_columns", "read"]

UNVERSIONED = "unversioned"

#: Fields whose CSV cells hold JSON.
JSON_CELLS = {"relevant_chunk_ids": "a list", "grades": "an object", "evidence": "a list"}

ROOT_EXAMPLE = '{"name": ..., "version": ..., "samples": [...]}'


def read(path: Path, *, max_bytes: int, cells: dict[str, str]) -> RawDataset:
    """Read the file or BEIR folder at `path` by what its name says it is.

    Parameters
    ----------
    path : pathlib.Path
        A ``.json``, ``.jsonl``, ``.csv`` (each also with ``.gz``) or ``.parquet`` file.
    max_bytes : int
        The largest size read, unpacked.
    cells : dict of str to str
        Names under which a CSV file holds our fields, ours by theirs.

    Raises
    ------
    DatasetLoadError
        The file is absent, of an unknown kind, or not what its name says.
    DatasetValidationError
        Its outermost structure is not that of a dataset.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix == ".parquet":
        return _read_parquet(path, max_bytes)
    if suffix not in (".json", ".jsonl", ".csv"):
        if not path.exists():
            raise DatasetLoadError(f"{path}: there is no such file")
        raise DatasetLoadError(
            f"{path}: a dataset is a .json, .jsonl, .csv or .parquet file or a BEIR folder, "
            f"got {path.suffix!r}"
        )
    text = read_text(path, max_bytes=max_bytes, error=DatasetLoadError)
    if suffix == ".json":
        return _read_json(path, text)
    if suffix == ".jsonl":
        return _read_jsonl(path, text)
    return _read_csv(path, text, cells)


def stem(path: Path) -> str:
    """Return the name a dataset gets from its file: all before the first suffix that says a format.

    Examples
    --------
    >>> stem(Path("data/support.v2.jsonl.gz"))
    'support.v2'
    """
    name = path.name
    for suffix in (".gz", ".jsonl", ".json", ".csv", ".parquet"):
        if name.lower().endswith(suffix):
            name = name[: -len(suffix)]
    return name or path.name


def placed(places: list[str]) -> Callable[[int], str]:
    """Return the function that names a sample's place from a list of them."""
    return places.__getitem__


# JSON


def _read_json(path: Path, text: str) -> RawDataset:
    try:
        document, problems = parse(text)
    except ValueError as error:
        raise DatasetLoadError(f"{path}: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("samples"), list):
        if not isinstance(document, dict):
            found = shown(document)
        elif "samples" in document:
            found = f"samples {shown(document['samples'])}"
        else:
            found = f"an object with the keys {shown(list(document))}"
        raise DatasetValidationError(
            f"{path}: a dataset is an object {ROOT_EXAMPLE}, got {found}",
            [f"a dataset is an object {ROOT_EXAMPLE}, got {found}"],
        )
    samples = document["samples"]
    faults = [_json_fault(problem, samples) for problem in problems]
    records, positions = _records(samples, "samples[{}]", faults)
    return RawDataset(
        source=str(path),
        columns=columns_of(records),
        where=placed([f"samples[{position}]" for position in positions]),
        name=document.get("name", stem(path)),
        version=document.get("version", UNVERSIONED),
        description=document.get("description"),
        query_types=document.get("query_types"),
        strict=True,
        faults=faults,
    )


def _json_fault(problem: Problem, samples: list[Any]) -> tuple[int, str]:
    """Place a problem of the document: in a sample where it is in one."""
    match problem.path:
        case ("samples", int(position), *rest) if rest:
            place = f"samples[{position}]{_id_of(samples[position])}"
            return position, f"{place}: {dotted(tuple(rest))}: {problem.text}"
        case _:
            return -1, f"{dotted(problem.path)}: {problem.text}"


def _id_of(record: Any) -> str:
    given = record.get("id", record.get("query_id")) if isinstance(record, dict) else None
    return f" (id {shown(given.strip())})" if isinstance(given, str) else ""


def _records(
    items: Iterable[Any], place: str, faults: list[tuple[int, str]]
) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the items that are objects and their positions; the others are faults."""
    records: list[dict[str, Any]] = []
    positions: list[int] = []
    for position, item in enumerate(items):
        if isinstance(item, dict):
            records.append(item)
            positions.append(position)
        else:
            faults.append(
                (position, f"{place.format(position)}: must be an object, got {shown(item)}")
            )
    return records, positions


def read_json_lines(
    text: str, faults: list[tuple[int, str]], file: str = ""
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the objects of a ``.jsonl`` text and the place of each; bad lines become faults."""
    records: list[dict[str, Any]] = []
    places: list[str] = []
    # splitlines() would also cut at U+2028 and its like, which JSON texts may hold.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        position = len(records)
        place = f"samples[{position}], {file}line {number}"
        try:
            record, problems = parse(line)
        except ValueError as error:
            faults.append((position, f"{file}line {number}: {error}".replace(" at line 1,", " at")))
            continue
        if not isinstance(record, dict):
            faults.append((position, f"{place}: must be an object, got {shown(record)}"))
            continue
        faults.extend(
            (position, f"{place}{_id_of(record)}: {dotted(problem.path)}: {problem.text}")
            for problem in problems
        )
        records.append(record)
        places.append(place)
    return records, places


def _read_jsonl(path: Path, text: str) -> RawDataset:
    faults: list[tuple[int, str]] = []
    records, places = read_json_lines(text, faults)
    return RawDataset(
        source=str(path),
        columns=columns_of(records),
        where=placed(places),
        name=stem(path),
        faults=faults,
    )


# Tables


def _read_csv(path: Path, text: str, cells: dict[str, str]) -> RawDataset:
    """Read a CSV file as text: an id ``001``, ``NA`` or ``1e5`` stays what it is."""
    limit = csv.field_size_limit(max(len(text), 1))
    try:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        header = next(reader, [])
        rows, faults = _csv_rows(reader, header)
    except csv.Error as error:
        raise DatasetLoadError(
            f"{path}: not valid CSV at line {reader.line_num}: {error}"
        ) from error
    finally:
        csv.field_size_limit(limit)
    if not header:
        raise DatasetLoadError(f"{path}: it is empty; a CSV dataset begins with a line of names")
    if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
        raise DatasetLoadError(f"{path}: one column {header[0]!r}; cells are separated by commas")
    faults.extend(
        (-1, f"line 1: two columns are called {name!r}")
        for name in dict.fromkeys(header)
        if header.count(name) > 1
    )
    places = [f"samples[{at}], line {line}" for at, (line, _) in enumerate(rows)]
    columns: dict[str, Any] = {}
    for at, name in enumerate(header):
        # An empty cell is the only way CSV has to say that there is nothing.
        values = [row[at] if row[at] != "" else None for _, row in rows]
        wanted = JSON_CELLS.get(cells.get(name, name))
        columns[name] = _json_cells(name, values, wanted, places, faults) if wanted else values
    return RawDataset(
        source=str(path),
        columns=columns,
        where=placed(places),
        name=stem(path),
        faults=faults,
    )


def _csv_rows(
    reader: Any, header: list[str]
) -> tuple[list[tuple[int, list[str]]], list[tuple[int, str]]]:
    """Return the rows, each with the line it ends on, and a fault for each of a wrong width."""
    rows: list[tuple[int, list[str]]] = []
    faults: list[tuple[int, str]] = []
    for row in reader:
        if len(row) == len(header):
            rows.append((reader.line_num, row))
        elif row:
            faults.append(
                (
                    len(rows),
                    f"line {reader.line_num}: {len(row)} cells where the header has {len(header)}; "
                    "a text with a comma needs quotes",
                )
            )
    return rows, faults


def _json_cells(
    name: str,
    values: list[str | None],
    wanted: str,
    places: list[str],
    faults: list[tuple[int, str]],
) -> list[Any]:
    result: list[Any] = []
    for position, value in enumerate(values):
        parsed: Any = None
        try:
            parsed, problems = parse(value) if value is not None else (None, [])
        except ValueError:
            example = '["chunk-1", "chunk-2"]' if wanted == "a list" else '{"chunk-1": 2}'
            problems = [Problem((), f"must be {wanted} as JSON, {example}, got {shown(value)}")]
        for problem in problems:
            field = dotted((name, *problem.path))
            faults.append((position, f"{places[position]}: {field}: {problem.text}"))
        result.append(parsed)
    return result


def _read_parquet(path: Path, max_bytes: int) -> RawDataset:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        problem = "this is not a regular file" if path.exists() else "there is no such file"
        raise DatasetLoadError(f"{path}: {problem}")
    try:
        with pq.ParquetFile(path) as file:
            groups = (file.metadata.row_group(at) for at in range(file.metadata.num_row_groups))
            # A row has at least a byte: repeated values hardly count in the groups' own sizes.
            size = max(sum(group.total_byte_size for group in groups), file.metadata.num_rows)
            if max(size, path.stat().st_size) > max_bytes:
                raise DatasetLoadError(
                    f"{path}: larger than {max_bytes:,} bytes; if it is meant to be, raise the "
                    "limit with max_bytes="
                )
            table = file.read()
        table.validate(full=True)  # texts that are not UTF-8, offsets that lead astray
        columns = {
            name: _from_arrow(table.column(name))
            for name in table.column_names
            # How pandas saves an index that has no name.
            if not name.startswith("__index_level_")
        }
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, DatasetLoadError):
            raise
        raise DatasetLoadError(f"{path}: not a readable Parquet file: {error}") from error
    return RawDataset(source=str(path), columns=columns, where="row {}".format, name=stem(path))


def _from_arrow(column: Any) -> Any:
    """Return an Arrow column as pandas has it, lists and structs as those of Python."""
    import pyarrow as pa

    if pa.types.is_nested(column.type):
        return column.to_pylist()
    # Without this, whole numbers with gaps would become fractions.
    types = {getattr(pa, f"int{bits}")(): COUNT for bits in (8, 16, 32, 64)}
    return column.to_pandas(types_mapper=types.get).reset_index(drop=True)


def from_columns(frame: pd.DataFrame, *, source: str) -> RawDataset:
    """Take the columns of a frame, and its index where that has a name, as fields of samples."""
    index = [name for name in frame.index.names if name is not None and name not in frame.columns]
    frame = frame.reset_index(level=index) if index else frame
    names = [str(name) for name in frame.columns]
    faults = [
        (-1, f"two columns are called {name!r}; rename or drop one of them")
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    return RawDataset(
        source=source,
        columns={name: frame.iloc[:, at] for at, name in enumerate(names)},
        where="row {}".format,
        name="dataset",
        faults=faults,
    )
