"""The judges for Anthropic and Gemini, against the same scripted server."""

from __future__ import annotations

import json
import sys

import pytest

from ragdiag.errors import (
    JudgeAuthenticationError,
    JudgeError,
    JudgeParseError,
    JudgeProviderError,
    JudgeRefusalError,
    MissingDependencyError,
)
from ragdiag.judges import AnthropicJudge, GeminiJudge

KEY = "canary-0123456789abcdefgh"


class Anthropic:
    package = "anthropic"
    variable = "ANTHROPIC_API_KEY"
    judge = AnthropicJudge

    @staticmethod
    def reply(text, reason="end_turn"):
        return {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "scripted-1",
            "content": [{"type": "text", "text": text}],
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }

    truncated, refused = "max_tokens", "refusal"

    @staticmethod
    def error(status):
        return {"type": "error", "error": {"type": "scripted", "message": f"key {KEY} of you"}}


class Gemini:
    package = "google.genai"
    variable = "GEMINI_API_KEY"
    judge = GeminiJudge

    @staticmethod
    def reply(text, reason="STOP"):
        return {
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": reason}
            ],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5},
            "modelVersion": "scripted-1",
        }

    truncated, refused = "MAX_TOKENS", "SAFETY"

    @staticmethod
    def error(status):
        return {"error": {"code": status, "status": "SCRIPTED", "message": f"key {KEY} of you"}}


@pytest.fixture(params=[Anthropic, Gemini])
def native(request):
    pytest.importorskip(request.param.package)
    return request.param


@pytest.fixture
def judge_of(server, native, says):
    def say(body, status=200, **options):
        return says.Say(json.dumps(body).encode(), status, **options)

    def good(request, n):
        return say(native.reply(json.dumps(says.all_good[says.side_of(request)])))

    server.script = good
    server.say, server.good = say, good

    def make(**options):
        settings = {"api_key": KEY, "backoff": 0.001, "retries": 1, "probe": False, **options}
        return native.judge("scripted", base_url=server.root, **settings)

    return make


def test_a_good_reply_gives_both_findings(server, judge_of, sample):
    judge = judge_of(probe=True)
    judge.prepare()
    result = judge.evaluate(**sample)
    assert (result.answer_correct, result.grounded) == (True, True)
    assert result.model == "scripted-1"
    assert (result.prompt_tokens, result.completion_tokens) == (20, 10)
    assert len(server.requests) == 3
    assert judge.host == "127.0.0.1"


@pytest.mark.parametrize(
    ("text", "kind", "requests"),
    [("", JudgeParseError, 4), ("Prose.", JudgeParseError, 4), ("```{}```", JudgeParseError, 4)],
)
def test_an_unusable_reply_is_asked_for_once_more(
    server, judge_of, native, sample, text, kind, requests
):
    server.always(server.say(native.reply(text)))
    with pytest.raises(kind):
        judge_of().evaluate(**sample)
    assert len(server.requests) == requests


def test_truncation_doubles_the_room_once(server, judge_of, native, sample):
    server.always(server.say(native.reply('{"a', native.truncated)))
    with pytest.raises(JudgeParseError, match="cut off at 200 tokens"):
        judge_of(max_tokens=100).evaluate(**sample)
    assert len(server.requests) == 4


def test_a_refusal_is_final(server, judge_of, native, sample):
    server.always(server.say(native.reply("", native.refused)))
    with pytest.raises(JudgeRefusalError):
        judge_of().evaluate(**sample)
    assert len(server.requests) == 2


def test_a_blocked_request_is_a_refusal(server, judge_of, native, sample):
    if native is Anthropic:
        pytest.skip("Anthropic has no such reply")
    server.always(server.say({"promptFeedback": {"blockReason": "SAFETY"}}))
    with pytest.raises(JudgeRefusalError):
        judge_of().evaluate(**sample)


@pytest.mark.parametrize(
    ("status", "kind", "fatal", "requests"),
    [
        (400, JudgeProviderError, True, 2),
        (401, JudgeAuthenticationError, True, 2),
        (403, JudgeAuthenticationError, True, 2),
        (404, JudgeProviderError, True, 2),
        (429, JudgeProviderError, False, 4),
        (500, JudgeProviderError, False, 4),
        (529, JudgeProviderError, False, 4),
    ],
)
def test_statuses(server, judge_of, native, sample, status, kind, fatal, requests):
    server.always(server.say(native.error(status), status))
    with pytest.raises(kind) as caught:
        judge_of().evaluate(**sample)
    assert caught.value.fatal == fatal
    assert "canary" not in str(caught.value)
    assert len(server.requests) == requests


@pytest.mark.parametrize("body", [b"<html></html>", b"{}", b"[]", b"null"])
@pytest.mark.parametrize("content_type", ["application/json", "text/html"])
def test_a_stranger_is_an_error(server, judge_of, says, sample, body, content_type):
    server.always(says.Say(body, headers={"content-type": content_type}))
    with pytest.raises(JudgeError):
        judge_of().evaluate(**sample)


def test_a_dropped_connection_and_a_slow_server(server, judge_of, says, sample):
    server.always(says.Say(b"", drop=True))
    with pytest.raises(JudgeProviderError, match="cannot be reached"):
        judge_of().evaluate(**sample)
    server.always(says.Say(b"{}", delay=5.0))
    with pytest.raises(JudgeProviderError, match="no reply within"):
        judge_of(timeout=0.05).evaluate(**sample)


def test_a_missing_key_or_package_is_named(native, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(JudgeAuthenticationError, match=native.variable):
        native.judge().prepare()
    monkeypatch.setitem(sys.modules, native.package.split(".")[0], None)
    with pytest.raises(MissingDependencyError, match=r"ragdiag\["):
        native.judge().prepare()


def test_an_unknown_exception_is_a_provider_error(judge_of):
    failure = judge_of()._explain(OSError("disk"), 10)
    assert isinstance(failure.error, JudgeProviderError)
    assert not failure.transient
