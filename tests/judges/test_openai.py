"""Every way in which a server can answer, over a real connection."""

from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ragdiag.errors import (
    JudgeAuthenticationError,
    JudgeError,
    JudgeParseError,
    JudgeProviderError,
    MissingDependencyError,
    SettingsError,
)
from ragdiag.judges import OpenAIJudge, resolve_judge

KEY = "sk-canary-0123456789abcdef"


def test_a_good_reply_gives_both_findings(server, judge_of, sample, says):
    result = judge_of().evaluate(**sample)
    assert (result.answer_correct, result.grounded) == (True, True)
    assert (result.correct_confidence, result.grounded_confidence) == (0.9, 0.8)
    assert result.confidence == 0.8
    assert result.model == "scripted-1"
    assert (result.prompt_tokens, result.completion_tokens) == (20, 10)
    assert result.claims[0].chunk_id == "d1"
    assert not result.screened
    assert [says.side_of(request) for request in server.requests] == ["correct", "grounded"]


def test_a_bad_response_is_an_error_of_its_own_kind(server, judge_of, sample, bad):
    server.always(bad.say)
    # Without context groundedness needs no model, so correctness carries its own error.
    result = judge_of().evaluate(**{**sample, "context": []})
    assert result.grounded is False
    assert result.answer_correct is None
    assert result.correct_error.startswith(f"{bad.kind.__name__}: ")
    assert bad.text in result.correct_error
    assert len(server.requests) == bad.requests


def test_both_sides_failing_raises(server, judge_of, sample, bad, fatal):
    server.always(bad.say)
    with pytest.raises(bad.kind) as caught:
        judge_of().evaluate(**sample)
    assert caught.value.fatal == fatal
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or isinstance(caught.value.__context__, JudgeError)


def test_a_slow_server_is_a_timeout(server, judge_of, sample, says):
    server.always(says.Say(b"{}", delay=5.0))
    with pytest.raises(JudgeProviderError, match=r"no reply within 0\.05 s"):
        judge_of(timeout=0.05, retries=1).evaluate(**sample)
    assert len(server.requests) == 4


def test_no_server_is_fatal_after_the_retries(sample):
    judge = OpenAIJudge("m", base_url="http://127.0.0.1:9/v1", retries=1, backoff=0.001)
    with pytest.raises(JudgeProviderError, match="cannot be reached") as caught:
        judge.prepare()
    assert caught.value.fatal


@pytest.mark.parametrize("case", ["busy", "server error", "conflict", "dropped", "html", "prose"])
def test_one_failure_is_made_good(server, judge_of, sample, says, case):
    server.once(says.bad[case].say)
    result = judge_of().evaluate(**sample)
    assert (result.answer_correct, result.grounded) == (True, True)
    assert len(server.requests) == 3


def test_a_truncated_reply_is_asked_for_again_with_twice_the_room(server, judge_of, sample, says):
    server.once(says.completion("{", finish_reason="length"))
    assert judge_of(max_tokens=100).evaluate(**sample).answer_correct
    assert [r["max_completion_tokens"] for r in server.requests] == [100, 200, 100]


def test_one_side_failing_does_not_cost_the_other(server, judge_of, sample, says):
    server.script = lambda request, n: (
        says.failure(400, "no") if says.side_of(request) == "grounded" else says.good(request)
    )
    result = judge_of().evaluate(**sample)
    assert result.answer_correct is True
    assert result.grounded is None
    assert "400" in result.grounded_error
    assert result.correct_error is None
    assert result.grounded_confidence is None


def test_a_contradiction_is_asked_about_once(server, judge_of, sample, says):
    torn = says.completion(json.dumps({**says.correct, "wrong_facts": ["7"]}))
    server.once(torn)
    assert judge_of().evaluate(**sample).answer_correct is True
    assert "Your last reply" in server.requests[1]["messages"][1]["content"]
    server.requests.clear()
    server.always(torn)
    with pytest.raises(JudgeParseError):
        judge_of().evaluate(**sample)


def test_claims_that_leave_out_the_answer_are_no_verdict(server, judge_of, sample, says):
    elsewhere = {
        **says.supported,
        "claims": [{**says.supported["claims"][0], "claim": "All claims are supported."}],
    }
    server.script = lambda request, n: (
        says.completion(json.dumps(elsewhere))
        if says.side_of(request) == "grounded"
        else says.good(request)
    )
    result = judge_of().evaluate(**sample)
    assert result.grounded is None
    assert "leaves some out" in result.grounded_error


@pytest.mark.parametrize("parameter", ["temperature", "seed", "max_completion_tokens"])
def test_a_refused_parameter_is_dropped_once_and_remembered(
    server, judge_of, sample, parameter, says
):
    def script(request, n):
        if parameter in request:
            return says.failure(400, f"Unsupported parameter: '{parameter}' is not supported.")
        return says.good(request)

    server.script = script
    judge = judge_of()
    assert judge.evaluate(**sample).answer_correct
    assert judge.evaluate(**sample).answer_correct
    assert judge.dropped == (parameter,)
    assert len(server.requests) == 5
    if parameter == "max_completion_tokens":
        assert server.requests[-1]["max_tokens"] == judge.max_tokens


def test_the_parameter_field_of_an_error_is_enough(server, judge_of, sample, says):
    def script(request, n):
        if "seed" in request:
            body = {"error": {"message": "Unrecognised", "param": "seed", "code": None}}
            return says.Say(json.dumps(body).encode(), 400)
        return says.good(request)

    server.script = script
    judge = judge_of()
    assert judge.evaluate(**sample).answer_correct
    assert judge.dropped == ("seed",)


def test_a_request_too_long_is_that_samples_error_and_names_the_size(
    server, judge_of, sample, says
):
    server.always(says.failure(400, "This model's maximum context length is 8192 tokens"))
    with pytest.raises(JudgeProviderError, match=r"request of [\d,]+ characters") as caught:
        judge_of().evaluate(**sample)
    assert not caught.value.fatal


def test_a_busy_provider_slows_all_workers(server, judge_of, sample, says):
    judge = judge_of(retries=3)
    barrier = threading.Event()

    def script(request, n):
        if n == 0:
            barrier.set()
            return says.failure(429, retry_after_ms="300")
        return says.good(request)

    server.script = script
    with ThreadPoolExecutor(5) as pool:
        first = pool.submit(judge.evaluate, **sample)
        barrier.wait(5)
        while judge.gate._open_at == 0.0:
            time.sleep(0.001)
        others = [pool.submit(judge.evaluate, **sample) for _ in range(4)]
        assert all(f.result().answer_correct for f in [first, *others])
    assert min(server.times[1:]) - server.times[0] >= 0.29


def test_a_pause_beyond_the_run_is_not_waited_for(server, judge_of, sample, says):
    server.always(says.failure(429, retry_after="3600"))
    with pytest.raises(JudgeProviderError) as caught:
        judge_of().evaluate(**sample)
    assert caught.value.fatal
    assert len(server.requests) == 2  # one a side


def test_cancel_ends_waits_and_prepare_undoes_it(server, judge_of, sample, says):
    server.once(says.failure(429, retry_after="60"))
    judge = judge_of()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(judge.evaluate, **sample)
        while judge.gate._open_at == 0.0:
            time.sleep(0.001)
        judge.cancel()
        with pytest.raises(JudgeProviderError, match="cancelled"):
            waiting.result(5)
    judge.prepare()
    judge.gate._open_at = 0.0
    assert judge.evaluate(**sample).answer_correct


# Before the run ---------------------------------------------------------------------------------


def test_the_probe_accepts_a_server_that_enforces_schemas(server, judge_of, says):
    judge = judge_of(probe=True)
    judge.prepare()
    judge.prepare()
    assert [says.side_of(request) for request in server.requests] == ["probe"]


@pytest.mark.parametrize("content", ["The sea is blue.", "", '{"colour": "blue"}'])
def test_the_probe_rejects_a_server_that_does_not(server, judge_of, content, says):
    server.always(says.completion(content))
    with pytest.raises(JudgeProviderError, match="does not make 'scripted' keep to") as caught:
        judge_of(probe=True).prepare()
    assert caught.value.fatal
    assert "127.0.0.1" in str(caught.value)


def test_a_missing_key_is_named_before_anything_is_sent(monkeypatch, sample):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    judge = OpenAIJudge()
    with pytest.raises(JudgeAuthenticationError, match="OPENAI_API_KEY"):
        judge.prepare()
    with pytest.raises(JudgeAuthenticationError, match="OPENAI_API_KEY"):
        judge.evaluate(**sample)
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    with pytest.raises(JudgeAuthenticationError, match="GROQ_API_KEY"):
        resolve_judge("groq:some-model").prepare()


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openai", None)
    with pytest.raises(MissingDependencyError, match="pip install openai"):
        OpenAIJudge(base_url="http://localhost:1/v1").prepare()


def test_the_address_and_key_may_come_from_the_environment(server, monkeypatch, sample):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    judge = OpenAIJudge("m")
    assert judge.host == "127.0.0.1"
    assert judge.evaluate(**sample).answer_correct
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_a_client_of_ones_own(server, sample, says):
    import openai

    client = openai.OpenAI(api_key="k", base_url=server.url, max_retries=7)
    judge = OpenAIJudge("m", client=client, retries=0)
    assert judge.host == "127.0.0.1"
    assert judge.evaluate(**sample).answer_correct
    server.always(says.failure(500))
    with pytest.raises(JudgeProviderError):
        judge.evaluate(**sample)
    assert len(server.requests) == 4  # the client's own repetitions are off


def test_options_are_checked():
    for wrong in ({"model": ""}, {"timeout": 0}, {"retries": -1}, {"max_tokens": 0}):
        with pytest.raises(SettingsError):
            OpenAIJudge(**wrong)


def test_identity_has_no_secret_and_tells_models_and_addresses_apart():
    url = "https://me:hunter2secret@example.org:8443/v1"
    judge = OpenAIJudge("m", api_key=KEY, base_url=url)
    shown = json.dumps(judge.identity) + repr(judge) + judge.name
    assert "hunter2secret" not in shown
    assert KEY not in shown
    assert judge.identity["base_url"] == "https://example.org:8443/v1"
    assert judge.identity != OpenAIJudge("n", base_url=url).identity
    assert judge.identity["max_tokens"] != OpenAIJudge("m", max_tokens=9).identity["max_tokens"]


# Secrets ----------------------------------------------------------------------------------------


def test_the_key_is_in_no_produced_text(server, judge_of, sample, bad, tmp_path, capfd):
    import traceback

    echo = bad.say._replace(body=bad.say.body.replace(b"scripted", f"key {KEY} of you".encode()))
    server.always(echo)
    judge = judge_of(api_key=KEY, cache=tmp_path / "cache")
    produced = repr(judge) + str(vars(type(judge)))
    try:
        judge.evaluate(**sample)
    except JudgeError as error:
        produced += "".join(traceback.format_exception(error)) + repr(error.__dict__)
    sample["context"] = []
    produced += judge.evaluate(**sample).model_dump_json()
    out, err = capfd.readouterr()
    produced += out + err
    produced += "".join(p.read_text() for p in tmp_path.rglob("*.json"))
    assert KEY not in produced
    assert "canary" not in produced


# The cache --------------------------------------------------------------------------------------


def test_a_cached_reply_is_not_asked_for_again(server, judge_of, sample, tmp_path):
    first = judge_of(cache=tmp_path / "c")
    result = first.evaluate(**sample)
    again = judge_of(cache=tmp_path / "c")
    assert again.evaluate(**sample) == result
    assert len(server.requests) == 2
    assert (first.cache.hits, first.cache.misses) == (0, 2)
    assert (again.cache.hits, again.cache.misses) == (2, 0)
    assert len(again.cache) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"max_tokens": 77},
        {"query": "Other?"},
        {"generated_answer": "Refunds take 7 days!"},
        {"repeat": 1},
    ],
)
def test_whatever_shapes_the_reply_is_in_the_key(server, judge_of, sample, tmp_path, change):
    judge = judge_of(cache=tmp_path)
    judge.evaluate(**sample)
    repeat = change.pop("repeat", 0)
    options = {k: change.pop(k) for k in ("max_tokens",) if k in change}
    model = change.pop("model", "scripted")
    other = OpenAIJudge(model, base_url=server.url, cache=tmp_path, probe=False, **options)
    other.evaluate_again(repeat, **{**sample, **change})
    assert other.cache.hits == 0


def test_nothing_bad_is_cached(server, judge_of, sample, tmp_path, bad):
    server.always(bad.say)
    judge = judge_of(cache=tmp_path)
    with pytest.raises(JudgeError):
        judge.evaluate(**sample)
    assert len(judge.cache) == 0


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b"[" * 100_000, b'{"key": "x", "value": {}}', b"\xff\xfe", None, "swap"],
)
def test_a_damaged_entry_is_asked_for_again(server, judge_of, sample, tmp_path, damage):
    judge = judge_of(cache=tmp_path)
    judge.evaluate(**sample)
    for path in tmp_path.rglob("*.json"):
        stored = json.loads(path.read_text())
        if damage is None:
            stored["value"]["content"]["verdict"] = "grounded"
        if damage in (None, "swap"):
            stored["value"].setdefault("content", {}).update(extra=1)
            path.write_text(json.dumps(stored))
        else:
            path.write_bytes(damage)
    again = judge_of(cache=tmp_path)
    assert again.evaluate(**sample).answer_correct
    assert len(server.requests) == 4
    assert (again.cache.hits, again.cache.misses) == (0, 2)


def test_the_cache_must_be_a_folder_that_can_be_written(judge_of, tmp_path):
    from ragdiag.errors import ExportError

    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(ExportError, match="must be a folder"):
        judge_of(cache=file)
    if os.name == "posix" and os.geteuid() != 0:  # pragma: no cover - tests may run as root
        tmp_path.chmod(0o500)
        with pytest.raises(ExportError, match="cannot be written"):
            judge_of(cache=tmp_path / "new")


def test_a_full_disk_costs_the_cache_and_not_the_verdict(judge_of, sample, tmp_path, monkeypatch):
    from ragdiag.errors import ExportError

    def full(*args):
        raise ExportError("no space left on device")

    monkeypatch.setattr("ragdiag.judges.cache.write_text", full)
    judge = judge_of(cache=tmp_path)
    assert judge.evaluate(**sample).answer_correct
    assert len(judge.cache) == 0


def test_repeats_send_their_own_seed(server, judge_of, sample):
    judge_of().evaluate_again(3, **sample)
    assert {request["seed"] for request in server.requests} == {3}


def test_good_replies_fit_their_schemas(says):
    from ragdiag.judges.prompts import CorrectnessReply, GroundednessReply, ProbeReply

    for side, schema in zip(
        says.all_good, (GroundednessReply, CorrectnessReply, ProbeReply), strict=True
    ):
        assert schema.model_validate(says.all_good[side])
