"""Every line of the hostile corpora through everything that is shown, without a browser."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from ragdiag.comparison import Comparison
from ragdiag.dataset import GoldenDataset
from ragdiag.display import html, page, text
from ragdiag.display.clean import width
from ragdiag.display.markdown import escape, markdown
from ragdiag.results import Results
from ragdiag.schema import JudgeResult


def _sibling(name):
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"display_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


conftest = _sibling("conftest")
Markup = _sibling("markup").Markup

OURS = {
    *("div", "style", "p", "strong", "span", "samp", "code", "b", "i", "table", "caption"),
    *("thead", "tbody", "tr", "th", "td", "details", "summary", "blockquote", "ul", "li", "wbr"),
}
OUR_ATTRIBUTES = {"style", "class", "scope", "colspan"}
UNREADABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def objects(lines):
    """Make one of everything that is shown, of hostile strings alone."""
    run = conftest.make_hostile(lines)
    results = Results(run)
    return [
        run,
        results,
        results.report(),
        Comparison(results, results, names=[lines[0], lines[1]]),
        Comparison(results, results, names=[lines[0], lines[1]]).report,
        GoldenDataset.from_frame(
            run.queries.assign(relevant_chunk_ids=[[f"c{i}"] for i in range(len(run))]),
            name=lines[0],
            version=lines[1],
            query_types="any",
        ),
        JudgeResult(
            answer_correct=True,
            reason=lines[0],
            model=lines[1],
            missing_facts=list(lines[:5]),
        ),
        *results,
    ]


def check(obj):
    """Assert that nothing of `obj` got out of its place, in HTML, text and Markdown."""
    found = Markup(html.render(obj))
    assert not found.faults
    assert set(found.elements) <= OURS
    assert set(found.attributes) <= OUR_ATTRIBUTES
    assert not UNREADABLE.search(found.text)
    said = text.render(obj)
    assert not UNREADABLE.search(said)
    assert all(width(line) <= 80 for line in said.splitlines())
    source = markdown(obj)
    assert not UNREADABLE.search(source)
    assert "<" not in source.replace("<br>", "")
    assert not re.search(r"(?<!\\)\]\(", re.sub(r"`[^`\n]*`", "", source))


def test_an_extract():
    for obj in objects(conftest.EXTRACT):
        check(obj)


def test_all_lines(shared_data):
    """Each line is a query id, question, answer, chunk, judge's reason, name and metadata."""
    lines = conftest.hostile_lines(shared_data)
    assert len(lines) > 1500
    for start in range(0, len(lines), 400):
        part = lines[start : start + 400]
        shown = objects(part)
        for obj in shown[:7]:
            check(obj)
        for obj in shown[7::4]:
            check(obj)


def test_the_report_keeps_its_elements(shared_data):
    lines = conftest.hostile_lines(shared_data)[:300]
    results = Results(conftest.make_hostile(lines))
    for obj in (results, Comparison(results, results)):
        source = page.render(obj)
        found = Markup(source.removeprefix("<!doctype html>"))
        assert not found.faults
        assert found.elements["script"] == found.elements["style"] == found.elements["form"] == 1
        assert not {"img", "iframe", "a", "link", "object", "math"} & set(found.elements)
        ids = [value for _, name, value in found.values if name == "id"]
        assert ids == [f"query-{n}" for n in range(1, len(obj) + 1)]
        assert not [name for name in found.attributes if name.startswith("on")]


@pytest.mark.parametrize(
    ("hostile", "escaped"),
    [
        ("<b>", "&lt;b&gt;"),
        ("[x](y)", "\\[x\\](y)"),
        ("a | b", "a \\| b"),
        ("@team", "@\N{WORD JOINER}team"),
        ("see #12", "see #\N{WORD JOINER}12"),
        (
            "https://x",
            "https:\N{WORD JOINER}//x".replace(":\N{WORD JOINER}//", "://\N{WORD JOINER}"),
        ),
        ("- item", "\\- item"),
        ("1. item", "1\N{WORD JOINER}. item"),
        ("# head", "\\# head"),
        ("recall@5", "recall@5"),
        ("$x$", "\\$x\\$"),
        ("&amp;", "&amp;amp;"),
    ],
)
def test_markdown_shows_text_letter_by_letter(hostile, escaped):
    assert escape(hostile) == escaped
