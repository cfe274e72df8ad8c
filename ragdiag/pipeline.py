"""``Pipeline``: what is evaluated, and the border where its returns become chunks and answers.

Anything that can retrieve becomes a :class:`Pipeline` through :func:`as_pipeline`; from there on
the harness sees :class:`Stages` only.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from ragdiag.errors import PipelineError, PipelineLoadError
from ragdiag.loading import Source, load_object
from ragdiag.schema import RetrievedChunk

__all__ = [
    "AsyncPipeline",
    "Pipeline",
    "Stages",
    "as_pipeline",
    "check_answer",
    "load_pipeline",
    "stages_of",
    "to_answer_and_chunks",
    "to_chunks",
]

#: An offending value is shown up to this many characters.
_SHOWN = 200

_ITEM_FORMS = "a RetrievedChunk, {'id': ..., 'text': ...} or (id, text[, score[, metadata]])"

_CHUNK_FIELDS = ("id", "text", "score", "metadata")


class Pipeline(ABC):
    """A retrieval-augmented generation pipeline: retrieves, and perhaps generates.

    A subclass implements :meth:`retrieve`; one that leaves :meth:`generate` alone is evaluated for
    retrieval only. With more than one worker the methods are called from several threads at once.

    Parameters
    ----------
    name : str, optional
        What reports call the pipeline; the name of the class otherwise. A subclass may set ``name``
        and ``version`` as class attributes and need not call this constructor.

    Attributes
    ----------
    name : str
        See above.
    version : str
        Anything that tells one state of the pipeline from another (an index date, a commit); a
        store refuses to continue with another version.

    Examples
    --------
    >>> class Fixed(Pipeline):
    ...     version = "2"
    ...     def retrieve(self, query):
    ...         return [RetrievedChunk(id="d1", text="Refunds take 7 days.")]
    >>> Fixed().name, Fixed("baseline").name
    ('Fixed', 'baseline')
    """

    name: str = "Pipeline"
    version: str = ""
    #: Where :func:`load_pipeline` found it; None for a pipeline made in memory.
    source: Source | None = None

    def __init__(self, name: str | None = None) -> None:
        if name is not None:
            self.name = name

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in vars(cls):
            # A name given by hand is inherited, one that was derived from a class is not.
            giver = next(base for base in cls.__mro__[1:] if "name" in vars(base))
            if vars(giver)["name"] == giver.__name__:
                cls.name = cls.__name__

    @abstractmethod
    def retrieve(self, query: str) -> Sequence[RetrievedChunk]:
        """Return the chunks for `query`, best first; their order is their rank.

        Instead of :class:`~ragdiag.RetrievedChunk` an item may be a dict with ``id`` and ``text``
        (``score``, ``metadata``), a tuple ``(id, text[, score[, metadata]])``, or a document of
        LangChain, LlamaIndex or Haystack.
        """

    def generate(self, query: str, chunks: Sequence[RetrievedChunk]) -> str:
        """Return the answer to `query` from `chunks`; not overridden, nothing is generated."""
        raise NotImplementedError(f"{type(self).__name__} only retrieves")


class AsyncPipeline(Pipeline):
    """A pipeline whose methods are coroutines.

    All of them run on one event loop in the background, so that clients bound to a loop keep
    working; ``workers`` says how many run at the same time.

    Examples
    --------
    >>> class Remote(AsyncPipeline):
    ...     async def retrieve(self, query):
    ...         return [("d1", "Refunds take 7 days.", 0.8)]
    >>> Remote("remote").name
    'remote'
    """

    @abstractmethod
    async def retrieve(self, query: str) -> Sequence[RetrievedChunk]:  # type: ignore[override]
        """Return the chunks for `query`, best first, as :meth:`Pipeline.retrieve` does."""

    async def generate(self, query: str, chunks: Sequence[RetrievedChunk]) -> str:  # type: ignore[override]
        """Return the answer to `query` from `chunks`; not overridden, nothing is generated."""
        raise NotImplementedError(f"{type(self).__name__} only retrieves")


class FunctionPipeline(Pipeline):
    """A pipeline made of plain callables; see :func:`as_pipeline`."""

    def __init__(
        self,
        retrieve: Callable[[str], Any] | None,
        generate: Callable[[str, Sequence[RetrievedChunk]], Any] | None,
        answer: Callable[[str], Any] | None,
        name: str,
        version: str,
    ) -> None:
        super().__init__(name)
        self.version = version
        self.functions = (retrieve, generate, answer)

    def retrieve(self, query: str) -> Sequence[RetrievedChunk]:
        """Call the function that retrieves, or take the contexts of the one that answers."""
        retrieve, _, answer = self.functions
        if retrieve is not None:
            return cast("Sequence[RetrievedChunk]", retrieve(query))
        return to_answer_and_chunks(cast("Callable[[str], Any]", answer)(query))[1]


@dataclass(frozen=True)
class Stages:
    """The calls a pipeline consists of: retrieve, or retrieve and generate, or answer alone."""

    retrieve: Callable[[str], Any] | None
    generate: Callable[[str, Sequence[RetrievedChunk]], Any] | None
    answer: Callable[[str], Any] | None = None


def stages_of(pipeline: Pipeline) -> Stages:
    """Return the calls to make for `pipeline`; a generator that was not overridden is None."""
    if isinstance(pipeline, FunctionPipeline):
        return Stages(*pipeline.functions)
    generate = pipeline.generate
    inherited = (Pipeline.generate, AsyncPipeline.generate)
    only_retrieves = getattr(generate, "__func__", generate) in inherited
    return Stages(pipeline.retrieve, None if only_retrieves else generate)


def load_pipeline(path: str | Path) -> Pipeline:
    """Return the pipeline a Python file or module offers.

    The file is executed: load only what you would run. It sees its own folder, for the imports at
    its top and for those inside its functions, and two files with neighbours of the same name each
    use their own; ``sys.path`` is as before afterwards.

    Parameters
    ----------
    path : str or pathlib.Path
        ``"file.py"`` for the top-level name ``pipeline`` of that file, ``"file.py:name"`` or
        ``"package.module:name"`` for another name.

    Returns
    -------
    Pipeline
        With its :attr:`~Pipeline.source`: where it came from and a digest of that code.

    Raises
    ------
    PipelineLoadError
        There is no such file, it cannot be imported (an exception, ``sys.exit``), or it holds
        nothing that can retrieve; the message has the line.
    """
    value, source = load_object(path)
    try:
        pipeline = as_pipeline(value)
    except PipelineLoadError as error:
        raise PipelineLoadError(f"{source.spec}: {error}") from error
    # The same object may be offered under two names; each loader gets its own source.
    pipeline = copy.copy(pipeline) if pipeline.source not in (None, source) else pipeline
    object.__setattr__(pipeline, "source", source)
    return pipeline


def as_pipeline(
    obj: object = None,
    *,
    retrieve: Callable[[str], Any] | None = None,
    generate: Callable[[str, Sequence[RetrievedChunk]], Any] | None = None,
    answer: Callable[[str], Any] | None = None,
    name: str | None = None,
    version: str = "",
    id_from: str | None = None,
) -> Pipeline:
    """Make a pipeline of what you have.

    Parameters
    ----------
    obj : object, optional
        A pipeline (returned as it is), a path for :func:`load_pipeline`, an object with a method
        ``retrieve`` or ``search``, a function that retrieves, or what a framework offers: a
        retriever or chain of LangChain, a retriever or query engine of LlamaIndex, a pipeline or
        retriever of Haystack, an index of bm25s.
    retrieve : callable or framework's object, optional
        ``retrieve(query)`` returns chunks or a framework's documents, best first.
    generate : callable, optional
        ``generate(query, chunks)`` returns the answer.
    answer : callable or framework's object, optional
        ``answer(query)`` returns ``(answer, contexts)`` in one step, as chains and query engines
        do; then only the total time is measured. Coroutine functions may be given for all three.
    name, version : str, optional
        See :class:`Pipeline`; the name defaults to that of the function or class.
    id_from : str, optional
        Where documents have their chunk id, for instance ``"metadata.chunk_id"``; ``"text"`` makes
        one from the text. Without it ``chunk_id`` of the metadata counts, else the document's own.

    Raises
    ------
    PipelineLoadError
        It is nothing that can retrieve.

    Examples
    --------
    >>> def search(query):
    ...     return [("d1", "Refunds take 7 days.", 0.8)]
    >>> as_pipeline(retrieve=search).name
    'search'
    """
    functions = {"retrieve": retrieve, "generate": generate, "answer": answer}
    given = {label: value for label, value in functions.items() if value is not None}
    if obj is not None:
        if given:
            raise PipelineLoadError(f"give either an object or {'=, '.join(given)}=, not both")
        return _renamed(_from_object(obj, id_from), name, version)
    label = name or _name_of(answer or retrieve)
    if retrieve is not None:
        retrieve = _stage("retrieve", retrieve, id_from)
    if answer is not None:
        answer = _stage("answer", answer, id_from)
    if generate is not None and not callable(generate):
        raise PipelineLoadError(f"generate= must be callable, got {_shown(generate)}")
    if answer is not None and len(given) > 1:
        raise PipelineLoadError("answer= does both steps; give it alone")
    if answer is None and retrieve is None:
        raise PipelineLoadError("give a pipeline, retrieve= (perhaps with generate=), or answer=")
    return FunctionPipeline(retrieve, generate, answer, label, version)


def _stage(role: Literal["retrieve", "answer"], value: Any, id_from: str | None) -> Any:
    """Return the function to call for one step, given as such or as an object of a framework."""
    is_function = inspect.isroutine(value)
    if is_function and id_from is None:
        return value
    from ragdiag.interop import frameworks

    if not is_function:
        stages = frameworks.recognise(value, id_from, role)
        found = None if stages is None else getattr(stages, role)
        if found is not None:
            return found
    if not callable(value):
        raise PipelineLoadError(f"{role}= must be callable, got {_shown(value)}")
    return frameworks.with_ids(value, id_from, role)


def _from_object(obj: object, id_from: str | None) -> Pipeline:
    if isinstance(obj, Pipeline):
        return obj
    if isinstance(obj, str | Path):
        return load_pipeline(obj)
    if isinstance(obj, type):
        raise PipelineLoadError(f"got the class {obj.__name__}; give an instance: {obj.__name__}()")
    from ragdiag.interop import frameworks

    # Plain functions are no objects of a framework, whatever attributes someone gave them.
    stages = None if inspect.isroutine(obj) else frameworks.recognise(obj, id_from)
    if stages is None and callable(obj):
        stages = Stages(frameworks.with_ids(obj, id_from), None)
    if stages is not None:
        name = str(getattr(obj, "name", None) or _name_of(obj))
        version = str(getattr(obj, "version", None) or "")
        return FunctionPipeline(stages.retrieve, stages.generate, stages.answer, name, version)
    raise PipelineLoadError(
        "expected a Pipeline, a path, an object with retrieve(query) or of a framework, or a "
        f"function, got {_shown(obj)}"
    )


def _renamed(pipeline: Pipeline, name: str | None, version: str) -> Pipeline:
    if not name and not version:
        return pipeline
    other = copy.copy(pipeline)
    object.__setattr__(other, "name", name or pipeline.name)
    object.__setattr__(other, "version", version or pipeline.version)
    return other


def _name_of(function: object) -> str:
    name = getattr(function, "__name__", None) or type(function).__name__
    return "pipeline" if name == "<lambda>" else str(name)


def to_chunks(returned: object) -> list[RetrievedChunk]:
    """Turn what ``retrieve`` returned into chunks, or say which item is at fault.

    Parameters
    ----------
    returned : object
        A list or tuple of ``RetrievedChunk``, dicts, tuples or documents of a framework.
        Whole-number ids become text, a NaN score is no score.

    Raises
    ------
    PipelineError
        It is not a list, or an item is not a chunk; the message shows it.

    Examples
    --------
    >>> to_chunks([("d1", "Refunds take 7 days.", 0.8), {"id": 2, "text": "Fees apply."}])[1].id
    '2'
    """
    if isinstance(returned, str | bytes | Mapping) or not isinstance(returned, Sequence):
        raise PipelineError(f"expected a list of chunks, got {_shown(returned)}")
    return [_to_chunk(item, position) for position, item in enumerate(returned)]


def _to_chunk(item: object, position: int) -> RetrievedChunk:
    try:
        fields = _fields(item)
        if fields is not None:
            return RetrievedChunk.model_construct(
                id=_chunk_id(fields.get("id")),
                text=_text(fields.get("text")),
                score=_score(fields.get("score")),
                metadata=_metadata(fields.get("metadata")),
            )
    except PipelineError as error:
        raise PipelineError(f"item {position}: {error} in {_shown(item)}") from None
    raise PipelineError(f"item {position}: expected {_ITEM_FORMS}, got {_shown(item)}")


def _fields(item: object) -> Mapping[str, Any] | None:
    """Return the fields of a chunk by name, None for what is none."""
    if isinstance(item, RetrievedChunk):
        return vars(item)
    if isinstance(item, Mapping) and "text" in item:
        return {**item, "id": item.get("id", item.get("chunk_id"))}
    content: tuple[Any, ...] | None
    if isinstance(item, tuple) and item and (item[0] is None or _is_plain_id(item[0])):
        content = item if 2 <= len(item) <= 4 else None
    else:
        # What is left is a framework's document, or a fault.
        from ragdiag.interop.returned import document_fields

        content = document_fields(item)
    return None if content is None else dict(zip(_CHUNK_FIELDS, content, strict=False))


def _is_plain_id(value: object) -> bool:
    return isinstance(value, str | int | np.integer)


def _chunk_id(value: object) -> str:
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, str):
        raise PipelineError(f"id must be text, got {_shown(value)}")
    return str(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise PipelineError(f"text must be a string, got {_shown(value)}")
    return str(value)


def _score(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, str | bool):
        raise PipelineError(f"score must be a number, got {_shown(value)}")
    try:
        score = float(value)  # type: ignore[arg-type]
    except Exception:
        raise PipelineError(f"score must be a number, got {_shown(value)}") from None
    return None if np.isnan(score) else score


def _metadata(value: object) -> dict[str, object] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise PipelineError(f"metadata must be a dict, got {_shown(value)}")
    return {str(key): content for key, content in value.items()}


def check_answer(returned: object) -> str:
    """Return `returned` if it is text.

    Raises
    ------
    PipelineError
        It is not; the message shows it.
    """
    if isinstance(returned, str):
        return str(returned)
    raise PipelineError(f"expected the answer as a string, got {_shown(returned)}")


def to_answer_and_chunks(returned: object) -> tuple[str, list[RetrievedChunk]]:
    """Split what a one-step pipeline returned: ``(answer, contexts)`` or a dict with these keys.

    Raises
    ------
    PipelineError
        It has another shape; the message shows it.
    """
    if isinstance(returned, Mapping) and {"answer", "contexts"} <= set(returned):
        returned = (returned["answer"], returned["contexts"])
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise PipelineError(f"expected (answer, contexts), got {_shown(returned)}")
    return check_answer(returned[0]), to_chunks(returned[1])


def _shown(value: object) -> str:
    """Return type and shortened repr of a value that may be hostile to being shown."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"a value whose repr raises {type(error).__name__}"
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f"{type(value).__name__}: {text}"
