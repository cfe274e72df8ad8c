"""The ordered table of rules: what each looks at, when it fires, and where users put their own.

A rule says for all queries at once where it was measured, where it makes sense and where it fires;
:mod:`ragdiag.diagnosis` applies the table. Arrays have shape (n_queries,).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag.errors import SettingsError
from ragdiag.schema import Settings
from ragdiag.taxonomy import (
    DISPLAY_ORDER,
    QUALITY_ORDER,
    SEVERITY_ORDER,
    FailureCategory,
    Severity,
)

__all__ = ["RULES", "BuiltinRule", "Evidence", "Rule", "RuleBook"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: One bit of 64 a rule is kept for each query, the built-in ones included.
MAX_OWN_RULES = 50


@dataclass(frozen=True)
class Evidence:
    """What the rules look at; each array has shape (n_queries,).

    Attributes
    ----------
    settings : Settings
        k and the thresholds.
    has_outcome, failed : numpy.ndarray of bool
        Whether it is known how the query ended; whether the pipeline failed.
    retrieval_measured : numpy.ndarray of bool
        Whether there are both relevant ids and a retrieval to compare them with.
    n_relevant, n_found : numpy.ndarray of int
        Relevant chunks, and how many of them came in the top k; of a query whose evidence are
        passages, these, and how many of them came to the share ``evidence_threshold``.
    first_relevant_rank : numpy.ndarray of float
        NaN where nothing relevant came at any rank.
    retrieval_ms : numpy.ndarray of float
        NaN where retrieval was not timed.
    grounded, answer_correct : numpy.ndarray of float
        1 true, 0 false, NaN without a verdict.
    grounded_confidence, correct_confidence : numpy.ndarray of float
        The judge's, NaN where it stated none.
    """

    settings: Settings
    has_outcome: Bools
    failed: Bools
    retrieval_measured: Bools
    n_relevant: Ints
    n_found: Ints
    first_relevant_rank: Floats
    retrieval_ms: Floats
    grounded: Floats
    answer_correct: Floats
    grounded_confidence: Floats
    correct_confidence: Floats

    def __len__(self) -> int:
        return len(self.failed)

    @cached_property
    def usable(self) -> Bools:
        """Where something is known of the query and its pipeline did not fail."""
        judged = ~np.isnan(self.grounded) | ~np.isnan(self.answer_correct)
        return ~self.failed & (self.has_outcome | self.retrieval_measured | judged)

    @cached_property
    def some_found(self) -> Bools:
        """Where a relevant chunk is in the top k; it may hold no more than a part of a passage."""
        return (self.n_found > 0) | (self.first_relevant_rank <= self.settings.k)

    @cached_property
    def all_found(self) -> Bools:
        """Where every relevant chunk is in the top k."""
        return self.n_found >= self.n_relevant


Test = Callable[[Evidence], Bools]


@dataclass(frozen=True)
class BuiltinRule:
    """One line of the rule table.

    Attributes
    ----------
    category : FailureCategory
        What the rule stands for.
    condition : str
        When it fires, in words; fields of :class:`~ragdiag.schema.Settings` are filled in.
    measured : callable
        Where there is the evidence to decide.
    fires : callable
        Where it fires, if measured and applicable.
    applicable : callable or None
        Where the question makes sense at all; None means wherever it is measured.
    confidence : str or None
        The field of :class:`Evidence` that holds the judge's confidence; None means certain.
    is_check : bool
        Whether passing it is evidence of quality. That a pipeline returned is not.
    """

    category: FailureCategory
    condition: str
    measured: Test
    fires: Test
    applicable: Test | None = None
    confidence: str | None = None
    is_check: bool = True

    @property
    def name(self) -> str:
        """Name of the category."""
        return self.category.value

    @property
    def severity(self) -> Severity:
        """Severity of the category."""
        return self.category.severity

    @property
    def action(self) -> str:
        """What to do about it."""
        return self.category.action


#: The rules in order of precedence: the first that fires gives the query its category.
RULES: tuple[BuiltinRule, ...] = (
    BuiltinRule(
        FailureCategory.UNKNOWN,
        "the pipeline fails",
        measured=lambda e: e.has_outcome,
        fires=lambda e: e.failed,
        is_check=False,
    ),
    BuiltinRule(
        FailureCategory.WRONG_CHUNK_RETRIEVED,
        "no relevant chunk in the top {k}",
        measured=lambda e: e.retrieval_measured,
        fires=lambda e: ~e.some_found,
    ),
    BuiltinRule(
        FailureCategory.INSUFFICIENT_CONTEXT,
        "only some of the relevant chunks in the top {k}",
        measured=lambda e: e.retrieval_measured,
        applicable=lambda e: e.some_found,
        fires=lambda e: ~e.all_found,
    ),
    BuiltinRule(
        FailureCategory.WRONG_CHUNK_RANK,
        "all relevant chunks came, the first of them below rank {rank_threshold}",
        measured=lambda e: e.retrieval_measured,
        applicable=lambda e: e.all_found,
        fires=lambda e: e.first_relevant_rank > e.settings.rank_threshold,
    ),
    BuiltinRule(
        FailureCategory.RETRIEVED_BUT_NOT_GROUNDED,
        "the answer is not supported by the retrieved chunks",
        measured=lambda e: e.usable & ~np.isnan(e.grounded),
        fires=lambda e: e.grounded == 0,
        confidence="grounded_confidence",
    ),
    BuiltinRule(
        FailureCategory.ANSWER_INCORRECT,
        "the answer is incorrect",
        measured=lambda e: e.usable & ~np.isnan(e.answer_correct),
        fires=lambda e: e.answer_correct == 0,
        confidence="correct_confidence",
    ),
    BuiltinRule(
        FailureCategory.LATENCY_OUTLIER,
        "retrieval takes more than {latency_threshold_ms} ms",
        measured=lambda e: ~np.isnan(e.retrieval_ms),
        fires=lambda e: e.retrieval_ms > e.settings.latency_threshold_ms,
    ),
)


@dataclass(frozen=True)
class Rule:
    """A user's own cause of failure; its name joins the categories.

    Parameters
    ----------
    name : str
        What the category is called, for instance ``"ANSWER_TOO_LONG"``.
    severity : str
        ``"info"``, ``"warning"`` or ``"major"``.
    when : callable
        Gets a DataFrame, one row a query (everything of ``Results.frame`` up to the signals), and
        returns a mask of the same length: True where the rule fires, missing where it could not be
        measured. Measures are nullable there, so that a comparison with a missing one is missing,
        not False. On a query whose pipeline failed the rule counts only if it fires.
    reason : str or callable
        Why, in words; a callable gets the query's row as a dict.
    action : str
        What to do about it.
    after : FailureCategory or str
        The rule is tried after this category, or after another user rule of this name; by default
        after all others, so that it takes no query from a built-in cause.

    Raises
    ------
    SettingsError
        A value makes no sense.

    Examples
    --------
    >>> rule = Rule("ANSWER_TOO_LONG", "warning", when=lambda f: f["answer"].str.len() > 1000,
    ...             reason="The answer is longer than 1,000 characters.",
    ...             action="Ask for short answers in the prompt.")
    >>> rule.after
    <FailureCategory.LATENCY_OUTLIER: 'LATENCY_OUTLIER'>
    """

    name: str
    severity: Severity
    when: Callable[[pd.DataFrame], Any]
    reason: str | Callable[[Mapping[str, Any]], str]
    action: str
    after: FailureCategory | str = FailureCategory.LATENCY_OUTLIER

    #: As :class:`BuiltinRule` has it: what a user measures is a check.
    is_check = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise SettingsError(f"a rule needs a name, got {self.name!r}")
        if self.severity not in get_args(Severity):
            raise SettingsError(
                f"rule {self.name!r}: severity must be one of {', '.join(SEVERITY_ORDER)}, "
                f"got {self.severity!r}"
            )
        if not callable(self.when):
            raise SettingsError(f"rule {self.name!r}: when must be callable, got {self.when!r}")
        if not callable(self.reason) and not isinstance(self.reason, str):
            raise SettingsError(
                f"rule {self.name!r}: reason must be a text or a callable, got {self.reason!r}"
            )
        if not isinstance(self.action, str):
            raise SettingsError(f"rule {self.name!r}: action must be a text, got {self.action!r}")

    @property
    def condition(self) -> str:
        """When it fires, in words."""
        return self.reason if isinstance(self.reason, str) else "the rule's own condition holds"

    def fired(self, frame: pd.DataFrame) -> Floats:
        """Return where the rule fires on `frame`: 1 yes, 0 no, NaN not measured.

        Raises
        ------
        SettingsError
            ``when`` raises, or returns something else than one True or False a row.
        """
        try:
            mask = self.when(frame)
        except Exception as error:
            raise SettingsError(
                f"rule {self.name!r}: when raised {type(error).__name__}: {error}; the frame has "
                f"the columns {', '.join(map(str, frame.columns))}"
            ) from error
        if isinstance(mask, pd.Series) and not mask.index.equals(frame.index):
            raise SettingsError(
                f"rule {self.name!r}: when must return one value for each row of the frame, in its "
                f"order, got a Series with another index ({len(mask)} of {len(frame)} rows)"
            )
        try:
            array = pd.array(mask, dtype="boolean")
        except (TypeError, ValueError) as error:
            raise SettingsError(
                f"rule {self.name!r}: when must return True or False for each row, "
                f"got {type(mask).__name__} ({error})"
            ) from error
        if len(array) != len(frame):
            raise SettingsError(
                f"rule {self.name!r}: when must return one value a row, "
                f"got {len(array)} for {len(frame)} rows"
            )
        return np.asarray(array.to_numpy(dtype="float64", na_value=np.nan))


@dataclass(frozen=True)
class RuleBook:
    """The built-in rules with the user's own in their places.

    Attributes
    ----------
    rules : tuple of BuiltinRule or Rule
        In order of precedence.
    """

    rules: tuple[BuiltinRule | Rule, ...]

    @classmethod
    def of(cls, own: Sequence[Rule] = ()) -> RuleBook:
        """Return the built-in rules with `own` after the categories they name.

        Raises
        ------
        SettingsError
            Something is not a rule, two have one name, or ``after`` names nothing to come after.
        """
        if len(own) > MAX_OWN_RULES:
            raise SettingsError(f"at most {MAX_OWN_RULES} rules of your own, got {len(own)}")
        ordered: list[BuiltinRule | Rule] = list(RULES)
        taken = {category.value.lower() for category in FailureCategory}
        # Where the next rule after a category goes: behind those already placed there.
        tail: dict[str, str] = {}
        for rule in own:
            if not isinstance(rule, Rule):
                raise SettingsError(f"rules must hold ragdiag.Rule objects, got {rule!r}")
            if rule.name.lower() in taken:
                raise SettingsError(f"rule {rule.name!r}: there is a category of that name already")
            names = [each.name for each in ordered]
            anchor = str(rule.after)
            if anchor not in names:
                raise SettingsError(
                    f"rule {rule.name!r}: after must be one of {', '.join(names)}, got {anchor!r}"
                )
            ordered.insert(names.index(tail.get(anchor, anchor)) + 1, rule)
            tail[anchor] = rule.name
            taken.add(rule.name.lower())
        return cls(tuple(ordered))

    @cached_property
    def own(self) -> tuple[Rule, ...]:
        """The user's rules, in order of precedence."""
        return tuple(rule for rule in self.rules if isinstance(rule, Rule))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The rules' categories in order of precedence, and ``PASS`` at the end."""
        return (*(rule.name for rule in self.rules), FailureCategory.PASS.value)

    @cached_property
    def severities(self) -> tuple[Severity, ...]:
        """Severity of each of :attr:`names`."""
        return (*(rule.severity for rule in self.rules), FailureCategory.PASS.severity)

    @cached_property
    def actions(self) -> tuple[str, ...]:
        """What to do about each of :attr:`names`."""
        return (*(rule.action for rule in self.rules), FailureCategory.PASS.action)

    @cached_property
    def display_order(self) -> tuple[str, ...]:
        """All categories as counts list them: the built-in ones, then the user's."""
        return (*(each.value for each in DISPLAY_ORDER), *(rule.name for rule in self.own))

    @cached_property
    def quality_order(self) -> tuple[str, ...]:
        """All categories, best to worst: the user's lead those of their severity."""
        names: list[str] = []
        for severity in SEVERITY_ORDER:
            built_in = [each.value for each in QUALITY_ORDER if each.severity == severity]
            mine = [rule.name for rule in self.own if rule.severity == severity]
            # Nothing is better than a pass.
            names += [*built_in, *mine] if severity == "info" else [*mine, *built_in]
        return tuple(names)
