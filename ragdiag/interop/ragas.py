"""ragas: evaluation datasets and results, as JSON lines, CSV or Parquet.

The names before version 0.2 are read as well. Reference contexts become labels: a retrieved
context is relevant where its id is one of them or, without ids, where its text is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragdiag.files import write_text
from ragdiag.interop.export_rows import answer_rows, json_lines
from ragdiag.interop.records import RunBuilder
from ragdiag.interop.source import Source
from ragdiag.interop.tables import Names, fill
from ragdiag.recording import Run

__all__ = ["NAMES", "read", "to_ragas"]

NAMES = Names(
    query=("user_input", "question"),
    answer=("response", "answer"),
    expected_answer=("reference", "ground_truth", "ground_truths"),
    contexts=("retrieved_contexts", "contexts"),
    context_ids=("retrieved_context_ids",),
    references=("reference_contexts",),
    reference_ids=("reference_context_ids",),
)


def read(source: Source, format: str) -> Run:
    """Return the run that a ragas dataset or result holds."""
    builder = RunBuilder(source.name, format, cells_are_text=source.shape == "csv")
    fill(builder, source.table_rows(builder.skip), NAMES)
    return builder.run(name=source.stem)


def to_ragas(run: Run, path: str | Path | None = None) -> list[dict[str, Any]]:
    """Return the samples of a ``ragas.EvaluationDataset``, and write them as JSON lines.

    Failed queries are left out, since ragas has no word for them. Fields: ``user_input,
    retrieved_contexts, retrieved_context_ids, reference_contexts, reference_context_ids,
    response, reference``; a field about which nothing is known is not there. The texts of labelled
    chunks are known where some query of the run retrieved them.

    Parameters
    ----------
    run : Run
        What happened.
    path : str or path, optional
        A ``.jsonl`` file, readable with ``EvaluationDataset.from_jsonl``.

    Raises
    ------
    ExportError
        The file cannot be written.
    """
    samples = list(_samples(run))
    if path is not None:
        write_text(Path(path), json_lines(samples))
    return samples


def _samples(run: Run) -> Iterator[dict[str, Any]]:
    for row in answer_rows(run):
        sample = {
            "user_input": row.query,
            "retrieved_contexts": row.texts,
            "retrieved_context_ids": row.chunk_ids,
            "reference_contexts": row.reference_texts,
            "reference_context_ids": row.reference_ids,
            "response": row.answer,
            "reference": row.expected_answer,
        }
        yield {name: value for name, value in sample.items() if value is not None}
