r"""What hostile text becomes before anybody sees it: the one place that makes strings safe to show.

Every string that a dataset, a pipeline, a chunk, a judge or a file name brought passes
:func:`clean` when it enters a view, a plot or a widget. It takes out what only a machine reads:
terminal escape sequences, control and format characters, overrides of the writing direction,
invisible tag characters. What is left is text; escaping for HTML or Markdown is the renderer's.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["clean", "fit", "shorten", "width", "wrap"]

#: CSI (``ESC [ … letter``), OSC and the other strings up to their terminator, two-letter escapes;
#: the same introduced by the one-character C1 forms.
_ESCAPES = re.compile(
    r"""(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]
      | (?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)
      | \x1b[ -/]*[0-~]""",
    re.VERBOSE,
)
#: Controls that are not white space; marks, embeddings, overrides and isolates of direction; soft
#: hyphen, zero-width space, word joiner and invisible operators, byte order mark, annotations; tag
#: characters. The joiners U+200C and U+200D stay: scripts and emoji need them.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACES = re.compile(r"[\s\x1c-\x1f\x85\u2028\u2029]+")
#: Combining marks that one letter may carry; more is an attack on the line above (Zalgo).
MARKS_A_LETTER = 4
_SIMPLE = re.compile(r"(?:[!-~]+(?: [!-~]+)*)?")


def clean(text: object) -> str:
    r"""Return `text` as one line that holds nothing but what can be read.

    Escape sequences and invisible characters go, any run of white space becomes one space (a
    no-break space stays), a lone surrogate becomes U+FFFD. Nothing is escaped here.

    Examples
    --------
    >>> clean("\x1b[31mred\x1b[0m\x00 \u202egnp.exe\nnext")
    'red gnp.exe next'
    """
    string = text if isinstance(text, str) else str(text)
    if _SIMPLE.fullmatch(string):
        return string
    string = _ESCAPES.sub("", string)
    string = _INVISIBLE.sub("", string)
    string = _LONE_SURROGATE.sub("\ufffd", string)
    string = _SPACES.sub(lambda run: "\xa0" if run[0] == "\xa0" else " ", string).strip()
    return _limit_marks(string)


def _limit_marks(string: str) -> str:
    if string.isascii():
        return string
    kept: list[str] = []
    marks = 0
    for character in string:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= MARKS_A_LETTER:
            kept.append(character)
    return "".join(kept)


def shorten(text: object, limit: int, *, tell: bool = False) -> str:
    """Return `text` cleaned and cut to `limit` characters, at a word if one ends near.

    Parameters
    ----------
    text : object
        Anything; its ``str`` is shown.
    limit : int
        Characters that are kept at most, the ellipsis aside.
    tell : bool
        Whether to say how many characters are not shown.

    Examples
    --------
    >>> shorten("Several partial refunds are possible", 20)
    'Several partial …'
    >>> shorten("Several partial refunds are possible", 20, tell=True)
    'Several partial … (+21 chars)'
    """
    string = text if isinstance(text, str) else str(text)
    total = len(string)
    # A chunk may be a megabyte: only what could be shown is cleaned.
    string = clean(string[: 4 * limit + 64])
    if len(string) <= limit and total <= 4 * limit + 64:
        return string
    cut = string[:limit]
    space = cut.rfind(" ")
    if space > 0.6 * limit:
        cut = cut[:space]
    hidden = (len(string) if total <= 4 * limit + 64 else total) - len(cut)
    return f"{cut.rstrip()} …" + (f" (+{hidden:,} chars)" if tell else "")


def width(text: str) -> int:
    """Return how many columns `text` takes in a terminal.

    Examples
    --------
    >>> width("abc"), width("日本"), width("e\u0301")
    (3, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit(text: str, columns: int) -> str:
    """Return `text` cut to `columns` terminal columns, ending in ``...`` if it was cut.

    Examples
    --------
    >>> fit("Several partial refunds", 12)
    'Several p...'
    """
    if width(text) <= columns:
        return text
    kept, used = [], 0
    for character in text:
        used += _columns(character)
        if used > columns - 3:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "..."[: max(columns, 0)]


def wrap(text: str, columns: int) -> list[str]:
    """Return `text` in lines of at most `columns` terminal columns; a longer word is broken.

    Examples
    --------
    >>> wrap("the fee is returned", 11)
    ['the fee is', 'returned']
    """
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        rest = word
        if line and width(line) + 1 + width(rest) <= columns:
            line = f"{line} {rest}"
            continue
        if line:
            lines.append(line)
        while width(rest) > columns:
            head = _head(rest, columns)
            lines.append(head)
            rest = rest[len(head) :]
        line = rest
    if line or not lines:
        lines.append(line)
    return lines


def _head(word: str, columns: int) -> str:
    used = 0
    for position, character in enumerate(word):
        used += _columns(character)
        if used > columns:
            return word[: max(position, 1)]
    return word
