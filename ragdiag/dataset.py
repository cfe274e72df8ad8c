"""Golden datasets: the questions, what is known to be right about them, and how to load them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Self, overload

import numpy as np
import pandas as pd

from ragdiag.beir import read_beir
from ragdiag.cells import plain_list
from ragdiag.dataset_records import file_record, json_value, records_of
from ragdiag.dataset_summary import DatasetSummary, summarise
from ragdiag.errors import DatasetLoadError, DatasetValidationError, ExportError, QueryNotFoundError
from ragdiag.files import DEFAULT_MAX_BYTES, write_text
from ragdiag.readers import UNVERSIONED, from_columns, read
from ragdiag.schema import QuerySample
from ragdiag.validation import CheckedDataset, QueryTypes, RawDataset, check, columns_of

__all__ = ["DatasetSummary", "GoldenDataset", "load_dataset", "validate_dataset"]

#: The questions of an AutoRAG folder.
AUTORAG_QUESTIONS = "qa.parquet"


class GoldenDataset:
    """Questions with their expected answers and labelled chunks; immutable.

    Parameters
    ----------
    name, version : str
        Reports show them.
    samples : iterable of QuerySample or mapping
        The questions; mappings have the fields of :class:`~ragdiag.schema.QuerySample`.
    description : str, optional
        What the dataset is about.
    query_types : list of str or "any"
        Types allowed beside ``factual``, ``reasoning`` and ``multi-hop``.

    Raises
    ------
    DatasetValidationError
        Anything is at fault; the message and ``faults`` list all of it.

    See Also
    --------
    load_dataset : from a file or folder.
    GoldenDataset.from_frame : from a DataFrame.

    Examples
    --------
    >>> dataset = GoldenDataset(
    ...     name="support", version="1",
    ...     samples=[QuerySample(id="q1", query="How long do refunds take?",
    ...                          expected_answer="7 days", relevant_chunk_ids=["refunds"])])
    >>> dataset["q1"].expected_answer
    '7 days'
    >>> dataset.qrels
      query_id chunk_id  grade
    0       q1  refunds      1
    """

    _checked: CheckedDataset
    _samples: list[QuerySample] | None = None
    _positions: dict[str, int] | None = None
    _digest: str | None = None

    def __init__(
        self,
        name: str,
        version: str,
        samples: Iterable[QuerySample | Mapping[str, Any]],
        description: str | None = None,
        query_types: QueryTypes = (),
    ) -> None:
        records: list[dict[str, Any]] = []
        for position, sample in enumerate(samples):
            if not isinstance(sample, QuerySample | Mapping):
                raise DatasetValidationError(
                    f"samples[{position}]: must be a QuerySample or a mapping, got {sample!r}"
                )
            records.append(sample.model_dump() if isinstance(sample, QuerySample) else {**sample})
        raw = RawDataset(
            source=f"dataset {name!r}",
            columns=columns_of(records),
            where="samples[{}]".format,
            name=name,
            version=version,
            description=description,
            renaming="",
        )
        self._checked = check(raw, query_types=query_types)

    @classmethod
    def _of(cls, checked: CheckedDataset) -> Self:
        dataset = cls.__new__(cls)
        dataset._checked = checked
        return dataset

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        columns: Mapping[str, str] | None = None,
        *,
        qrels: pd.DataFrame | None = None,
        name: str = "dataset",
        version: str = UNVERSIONED,
        description: str | None = None,
        query_types: QueryTypes = (),
    ) -> Self:
        """Build a dataset from a DataFrame, one row a question.

        Parameters
        ----------
        frame : pandas.DataFrame
            With ``query_id`` (or ``id``) and ``query``; if known ``expected_answer``,
            ``query_type`` and ``relevant_chunk_ids`` or ``evidence`` (a list in each cell, of ids,
            of passages). All other columns become metadata. Whole numbers are accepted as ids.
        columns : mapping of str to str, optional
            Your column names to ours: ``{"question": "query"}``.
        qrels : pandas.DataFrame, optional
            The labels as a table of their own: ``query_id, chunk_id`` and, if graded, ``grade``.
        name, version, description, query_types
            As of :class:`GoldenDataset`.

        Raises
        ------
        DatasetValidationError
            Anything is at fault; all of it is listed.

        Examples
        --------
        >>> frame = pd.DataFrame({"no": [1, 2], "question": ["Who?", "When?"]})
        >>> dataset = GoldenDataset.from_frame(frame, {"no": "id", "question": "query"})
        >>> dataset.frame["query_id"].tolist()
        ['1', '2']
        """
        raw = from_columns(frame, source="the frame")
        raw.name, raw.version, raw.description = name, version, description
        raw.renaming = "columns"
        if qrels is not None:
            raw.pairs = _pairs_of(qrels)
        return cls._of(check(raw, query_types=query_types, rename=columns))

    # What it holds

    @property
    def name(self) -> str:
        """Name that reports show."""
        return self._checked.name

    @property
    def version(self) -> str:
        """Version that reports show."""
        return self._checked.version

    @property
    def description(self) -> str | None:
        """What the dataset is about."""
        return self._checked.description

    @property
    def query_types(self) -> tuple[str, ...]:
        """Types declared beside the standard ones."""
        return self._checked.query_types

    @property
    def warnings(self) -> tuple[str, ...]:
        """Doubts that do not stop the dataset from being used."""
        return self._checked.warnings

    @property
    def frame(self) -> pd.DataFrame:
        """One row a question, index = position: the columns of QUERIES, then metadata; a copy."""
        return self._checked.frame.copy()

    @property
    def qrels(self) -> pd.DataFrame:
        """Ground truth, one row a pair: ``query_id, chunk_id, grade``; a copy."""
        return self._checked.qrels.copy()

    @property
    def evidence(self) -> pd.DataFrame:
        """Ground truth as passages, one row each: ``query_id, document, start, end, text``."""
        return self._checked.evidence.copy()

    @property
    def samples(self) -> list[QuerySample]:
        """The questions as models, in order; built on first use."""
        return list(self._built())

    @property
    def digest(self) -> str:
        """SHA-256 of the content in hex: questions, labels and metadata, not name and version.

        Files of different formats that hold the same have the same digest.
        """
        if self._digest is None:
            content = hashlib.sha256()
            for record in records_of(self._checked):
                record["grades"] = dict(sorted(record["grades"].items()))
                del record["relevant_chunk_ids"]
                line = json.dumps(record, sort_keys=True, default=json_value)
                content.update(line.encode() + b"\n")
            self._digest = content.hexdigest()
        return self._digest

    def __len__(self) -> int:
        return len(self._checked.frame)

    def __iter__(self) -> Iterator[QuerySample]:
        return iter(self._built())

    @overload
    def __getitem__(self, key: str | int) -> QuerySample: ...
    @overload
    def __getitem__(self, key: slice | list[bool] | list[str] | pd.Series | np.ndarray) -> Self: ...
    def __getitem__(self, key: Any) -> QuerySample | Self:
        """Return one question by id or position, or the dataset of a slice, mask or list of ids."""
        if isinstance(key, str):
            return self._built()[self._position(key)]
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            return self._built()[key]
        if isinstance(key, slice):
            return self._subset(np.arange(len(self))[key])
        chosen = plain_list(key) if isinstance(key, Iterable) else [key]
        if all(isinstance(item, str) for item in chosen):
            return self._subset(np.array([self._position(item) for item in chosen], dtype=np.intp))
        if not all(item is None or isinstance(item, bool | np.bool_) for item in chosen):
            raise TypeError(f"expected a position, an id, a slice, a mask or ids, got {key!r}")
        if len(chosen) != len(self):
            raise IndexError(f"a mask of {len(chosen)} values for {len(self)} questions")
        return self._subset(np.flatnonzero([bool(item) for item in chosen]))

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._by_id()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GoldenDataset):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        counts = validate_dataset(self)
        types = ", ".join(f"{n} {kind}" for kind, n in counts.query_type_counts.items())
        doubts = f"; {len(self.warnings)} warnings, see .warnings" if self.warnings else ""
        return (
            f"<GoldenDataset {self.name!r}, version {self.version!r}: {len(self)} queries"
            f"{f' ({types})' if types else ''}, {counts.total_relevant} relevant chunks{doubts}>"
        )

    def _repr_html_(self) -> str:
        from ragdiag.display import html

        return html.render(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from ragdiag import display

        return display.bundle(self)

    # What it does

    def summary(self) -> DatasetSummary:
        """Count what there is; the same as :func:`validate_dataset`."""
        return validate_dataset(self)

    def lint(self, *, corpus: Any = None, results: Any = None) -> pd.DataFrame:
        """Return what is probably wrong with the labels, see :func:`ragdiag.lint.lint`."""
        from ragdiag.lint import lint

        return lint(self, corpus=corpus, results=results)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the dataset as ``.json`` (lossless) or ``.jsonl`` (the questions alone).

        A ``.json`` file is complete: name, version, description and declared types as well. When
        questions lack an answer, type or label, it loads with ``strict=False``.

        Raises
        ------
        ExportError
            The file cannot be written, or metadata cannot be JSON.
        """
        path = Path(path).expanduser()
        suffix = path.suffix.lower()
        if suffix not in (".json", ".jsonl"):
            raise ExportError(f"{path}: a dataset is saved as .json or .jsonl, got {suffix!r}")
        try:
            lines = [
                json.dumps(
                    file_record(record), ensure_ascii=False, allow_nan=False, default=json_value
                )
                for record in records_of(self._checked)
            ]
        except (TypeError, ValueError) as error:
            raise ExportError(f"{path}: metadata that JSON cannot hold: {error}") from error
        if suffix == ".jsonl":
            text = "".join(f"{line}\n" for line in lines)
        else:
            head = {
                "name": self.name,
                "version": self.version,
                "description": self.description,
                "query_types": list(self.query_types),
            }
            opening = json.dumps(head, ensure_ascii=False, indent=2).removesuffix("\n}")
            text = f'{opening},\n  "samples": [\n    ' + ",\n    ".join(lines) + "\n  ]\n}\n"
        write_text(path, text)
        return path

    # How

    def _built(self) -> list[QuerySample]:
        if self._samples is None:
            context = {"query_types": self.query_types}
            self._samples = [
                QuerySample.model_validate(record, context=context)
                for record in records_of(self._checked)
            ]
        return self._samples

    def _by_id(self) -> dict[str, int]:
        if self._positions is None:
            ids = plain_list(self._checked.frame["query_id"])
            self._positions = {query_id: position for position, query_id in enumerate(ids)}
        return self._positions

    def _position(self, query_id: str) -> int:
        try:
            return self._by_id()[query_id]
        except KeyError:
            raise QueryNotFoundError(f"no query has the id {query_id!r}") from None

    def _subset(self, positions: np.ndarray) -> Self:
        if not len(positions):
            raise DatasetValidationError("no question is left; a dataset needs at least one")
        whole = self._checked
        frame = whole.frame.iloc[positions].reset_index(drop=True)
        qrels, evidence = (
            table[table["query_id"].isin(frame["query_id"])].reset_index(drop=True)
            for table in (whole.qrels, whole.evidence)
        )
        return self._of(
            CheckedDataset(
                whole.name,
                whole.version,
                whole.description,
                whole.query_types,
                frame,
                qrels,
                whole.warnings,
                evidence,
            )
        )

    def _identity(self) -> tuple[Any, ...]:
        return (self.name, self.version, self.description, self.query_types, self.digest)


def load_dataset(
    path: str | PathLike[str],
    *,
    query_types: QueryTypes = (),
    rename: Mapping[str, str] | None = None,
    strict: bool | None = None,
    split: str | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> GoldenDataset:
    """Load a golden dataset and check all of it.

    ==============  ==============================================================================
    ``.json``       ``{"name", "version", "description", "query_types", "samples": [{"id", "query",
                    "expected_answer", "relevant_chunk_ids", "query_type", ...}]}``; strict
    ``.jsonl``      one sample a line
    ``.csv``        one sample a row, all cells text; list cells are JSON; an empty cell is missing
    ``.parquet``    one sample a row
    BEIR folder     ``queries.jsonl``, ``corpus.jsonl[.gz]``, ``qrels/*.tsv``;
                    ``metadata.answer`` is the expected answer; ``metadata.type`` is the query
                    type where `query_types` declares any or where all its values are standard
    other tools     LlamaIndex's ``EmbeddingQAFinetuneDataset``, AutoRAG's ``qa.parquet`` or its
                    folder, datasets of ragas, goldens of deepeval
    ==============  ==============================================================================

    Text formats may also end in ``.gz``. All are UTF-8. Fields that have no meaning here become
    metadata columns. Name and version default to the file's stem and ``"unversioned"``.

    Parameters
    ----------
    path : path-like
        File or folder.
    query_types : list of str or "any"
        Types allowed beside ``factual``, ``reasoning``, ``multi-hop`` and those the file declares.
    rename : mapping of str to str, optional
        Fields to rename, from the file's name to another: ``{"question": "query"}``, or
        ``{"score": "exam_score"}`` for metadata whose name is reserved.
    strict : bool, optional
        Whether each sample must have an answer, a type and a relevant chunk, and ids must be text;
        by default so for ``.json`` alone. What a sample lacks counts as not measured.
    split : str, optional
        Of a BEIR folder: ``"test"`` takes the labels of ``qrels/test.tsv`` and the queries that
        have one there. By default all queries and the labels of all splits.
    max_bytes : int
        Larger files are refused, bytes after unpacking.

    Returns
    -------
    GoldenDataset

    Raises
    ------
    DatasetLoadError
        The file is absent, unreadable, or not what its name says.
    DatasetValidationError
        Its content is at fault; the message and ``faults`` list every fault with its place.

    Examples
    --------
    >>> load_dataset("no/such/file.json")
    Traceback (most recent call last):
        ...
    ragdiag.errors.DatasetLoadError: no/such/file.json: there is no such file
    """
    path = Path(path).expanduser()
    if path.is_dir() and split is None and (path / AUTORAG_QUESTIONS).is_file():
        path = path / AUTORAG_QUESTIONS
    if path.is_dir():
        raw = read_beir(path, max_bytes=max_bytes, split=split, query_types=query_types)
    elif split is not None:
        raise DatasetLoadError(f"{path}: split={split!r} is for BEIR folders, and this is a file")
    else:
        from ragdiag.interop import datasets

        foreign = None if rename else datasets.raw_dataset(path, max_bytes=max_bytes)
        raw = foreign or read(path, max_bytes=max_bytes, cells=dict(rename or {}))
    raw.strict = raw.strict if strict is None else strict
    return GoldenDataset._of(check(raw, query_types=query_types, rename=rename))


def validate_dataset(dataset: GoldenDataset) -> DatasetSummary:
    """Return what a dataset consists of, with the doubts about it.

    A :class:`GoldenDataset` that is at fault cannot exist, so this never raises for one.

    Examples
    --------
    >>> dataset = GoldenDataset("support", "1", [{"id": "q1", "query": "How long?"}])
    >>> validate_dataset(dataset).without_answer
    1
    """
    if not isinstance(dataset, GoldenDataset):
        raise TypeError(f"expected a GoldenDataset, got {type(dataset).__name__}; see load_dataset")
    return summarise(dataset._checked)


def _pairs_of(qrels: pd.DataFrame) -> list[tuple[str, Any, Any, Any]]:
    absent = [name for name in ("query_id", "chunk_id") if name not in qrels]
    if absent:
        raise DatasetValidationError(
            f"qrels has no column {absent[0]!r}; its columns are {list(map(str, qrels.columns))}"
        )
    grades = plain_list(qrels["grade"]) if "grade" in qrels else [None] * len(qrels)
    places = (f"qrels row {row}" for row in range(len(qrels)))
    ids = (plain_list(qrels[name]) for name in ("query_id", "chunk_id"))
    return list(zip(places, *ids, grades, strict=True))
