"""LlamaIndex's retrievers and query engines, the real ones, become pipelines."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from ragdiag import as_pipeline
from ragdiag.errors import PipelineLoadError
from ragdiag.pipeline import stages_of, to_chunks

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the package's own, of what it imports
    core = pytest.importorskip("llama_index.core")
    schema = pytest.importorskip("llama_index.core.schema")
    retrievers = pytest.importorskip("llama_index.core.retrievers")
    engines = pytest.importorskip("llama_index.core.query_engine")
    responses = pytest.importorskip("llama_index.core.base.response.schema")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def retriever(texts: dict[str, str], ranked: Callable[[str], list[str]]) -> Any:
    class Words(retrievers.BaseRetriever):
        def _retrieve(self, bundle: Any) -> list[Any]:
            return [
                schema.NodeWithScore(
                    node=schema.TextNode(
                        text=texts[name], id_=f"node-{name}", metadata={"label": name}
                    ),
                    score=1.0 - place / 10,
                )
                for place, name in enumerate(ranked(bundle.query_str))
            ]

    return Words()


def test_a_retriever(retriever: Any, run: Any, texts: dict[str, str]) -> None:
    results = run(as_pipeline(retriever, id_from="metadata.label"))
    assert results.frame["category"].tolist() == ["PASS", "PASS"]
    first = results.chunks.iloc[0]
    assert (first["chunk_id"], first["text"], first["score"]) == ("refunds", texts["refunds"], 1.0)
    assert first["metadata"] == '{"label": "refunds"}'
    assert to_chunks(as_pipeline(retriever).retrieve("dispute"))[0].id == "node-disputes"


def test_a_query_engine_is_one_step(retriever: Any, run: Any) -> None:
    class Engine(engines.CustomQueryEngine):
        retriever: Any

        def custom_query(self, query_str: str) -> Any:
            nodes = self.retriever.retrieve(query_str)
            return responses.Response(response=nodes[0].text, source_nodes=nodes)

    results = run(as_pipeline(Engine(retriever=retriever), id_from="metadata.label"))
    assert results.frame["answer"][0] == "A refund to a card takes seven days."
    assert results.frame["category"].tolist() == ["PASS", "PASS"]
    assert results.frame["retrieval_ms"].isna().all()
    assert results.frame["total_ms"].notna().all()


def test_the_engine_of_a_retriever(retriever: Any, run: Any) -> None:
    llms = pytest.importorskip("llama_index.core.llms")
    engine = engines.RetrieverQueryEngine.from_args(retriever, llm=llms.MockLLM())
    assert stages_of(as_pipeline(engine)).retrieve is None
    results = run(as_pipeline(engine, name="engine", id_from="metadata.label"))
    assert results.name == "engine"
    assert "How long does a refund take?" in results.frame["answer"][0]


def test_a_streamed_response(texts: dict[str, str]) -> None:
    class Streaming:
        def query(self, question: str) -> Any:
            nodes = [schema.NodeWithScore(node=schema.TextNode(text="t", id_="a"))]
            return responses.StreamingResponse(iter(["Seven", " days."]), nodes)

        aquery = query

    answer, chunks = stages_of(as_pipeline(Streaming())).answer("q")
    assert (answer, to_chunks(chunks)[0].id) == ("Seven days.", "a")


def test_an_index_is_asked_for_its_retriever(texts: dict[str, str]) -> None:
    embeddings = pytest.importorskip("llama_index.core.embeddings")
    nodes = [schema.TextNode(text=text, id_=name) for name, text in texts.items()]
    index = core.VectorStoreIndex(nodes, embed_model=embeddings.MockEmbedding(embed_dim=4))
    with pytest.raises(PipelineLoadError, match=r"got the index VectorStoreIndex; give"):
        as_pipeline(index)
    pipeline = as_pipeline(index.as_retriever(similarity_top_k=2))
    assert {chunk.id for chunk in to_chunks(pipeline.retrieve("q"))} < set(texts)


def test_a_node_without_text_has_an_empty_one() -> None:
    image = schema.NodeWithScore(node=schema.ImageNode(id_="a", image_url="x"), score=0.5)
    assert to_chunks([image])[0].text == ""
