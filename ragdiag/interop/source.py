"""A file or folder of another tool, read in the shape it has: lines, document, table, text.

Line-based files are streamed; documents are read whole and bounded. All are UTF-8; ``.gz`` is
unpacked. Every problem has its place.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

from ragdiag.cells import shown
from ragdiag.errors import RunFormatError
from ragdiag.files import read_text
from ragdiag.strict_json import parse

__all__ = ["MAX_DOCUMENT", "Shape", "Source"]

Shape = Literal["folder", "lines", "document", "csv", "parquet", "text"]

#: Documents that have to be read whole may be this large, bytes after unpacking.
MAX_DOCUMENT = 512 * 2**20

#: A line, too, is read whole.
MAX_LINE = 256 * 2**20

#: So many objects of a file are looked at to tell what it is.
SAMPLE = 20

#: How a packed file begins.
GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Source:
    """What is at a path.

    Attributes
    ----------
    path : pathlib.Path

    Raises
    ------
    RunFormatError
        There is nothing at the path, or it cannot be read.
    """

    path: Path

    def __post_init__(self) -> None:
        if not self.path.exists():
            raise RunFormatError(f"{self.path}: there is no such file or folder")

    @property
    def name(self) -> str:
        """Name of the file, for messages."""
        return self.path.name

    @property
    def stem(self) -> str:
        """Name of the file up to its first suffix that says a format."""
        name = self.path.name
        for suffix in (".gz", ".jsonl", ".ndjson", ".json", ".csv", ".parquet", ".trec", ".run"):
            if name.lower().endswith(suffix):
                name = name[: -len(suffix)]
        return name or self.path.name

    @cached_property
    def shape(self) -> Shape:
        """What kind of file it is, by its content where that tells, else by its name."""
        if self.path.is_dir():
            return "folder"
        start = self._start()
        if start.startswith(b"PAR1"):
            return "parquet"
        text = start.decode("utf-8-sig", errors="replace").lstrip()
        suffixes = [suffix.lower() for suffix in self.path.suffixes]
        if text[:1] == "{" or text[:1] == "[":
            return self._json_shape(text, suffixes)
        if ".csv" in suffixes:
            return "csv"
        return "text"

    def _json_shape(self, text: str, suffixes: list[str]) -> Shape:
        if ".jsonl" in suffixes or ".ndjson" in suffixes:
            return "lines"
        first, _, rest = text.partition("\n")
        if not rest.strip() or first.rstrip() in ("{", "["):
            return "document"
        try:
            parse(first)
        except ValueError:
            return "document"
        return "lines"

    def begins_with(self, *words: str) -> bool:
        """Return whether one of some words is in the first 64 kB."""
        return any(word.encode() in self._start() for word in words)

    def _start(self) -> bytes:
        with self._open() as stream:
            return stream.read(2**16)

    def _open(self) -> _Guarded:
        if not self.path.is_file():
            raise RunFormatError(f"{self.path}: this is not a regular file")
        try:
            raw = self.path.open("rb")
        except OSError as error:
            raise RunFormatError(f"{self.path}: cannot be read: {error.strerror}") from error
        if raw.read(2) == GZIP:
            raw.close()
            return _Guarded(self.path, gzip.open(self.path))
        raw.seek(0)
        return _Guarded(self.path, raw)

    # Lines

    def text_lines(self) -> Iterator[tuple[int, str]]:
        """Yield number and text of every line that is not empty.

        Raises
        ------
        RunFormatError
            A line is too long or not UTF-8.
        """
        with self._open() as stream:
            number = 0
            while line := stream.readline(MAX_LINE + 1):
                number += 1
                if len(line) > MAX_LINE:
                    raise RunFormatError(
                        f"{self.path}, line {number}: longer than {MAX_LINE:,} bytes"
                    )
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise RunFormatError(
                        f"{self.path}, line {number}: not UTF-8: byte 0x{line[error.start]:02x} "
                        f"at {error.start}; save the file again as UTF-8"
                    ) from error
                if text.strip():
                    yield number, text

    def objects(
        self, on_fault: Callable[[str, str], None] | None = None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield place and content of each object of a file of JSON lines, or of a document's list.

        Parameters
        ----------
        on_fault : callable, optional
            Told place and reason of each line that is no object.
        """
        for place, item in self.items(on_fault):
            if isinstance(item, dict):
                yield place, item
            elif on_fault is not None:
                on_fault(place, f"not an object: {shown(item)}")

    def items(
        self, on_fault: Callable[[str, str], None] | None = None
    ) -> Iterator[tuple[str, Any]]:
        """Yield place and content of each line; of a document its list's items, or it alone."""
        if self.shape == "document":
            document = self.document
            if isinstance(document, list):
                for position, item in enumerate(document):
                    yield f"item {position}", item
            else:
                yield "the document", document
            return
        for number, line in self.text_lines():
            try:
                yield f"line {number}", parse(line)[0]
            except ValueError as error:
                if on_fault is not None:
                    on_fault(f"line {number}", str(error).replace(" at line 1,", " at"))

    # Whole

    @cached_property
    def text(self) -> str:
        """All of the file."""
        return read_text(self.path, max_bytes=MAX_DOCUMENT, error=RunFormatError)

    @cached_property
    def document(self) -> Any:
        """The file as one JSON document.

        Raises
        ------
        RunFormatError
            It is not JSON; the message has line and column.
        """
        try:
            return parse(self.text)[0]
        except ValueError as error:
            raise RunFormatError(f"{self.path}: {error}") from error

    @cached_property
    def csv_rows(self) -> list[list[str]]:
        """The cells of a CSV file, the header first.

        Raises
        ------
        RunFormatError
            It is not CSV, for instance cut within quotes.
        """
        limit = csv.field_size_limit(max(len(self.text), 1))
        reader = csv.reader(io.StringIO(self.text, newline=""), strict=True)
        try:
            return [row for row in reader if row]
        except csv.Error as error:
            raise RunFormatError(
                f"{self.path}: not valid CSV at line {reader.line_num}: {error}"
            ) from error
        finally:
            csv.field_size_limit(limit)

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns of a table: a CSV header, a Parquet schema, keys of objects."""
        if self.shape == "csv":
            return self.csv_rows[0] if self.csv_rows else []
        if self.shape == "parquet":
            return list(self._parquet().schema_arrow.names)
        sample = [item for item in self.sample if isinstance(item, dict)]
        return list(dict.fromkeys(key for item in sample for key in item))

    def table_rows(
        self, on_fault: Callable[[str, str], None] | None = None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield place and cells of each row of a table; an empty CSV cell is None."""
        if self.shape == "csv":
            header = self.columns
            for number, row in enumerate(self.csv_rows[1:], start=1):
                if len(row) != len(header):
                    if on_fault is not None:
                        on_fault(f"row {number}", f"{len(row)} cells under {len(header)} names")
                    continue
                cells = (cell if cell != "" else None for cell in row)
                yield f"row {number}", dict(zip(header, cells, strict=True))
        elif self.shape == "parquet":
            number = 0
            for batch in self._parquet().iter_batches():
                for row in batch.to_pylist():
                    number += 1
                    yield f"row {number}", row
        elif self.shape == "document" and _is_split_table(self.document):
            names = [str(name) for name in self.document["columns"]]
            for number, row in enumerate(self.document["data"], start=1):
                if isinstance(row, list) and len(row) == len(names):
                    yield f"row {number}", dict(zip(names, row, strict=True))
                elif on_fault is not None:
                    on_fault(f"row {number}", f"not a row of {len(names)} cells: {shown(row)}")
        else:
            yield from self.objects(on_fault)

    def _parquet(self) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.ParquetFile(self.path)
        except (pa.ArrowException, OSError) as error:
            raise RunFormatError(f"{self.path}: not a readable Parquet file: {error}") from error

    # A look

    @cached_property
    def sample(self) -> list[Any]:
        """The first objects of a file of JSON, for a look at what it is."""
        if self.shape == "document":
            document = self.document
            return document[:SAMPLE] if isinstance(document, list) else [document]
        if self.shape != "lines":
            return []
        return [item for _, item in itertools.islice(self.items(), SAMPLE)]

    def files(self) -> list[Path]:
        """Return the files of a folder and of its folders, in order."""
        return sorted(path for path in self.path.rglob("*") if path.is_file())


def _is_split_table(document: Any) -> bool:
    """Return whether a document is a table as ``DataFrame.to_json(orient="split")`` writes it."""
    return (
        isinstance(document, dict)
        and isinstance(document.get("columns"), list)
        and isinstance(document.get("data"), list)
    )


class _Guarded:
    """A stream whose errors name the file: a packed one may be cut short."""

    def __init__(self, path: Path, stream: Any) -> None:
        self._path = path
        self._stream = stream

    def __enter__(self) -> _Guarded:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, size: int) -> bytes:
        return self._try(self._stream.read, size)

    def readline(self, size: int) -> bytes:
        return self._try(self._stream.readline, size)

    def _try(self, call: Callable[[int], Any], size: int) -> bytes:
        try:
            return cast("bytes", call(size))
        except (OSError, EOFError, zlib.error) as error:
            raise RunFormatError(f"{self._path}: cannot be read: {error}") from error
