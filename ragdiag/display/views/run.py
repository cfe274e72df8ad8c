"""What is shown of a run: how the queries ended, and what was recorded."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ragdiag import aggregates
from ragdiag.display.blocks import (
    Bullets,
    Cell,
    Column,
    Figure,
    Figures,
    Line,
    Row,
    Section,
    Table,
    View,
    line,
    muted,
)
from ragdiag.display.clean import shorten
from ragdiag.display.numbers import count, milliseconds, of, plural
from ragdiag.display.views.common import short_id, short_name
from ragdiag.recording import Run

__all__ = ["view"]

MAX_ERRORS = 5
MAX_INFO = 8
STAGES = (("retrieval_ms", "Retrieval"), ("generation_ms", "Generation"), ("total_ms", "Total"))


def view(run: Run, text_limit: int) -> View:
    """Show how many queries completed, what each table holds, the times and the errors."""
    outcomes = run.outcomes
    total = len(run)
    failed = int((outcomes["status"] == "failed").sum())
    completed = int((outcomes["status"] == "completed").sum())
    not_run = total - completed - failed
    name = " ".join(part for part in (run.pipeline_name, run.pipeline_version) if part)
    rest = [plural(failed, "failed", "failed")] * bool(failed)
    rest += [f"{count(not_run)} not run"] * bool(not_run)
    dataset = f"{short_name(run.dataset_name)} {shorten(run.dataset_version, 20)}"
    sections = [_tables(run), _stages(outcomes, total)]
    if failed:
        sections.append(_errors(outcomes, text_limit))
    if run.info:
        sections.append(_info(run.info))
    return View(
        f"{short_name(name)} completed {of(completed, total)} queries.",
        lead=line(f"{', '.join(rest)}." if rest else ""),
        note=line(f"A recorded run on {dataset}. {_verdict_note(run)}"),
        sections=tuple(sections),
        hints=("ragdiag.diagnose(run)", ".queries", ".retrieved", ".outcomes", ".save(path)"),
    )


def _verdict_note(run: Run) -> str:
    judged = run.verdicts[["answer_correct", "grounded"]].notna().any(axis=1).sum()
    if not len(run.verdicts):
        return "Answers not judged."
    return f"Judged: {of(int(judged), len(run))} answers."


def _tables(run: Run) -> Section:
    contents = (
        ("queries", run.queries, "questions and what is known of them"),
        ("qrels", run.qrels, "labelled pairs of query and chunk"),
        ("retrieved", run.retrieved, "chunks in the pipeline's order"),
        ("outcomes", run.outcomes, "status, answer and times of a query"),
        ("verdicts", run.verdicts, "the judge's findings"),
    )
    rows = tuple(
        Row((Cell(line(name)), Cell(line(count(len(table)))), Cell(line(what))))
        for name, table, what in contents
    )
    columns = (Column("Table", head=True), Column("Rows", "right"), Column("Holds"))
    return Section("Evidence", Table(columns, rows))


def _stages(outcomes: pd.DataFrame, total: int) -> Section:
    items = []
    for column, label in STAGES:
        stats = aggregates.latency(outcomes[column])
        value = milliseconds(stats.p50_ms, "not run")
        items.append(
            Figure(f"{label} p50", value, f"{of(stats.count, total)} timed", f"{label} p50")
        )
    return Section("Latency", Figures(tuple(items)))


def _errors(outcomes: pd.DataFrame, limit: int) -> Section:
    failed = outcomes[outcomes["status"] == "failed"]
    items: list[Line] = []
    for query_id, error in zip(failed["query_id"], failed["error"], strict=True):
        if len(items) == MAX_ERRORS:
            break
        said = "no message" if pd.isna(error) else shorten(error, limit)
        items.append(line(short_id(query_id), f": {said}"))
    note = f"showing {len(items)} of {count(len(failed))}" if len(items) < len(failed) else ""
    return Section("Errors", Bullets(tuple(items)), line(note))


def _info(info: Any) -> Section:
    items = [
        line(muted(f"{short_name(name)}: "), shorten(value, 120))
        for name, value in list(info.items())[:MAX_INFO]
    ]
    if len(info) > MAX_INFO:
        items.append(line(f"and {len(info) - MAX_INFO} more"))
    return Section("Notes", Bullets(tuple(items)))
