"""Where a run is kept while it goes on: its state in memory, and the journal if there is one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragdiag.errors import StoreMismatchError
from ragdiag.fingerprint import pipeline_digest
from ragdiag.journal import Journal, Record, read_records
from ragdiag.ledger import Ledger
from ragdiag.pipeline import Pipeline, stages_of
from ragdiag.recording import Run, dataset_records, header_record, reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from ragdiag.dataset import GoldenDataset

__all__ = ["Store", "plan_header"]

#: What has to be as it was for stored outputs to count, and what to call it.
_BINDING = (
    ("dataset", "digest", "the dataset's content (its digest)"),
    ("pipeline", "name", "the pipeline's name"),
    ("pipeline", "version", "the pipeline's version"),
    ("pipeline", "stages", "the pipeline's stages"),
    ("pipeline", "source", "the pipeline's code or constructor arguments (their digest)"),
)

#: Seconds between two looks whether an interrupted run's last calls have come back.
_PATIENCE = 0.2


def plan_header(pipeline: Pipeline, dataset: GoldenDataset) -> Record:
    """Return the header of a run of `pipeline` over `dataset`."""
    stages = stages_of(pipeline)
    if stages.answer is not None:
        names = ["answer"]
    else:
        names = ["retrieval"] if stages.generate is None else ["retrieval", "generation"]
    return header_record(
        dataset.frame,
        {"name": dataset.name, "version": dataset.version, "digest": dataset.digest},
        {
            "name": _text(pipeline.name),
            "version": _text(pipeline.version),
            "source": pipeline_digest(pipeline),
            "stages": names,
        },
        {},
    )


def _text(given: object) -> str:
    """Return a user's name or version as text: a class may well set ``version = 3``."""
    return "" if given is None else str(given).encode(errors="replace").decode()


class Store:
    """The records of a run: taken in from any thread, added up, and written if there is a file.

    It stays open, after :meth:`close`, until the calls in flight have been written.
    """

    def __init__(self, dataset: GoldenDataset, ledger: Ledger, journal: Journal | None) -> None:
        self.ledger = ledger
        self.notes: list[str] = []
        self._dataset, self._journal = dataset, journal
        self._lock = threading.Lock()
        self._writers = 0
        self._last_words: list[Callable[[], None]] | None = None

    @classmethod
    def open(
        cls,
        path: Path | None,
        header: Record,
        dataset: GoldenDataset,
        reuse: bool,
        note: Callable[[str], None],
    ) -> Store:
        """Begin or continue a run.

        Raises
        ------
        StoreBusyError, StoreMismatchError, RunFormatError, ExportError
            The file is in use, holds another run, is damaged, or cannot be written.
        """
        if path is None:
            ledger = Ledger.of([header])
            texts = zip(dataset.frame["query_id"], dataset.frame["query"], strict=True)
            ledger.queries = {query_id: {"query": text} for query_id, text in texts}
            return cls(dataset, ledger, None)
        _await_former(path, note)
        journal = Journal(path)
        try:
            if not path.exists() or not path.stat().st_size:
                records = [header, *_dataset_records(dataset)]
                journal.create(records)
                return cls(dataset, Ledger.of(records), journal)
            ledger, end = Ledger(), 0
            notes: list[str] = []
            with reading(path):
                for record, offset in read_records(path, notes.append):
                    ledger.apply(record)
                    end = offset
            changed = _check_header(path, ledger.header, header, reuse)
            journal.attach(end)
            if changed:
                for record in (header, *_dataset_records(dataset)):
                    journal.append(record)
                    ledger.apply(record)
        except BaseException:
            journal.close()
            raise
        store = cls(dataset, ledger, journal)
        for text in notes:
            note(text)
        store.notes += notes
        return store

    @property
    def path(self) -> Path | None:
        """The file, if there is one."""
        return None if self._journal is None else self._journal.path

    @property
    def queries(self) -> pd.DataFrame:
        """The questions, one a row."""
        return self._dataset.frame

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep the file open for a call that is being made."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """Begin what :meth:`leave` ends: a call whose record is to be written."""
        with self._lock:
            self._writers += 1

    def leave(self) -> None:
        """Say that a call has come back and its records are written."""
        with self._lock:
            self._writers -= 1
        self._close_if_idle()

    def write(self, record: Record) -> None:
        """Write a record and count it.

        Raises
        ------
        ExportError
            It cannot be written; it counts all the same, since it is there.
        """
        try:
            if self._journal is not None:
                self._journal.append(record)
        finally:
            with self._lock:
                self.ledger.apply(record)

    def flush(self) -> None:
        """Wait until everything that was written is on the disk.

        Raises
        ------
        ExportError
            The disk does not take it.
        """
        if self._journal is not None:
            self._journal.flush()

    def run(self) -> Run:
        """Return what there is so far."""
        with self._lock:
            fields: dict[str, Any] = self.ledger.run_fields(
                self._dataset.frame, self._dataset.qrels, self._dataset.evidence
            )
        if self.notes:
            fields["info"]["notes"] = [*fields["info"].get("notes", []), *self.notes]
        return Run(**fields)

    def close(self, *last_words: Callable[[], None]) -> None:
        """Close the file as soon as no call is in flight, and then do `last_words`."""
        with self._lock:
            self._last_words = list(last_words)
            if self._journal is not None:
                self._journal.ending = True
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        with self._lock:
            if self._writers or self._last_words is None:
                return
            words, self._last_words = self._last_words, None
        for word in words:
            word()
        if self._journal is not None:
            self._journal.close()


def _dataset_records(dataset: GoldenDataset) -> Iterator[Record]:
    return dataset_records(dataset.frame, dataset.qrels, dataset.evidence)


def _await_former(path: Path, note: Callable[[str], None]) -> None:
    """Wait for the last calls of an interrupted run, so that they are not made again."""
    former = Journal.unfinished(path)
    if former is not None:
        note("waiting for calls of the interrupted run that are still in flight")
        while not former.closed.wait(_PATIENCE):
            pass


def _check_header(path: Path, old: Record, new: Record, reuse: bool) -> bool:
    """Return whether the store is of another state of things, which `reuse` has to allow."""
    changed = False
    for section, key, label in _BINDING:
        before, now = old.get(section, {}).get(key), new[section].get(key)
        if before == now:
            continue
        changed = True
        if not reuse:
            raise StoreMismatchError(
                f"{path}: {label} differs ({section}.{key}: {_shown(before)} in the store, "
                f"{_shown(now)} now); give another store, or reuse=True to take the stored "
                "outputs as they are"
            )
    return changed


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 24 else f"{text[:13]}…{text[-1]}"
