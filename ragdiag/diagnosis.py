"""Why a query ended as it did: the ordered rules applied to all queries at once.

Each rule finds one of four states for each query: it *fired*, it *passed*, it was *not measured*
(the evidence is missing) or it was *not applicable* (it needs more than there is: a rank among
chunks that did not come). The first rule that fires gives the query its primary category; every
other that fires is kept as a signal. Where none fires the query passes, as long as at least one
rule was measured; a query about which nothing is known has no category.

Arrays of shape (n_queries,) in, arrays out. The rules are in :mod:`ragdiag.rules`, words in
:mod:`ragdiag.reasons` and :mod:`ragdiag.explanations`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag.rules import RULES, BuiltinRule, Evidence, Rule, RuleBook

__all__ = [
    "FIRED",
    "NOT_APPLICABLE",
    "NOT_MEASURED",
    "PASSED",
    "RULES",
    "STATE_NAMES",
    "Diagnosis",
    "Evidence",
    "Rule",
    "RuleBook",
    "diagnose_table",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
States = npt.NDArray[np.int8]

#: What a rule can find for a query, as stored, and what people call it.
PASSED, FIRED, NOT_MEASURED, NOT_APPLICABLE = range(4)
STATE_NAMES = ("passed", "fired", "not measured", "not applicable")

#: The confidence of a finding that follows from the evidence alone.
CERTAIN = 1.0


@dataclass(frozen=True)
class Diagnosis:
    """What the rules found.

    Attributes
    ----------
    book : RuleBook
        The rules, in order of precedence.
    states : numpy.ndarray of int8, shape (n_rules, n_queries)
        ``PASSED``, ``FIRED``, ``NOT_MEASURED`` or ``NOT_APPLICABLE``.
    primary : numpy.ndarray of int, shape (n_queries,)
        Position of the category in ``book.names`` (the last is ``PASS``), -1 where missing.
    confidence : numpy.ndarray of float, shape (n_queries,)
        Of the primary category; NaN where it is missing or its judge stated none.
    suspect_label : numpy.ndarray of float, shape (n_queries,)
        1 where a correct and grounded answer came though no relevant chunk was retrieved at any
        rank, 0 where not, NaN where that is not known.
    """

    book: RuleBook
    states: States
    primary: Ints
    confidence: Floats
    suspect_label: Floats

    @cached_property
    def not_measured(self) -> tuple[list[tuple[str, ...]], Ints]:
        """The distinct lists of rules that lacked evidence, and which of them each query has."""
        bits = np.zeros(len(self.primary), dtype=np.int64)
        for place, states in enumerate(self.states):
            bits |= (states == NOT_MEASURED).astype(np.int64) << place
        patterns, which = np.unique(bits, return_inverse=True)
        lists = [
            tuple(rule.name for place, rule in enumerate(self.book.rules) if pattern >> place & 1)
            for pattern in patterns.tolist()
        ]
        return lists, np.ravel(which)

    def take(self, positions: Ints) -> Diagnosis:
        """Return the diagnosis of the queries at `positions`."""
        return Diagnosis(
            self.book,
            self.states[:, positions],
            self.primary[positions],
            self.confidence[positions],
            self.suspect_label[positions],
        )

    def also_fired(self) -> Ints:
        """Return for each of ``book.names`` how many queries it fired for without being primary."""
        fired = self.states == FIRED
        places = np.arange(len(self.book.rules))[:, np.newaxis]
        extra = (fired & (self.primary[np.newaxis, :] != places)).sum(axis=1)
        return np.append(extra, 0)


def diagnose_table(
    evidence: Evidence, book: RuleBook | None = None, frame: pd.DataFrame | None = None
) -> Diagnosis:
    """Apply every rule to every query.

    Parameters
    ----------
    evidence : Evidence
        What is known, one entry a query.
    book : RuleBook, optional
        The rules; the built-in ones by default.
    frame : pandas.DataFrame, optional
        What the user's rules get, one row a query; needed if there are any.

    Returns
    -------
    Diagnosis

    Raises
    ------
    SettingsError
        A user's rule raises, or does not return a mask.
    """
    book = RuleBook.of() if book is None else book
    n = len(evidence)
    frame = pd.DataFrame(index=pd.RangeIndex(n)) if frame is None else frame
    states = np.empty((len(book.rules), n), dtype=np.int8)
    primary = np.full(n, -1, dtype=np.int64)
    confidence = np.full(n, np.nan)
    measured_any = np.zeros(n, dtype=bool)
    for place, rule in enumerate(book.rules):
        if isinstance(rule, Rule):
            states[place] = _own_states(rule.fired(frame), evidence)
        else:
            states[place] = _states(rule, evidence)
        fired = states[place] == FIRED
        first = fired & (primary < 0)
        primary[first] = place
        source = None if isinstance(rule, Rule) else rule.confidence
        confidence[first] = CERTAIN if source is None else getattr(evidence, source)[first]
        if rule.is_check:
            measured_any |= states[place] != NOT_MEASURED
    passed = (primary < 0) & measured_any
    primary[passed] = len(book.rules)
    confidence[passed] = CERTAIN
    return Diagnosis(book, states, primary, confidence, _suspect_label(evidence))


def _states(rule: BuiltinRule, evidence: Evidence) -> States:
    states = np.where(rule.fires(evidence), FIRED, PASSED).astype(np.int8)
    if rule.applicable is not None:
        states[~rule.applicable(evidence)] = NOT_APPLICABLE
    states[~rule.measured(evidence)] = NOT_MEASURED
    return states


def _own_states(fired: Floats, evidence: Evidence) -> States:
    # A comparison with a missing measure is False in pandas: on a query that has no measures that
    # is not a finding.
    states = np.where(fired == 1, FIRED, PASSED).astype(np.int8)
    states[np.isnan(fired) | ((fired == 0) & ~evidence.usable)] = NOT_MEASURED
    return states


def _suspect_label(evidence: Evidence) -> Floats:
    """Three-valued "and" of correct, grounded, and nothing relevant retrieved at any rank."""
    usable = evidence.usable
    nothing_came = np.where(
        evidence.retrieval_measured, np.isnan(evidence.first_relevant_rank), np.nan
    )
    parts = (
        np.where(usable, evidence.answer_correct, np.nan),
        np.where(usable, evidence.grounded, np.nan),
        nothing_came,
    )
    false = np.any([part == 0 for part in parts], axis=0)
    true = np.all([part == 1 for part in parts], axis=0)
    return np.where(true, 1.0, np.where(false, 0.0, np.nan))
