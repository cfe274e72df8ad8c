"""The smallest whole pipeline: search by shared words, answer with the best sentence.

It needs nothing but ragdiag, and it is weak on purpose: ``basic_dataset.json`` asks it questions
that it answers, ranks badly, half finds and misses. Run it with::

    ragdiag run --pipeline examples/basic_pipeline.py --dataset examples/basic_dataset.json
"""

from __future__ import annotations

import re

from payment_gateway import PASSAGES

from ragdiag import Pipeline, RetrievedChunk

#: How many chunks are returned at most.
TOP = 5


def words(text: str) -> set[str]:
    """The different words of a text, in lower case."""
    return set(re.findall(r"[a-z0-9]+", text.lower()))


class KeywordPipeline(Pipeline):
    """Ranks passages by the number of words they share with the question."""

    name = "basic_pipeline"
    version = "1"

    def retrieve(self, query: str) -> list[RetrievedChunk]:
        asked = words(query)
        scores = {chunk_id: len(asked & words(text)) for chunk_id, text in PASSAGES.items()}
        best = sorted(scores, key=lambda chunk_id: (-scores[chunk_id], chunk_id))[:TOP]
        return [
            RetrievedChunk(id=chunk_id, text=PASSAGES[chunk_id], score=float(scores[chunk_id]))
            for chunk_id in best
            if scores[chunk_id]
        ]

    def generate(self, query: str, chunks: list[RetrievedChunk]) -> str:
        sentences = [part for chunk in chunks for part in re.split(r"(?<=\.) ", chunk.text)]
        if not sentences:
            return "I do not know."
        asked = words(query)
        return max(sentences, key=lambda sentence: len(asked & words(sentence)))


pipeline = KeywordPipeline()
