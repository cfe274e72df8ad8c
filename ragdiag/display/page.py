"""The static report: one HTML file with every query in it, for those who have no notebook.

It loads nothing: a strict content security policy allows the one style sheet and the one script of
ours by their hashes and forbids everything else, so that even an escape from escaping would be
inert. Without the script all queries are there and open by themselves; with it they can be
filtered and searched.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ragdiag.display.blocks import Line, View, line
from ragdiag.display.clean import shorten
from ragdiag.display.html import colour_class, environment, render_sections, resource
from ragdiag.display.numbers import plural
from ragdiag.display.views import TEXT_LIMIT, pair, query, view
from ragdiag.display.views.common import NAME_LIMIT, category_colour, category_order, short_name
from ragdiag.files import check_writable, write_text

if TYPE_CHECKING:
    from ragdiag.comparison import Comparison
    from ragdiag.results import Results

__all__ = ["render", "write_report"]

#: Text of all queries together, characters; chunks are cut shorter where there are many queries.
TEXT_BUDGET = 2_000_000
#: Chunks and answers that one query shows, about.
TEXTS_A_QUERY = 12
LEAST_TEXT = 60
QUESTION_LIMIT = 160
NO_TYPE = "no type"
NOT_DIAGNOSED = "not diagnosed"
#: Sections that the list of all queries replaces.
REPLACED = ("Failures", "Queries")


@dataclass(frozen=True)
class Entry:
    """One query of the report: its line, what filters it, and what opens."""

    name: str
    question: str
    cause: str
    colour: str
    data: tuple[tuple[str, str], ...]
    lead: Line
    sections: Sequence[Markup]


@dataclass(frozen=True)
class Filter:
    """A drop-down: its label, the data attribute it looks at, its values with their counts."""

    label: str
    name: str
    options: tuple[tuple[str, int], ...]
    total: int


def write_report(obj: Results | Comparison, path: str | PathLike[str]) -> None:
    """Write one self-contained HTML file with every query of `obj`.

    Parameters
    ----------
    obj : Results or Comparison
        What to report.
    path : str or os.PathLike
        The file; written under a temporary name and renamed.

    Raises
    ------
    ExportError
        The file cannot be written.
    TypeError
        `obj` is neither results nor a comparison.
    """
    target = Path(path)
    check_writable(target)
    write_text(target, render(obj))


def render(obj: Any) -> str:
    """Return the report as a string, the same bytes for the same object."""
    kinds = {kind.__name__ for kind in type(obj).__mro__}
    if "Results" in kinds:
        entries = list(_result_entries(obj))
        labels = {"category": "Category", "type": "Query type"}
    elif "Comparison" in kinds:
        entries = list(_comparison_entries(obj))
        labels = {"outcome": "Outcome", "category": "Category", "type": "Query type"}
    else:
        raise TypeError(f"a report is of Results or a Comparison, got {type(obj).__name__}")
    shown = view(obj)
    kept = tuple(section for section in shown.sections if section.title not in REPLACED)
    shown = View(shown.headline, shown.lead, shown.note, sections=kept)
    style, script = _style(), _script()
    return (
        environment("page")
        .get_template("report.html")
        .render(
            view=shown,
            sections=render_sections(shown.sections, "page"),
            order=_order(entries),
            queries=entries,
            filters=[_filter(label, name, entries) for name, label in labels.items()],
            style=style,
            script=script,
            style_hash=_hash(style),
            script_hash=_hash(script),
        )
    )


def _order(entries: Sequence[Entry]) -> str:
    said = plural(len(entries), "query", "queries")
    outcomes = Counter(dict(entry.data).get("outcome") for entry in entries)
    counted = [f"{outcomes[name]:,} {name}" for name in pair.OUTCOMES if outcomes[name]]
    return f"{said}: {', '.join(counted)}" if counted else f"{said}, worst first"


def _filter(label: str, name: str, entries: Sequence[Entry]) -> Filter:
    counts = Counter(dict(entry.data)[name] for entry in entries)
    values = category_order(counts) if name == "category" else sorted(counts)
    return Filter(label, name, tuple((value, counts[value]) for value in values), len(entries))


@lru_cache(maxsize=1)
def _style() -> Markup:
    # Our own file from the package; the policy's hash is of exactly these characters.
    return Markup(resource("templates/report.css"))  # noqa: S704


@lru_cache(maxsize=1)
def _script() -> Markup:
    return Markup(resource("templates/report.js"))  # noqa: S704


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _text_limit(n_queries: int, n_sides: int = 1) -> int:
    """Return how many characters of each text fit into a file that a browser opens gladly."""
    share = TEXT_BUDGET // max(n_queries * n_sides * TEXTS_A_QUERY, 1)
    return max(min(TEXT_LIMIT, share), LEAST_TEXT)


# ---------------------------------------------------------------------------------------- entries
def _result_entries(results: Results) -> Iterator[Entry]:
    limit = _text_limit(len(results))
    worst = results.failures()
    failed = set(worst.query_ids)
    rest = results[[query_id not in failed for query_id in results.query_ids]]
    for part in (worst, rest):
        for item in part:
            category = item.diagnosis.category
            name = NOT_DIAGNOSED if category is None else str(category)
            yield Entry(
                shorten(item.query_id, 40),
                shorten(item.query, QUESTION_LIMIT),
                short_name(name),
                colour_class(category_colour(None if category is None else name)),
                (("category", short_name(name)), ("type", _type(item.query_type))),
                line(shorten(item.diagnosis.reason, TEXT_LIMIT)),
                render_sections(query.sections(item, limit, conditions=False), "body"),
            )


def _type(query_type: object) -> str:
    return NO_TYPE if query_type is None else shorten(query_type, NAME_LIMIT)


def _comparison_entries(comparison: Comparison) -> Iterator[Entry]:
    limit = _text_limit(len(comparison), len(comparison.names))
    found = pair.outcome_of_each(comparison)
    order = sorted(found, key=lambda each: pair.OUTCOMES.index(found[each]))
    for query_id, sides in pair.sides_of(comparison, order).items():
        outcome = found[query_id]
        shown = pair.view(sides, outcome, limit)
        last = list(sides.values())[-1]
        category = last.diagnosis.category
        name = NOT_DIAGNOSED if category is None else str(category)
        yield Entry(
            shorten(query_id, 40),
            shorten(last.query, QUESTION_LIMIT),
            f"{outcome}, {short_name(name)}",
            colour_class(category_colour(None if category is None else name)),
            (
                ("outcome", outcome),
                ("category", short_name(name)),
                ("type", _type(last.query_type)),
            ),
            shown.lead,
            render_sections(shown.sections, "body"),
        )
