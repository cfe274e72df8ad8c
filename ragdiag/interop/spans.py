"""The shared walker of trace formats: from spans in any order to one record a trace.

A reader turns what its tool wrote into :class:`Span`; the rest is the same for all of them. A
retriever that calls another retriever counts once (the outermost span that has documents);
several retrievals of one trace are merged in the order of their start; times that overlap count
once; what failed is told by the root.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from ragdiag.interop.documents import Chunk
from ragdiag.interop.records import Record
from ragdiag.interop.values import milliseconds

__all__ = ["Kind", "Span", "TraceCollector"]

Kind = Literal["retriever", "generator", "other"]

#: How the published errors name the stage that failed.
STAGES: dict[Kind, str] = {"retriever": "retrieval failed", "generator": "generation failed"}


@dataclass(slots=True)
class Span:
    """One span, cut down to what a diagnosis needs.

    Attributes
    ----------
    trace_id, span_id, parent_id : str or None
    kind : {"retriever", "generator", "other"}
    start, end : int or None
        Nanoseconds.
    question, answer : str or None
        What its input and output come down to as text.
    chunks : list of Chunk or None
        The documents it returned; None where it says nothing about documents.
    given : list of Chunk or None
        Documents it was handed, used where no retriever was recorded.
    failed : bool
    error, traceback : str or None
        ``TYPE: MESSAGE`` of what it raised.
    query_id, expected_answer, query_type, labels, metadata, verdict
        What the tool knows about the query; the outermost span that says it counts.
    """

    trace_id: str
    span_id: str | None
    parent_id: str | None
    kind: Kind = "other"
    start: int | None = None
    end: int | None = None
    question: str | None = None
    answer: str | None = None
    chunks: list[Chunk] | None = None
    given: list[Chunk] | None = None
    failed: bool = False
    error: str | None = None
    traceback: str | None = None
    query_id: str | None = None
    expected_answer: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    verdict: dict[str, Any] = field(default_factory=dict)


class TraceCollector:
    """Takes spans in any order and yields one record a trace, in the order traces first came.

    Examples
    --------
    >>> traces = TraceCollector()
    >>> traces.add(Span("t1", "b", "a", "retriever", 0, 2_000_000, chunks=[Chunk("d1", "Text")]))
    >>> traces.add(Span("t1", "a", None, start=0, end=5_000_000, question="Who?", answer="Me"))
    >>> record = next(traces.records())
    >>> record.query, [chunk.id for chunk in record.chunks], record.retrieval_ms, record.total_ms
    ('Who?', ['d1'], 2.0, 5.0)
    """

    def __init__(self) -> None:
        self._traces: dict[str, list[Span]] = {}
        # The spans of a trace say the same question, and traces bring the same passages.
        self._texts: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._traces)

    def add(self, span: Span) -> None:
        """Take in one span."""
        span.question, span.answer = self._once(span.question), self._once(span.answer)
        if span.chunks:
            span.chunks = [
                Chunk(chunk.id, self._once(chunk.text), chunk.score, chunk.metadata)
                for chunk in span.chunks
            ]
        self._traces.setdefault(span.trace_id, []).append(span)

    def _once(self, text: str | None) -> str | None:
        """Return the text that was there before, so that each is held once."""
        return None if text is None else self._texts.setdefault(text, text)

    def records(self) -> Iterator[Record]:
        """Yield a record for each trace; a trace is forgotten once it was yielded."""
        while self._traces:
            trace_id = next(iter(self._traces))
            yield record_of(trace_id, self._traces.pop(trace_id))


def record_of(trace_id: str, spans: list[Span]) -> Record:
    """Return what the spans of one trace add up to."""
    tree = _Tree(spans)
    root = tree.root
    outermost_first = tree.by_depth
    retrievals = tree.retrievals()
    generations = tree.outermost("generator", apart_from="retriever")
    record = Record(f"trace {trace_id}", metadata={"trace_id": trace_id})
    for span in reversed(outermost_first):
        record.metadata.update(span.metadata)
        record.verdict.update(span.verdict)
    record.query = _first(span.question for span in outermost_first)
    record.query_id = _first(span.query_id for span in outermost_first)
    record.expected_answer = _first(span.expected_answer for span in outermost_first)
    record.answer = root.answer
    if record.answer is None:
        record.answer = _first(span.answer for span in reversed(generations))
    if retrievals:
        record.chunks = [chunk for span in retrievals for chunk in span.chunks or ()]
        record.n_retrievals = len(retrievals)
    else:
        record.chunks = _first(span.given for span in outermost_first)
    record.retrieval_ms = _duration(tree.outermost("retriever"))
    record.generation_ms = _duration(generations)
    record.total_ms = _duration([root])
    record.failed = root.failed
    if root.failed:
        record.answer = None
        record.error, record.traceback = _error(tree)
    return record


class _Tree:
    """The spans of a trace by start, with who calls whom."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self.spans = sorted(spans, key=lambda span: (span.start is None, span.start or 0))
        self._by_id: dict[str | None, Span] = {
            span.span_id: span for span in self.spans if span.span_id is not None
        }
        self._depth: dict[int, int] = {}
        self.by_depth = sorted(self.spans, key=self.depth)
        self.root = self.by_depth[0]

    def ancestors(self, span: Span) -> Iterator[Span]:
        """Yield the callers of a span, innermost first; a parent that is not there ends it."""
        seen = {id(span)}
        parent = self._by_id.get(span.parent_id)
        while parent is not None and id(parent) not in seen:
            seen.add(id(parent))
            yield parent
            parent = self._by_id.get(parent.parent_id)

    def depth(self, span: Span) -> int:
        if id(span) not in self._depth:
            self._depth[id(span)] = sum(1 for _ in self.ancestors(span))
        return self._depth[id(span)]

    def outermost(self, kind: Kind, apart_from: Kind | None = None) -> list[Span]:
        """Return the spans of a kind that lie in no other of it (nor of another kind)."""
        enclosing = {kind, apart_from}
        return [
            span
            for span in self.spans
            if span.kind == kind
            and not any(caller.kind in enclosing for caller in self.ancestors(span))
        ]

    def retrievals(self) -> list[Span]:
        """Return the outermost retriever spans that say what they returned."""
        told = [span for span in self.spans if span.kind == "retriever" and span.chunks is not None]
        ids = {id(span) for span in told}
        return [
            span for span in told if not any(id(caller) in ids for caller in self.ancestors(span))
        ]


def _error(tree: _Tree) -> tuple[str, str | None]:
    """Return what the trace failed of: the stage, and the error nearest to its cause."""
    failed = [span for span in tree.by_depth if span.failed]
    cause = next((span for span in failed if span.kind in STAGES), None)
    told = _first(span.error for span in ([cause] if cause else []) + failed[::-1])
    trace = _first(span.traceback for span in failed)
    message = told or "the trace says that it failed and not of what"
    stage = STAGES.get(cause.kind) if cause else None
    return (f"{stage}: {message}" if stage else message), trace


def _duration(spans: Iterable[Span]) -> float | None:
    return milliseconds((span.start, span.end) for span in spans)


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value is not None), None)
