"""A real cluster of Dask on loopback: pipelines run in its workers, parts are read there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ragdiag import GoldenDataset, as_pipeline, diagnose, evaluate
from ragdiag.calls import Task
from ragdiag.errors import PipelineError
from ragdiag.remote import Remote, capacity

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

PIPE = """
import os
from ragdiag import Pipeline

class Loaded(Pipeline):
    def retrieve(self, query):
        if query == "question 3":
            raise ValueError("no index")
        return [("d1", str(os.getpid()))]

    def generate(self, query, chunks):
        return "about " + query

pipeline = Loaded()
"""


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            memory_limit=0,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def questions() -> GoldenDataset:
    numbers = range(12)
    return GoldenDataset.from_frame(
        pd.DataFrame(
            {
                "query_id": [f"q{number}" for number in numbers],
                "query": [f"question {number}" for number in numbers],
                "relevant_chunk_ids": [["d1"]] * len(numbers),
            }
        )
    )


def test_a_pipeline_of_a_file(client: Any, questions: GoldenDataset, tmp_path: Path) -> None:
    path = tmp_path / "pipe.py"
    path.write_text(PIPE)
    store = tmp_path / "run.jsonl"
    executor = client.get_executor()
    assert capacity(executor) == 2
    results = evaluate(str(path), questions, executor=executor, store=store, progress=False)
    assert results.frame["category"].tolist() == ["PASS"] * 3 + ["UNKNOWN"] + ["PASS"] * 8
    assert results.frame["error"][3] == "retrieval failed: ValueError: no index"
    assert results.frame["answer"][0] == "about question 0"
    workers = {str(worker["pid"]) for worker in client.run(_pid).values()}
    assert set(results.chunks["text"]) <= workers
    near = evaluate(str(path), questions, progress=False)
    columns = ["query_id", "answer", "error", "category", "recall_at_5"]
    pd.testing.assert_frame_equal(results.frame[columns], near.frame[columns])


def _pid() -> dict[str, int]:
    import os

    return {"pid": os.getpid()}


def test_a_function_of_a_notebook_is_called_every_time(
    client: Any, questions: GoldenDataset
) -> None:
    import time

    pipeline = as_pipeline(lambda query: [("d1", str(time.time_ns()))], name="clock")
    executor = client.get_executor()
    results = evaluate(pipeline, questions, executor=executor, progress=False)
    assert results.frame["category"].tolist() == ["PASS"] * 12
    # Dask would give equal calls one result while somebody holds it.
    remote = Remote(pipeline, None, 0, executor)
    first, second = (remote.submit(Task("q1", "question 1")) for _ in range(2))
    assert first.result()[0]["chunks"] != second.result()[0]["chunks"]


def test_what_cannot_travel(client: Any, questions: GoldenDataset) -> None:
    import threading

    lock = threading.Lock()
    pipeline = as_pipeline(lambda query: [("d1", str(lock))], name="locked")
    with pytest.raises(PipelineError, match="'locked' cannot travel to another process"):
        evaluate(pipeline, questions, executor=client.get_executor(), progress=False)


def test_parts_are_read_in_the_workers(client: Any, tmp_path: Path) -> None:
    dd = pytest.importorskip("dask.dataframe")
    for part in range(3):
        ids = [f"q{part}{number}" for number in range(4)]
        frame = pd.DataFrame({"query_id": ids, "query": ids, "chunk_id": "d1", "text": "long"})
        frame.to_parquet(tmp_path / f"{part}.parquet")
    qrels = pd.DataFrame({"query_id": ["q00", "q21"], "chunk_id": ["d1", "d2"]})
    from ragdiag import Run

    results = diagnose(Run.from_frame(dd.read_parquet(tmp_path), qrels=qrels))
    assert results["q00"].diagnosis.category == "PASS"
    assert results["q21"].diagnosis.category == "WRONG_CHUNK_RETRIEVED"
    assert len(results) == 12
