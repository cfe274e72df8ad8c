"""A span as OpenTelemetry has it, before anyone says what its attributes mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragdiag.interop.spans import Kind, Span
from ragdiag.interop.values import text_or_none

__all__ = ["RawSpan", "exception_of", "span_of"]


@dataclass(slots=True)
class RawSpan:
    """One span of OpenTelemetry.

    Attributes
    ----------
    trace_id, span_id, parent_id : str or None
    name : str
    start, end : int or None
        Nanoseconds since 1970.
    failed : bool
        Whether its status is ERROR.
    message : object
        What its status says.
    attributes : mapping
    events : list of (str, mapping)
    service : str or None
        Name of what was traced.
    """

    trace_id: str | None
    span_id: str | None
    parent_id: str | None
    name: str
    start: int | None
    end: int | None
    failed: bool
    message: Any
    attributes: Mapping[str, Any]
    events: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    service: str | None = None


def exception_of(raw: RawSpan) -> tuple[str | None, str | None]:
    """Return ``TYPE: MESSAGE`` and traceback of the exception that a span recorded."""
    for name, attributes in raw.events:
        if name == "exception":
            kind = text_or_none(attributes.get("exception.type"))
            message = text_or_none(attributes.get("exception.message"))
            told = ": ".join(part for part in (kind, message) if part) or None
            return told, text_or_none(attributes.get("exception.stacktrace"))
    return text_or_none(raw.message), None


def span_of(raw: RawSpan, kind: Kind) -> Span:
    """Return what every convention has in common: ids, times, failure."""
    span = Span(str(raw.trace_id), raw.span_id, raw.parent_id, kind, raw.start, raw.end)
    span.failed = raw.failed
    if raw.failed:
        span.error, span.traceback = exception_of(raw)
    return span
