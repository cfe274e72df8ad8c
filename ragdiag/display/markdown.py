"""Views as GitHub-flavoured Markdown, for pull requests and job summaries.

Hostile text keeps its letters and loses its powers: no HTML, no links, no images, no mentions, no
mathematics, no way out of a table cell.
"""

from __future__ import annotations

import re
from typing import Any

from ragdiag.display.blocks import Bullets, Figures, Folders, Line, Run, Section, Table, View
from ragdiag.display.views import view

__all__ = ["escape", "markdown"]

#: Rows of a table and queries of a list; the report has the rest.
MAX_ROWS = 20
_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
#: What begins a list, a heading or a rule, at the start of a line only.
_LEADING = re.compile(r"^(\s*)([-+=#]|\d+(?=[.)](?:\s|$)))")
#: A word joiner keeps what GitHub would link (mentions, issues, addresses) from being found.
_JOINER = "\N{WORD JOINER}"
_LINKED = re.compile(r"(?<!\w)@(?=\w)|(?<=\w)@(?=[\w-]+\.)|#(?=\d)|(?<=:)//|(?<=www)\.", re.I)
_CODE = re.compile(r"""[\w .:/()\[\]"'=,*+-]+""")
_ENTITIES = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;"})


def markdown(obj: Any) -> str:
    """Return any object that ragdiag shows as Markdown.

    Examples
    --------
    >>> from ragdiag.schema import JudgeResult
    >>> print(markdown(JudgeResult(answer_correct=True, reason="same figure")).splitlines()[0])
    **Judged correct; grounding not judged.**
    """
    return render_view(view(obj))


def escape(text: str) -> str:
    r"""Return cleaned `text` so that Markdown shows it letter by letter.

    Examples
    --------
    >>> print(escape("<b>*x*</b> | $y$"))
    &lt;b&gt;\*x\*&lt;/b&gt; \| \$y\$
    """
    text = _LINKED.sub(lambda found: found[0] + _JOINER, text)
    text = _SPECIAL.sub(r"\\\1", text.translate(_ENTITIES))
    return _LEADING.sub(rf"\1\2{_JOINER}" if text[:1].isdigit() else r"\1\\\2", text)


def render_view(shown: View) -> str:
    """Return a view as Markdown."""
    blocks = [f"**{escape(shown.headline)}**" + (f" {_line(shown.lead)}" if shown.lead else "")]
    if shown.note:
        blocks.append(_line(shown.note))
    if shown.quote:
        blocks.append(f"> {escape(shown.quote)}")
    if shown.advice:
        blocks.append(_line(shown.advice))
    for section in shown.sections:
        note = f"<br>{_line(section.note)}" if section.note else ""
        blocks.append(f"**{escape(section.title)}**{note}")
        blocks.append(_body(section))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _line(runs: Line) -> str:
    return "".join(_run(run) for run in runs)


def _run(run: Run) -> str:
    text = run.text
    inner = text.strip()
    if not inner:
        return text
    head, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    # A code span knows no escapes: only what needs none becomes one.
    if run.kind in ("id", "code") and _CODE.fullmatch(inner):
        return f"{head}`{inner}`{tail}"
    if run.kind in ("strong", "marked"):
        return f"{head}**{escape(inner)}**{tail}"
    return f"{head}{escape(inner)}{tail}"


def _body(section: Section) -> str:
    body = section.body
    if isinstance(body, Figures):
        heads = [escape(item.label) for item in body.items]
        values = [escape(item.value) for item in body.items]
        notes = [escape(item.note) for item in body.items]
        return _grid(heads, ["left"] * len(heads), [values, notes])
    if isinstance(body, Table):
        return _table(body)
    if isinstance(body, Folders):
        items = [f"- {_line(item.summary)}" for item in body.items[:MAX_ROWS]]
        return "\n".join(items)
    if isinstance(body, Bullets):
        return "\n".join(f"- {_line(item)}" for item in body.items)
    return "\n\n".join(_line(item) for item in body.items)


def _table(table: Table) -> str:
    # A column that holds nothing but bars or intervals has nothing to say without them.
    kept = [
        n
        for n in range(len(table.columns))
        if table.matrix or any(row.cells and row.cells[n].content for row in table.rows)
    ]
    rows = [
        [_line(row.cells[n].content) for n in kept] if row.cells else [_line(row.cut)]
        for row in table.rows[:MAX_ROWS]
    ]
    text = _grid(
        [escape(table.columns[n].title) for n in kept],
        [table.columns[n].align for n in kept],
        rows,
    )
    hidden = len(table.rows) - len(rows)
    return text + (f"\n\nshowing {len(rows)} of {len(table.rows)}" if hidden else "")


def _grid(heads: list[str], aligns: list[Any], rows: list[list[str]]) -> str:
    rule = {"left": ":--", "right": "--:", "center": ":-:"}
    lines = ["| " + " | ".join(heads) + " |", "|" + "|".join(rule[a] for a in aligns) + "|"]
    lines += ["| " + " | ".join([*row, *[""] * (len(heads) - len(row))]) + " |" for row in rows]
    return "\n".join(lines)
