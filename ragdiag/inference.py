"""What a comparison proves: the statistics of :mod:`ragdiag.statistics` on aligned frames.

Takes one frame a pipeline, the same query in the same row, and returns an :class:`Inference`: a
table of evidence, a verdict for each pair and one sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag.contrasts import Applicability, cluster_labels, measure_values, pair_evidence
from ragdiag.power import detectable_difference, paired_power, planning_moment, sample_size
from ragdiag.statistics import FEW_CLUSTERS, Evidence, Plan, decide
from ragdiag.tables import TEXT
from ragdiag.taxonomy import DISPLAY_ORDER
from ragdiag.verdicts import PairVerdict, judge_pair, summarise

__all__ = ["Inference", "infer"]

#: With more pairs than this the sentence counts them instead of describing each.
MOST_CLAUSES = 3
#: Columns of the evidence table: name there → field of the evidence.
COLUMNS = {
    "measure": "measure",
    "family": "family",
    "scale": "scale",
    "baseline": "value_a",
    "value": "value_b",
    "difference": "difference",
    "low": "low",
    "high": "high",
    "p_value": "p_value",
    "p_corrected": "p_corrected",
    "p_worst_case": "p_worst_case",
    "p_equivalence": "p_equivalence",
    "effect_size": "effect_size",
    "wins": "wins",
    "ties": "ties",
    "losses": "losses",
    "n_paired": "n_paired",
    "n_missing": "n_missing",
    "n_missing_baseline": "n_missing_a",
    "n_missing_value": "n_missing_b",
    "bound_low": "bound_low",
    "bound_high": "bound_high",
    "n_needed": "n_needed",
    "method": "method",
    "verdict": "verdict",
    "note": "reason",
}
_TEXTS = ("measure", "family", "scale", "method", "verdict", "note")


@dataclass(frozen=True)
class Inference:
    """What a comparison of pipelines proves.

    Attributes
    ----------
    names : tuple of str
        Of all pipelines.
    pairs : tuple of (int, int)
        Positions of A and B of every pair that was looked at.
    evidence : tuple of tuple of Evidence
        Decided evidence of each pair, corrected over all of them.
    verdicts : tuple of PairVerdict
        One a pair.
    plan : Plan
        Levels and tolerances.
    n_queries, n_clusters : int
        Queries compared; clusters among them, 0 where none were asked for.
    """

    names: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    evidence: tuple[tuple[Evidence, ...], ...]
    verdicts: tuple[PairVerdict, ...]
    plan: Plan
    n_queries: int
    n_clusters: int

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row a pair and measure: difference, interval, p-values, counts, verdict and note.

        ``pipeline`` is compared with ``against``; ``baseline`` is the value of the latter. Where
        ``scale`` is ``ratio`` the values are medians and ``difference`` is the median ratio.
        """
        columns: dict[str, object] = {
            "pipeline": _repeated([self.names[b] for _, b in self.pairs], self.evidence),
            "against": _repeated([self.names[a] for a, _ in self.pairs], self.evidence),
        }
        rows = [row for pair in self.evidence for row in pair]
        for column, field in COLUMNS.items():
            values = [getattr(row, field) for row in rows]
            columns[column] = pd.Series(values, dtype=TEXT) if column in _TEXTS else values
        return pd.DataFrame(columns)

    @property
    def winner(self) -> str | None:
        """The pipeline that is better than every other it was compared with.

        None unless every other pipeline was compared with it.
        """
        for at, name in enumerate(self.names):
            own = [
                verdict.winner == name
                for pair, verdict in zip(self.pairs, self.verdicts, strict=True)
                if at in pair
            ]
            if all(own) and len(own) == len(self.names) - 1:
                return name
        return None

    @property
    def sentence(self) -> str:
        """What is known, without a full stop."""
        if len(self.verdicts) <= MOST_CLAUSES:
            return "; ".join(verdict.sentence for verdict in self.verdicts)
        return summarise(self.verdicts)

    @property
    def notes(self) -> tuple[str, ...]:
        """What limits the evidence."""
        if 0 < self.n_clusters < FEW_CLUSTERS:
            return (
                f"only {self.n_clusters} clusters of queries: {FEW_CLUSTERS} or more make "
                "intervals that can be relied on",
            )
        return ()

    def power(self, delta: float | None = None) -> pd.DataFrame:
        """Return what the compared queries can show, and what it would take to show `delta`.

        Parameters
        ----------
        delta : float, optional
            The difference worth showing; the plan's ``min_effect`` by default. The observed
            difference plays no part.

        Returns
        -------
        pandas.DataFrame
            One row a pair and primary measure: ``pipeline, against, measure, n_paired,
            discordance`` (mean squared difference that is planned with), ``detectable`` (the
            smallest difference that these queries show with the plan's power), ``delta,
            power`` (chance that they show `delta`), ``n_needed`` (queries that show it).
        """
        delta = self.plan.min_effect if delta is None else delta
        rows = []
        size = max(1, sum(row.n_paired > 0 for row in self._primary()))
        for (a, b), pair in zip(self.pairs, self.evidence, strict=True):
            for row in pair:
                if row.family != "primary" or not row.n_paired:
                    continue
                moment = planning_moment(row.second_moment, row.n_paired)
                effective = max(1, int(row.n_paired / row.design_effect))
                level = self.plan.alpha / size
                needed = sample_size(
                    delta,
                    discordance=moment,
                    power=self.plan.power,
                    alpha=self.plan.alpha,
                    measures=size,
                )
                rows.append(
                    {
                        "pipeline": self.names[b],
                        "against": self.names[a],
                        "measure": row.measure,
                        "n_paired": row.n_paired,
                        "discordance": moment,
                        "detectable": detectable_difference(
                            effective,
                            discordance=moment,
                            power=self.plan.power,
                            alpha=self.plan.alpha,
                            measures=size,
                        ),
                        "delta": delta,
                        "power": paired_power(effective, delta, moment, alpha=level),
                        "n_needed": int(np.ceil(needed * row.design_effect)),
                    }
                )
        return pd.DataFrame(
            rows,
            columns=[
                "pipeline",
                "against",
                "measure",
                "n_paired",
                "discordance",
                "detectable",
                "delta",
                "power",
                "n_needed",
            ],
        ).astype({"pipeline": TEXT, "against": TEXT, "measure": TEXT})

    def _primary(self) -> list[Evidence]:
        return [row for pair in self.evidence for row in pair if row.family == "primary"]


def _repeated(names: Sequence[str], evidence: Sequence[Sequence[Evidence]]) -> pd.Series:
    return pd.Series(
        [name for name, rows in zip(names, evidence, strict=True) for _ in rows], dtype=TEXT
    )


def infer(
    frames: Sequence[pd.DataFrame],
    names: Sequence[str],
    *,
    k: int,
    pairs: Sequence[tuple[int, int]] | None = None,
    clusters: npt.ArrayLike | None = None,
    categories: Sequence[str] = tuple(DISPLAY_ORDER),
    plan: Plan = Plan(),  # noqa: B008 - frozen
) -> Inference:
    """Return what the paired queries of two or more pipelines prove.

    Parameters
    ----------
    frames : sequence of pandas.DataFrame, each of n rows
        As :attr:`Results.frame <ragdiag.results.Results.frame>`, the same query in the same row.
    names : sequence of str
        What to call the pipelines.
    k : int
        Depth of the measures.
    pairs : sequence of (int, int), optional
        Positions of A and B; each of the others against the first by default.
    clusters : array_like, shape (n,), optional
        Labels of queries that are not independent of each other; missing ones stand alone.
    categories : sequence of str
        Whose shares are compared.
    plan : Plan
        Levels and tolerances.

    Returns
    -------
    Inference

    Notes
    -----
    A failed query has no retrieval measures and counts as a missing pair, a query without labels
    concerns no retrieval measure, and one that neither side was judged on and that has no expected
    answer concerns no correctness.
    """
    chosen = tuple(pairs) if pairs is not None else tuple((0, b) for b in range(1, len(frames)))
    labels = None if clusters is None else cluster_labels(clusters)
    values = [measure_values(frame, k, categories) for frame in frames]
    about = Applicability(frames[0])
    found = [pair_evidence(values[a], values[b], about, labels, plan, k=k) for a, b in chosen]
    flat = iter(decide([row for rows in found for row in rows], plan))
    evidence = tuple(tuple(next(flat) for _ in rows) for rows in found)
    n = len(frames[0])
    return Inference(
        tuple(names),
        chosen,
        evidence,
        tuple(
            judge_pair(
                rows,
                names[a],
                names[b],
                n,
                min_effect=plan.min_effect,
                versus=len(chosen) > 1,
            )
            for (a, b), rows in zip(chosen, evidence, strict=True)
        ),
        plan,
        n,
        0 if labels is None else int(labels.max(initial=-1)) + 1,
    )
