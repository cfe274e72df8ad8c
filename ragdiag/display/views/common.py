"""Pieces that several views share: category cells, shares, marked differences, lists of ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from ragdiag.display.blocks import Bar, Cell, Line, Run, ident, line, marked, muted
from ragdiag.display.clean import clean, shorten
from ragdiag.display.numbers import percent
from ragdiag.taxonomy import PRECEDENCE, FailureCategory

__all__ = [
    "ID_LIMIT",
    "NAME_LIMIT",
    "category_colour",
    "category_order",
    "differences",
    "id_list",
    "share_cell",
    "short_id",
    "short_name",
]

#: Characters of an id, and of a name or category, before the rest is left out.
ID_LIMIT = 40
NAME_LIMIT = 60
#: Words of an answer that are compared; beyond, marking would cost more than it tells.
MAX_WORDS = 400
#: A rule of the user's own has no colour in the taxonomy.
OWN_RULE_COLOUR = "#8A6D3B"
NO_CATEGORY_COLOUR = "#767676"

_PRECEDENCE = {category.value: place for place, category in enumerate(PRECEDENCE)}


def category_colour(category: str | None) -> str:
    """Return the colour of a category, a user's rule or none."""
    if category is None:
        return NO_CATEGORY_COLOUR
    if category in _PRECEDENCE:
        return FailureCategory(category).colour
    return OWN_RULE_COLOUR


def category_order(categories: Iterable[str]) -> list[str]:
    """Return categories by precedence, a user's own after those of ragdiag, PASS last."""
    last = len(_PRECEDENCE)
    names = dict.fromkeys(categories)
    order = sorted(names, key=lambda name: _PRECEDENCE.get(name, last - 1))
    return [name for name in order if name != "PASS"] + [name for name in order if name == "PASS"]


def short_id(text: object) -> Run:
    """Make an identifier of bounded length."""
    return ident(shorten(text, ID_LIMIT))


def short_name(text: object) -> str:
    """Return a name of bounded length."""
    return shorten(text, NAME_LIMIT)


def id_list(ids: Sequence[str], limit: int = 10) -> Line:
    """Make a list of identifiers, the first few named and the others counted."""
    parts: list[str | Run] = []
    for position, item in enumerate(ids[:limit]):
        parts += [", "] * bool(position) + [short_id(item)]
    if len(ids) > limit:
        parts.append(f" and {len(ids) - limit:,} more")
    return line(*parts)


def share_cell(part: int, whole: int, colour: str, *, track: bool = False) -> Cell:
    """Make a bar with its percentage in words."""
    share = part / whole if whole else 0.0
    return Cell(line(muted(percent(share) if whole else "")), bar=Bar(share, colour, track))


def differences(ours: str, theirs: str, limit: int) -> tuple[Line, Line]:
    """Mark the words in which two texts differ.

    Examples
    --------
    >>> from ragdiag.display.blocks import plain
    >>> [plain(side) for side in differences("the fee is returned", "the fee is lost", 300)]
    ['the fee is [returned]', 'the fee is [lost]']
    """
    ours, theirs = shorten(ours, limit, tell=True), shorten(theirs, limit, tell=True)
    a, b = ours.split(" ")[:MAX_WORDS], theirs.split(" ")[:MAX_WORDS]
    keys_a, keys_b = ([word.strip(".,;:!?\"'()").casefold() for word in side] for side in (a, b))
    left: list[Run] = []
    right: list[Run] = []
    matcher = SequenceMatcher(None, keys_a, keys_b, autojunk=False)
    for tag, a0, a1, b0, b1 in matcher.get_opcodes():
        for side, words, start, stop in ((left, a, a0, a1), (right, b, b0, b1)):
            if start == stop:
                continue
            text = clean(" ".join(words[start:stop]))
            lead = " " if side else ""
            if tag == "equal":
                side.append(Run(f"{lead}{text}"))
            else:
                side += [*([Run(lead)] if lead else []), marked(text)]
    return tuple(left), tuple(right)
