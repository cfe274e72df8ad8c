"""Passages looked for in the texts of retrieved chunks, against reading the same texts.

1,000 questions with a passage of 60 words each, 20 chunks of 500 words a question, one of which
holds the passage. "read" is reading the file and decoding it, "parse" takes the texts out of its
JSON lines, "split" splits them into words. Ratios are the time of finding what the chunks hold of
the passages over these; under 10 is wanted for each.
"""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path

import pandas as pd
from measuring import milliseconds, print_table, processor_seconds

from ragdiag.passages import find_covers
from ragdiag.tables import EVIDENCE, RETRIEVED, TEXT, as_table

QUESTIONS, QUICK_QUESTIONS = 1_000, 100
CHUNKS = 20
WORDS = 500
PASSAGE_WORDS = 60
VOCABULARY = 5_000


def run(quick: bool) -> None:
    n = QUICK_QUESTIONS if quick else QUESTIONS
    rng = random.Random(0)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(rng.choices(letters, k=rng.randint(2, 10))) for _ in range(VOCABULARY)]
    texts = [" ".join(rng.choices(words, k=WORDS)) for _ in range(n * CHUNKS)]
    queries = [f"q{number}" for number in range(n)]
    passages = []
    for number in range(n):
        chosen = texts[number * CHUNKS + rng.randrange(CHUNKS)].split()
        start = rng.randrange(WORDS - PASSAGE_WORDS)
        passages.append(" ".join(chosen[start : start + PASSAGE_WORDS]))
    evidence = as_table(
        pd.DataFrame({"query_id": queries, "text": passages}), EVIDENCE, name="evidence"
    )
    retrieved = as_table(
        pd.DataFrame(
            {
                "query_id": [query for query in queries for _ in range(CHUNKS)],
                "rank": [*range(1, CHUNKS + 1)] * n,
                "chunk_id": [str(row) for row in range(len(texts))],
                "text": texts,
            }
        ),
        RETRIEVED,
        name="retrieved",
    )
    ids = pd.Series(queries, dtype=TEXT)
    assert len(find_covers(ids, evidence, retrieved).hit_passage) >= n
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "texts.jsonl")
        path.write_text("\n".join(json.dumps({"text": text}) for text in texts), encoding="utf-8")
        seconds = processor_seconds(
            {
                "ours": lambda: find_covers(ids, evidence, retrieved),
                "read": lambda: path.read_text(encoding="utf-8"),
                "parse": lambda: [
                    json.loads(line)["text"]
                    for line in path.read_text(encoding="utf-8").split("\n")
                ],
                "split": lambda: sum(len(text.split()) for text in texts),
            },
            3,
        )
    rows = [
        [
            f"{n:,} x {CHUNKS} x {WORDS} words",
            milliseconds(seconds["ours"]),
            *(f"{seconds['ours'] / seconds[name]:.1f}" for name in ("read", "parse", "split")),
        ]
    ]
    print_table(["", "ragdiag", "over read", "over parse", "over split"], rows)
