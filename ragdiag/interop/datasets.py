"""Formats that hold a dataset and no run, LlamaIndex's and AutoRAG's; the dataset in a run's file.

AutoRAG's results (the same columns and what was retrieved) are a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ragdiag.cells import plain_list
from ragdiag.errors import RunFormatError
from ragdiag.interop import deepeval, ragas
from ragdiag.interop.detection import recognise
from ragdiag.interop.documents import Chunk
from ragdiag.interop.records import Record, RunBuilder
from ragdiag.interop.source import Source
from ragdiag.interop.tables import Names, record_of
from ragdiag.interop.values import first_of, list_of, text_or_none
from ragdiag.readers import from_columns
from ragdiag.recording import Run
from ragdiag.tables import QRELS
from ragdiag.validation import RawDataset

__all__ = ["AUTORAG", "raw_dataset", "read_autorag", "read_llama_index"]

AUTORAG = Names(
    query=("query",),
    query_id=("qid",),
    answer=("generated_texts",),
    expected_answer=("generation_gt",),
    contexts=("retrieved_contents",),
    context_ids=("retrieved_ids",),
    context_scores=("retrieve_scores",),
    dropped=("retrieval_gt", "generated_tokens", "generated_log_probs", "prompts"),
)

#: Names that only datasets of our own have.
OURS = ("relevant_chunk_ids", '"samples"')

#: What an AutoRAG folder calls its questions.
QA = "qa.parquet"


def raw_dataset(path: Path, *, max_bytes: int) -> RawDataset | None:
    """Return questions and labels of a file of another tool, unchecked.

    None where the file is of none of the tools that write datasets, or cannot be looked at: what
    is wrong with it is for the reader of datasets to say.
    """
    try:
        source = Source(path)
        too_much = path.is_file() and path.stat().st_size > max_bytes
        if too_much or source.shape in ("folder", "text") or source.begins_with(*OURS):
            return None
        found = recognise(source)
        reader = DATASETS.get(found.format) if found is not None else None
        if found is None or reader is None:
            return None
        run = reader(source, found.format)
    except RunFormatError:
        return None
    raw = from_columns(run.queries, source=str(path))
    raw.name = run.dataset_name
    raw.pairs = [
        (f"label {row}", query_id, chunk_id, grade)
        for row, (query_id, chunk_id, grade) in enumerate(
            zip(*(plain_list(run.qrels[name]) for name in QRELS), strict=True)
        )
    ]
    raw.query_types = sorted({each for each in plain_list(run.queries["query_type"]) if each})
    raw.warnings = list(run.info.get("notes", ()))
    return raw


def read_llama_index(source: Source, format: str) -> Run:
    """Return an ``EmbeddingQAFinetuneDataset`` as a run of which no query was run."""
    document = source.document
    builder = RunBuilder(source.name, format)
    queries, labels = document["queries"], document["relevant_docs"]
    if not isinstance(queries, Mapping) or not isinstance(labels, Mapping):
        raise RunFormatError(f"{source.path}: queries and relevant_docs must be objects by id")
    for query_id, query in queries.items():
        record = Record(f"queries.{query_id}", text_or_none(query), query_id)
        ids = (text_or_none(each) for each in list_of(labels.get(query_id)))
        record.labels = [(Chunk(each, None), 1) for each in ids if each is not None]
        builder.add(record, was_run=False)
    return builder.run(name=source.stem)


def read_autorag(source: Source, format: str) -> Run:
    """Return the questions of AutoRAG, with what was retrieved where a result has it.

    ``retrieval_gt`` lists groups: one chunk of each is needed. Labels have no alternatives, so all
    chunks become relevant, and a note says for how many queries that asks too much.
    """
    path = source.path / QA if source.shape == "folder" else source.path
    table = Source(path)
    builder = RunBuilder(table.name, format)
    was_run = any(name in table.columns for name in (*AUTORAG.context_ids, *AUTORAG.contexts))
    with_choice = 0
    for place, row in table.table_rows(builder.skip):
        record = record_of(place, row, AUTORAG)
        groups = [list_of(group) for group in list_of(first_of(row, ("retrieval_gt",)))]
        with_choice += any(len(group) > 1 for group in groups)
        ids = (text_or_none(each) for group in groups for each in group)
        record.labels = [(Chunk(each, None), 1) for each in ids if each is not None] or None
        builder.add(record, was_run=was_run)
    if with_choice:
        builder.notes.append(
            f"{with_choice:,} queries accept one of several chunks; all of them count as needed "
            "here, so recall is a lower bound for them"
        )
    return builder.run(name=_name(path))


def _name(path: Path) -> str:
    return path.resolve().parent.name if path.name == QA else path.stem


#: Whose files may be loaded as datasets.
DATASETS: dict[str, Callable[[Source, str], Run]] = {
    "llama_index": read_llama_index,
    "autorag": read_autorag,
    "ragas": ragas.read,
    "deepeval": deepeval.read,
}
