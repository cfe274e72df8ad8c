"""Where the text of a passage is found in the text of a chunk, whatever a chunker did to it.

Both texts are *normalised*: compatibility forms unfolded, accents and case dropped, and of what is
left only letters and digits kept. So line breaks, bullets, table bars and typographic quotes do not
matter. A passage is then looked for in three ways, the first that finds it counts:

1. The chunk holds it *whole*; a passage shorter than :data:`SHORT` letters as words of their own.
2. The chunk *cuts* it: the chunk begins or ends within the passage, or lies inside it.
3. *Token overlap*: the chunk has runs of the passage's words, each of at least
   :data:`SHINGLE_WORDS` words and :data:`SHORT` letters. They count when together they make up at
   least :data:`TOKEN_OVERLAP` of the passage, or of the chunk where that is shorter.

What is found is a list of intervals in non-space characters of the passage: recall by characters
follows from their union over the chunks that were retrieved.
"""

from __future__ import annotations

import re
import string
import unicodedata
from dataclasses import dataclass
from functools import cached_property, lru_cache

__all__ = [
    "SHINGLE_WORDS",
    "SHORT",
    "TOKEN_OVERLAP",
    "Found",
    "Passage",
    "n_characters",
    "normalised",
]

#: Letters and digits below which a text is too short to be found anywhere but as whole words, and
#: too short for a piece of a passage to prove anything.
SHORT = 12

#: Words in a row that a chunk must share with a passage, where it does not hold it verbatim.
SHINGLE_WORDS = 3

#: Share of the passage, or of the chunk if that is shorter, that such runs must make up together.
TOKEN_OVERLAP = 0.5

_SPACES = b" \t\n\r\v\f\x1c\x1d\x1e\x1f"
_LOWER = bytes.maketrans(string.ascii_uppercase.encode(), string.ascii_lowercase.encode())
_DROPPED = bytes(code for code in range(128) if not chr(code).isalnum())
_BEYOND_ASCII = re.compile("[^\x00-\x7f]+")

#: A word; scripts that are written without spaces count by character.
_WORD = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\\W_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+"
)

Interval = tuple[int, int]


def normalised(text: str) -> str:
    r"""Return the letters and digits of `text`, without accents and case.

    Examples
    --------
    >>> normalised("S & P 500 |\n“Caf\u00e9” ﬁnance")
    'sp500cafefinance'
    """
    if text.isascii():
        return text.encode().translate(_LOWER, _DROPPED).decode()
    try:
        kept = text.encode().translate(_LOWER, _DROPPED).decode()
    except UnicodeEncodeError:  # half of a surrogate pair
        kept = text.encode("utf-8", "replace").translate(_LOWER, _DROPPED).decode()
    return _BEYOND_ASCII.sub(lambda run: "".join(map(_letters, run[0])), kept)


@lru_cache(maxsize=1 << 16)
def _letters(character: str) -> str:
    """Return the letters and digits a character stands for, alone and in any context."""
    if not character.isalnum():  # "™" is no word, and what is no word has no letters either
        return ""
    unfolded = unicodedata.normalize("NFKD", character).casefold()
    return "".join(
        each for each in unicodedata.normalize("NFKD", unfolded).casefold() if each.isalnum()
    )


def n_characters(text: str) -> int:
    r"""Return how many characters of `text` are not white space.

    Examples
    --------
    >>> n_characters("a b\n c")
    3
    """
    if text.isascii():
        return len(text.encode().translate(None, _SPACES))
    return len("".join(text.split()))


def _spaced(text: str) -> str:
    words = [normalised(word) for word in _WORD.findall(text)]
    return f" {' '.join(words)} "


@dataclass(frozen=True)
class Found:
    """What a chunk holds of a passage.

    Attributes
    ----------
    intervals : tuple of (int, int)
        From and to, in non-space characters of the passage; distinct and in order.
    cut : bool
        The chunk begins or ends within the passage.
    by_tokens : bool
        Found by token overlap, not verbatim.
    """

    intervals: tuple[Interval, ...]
    cut: bool = False
    by_tokens: bool = False

    @property
    def size(self) -> int:
        """Non-space characters of the passage in the chunk."""
        return sum(end - start for start, end in self.intervals)


class Passage:
    r"""A verbatim passage, prepared to be looked for in many chunks.

    Parameters
    ----------
    text : str
        The passage.

    Examples
    --------
    >>> passage = Passage("Refunds take seven\nworking days.")
    >>> passage.find(normalised("... refunds take seven working days ..."), "").intervals
    ((0, 28),)
    >>> found = passage.find(normalised("How long? Refunds take seven wor"), "")
    >>> found.intervals, found.cut
    (((0, 19),), True)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.norm = normalised(text)
        #: Non-space characters.
        self.size = n_characters(text)

    def __len__(self) -> int:
        return self.size

    def find(self, chunk: str, raw: str, *, tokens: bool = True) -> Found | None:
        """Return what a chunk holds of the passage, None where that is nothing.

        Parameters
        ----------
        chunk : str
            The chunk, normalised.
        raw : str
            The chunk as it is; looked at only where a short passage must stand as words.
        tokens : bool
            Whether token overlap counts.
        """
        norm = self.norm
        if not norm:  # nothing but signs: only as it stands
            return Found(((0, self.size),)) if self.text.strip() in raw else None
        if norm in chunk:
            if len(norm) >= SHORT or self._spaced in _spaced(raw):
                return Found(((0, self.size),))
            return None
        if len(norm) < SHORT or not chunk:
            return None
        pieces = self._pieces(chunk)
        runs = self._shared_runs(chunk) if tokens else []
        intervals = merged([self._characters(*each) for each in (*pieces, *runs)])
        if not intervals:
            return None
        return Found(tuple(intervals), cut=bool(pieces), by_tokens=bool(runs) and not pieces)

    def completes(self, chunk: str, start: int, end: int) -> bool:
        """Return whether a chunk begins or ends with a remnant, too short to be looked for.

        Parameters
        ----------
        chunk : str
            The chunk, normalised.
        start, end : int
            The remnant in non-space characters of the passage; it must reach one of its ends.
        """
        norm = self.norm
        if end == self.size:
            at = next((i for i, place in enumerate(self._starts) if place >= start), len(norm))
            return len(norm) - at < SHORT and chunk.startswith(norm[at:])
        at = next((i for i, place in enumerate(self._starts) if place >= end), len(norm))
        return start == 0 and at < SHORT and chunk.endswith(norm[:at])

    def _pieces(self, chunk: str) -> list[Interval]:
        """Return the parts of the passage that the chunk's borders cut off, in letters."""
        norm = self.norm
        if len(chunk) < SHORT:
            return []
        at = norm.find(chunk)
        if at >= 0:
            return [(at, at + len(chunk))]
        pieces: list[Interval] = []
        # The end of the chunk is the beginning of the passage.
        last = chunk[-SHORT:]
        at = norm.rfind(last)
        while at >= 0:
            if chunk.endswith(norm[: at + len(last)]):
                pieces.append((0, at + len(last)))
                break
            at = norm.rfind(last, 0, at + len(last) - 1)
        # The beginning of the chunk is the end of the passage.
        first = chunk[:SHORT]
        at = norm.find(first)
        while at >= 0:
            if chunk.startswith(norm[at:]):
                pieces.append((at, len(norm)))
                break
            at = norm.find(first, at + 1)
        return pieces

    def _shared_runs(self, chunk: str) -> list[Interval]:
        """Return the runs of words that the chunk has as well, if they are enough."""
        # Every run twice as long as a shingle holds one of these.
        if not any(norm in chunk for _, _, norm in self._disjoint):
            return []
        runs = merged([(start, end) for start, end, norm in self._shingles if norm in chunk])
        shared = sum(end - start for start, end in runs)
        return runs if shared >= TOKEN_OVERLAP * min(len(self.norm), len(chunk)) else []

    @cached_property
    def _spaced(self) -> str:
        return _spaced(self.text)

    @cached_property
    def _shingles(self) -> list[tuple[int, int, str]]:
        """Begin, end and text of every shortest run of words that is long enough to be found."""
        ends, place = [], 0
        for word in _WORD.findall(self.text):
            place += len(normalised(word))
            ends.append(place)
        starts = [0, *ends[:-1]]
        found: list[tuple[int, int, str]] = []
        last = SHINGLE_WORDS - 1
        for first, start in enumerate(starts):
            last = max(last, first + SHINGLE_WORDS - 1)
            while last < len(ends) and ends[last] - start < SHORT:
                last += 1
            if last >= len(ends):
                break
            found.append((start, ends[last], self.norm[start : ends[last]]))
        return found

    @cached_property
    def _disjoint(self) -> list[tuple[int, int, str]]:
        chosen: list[tuple[int, int, str]] = []
        for shingle in self._shingles:
            if not chosen or shingle[0] >= chosen[-1][1]:
                chosen.append(shingle)
        return chosen

    @cached_property
    def _starts(self) -> list[int]:
        """Non-space characters of the passage in front of each normalised one."""
        starts: list[int] = []
        place = 0
        for character in self.text:
            starts += [place] * len(normalised(character))
            place += not character.isspace()
        return starts

    def _characters(self, start: int, end: int) -> Interval:
        """Return an interval of normalised characters in non-space ones of the passage."""
        starts = self._starts
        return (
            starts[start] if start else 0,
            starts[end] if end < len(starts) else self.size,
        )


def merged(intervals: list[Interval]) -> list[Interval]:
    """Return the union of some intervals as distinct ones in order.

    Examples
    --------
    >>> merged([(5, 9), (0, 2), (1, 4), (4, 5)])
    [(0, 9)]
    """
    union: list[Interval] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], end))
        else:
            union.append((start, end))
    return union
