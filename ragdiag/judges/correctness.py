"""Is the answer the expected one? Eleven plain features of the two texts, for a linear score.

The expected answer may hold alternatives (``5/five``, ``Paris | Paris, France``); the one that fits
best counts. What is measured is recall: a long answer is not punished for its length. Words that
the question has already count less, since repeating them says nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from ragdiag.judges.prechecks import hedges
from ragdiag.judges.words import content, fold, is_number, listed, sentences, similar, tokens

__all__ = ["FEATURES", "Match", "alternatives", "match"]

#: Weight of an expected word that the question has already.
ASKED_WEIGHT = 0.35
#: Credit for a word that is there but for a typing error or an ending.
SIMILAR_CREDIT = 0.9
#: Credit for a year of which only the decade or the century is given.
DECADE_CREDIT = 0.5
CENTURY_CREDIT = 0.3
#: An expected answer has no more alternatives than this.
MAX_ALTERNATIVES = 100
#: An alternative counts as found in full from this share on.
COMPLETE = 0.99
#: So many items joined by commas and "or", of at most so many words, are guesses.
GUESSES = 3
GUESS_WORDS = 4
#: So many words before a match are looked at for a negation.
NEGATION_WINDOW = 3
NEGATIONS = frozenset(listed("not no never neither nor without isn wasn aren weren didn doesn"))

#: What the score is made of, in order; see :func:`match`.
FEATURES: tuple[str, ...] = (
    "new_words_found",  # share of the expected words that the question does not have
    "none_found",  # no expected word at all
    "last_word_found",  # the last one: a family name, a unit
    "phrase_found",  # they stand together
    "alternatives_found",  # share of the alternatives that are there in full
    "all_in_question",  # the expected answer adds no word to the question
    "numbers_missing",  # share of the expected numbers that are not there
    "precision",  # expected words among the words that the answer adds to the question
    "length",  # log(1 + words of the answer)
    "phrase_found_x_length",  # a phrase in a long answer is weaker evidence
    "hedges",  # "it depends", "might be", at most 3
)

#: A people or language, and its country; either is taken for the other.
_PEOPLES = {
    name: country
    for country, names in {
        "britain": "british briton england english",
        "scotland": "scottish scot",
        "ireland": "irish",
        "wales": "welsh",
        "france": "french",
        "germany": "german",
        "spain": "spanish spaniard",
        "italy": "italian",
        "portugal": "portuguese",
        "netherlands": "dutch netherland holland",
        "belgium": "belgian",
        "switzerland": "swis swiss",
        "austria": "austrian",
        "poland": "polish pole",
        "russia": "russian soviet",
        "sweden": "swedish swede",
        "norway": "norwegian",
        "denmark": "danish dane",
        "finland": "finnish finn",
        "greece": "greek",
        "turkey": "turkish turk",
        "china": "chinese",
        "japan": "japanese",
        "india": "indian",
        "egypt": "egyptian",
        "mexico": "mexican",
        "canada": "canadian",
        "australia": "australian",
        "us": "american america",
        "brazil": "brazilian",
        "rome": "roman",
        "israel": "israeli",
        "persia": "persian",
        "europe": "european",
        "africa": "african",
        "asia": "asian",
    }.items()
    for name in names.split()
}

_UNIT_AFTER_SLASH = frozenset(
    listed("h hr hour s sec second min minute day week month year l ml kg g m km c f")
)
_ENUMERATION = re.compile(r",\s{0,4}or\b|,|\bor\b")
_BAR = re.compile(r"[|\n]")
_WORDS_GLUED = re.compile(r"(?<=[a-z]{2})(?=[A-Z][a-z])")


class Match(NamedTuple):
    """How an answer meets the alternative of the expected answer that fits best.

    Attributes
    ----------
    features : tuple of float
        Values in the order of :data:`FEATURES`.
    alternative : str
        The alternative that fits best.
    words : int
        How many words of it carry facts.
    found : float
        The weighted share of them that the answer has.
    missing : tuple of str
        Those that it lacks.
    numbers_missing : tuple of str
        Those of them that are numbers.
    other_numbers : bool
        Whether every expected number is missing while the answer gives others.
    negated : bool
        Whether a negation stands close before each place where they are found.
    guessed : bool
        Whether they are one of several guesses ("Lyon, Paris or Nice").
    """

    features: tuple[float, ...]
    alternative: str
    words: int
    found: float
    missing: tuple[str, ...]
    numbers_missing: tuple[str, ...]
    other_numbers: bool
    negated: bool
    guessed: bool


def alternatives(expected_answer: str, separators: str = "/|") -> list[str]:
    """Return the answers of which any one is right.

    ``|`` and line ends always part them; ``/`` does unless it is part of a date, a unit, an
    abbreviation or a pair of plain words.

    Examples
    --------
    >>> alternatives("March 8, 1987/1987"), alternatives("Paris | Paris, France")
    (['March 8, 1987', '1987'], ['Paris', 'Paris, France'])
    >>> alternatives("120 km/h"), alternatives("TCP/IP"), alternatives("9/11")
    (['120 km/h'], ['TCP/IP'], ['9/11'])
    """
    whole = expected_answer.strip()
    parts = _BAR.split(whole) if "|" in separators else [whole]
    if "/" in separators:
        parts = [piece for part in parts for piece in _split_slashes(part)]
    return [part.strip() for part in parts if part.strip()][:MAX_ALTERNATIVES] or [whole]


def _split_slashes(text: str) -> list[str]:
    pieces = [piece.strip() for piece in text.split("/")]
    if len(pieces) == 1:
        return [text]
    if any(not piece for piece in pieces):  # a path, a URL
        return [text]
    short_numbers = all(piece.isdigit() and len(piece) <= 2 for piece in pieces[:2])
    abbreviations = all(len(piece) <= 4 and not piece.isdigit() for piece in pieces)
    plain_pair = len(pieces) == 2 and all(piece.isalpha() and piece.islower() for piece in pieces)
    unit = pieces[-1].casefold() in _UNIT_AFTER_SLASH and any(c.isdigit() for c in pieces[0])
    spaced = " / " in text
    if not spaced and (short_numbers or abbreviations or plain_pair or unit):
        return [text]
    return pieces


class Answer:
    """The words of an answer, cut once and met by several alternatives."""

    def __init__(self, query: str, answer: str) -> None:
        self.asked = frozenset(tokens(query))
        self.words = tokens(_WORDS_GLUED.sub(" ", answer))
        self.first: dict[str, int] = {}
        for position, word in enumerate(self.words):
            self.first.setdefault(word, position)
            people = _PEOPLES.get(word)
            if people:
                self.first.setdefault(people, position)
        self.numbers = [word for word in self.first if is_number(word)]
        self.new_numbers = [word for word in self.numbers if word not in self.asked]
        self.line = f" {' '.join(self.words)} "
        self.content_line = f" {' '.join(content(self.words))} "
        self.squeezed = "".join(self.words)
        self.new_words = max(1, len(set(content(self.words)) - self.asked))

    def find(self, word: str) -> tuple[float, int]:
        """Return how well `word` is there, in [0, 1], and at which position (-1: not there)."""
        position = self.first.get(word, self.first.get(_PEOPLES.get(word, word)))
        if position is not None:
            return 1.0, position
        if word[0].isdigit():
            return self._find_year(word)
        for other, position in self.first.items():
            if similar(word, other):
                return SIMILAR_CREDIT, position
        return 0.0, -1

    def _find_year(self, word: str) -> tuple[float, int]:
        """Look for a year with a footnote's digit glued to it, then for its decade or century."""
        if len(word) != 4 or not word.isdigit():
            return 0.0, -1
        for number in self.numbers:
            if len(number) == 5 and number.startswith(word):
                return SIMILAR_CREDIT, self.first[number]
        decade = f"{word[:3]}0s"
        if decade in self.first:
            return DECADE_CREDIT, self.first[decade]
        position = self.first.get("century", 0)
        if position and self.words[position - 1] == str(int(word[:2]) + 1):
            return CENTURY_CREDIT, position
        return 0.0, -1


def match(query: str, expected: Sequence[str], answer: str) -> Match | None:
    """Measure how `answer` meets the best of the `expected` alternatives.

    Parameters
    ----------
    query : str
        The question, whose words count less.
    expected : sequence of str
        The alternatives (:func:`alternatives`).
    answer : str
        What was answered.

    Returns
    -------
    Match or None
        None when no alternative has a word.

    Examples
    --------
    >>> found = match("How long do refunds take?", ["7 days"], "Refunds take seven days.")
    >>> found.found, found.missing
    (1.0, ())
    """
    said = Answer(query, answer)
    met = [found for alternative in expected if (found := _meet(said, alternative))]
    if not met:
        return None
    features, best = max(met, key=_fit)
    features["alternatives_found"] = sum(found.found >= COMPLETE for _, found in met) / len(met)
    features["hedges"] = float(min(3, hedges(answer)))
    return best._replace(
        features=tuple(features[name] for name in FEATURES),
        guessed=best.found >= COMPLETE and _guessed(query, best.alternative, answer),
    )


def _fit(met: tuple[dict[str, float], Match]) -> tuple[float, int]:
    """Order alternatives: the share found, then a phrase and its last word, then the longer."""
    features, found = met
    bonus = 0.2 * features["phrase_found"] + 0.1 * features["last_word_found"]
    return found.found + bonus, len(found.alternative)


def _meet(said: Answer, alternative: str) -> tuple[dict[str, float], Match] | None:
    """Measure one alternative; what concerns all of them together is filled in later."""
    words = tokens(_WORDS_GLUED.sub(" ", alternative))
    facts = content(words) or words
    if not facts:
        return None
    credit, position = zip(*(said.find(word) for word in facts), strict=True)
    phrase = _has_phrase(said, words, facts)
    if phrase:  # written apart or together, its words are there
        credit = tuple(max(value, SIMILAR_CREDIT) for value in credit)
    weight = [ASKED_WEIGHT if word in said.asked else 1.0 for word in facts]
    found = sum(w * c for w, c in zip(weight, credit, strict=True)) / sum(weight)
    new = [value for word, value in zip(facts, credit, strict=True) if word not in said.asked]
    numbers = [value for word, value in zip(facts, credit, strict=True) if is_number(word)]
    missing = tuple(word for word, value in zip(facts, credit, strict=True) if value == 0)
    places = [place for place in position if place >= 0]
    length = math.log1p(len(said.words))
    features = {
        "new_words_found": sum(new) / len(new) if new else 1.0,
        "none_found": float(found == 0),
        "last_word_found": credit[-1],
        "phrase_found": float(phrase),
        "all_in_question": float(not new),
        "numbers_missing": sum(value < 1 for value in numbers) / len(numbers) if numbers else 0.0,
        "precision": min(1.0, sum(credit) / said.new_words),
        "length": length,
        "phrase_found_x_length": float(phrase) * length,
    }
    return features, Match(
        features=(),
        alternative=alternative,
        words=len(facts),
        found=found,
        missing=missing,
        numbers_missing=tuple(word for word in missing if is_number(word)),
        other_numbers=bool(numbers) and not any(numbers) and bool(said.new_numbers),
        negated=bool(places) and all(_negated(said.words, place) for place in places),
        guessed=False,
    )


def _has_phrase(said: Answer, words: list[str], facts: list[str]) -> bool:
    """Tell whether the words of the alternative stand together in the answer."""
    if f" {' '.join(words)} " in said.line or f" {' '.join(facts)} " in said.content_line:
        return True
    glued = "".join(words)  # "sub marine" and "submarine"
    return len(glued) >= 6 and not glued.isdigit() and glued in said.squeezed


def _guessed(query: str, alternative: str, answer: str) -> bool:
    """Tell whether the answer names the alternative only among three or more, joined by "or"."""
    wanted = set(content(tokens(alternative)))
    if "or" in tokens(query) or "or" in tokens(alternative):
        return False
    verdicts = [
        _among_guesses(wanted, sentence)
        for sentence in sentences(answer)
        if wanted <= set(tokens(sentence))
    ]
    return bool(verdicts) and all(verdicts)


def _among_guesses(wanted: set[str], sentence: str) -> bool:
    parts = [tokens(part) for part in _ENUMERATION.split(fold(sentence))]
    last = len(parts) - 1
    # Before the first and after the last item the sentence itself stands, of any length.
    short = [
        0 < len(part) <= GUESS_WORDS or number in (0, last) for number, part in enumerate(parts)
    ]
    return (
        len(parts) >= GUESSES
        and " or " in f" {fold(sentence)} "
        and all(short)
        and any(wanted <= set(part) for part in parts)
    )


def _negated(words: list[str], position: int) -> bool:
    return not NEGATIONS.isdisjoint(words[max(0, position - NEGATION_WINDOW) : position])
