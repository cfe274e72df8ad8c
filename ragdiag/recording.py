"""``Run``: what happened when one pipeline met one dataset, as tables. Immutable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

import ragdiag
from ragdiag.codec import encode, encode_column, encode_dtype
from ragdiag.errors import QueryNotFoundError, RunFormatError
from ragdiag.journal import (
    FORMAT,
    FORMAT_VERSION,
    Record,
    is_journal,
    read_records,
    write_records,
)
from ragdiag.ledger import PROVENANCE, Ledger
from ragdiag.tables import (
    EVIDENCE,
    OUTCOMES,
    QRELS,
    QUERIES,
    RETRIEVED,
    VERDICTS,
    as_table,
    empty_table,
    guarded,
)

__all__ = ["Run", "dataset_records", "header_record", "load_run", "reading"]


class Run:
    """The evidence tables of one pipeline on one dataset.

    Parameters
    ----------
    queries : pandas.DataFrame
        One row a query: ``query_id, query, expected_answer, query_type`` and metadata columns.
    qrels : pandas.DataFrame, optional
        Ground truth, one row a pair: ``query_id, chunk_id, grade``.
    retrieved : pandas.DataFrame, optional
        One row a chunk: ``query_id, rank, chunk_id, score, text, metadata``.
    outcomes : pandas.DataFrame, optional
        One row a query that was run: ``query_id, status, error, answer, retrieval_ms,
        generation_ms, total_ms``.
    verdicts : pandas.DataFrame, optional
        One row a judged query, see :data:`ragdiag.tables.VERDICTS`.
    evidence : pandas.DataFrame, optional
        Ground truth as passages, one row each: ``query_id, document, start, end, text``.
    pipeline_name, pipeline_version, dataset_name, dataset_version : str
        Names that reports show.
    info : mapping, optional
        Anything else worth keeping (JSON-like): the judge, notes of an importer, flags.
    """

    def __init__(
        self,
        queries: pd.DataFrame,
        qrels: pd.DataFrame | None = None,
        retrieved: pd.DataFrame | None = None,
        outcomes: pd.DataFrame | None = None,
        verdicts: pd.DataFrame | None = None,
        *,
        evidence: pd.DataFrame | None = None,
        pipeline_name: str = "pipeline",
        pipeline_version: str = "",
        dataset_name: str = "dataset",
        dataset_version: str = "unversioned",
        info: Mapping[str, Any] | None = None,
    ) -> None:
        pair = ("query_id", "chunk_id")
        self._queries = as_table(queries, QUERIES, name="queries", keep_extra=True)
        self._qrels = _table(qrels, QRELS, "qrels", pair)
        self._evidence = _table(evidence, EVIDENCE, "evidence", ("query_id",))
        self._retrieved = _table(retrieved, RETRIEVED, "retrieved", (*pair, "rank"))
        self._outcomes = _table(outcomes, OUTCOMES, "outcomes", ("query_id", "status"))
        self._verdicts = _table(verdicts, VERDICTS, "verdicts", ("query_id",))
        self.pipeline_name = pipeline_name
        self.pipeline_version = pipeline_version
        self.dataset_name = dataset_name
        self.dataset_version = dataset_version
        self.info: Mapping[str, Any] = MappingProxyType(dict(info or {}))

    # What is handed out is a copy that nobody can harm the original through.
    @property
    def queries(self) -> pd.DataFrame:
        """One row a query, metadata columns included."""
        return guarded(self._queries)

    @property
    def qrels(self) -> pd.DataFrame:
        """Ground truth, one row a pair."""
        return guarded(self._qrels)

    @property
    def evidence(self) -> pd.DataFrame:
        """Ground truth as passages, one row each."""
        return guarded(self._evidence)

    @property
    def retrieved(self) -> pd.DataFrame:
        """One row a chunk returned, in the pipeline's order."""
        return guarded(self._retrieved)

    @property
    def outcomes(self) -> pd.DataFrame:
        """One row a query that was run."""
        return guarded(self._outcomes)

    @property
    def verdicts(self) -> pd.DataFrame:
        """One row a judged query."""
        return guarded(self._verdicts)

    def __len__(self) -> int:
        return len(self._queries)

    def __repr__(self) -> str:
        judged = f", {len(self._verdicts)} judged" if len(self._verdicts) else ""
        return (
            f"<ragdiag.Run of {self.pipeline_name!r} on {self.dataset_name!r}: "
            f"{len(self._outcomes)} of {len(self)} queries{judged}>"
        )

    def _repr_html_(self) -> str:
        from ragdiag.display import html

        return html.render(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from ragdiag import display

        return display.bundle(self)

    def subset(self, query_ids: Iterable[str]) -> Run:
        """Return a run of these queries alone, in the order of this one.

        Raises
        ------
        QueryNotFoundError
            A query is not in the run.
        """
        wanted = set(query_ids)
        missing = wanted - set(self._queries["query_id"])
        if missing:
            raise QueryNotFoundError(f"the run has no query {min(missing)!r}")
        info = {
            key: {name: of for name, of in value.items() if name in wanted}
            if key in _PER_QUERY
            else value
            for key, value in self.info.items()
        }
        tables = {
            name: table[table["query_id"].isin(wanted)] for name, table in self._tables().items()
        }
        return self.replace(**tables, info=info)

    def rename_queries(self, names: Mapping[str, str]) -> Run:
        """Return the run with other query ids, old to new; ids that are not named stay."""
        info = {
            key: {names.get(name, name): of for name, of in value.items()}
            if key in _PER_QUERY
            else value
            for key, value in self.info.items()
        }
        tables = {
            name: table.assign(query_id=table["query_id"].map(lambda each: names.get(each, each)))
            for name, table in self._tables().items()
        }
        return self.replace(**tables, info=info)

    def replace(self, **fields: Any) -> Run:
        """Return the run with some of its tables, names or ``info`` replaced.

        Examples
        --------
        >>> run = Run(pd.DataFrame({"query_id": ["q1"], "query": ["How long?"]}))
        >>> run.replace(pipeline_name="hybrid").pipeline_name
        'hybrid'
        """
        return Run(**{**self._tables(), **{name: getattr(self, name) for name in _ABOUT}, **fields})

    def _tables(self) -> dict[str, pd.DataFrame]:
        names = ("queries", "qrels", "evidence", "retrieved", "outcomes", "verdicts")
        return {name: getattr(self, f"_{name}") for name in names}

    @classmethod
    def from_frame(
        cls, frame: pd.DataFrame, columns: Mapping[str, str] | None = None, **options: Any
    ) -> Run:
        """Return a run from a table of what happened, of one of two forms.

        One row a query: ``query_id`` or ``query`` (an id is made from the text), and any of
        ``expected_answer, query_type, answer, status, error, retrieval_ms, generation_ms,
        total_ms``, the columns of verdicts, ``relevant_chunk_ids`` (a list), ``grades`` (an object
        by chunk id), and lists of what was retrieved, in order: ``retrieved_chunks`` (documents or
        texts) or ``retrieved_chunk_ids, retrieved_texts, retrieved_scores``. List cells may also be
        JSON or Python reprs. One row a chunk: ``chunk_id`` or ``text``, ``score, rank, metadata``
        beside the columns of the query, which repeat. Other columns become metadata.

        Parameters
        ----------
        frame : DataFrame, of pandas or Dask
            The table. A query with an ``error`` and no ``status`` has failed. The partitions of a
            Dask DataFrame hold whole queries, and the texts of its chunks are not kept.
        columns : mapping of str to str, optional
            Your column names to ours: ``{"question": "query"}``.
        **options
            ``qrels`` (a table of ``query_id, chunk_id, grade``), ``pipeline_name``,
            ``pipeline_version``, ``dataset_name``, ``dataset_version``.

        Raises
        ------
        RunError
            The frame is of neither form; the message names column and row.

        Examples
        --------
        >>> rows = pd.DataFrame({"question": ["How long?"], "sources": [["doc_17", "doc_03"]],
        ...                      "relevant_chunk_ids": [["doc_17"]]})
        >>> run = Run.from_frame(rows, {"question": "query", "sources": "retrieved_chunk_ids"})
        >>> run.retrieved["chunk_id"].tolist()
        ['doc_17', 'doc_03']
        """
        from ragdiag.interop import run_from_frame

        return run_from_frame(frame, columns, **options)

    def judge(self, judge: Any, **options: Any) -> Run:
        """Return the run with a judge's verdicts, see :func:`ragdiag.judging.judged`."""
        from ragdiag.judging import judged

        return judged(self, judge, **options)

    def to_trec(self, folder: str | Path) -> Path:
        """Write run and qrels for trec_eval, see :func:`ragdiag.interop.trec.to_trec`."""
        from ragdiag.interop import trec

        return trec.to_trec(self, folder)

    def to_ragas(self, path: str | Path | None = None) -> list[dict[str, Any]]:
        """Return samples for ragas, see :func:`ragdiag.interop.ragas.to_ragas`."""
        from ragdiag.interop import ragas

        return ragas.to_ragas(self, path)

    def to_deepeval(self, path: str | Path | None = None) -> list[dict[str, Any]]:
        """Return test cases for deepeval, see :func:`ragdiag.interop.deepeval.to_deepeval`."""
        from ragdiag.interop import deepeval

        return deepeval.to_deepeval(self, path)

    def save(self, path: str | Path) -> None:
        """Write the run to one file; :func:`load_run` gives it back, every table equal.

        The file is UTF-8 with one JSON object a line, the format a store has as well, and can be
        read by its owner alone.

        Raises
        ------
        RunError
            A metadata value or ``info`` is of a type that has no faithful form.
        ExportError
            The file cannot be written.
        """
        header = header_record(
            self._queries,
            {"name": self.dataset_name, "version": self.dataset_version},
            {"name": self.pipeline_name, "version": self.pipeline_version},
            self.info,
        )
        write_records(Path(path), self._records(header))

    def _records(self, header: Record) -> Iterator[Record]:
        yield header
        yield from dataset_records(self._queries, self._qrels, self._evidence)
        rows = _rows(self._retrieved, RETRIEVED)
        for query_id, group in groupby(rows, key=lambda row: row.pop("query_id")):
            yield {"record": "retrieved", "query_id": query_id, "chunks": list(group)}
        for kind, table, spec in (
            ("outcome", self._outcomes, OUTCOMES),
            ("verdict", self._verdicts, VERDICTS),
        ):
            yield from ({"record": kind, **row} for row in _rows(table, spec))


#: What a run is of, beside its tables.
_ABOUT = (
    *("pipeline_name", "pipeline_version", "dataset_name", "dataset_version"),
    "info",
)

#: Parts of ``info`` that are mappings of query id to something.
_PER_QUERY = (
    *("flags", "tracebacks", "judge_details", "judge_replies"),
    "retrieval_not_recorded",
)


def header_record(
    queries: pd.DataFrame,
    dataset: Mapping[str, Any],
    pipeline: Mapping[str, Any],
    info: Mapping[str, Any],
) -> Record:
    """Return the first record of a run's file."""
    sections: dict[str, dict[str, Any]] = {"dataset": dict(dataset), "pipeline": dict(pipeline)}
    rest = dict(info)
    for name, (section, key) in PROVENANCE.items():
        if name in rest:
            sections[section][key] = rest.pop(name)
    return {
        "record": "header",
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "ragdiag": ragdiag.__version__,
        **sections,
        "columns": [
            {"name": name, "dtype": encode_dtype(queries[name].dtype)}
            for name in queries.columns
            if name not in QUERIES
        ],
        "info": encode(rest),
    }


def dataset_records(
    queries: pd.DataFrame, qrels: pd.DataFrame, evidence: pd.DataFrame
) -> Iterator[Record]:
    """Yield the records of the questions and of their ground truth."""
    extra = [name for name in queries.columns if name not in QUERIES]
    cells = [encode_column(queries[name]) for name in extra]
    for position, row in enumerate(_rows(queries[list(QUERIES)], QUERIES)):
        metadata = {name: column[position] for name, column in zip(extra, cells, strict=True)}
        yield {"record": "query", **row, **({"metadata": metadata} if extra else {})}
    pairs = _rows(qrels, QRELS)
    for query_id, group in groupby(pairs, key=lambda row: row["query_id"]):
        listed = [[row["chunk_id"], row.get("grade")] for row in group]
        yield {"record": "qrels", "query_id": query_id, "pairs": listed}
    for row in _rows(evidence, EVIDENCE):
        yield {"record": "evidence", **row}


def _rows(table: pd.DataFrame, spec: Mapping[str, Any]) -> Iterator[Record]:
    """Yield each row without what is missing in it."""
    columns = [
        table[name].astype(object).where(table[name].notna(), None).tolist() for name in spec
    ]
    for cells in zip(*columns, strict=True):
        yield {
            name: encode(cell) if type(cell) is float else cell
            for name, cell in zip(spec, cells, strict=True)
            if cell is not None
        }


def load_run(path: str | Path, format: str = "auto", *, pipeline: str | int | None = None) -> Run:
    """Return a run: saved, in a store so far, or recorded by another tool.

    A query of a store whose pipeline had not finished is among the queries but has no outcome.

    Parameters
    ----------
    path : str or pathlib.Path
        A file written by :meth:`Run.save` or through ``store=``, or a file or folder of another
        tool: traces, evaluation tables, TREC files, see :data:`ragdiag.interop.FORMATS`.
    format : str
        Name of the format; ``"auto"`` detects it, and :func:`ragdiag.interop.detect` says why.
    pipeline : str or int, optional
        Which pipeline, by name or position, where a file of another tool holds several.

    Returns
    -------
    Run
        What another tool's file holds and cannot be used is counted in ``run.info["notes"]`` and
        listed with its place in ``run.info["skipped"]``.

    Raises
    ------
    RunFormatError
        The file is of no known format, of a later version, or is damaged at a named place. A last
        line of a store that was cut short is dropped and noted in ``run.info["notes"]``.
    """
    if format != "ragdiag" and not (format == "auto" and is_journal(Path(path))):
        from ragdiag.interop import load

        return load(path, format, pipeline=pipeline)
    notes: list[str] = []
    records = read_records(Path(path), notes.append)
    with reading(Path(path)):
        fields = Ledger.of(record for record, _ in records).run_fields()
    if notes:
        fields["info"]["notes"] = [*fields["info"].get("notes", []), *notes]
    return Run(**fields)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what goes wrong with records of an unforeseen shape into a RunFormatError."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, RunFormatError):
            raise
        raise RunFormatError(
            f"{path}: its records do not make up a run: {type(error).__name__}: {error}"
        ) from error


def _table(
    frame: pd.DataFrame | None, spec: Mapping[str, Any], name: str, required: tuple[str, ...]
) -> pd.DataFrame:
    if frame is None:
        return empty_table(spec)
    return as_table(frame, spec, name=name, required=required)
