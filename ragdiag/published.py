"""The fields that a comparison of two pipelines is published with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragdiag.pairing import Pair
    from ragdiag.report_models import (
        ComparisonReport,
        EvaluationReport,
        MetricDeltas,
        QueryOutcome,
        QueryTypeDeltas,
    )

__all__ = ["PublishedFields"]


class PublishedFields:
    """Each field of ``ComparisonReport`` as a property, so that a comparison reads like one.

    A list of 100,000 outcomes is only built when it is asked for.
    """

    @property
    def _pair(self) -> Pair:
        """The only pair there is; an error where there are several."""
        raise NotImplementedError

    @property
    def report(self) -> ComparisonReport:
        """The typed JSON of a pair."""
        return self._pair.report

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Return :attr:`report` as a dict; options are pydantic's."""
        return self.report.model_dump(**options)

    def model_dump_json(self, **options: Any) -> str:
        """Return :attr:`report` as JSON; options are pydantic's, for instance ``indent=2``."""
        return self.report.model_dump_json(**options)

    @property
    def dataset_name(self) -> str:
        """Name of the dataset."""
        return self._pair.a.results.dataset_name

    @property
    def dataset_version(self) -> str:
        """Version of the dataset."""
        return self._pair.a.results.dataset_version

    @property
    def pipeline_a_name(self) -> str:
        """Name of A, the baseline."""
        return self._pair.a.name

    @property
    def pipeline_b_name(self) -> str:
        """Name of B."""
        return self._pair.b.name

    @property
    def pipeline_a_report(self) -> EvaluationReport:
        """Report of A alone."""
        return self._pair.a.report

    @property
    def pipeline_b_report(self) -> EvaluationReport:
        """Report of B alone."""
        return self._pair.b.report

    @property
    def metric_deltas(self) -> MetricDeltas:
        """Differences of the means, B minus A, rounded."""
        return self._pair.metric_deltas

    @property
    def diagnosis_deltas(self) -> dict[str, int]:
        """Differences of the counts of each category."""
        return self._pair.diagnosis_deltas

    @property
    def query_type_deltas(self) -> dict[str, QueryTypeDeltas]:
        """Differences for each query type."""
        return self._pair.query_type_deltas

    @property
    def query_outcomes(self) -> list[QueryOutcome]:
        """Each query on both sides; :attr:`outcomes` is the same as a table."""
        return self._pair.query_outcomes

    @property
    def queries_improved(self) -> int:
        """How many queries are better in B."""
        return self._pair.counts["improved"]

    @property
    def queries_regressed(self) -> int:
        """How many queries are worse in B."""
        return self._pair.counts["regressed"]

    @property
    def queries_unchanged(self) -> int:
        """How many queries are neither."""
        return self._pair.counts["unchanged"]

    @property
    def quality_winner(self) -> str:
        """Name of the better by quality, or ``TIE``."""
        return self._pair.winner(self._pair.decision.quality)

    @property
    def latency_winner(self) -> str:
        """Name of the faster, or ``TIE``."""
        return self._pair.winner(self._pair.decision.latency)

    @property
    def overall_winner(self) -> str:
        """The quality winner; on a quality tie the latency winner; or ``TIE``."""
        return self._pair.winner(self._pair.decision.overall)

    @property
    def winner(self) -> str:
        """The same as :attr:`overall_winner`."""
        return self.overall_winner

    @property
    def trade_off(self) -> str | None:
        """What B costs or gains against A."""
        return self._pair.decision.trade_off

    @property
    def summary(self) -> str:
        """One sentence of why."""
        return self._pair.decision.summary
