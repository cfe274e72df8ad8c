"""Differences between two reports, B minus A; missing where a side has no value."""

from __future__ import annotations

from ragdiag.report_models import EvaluationReport, MetricDeltas, QueryTypeDeltas, QueryTypeMetrics
from ragdiag.schema import QueryType
from ragdiag.taxonomy import FailureCategory

__all__ = ["count_deltas", "mean_deltas", "query_type_deltas", "rounded"]

#: Decimal places in the published JSON.
MEASURE_PLACES = 4
MILLISECOND_PLACES = 2


def mean_deltas(a: EvaluationReport, b: EvaluationReport) -> dict[str, float | None]:
    """Return the unrounded differences of the means, by the names of :class:`MetricDeltas`."""
    means_a, means_b = _means(a), _means(b)
    return {measure: _difference(means_a[measure], means_b[measure]) for measure in means_a}


def _means(report: EvaluationReport) -> dict[str, float | None]:
    semantic = report.semantic
    return {
        "precision_at_k": report.retrieval.mean_precision_at_k,
        "recall_at_k": report.retrieval.mean_recall_at_k,
        "mrr": report.retrieval.mrr,
        "answer_correctness": semantic.answer_correctness_rate if semantic else None,
        "groundedness": semantic.groundedness_rate if semantic else None,
        "mean_retrieval_ms": report.latency.mean_ms,
        "p95_retrieval_ms": report.latency.p95_ms,
    }


def rounded(deltas: dict[str, float | None]) -> MetricDeltas:
    """Return the differences as the published JSON has them."""
    return MetricDeltas(
        **{
            measure: _round(
                delta, MILLISECOND_PLACES if measure.endswith("_ms") else MEASURE_PLACES
            )
            for measure, delta in deltas.items()
        }
    )


def count_deltas(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    """Return the differences of two counts, every key of either side.

    Examples
    --------
    >>> count_deltas({"PASS": 3, "UNKNOWN": 1}, {"PASS": 5})
    {'PASS': 2, 'UNKNOWN': -1}
    """
    return {key: b.get(key, 0) - a.get(key, 0) for key in dict.fromkeys([*a, *b])}


def query_type_deltas(a: EvaluationReport, b: EvaluationReport) -> dict[str, QueryTypeDeltas]:
    """Return the differences for each query type, the standard types first."""
    types_a, types_b = a.metrics_by_query_type, b.metrics_by_query_type
    present = dict.fromkeys([*types_a, *types_b])
    ordered = dict.fromkeys([*(kind for kind in QueryType if kind in present), *present])
    return {
        str(name): _type_deltas(
            types_a.get(name, QueryTypeMetrics(query_type=name)),
            types_b.get(name, QueryTypeMetrics(query_type=name)),
        )
        for name in ordered
    }


def _type_deltas(a: QueryTypeMetrics, b: QueryTypeMetrics) -> QueryTypeDeltas:
    failures = count_deltas(a.diagnosis_counts, b.diagnosis_counts)
    correctness = _difference(a.answer_correctness_rate, b.answer_correctness_rate)
    return QueryTypeDeltas(
        query_type=a.query_type,
        recall_at_k=_round(_difference(a.mean_recall_at_k, b.mean_recall_at_k)),
        mrr=_round(_difference(a.mrr, b.mrr)),
        answer_correctness=_round(correctness),
        groundedness=_round(_difference(a.groundedness_rate, b.groundedness_rate)),
        total_failure_delta=sum(
            delta for category, delta in failures.items() if category != FailureCategory.PASS
        ),
        failure_deltas=failures,
    )


def _difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else b - a


def _round(delta: float | None, places: int = MEASURE_PLACES) -> float | None:
    # Adding zero turns -0.0 into 0.0.
    return None if delta is None else round(delta, places) + 0.0
