"""BM25 over the titles of the passages alone."""

from __future__ import annotations

from search import BM25Pipeline

pipeline = BM25Pipeline("bm25_titles", lambda passage: passage["title"])
