"""OpenTelemetry spans: as JSON lines of the console exporter, or as OTLP/JSON.

This is the transport; what the attributes of a span mean is up to the conventions it follows,
:mod:`~ragdiag.interop.openinference` and :mod:`~ragdiag.interop.genai`, which may be mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ragdiag.interop import genai, openinference
from ragdiag.interop.raw import RawSpan
from ragdiag.interop.records import RunBuilder
from ragdiag.interop.source import Source
from ragdiag.interop.spans import Span, TraceCollector
from ragdiag.interop.values import time_ns
from ragdiag.recording import Run

__all__ = ["read", "spans_in"]


def read(source: Source, format: str) -> Run:
    """Return the run that the spans of a file record, one query a trace."""
    builder = RunBuilder(source.name, format)
    traces = TraceCollector()
    service: str | None = None
    for place, item in source.objects(builder.skip):
        for raw in spans_in(item):
            if raw.trace_id is None:
                builder.skip(place, "a span without a trace id")
                continue
            service = service or raw.service
            traces.add(interpret(raw))
    for record in traces.records():
        builder.add(record)
    builder.pipeline_name = service
    return builder.run(name=source.stem)


def interpret(raw: RawSpan) -> Span:
    """Return a span with the meaning its attributes have by the convention they follow."""
    if genai.follows(raw):
        return genai.interpret(raw)
    return openinference.interpret(raw)


def spans_in(item: Mapping[str, Any]) -> Iterator[RawSpan]:
    """Yield the spans of one object: a span itself, or an OTLP export of many."""
    if "resourceSpans" not in item:
        yield _console_span(item)
        return
    for resource in _objects(item["resourceSpans"]):
        held = resource.get("resource")
        service = _attributes(held.get("attributes")) if isinstance(held, Mapping) else {}
        scopes = resource.get("scopeSpans", resource.get("instrumentationLibrarySpans"))
        for scope in _objects(scopes):
            for span in _objects(scope.get("spans")):
                yield _otlp_span(span, service)


def _console_span(span: Mapping[str, Any]) -> RawSpan:
    """Read a span as ``ReadableSpan.to_json`` of the SDK writes it."""
    context = _object(span.get("context"))
    status = _object(span.get("status"))
    resource = _object(span.get("resource"))
    return RawSpan(
        trace_id=_hex(context.get("trace_id")),
        span_id=_hex(context.get("span_id")),
        parent_id=_hex(span.get("parent_id")),
        name=str(span.get("name", "")),
        start=time_ns(span.get("start_time")),
        end=time_ns(span.get("end_time")),
        failed=str(status.get("status_code", "")).endswith("ERROR"),
        message=status.get("description"),
        attributes=_object(span.get("attributes")),
        events=[
            (str(event.get("name", "")), _object(event.get("attributes")))
            for event in _objects(span.get("events"))
        ],
        service=_service(_object(resource.get("attributes"))),
    )


#: Of OTLP's status: the number, and the name some exporters write instead.
OTLP_ERROR = (2, "2", "STATUS_CODE_ERROR")


def _otlp_span(span: Mapping[str, Any], resource: Mapping[str, Any]) -> RawSpan:
    status = _object(span.get("status"))
    return RawSpan(
        trace_id=_hex(span.get("traceId")),
        span_id=_hex(span.get("spanId")),
        parent_id=_hex(span.get("parentSpanId")),
        name=str(span.get("name", "")),
        start=time_ns(span.get("startTimeUnixNano")),
        end=time_ns(span.get("endTimeUnixNano")),
        failed=status.get("code") in OTLP_ERROR,
        message=status.get("message"),
        attributes=_attributes(span.get("attributes")),
        events=[
            (str(event.get("name", "")), _attributes(event.get("attributes")))
            for event in _objects(span.get("events"))
        ],
        service=_service(resource),
    )


def _service(resource: Mapping[str, Any]) -> str | None:
    name = resource.get("service.name")
    return name if isinstance(name, str) and not name.startswith("unknown_service") else None


def _attributes(pairs: Any) -> dict[str, Any]:
    """Return OTLP attributes, a list of keys with typed values, as a dict."""
    return {str(pair.get("key")): _otlp_value(pair.get("value")) for pair in _objects(pairs)}


#: How each typed value of OTLP/JSON is read; 64-bit integers are strings there.
_OTLP_VALUES: dict[str, Callable[[Any], Any]] = {
    "stringValue": lambda value: value,
    "boolValue": lambda value: value,
    "doubleValue": lambda value: value,
    "bytesValue": lambda value: value,
    "intValue": lambda value: int(value) if str(value).lstrip("-").isdecimal() else value,
    "arrayValue": lambda value: [_otlp_value(item) for item in _objects(value.get("values"))],
    "kvlistValue": lambda value: _attributes(value.get("values")),
}


def _otlp_value(value: Any) -> Any:
    for kind, content in _object(value).items():
        if kind in ("arrayValue", "kvlistValue") and not isinstance(content, Mapping):
            return None
        if kind in _OTLP_VALUES:
            return _OTLP_VALUES[kind](content)
    return None


def _hex(value: Any) -> str | None:
    """Return an id without the ``0x`` some exporters write; None for none and for all zeros."""
    if not isinstance(value, str):
        return None
    digits = value.removeprefix("0x").lower()
    return digits if digits.strip("0") else None


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
