"""The OpenInference conventions (Arize Phoenix): flattened attributes of a span.

``openinference.span.kind`` says what a span is; ``retrieval.documents.N.document.{id, content,
score, metadata}`` what a retriever returned; ``input.value`` and ``output.value`` the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ragdiag.interop.documents import Chunk, chunks_in
from ragdiag.interop.raw import RawSpan, span_of
from ragdiag.interop.spans import Kind, Span
from ragdiag.interop.values import ANSWER_KEYS, QUESTION_KEYS, json_or_text, text_in, text_or_none

__all__ = ["KIND", "interpret"]

KIND = "openinference.span.kind"

#: A reranker's documents are what goes on to the generator, but it retrieves nothing itself.
KINDS: dict[str, Kind] = {"RETRIEVER": "retriever", "LLM": "generator"}

_DOCUMENT = re.compile(r"retrieval\.documents\.(\d+)\.document\.(\w+)")


def interpret(raw: RawSpan) -> Span:
    """Return the meaning of a span; one without any OpenInference attribute has only its times."""
    attributes = raw.attributes
    span = span_of(raw, KINDS.get(str(attributes.get(KIND, "")).upper(), "other"))
    span.question = text_in(attributes.get("input.value"), QUESTION_KEYS, role="user")
    if span.kind == "retriever":
        span.chunks = _documents(attributes)
    elif span.kind == "generator" or raw.parent_id is None:
        span.answer = text_in(attributes.get("output.value"), ANSWER_KEYS, role="assistant")
    metadata = json_or_text(attributes.get("metadata"))
    if isinstance(metadata, Mapping):
        span.query_id = text_or_none(metadata.get("query_id"))
    return span


def _documents(attributes: Mapping[str, Any]) -> list[Chunk] | None:
    """Return the documents, in order of their number; None where the span lists none."""
    found: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        match = _DOCUMENT.fullmatch(key)
        if match:
            found.setdefault(int(match[1]), {})[match[2]] = value
    if found:
        return chunks_in([found[number] for number in sorted(found)])
    nested = attributes.get("retrieval.documents")
    return chunks_in(nested) if isinstance(nested, list) else None
