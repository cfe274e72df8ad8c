"""The words: reasons, evidence and the decision trail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ragdiag.reasons import milliseconds
from ragdiag.recording import Run
from ragdiag.results import Results
from ragdiag.rules import Rule
from ragdiag.schema import EvaluationResult, Settings

MakeRun = Callable[..., Run]


def item(make_run: MakeRun, *, rules: Any = (), **given: Any) -> EvaluationResult:
    return Results(make_run(given), Settings(), rules)[0]


@pytest.mark.parametrize(
    ("value", "beside", "text"),
    [
        (0.0, None, "0"),
        (412.0, None, "412"),
        (0.44, None, "0.4"),
        (1234567.25, None, "1,234,567.2"),
        (1000.0, 1000.0, "1,000"),
        (1000.04, 1000.0, "1,000.04"),
        (1000.0000001, 1000.0, "1,000"),  # closer than anyone can time
    ],
)
def test_milliseconds(value: float, beside: float | None, text: str) -> None:
    assert milliseconds(value, beside) == text


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            {"status": "failed", "error": "retrieval failed: OSError: gone"},
            "retrieval failed: OSError: gone",
        ),
        ({"status": "failed"}, "The pipeline failed; no error was recorded."),
        (
            {"relevant": ["a"], "retrieved": ["x"]},
            "0 of 1 relevant chunks in the top 5, none retrieved at any rank.",
        ),
        (
            {"relevant": ["a"], "retrieved": [*"uvwxyza"]},
            "0 of 1 relevant chunks in the top 5, it came at rank 7.",
        ),
        (
            {"relevant": ["a", "b"], "retrieved": [*"avwxyzb"]},
            "1 of 2 relevant chunks in the top 5, the other at rank 7.",
        ),
        (
            {"relevant": ["a", "b"], "retrieved": ["a"]},
            "1 of 2 relevant chunks in the top 5, the other not retrieved.",
        ),
        (
            {"relevant": ["a", "b", "c"], "retrieved": ["a"]},
            "1 of 3 relevant chunks in the top 5, the rest not retrieved.",
        ),
        (
            {"relevant": ["a", "b", "c"], "retrieved": [*"avwxyb"]},
            "1 of 3 relevant chunks in the top 5, one more at rank 6.",
        ),
        (
            {"relevant": ["a", "b", "c"], "retrieved": [*"avwxybc"]},
            "1 of 3 relevant chunks in the top 5, 2 more from rank 6 on.",
        ),
        (
            {"relevant": ["a"], "retrieved": [*"xyza"]},
            "The first relevant chunk came at rank 4, after the limit of 3.",
        ),
        ({"grounded": False}, "The answer is not supported by the retrieved chunks."),
        (
            {"grounded": False, "screened": True},
            "The answer is suspected not to be supported by the retrieved chunks "
            "(offline screening).",
        ),
        ({"answer_correct": False}, "The answer is incorrect."),
        (
            {"answer_correct": False, "screened": True},
            "The answer is suspected to be incorrect (offline screening).",
        ),
        ({"ms": 1234.5}, "Retrieval took 1,234.5 ms, more than the limit of 1,000 ms."),
        ({"ms": 1000.01}, "Retrieval took 1,000.01 ms, more than the limit of 1,000 ms."),
        (
            {
                "relevant": ["a"],
                "retrieved": ["a"],
                "ms": 5.0,
                "answer_correct": True,
                "grounded": True,
            },
            "All checks were measured and passed.",
        ),
        (
            {"relevant": ["a"], "retrieved": ["a"], "ms": 5.0},
            "No measured check failed; not measured: RETRIEVED_BUT_NOT_GROUNDED, ANSWER_INCORRECT.",
        ),
        ({}, "Nothing could be measured: there is no label, no verdict and no time to go by."),
    ],
)
def test_reasons(make_run: MakeRun, given: dict[str, Any], reason: str) -> None:
    results = Results(make_run(given))
    assert results.frame["reason"].iloc[0] == reason
    assert results[0].diagnosis.reason == reason


def test_reasons_are_written_for_those_who_are_looked_at(make_run: MakeRun) -> None:
    calls: list[str] = []
    own = Rule(
        "MINE",
        "warning",
        when=lambda f: f["retrieval_ms"] > 0,
        reason=lambda row: calls.append(row["query_id"]) or f"{row['retrieval_ms']} ms",
        action="do",
    )
    results = Results(make_run({"ms": 1.0}, {"ms": 2.0}, {"ms": 3.0}), rules=[own])
    assert calls == []
    assert results[1:2].frame["reason"].tolist() == ["2.0 ms"]
    assert calls == ["q2"]
    assert results.frame["reason"].tolist() == ["1.0 ms", "2.0 ms", "3.0 ms"]
    assert calls == ["q2", "q1", "q3"]


def test_a_reason_that_raises_is_told(make_run: MakeRun) -> None:
    own = Rule(
        "MINE",
        "warning",
        when=lambda f: f["retrieval_ms"] > 0,
        reason=lambda row: row["nothing"],
        action="do",
    )
    found = item(make_run, rules=[own], ms=1.0)
    assert found.diagnosis.reason == "MINE fired; its reason raised KeyError: 'nothing'"
    assert found.trail[-1].condition == "the rule's own condition holds"


def states(found: EvaluationResult) -> list[tuple[str, str]]:
    return [(line.state, line.detail) for line in found.trail]


def test_trail_of_a_query_that_misses_one_chunk(make_run: MakeRun) -> None:
    found = item(
        make_run,
        relevant=["refunds-04", "fees-11"],
        retrieved=["x", "refunds-04", "y", "z", "v", "w", "fees-11"],
        ms=412.0,
        total_ms=2252.0,
        answer_correct=False,
        correct_confidence=0.94,
    )
    assert [line.rule for line in found.trail if line.primary] == ["INSUFFICIENT_CONTEXT"]
    assert states(found) == [
        ("passed", "completed in 2,252 ms"),
        ("passed", "first relevant chunk refunds-04 at rank 2"),
        ("fired", "1 of 2; fees-11 at rank 7"),
        ("not applicable", "only 1 of 2 in the top 5"),
        ("not measured", "the judge gave no verdict"),
        ("fired", "judged incorrect, confidence 0.94"),
        ("passed", "412 ms (limit 1,000 ms)"),
    ]
    assert [line.condition for line in found.trail] == [
        "the pipeline fails",
        "no relevant chunk in the top 5",
        "only some of the relevant chunks in the top 5",
        "all relevant chunks came, the first of them below rank 3",
        "the answer is not supported by the retrieved chunks",
        "the answer is incorrect",
        "retrieval takes more than 1,000 ms",
    ]
    assert found.diagnosis.evidence == [
        "expected chunks: refunds-04, fees-11",
        "found in the top 5: refunds-04 at rank 2",
        "missing from the top 5: fees-11 at rank 7",
        "retrieved in the top 5: x, refunds-04, y, z, v",
        "recall@5: 0.50",
        "not measured: RETRIEVED_BUT_NOT_GROUNDED: the judge gave no verdict",
        "also fired: ANSWER_INCORRECT: judged incorrect, confidence 0.94",
    ]


def test_trail_of_a_failed_query(make_run: MakeRun) -> None:
    found = item(
        make_run,
        relevant=["a"],
        status="failed",
        error="generation failed: X: y",
        ms=12.0,
        generation_ms=3.0,
    )
    assert states(found) == [
        ("fired", "generation failed: X: y"),
        *[("not measured", "the pipeline failed")] * 5,
        ("passed", "12 ms (limit 1,000 ms)"),
    ]
    assert found.diagnosis.evidence[:4] == [
        "generation failed: X: y",
        "status: failed",
        "retrieval: 12 ms",
        "generation: 3 ms",
    ]


def test_trail_of_a_query_of_which_nothing_is_known(make_run: MakeRun) -> None:
    found = item(make_run, status=None, relevant=["a"])
    assert states(found) == [
        ("not measured", "it was not recorded how the query ended"),
        *[("not measured", "no retrieval was recorded")] * 3,
        *[("not measured", "not judged")] * 2,
        ("not measured", "retrieval was not timed"),
    ]
    assert found.diagnosis.category is None
    assert (found.diagnosis.severity, found.diagnosis.confidence) == (None, None)
    assert found.diagnosis.action == ""
    assert states(item(make_run, query="?"))[0] == ("passed", "completed")
    assert states(item(make_run, query="?"))[1] == ("not measured", "no relevant chunk is known")


def test_trail_when_nothing_came(make_run: MakeRun) -> None:
    found = item(make_run, relevant=["a"], retrieved=[])
    assert states(found)[1:4] == [
        ("fired", "0 of 1; a not retrieved"),
        ("not applicable", "no relevant chunk came"),
        ("not applicable", "no relevant chunk came"),
    ]
    assert "retrieved in the top 5: none" in found.diagnosis.evidence


def test_evidence_of_a_rank(make_run: MakeRun) -> None:
    found = item(make_run, relevant=["a"], retrieved=[*"xyza"])
    assert found.diagnosis.evidence[:6] == [
        "expected chunks: a",
        "found in the top 5: a at rank 4",
        "missing from the top 5: none",
        "retrieved in the top 5: x, y, z, a",
        "recall@5: 1.00",
        "rank threshold: 3",
    ]


def test_evidence_of_a_judge(make_run: MakeRun) -> None:
    given: dict[str, Any] = {
        "relevant": ["a"],
        "retrieved": ["a"],
        "answer": "In 7 days.",
        "expected_answer": "In 5 days.",
        "judge": "lexical",
        "judge_reason": "7 is not 5",
        "screened": True,
        "answer_correct": False,
        "grounded": True,
        "correct_confidence": 0.8,
    }
    found = item(make_run, **given)
    assert found.diagnosis.evidence == [
        "suspected incorrect, confidence 0.80",
        "judge: lexical",
        "judge's reason: 7 is not 5",
        "expected answer: In 5 days.",
        "answer: In 7 days.",
        "WRONG_CHUNK_RETRIEVED passed: first relevant chunk a at rank 1",
        "INSUFFICIENT_CONTEXT passed: 1 of 1 in the top 5",
        "WRONG_CHUNK_RANK passed: a at rank 1 (limit 3)",
        "not measured: LATENCY_OUTLIER: retrieval was not timed",
    ]
    assert found.trail[4].detail == "suspected grounded"
    bare = item(make_run, grounded=False)
    assert bare.diagnosis.evidence[:2] == ["judged not grounded", "answer: none was recorded"]


def test_a_judges_error_is_why_a_side_was_not_measured(make_run: MakeRun) -> None:
    found = item(make_run, grounded_error="Timeout: 30 s", answer_correct=True)
    assert states(found)[4] == ("not measured", "Timeout: 30 s")
    assert found.judge_error == "judge failed: Timeout: 30 s"


def test_a_suspected_label_is_named(make_run: MakeRun) -> None:
    found = item(make_run, relevant=["a"], retrieved=["x"], answer_correct=True, grounded=True)
    assert found.suspect_label is True
    assert found.diagnosis.evidence[-1].startswith("suspected label: the answer is correct")


def test_evidence_of_users_rules(make_run: MakeRun) -> None:
    def own(name: str, value: Any) -> Rule:
        return Rule(name, "info", when=lambda f: f["query"].map(lambda _: value), **words)

    words = {"reason": "it does", "action": "do"}
    rules = [own("YES", True), own("NO", False), own("OPEN", None), own("ALSO", True)]
    found = item(make_run, rules=rules, ms=5.0)
    assert found.diagnosis.category == "YES"
    assert found.diagnosis.action == "do"
    assert states(found)[-4:] == [
        ("fired", "it does"),
        ("passed", "does not hold"),
        ("not measured", "no evidence"),
        ("fired", "it does"),
    ]
    assert found.diagnosis.evidence[0] == "it does"
    assert "NO passed: does not hold" in found.diagnosis.evidence
    assert found.diagnosis.evidence[-2:] == [
        "not measured: OPEN: no evidence",
        "also fired: ALSO: it does",
    ]


def test_long_lists_of_ids_are_cut(make_run: MakeRun) -> None:
    found = item(make_run, relevant=[f"c{n}" for n in range(1025)], retrieved=["x"])
    assert found.diagnosis.evidence[0].endswith("c19 and 1,005 more")
