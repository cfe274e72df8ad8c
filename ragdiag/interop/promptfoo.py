"""promptfoo: the output of an evaluation as JSON, JSON lines or CSV.

A file may hold several pipelines, one for each prompt and provider; a run is of one of them. The
variables of a test are the question and its context; whether its assertions passed is kept as
metadata, since they may be about anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragdiag.errors import RunFormatError
from ragdiag.interop.documents import chunks_in
from ragdiag.interop.records import Record, RunBuilder
from ragdiag.interop.source import Source
from ragdiag.interop.values import ANSWER_KEYS, first_of, number_of, text_in, text_or_none
from ragdiag.recording import Run

__all__ = ["is_header", "read"]

QUERY_VARS = ("question", "query", "input", "user_input", "prompt")
CONTEXT_VARS = ("context", "contexts", "documents", "retrieved_contexts")
EXPECTED_VARS = ("expected_answer", "expected", "ground_truth", "reference", "answer")

#: Assertions whose value is a reference answer.
EXPECTED_ASSERTIONS = (
    "equals",
    "factuality",
    "model-graded-factuality",
    "similar",
    "context-recall",
)

#: ``failureReason``: the provider failed; 1 means that an assertion did.
ERROR = 2

#: The columns that follow each answer of the CSV output.
CSV_GROUP = ("Status", "Score")


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one pipeline said in one test."""

    pipeline: str
    record: Record


def is_header(columns: Sequence[str]) -> bool:
    """Return whether a CSV header is that of a promptfoo output."""
    return any(
        tuple(columns[at : at + 2]) == CSV_GROUP and columns[at - 1].startswith("[")
        for at in range(1, len(columns) - 1)
    )


def read(source: Source, format: str, pipeline: str | int | None = None) -> Run:
    """Return the run of one pipeline of a promptfoo output.

    Parameters
    ----------
    source : Source
        The file.
    format : str
        Name of the format.
    pipeline : str or int, optional
        Which one: its name ``"PROVIDER: PROMPT"`` or position; the first by default.

    Raises
    ------
    RunFormatError
        There is no such pipeline, or nothing can be used.
    """
    builder = RunBuilder(source.name, format)
    answers = list(_csv(source, builder) if source.shape == "csv" else _json(source, builder))
    names = list(dict.fromkeys(answer.pipeline for answer in answers))
    chosen = _chosen(names, pipeline, source)
    others = [name for name in names if name != chosen]
    if others:
        builder.notes.append(
            f"{source.name} holds {len(names)} pipelines; this is {chosen!r}, and pipeline= "
            f"takes another: {', '.join(map(repr, others))}"
        )
    for answer in answers:
        if answer.pipeline == chosen:
            builder.add(answer.record)
    builder.pipeline_name = chosen
    return builder.run(name=source.stem)


def _chosen(names: list[str], wanted: str | int | None, source: Source) -> str | None:
    if not names:
        return None
    if wanted is None:
        return names[0]
    if isinstance(wanted, int) and 0 <= wanted < len(names):
        return names[wanted]
    if wanted in names:
        return str(wanted)
    raise RunFormatError(f"{source.path}: no pipeline {wanted!r}; it holds {names}")


def _json(source: Source, builder: RunBuilder) -> Iterator[_Answer]:
    found = sorted(_results(source, builder), key=lambda each: _index(each[1], "promptIdx"))
    for place, result in found:
        answer = _json_answer(place, result)
        if answer is None:
            builder.skip(place, "not a result of a test")
        else:
            yield answer


def _index(result: Mapping[str, Any], name: str) -> int:
    value = result.get(name)
    return value if isinstance(value, int) else 0


def _results(source: Source, builder: RunBuilder) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for place, item in source.objects(builder.skip):
        held = item.get("results")
        inner = held.get("results") if isinstance(held, Mapping) else held
        if not isinstance(inner, list):
            yield place, item
            continue
        for position, result in enumerate(inner):
            if isinstance(result, Mapping):
                yield f"results[{position}]", result
            else:
                builder.skip(f"results[{position}]", "not an object")


def _json_answer(place: str, result: Mapping[str, Any]) -> _Answer | None:
    variables, response = result.get("vars"), result.get("response")
    if not isinstance(variables, Mapping):
        return None
    response = response if isinstance(response, Mapping) else {}
    record = _record(place, variables)
    record.answer = text_in(response.get("output"), ANSWER_KEYS)
    record.total_ms = number_of(result.get("latencyMs"))
    record.expected_answer = record.expected_answer or _asserted(result.get("testCase"))
    error = text_or_none(response.get("error"))
    if error is None and result.get("failureReason") == ERROR:
        error = text_or_none(result.get("error")) or "the provider failed"
    if error is not None:
        record.failed, record.error, record.answer = True, f"generation failed: {error}", None
    record.metadata.update(success=result.get("success"), assertion_score=result.get("score"))
    test = result.get("testCase")
    if isinstance(test, Mapping):
        record.metadata["description"] = text_or_none(test.get("description"))
    provider, prompt = result.get("provider"), result.get("prompt")
    provider = provider if isinstance(provider, Mapping) else {"id": provider}
    prompt = prompt if isinstance(prompt, Mapping) else {"label": prompt}
    name = first_of(provider, ("label", "id"))
    return _Answer(f"{name}: {first_of(prompt, ('label', 'raw'))}", record)


def _record(place: str, variables: Mapping[str, Any]) -> Record:
    record = Record(place)
    record.query = text_or_none(first_of(variables, QUERY_VARS))
    record.query_id = text_or_none(variables.get("query_id"))
    record.expected_answer = text_or_none(first_of(variables, EXPECTED_VARS))
    given = next((variables[name] for name in CONTEXT_VARS if name in variables), None)
    # An empty context is a retrieval that found nothing; without one none was recorded.
    record.chunks = None if given is None else chunks_in(given)
    return record


def _asserted(test: Any) -> str | None:
    """Return the reference answer that an assertion compares with."""
    assertions = test.get("assert") if isinstance(test, Mapping) else None
    for each in assertions if isinstance(assertions, list) else ():
        if isinstance(each, Mapping) and each.get("type") in EXPECTED_ASSERTIONS:
            return text_or_none(each.get("value"))
    return None


def _csv(source: Source, builder: RunBuilder) -> Iterator[_Answer]:
    header, *rows = source.csv_rows
    groups = [
        at - 1
        for at in range(1, len(header) - 1)
        if tuple(header[at : at + 2]) == CSV_GROUP and header[at - 1].startswith("[")
    ]
    for at in groups:
        provider, _, prompt = header[at][1:].partition("] ")
        for number, row in enumerate(rows, start=1):
            if len(row) != len(header):
                builder.skip(f"row {number}", f"{len(row)} cells under {len(header)} names")
                continue
            variables = dict(zip(header[: groups[0]], row, strict=False))
            record = _record(f"row {number}", variables)
            status, score = row[at + 1], row[at + 2]
            if status == "ERROR":
                record.failed = True
                record.error = f"generation failed: {text_or_none(row[at]) or 'no reason given'}"
            else:
                record.answer = text_or_none(row[at])
            record.metadata = {
                "success": status == "PASS",
                "assertion_score": number_of(score),
                "description": text_or_none(variables.get("Description")),
            }
            yield _Answer(f"{provider}: {prompt}", record)
