"""``Pair``: two sides on the same queries, and what follows from laying them together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import TypeAdapter

from ragdiag import aggregates
from ragdiag.deltas import count_deltas, mean_deltas, query_type_deltas, rounded
from ragdiag.diagnosis import RuleBook
from ragdiag.outcomes import (
    OUTCOMES_IN_ORDER,
    TIE,
    Decision,
    Outcome,
    Sign,
    compare_queries,
    decide,
)
from ragdiag.report_models import (
    ComparisonReport,
    EvaluationReport,
    MetricDeltas,
    QueryOutcome,
    QueryTypeDeltas,
)
from ragdiag.tables import TEXT

if TYPE_CHECKING:
    from ragdiag.results import Results

__all__ = ["NOT_DIAGNOSED", "Pair", "Side"]

#: Row and column of the transitions for queries for which no rule could be measured.
NOT_DIAGNOSED = "not diagnosed"

#: The published recall of a query whose pipeline failed.
FAILED_RECALL = 0.0

#: Decimal places of a query's recall in the published JSON.
RECALL_PLACES = 4

_OUTCOME_OF_SIGN: dict[int, Outcome] = {1: "improved", -1: "regressed", 0: "unchanged"}
_OUTCOME_TYPE = pd.CategoricalDtype(list(OUTCOMES_IN_ORDER))

#: Columns of each side in :attr:`Pair.outcomes`: name there → name in the results.
_SIDE_COLUMNS = {
    "category": "category",
    "severity": "severity",
    "recall": "recall_at_{k}",
    "reciprocal_rank": "reciprocal_rank",
    "grounded": "grounded",
    "answer_correct": "answer_correct",
    "retrieval_ms": "retrieval_ms",
    "status": "status",
}


@dataclass(frozen=True)
class Side:
    """One of the things compared.

    Attributes
    ----------
    name : str
        What it is called.
    results : Results
        With its own order of rows.
    frame : pandas.DataFrame
        Its rows in the order that all sides share.
    """

    name: str
    results: Results
    frame: pd.DataFrame

    @cached_property
    def report(self) -> EvaluationReport:
        """The side alone."""
        return self.results.report(pipeline_name=self.name)


@dataclass(frozen=True)
class Pair:
    """Two sides, B seen from A.

    Attributes
    ----------
    a, b : Side
        Row by row the same queries.
    quality_tolerance, latency_tolerance_ms : float
        Differences up to these are ties.
    """

    a: Side
    b: Side
    quality_tolerance: float
    latency_tolerance_ms: float

    @property
    def k(self) -> int:
        """Depth of the measures."""
        return self.a.results.k

    @cached_property
    def book(self) -> RuleBook:
        """The rules of both sides."""
        return RuleBook.of(self.a.results.rules)

    @cached_property
    def signs(self) -> npt.NDArray[np.int8]:
        """+1 where B is better on the query, -1 where worse, 0 where neither; shape (n,)."""
        return compare_queries(
            self.a.frame,
            self.b.frame,
            recall=f"recall_at_{self.k}",
            quality_order=self.book.quality_order,
        )

    @cached_property
    def outcomes(self) -> pd.DataFrame:
        """One row a query, see :attr:`ragdiag.comparison.Comparison.outcomes`."""
        a, b = self.a.frame, self.b.frame
        columns = {name: a[name] for name in ("query_id", "query", "query_type")}
        for name, source in _SIDE_COLUMNS.items():
            columns[f"{name}_a"] = a[source.format(k=self.k)]
            columns[f"{name}_b"] = b[source.format(k=self.k)]
        outcomes = [_OUTCOME_OF_SIGN[sign] for sign in self.signs.tolist()]
        return pd.DataFrame(columns).assign(outcome=pd.Categorical(outcomes, dtype=_OUTCOME_TYPE))

    @cached_property
    def deltas(self) -> pd.DataFrame:
        """One row a measure, see :attr:`ragdiag.comparison.Comparison.deltas`."""
        a = self.a.results.summary().set_index("measure")
        b = self.b.results.summary().set_index("measure").reindex(a.index)
        table = pd.DataFrame(
            {
                "baseline": a["value"],
                "value": b["value"],
                "delta": b["value"] - a["value"],
                "n_baseline": a["n_used"],
                "n": b["n_used"],
            }
        ).reset_index()
        table.insert(0, "pipeline", pd.Series(self.b.name, index=table.index, dtype=TEXT))
        return table

    @cached_property
    def transitions(self) -> pd.DataFrame:
        """Counts from category (rows, A) to category (columns, B), in order of precedence."""
        names = list(self.book.names)
        codes = [
            pd.Categorical(side.frame["category"], categories=names).codes.astype(np.int64)
            for side in (self.a, self.b)
        ]
        if any((side < 0).any() for side in codes):
            names.append(NOT_DIAGNOSED)
            codes = [np.where(side < 0, len(names) - 1, side) for side in codes]
        return pd.DataFrame(
            aggregates.category_counts(codes[1], len(names), codes[0], len(names)),
            index=pd.Index(names, name=self.a.name),
            columns=pd.Index(names, name=self.b.name),
        )

    @cached_property
    def counts(self) -> dict[Outcome, int]:
        """How many queries have each outcome."""
        return {
            outcome: int((self.signs == sign).sum()) for sign, outcome in _OUTCOME_OF_SIGN.items()
        }

    @cached_property
    def mean_deltas(self) -> dict[str, float | None]:
        """Differences of the means, unrounded."""
        return mean_deltas(self.a.report, self.b.report)

    @cached_property
    def metric_deltas(self) -> MetricDeltas:
        """Differences of the means as published: rounded."""
        return rounded(self.mean_deltas)

    @cached_property
    def diagnosis_deltas(self) -> dict[str, int]:
        """Differences of the counts of each category."""
        return count_deltas(self.a.report.diagnosis_counts, self.b.report.diagnosis_counts)

    @cached_property
    def query_type_deltas(self) -> dict[str, QueryTypeDeltas]:
        """Differences for each query type."""
        return query_type_deltas(self.a.report, self.b.report)

    @cached_property
    def decision(self) -> Decision:
        """Who wins, by the fixed rules."""
        return decide(
            self.mean_deltas,
            self.a.name,
            self.b.name,
            k=self.k,
            quality_tolerance=self.quality_tolerance,
            latency_tolerance_ms=self.latency_tolerance_ms,
        )

    def winner(self, sign: Sign) -> str:
        """Return the name that a sign of :attr:`decision` stands for."""
        return {1: self.b.name, -1: self.a.name, 0: TIE}[sign]

    @cached_property
    def query_outcomes(self) -> list[QueryOutcome]:
        """The published form of :attr:`outcomes`."""
        table = self.outcomes
        columns = {"query_id": table["query_id"], "outcome": table["outcome"]}
        for side in ("a", "b"):
            failed = (table[f"status_{side}"] == "failed").fillna(False).astype(bool)
            recall = table[f"recall_{side}"].round(RECALL_PLACES)
            columns |= {
                f"diagnosis_{side}": table[f"category_{side}"],
                f"recall_{side}": recall.mask(failed & recall.isna(), FAILED_RECALL),
                f"grounded_{side}": table[f"grounded_{side}"],
                f"answer_correct_{side}": table[f"answer_correct_{side}"],
                f"status_{side}": table[f"status_{side}"],
            }
        values = [_objects(column) for column in columns.values()]
        # Built by the validator's own loop, several times as fast as one by one.
        return TypeAdapter(list[QueryOutcome]).validate_python(
            [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]
        )

    @cached_property
    def report(self) -> ComparisonReport:
        """The typed JSON of this pair."""
        a, b, decision = self.a.report, self.b.report, self.decision
        overall = self.winner(decision.overall)
        return ComparisonReport.model_construct(
            dataset_name=a.dataset_name or b.dataset_name,
            dataset_version=a.dataset_version or b.dataset_version,
            pipeline_a_name=self.a.name,
            pipeline_b_name=self.b.name,
            pipeline_a_report=a,
            pipeline_b_report=b,
            metric_deltas=self.metric_deltas,
            diagnosis_deltas=self.diagnosis_deltas,
            query_type_deltas=self.query_type_deltas,
            query_outcomes=self.query_outcomes,
            queries_improved=self.counts["improved"],
            queries_regressed=self.counts["regressed"],
            queries_unchanged=self.counts["unchanged"],
            quality_winner=self.winner(decision.quality),
            latency_winner=self.winner(decision.latency),
            overall_winner=overall,
            winner=overall,
            trade_off=decision.trade_off,
            summary=decision.summary,
        )


def _objects(column: pd.Series) -> list[object]:
    """Return plain Python values, None where missing."""
    values = column.astype(object)
    return values.where(column.notna(), None).tolist()
