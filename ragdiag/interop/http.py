"""``HttpPipeline``: a pipeline behind HTTP, written in whatever language."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ragdiag.cells import shown
from ragdiag.codec import json_text
from ragdiag.errors import PipelineError, PipelineLoadError, SettingsError
from ragdiag.interop.endpoint import QUERY, Endpoint
from ragdiag.interop.returned import answer_and_documents, documents_fields
from ragdiag.pipeline import FunctionPipeline
from ragdiag.schema import RetrievedChunk

__all__ = ["HttpPipeline"]

#: What stands in a request for the retrieved chunks.
CHUNKS = "{chunks}"

#: Where a reply may have its answer, if nothing is said.
ANSWERS = ("answer", "output", "response", "result", "text")

#: How a request is made (JSON text of a template, or a function), and how a reply is read (paths as
#: pairs, or a function).
Request = str | Callable[..., Any] | None
Response = tuple[tuple[str, str], ...] | Callable[[Any], Any]


class HttpPipeline(FunctionPipeline):
    """A pipeline that is asked over HTTP.

    By default the question is sent as ``POST {"query": ...}``, and a list of chunks, or an object
    with one under ``chunks``, ``documents``, ``contexts``..., is expected as JSON.

    Parameters
    ----------
    url : str
        What retrieves. With ``{query}`` in it, it is fetched with ``GET``.
    request : dict or callable, optional
        The JSON to send: a template in which ``"{query}"`` is replaced, at any depth, or a function
        of the question that returns it.
    response : dict or callable, optional
        Where things are in the reply, as dotted paths: ``chunks``, and inside each chunk ``id,
        text, score, metadata``; or a function of the reply that returns chunks.
    generate_url : str, optional
        What answers, given question and chunks, in a second step.
    generate_request : dict or callable, optional
        As `request`, with ``"{chunks}"`` for the list of chunks; a function of question and chunks.
    generate_response : str or callable, optional
        The path of the answer in the reply, or a function of the reply.
    one_step : bool
        Whether `url` retrieves and answers in one go: `response` then has the path ``answer`` too,
        or returns ``(answer, chunks)``. Only the total time is measured.
    headers : mapping, optional
        Sent along; their values are kept out of errors, and out of what is stored.
    timeout : float
        Seconds without a byte from the server until a request is given up.
    retries : int
        How often a request is made again after a failure that may pass: no connection, no reply,
        ``408, 425, 429, 5xx``. The time measured is that of all attempts and pauses; retries by
        ``evaluate(..., retries=)`` measure the last attempt alone.
    name, version : str, optional
        See :class:`~ragdiag.Pipeline`; the name defaults to host and path.
    id_from : str, optional
        Where a chunk has its id, see :func:`~ragdiag.as_pipeline`.

    Raises
    ------
    PipelineLoadError
        The address is none, or options do not go together.

    Examples
    --------
    >>> search = HttpPipeline(
    ...     "http://localhost:9200/docs/_search",
    ...     request={"query": {"match": {"body": "{query}"}}, "size": 10},
    ...     response={"chunks": "hits.hits", "id": "_id", "text": "_source.body",
    ...               "score": "_score"},
    ...     headers={"Authorization": "ApiKey ..."})
    >>> search.name
    'localhost:9200/docs/_search'
    """

    def __init__(
        self,
        url: str,
        *,
        request: Mapping[str, Any] | Sequence[Any] | Callable[[str], Any] | None = None,
        response: Mapping[str, str] | Callable[[Any], Any] | None = None,
        generate_url: str | None = None,
        generate_request: Mapping[str, Any] | Callable[..., Any] | None = None,
        generate_response: str | Callable[[Any], Any] | None = None,
        one_step: bool = False,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        retries: int = 2,
        name: str | None = None,
        version: str = "",
        id_from: str | None = None,
    ) -> None:
        if timeout <= 0 or retries < 0:
            raise SettingsError(
                f"timeout must be above 0 and retries at least 0, got {timeout!r} and {retries!r}"
            )
        if generate_url is None and (generate_request, generate_response) != (None, None):
            raise PipelineLoadError("generate_request= and generate_response= need generate_url=")
        if one_step and generate_url is not None:
            raise PipelineLoadError("with one_step=True the first address answers; give one")
        options = (dict(headers or {}), float(timeout), int(retries))
        first = Endpoint.of(url, *options)
        made = _request(request, {"query": QUERY}, url)
        read = _response(response, one_step)
        asked = partial(_ask if one_step else _retrieve, first, url, made, read, id_from)
        generate = None
        if generate_url is not None:
            generate = partial(
                _generate,
                Endpoint.of(generate_url, *options),
                generate_url,
                _request(generate_request, {"query": QUERY, "chunks": CHUNKS}, ""),
                generate_response,
            )
        super().__init__(
            None if one_step else asked,
            generate,
            asked if one_step else None,
            name or first.shown.partition("://")[2],
            version,
        )


# The functions of the stages are partials of these. The addresses, and what requests are made of,
# are arguments of their own so that the digest of the pipeline takes them in; headers it does not.


def _retrieve(
    endpoint: Endpoint,
    url: str,
    request: Request,
    response: Response,
    id_from: str | None,
    query: str,
) -> list[Any]:
    reply = endpoint.exchange(_body(request, query, None), query)
    return _chunks(reply, response, id_from, endpoint)


def _ask(
    endpoint: Endpoint,
    url: str,
    request: Request,
    response: Response,
    id_from: str | None,
    query: str,
) -> tuple[str, list[Any]]:
    reply = endpoint.exchange(_body(request, query, None), query)
    if callable(response):
        return answer_and_documents(response(reply), id_from)
    paths = dict(response)
    answer = _answer_in(reply, paths.get("answer"), endpoint)
    return answer, _chunks(reply, response, id_from, endpoint)


def _generate(
    endpoint: Endpoint,
    url: str,
    request: Request,
    response: str | Callable[[Any], Any] | None,
    query: str,
    chunks: Sequence[RetrievedChunk],
) -> Any:
    reply = endpoint.exchange(_body(request, query, chunks), query)
    return response(reply) if callable(response) else _answer_in(reply, response, endpoint)


# Requests and replies


def _request(given: Any, default: Any, url: str) -> Request:
    if callable(given):
        return given  # type: ignore[no-any-return]
    if given is None:
        return None if QUERY in url else json.dumps(default)
    text = json_text(given)
    if QUERY not in text and QUERY not in url:
        raise PipelineLoadError(
            f"the request has no {QUERY!r} in it for the question: {shown(given)}"
        )
    return text


def _response(given: Any, one_step: bool) -> Response:
    if given is None:
        return ()
    if callable(given):
        return given  # type: ignore[no-any-return]
    known = ("chunks", "id", "text", "score", "metadata", *(("answer",) if one_step else ()))
    unknown = [name for name in given if name not in known]
    if unknown:
        raise PipelineLoadError(
            f"response= has {unknown[0]!r}; its paths are {', '.join(map(repr, known))}"
        )
    return tuple(given.items())


def _body(request: Request, query: str, chunks: Sequence[RetrievedChunk] | None) -> Any:
    if callable(request):
        return request(query) if chunks is None else request(query, chunks)
    return None if request is None else _filled(json.loads(request), query, chunks)


def _filled(template: Any, query: str, chunks: Sequence[RetrievedChunk] | None) -> Any:
    if template == CHUNKS and chunks is not None:
        return [chunk.model_dump(exclude_none=True) for chunk in chunks]
    if isinstance(template, str):
        return template.replace(QUERY, query)
    if isinstance(template, list):
        return [_filled(item, query, chunks) for item in template]
    if isinstance(template, dict):
        return {key: _filled(item, query, chunks) for key, item in template.items()}
    return template


def _chunks(reply: Any, response: Response, id_from: str | None, endpoint: Endpoint) -> list[Any]:
    if callable(response):
        returned: list[Any] = response(reply)
        return returned if id_from is None else documents_fields(returned, id_from)
    paths = dict(response)
    if "chunks" in paths:
        reply = _at(reply, paths.pop("chunks"), endpoint)
    paths.pop("answer", None)
    if not isinstance(reply, list | dict):
        raise PipelineError(f"{endpoint.shown}: expected a list of chunks, got {shown(reply)}")
    if not paths:
        return documents_fields(reply, id_from)
    chunks = [
        {"text": "", **{name: _at(item, path, endpoint) for name, path in paths.items()}}
        for item in reply
    ]
    return chunks if id_from is None else documents_fields(chunks, id_from)


def _at(value: Any, path: str, endpoint: Endpoint) -> Any:
    """Return what a reply has at a dotted path; numbers count in lists."""
    for step in path.split("."):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.lstrip("-").isdigit() and len(value) > int(step):
            value = value[int(step)]
        else:
            keys = f"the keys {', '.join(map(repr, value))}" if isinstance(value, dict) else ""
            raise PipelineError(
                f"{endpoint.shown}: the reply has nothing at {path!r}: no {step!r} in "
                f"{keys or shown(value)}"
            )
    return value


def _answer_in(reply: Any, path: str | None, endpoint: Endpoint) -> str:
    if path is not None:
        reply = _at(reply, path, endpoint)
    elif isinstance(reply, dict):
        held = [reply[name] for name in ANSWERS if isinstance(reply.get(name), str)]
        reply = held[0] if held else reply
    if not isinstance(reply, str):
        raise PipelineError(f"{endpoint.shown}: expected the answer as text, got {shown(reply)}")
    return reply
