"""The typed JSON: what a report and a comparison say, as pydantic models.

The field names are published and stay. Readers ignore keys they do not know; facts that the
published files do not have stand in fields of their own beside the old ones. A mean over nothing
is null, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ragdiag.outcomes import TIE, Outcome
from ragdiag.taxonomy import FailureCategory, Severity

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
]


class _Part(BaseModel):
    # Schemas are built on first use, which keeps the import light.
    model_config = ConfigDict(defer_build=True)


class _Shown(_Part):
    """A model that notebooks show as a report; its own repr is one line."""

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return [(name, getattr(self, name)) for name in self._in_repr()]

    def _in_repr(self) -> Sequence[str]:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        from ragdiag.display import html

        return html.render(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        from ragdiag import display

        return display.bundle(self)


class RetrievalSummary(_Part):
    """Means of the retrieval measures over the queries that have them.

    Attributes
    ----------
    mean_precision_at_k, mean_recall_at_k, mrr : float or None
        Null when no query has the measure.
    k : int
        Depth.
    measured_queries : int
        Completed queries with a label, the ones inside the means.
    """

    mean_precision_at_k: float | None = None
    mean_recall_at_k: float | None = None
    mrr: float | None = None
    k: int = 5
    measured_queries: int | None = None


class SemanticSummary(_Part):
    """What the judge found, over the answers for which it found something.

    Attributes
    ----------
    answer_correctness_rate, groundedness_rate, mean_judge_confidence : float or None
        Null when nothing was judged.
    correctness_judged, groundedness_judged : int
        Answers inside each rate.
    screened : bool
        True when an offline judge was used: its findings are suspicions.
    """

    answer_correctness_rate: float | None = None
    groundedness_rate: float | None = None
    mean_judge_confidence: float | None = None
    correctness_judged: int | None = None
    groundedness_judged: int | None = None
    screened: bool = False


class LatencySummary(_Part):
    """Retrieval times of completed queries, milliseconds; percentiles interpolate linearly.

    Attributes
    ----------
    count : int
        Queries with a retrieval time.
    mean_ms, p50_ms, p95_ms, p99_ms, min_ms, max_ms : float or None
        Null when ``count`` is 0.
    """

    count: int = 0
    mean_ms: float | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    min_ms: float | None = None
    max_ms: float | None = None


class QueryTypeMetrics(_Part):
    """The report's numbers for the queries of one type."""

    query_type: str
    total_queries: int = 0
    completed_queries: int = 0
    failed_queries: int = 0
    mean_precision_at_k: float | None = None
    mean_recall_at_k: float | None = None
    mrr: float | None = None
    answer_correctness_rate: float | None = None
    groundedness_rate: float | None = None
    diagnosis_counts: dict[str, int] = Field(default_factory=dict)


class TopFailure(_Part):
    """One query that did not pass.

    Attributes
    ----------
    category, severity, confidence, reason, evidence
        Of its diagnosis; the confidence is None where the judge stated none.
    action : str
        What to do about it; by default what the category advises.

    Examples
    --------
    >>> TopFailure(query_id="q1", query="?", category="WRONG_CHUNK_RANK", severity="warning",
    ...            confidence=1.0, reason="Came at rank 4.").action
    'The right chunks came, too late: add a reranker or tune the one there is.'
    """

    query_id: str
    query: str
    category: FailureCategory | str = Field(union_mode="left_to_right")
    severity: Severity
    confidence: float | None
    reason: str
    action: str = ""
    evidence: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _default_action(self) -> Self:
        if not self.action and isinstance(self.category, FailureCategory):
            self.action = self.category.action
        return self


class EvaluationReport(_Shown):
    """One pipeline on one dataset, in numbers.

    Attributes
    ----------
    dataset_name, dataset_version, pipeline_name : str
        What was evaluated.
    total_queries, completed_queries, failed_queries : int
        Queries, and how their execution ended.
    judged_queries, judge_failures : int
        Completed queries with a finding of the judge, and those on which the judge failed.
    retrieval : RetrievalSummary
        Means over completed, labelled queries.
    semantic : SemanticSummary or None
        None when no judge was asked.
    latency : LatencySummary
        Retrieval times of completed queries.
    diagnosis_counts : dict of str to int
        Queries by primary category, every category listed.
    diagnosis_by_query_type, metrics_by_query_type : dict
        The same for each query type.
    top_failures : list of TopFailure
        The worst queries: by severity, confidence, category and id.
    overall_insights : list of str
        What the numbers say.
    failing_queries : dict of str to list of str
        Ids of the queries of each category but ``PASS``, in dataset order.
    undiagnosed_queries : int
        Queries for which no rule could be measured; they are in no category.
    not_measured : dict of str to int
        Queries for which a category's rule lacked evidence, where there are any: they count
        neither as passed nor as failed by it.
    suspect_labels : int
        Correct, grounded answers whose labelled chunk did not come.
    settings : dict
        k and the thresholds.
    notes : list of str
        What limits these numbers.
    """

    dataset_name: str = ""
    dataset_version: str = ""
    pipeline_name: str | None = None
    total_queries: int = 0
    completed_queries: int = 0
    failed_queries: int = 0
    judged_queries: int = 0
    judge_failures: int = 0
    retrieval: RetrievalSummary = Field(default_factory=RetrievalSummary)
    semantic: SemanticSummary | None = None
    latency: LatencySummary = Field(default_factory=LatencySummary)
    diagnosis_counts: dict[str, int] = Field(default_factory=dict)
    diagnosis_by_query_type: dict[str, dict[str, int]] = Field(default_factory=dict)
    metrics_by_query_type: dict[str, QueryTypeMetrics] = Field(default_factory=dict)
    top_failures: list[TopFailure] = Field(default_factory=list)
    overall_insights: list[str] = Field(default_factory=list)
    failing_queries: dict[str, list[str]] = Field(default_factory=dict)
    undiagnosed_queries: int = 0
    not_measured: dict[str, int] = Field(default_factory=dict)
    suspect_labels: int = 0
    settings: dict[str, Any] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)

    def _in_repr(self) -> Sequence[str]:
        return ("pipeline_name", "dataset_name", "total_queries", "failed_queries")


class MetricDeltas(_Part):
    """Differences of the means, B minus A; null where a side has no mean.

    Measures are rounded to 4 places and milliseconds to 2.
    """

    precision_at_k: float | None = None
    recall_at_k: float | None = None
    mrr: float | None = None
    answer_correctness: float | None = None
    groundedness: float | None = None
    mean_retrieval_ms: float | None = None
    p95_retrieval_ms: float | None = None


class QueryTypeDeltas(_Part):
    """Differences for the queries of one type, B minus A."""

    query_type: str
    recall_at_k: float | None = None
    mrr: float | None = None
    answer_correctness: float | None = None
    groundedness: float | None = None
    total_failure_delta: int = 0
    failure_deltas: dict[str, int] = Field(default_factory=dict)


class QueryOutcome(_Part):
    """One query on both sides.

    Attributes
    ----------
    diagnosis_a, diagnosis_b : str or None
        Primary categories; None where no rule could be measured.
    recall_a, recall_b : float or None
        None where the query has no labels; 0.0 where the pipeline failed, as published
        (``status_a`` and ``status_b`` tell).
    grounded_a, grounded_b, answer_correct_a, answer_correct_b : bool or None
        None where it was not judged.
    outcome : str
        ``improved``, ``regressed`` or ``unchanged``, seen from B.
    status_a, status_b : str
        ``completed`` or ``failed``.
    """

    query_id: str
    diagnosis_a: str | None
    diagnosis_b: str | None
    recall_a: float | None = None
    recall_b: float | None = None
    grounded_a: bool | None = None
    grounded_b: bool | None = None
    answer_correct_a: bool | None = None
    answer_correct_b: bool | None = None
    outcome: Outcome = "unchanged"
    status_a: Literal["completed", "failed"] = "completed"
    status_b: Literal["completed", "failed"] = "completed"


class ComparisonReport(_Shown):
    """Two pipelines on the same queries: what changed, and who wins by the fixed rules.

    Attributes
    ----------
    dataset_name, dataset_version, pipeline_a_name, pipeline_b_name : str
        What was compared.
    pipeline_a_report, pipeline_b_report : EvaluationReport
        Each side alone.
    metric_deltas, diagnosis_deltas, query_type_deltas
        Differences, B minus A.
    query_outcomes : list of QueryOutcome
        One item a query, in A's order.
    queries_improved, queries_regressed, queries_unchanged : int
        Their counts; they add up to the number of queries.
    quality_winner, latency_winner, overall_winner, winner : str
        A pipeline's name or ``TIE``; ``winner`` is ``overall_winner``.
    trade_off : str or None
        What B costs or gains against A.
    summary : str
        One sentence of why.
    """

    dataset_name: str
    dataset_version: str
    pipeline_a_name: str
    pipeline_b_name: str
    pipeline_a_report: EvaluationReport
    pipeline_b_report: EvaluationReport
    metric_deltas: MetricDeltas = Field(default_factory=MetricDeltas)
    diagnosis_deltas: dict[str, int] = Field(default_factory=dict)
    query_type_deltas: dict[str, QueryTypeDeltas] = Field(default_factory=dict)
    query_outcomes: list[QueryOutcome] = Field(default_factory=list)
    queries_improved: int = 0
    queries_regressed: int = 0
    queries_unchanged: int = 0
    quality_winner: str = TIE
    latency_winner: str = TIE
    overall_winner: str = TIE
    winner: str = TIE
    trade_off: str | None = None
    summary: str = ""

    def _in_repr(self) -> Sequence[str]:
        return ("pipeline_a_name", "pipeline_b_name", "winner", "trade_off")
