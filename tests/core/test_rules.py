"""The truth table of the rules: every cause, every pair of causes, everything not measured."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragdiag.errors import SettingsError
from ragdiag.recording import Run
from ragdiag.results import Results
from ragdiag.rules import MAX_OWN_RULES, RULES, Rule, RuleBook
from ragdiag.schema import Settings
from ragdiag.taxonomy import PRECEDENCE, FailureCategory

MakeRun = Callable[..., Run]

UNKNOWN, NO_CHUNK, PART, RANK, UNGROUNDED, WRONG, SLOW, PASS = (each.value for each in PRECEDENCE)
RETRIEVAL = [NO_CHUNK, PART, RANK]
SEMANTIC = [UNGROUNDED, WRONG]

#: A query that passes everything.
FINE: dict[str, Any] = {
    "relevant": ["a", "b"],
    "retrieved": ["a", "b", "x"],
    "ms": 10.0,
    "answer_correct": True,
    "grounded": True,
    "correct_confidence": 0.7,
    "grounded_confidence": 0.6,
}
#: What to change for one rule to fire. Retrieval has one outcome, so its three exclude each other.
FIRES: dict[str, dict[str, Any]] = {
    UNKNOWN: {"status": "failed", "error": "retrieval failed: ValueError: no"},
    NO_CHUNK: {"retrieved": ["x", "y"]},
    PART: {"retrieved": ["a", "x"]},
    RANK: {"retrieved": ["x", "y", "z", "a", "b"]},
    UNGROUNDED: {"grounded": False},
    WRONG: {"answer_correct": False},
    SLOW: {"ms": 1000.5},
}
CONFIDENCE = {UNGROUNDED: 0.6, WRONG: 0.7}


def one(make_run: MakeRun, *, settings: Settings | None = None, **given: Any) -> pd.Series:
    return Results(make_run(given), settings).frame.iloc[0]


def test_rules_stand_in_order_of_precedence() -> None:
    assert tuple(rule.category for rule in RULES) == PRECEDENCE[:-1]


# Everything a query can be, and what becomes of it, in literal rows:
# relevant, retrieved, status, ms, correct, grounded -> category, signals, not measured
TABLE = [
    # one cause
    ("a", "a", "completed", 10, True, True, PASS, [], []),
    ("a", "x", "completed", 10, True, True, NO_CHUNK, [NO_CHUNK], []),
    ("a", "", "completed", 10, True, True, NO_CHUNK, [NO_CHUNK], []),
    ("ab", "a", "completed", 10, True, True, PART, [PART], []),
    ("a", "xyza", "completed", 10, True, True, RANK, [RANK], []),
    ("a", "a", "completed", 10, True, False, UNGROUNDED, [UNGROUNDED], []),
    ("a", "a", "completed", 10, False, True, WRONG, [WRONG], []),
    ("a", "a", "completed", 2000, True, True, SLOW, [SLOW], []),
    ("a", "a", "failed", None, None, None, UNKNOWN, [UNKNOWN], [*RETRIEVAL, *SEMANTIC, SLOW]),
    # on the edge of every threshold (k = 5, rank 3, 1,000 ms)
    ("a", "xxa", "completed", 10, True, True, PASS, [], []),
    ("a", "vwxya", "completed", 10, True, True, RANK, [RANK], []),
    ("a", "vwxyza", "completed", 10, True, True, NO_CHUNK, [NO_CHUNK], []),
    ("ab", "avwxyb", "completed", 10, True, True, PART, [PART], []),
    ("a", "a", "completed", 1000, True, True, PASS, [], []),
    ("a", "a", "completed", 1000.0001, True, True, SLOW, [SLOW], []),
    # the first of the relevant chunks decides about rank
    ("ab", "axxb", "completed", 10, True, True, PASS, [], []),
    # everything at once
    ("a", "x", "completed", 2000, False, False, NO_CHUNK, [NO_CHUNK, UNGROUNDED, WRONG, SLOW], []),
    # a failed query has no retrieval measures, whatever had come before it failed
    ("a", "x", "failed", 2000, None, None, UNKNOWN, [UNKNOWN, SLOW], [*RETRIEVAL, *SEMANTIC]),
    ("a", "a", "failed", 10, False, False, UNKNOWN, [UNKNOWN], [*RETRIEVAL, *SEMANTIC]),
    # evidence missing
    ("", "x", "completed", 10, True, True, PASS, [], RETRIEVAL),
    ("", "x", "completed", 10, None, None, PASS, [], [*RETRIEVAL, *SEMANTIC]),
    ("", "x", "completed", 10, None, False, UNGROUNDED, [UNGROUNDED], [*RETRIEVAL, WRONG]),
    ("a", "a", "completed", 10, None, None, PASS, [], SEMANTIC),
    ("a", "a", "completed", 10, True, None, PASS, [], [UNGROUNDED]),
    ("a", "a", "completed", 10, None, True, PASS, [], [WRONG]),
    ("a", "a", "completed", None, True, True, PASS, [], [SLOW]),
    ("a", "a", "completed", None, None, None, PASS, [], [*SEMANTIC, SLOW]),
    # nothing at all could be measured: that it ended well is no evidence that it is right
    ("", "x", "completed", None, None, None, None, [], [*RETRIEVAL, *SEMANTIC, SLOW]),
    ("", "", None, None, None, None, None, [], [UNKNOWN, *RETRIEVAL, *SEMANTIC, SLOW]),
    ("a", "", None, None, None, None, None, [], [UNKNOWN, *RETRIEVAL, *SEMANTIC, SLOW]),
    # chunks without an outcome (a TREC run) can be measured all the same
    ("a", "a", None, None, None, None, PASS, [], [UNKNOWN, *SEMANTIC, SLOW]),
    ("a", "x", None, None, None, None, NO_CHUNK, [NO_CHUNK], [UNKNOWN, *SEMANTIC, SLOW]),
    # and so can verdicts
    ("", "", None, None, False, None, WRONG, [WRONG], [UNKNOWN, *RETRIEVAL, UNGROUNDED, SLOW]),
]  # fmt: skip


@pytest.mark.parametrize("row", TABLE, ids=lambda row: "-".join(map(str, row[:6])))
def test_truth_table(make_run: MakeRun, row: tuple[Any, ...]) -> None:
    relevant, retrieved, status, ms, correct, grounded, category, fired, missing = row
    given: dict[str, Any] = {
        "relevant": list(relevant),
        "retrieved": [f"{c}" if c in relevant else f"{c}{i}" for i, c in enumerate(retrieved)],
        "status": status,
        "ms": ms,
    }
    if correct is not None or grounded is not None:
        given |= {"answer_correct": correct, "grounded": grounded}
    found = one(make_run, **given)
    assert (None if pd.isna(found["category"]) else found["category"]) == category
    severity = None if category is None else FailureCategory(category).severity
    assert (None if pd.isna(found["severity"]) else found["severity"]) == severity
    assert list(found["not_measured"]) == missing
    for rule in RULES:
        signal = found[f"signal_{rule.name.lower()}"]
        if rule.name in missing:
            assert pd.isna(signal), rule.name
        else:
            assert bool(signal) == (rule.name in fired), rule.name
    assert (
        pd.isna(found["signal_pass"])
        if category is None
        else found["signal_pass"] == (category == PASS)
    )
    if category is None:
        assert math.isnan(found["confidence"])
    elif category not in SEMANTIC:
        assert found["confidence"] == 1.0


PAIRS = [
    (first, second)
    for first, second in itertools.combinations(FIRES, 2)
    # One retrieval has one outcome.
    if first not in RETRIEVAL or second not in RETRIEVAL
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_the_first_in_precedence_is_primary_and_the_other_is_kept(
    make_run: MakeRun, first: str, second: str
) -> None:
    found = one(make_run, **{**FINE, **FIRES[second], **FIRES[first]})
    assert found["category"] == first
    assert found["confidence"] == CONFIDENCE.get(first, 1.0)
    assert found[f"signal_{first.lower()}"]
    other = found[f"signal_{second.lower()}"]
    if first == UNKNOWN and second != SLOW:
        assert pd.isna(other)
    else:
        assert other


@pytest.mark.parametrize("name", list(FIRES))
def test_each_rule_fires_alone(make_run: MakeRun, name: str) -> None:
    found = one(make_run, **{**FINE, **FIRES[name]})
    assert found["category"] == name
    assert found["severity"] == FailureCategory(name).severity
    assert found["action"] == FailureCategory(name).action


def test_a_judge_that_failed_on_a_side_leaves_that_side_unmeasured(make_run: MakeRun) -> None:
    given = {**FINE, "grounded": False, "answer_correct": False, "grounded_error": "judge failed"}
    found = one(make_run, **given)
    assert found["category"] == WRONG
    assert found["not_measured"] == (UNGROUNDED,)


def test_confidence_of_a_judge_that_states_none_is_missing(make_run: MakeRun) -> None:
    given = {**FINE, "grounded": False, "grounded_confidence": None}
    assert math.isnan(one(make_run, **given)["confidence"])


@pytest.mark.parametrize(
    ("correct", "grounded", "retrieved", "expected"),
    [
        (True, True, ["x"], True),
        (True, True, [], True),
        (True, True, ["x"] * 6 + ["a"], False),  # it was there to be read, below k
        (True, True, ["a"], False),
        (False, True, ["x"], False),
        (True, False, ["x"], False),
        (None, True, ["x"], None),
        (True, None, ["x"], None),
        (None, None, ["a"], False),
        (None, None, ["x"], None),
    ],
)
def test_suspect_label(
    make_run: MakeRun, correct: Any, grounded: Any, retrieved: list[str], expected: Any
) -> None:
    chunks = [name if name == "a" else f"{name}{place}" for place, name in enumerate(retrieved)]
    found = one(
        make_run, relevant=["a"], retrieved=chunks, answer_correct=correct, grounded=grounded
    )["suspect_label"]
    assert (None if pd.isna(found) else bool(found)) is expected


def test_a_failed_query_has_no_suspect_label(make_run: MakeRun) -> None:
    given = {**FINE, "status": "failed", "retrieved": ["x"]}
    assert pd.isna(one(make_run, **given)["suspect_label"])


def test_settings_move_every_threshold(make_run: MakeRun) -> None:
    given = {**FINE, **FIRES[RANK], "ms": 20.0}
    assert one(make_run, settings=Settings(rank_threshold=4, k=5), **given)["category"] == PASS
    assert one(make_run, settings=Settings(k=4), **given)["category"] == PART
    assert one(make_run, settings=Settings(k=3), **given)["category"] == NO_CHUNK
    slow = Settings(rank_threshold=4, latency_threshold_ms=19.9)
    assert one(make_run, settings=slow, **given)["category"] == SLOW


def test_only_relevant_grades_count(make_run: MakeRun) -> None:
    found = one(make_run, relevant={"a": 2, "b": 0, "c": 1}, retrieved=["a", "c"])
    assert (found["category"], found["n_relevant"], found["n_found"]) == (PASS, 2, 2)
    unlabelled = one(make_run, relevant={"b": 0}, retrieved=["b"], ms=1.0)
    assert unlabelled["not_measured"][:3] == tuple(RETRIEVAL)


# -- the user's rules ----------------------------------------------------------------------------


def rule(name: str = "MINE", when: Any = lambda f: f["n_retrieved"] > 0, **options: Any) -> Rule:
    options = {"severity": "warning", "reason": "because", "action": "do", **options}
    return Rule(name, when=when, **options)


def test_a_users_rule_comes_last_by_default(make_run: MakeRun) -> None:
    results = Results(make_run(FINE, {**FINE, **FIRES[SLOW]}), rules=[rule()])
    frame = results.frame
    assert frame["category"].tolist() == ["MINE", SLOW]
    assert frame["signal_mine"].tolist() == [True, True]
    assert frame["confidence"].tolist() == [1.0, 1.0]
    assert frame["reason"].iloc[0] == "because"
    assert frame["action"].iloc[0] == "do"
    assert results.counts().loc["MINE"].tolist() == [1, 1, 0, "warning", "do"]


def test_a_users_rule_stands_where_it_says(make_run: MakeRun) -> None:
    own = [
        rule("B", after=FailureCategory.UNKNOWN),
        rule("A", after="UNKNOWN"),
        rule("C", after="B"),
        rule("D"),
    ]
    names = RuleBook.of(own).names
    assert names == (UNKNOWN, "B", "C", "A", *RETRIEVAL, *SEMANTIC, SLOW, "D", PASS)
    frame = Results(make_run({**FINE, **FIRES[NO_CHUNK]}), rules=own).frame
    assert frame["category"].iloc[0] == "B"
    assert frame["signal_wrong_chunk_retrieved"].iloc[0]


def test_quality_order_puts_own_rules_at_the_head_of_their_severity() -> None:
    own = [
        rule("NOTE", severity="info"),
        rule("HM", severity="warning"),
        rule("BAD", severity="major"),
    ]
    order = RuleBook.of(own).quality_order
    assert order == (
        *(PASS, "NOTE", "HM", SLOW, RANK, PART),
        *("BAD", WRONG, UNGROUNDED, NO_CHUNK, UNKNOWN),
    )
    assert RuleBook.of(own).display_order[-3:] == ("NOTE", "HM", "BAD")


def test_a_comparison_with_a_missing_measure_is_not_measured(make_run: MakeRun) -> None:
    own = [rule(when=lambda f: f["retrieval_ms"] < 5)]
    frame = Results(make_run({"ms": 1.0}, {"ms": 9.0}, {"ms": None}), rules=own).frame
    assert frame["category"].iloc[:2].tolist() == ["MINE", PASS]
    assert pd.isna(frame["category"].iloc[2])
    assert "MINE" in frame["not_measured"].iloc[2]


def test_on_a_failed_or_unrun_query_a_users_rule_counts_only_if_it_fires(
    make_run: MakeRun,
) -> None:
    own = [rule(when=lambda f: f["query_id"] == "q2")]
    run = make_run({"status": "failed"}, {"status": "failed"}, {"status": None})
    frame = Results(run, rules=own).frame
    assert frame["signal_mine"].isna().tolist() == [True, False, True]
    assert frame["signal_mine"].iloc[1]
    assert frame["category"].iloc[:2].tolist() == [UNKNOWN, UNKNOWN]


def test_a_users_rule_sees_signals_measures_and_metadata(make_run: MakeRun) -> None:
    seen: list[pd.DataFrame] = []

    def when(frame: pd.DataFrame) -> Any:
        seen.append(frame)
        return frame["signal_wrong_chunk_retrieved"] & (frame["team"] == "x")

    query = {**FINE, **FIRES[NO_CHUNK]}
    run = make_run({**query, "metadata": {"team": "x"}}, {**query, "metadata": {"team": "y"}})
    results = Results(run, rules=[rule(when=when, after="UNKNOWN")])
    assert results.frame["category"].tolist() == ["MINE", NO_CHUNK]
    assert {"recall_at_5", "reciprocal_rank", "answer", "first_relevant_rank"} <= set(seen[0])
    assert "category" not in seen[0]


@pytest.mark.parametrize("kind", ["series", "array", "list", "nullable"])
def test_a_mask_may_be_anything_of_booleans(make_run: MakeRun, kind: str) -> None:
    made = {
        "series": lambda f: f["retrieval_ms"].notna(),
        "array": lambda f: np.array([True, False]),
        "list": lambda f: [True, False],
        "nullable": lambda f: pd.array([True, None], dtype="boolean"),
    }[kind]
    frame = Results(make_run(FINE, {**FINE, "ms": None}), rules=[rule(when=made)]).frame
    assert frame["category"].tolist() == ["MINE", PASS]


@pytest.mark.parametrize(
    ("when", "message"),
    [
        (lambda f: f["nothing"] > 1, r"rule 'MINE': when raised KeyError: 'nothing'; .*query_id"),
        (lambda f: [True], r"one value a row, got 1 for 2 rows"),
        (lambda f: f["query"], r"must return True or False for each row, got"),
        (lambda f: 3, r"must return True or False for each row, got int"),
        (
            lambda f: f["ms"] > 1 if "ms" in f else (f["retrieval_ms"] > 1).iloc[::-1],
            "another index",
        ),
    ],
)
def test_errors_in_a_users_rule_are_named(make_run: MakeRun, when: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Results(make_run(FINE, FINE | {"id": "other"}), rules=[rule(when=when)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": " "}, "needs a name"),
        ({"name": None}, "needs a name"),
        ({"severity": "bad"}, "severity must be one of info, warning, major, got 'bad'"),
        ({"when": "x > 1"}, "when must be callable"),
        ({"reason": 3}, "reason must be a text or a callable"),
        ({"action": None}, "action must be a text"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        rule(**options)


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ([rule("pass")], "there is a category of that name already"),
        ([rule("A"), rule("a")], "there is a category of that name already"),
        ([rule(after="PASS")], "after must be one of UNKNOWN, .*, got 'PASS'"),
        ([rule(after="NOPE")], "after must be one of"),
        (["MINE"], "must hold ragdiag.Rule objects, got 'MINE'"),
        ([rule(f"R{n}") for n in range(MAX_OWN_RULES + 1)], "at most 50 rules"),
    ],
)
def test_a_book_of_rules_that_makes_no_sense_is_refused(own: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        RuleBook.of(own)


def test_the_largest_book_keeps_every_rule_apart(make_run: MakeRun) -> None:
    own = [
        rule(f"R{n}", when=lambda f, n=n: pd.array([None if n % 2 else False], dtype="boolean"))
        for n in range(MAX_OWN_RULES)
    ]
    found = Results(make_run(FINE), rules=own).frame.iloc[0]
    assert found["category"] == PASS
    assert found["not_measured"] == tuple(f"R{n}" for n in range(1, MAX_OWN_RULES, 2))
