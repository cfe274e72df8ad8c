"""Helpers for the tests of your own pipelines and notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ragdiag.calls import Clock

__all__ = ["FixedClock"]


@dataclass
class _Ticks:
    """A clock that shows 0 first and `seconds` from then on."""

    seconds: float
    started: bool = False

    def __call__(self) -> float:
        if not self.started:
            self.started = True
            return 0.0
        return self.seconds


@dataclass(frozen=True)
class FixedClock:
    """Makes every latency a constant, so that a result can be compared to the last digit.

    Parameters
    ----------
    retrieval_ms, generation_ms, answer_ms, judge_ms : float
        What a stage takes, milliseconds.
    overrides : mapping of (query id, stage) to float, optional
        What single stages of single queries take; a stage is ``"retrieval"``, ``"generation"``,
        ``"answer"`` or ``"judge"``.

    Examples
    --------
    >>> fixed = FixedClock(retrieval_ms=20.0, overrides={("q2", "retrieval"): 1500.0})
    >>> clock = fixed("q2", "retrieval")
    >>> start = clock()
    >>> (clock() - start) * 1000
    1500.0
    """

    retrieval_ms: float = 10.0
    generation_ms: float = 100.0
    answer_ms: float = 110.0
    judge_ms: float = 50.0
    overrides: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def __call__(self, query_id: str, stage: str) -> Clock:
        """Return the clock of one stage of one query."""
        milliseconds = self.overrides.get((query_id, stage))
        if milliseconds is None:
            milliseconds = float(getattr(self, f"{stage}_ms"))
        return _Ticks(milliseconds / 1000.0)
