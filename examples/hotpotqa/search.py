"""BM25 over the passages of this folder, and answers cut out of what it finds."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from ragdiag import MissingDependencyError, Pipeline, RetrievedChunk

try:
    import bm25s
except ImportError as error:
    raise MissingDependencyError(
        "this example searches with bm25s, which is not installed: pip install 'ragdiag[examples]'"
    ) from error

CORPUS = Path(__file__).with_name("corpus.jsonl.gz")

#: How many passages are returned at most.
TOP = 10

#: How many sentences an answer has.
SENTENCES = 2

Passage = dict[str, str]


def load_passages() -> list[Passage]:
    """The corpus: ``_id``, ``title`` and ``text`` of each passage."""
    with gzip.open(CORPUS, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def words(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return re.findall(r"\w+", text.lower())


class BM25Pipeline(Pipeline):
    """Searches one view of the passages.

    The index is built once and only read afterwards, so that any number of threads may search it.
    """

    version = "1"

    def __init__(self, name: str, indexed: Callable[[Passage], str]) -> None:
        super().__init__(name)
        self.passages = load_passages()
        texts = [words(indexed(passage)) for passage in self.passages]
        self.index = bm25s.BM25()
        self.index.index(texts, show_progress=False)
        # How many passages hold a word: rare words tell more about which sentence answers.
        self.frequency = Counter(
            word for passage in self.passages for word in set(words(passage["text"]))
        )

    def retrieve(self, query: str) -> list[RetrievedChunk]:
        positions, scores = self.index.retrieve(
            [words(query)], k=TOP, show_progress=False, backend_selection="numpy"
        )
        return [
            RetrievedChunk(
                id=self.passages[position]["_id"],
                text=self.passages[position]["text"],
                score=float(score),
                metadata={"title": self.passages[position]["title"]},
            )
            for position, score in zip(positions[0], scores[0], strict=True)
            # Below ten matches the list is filled up with passages that share no word.
            if score > 0
        ]

    def generate(self, query: str, chunks: list[RetrievedChunk]) -> str:
        """The sentences that share most with the question, in the order they were found."""
        asked = set(words(query))
        sentences = [
            sentence
            for chunk in chunks
            for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z\"'])", chunk.text)
        ]
        best = sorted(sentences, key=lambda sentence: -self.match(asked, sentence))[:SENTENCES]
        return " ".join(sentence for sentence in sentences if sentence in best) or "I do not know."

    def match(self, asked: set[str], sentence: str) -> float:
        """How much of the question a sentence holds, rare words first, for its length."""
        found = words(sentence)
        weight = sum(
            math.log(len(self.passages) / (1 + self.frequency[word]))
            for word in asked.intersection(found)
        )
        return weight / math.sqrt(10 + len(found))
