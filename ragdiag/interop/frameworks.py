"""Pipelines of frameworks, recognised by their shape: no framework is imported.

:func:`~ragdiag.as_pipeline` asks :func:`recognise` before its own generic forms. The calls it gets
are partials of the functions below, so that they can be sent to other processes and so that the
digest of a pipeline's code sees what the user wrote.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_origin

from ragdiag.errors import PipelineLoadError
from ragdiag.interop.haystack import documents_of_component, is_component, is_pipeline, plan_of
from ragdiag.interop.returned import answer_and_documents, documents_fields
from ragdiag.interop.values import QUESTION_KEYS
from ragdiag.pipeline import Stages

__all__ = ["bm25s_retriever", "recognise", "with_ids"]

Role = Literal["retrieve", "answer"]

#: How many chunks a bm25s index is asked for.
BM25S_K = 10


def recognise(obj: Any, id_from: str | None = None, role: Role | None = None) -> Stages | None:
    """Return the calls that an object of a framework consists of, None if it is of none.

    Parameters
    ----------
    obj : object
        What :func:`~ragdiag.as_pipeline` was given.
    id_from : str, optional
        Where documents have their id, see :func:`~ragdiag.interop.returned.documents_fields`.
    role : {"retrieve", "answer"}, optional
        What it is to do; told by its shape otherwise.

    Raises
    ------
    PipelineLoadError
        It is of a framework, and something else has to be given; the message says what.
    """
    if is_pipeline(obj):
        return plan_of(obj, id_from)
    if is_component(obj):
        return Stages(partial(documents_of_component, obj, id_from), None)
    if _has(obj, "query", "aquery"):  # a query engine of LlamaIndex
        return Stages(None, None, partial(_answer, obj.query, id_from))
    if _has(obj, "get_scores", "retrieve") and hasattr(obj, "vocab_dict"):
        return Stages(with_ids(bm25s_retriever(obj), id_from), None)
    if _has(obj, "invoke", "ainvoke"):
        return _runnable(obj, id_from, role)
    if _has(obj, "as_retriever"):
        raise PipelineLoadError(
            f"got the index {type(obj).__name__}; give what it makes, with the number of chunks to "
            "retrieve: obj.as_retriever(search_kwargs={'k': 10}) in LangChain, "
            "obj.as_retriever(similarity_top_k=10) or obj.as_query_engine() in LlamaIndex"
        )
    for name in ("retrieve", "search"):
        if role != "answer" and _has(obj, name):
            generate = getattr(obj, "generate", None)
            generate = generate if callable(generate) else None
            return Stages(with_ids(getattr(obj, name), id_from), generate)
    return None


def with_ids(
    function: Callable[..., Any], id_from: str | None, role: Role = "retrieve"
) -> Callable[..., Any]:
    """Return a function with the ids of its documents as `id_from` says."""
    if id_from is None:
        return function
    return partial(_documents if role == "retrieve" else _answer, function, id_from)


def bm25s_retriever(
    index: Any,
    *,
    corpus: Sequence[Any] | None = None,
    ids: Sequence[Any] | None = None,
    tokenize: Callable[[str], Any] | None = None,
    k: int = BM25S_K,
) -> Callable[[str], list[dict[str, Any]]]:
    """Return a function that searches an index of bm25s.

    Parameters
    ----------
    index : bm25s.BM25
        The index.
    corpus : sequence, optional
        Texts, or dicts with ``text`` and perhaps ``id``, in the order they were indexed; those the
        index holds itself otherwise. Without any, chunks have ids and no texts.
    ids : sequence, optional
        Ids in the order they were indexed; those of the corpus, or the positions, otherwise.
    tokenize : callable, optional
        Makes of a question what the index takes; needed if the corpus was tokenised other than by
        ``bm25s.tokenize`` without options.
    k : int
        How many chunks to retrieve, if the index has so many.

    Examples
    --------
    ``as_pipeline(retrieve=bm25s_retriever(index, corpus=texts, ids=chunk_ids, k=20))``
    """
    corpus = getattr(index, "corpus", None) if corpus is None else corpus
    tokenize = _tokenizer_of(index) if tokenize is None else tokenize
    for name, given in (("corpus", corpus), ("ids", ids)):
        n = int(index.scores["num_docs"])
        if given is not None and len(given) != n:
            raise PipelineLoadError(f"{name}= has {len(given)} entries, the index has {n}")
    return partial(_search_bm25s, index, corpus, ids, tokenize, k)


def _has(obj: Any, *names: str) -> bool:
    return all(callable(getattr(obj, name, None)) for name in names)


def _documents(retrieve: Callable[..., Any], id_from: str | None, query: str) -> Any:
    returned = retrieve(query)
    if inspect.isawaitable(returned):
        return _awaited(returned, documents_fields, id_from)
    return documents_fields(returned, id_from)


def _answer(answer: Callable[[Any], Any], id_from: str | None, query: str) -> Any:
    returned = answer(query)
    if inspect.isawaitable(returned):
        return _awaited(returned, answer_and_documents, id_from)
    return answer_and_documents(returned, id_from)


async def _awaited(returned: Any, convert: Callable[..., Any], id_from: str | None) -> Any:
    return convert(await returned, id_from)


# LangChain


def _runnable(runnable: Any, id_from: str | None, role: Role | None) -> Stages:
    """Take a retriever, or a chain that answers, unless it is said to retrieve."""
    question = partial(_invoke, runnable, _question_key(runnable))
    if role == "retrieve" or (role is None and _gives_documents(runnable)):
        return Stages(partial(_documents, question, id_from), None)
    return Stages(None, None, partial(_answer, question, id_from))


def _invoke(runnable: Any, key: str | None, query: str) -> Any:
    return runnable.invoke(query if key is None else {key: query})


def _gives_documents(runnable: Any) -> bool:
    if hasattr(runnable, "_get_relevant_documents"):
        return True
    try:
        made = runnable.OutputType  # text, where annotations are not evaluated
    except Exception:  # many chains cannot tell
        return False
    return made.startswith("list[") if isinstance(made, str) else get_origin(made) is list


def _question_key(runnable: Any) -> str | None:
    """Return the key under which a chain expects the question, None if it takes a text."""
    try:
        schema = runnable.get_input_jsonschema()
    except Exception:  # a chain of untyped functions has none
        return None
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not properties or schema.get("type") != "object":
        return None
    known = [key for key in QUESTION_KEYS if key in properties]
    return known[0] if known else str(next(iter(properties)))


# bm25s


def _tokenizer_of(index: Any) -> Callable[[str], Any]:
    """Return the tokeniser that belongs to an index: that of the module its class comes from."""
    for base in type(index).__mro__:
        tokenize = getattr(sys.modules.get(base.__module__), "tokenize", None)
        if callable(tokenize):
            return partial(tokenize, show_progress=False)
    raise PipelineLoadError(
        f"cannot find the tokeniser of {type(index).__name__}; give "
        "as_pipeline(retrieve=bm25s_retriever(index, tokenize=...))"
    )


def _search_bm25s(
    index: Any,
    corpus: Sequence[Any] | None,
    ids: Sequence[Any] | None,
    tokenize: Callable[[str], Any],
    k: int,
    query: str,
) -> list[dict[str, Any]]:
    n = int(index.scores["num_docs"])
    found, scores = index.retrieve(
        tokenize(query), corpus=range(n), k=min(k, n), show_progress=False
    )
    chunks = []
    for place, score in zip(found[0], scores[0], strict=True):
        place = int(place)
        held = {} if corpus is None else corpus[place]
        fields = dict(held) if isinstance(held, Mapping) else {"text": str(held)}
        own = fields.pop("id", fields.pop("chunk_id", place))
        text = fields.pop("text", "")
        chunks.append(
            {
                "id": own if ids is None else ids[place],
                "text": text,
                "score": float(score),
                "metadata": fields.pop("metadata", fields) or None,
            }
        )
    return chunks
