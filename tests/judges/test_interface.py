"""The interface, judges by name, and what an evaluation will take."""

from __future__ import annotations

import subprocess
import sys

import pandas as pd
import pytest

import ragdiag.judges
from ragdiag.errors import SettingsError
from ragdiag.judges import Judge, JudgeResult, LexicalJudge, estimate, resolve_judge
from ragdiag.judges.cache import JudgeCache
from ragdiag.judges.prechecks import declines, hedges, precheck
from ragdiag.judges.words import sentences, similar, tokens
from ragdiag.recording import Run
from ragdiag.schema import RetrievedChunk


class Always(Judge):
    def evaluate(self, query, expected_answer, generated_answer, context):
        return JudgeResult(answer_correct=True, confidence=0.5)


def test_a_subclass_needs_evaluate_alone(sample):
    judge = Always()
    judge.prepare()
    judge.cancel()
    assert judge.evaluate_again(2, **sample).answer_correct is True
    assert (judge.name, judge.host, judge.cache, judge.screened) == ("Always", None, None, False)
    assert judge.identity == {"judge": "Always"}
    assert judge.prompts(**sample) == []
    with pytest.raises(TypeError):
        Judge()


@pytest.mark.parametrize(
    ("spec", "name", "host"),
    [
        ("lexical", "lexical", None),
        ("LEXICAL", "lexical", None),
        ("openai", "openai:gpt-4o-mini", "api.openai.com"),
        ("openai:m:tag", "openai:m:tag", "api.openai.com"),
        ("ollama:llama3.2", "ollama:llama3.2", "localhost"),
        ("vllm:m", "vllm:m", "localhost"),
        ("llamacpp:m", "llamacpp:m", "localhost"),
        ("groq:m", "groq:m", "api.groq.com"),
        ("mistral:m", "mistral:m", "api.mistral.ai"),
        ("anthropic:m", "anthropic:m", "api.anthropic.com"),
        ("google:m", "google:m", "generativelanguage.googleapis.com"),
        ("gemini:m", "google:m", "generativelanguage.googleapis.com"),
    ],
)
def test_judges_by_name(spec, name, host, monkeypatch):
    for variable in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    judge = resolve_judge(spec)
    assert (judge.name, judge.host) == (name, host)


def test_options_reach_the_judge(tmp_path):
    judge = resolve_judge(
        "openai:m", base_url="http://localhost:1/v1", cache=tmp_path, timeout=None
    )
    assert judge.host == "localhost"
    assert isinstance(judge.cache, JudgeCache)
    assert resolve_judge(judge) is judge
    assert resolve_judge(None) is None


@pytest.mark.parametrize(
    "spec", ["", "gpt-4", "openai:", "ollama", "lexical:x", "nobody:m", 3, object()]
)
def test_unknown_judges_are_refused_with_the_list(spec):
    with pytest.raises(SettingsError, match=r"'lexical'|names no model"):
        resolve_judge(spec)


def test_options_that_do_not_fit_are_refused():
    with pytest.raises(SettingsError, match="cache"):
        resolve_judge("lexical", cache="x")
    with pytest.raises(SettingsError, match="temperature"):
        resolve_judge("openai:m", temperature=1)
    with pytest.raises(SettingsError, match="constructor"):
        resolve_judge(LexicalJudge(), cache="x")


def test_importing_the_package_loads_no_sdk():
    code = (
        "import sys, ragdiag.judges as j; j.resolve_judge('openai:m'); j.resolve_judge('lexical');"
        "print([n for n in ('openai', 'anthropic', 'google.genai', 'ipywidgets', 'sklearn') "
        "if n in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_all_names_exist():
    for name in ragdiag.judges.__all__:
        assert getattr(ragdiag.judges, name)
    with pytest.raises(AttributeError, match="nothing"):
        ragdiag.judges.nothing  # noqa: B018


# What it will take ------------------------------------------------------------------------------


@pytest.fixture
def run():
    ids = ["q1", "q2", "q3"]
    return Run(
        pd.DataFrame(
            {"query_id": ids, "query": "How?", "expected_answer": ["7 days", None, "7 days"]}
        ),
        retrieved=pd.DataFrame(
            {"query_id": ["q1", "q2"], "rank": 1, "chunk_id": "d", "text": "A chunk of text."}
        ),
        outcomes=pd.DataFrame(
            {
                "query_id": ids,
                "status": ["completed", "completed", "failed"],
                "answer": ["In 7 days.", "In 7 days.", None],
            }
        ),
    )


def test_of_a_run_every_request_is_known(run, server, judge_of):
    judge = judge_of()
    found = estimate(run, judge=judge)
    # q1: both sides; q2: no expected answer; q3: no answer.
    assert (found.queries, found.requests, found.pipeline_calls) == (3, 3, 0)
    assert found.assumed == ""
    sent = judge.prompts(
        "How?", "7 days", "In 7 days.", [RetrievedChunk(id="d", text="A chunk of text.")]
    )
    assert found.prompt_tokens >= sum(map(len, sent)) / 4
    assert estimate(run, judge=judge, judge_repeats=3).requests == 9
    assert "3 requests to 127.0.0.1" in repr(found)
    assert server.requests == []


def test_of_a_pipeline_sizes_are_assumed_and_said(judge_of):
    class Dataset:
        frame = pd.DataFrame({"query_id": ["q1"], "query": ["How?"], "expected_answer": ["7 days"]})

    class Retriever:
        def retrieve(self, query):
            raise AssertionError("nothing is called")

    class Generator(Retriever):
        def generate(self, query, chunks):
            raise AssertionError("nothing is called")

    found = estimate(Dataset(), Generator(), judge_of())
    assert (found.requests, found.pipeline_calls) == (2, 2)
    assert 1_000 < found.prompt_tokens < 3_000
    assert "assumed: 5 chunks of 200 tokens" in repr(found)
    assert estimate(Dataset(), Retriever()).pipeline_calls == 1
    assert "no judge" in repr(estimate(Dataset()))
    bigger = estimate(Dataset(), Generator(), judge_of(), chunks=50)
    assert bigger.prompt_tokens > found.prompt_tokens


def test_lexical_needs_no_request_and_odd_things_are_refused(run):
    assert "no requests" in repr(estimate(run, judge="lexical"))
    with pytest.raises(SettingsError, match="dataset, a run or results"):
        estimate("file.json")


# Words and pre-checks ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,000,000", ["1000000"]),
        ("007 2.50 0.5", ["7", "2.5", "0.5"]),
        ("1.2.3 10:30", ["1.2.3", "10:30"]),
        ("2 million", ["2000000"]),
        ("2.5 thousand", ["2500"]),
        ("1.0000001 million", ["1000000.1"]),
        ("1980s", ["1980s"]),
        ("1980s million", ["1980s", "million"]),
        ("2nd 3rd 21st", ["2", "3", "21"]),
        ("two hundred fifty thousand three", ["250003"]),
        ("twenty-first", ["21"]),
        ("twenty twenty", ["20", "20"]),
        ("nineteen eighty four", ["19", "84"]),
        ("one hundred hundred", ["100", "hundred"]),
        ("Henry VIII", ["henry", "8"]),
        ("analysis paris class bus cities boxes churches potatoes", None),
        ("this his does", ["this", "his", "does"]),
        ("don't the dog's dogs'", ["don", "t", "the", "dog", "dog"]),
        ("e.g. U.K.", ["eg", "britain"]),
    ],
)
def test_tokens(text, expected):
    if expected is None:
        expected = ["analysis", "paris", "class", "bus", "city", "box", "church", "potato"]
    assert tokens(text) == expected


def test_similar_words():
    assert similar("color", "colour")
    assert not similar("cat", "car")
    assert not similar("12345", "12346")
    assert not similar("a" * 50, "a" * 51)
    assert similar("gutenberg", "gutenbrg")
    assert similar("refunding", "refund")


def test_sentences():
    assert sentences("") == []
    assert sentences("One. Two?\nThree") == ["One.", "Two?", "Three"]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("Paris", None),
        ("I'm sorry, but it is Paris.", None),
        ("As an AI I cannot know, however the capital is Paris.", None),
        ("I'm sorry, I do not know the capital of France.", "declines"),
        ("The answer Paris is not mentioned.", None),
        ("Capital of France?", "echo"),
        ("The capital of France is Paris", None),
        ("Question: capital of France", "echo"),
    ],
)
def test_prechecks(answer, kind):
    found = precheck("Capital of France?", "Paris", answer)
    assert (found.kind if found else None) == kind


def test_a_refusal_that_is_expected_is_not_stopped():
    assert precheck("q", "The answer is unknown.", "I don't know.") is None
    assert precheck("q", "yes", "Yes.") is None


def test_declines_and_hedges():
    assert not declines("")
    assert not declines("Please provide more.")
    assert hedges("It might be Paris, perhaps.") == 2
