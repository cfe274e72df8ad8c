"""``LexicalJudge``: screening without a model and without a network. Deterministic.

It has three outcomes for each side and says what they rest on. Its findings are suspicions, which
is why they are marked ``screened``; the confidence is the measured precision of the rule that
fired (:mod:`ragdiag.judges.lexical_weights`), or None where none was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ragdiag.judges import grounding
from ragdiag.judges.base import Judge
from ragdiag.judges.correctness import Match, alternatives, match
from ragdiag.judges.grounding import POOR_SUPPORT, Support, support
from ragdiag.judges.lexical_weights import (
    CORRECT,
    CORRECT_RULES,
    OTHER_NUMBERS,
    PRECHECK_PRECISION,
    UNGROUNDED,
    UNGROUNDED_RULES,
    VERSION,
    Rule,
)
from ragdiag.judges.linear import probability
from ragdiag.judges.prechecks import declines, precheck
from ragdiag.judges.words import tokens
from ragdiag.schema import Claim, JudgeResult, RetrievedChunk

__all__ = ["Finding", "LexicalJudge", "LexicalScores", "screen_correctness", "screen_grounding"]

#: The score was fitted on short expected answers; longer ones are decided by plain recall.
MAX_SCORED_WORDS = 6
LONG_CORRECT = 0.8
LONG_INCORRECT = 0.1
LONG_LEANING = 0.5
#: Questions and answers are read up to here; chunks up to ``words.MAX_CHARS`` together.
MAX_ANSWER_CHARS = 20_000
#: A quoted sentence is shown up to so many characters, a list up to so many items.
QUOTE_CHARS = 300
MAX_LISTED = 6

_YES_NO = frozenset(("yes", "no"))


class LexicalScores(NamedTuple):
    """The two scores behind the verdicts, for ranking and for curves.

    Attributes
    ----------
    correct : float or None
        Probability that the answer is correct; None without an expected answer.
    grounded : float
        Probability that the answer is grounded.
    """

    correct: float | None
    grounded: float


class Finding(NamedTuple):
    """One side's verdict, the measured precision of the rule that gave it, and what it saw."""

    verdict: bool | None
    confidence: float | None
    reason: str


class LexicalJudge(Judge):
    """Screens answers by their words: offline, deterministic, free.

    Parameters
    ----------
    unsure : bool
        Whether a side may be None, "could not tell" (default). False decides every answer, at the
        lower precision that the rules in between have.
    separators : str
        Which of ``/`` and ``|`` part alternatives in an expected answer; ``""`` for none.

    Notes
    -----
    It compares words. It cannot see that words which are all in the chunks were put together
    wrongly, nor that a correct answer was paraphrased without using one expected word.

    Examples
    --------
    >>> judge = LexicalJudge()
    >>> chunk = RetrievedChunk(id="d1", text="Card payments are refunded within 7 days.")
    >>> result = judge.evaluate("How long do refunds take?", "7 days",
    ...                         "Card payments are refunded within 7 days.", [chunk])
    >>> result.answer_correct, result.grounded, result.screened
    (True, True, True)
    """

    screened = True

    def __init__(self, *, unsure: bool = True, separators: str = "/|") -> None:
        self.unsure = unsure
        self.separators = separators

    @property
    def name(self) -> str:
        """``lexical``."""
        return "lexical"

    @property
    def identity(self) -> Mapping[str, Any]:
        """Version of the rules and the two options."""
        return {
            "judge": self.name,
            "version": VERSION,
            "unsure": self.unsure,
            "separators": self.separators,
        }

    def evaluate(
        self,
        query: str,
        expected_answer: str | None,
        generated_answer: str,
        context: Sequence[RetrievedChunk],
    ) -> JudgeResult:
        """Screen one answer; see :meth:`Judge.evaluate <ragdiag.judges.base.Judge.evaluate>`."""
        query, generated_answer = query[:MAX_ANSWER_CHARS], generated_answer[:MAX_ANSWER_CHARS]
        met = self._match(query, expected_answer, generated_answer)
        found = support(query, generated_answer, [chunk.text for chunk in context])
        correct = screen_correctness(
            query,
            expected_answer,
            generated_answer,
            met,
            probability(CORRECT, met.features) if met else None,
            unsure=self.unsure,
        )
        grounded = screen_grounding(
            generated_answer,
            found,
            probability(UNGROUNDED, found.features),
            has_context=any(chunk.text.strip() for chunk in context),
            unsure=self.unsure,
        )
        return JudgeResult(
            answer_correct=correct.verdict,
            grounded=grounded.verdict,
            confidence=_common(correct.confidence, grounded.confidence),
            correct_confidence=correct.confidence,
            grounded_confidence=grounded.confidence,
            reason=f"Correctness: {correct.reason}. Groundedness: {grounded.reason}.",
            claims=_claims(found, context),
            missing_facts=list(met.missing) if met else [],
            screened=True,
        )

    def scores(
        self,
        query: str,
        expected_answer: str | None,
        generated_answer: str,
        context: Sequence[RetrievedChunk],
    ) -> LexicalScores:
        """Return the two scores, without the pre-checks and without the evidence."""
        query, generated_answer = query[:MAX_ANSWER_CHARS], generated_answer[:MAX_ANSWER_CHARS]
        met = self._match(query, expected_answer, generated_answer)
        texts = [chunk.text for chunk in context]
        found = support(query, generated_answer, texts, evidence=False)
        return LexicalScores(
            probability(CORRECT, met.features) if met else None,
            1 - probability(UNGROUNDED, found.features),
        )

    def _match(self, query: str, expected: str | None, answer: str) -> Match | None:
        if expected is None:
            return None
        return match(query, alternatives(expected[:MAX_ANSWER_CHARS], self.separators), answer)


def screen_correctness(
    query: str,
    expected: str | None,
    answer: str,
    met: Match | None,
    score: float | None,
    *,
    unsure: bool = True,
) -> Finding:
    """Decide one side from the match and the probability that the answer is correct."""
    if expected is None:
        return Finding(None, None, "there is no expected answer")
    stopped = precheck(query, expected, answer)
    if stopped:
        return Finding(False, PRECHECK_PRECISION.get(stopped.kind, 1.0), stopped.reason)
    if declines(expected):
        both = declines(answer)
        told = "it declines, as expected" if both else "a refusal is expected"
        return Finding(both or None, None, told)
    if met is None or score is None:
        return Finding(None, None, "the expected answer has no word to look for")
    if met.negated:
        return Finding(None, None, "the expected words are there, after a negation")
    if met.guessed:
        return Finding(None, None, f"{met.alternative!r} is one of several guesses")
    yes_no = _YES_NO.intersection(tokens(met.alternative)[:1])
    if yes_no and met.missing and _YES_NO.isdisjoint(tokens(answer)[:1]):
        return Finding(None, None, "a yes or no is expected and may be said in other words")
    told = _told(met)
    if met.words > MAX_SCORED_WORDS:
        return _screen_long(met, told, unsure)
    rule = _rule(CORRECT_RULES, score)
    if rule.verdict is None and met.other_numbers:
        return _apply(OTHER_NUMBERS, f"{told}, and other numbers are given", unsure)
    return _apply(rule, told, unsure)


def _screen_long(met: Match, told: str, unsure: bool) -> Finding:
    """Decide by recall alone: no human labels were at hand for long expected answers."""
    complete = met.found >= LONG_CORRECT and not met.numbers_missing
    if complete or met.found <= LONG_INCORRECT:
        return Finding(complete, None, told)
    if unsure:
        return Finding(None, None, f"{told}, which is too little to tell")
    return Finding(met.found >= LONG_LEANING, None, told)


def screen_grounding(
    answer: str, found: Support, score: float, *, has_context: bool = True, unsure: bool = True
) -> Finding:
    """Decide the other side from what was found and the probability that it is *not* grounded."""
    if declines(answer):
        return Finding(None, None, "the answer declines, so it claims nothing")
    if not found.facts:
        return Finding(None, None, "the answer has no word that states a fact")
    if not has_context:
        return Finding(False, 1.0, "there is no context that could support it")
    return _apply(_rule(UNGROUNDED_RULES, score), _lacks(found), unsure)


def _apply(rule: Rule, told: str, unsure: bool) -> Finding:
    if rule.verdict is not None:
        return Finding(rule.verdict, rule.precision, told)
    if unsure:
        return Finding(None, None, f"{told}, which is too little to tell")
    return Finding(rule.leaning, rule.precision, told)


def _common(*confidences: float | None) -> float | None:
    """Return the smaller confidence; None if a side has none, which must not borrow the other's."""
    known = [confidence for confidence in confidences if confidence is not None]
    return min(known) if len(known) == len(confidences) else None


def _rule(rules: Sequence[Rule], score: float) -> Rule:
    return next(rule for rule in rules if score <= rule.upto)


def _told(met: Match) -> str:
    """Say how much of the expected answer was found."""
    text = (
        f"{met.words - len(met.missing)} of {met.words} words of the expected answer "
        f"{met.alternative[:QUOTE_CHARS]!r} found"
    )
    return f"{text}, missing {_list(met.missing)}" if met.missing else text


def _lacks(found: Support) -> str:
    """Say what the context lacks of the answer."""
    absent = dict(zip(grounding.FEATURES, found.features, strict=True))
    parts = [f"the context lacks {absent['words_absent']:.0%} of the answer's words"]
    if found.numbers:
        parts.append(f"the numbers {_list(found.numbers)}")
    if found.names:
        parts.append(f"the names {_list(found.names)}")
    if found.conflicts:
        parts.append(f"a record denies {_list(found.conflicts)}")
    return ", ".join(parts)


def _list(items: Sequence[str]) -> str:
    shown = ", ".join(repr(item) for item in items[:MAX_LISTED])
    return f"{shown} and {len(items) - MAX_LISTED} more" if len(items) > MAX_LISTED else shown


def _claims(found: Support, context: Sequence[RetrievedChunk]) -> list[Claim]:
    return [
        Claim(
            text=sentence.text[:QUOTE_CHARS],
            verdict="supported" if sentence.share >= POOR_SUPPORT else "not_found",
            chunk_id=context[sentence.chunk].id if sentence.chunk >= 0 else None,
            quote=sentence.match[:QUOTE_CHARS] or None,
        )
        for sentence in found.sentences
    ]
