"""Views as HTML: fragments for notebooks, with every style in the elements themselves.

Jinja2 escapes everything that a view says; what a macro returned is the only markup that passes.
A fragment holds no script, image, id or time, so two calls give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from os import PathLike
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ragdiag.display.blocks import (
    Bar,
    Bullets,
    Cell,
    Figures,
    Folder,
    Folders,
    Lines,
    Section,
    Span,
    Table,
    View,
    line,
    plain,
)
from ragdiag.display.views import view

__all__ = ["MAX_BYTES", "environment", "render", "render_sections", "render_view", "write_report"]

#: No repr is longer than this, in bytes of UTF-8 with everything escaped.
MAX_BYTES = 25_000
#: Characters of a chunk or an answer where a repr does not fit with as many as a view has.
TEXT_LIMITS = (160, 80, 40, 16)
#: Left free for "showing 6 of 413" and the tags around the drill-downs.
RESERVE = 400
#: Characters of a note that never wraps.
SHORT_NOTE = 90
#: The tags around the drill-downs of one folder.
FOLDER_BYTES = 60
BAR_PIXELS = 100
SPAN_PIXELS = 60


def render(obj: Any, shown: View | None = None) -> str:
    """Return the HTML fragment of any object that ragdiag shows, at most ``MAX_BYTES`` long.

    `shown` is the object's view where it has been built already.

    Examples
    --------
    >>> from ragdiag.schema import JudgeResult
    >>> html = render(JudgeResult(answer_correct=True, reason="<b>same</b> figure"))
    >>> "&lt;b&gt;same&lt;/b&gt; figure" in html
    True
    """
    html = render_view(view(obj) if shown is None else shown)
    for limit in TEXT_LIMITS:
        if len(html.encode()) <= MAX_BYTES:
            break
        html = render_view(view(obj, limit))
    return html


def render_view(shown: View, max_bytes: int = MAX_BYTES) -> str:
    """Return a view as a fragment; drill-downs are filled in while there is room."""
    env = environment("inline")
    template = env.get_template("fragment.html")

    def page(sections: Sequence[Markup]) -> str:
        return template.render(view=shown, sections=sections, extras=_extras())

    fixed = [None if _opens(s) else _macro(env, s) for s in shown.sections]
    used = len(page([text for text in fixed if text is not None]).encode())
    room = max_bytes - used - RESERVE
    sections: list[Markup] = []
    for section, text in zip(shown.sections, fixed, strict=True):
        if text is None:
            text, spent = _filled(env, section, room)
            room -= spent
        sections.append(text)
    return page(sections)


def render_sections(sections: Sequence[Section], mode: str) -> list[Markup]:
    """Return sections of a view, each as HTML."""
    env = environment(mode)
    return [
        _filled(env, section, MAX_BYTES)[0] if _opens(section) else _macro(env, section)
        for section in sections
    ]


def _has_short_note(section: Section) -> bool:
    """Whether the caption may stay on one line: it would stretch a narrow table otherwise."""
    body = section.body
    wide = isinstance(body, Table) and (body.wide or body.even or body.matrix)
    return not wide and len(plain(section.note)) <= SHORT_NOTE


def _opens(section: Section) -> bool:
    return isinstance(section.body, Folders)


def _macro(env: Environment, section: Section) -> Markup:
    names = {Table: "table", Figures: "figures", Bullets: "bullets", Lines: "lines"}
    macro: Callable[..., Markup] = getattr(_blocks(env), names[type(section.body)])
    return macro(section)


def _filled(env: Environment, section: Section, room: int) -> tuple[Markup, int]:
    """Render the drill-downs that fit into `room` bytes, in order, and say how many there are."""
    blocks = _blocks(env)
    body = section.body
    assert isinstance(body, Folders)
    items: list[Markup] = []
    placed: list[tuple[int, Markup]] = []
    shown = total = 0
    # What opens is paid for first: a folder says how many there are even where none fits.
    folders = [item for item in body.items if isinstance(item, Folder)]
    spent = sum(len(blocks.folder(item, ()).encode()) + FOLDER_BYTES for item in folders)
    for item in body.items:
        drills: list[Markup] = []
        inside = item.drills if isinstance(item, Folder) else (item,)
        for drill in inside:
            text = blocks.drill(drill)
            size = len(text.encode()) + 1
            if spent + size <= room:
                spent += size
                shown += 1
                drills.append(text)
                placed.append((drill.place, text))
        total += len(inside)
        if isinstance(item, Folder):
            items.append(blocks.folder(item, drills))
    items = items or [text for _, text in sorted(placed, key=lambda each: each[0])]
    total = max(total, body.total)
    if total > shown:
        counted = line(f"showing {shown:,} of {total:,}", "; " if section.note else "")
        section = replace(section, note=line(counted, section.note))
    return blocks.folders(section, items), spent


def _blocks(env: Environment) -> Any:
    return _module(env)


@lru_cache(maxsize=4)
def _module(env: Environment) -> Any:
    return env.get_template("blocks.html").make_module()


@lru_cache(maxsize=4)
def environment(mode: str) -> Environment:
    """Return the templates: ``inline`` for a repr, ``page`` for a report, ``body`` for its queries.

    A repr has its styles in the elements and no headings, which a notebook would list; a report has
    classes and headings of the second level, a query in it of the third.
    """
    env = Environment(
        loader=PackageLoader("ragdiag.display"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=False,
    )
    inline = mode == "inline"
    env.globals.update(
        zip=zip,
        heading={"inline": "strong", "page": "h2", "body": "h3"}[mode],
        look={"inline": _inline_look, "page": _page_look, "body": _body_look}[mode],
        edge=_inline_edge if inline else _page_edge,
        pairs=_inline_pairs if inline else _page_pairs,
        bar=_inline_bar if inline else _page_bar,
        span=_inline_span if inline else _page_span,
        breakable=breakable,
        blank=Cell(),
        short=_has_short_note,
    )
    return env


# ------------------------------------------------------------------------------- style attributes
@lru_cache(maxsize=1)
def _style() -> tuple[dict[str, str], str]:
    """Read the style sheet into tokens and extras."""
    text = re.sub(r"/\*.*?\*/", "", resource("style.css"), flags=re.DOTALL)
    tokens: dict[str, str] = {}
    extras: list[str] = []
    for selector, declarations in re.findall(r"([^{}]+)\{([^{}]*)\}", text):
        selector = " ".join(selector.split())
        short = ";".join(
            re.sub(r"\s*([:,])\s*", r"\1", part.strip(), count=0)
            for part in declarations.split(";")
            if part.strip()
        )
        if re.fullmatch(r"\.[a-z]+", selector):
            tokens[selector[1:]] = short
        else:
            extras.append(f"{selector.replace(' > ', '>').replace(', ', ',')}{{{short}}}")
    return tokens, "".join(extras)


def resource(name: str) -> str:
    """Return the text of a file of this package."""
    return files("ragdiag.display").joinpath(name).read_text(encoding="utf-8")


def _extras() -> Markup:
    # Our own style sheet, from the package: "Markup" here says that it is not escaped.
    return Markup(_style()[1])  # noqa: S704


@lru_cache(maxsize=512)
def _inline_look(*names: str) -> Markup:
    tokens = _style()[0]
    declared = ";".join(tokens[name] for name in names if name in tokens)
    return Markup(' style="{}"').format(declared)


def _inline_edge(colour: str) -> Markup:
    return Markup(' style="border-left:4px solid {};padding-left:6px"').format(colour)


def _inline_pairs(colour: str) -> Markup:
    declared = f"{_style()[0]['pairs']};border-left:3px solid {colour}"
    return Markup(' class="pairs" style="{}"').format(declared)


def _inline_bar(bar: Bar) -> Markup:
    full = max(round(bar.share * BAR_PIXELS), 1 if bar.share > 0 else 0)
    part = Markup('<span style="display:inline-block;width:{}px;height:9px;background:{}"></span>')
    html = part.format(full, bar.colour)
    if bar.track and full < BAR_PIXELS:
        html += part.format(BAR_PIXELS - full, "#8885")
    return html


def _inline_span(span: Span) -> Markup:
    low, middle, high = (round(SPAN_PIXELS * (1 + value)) for value in _within(span))
    reach = Markup('<i style="{}width:{}px;height:6px;background:#8888"></i>')
    before, after = max(middle - low - 2, 0), max(high - middle - 2, 0)
    margin = f"margin-left:{low if before else middle}px;"
    point = Markup('<i style="{}border-left:4px solid;height:12px"></i>')
    return Markup('<div style="{}">{}{}{}</div>').format(
        _style()[0]["span"],
        reach.format(margin, before) if before else "",
        point.format("" if before else margin),
        reach.format("", after) if after else "",
    )


def _within(span: Span) -> tuple[float, float, float]:
    low, middle, high = (min(max(v, -1.0), 0.95) for v in (span.low, span.middle, span.high))
    return low, middle, high


# ------------------------------------------------------------------------------------ report page
@lru_cache(maxsize=1)
def _page_classes() -> frozenset[str]:
    return frozenset(re.findall(r"\.([a-z]+)\b", resource("templates/report.css")))


@lru_cache(maxsize=512)
def _page_look(*names: str) -> Markup:
    known = " ".join(name for name in names if name in _page_classes())
    return Markup(' class="{}"').format(known) if known else Markup("")


def _body_look(*names: str) -> Markup:
    # A report holds thousands of queries; what their columns need is said once, by element.
    return _page_look(*(name for name in names if name not in ("tight", "snug")))


def _page_edge(colour: str) -> Markup:
    return Markup(' class="edge {}"').format(colour_class(colour))


def _page_pairs(colour: str) -> Markup:
    return Markup(' class="pairs {}"').format(colour_class(colour))


def colour_class(colour: str) -> str:
    """Return the class of a colour in a report, where style attributes are forbidden.

    Examples
    --------
    >>> colour_class("#D55E00")
    'kd55e00'
    """
    return "k" + colour.lstrip("#").lower()


def _page_bar(bar: Bar) -> Markup:
    full = max(round(bar.share * BAR_PIXELS), 1 if bar.share > 0 else 0)
    rest = Markup('<rect x="{}" width="{}" height="9"/>').format(full, BAR_PIXELS - full)
    return Markup(
        '<svg class="bar {}" width="{}" height="9" aria-hidden="true">'
        '<rect width="{}" height="9"/>{}</svg>'
    ).format(colour_class(bar.colour), BAR_PIXELS, full, rest if bar.track else "")


def _page_span(span: Span) -> Markup:
    low, middle, high = (round(SPAN_PIXELS * (1 + value)) for value in _within(span))
    return Markup(
        '<svg class="span" width="{}" height="14" aria-hidden="true">'
        '<rect class="zero" x="{}" width="1" height="14"/>'
        '<rect class="reach" x="{}" y="4" width="{}" height="6"/>'
        '<rect x="{}" y="1" width="4" height="12"/></svg>'
    ).format(2 * SPAN_PIXELS, SPAN_PIXELS, low, max(high - low, 0), middle - 2)


def breakable(name: str) -> Markup:
    """Return a category's name that may break after an underscore.

    Examples
    --------
    >>> breakable("WRONG_<b>")
    Markup('WRONG_<wbr>&lt;b&gt;')
    """
    return escape(name).replace("_", Markup("_<wbr>"))


def write_report(obj: Any, path: str | PathLike[str]) -> None:
    """Write the static report of `obj`; see :func:`ragdiag.display.page.write_report`."""
    from ragdiag.display import page

    page.write_report(obj, path)
