"""What two pipelines' paired measures prove: one row of evidence a measure, with a word.

    better / worse      the difference holds after correction, whatever missing values were
    equivalent          shown to lie within the tolerance
    too few queries     no outcome of the queries that differ could have held
    undecided           none of these; with the queries that the smallest difference of interest
                        would need, or the reason
    not measured        no query has a value on both sides

Arrays in, frozen dataclasses out; the labelled layer is :mod:`ragdiag.inference`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragdiag.errors import SettingsError
from ragdiag.intervals import PairedMean, paired_mean, paired_ratio
from ragdiag.permutation import DRAWS, SignFlipTest, holm, sign_flip_test
from ragdiag.power import planning_moment, sample_size

__all__ = ["Evidence", "Family", "Plan", "Verdict", "decide", "examine", "examine_latency"]

Floats = NDArray[np.float64]
Verdict = Literal["better", "worse", "equivalent", "undecided", "too few queries", "not measured"]
#: ``primary`` measures decide; each family is corrected for its own size.
Family = Literal["primary", "exploratory", "latency"]

#: Fewer clusters than this make every statement about them shaky.
FEW_CLUSTERS = 20
#: No test needs more differing queries than this; it only ends a search.
MOST_DIFFERING = 200


@dataclass(frozen=True, slots=True)
class Plan:
    """What counts as a difference, and how sure one wants to be; set before looking.

    Attributes
    ----------
    alpha : float
        Chance of naming any winner between equally good pipelines, over all primary measures.
    tolerance : float
        Differences of a mean within ±tolerance are no difference worth having.
    latency_tolerance : float
        The same for times, as a share: 0.05 calls ratios of 1/1.05 to 1.05 equal.
    min_effect : float
        The smallest difference worth planning for.
    power : float
        Chance of showing a true difference of `min_effect` that the needed queries give.
    draws, seed : int
        Random sign patterns where the exact distribution is too dear, and their seed.
    """

    alpha: float = 0.05
    tolerance: float = 0.02
    latency_tolerance: float = 0.05
    min_effect: float = 0.05
    power: float = 0.8
    draws: int = DRAWS
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("alpha", "power"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise SettingsError(f"{name} must lie in (0, 1), got {getattr(self, name)!r}")
        if not 0.0 < self.min_effect <= 1.0:
            raise SettingsError(
                f"min_effect must lie in (0, 1], got {self.min_effect!r}: 0.05 is five points"
            )
        for name in ("tolerance", "latency_tolerance"):
            if not getattr(self, name) >= 0.0:
                raise SettingsError(f"{name} must be 0 or more, got {getattr(self, name)!r}")
        if self.draws < 1:
            raise SettingsError(f"draws must be at least 1, got {self.draws!r}")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about one measure of pipeline B against A.

    Attributes
    ----------
    measure : str
        Its name.
    family : str
        ``primary``, ``exploratory`` or ``latency``.
    scale : str
        ``difference`` (B - A) or ``ratio`` (B / A, for times: 1 is no difference).
    higher_is_better : bool
        Direction of the verdict.
    binary : bool
        Whether every value is 0 or 1.
    value_a, value_b : float
        Means (medians for times) over the paired queries.
    difference, low, high : float
        Mean difference, or median ratio, with its 95 % interval.
    p_value, p_corrected : float
        Two-sided, and after Holm over the family.
    p_worst_case : float
        p-value if every missing value had told against the difference; `p_value` if none is
        missing.
    smallest_p : float
        What the queries that differ could have reached at best.
    p_equivalence : float
        That the difference lies outside the tolerance.
    effect_size : float
        Cohen's dz.
    wins, ties, losses : int
        Queries on which B is better, equal, worse.
    n_paired : int
        Queries with a value on both sides.
    n_missing, n_missing_a, n_missing_b : int
        Queries that lack a value on a side, on A's, on B's.
    bound_low, bound_high : float
        The mean difference of all queries, had every missing value gone one way or the other.
    n_units : int
        Independent units: queries, or clusters.
    n_differing : int
        Units whose difference is not zero.
    second_moment, design_effect : float
        What plans are made from: mean squared difference, inflation by clusters.
    method : str
        ``exact`` or ``sampled``, of the p-value.
    n_needed : int
        About how many paired queries would show a difference of ``min_effect``; 0 if not asked.
    verdict : str
        One word for it, see the module.
    reason : str
        What stands behind the word.
    """

    measure: str
    family: Family
    scale: Literal["difference", "ratio"] = "difference"
    higher_is_better: bool = True
    binary: bool = False
    value_a: float = math.nan
    value_b: float = math.nan
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p_value: float = math.nan
    p_corrected: float = math.nan
    p_worst_case: float = math.nan
    smallest_p: float = math.nan
    p_equivalence: float = math.nan
    effect_size: float = math.nan
    wins: int = 0
    ties: int = 0
    losses: int = 0
    n_paired: int = 0
    n_missing: int = 0
    n_missing_a: int = 0
    n_missing_b: int = 0
    bound_low: float = math.nan
    bound_high: float = math.nan
    n_units: int = 0
    n_differing: int = 0
    second_moment: float = math.nan
    design_effect: float = 1.0
    method: str = ""
    n_needed: int = 0
    verdict: Verdict = "not measured"
    reason: str = ""

    @property
    def direction(self) -> int:
        """+1 where B looks better, -1 where A does, 0 where neither; whether proven or not."""
        away = self.difference - (1.0 if self.scale == "ratio" else 0.0)
        if not away or math.isnan(away):
            return 0
        return 1 if (away > 0) == self.higher_is_better else -1


def examine(
    measure: str,
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    applicable: ArrayLike | None = None,
    family: Family = "primary",
    higher_is_better: bool = True,
    plan: Plan = Plan(),
) -> Evidence:
    """Return what the paired values of one measure show, still without a verdict.

    Parameters
    ----------
    measure : str
        Its name.
    a, b : array_like of float, shape (n,)
        Values in [0, 1], the same query in the same place; NaN where missing.
    clusters : array_like, shape (n,), optional
        Labels of queries that are not independent of each other.
    applicable : array_like of bool, shape (n,), optional
        Queries that the measure is about at all (recall needs a relevant chunk); others are
        neither paired nor missing.
    family : {"primary", "exploratory"}
        Which correction it takes part in.
    higher_is_better : bool
        False for shares of failures.
    plan : Plan
        Levels and tolerances.

    Returns
    -------
    Evidence
        For :func:`decide`, which corrects and finds the word.

    Examples
    --------
    >>> found = examine("recall", [0, 0, 0, 0, 1], [1, 1, 1, 1, 1])
    >>> found.difference, found.p_value, found.wins, found.ties, found.losses
    (0.8, 0.125, 4, 1, 0)
    """
    first, second, labels = _aligned(a, b, clusters, applicable)
    gone_a, gone_b = np.isnan(first), np.isnan(second)
    paired = ~(gone_a | gone_b)
    found = Evidence(
        measure,
        family,
        higher_is_better=higher_is_better,
        n_paired=int(paired.sum()),
        n_missing=int((~paired).sum()),
        n_missing_a=int(gone_a.sum()),
        n_missing_b=int(gone_b.sum()),
    )
    if not paired.any():
        return found
    d = second[paired] - first[paired]
    own = None if labels is None else labels[paired]
    mean = paired_mean(d, own, tolerance=plan.tolerance)
    test = sign_flip_test(d, own, draws=plan.draws, seed=plan.seed)
    found = _with_mean(found, first[paired], second[paired], d, mean, test)
    if not found.n_missing:
        return found
    # A missing value may have been anything from 0 to 1.
    worst = np.where(gone_b, 0.0, second) - np.where(gone_a, 1.0, first)
    best = np.where(gone_b, 1.0, second) - np.where(gone_a, 0.0, first)
    against = worst if found.difference > 0 else best
    return replace(
        found,
        bound_low=math.fsum(worst) / len(worst),
        bound_high=math.fsum(best) / len(best),
        p_worst_case=_p_worst_case(found, against, labels, plan),
    )


def _p_worst_case(
    found: Evidence, against: Floats, labels: NDArray[np.generic] | None, plan: Plan
) -> float:
    """Return the p-value with every gap filled against the difference; 1.0 if its sign turns."""
    if math.fsum(against) * found.difference <= 0.0:
        return 1.0
    filled = sign_flip_test(against, labels, draws=plan.draws, seed=plan.seed)
    return max(found.p_value, filled.p_value)


def _aligned(
    a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None, applicable: ArrayLike | None
) -> tuple[Floats, Floats, NDArray[np.generic] | None]:
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    labels = None if clusters is None else np.asarray(clusters)
    lengths = {len(first), len(second)} | (set() if labels is None else {len(labels)})
    if len(lengths) > 1:
        raise SettingsError(f"paired values must be of one length, got {sorted(lengths)}")
    if applicable is None:
        return first, second, labels
    mask = np.asarray(applicable, dtype=bool)
    return first[mask], second[mask], None if labels is None else labels[mask]


def _with_mean(
    found: Evidence, a: Floats, b: Floats, d: Floats, mean: PairedMean, test: SignFlipTest
) -> Evidence:
    better = d > 0 if found.higher_is_better else d < 0
    worse = d < 0 if found.higher_is_better else d > 0
    wins, losses = int(better.sum()), int(worse.sum())
    return replace(
        found,
        binary=bool(((a == 0) | (a == 1)).all() and ((b == 0) | (b == 1)).all()),
        value_a=math.fsum(a) / len(a),
        value_b=math.fsum(b) / len(b),
        difference=mean.mean,
        low=mean.low,
        high=mean.high,
        p_value=test.p_value,
        p_worst_case=test.p_value,
        smallest_p=test.smallest_p,
        p_equivalence=mean.p_equivalence,
        effect_size=mean.effect_size,
        wins=wins,
        ties=len(d) - wins - losses,
        losses=losses,
        bound_low=mean.mean,
        bound_high=mean.mean,
        n_units=mean.n_units,
        n_differing=test.n_nonzero,
        second_moment=mean.second_moment,
        design_effect=mean.design_effect,
        method=test.method,
    )


def examine_latency(
    measure: str,
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    plan: Plan = Plan(),
) -> Evidence:
    """Return what the paired times of two pipelines show, still without a verdict.

    Parameters
    ----------
    measure : str
        Its name, ``retrieval_ms`` say.
    a, b : array_like of float, shape (n,)
        Milliseconds, the same query in the same place; NaN where missing.
    clusters : array_like, shape (n,), optional
        Labels of queries that are not independent of each other.
    plan : Plan
        Levels and tolerances.

    Returns
    -------
    Evidence
        On the scale ``ratio``; wins are queries on which B is faster.

    Examples
    --------
    >>> found = examine_latency("retrieval_ms", [10, 20, 30, 40], [20, 40, 60, 80])
    >>> found.difference, found.p_value, found.losses
    (2.0, 0.125, 4)
    """
    first, second, labels = _aligned(a, b, clusters, None)
    gone_a, gone_b = np.isnan(first), np.isnan(second)
    paired = ~(gone_a | gone_b)
    found = Evidence(
        measure,
        "latency",
        scale="ratio",
        higher_is_better=False,
        n_paired=int(paired.sum()),
        n_missing=int((~paired).sum()),
        n_missing_a=int(gone_a.sum()),
        n_missing_b=int(gone_b.sum()),
    )
    if not paired.any():
        return found
    own = None if labels is None else labels[paired]
    first, second = first[paired], second[paired]
    times = paired_ratio(first, second, own)
    zone = 1.0 + plan.latency_tolerance
    narrow = paired_ratio(first, second, own, confidence=1.0 - 2.0 * plan.alpha).ratio
    # The interval of 1 - 2 alpha inside the zone is the same as both one-sided tests.
    inside = plan.latency_tolerance > 0.0 and narrow.low >= 1.0 / zone and narrow.high <= zone
    return replace(
        found,
        value_a=float(np.median(first)),
        value_b=float(np.median(second)),
        difference=times.ratio.value,
        low=times.ratio.low,
        high=times.ratio.high,
        p_value=times.p_value,
        p_worst_case=times.p_value,
        smallest_p=times.smallest_p,
        p_equivalence=plan.alpha if inside else 1.0,
        wins=times.faster,
        ties=times.equal,
        losses=times.slower,
        n_units=len(first) if own is None else len(np.unique(own)),
        n_differing=times.slower + times.faster,
        method="exact",
    )


def decide(found: Sequence[Evidence], plan: Plan = Plan()) -> tuple[Evidence, ...]:
    """Correct the evidence within each family, and find the word for each measure.

    Parameters
    ----------
    found : sequence of Evidence
        Every measure that is looked at, of all pairs of pipelines together.
    plan : Plan
        The plan they were examined with.

    Returns
    -------
    tuple of Evidence
        The same rows with ``p_corrected``, ``n_needed``, ``verdict`` and ``reason``.

    Notes
    -----
    Holm's correction holds the chance of any false "better" or "worse" in a family at `alpha`
    under every dependence between the measures. A "better" must also hold with each missing value
    set against it, so that it holds for any reason why values are missing.

    Examples
    --------
    >>> rows = [examine("recall", [0] * 12, [1] * 12), examine("mrr", [0] * 5, [1] * 5)]
    >>> [(row.verdict, row.reason) for row in decide(rows)]
    [('better', 'p < 0.001'), ('too few queries', '5 differ, 6 needed')]
    """
    decided = list(found)
    for family in dict.fromkeys(row.family for row in found):
        places = [i for i, row in enumerate(found) if row.family == family]
        p = np.array([found[i].p_value for i in places])
        worst = holm(np.array([found[i].p_worst_case for i in places]))
        corrected = holm(p)
        size = int(np.count_nonzero(~np.isnan(p)))
        for at, i in enumerate(places):
            row = replace(found[i], p_corrected=float(corrected[at]))
            if row.n_paired:
                reachable = _corrected_with(p, at, row.smallest_p)
                row = _worded(row, float(worst[at]), reachable, size, plan)
                if row.verdict == "too few queries":
                    row = replace(row, reason=_too_few(row, p, at, plan))
            decided[i] = row
    return tuple(decided)


def _corrected_with(p: Floats, at: int, value: float) -> float:
    """Return what Holm would have made of `value` in the place of one p-value."""
    others = p.copy()
    others[at] = value
    return float(holm(others)[at])


def _worded(row: Evidence, worst: float, reachable: float, size: int, plan: Plan) -> Evidence:
    within = row.scale == "ratio" or max(abs(row.bound_low), abs(row.bound_high)) <= plan.tolerance
    if row.p_equivalence <= plan.alpha and (within or not row.n_missing):
        zone = (
            f"within a factor of {1 + plan.latency_tolerance:.4g}"
            if row.scale == "ratio"
            else f"within {plan.tolerance:.4g}"
        )
        return replace(row, verdict="equivalent", reason=zone)
    if row.p_corrected <= plan.alpha:
        if worst <= plan.alpha:
            word: Verdict = "better" if row.direction > 0 else "worse"
            return replace(row, verdict=word, reason=_p_text(row.p_corrected))
        return replace(
            row,
            verdict="undecided",
            reason=f"{row.n_missing:,} missing values could overturn it",
        )
    if reachable > plan.alpha:
        return replace(row, verdict="too few queries")
    if row.scale == "ratio":
        return replace(row, verdict="undecided", reason=_p_text(row.p_corrected))
    needed = _needed(row, size, plan)
    reason = (
        f"about {needed:,} queries needed to show {plan.min_effect:.4g}"
        if needed > row.n_paired
        else f"{plan.min_effect:.4g} would probably have shown"
    )
    return replace(row, verdict="undecided", reason=reason, n_needed=needed)


def _needed(row: Evidence, size: int, plan: Plan) -> int:
    n = sample_size(
        plan.min_effect,
        discordance=planning_moment(row.second_moment, row.n_paired),
        power=plan.power,
        alpha=plan.alpha,
        measures=max(1, size),
    )
    return _two_digits(n * row.design_effect)


def _two_digits(n: float) -> int:
    """Round up to two significant digits: more would pretend to know them."""
    step = 10 ** max(0, math.floor(math.log10(max(n, 1.0))) - 1)
    return int(math.ceil(n / step) * step)


def _too_few(row: Evidence, p: Floats, at: int, plan: Plan) -> str:
    unit = "differ" if row.n_units == row.n_paired else "clusters differ"
    for needed in range(row.n_differing + 1, MOST_DIFFERING):
        if _corrected_with(p, at, math.ldexp(2.0, -needed)) <= plan.alpha:
            return f"{row.n_differing} {unit}, {needed} needed"
    return f"{row.n_differing} {unit}"


def _p_text(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"
