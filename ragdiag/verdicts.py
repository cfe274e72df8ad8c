"""From rows of evidence to one word and one honest sentence about a pair of pipelines.

A winner is named only where a primary measure is better after correction and none is worse, nor
retrieval slower. Everything else is said as what it is: a trade-off, equivalent, undecided, too few
queries, not measured. Headline, terminal, HTML, plots and Markdown all show this sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ragdiag.statistics import Evidence

__all__ = ["PairVerdict", "Word", "judge_pair", "measure_name", "signed", "summarise"]

Word = Literal["winner", "trade-off", "equivalent", "undecided", "too few queries", "not measured"]

#: What a sentence calls the measures.
NAMES = {
    "reciprocal_rank": "MRR",
    "answer_correct": "correctness",
    "grounded": "groundedness",
    "passed": "pass rate",
    "p50_retrieval_ms": "retrieval time",
}


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """What may be said of pipeline B against A.

    Attributes
    ----------
    a, b : str
        Names.
    word : str
        ``winner``, ``trade-off``, ``equivalent``, ``undecided``, ``too few queries`` or
        ``not measured``.
    winner : str or None
        The better pipeline, where the evidence holds.
    sentence : str
        The same in words, without a full stop.
    """

    a: str
    b: str
    word: Word
    winner: str | None
    sentence: str


def measure_name(measure: str) -> str:
    """Return what a sentence calls a measure.

    Examples
    --------
    >>> measure_name("recall_at_5"), measure_name("reciprocal_rank")
    ('recall', 'MRR')
    """
    return NAMES.get(measure, measure.split("_at_")[0])


def signed(value: float) -> str:
    """Return a difference with its sign and two decimals; more where two would show nothing.

    Examples
    --------
    >>> signed(0.2), signed(-0.004), signed(0.0)
    ('+0.20', '-0.004', '0.00')
    """
    if value == 0.0:
        return "0.00"
    two = f"{value:+.2f}"
    return two if float(two) else f"{value:+.1g}"


def judge_pair(
    rows: Sequence[Evidence],
    a: str,
    b: str,
    n_queries: int,
    *,
    min_effect: float = 0.05,
    versus: bool = False,
) -> PairVerdict:
    """Return the verdict on pipeline `b` against `a`.

    Parameters
    ----------
    rows : sequence of Evidence
        Decided evidence of this pair; the primary measures and the latency count.
    a, b : str
        Names.
    n_queries : int
        Queries that were compared.
    min_effect : float
        The difference that needed queries were planned for.
    versus : bool
        Whether the sentence says against whom, as it must where there are several pairs.

    Returns
    -------
    PairVerdict

    Examples
    --------
    >>> from ragdiag.statistics import decide, examine
    >>> rows = decide([examine("recall_at_5", [1, 1, 0, 0, 1], [1, 1, 1, 0, 1])])
    >>> judge_pair(rows, "dense", "hybrid", 5).sentence
    'hybrid leads on recall (+0.20) but 5 queries cannot settle it'
    """
    primary = [row for row in rows if row.family == "primary" and row.verdict != "not measured"]
    latency = next((row for row in rows if row.family == "latency"), None)
    if not primary:
        return PairVerdict(a, b, "not measured", None, _not_measured(rows, a, b))
    than = f" than {a}" if versus else ""
    up = [row for row in primary if row.verdict == "better"]
    down = [row for row in primary if row.verdict == "worse"]
    if up and down:
        return PairVerdict(a, b, "trade-off", None, _trade_off(up, down, primary, latency, b, than))
    if up or down:
        winner, loser = (b, a) if up else (a, b)
        against = "worse" if up else "better"
        if latency is not None and latency.verdict == against:
            sentence = _but_slower(
                up or down, primary, latency, winner, f" than {loser}" if versus else ""
            )
            return PairVerdict(a, b, "trade-off", None, sentence)
        return PairVerdict(
            a, b, "winner", winner, _winner(up or down, primary, latency, winner, loser)
        )
    if all(row.verdict == "equivalent" for row in primary):
        return PairVerdict(a, b, "equivalent", None, _equivalent(primary, latency, a, b))
    open_rows = [row for row in primary if row.verdict != "equivalent"]
    few = all(row.verdict == "too few queries" for row in open_rows)
    sentence = _open(open_rows, a, b, n_queries, min_effect, few=few, versus=versus)
    return PairVerdict(a, b, "too few queries" if few else "undecided", None, sentence)


def _not_measured(rows: Sequence[Evidence], a: str, b: str) -> str:
    if not any(row.n_paired for row in rows):
        return f"{a} and {b} cannot be compared: nothing was measured on both sides"
    return f"whether {a} or {b} is better is not known: no quality was measured on both sides"


def _winner(
    rows: Sequence[Evidence],
    primary: Sequence[Evidence],
    latency: Evidence | None,
    winner: str,
    loser: str,
) -> str:
    sentence = f"{winner} is better than {loser} on {_listed(rows)}"
    if latency is not None and latency.verdict in ("better", "worse"):
        sentence += f" and faster ({_times(latency, flipped=latency.verdict == 'worse')})"
    return sentence + _rest(primary)


def _but_slower(
    rows: Sequence[Evidence],
    primary: Sequence[Evidence],
    latency: Evidence,
    winner: str,
    than: str,
) -> str:
    times = _times(latency, flipped=latency.verdict == "better")
    return (
        f"Trade-off: {winner} is better{than} on {_listed(rows)} but slower ({times})"
        f"{_rest(primary)}"
    )


def _trade_off(
    up: Sequence[Evidence],
    down: Sequence[Evidence],
    primary: Sequence[Evidence],
    latency: Evidence | None,
    b: str,
    than: str,
) -> str:
    losses = ", ".join(f"{measure_name(row.measure)} ({signed(row.difference)})" for row in down)
    sentence = f"Trade-off: {b} is better{than} on {_listed(up)} but worse on {losses}"
    if latency is not None and latency.verdict in ("better", "worse"):
        pace = "faster" if latency.verdict == "better" else "slower"
        sentence += f", and {pace} ({_times(latency)})"
    return sentence + _rest(primary)


def _equivalent(primary: Sequence[Evidence], latency: Evidence | None, a: str, b: str) -> str:
    names = _and([measure_name(row.measure) for row in primary])
    sentence = f"{a} and {b} are equivalent on {names} ({primary[0].reason})"
    if latency is not None and latency.verdict in ("better", "worse"):
        faster = b if latency.verdict == "better" else a
        sentence += f"; {faster} is faster ({_times(latency, flipped=faster == a)})"
    return sentence


def _open(
    rows: Sequence[Evidence],
    a: str,
    b: str,
    n_queries: int,
    min_effect: float,
    *,
    few: bool,
    versus: bool,
) -> str:
    """Return what leads and why that settles nothing."""
    lead = max(rows, key=lambda row: abs(row.difference))
    lacking = _lacking(lead, min_effect)
    if few:
        lacking = f"{n_queries:,} {'query' if n_queries == 1 else 'queries'} cannot settle it"
    if lead.direction == 0:
        names = _and([measure_name(row.measure) for row in rows])
        return f"{a} and {b} have the same mean on {names}, but {lacking}"
    leader, other = (b, a) if lead.direction > 0 else (a, b)
    whom = f" {other}" if versus else ""
    by = signed(abs(lead.difference))
    return f"{leader} leads{whom} on {measure_name(lead.measure)} ({by}) but {lacking}"


def _lacking(lead: Evidence, min_effect: float) -> str:
    """Return what keeps a lead from being a win."""
    if lead.n_needed > lead.n_paired:
        return (
            f"that could be chance: about {lead.n_needed:,} queries would be needed to show a "
            f"difference of {min_effect:.4g}"
        )
    if lead.n_needed:
        return f"that could be chance: a difference of {min_effect:.4g} would probably have shown"
    if lead.verdict == "too few queries":
        return f"too few queries differ to settle it ({lead.reason})"
    return lead.reason


def summarise(verdicts: Sequence[PairVerdict]) -> str:
    """Return one sentence about many pairs: how many were won, and by whom.

    Examples
    --------
    >>> won = PairVerdict("base", "x", "winner", "x", "")
    >>> open_ = PairVerdict("base", "y", "undecided", None, "")
    >>> summarise([won, open_, open_, open_])
    '1 of 4 comparisons has a winner: x is better than base; 3 undecided'
    """
    won = [verdict for verdict in verdicts if verdict.winner is not None]
    if won:
        listed = ", ".join(
            f"{each.winner} is better than {each.a if each.winner == each.b else each.b}"
            for each in won
        )
        verb = "has" if len(won) == 1 else "have"
        parts = [f"{len(won)} of {len(verdicts)} comparisons {verb} a winner: {listed}"]
    else:
        parts = [f"none of {len(verdicts)} comparisons has a winner"]
    words = [verdict.word for verdict in verdicts if verdict.winner is None]
    parts += [f"{words.count(word)} {word}" for word in dict.fromkeys(words)]
    return "; ".join(parts)


def _rest(primary: Sequence[Evidence]) -> str:
    """Return what is not known, or known to be equal, of the other measures."""
    parts = []
    for words, said in (
        (("undecided", "too few queries"), "undecided"),
        (("equivalent",), "equivalent"),
    ):
        names = [measure_name(row.measure) for row in primary if row.verdict in words]
        if names:
            parts.append(f"{_and(names)} {'is' if len(names) == 1 else 'are'} {said}")
    return "".join(f"; {part}" for part in parts)


def _listed(rows: Sequence[Evidence]) -> str:
    return _and([f"{measure_name(row.measure)} ({signed(abs(row.difference))})" for row in rows])


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _times(latency: Evidence, *, flipped: bool = False) -> str:
    """Return the ratio of times, of A to B where `flipped`."""
    ratio = latency.difference
    if flipped:
        ratio = 1.0 / ratio if ratio else float("inf")
    return f"x{ratio:.2f}"
