"""What pipelines of frameworks return, as chunks and answers; by shape, no framework is imported.

A document is any object with a text: LangChain's ``Document``, LlamaIndex's ``NodeWithScore`` and
nodes, Haystack's ``Document``, and the dicts they are saved as.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragdiag.errors import PipelineError
from ragdiag.interop.documents import METADATA_KEYS, TEXT_KEYS, chunks_in
from ragdiag.interop.values import chunk_id_of, first_of

__all__ = ["FROM_TEXT", "answer_and_documents", "document_fields", "documents_fields"]

#: ``id_from`` that asks for an id made from the text of a chunk.
FROM_TEXT = "text"

#: Attributes that hold the text, in this order: LlamaIndex computes it, others store it.
TEXT_ATTRIBUTES = ("page_content", "get_content", "content", "text")

#: Where a chain puts its answer, and the documents it rests on.
ANSWER_KEYS = ("answer", "result", "output", "response", "generated_answer")
CONTEXT_KEYS = ("context", "contexts", "documents", "source_documents", "docs", "chunks", "results")

#: Id, text, score and metadata, as the border of a pipeline takes them.
Fields = tuple[Any, str, Any, Mapping[str, Any] | None]

#: So many keys of a document's metadata are listed in an error.
KEYS_SHOWN = 8


def documents_fields(returned: Any, id_from: str | None = None) -> list[Any]:
    """Return a list in which every document is ``(id, text, score, metadata)``.

    Parameters
    ----------
    returned : list, or object or dict with a list of documents
        What a retriever returned.
    id_from : str, optional
        Where a document has its id: a path such as ``"metadata.chunk_id"``, or ``"text"`` for an
        id made from the text.

    Raises
    ------
    PipelineError
        It is no list, or a document has no id where it is looked for.

    Examples
    --------
    >>> documents_fields([{"page_content": "Seven days.", "metadata": {"nr": 7}}], "metadata.nr")
    [(7, 'Seven days.', None, {'nr': 7})]
    """
    if isinstance(returned, Mapping):
        held = first_of(returned, CONTEXT_KEYS)
        if held is None:
            raise PipelineError(
                f"expected documents under one of {_listed(dict.fromkeys(CONTEXT_KEYS))}; "
                f"got a dict with {_listed(returned)}"
            )
        returned = held
    returned = getattr(returned, "source_nodes", returned)
    if isinstance(returned, str | bytes) or not isinstance(returned, Sequence):
        raise PipelineError(f"expected a list of documents, got {type(returned).__name__}")
    items = []
    for position, item in enumerate(returned):
        try:
            fields = document_fields(item, id_from)
        except PipelineError as error:
            raise PipelineError(f"item {position}: {error}") from None
        items.append(item if fields is None else fields)
    return items


def document_fields(item: Any, id_from: str | None = None) -> Fields | None:
    """Return id, text, score and metadata of a document, None if it is none.

    Without `id_from` the id is ``chunk_id`` of the metadata, else the document's own.

    Raises
    ------
    PipelineError
        The document has no id where it is looked for.
    """
    score: Any = None
    if isinstance(item, tuple) and len(item) == 2 and _text_of(item[0]) is not None:
        item, score = item  # a vector store gives documents beside their scores
    inner = _get(item, "node")
    inner = item if inner is None else inner
    text = _text_of(inner)
    if text is None:
        return None
    if score is None:
        score = _get(item, "score")
    metadata = next(
        (found for key in METADATA_KEYS if isinstance(found := _get(inner, key), Mapping)), None
    )
    if id_from is None:
        identity = _own_id(inner, text, metadata)
    elif id_from == FROM_TEXT:
        identity = chunk_id_of(text)
    else:
        identity = _at(inner, id_from)
    if identity is None:
        raise PipelineError(_no_id(id_from, metadata))
    return identity, text, score, metadata or None


def answer_and_documents(returned: Any, id_from: str | None = None) -> tuple[str, list[Any]]:
    """Take apart what answers in one step: a response of LlamaIndex, a dict of a chain, a pair.

    Raises
    ------
    PipelineError
        It has no answer, or not the documents it rests on.
    """
    nodes = getattr(returned, "source_nodes", None)
    if nodes is not None:
        whole = getattr(returned, "get_response", None)  # of a response that is streamed
        answer = getattr(whole() if callable(whole) else returned, "response", None)
        return str(answer or ""), documents_fields(nodes, id_from)
    if isinstance(returned, Mapping):
        answer, documents = first_of(returned, ANSWER_KEYS), first_of(returned, CONTEXT_KEYS)
        if answer is None or documents is None:
            raise PipelineError(
                f"it returned a dict with {_listed(returned)}; an answer ('answer') and the "
                "documents it rests on ('context') are needed"
            )
    elif isinstance(returned, tuple) and len(returned) == 2:
        answer, documents = returned
    elif message_text(returned) is not None:
        raise PipelineError(
            "it returned an answer without the documents it rests on, so that retrieval cannot be "
            "diagnosed; let it return {'answer': ..., 'context': [documents]}, or give retrieve= "
            "and generate= apart"
        )
    else:
        raise PipelineError(
            f"expected an answer and its documents, got {type(returned).__name__}; what only "
            "retrieves is given as retrieve="
        )
    text = message_text(answer)
    if text is None:
        raise PipelineError(f"expected the answer as text, got {type(answer).__name__}")
    return text, documents_fields(documents, id_from)


def message_text(value: Any) -> str | None:
    """Return a text, given as such or as a message of a chat model; None for anything else."""
    if isinstance(value, str):
        return value
    # Messages of LangChain say it in `content`, those of Haystack in `text`.
    for name in ("content", "text"):
        held = getattr(value, name, None)
        if isinstance(held, str):
            return str(held)
    return None


def _text_of(document: Any) -> str | None:
    if isinstance(document, str):
        return None
    if isinstance(document, Mapping):
        held = first_of(document, TEXT_KEYS)
        return held if isinstance(held, str) else None
    for name in TEXT_ATTRIBUTES:
        held = getattr(document, name, None)
        if name == "get_content" and callable(held):
            held = held()
        if isinstance(held, str):
            return held
    # Haystack's documents of other than text have a content of None.
    return "" if hasattr(document, "content") and hasattr(document, "meta") else None


def _own_id(document: Any, text: str, metadata: Mapping[str, Any] | None) -> Any:
    names = ("id", "id_", "node_id", "chunk_id", "_id")
    own = next((found for name in names if (found := _get(document, name)) is not None), None)
    found = chunks_in([{"text": text or " ", "id": own, "metadata": metadata}])
    return found[0].id if found else own


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _at(document: Any, path: str) -> Any:
    """Return what is at a dotted path; ``metadata`` is what Haystack calls ``meta``."""
    value = document
    for step in path.split("."):
        held = _get(value, step)
        if held is None and step in METADATA_KEYS:
            held = next((h for key in METADATA_KEYS if (h := _get(value, key)) is not None), None)
        value = held
    return value


def _no_id(id_from: str | None, metadata: Mapping[str, Any] | None) -> str:
    keys = f"its metadata has {_listed(metadata)}" if metadata else "it has no metadata"
    where = "has no id" if id_from is None else f"has nothing at id_from={id_from!r}"
    return (
        f"the document {where} ({keys}); say where its id is with "
        "as_pipeline(..., id_from='metadata.KEY'), or make one from the text with id_from='text'"
    )


def _listed(mapping: Mapping[Any, Any]) -> str:
    return ", ".join(repr(str(key)) for key in list(mapping)[:KEYS_SHOWN]) or "no keys"
