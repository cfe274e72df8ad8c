"""Retrieved documents as tools write them, whatever their library calls the fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragdiag.interop.values import first_of, json_or_text, list_of, number_of, text_or_none

__all__ = ["Chunk", "chunks_in", "is_document"]

#: Where the text is: LangChain, OpenInference and Haystack, LlamaIndex, AutoRAG, others.
TEXT_KEYS = ("page_content", "content", "text", "contents", "chunk", "passage", "body")

#: Where the id is, in a document and then in its metadata. A uri or source names a document of
#: which several chunks may exist, so it counts last.
ID_KEYS = ("chunk_id", "id", "id_", "node_id", "_id", "doc_id", "document_id")
METADATA_ID_KEYS = (*ID_KEYS, "doc_uri")

SCORE_KEYS = ("score", "relevance_score", "similarity", "distance")

METADATA_KEYS = ("metadata", "meta", "extra_info")


@dataclass(frozen=True, slots=True)
class Chunk:
    """One retrieved chunk as a tool recorded it; an id of None is made from the text.

    Attributes
    ----------
    id, text : str or None
    score : float or None
    metadata : dict or None
    """

    id: str | None
    text: str | None
    score: float | None = None
    metadata: Mapping[str, Any] | None = None


def is_document(value: Any) -> bool:
    """Return whether a value is an object with a text: a document, not any result of a tool.

    Messages of a conversation have a text and a role, and are none.

    Examples
    --------
    >>> is_document({"page_content": "Seven days."}), is_document({"url": "example.org"})
    (True, False)
    """
    if not isinstance(value, Mapping) or "role" in value:
        return False
    inner = _inner(value)
    return isinstance(first_of(inner, TEXT_KEYS), str)


def chunks_in(value: Any) -> list[Chunk]:
    """Return the chunks of a list of documents or texts, also as JSON or Python repr in a string.

    An object that has the list under ``documents``, ``nodes``, ``context``... is looked into.

    Examples
    --------
    >>> chunks_in([{"node": {"id_": "n1", "text": "Seven days."}, "score": 0.9}])
    [Chunk(id='n1', text='Seven days.', score=0.9, metadata=None)]
    >>> chunks_in('["Seven days."]')
    [Chunk(id=None, text='Seven days.', score=None, metadata=None)]
    """
    value = json_or_text(value)
    if isinstance(value, Mapping) and not is_document(value):
        held = first_of(
            value, ("documents", "nodes", "source_nodes", "context", "contexts", "results", "docs")
        )
        value = json_or_text(held) if held is not None else []
    found = (_chunk(item) for item in list_of(value))
    return [chunk for chunk in found if chunk is not None]


def _inner(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a wrapper holds: a node with a score, a serialised object, a flattened one."""
    for key in ("node", "document", *(("kwargs",) if "lc" in value else ())):
        inner = value.get(key)
        if isinstance(inner, Mapping):
            return inner
    if any(key.startswith("document.") for key in value):
        return {key.removeprefix("document."): item for key, item in value.items()}
    return value


def _chunk(value: Any) -> Chunk | None:
    if isinstance(value, str):
        text = text_or_none(value)
        return None if text is None else Chunk(None, text)
    if not isinstance(value, Mapping):
        return None
    inner = _inner(value)
    text = first_of(inner, TEXT_KEYS)
    metadata = json_or_text(first_of(inner, METADATA_KEYS))
    metadata = metadata if isinstance(metadata, Mapping) and metadata else None
    identity = first_of(inner, ID_KEYS)
    if metadata is not None and "chunk_id" in metadata:
        identity = metadata["chunk_id"]
    if identity is None and metadata is not None:
        identity = first_of(metadata, METADATA_ID_KEYS)
    score = first_of(value, SCORE_KEYS)
    if score is None:
        score = first_of(inner, SCORE_KEYS)
    if score is None and metadata is not None:
        score = first_of(metadata, SCORE_KEYS)
    chunk = Chunk(text_or_none(identity), text_or_none(text), number_of(score), metadata)
    return chunk if chunk.id is not None or chunk.text is not None else None
