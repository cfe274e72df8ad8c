"""Labelling by hand: which answers to show, in which order, and what was said of them.

The judge's verdict is not shown, so that it cannot sway whoever labels. The sample is drawn at
random with a fixed seed: corrected rates (:mod:`ragdiag.judges.calibration`) need one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ragdiag.errors import SettingsError
from ragdiag.judges.calibration import FINDINGS
from ragdiag.tables import BOOLEAN, TEXT

__all__ = ["LabelState"]

#: How many answers are worth an hour and give usable intervals.
LABELS = 30
SEED = 0


class LabelState:
    """What has been labelled, and which answer comes next; widgets mirror it.

    Parameters
    ----------
    results : Results or DataFrame
        One row a query, with ``query_id`` and ``answer``; only answered queries are drawn.
    n : int
        How many to label; all if there are fewer.
    seed : int
        Of the draw.

    Attributes
    ----------
    queue : list of str
        Query ids in the order of labelling.
    place : int
        Position in the queue.

    Examples
    --------
    >>> frame = pd.DataFrame({"query_id": ["q1", "q2"], "answer": ["7 days", None]})
    >>> state = LabelState(frame)
    >>> state.say("answer_correct", True)
    >>> state.frame
      query_id  answer_correct  grounded
    0       q1            True      <NA>
    """

    def __init__(self, results: Any, n: int = LABELS, seed: int = SEED) -> None:
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise SettingsError(f"n must be a whole number of at least 1, got {n!r}")
        frame = results if isinstance(results, pd.DataFrame) else results.frame
        answered = frame.loc[frame["answer"].notna(), "query_id"].astype(object).tolist()
        if not answered:
            raise SettingsError("no query has an answer that could be labelled")
        drawn = np.random.default_rng(seed).permutation(len(answered))[:n]
        self.queue: list[str] = [answered[position] for position in drawn]
        self.place = 0
        self._said: dict[str, dict[str, bool | None]] = {}

    @property
    def current(self) -> str:
        """The id of the query that is shown."""
        return self.queue[self.place]

    def said(self, finding: str) -> bool | None:
        """Return what was said of the current answer."""
        return self._said.get(self.current, {}).get(finding)

    def say(self, finding: str, value: bool | None) -> None:
        """Label the current answer; None takes a label back."""
        if finding not in FINDINGS:
            raise SettingsError(f"finding must be one of {', '.join(FINDINGS)}, got {finding!r}")
        self._said.setdefault(self.current, {})[finding] = value

    def step(self, by: int) -> None:
        """Go on or back, not beyond the ends."""
        self.place = min(max(0, self.place + by), len(self.queue) - 1)

    @property
    def done(self) -> int:
        """How many answers have a label."""
        return len(self.frame)

    @property
    def frame(self) -> pd.DataFrame:
        """The labels, one row a labelled query in the order of the queue."""
        rows = [
            (query_id, *(self._said[query_id].get(finding) for finding in FINDINGS))
            for query_id in self.queue
            if any(value is not None for value in self._said.get(query_id, {}).values())
        ]
        frame = pd.DataFrame(rows, columns=["query_id", *FINDINGS])
        return frame.astype({"query_id": TEXT, **dict.fromkeys(FINDINGS, BOOLEAN)})
