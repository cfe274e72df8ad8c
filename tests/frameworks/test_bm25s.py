"""An index of bm25s, and plain objects that search, become pipelines."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

from ragdiag import as_pipeline
from ragdiag.errors import PipelineLoadError
from ragdiag.fingerprint import pipeline_digest
from ragdiag.interop.frameworks import bm25s_retriever
from ragdiag.pipeline import stages_of, to_chunks


@pytest.fixture
def index(texts: dict[str, str]) -> Any:
    bm25s = pytest.importorskip("bm25s")
    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(texts.values()), show_progress=False), show_progress=False)
    return index


def test_an_index_with_its_corpus(index: Any, run: Any, texts: dict[str, str]) -> None:
    index.corpus = [{"id": name, "text": text, "page": 3} for name, text in texts.items()]
    results = run(index)
    assert results.frame["category"].tolist() == ["PASS", "PASS"]
    assert results.chunks["text"][0] == texts["refunds"]
    assert results.chunks["metadata"][0] == '{"page": 3}'
    assert results.chunks["score"][0] > 0
    # Fewer chunks than are asked for by default.
    assert len(results.chunks) == 6


def test_corpus_and_ids_beside_the_index(index: Any, run: Any, texts: dict[str, str]) -> None:
    search = bm25s_retriever(index, corpus=list(texts.values()), ids=list(texts), k=1)
    results = run(as_pipeline(retrieve=search, name="bm25s"))
    assert results.chunks["chunk_id"].tolist() == ["refunds", "disputes"]
    assert results.chunks["text"].tolist() == [texts["refunds"], texts["disputes"]]


def test_without_a_corpus_the_positions_are_the_ids(index: Any) -> None:
    chunk = to_chunks(as_pipeline(index).retrieve("refund"))[0]
    assert (chunk.id, chunk.text) == ("0", "")
    index.corpus = ["a", "b", "c"]
    assert to_chunks(as_pipeline(index).retrieve("dispute"))[0].text == "b"


def test_what_does_not_belong_together(index: Any) -> None:
    with pytest.raises(PipelineLoadError, match="ids= has 1 entries, the index has 3"):
        bm25s_retriever(index, ids=["a"])

    class Bare:
        corpus = None
        scores = {"num_docs": 0}  # noqa: RUF012

    Bare.__module__ = "nowhere"
    with pytest.raises(PipelineLoadError, match="cannot find the tokeniser of Bare"):
        bm25s_retriever(Bare())


class Searching:
    name = "searching"

    def search(self, query: str) -> list[dict[str, Any]]:
        return [{"text": query, "metadata": {"nr": 7}}]


def test_an_object_that_searches() -> None:
    pipeline = as_pipeline(Searching(), id_from="metadata.nr")
    assert pipeline.name == "searching"
    assert to_chunks(pipeline.retrieve("q"))[0].id == "7"
    travelled = pickle.loads(pickle.dumps(pipeline))
    assert to_chunks(travelled.retrieve("q"))[0].id == "7"


def test_a_dict_without_a_list_says_what_it_has() -> None:
    pipeline = as_pipeline(lambda query: {"found": []}, id_from="id")
    with pytest.raises(Exception, match="got a dict with 'found'"):
        pipeline.retrieve("q")


def test_coroutines_are_awaited_before_their_documents_are_read() -> None:
    async def search(query: str) -> list[dict[str, Any]]:
        return [{"key": "a", "text": query}]

    async def answer(query: str) -> tuple[str, list[dict[str, Any]]]:
        return "yes", [{"key": "a", "text": query}]

    retrieve = stages_of(as_pipeline(retrieve=search, id_from="key")).retrieve
    assert asyncio.run(retrieve("q")) == [("a", "q", None, None)]
    both = stages_of(as_pipeline(answer=answer, id_from="key")).answer
    assert asyncio.run(both("q")) == ("yes", [("a", "q", None, None)])


def test_the_digest_sees_the_function_and_where_ids_are() -> None:
    def digest(text: str, id_from: str | None) -> str:
        return pipeline_digest(as_pipeline(lambda query: [(text, query)], id_from=id_from))

    assert len({digest("a", "id"), digest("b", "id"), digest("a", "key")}) == 3
    assert digest("a", "id") == digest("a", "id")
