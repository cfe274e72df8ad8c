"""The offline judge's numbers: weights of its two scores, and what each rule's word is worth.

They were fitted and measured by ``python -m ragdiag.judges.lexical_table DATA --fit`` on human
labels: correctness on EVOUNA's Natural Questions part (Wang et al. 2023, five systems), grounding
on RAGTruth (Niu et al. 2024), ClapNQ's human evaluation (IBM) and the Wizard-of-Wikipedia part of
BEGIN (Dziri et al. 2022). The precision of a rule is out of fold: no question, or source text, was
both fitted and measured on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = [
    "CORRECT",
    "CORRECT_RULES",
    "PRECHECK_PRECISION",
    "UNGROUNDED",
    "UNGROUNDED_RULES",
    "Rule",
]

#: Raised whenever a verdict could change; part of the judge's identity.
VERSION = "1"

#: Log-odds that the answer is correct; features in the order of ``correctness.FEATURES``.
CORRECT: Mapping[str, float] = {
    "intercept": -2.098,
    "new_words_found": 2.521,
    "none_found": -0.775,
    "last_word_found": 0.152,
    "phrase_found": 2.325,
    "alternatives_found": 1.364,
    "all_in_question": -1.614,
    "numbers_missing": -0.782,
    "precision": 1.727,
    "length": 0.369,
    "phrase_found_x_length": -0.470,
    "hedges": -0.627,
}

#: Log-odds that the answer is not grounded; features in the order of ``grounding.FEATURES``.
UNGROUNDED: Mapping[str, float] = {
    "intercept": -2.637,
    "words_absent": 3.161,
    "distinct_words_absent": 2.930,
    "trigrams_absent": 0.319,
    "numbers_absent": 0.905,
    "times_absent": 2.098,
    "record_conflicts": 1.179,
    "own_voice": 2.137,
}


class Rule(NamedTuple):
    """One band of a score.

    Attributes
    ----------
    upto : float
        The band reaches from the rule before up to this probability.
    verdict : bool or None
        What it says; None is "could not tell".
    leaning : bool
        What it says if it must.
    precision : float
        How often `leaning` was right.
    """

    upto: float
    verdict: bool | None
    leaning: bool
    precision: float


#: Bands of the probability that the answer is correct.
CORRECT_RULES: tuple[Rule, ...] = (
    Rule(0.07, False, False, 0.937),
    Rule(0.12, False, False, 0.903),
    Rule(0.22, False, False, 0.860),
    Rule(0.50, None, False, 0.652),
    Rule(0.80, None, True, 0.679),
    Rule(0.95, True, True, 0.894),
    Rule(1.00, True, True, 0.986),
)

#: Bands of the probability that the answer is *not* grounded; verdicts are of ``grounded``.
UNGROUNDED_RULES: tuple[Rule, ...] = (
    Rule(0.10, True, True, 0.945),
    Rule(0.20, True, True, 0.840),
    Rule(0.50, None, True, 0.669),
    Rule(0.75, None, False, 0.617),
    Rule(0.90, False, False, 0.862),
    Rule(1.00, False, False, 0.939),
)

#: Every expected number is missing while others are given, and the score alone could not tell.
OTHER_NUMBERS = Rule(1.00, False, False, 0.793)

#: How often an answer that a pre-check stops was judged wrong by people. Only refusals occur often
#: enough to be measured (18 in EVOUNA); the others are wrong by what the words mean.
PRECHECK_PRECISION: Mapping[str, float] = {"declines": 0.944}
