"""What is shown of a golden dataset."""

from __future__ import annotations

from ragdiag.dataset import GoldenDataset
from ragdiag.dataset_summary import DatasetSummary, Spread
from ragdiag.display.blocks import (
    Bullets,
    Cell,
    Column,
    Figure,
    Figures,
    Row,
    Section,
    Table,
    View,
    line,
)
from ragdiag.display.clean import shorten
from ragdiag.display.numbers import count, of, plural
from ragdiag.display.views.common import id_list, share_cell, short_id, short_name

__all__ = ["view"]

MAX_TYPES = 12
#: Queries that are shown as examples.
MAX_QUERIES = 5
MAX_WARNINGS = 4
TYPE_COLOUR = "#767676"


def view(dataset: GoldenDataset, text_limit: int) -> View:
    """Show how many queries there are, of which types, and what they lack."""
    summary = dataset.summary()
    name = f"{short_name(summary.name)} {shorten(summary.version, 20)}"
    relevant = count(summary.total_relevant)
    note = []
    if summary.description:
        note.append(shorten(summary.description, text_limit))
    note.append(_missing(summary))
    sections = [_contents(summary)]
    if summary.query_type_counts or summary.without_type:
        sections.append(_types(summary))
    if summary.warnings:
        warned = [line(shorten(text, text_limit)) for text in summary.warnings[:MAX_WARNINGS]]
        hidden = len(summary.warnings) - MAX_WARNINGS
        warned += [line(f"and {hidden:,} more in .summary().warnings")] * (hidden > 0)
        sections.append(Section("Warnings", Bullets(tuple(warned))))
    sections.append(_queries(dataset, text_limit))
    return View(
        f"{name}: {plural(summary.total_samples, 'query', 'queries')}.",
        lead=line(f"A golden dataset with {relevant} labelled chunks."),
        note=line(" ".join(part for part in note if part)),
        sections=tuple(sections),
        hints=(".frame", ".qrels", ".summary()", "ragdiag.evaluate(pipeline, dataset)"),
    )


def _missing(summary: DatasetSummary) -> str:
    lacking = [
        f"{count(number)} without {what}"
        for number, what in (
            (summary.without_labels, "labelled chunks (retrieval not measured)"),
            (summary.without_answer, "an expected answer"),
            (summary.without_type, "a type"),
        )
        if number
    ]
    return (
        f"Queries: {', '.join(lacking)}." if lacking else "Every query has labels, answer and type."
    )


def _contents(summary: DatasetSummary) -> Section:
    total = summary.total_samples
    labelled = total - summary.without_labels
    figures = [
        Figure("Queries", count(total), "in all", "queries"),
        Figure(
            "Labelled chunks",
            count(summary.total_relevant),
            f"{count(summary.distinct_relevant)} different" + ", graded" * summary.graded,
            "labelled chunks",
        ),
        _spread("Chunks a query", summary.relevant_per_query, labelled, total),
        _spread("Question length", summary.query_characters, total, total, "characters"),
        _spread(
            "Answer length",
            summary.answer_characters,
            total - summary.without_answer,
            total,
            "characters",
        ),
    ]
    return Section("Contents", Figures(tuple(figures)))


def _spread(label: str, spread: Spread | None, used: int, total: int, unit: str = "") -> Figure:
    """Show a median with its range."""
    brief = label.lower()
    if spread is None:
        return Figure(label, "none", f"{of(used, total)} have it", brief)
    value = f"{count(spread.median)}{' ' + unit if unit else ''}"
    reach = f"median; {count(spread.min)} to {count(spread.max)} in {of(used, total)}"
    return Figure(label, value, reach, brief)


def _types(summary: DatasetSummary) -> Section:
    counts = list(summary.query_type_counts.items())
    if summary.without_type:
        counts.append(("no type", summary.without_type))
    total = summary.total_samples
    rows = [
        Row(
            (
                Cell(line(short_name(name))),
                Cell(line(count(number))),
                share_cell(number, total, TYPE_COLOUR),
            )
        )
        for name, number in counts[:MAX_TYPES]
    ]
    if len(counts) > MAX_TYPES:
        rows.append(Row(cut=line(f"showing {MAX_TYPES} of {len(counts):,} types")))
    brief = ", ".join(f"{short_name(name)} {count(number)}" for name, number in counts[:MAX_TYPES])
    columns = (
        Column("Type", head=True, tight=True),
        Column("Queries", "right"),
        Column("Share", tight=True),
    )
    return Section("Query types", Table(columns, tuple(rows)), brief=(line(brief),))


def _queries(dataset: GoldenDataset, limit: int) -> Section:
    rows = []
    shown = dataset[:MAX_QUERIES]
    for sample in shown:
        labels = id_list(sample.relevant_chunk_ids, 3)
        rows.append(
            Row(
                (
                    Cell(line(short_id(sample.id))),
                    Cell(line(shorten(sample.query, limit // 2))),
                    Cell(labels or line("not labelled")),
                )
            )
        )
    columns = (
        Column("Query", head=True, tight=True),
        Column("Question", prose=True),
        Column("Relevant chunks", in_text=False),
    )
    note = line(f"showing {len(rows)} of {count(len(dataset))}")
    return Section("Queries", Table(columns, tuple(rows), wide=True), note)
