"""Haystack's pipelines and retrievers, the real ones, become pipelines."""

from __future__ import annotations

from typing import Any

import pytest

from ragdiag import as_pipeline
from ragdiag.errors import PipelineLoadError
from ragdiag.pipeline import stages_of

haystack = pytest.importorskip("haystack")
stores = pytest.importorskip("haystack.document_stores.in_memory")
bm25 = pytest.importorskip("haystack.components.retrievers.in_memory")
builders = pytest.importorskip("haystack.components.builders")
component = haystack.component

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@component
class Reverse:
    """A ranker that turns the order around."""

    @component.output_types(documents=list[haystack.Document])
    def run(self, documents: list[haystack.Document]) -> dict[str, Any]:
        return {"documents": documents[::-1]}


@component
class Model:
    @component.output_types(replies=list[str])
    def run(self, prompt: str) -> dict[str, Any]:
        return {"replies": [f"Answer to {prompt}"]}


@component
class Odd:
    @component.output_types(replies=list[int])
    def run(self, prompt: str) -> dict[str, Any]:
        return {"replies": [3]}


@component
class Embedder:
    @component.output_types(query=str)
    def run(self, text: str) -> dict[str, Any]:
        return {"query": text}


@pytest.fixture
def retriever(texts: dict[str, str]) -> Any:
    store = stores.InMemoryDocumentStore()
    store.write_documents(
        [
            haystack.Document(id=f"doc-{name}", content=text, meta={"label": name})
            for name, text in texts.items()
        ]
    )
    return bm25.InMemoryBM25Retriever(store, top_k=3)


def made_of(*parts: tuple[str, Any], connect: tuple[tuple[str, str], ...] = ()) -> Any:
    pipeline = haystack.Pipeline()
    for name, part in parts:
        pipeline.add_component(name, part)
    for before, after in connect:
        pipeline.connect(before, after)
    return pipeline


def test_a_pipeline_that_retrieves(retriever: Any, run: Any, texts: dict[str, str]) -> None:
    pipeline = made_of(("retriever", retriever))
    results = run(as_pipeline(pipeline, id_from="metadata.label", name="bm25"))
    assert results.frame["category"].tolist() == ["PASS", "PASS"]
    first = results.chunks.iloc[0]
    assert (first["chunk_id"], first["text"]) == ("refunds", texts["refunds"])
    assert first["score"] > 0
    assert run(pipeline).chunks["chunk_id"][0] == "doc-refunds"
    assert run(as_pipeline(pipeline, id_from="meta.label")).chunks["chunk_id"][0] == "refunds"


def test_the_last_component_with_documents_counts(retriever: Any, run: Any) -> None:
    pipeline = made_of(
        ("embedder", Embedder()),
        ("retriever", retriever),
        ("a_ranker", Reverse()),
        connect=(("embedder.query", "retriever.query"), ("retriever", "a_ranker")),
    )
    results = run(as_pipeline(pipeline, id_from="meta.label"))
    assert results.frame["first_relevant_rank"].tolist() == [3, 3]


@pytest.mark.parametrize("with_builder", [False, True])
def test_a_pipeline_that_answers(retriever: Any, run: Any, with_builder: bool) -> None:
    prompt = builders.PromptBuilder(
        "{{ question }} {{ documents | length }}", required_variables=["question", "documents"]
    )
    parts = [("retriever", retriever), ("prompt", prompt), ("model", Model())]
    connect = [("retriever.documents", "prompt.documents"), ("prompt", "model")]
    if with_builder:
        parts.append(("builder", builders.AnswerBuilder()))
        connect.append(("model.replies", "builder.replies"))
    pipeline = made_of(*parts, connect=tuple(connect))
    results = run(as_pipeline(pipeline, id_from="meta.label"))
    assert results.frame["answer"][0] == "Answer to How long does a refund take? 3"
    assert results.frame["category"].tolist() == ["PASS", "PASS"]
    assert results.frame["retrieval_ms"].isna().all()


def test_documents_that_only_the_answer_has(texts: dict[str, str]) -> None:
    @component
    class Whole:
        @component.output_types(answers=list[haystack.GeneratedAnswer])
        def run(self, query: str) -> dict[str, Any]:
            documents = [haystack.Document(id="a", content="Seven days.")]
            return {"answers": [haystack.GeneratedAnswer("Seven.", query, documents)]}

    answer, chunks = stages_of(as_pipeline(made_of(("whole", Whole())))).answer("q")
    assert (answer, chunks) == ("Seven.", [("a", "Seven days.", None, None)])


def test_a_component_that_retrieves(retriever: Any, run: Any) -> None:
    results = run(as_pipeline(retriever, id_from="meta.label"))
    assert results.frame["category"].tolist() == ["PASS", "PASS"]


def test_what_cannot_be_told(retriever: Any, texts: dict[str, str]) -> None:
    other = bm25.InMemoryBM25Retriever(retriever.document_store)
    with pytest.raises(PipelineLoadError, match="components 'one', 'two' of the Haystack"):
        as_pipeline(made_of(("one", retriever), ("two", other)))
    with pytest.raises(PipelineLoadError, match="no input 'query', 'question' or 'text'"):
        as_pipeline(made_of(("ranker", Reverse())))
    with pytest.raises(PipelineLoadError, match="no component of the Haystack pipeline gives"):
        as_pipeline(made_of(("embedder", Embedder())))


def test_a_reply_that_is_no_text(retriever: Any, dataset: Any) -> None:
    from ragdiag import evaluate

    prompt = builders.PromptBuilder("{{ query }}", required_variables=["query"])
    pipeline = made_of(
        ("retriever", retriever),
        ("prompt", prompt),
        ("model", Odd()),
        connect=(("prompt", "model"),),
    )
    error = evaluate(pipeline, dataset, progress=False).frame["error"][0]
    assert "expected the answer of component 'model' as text, got int" in error
