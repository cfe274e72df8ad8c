"""Kills runs at random moments and lets them go on; prints what was seen, as JSON.

A run is a forked child, since importing takes far longer than a run of this size. Arguments:
folder, number of kills, seed, and ``judge`` or ``plain``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

import ragdiag
from ragdiag.journal import read_records
from ragdiag.testing import FixedClock

SIZE = 12
WORKERS = 3
PAUSE = 0.002


class Slow(ragdiag.Pipeline):
    def __init__(self, log: Path) -> None:
        super().__init__("slow")
        self.log = log

    def _called(self, stage: str, query: str) -> None:
        time.sleep(PAUSE)
        with self.log.open("ab", buffering=0) as stream:
            stream.write(f"{stage} {query}\n".encode())

    def retrieve(self, query: str) -> Any:
        self._called("retrieval", query)
        if query == "x3":
            raise ValueError("always")
        return [(f"d-{query}", query), ("other", "text")]

    def generate(self, query: str, chunks: Any) -> str:
        self._called("generation", query)
        return f"answer to {query}"


class SlowJudge(ragdiag.Judge):
    def __init__(self, log: Path) -> None:
        self.called = Slow(log)._called

    @property
    def identity(self) -> dict[str, str]:
        return {"judge": "slow"}

    def evaluate(
        self, query: str, expected_answer: Any, generated_answer: Any, context: Any
    ) -> ragdiag.JudgeResult:
        self.called("reply", query)
        return ragdiag.JudgeResult(answer_correct=True, grounded=query != "x5", confidence=0.5)


def dataset() -> ragdiag.GoldenDataset:
    ids = [f"x{i}" for i in range(SIZE)]
    return ragdiag.GoldenDataset.from_frame(
        pd.DataFrame(
            {"query_id": ids, "query": ids, "relevant_chunk_ids": [[f"d-{name}"] for name in ids]}
        )
    )


def evaluate(data: Any, store: Path | None, log: Path, judged: bool) -> ragdiag.Results:
    return ragdiag.evaluate(
        Slow(log),
        data,
        judge=SlowJudge(log) if judged else None,
        workers=WORKERS,
        judge_workers=WORKERS,
        store=store,
        progress=False,
        clock_factory=FixedClock(),
    )


def main(folder: Path, kills: int, seed: int, judged: bool) -> dict[str, Any]:
    rng = random.Random(seed)
    data = dataset()
    log = folder / "calls.log"
    log.touch()
    undisturbed = evaluate(data, None, log, judged)
    report = undisturbed.report().model_dump_json()
    # Measured when everything has been imported.
    began = time.monotonic()
    evaluate(data, folder / "timed.jsonl", log, judged)
    duration = time.monotonic() - began
    seen: dict[str, Any] = {"kills": 0, "repeated": [], "different": 0, "most_calls": 0, "runs": 0}
    seen["duration"] = duration
    store = folder / "0.jsonl"
    killed_here = 0
    log.write_bytes(b"")
    while seen["kills"] < kills:
        done = finished_calls(store)
        log_size = log.stat().st_size
        child = os.fork()
        if child == 0:
            evaluate(data, store, log, judged)
            os._exit(0)
        time.sleep(rng.uniform(0, 1.2 * duration))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        new_calls = log.read_bytes()[log_size:].decode().splitlines()
        seen["repeated"] += sorted(done.intersection(new_calls))
        if os.WIFSIGNALED(status):
            seen["kills"] += 1
            killed_here += 1
            continue
        # It finished: the report is that of the undisturbed run, and little was done twice.
        resumed = evaluate(data, store, folder / "unused.log", judged)
        seen["different"] += resumed.report().model_dump_json() != report
        seen["different"] += not ragdiag.load_run(store).outcomes.equals(undisturbed.run.outcomes)
        calls = len(log.read_bytes().splitlines())
        needed = 1 + 2 * (SIZE - 1) + judged * (SIZE - 1)
        # The failing query is tried by every child.
        in_flight = WORKERS * (1 + judged) + 1
        seen["most_calls"] = max(seen["most_calls"], calls - needed - killed_here * in_flight)
        seen["runs"] += 1
        store = folder / f"{seen['runs']}.jsonl"
        killed_here = 0
        log.write_bytes(b"")
    return seen


def finished_calls(store: Path) -> set[str]:
    if not store.exists():
        return set()
    kinds = {"retrieval", "generation", "reply"}
    return {
        f"{record['record']} {record['query_id']}"
        for record, _ in read_records(store)
        if record["record"] in kinds
    }


if __name__ == "__main__":
    where, how_many, how_random, kind = sys.argv[1:]
    print(json.dumps(main(Path(where), int(how_many), int(how_random), kind == "judge")))
