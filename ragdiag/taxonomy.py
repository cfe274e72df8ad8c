"""The causes a query can fail for: one enumeration, with what each means and what to do.

Three orders are in use and each has a name. ``DISPLAY_ORDER`` is how counts are listed,
``PRECEDENCE`` is the order in which rules are tried, ``QUALITY_ORDER`` runs from best to worst.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

__all__ = [
    "CATEGORY_INFO",
    "DISPLAY_ORDER",
    "PRECEDENCE",
    "QUALITY_ORDER",
    "SEVERITY_ORDER",
    "CategoryInfo",
    "FailureCategory",
    "Severity",
]

Severity = Literal["info", "warning", "major"]

#: From harmless to serious; the position is the rank that comparisons use.
SEVERITY_ORDER: tuple[Severity, ...] = ("info", "warning", "major")


@dataclass(frozen=True, slots=True)
class CategoryInfo:
    """What people are told about a category.

    Attributes
    ----------
    severity
        ``"info"``, ``"warning"`` or ``"major"``.
    label
        A few words for a heading.
    action
        What to do about it, one sentence.
    short_action
        The same in at most 28 characters, for tables of 80 columns.
    colour
        Hex colour for borders, tints and plot marks; at least 3:1 on white and on black.
    """

    severity: Severity
    label: str
    action: str
    short_action: str
    colour: str


class FailureCategory(StrEnum):
    """The primary cause of a query's outcome, in display order.

    Examples
    --------
    >>> FailureCategory.INSUFFICIENT_CONTEXT.severity
    'warning'
    >>> FailureCategory("PASS").label
    'Passed'
    """

    PASS = "PASS"  # noqa: S105 - not a password
    WRONG_CHUNK_RETRIEVED = "WRONG_CHUNK_RETRIEVED"
    WRONG_CHUNK_RANK = "WRONG_CHUNK_RANK"
    INSUFFICIENT_CONTEXT = "INSUFFICIENT_CONTEXT"
    RETRIEVED_BUT_NOT_GROUNDED = "RETRIEVED_BUT_NOT_GROUNDED"
    ANSWER_INCORRECT = "ANSWER_INCORRECT"
    LATENCY_OUTLIER = "LATENCY_OUTLIER"
    UNKNOWN = "UNKNOWN"

    @property
    def info(self) -> CategoryInfo:
        """Everything people are told about this category."""
        return CATEGORY_INFO[self]

    @property
    def severity(self) -> Severity:
        """``"info"``, ``"warning"`` or ``"major"``."""
        return CATEGORY_INFO[self].severity

    @property
    def label(self) -> str:
        """A few words for a heading."""
        return CATEGORY_INFO[self].label

    @property
    def action(self) -> str:
        """What to do about it, one sentence."""
        return CATEGORY_INFO[self].action

    @property
    def colour(self) -> str:
        """Hex colour of borders, tints and plot marks."""
        return CATEGORY_INFO[self].colour


CATEGORY_INFO: dict[FailureCategory, CategoryInfo] = {
    FailureCategory.PASS: CategoryInfo(
        "info", "Passed", "Nothing to do.", "nothing to do", "#009E73"
    ),
    FailureCategory.WRONG_CHUNK_RETRIEVED: CategoryInfo(
        "major",
        "No relevant chunk retrieved",
        "No relevant chunk came: check how documents are cut, the embedding or search model, "
        "and how the query is phrased.",
        "check chunking, embeddings",
        "#D55E00",
    ),
    FailureCategory.WRONG_CHUNK_RANK: CategoryInfo(
        "warning",
        "Relevant chunk ranked too low",
        "The right chunks came, too late: add a reranker or tune the one there is.",
        "add or tune a reranker",
        "#B26A00",
    ),
    FailureCategory.INSUFFICIENT_CONTEXT: CategoryInfo(
        "warning",
        "Part of the evidence is missing",
        "Part of the evidence is missing: raise k, or split the question into one search for "
        "each fact it needs.",
        "raise k, split questions",
        "#CC79A7",
    ),
    FailureCategory.RETRIEVED_BUT_NOT_GROUNDED: CategoryInfo(
        "major",
        "Answer not supported by the context",
        "The evidence was there and the answer does not follow from it: tighten the prompt to "
        "answer from the context alone.",
        "tighten the prompt",
        "#7E57C2",
    ),
    FailureCategory.ANSWER_INCORRECT: CategoryInfo(
        "major",
        "Answer incorrect",
        "The evidence was used and the answer is wrong: check the prompt, the model and the "
        "expected answer.",
        "check prompt and label",
        "#0072B2",
    ),
    FailureCategory.LATENCY_OUTLIER: CategoryInfo(
        "warning",
        "Retrieval too slow",
        "Right but slow: profile the retrieval, cache repeated searches.",
        "profile retrieval, cache",
        "#0F8B8D",
    ),
    FailureCategory.UNKNOWN: CategoryInfo(
        "major",
        "Pipeline failed",
        "The pipeline raised an error: fix it, then run this query again.",
        "fix the error, run again",
        "#767676",
    ),
}

#: JSON keys, tables, ties.
DISPLAY_ORDER: tuple[FailureCategory, ...] = tuple(FailureCategory)

#: The rules, first that fires wins; ``PASS`` is what remains.
PRECEDENCE: tuple[FailureCategory, ...] = (
    FailureCategory.UNKNOWN,
    FailureCategory.WRONG_CHUNK_RETRIEVED,
    FailureCategory.INSUFFICIENT_CONTEXT,
    FailureCategory.WRONG_CHUNK_RANK,
    FailureCategory.RETRIEVED_BUT_NOT_GROUNDED,
    FailureCategory.ANSWER_INCORRECT,
    FailureCategory.LATENCY_OUTLIER,
    FailureCategory.PASS,
)

#: Best to worst: the ordered categorical, and the last tie-break of a comparison.
QUALITY_ORDER: tuple[FailureCategory, ...] = (
    FailureCategory.PASS,
    FailureCategory.LATENCY_OUTLIER,
    FailureCategory.WRONG_CHUNK_RANK,
    FailureCategory.INSUFFICIENT_CONTEXT,
    FailureCategory.ANSWER_INCORRECT,
    FailureCategory.RETRIEVED_BUT_NOT_GROUNDED,
    FailureCategory.WRONG_CHUNK_RETRIEVED,
    FailureCategory.UNKNOWN,
)
