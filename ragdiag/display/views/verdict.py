"""What is shown of a judge's verdict on one answer."""

from __future__ import annotations

from ragdiag.display.blocks import (
    Bullets,
    Cell,
    Column,
    Line,
    Lines,
    Row,
    Section,
    Table,
    View,
    line,
)
from ragdiag.display.clean import shorten
from ragdiag.display.numbers import measure
from ragdiag.display.views.common import short_id, short_name
from ragdiag.schema import JudgeResult

__all__ = ["finding", "view"]

#: Claims and facts that are shown.
MAX_CLAIMS = 20


def finding(value: bool | None, yes: str, no: str, missing: str) -> str:
    """Put a verdict in words; a missing one is said to be missing."""
    return missing if value is None else yes if value else no


def view(result: JudgeResult, text_limit: int) -> View:
    """Show the two findings, their confidence, the reason and the claims."""
    correct = finding(result.answer_correct, "correct", "incorrect", "")
    grounded = finding(result.grounded, "grounded", "not grounded", "")
    word = "Suspected" if result.screened else "Judged"
    if correct and grounded:
        headline = f"{word} {correct} and {grounded}."
    elif correct:
        headline = f"{word} {correct}; grounding not judged."
    elif grounded:
        headline = f"{word} {grounded}; correctness not judged."
    else:
        headline = "Not judged: neither correctness nor grounding."
    note = []
    if result.model:
        note.append(f"Model {short_name(result.model)}.")
    if result.screened:
        note.append("Screened by fixed rules, no model was asked.")
    if result.prompt_tokens is not None or result.completion_tokens is not None:
        note.append(
            f"Tokens: {result.prompt_tokens or 0:,} in, {result.completion_tokens or 0:,} out."
        )
    return View(
        headline,
        note=line(" ".join(note)),
        sections=tuple(_sections(result, text_limit)),
    )


def _sections(result: JudgeResult, limit: int) -> list[Section]:
    sides = [
        _side("correct", result.answer_correct, result.correct_confidence, result.correct_error),
        _side("grounded", result.grounded, result.grounded_confidence, result.grounded_error),
    ]
    sections = [Section("Verdict", Lines((line(sides[0], "; ", sides[1]),)))]
    if result.reason:
        sections.append(Section("Reason", Lines((line(shorten(result.reason, 2 * limit)),))))
    facts = [("missing: ", fact) for fact in result.missing_facts]
    facts += [("wrong: ", fact) for fact in result.wrong_facts]
    if facts:
        items = tuple(line(kind, shorten(fact, limit)) for kind, fact in facts[:MAX_CLAIMS])
        sections.append(Section("Facts", Bullets(items)))
    if result.claims:
        sections.append(_claims(result, limit))
    return sections


def _side(name: str, value: bool | None, confidence: float | None, error: str | None) -> Line:
    said = finding(value, "yes", "no", "not judged")
    if value is not None and confidence is not None:
        said += f", confidence {measure(confidence)}"
    if error:
        said += f" ({shorten(error, 200)})"
    return line(f"{name}: {said}")


def _claims(result: JudgeResult, limit: int) -> Section:
    supported = sum(claim.verdict == "supported" for claim in result.claims)
    rows = tuple(
        Row(
            (
                Cell(line(claim.verdict.replace("_", " "))),
                Cell(line(short_id(claim.chunk_id)) if claim.chunk_id else line("none named")),
                Cell(line(shorten(claim.text, limit))),
            )
        )
        for claim in result.claims[:MAX_CLAIMS]
    )
    columns = (
        Column("Finding", tight=True),
        Column("Chunk", tight=True),
        Column("Claim", head=True, prose=True),
    )
    note = line(f"{supported} of {len(result.claims)} supported")
    return Section("Claims", Table(columns, rows, wide=True), note)
