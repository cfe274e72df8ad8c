"""How far a judge agrees with people, and what its rates are worth once its errors are known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from ragdiag.errors import SettingsError
from ragdiag.intervals import Interval, wilson_interval

__all__ = [
    "FINDINGS",
    "Agreement",
    "SideAgreement",
    "agreement",
    "cohen_kappa",
    "corrected_rate",
    "flip_rate",
]

#: The columns of verdicts and of labels.
FINDINGS = ("answer_correct", "grounded")
#: Fewer labels than this give intervals too wide to be of use.
FEW_LABELS = 30

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class SideAgreement:
    """Agreement on one finding.

    Attributes
    ----------
    finding : str
        ``answer_correct`` or ``grounded``.
    confusion : pandas.DataFrame
        Counts: rows what people say (True, False), columns what the judge says (True, False, None
        where it could not tell or failed).
    accuracy, kappa : Interval
        Over the labelled answers that the judge decided, with 95 % intervals.
    sensitivity, specificity : Interval
        Share of what people call True (False) that the judge calls so too.
    judged_rate : Interval
        The rate the judge gives, over all answers it decided.
    corrected_rate : Interval
        The same with the judge's measured errors taken out (Rogan and Gladen 1978); NaN where the
        labels do not tell them, or the judge is no better than chance.
    """

    finding: str
    confusion: pd.DataFrame
    accuracy: Interval
    kappa: Interval
    sensitivity: Interval
    specificity: Interval
    judged_rate: Interval
    corrected_rate: Interval

    @property
    def note(self) -> str:
        """What to bear in mind, or an empty text."""
        if math.isnan(self.corrected_rate.value):
            if not self.sensitivity.n or not self.specificity.n:
                return "labels of both kinds are needed to correct the rate"
            return "the judge is no better than chance here: its rate cannot be corrected"
        if self.accuracy.n < FEW_LABELS:
            return f"{self.accuracy.n} labels; at least {FEW_LABELS} give narrower intervals"
        return ""


@dataclass(frozen=True)
class Agreement:
    """What :func:`agreement` found.

    Attributes
    ----------
    sides : dict of str to SideAgreement
        By finding; those that have labels.
    """

    sides: Mapping[str, SideAgreement]

    @property
    def table(self) -> pd.DataFrame:
        """One row a finding and figure: ``value, low, high, n``."""
        figures = (
            *("accuracy", "kappa", "sensitivity", "specificity"),
            *("judged_rate", "corrected_rate"),
        )
        rows = [
            (finding, figure, *(getattr(getattr(side, figure), part) for part in _PARTS))
            for finding, side in self.sides.items()
            for figure in figures
        ]
        frame = pd.DataFrame(rows, columns=["finding", "figure", *_PARTS])
        return frame.set_index(["finding", "figure"])

    def __repr__(self) -> str:
        notes = [f"{name}: {side.note}" for name, side in self.sides.items() if side.note]
        return "\n".join([self.table.to_string(float_format="{:.3f}".format), *notes])

    def _repr_html_(self) -> str:
        return str(self.table.to_html(float_format="{:.3f}".format, border=0))


_PARTS = ("value", "low", "high", "n")


def agreement(results: Any, labels: Any) -> Agreement:
    """Compare a judge's verdicts with people's.

    Parameters
    ----------
    results : Results or pandas.DataFrame
        One row a query: ``query_id``, ``answer_correct``, ``grounded``.
    labels : pandas.DataFrame or object with a ``frame``
        What people say: ``query_id`` and one or both of ``answer_correct`` and ``grounded``; a
        missing value is no label. Label a random sample, or the corrected rates are of the sample.

    Returns
    -------
    Agreement

    Raises
    ------
    SettingsError
        A column is missing, a query is labelled twice or is not in the results, or nothing that
        was labelled was judged.

    Examples
    --------
    >>> judged = pd.DataFrame({"query_id": list("abcdef"),
    ...                        "answer_correct": [True, True, True, False, False, None]})
    >>> labels = pd.DataFrame({"query_id": list("abcde"),
    ...                        "answer_correct": [True, True, False, False, False]})
    >>> side = agreement(judged, labels).sides["answer_correct"]
    >>> side.accuracy.value, round(side.kappa.value, 3), side.accuracy.n
    (0.8, 0.615, 5)
    """
    judged = _frame(results, "results")
    told = _frame(labels, "labels")
    twice = told["query_id"][told["query_id"].duplicated()]
    if len(twice):
        raise SettingsError(f"labels: query {twice.iloc[0]!r} is labelled more than once")
    unknown = told["query_id"][~told["query_id"].isin(judged["query_id"])]
    if len(unknown):
        raise SettingsError(
            f"labels: {len(unknown)} of {len(told)} query ids are not in the results, "
            f"the first is {unknown.iloc[0]!r}"
        )
    findings = [name for name in FINDINGS if name in told and name in judged]
    if not findings:
        raise SettingsError(f"labels need a column {FINDINGS[0]!r} or {FINDINGS[1]!r}")
    judged = judged.set_index("query_id")
    told = told.set_index("query_id")
    sides = {}
    for name in findings:
        human = told[name].astype("boolean").dropna()
        if len(human):
            sides[name] = _side(name, judged[name].astype("boolean"), human)
    if not sides or not any(side.accuracy.n for side in sides.values()):
        raise SettingsError("no answer is both labelled and judged")
    return Agreement(sides)


def _frame(given: Any, name: str) -> pd.DataFrame:
    frame = given if isinstance(given, pd.DataFrame) else getattr(given, "frame", None)
    if not isinstance(frame, pd.DataFrame):
        raise SettingsError(f"{name} must be a DataFrame or have one, got {type(given).__name__}")
    if "query_id" not in frame and frame.index.name == "query_id":
        frame = frame.reset_index()
    if "query_id" not in frame:
        raise SettingsError(f"{name} need a column 'query_id', got {list(map(str, frame.columns))}")
    return frame


def _side(finding: str, judged: pd.Series, human: pd.Series) -> SideAgreement:
    verdicts = judged.reindex(human.index)
    decided = verdicts.notna()
    people = human[decided].to_numpy(bool)
    judge = verdicts[decided].to_numpy(bool)
    confusion = pd.DataFrame(
        [
            [
                int(((human == person) & (verdicts == verdict).fillna(False)).sum())
                for verdict in (True, False)
            ]
            + [int(((human == person) & ~decided).sum())]
            for person in (True, False)
        ],
        index=pd.Index([True, False], name="people"),
        columns=pd.Index([True, False, None], name="judge", dtype=object),
    )
    everything = judged.dropna().to_numpy(bool)
    return SideAgreement(
        finding,
        confusion,
        _rate(people == judge),
        cohen_kappa(people, judge),
        _rate(judge[people]),
        _rate(~judge[~people]),
        _rate(everything),
        corrected_rate(
            int(everything.sum()),
            len(everything),
            int((judge & people).sum()),
            int(people.sum()),
            int((~judge & ~people).sum()),
            int((~people).sum()),
        ),
    )


def _rate(flags: Flags) -> Interval:
    if not len(flags):
        return Interval(math.nan, math.nan, math.nan, 0)
    return wilson_interval(int(flags.sum()), len(flags))


def cohen_kappa(a: Sequence[bool] | Flags, b: Sequence[bool] | Flags) -> Interval:
    """Return Cohen's kappa with a 95 % interval.

    The interval takes the agreement expected by chance as known (Cohen 1960) and Wilson's interval
    for the agreement observed, so that it does not collapse where nobody disagreed.

    Examples
    --------
    >>> kappa = cohen_kappa([True, True, False, False], [True, False, False, False])
    >>> kappa.value, kappa.n
    (0.5, 4)
    """
    x, y = np.asarray(a, bool), np.asarray(b, bool)
    if not len(x):
        return Interval(math.nan, math.nan, math.nan, 0)
    chance = float(x.mean() * y.mean() + (1 - x.mean()) * (1 - y.mean()))
    if chance >= 1:  # one answer only: agreement says nothing
        return Interval(math.nan, math.nan, math.nan, len(x))
    observed = _rate(x == y)
    value, low, high = (
        (share - chance) / (1 - chance) for share in (observed.value, observed.low, observed.high)
    )
    return Interval(value, max(-1.0, low), min(1.0, high), len(x))


def corrected_rate(
    judged_true: int,
    judged: int,
    true_found: int,
    true_labels: int,
    false_found: int,
    false_labels: int,
    *,
    confidence: float = 0.95,
) -> Interval:
    """Return a rate corrected for a judge's errors (Rogan and Gladen 1978).

    The interval is Lang and Reiczigel's (2014): it carries the uncertainty of the judged rate, of
    the sensitivity and of the specificity, and keeps its coverage for a few dozen labels.

    Parameters
    ----------
    judged_true, judged : int
        Answers the judge calls True, of all it decided.
    true_found, true_labels : int
        Of the answers that people call True, how many the judge does, and how many there are.
    false_found, false_labels : int
        The same for False.
    confidence : float
        Of the interval.

    Returns
    -------
    Interval
        NaN if a kind of label is missing or the judge is no better than chance.

    Examples
    --------
    >>> rate = corrected_rate(600, 1000, 45, 50, 40, 50)
    >>> round(rate.value, 3), round(rate.low, 3), round(rate.high, 3)
    (0.571, 0.463, 0.686)
    """
    unknown = Interval(math.nan, math.nan, math.nan, judged)
    if not judged or not true_labels or not false_labels:
        return unknown
    found, spared = true_found / true_labels, false_found / false_labels
    if found + spared <= 1:
        return unknown
    value = (judged_true / judged + spared - 1) / (found + spared - 1)
    z = float(norm.ppf((1 + confidence) / 2))
    size = judged + z * z
    rate = (judged_true + z * z / 2) / size
    n_true, n_false = true_labels + 2, false_labels + 2
    found, spared = (true_found + 1) / n_true, (false_found + 1) / n_false
    youden = found + spared - 1
    if youden <= 0:
        return unknown
    centre = (rate + spared - 1) / youden
    of_found, of_spared = found * (1 - found) / n_true, spared * (1 - spared) / n_false
    shift = 2 * z * z * (centre * of_found - (1 - centre) * of_spared)
    variance = rate * (1 - rate) / size + centre**2 * of_found + (1 - centre) ** 2 * of_spared
    reach = z * math.sqrt(variance) / youden
    low, high = centre + shift - reach, centre + shift + reach
    return Interval(_share(value), _share(low), _share(high), judged)


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


def flip_rate(repeats: Iterable[Sequence[bool | None]]) -> Interval:
    """Return the share of answers on which repeated judgements did not all say the same.

    Parameters
    ----------
    repeats : iterable of sequences
        The findings for one answer, two or more; answers with fewer are left out.

    Examples
    --------
    >>> flip_rate([[True, True], [True, False], [None, None], [True]]).n
    3
    """
    flipped = [len(set(findings)) > 1 for findings in repeats if len(findings) > 1]
    return _rate(np.asarray(flipped, bool))
