"""LangChain's retrievers and chains, the real ones, become pipelines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ragdiag import as_pipeline, evaluate
from ragdiag.errors import PipelineLoadError
from ragdiag.pipeline import stages_of, to_chunks

documents = pytest.importorskip("langchain_core.documents")
retrievers = pytest.importorskip("langchain_core.retrievers")
runnables = pytest.importorskip("langchain_core.runnables")

Document = documents.Document


@pytest.fixture
def retriever(texts: dict[str, str], ranked: Callable[[str], list[str]]) -> Any:
    class Words(retrievers.BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            return [
                Document(page_content=texts[name], metadata={"chunk_id": name, "page": 3})
                for name in ranked(query)
            ]

    return Words()


def test_a_retriever(retriever: Any, run: Any, texts: dict[str, str]) -> None:
    results = run(retriever)
    assert results.name == "Words"
    assert results.frame["category"].tolist() == ["PASS", "PASS"]
    first = results.chunks.iloc[0]
    assert (first["chunk_id"], first["text"]) == ("refunds", texts["refunds"])
    assert first["metadata"] == '{"chunk_id": "refunds", "page": 3}'
    assert results.frame["retrieval_ms"].notna().all()


@pytest.mark.parametrize(
    ("id_from", "chunk_id"),
    [(None, "a"), ("id", "a"), ("metadata.source", "s"), ("metadata.nr", "7"), ("text", "text-")],
)
def test_where_the_id_is(id_from: str | None, chunk_id: str) -> None:
    document = Document(page_content="Seven days.", id="a", metadata={"source": "s", "nr": 7})
    pipeline = as_pipeline(lambda query: [document], id_from=id_from)
    assert to_chunks(pipeline.retrieve("q"))[0].id.startswith(chunk_id)


def test_a_document_without_an_id_says_where_it_may_be(dataset: Any) -> None:
    def search(query: str) -> list[Any]:
        return [Document(page_content="Seven days.", metadata={"source": "s", "page": 1})]

    error = evaluate(search, dataset, progress=False).frame["error"][0]
    assert "item 0: the document has no id (its metadata has 'source', 'page')" in error
    assert "id_from='metadata.KEY'" in error
    pipeline = as_pipeline(search, id_from="metadata.nr")
    error = evaluate(pipeline, dataset, progress=False).frame["error"][0]
    assert "item 0: the document has nothing at id_from='metadata.nr'" in error


def test_a_chain_that_retrieves(retriever: Any, run: Any) -> None:
    def shorter(found: list[Document]) -> list[Document]:  # type: ignore[valid-type]
        return found[:1]

    results = run(retriever | shorter)
    assert results.chunks["chunk_id"].tolist() == ["refunds", "disputes"]
    untyped = retriever | runnables.RunnableLambda(lambda found: found[:2])
    assert len(run(as_pipeline(retrieve=untyped)).chunks) == 4


def test_a_runnable_that_cannot_tell_its_types(run: Any) -> None:
    class Untyped(runnables.Runnable):  # type: ignore[misc, name-defined]
        def invoke(self, query: Any, config: Any = None, **options: Any) -> Any:
            return {"answer": query, "context": [{"id": "refunds", "text": "t"}]}

    assert run(Untyped()).frame["answer"][0] == "How long does a refund take?"


def test_a_chain_that_answers(retriever: Any, run: Any) -> None:
    prompts = pytest.importorskip("langchain_core.prompts")
    models = pytest.importorskip("langchain_core.language_models.fake_chat_models")
    model = models.FakeListChatModel(responses=["Seven days.", "Fifteen euros."])
    prompt = prompts.ChatPromptTemplate.from_template("{context} {input}")
    chain = runnables.RunnablePassthrough.assign(
        context=lambda given: retriever.invoke(given["input"])
    ).assign(answer=prompt | model)
    # What an untyped chain takes is told by a function.
    results = run(as_pipeline(answer=lambda query: _pair(chain.invoke({"input": query}))))
    assert results.frame["answer"].tolist() == ["Seven days.", "Fifteen euros."]
    assert results.frame["retrieval_ms"].isna().all()
    assert results.frame["total_ms"].notna().all()


def _pair(reply: dict[str, Any]) -> tuple[str, Any]:
    return reply["answer"].text, reply["context"]


def test_a_chain_whose_input_is_known(retriever: Any, run: Any) -> None:
    prompts = pytest.importorskip("langchain_core.prompts")
    models = pytest.importorskip("langchain_core.language_models.fake_chat_models")
    model = models.FakeListChatModel(responses=["Seven days.", "Fifteen euros."])
    asked = prompts.PromptTemplate.from_template("{question}")
    chain = (
        asked
        | runnables.RunnableLambda(lambda value: value.to_string())
        | {"context": retriever, "answer": runnables.RunnableLambda(str) | model}
    )
    results = run(chain)
    assert results.frame["answer"].tolist() == ["Seven days.", "Fifteen euros."]
    assert results.frame["category"].tolist() == ["PASS", "PASS"]


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("Seven days.", "an answer without the documents it rests on"),
        ({"answer": "Seven days."}, "a dict with 'answer'; an answer"),
        ({"context": [], "answer": 3}, "expected the answer as text, got int"),
        (3, "expected an answer and its documents, got int"),
        ({"context": "none", "answer": "a"}, "expected a list of documents, got str"),
    ],
)
def test_a_chain_that_lacks_something(reply: Any, message: str, dataset: Any) -> None:
    chain = runnables.RunnableLambda(lambda query: reply)
    assert message in evaluate(chain, dataset, progress=False).frame["error"][0]


def test_a_vector_store_is_asked_for_its_retriever(texts: dict[str, str]) -> None:
    stores = pytest.importorskip("langchain_core.vectorstores")
    embeddings = pytest.importorskip("langchain_core.embeddings.fake")
    embedding = embeddings.DeterministicFakeEmbedding(size=8)
    store = stores.InMemoryVectorStore.from_texts(list(texts.values()), embedding, ids=list(texts))
    with pytest.raises(PipelineLoadError, match=r"got the index InMemoryVectorStore; give .*'k'"):
        as_pipeline(store)
    found = to_chunks(as_pipeline(store.as_retriever(search_kwargs={"k": 2})).retrieve("q"))
    assert {chunk.id for chunk in found} < set(texts)
    scored = to_chunks(store.similarity_search_with_score("q", k=2))
    assert [chunk.id for chunk in scored] == [chunk.id for chunk in found]
    assert isinstance(scored[0].score, float)


def test_it_only_answers_or_only_retrieves(retriever: Any) -> None:
    stages = stages_of(as_pipeline(retriever))
    assert (stages.answer, stages.generate) == (None, None)
    both = as_pipeline(retrieve=retriever, generate=lambda query, chunks: chunks[0].text)
    assert stages_of(both).generate is not None
    with pytest.raises(PipelineLoadError, match="generate= must be callable"):
        as_pipeline(retrieve=retriever, generate=retriever)
