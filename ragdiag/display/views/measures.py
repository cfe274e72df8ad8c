"""The measures of a comparison, a row each: both values, the difference, its direction in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragdiag.display.numbers import (
    change,
    interval,
    is_missing,
    measure,
    milliseconds,
    milliseconds_change,
)
from ragdiag.display.views.parts import measure_label

if TYPE_CHECKING:
    from ragdiag.comparison import Comparison

__all__ = ["VERDICT_COLOURS", "MeasureRow", "measure_rows", "tested"]

#: What is shown, in this order; ``{k}`` is the depth.
SHOWN = (
    "recall_at_{k}",
    "precision_at_{k}",
    "reciprocal_rank",
    "answer_correct",
    "grounded",
    "passed",
    "p50_retrieval_ms",
    "p95_retrieval_ms",
)
_JUDGED = ("answer_correct", "grounded")
#: Edge beside the word of a verdict; every other verdict is open.
VERDICT_COLOURS = {"better": "#009E73", "worse": "#D55E00"}
OPEN_COLOUR = "#767676"
WITHIN = "within tolerance"
NAN = float("nan")


@dataclass(frozen=True)
class MeasureRow:
    """One measure of one pipeline against the baseline.

    Attributes
    ----------
    pipeline, name, label
        Which; `label` is for people.
    baseline, value, delta : float
        Both means and their difference, NaN where a side has none.
    position : float
        Where it stands on the axis from worse to better: the difference of a measure, the relative
        difference of a time turned round.
    low, high : float
        The interval on that axis; NaN without one.
    verdict : str
        ``better``, ``worse`` and so on.
    note_text : str
        What stands beside the verdict, led by a comma; empty without evidence.
    n_baseline, n : int
        Queries that each mean rests on.
    """

    pipeline: str
    name: str
    label: str
    baseline: float
    value: float
    delta: float
    position: float
    low: float
    high: float
    verdict: str
    note_text: str
    n_baseline: int
    n: int

    @property
    def is_time(self) -> bool:
        """Whether the unit is milliseconds."""
        return self.name.endswith("_ms")

    @property
    def is_tested(self) -> bool:
        """Whether there is an interval."""
        return not math.isnan(self.low)

    @property
    def colour(self) -> str:
        """Edge beside the verdict."""
        return VERDICT_COLOURS.get(self.verdict, OPEN_COLOUR)

    def value_text(self, *, baseline: bool = False) -> str:
        """Write one side's mean."""
        number = self.baseline if baseline else self.value
        if self.is_time:
            return milliseconds(number, "not timed")
        return measure(number, "not judged" if self.name in _JUDGED else "not measured")

    @property
    def change_text(self) -> str:
        """The difference with its sign, or that there is none."""
        write = milliseconds_change if self.is_time else change
        return write(self.delta, "not on both sides")

    @property
    def interval_text(self) -> str:
        """The interval in the unit of the axis, or that there is none."""
        return interval(self.low, self.high, "not tested")


def tested(rows: list[MeasureRow]) -> bool:
    """Return whether any of the measures has an interval."""
    return any(row.is_tested for row in rows)


def measure_rows(comparison: Comparison) -> list[MeasureRow]:
    """Return the measures that are shown, for each pipeline but the baseline.

    Intervals and verdicts are taken from ``comparison.evidence``, a table with the columns
    ``pipeline, measure, low, high, verdict`` and optionally ``note``, where the comparison has
    one. Without it the direction is that of the difference, and says nothing of chance.
    """
    deltas = comparison.deltas.set_index(["measure", "pipeline"])
    evidence = _evidence(comparison)
    others = [name for name in comparison.names if name != comparison.baseline]
    rows = []
    for template in SHOWN:
        name = template.format(k=comparison.k)
        for pipeline in others:
            if (name, pipeline) in deltas.index:
                found = deltas.loc[(name, pipeline)]
                rows.append(_row(comparison, name, pipeline, found, evidence.get((name, pipeline))))
    return rows


def _evidence(comparison: Comparison) -> dict[tuple[str, str], Any]:
    table = getattr(comparison, "evidence", None)
    if not isinstance(table, pd.DataFrame) or "low" not in table:
        return {}
    return {(str(row["measure"]), str(row["pipeline"])): row for _, row in table.iterrows()}


def _row(comparison: Comparison, name: str, pipeline: str, found: Any, evidence: Any) -> MeasureRow:
    baseline, value, delta = (float(found[key]) for key in ("baseline", "value", "delta"))
    is_time = name.endswith("_ms")
    position = delta
    if is_time:
        position = -delta / baseline if baseline > 0 else NAN
        tolerance = comparison.latency_tolerance_ms
        label = f"{measure_label(name[4:], comparison.k)} {name[:3]}"
    else:
        tolerance = comparison.quality_tolerance
        label = measure_label(name, comparison.k)
    low = high = NAN
    note = ""
    if evidence is not None:
        verdict = str(evidence["verdict"])
        if not (is_missing(evidence["low"]) or is_missing(evidence["high"])):
            low, high = float(evidence["low"]), float(evidence["high"])
            if evidence.get("scale") == "ratio":
                # The paired ratio of times, turned round: 1.2 is a fifth slower.
                position, low, high = 1 - float(evidence["difference"]), 1 - high, 1 - low
        note = "" if is_missing(evidence.get("note")) else f", {evidence['note']}"
    elif math.isnan(delta):
        verdict = "not comparable"
    elif abs(delta) <= tolerance:
        verdict = WITHIN
    else:
        verdict = "better" if position > 0 else "worse"
    return MeasureRow(
        pipeline,
        name,
        label,
        baseline,
        value,
        delta,
        position,
        low,
        high,
        verdict,
        note,
        int(found["n_baseline"]),
        int(found["n"]),
    )
