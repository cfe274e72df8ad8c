"""The plain data that is shown: a view is a few sections, a section holds figures, rows or lines.

Views are built once (:mod:`ragdiag.display.views`) and written twice, as text and as HTML, so the
two cannot differ in what they say. A :class:`Run` of characters is cleaned when it is made: no
renderer ever meets a control character.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from ragdiag.display.clean import clean

__all__ = [
    "Bullets",
    "Cell",
    "Column",
    "Drill",
    "Figure",
    "Figures",
    "Folder",
    "Folders",
    "Line",
    "Lines",
    "Row",
    "Run",
    "Section",
    "Table",
    "View",
    "code",
    "ident",
    "line",
    "marked",
    "muted",
    "plain",
    "strong",
]

#: How a run of characters is meant: an ``id`` is an identifier or category, ``code`` can be typed.
Kind = Literal["plain", "strong", "mute", "id", "code", "marked"]
Align = Literal["left", "right", "center"]


@dataclass(frozen=True, slots=True)
class Run:
    """A few characters of one kind."""

    text: str
    kind: Kind = "plain"

    def __post_init__(self) -> None:
        text = self.text
        # Spaces at the seams of a line are ours; those inside belong to the cleaned text.
        head = " " if text[:1] == " " else ""
        tail = " " if text[-1:] == " " and len(text) > 1 else ""
        object.__setattr__(self, "text", f"{head}{clean(text)}{tail}")


Line = tuple[Run, ...]


def line(*parts: str | Run | Iterable[Run]) -> Line:
    """Put strings, runs and lines together.

    Examples
    --------
    >>> plain(line("at ", ident("doc_1"), line(", rank 2")))
    'at doc_1, rank 2'
    """
    runs: list[Run] = []
    for part in parts:
        if isinstance(part, str):
            runs.append(Run(part))
        elif isinstance(part, Run):
            runs.append(part)
        else:
            runs.extend(part)
    return tuple(run for run in runs if run.text)


def strong(text: object) -> Run:
    """Make a run that stands out."""
    return Run(str(text), "strong")


def muted(text: object) -> Run:
    """Make a run that steps back."""
    return Run(str(text), "mute")


def ident(text: object) -> Run:
    """Make an identifier or a category."""
    return Run(str(text), "id")


def code(text: object) -> Run:
    """Make something that can be typed."""
    return Run(str(text), "code")


def marked(text: object) -> Run:
    """Make words that differ from those beside them."""
    return Run(str(text), "marked")


def plain(runs: Line) -> str:
    """Return the characters of a line; marked words in brackets, as text shows them."""
    return "".join(
        f"[{run.text.strip()}]{' ' if run.text.endswith(' ') else ''}"
        if run.kind == "marked"
        else run.text
        for run in runs
    )


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar beside a number: `share` of the full width, in `colour`, on a track or not."""

    share: float
    colour: str
    track: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """A point with an interval on an axis from -1 (worse) over 0 to 1 (better)."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in one place of a table."""

    content: Line = ()
    #: What text says instead, where the content needs the width of HTML.
    brief: Line = ()
    #: A category's or direction's colour, as an edge beside the words.
    edge: str | None = None
    #: A translucent ground: better, worse or the same.
    tint: Literal["good", "bad", "same"] | None = None
    bar: Bar | None = None
    span: Span | None = None
    #: What opens from the cell, ids of queries.
    opens: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading and how its cells stand."""

    title: str
    align: Align = "left"
    #: Never broken over lines.
    tight: bool = False
    #: Names the row (``th scope="row"``).
    head: bool = False
    #: Running text, which takes several lines: its row is aligned at the first.
    prose: bool = False
    #: Shown as text too, under `brief` if given.
    in_text: bool = True
    brief: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of cells, or one sentence across the table (``cut``)."""

    cells: tuple[Cell, ...] = ()
    cut: Line = ()
    #: Left out of text when it says nothing (a count of zero).
    in_text: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    #: Takes the whole width.
    wide: bool = False
    #: Narrow headings of a matrix.
    matrix: bool = False
    #: All columns equally wide (two answers side by side).
    even: bool = False
    #: What text says of the rows it leaves out.
    rest: tuple[Line, ...] = ()

    @property
    def has_prose(self) -> bool:
        """Whether a row may take several lines."""
        return any(column.prose for column in self.columns)


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with its name and what it rests on."""

    label: str
    value: str
    note: str = ""
    #: The name where space is short.
    brief: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """Numbers side by side."""

    items: tuple[Figure, ...]
    #: Details rather than what the view is about.
    small: bool = False


@dataclass(frozen=True, slots=True)
class Bullets:
    """Sentences, one below the other."""

    items: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Lines:
    """Paragraphs."""

    items: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Drill:
    """One query that opens: a line to click, and pairs of a name and what it is."""

    summary: Line
    colour: str
    pairs: tuple[tuple[str, Line], ...]
    #: Place among those shown; drills are given in the order in which they get their room.
    place: int = 0


@dataclass(frozen=True, slots=True)
class Folder:
    """A line that opens a list of queries, a table or a paragraph."""

    summary: Line
    drills: tuple[Drill, ...] = ()
    note: Line = ()


@dataclass(frozen=True, slots=True)
class Folders:
    """What can be opened; only HTML opens."""

    items: tuple[Folder | Drill, ...]
    #: How many there are, where not all are here.
    total: int = 0


Body = Figures | Table | Bullets | Lines | Folders


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of a view.

    `brief` is what text says instead of a body that needs the width or the opening of HTML.
    """

    title: str
    body: Body
    note: Line = ()
    brief: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """One object, as it is shown.

    `headline` is what it is with the number that matters, `lead` goes on on the same line, `note`
    says what the numbers rest on and what was not measured, `hints` what to call next.
    """

    headline: str
    lead: Line = ()
    note: Line = ()
    quote: str = ""
    advice: Line = ()
    sections: tuple[Section, ...] = ()
    hints: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "headline", clean(self.headline))
        object.__setattr__(self, "quote", clean(self.quote))
