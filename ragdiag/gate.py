"""A gate for pull requests: may the candidate replace the baseline? Pass or fail, with reasons.

What was not measured never passes: a check that lacks evidence is *missing*, and a gate with a
missing check fails unless it was told to allow that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag.aggregates import as_floats, latency
from ragdiag.contrasts import LATENCY, Applicability, measure_values
from ragdiag.errors import SettingsError
from ragdiag.gate_result import LISTED_IDS, GateCheck, GateResult, State
from ragdiag.inference import Inference
from ragdiag.taxonomy import FailureCategory
from ragdiag.verdicts import measure_name

if TYPE_CHECKING:
    from ragdiag.pairing import Pair

__all__ = ["GateResult", "Thresholds", "check"]

#: A mean of 0.8 may come out as 0.7999999999999999, and is not below 0.8.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What the candidate has to meet; None asks nothing.

    Attributes
    ----------
    max_regressed : int, optional
        Queries that may be worse than in the baseline.
    max_failed : int, optional
        Queries on which the candidate's pipeline may fail.
    min_recall, min_mrr, min_groundedness, min_correctness, min_pass_rate : float, optional
        The candidate's means, each query that was not measured taken as 0.
    max_p95_ms : float, optional
        95th percentile of the candidate's retrieval times.
    max_drop : float, optional
        No primary measure may be lower than the baseline's by more: the whole 95 % interval has
        to lie above.
    no_new : str or sequence of str
        Causes of failure that may not appear on a query that did not have them.
    no_worse : bool
        Whether a primary measure that is proven worse, after correction, fails the gate.
    allow_missing : bool
        Whether checks that lack evidence are let through.
    """

    max_regressed: int | None = None
    max_failed: int | None = None
    min_recall: float | None = None
    min_mrr: float | None = None
    min_groundedness: float | None = None
    min_correctness: float | None = None
    min_pass_rate: float | None = None
    max_p95_ms: float | None = None
    max_drop: float | None = None
    no_new: str | Sequence[str] = ()
    no_worse: bool = True
    allow_missing: bool = False

    def __post_init__(self) -> None:
        for name in ("max_regressed", "max_failed"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or value < 0 or value != int(value)):
                raise SettingsError(f"{name} must be a whole number of queries, got {value!r}")
        for name in (*MINIMA, "max_drop"):
            value = getattr(self, name)
            if value is not None and not 0.0 <= value <= 1.0:
                raise SettingsError(f"{name} must lie in [0, 1], got {value!r}")
        if self.max_p95_ms is not None and not self.max_p95_ms > 0:
            raise SettingsError(f"max_p95_ms must be above 0 ms, got {self.max_p95_ms!r}")


#: Threshold → measure.
MINIMA = {
    "min_recall": "recall_at_{k}",
    "min_mrr": "reciprocal_rank",
    "min_groundedness": "grounded",
    "min_correctness": "answer_correct",
    "min_pass_rate": "passed",
}


def check(pair: Pair, inference: Inference, thresholds: Thresholds) -> GateResult:
    """Check a candidate (B of `pair`) against its baseline (A).

    Parameters
    ----------
    pair : Pair
        Both sides on the same queries.
    inference : Inference
        Of this pair alone.
    thresholds : Thresholds
        What to check.

    Returns
    -------
    GateResult
    """
    outcomes = pair.outcomes
    regressed = outcomes.loc[outcomes["outcome"] == "regressed", "query_id"].tolist()
    checks = [
        *_no_worse(inference, thresholds),
        *_max_drop(inference, thresholds),
        *_max_regressed(pair, len(regressed), thresholds),
        *_no_new(pair, thresholds),
        *_minima(pair, thresholds),
        *_max_failed(pair, thresholds),
        *_max_p95(pair, thresholds),
    ]
    if not checks:
        raise SettingsError("a gate that checks nothing always passes: give it a threshold")
    return GateResult(
        pair.a.name,
        pair.b.name,
        tuple(checks),
        inference.sentence,
        tuple(regressed),
        thresholds.allow_missing,
    )


def _no_worse(inference: Inference, thresholds: Thresholds) -> Iterator[GateCheck]:
    if not thresholds.no_worse:
        return
    primary = [row for row in inference.evidence[0] if row.family == "primary"]
    worse = [row for row in primary if row.verdict == "worse"]
    gone = [row for row in primary if row.verdict == "not measured"]
    if worse:
        found = ", ".join(
            f"{measure_name(r.measure)} {r.difference:+.3f} ({r.reason})" for r in worse
        )
        yield GateCheck("no_worse", "failed", found)
    elif not primary or gone:
        names = ", ".join(measure_name(row.measure) for row in gone) or "quality"
        yield GateCheck("no_worse", "missing", f"{names} not measured on both sides")
    else:
        words = ", ".join(f"{measure_name(row.measure)} {row.verdict}" for row in primary)
        yield GateCheck("no_worse", "passed", words)


def _max_drop(inference: Inference, thresholds: Thresholds) -> Iterator[GateCheck]:
    limit = thresholds.max_drop
    if limit is None:
        return
    primary = [row for row in inference.evidence[0] if row.family == "primary"]
    if not primary:
        yield GateCheck(f"max_drop={limit:g}", "missing", "no quality was measured")
    for row in primary:
        name = f"max_drop={limit:g} of {measure_name(row.measure)}"
        found = f"{row.difference:+.3f}, 95 % interval {row.low:+.3f} to {row.high:+.3f}"
        if row.verdict == "not measured":
            yield GateCheck(name, "missing", "not measured on both sides")
        elif row.low < -limit:
            yield GateCheck(name, "failed", found)
        elif row.bound_low < -limit:
            detail = f"{found}; {row.n_missing:,} missing values could make it {row.bound_low:+.3f}"
            yield GateCheck(name, "missing", detail)
        else:
            yield GateCheck(name, "passed", found)


def _max_regressed(pair: Pair, regressed: int, thresholds: Thresholds) -> Iterator[GateCheck]:
    limit = thresholds.max_regressed
    if limit is None:
        return
    a, b = pair.a.frame, pair.b.frame
    unknown = (a["category"].isna() | b["category"].isna()).to_numpy(dtype=bool)
    for finding in ("grounded", "answer_correct"):
        judged_in_a = a[finding].notna().to_numpy(dtype=bool)
        unknown = unknown | (judged_in_a & b[finding].isna().to_numpy(dtype=bool) & ~_failed(b))
    worse = (pair.outcomes["outcome"] == "regressed").to_numpy(dtype=bool)
    hidden = int((unknown & ~worse).sum())
    yield _at_most("max_regressed", limit, regressed, hidden, "regressed", "could not be compared")


def _no_new(pair: Pair, thresholds: Thresholds) -> Iterator[GateCheck]:
    wanted = [thresholds.no_new] if isinstance(thresholds.no_new, str) else thresholds.no_new
    for name in wanted:
        column = f"signal_{str(name).lower()}"
        if column not in pair.b.frame or str(name) == FailureCategory.PASS.value:
            known = [c for c in pair.b.results.category_order if c != FailureCategory.PASS.value]
            raise SettingsError(f"no_new must be of {', '.join(known)}, got {name!r}")
        before, after = as_floats(pair.a.frame[column]), as_floats(pair.b.frame[column])
        new = (after == 1) & (before != 1)
        hidden = np.isnan(after) & (before != 1)
        ids = pair.b.frame.loc[new, "query_id"].tolist()
        words = f"new ({_listed(ids)})" if ids else "new"
        yield _at_most(f"no_new={name}", None, len(ids), int(hidden.sum()), words, "not measured")


def _minima(pair: Pair, thresholds: Thresholds) -> Iterator[GateCheck]:
    values = measure_values(pair.b.frame, pair.k, [FailureCategory.PASS.value])
    about = Applicability(pair.b.frame)
    for threshold, template in MINIMA.items():
        least, measure = getattr(thresholds, threshold), template.format(k=pair.k)
        if least is None:
            continue
        name = f"{threshold}={least:g}"
        found = values[measure]
        mask = about.of(measure, found, found)
        found = found if mask is None else found[mask]
        known = found[~np.isnan(found)]
        if not len(known):
            yield GateCheck(name, "missing", f"{measure_name(measure)} was not measured")
            continue
        mean, lowest = float(known.mean()), float(known.sum()) / len(found)
        detail = f"{measure_name(measure)} {mean:.3f} of {len(known):,} queries"
        if mean < least - ROUNDING:
            yield GateCheck(name, "failed", detail)
        elif lowest < least - ROUNDING:
            gone = len(found) - len(known)
            detail += f"; {gone:,} not measured could make it {lowest:.3f}"
            yield GateCheck(name, "missing", detail)
        else:
            yield GateCheck(name, "passed", detail)


def _max_failed(pair: Pair, thresholds: Thresholds) -> Iterator[GateCheck]:
    limit = thresholds.max_failed
    if limit is None:
        return
    not_run = int(pair.b.frame["status"].isna().sum())
    failed = int(_failed(pair.b.frame).sum())
    yield _at_most("max_failed", limit, failed, not_run, "failed", "not run")


def _max_p95(pair: Pair, thresholds: Thresholds) -> Iterator[GateCheck]:
    limit = thresholds.max_p95_ms
    if limit is None:
        return
    times = pair.b.frame[LATENCY]
    stats = latency(times)
    name = f"max_p95_ms={limit:g}"
    if stats.p95_ms is None:
        yield GateCheck(name, "missing", "retrieval was not timed")
        return
    detail = f"{stats.p95_ms:,.1f} ms over {stats.count:,} queries"
    untimed = int((times.isna().to_numpy(dtype=bool) & ~_failed(pair.b.frame)).sum())
    state: State = "failed" if stats.p95_ms > limit else "missing" if untimed else "passed"
    yield GateCheck(name, state, f"{detail}; {untimed:,} not timed" if untimed else detail)


def _at_most(
    name: str, limit: int | None, found: int, hidden: int, word: str, unknown: str
) -> GateCheck:
    """Check a count against a limit (None: 0); what is hidden might have counted."""
    most = limit or 0
    state: State = "failed" if found > most else "missing" if found + hidden > most else "passed"
    detail = f"{found:,} {word}" + (f"; {hidden:,} {unknown}" if hidden else "")
    return GateCheck(name if limit is None else f"{name}={limit}", state, detail)


def _failed(frame: pd.DataFrame) -> npt.NDArray[np.bool_]:
    return np.asarray((frame["status"] == "failed").fillna(False), dtype=bool)


def _listed(ids: Sequence[str]) -> str:
    rest = len(ids) - LISTED_IDS
    return ", ".join(ids[:LISTED_IDS]) + (f" and {rest:,} more" if rest > 0 else "")
