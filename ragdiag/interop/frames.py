"""Any table as a run: one row a query with list columns, or one row a retrieved chunk.

This is the reader for everything that has no format of its own: the DataFrame in a notebook.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ragdiag.cells import plain_list, shown
from ragdiag.codec import json_text
from ragdiag.errors import RunError
from ragdiag.interop.documents import Chunk, chunks_in
from ragdiag.interop.records import DOUBLE, RunBuilder
from ragdiag.interop.source import Source
from ragdiag.interop.values import chunk_id_of, list_of, number_of, query_id_of, text_or_none
from ragdiag.labels import passages_of
from ragdiag.recording import Run
from ragdiag.tables import EVIDENCE, OUTCOMES, QRELS, QUERIES, RETRIEVED, TEXT, VERDICTS

__all__ = ["read_table", "run_from_frame"]

#: List columns of one row a query, and the column each is in one row a chunk.
CHUNK_LISTS = {
    "retrieved_chunks": "",
    "retrieved_chunk_ids": "chunk_id",
    "retrieved_texts": "text",
    "retrieved_scores": "score",
}

#: What is known to be relevant: ids in a list, their grades in an object by id.
LABELS = "relevant_chunk_ids"
GRADES = "grades"

#: What is known to be relevant as passages, verbatim or as spans of a document.
PASSAGES = "evidence"

GROUND_TRUTH = (LABELS, GRADES, PASSAGES)

#: Columns of a table of chunks, ``results.chunks`` included, that say nothing of the query.
OF_CHUNK = (*list(RETRIEVED)[1:], "relevant", "grade", "in_top_k")

FAILED, COMPLETED = "failed", "completed"


def run_from_frame(
    frame: pd.DataFrame,
    columns: Mapping[str, str] | None = None,
    *,
    qrels: pd.DataFrame | None = None,
    pipeline_name: str = "pipeline",
    pipeline_version: str = "",
    dataset_name: str = "dataset",
    dataset_version: str = "unversioned",
) -> Run:
    """Return a run from a table of what happened; see :meth:`ragdiag.Run.from_frame`."""
    from ragdiag.interop import parts

    if parts.is_partitioned(frame):
        return parts.run_from_partitions(
            frame,
            columns,
            qrels=qrels,
            pipeline_name=pipeline_name,
            pipeline_version=pipeline_version,
            dataset_name=dataset_name,
            dataset_version=dataset_version,
        )
    if not isinstance(frame, pd.DataFrame):
        raise RunError(f"expected a DataFrame, of pandas or Dask, got {type(frame).__name__}")
    frame = _renamed(frame, columns or {})
    if "query_id" not in frame and "query" not in frame:
        raise RunError(
            "the frame needs a column 'query_id' or 'query'; its columns are "
            f"{list(map(str, frame.columns))}; columns={{yours: ours}} renames"
        )
    made = "query_id" not in frame
    frame = _with_ids(frame)
    if "chunk_id" in frame or "text" in frame:
        tables = _long(frame)
    else:
        tables = _wide(_numbered(frame) if made else frame)
    if qrels is not None:
        tables["qrels"] = qrels
    return Run(
        **tables,
        pipeline_name=pipeline_name,
        pipeline_version=pipeline_version,
        dataset_name=dataset_name,
        dataset_version=dataset_version,
        info={"query_ids_made_from_text": True} if made else None,
    )


def read_table(source: Source, format: str) -> Run:
    """Return the run that a file with our own column names holds."""
    builder = RunBuilder(source.name, format)
    rows = [row for _, row in source.table_rows(builder.skip)]
    if not rows:
        return builder.run()  # raises, with the reasons
    run = run_from_frame(pd.DataFrame(rows), pipeline_name=source.stem, dataset_name=source.stem)
    notes = builder.all_notes()
    run.info = {**run.info, "source": source.name, "format": format, "notes": notes}
    return run


def _renamed(frame: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    absent = [yours for yours in columns if yours not in frame]
    if absent:
        raise RunError(
            f"columns= renames {absent[0]!r}, which the frame does not have; its columns are "
            f"{list(map(str, frame.columns))}"
        )
    frame = frame.reset_index(drop=True).rename(columns=dict(columns))
    names = [str(name) for name in frame.columns]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise RunError(f"two columns are called {twice[0]!r}; rename or drop one of them")
    return frame.set_axis(names, axis="columns")


def _with_ids(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with a query id in every row: as text, or made from the question."""
    if "query_id" in frame:
        given = [text_or_none(value) for value in plain_list(frame["query_id"])]
        if None in given:
            row = given.index(None)
            raise RunError(f"row {row}: query_id must be text, got {shown(frame['query_id'][row])}")
    else:
        texts = [text_or_none(value) for value in plain_list(frame["query"])]
        if None in texts:
            row = texts.index(None)
            raise RunError(f"row {row}: query must be text, got {shown(frame['query'][row])}")
        given = [query_id_of(str(text)) for text in texts]
    return frame.assign(query_id=pd.Series(given, dtype=TEXT))


def _numbered(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with a number behind the made id of a question that was asked before."""
    count = frame.groupby("query_id").cumcount() + 1
    suffix = count.map(lambda number: f"{DOUBLE}{number}" if number > 1 else "").astype(TEXT)
    return frame.assign(query_id=frame["query_id"] + suffix)


# One row a chunk


def _long(frame: pd.DataFrame) -> dict[str, Any]:
    first = ~frame["query_id"].duplicated()
    queries = frame[first].reset_index(drop=True)
    own = [name for name in frame if name not in OF_CHUNK]
    varying = _varying(frame[own])
    for name in varying:
        if name in QUERIES or name in OUTCOMES or name in VERDICTS or name in GROUND_TRUTH:
            raise RunError(
                f"column {name!r} differs between the rows of query "
                f"{varying[name]!r}; it says something of the query and must be the same in each"
            )
    tables = _by_query(queries[[name for name in own if name not in varying]])
    # A row without a chunk is a query that found nothing.
    chunks = frame[_has_chunk(frame)]
    metadata = _metadata(chunks, list(varying))
    retrieved = pd.DataFrame(
        {name: chunks[name] for name in RETRIEVED if name in chunks}, index=chunks.index
    )
    if "chunk_id" not in retrieved:
        retrieved["chunk_id"] = pd.Series(index=retrieved.index, dtype=TEXT)
    retrieved["chunk_id"] = _ids(retrieved)
    if metadata is not None:
        retrieved["metadata"] = metadata
    elif "metadata" in retrieved:
        retrieved["metadata"] = _json_cells(retrieved["metadata"])
    if "rank" in retrieved and retrieved["rank"].notna().all():
        ranks = pd.to_numeric(retrieved["rank"], errors="coerce")
        if ranks.isna().any() or (ranks < 0).any():
            row = int(np.flatnonzero((ranks.isna() | (ranks < 0)).to_numpy())[0])
            raise RunError(
                f"row {retrieved.index[row]}: rank must be a whole number of at least 1, got "
                f"{shown(retrieved['rank'].iloc[row])}"
            )
        retrieved = retrieved.assign(rank=ranks).sort_values("rank", kind="stable")
    # Ranks are counted anew: some begin at 0, some leave gaps where chunks were dropped.
    retrieved["rank"] = retrieved.groupby("query_id", sort=False).cumcount() + 1
    order = pd.factorize(frame["query_id"])[0]
    place = pd.Series(order, index=frame.index).loc[retrieved.index]
    tables["retrieved"] = retrieved.iloc[np.argsort(place.to_numpy(), kind="stable")]
    return tables


def _varying(frame: pd.DataFrame) -> dict[str, str]:
    """Return the columns that are not the same in all rows of a query, with one such query."""
    found: dict[str, str] = {}
    groups = pd.factorize(frame["query_id"])[0]
    for name in frame.columns:
        if name == "query_id":
            continue
        values = frame[name]
        if pd.api.types.is_object_dtype(values.dtype):
            values = values.map(repr)  # lists and dicts cannot be compared in bulk
        codes = pd.factorize(values)[0]
        pairs = np.unique(np.stack([groups, codes]), axis=1)
        several = np.flatnonzero(np.bincount(pairs[0]) > 1)
        if len(several):
            found[name] = str(frame["query_id"].iloc[int(np.argmax(groups == several[0]))])
    return found


def _has_chunk(frame: pd.DataFrame) -> pd.Series:
    has = pd.Series(False, index=frame.index)
    for name in ("chunk_id", "text"):
        if name in frame:
            has |= frame[name].notna()
    return has


def _ids(retrieved: pd.DataFrame) -> pd.Series:
    ids = [text_or_none(value) for value in plain_list(retrieved["chunk_id"])]
    if None in ids:
        texts = plain_list(retrieved["text"]) if "text" in retrieved else [None] * len(ids)
        ids = [
            chunk_id_of(str(text)) if each is None and text is not None else each
            for each, text in zip(ids, texts, strict=True)
        ]
    return pd.Series(ids, index=retrieved.index, dtype=TEXT)


def _metadata(chunks: pd.DataFrame, names: Sequence[str]) -> list[str] | None:
    """Return columns that differ between the chunks of a query as JSON of each chunk."""
    if not names:
        return None
    cells = [plain_list(chunks[name]) for name in names]
    return [json_text(dict(zip(names, row, strict=True))) for row in zip(*cells, strict=True)]


def _json_cells(values: pd.Series) -> list[str | None]:
    return [
        cell if isinstance(cell, str) or cell is None else json_text(cell)
        for cell in plain_list(values)
    ]


# One row a query


def _wide(frame: pd.DataFrame) -> dict[str, Any]:
    twice = frame.loc[frame["query_id"].duplicated(), "query_id"]
    if len(twice):
        raise RunError(
            f"query {twice.iloc[0]!r} has several rows and no row has a chunk_id; one row a chunk "
            "needs the column 'chunk_id' or 'text', one row a query has each query once"
        )
    lists = [name for name in CHUNK_LISTS if name in frame]
    tables = _by_query(frame[[name for name in frame if name not in lists]])
    if not lists:
        return tables
    rows: list[tuple[Any, ...]] = []
    cells = {name: plain_list(frame[name]) for name in lists}
    for at, query_id in enumerate(plain_list(frame["query_id"])):
        chunks = _chunks({name: column[at] for name, column in cells.items()}, at)
        for rank, chunk in enumerate(chunks, start=1):
            identity = chunk.id if chunk.id is not None else chunk_id_of(chunk.text or "")
            metadata = json_text(chunk.metadata) if chunk.metadata else None
            rows.append((query_id, rank, identity, chunk.score, chunk.text, metadata))
    tables["retrieved"] = pd.DataFrame(rows, columns=list(RETRIEVED))
    return tables


def _chunks(cells: Mapping[str, Any], row: int) -> list[Chunk]:
    """Return the chunks of one row from its list cells, which must be of one length."""
    if cells.get("retrieved_chunks") is not None:
        return chunks_in(_plain(cells["retrieved_chunks"]))
    lists = {name: list_of(_plain(cell)) for name, cell in cells.items() if cell is not None}
    lengths = {name: len(items) for name, items in lists.items() if items}
    if len(set(lengths.values())) > 1:
        raise RunError(f"row {row}: its lists are of different lengths: {lengths}")
    n = max(lengths.values(), default=0)
    nothing: list[Any] = [None] * n
    return [
        Chunk(text_or_none(identity), text_or_none(text), number_of(score))
        for identity, text, score in zip(
            lists.get("retrieved_chunk_ids") or nothing,
            lists.get("retrieved_texts") or nothing,
            lists.get("retrieved_scores") or nothing,
            strict=True,
        )
    ]


def _plain(cell: Any) -> Any:
    return cell.tolist() if isinstance(cell, np.ndarray) else cell


# Both


def _by_query(queries: pd.DataFrame) -> dict[str, Any]:
    """Return the tables that have one row a query, and the labels."""
    outcomes = queries[[name for name in OUTCOMES if name in queries]].copy()
    error = outcomes["error"].notna() if "error" in outcomes else pd.Series(False, outcomes.index)
    if "status" in outcomes:
        wrong = ~outcomes["status"].isin([FAILED, COMPLETED])
        if wrong.any():
            row = int(np.flatnonzero(wrong.to_numpy())[0])
            raise RunError(
                f"query {queries['query_id'].iloc[row]!r}: status must be {COMPLETED!r} or "
                f"{FAILED!r}, got {shown(outcomes['status'].iloc[row])}"
            )
    else:
        outcomes["status"] = np.where(error, FAILED, COMPLETED)
    verdicts = [name for name in VERDICTS if name in queries]
    known = {*OUTCOMES, *VERDICTS, *GROUND_TRUTH} - set(QUERIES)
    kept = [name for name in queries if name not in known]
    tables: dict[str, Any] = {"queries": queries[kept], "outcomes": outcomes}
    if "query" not in queries:
        tables["queries"] = tables["queries"].assign(query=queries["query_id"])
    if len(verdicts) > 1:
        judged = queries[verdicts]
        tables["verdicts"] = judged[judged.drop(columns="query_id").notna().any(axis=1)]
    labels = _labels(queries)
    if labels is not None:
        tables["qrels"] = labels
    if PASSAGES in queries:
        tables["evidence"] = _passages(queries)
    return tables


def _passages(queries: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for query_id, cell in zip(
        plain_list(queries["query_id"]), plain_list(queries[PASSAGES]), strict=True
    ):
        found, faults = passages_of(list_of(_plain(cell)), numbers=True)
        if faults:
            raise RunError(f"query {query_id!r}: {': '.join(faults[0])}")
        rows += [{"query_id": query_id, **passage} for passage in found]
    return pd.DataFrame(rows, columns=list(EVIDENCE))


def _labels(queries: pd.DataFrame) -> pd.DataFrame | None:
    if LABELS not in queries:
        return None
    grades = plain_list(queries[GRADES]) if GRADES in queries else [None] * len(queries)
    rows = []
    for query_id, cell, graded in zip(
        plain_list(queries["query_id"]), plain_list(queries[LABELS]), grades, strict=True
    ):
        by_id = graded if isinstance(graded, Mapping) else {}
        for chunk in list_of(_plain(cell)):
            identity = text_or_none(chunk)
            if identity is None:
                raise RunError(
                    f"query {query_id!r}: {LABELS} must be a list of ids, got {shown(cell)}"
                )
            rows.append((query_id, identity, by_id.get(identity, 1)))
    return pd.DataFrame(rows, columns=list(QRELS)).drop_duplicates(["query_id", "chunk_id"])
