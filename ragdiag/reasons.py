"""Why each query has its category, one sentence a query, written for many in one go.

Nothing is decided here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ragdiag.diagnosis import Diagnosis
from ragdiag.rules import Evidence, Rule
from ragdiag.taxonomy import FailureCategory

__all__ = ["Findings", "in_percent", "milliseconds", "own_reason", "reasons"]

#: What is added to the finding of a judge that only screens.
SCREENED = "(offline screening)"

NOTHING_MEASURED = "Nothing could be measured: there is no label, no verdict and no time to go by."


def milliseconds(value: float, beside: float | None = None) -> str:
    """Return milliseconds with at most one decimal, and more where `beside` would look the same.

    Examples
    --------
    >>> milliseconds(2252.0), milliseconds(1000.04, beside=1000.0)
    ('2,252', '1,000.04')
    """
    for decimals in range(1, 7):
        text = f"{value:,.{decimals}f}".rstrip("0").rstrip(".")
        if beside is None or value == beside or text != milliseconds(beside):
            break
    return text


@dataclass(frozen=True)
class Findings:
    """What reasons are made of, beside the evidence; arrays of shape (n_queries,).

    Attributes
    ----------
    evidence : Evidence
    diagnosis : Diagnosis
    next_rank : numpy.ndarray of float
        The best rank beyond k at which a relevant chunk came, NaN where none did.
    n_deeper : numpy.ndarray of int
        How many relevant chunks came beyond k.
    errors : callable
        Positions to the pipeline's errors.
    screened : callable
        Positions to whether the judge only screens.
    rows : callable
        Positions to rows as dicts, for the user's rules.
    by_passage : numpy.ndarray of bool
        Where the evidence are passages, not chunk ids.
    covered, covered_deeper : numpy.ndarray of float
        Share of the evidence in the top k, and in all that was retrieved; NaN where ids count.
    n_split : numpy.ndarray of int
        Passages that are not in the top k and that a chunk's border cuts.
    """

    evidence: Evidence
    diagnosis: Diagnosis
    next_rank: npt.NDArray[np.float64]
    n_deeper: npt.NDArray[np.int64]
    errors: Callable[[npt.NDArray[np.int64]], Sequence[str | None]]
    screened: Callable[[npt.NDArray[np.int64]], Sequence[bool]]
    rows: Callable[[npt.NDArray[np.int64]], Sequence[Mapping[str, Any]]]
    by_passage: npt.NDArray[np.bool_]
    covered: npt.NDArray[np.float64]
    covered_deeper: npt.NDArray[np.float64]
    n_split: npt.NDArray[np.int64]


Places = npt.NDArray[np.int64]


def reasons(findings: Findings, positions: Places) -> list[str]:
    """Return one sentence for each of the queries at `positions`: why it has its category."""
    texts = np.empty(len(positions), dtype=object)
    primary = findings.diagnosis.primary[positions]
    book = findings.diagnosis.book
    for code in np.unique(primary).tolist():
        here = np.flatnonzero(primary == code)
        chosen = positions[here]
        if code < 0:
            written: Iterable[str] = [NOTHING_MEASURED] * len(here)
        elif code == len(book.rules):
            written = _pass_reasons(findings, chosen)
        else:
            rule = book.rules[code]
            if isinstance(rule, Rule):
                written = _own_reasons(rule, findings, chosen)
            else:
                written = _REASONS[rule.category](findings, chosen)
        texts[here] = list(written)
    return list(texts)


def _failed(findings: Findings, at: Places) -> Iterable[str]:
    return [error or "The pipeline failed; no error was recorded." for error in findings.errors(at)]


def _retrieval(findings: Findings, at: Places) -> Iterable[str]:
    evidence = findings.evidence
    texts = list(_by_id(findings, at))
    for place in np.flatnonzero(findings.by_passage[at]).tolist():
        query = at[place]
        texts[place] = _covered_sentence(
            int(evidence.n_found[query]),
            int(evidence.n_relevant[query]),
            evidence.settings.k,
            float(findings.covered[query]),
            float(findings.covered_deeper[query]),
            float(evidence.first_relevant_rank[query]),
            int(findings.n_split[query]),
        )
    return texts


def in_percent(share: float) -> str:
    """Return a share in whole per cent; what is not all of it is never told as such.

    Examples
    --------
    >>> in_percent(0.614), in_percent(0.999), in_percent(0.002)
    ('61%', '99%', 'less than 1%')
    """
    return "less than 1%" if 0 < share < 0.01 else f"{math.floor(share * 100 + 1e-9)}%"


def _covered_sentence(
    n_found: int,
    n_passages: int,
    k: int,
    covered: float,
    deeper: float,
    first_rank: float,
    n_split: int,
) -> str:
    """Return how much of the passages came, and whether a chunk's border is to blame."""
    if not covered:
        start = f"None of the evidence is in the top {k}"
    else:
        noun = "passage" if n_passages == 1 else "passages"
        start = (
            f"{in_percent(covered)} of the evidence is in the top {k} "
            f"({n_found} of {n_passages} {noun} there)"
        )
    if deeper <= covered:
        rest = "nothing of it retrieved at any rank" if not covered else "the rest not retrieved"
    elif first_rank > k:
        rest = f"the first of it came at rank {int(first_rank)}"
    else:
        rest = f"{in_percent(deeper)} with all that was retrieved"
    text = f"{start}, {rest}"
    if n_split:
        text += f"; a chunk's border splits {n_split} of the passages that are missing"
    return f"{text}."


def _by_id(findings: Findings, at: Places) -> Iterable[str]:
    evidence = findings.evidence
    return map(
        _found_sentence,
        evidence.n_found[at].tolist(),
        evidence.n_relevant[at].tolist(),
        [evidence.settings.k] * len(at),
        np.nan_to_num(findings.next_rank[at]).astype(int).tolist(),
        findings.n_deeper[at].tolist(),
    )


@lru_cache(maxsize=4096)
def _found_sentence(n_found: int, n_relevant: int, k: int, next_rank: int, n_deeper: int) -> str:
    start = f"{n_found} of {n_relevant} relevant chunks in the top {k}"
    only_one_missing = n_relevant - n_found == 1
    if not n_found and not n_deeper:
        return f"{start}, none retrieved at any rank."
    if not n_deeper:
        return f"{start}, the {'other' if only_one_missing else 'rest'} not retrieved."
    if only_one_missing:
        return f"{start}, {'the other' if n_found else 'it came'} at rank {next_rank}."
    if n_deeper == 1:
        return f"{start}, one more at rank {next_rank}."
    return f"{start}, {n_deeper} more from rank {next_rank} on."


def _rank(findings: Findings, at: Places) -> Iterable[str]:
    limit = findings.evidence.settings.rank_threshold
    ranks = findings.evidence.first_relevant_rank[at].astype(int).tolist()
    by_passage = findings.by_passage[at].tolist()
    whats = ["chunk with evidence" if each else "relevant chunk" for each in by_passage]
    return [
        f"The first {what} came at rank {rank}, after the limit of {limit}."
        for rank, what in zip(ranks, whats, strict=True)
    ]


def _grounded(findings: Findings, at: Places) -> Iterable[str]:
    return [
        f"The answer is suspected not to be supported by the retrieved chunks {SCREENED}."
        if screened
        else "The answer is not supported by the retrieved chunks."
        for screened in findings.screened(at)
    ]


def _incorrect(findings: Findings, at: Places) -> Iterable[str]:
    return [
        f"The answer is suspected to be incorrect {SCREENED}."
        if screened
        else "The answer is incorrect."
        for screened in findings.screened(at)
    ]


def _slow(findings: Findings, at: Places) -> Iterable[str]:
    limit = findings.evidence.settings.latency_threshold_ms
    shown = milliseconds(limit)
    return [
        f"Retrieval took {milliseconds(value, beside=limit)} ms, more than the limit of {shown} ms."
        for value in findings.evidence.retrieval_ms[at].tolist()
    ]


def _pass_reasons(findings: Findings, at: Places) -> Iterable[str]:
    lists, which = findings.diagnosis.take(at).not_measured
    texts = [
        f"No measured check failed; not measured: {', '.join(missing)}."
        if missing
        else "All checks were measured and passed."
        for missing in lists
    ]
    return [texts[each] for each in which.tolist()]


def _own_reasons(rule: Rule, findings: Findings, at: Places) -> Iterable[str]:
    if isinstance(rule.reason, str):
        return [rule.reason] * len(at)
    return [own_reason(rule, row) for row in findings.rows(at)]


def own_reason(rule: Rule, row: Mapping[str, Any]) -> str:
    """Return the reason of a user's rule; one that raises is told, since looking must not fail."""
    if isinstance(rule.reason, str):
        return rule.reason
    try:
        return str(rule.reason(row))
    except Exception as error:
        return f"{rule.name} fired; its reason raised {type(error).__name__}: {error}"


_REASONS: dict[FailureCategory, Callable[[Findings, Places], Iterable[str]]] = {
    FailureCategory.UNKNOWN: _failed,
    FailureCategory.WRONG_CHUNK_RETRIEVED: _retrieval,
    FailureCategory.INSUFFICIENT_CONTEXT: _retrieval,
    FailureCategory.WRONG_CHUNK_RANK: _rank,
    FailureCategory.RETRIEVED_BUT_NOT_GROUNDED: _grounded,
    FailureCategory.ANSWER_INCORRECT: _incorrect,
    FailureCategory.LATENCY_OUTLIER: _slow,
}
