"""From a model's reply to a verdict: derived in code, from evidence that was checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ragdiag.errors import JudgeError
from ragdiag.judges.prompts import CorrectnessReply, GroundednessReply, Reply, visible
from ragdiag.judges.quotes import check_claims, suspicious
from ragdiag.redaction import describe_error
from ragdiag.schema import Claim, JudgeResult

__all__ = ["SideFinding", "correctness_of", "groundedness_of", "result_of"]

#: So many faults are named in a reason; the rest is counted.
MAX_NAMED = 3


class SideFinding(NamedTuple):
    """What came out for one side.

    Attributes
    ----------
    verdict : bool or None
        The finding; None is "could not tell".
    confidence : float or None
        As the model states it, uncalibrated; 1.0 for what needs no model.
    reason : str
        Why.
    error : JudgeError or None
        Why the side could not be judged.
    """

    verdict: bool | None = None
    confidence: float | None = None
    reason: str = ""
    error: JudgeError | None = None
    claims: tuple[Claim, ...] = ()
    missing: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    reply: Reply | None = None

    @property
    def decided(self) -> bool:
        """Whether the side has a verdict or was answered by the model."""
        return self.error is None and (self.verdict is not None or self.reply is not None)


def correctness_of(reply: CorrectnessReply) -> SideFinding:
    """Return the finding of a reply that does not contradict itself."""
    told = reply.verdict.replace("_", " ")
    return SideFinding(
        reply.verdict == "correct",
        _stated(reply.confidence),
        f"{told}: {reply.reason.strip()}" if reply.reason.strip() else told,
        missing=tuple(reply.missing_facts),
        wrong=tuple(reply.wrong_facts),
    )


def groundedness_of(
    reply: GroundednessReply, query: str, chunks: Mapping[str, tuple[str, str]]
) -> SideFinding:
    """Return the finding: grounded if a checked quote supports each claim."""
    claims = check_claims(reply.claims, query, chunks)
    faults = [claim for claim in claims if claim.verdict != "supported"]
    told = f"{len(claims) - len(faults)} of {len(claims)} claims supported by a quote"
    named = "; ".join(
        f"{claim.verdict.replace('_', ' ')}: {claim.text!r}" for claim in faults[:MAX_NAMED]
    )
    more = f" and {len(faults) - MAX_NAMED} more" if len(faults) > MAX_NAMED else ""
    return SideFinding(
        bool(claims) and not faults,
        _stated(reply.confidence),
        f"{told}; {named}{more}" if faults else told,
        claims=tuple(claims),
    )


def _stated(confidence: float) -> float | None:
    """Return a model's confidence if it is one."""
    return confidence if 0.0 <= confidence <= 1.0 else None


def result_of(
    correct: SideFinding,
    grounded: SideFinding,
    texts: Sequence[str],
    chunks: Mapping[str, tuple[str, str]],
) -> JudgeResult:
    """Put both sides together, and say what in the material spoke to the judge."""
    replies = [side.reply for side in (correct, grounded) if side.reply is not None]
    stated = [side.confidence for side in (correct, grounded) if side.verdict is not None]
    known = [confidence for confidence in stated if confidence is not None]
    both = len(known) == 2
    told = [
        f"{name}: {side.reason if side.error is None else 'not judged'}"
        for name, side in (("Correctness", correct), ("Groundedness", grounded))
    ]
    return JudgeResult(
        answer_correct=correct.verdict,
        grounded=grounded.verdict,
        confidence=min(known) if both else None,
        correct_confidence=correct.confidence,
        grounded_confidence=grounded.confidence,
        correct_error=describe_error(correct.error) if correct.error else None,
        grounded_error=describe_error(grounded.error) if grounded.error else None,
        reason=". ".join([*told, *_warnings(texts, chunks)]),
        claims=list(grounded.claims),
        missing_facts=list(correct.missing),
        wrong_facts=list(correct.wrong),
        model=next((reply.model for reply in replies if reply.model), None),
        prompt_tokens=_total(reply.prompt_tokens for reply in replies),
        completion_tokens=_total(reply.completion_tokens for reply in replies),
    )


def _total(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _warnings(texts: Sequence[str], chunks: Mapping[str, tuple[str, str]]) -> list[str]:
    """Say where text seems to speak to the judge, or hides characters."""
    every = "\n".join([*texts, *(text for _, text in chunks.values())])
    if suspicious(every) is None and visible(every) == every:
        return []
    found: list[str] = []
    places = [("question or answer", text) for text in texts]
    places += [(f"chunk {chunk_id!r}", text) for chunk_id, text in chunks.values()]
    for place, text in places:
        phrase = suspicious(text)
        if phrase is not None:
            found.append(f"Suspicious text in {place}: {phrase!r}")
        if visible(text) != text:
            found.append(f"Hidden characters in {place} were left out")
    return found[: 2 * MAX_NAMED]
