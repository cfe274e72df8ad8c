"""The measures of a comparison, a row each: both values, the difference, its direction in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragdiag.display.numbers import (
    change,
    interval,
    is_missing,
    measure,
    milliseconds,
    milliseconds_change,
    ratio,
)
from ragdiag.display.views.parts import measure_label

if TYPE_CHECKING:
    from ragdiag.comparison import Comparison

__all__ = ["VERDICT_COLOURS", "MeasureRow", "measure_rows", "tested"]

#: What is shown, in this order; ``{k}`` is the depth.
SHOWN = (
    "recall_at_{k}",
    "reciprocal_rank",
    "answer_correct",
    "grounded",
    "passed",
    "p50_retrieval_ms",
)
_JUDGED = ("answer_correct", "grounded")
#: Edge beside the word of a verdict; every other verdict is open.
VERDICT_COLOURS = {"better": "#009E73", "worse": "#D55E00"}
OPEN_COLOUR = "#767676"
WITHIN = "within tolerance"
NOT_TESTED = "not tested"
NAN = float("nan")


@dataclass(frozen=True)
class MeasureRow:
    """One measure of one pipeline against the baseline.

    Attributes
    ----------
    pipeline, name, label
        Which; `label` is for people.
    baseline, value, difference : float
        Both means, and the difference or, for a tested time, the paired ratio; NaN where there is
        none.
    is_ratio : bool
        Whether `difference`, `low` and `high` are ratios.
    low, high : float
        The interval of `difference`; NaN without one.
    verdict, note : str
        ``better``, ``worse`` and so on, and what stands beside it.
    n_text : str
        What it rests on: queries, or pairs won and lost.
    """

    pipeline: str
    name: str
    label: str
    baseline: float
    value: float
    difference: float
    is_ratio: bool
    low: float
    high: float
    verdict: str
    note: str
    n_text: str

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

    @property
    def span(self) -> tuple[float, float, float]:
        """Low, middle and high on the axis from worse to better; times relative, turned round."""
        ends = (self.low, self.difference, self.high)
        if self.is_ratio:
            low, middle, high = (1 - end for end in reversed(ends))
        elif self.is_time:
            low, middle, high = (
                -end / self.baseline if self.baseline > 0 else NAN for end in reversed(ends)
            )
        else:
            low, middle, high = ends
        return low, middle, high

    @property
    def position(self) -> float:
        """Where the difference stands on the axis from worse to better."""
        return self.span[1]

    def value_text(self, *, baseline: bool = False) -> str:
        """Write one side's mean."""
        number = self.baseline if baseline else self.value
        if self.is_time:
            return milliseconds(number, "not timed")
        return measure(number, "not judged" if self.name in _JUDGED else "not measured")

    @property
    def change_text(self) -> str:
        """The difference with its sign or the ratio, or that there is none."""
        write = ratio if self.is_ratio else milliseconds_change if self.is_time else change
        return write(self.difference, "not on both sides")

    @property
    def interval_text(self) -> str:
        """The interval, or that there is none."""
        if not self.is_tested:
            return NOT_TESTED
        if self.is_ratio:
            return f"{ratio(self.low)} to {ratio(self.high)}"
        return interval(self.low, self.high)


def tested(rows: list[MeasureRow]) -> bool:
    """Return whether any of the measures has an interval."""
    return any(row.is_tested for row in rows)


def measure_rows(comparison: Comparison) -> list[MeasureRow]:
    """Return the measures that are shown, for each pipeline but the baseline.

    Where ``comparison.evidence`` has a measure, the row is of the paired queries, with interval and
    verdict; where it has not, of the means of each side, with the direction of their difference.
    """
    deltas = comparison.deltas.set_index(["measure", "pipeline"])
    found = _evidence(comparison)
    others = [name for name in comparison.names if name != comparison.baseline]
    rows = []
    for template in SHOWN:
        name = template.format(k=comparison.k)
        for pipeline in others:
            if (name, pipeline) in found:
                rows.append(_paired_row(comparison, found[name, pipeline]))
            elif (name, pipeline) in deltas.index:
                means = deltas.loc[(name, pipeline)]
                rows.append(_mean_row(comparison, name, pipeline, means, tested=bool(found)))
    return rows


def _evidence(comparison: Comparison) -> dict[tuple[str, str], Any]:
    """Return the evidence against the baseline by measure and pipeline."""
    table = comparison.evidence
    table = table[table["against"] == comparison.baseline]
    return {(str(row["measure"]), str(row["pipeline"])): row for _, row in table.iterrows()}


def _label(name: str, k: int) -> str:
    if name.endswith("_ms"):
        return f"{measure_label(name[4:], k)} {name[:3]}"
    return measure_label(name, k)


def _paired_row(comparison: Comparison, row: Any) -> MeasureRow:
    name, pairs = str(row["measure"]), int(row["n_paired"])
    won_lost = f"{int(row['wins']):,} to {int(row['losses']):,} of {pairs:,}"
    return MeasureRow(
        str(row["pipeline"]),
        name,
        _label(name, comparison.k),
        float(row["baseline"]),
        float(row["value"]),
        float(row["difference"]),
        row["scale"] == "ratio",
        float(row["low"]),
        float(row["high"]),
        str(row["verdict"]),
        "" if is_missing(row["note"]) else str(row["note"]),
        won_lost,
    )


def _mean_row(
    comparison: Comparison, name: str, pipeline: str, row: Any, *, tested: bool
) -> MeasureRow:
    baseline, value, delta = (float(row[key]) for key in ("baseline", "value", "delta"))
    is_time = name.endswith("_ms")
    tolerance = comparison.latency_tolerance_ms if is_time else comparison.quality_tolerance
    if math.isnan(delta):
        verdict = "not comparable"
    elif tested:
        verdict = NOT_TESTED
    elif abs(delta) <= tolerance:
        verdict = WITHIN
    else:
        verdict = "better" if (delta < 0) == is_time else "worse"
    n_baseline, n = int(row["n_baseline"]), int(row["n"])
    n_text = f"{n:,}" if n == n_baseline else f"{n_baseline:,} and {n:,}"
    label = _label(name, comparison.k)
    return MeasureRow(
        pipeline, name, label, baseline, value, delta, False, NAN, NAN, verdict, "", n_text
    )
