"""The GenAI semantic conventions of OpenTelemetry: ``gen_ai.*`` attributes, messages as JSON text.

A retriever is a span with ``gen_ai.operation.name`` ``retrieval``, or the call of a tool whose
result is a list of documents (objects with a text): agents retrieve through tools.
"""

from __future__ import annotations

from ragdiag.interop.documents import Chunk, chunks_in, is_document
from ragdiag.interop.raw import RawSpan, span_of
from ragdiag.interop.spans import Kind, Span
from ragdiag.interop.values import ANSWER_KEYS, QUESTION_KEYS, json_or_text, text_in, text_or_none

__all__ = ["OPERATION", "follows", "interpret"]

OPERATION = "gen_ai.operation.name"

GENERATION = ("chat", "text_completion", "generate_content")

#: Where the conversation so far is, by version of the conventions and by library.
INPUTS = (
    "gen_ai.input.messages",
    "pydantic_ai.all_messages",
    "gen_ai.prompt",
    "all_messages_events",
)
OUTPUTS = (
    "final_result",
    "gen_ai.output.messages",
    "gen_ai.completion",
    "pydantic_ai.all_messages",
)

RESULTS = ("gen_ai.tool.call.result", "tool_response")


def follows(raw: RawSpan) -> bool:
    """Return whether a span follows these conventions."""
    return OPERATION in raw.attributes


def interpret(raw: RawSpan) -> Span:
    """Return the meaning of a span."""
    attributes = raw.attributes
    operation = str(attributes[OPERATION])
    chunks = _documents(raw, operation)
    kind: Kind = "retriever" if chunks is not None or operation == "retrieval" else "other"
    if operation in GENERATION:
        kind = "generator"
    span = span_of(raw, kind)
    span.chunks = chunks
    if kind == "retriever":
        question = attributes.get("gen_ai.retrieval.query.text")
        asked = question if question is not None else attributes.get("gen_ai.tool.call.arguments")
        span.question = text_in(asked, QUESTION_KEYS)
        return span
    asked = next((attributes[name] for name in INPUTS if name in attributes), None)
    span.question = text_in(asked, QUESTION_KEYS, role="user")
    said = next((attributes[name] for name in OUTPUTS if name in attributes), None)
    span.answer = text_in(said, ANSWER_KEYS, role="assistant")
    span.query_id = text_or_none(attributes.get("query_id"))
    return span


def _documents(raw: RawSpan, operation: str) -> list[Chunk] | None:
    given = raw.attributes.get("gen_ai.retrieval.documents")
    if given is not None:
        return chunks_in(given)
    if operation != "execute_tool":
        return None
    result = next((raw.attributes[name] for name in RESULTS if name in raw.attributes), None)
    found = json_or_text(result)
    if isinstance(found, list) and found and all(map(is_document, found)):
        return chunks_in(found)
    return None
