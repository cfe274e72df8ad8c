"""Building the report of one pipeline; :mod:`ragdiag.report_models` says what is in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pydantic import ValidationError

from ragdiag import aggregates
from ragdiag.errors import RunFormatError
from ragdiag.facts import facts_of, is_results
from ragdiag.files import read_text
from ragdiag.insights import insights
from ragdiag.report_models import (
    ComparisonReport,
    EvaluationReport,
    LatencySummary,
    MetricDeltas,
    QueryOutcome,
    QueryTypeDeltas,
    QueryTypeMetrics,
    RetrievalSummary,
    SemanticSummary,
    TopFailure,
)
from ragdiag.schema import QueryType
from ragdiag.taxonomy import SEVERITY_ORDER, FailureCategory

if TYPE_CHECKING:
    from ragdiag.facts import Facts
    from ragdiag.results import Results
    from ragdiag.schema import EvaluationResult

__all__ = [
    "ComparisonReport",
    "EvaluationReport",
    "LatencySummary",
    "MetricDeltas",
    "QueryOutcome",
    "QueryTypeDeltas",
    "QueryTypeMetrics",
    "RetrievalSummary",
    "SemanticSummary",
    "TopFailure",
    "build_report",
    "holds_report",
    "load_report",
]

#: How many failures a report lists unless told otherwise.
TOP_FAILURES = 5


def build_report(
    results: Results | Iterable[EvaluationResult],
    dataset_name: str = "",
    dataset_version: str = "",
    pipeline_name: str | None = None,
    k: int | None = None,
    max_top_failures: int = TOP_FAILURES,
) -> EvaluationReport:
    """Return the report of one pipeline: means, counts, the worst failures, insights.

    Parameters
    ----------
    results : Results or iterable of EvaluationResult
        What was evaluated. A measure that an item does not carry is computed from its chunks.
    dataset_name, dataset_version, pipeline_name : str, optional
        Names to show; those of the results by default.
    k : int, optional
        Depth; that of the results by default, 5 for a list. Results seen at another k are
        diagnosed again at this one.
    max_top_failures : int
        How many failures to list.

    Examples
    --------
    >>> build_report([], dataset_name="empty").retrieval.mean_recall_at_k is None
    True
    """
    facts = facts_of(results, k)
    if is_results(results):
        dataset_name = dataset_name or results.dataset_name  # type: ignore[union-attr]
        dataset_version = dataset_version or results.dataset_version  # type: ignore[union-attr]
        pipeline_name = pipeline_name or results.name  # type: ignore[union-attr]
    frame = facts.frame
    categories = facts.categories
    by_type = {
        name: _type_metrics(name, frame.take(rows), categories)
        for name, rows in _rows_by_type(frame["query_type"]).items()
    }
    whole = _type_metrics("", frame, categories)
    completed = frame[~frame["failed"]]
    report = EvaluationReport(
        dataset_name=dataset_name,
        dataset_version=dataset_version,
        pipeline_name=pipeline_name,
        total_queries=whole.total_queries,
        completed_queries=whole.completed_queries,
        failed_queries=whole.failed_queries,
        judged_queries=int(_judged(completed).sum()),
        judge_failures=int(completed["judge_failed"].sum()),
        retrieval=RetrievalSummary(
            mean_precision_at_k=whole.mean_precision_at_k,
            mean_recall_at_k=whole.mean_recall_at_k,
            mrr=whole.mrr,
            k=facts.k,
            measured_queries=aggregates.mean(completed["recall"]).n_used,
        ),
        semantic=_semantic(completed),
        latency=LatencySummary(**asdict(aggregates.latency(completed["retrieval_ms"]))),
        diagnosis_counts=whole.diagnosis_counts,
        diagnosis_by_query_type={name: part.diagnosis_counts for name, part in by_type.items()},
        metrics_by_query_type=by_type,
        top_failures=_top_failures(facts, max_top_failures),
        failing_queries=_failing_queries(frame, categories),
        undiagnosed_queries=int(frame["category"].isna().sum()),
        not_measured={
            name: facts.not_measured[name] for name in categories if facts.not_measured.get(name)
        },
        suspect_labels=int(frame["suspect_label"].sum()),
        settings=facts.settings,
        notes=list(facts.notes),
    )
    report.overall_insights = insights(report, frame["smallest_k"])
    return report


def _rows_by_type(column: pd.Series) -> dict[str, Any]:
    """Return the rows of each query type, the standard types first, the others by name."""
    rows = {str(name): rows for name, rows in column.groupby(column).indices.items()}
    standard = [kind.value for kind in QueryType if kind.value in rows]
    return {name: rows[name] for name in [*standard, *sorted(set(rows) - set(standard))]}


def _type_metrics(name: str, frame: pd.DataFrame, categories: tuple[str, ...]) -> QueryTypeMetrics:
    completed = frame[~frame["failed"]]
    codes = pd.Categorical(frame["category"], categories=list(categories)).codes
    (counts,) = aggregates.category_counts(codes, len(categories))
    return QueryTypeMetrics(
        query_type=name,
        total_queries=len(frame),
        completed_queries=len(completed),
        failed_queries=len(frame) - len(completed),
        mean_precision_at_k=aggregates.mean(completed["precision"]).value,
        mean_recall_at_k=aggregates.mean(completed["recall"]).value,
        mrr=aggregates.mean(completed["reciprocal_rank"]).value,
        answer_correctness_rate=aggregates.rate(completed["answer_correct"]).value,
        groundedness_rate=aggregates.rate(completed["grounded"]).value,
        diagnosis_counts=dict(zip(categories, counts.tolist(), strict=True)),
    )


def _judged(completed: pd.DataFrame) -> pd.Series:
    return completed["answer_correct"].notna() | completed["grounded"].notna()


def _semantic(completed: pd.DataFrame) -> SemanticSummary | None:
    judged = _judged(completed)
    if not (judged | completed["judge_failed"]).any():
        return None
    correct = aggregates.rate(completed["answer_correct"])
    grounded = aggregates.rate(completed["grounded"])
    return SemanticSummary(
        answer_correctness_rate=correct.value,
        groundedness_rate=grounded.value,
        mean_judge_confidence=aggregates.mean(completed.loc[judged, "judge_confidence"]).value,
        correctness_judged=correct.n_used,
        groundedness_judged=grounded.n_used,
        screened=bool(completed.loc[judged, "screened"].any()),
    )


def _not_passed(frame: pd.DataFrame) -> pd.Series:
    passed = frame["category"] == FailureCategory.PASS.value
    return frame["category"].notna() & ~passed.fillna(False).astype(bool)


def _top_failures(facts: Facts, limit: int) -> list[TopFailure]:
    """Return the first `limit` failures by severity, confidence down, category and query id."""
    failed = facts.frame[_not_passed(facts.frame)]
    order = pd.DataFrame(
        {
            "severity": -pd.Categorical(failed["severity"], categories=list(SEVERITY_ORDER)).codes,
            "confidence": -failed["confidence"],
            "category": pd.Categorical(failed["category"], categories=list(facts.categories)).codes,
            "query_id": failed["query_id"],
        },
        index=failed.index,
    ).sort_values(["severity", "confidence", "category", "query_id"], kind="stable")
    return [_top_failure(item) for item in facts.items(order.index[:limit].tolist())]


def _top_failure(item: EvaluationResult) -> TopFailure:
    return TopFailure(
        query_id=item.query_id,
        query=item.query,
        category=item.diagnosis.category,
        severity=item.diagnosis.severity,
        confidence=item.diagnosis.confidence,
        reason=item.diagnosis.reason,
        action=item.diagnosis.action,
        evidence=list(item.diagnosis.evidence),
    )


def _failing_queries(frame: pd.DataFrame, categories: tuple[str, ...]) -> dict[str, list[str]]:
    failed = frame[_not_passed(frame)]
    ids = failed["query_id"].groupby(failed["category"]).agg(list).to_dict()
    return {category: ids[category] for category in categories if category in ids}


def load_report(path: str | PathLike[str]) -> EvaluationReport | ComparisonReport:
    """Read back the JSON of a report or of a comparison; unknown keys are ignored.

    Raises
    ------
    RunFormatError
        The file cannot be read, is not JSON, or is neither kind of report.
    """
    text = read_text(Path(path), error=RunFormatError)
    kind = ComparisonReport if '"pipeline_a_report"' in text else EvaluationReport
    try:
        report = kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise RunFormatError(
            f"{path}: this is not a report that --output or model_dump_json wrote: {where}: "
            f"{first['msg']}"
        ) from error
    if kind is EvaluationReport and "diagnosis_counts" not in report.model_fields_set:
        raise RunFormatError(f"{path}: this is not a report: it has no 'diagnosis_counts'")
    return report


def holds_report(path: str | PathLike[str]) -> bool:
    """Tell whether a JSON file is a report of ours rather than some tool's recording.

    Raises
    ------
    RunFormatError
        The file cannot be read.
    """
    return '"diagnosis_counts"' in read_text(Path(path), error=RunFormatError)
