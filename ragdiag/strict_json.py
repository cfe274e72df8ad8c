"""JSON as its standard has it, where Python's own reader is lenient, and every problem placed.

Python reads ``NaN``, lets the last of two equal keys win in silence, makes ``1e999`` infinite, and
fails on long integers and deep nesting with errors that name no place. Here each of these becomes
a :class:`Problem` with its path, and the rest of the document is still read.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

__all__ = [
    "MAX_DEPTH",
    "MAX_DIGITS",
    "Problem",
    "Unusable",
    "dotted",
    "find_unstorable",
    "parse",
    "surrogate_in",
]

#: Longer integers are refused: no measure has them, and converting them takes quadratic time.
MAX_DIGITS = 1000

#: Lists and objects may be nested this deep.
MAX_DEPTH = 64

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Unusable:
    """Stands where a value was that cannot be used; whoever meets it need not report it again."""

    problem: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a document.

    Attributes
    ----------
    path : tuple of str and int
        Keys and positions from the root to the value.
    text : str
        What is wrong.
    """

    path: Path
    text: str


def parse(text: str) -> tuple[Any, list[Problem]]:
    """Read one JSON document.

    Parameters
    ----------
    text : str
        The document.

    Returns
    -------
    document : object
        As :func:`json.loads` gives it, with :class:`Unusable` in the place of a bad number.
    problems : list of Problem
        Repeated keys and bad numbers, in document order.

    Raises
    ------
    ValueError
        This is not JSON at all; the message has line and column.

    Examples
    --------
    >>> parse('{"a": [1, NaN], "b": 2, "b": 3}')[1]
    [Problem(path=('b',), text='this key is given twice or more in one object'),
     Problem(path=('a', 1), text='NaN is not a JSON number')]
    """
    unusable = False
    # The objects are kept, not their id() alone: a dropped object's id may be used again.
    repeated: list[tuple[dict[str, Any], list[str]]] = []

    def mark(problem: str) -> Unusable:
        nonlocal unusable
        unusable = True
        return Unusable(problem)

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(items)
        if len(result) < len(items):
            counts = Counter(key for key, _ in items)
            repeated.append((result, [key for key, count in counts.items() if count > 1]))
        return result

    def whole(digits: str) -> int | Unusable:
        if len(digits) > MAX_DIGITS:
            return mark(
                f"a whole number of {len(digits):,} digits; at most {MAX_DIGITS:,} are read"
            )
        return int(digits)

    def real(digits: str) -> float | Unusable:
        number = float(digits)
        if math.isinf(number):
            return mark(f"{digits[:40]} is too large for a number")
        return number

    def constant(name: str) -> Unusable:
        return mark(f"{name} is not a JSON number")

    if not text.strip():
        raise ValueError("it is empty")
    try:
        document = json.loads(
            text,
            object_pairs_hook=pairs,
            parse_int=whole,
            parse_float=real,
            parse_constant=constant,
        )
    except json.JSONDecodeError as error:
        _not_json(error)
    except RecursionError:
        raise ValueError(f"lists or objects are nested deeper than {MAX_DEPTH} levels") from None
    if not unusable and not repeated:
        return document, []
    return document, list(_problems(document, repeated))


def _not_json(error: json.JSONDecodeError) -> NoReturn:
    raise ValueError(
        f"not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}"
    ) from error


def _problems(document: Any, repeated: list[tuple[dict[str, Any], list[str]]]) -> Iterator[Problem]:
    keys = {id(holder): twice for holder, twice in repeated}
    for path, value in walk(document):
        if isinstance(value, Unusable):
            yield Problem(path, value.problem)
        for key in keys.get(id(value), ()) if isinstance(value, dict) else ():
            yield Problem((*path, key), "this key is given twice or more in one object")


def walk(document: Any) -> Iterator[tuple[Path, Any]]:
    """Yield every value with its path, parents first, without recursion.

    Examples
    --------
    >>> list(walk({"a": [True]}))
    [((), {'a': [True]}), (('a',), [True]), (('a', 0), True)]
    """
    stack: list[tuple[Path, Any]] = [((), document)]
    while stack:
        path, value = stack.pop()
        yield path, value
        if len(path) > MAX_DEPTH:
            continue
        if isinstance(value, dict):
            stack.extend(((*path, key), item) for key, item in reversed(value.items()))
        elif isinstance(value, list | tuple):
            stack.extend(((*path, at), value[at]) for at in reversed(range(len(value))))


def find_unstorable(value: Any) -> Problem | None:
    r"""Return the first thing in `value` that UTF-8 JSON cannot hold, if there is one.

    That is half of a surrogate pair in a text or a key, a key that is no text, or nesting deeper
    than :data:`MAX_DEPTH`.

    Examples
    --------
    >>> find_unstorable({"note": ["fine", "half \ud83d"]})
    Problem(path=('note', 1), text='half a surrogate pair (U+D83D) at character 5')
    >>> find_unstorable("fine") is None
    True
    """
    for path, item in walk(value):
        if len(path) > MAX_DEPTH:
            return Problem(path[:3], f"nested deeper than {MAX_DEPTH} levels")
        texts = [item] if isinstance(item, str) else item if isinstance(item, dict) else ()
        for text in texts:
            if not isinstance(text, str):
                return Problem(path, f"has the key {text!r}, and keys are text")
            problem = surrogate_in(text)
            if problem:
                return Problem(path, problem)
    return None


def surrogate_in(text: str) -> str | None:
    r"""Say where `text` has half a surrogate pair, which UTF-8 cannot hold; None if nowhere.

    Examples
    --------
    >>> surrogate_in("half \ud83d")
    'half a surrogate pair (U+D83D) at character 5'
    """
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"half a surrogate pair (U+{ord(text[error.start]):04X}) at character {error.start}"
    return None


def dotted(path: Path) -> str:
    """Write a path as people do.

    Examples
    --------
    >>> dotted(("samples", 3, "grades", "c1"))
    'samples[3].grades.c1'
    """
    # A key that cannot be printed (a line break, half a surrogate pair) is shown escaped.
    steps = (
        f"[{step}]" if isinstance(step, int) else f".{step if step.isprintable() else repr(step)}"
        for step in path
    )
    return "".join(steps).removeprefix(".")
