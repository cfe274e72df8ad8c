"""What can be said of many queries at once: tables of means and counts, the headline, the notes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag.aggregates import (
    LatencyStats,
    Mean,
    as_floats,
    category_counts,
    grouped_mean,
    grouped_percentile,
    latency,
    mean,
    rate,
    summary_table,
)
from ragdiag.analysis import Analysis
from ragdiag.diagnosis import NOT_MEASURED
from ragdiag.errors import SettingsError
from ragdiag.schema import QueryType
from ragdiag.tables import TEXT
from ragdiag.taxonomy import SEVERITY_ORDER, FailureCategory

__all__ = [
    "counts_table",
    "group_table",
    "headline",
    "latency_table",
    "means",
    "notes",
    "summary",
    "worst_first",
]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Stages that are timed, in order.
STAGES = ("retrieval", "generation", "total", "judge")

#: What the summary shows of each stage of the pipeline.
SUMMARY_LATENCIES = ("mean", "p50", "p95", "p99")

#: How many causes the headline names before it counts the rest.
HEADLINE_CAUSES = 3

#: What the headline calls the two sides of a verdict.
SIDES = {"grounded": "grounding", "answer_correct": "correctness"}


def means(analysis: Analysis, positions: Ints) -> dict[str, Mean]:
    """Return the mean of every measure over the queries at `positions`, with its counts."""
    failed = analysis.evidence.failed[positions]
    found = {name: mean(values[positions], failed) for name, values in analysis.measures.items()}
    for name, values in _verdicts(analysis, positions).items():
        found[name] = rate(values, failed)
    found["passed"] = rate(_passed(analysis, positions))
    return found


def summary(analysis: Analysis, positions: Ints) -> pd.DataFrame:
    """Return ``measure, value, n_used, n_failed, n_missing``: means, rates and latencies."""
    rows = means(analysis, positions)
    failed = analysis.evidence.failed[positions]
    for stage in STAGES[:-1]:
        values = _latencies(analysis, positions, stage)
        counts, stats = mean(values, failed), latency(values)
        for part in SUMMARY_LATENCIES:
            value = getattr(stats, f"{part}_ms")
            rows[f"{part}_{stage}_ms"] = dataclasses.replace(counts, value=value)
    return summary_table(rows)


def latency_table(analysis: Analysis, positions: Ints) -> pd.DataFrame:
    """Return count, mean, percentiles and range of the milliseconds of each stage."""
    stats = [latency(_latencies(analysis, positions, stage)) for stage in STAGES]
    columns = {
        field.name: np.array(
            [getattr(each, field.name) for each in stats],
            dtype=np.int64 if field.name == "count" else np.float64,
        )
        for field in dataclasses.fields(LatencyStats)
    }
    return pd.DataFrame(columns, index=pd.Index(STAGES, dtype=object, name="stage"))


def counts_table(analysis: Analysis, positions: Ints) -> pd.DataFrame:
    """Return for each category, in display order, how many queries it concerns."""
    book = analysis.book
    diagnosis = analysis.diagnosis.take(positions)
    queries = category_counts(diagnosis.primary, len(book.names))[0]
    unmeasured = np.append((diagnosis.states == NOT_MEASURED).sum(axis=1), 0)
    table = pd.DataFrame(
        {
            "queries": queries,
            "also_fired": diagnosis.also_fired(),
            "not_measured": unmeasured,
            "severity": pd.array(list(book.severities), dtype=TEXT),
            "action": pd.array(list(book.actions), dtype=TEXT),
        },
        index=pd.Index(book.names, dtype=object, name="category"),
    )
    return table.loc[list(book.display_order)]


def group_table(analysis: Analysis, positions: Ints, column: str) -> pd.DataFrame:
    """Return one row for each value of `column`: counts, means with their n, and the main cause.

    Raises
    ------
    SettingsError
        There is no such column, or its cells cannot be grouped.
    """
    if column not in analysis.table.columns:
        raise SettingsError(
            f"there is no column {column!r}; the columns are "
            f"{', '.join(map(str, analysis.table.columns))}"
        )
    groups, labels = _grouped(analysis.table[column].take(positions), column)
    n = len(labels)
    failed = analysis.evidence.failed[positions]
    completed = analysis.evidence.has_outcome[positions] & ~failed
    passed = _passed(analysis, positions)
    columns: dict[str, object] = {
        "queries": np.bincount(groups, minlength=n),
        "passed": np.bincount(groups[passed == 1], minlength=n),
        "completed": np.bincount(groups[completed], minlength=n),
        "failed": np.bincount(groups[failed], minlength=n),
    }
    measures = {name: values[positions] for name, values in analysis.measures.items()}
    for name, values in {**measures, **_verdicts(analysis, positions)}.items():
        columns[name], columns[f"n_{name}"] = grouped_mean(values, groups, n)
    times = _latencies(analysis, positions, "retrieval")
    columns["p50_retrieval_ms"] = grouped_percentile(times, groups, n, 50.0)
    columns["p95_retrieval_ms"] = grouped_percentile(times, groups, n, 95.0)
    columns["main_cause"] = pd.array(_main_causes(analysis, positions, groups, n), dtype=TEXT)
    return pd.DataFrame(columns, index=labels.rename(column))


def headline(analysis: Analysis, positions: Ints) -> str:
    """Return the one sentence that says what is wrong, and what was not measured."""
    n = len(positions)
    if not n:
        return "no queries"
    book, diagnosis = analysis.book, analysis.diagnosis.take(positions)
    passed = int((diagnosis.primary == len(book.rules)).sum())
    unjudged = _unjudged(analysis, positions)
    labelled = bool(analysis.evidence.retrieval_measured[positions].any())
    what = " retrieval" if unjudged == ["answers"] and labelled else ""
    parts = [f"{passed:,} of {n:,} passed{what}", *_causes(analysis, positions)]
    sentence = " · ".join(parts)
    remarks = []
    undiagnosed = int((diagnosis.primary < 0).sum())
    if undiagnosed:
        remarks.append(f"{undiagnosed:,} without any evidence")
    if not labelled:
        remarks.append("retrieval not measured")
    else:
        unlabelled = int((analysis.evidence.n_relevant[positions] == 0).sum())
        remarks += [f"{unlabelled:,} without labels"] if unlabelled else []
    remarks += [f"{each} not judged" for each in unjudged]
    suspected = _n_suspected(analysis, positions)
    if suspected:
        remarks.append(f"{suspected:,} only suspected by the offline judge")
    wavering = _n_wavering(analysis, positions)
    if wavering:
        remarks.append(f"the judge changed its mind on {wavering:,}")
    return "; ".join([sentence, *remarks])


def notes(analysis: Analysis, positions: Ints) -> tuple[str, ...]:
    """Return what limits the numbers: of the settings, of the recording, of the tables."""
    evidence, settings = analysis.evidence, analysis.settings
    found: list[str] = []
    depths = evidence.n_retrieved[positions][evidence.retrieval_measured[positions]]
    shallow = int((depths < settings.k).sum())
    if shallow:
        found.append(
            f"fewer than k = {settings.k} chunks were recorded for {shallow:,} of "
            f"{len(depths):,} queries (at most {int(depths.max())} for any): what lies deeper is "
            "not known"
        )
    if settings.rank_threshold >= settings.k:
        found.append(
            f"WRONG_CHUNK_RANK cannot fire: rank_threshold is {settings.rank_threshold}, and with "
            f"k = {settings.k} a relevant chunk that counts is never below that rank"
        )
    not_run = int((~evidence.was_run[positions]).sum())
    if not_run:
        found.append(f"{not_run:,} of {len(positions):,} queries have not been run")
    for table, lost in evidence.n_unknown.items():
        if lost:
            rows = "row" if lost == 1 else "rows"
            found.append(f"{lost:,} {rows} of {table} left out: no such query in the dataset")
    if evidence.covers is not None:
        lost = int((evidence.by_passage & ~evidence.covers.comparable)[positions].sum())
        if lost:
            found.append(
                f"retrieval of {lost:,} queries not measured: chunks have neither the text nor the "
                "offsets to be compared with the passages of evidence"
            )
    if evidence.ranks.n_repeated_pairs:
        found.append(
            f"{evidence.ranks.n_repeated_pairs:,} labels left out: the same chunk of the same "
            "query is labelled before"
        )
    found += [str(note) for note in evidence.run.info.get("notes", ())]
    return tuple(found)


def worst_first(analysis: Analysis, positions: Ints) -> Ints:
    """Return those of `positions` that did not pass: severity, confidence, category, query id."""
    book, diagnosis = analysis.book, analysis.diagnosis
    primary = diagnosis.primary[positions]
    failed = positions[(primary >= 0) & (primary < len(book.rules))]
    primary = diagnosis.primary[failed]
    severity = np.array([SEVERITY_ORDER.index(each) for each in book.severities])
    display = np.array([book.display_order.index(name) for name in book.names])
    ids = analysis.evidence.query_ids.take(failed).to_numpy(dtype=object)
    # What has no stated confidence comes after what has one.
    doubt = -np.nan_to_num(diagnosis.confidence[failed], nan=-1.0)
    return failed[np.lexsort((ids, display[primary], doubt, -severity[primary]))]


# -- parts ----------------------------------------------------------------------------------------


def _verdicts(analysis: Analysis, positions: Ints) -> dict[str, Floats]:
    """Return the findings of the judge, missing where the pipeline failed."""
    rules, failed = analysis.rule_evidence, analysis.evidence.failed
    return {
        name: np.where(failed, np.nan, values)[positions]
        for name, values in (
            ("answer_correct", rules.answer_correct),
            ("grounded", rules.grounded),
        )
    }


def _passed(analysis: Analysis, positions: Ints) -> Floats:
    """Return 1 where a query passed, 0 where it did not, NaN where nothing was measured."""
    primary = analysis.diagnosis.primary[positions]
    return np.where(primary < 0, np.nan, primary == len(analysis.book.rules))


def _latencies(analysis: Analysis, positions: Ints, stage: str) -> Floats:
    """Return the milliseconds of a stage, missing where the pipeline failed."""
    evidence = analysis.evidence
    table = evidence.verdicts if stage == "judge" else evidence.outcomes
    return np.where(evidence.failed, np.nan, as_floats(table[f"{stage}_ms"]))[positions]


def _grouped(values: pd.Series, column: str) -> tuple[Ints, pd.Index]:
    """Return the group of each value and the labels, missing ones last."""
    try:
        codes, labels = pd.factorize(values)
    except TypeError as error:
        raise SettingsError(
            f"column {column!r} cannot be grouped by: its cells are not single values ({error})"
        ) from error
    labels = pd.Index(labels)
    if column == "query_type":
        standard = [str(each) for each in QueryType]
        names = labels.tolist()
        order = sorted(
            range(len(names)),
            key=lambda place: (
                standard.index(names[place]) if names[place] in standard else len(standard),
                names[place],
            ),
        )
    else:
        try:
            order = np.argsort(labels, kind="stable").tolist()
        except TypeError:
            order = list(range(len(labels)))
    rank = np.empty(len(labels) + 1, dtype=np.int64)
    rank[order] = np.arange(len(labels))
    rank[-1] = len(labels)
    ordered = labels.take(order)
    if (codes < 0).any():
        ordered = pd.Index([*ordered.tolist(), None], dtype=object)
    return rank[codes], ordered


def _main_causes(
    analysis: Analysis, positions: Ints, groups: Ints, n_groups: int
) -> list[str | None]:
    """Return the category most queries of each group failed with, None where all passed."""
    book = analysis.book
    counts = category_counts(
        analysis.diagnosis.primary[positions], len(book.names), groups, n_groups
    )
    # Ties go to the first in display order, as in every table of counts.
    order = [book.names.index(name) for name in book.display_order if name != FailureCategory.PASS]
    best = counts[:, order].argmax(axis=1)
    return [
        book.names[order[place]] if counts[group, order[place]] else None
        for group, place in enumerate(best.tolist())
    ]


def _causes(analysis: Analysis, positions: Ints) -> list[str]:
    counts = counts_table(analysis, positions)["queries"].drop(FailureCategory.PASS.value)
    counts = counts[counts > 0].sort_values(ascending=False, kind="stable")
    parts = [f"{count:,} × {name}" for name, count in counts.head(HEADLINE_CAUSES).items()]
    rest = int(counts.iloc[HEADLINE_CAUSES:].sum())
    return [*parts, f"{rest:,} with other causes"] if rest else parts


def _unjudged(analysis: Analysis, positions: Ints) -> list[str]:
    """Return what the headline says was not judged: all answers, some, or one side of some."""
    usable = ~analysis.evidence.failed[positions]
    if not usable.any():
        return []
    missing = {
        name: np.isnan(values[usable]) for name, values in _verdicts(analysis, positions).items()
    }
    neither = np.logical_and.reduce(list(missing.values()))
    if neither.all():
        return ["answers"]
    parts: Sequence[tuple[str, int]] = [
        ("answers", int(neither.sum())),
        *((SIDES[name], int((gone & ~neither).sum())) for name, gone in missing.items()),
    ]
    words = []
    for name, count in parts:
        if count and name == "answers":
            words.append(f"{count:,} answer{'s' if count > 1 else ''}")
        elif count:
            words.append(f"{name} of {count:,} more")
    return words


def _n_wavering(analysis: Analysis, positions: Ints) -> int:
    """Return on how many queries a judge that was asked several times found different things."""
    replies = analysis.evidence.run.info.get("judge_replies") or {}
    wavering = {
        query_id for query_id, found in replies.items() if any(each != found[0] for each in found)
    }
    if not wavering:
        return 0
    return int(analysis.evidence.query_ids.take(positions).isin(list(wavering)).sum())


def _n_suspected(analysis: Analysis, positions: Ints) -> int:
    """Return how many queries have a primary cause that only a screening found."""
    semantic = [
        analysis.book.names.index(category.value)
        for category in (
            FailureCategory.RETRIEVED_BUT_NOT_GROUNDED,
            FailureCategory.ANSWER_INCORRECT,
        )
    ]
    screened = as_floats(analysis.evidence.verdicts["screened"])[positions] == 1
    return int((screened & np.isin(analysis.diagnosis.primary[positions], semantic)).sum())
