"""Which diagnoses hang by a thread: on a threshold's last step, or on the judge's mood.

Every threshold is moved one step in either direction and the queries are diagnosed again; where
the judge was asked several times, each of its replies is put in the place of the verdict. A query
whose category changes under any of this is not stable, and its category is to be read with that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag.recording import Run
from ragdiag.tables import BOOLEAN, TEXT, guarded

if TYPE_CHECKING:
    from ragdiag.results import Results

__all__ = ["Stability", "stability"]

#: One step of a time limit is a tenth of it.
LATENCY_STEP = 0.1
#: Key of the run's ``info`` under which repeated findings stand, and what each reply holds.
REPLIES = "judge_replies"
FINDINGS = ("answer_correct", "grounded")

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Stability:
    """How firm the categories of some results are.

    Attributes
    ----------
    table : pandas.DataFrame
        One row a query, index as in the results: ``query_id, category``, the category under each
        change (``k=4``, ``rank_threshold=2``, ``latency_threshold_ms=900``, ``judge reply 2``),
        ``flips`` (changes under which it differs) and ``stable``.
    """

    _table: pd.DataFrame

    @property
    def table(self) -> pd.DataFrame:
        """One row a query."""
        return guarded(self._table)

    @property
    def unstable(self) -> list[str]:
        """Ids of the queries whose category changes."""
        ids: list[str] = self._table.loc[~self._table["stable"], "query_id"].tolist()
        return ids

    @property
    def flips(self) -> pd.Series:
        """How many categories differ under each change."""
        changes = self._table.columns[2:-2]
        differs = {name: _differs(self._table["category"], self._table[name]) for name in changes}
        return pd.Series({name: int(each.sum()) for name, each in differs.items()}, name="flips")

    @property
    def sentence(self) -> str:
        """What there is to know, without a full stop."""
        n, total = len(self.unstable), len(self._table)
        if not n:
            return f"all {total:,} diagnoses stand when a threshold moves one step"
        flips = self.flips[self.flips > 0].sort_values(ascending=False, kind="stable")
        named = ", ".join(f"{name}: {count:,}" for name, count in flips.head(3).items())
        verb = "changes" if n == 1 else "change"
        return f"{n:,} of {total:,} diagnoses {verb} when a threshold moves one step ({named})"


def stability(results: Results, *, changes: Mapping[str, Sequence[Any]] | None = None) -> Stability:
    """Return which categories change when a threshold moves, or the judge is asked again.

    Parameters
    ----------
    results : Results
        What is diagnosed.
    changes : mapping of str to sequence, optional
        Settings and the values to try, ``{"k": [3, 8]}``; by default one step either way: k and
        ``rank_threshold`` by 1, ``latency_threshold_ms`` by a tenth.

    Returns
    -------
    Stability
    """
    base = results.frame
    columns: dict[str, Any] = {"query_id": base["query_id"], "category": base["category"]}
    flips = np.zeros(len(base), dtype=np.int64)
    for name, changed in _changed(results, _steps(results) if changes is None else changes):
        category = changed.frame["category"].set_axis(base.index)
        columns[name] = category
        flips += _differs(base["category"], category)
    columns["flips"] = flips
    columns["stable"] = flips == 0
    return Stability(pd.DataFrame(columns, index=base.index))


def _differs(first: pd.Series, second: pd.Series) -> Bools:
    """Return where two categories differ; two missing ones are the same."""
    a, b = first.astype(object), second.astype(object)
    same = (a == b).to_numpy(dtype=bool) | (a.isna() & b.isna()).to_numpy(dtype=bool)
    return np.asarray(~same)


def _steps(results: Results) -> dict[str, list[Any]]:
    settings = results.settings
    limit = settings.latency_threshold_ms
    return {
        "k": [k for k in (settings.k - 1, settings.k + 1) if k >= 1],
        "rank_threshold": [
            rank for rank in (settings.rank_threshold - 1, settings.rank_threshold + 1) if rank >= 1
        ],
        "latency_threshold_ms": [limit * (1 - LATENCY_STEP), limit * (1 + LATENCY_STEP)],
    }


def _changed(
    results: Results, changes: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[str, Results]]:
    rediagnose: Callable[..., Results] = results.rediagnose
    for setting, values in changes.items():
        for value in values:
            shown = f"{value:.6g}" if isinstance(value, float) else f"{value}"
            yield f"{setting}={shown}", rediagnose(**{setting: value})
    run = results.run
    replies = run.info.get(REPLIES)
    if not isinstance(replies, Mapping) or not replies:
        return
    for reply in range(max(len(each) for each in replies.values())):
        verdicts = _with_reply(run.verdicts, replies, reply)
        yield f"judge reply {reply + 1}", _rejudged(results, run, verdicts)


def _with_reply(
    verdicts: pd.DataFrame, replies: Mapping[str, Sequence[Sequence[Any]]], reply: int
) -> pd.DataFrame:
    """Return the verdicts with one of several replies in place of what most of them said."""
    changed = verdicts.copy()
    for place, finding in enumerate(FINDINGS):
        values = [
            replies[query_id][reply][place]
            if query_id in replies and reply < len(replies[query_id])
            else stands
            for query_id, stands in zip(verdicts["query_id"], verdicts[finding], strict=True)
        ]
        changed[finding] = pd.array(values, dtype=BOOLEAN)
    return changed


def _rejudged(results: Results, run: Run, verdicts: pd.DataFrame) -> Results:
    again: Results = type(results)(run.replace(verdicts=verdicts), results.settings, results.rules)
    # The run of a part of the results has its queries in the dataset's order.
    order = pd.Index(again.frame["query_id"]).get_indexer(
        pd.Index(pd.Series(results.query_ids, dtype=TEXT))
    )
    return again[np.asarray(order)]
