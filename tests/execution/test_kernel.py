"""The interrupt button of a real kernel, pressed twice, and what stays in the notebook."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

jupyter_client = pytest.importorskip("jupyter_client")
pytest.importorskip("ipykernel")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

WORKERS = 4
#: What one call takes; several times the time an interrupt may take to be noticed.
CALL = 0.6
LIMIT = 2.0

SETUP = """
import sys, time, threading
import pandas as pd
import ragdiag
ids = [f"q{i}" for i in range(40)]
dataset = ragdiag.GoldenDataset.from_frame(pd.DataFrame(
    {"query_id": ids, "query": ids, "relevant_chunk_ids": [[i] for i in ids]}))
class Slow(ragdiag.Pipeline):
    def __init__(self, log, now):
        super().__init__("slow")
        self.log, self.now = log, now
    def retrieve(self, query):
        with open(self.log, "a") as stream:
            stream.write(query + "\\n")
        time.sleep(self.now["pause"])
        return [(query, "text")]
"""


def run_cell(log: Path, store: Path, pause: float) -> str:
    pipeline = f"Slow({str(log)!r}, dict(pause={pause}))"
    return f"ragdiag.evaluate({pipeline}, dataset, workers={WORKERS}, store={str(store)!r})"


class Notebook:
    """A kernel, and cells run in it."""

    def __init__(self, folder: Path, package: Path) -> None:
        self._manager = jupyter_client.KernelManager(kernel_name="python3")
        environment = {**os.environ, "PYTHONPATH": str(package)}
        self._manager.start_kernel(cwd=str(folder), env=environment)
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=60)

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)

    def start(self, code: str) -> str:
        return str(self._client.execute(code))

    def interrupt(self) -> None:
        self._manager.interrupt_kernel()

    def outputs(self, request: str) -> list[dict[str, Any]]:
        """Return all messages of a cell, waiting until it has ended."""
        found = []
        while True:
            message = self._client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                return found
            found.append({"kind": kind, **content})

    def run(self, code: str) -> list[dict[str, Any]]:
        outputs = self.outputs(self.start(code))
        assert not [output for output in outputs if output["kind"] == "error"], outputs
        return outputs

    def value(self, code: str) -> str:
        results = [o for o in self.run(code) if o["kind"] == "execute_result"]
        return str(results[0]["data"]["text/plain"])


@pytest.fixture
def notebook(tmp_path: Path, repository: Path) -> Iterator[Notebook]:
    notebook = Notebook(tmp_path, repository)
    yield notebook
    notebook.close()


def calls(log: Path) -> list[str]:
    return log.read_text().split() if log.exists() else []


def press_the_button(notebook: Notebook, request: str, log: Path, after: int) -> tuple[float, int]:
    """Interrupt once `after` calls have begun; return how long it took and how many followed."""
    deadline = time.monotonic() + 60
    while len(calls(log)) < after:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    sent = len(calls(log))
    pressed = time.monotonic()
    notebook.interrupt()
    outputs = notebook.outputs(request)
    elapsed = time.monotonic() - pressed
    errors = [output for output in outputs if output["kind"] == "error"]
    assert [error["ename"] for error in errors] == ["EvaluationInterrupted"]
    assert "sys.last_value.results" in errors[0]["evalue"]
    return elapsed, len(calls(log)) - sent


def test_interrupted_twice_and_gone_on_with(notebook: Notebook, tmp_path: Path) -> None:
    log, store = tmp_path / "calls.log", tmp_path / "runs" / "x.jsonl"
    notebook.run(SETUP)
    cell = run_cell(log, store, CALL)
    finished = 0
    for after in (6, 14):
        request = notebook.start(cell)
        elapsed, followed = press_the_button(notebook, request, log, after)
        assert elapsed < LIMIT
        assert followed <= WORKERS
        now = int(notebook.value("len(sys.last_value.results.run.outcomes)"))
        # What was in flight has come back within the time an interrupt may take.
        assert now == len(calls(log))
        assert now > finished
        finished = now
    assert int(notebook.value(f"len(ragdiag.load_run({str(store)!r}).outcomes)")) == finished
    last = notebook.run(run_cell(log, store, 0) + ".run.outcomes.shape")
    assert [o["data"]["text/plain"] for o in last if o["kind"] == "execute_result"] == ["(40, 7)"]
    assert sorted(calls(log)) == sorted(f"q{i}" for i in range(40))
    # One output, updated in place, that keeps its last state.
    drawn = [o for o in last if o["kind"] in ("display_data", "update_display_data", "stream")]
    assert drawn[0]["kind"] == "display_data"
    assert {o["kind"] for o in drawn[1:]} == {"update_display_data"}
    text = drawn[-1]["data"]["text/plain"]
    assert text.startswith("slow: done: 40/40 queries: 40 ok, 0 failed")
    assert f"reused {finished} of 40 calls" in text
    assert "40/40" in drawn[-1]["data"]["text/html"]


def test_calls_that_outlast_the_interrupt_are_kept_and_waited_for(
    notebook: Notebook, tmp_path: Path
) -> None:
    log, store = tmp_path / "calls.log", tmp_path / "x.jsonl"
    notebook.run(SETUP)
    request = notebook.start(run_cell(log, store, 3.0))
    elapsed, followed = press_the_button(notebook, request, log, WORKERS)
    assert elapsed < LIMIT
    assert followed == 0
    assert notebook.value("len(sys.last_value.results.run.outcomes)") == "0"
    # The next cell works at once, and the same call again waits for what is in flight.
    assert notebook.value("1 + 1") == "2"
    notebook.run(run_cell(log, store, 0) + ";")
    assert sorted(calls(log)) == sorted(f"q{i}" for i in range(40))
