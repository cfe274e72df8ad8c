"""What a run makes of a pipeline and a judge, whatever they do."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import ragdiag
from ragdiag import AsyncPipeline, GoldenDataset, JudgeResult, Pipeline, RetrievedChunk, as_pipeline
from ragdiag import calls as calls_module
from ragdiag.errors import JudgeError, JudgeProviderError, PipelineError, SettingsError
from ragdiag.harness import ExecutionInterrupted, execute
from ragdiag.session import FATAL_LIMIT
from ragdiag.testing import FixedClock

CLOCK = FixedClock(retrieval_ms=12.5, generation_ms=100.0, answer_ms=80.0, judge_ms=40.0)


def run(pipeline: Any, dataset: Any, **options: Any) -> Any:
    return execute(pipeline, dataset, **{"progress": False, "clock_factory": CLOCK, **options})


def test_what_happened_is_told_in_the_order_of_the_dataset(
    recorder: Any, counting_judge: Any, dataset: GoldenDataset
) -> None:
    judge = counting_judge(ungrounded=("query 1",))
    result = run(recorder(), dataset, judge=judge, workers=3)
    assert result.outcomes["query_id"].tolist() == [f"q{i}" for i in range(6)]
    first = result.outcomes.iloc[0].to_dict()
    assert first["answer"] == "answer to query 0"
    assert (first["retrieval_ms"], first["generation_ms"], first["total_ms"]) == (12.5, 100, 112.5)
    assert result.retrieved.iloc[1].to_dict() | {"metadata": None} == {
        "query_id": "q1",
        "rank": 1,
        "chunk_id": "d-query 1",
        "score": 0.5,
        "text": "text of query 1",
        "metadata": None,
    }
    assert result.verdicts["grounded"].tolist() == [True, False, True, True, True, True]
    verdict = result.verdicts.iloc[0]
    assert (verdict["judge"], verdict["judge_ms"], verdict["judge_reason"]) == (
        "CountingJudge",
        40.0,
        "so",
    )
    assert result.info["judge"] == {"judge": "counting", "version": "1"}
    assert (result.pipeline_name, result.dataset_name) == ("recorder", "numbers")
    seen = sorted(judge.seen, key=lambda call: call["answer"])[0]
    assert seen == {
        "expected": "answer to query 0",
        "answer": "answer to query 0",
        "context": [RetrievedChunk(id="d-query 0", text="text of query 0", score=0.5)],
    }


@pytest.mark.parametrize("workers", [0, 1, 2, 16])
def test_the_result_does_not_depend_on_the_number_of_workers(
    recorder: Any, counting_judge: Any, numbers: Any, same: Any, workers: int
) -> None:
    failing = {"query 3": ValueError("no"), "query 5!": [None]}

    def once(workers: int, judge_workers: int) -> Any:
        options = {"judge": counting_judge(), "judge_workers": judge_workers}
        return run(recorder(failing), numbers(23), workers=workers, **options)

    same(once(workers, max(1, workers)), once(1, 1))


@pytest.mark.parametrize(
    ("what", "error"),
    [
        (ValueError("no index"), "retrieval failed: ValueError: no index"),
        (SystemExit(3), "retrieval failed: SystemExit: 3"),
        (asyncio.CancelledError(), "retrieval failed: CancelledError"),
        (GeneratorExit(), "retrieval failed: GeneratorExit"),
        (RecursionError("deep"), "retrieval failed: RecursionError: deep"),
        ([None], "retrieval failed: PipelineError: expected a list of chunks, got NoneType: None"),
        (
            [(c for c in ())],
            "retrieval failed: PipelineError: expected a list of chunks, got generator: <generator",
        ),
        (
            [["d1"]],
            "retrieval failed: PipelineError: item 0: expected a RetrievedChunk, {'id': ...,",
        ),
        (ValueError("\ud800"), "retrieval failed: ValueError: \ufffd"),
    ],
)
def test_one_query_never_ends_the_run(
    recorder: Any, dataset: GoldenDataset, what: Any, error: str
) -> None:
    result = run(recorder({"query 2": what}), dataset)
    assert result.outcomes["status"].tolist() == ["completed"] * 2 + ["failed"] + ["completed"] * 3
    failed = result.outcomes.iloc[2]
    assert failed["error"].startswith(error)
    assert failed[["answer", "generation_ms"]].isna().all()
    assert failed[["retrieval_ms", "total_ms"]].tolist() == [12.5, 12.5], "it ran, and failed"
    traced = "q2" in result.info.get("tracebacks", {})
    assert traced == isinstance(what, BaseException)
    if traced:
        text = result.info["tracebacks"]["q2"]
        assert "raise type(what)" in text
        assert "calls.py" not in text


def test_a_generator_that_fails_leaves_what_was_retrieved(
    recorder: Any, counting_judge: Any, dataset: GoldenDataset
) -> None:
    judge = counting_judge()
    result = run(recorder({"query 0!": [7]}), dataset, judge=judge)
    outcome = result.outcomes.iloc[0]
    assert outcome["error"] == (
        "generation failed: PipelineError: expected the answer as a string, got int: 7"
    )
    assert outcome[["retrieval_ms", "generation_ms"]].tolist() == [12.5, 100.0]
    assert outcome["total_ms"] == 112.5
    assert "q0" in result.retrieved["query_id"].tolist()
    assert "query 0" not in judge.asked
    assert result.verdicts["query_id"].tolist() == ["q1", "q2", "q3", "q4", "q5"]


def test_a_pipeline_that_only_retrieves_is_not_judged(
    counting_judge: Any, dataset: GoldenDataset
) -> None:
    judge = counting_judge()
    result = run(as_pipeline(retrieve=lambda query: [("d", query)]), dataset, judge=judge)
    assert result.outcomes["answer"].isna().all()
    assert result.outcomes["generation_ms"].isna().all()
    assert result.outcomes["total_ms"].tolist() == [12.5] * 6
    assert (len(result.verdicts), judge.asked) == (0, [])


def test_a_pipeline_in_one_step_has_a_total_time_only(dataset: GoldenDataset) -> None:
    pipeline = as_pipeline(answer=lambda query: (query.upper(), [("d", query), ("e", query)]))
    result = run(pipeline, dataset)
    assert result.outcomes["answer"].tolist()[0] == "QUERY 0"
    assert result.outcomes["total_ms"].tolist() == [80.0] * 6
    assert result.outcomes[["retrieval_ms", "generation_ms"]].isna().all(axis=None)
    assert result.retrieved["rank"].tolist()[:2] == [1, 2]


def test_oddities_are_flagged(dataset: GoldenDataset) -> None:
    def answer(query: str) -> Any:
        return "half \udc00", [("d", "one"), ("d", "two \ud800"), ("e", "t", 1e400, {"n": {1, 2}})]

    result = run(as_pipeline(answer=answer), dataset)
    assert result.outcomes["status"].unique().tolist() == ["completed"]
    assert result.info["flags"]["q0"] == [
        "chunk id 'd' was returned 2 times",
        "rank 2: text was not valid Unicode and was repaired",
        "the answer was not valid Unicode and was repaired",
    ]
    assert result.retrieved["text"].tolist()[1] == "two \ufffd"
    assert result.retrieved["score"].tolist()[2] == float("inf")
    assert result.retrieved["metadata"].tolist()[2] == '{"n": [1, 2]}'


@pytest.mark.parametrize("given", [5, None, "half \ud800"])
def test_names_and_versions_become_text(recorder: Any, dataset: GoldenDataset, given: Any) -> None:
    pipeline = recorder()
    pipeline.name = pipeline.version = given
    expected = {5: "5", None: ""}.get(given, "half ?")
    result = run(pipeline, dataset)
    assert (result.pipeline_name, result.pipeline_version) == (expected, expected)


def test_coroutines_run_on_one_loop_also_inside_a_running_one(
    counting_judge: Any, dataset: GoldenDataset
) -> None:
    loops = set()

    class Remote(AsyncPipeline):
        async def retrieve(self, query: str) -> Any:
            loops.add(asyncio.get_running_loop())
            await asyncio.sleep(0)
            return [("d", query)]

        async def generate(self, query: str, chunks: Any) -> str:
            loops.add(asyncio.get_running_loop())
            return query

    class Asked(counting_judge):  # type: ignore[misc]
        async def evaluate(self, **arguments: Any) -> JudgeResult:
            loops.add(asyncio.get_running_loop())
            return JudgeResult(grounded=True)

    async def main() -> Any:
        return run(Remote(), dataset, judge=Asked(), workers=4)

    result = asyncio.run(main())
    assert result.outcomes["status"].unique().tolist() == ["completed"]
    assert result.verdicts["grounded"].all()
    assert len(loops) == 1
    assert next(iter(loops)).is_closed()
    assert not [t for t in threading.enumerate() if t.name == "ragdiag-loop"]


def test_a_coroutine_that_fails_is_one_failed_query(dataset: GoldenDataset) -> None:
    async def retrieve(query: str) -> Any:
        raise ConnectionError(query)

    result = run(as_pipeline(retrieve=retrieve), dataset)
    assert result.outcomes["error"].tolist()[0] == "retrieval failed: ConnectionError: query 0"


def test_concurrency_is_what_was_asked_for(dataset: GoldenDataset, numbers: Any) -> None:
    active, most, lock = 0, 0, threading.Lock()
    both = threading.Barrier(3)

    def retrieve(query: str) -> Any:
        nonlocal active, most
        with lock:
            active += 1
            most = max(most, active)
        both.wait(timeout=10)
        with lock:
            active -= 1
        return []

    run(as_pipeline(retrieve=retrieve), numbers(12), workers=3)
    assert most == 3


def test_without_workers_everything_runs_in_the_calling_thread(
    dataset: GoldenDataset, recorder: Any
) -> None:
    threads = set()

    def retrieve(query: str) -> Any:
        threads.add(threading.current_thread())
        if query == "query 3":
            raise ValueError
        return []

    result = run(as_pipeline(retrieve=retrieve), dataset, workers=0)
    assert threads == {threading.current_thread()}
    assert result.outcomes["status"].tolist().count("failed") == 1


def test_a_thread_pool_of_the_caller_is_used_and_left_open(
    dataset: GoldenDataset, recorder: Any, same: Any
) -> None:
    with ThreadPoolExecutor(2, "mine") as pool:
        names = set()

        def retrieve(query: str) -> Any:
            names.add(threading.current_thread().name[:4])
            return []

        run(as_pipeline(retrieve=retrieve), dataset, executor=pool)
        assert names == {"mine"}
        assert pool.submit(int).result() == 0


def test_any_object_with_submit_may_be_the_executor(
    dataset: GoldenDataset, recorder: Any, same: Any
) -> None:
    class Immediate:
        def submit(self, function: Any, *arguments: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_result(function(*arguments))
            return future

    failing = {"query 1": ValueError("no")}
    one = run(recorder(failing), dataset, executor=Immediate())
    two = run(recorder(failing), dataset)
    assert one.outcomes.equals(two.outcomes)


def test_a_failed_call_is_repeated_after_a_pause(
    dataset: GoldenDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls_module, "RETRY_PAUSES", (0.0,))
    tries: dict[str, int] = {}

    def retrieve(query: str) -> Any:
        tries[query] = tries.get(query, 0) + 1
        if query == "query 1" and tries[query] < 3:
            raise ConnectionError
        if query == "query 2":
            raise ConnectionError("always")
        return None if query == "query 3" else []

    result = run(as_pipeline(retrieve=retrieve), dataset, retries=2)
    assert [tries[f"query {i}"] for i in range(4)] == [1, 3, 3, 1]
    failed = result.outcomes[result.outcomes["status"] == "failed"]
    assert failed["query_id"].tolist() == ["q2", "q3"]


@pytest.mark.parametrize(
    ("failing", "error", "message"),
    [
        ({"query 2": ValueError("no")}, PipelineError, "query 'q2': retrieval failed: ValueError"),
        ({"query 2!": [None]}, PipelineError, "query 'q2': generation failed: PipelineError"),
    ],
)
def test_an_error_may_end_the_run(
    recorder: Any, dataset: GoldenDataset, failing: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        run(recorder(failing), dataset, on_error="raise", workers=0)
    assert caught.value.run.outcomes["query_id"].tolist()[:2] == ["q0", "q1"]


def test_an_error_of_the_judge_may_end_the_run(
    recorder: Any, broken_judge: Any, dataset: GoldenDataset
) -> None:
    with pytest.raises(JudgeError, match="JudgeAuthenticationError: 401") as caught:
        run(recorder(), dataset, judge=broken_judge(), on_error="raise")
    assert "sk-canary" not in str(caught.value)


def test_a_judge_that_fails_is_an_error_of_that_judge(
    recorder: Any, broken_judge: Any, dataset: GoldenDataset
) -> None:
    judge = broken_judge(JudgeProviderError("503"))
    result = run(recorder(), dataset, judge=judge)
    assert result.outcomes["status"].unique().tolist() == ["completed"]
    assert result.verdicts[["answer_correct", "grounded"]].isna().all(axis=None)
    assert result.verdicts["correct_error"].unique().tolist() == ["JudgeProviderError: 503"]
    assert result.verdicts["grounded_error"].unique().tolist() == ["JudgeProviderError: 503"]
    assert judge.asked == 6


def test_a_hopeless_judge_is_given_up_and_the_pipeline_goes_on(
    recorder: Any, broken_judge: Any, numbers: Any
) -> None:
    judge, pipeline = broken_judge(), recorder()
    result = run(pipeline, numbers(60), judge=judge, judge_workers=2, workers=4)
    assert FATAL_LIMIT <= judge.asked <= FATAL_LIMIT + 4
    assert len(pipeline.generated) == 60
    assert result.verdicts["correct_error"].notna().sum() == 60
    given_up = result.verdicts["correct_error"].str.startswith("not judged: the judge was given up")
    assert given_up.sum() == 60 - judge.asked
    assert "given up after 5 errors in a row" in result.info["notes"][0]
    assert "sk-canary" not in str(result.info) + result.verdicts.to_string()


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        (None, "TypeError: the judge must return a JudgeResult, got NoneType"),
        ({"grounded": "perhaps"}, "ValidationError: 1 validation error for JudgeResult"),
    ],
)
def test_a_judge_that_returns_nonsense(
    recorder: Any, numbers: Any, returned: Any, error: str
) -> None:
    class Nonsense:
        def evaluate(self, **arguments: Any) -> Any:
            return returned

    result = run(recorder(), numbers(1), judge=Nonsense())
    assert result.verdicts["grounded_error"].iloc[0].startswith(error)
    assert result.info["judge"] == {"judge": "Nonsense"}


def test_one_side_failing_does_not_cost_the_other(recorder: Any, numbers: Any) -> None:
    class OneSided:
        def evaluate(self, **arguments: Any) -> Any:
            return {"grounded": False, "correct_error": "key sk-canary-123456", "confidence": 0.5}

    row = run(recorder(), numbers(1), judge=OneSided()).verdicts.iloc[0]
    assert row["grounded"] is False or not row["grounded"]
    assert row["correct_error"] == "key [redacted]"
    assert pd.isna(row["grounded_error"])
    assert row["grounded_confidence"] == 0.5


def test_what_a_judge_says_beyond_the_columns_is_kept(recorder: Any, numbers: Any) -> None:
    class Detailed:
        def evaluate(self, **arguments: Any) -> Any:
            claim = {"text": "7 days \ud800", "verdict": "supported", "quote": "7 days"}
            return JudgeResult(
                grounded=True, claims=[claim], missing_facts=["fee"], model="m-1", prompt_tokens=9
            )

    details = run(recorder(), numbers(1), judge=Detailed()).info["judge_details"]["q0"]
    assert details["claims"][0] == {
        "text": "7 days \ufffd",
        "verdict": "supported",
        "quote": "7 days",
    }
    assert (details["missing_facts"], details["model"], details["prompt_tokens"]) == (
        ["fee"],
        "m-1",
        9,
    )


def test_repeats_take_the_majority_and_are_kept(recorder: Any, numbers: Any) -> None:
    class Fickle:
        def evaluate_again(self, repeat: int, **arguments: Any) -> Any:
            if repeat == 2:
                raise JudgeProviderError("503")
            return JudgeResult(
                grounded=(True, False, None, False)[repeat],
                answer_correct=True,
                reason=f"r{repeat}",
            )

        def evaluate(self, **arguments: Any) -> Any:
            raise AssertionError

    result = run(recorder(), numbers(1), judge=Fickle(), judge_repeats=4)
    row = result.verdicts.iloc[0]
    assert (row["grounded"], row["answer_correct"]) == (False, True)
    assert pd.isna(row["grounded_error"])
    assert result.info["judge_replies"]["q0"] == [
        [True, True],
        [True, False],
        [None, None],
        [True, False],
    ]


def test_the_judge_is_prepared_before_the_first_call_and_its_host_is_named(
    recorder: Any, counting_judge: Any, dataset: GoldenDataset, capsys: pytest.CaptureFixture[str]
) -> None:
    events: list[str] = []

    class Hosted(counting_judge):  # type: ignore[misc]
        host = "api.example.org"

        def prepare(self) -> None:
            events.append("prepared")
            assert "are sent to api.example.org" in capsys.readouterr().err

    pipeline = recorder()
    result = run(pipeline, dataset, judge=Hosted(), progress="lines")
    assert events == ["prepared"]
    assert result.info["judge_host"] == "api.example.org"


def test_hits_of_the_judges_cache_are_shown(
    recorder: Any, counting_judge: Any, numbers: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    class Caching(counting_judge):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.cache = SimpleNamespace(hits=5)

        def evaluate(self, *arguments: Any, **named: Any) -> Any:
            self.cache.hits += 2
            return super().evaluate(*arguments, **named)

    run(recorder(), numbers(3), judge=Caching(), progress="lines")
    assert "6 from the judge's cache" in capsys.readouterr().err


def test_a_judge_that_cannot_work_is_refused_before_anything_is_called(
    recorder: Any, counting_judge: Any, dataset: GoldenDataset
) -> None:
    class Unready(counting_judge):  # type: ignore[misc]
        def prepare(self) -> None:
            raise JudgeProviderError("no key")

    pipeline = recorder()
    with pytest.raises(JudgeProviderError, match="no key"):
        run(pipeline, dataset, judge=Unready())
    assert pipeline.retrieved == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": -1}, "workers must be a whole number of at least 0, got -1"),
        ({"judge_workers": 0}, "judge_workers must be"),
        ({"retries": True}, "retries must be"),
        ({"judge_repeats": 1.5}, "judge_repeats must be"),
        ({"on_error": "ignore"}, "on_error must be 'record' or 'raise'"),
        ({"executor": 3}, "executor must be a concurrent.futures.Executor, got 3"),
        ({"progress": "loud"}, "progress must be"),
        ({"judge": object()}, "judge must have a method evaluate"),
    ],
)
def test_options_that_make_no_sense(
    recorder: Any, dataset: GoldenDataset, options: Any, message: str
) -> None:
    pipeline = recorder()
    with pytest.raises(SettingsError, match=message):
        run(pipeline, dataset, **options)
    assert pipeline.retrieved == []


def test_an_interrupt_raised_in_a_worker_ends_the_run_with_what_there_is(
    dataset: GoldenDataset,
) -> None:
    def retrieve(query: str) -> Any:
        if query == "query 3":
            raise KeyboardInterrupt
        return []

    for workers in (0, 1):
        with pytest.raises(
            ExecutionInterrupted, match=r"sys.last_value.results.*store='FILE'"
        ) as c:
            run(as_pipeline(retrieve=retrieve), dataset, workers=workers)
        assert c.value.run.outcomes["query_id"].tolist()[:3] == ["q0", "q1", "q2"]
        assert "q3" not in c.value.run.outcomes["query_id"].tolist()


def test_a_faulty_clock_is_no_fault_of_the_pipeline(recorder: Any, dataset: GoldenDataset) -> None:
    def clock_factory(query_id: str, stage: str) -> Any:
        raise LookupError(f"no clock for {stage}")

    with pytest.raises(LookupError, match="no clock for retrieval"):
        run(recorder(), dataset, clock_factory=clock_factory)


def test_time_is_measured_with_a_monotonic_clock(dataset: GoldenDataset) -> None:
    def retrieve(query: str) -> Any:
        time.sleep(0.002)
        return []

    result = run(as_pipeline(retrieve=retrieve), dataset, clock_factory=None)
    assert (result.outcomes["retrieval_ms"] >= 2.0).all()


def test_the_context_of_the_caller_is_that_of_the_workers(dataset: GoldenDataset) -> None:
    from contextvars import ContextVar

    where: ContextVar[str] = ContextVar("where", default="nowhere")
    where.set("the caller's")
    seen = set()

    def retrieve(query: str) -> Any:
        seen.add(where.get())
        return []

    run(as_pipeline(retrieve=retrieve), dataset, workers=2)
    assert seen == {"the caller's"}


def test_a_thousand_queries_with_every_kind_of_fault_are_all_accounted_for(numbers: Any) -> None:
    """5 % exceptions, 2 % garbage in the pipeline; 5 % 429, 5 % 500, 3 % timeouts in the judge."""

    class Faulty(Pipeline):
        def retrieve(self, query: str) -> Any:
            number = int(query.split()[1])
            if number % 20 == 0:
                raise RuntimeError(f"fault {number}")
            if number % 50 == 7:
                return {"garbage": number}
            return [("d", query)]

        def generate(self, query: str, chunks: Any) -> str:
            return query

    class FaultyJudge:
        def evaluate(self, *, query: str, **arguments: Any) -> JudgeResult:
            kind = int(query.split()[1]) % 100
            if kind in (1, 21, 41, 61, 81):
                raise JudgeProviderError("429")
            if kind in (2, 22, 42, 62, 82):
                raise JudgeProviderError("500")
            if kind in (3, 23, 43):
                raise TimeoutError("read timed out")
            return JudgeResult(answer_correct=True, grounded=True)

    result = run(Faulty(), numbers(1000), judge=FaultyJudge(), workers=8, judge_workers=8)
    outcomes, verdicts = result.outcomes, result.verdicts
    assert outcomes["query_id"].tolist() == [f"q{i}" for i in range(1000)]
    assert outcomes["error"].str.startswith("retrieval failed: RuntimeError: fault").sum() == 50
    assert outcomes["error"].str.startswith("retrieval failed: PipelineError").sum() == 20
    assert (outcomes["status"] == "completed").sum() == 930 == len(verdicts)
    assert verdicts["correct_error"].value_counts().to_dict() == {
        "JudgeProviderError: 429": 50,
        "JudgeProviderError: 500": 50,
        "TimeoutError: read timed out": 30,
    }
    assert verdicts["grounded"].sum() == 800


def test_ten_thousand_queries_from_end_to_end(numbers: Any, tmp_path: Path) -> None:
    dataset = numbers(10_000)

    def retrieve(query: str) -> Any:
        number = int(query.split()[1])
        # One in four finds nothing, one in four ranks it last, one in ten fails.
        if number % 10 == 9:
            raise ValueError(number)
        chunks = [(f"other-{i}", "text") for i in range(3)]
        return chunks if number % 4 == 0 else [*chunks, (f"d-{query}", "text")]

    results = ragdiag.evaluate(
        as_pipeline(retrieve=retrieve, name="p"),
        dataset,
        workers=4,
        store=tmp_path / "x.jsonl",
        progress=False,
        clock_factory=CLOCK,
    )
    counts = results.counts()["queries"]
    assert counts["UNKNOWN"] == 1000
    assert counts["WRONG_CHUNK_RETRIEVED"] == 2500
    assert counts["WRONG_CHUNK_RANK"] == 6500
    assert ragdiag.load_run(tmp_path / "x.jsonl").outcomes.equals(results.run.outcomes)
