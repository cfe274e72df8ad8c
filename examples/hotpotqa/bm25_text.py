"""BM25 over titles and texts of the passages."""

from __future__ import annotations

from search import BM25Pipeline

pipeline = BM25Pipeline("bm25_text", lambda passage: f"{passage['title']} {passage['text']}")
