"""One query in words: what every rule found, and the facts the diagnosis rests on.

Nothing is decided here, and nothing is written before someone looks at the query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ragdiag.diagnosis import FIRED, NOT_APPLICABLE, NOT_MEASURED, PASSED, STATE_NAMES
from ragdiag.reasons import in_percent, milliseconds
from ragdiag.rules import Rule
from ragdiag.schema import RuleOutcome, Settings
from ragdiag.taxonomy import FailureCategory

__all__ = ["Case", "condition", "evidence_lines", "trail"]

#: More ids than this are counted in a line of evidence, not listed.
MAX_IDS = 20


@lru_cache(maxsize=256)
def condition(rule: Any, settings: Settings) -> str:
    """Return when a rule fires, in words, with the settings filled in."""
    if isinstance(rule, Rule):
        return rule.condition
    values = {
        **settings.model_dump(),
        "latency_threshold_ms": milliseconds(settings.latency_threshold_ms),
    }
    text: str = rule.condition.format(**values)
    return text


@dataclass(frozen=True)
class Case:
    """What there is to say of one query.

    Attributes
    ----------
    settings : Settings
    rules : tuple
        In order of precedence.
    states : sequence of int
        What each rule found.
    primary : int
        Position of the category in the rules; their number for ``PASS``, -1 where missing.
    status, error : str or None
        How the query ended.
    expected : sequence of (str, int or None)
        Relevant chunk ids and the rank at which each came.
    retrieved : sequence of str
        Chunk ids in the pipeline's order.
    n_found : int
        Relevant chunks in the top k.
    latency : mapping of str to float
        Milliseconds by stage.
    verdict : mapping of str to object
        ``answer_correct, grounded`` and their confidence and error, ``judge, judge_reason,
        screened``; None where missing, empty where the query was not judged.
    answer, expected_answer : str or None
    own_reasons : mapping of str to str
        Reasons of the user's rules that fired.
    suspect_label : bool or None
    passages : sequence of mapping
        Of a query whose evidence are passages: ``passage`` (what to call it), ``covered`` (share of
        it in the top k), ``covered_at_any_rank``, ``split``; empty where ids count. The names of
        `expected` are then those of the passages, and a rank is the depth at which one is there.
    recall : float or None
        At k.
    first_rank : int or None
        Rank of the first relevant chunk.
    """

    settings: Settings
    rules: Sequence[Any]
    states: Sequence[int]
    primary: int
    status: str | None
    error: str | None
    expected: Sequence[tuple[str, int | None]]
    retrieved: Sequence[str]
    n_found: int
    latency: Mapping[str, float]
    verdict: Mapping[str, Any]
    answer: str | None
    expected_answer: str | None
    own_reasons: Mapping[str, str]
    suspect_label: bool | None
    passages: Sequence[Mapping[str, Any]] = ()
    recall: float | None = None
    first_rank: int | None = None

    @property
    def first(self) -> tuple[str, int] | None:
        """The relevant chunk that came first and its rank."""
        if self.passages:
            rank = self.first_rank
            return None if rank is None else (self.retrieved[rank - 1], rank)
        came = [(rank, place, name) for place, (name, rank) in enumerate(self.expected) if rank]
        return (min(came)[2], min(came)[0]) if came else None


def trail(case: Case) -> list[RuleOutcome]:
    """Return what every rule found, in order of precedence, with the numbers it looked at."""
    return [
        RuleOutcome(
            rule=rule.name,
            state=STATE_NAMES[state],
            primary=place == case.primary,
            condition=condition(rule, case.settings),
            detail=_detail(rule, state, case),
        )
        for place, (rule, state) in enumerate(zip(case.rules, case.states, strict=True))
    ]


def evidence_lines(case: Case) -> list[str]:
    """Return the findings the diagnosis rests on, one a line."""
    lines: list[str] = []
    if 0 <= case.primary < len(case.rules):
        rule = case.rules[case.primary]
        if rule.name not in _RETRIEVAL:
            lines.append(_detail(rule, FIRED, case))
        lines += _EVIDENCE.get(rule.name, _passed)(case)
    else:
        lines += _passed(case)
    for place, (rule, state) in enumerate(zip(case.rules, case.states, strict=True)):
        if state == FIRED and place != case.primary:
            lines.append(f"also fired: {rule.name}: {_detail(rule, state, case)}")
        elif state == NOT_MEASURED:
            lines.append(f"not measured: {rule.name}: {_detail(rule, state, case)}")
    if case.suspect_label:
        lines.append(
            "suspected label: the answer is correct and grounded without any of the relevant chunks"
        )
    return lines


def _detail(rule: Any, state: int, case: Case) -> str:
    if isinstance(rule, Rule):
        return case.own_reasons.get(rule.name) or (
            "no evidence" if state == NOT_MEASURED else "does not hold"
        )
    if state == NOT_MEASURED:
        return _why_not_measured(rule.category, case)
    return _DETAILS[rule.category](case, state)


def _why_not_measured(category: FailureCategory, case: Case) -> str:
    if case.status == "failed":
        return "the pipeline failed"
    if category is FailureCategory.UNKNOWN:
        return "it was not recorded how the query ended"
    if category is FailureCategory.LATENCY_OUTLIER:
        return "retrieval was not timed"
    if category in (FailureCategory.RETRIEVED_BUT_NOT_GROUNDED, FailureCategory.ANSWER_INCORRECT):
        side = "grounded" if category is FailureCategory.RETRIEVED_BUT_NOT_GROUNDED else "correct"
        if case.verdict.get(f"{side}_error"):
            return str(case.verdict[f"{side}_error"])
        return "the judge gave no verdict" if case.verdict else "not judged"
    if case.passages:
        return "the chunks could not be compared with the evidence: texts or offsets are missing"
    return "no retrieval was recorded" if case.expected else "no relevant chunk is known"


def _ended(case: Case, state: int) -> str:
    if state == FIRED:
        return case.error or "failed, no error was recorded"
    total = case.latency.get("total_ms")
    return "completed" if total is None else f"completed in {milliseconds(total)} ms"


def _came(case: Case, state: int) -> str:
    if state == PASSED and case.first:
        what = "chunk with evidence" if case.passages else "relevant chunk"
        return f"first {what} {case.first[0]} at rank {case.first[1]}"
    if case.passages:
        return f"no chunk with evidence in the top {case.settings.k}; {_covered(case)}"
    return f"0 of {len(case.expected)}; {_places(case, _missing(case))}"


def _complete(case: Case, state: int) -> str:
    if state == NOT_APPLICABLE:
        return "no relevant chunk came"
    found = f"{case.n_found} of {len(case.expected)}"
    if case.passages:
        noun = "passage" if len(case.expected) == 1 else "passages"
        found = f"{found} {noun}"
    if state == PASSED:
        return f"{found} in the top {case.settings.k}"
    if case.passages:
        return f"{found}; {_covered(case, only_missing=True)}"
    return f"{found}; {_places(case, _missing(case))}"


def _ranked(case: Case, state: int) -> str:
    if case.first is None or (not case.n_found and not case.passages):
        return "no relevant chunk came"
    if state == NOT_APPLICABLE:
        return f"only {case.n_found} of {len(case.expected)} in the top {case.settings.k}"
    return f"{case.first[0]} at rank {case.first[1]} (limit {case.settings.rank_threshold})"


def _judged(side: str, yes: str, no: str) -> Callable[[Case, int], str]:
    def detail(case: Case, state: int) -> str:
        screened = case.verdict.get("screened")
        finding = no if state == FIRED else yes
        text = f"{'suspected' if screened else 'judged'} {finding}"
        confidence = case.verdict.get(f"{side}_confidence")
        if confidence is not None:
            text += f", confidence {confidence:.2f}"
        return text

    return detail


def _time(case: Case, state: int) -> str:
    limit = case.settings.latency_threshold_ms
    taken = milliseconds(case.latency["retrieval_ms"], beside=limit)
    return f"{taken} ms (limit {milliseconds(limit)} ms)"


_DETAILS: dict[FailureCategory, Callable[[Case, int], str]] = {
    FailureCategory.UNKNOWN: _ended,
    FailureCategory.WRONG_CHUNK_RETRIEVED: _came,
    FailureCategory.INSUFFICIENT_CONTEXT: _complete,
    FailureCategory.WRONG_CHUNK_RANK: _ranked,
    FailureCategory.RETRIEVED_BUT_NOT_GROUNDED: _judged("grounded", "grounded", "not grounded"),
    FailureCategory.ANSWER_INCORRECT: _judged("correct", "correct", "incorrect"),
    FailureCategory.LATENCY_OUTLIER: _time,
}


def _missing(case: Case) -> list[tuple[str, int | None]]:
    k = case.settings.k
    return [(name, rank) for name, rank in case.expected if rank is None or rank > k]


def _places(case: Case, pairs: Sequence[tuple[str, int | None]]) -> str:
    return _listed(
        [f"{name} {'not retrieved' if rank is None else f'at rank {rank}'}" for name, rank in pairs]
    )


def _covered(case: Case, *, only_missing: bool = False) -> str:
    """Say how much of each passage is in the top k, and what stands in the way of the rest."""
    missing = {name for name, _ in _missing(case)}
    said = []
    for passage in case.passages:
        name, covered, deeper = (
            passage[key] for key in ("passage", "covered", "covered_at_any_rank")
        )
        if only_missing and name not in missing:
            continue
        text = f"{name} {'not measured' if covered is None else in_percent(covered)}"
        remarks = []
        if passage["split"] and covered is not None:
            remarks.append("a chunk's border splits it")
        if covered is not None and deeper > covered:
            remarks.append(f"{in_percent(deeper)} with all that was retrieved")
        said.append(f"{text} ({'; '.join(remarks)})" if remarks else text)
    return _listed(said)


def _listed(items: Sequence[str]) -> str:
    if not items:
        return "none"
    shown = ", ".join(items[:MAX_IDS])
    hidden = len(items) - MAX_IDS
    return f"{shown} and {hidden:,} more" if hidden > 0 else shown


def _retrieval_lines(case: Case) -> list[str]:
    k = case.settings.k
    if case.passages:
        recall = "not measured" if case.recall is None else f"{case.recall:.2f}"
        return [
            f"evidence: {_listed([name for name, _ in case.expected])}",
            f"covered in the top {k}: {_covered(case)}",
            f"retrieved in the top {k}: {_listed(list(case.retrieved[:k]))}",
            f"recall@{k}: {recall} of the evidence's characters",
        ]
    found = [(name, rank) for name, rank in case.expected if rank is not None and rank <= k]
    return [
        f"expected chunks: {_listed([name for name, _ in case.expected])}",
        f"found in the top {k}: {_places(case, found) if found else 'none'}",
        f"missing from the top {k}: {_places(case, _missing(case)) if _missing(case) else 'none'}",
        f"retrieved in the top {k}: {_listed(list(case.retrieved[:k]))}",
        f"recall@{k}: {case.n_found / len(case.expected):.2f}",
    ]


def _rank_lines(case: Case) -> list[str]:
    return [*_retrieval_lines(case), f"rank threshold: {case.settings.rank_threshold}"]


def _judge_lines(case: Case) -> list[str]:
    lines = []
    if case.verdict.get("judge"):
        lines.append(f"judge: {case.verdict['judge']}")
    if case.verdict.get("judge_reason"):
        lines.append(f"judge's reason: {case.verdict['judge_reason']}")
    return lines


def _grounded_lines(case: Case) -> list[str]:
    return [
        *_judge_lines(case),
        f"answer: {case.answer or 'none was recorded'}",
        *_retrieval_passed(case),
    ]


def _incorrect_lines(case: Case) -> list[str]:
    return [
        *_judge_lines(case),
        f"expected answer: {case.expected_answer or 'none is known'}",
        f"answer: {case.answer or 'none was recorded'}",
        *_retrieval_passed(case),
    ]


def _failure_lines(case: Case) -> list[str]:
    return [f"status: {case.status}", *_times(case)]


def _passed(case: Case) -> list[str]:
    """Every check that was measured and passed, in the words of the trail."""
    return [
        f"{rule.name} passed: {_detail(rule, state, case)}"
        for rule, state in zip(case.rules, case.states, strict=True)
        if state == PASSED and rule.is_check
    ]


def _retrieval_passed(case: Case) -> list[str]:
    return [line for line in _passed(case) if line.split(" ", 1)[0] in _RETRIEVAL]


def _times(case: Case) -> list[str]:
    stages = {"retrieval_ms": "retrieval", "generation_ms": "generation"}
    return [
        f"{stages[name]}: {milliseconds(value)} ms"
        for name, value in case.latency.items()
        if name in stages
    ]


#: Rules whose evidence lines say all that their detail says.
_RETRIEVAL: tuple[str, ...] = (
    FailureCategory.WRONG_CHUNK_RETRIEVED,
    FailureCategory.INSUFFICIENT_CONTEXT,
    FailureCategory.WRONG_CHUNK_RANK,
)

_EVIDENCE: dict[str, Callable[[Case], list[str]]] = {
    FailureCategory.UNKNOWN: _failure_lines,
    FailureCategory.WRONG_CHUNK_RETRIEVED: _retrieval_lines,
    FailureCategory.INSUFFICIENT_CONTEXT: _retrieval_lines,
    FailureCategory.WRONG_CHUNK_RANK: _rank_lines,
    FailureCategory.RETRIEVED_BUT_NOT_GROUNDED: _grounded_lines,
    FailureCategory.ANSWER_INCORRECT: _incorrect_lines,
}
