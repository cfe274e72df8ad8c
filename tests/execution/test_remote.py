"""Pipelines in other processes: they travel as a place, and this process writes what comes back."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ragdiag import as_pipeline, load_run
from ragdiag.errors import PipelineError
from ragdiag.harness import execute
from ragdiag.remote import _work
from ragdiag.testing import FixedClock

PIPE = """
import os
from conf import NAME
from ragdiag import Pipeline

class Loaded(Pipeline):
    def retrieve(self, query):
        import late
        if query == "query 3":
            raise ValueError("no")
        if query == "query 4":
            return None
        if query == "kill":
            os._exit(3)
        return [(NAME, late.where(), 0.5)]

    def generate(self, query, chunks):
        return chunks[0].id + query

class Asynchronous(Loaded):
    async def retrieve(self, query):
        return [(NAME, "async")]

pipeline = Loaded()
asynchronous = Asynchronous()
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
    with ProcessPoolExecutor(2, context) as pool:
        yield pool


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "conf.py").write_text("NAME = 'd'\n")
    (tmp_path / "late.py").write_text("def where():\n    return 'late'\n")
    path = tmp_path / "pipe.py"
    path.write_text(PIPE)
    return path


def run(pipeline: Any, dataset: Any, **options: Any) -> Any:
    return execute(
        pipeline, dataset, **{"progress": False, "clock_factory": FixedClock(), **options}
    )


def test_a_file_runs_in_other_processes_with_the_same_result(
    pool: ProcessPoolExecutor, place: Path, numbers: Any, same: Any, counting_judge: Any
) -> None:
    store = place.with_name("runs.jsonl")
    far = run(str(place), numbers(30), executor=pool, store=store, judge=counting_judge())
    near = run(str(place), numbers(30), judge=counting_judge())
    same(far.subset(far.queries["query_id"]), near.subset(near.queries["query_id"]))
    same(far, load_run(store))
    assert far.outcomes["error"].dropna().tolist()[0] == "retrieval failed: ValueError: no"
    again = run(f"{place}:pipeline", numbers(30), executor=pool, store=store)
    assert again.outcomes.equals(far.outcomes)


def test_coroutines_run_there_as_well(pool: ProcessPoolExecutor, place: Path, numbers: Any) -> None:
    result = run(f"{place}:asynchronous", numbers(8), executor=pool)
    assert result.outcomes["answer"].tolist()[4] == "dquery 4"


def test_a_pipeline_made_here_travels_if_it_can_be_pickled(
    pool: ProcessPoolExecutor, numbers: Any, recorder: Any
) -> None:
    result = run(as_pipeline(retrieve=sorted), numbers(2), executor=pool)
    assert result.outcomes["error"].str.contains("item 0: expected a RetrievedChunk").all()
    with pytest.raises(PipelineError, match=r"'pipeline' cannot travel.*give 'file.py'"):
        run(as_pipeline(retrieve=lambda query: []), numbers(2), executor=pool)


def test_a_process_that_dies_ends_the_run_with_what_there_is(place: Path, numbers: Any) -> None:
    data = numbers(3, query=["query 0", "query 1", "kill"])
    store = place.with_name("runs.jsonl")
    with (
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool,
        pytest.raises(BrokenExecutor) as caught,
    ):
        run(str(place), data, executor=pool, store=store)
    assert caught.value.run.outcomes["query_id"].tolist() == ["q0", "q1"]  # type: ignore[attr-defined]
    assert not store.with_name("runs.jsonl.lock").exists()


def test_a_file_edited_meanwhile_is_not_loaded(place: Path) -> None:
    with pytest.raises(PipelineError, match="it was changed while the run went on"):
        _work((f"{place}:pipeline", "another digest"), None, None, 0)  # type: ignore[arg-type]
