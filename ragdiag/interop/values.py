"""Values as other tools write them: JSON inside strings, Python reprs, times, texts in objects.

Every function takes what a file happened to hold and returns what was meant, or None. Nothing here
executes anything: a Python repr is read with :func:`ast.literal_eval`, bounded in size and depth.
"""

from __future__ import annotations

import ast
import datetime as dt
import hashlib
import math
import re
import unicodedata
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from ragdiag.strict_json import MAX_DEPTH, Unusable, parse
from ragdiag.tables import storable_text

__all__ = [
    "chunk_id_of",
    "first_of",
    "json_or_text",
    "list_of",
    "milliseconds",
    "number_of",
    "python_literal",
    "query_id_of",
    "text_in",
    "text_or_none",
    "time_ns",
]

#: Longer Python reprs are not read.
MAX_LITERAL = 16 * 2**20

#: A Python repr may be nested this deep: its reader is recursive.
MAX_LITERAL_DEPTH = 32

#: Ids made from a text begin with these and have so many hexadecimal digits of its SHA-256.
CHUNK_PREFIX, QUERY_PREFIX, DIGITS = "text-", "q-", 12

#: Where tools put the question in an object of inputs; the first key that holds a text counts.
QUESTION_KEYS = (
    "query",
    "question",
    "user_input",
    "input",
    "query_str",
    "str_or_query_bundle",
    "query_bundle",
    "user_query",
    "prompt",
    "q",
    "text",
    "content",
    "inputs",
    "args",
)

#: Where they put the answer in an object of outputs.
ANSWER_KEYS = (
    "answer",
    "output",
    "response",
    "result",
    "final_result",
    "completion",
    "generation",
    "text",
    "content",
    "message",
    "outputs",
)

#: What messages and replies are wrapped in.
CONTAINERS = ("parts", "generations", "choices", "kwargs")

_LITERAL_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def text_or_none(value: Any) -> str | None:
    """Return a text that says something, or None; numbers become their digits.

    Examples
    --------
    >>> text_or_none("  "), text_or_none(7), text_or_none("a")
    (None, '7', 'a')
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return None if value != value else str(value)
    return storable_text(value) if isinstance(value, str) and value.strip() else None


def number_of(value: Any) -> float | None:
    """Return a finite number, given as such or as text, or None.

    Examples
    --------
    >>> number_of("0.5"), number_of("n/a"), number_of(True)
    (0.5, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def json_or_text(value: Any) -> Any:
    """Return what a string of JSON holds; any other value as it is.

    Only objects, lists and quoted strings are looked into: ``"12"`` stays a text.

    Examples
    --------
    >>> json_or_text('{"q": "Who?"}'), json_or_text("12"), json_or_text("[sic]")
    ({'q': 'Who?'}, '12', '[sic]')
    """
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
        return None if isinstance(value, Unusable) else value
    try:
        return parse(value)[0]
    except ValueError:
        return value


def python_literal(text: str) -> Any:
    r"""Return what the repr of plain Python values holds.

    Raises
    ------
    ValueError
        It is no such repr, or is too long or nested too deep to be read safely.

    Examples
    --------
    >>> python_literal("['it\\'s', 1]")
    ["it's", 1]
    >>> python_literal("__import__('os')")
    Traceback (most recent call last):
        ...
    ValueError: not a list or dict as Python writes it
    """
    if len(text) > MAX_LITERAL:
        raise ValueError(f"a Python repr of {len(text):,} characters; at most {MAX_LITERAL:,}")
    depth = deepest = 0
    for mark in re.findall(r"[\[({\])}]", _LITERAL_STRING.sub("", text)):
        depth += 1 if mark in "[({" else -1
        deepest = max(deepest, depth)
    if deepest > MAX_LITERAL_DEPTH:
        raise ValueError(f"a Python repr nested {deepest} deep; at most {MAX_LITERAL_DEPTH}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # of escapes in somebody's text
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ValueError("not a list or dict as Python writes it") from None


def literal_or_text(value: Any) -> Any:
    """Return what a string of JSON or of a Python repr holds; any other value as it is."""
    found = json_or_text(value)
    if isinstance(found, str) and found.lstrip()[:1] in ("{", "[", "("):
        try:
            return python_literal(found)
        except ValueError:
            return found
    return found


def list_of(value: Any, *, separator: str | None = None) -> list[Any]:
    """Return the items of a list cell: a list, its JSON, its Python repr, or a joined text.

    Parameters
    ----------
    value : object
        The cell. None and an empty text have no items; any other single value is one item.
    separator : str, optional
        What joins the items of a text that is neither JSON nor a Python repr.

    Examples
    --------
    >>> list_of('["a", "b"]'), list_of("['a']"), list_of("a|b", separator="|")
    (['a', 'b'], ['a'], ['a', 'b'])
    """
    found = literal_or_text(value)
    if found is None or (isinstance(found, float) and found != found):
        return []
    if isinstance(found, list | tuple):
        return list(found)
    if isinstance(found, str):
        if not found.strip():
            return []
        return found.split(separator) if separator else [found]
    if isinstance(found, Mapping):
        return [found]
    return list(found) if isinstance(found, Iterable) else [found]


def first_of(record: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """Return the value of the first key that has one, or None."""
    for key in keys:
        value = record.get(key)
        if value is not None and value != "":
            return value
    return None


def text_in(value: Any, keys: Iterable[str], *, role: str | None = None) -> str | None:
    """Return the text that inputs or outputs of a call come down to.

    A text is itself; of an object the first of `keys` that holds one counts, or its only value; of
    a list of messages the last of `role`; of a list of parts the texts together.

    Parameters
    ----------
    value : object
        Inputs or outputs, also as JSON in a string.
    keys : iterable of str
        Keys to look at, in order.
    role : str, optional
        ``"user"`` or ``"assistant"``: whose messages count.

    Examples
    --------
    >>> text_in('{"k": 3, "question": "Who?"}', QUESTION_KEYS)
    'Who?'
    >>> text_in({"messages": [{"role": "user", "content": "Hi"},
    ...                       {"role": "assistant", "content": "Hello"}]}, ANSWER_KEYS,
    ...         role="assistant")
    'Hello'
    """
    return _text_in(value, tuple(keys), role, 0)


#: What tools call the two sides of a conversation.
_ROLES = {"human": "user", "ai": "assistant", "model": "assistant"}


def _text_in(value: Any, keys: tuple[str, ...], role: str | None, depth: int) -> str | None:
    if depth > MAX_DEPTH:
        return None
    value = json_or_text(value)
    if isinstance(value, str):
        return text_or_none(value)
    if isinstance(value, list):
        return _text_in_list(value, keys, role, depth)
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("kwargs"), Mapping) and "lc" in value:  # a serialised message
        return _text_in(value["kwargs"], keys, role, depth + 1)
    tried = ("messages", *keys, *CONTAINERS)
    # Nothing is looked into twice: of deep nesting that would take time without end.
    for key in (*tried, *(key for key in value if len(value) == 1 and key not in tried)):
        if key in value:
            found = _text_in(value[key], keys, role, depth + 1)
            if found is not None:
                return found
    return None


def _text_in_list(
    value: list[Any], keys: tuple[str, ...], role: str | None, depth: int
) -> str | None:
    spoken = [item for item in value if isinstance(item, Mapping) and _role(item)]
    if spoken:
        turns = [item for item in spoken if role is None or _role(item) == role]
        texts = (_text_in(item, keys, role, depth + 1) for item in reversed(turns))
        return next((text for text in texts if text is not None), None)
    texts = (_text_in(_without_tools(item), keys, role, depth + 1) for item in value)
    joined = "\n".join(text for text in texts if text is not None)
    return joined or None


def _role(message: Mapping[str, Any]) -> str | None:
    role = message.get("role") or message.get("type")
    role = _ROLES.get(str(role).lower(), str(role).lower())
    return role if role in ("user", "assistant", "system", "tool") else None


def _without_tools(part: Any) -> Any:
    """Return a part of a message, or None where it is a call of a tool and no text."""
    if isinstance(part, Mapping) and str(part.get("type", "")).startswith("tool"):
        return None
    return part


def time_ns(value: Any) -> int | None:
    """Return nanoseconds since 1970 of an ISO 8601 text or a number of nanoseconds.

    A time without a zone is taken as UTC.

    Examples
    --------
    >>> time_ns("1970-01-01T00:00:01Z"), time_ns("1544712660000000000"), time_ns("soon")
    (1000000000, 1544712660000000000, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if not isinstance(value, str):
        return None
    if value.isdecimal() and len(value) < 25:
        return int(value)
    try:
        moment = dt.datetime.fromisoformat(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return (moment - _EPOCH) // dt.timedelta(microseconds=1) * 1000


def milliseconds(intervals: Iterable[tuple[int | None, int | None]]) -> float | None:
    """Return how long it was that at least one of some intervals lasted; None without any.

    Parameters
    ----------
    intervals : iterable of (int or None, int or None)
        Start and end, nanoseconds; those that lack one, or end before they start, do not count.

    Examples
    --------
    >>> milliseconds([(0, 2_000_000), (1_000_000, 3_000_000), (9_000_000, 9_500_000)])
    3.5
    """
    known = sorted(
        (start, end)
        for start, end in intervals
        if start is not None and end is not None and end >= start
    )
    if not known:
        return None
    total, reached = 0, known[0][0]
    for start, end in known:
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total / 1e6


def chunk_id_of(text: str) -> str:
    r"""Return the id of a chunk that has none: it depends on its text alone.

    The text is brought to Unicode NFC and every run of white space to one space; the id is
    ``text-`` and twelve hexadecimal digits of its SHA-256. Two tools that hold the same chunk
    agree on its id, and so do a retrieved text and a reference text.

    Examples
    --------
    >>> chunk_id_of("Seven days."), chunk_id_of(" Seven\n days. ") == chunk_id_of("Seven days.")
    ('text-f2e8f744b6b8', True)
    """
    return CHUNK_PREFIX + _digest(text)


def query_id_of(question: str) -> str:
    """Return the id of a question that has none, made as that of a chunk: ``q-...``.

    Two recordings of the same questions can so be compared, in whatever order they were made.

    Examples
    --------
    >>> query_id_of("Who?") == query_id_of("Who? ")
    True
    """
    return QUERY_PREFIX + _digest(question)


def _digest(text: str) -> str:
    normal = unicodedata.normalize("NFC", " ".join(storable_text(text).split()))
    return hashlib.sha256(normal.encode()).hexdigest()[:DIGITS]
