"""A small parser of our own fragments: nesting, text without markup, which elements there are."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

VOID = {"meta", "br", "wbr", "rect", "input"}


class Markup(HTMLParser):
    """Elements, attributes and text of some HTML, and whether it is nested properly."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: Counter[str] = Counter()
        self.attributes: Counter[str] = Counter()
        self.values: list[tuple[str, str, str]] = []
        self.pieces: list[str] = []
        self.faults: list[str] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self._open]

    def handle_starttag(self, tag, attrs):
        self.elements[tag] += 1
        for name, value in attrs:
            self.attributes[name] += 1
            self.values.append((tag, name, value or ""))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data):
        if not self._open or self._open[-1] not in ("style", "script"):
            self.pieces.append(data)

    def handle_comment(self, data):
        self.faults.append(f"a comment: {data[:40]!r}")

    @property
    def text(self) -> str:
        """What a reader without any styling sees, white space collapsed."""
        return " ".join(" ".join(self.pieces).split())


def stripped(source: str) -> str:
    """Return HTML as GitHub shows it: no style elements, classes, ids or style attributes."""
    source = re.sub(r"<style>.*?</style>", "", source, flags=re.DOTALL)
    return re.sub(r' (?:style|class|id)="[^"]*"', "", source)
