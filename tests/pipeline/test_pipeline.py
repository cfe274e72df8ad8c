"""Pipelines and the border at which their returns become chunks and answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ragdiag import AsyncPipeline, Pipeline, RetrievedChunk, as_pipeline
from ragdiag.errors import PipelineError, PipelineLoadError
from ragdiag.pipeline import check_answer, stages_of, to_answer_and_chunks, to_chunks


class Retriever(Pipeline):
    def retrieve(self, query: str) -> Any:
        return [("d1", query)]


class Generator(Retriever):
    def generate(self, query: str, chunks: Any) -> str:
        return chunks[0].text


def test_a_name_is_given_inherited_or_that_of_the_class() -> None:
    class Named(Pipeline):
        name = "bm25"

        def retrieve(self, query: str) -> Any:
            return []

    class Child(Named):
        pass

    assert Retriever().name == "Retriever"
    assert Generator().name == "Generator"
    assert Retriever("mine").name == "mine"
    assert Child().name == "bm25"


def test_a_subclass_need_not_call_the_constructor() -> None:
    class Forgetful(Retriever):
        def __init__(self, top: int) -> None:
            self.top = top

    assert Forgetful(3).name == "Forgetful"
    assert Forgetful(3).version == ""


def test_retrieve_is_the_only_abstract_method() -> None:
    with pytest.raises(TypeError, match="retrieve"):
        Pipeline()  # type: ignore[abstract]
    with pytest.raises(NotImplementedError, match="Retriever only retrieves"):
        Retriever().generate("q", [])


def test_stages_tell_whether_answers_are_generated() -> None:
    class Asynchronous(AsyncPipeline):
        async def retrieve(self, query: str) -> Any:
            return []

    assert stages_of(Retriever()).generate is None
    assert stages_of(Asynchronous()).generate is None
    assert stages_of(Generator()).generate is not None
    assert stages_of(as_pipeline(answer=lambda query: ("a", []))).retrieve is None


def test_an_async_generator_not_overridden_says_so() -> None:
    import asyncio

    class Asynchronous(AsyncPipeline):
        async def retrieve(self, query: str) -> Any:
            return []

    with pytest.raises(NotImplementedError, match="Asynchronous only retrieves"):
        asyncio.run(Asynchronous().generate("q", []))


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ([RetrievedChunk(id="a", text="t", score=0.5)], ("a", "t", 0.5, None)),
        ([{"id": "a", "text": "t"}], ("a", "t", None, None)),
        ([{"chunk_id": "a", "text": "t", "score": 1}], ("a", "t", 1.0, None)),
        ([("a", "t")], ("a", "t", None, None)),
        ((("a", "t", np.float32(0.5)),), ("a", "t", 0.5, None)),
        ([("a", "t", None, {"page": 3})], ("a", "t", None, {"page": 3})),
        ([(7, "t")], ("7", "t", None, None)),
        ([(np.int64(7), "t", float("nan"))], ("7", "t", None, None)),
    ],
)
def test_what_retrieve_may_return(returned: object, expected: tuple[Any, ...]) -> None:
    chunk = to_chunks(returned)[0]
    assert (chunk.id, chunk.text, chunk.score, chunk.metadata) == expected


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "expected a list of chunks, got NoneType: None"),
        ("text", "expected a list of chunks, got str: 'text'"),
        ({"id": "a"}, "expected a list of chunks, got dict"),
        ((c for c in ()), "expected a list of chunks, got generator"),
        ([("a", "t"), "b"], "item 1: expected a RetrievedChunk.*got str: 'b'"),
        ([("a",)], r"item 0: expected .*got tuple: \('a',\)"),
        ([(None, "t")], r"item 0: id must be text, got NoneType: None in tuple: \(None, 't'\)"),
        ([(True, "t")], "id must be text, got bool"),
        ([("a", None)], "text must be a string"),
        ([("a", "t", "high")], "score must be a number, got str: 'high'"),
        ([("a", "t", object())], "score must be a number"),
        ([("a", "t", 1.0, "page 3")], "metadata must be a dict"),
        ([Unshowable()], "a value whose repr raises RuntimeError"),
        (["x" * 5000], "x{199}…"),
    ],
)
def test_the_offending_item_is_shown(returned: object, message: str) -> None:
    with pytest.raises(PipelineError, match=message) as caught:
        to_chunks(returned)
    assert len(str(caught.value)) < 700


def test_one_step_pipelines_return_answer_and_contexts() -> None:
    assert to_answer_and_chunks(("a", [("d", "t")]))[0] == "a"
    assert to_answer_and_chunks({"answer": "a", "contexts": [("d", "t")]})[1][0].id == "d"
    with pytest.raises(PipelineError, match=r"expected \(answer, contexts\), got str"):
        to_answer_and_chunks("a")
    with pytest.raises(PipelineError, match="expected the answer as a string, got NoneType"):
        to_answer_and_chunks((None, []))
    assert as_pipeline(answer=lambda query: ("a", [("d", query)])).retrieve("q")[0].text == "q"


def test_an_answer_is_text() -> None:
    assert check_answer("") == ""
    with pytest.raises(PipelineError, match="got int: 3"):
        check_answer(3)


def test_what_becomes_a_pipeline() -> None:
    class Duck:
        name = "duck"
        version = "2"

        def retrieve(self, query: str) -> Any:
            return [("d", query)]

    def search(query: str) -> Any:
        return [("d", query)]

    original = Retriever()
    assert as_pipeline(original) is original
    duck = as_pipeline(Duck())
    assert (duck.name, duck.version, stages_of(duck).generate) == ("duck", "2", None)
    assert as_pipeline(search).name == "search"
    assert as_pipeline(lambda query: []).name == "pipeline"
    assert as_pipeline(retrieve=search).retrieve("q") == [("d", "q")]
    renamed = as_pipeline(original, name="other", version="3")
    assert (renamed.name, renamed.version, original.name) == ("other", "3", "Retriever")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give a pipeline, retrieve="),
        ({"obj": 3}, "expected a Pipeline, a path.*got int: 3"),
        ({"obj": Retriever}, r"got the class Retriever; give an instance: Retriever\(\)"),
        ({"obj": Retriever(), "retrieve": len}, "give either an object or retrieve=, not both"),
        ({"retrieve": 3}, "retrieve= must be callable, got int: 3"),
        ({"answer": len, "retrieve": len}, "answer= does both steps"),
        ({"generate": len}, "give a pipeline, retrieve="),
    ],
)
def test_what_does_not(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(PipelineLoadError, match=message):
        as_pipeline(**arguments)
