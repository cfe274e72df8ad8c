"""Every format by name: what it is called, what reads it, what it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ragdiag.errors import RunFormatError
from ragdiag.interop import (
    datasets,
    deepeval,
    frames,
    langfuse,
    langsmith,
    mlflow,
    otel,
    parts,
    promptfoo,
    ragas,
    ranking,
    trulens,
)
from ragdiag.interop.detection import detect
from ragdiag.interop.source import Source
from ragdiag.recording import Run, load_run

__all__ = ["FORMATS", "Format", "load"]


@dataclass(frozen=True, slots=True)
class Format:
    """One format that is read.

    Attributes
    ----------
    title : str
        What people call it.
    read : callable
        ``read(source, name)`` returns a Run.
    many : bool
        Whether a file may hold several pipelines, of which ``pipeline=`` takes one.
    """

    title: str
    read: Callable[..., Run]
    many: bool = False


def _own(source: Source, format: str) -> Run:
    return load_run(source.path, "ragdiag")


FORMATS: Mapping[str, Format] = {
    "ragdiag": Format("a run or store of ragdiag", _own),
    "openinference": Format("OpenInference spans (Phoenix): JSON lines or OTLP/JSON", otel.read),
    "otel_genai": Format("OpenTelemetry GenAI spans: JSON lines or OTLP/JSON", otel.read),
    "otlp": Format("OTLP/JSON of any convention", otel.read),
    "langsmith": Format("LangSmith runs", langsmith.read),
    "langfuse": Format("Langfuse traces", langfuse.read),
    "mlflow": Format("MLflow traces", mlflow.read),
    "mlflow_table": Format("MLflow evaluation table", mlflow.read_table),
    "trulens": Format("TruLens spans", trulens.read),
    "deepeval": Format("deepeval goldens, test runs and traces", deepeval.read),
    "promptfoo": Format("promptfoo output", promptfoo.read, many=True),
    "llama_index": Format("LlamaIndex EmbeddingQAFinetuneDataset", datasets.read_llama_index),
    "autorag": Format("AutoRAG questions and results", datasets.read_autorag),
    "ragas": Format("ragas dataset or result", ragas.read),
    "table": Format("a table with the column names of ragdiag", frames.read_table),
    "parts": Format("a folder of Parquet files with whole queries", parts.read_parts),
    "beir": Format("BEIR folder with a run in it", ranking.read, many=True),
    "trec": Format("TREC run, alone or in a folder with qrels", ranking.read, many=True),
    "scores": Format("JSON of scores by query and document", ranking.read_scores),
}


def load(
    path: str | PathLike[str], format: str = "auto", *, pipeline: str | int | None = None
) -> Run:
    """Return the run that a file or folder of another tool holds.

    Parameters
    ----------
    path : path-like
        File or folder.
    format : str
        A key of :data:`FORMATS`, or ``"auto"``: see :func:`~ragdiag.interop.detection.detect`.
    pipeline : str or int, optional
        Which pipeline, by name or position, where a file holds several.

    Returns
    -------
    Run
        ``run.info`` has ``format``, ``detected`` (why), ``notes``, ``skipped`` (place and reason of
        the first 100 things left out) and ``n_skipped`` (how many in all).

    Raises
    ------
    RunFormatError
        It is absent, of no known format, damaged at a named place, or holds nothing to diagnose.
    """
    source = Source(Path(path).expanduser())
    detected = None
    if format == "auto":
        detected = detect(source.path)
        format = detected.format
    if format not in FORMATS:
        raise RunFormatError(
            f"unknown format {format!r}; formats are 'auto', {', '.join(map(repr, FORMATS))}"
        )
    chosen = FORMATS[format]
    options: dict[str, Any] = {}
    if chosen.many:
        options["pipeline"] = pipeline
    elif pipeline is not None:
        raise RunFormatError(
            f"{source.path}: pipeline= is for files with several, and {format} has one"
        )
    try:
        run = chosen.read(source, format, **options)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, RunFormatError):
            raise
        raise RunFormatError(
            f"{source.path}: cannot be read as {chosen.title} (format {format!r}): "
            f"{type(error).__name__}: {error}"
        ) from error
    if detected is None or format == "ragdiag":
        return run
    return _with_info(run, detected=detected.why)


def _with_info(run: Run, **info: Any) -> Run:
    """Return the run with more to its ``info``; the tables are shared, nobody can harm them."""
    other = copy(run)
    other.info = MappingProxyType({**run.info, **info})
    return other
