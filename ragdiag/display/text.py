"""Views as text: at most 80 columns, about 30 lines, plain signs, for terminals and logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragdiag.display.blocks import (
    Bullets,
    Cell,
    Column,
    Figure,
    Figures,
    Folders,
    Line,
    Section,
    Table,
    View,
    line,
    plain,
)
from ragdiag.display.clean import fit, width, wrap
from ragdiag.display.markdown import markdown
from ragdiag.display.numbers import ascii_signs, plural
from ragdiag.display.views import view

__all__ = ["markdown", "render", "render_view"]

COLUMNS = 80
#: Rows of a table and sentences of a list that text shows; HTML and frames show the rest.
MAX_ROWS = 12
MAX_BULLETS = 4
MAX_BULLET_LINES = 2
GAP = "  "
#: The shortest column of running text that is still worth its place.
LEAST_TEXT = 16


def render(obj: Any) -> str:
    """Return the text report of any object that ragdiag shows.

    Examples
    --------
    >>> from ragdiag.schema import JudgeResult
    >>> print(render(JudgeResult(answer_correct=True, grounded=None, reason="same figure")))
    Judged correct; grounding not judged.
    Verdict   correct: yes; grounded: not judged
    Reason    same figure
    """
    return render_view(view(obj))


def render_view(shown: View) -> str:
    """Return a view as text."""
    lines = wrap(_say(line(shown.headline, " " if shown.lead else "", shown.lead)), COLUMNS)
    if shown.note:
        lines += wrap(_say(shown.note), COLUMNS)
    if shown.quote:
        quoted = [f"  {part}" for part in wrap(ascii_signs(shown.quote), COLUMNS - 2)]
        lines += ["", *quoted[:4], ""]
    if shown.advice:
        lines += wrap(_say(shown.advice), COLUMNS)
    titles = [s.title for s in shown.sections if _is_line(s)] + ["Next"] * bool(shown.hints)
    indent = max((len(title) for title in titles), default=0) + len(GAP)
    for section in shown.sections:
        lines += _section(section, indent)
    if shown.hints:
        lines += _hang("Next", _fill([ascii_signs(hint) for hint in shown.hints], indent), indent)
    return "\n".join(part.rstrip() for part in lines)


def _fill(words: Sequence[str], indent: int) -> list[str]:
    """Put whole words on as few lines as hold them, two spaces apart."""
    lines = [""]
    for word in words:
        longer = f"{lines[-1]}{GAP if lines[-1] else ''}{word}"
        if lines[-1] and width(longer) > COLUMNS - indent:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _is_line(section: Section) -> bool:
    return bool(section.brief) or not isinstance(section.body, Table)


def _say(runs: Line) -> str:
    return ascii_signs(plain(runs))


def _hang(title: str, lines: Sequence[str], indent: int) -> list[str]:
    """Put `title` before the first line and indent the others as far."""
    head = title.ljust(indent)
    return [f"{head if n == 0 else ' ' * indent}{part}" for n, part in enumerate(lines)]


def _section(section: Section, indent: int) -> list[str]:
    body = section.body
    room = COLUMNS - indent
    if section.brief:
        lines = [part for item in section.brief for part in wrap(_say(item), room)]
        return _hang(section.title, lines, indent)
    if isinstance(body, Table):
        return _table(section.title, section.note, body)
    if isinstance(body, Figures):
        return _hang(section.title, wrap(_figures(body.items), room), indent)
    if isinstance(body, Folders):
        summaries = "; ".join(_say(item.summary) for item in body.items)
        return _hang(section.title, wrap(summaries, room), indent)
    lines = []
    limit = MAX_BULLETS if isinstance(body, Bullets) else len(body.items)
    for item in body.items[:limit]:
        wrapped = wrap(_say(item), room)
        if isinstance(body, Bullets) and len(wrapped) > MAX_BULLET_LINES:
            wrapped = [*wrapped[: MAX_BULLET_LINES - 1], fit(" ".join(wrapped[1:]), room)]
        lines += wrapped
    if len(body.items) > limit:
        lines.append(f"and {plural(len(body.items) - limit, 'more', 'more')}")
    return _hang(section.title, lines, indent)


def _figures(items: Sequence[Figure]) -> str:
    """Name the numbers, and once for each run of equal notes what they rest on."""
    parts: list[str] = []
    for position, item in enumerate(items):
        part = f"{item.brief or item.label} {item.value}"
        following = items[position + 1].note if position + 1 < len(items) else None
        if item.note and item.note != following:
            part += f" ({item.note})"
        parts.append(part)
        parts.append("; " if item.note != following else ", ")
    return ascii_signs("".join(parts[:-1]))


def _table(title: str, note: Line, table: Table) -> list[str]:
    shown = [n for n, column in enumerate(table.columns) if column.in_text]
    columns = [table.columns[n] for n in shown]
    rows = [row for row in table.rows if row.in_text]
    hidden = max(len(rows) - MAX_ROWS, 0)
    rows = rows[:MAX_ROWS]
    cells = [[_cell(row.cells[n]) for n in shown] if row.cells else [] for row in rows]
    heads = [title, *((column.brief or column.title).lower() for column in columns[1:])]
    if columns[0].head:
        widths = _widths(columns, heads, cells)
        lines = [_row(columns, heads, widths, indent="")]
    else:
        # A narrow first column cannot carry the title: it gets a line, with the note beside it.
        widths = _widths(columns, [""] * len(heads), cells)
        lines = [fit(f"{title}{GAP}{_say(note)}", COLUMNS)]
    for row, values in zip(rows, cells, strict=True):
        if row.cut:
            lines.append(f"  -- {_say(row.cut)} --")
        else:
            lines.append(_row(columns, values, widths, indent=GAP))
    for item in table.rest:
        first, *more = wrap(_say(item), COLUMNS - 4)
        lines += [f"  {first}", *(f"    {part}" for part in more)]
    if hidden:
        lines.append(f"  ... and {plural(hidden, 'more row', 'more rows')}")
    return lines


def _cell(cell: Cell) -> str:
    return _say(cell.brief or cell.content)


def _widths(columns: Sequence[Column], heads: list[str], cells: list[list[str]]) -> list[int]:
    """Give every column its natural width, and the last what is left."""
    widths = []
    for n in range(len(columns)):
        head = width(heads[n]) - (len(GAP) if n == 0 else 0)
        widths.append(max([head, *(width(values[n]) for values in cells if values)]))
    room = COLUMNS - len(GAP) * len(widths)
    least = min(widths[-1], LEAST_TEXT)
    # Names that are too wide are cut, the widest first, so that the numbers keep their place.
    while sum(widths[:-1]) + least > room:
        widest = max(range(len(widths) - 1), key=lambda n: widths[n])
        widths[widest] -= 1
    widths[-1] = min(widths[-1], room - sum(widths[:-1]))
    return widths


def _row(columns: Sequence[Column], values: list[str], widths: list[int], indent: str) -> str:
    parts = []
    for n, (column, value, room) in enumerate(zip(columns, values, widths, strict=True)):
        room += len(GAP) - len(indent) if n == 0 else 0
        value = fit(value, room)
        pad = " " * (room - width(value))
        parts.append(pad + value if column.align == "right" else value + pad)
    return indent + GAP.join(parts)
