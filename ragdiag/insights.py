"""What the numbers of a report say, as sentences: fixed rules with named limits, no model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag.taxonomy import FailureCategory

if TYPE_CHECKING:
    from ragdiag.report_models import EvaluationReport, QueryTypeMetrics

__all__ = ["deeper_k", "insights"]

#: A query type whose mean recall lies this far below the best type's is the weakest.
RECALL_GAP = 0.10

#: Without such a gap, a mean recall below this is still named.
LOW_RECALL = 0.70

#: A groundedness rate this far below the best type's is named.
GROUNDEDNESS_GAP = 0.10

#: A 95th percentile of retrieval time above this is named, milliseconds.
SLOW_P95_MS = 1000.0

#: A type's share of passes this far below that of all others is named, from so many queries on.
PASS_GAP = 0.25
PASS_GAP_QUERIES = 5

#: The suggested k completes at least this share of the queries that any deeper k could.
DEPTH_SHARE = 0.8

#: A difference that is a limit on paper is one in floating point too.
_ROUNDING = 1e-9


def insights(report: EvaluationReport, smallest_k: pd.Series | None = None) -> list[str]:
    """Return what the numbers of `report` say, the most important first.

    Parameters
    ----------
    report : EvaluationReport
        Everything but its insights.
    smallest_k : pandas.Series of float, optional
        For each query the k from which on all its relevant chunks are there, see
        :attr:`ragdiag.facts.Facts.frame`.

    Examples
    --------
    >>> from ragdiag import EvaluationReport
    >>> insights(EvaluationReport(total_queries=2, completed_queries=2, judged_queries=2,
    ...                           retrieval={"k": 5, "measured_queries": 2},
    ...                           diagnosis_counts={"PASS": 2}))
    ['All 2 queries passed, and all answers were judged.']
    """
    failures = _failures(report)
    found = list(_all_passed(report)) if not failures else list(_main_cause(report, failures))
    found += _weakest_retrieval(report)
    found += _pass_gap(report)
    if smallest_k is not None:
        found += _depth(smallest_k, report.retrieval.k)
    found += _groundedness_gap(report)
    found += _latency(report)
    found += _judge(report)
    found += _labels(report)
    found += _pipeline(report)
    return found


def _failures(report: EvaluationReport) -> dict[str, int]:
    return {
        category: count
        for category, count in report.diagnosis_counts.items()
        if count and category != FailureCategory.PASS
    }


def _all_passed(report: EvaluationReport) -> Iterator[str]:
    passed = report.diagnosis_counts.get(FailureCategory.PASS, 0)
    if not passed:
        return
    who = f"All {passed} queries passed" if passed > 1 else "The one query passed"
    if report.undiagnosed_queries:
        who = f"All {passed} queries that could be diagnosed passed"
    judged, unjudged = _judged(report)
    if unmeasured := _unmeasured_retrieval(report):
        yield f"{who} what was measured, but {unmeasured}; {unjudged or judged}."
    elif not report.judged_queries and not report.judge_failures:
        yield f"{who} retrieval; {unjudged}."
    else:
        yield f"{who}, but {unjudged}." if unjudged else f"{who}, and {judged}."


def _unmeasured_retrieval(report: EvaluationReport) -> str | None:
    """Say where retrieval could not be measured; a pass proves nothing about it there."""
    measured, completed = report.retrieval.measured_queries, report.completed_queries
    if measured is None:  # a report of an earlier release, which has no such count
        measured = 0 if report.retrieval.mean_recall_at_k is None else completed
    if not measured:
        return "retrieval was not measured"
    if measured < completed:
        return f"retrieval was measured on only {_of(measured, completed)} queries"
    return None


def _judged(report: EvaluationReport) -> tuple[str, str | None]:
    """Say that the answers were judged, and what of them was not."""
    done, completed = report.judged_queries, report.completed_queries
    judged = "all answers were judged" if done > 1 else "its answer was judged"
    if not done and not report.judge_failures:
        return judged, "answers were not judged"
    if done < completed:
        return judged, f"only {_of(done, completed)} answers were judged"
    if (semantic := report.semantic) is not None:
        for side, n in (
            ("correctness", semantic.correctness_judged),
            ("groundedness", semantic.groundedness_judged),
        ):
            if n is not None and n < completed:
                return judged, f"{side} was judged on only {_of(n, completed)} answers"
    return judged, None


def _main_cause(report: EvaluationReport, failures: dict[str, int]) -> Iterator[str]:
    """Name the commonest cause, all of them when several are equally common."""
    total, most = sum(failures.values()), max(failures.values())
    causes = [category for category, count in failures.items() if count == most]
    share = f"{_of(most, total)} failures, {most / total:.0%}"
    if len(causes) == 1:
        yield f"{causes[0]} is the main cause ({share})."
    else:
        yield f"{' and '.join(causes)} are equally common ({share} each)."


def _weakest_retrieval(report: EvaluationReport) -> Iterator[str]:
    recall = {
        part.query_type: part.mean_recall_at_k
        for part in report.metrics_by_query_type.values()
        if part.mean_recall_at_k is not None
    }
    if len(recall) < 2:
        return
    low, high = min(recall, key=recall.__getitem__), max(recall, key=recall.__getitem__)
    name = f"Recall@{report.retrieval.k}"
    if recall[high] - recall[low] >= RECALL_GAP - _ROUNDING:
        yield (
            f"'{low}' queries have the weakest retrieval: {name} {recall[low]:.2f}, "
            f"'{high}' {recall[high]:.2f}."
        )
    elif recall[low] < LOW_RECALL - _ROUNDING:
        yield f"'{low}' queries have low recall: {name} {recall[low]:.2f}."


def _pass_gap(report: EvaluationReport) -> Iterator[str]:
    """Name the type that passes far less often than all others together."""
    types = list(report.metrics_by_query_type.values())
    passed = sum(map(_passed, types))
    total = sum(part.total_queries for part in types)
    gaps: dict[str, tuple[float, str]] = {}
    for part in types:
        others = total - part.total_queries
        if min(part.total_queries, others) < PASS_GAP_QUERIES:
            continue
        rest = passed - _passed(part)
        gap = rest / others - _passed(part) / part.total_queries
        gaps[part.query_type] = (
            gap,
            f"'{part.query_type}' queries pass {_of(_passed(part), part.total_queries)}, "
            f"all others {_of(rest, others)}.",
        )
    if gaps:
        gap, sentence = max(gaps.values(), key=lambda each: each[0])
        if gap >= PASS_GAP - _ROUNDING:
            yield sentence


def _passed(part: QueryTypeMetrics) -> int:
    return part.diagnosis_counts.get(FailureCategory.PASS, 0)


def deeper_k(smallest_k: npt.ArrayLike, k: int) -> tuple[int, int, int] | None:
    """Return a larger k that would be worth it, how many queries it completes, and of how many.

    It is the smallest k that completes at least 80 % of the queries that the recorded depth could.
    None when no query lacks a chunk at `k`, or no deeper k would complete one.

    Parameters
    ----------
    smallest_k : array-like of float, shape (n,)
        For each query the k from which on it is complete; infinite for never, NaN for not
        measured.
    k : int
        The depth in use.

    Examples
    --------
    >>> deeper_k([2, 7, 8, 9, 9, 30, float("inf")], k=5)
    (9, 4, 6)
    """
    needed = np.asarray(smallest_k, dtype=np.float64)
    incomplete = needed[needed > k]
    reachable = np.sort(incomplete[np.isfinite(incomplete)])
    if not reachable.size:
        return None
    better = int(reachable[int(np.ceil(DEPTH_SHARE * reachable.size - _ROUNDING)) - 1])
    return better, int((reachable <= better).sum()), int(incomplete.size)


def _depth(smallest_k: pd.Series, k: int) -> Iterator[str]:
    deeper = deeper_k(smallest_k, k)
    if deeper is not None:
        better, completed, incomplete = deeper
        of_those = f"{completed} of the {incomplete} queries" if incomplete > 1 else "the one query"
        lack = "lack" if incomplete > 1 else "lacks"
        yield f"k = {better} would complete {of_those} that {lack} a chunk at k = {k}."


def _groundedness_gap(report: EvaluationReport) -> Iterator[str]:
    rates = {
        part.query_type: part.groundedness_rate
        for part in report.metrics_by_query_type.values()
        if part.groundedness_rate is not None
    }
    if len(rates) < 2:
        return
    low, high = min(rates, key=rates.__getitem__), max(rates, key=rates.__getitem__)
    if rates[high] - rates[low] >= GROUNDEDNESS_GAP - _ROUNDING:
        yield (
            f"Answers to '{low}' queries are grounded least often: {rates[low]:.2f}, "
            f"'{high}' {rates[high]:.2f}."
        )


def _latency(report: EvaluationReport) -> Iterator[str]:
    slow = report.diagnosis_counts.get(FailureCategory.LATENCY_OUTLIER, 0)
    p95 = report.latency.p95_ms
    if p95 is None:
        return
    if slow:
        yield f"{_queries(slow)} passed every check but retrieval time (p95 {p95:,.0f} ms)."
    elif p95 > SLOW_P95_MS:
        yield f"Retrieval is slow at the tail: p95 {p95:,.0f} ms."


def _judge(report: EvaluationReport) -> Iterator[str]:
    if report.judge_failures:
        yield (
            f"The judge failed on {_queries(report.judge_failures)}; the rates of correct and "
            "grounded answers leave them out."
        )


def _labels(report: EvaluationReport) -> Iterator[str]:
    if report.suspect_labels:
        yield (
            f"Labels are suspected on {_queries(report.suspect_labels)}: the answer is correct and "
            "grounded without the labelled chunk."
        )


def _pipeline(report: EvaluationReport) -> Iterator[str]:
    if report.failed_queries:
        yield (
            f"The pipeline failed on {_queries(report.failed_queries)} ({FailureCategory.UNKNOWN});"
            " the means leave them out."
        )


def _queries(count: int) -> str:
    return "1 query" if count == 1 else f"{count} queries"


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}"
