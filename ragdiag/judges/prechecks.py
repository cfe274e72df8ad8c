"""What can be said of an answer without any judge: it is empty, an echo, a refusal.

Bare phrases such as ":" or "Solution" are known to pass as correct with model judges ("one token to
fool"), so they never reach one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ragdiag.judges.words import content, fold, listed, sentences, squeeze, tokens

__all__ = ["Precheck", "claims_nothing", "declines", "hedges", "precheck"]

#: What a model says instead of an answer; looked for in folded text, a sentence at a time.
_DECLINING = listed(
    "i don't know|i do not know|don't have enough|do not have enough|"
    "not enough information|insufficient information|unable to answer|unable to provide|"
    "unable to determine|unable to find|cannot answer|can't answer|cannot be answered|"
    "can't be answered|cannot determine|can't determine|cannot be determined|"
    "could not be determined|cannot provide|can't provide|cannot find|can't find|"
    "could not find|couldn't find|no information|no relevant information|no answer|"
    "i'm not sure|i am not sure|not sure what|i'm sorry|i am sorry|i apologize|"
    "i apologise|sorry,|i don't have information|i do not have information|"
    "i don't have access|i do not have access|don't have any information|"
    "do not have any information|does not provide|doesn't provide|do not provide|"
    "don't provide|does not contain|doesn't contain|do not contain|does not mention|"
    "doesn't mention|do not mention|does not specify|doesn't specify|does not include|"
    "doesn't include|does not state|doesn't state|does not say|doesn't say|"
    "is not mentioned|are not mentioned|is not provided|not specified|is not stated|"
    "isn't mentioned|question is unclear|question is not clear|it is unclear|"
    "it is not clear|can't help with|cannot help with|can't help you|i can't assist|"
    "i cannot assist|need more information|need more context|more context is needed|"
    "no data available|not available in the|unanswerable|unable to assist|"
    "answer is unknown",
    "|",
)
#: What surrounds a refusal without adding a claim.
_COURTESY = listed(
    "please provide|please specify|please clarify|could you please|can you please|"
    "could you|can you provide|let me know|if you can|if you could|if you have|"
    "if you provide|i would be happy|i'd be happy|i'm happy to|i am happy to|"
    "happy to help|glad to help|let me help|i recommend|i suggest|would you like|"
    "feel free|please try|try searching|please let|please refer|please consult|hope this",
    "|",
)
#: Phrases that open a reply and say nothing; on their own they fool model judges.
_EMPTY_OPENERS = frozenset(
    listed(
        "solution|answer|the answer|the answer is|final answer|thought process|"
        "let solve this problem step by step|let think step by step|step by step|explanation|"
        "response|result|conclusion|yes sure|sure|here is the answer|here the answer|ok|okay|"
        "certainly|of course|thinking|reasoning|correct|true answer",
        "|",
    )
)
_HEDGES = listed(
    "it depends|depends on|may vary|might be|could be|it is possible|possibly|perhaps|"
    "it is difficult to|there are several|there are many|various|not certain|some say|"
    "some believe|widely believed|debated|disputed|or maybe",
    "|",
)
#: After these a refusing sentence goes on to answer ("I cannot be sure, but it is Rome").
_TURNS = (" but ", " however", " although ", " nevertheless", " based on ")
#: What may stand beside a repeated question.
_ECHO_FRAME = frozenset(listed("question query q you your user ask asked was is the answer"))
_VISIBLE = re.compile(r"\w")


class Precheck(NamedTuple):
    """Why an answer needs no judge.

    Attributes
    ----------
    kind : str
        ``empty``, ``no words``, ``opener``, ``echo`` or ``declines``.
    reason : str
        The same as a sentence.
    """

    kind: str
    reason: str


def precheck(query: str, expected_answer: str | None, answer: str) -> Precheck | None:
    """Return why `answer` cannot be correct whatever a judge would say, or None.

    Examples
    --------
    >>> precheck("Who wrote Emma?", "Jane Austen", "Solution:").kind
    'opener'
    >>> precheck("Who wrote Emma?", "Jane Austen", "Who wrote Emma?").kind
    'echo'
    >>> precheck("Who wrote Emma?", "Jane Austen", "Jane Austen") is None
    True
    """
    if not answer.strip():
        return Precheck("empty", "the answer is empty")
    if not _VISIBLE.search(fold(answer)):
        return Precheck("no words", "the answer has no word and no number")
    said = tokens(answer)
    expected = tokens(expected_answer or "")
    if said == expected:
        return None
    if " ".join(said) in _EMPTY_OPENERS:
        return Precheck("opener", "the answer is a phrase that opens a reply and says nothing")
    if _echoes(said, tokens(query)):
        return Precheck("echo", "the answer only repeats the question")
    if declines(answer) and not declines(expected_answer or "") and not _holds(said, expected):
        return Precheck("declines", "the answer declines to answer")
    return None


def _holds(said: list[str], expected: list[str]) -> bool:
    """Tell whether every word of the expected answer was said: then a judge should look."""
    return bool(expected) and set(content(expected) or expected) <= set(said)


def _echoes(said: list[str], asked: list[str]) -> bool:
    """Tell whether the answer is the question, word for word, and next to nothing else.

    The interrogative stays in an echo ("who wrote Emma") and goes in an answer that takes up the
    question's words, so the order and all words are looked at, not the set.
    """
    spare = len(said) - len(asked)
    if not asked or not 0 <= spare <= len(_ECHO_FRAME):
        return False
    return any(
        said[start : start + len(asked)] == asked
        and _ECHO_FRAME.issuperset(said[:start] + said[start + len(asked) :])
        for start in range(spare + 1)
    )


def claims_nothing(sentence: str) -> bool:
    """Tell whether a sentence is a refusal or a courtesy ("I'd be happy to help").

    Examples
    --------
    >>> claims_nothing("I'm happy to help!"), claims_nothing("I love crayons.")
    (True, False)
    """
    folded = squeeze(fold(sentence))
    return any(phrase in folded for phrase in (*_DECLINING, *_COURTESY))


def declines(answer: str) -> bool:
    """Tell whether `answer` as a whole declines: every sentence is a refusal or a courtesy.

    Examples
    --------
    >>> declines("I'm sorry, I don't know. Could you provide more context?")
    True
    >>> declines("I'm not sure about the year. The author was Jane Austen.")
    False
    """
    refused = False
    for sentence in sentences(answer):
        folded = squeeze(fold(sentence))
        if any(turn in folded for turn in _TURNS) and not folded.startswith("sorry, but"):
            return False
        if any(phrase in folded for phrase in _DECLINING):
            refused = True
        elif not any(phrase in folded for phrase in _COURTESY):
            return False
    return refused


def hedges(answer: str) -> int:
    """Return how many hedging phrases `answer` has."""
    folded = squeeze(fold(answer))
    return sum(phrase in folded for phrase in (*_HEDGES, *_DECLINING))
