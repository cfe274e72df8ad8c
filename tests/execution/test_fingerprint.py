"""What counts as a pipeline's code."""

from __future__ import annotations

import functools
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ragdiag import Pipeline, as_pipeline
from ragdiag.fingerprint import pipeline_digest

BASE = """
import helper_module
from ragdiag import Pipeline, as_pipeline

TOP = 3
COUNT = 0

def tokenize(text):
    return text.split()

class Index:
    size = 5
    def __init__(self, weight=1.0):
        self.weight = weight
    def search(self, tokens):
        return [(token, "t") for token in tokens[:self.size]]

class Mine(Pipeline):
    def __init__(self, index, boost=2):
        self.index = index
        self._boost = boost
        self.hits = 0
    def retrieve(self, query):
        global COUNT
        COUNT += 1
        self.hits += 1
        return self.index.search(tokenize(query))[:TOP]
    @property
    def unrelated(self):
        return 1
    @staticmethod
    def still():
        return 2

pipeline = Mine(Index())
"""


@pytest.fixture
def digest_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.syspath_prepend(str(tmp_path))
    numbers = iter(range(1000))

    def digest_of(text: str, helper: str = "x = 1", setup: Callable[[Any], None] = id) -> str:
        (tmp_path / "helper_module.py").write_text(helper)
        for name in ("helper_module", "user_module"):
            sys.modules.pop(name, None)
        # As in a notebook: the source is there, under a name that changes with each run.
        path = tmp_path / f"cell_{next(numbers)}.py"
        path.write_text(textwrap.dedent(text))
        module = ModuleType("user_module")
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, "user_module", module)
        exec(compile(path.read_text(), str(path), "exec"), vars(module))
        setup(module)
        return pipeline_digest(module.pipeline)

    return digest_of


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tokenize(query))", "tokenize(query.lower()))"),
        ("text.split()", "text.split('-')"),
        ("TOP = 3", "TOP = 4"),
        ("size = 5", "size = 6"),
        ("tokens[:self", "tokens[1:self"),
        ("boost=2", "boost=3"),
        ("Index()", "Index(weight=0.5)"),
        ("return 1", "return 3"),
        ("return 2", "return 4"),
    ],
)
def test_an_edit_is_noticed(digest_of: Callable[..., str], old: str, new: str) -> None:
    assert old in BASE
    assert digest_of(BASE) != digest_of(BASE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("COUNT = 0", "COUNT = 7"),
        ("pipeline = Mine", "pipeline = pipeline_before = Mine"),
        ("TOP = 3", "TOP = 3\nUNUSED = 4"),
    ],
)
def test_what_is_not_used_or_is_state_does_not_count(
    digest_of: Callable[..., str], old: str, new: str
) -> None:
    assert digest_of(BASE) == digest_of(BASE.replace(old, new))


def test_calls_do_not_change_it(digest_of: Callable[..., str]) -> None:
    assert digest_of(BASE) == digest_of(BASE, setup=lambda module: module.pipeline.retrieve("a b"))


def test_modules_of_the_user_count_as_files(digest_of: Callable[..., str]) -> None:
    text = "import helper_module\ndef pipeline_(query):\n    return helper_module.x\n"
    text += "from ragdiag import as_pipeline\npipeline = as_pipeline(pipeline_)\n"
    assert digest_of(text) != digest_of(text, helper="x = 2")
    assert digest_of(text) == digest_of(text)


def test_functions_in_all_their_forms() -> None:
    def search(query: str, top: int = 3, *, reverse: bool = False) -> Any:
        return [query] * top

    class Engine:
        def search(self, query: str) -> Any:
            return []

        @classmethod
        def find(cls, query: str) -> Any:
            return []

    def close_over(limit: int, helper: Any) -> Any:
        def retrieve(query: str) -> Any:
            return helper(query)[:limit]

        return retrieve

    digests = [
        pipeline_digest(as_pipeline(retrieve=function))
        for function in (
            search,
            functools.partial(search, top=4),
            functools.partial(search, top=5),
            Engine().search,
            Engine.find,
            close_over(1, search),
            close_over(2, search),
            close_over(2, len),
        )
    ]
    assert len(set(digests)) == len(digests)
    assert pipeline_digest(as_pipeline(retrieve=close_over(2, search))) == digests[-2]


def test_code_without_a_source_counts_as_bytecode() -> None:
    def made(number: int) -> str:
        space: dict[str, Any] = {"__name__": "__main__"}
        exec(f"def search(query):\n    return [(lambda: {number})()]", space)
        return pipeline_digest(as_pipeline(retrieve=space["search"]))

    assert made(1) == made(1)
    assert made(1) != made(2)


def test_a_dataclass_has_its_fields_as_settings() -> None:
    @dataclass
    class Configured(Pipeline):
        top: int = 3
        api_key: str = "one"

        def retrieve(self, query: str) -> Any:
            return []

    assert pipeline_digest(Configured()) != pipeline_digest(Configured(top=4))
    assert pipeline_digest(Configured()) == pipeline_digest(Configured(api_key="two"))
