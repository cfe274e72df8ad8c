"""Pipelines and components of Haystack: where the question goes in, where documents come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ragdiag.errors import PipelineError, PipelineLoadError
from ragdiag.interop.returned import documents_fields, message_text
from ragdiag.pipeline import Stages

__all__ = ["documents_of_component", "is_component", "is_pipeline", "plan_of"]

DOCUMENTS = "documents"

#: What gives an answer, the better source first.
ANSWERS = ("answers", "replies")

#: Inputs that take the question; the last is also that of an embedder.
QUESTIONS = ("query", "question", "text")


@dataclass(frozen=True)
class _Plan:
    """Where the question goes in, and where documents and answer come out."""

    inputs: tuple[tuple[str, str], ...]
    documents: str | None
    answer: tuple[str, str] | None


def is_pipeline(obj: Any) -> bool:
    """Return whether an object is a pipeline of Haystack."""
    return all(
        callable(getattr(obj, name, None)) for name in ("run", "inputs", "outputs", "walk")
    ) and hasattr(obj, "graph")


def is_component(obj: Any) -> bool:
    """Return whether an object is a component of Haystack that retrieves."""
    return hasattr(getattr(obj, "__haystack_output__", None), DOCUMENTS)


def plan_of(pipeline: Any, id_from: str | None) -> Stages:
    """Return the calls of a pipeline: one that answers, or one that retrieves.

    Raises
    ------
    PipelineLoadError
        It takes no question, or what retrieves cannot be told.
    """
    outputs = pipeline.outputs(include_components_with_connected_outputs=True)
    inputs = tuple(
        (component, socket)
        for component, sockets in pipeline.inputs().items()
        for socket, about in sockets.items()
        if socket in QUESTIONS[:2] or (socket == QUESTIONS[2] and about["is_mandatory"])
    )
    if not inputs:
        raise PipelineLoadError(
            "the Haystack pipeline has no input 'query', 'question' or 'text' for the question; "
            "give a function: as_pipeline(answer=lambda query: ...)"
        )
    answer = next(
        (
            (component, socket)
            for socket in ANSWERS
            for component, sockets in pipeline.outputs().items()
            if socket in sockets
        ),
        None,
    )
    plan = _Plan(inputs, _last_with_documents(pipeline, outputs), answer)
    if answer is not None:
        return Stages(None, None, partial(_answer, pipeline, plan, id_from))
    if plan.documents is None:
        raise PipelineLoadError("no component of the Haystack pipeline gives documents")
    return Stages(partial(_documents, pipeline, plan, id_from), None)


def _last_with_documents(pipeline: Any, outputs: Mapping[str, Any]) -> str | None:
    """Return the component whose documents no other turns into documents: the last ranker."""
    giving = {component for component, sockets in outputs.items() if DOCUMENTS in sockets}
    followed = {
        before
        for before, after, edge in pipeline.graph.edges(data=True)
        if after in giving and before in giving and edge["from_socket"].name == DOCUMENTS
    }
    last = sorted(giving - followed)
    if len(last) > 1:
        raise PipelineLoadError(
            f"the components {', '.join(map(repr, last))} of the Haystack pipeline each give "
            "documents; join them, or give a function: as_pipeline(retrieve=lambda query: ...)"
        )
    return last[0] if last else None


def _run(pipeline: Any, plan: _Plan, query: str) -> Mapping[str, Any]:
    data: dict[str, dict[str, str]] = {}
    for component, socket in plan.inputs:
        data.setdefault(component, {})[socket] = query
    wanted = set() if plan.documents is None else {plan.documents}
    found: Mapping[str, Any] = pipeline.run(data, include_outputs_from=wanted)
    return found


def _documents(pipeline: Any, plan: _Plan, id_from: str | None, query: str) -> list[Any]:
    return _documents_in(_run(pipeline, plan, query), plan, id_from)


def _documents_in(found: Mapping[str, Any], plan: _Plan, id_from: str | None) -> list[Any]:
    # A branch that was not taken leaves nothing.
    held = found.get(plan.documents or "", {})
    return documents_fields(held.get(DOCUMENTS, []), id_from)


def _answer(pipeline: Any, plan: _Plan, id_from: str | None, query: str) -> tuple[str, list[Any]]:
    found = _run(pipeline, plan, query)
    component, socket = plan.answer or ("", "")
    replies = found.get(component, {}).get(socket) or [""]
    first = replies[0]
    text = message_text(getattr(first, "data", first))
    if text is None:
        raise PipelineError(
            f"expected the answer of component {component!r} as text, got {type(first).__name__}"
        )
    if plan.documents is None:
        return text, documents_fields(getattr(first, "documents", []), id_from)
    return text, _documents_in(found, plan, id_from)


def documents_of_component(component: Any, id_from: str | None, query: str) -> list[Any]:
    """Return the documents that a component which retrieves finds."""
    return documents_fields(component.run(query=query)[DOCUMENTS], id_from)
