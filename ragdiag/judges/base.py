"""``Judge``: what every judge of answers offers, and the little it must implement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragdiag.schema import JudgeResult, RetrievedChunk

if TYPE_CHECKING:
    from ragdiag.judges.cache import JudgeCache

__all__ = ["Judge"]


class Judge(ABC):
    """Says whether an answer is correct and whether it is grounded in the chunks it was given.

    A subclass implements :meth:`evaluate` and is done; everything else has a default. It is called
    from several threads at once.

    Attributes
    ----------
    screened : bool
        True for a deterministic screening, whose findings read "suspected".
    cache : JudgeCache or None
        Where replies are kept between runs, if anywhere; its ``hits`` are shown.

    Examples
    --------
    >>> class Containment(Judge):
    ...     def evaluate(self, query, expected_answer, generated_answer, context):
    ...         found = expected_answer.lower() in generated_answer.lower()
    ...         return JudgeResult(answer_correct=found, reason="containment")
    >>> judge = Containment()
    >>> judge.evaluate("How long?", "7 days", "Within 7 days.", []).answer_correct
    True
    >>> judge.identity
    {'judge': 'Containment'}
    """

    screened: bool = False
    cache: JudgeCache | None = None

    @abstractmethod
    def evaluate(
        self,
        query: str,
        expected_answer: str | None,
        generated_answer: str,
        context: Sequence[RetrievedChunk],
    ) -> JudgeResult:
        """Judge one answer.

        Parameters
        ----------
        query : str
            The question.
        expected_answer : str or None
            The reference answer; None when there is none, so that correctness cannot be judged.
        generated_answer : str
            What the pipeline answered.
        context : sequence of RetrievedChunk
            The chunks the answer was generated from, in the pipeline's order.

        Returns
        -------
        JudgeResult
            Either finding may be None: could not tell. A side that failed carries its error.

        Raises
        ------
        JudgeError
            Neither side could be judged. ``error.fatal`` is True when another sample would fail in
            the same way (a refused key, an unknown model, an exhausted quota).
        """

    def evaluate_again(
        self,
        repeat: int,
        query: str,
        expected_answer: str | None,
        generated_answer: str,
        context: Sequence[RetrievedChunk],
    ) -> JudgeResult:
        """Judge the same answer once more, number `repeat` (0-based), to see whether it flips.

        A judge with a cache keeps each repeat under a key of its own.
        """
        del repeat
        return self.evaluate(query, expected_answer, generated_answer, context)

    @property
    def name(self) -> str:
        """What tables and reports call the judge."""
        return type(self).__name__

    @property
    def identity(self) -> Mapping[str, Any]:
        """Everything that shapes its verdicts, JSON-like and without secrets.

        A store compares it: when it changed, answers stay and only judging runs again. Override it
        in a judge whose verdicts depend on more than its class.
        """
        return {"judge": self.name}

    @property
    def host(self) -> str | None:
        """The host that receives questions, answers and chunks; None if nothing leaves."""
        return None

    def prepare(self) -> None:  # noqa: B027 - most judges have nothing to prepare
        """Check, before anything is paid for, that the judge can work (package, key, server).

        Raises
        ------
        MissingDependencyError
            An optional package is not installed; the message names the extra.
        JudgeError
            The key is missing, the server cannot be reached or cannot do what is needed.
        """

    def cancel(self) -> None:  # noqa: B027 - most judges do not wait
        """End all waits of calls in flight: the run was interrupted. :meth:`prepare` undoes it."""

    def prompts(
        self,
        query: str,
        expected_answer: str | None,
        generated_answer: str,
        context: Sequence[RetrievedChunk],
    ) -> list[str]:
        """Return the text of each request :meth:`evaluate` would send, for an estimate."""
        del query, expected_answer, generated_answer, context
        return []
