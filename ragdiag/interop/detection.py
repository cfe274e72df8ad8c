"""What a file is: one rule a format, tried in order, each with the reason it decides by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from ragdiag.errors import RunFormatError
from ragdiag.interop import deepeval, genai, openinference, promptfoo, trulens
from ragdiag.interop.otel import spans_in
from ragdiag.interop.parts import parquet_parts
from ragdiag.interop.ranking import kind_of, rankings_in
from ragdiag.interop.source import Source
from ragdiag.journal import FORMAT

__all__ = ["Detection", "detect", "recognise"]


@dataclass(frozen=True, slots=True)
class Detection:
    """What a file was taken for.

    Attributes
    ----------
    format : str
        Name of the format, as ``format=`` takes it.
    why : str
        What decided.
    """

    format: str
    why: str

    def __str__(self) -> str:
        return f"{self.format}: {self.why}"


def detect(path: str | PathLike[str]) -> Detection:
    """Say which format a file or folder has, and why.

    Parameters
    ----------
    path : path-like
        File or folder.

    Returns
    -------
    Detection

    Raises
    ------
    RunFormatError
        It is absent, cannot be read, or is of no format that is known.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "rows.jsonl")
    ...     _ = file.write_text('{"user_input": "Who?", "retrieved_contexts": ["Me."]}')
    ...     print(detect(file))
    ragas: fields 'user_input' and 'retrieved_contexts'
    """
    source = Source(Path(path).expanduser())
    found = recognise(source)
    if found is None:
        raise RunFormatError(_unknown(source))
    return found


def recognise(source: Source) -> Detection | None:
    """Return what a file was taken for, None for nothing that is known."""
    for format, rule in _RULES:
        why = rule(source)
        if why is not None:
            return Detection(format, why)
    return None


def _unknown(source: Source) -> str:
    from ragdiag.interop.formats import FORMATS

    if source.shape in ("lines", "document", "csv", "parquet"):
        keys = ", ".join(map(repr, source.columns[:8])) or "none"
        looks = f"a {source.shape} file with the fields {keys}"
    elif source.shape == "folder":
        names = ", ".join(path.name for path in source.files()[:5]) or "nothing"
        looks = f"a folder with {names}"
    else:
        first = next((text for _, text in source.text_lines()), "")
        looks = f"text that begins {first.strip()[:60]!r}"
    return (
        f"{source.path}: this is {looks}: not a run written by ragdiag, and no other format that "
        f"is known; format= takes one of {', '.join(FORMATS)}, and Run.from_frame takes any table"
    )


# One rule a format. A rule returns what decided, or None.


def _objects(source: Source) -> Iterator[Mapping[str, Any]]:
    if source.shape in ("lines", "document"):
        yield from (item for item in source.sample if isinstance(item, Mapping))


def _fields(source: Source, *names: str) -> str | None:
    if all(name in source.columns for name in names):
        listed = " and ".join(map(repr, names))
        return f"field{'s' if len(names) > 1 else ''} {listed}"
    return None


def _any(source: Source, *groups: tuple[str, ...]) -> str | None:
    if source.shape == "folder" or source.shape == "text":
        return None
    return next((why for why in (_fields(source, *group) for group in groups) if why), None)


def _ragdiag(source: Source) -> str | None:
    is_ours = any(item.get("format") == FORMAT for item in _objects(source))
    return f"a header of the format {FORMAT!r}" if is_ours else None


def _span_with(source: Source, name: str) -> str | None:
    for item in _objects(source):
        if "resourceSpans" in item or "context" in item:
            for span in spans_in(item):
                if name in span.attributes:
                    return f"span {span.name!r} has the attribute {name!r}"
    return None


def _openinference(source: Source) -> str | None:
    return _span_with(source, openinference.KIND)


def _genai(source: Source) -> str | None:
    return _span_with(source, genai.OPERATION)


def _otlp(source: Source) -> str | None:
    is_otlp = any("resourceSpans" in item for item in _objects(source))
    return "field 'resourceSpans' of OTLP/JSON" if is_otlp else None


def _langsmith(source: Source) -> str | None:
    for item in _objects(source):
        for name in ("post", "patch"):
            parts = item.get(name)
            if not isinstance(parts, list):
                continue
            if any(isinstance(each, Mapping) and "run_type" in each for each in parts):
                return f"runs with 'run_type' under {name!r}"
    return _any(source, ("run_type", "inputs"))


def _langfuse(source: Source) -> str | None:
    for item in _objects(source):
        if isinstance(item.get("observations"), list):
            return "field 'observations'"
    return None


def _mlflow(source: Source) -> str | None:
    for item in _objects(source):
        info, data = item.get("info"), item.get("data")
        if isinstance(info, Mapping) and isinstance(data, Mapping) and "spans" in data:
            return "fields 'info' and 'data.spans'"
    return None


def _mlflow_table(source: Source) -> str | None:
    if source.shape == "document" and isinstance(source.document, dict):
        columns = source.document.get("columns")
        if isinstance(columns, list) and isinstance(source.document.get("data"), list):
            return "a table split into 'columns' and 'data'"
    return _any(source, ("inputs", "outputs"), ("request", "response", "retrieved_context"))


def _trulens(source: Source) -> str | None:
    if source.shape == "folder":
        for path in source.files()[:10]:
            inner = Source(path)
            if inner.shape in ("document", "lines", "csv") and _trulens(inner):
                return f"{path.name} has the field 'record_attributes'"
        return None
    why = _any(source, ("record_attributes",))
    return f"{why} ({trulens.PREFIX}*)" if why else None


def _deepeval(source: Source) -> str | None:
    for item in _objects(source):
        if isinstance(item.get("testCases"), list):
            return "field 'testCases'"
        held = [name for name in deepeval.SPAN_LISTS if name in item]
        if held:
            return f"lists of spans, {held[0]!r}"
    return _any(
        source,
        ("input", "actual_output"),
        ("input", "actualOutput"),
        ("input", "expected_output"),
        ("input", "retrieval_context"),
        ("scenario", "turns"),
    )


def _promptfoo(source: Source) -> str | None:
    if source.shape == "csv":
        is_output = promptfoo.is_header(source.columns)
        return "answers '[PROVIDER] PROMPT' followed by 'Status' and 'Score'" if is_output else None
    for item in _objects(source):
        if "evalId" in item and "results" in item:
            return "fields 'evalId' and 'results'"
    return _any(source, ("vars", "response", "success"), ("vars", "promptIdx"))


def _llama_index(source: Source) -> str | None:
    if source.shape != "document":
        return None
    return _any(source, ("queries", "corpus", "relevant_docs"))


def _autorag(source: Source) -> str | None:
    if source.shape == "folder":
        return "a folder with qa.parquet" if (source.path / "qa.parquet").is_file() else None
    return _any(source, ("qid", "query", "retrieval_gt"))


def _ragas(source: Source) -> str | None:
    return _any(
        source,
        ("user_input", "retrieved_contexts"),
        ("user_input", "response"),
        ("user_input", "reference"),
        ("question", "contexts"),
        ("question", "ground_truth"),
        ("question", "ground_truths"),
    )


def _table(source: Source) -> str | None:
    return _any(
        source,
        ("query_id", "chunk_id"),
        ("query_id", "retrieved_chunk_ids"),
        ("query", "chunk_id"),
        ("query", "retrieved_chunk_ids"),
        ("query", "retrieved_chunks"),
        ("query_id", "query", "answer"),
    )


def _parts(source: Source) -> str | None:
    files = parquet_parts(source.path) if source.shape == "folder" else []
    why = _table(Source(files[0])) if files else None
    return f"a folder of {len(files):,} Parquet files, the first with the {why}" if why else None


def _trec(source: Source) -> str | None:
    if source.shape == "text" and kind_of(source.path) == "run":
        return "lines of six words: query, Q0, document, rank, score, tag"
    if source.shape == "folder" and not (source.path / "queries.jsonl").exists():
        found = rankings_in(source.path)
        return f"a folder with the run file {found[0].name}" if found else None
    return None


def _beir(source: Source) -> str | None:
    if source.shape == "folder":
        for name in ("queries.jsonl", "queries.jsonl.gz"):
            if (source.path / name).is_file():
                return f"a folder with {name}"
    return None


def _scores(source: Source) -> str | None:
    if source.shape != "document" or not isinstance(source.document, dict):
        return None
    queries = list(source.document.values())[:20]
    by_chunk = [each.values() for each in queries if isinstance(each, dict) and each]
    if len(by_chunk) < len(queries) or not by_chunk:
        return None
    numbers = all(type(score) in (int, float) for scores in by_chunk for score in scores)
    return "an object of queries, each an object of scores by document" if numbers else None


_RULES: tuple[tuple[str, Callable[[Source], str | None]], ...] = (
    ("ragdiag", _ragdiag),
    ("openinference", _openinference),
    ("otel_genai", _genai),
    ("otlp", _otlp),
    ("langsmith", _langsmith),
    ("langfuse", _langfuse),
    ("mlflow", _mlflow),
    ("trulens", _trulens),
    ("deepeval", _deepeval),
    ("promptfoo", _promptfoo),
    ("llama_index", _llama_index),
    ("autorag", _autorag),
    ("ragas", _ragas),
    ("mlflow_table", _mlflow_table),
    ("table", _table),
    ("parts", _parts),
    ("beir", _beir),
    ("trec", _trec),
    ("scores", _scores),
)
