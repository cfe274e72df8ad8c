"""A run in parts: a Dask DataFrame, or a folder of Parquet files, put together without its texts.

Each part is read as any table is, and what no measure looks at, texts and metadata of chunks, is
dropped there: with Dask on the machine that holds the part. What comes together are the tables of
one row a query, and for each retrieved chunk its query, rank, id and score. So means, counts and
percentiles are those of the whole, exact, at any k, and every view of the results works.

Where the truth is known as passages of text, in a column ``evidence``, the texts are kept.

Parts hold whole queries. Ranks are counted within a part, and a query that is in two of them would
be ranked twice; that is an error, not a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ragdiag.errors import RunError, RunFormatError
from ragdiag.interop.frames import PASSAGES, run_from_frame
from ragdiag.interop.source import Source
from ragdiag.recording import Run
from ragdiag.tables import TEXT

__all__ = ["is_partitioned", "parquet_parts", "read_parts", "run_from_partitions"]

#: What a part is read without, if it has the ids in the column beside it.
DROPPED = {
    "text": "chunk_id",
    "metadata": "chunk_id",
    "retrieved_texts": "retrieved_chunk_ids",
}

#: Columns of the retrieved chunks that are kept in any case.
KEPT = ["query_id", "rank", "chunk_id", "score"]

#: The tables of a part.
TABLES = ("queries", "qrels", "evidence", "retrieved", "outcomes", "verdicts")


NOTE = (
    "texts and metadata of the chunks were not kept: the run was put together from {n:,} parts; "
    "relevance by passages of text is not measured"
)


@dataclass(frozen=True)
class _Part:
    """What is kept of one part; a part without rows has no tables."""

    name: str
    tables: Mapping[str, pd.DataFrame]
    ids_made: bool = False


def is_partitioned(frame: Any) -> bool:
    """Return whether this is a Dask DataFrame, or one that behaves like it."""
    return all(hasattr(frame, name) for name in ("to_delayed", "npartitions", "columns"))


def run_from_partitions(
    frame: Any,
    columns: Mapping[str, str] | None = None,
    *,
    qrels: Any = None,
    **names: str,
) -> Run:
    """Return a run from a Dask DataFrame; see :meth:`ragdiag.Run.from_frame`.

    The parts are worked on by Dask, wherever its scheduler has them; without a cluster in threads.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        One row a query or one row a chunk, the rows of a query in one partition.
    columns : mapping of str to str, optional
        Your column names to ours.
    qrels : DataFrame, of pandas or Dask, optional
        What is known to be relevant.
    **names
        ``pipeline_name, pipeline_version, dataset_name, dataset_version``.

    Raises
    ------
    RunError
        A partition is not a table of a run, or a query is in two of them.
    """
    dask: Any = import_module("dask")
    given = list(map(str, frame.columns))
    wanted = _wanted(given, columns or {})
    # What is not read is not renamed; what the frame lacks is told when the first part is read.
    columns = {
        yours: ours
        for yours, ours in (columns or {}).items()
        if yours in wanted or yours not in given
    }
    part = dask.delayed(_part)
    delayed = frame[wanted].to_delayed()
    parts = dask.compute(*(part(each, columns, str(at)) for at, each in enumerate(delayed)))
    if is_partitioned(qrels):
        qrels = qrels.compute()
    remedy = "repartition by query: frame.shuffle(on='query_id'), or frame.set_index('query_id')"
    return _combined(parts, qrels, remedy, names, {"format": "dask"})


def parquet_parts(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder and of its folders, in order."""
    return sorted(
        path
        for path in folder.rglob("*.parquet")
        if path.is_file() and not path.name.startswith(("_", "."))
    )


def read_parts(source: Source, format: str) -> Run:
    """Return the run that a folder of Parquet files holds, read one after the other."""
    files = parquet_parts(source.path)
    if not files:
        raise RunFormatError(f"{source.path}: there is no Parquet file in this folder")
    remedy = "write the files anew so that each holds whole queries"
    parts = (_part(_read(path), {}, path.name) for path in files)
    names = {"pipeline_name": source.stem, "dataset_name": source.stem}
    return _combined(parts, None, remedy, names, {"format": format, "source": source.name})


def _read(path: Path) -> pd.DataFrame:
    try:
        with pq.ParquetFile(path) as file:
            table = file.read(columns=_wanted(file.schema_arrow.names, {}))
    except (pa.ArrowException, OSError) as error:
        raise RunFormatError(f"{path}: cannot be read as Parquet: {error}") from error
    texts = {pa.string(): TEXT, pa.large_string(): TEXT}
    frame: pd.DataFrame = table.to_pandas(types_mapper=texts.get, self_destruct=True)
    return frame


def _wanted(names: Sequence[str], columns: Mapping[str, str]) -> list[str]:
    """Return the columns to read: texts only where something is made of them."""
    ours = {columns.get(name, name) for name in names}
    if PASSAGES in ours:
        return list(names)
    return [name for name in names if DROPPED.get(columns.get(name, name)) not in ours]


def _part(frame: pd.DataFrame, columns: Mapping[str, str], name: str) -> _Part:
    """Return what is kept of one part."""
    if not len(frame):
        return _Part(name, {})
    try:
        run = run_from_frame(frame, columns)
    except RunError as error:
        raise RunError(f"part {name}: {error}") from None
    tables = {table: getattr(run, table) for table in TABLES}
    if PASSAGES not in {columns.get(each, each) for each in frame.columns}:
        tables["retrieved"] = tables["retrieved"][KEPT]
    return _Part(name, tables, "query_ids_made_from_text" in run.info)


def _combined(
    parts: Iterable[_Part],
    qrels: pd.DataFrame | None,
    remedy: str,
    names: Mapping[str, str],
    info: dict[str, Any],
) -> Run:
    """Put the tables of parts together."""
    held = [part for part in parts if part.tables]
    if not held:
        raise RunError("there is no row in any part")
    _require_whole_queries(held, remedy)
    fields: dict[str, Any] = dict(names)
    for table in TABLES:
        fields[table] = pd.concat([part.tables[table] for part in held], ignore_index=True)
    if qrels is not None:
        fields["qrels"] = qrels
    if "text" not in fields["retrieved"]:
        info["notes"] = [NOTE.format(n=len(held))]
    if any(part.ids_made for part in held):
        info["query_ids_made_from_text"] = True
    return Run(**fields, info=info)


def _require_whole_queries(held: Sequence[_Part], remedy: str) -> None:
    ids = pd.concat([part.tables["queries"]["query_id"] for part in held], ignore_index=True)
    twice = ids.duplicated()
    if not twice.any():
        return
    query_id = ids[twice].iloc[0]
    where = [part.name for part in held if (part.tables["queries"]["query_id"] == query_id).any()]
    raise RunError(
        f"query {query_id!r} is in the parts {' and '.join(where[:2])}; a part must hold whole "
        f"queries: {remedy}"
    )
