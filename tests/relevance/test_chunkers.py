"""One corpus cut in five ways: an oracle that returns every chunk with evidence finds all of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

import ragdiag

Span = tuple[int, int]


def windows(size: int, step: int) -> Callable[[str], list[Span]]:
    return lambda text: [(at, min(at + size, len(text))) for at in range(0, len(text), step)]


def grouped(pattern: str, n: int) -> Callable[[str], list[Span]]:
    def cut(text: str) -> list[Span]:
        pieces = [each.span() for each in re.finditer(pattern, text)]
        groups = [pieces[at : at + n] for at in range(0, len(pieces), n)]
        return [(group[0][0], group[-1][1]) for group in groups]

    return cut


CHUNKERS = {
    "fixed": windows(400, 400),
    "overlapping": windows(600, 400),
    "words": grouped(r"\S+", 90),
    "sentences": grouped(r"\S[^.!?\n]*[.!?\n]*", 4),
    "paragraphs": grouped(r"\S[^\n]*", 1),
}


def oracle(texts, questions, cut, offsets):
    spans = {name: cut(text) for name, text in texts.items()}
    by_text = {question["question"]: question for question in questions}

    def retrieve(query):
        question = by_text[query]
        name = question["corpus_id"]
        return [
            ragdiag.RetrievedChunk(
                id=f"{name}-{start}",
                text=texts[name][start:end],
                metadata={"document": name, "start": start, "end": end} if offsets else None,
            )
            for start, end in spans[name]
            if any(start < r["end"] and r["start"] < end for r in question["references"])
        ]

    return retrieve


def recalls(texts, questions, cut, offsets):
    samples = [
        {
            "id": question["id"],
            "query": question["question"],
            "evidence": [
                {
                    "document": question["corpus_id"],
                    "start": r["start"],
                    "end": r["end"],
                    "text": r["content"],
                }
                if offsets
                else r["content"]
                for r in question["references"]
            ],
        }
        for question in questions
    ]
    dataset = ragdiag.GoldenDataset("spans", "1", samples)
    retrieve = oracle(texts, questions, cut, offsets)
    return ragdiag.evaluate(retrieve, dataset, k=1000, progress=False).frame["recall_at_1000"]


@pytest.mark.parametrize("offsets", [True, False], ids=["offsets", "texts"])
@pytest.mark.parametrize("name", CHUNKERS)
def test_an_oracle_has_full_recall(speech, name, offsets):
    assert (recalls(*speech, CHUNKERS[name], offsets) == 1.0).all()


@pytest.mark.parametrize("offsets", [True, False], ids=["offsets", "texts"])
@pytest.mark.parametrize("name", CHUNKERS)
def test_an_oracle_has_full_recall_on_all_documents(shared_data, name, offsets):
    folder = shared_data / "retrieval" / "chunk_spans"
    texts = {
        path.stem: path.read_bytes().decode("utf-8") for path in (folder / "corpora").glob("*.md")
    }
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line) for line in lines]
    assert (recalls(texts, questions, CHUNKERS[name], offsets) == 1.0).all()
