"""BM25 finds passages, SmolLM2-135M answers from the best three: a real model that really errs."""

from __future__ import annotations

import sys
from pathlib import Path

import openai
import smollm2

from ragdiag import RetrievedChunk

sys.path.insert(0, str(Path(__file__).parents[1] / "hotpotqa"))
from search import BM25Pipeline

#: How many passages are recorded, and how many of them the model is given to read.
TOP = 5
READ = 3
MAX_TOKENS = 48

INSTRUCTIONS = (
    "Answer the question from the passages alone, in one short sentence. If the passages do not "
    "say it, answer: I do not know."
)


class LocalPipeline(BM25Pipeline):
    """Searches titles and texts; generates at temperature 0, so that answers can be repeated."""

    version = "1"

    def __init__(self) -> None:
        super().__init__("bm25_smollm2", lambda passage: f"{passage['title']} {passage['text']}")
        self.server, address = smollm2.start()
        self.client = openai.OpenAI(
            api_key="no-key-needed", base_url=address, timeout=600, max_retries=0
        )

    def retrieve(self, query: str) -> list[RetrievedChunk]:
        return super().retrieve(query)[:TOP]

    def generate(self, query: str, chunks: list[RetrievedChunk]) -> str:
        passages = "\n\n".join(
            f"{(chunk.metadata or {}).get('title')}: {chunk.text}" for chunk in chunks[:READ]
        )
        completion = self.client.chat.completions.create(
            model=smollm2.MODEL,
            messages=[
                {"role": "system", "content": INSTRUCTIONS},
                {"role": "user", "content": f"Passages:\n{passages}\n\nQuestion: {query}"},
            ],
            temperature=0.0,
            max_tokens=MAX_TOKENS,
        )
        return (completion.choices[0].message.content or "").strip()


pipeline = LocalPipeline()
