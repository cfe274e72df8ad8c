"""What hostile text becomes before anybody sees it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdiag.display.blocks import Run
from ragdiag.display.clean import MARKS_A_LETTER, clean, fit, shorten, width, wrap


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jgone", "gone"),
        ("\x1bcreset", "reset"),
        ("a\x00b\x07c\x08d", "abcd"),
        ("line\r\nnext\ttab\u2028sep", "line next tab sep"),
        ("\u202egnp.exe\u202c", "gnp.exe"),
        ("\u2066iso\u2069lated", "isolated"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("tag\U000e0041\U000e007f", "tag"),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        ("  spaces   kept  once ", "spaces kept once"),
        ("\u0928\u094d\u200d\u092f", "\u0928\u094d\u200d\u092f"),
        ("$x^2$ <b> & `code`", "$x^2$ <b> & `code`"),
        ("", ""),
    ],
)
def test_clean(hostile, shown):
    assert clean(hostile) == shown


def test_marks_do_not_pile_up():
    assert clean("a" + "\u0301" * 50 + "b") == "a" + "\u0301" * MARKS_A_LETTER + "b"


@given(st.text())
def test_nothing_unreadable_is_left(text):
    shown = clean(text)
    categories = {unicodedata.category(character) for character in shown}
    assert not categories & {"Cc", "Cs", "Zl", "Zp"}
    assert not set(shown) & set(
        "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    )
    assert clean(shown) == shown


@given(st.text(max_size=80))
def test_a_run_is_clean_and_keeps_its_seams(text):
    assert Run(f" {text} ").text.strip() == clean(text).strip()


def test_other_objects_are_shown_as_text():
    assert clean(12) == "12"
    assert shorten(None, 10) == "None"


def test_shorten_says_how_much_is_hidden():
    assert shorten("word " * 100, 20, tell=True) == "word word word word … (+481 chars)"
    assert shorten("x" * 50, 10) == "x" * 10 + " …"
    assert shorten("short", 10, tell=True) == "short"


def test_a_megabyte_is_cut_before_it_is_cleaned():
    shown = shorten("\x1b[31m" + "a" * 1_000_000, 100, tell=True)
    assert len(shown) < 130
    assert shown.endswith("chars)")


def test_width_counts_terminal_columns():
    assert width("日本語") == 6
    assert width("e\u0301") == 1
    assert fit("日本語の文書", 7) == "日本..."
    assert fit("abc", 3) == "abc"


@given(st.text(alphabet=st.characters(blacklist_categories=("Cs", "Cc")), max_size=200))
def test_wrapped_lines_fit_and_lose_nothing(text):
    text = clean(text)
    lines = wrap(text, 20)
    assert all(width(line) <= 20 for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
