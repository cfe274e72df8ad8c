"""The append-only file a run is written to: one JSON object a line, and nothing acknowledged lost.

A record is one ``write``, so it survives the death of the process from then on, and a thread
follows with ``fsync`` at once, so that within milliseconds it survives the machine's too; nobody
waits for the disk but whoever asks for a :meth:`Journal.flush`. A process that dies in the middle
leaves at most one torn *last* line, which a reader drops and reports. Damage anywhere else is no
accident of that kind and is refused. The file is readable by its owner alone, and a lock beside it
keeps a second process away; the system releases the lock when its holder dies.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from ragdiag.codec import dumps
from ragdiag.errors import ExportError, RunFormatError, StoreBusyError

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "Journal",
    "check_header",
    "is_journal",
    "read_records",
    "write_records",
]

FORMAT = "ragdiag-run"
FORMAT_VERSION = 1

Record = dict[str, Any]


def check_header(record: Mapping[str, Any], path: Path) -> None:
    """Raise unless `record` is the header of a run this version can read.

    Raises
    ------
    RunFormatError
        The file is something else, or was written by a later version.
    """
    if record.get("record") != "header" or record.get("format") != FORMAT:
        raise RunFormatError(f"{path}: this is not a run written by ragdiag (no header line)")
    version = record.get("format_version")
    if version != FORMAT_VERSION:
        raise RunFormatError(
            f"{path}: it has format version {version!r}, this ragdiag reads {FORMAT_VERSION}; "
            "use the ragdiag that wrote it"
        )


def is_journal(path: Path) -> bool:
    """Return whether a file begins as a run of ours does, of whatever version."""
    try:
        with path.open("rb") as stream:
            start = stream.read(100)
    except OSError:
        return False
    return start.startswith(b'{"record":"header"')


def read_records(
    path: Path, on_torn: Callable[[str], None] | None = None
) -> Iterator[tuple[Record, int]]:
    """Yield each record with the offset at which its line ends.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    on_torn : callable, optional
        Told when an unfinished last line was dropped.

    Raises
    ------
    RunFormatError
        The file cannot be read, is not a run, or a line before the last is damaged.
    """
    try:
        stream = path.open("rb")
    except OSError as error:
        raise RunFormatError(f"{path}: cannot be read: {error.strerror}") from error
    with stream:
        number, offset = 0, 0
        damage: tuple[int, str] | None = None
        parse = json.JSONDecoder().raw_decode
        for line in stream:
            if damage is not None:
                raise RunFormatError(
                    f"{path}, line {damage[0]}: damaged: {damage[1]}; "
                    "a run is only ever cut at its end, so this file was changed by other hands"
                )
            number += 1
            try:
                # Less than half the time of json.loads on many short lines of bytes.
                text = line.decode()
                record, length = parse(text)
                if text[length:].strip():
                    raise ValueError("more than one value")
                if not isinstance(record, dict) or "record" not in record:
                    raise ValueError("not a record")
            except (ValueError, RecursionError) as error:
                damage = (number, str(error))
                continue
            if number == 1:
                check_header(record, path)
            offset += len(line)
            yield record, offset
        if damage is not None and number == 1:
            raise RunFormatError(f"{path}: this is not a run written by ragdiag (no header line)")
        if number == 0:
            raise RunFormatError(f"{path}: the file is empty")
        if damage is not None and on_torn is not None:
            on_torn(f"{path}: the last record (line {number}) was cut short and is dropped")


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write a whole file under a temporary name and rename it, readable by its owner alone.

    Raises
    ------
    ExportError
        The folder cannot be written.
    """
    temporary: str | None = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:50]}.")
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(map(dumps, records))
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise ExportError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            with suppress(FileNotFoundError):
                os.unlink(temporary)


class Journal:
    """A run's file, opened to append; safe to use from several threads.

    Parameters
    ----------
    path : pathlib.Path
        The file; its folders are made, for the owner alone, where they are missing.

    Raises
    ------
    StoreBusyError
        Another process, or another run of this one, writes to it.
    ExportError
        It cannot be written.
    """

    _open: ClassVar[dict[str, Journal]] = {}
    _opening: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._handle = -1
        self._end = 0
        self._failure: OSError | None = None
        self._unsynced = threading.Event()
        self._syncer: threading.Thread | None = None
        #: Set once the file is closed; until then a run that was interrupted may still write.
        self.closed = threading.Event()
        #: True once the run has ended and only waits for its last calls.
        self.ending = False
        self._key = os.path.realpath(path)
        with self._opening:
            other = self._open.get(self._key)
            if other is not None:
                raise StoreBusyError(f"{path}: another run of this process writes to it")
            try:
                _make_folders(path.parent)
                if path.exists() and not path.is_file():
                    raise ExportError(f"{path}: this is not a regular file")
                self._file_lock = _FileLock(path)
            except OSError as error:
                if isinstance(error, ExportError):
                    raise
                raise ExportError(f"{path}: cannot be written: {error.strerror}") from error
            self._open[self._key] = self

    @classmethod
    def unfinished(cls, path: Path) -> Journal | None:
        """Return the journal of an interrupted run whose last calls are still to be written."""
        other = cls._open.get(os.path.realpath(path))
        return other if other is not None and other.ending else None

    def create(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Begin the file with `records`, all of them or none."""
        write_records(self.path, records)
        self.attach(self.path.stat().st_size)

    def attach(self, end: int) -> None:
        """Open the file to append after `end` bytes; what lies behind is an unfinished record."""
        try:
            self._handle = os.open(self.path, os.O_RDWR | getattr(os, "O_BINARY", 0))
            os.ftruncate(self._handle, end)
            os.lseek(self._handle, end - 1, os.SEEK_SET)
            if os.read(self._handle, 1) != b"\n":
                end += os.write(self._handle, b"\n")
        except OSError as error:
            raise ExportError(f"{self.path}: cannot be written: {error.strerror}") from error
        self._end = end
        self._syncer = threading.Thread(target=self._follow, name="ragdiag-sync", daemon=True)
        self._syncer.start()

    def _follow(self) -> None:
        """Bring to the disk what has been written, as often as the disk can."""
        while self._failure is None:
            self._unsynced.wait()
            self._unsynced.clear()
            try:
                _sync(self._handle)
            except OSError as error:
                self._failure = self._failure or error

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record; from then on it survives the death of the process.

        Raises
        ------
        ExportError
            The disk is full or gone. The file is cut back to its last whole record.
        """
        data = dumps(record)
        with self._lock:
            if self._failure is not None:
                raise self._refusal(self._failure)
            try:
                _write_all(self._handle, data)
            except OSError as error:
                self._failure = error
                with suppress(OSError):
                    os.ftruncate(self._handle, self._end)
                raise self._refusal(error) from error
            self._end += len(data)
        self._unsynced.set()

    def flush(self) -> None:
        """Wait until everything that was written is on the disk.

        Raises
        ------
        ExportError
            The disk does not take it.
        """
        try:
            if self._failure is not None:
                raise self._failure
            _sync(self._handle)
        except OSError as error:
            raise self._refusal(error) from error

    def _refusal(self, error: OSError) -> ExportError:
        return ExportError(
            f"{self.path}: cannot be written: {error.strerror}; everything recorded before is kept"
        )

    def close(self) -> None:
        """Close the file and release its lock; harmless when done twice."""
        with self._lock:
            if self.closed.is_set():
                return
            self._failure = self._failure or OSError(errno.EBADF, "the run has ended")
            if self._syncer is not None:
                self._unsynced.set()
                self._syncer.join()
            if self._handle >= 0:
                with suppress(OSError):
                    _sync(self._handle)
                os.close(self._handle)
            self._file_lock.release()
            self._open.pop(self._key, None)
            self.closed.set()


def _make_folders(folder: Path) -> None:
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for child in reversed(missing):
        child.mkdir(mode=0o700, exist_ok=True)


def _write_all(handle: int, data: bytes) -> None:
    """Write in one call; the rest of a short write (a disk nearly full) fails or follows."""
    written = os.write(handle, data)
    while written < len(data):
        written += os.write(handle, data[written:])


def _sync(handle: int) -> None:
    try:
        os.fsync(handle)
    except OSError as error:
        # Some virtual file systems cannot; the record is with the system all the same.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


class _FileLock:
    """A lock file beside the journal, held through the system: it dies with its process."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}.lock")
        while True:
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            if not _try_lock(self._handle):
                holder = os.read(self._handle, 200).decode(errors="replace").strip()
                os.close(self._handle)
                raise StoreBusyError(f"{path}: {holder or 'another process'} writes to it")
            # The former holder may have removed the file between our open and our lock.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self._handle), os.stat(self._path)):
                    break
            os.close(self._handle)
        os.ftruncate(self._handle, 0)
        os.write(self._handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())

    def release(self) -> None:
        with suppress(OSError):
            os.unlink(self._path)
        os.close(self._handle)


if os.name == "nt":  # pragma: no cover

    def _try_lock(handle: int) -> bool:
        import msvcrt

        try:
            # A byte far behind the text, so that others may read who holds the lock.
            os.lseek(handle, 2**20, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True

else:

    def _try_lock(handle: int) -> bool:
        import fcntl

        try:
            # A record lock belongs to this process alone: children of a process pool that
            # outlive it do not hold it, as they would with flock.
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            # A file system without locks: going on is better than refusing to work there.
            return error.errno not in (errno.EACCES, errno.EAGAIN)
        return True
