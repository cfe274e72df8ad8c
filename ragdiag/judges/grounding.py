"""Do the chunks hold what the answer says? Plain features of words, numbers, times and records.

No model and no network: what is looked at is which words of the answer stand in the chunks. That
finds invented names, numbers and facts; it cannot find words that are all there and put together
wrongly, so it is a screening.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ragdiag.judges.prechecks import claims_nothing
from ragdiag.judges.words import (
    FRAME_WORDS,
    MAX_CHARS,
    content,
    fold,
    is_number,
    listed,
    sentences,
    squeeze,
    tokens,
)

__all__ = ["FEATURES", "Support", "SupportedSentence", "support"]

#: What the score is made of, in order.
FEATURES: tuple[str, ...] = (
    "words_absent",  # share of the answer's fact words, each counted as often as it occurs
    "distinct_words_absent",  # the same, each word once, the question's words taken as known
    "trigrams_absent",  # share of three words in a row that no chunk has in a row
    "numbers_absent",  # log(1 + numbers that are in no chunk and not in the question)
    "times_absent",  # times of day that no chunk has
    "record_conflicts",  # log(1 + things a record denies and the answer asserts)
    "own_voice",  # the answer says "I" or "my" and no chunk does
)

#: Bounds of the evidence that is looked for, so that hostile input costs little.
MAX_ANSWER_SENTENCES = 60
MAX_CONTEXT_SENTENCES = 5_000
#: A sentence with fewer fact words is not looked up: "Yes." matches anything.
MIN_SENTENCE_WORDS = 2
#: Below this share of words in its best chunk sentence, a sentence counts as poorly supported.
POOR_SUPPORT = 0.5

_OWN_VOICE = frozenset(("i", "my", "me", "mine"))
_DENIALS = frozenset(
    listed(
        "not no never without none neither nor lack lacking unavailable isn doesn don aren "
        "unfortunately unknown unclear"
    )
)
#: Words of record keys that say nothing on their own (``RestaurantsGoodForGroups``).
_KEY_FILLER = frozenset(listed("restaurant business good for is has have the of"))
_NO = (False, None, "no", "none", "false", "")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CLAUSE_END = re.compile(r"[,;]|\bbut\b|\band\b")
_TIME = re.compile(r"\b(\d{1,2})(?::(\d{1,2}))?\s?([ap])\.?m\b|\b(\d{1,2}):(\d{1,2})\b")
_LIST_ITEM = re.compile(r"(?:^|\n)[ \t]{0,8}(\d{1,2})[.)]")
_CAPITALISED = re.compile(r"(?<=[\w,;] )[A-Z][\w'’-]{1,60}")


class SupportedSentence(NamedTuple):
    """A sentence of the answer and where the chunks come closest to it.

    Attributes
    ----------
    text : str
        The sentence.
    share : float
        The share of its fact words that the closest sentence of a chunk has.
    chunk : int
        Position of that chunk, -1 when no chunk has any of its words.
    match : str
        The closest sentence.
    """

    text: str
    share: float
    chunk: int
    match: str


class Support(NamedTuple):
    """What of an answer the chunks hold.

    Attributes
    ----------
    features : tuple of float
        Values in the order of :data:`FEATURES`.
    facts : int
        How many of the answer's words state a fact; without any there is nothing to support.
    numbers, names, conflicts : tuple of str
        Numbers and names that no chunk has; things that a record denies and the answer asserts.
    sentences : tuple of SupportedSentence
        The answer's sentences with the closest sentence of a chunk.
    """

    features: tuple[float, ...]
    facts: int
    numbers: tuple[str, ...]
    names: tuple[str, ...]
    conflicts: tuple[str, ...]
    sentences: tuple[SupportedSentence, ...]


def support(query: str, answer: str, chunks: Sequence[str], *, evidence: bool = True) -> Support:
    """Measure how far the chunks hold what the answer says.

    Parameters
    ----------
    query : str
        The question; its words and numbers may be repeated.
    answer : str
        What was answered.
    chunks : sequence of str
        What it was generated from; a chunk that is a JSON object is read as a record.
    evidence : bool
        Whether to look up the closest sentences too.

    Examples
    --------
    >>> found = support("How long?", "Refunds take 14 days.", ["Refunds take 7 days."])
    >>> found.numbers, found.sentences[0].match
    (('14',), 'Refunds take 7 days.')
    """
    texts, denied = _read(chunks)
    joined = "\n".join(texts)
    said = tokens(answer)
    known_words = tokens(joined)
    known, asked = set(known_words), set(tokens(query))
    stated = [word for word in content(said) if word not in FRAME_WORDS]
    facts = stated or content(said) or said
    absent = sum(word not in known for word in facts) / len(facts) if facts else 0.0
    distinct = set(facts)
    distinct_absent = len(distinct - known - asked) / len(distinct) if distinct else 0.0
    three = list(zip(said, said[1:], said[2:], strict=False))
    known_three = set(zip(known_words, known_words[1:], known_words[2:], strict=False))
    three_absent = sum(t not in known_three for t in three) / len(three) if three else absent
    times, known_times = _times(answer), _times(joined)
    numbers = _absent_numbers(answer, said, known | asked, known_times)
    conflicts = _conflicts(answer, denied)
    own_voice = _OWN_VOICE.isdisjoint(known) and any(
        not _OWN_VOICE.isdisjoint(tokens(sentence)) and not claims_nothing(sentence)
        for sentence in sentences(answer)
    )
    features = (
        absent,
        distinct_absent,
        three_absent,
        math.log1p(len(numbers)),
        float(len(times - known_times)),
        math.log1p(len(conflicts)),
        float(own_voice),
    )
    return Support(
        features,
        len(stated),
        numbers,
        _absent_names(answer, known | asked) if evidence else (),
        tuple(dict.fromkeys(conflicts)),
        _closest(answer, texts) if evidence else (),
    )


def _read(chunks: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return the chunks as text, and the words of each thing that a record denies."""
    texts: list[str] = []
    denied: list[list[str]] = []
    room = MAX_CHARS
    for chunk in chunks:
        text = chunk[:room]
        room -= len(text)
        if text.lstrip().startswith("{"):
            for key, value in _leaves(text):
                # 0 == False, so the type is asked as well
                if not isinstance(value, int | float) or isinstance(value, bool):
                    folded = value.casefold() if isinstance(value, str) else value
                    words = [w for w in tokens(_CAMEL.sub(" ", key)) if w not in _KEY_FILLER]
                    if folded in _NO and words:
                        denied.append(words)
            text = _CAMEL.sub(" ", text)
        texts.append(text)
    return texts, denied


def _leaves(text: str) -> Iterator[tuple[str, Any]]:
    """Return key and value of every leaf of a JSON object; nothing if it is none."""
    try:
        todo: list[tuple[str, Any]] = [("", json.loads(text))]
    except (ValueError, RecursionError):
        return
    while todo:
        key, value = todo.pop()
        if isinstance(value, dict):
            todo.extend(value.items())
        elif isinstance(value, list):
            todo.extend((key, item) for item in value)
        elif key:
            yield key, value


def _conflicts(answer: str, denied: list[list[str]]) -> list[str]:
    """Return what a record denies and a clause of the answer asserts."""
    if not denied:
        return []
    found: list[str] = []
    for sentence in sentences(answer)[:MAX_ANSWER_SENTENCES]:
        for clause in _CLAUSE_END.split(_CAMEL.sub(" ", sentence)):
            words = set(tokens(clause))
            if words and _DENIALS.isdisjoint(words):
                found.extend(" ".join(key) for key in denied if words.issuperset(key))
    return found


def _times(text: str) -> set[int]:
    """Return the times of day in `text`, in minutes after midnight."""
    found: set[int] = set()
    for hit in _TIME.finditer(fold(text)):
        half = {"a": 0, "p": 12}.get(hit[3] or "")
        if half is None:
            found.add(int(hit[4]) % 24 * 60 + int(hit[5]))
        else:
            found.add((int(hit[1]) % 12 + half) * 60 + int(hit[2] or 0))
    return found


def _absent_numbers(
    answer: str, said: Sequence[str], known: set[str], known_times: set[int]
) -> tuple[str, ...]:
    """Return the numbers of the answer that nothing it was given has; list numbers do not count."""
    hours = {str(minutes // 60) for minutes in known_times}
    hours |= {str(minutes // 60 % 12 or 12) for minutes in known_times}
    hours |= {str(minutes % 60) for minutes in known_times}
    items = set(_LIST_ITEM.findall(answer[:MAX_CHARS]))
    numbers = dict.fromkeys(word for word in said if is_number(word))
    return tuple(n for n in numbers if n not in known and n not in hours and n not in items)


def _absent_names(answer: str, known: set[str]) -> tuple[str, ...]:
    """Return the capitalised words inside sentences that nothing the answer was given has."""
    names = dict.fromkeys(found[0] for found in _CAPITALISED.finditer(answer[:MAX_CHARS]))
    absent = [name for name in names if (words := content(tokens(name))) and not known & set(words)]
    return tuple(absent[:MAX_ANSWER_SENTENCES])


def _closest(answer: str, chunks: Sequence[str]) -> tuple[SupportedSentence, ...]:
    """Return for each sentence of the answer the sentence of a chunk that shares most with it."""
    known: list[tuple[int, str]] = []
    for position, chunk in enumerate(chunks):
        known.extend((position, sentence) for sentence in sentences(chunk))
    known = known[:MAX_CONTEXT_SENTENCES]
    index: defaultdict[str, list[int]] = defaultdict(list)
    for place, (_, sentence) in enumerate(known):
        for word in set(content(tokens(sentence))):
            index[word].append(place)
    found: list[SupportedSentence] = []
    for sentence in sentences(answer)[:MAX_ANSWER_SENTENCES]:
        words = set(content(tokens(sentence)))
        if len(words) < MIN_SENTENCE_WORDS:
            continue
        shared = Counter(place for word in words for place in index.get(word, ()))
        if not shared:
            found.append(SupportedSentence(squeeze(sentence), 0.0, -1, ""))
            continue
        best = min(shared, key=lambda n: (-shared[n], n))
        origin, match = known[best]
        share = shared[best] / len(words)
        found.append(SupportedSentence(squeeze(sentence), share, origin, squeeze(match)))
    return tuple(found)
