"""Reading and writing whole text files: bounded, UTF-8, and never half written."""

from __future__ import annotations

import gzip
import os
import secrets
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ragdiag.errors import ExportError, RagdiagError

__all__ = [
    "DEFAULT_MAX_BYTES",
    "check_outputs",
    "check_writable",
    "read_text",
    "write_bytes",
    "write_text",
]

#: A text file above this is taken for a mistake or an attack unless the caller says otherwise.
DEFAULT_MAX_BYTES = 64 * 2**20

#: Byte order marks of encodings that are not UTF-8 and what to call them; longer marks first.
_FOREIGN_MARKS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


def read_text(
    path: Path, *, max_bytes: int = DEFAULT_MAX_BYTES, error: type[RagdiagError] = RagdiagError
) -> str:
    """Return the text of a UTF-8 file; a byte order mark is dropped, ``.gz`` is unpacked.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    max_bytes : int
        The largest size accepted, counted after unpacking.
    error : type of RagdiagError
        What to raise.

    Raises
    ------
    error
        The file is absent, not a regular file, unreadable, too large, or not UTF-8.
    """
    if not path.exists():
        raise error(f"{path}: there is no such file")
    if not path.is_file():
        raise error(f"{path}: this is not a regular file")
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        # One byte more than allowed tells a file that fits from one that does not, and bounds
        # what a small compressed file can unpack to.
        with opener(path, "rb") as stream:
            data: bytes = stream.read(max_bytes + 1)
    except (OSError, EOFError, zlib.error) as problem:
        raise error(f"{path}: cannot be read: {problem}") from problem
    if len(data) > max_bytes:
        raise error(
            f"{path}: larger than {max_bytes:,} bytes ({max_bytes / 2**20:g} MiB); "
            "if it is meant to be, raise the limit with max_bytes="
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise error(f"{path}: {_decoding_problem(data, problem)}") from problem


def _decoding_problem(data: bytes, problem: UnicodeDecodeError) -> str:
    for mark, name in _FOREIGN_MARKS:
        if data.startswith(mark):
            return f"encoded as {name}, not UTF-8; save it again as UTF-8"
    line = data.count(b"\n", 0, problem.start) + 1
    return (
        f"not UTF-8: byte 0x{data[problem.start]:02x} at offset {problem.start:,} (line {line:,}); "
        "save it again as UTF-8"
    )


def check_writable(path: Path) -> None:
    """Refuse a path that :func:`write_bytes` could not write, before the work is done.

    Raises
    ------
    ExportError
        It is a folder, or its folder does not exist or cannot be written.
    """
    if path.is_dir():
        raise ExportError(f"{path}: this is a folder; name a file in it")
    try:
        with _part(path) as stream:
            stream.write(b"")
    except OSError as problem:
        raise _unwritable(path, problem) from problem


def check_outputs(*paths: Path | None, read: Iterable[Path | None] = ()) -> None:
    """Refuse outputs that cannot be written, or that would replace a file which is in use.

    Parameters
    ----------
    *paths : Path or None
        What will be written; None is an output that is not wanted.
    read : iterable of Path or None
        What is read, or written otherwise, by the same command.

    Raises
    ------
    ExportError
        A path cannot be written, or stands twice among all of these.
    """
    taken = {path.resolve() for path in read if path is not None}
    for path in paths:
        if path is None:
            continue
        if path.resolve() in taken:
            raise ExportError(f"{path}: this command uses the file already; write to another")
        taken.add(path.resolve())
        check_writable(path)


def write_text(path: Path, text: str) -> None:
    r"""Write `text` as UTF-8 under a temporary name, then rename: readers see all of it or none.

    Raises
    ------
    ExportError
        The folder does not exist or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "note.txt"
    ...     write_text(path, "é\n")
    ...     path.read_bytes()
    b'\xc3\xa9\n'
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` under a temporary name, then rename: readers see all of it or none.

    Raises
    ------
    ExportError
        The folder does not exist or cannot be written.
    """
    try:
        with _part(path) as stream:
            stream.write(data)
            stream.flush()
            os.replace(stream.name, path)
    except OSError as problem:
        raise _unwritable(path, problem) from problem


@contextmanager
def _part(path: Path) -> Iterator[BinaryIO]:
    """Open a new file beside `path` and remove it at the end, if it is still there."""
    # In the same folder: same file system, usual permissions, no collisions.
    temporary = path.with_name(f".{path.name[:50]}.{secrets.token_hex(4)}.part")
    try:
        with open(temporary, "xb") as stream:
            yield stream
    finally:
        temporary.unlink(missing_ok=True)


def _unwritable(path: Path, problem: OSError) -> ExportError:
    return ExportError(f"{path}: cannot be written: {problem.strerror or problem}")
