"""Stores: nothing that was paid for is paid for again, and nothing answers for something else."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ragdiag import GoldenDataset, Pipeline, as_pipeline, journal
from ragdiag.errors import ExportError, RunFormatError, StoreBusyError, StoreMismatchError
from ragdiag.harness import ExecutionInterrupted, execute
from ragdiag.ledger import Ledger
from ragdiag.recording import load_run
from ragdiag.testing import FixedClock

CLOCK = FixedClock()


def run(pipeline: Any, dataset: Any, store: Path | None = None, **options: Any) -> Any:
    defaults = {"progress": False, "clock_factory": CLOCK}
    return execute(pipeline, dataset, store=store, **{**defaults, **options})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "x.jsonl"


def test_a_finished_run_costs_nothing_again(
    recorder: Any,
    counting_judge: Any,
    numbers: Any,
    same: Any,
    store: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    dataset = numbers(100)
    first = run(recorder(), dataset, store, judge=counting_judge(), workers=4)
    size = store.stat().st_size
    pipeline, judge = recorder(), counting_judge()
    second = run(pipeline, dataset, store, judge=judge, progress="lines")
    assert "reused 300 of 300 calls" in capsys.readouterr().err
    assert (pipeline.retrieved, pipeline.generated, judge.asked) == ([], [], [])
    assert store.stat().st_size == size
    same(first, second)
    same(first, load_run(store))
    same(first, run(recorder(), dataset, judge=counting_judge()))


def test_errors_are_retried_and_never_count_as_done(
    recorder: Any, counting_judge: Any, broken_judge: Any, dataset: Any, same: Any, store: Path
) -> None:
    failing = {"query 1": ValueError("no"), "query 2!": ValueError("no")}
    first = run(recorder(failing), dataset, store)
    assert first.outcomes["status"].tolist().count("failed") == 2
    same(first, load_run(store))
    pipeline = recorder()
    second = run(pipeline, dataset, store)
    # What was retrieved for query 2 is not retrieved again.
    assert (pipeline.retrieved, pipeline.generated) == (["query 1"], ["query 1", "query 2"])
    same(second, run(recorder(), dataset))
    errors = [json.loads(line) for line in store.read_bytes().splitlines()]
    assert [e["query_id"] for e in errors if e["record"] == "error"] == ["q1", "q2"]


def test_a_failed_reply_of_the_judge_is_asked_for_again(
    recorder: Any, counting_judge: Any, dataset: Any, store: Path
) -> None:
    class Sometimes(counting_judge):  # type: ignore[misc]
        down = True

        def evaluate(self, query: str, *rest: Any, **arguments: Any) -> Any:
            result = super().evaluate(query, *rest, **arguments)
            if self.down and query == "query 1":
                raise ConnectionError
            if self.down and query == "query 2":
                result.correct_error = "half"
            return result

    first = run(recorder(), dataset, store, judge=Sometimes())
    assert first.verdicts["correct_error"].notna().sum() == 2
    judge = Sometimes()
    judge.down = False
    second = run(recorder(), dataset, store, judge=judge)
    assert judge.asked == ["query 1", "query 2"]
    assert second.verdicts["correct_error"].isna().all()


def test_a_changed_judge_judges_again_and_an_old_one_is_remembered(
    recorder: Any, counting_judge: Any, dataset: Any, same: Any, store: Path
) -> None:
    run(recorder(), dataset, store, judge=counting_judge("1"))
    pipeline, second = recorder(), counting_judge("2", ungrounded=("query 0",))
    result = run(pipeline, dataset, store, judge=second)
    assert (len(second.asked), pipeline.retrieved) == (6, [])
    assert result.verdicts["grounded"].tolist()[0] is False or not result.verdicts["grounded"][0]
    assert result.info["judge"]["version"] == "2"
    same(result, load_run(store))
    first = counting_judge("1")
    again = run(recorder(), dataset, store, judge=first)
    assert first.asked == []
    assert again.verdicts["grounded"].all()
    same(again, load_run(store))


def test_a_run_that_was_saved_can_be_gone_on_with(
    recorder: Any, counting_judge: Any, dataset: Any, same: Any, tmp_path: Path
) -> None:
    saved = tmp_path / "saved.jsonl"
    failing = {"query 1": ValueError("no")}
    run(recorder(failing), dataset, judge=counting_judge()).save(saved)
    pipeline, judge = recorder(), counting_judge()
    result = run(pipeline, dataset, saved, judge=judge)
    assert (pipeline.retrieved, judge.asked) == (["query 1"], ["query 1"])
    same(result, load_run(saved))
    complete = run(recorder(), dataset, judge=counting_judge())
    assert result.outcomes.equals(complete.outcomes)
    assert result.verdicts.equals(complete.verdicts)
    other = counting_judge("2")
    changed = run(recorder(), dataset, saved, judge=other)
    assert len(other.asked) == 6
    assert changed.info["judge"]["version"] == "2"


def test_repeats_are_stored_one_by_one(
    recorder: Any, counting_judge: Any, dataset: Any, store: Path
) -> None:
    judge = counting_judge()
    run(recorder(), dataset, store, judge=judge, judge_repeats=2)
    assert len(judge.asked) == 12
    run(recorder(), dataset, store, judge=judge, judge_repeats=3)
    assert len(judge.asked) == 18


class Versioned(Pipeline):
    def __init__(self, name: str = "p", version: str = "1", top: int = 5) -> None:
        super().__init__(name)
        self.version = version
        self.top = top

    def retrieve(self, query: str) -> Any:
        return [("d", query)] * self.top


class Edited(Versioned):
    def retrieve(self, query: str) -> Any:
        return [("e", query)]


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (Versioned(name="other"), "the pipeline's name differs.*'p' in the store, 'other' now"),
        (Versioned(version="2"), "the pipeline's version differs"),
        (Versioned(top=6), "the pipeline's code or constructor arguments .their digest. differs"),
        (Edited(), "the pipeline's code"),
    ],
)
def test_another_pipeline_is_refused_with_the_field_named(
    dataset: Any, store: Path, pipeline: Any, message: str
) -> None:
    first = run(Versioned(), dataset, store)
    content = store.read_bytes()
    with pytest.raises(StoreMismatchError, match=message):
        run(pipeline, dataset, store)
    assert store.read_bytes() == content
    assert run(pipeline, dataset, store, reuse=True).retrieved.equals(first.retrieved)
    # From now on the store is that of the new pipeline.
    run(pipeline, dataset, store)
    with pytest.raises(StoreMismatchError, match="the pipeline's"):
        run(Versioned(), dataset, store)


def test_another_dataset_is_refused_and_its_common_queries_can_be_reused(
    recorder: Any, numbers: Any, store: Path, same: Any
) -> None:
    run(recorder(), numbers(4), store)
    changed = numbers(
        6, query=["query 0", "query 1", "query two", *map("query {}".format, (3, 4, 5))]
    )
    with pytest.raises(StoreMismatchError, match=r"the dataset's content .its digest. differs"):
        run(recorder(), changed, store)
    pipeline = recorder()
    result = run(pipeline, changed, store, reuse=True)
    assert pipeline.retrieved == ["query two", "query 4", "query 5"]
    assert result.outcomes["answer"].tolist()[2] == "answer to query two"
    same(result, load_run(store))


def test_an_edited_file_is_refused(numbers: Any, store: Path, tmp_path: Path) -> None:
    path = tmp_path / "pipe.py"
    (tmp_path / "conf.py").write_text("NAME = 'd'\n")
    path.write_text("def pipeline(query):\n    import conf\n    return [(conf.NAME, query)]\n")
    run(str(path), numbers(2), store)
    run(str(path), numbers(2), store)
    (tmp_path / "conf.py").write_text("NAME = 'e'\n")
    with pytest.raises(StoreMismatchError, match="the pipeline's code"):
        run(str(path), numbers(2), store)


def test_state_and_services_are_not_code(numbers: Any, store: Path) -> None:
    class Stateful(Versioned):
        def __init__(self, api_key: str) -> None:
            super().__init__()
            self.api_key = api_key
            self.started = os.urandom(4).hex()
            self.calls = 0

        def retrieve(self, query: str) -> Any:
            self.calls += 1
            return []

    pipeline = Stateful("one key")
    run(pipeline, numbers(2), store)
    run(pipeline, numbers(2), store)
    run(Stateful("another"), numbers(2), store)


@pytest.mark.parametrize("what", ["retrieval", "generation", "reply"])
def test_a_journal_cut_anywhere_in_its_last_record_loses_that_record_alone(
    recorder: Any, counting_judge: Any, numbers: Any, same: Any, store: Path, what: str
) -> None:
    dataset = numbers(2)
    whole = run(recorder(), dataset, store, judge=counting_judge())
    lines = store.read_bytes().splitlines(keepends=True)
    last = max(at for at, line in enumerate(lines) if json.loads(line)["record"] == what)
    before, record = b"".join(lines[:last]), lines[last]
    for cut in range(len(record)):
        store.write_bytes(before + record[:cut])
        notes: list[str] = []
        ledger = Ledger.of(record for record, _ in journal.read_records(store, notes.append))
        # The line feed alone is no loss: the record before it is whole.
        assert bool(notes) == (0 < cut < len(record) - 1)
        assert len(ledger.queries) == 2
    for cut in (0, 1, len(record) // 2, len(record) - 1):
        store.write_bytes(before + record[:cut])
        assert len(load_run(store)) == 2
        pipeline, judge = recorder(), counting_judge()
        resumed = run(pipeline, dataset, store, judge=judge)
        assert resumed.outcomes.equals(whole.outcomes)
        assert resumed.verdicts.equals(whole.verdicts)
        lost = cut < len(record) - 1
        calls = {"retrieval": pipeline.retrieved, "generation": pipeline.generated}
        if what != "reply":
            assert len(calls[what]) == lost
        assert load_run(store).outcomes.equals(whole.outcomes)


def test_damage_elsewhere_is_refused_with_its_line(
    recorder: Any, dataset: Any, store: Path
) -> None:
    run(recorder(), dataset, store)
    lines = store.read_bytes().splitlines(keepends=True)
    for damage in (b"{\n", b"[]\n", b'"text"\n', b"\xff\xfe\n", b"\x00" * 40 + b"\n", b"{}\n"):
        content = b"".join([*lines[:4], damage, *lines[5:]])
        store.write_bytes(content)
        with pytest.raises(RunFormatError, match=r"x.jsonl, line 5: damaged"):
            load_run(store)
        with pytest.raises(RunFormatError, match="line 5"):
            run(recorder(), dataset, store)
        assert store.read_bytes() == content
    assert not list(store.parent.glob("*.lock"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello\n", "this is not a run written by ragdiag"),
        (b'{"id": "q1"}\n{"id": "q2"}\n', "not a record|not a run"),
        (b'{"record":"query"}\n', "not a run written by ragdiag"),
        (b'{"record":"header","format":"ragdiag-run","format_version":2}\n', "format version 2"),
        (
            b'{"record":"header","format":"ragdiag-run","format_version":1,"columns":[3]}\n',
            "do not",
        ),
    ],
)
def test_another_file_is_never_written_to(
    recorder: Any, dataset: Any, tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "dataset.jsonl"
    path.write_bytes(content)
    with pytest.raises((RunFormatError, StoreMismatchError)):
        run(recorder(), dataset, path)
    assert path.read_bytes() == content
    with pytest.raises(RunFormatError, match=message):
        load_run(path, format="ragdiag")


def test_files_are_for_their_owner_alone(recorder: Any, dataset: Any, store: Path) -> None:
    run(recorder(), dataset, store)
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.parent.stat().st_mode) == 0o700
    assert [path.name for path in store.parent.iterdir()] == ["x.jsonl"]


def test_a_place_that_cannot_be_written_is_refused_before_the_run(
    recorder: Any, dataset: Any, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "file" / "x.jsonl"):
        pipeline = recorder()
        with pytest.raises(ExportError, match=str(place)):
            run(pipeline, dataset, place)
        assert pipeline.retrieved == []


@pytest.mark.parametrize("written", [0, 7])
def test_a_full_disk_keeps_what_was_recorded(
    recorder: Any,
    dataset: Any,
    same: Any,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    written: int,
) -> None:
    real, room = os.write, [20]

    def write(handle: int, data: bytes) -> int:
        # A disk nearly full takes a part of the last record first.
        room[0] -= 1
        if room[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle, data[:written] if room[0] == 0 and written else data)

    run(recorder(), dataset, store.with_name("undisturbed.jsonl"))
    with monkeypatch.context() as patch:
        room[0] = 8
        patch.setattr(journal.os, "write", write)
        pipeline = recorder()
        with pytest.raises(
            ExportError, match=r"x.jsonl: cannot be written: No space left"
        ) as caught:
            run(pipeline, dataset, store)
    assert len(caught.value.run.outcomes) >= 2
    partial = load_run(store)
    assert "notes" not in partial.info
    assert len(partial.outcomes) >= 2
    again = recorder()
    result = run(again, dataset, store)
    assert len(pipeline.retrieved) + len(again.retrieved) <= len(dataset) + 2
    same(result, load_run(store.with_name("undisturbed.jsonl")))


def test_a_failing_disk_at_the_beginning(
    recorder: Any, dataset: Any, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(journal.os, "fsync", fsync)
    with pytest.raises(ExportError, match="Input/output error"):
        run(recorder(), dataset, store)
    assert list(store.parent.iterdir()) == []


def test_a_disk_that_fails_in_the_middle_is_told(
    recorder: Any, dataset: Any, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    def retrieve(query: str) -> Any:
        if query == "query 3":
            monkeypatch.setattr(journal.os, "fsync", fsync)
        return []

    with pytest.raises(ExportError, match=r"x.jsonl: cannot be written: Input/output error"):
        run(as_pipeline(retrieve=retrieve), dataset, store)


def test_a_file_system_without_sync_is_good_enough(
    recorder: Any, dataset: Any, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(handle: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    run(recorder(), dataset, store)
    monkeypatch.setattr(journal.os, "fsync", fsync)
    run(recorder(), dataset, store, judge=None)


def test_two_runs_of_one_process_cannot_share_a_store(
    dataset: Any, recorder: Any, store: Path
) -> None:
    def retrieve(query: str) -> Any:
        with pytest.raises(StoreBusyError, match="another run of this process writes to it"):
            run(recorder(), dataset, store)
        return []

    result = run(as_pipeline(retrieve=retrieve), dataset, store)
    assert (result.outcomes["status"] == "completed").all()


OTHER_PROCESS = """
import sys
from pathlib import Path
from ragdiag.journal import Journal
journal = Journal(Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
"""


def test_two_processes_cannot_share_a_store_and_a_dead_one_leaves_it_free(
    recorder: Any, dataset: Any, store: Path
) -> None:
    run(recorder(), dataset, store)
    content = store.read_bytes()
    with subprocess.Popen(
        [sys.executable, "-c", OTHER_PROCESS, str(store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(
            StoreBusyError, match=f"x.jsonl: process {other.pid} on .* writes to it"
        ):
            run(recorder(), dataset, store)
        assert store.read_bytes() == content
        other.kill()
    assert store.with_name("x.jsonl.lock").exists()
    pipeline = recorder()
    run(pipeline, dataset, store)
    assert pipeline.retrieved == []
    assert not store.with_name("x.jsonl.lock").exists()


def test_calls_in_flight_at_an_interrupt_are_written_and_not_made_again(
    numbers: Any, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragdiag.session.GRACE", 0.01)
    started, release, calls = threading.Event(), threading.Event(), []

    def retrieve(query: str) -> Any:
        calls.append(query)
        if query == "query 1":
            started.set()
            release.wait(10)
        if query == "query 2":
            started.wait(10)
            raise KeyboardInterrupt
        return [("d", query)]

    pipeline = as_pipeline(retrieve=retrieve)
    with pytest.raises(ExecutionInterrupted, match=f"again to go on from {store}") as caught:
        run(pipeline, numbers(6), store, workers=2)
    assert "q1" not in caught.value.run.outcomes["query_id"].tolist()
    made = len(calls)
    threading.Timer(0.05, release.set).start()

    def resumed(query: str) -> Any:
        calls.append(query)
        return [("d", query)]

    result = run(as_pipeline(retrieve=resumed, name="retrieve"), numbers(6), store, reuse=True)
    assert calls.count("query 1") == 1
    assert len(calls) - made <= 5
    assert len(result.outcomes) == 6


def test_an_interrupt_while_waiting_for_an_interrupted_run(
    numbers: Any, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragdiag.session.GRACE", 0.01)
    release = threading.Event()

    def retrieve(query: str) -> Any:
        if query == "query 1":
            raise KeyboardInterrupt
        if query == "query 2":
            release.wait(10)
        return []

    pipeline = as_pipeline(retrieve=retrieve)
    with pytest.raises(ExecutionInterrupted):
        run(pipeline, numbers(6), store, workers=2)
    former = journal.Journal.unfinished(store)
    if former is None:  # the slow call had not begun: nothing to wait for
        release.set()
        return

    class Impatient:
        def wait(self, timeout: float) -> bool:
            raise KeyboardInterrupt

    closed = former.closed
    former.closed = Impatient()  # type: ignore[assignment]
    with pytest.raises(ExecutionInterrupted, match="interrupted before the first call") as caught:
        run(pipeline, numbers(6), store, workers=2)
    assert "q0" in caught.value.run.outcomes["query_id"].tolist()
    former.closed = closed
    release.set()
    assert closed.wait(10)


def test_a_store_may_be_opened_while_it_is_written(numbers: Any, store: Path) -> None:
    sizes = []

    def retrieve(query: str) -> Any:
        sizes.append(len(load_run(store).outcomes))
        return []

    run(as_pipeline(retrieve=retrieve), numbers(4), store)
    assert sizes == [0, 1, 2, 3]


def test_a_key_is_in_no_byte_that_is_written(
    recorder: Any, broken_judge: Any, dataset: GoldenDataset, store: Path, tmp_path: Path
) -> None:
    class Leaky(Pipeline):
        def retrieve(self, query: str) -> Any:
            api_key = "sk-canary-123456"
            raise ConnectionError(f"Authorization: Bearer {api_key} was refused")

    for pipeline in (Leaky(), recorder()):
        path = tmp_path / f"{pipeline.name}.jsonl"
        run(pipeline, dataset, path, judge=broken_judge())
        load_run(path).save(tmp_path / "saved.jsonl")
        assert b"canary" not in path.read_bytes() + (tmp_path / "saved.jsonl").read_bytes()
