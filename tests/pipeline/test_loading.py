"""Pipelines from files: each sees its own folder, at any time and in any thread."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ragdiag import as_pipeline, load_pipeline
from ragdiag.errors import PipelineLoadError

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write


PIPE = """
    import conf
    from ragdiag import Pipeline

    class Loaded(Pipeline):
        def retrieve(self, query):
            import late
            from helpers.inner import deep
            from importlib import import_module
            import importlib
            import importlib.util as util
            names = [conf.NAME, late.NAME, deep(), import_module("late").NAME,
                     importlib.import_module("helpers.inner").deep(), util.__name__]
            return [(name, query) for name in names]

    pipeline = Loaded()
"""


def make_twins(write: Write) -> tuple[Path, Path]:
    for name in ("a", "b"):
        write(f"{name}/conf.py", f"NAME = '{name}'")
        write(f"{name}/late.py", "import conf\nNAME = conf.NAME")
        write(f"{name}/helpers/__init__.py", "from . import inner")
        write(f"{name}/helpers/inner.py", "def deep():\n    import conf\n    return conf.NAME")
    return write("a/pipe.py", PIPE), write("b/pipe.py", PIPE)


def ids(pipeline: object) -> list[str]:
    return [item[0] for item in pipeline.retrieve("q")]  # type: ignore[attr-defined]


def test_two_files_with_neighbours_of_the_same_name_use_their_own(write: Write) -> None:
    path_before, modules_before = list(sys.path), set(sys.modules)
    a, b = map(load_pipeline, make_twins(write))
    assert ids(a) == ["a"] * 5 + ["importlib.util"]
    assert ids(b) == ["b"] * 5 + ["importlib.util"]
    assert sys.path == path_before
    assert not {"conf", "late", "helpers", "pipe"} & (set(sys.modules) - modules_before)


def test_late_imports_find_their_folder_in_worker_threads(write: Write) -> None:
    pipelines = [load_pipeline(path) for path in make_twins(write)] * 20
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ids, pipelines))
    assert [names[1] for names in found] == ["a", "b"] * 20


def test_neighbours_may_import_each_other_and_the_file_in_a_circle(write: Write) -> None:
    write("other.py", "import pipe\ndef size():\n    return pipe.SIZE")
    path = write(
        "pipe.py",
        """
        SIZE = 7
        import other
        def pipeline(query):
            return [("d", str(other.size()))]
        """,
    )
    assert load_pipeline(path).retrieve("q") == [("d", "7")]


def test_a_folder_the_file_adds_to_the_path_stays_its_own(write: Write) -> None:
    for name in ("a", "b"):
        write(f"{name}/lib/shared_thing.py", f"NAME = '{name}'")
        write(
            f"{name}/pipe.py",
            """
            import sys, pathlib
            sys.path.insert(0, str(pathlib.Path(__file__).parent / "lib"))
            def pipeline(query):
                import shared_thing
                return [(shared_thing.NAME, query)]
            """,
        )
    before = list(sys.path)
    a, b = (load_pipeline(write(f"{n}/x.py", "").with_name("pipe.py")) for n in "ab")
    assert (ids(a), ids(b), sys.path) == (["a"], ["b"], before)


def test_relative_imports_stay_in_the_folder(write: Write) -> None:
    write("conf.py", "NAME = 'here'")
    path = write("pipe.py", "from .conf import NAME\npipeline = lambda query: [(NAME, query)]\n")
    assert ids(load_pipeline(path)) == ["here"]


def test_a_data_folder_does_not_hide_a_module_of_its_name(write: Write) -> None:
    write("json/data.txt", "")
    write("notes/part.py", "NAME = 'namespace'")
    path = write(
        "pipe.py",
        """
        import json
        import notes.part
        pipeline = lambda query: [(json.dumps(1) + notes.part.NAME, query)]
        """,
    )
    assert ids(load_pipeline(path)) == ["1namespace"]


def test_ragdiag_itself_is_never_loaded_twice(write: Write) -> None:
    write("ragdiag/__init__.py", "raise RuntimeError('a second ragdiag')")
    path = write("pipe.py", "import ragdiag\npipeline = ragdiag.as_pipeline(lambda query: [])")
    assert load_pipeline(path).retrieve("q") == []


def test_an_edited_file_is_loaded_anew(write: Write) -> None:
    path = write("pipe.py", "pipeline = lambda query: [('1', query)]")
    first = load_pipeline(path)
    write("pipe.py", "pipeline = lambda query: [('2', query)]")
    second = load_pipeline(path)
    assert (ids(first), ids(second)) == (["1"], ["2"])
    assert not list(path.parent.rglob("*.pyc"))


def test_names_after_a_colon(write: Write) -> None:
    path = write(
        "my-pipes.v2.py",
        """
        class box:
            dense = staticmethod(lambda query: [("dense", query)])
        sparse = lambda query: [("sparse", query)]
        """,
    )
    assert ids(load_pipeline(f"{path}:sparse")) == ["sparse"]
    assert ids(as_pipeline(f"{path}:box.dense", name="d")) == ["dense"]


def test_a_module_below_the_current_folder(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write("my_pipes/__init__.py", "")
    write("my_pipes/conf.py", "NAME = 'module'")
    write("my_pipes/bm25.py", "from my_pipes.conf import NAME\npipe = lambda q: [(NAME, q)]")
    monkeypatch.chdir(tmp_path)
    loaded = load_pipeline("my_pipes.bm25:pipe")
    assert ids(loaded) == ["module"]
    assert loaded.source is not None
    assert loaded.source.spec == "my_pipes.bm25:pipe"
    write("my_pipes/conf.py", "NAME = 'changed'")
    again = load_pipeline("my_pipes.bm25:pipe")
    assert again.source is not None
    assert again.source.digest != loaded.source.digest


def test_an_installed_module(write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write("known_pipes.py", "pipe = lambda q: [('known', q)]")
    write("known_package/__init__.py", "pipe = lambda q: [('package', q)]")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert ids(load_pipeline("known_pipes:pipe")) == ["known"]
    assert ids(load_pipeline("known_package:pipe")) == ["package"]


@pytest.mark.parametrize("changed", ["pipe.py", "conf.py", "late.py", "helpers/inner.py"])
def test_the_digest_covers_what_the_file_imports(write: Write, changed: str) -> None:
    path, _ = make_twins(write)
    before = load_pipeline(path).source
    assert before is not None
    assert load_pipeline(path).source == before
    target = path.parent / changed
    target.write_text(target.read_text() + "\n# edited\n")
    after = load_pipeline(path).source
    assert after is not None
    assert after.digest != before.digest


def test_the_digest_does_not_cover_what_lies_beside(write: Write) -> None:
    path, _ = make_twins(write)
    before = load_pipeline(path).source
    write("a/unrelated.py", "x = 1")
    assert load_pipeline(path).source == before


def test_prints_at_import_go_to_the_standard_error(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    load_pipeline(write("pipe.py", "print('loading')\npipeline = lambda query: []"))
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "loading\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import sys\nsys.exit('no index')", r"pipe.py, line 2: it called sys.exit\('no index'\)"),
        ("raise SystemExit", r"line 1: it called sys.exit\(\)"),
        ("x = 1\n\nraise ValueError('bad')", "pipe.py, line 3: ValueError: bad"),
        ("import not_there_at_all", "line 1: ModuleNotFoundError: No module named 'not_there"),
        ("from conf import missing", "cannot import name 'missing' from 'conf'"),
        ("def broken(:\n  pass", "pipe.py, line 1: SyntaxError: invalid syntax"),
        ("print('read this')\nraise ValueError", "ValueError: \nIt printed: read this"),
        ("x = 1", "it has no top-level name 'pipeline'; assign your pipeline to it"),
        (
            "from ragdiag import as_pipeline\ndense = as_pipeline(len)",
            "no top-level name 'pipeline'; it has dense: add ':dense' to the path",
        ),
        ("pipeline = 3", "pipe.py:pipeline: expected a Pipeline, a path.*got int: 3"),
        (
            "from ragdiag import Pipeline\n"
            "class pipeline(Pipeline):\n    def retrieve(self, query): return []",
            r"got the class pipeline; give an instance: pipeline\(\)",
        ),
    ],
)
def test_a_file_that_cannot_be_used_says_why_and_where(
    write: Write, text: str, message: str
) -> None:
    write("conf.py", "")
    before, modules = list(sys.path), set(sys.modules)
    with pytest.raises(PipelineLoadError, match=message) as caught:
        load_pipeline(write("pipe.py", text))
    assert "_ragdiag_home" not in str(caught.value)
    assert sys.path == before
    left = {name for name in set(sys.modules) - modules if name.startswith("_ragdiag_home")}
    assert not left or "pipeline" in text or "x = 1" in text or "dense" in text


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nowhere/pipe.py", "nowhere/pipe.py: there is no such file"),
        ("pipe.txt", "expected 'file.py', 'file.py:name' or 'module:name'"),
        ("folder/pipe.txt", r"folder/pipe.txt: expected a Python file \(.py\)"),
        ("not_there_at_all:pipe", "ModuleNotFoundError: No module named 'not_there_at_all'"),
        ("json:pipe", "json: it has no top-level name 'pipe'"),
    ],
)
def test_a_place_that_is_none(spec: str, message: str) -> None:
    with pytest.raises(PipelineLoadError, match=message):
        load_pipeline(spec)


def test_an_interrupt_while_importing_passes(write: Write) -> None:
    with pytest.raises(KeyboardInterrupt):
        load_pipeline(write("pipe.py", "raise KeyboardInterrupt"))
