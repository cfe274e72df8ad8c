"""A sheet of a terminal: lines, titles and tables that read at 80 columns, and when piped.

Everything a pipeline, a dataset or a judge said goes through :func:`hostile` into ``Text``
objects: it is never read as markup, and no control sequence reaches the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ragdiag.display.clean import clean
from ragdiag.display.numbers import ascii_signs

__all__ = ["Heading", "Justify", "Sheet", "hostile"]

#: Lines longer than this are hard to read, however wide the window is.
MAX_COLUMNS = 100
PIPED_COLUMNS = 80

Justify = Literal["left", "right"]
Heading = tuple[str, Justify]


def hostile(text: str, style: str = "") -> Text:
    """Make text of a string that may be hostile."""
    return Text(ascii_signs(clean(text)), style=style)


class Sheet:
    """Writes to a rich console.

    Parameters
    ----------
    console : rich.console.Console, optional
        Standard output by default: at most 100 columns wide, 80 when it is not a terminal.
    """

    def __init__(self, console: Console | None = None) -> None:
        if console is None:
            console = Console(highlight=False, markup=False, emoji=False)
            wide = console.width if console.is_terminal else PIPED_COLUMNS
            console.width = min(wide, MAX_COLUMNS)
        self.console = console

    def line(self, text: str = "", style: str = "") -> None:
        """Write one paragraph."""
        self.console.print(hostile(text, style), soft_wrap=False)

    def title(self, text: str) -> None:
        """Write the heading of a section."""
        self.console.print()
        self.line(text, "bold")

    def item(self, text: str, style: str = "") -> None:
        """Write a paragraph behind a dash, indented."""
        grid = Table.grid(padding=(0, 1))
        grid.add_row(Text("-"), hostile(text, style))
        self.console.print(grid)

    def table(self, headings: Sequence[Heading], rows: Iterable[Sequence[str | Text]]) -> None:
        """Write a table without borders, its heads muted; without heads, pairs."""
        table = Table(
            box=None,
            padding=(0, 2, 0, 0),
            header_style="dim",
            pad_edge=False,
            show_header=any(name for name, _ in headings),
        )
        for name, justify in headings:
            lines = Text("\n").join(hostile(line) for line in name.split("\n"))
            table.add_column(lines, justify=justify, overflow="fold")
        for row in rows:
            table.add_row(*(cell if isinstance(cell, Text) else hostile(cell) for cell in row))
        self.console.print(table)
