"""One speech cut in five ways, each with BM25 over its chunks.

Every chunk says in its metadata where it comes from, so that evidence given as spans of the speech
tells which chunks are relevant, however they were cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from ragdiag import MissingDependencyError, Pipeline, RetrievedChunk

try:
    import bm25s
except ImportError as error:
    raise MissingDependencyError(
        "this example searches with bm25s, which is not installed: pip install 'ragdiag[examples]'"
    ) from error

DOCUMENT = "state_of_the_union"
TEXT = Path(__file__).with_name(f"{DOCUMENT}.md").read_text(encoding="utf-8")

#: How many chunks are returned at most.
TOP = 20

Span = tuple[int, int]


def windows(size: int, step: int) -> list[Span]:
    """Windows of `size` characters, wherever they begin and end."""
    return [(start, min(start + size, len(TEXT))) for start in range(0, len(TEXT), step)]


def grouped(pattern: str, characters: int) -> list[Span]:
    """Pieces that a pattern finds, put together until they reach so many characters."""
    pieces = [piece.span() for piece in re.finditer(pattern, TEXT)]
    starts = [pieces[0][0]]
    for (_, end), (start, _) in pairwise(pieces):
        if end - starts[-1] >= characters:
            starts.append(start)
    ends = [max(end for _, end in pieces if end <= start) for start in starts[1:]]
    return list(zip(starts, [*ends, pieces[-1][1]], strict=True))


#: Name and spans of each way to cut.
CHUNKERS: dict[str, Callable[[], list[Span]]] = {
    "windows of 400": lambda: windows(400, 400),
    "windows of 400, overlapping": lambda: windows(400, 200),
    "words": lambda: grouped(r"\S+", 400),
    "sentences": lambda: grouped(r"[^\s.!?][^.!?]*[.!?]+", 400),
    "paragraphs": lambda: grouped(r"\S[^\n]*", 800),
}


def words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return re.findall(r"\w+", text.lower())


class ChunkSearch(Pipeline):
    """BM25 over the chunks of one chunker."""

    version = "1"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.spans = CHUNKERS[name]()
        self.index = bm25s.BM25()
        self.index.index([words(TEXT[start:end]) for start, end in self.spans], show_progress=False)

    def retrieve(self, query: str) -> list[RetrievedChunk]:
        positions, scores = self.index.retrieve(
            [words(query)],
            k=min(TOP, len(self.spans)),
            show_progress=False,
            backend_selection="numpy",
        )
        return [
            self.chunk(position, float(score))
            for position, score in zip(positions[0], scores[0], strict=True)
        ]

    def chunk(self, position: int, score: float | None = None) -> RetrievedChunk:
        """The chunk at a position, with its place in the speech."""
        start, end = self.spans[position]
        return RetrievedChunk(
            id=f"{position:03d}",
            text=TEXT[start:end],
            score=score,
            metadata={"document": DOCUMENT, "start": start, "end": end},
        )
