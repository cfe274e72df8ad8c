"""One deep recording, every depth: what results would be at other settings, without any call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import pandas as pd

from ragdiag.errors import SettingsError
from ragdiag.stability import Stability, stability
from ragdiag.tables import COUNT

if TYPE_CHECKING:
    from ragdiag.results import Results

__all__ = ["Swept"]

Setting = Literal["k", "rank_threshold", "latency_threshold_ms"]
SETTINGS: tuple[Setting, ...] = ("k", "rank_threshold", "latency_threshold_ms")

#: The depths that people ask about.
DEPTHS = (1, 3, 5, 10, 20)
#: Rows of ``Results.summary()`` that a sweep shows, without their depth.
MEASURES = (
    "precision",
    "recall",
    "hit_rate",
    "ndcg",
    "reciprocal_rank",
    "average_precision",
    "answer_correct",
    "grounded",
    "passed",
)


class Swept:
    """The part of ``Results`` that looks at the same evidence through many settings."""

    def at_k(self, ks: Iterable[int] = DEPTHS) -> pd.DataFrame:
        """Return measures and counts of categories at several depths, from one recording.

        Parameters
        ----------
        ks : iterable of int
            Depths.

        Returns
        -------
        pandas.DataFrame
            As :meth:`sweep` of ``"k"``. Every row equals a separate evaluation at that k, as long
            as the recording is deep enough: ``n_too_shallow`` counts the queries for which fewer
            than k chunks were recorded.

        Examples
        --------
        ``results.at_k([1, 5, 20])[["recall", "passed"]]``
        """
        return self.sweep("k", ks)

    def sweep(self, setting: Setting, values: Iterable[Any]) -> pd.DataFrame:
        """Return measures and counts of categories at several values of a setting.

        Parameters
        ----------
        setting : {"k", "rank_threshold", "latency_threshold_ms"}
            What moves; the other settings stay.
        values : iterable
            Where to.

        Returns
        -------
        pandas.DataFrame
            One row a value, which is the index: means of ``precision, recall, hit_rate, ndcg,
            reciprocal_rank, average_precision, answer_correct, grounded, passed`` (missing where
            nothing was measured), ``n_too_shallow``, then the queries in each category.

        Raises
        ------
        SettingsError
            There is no such setting, no value, or a value that makes no sense.
        """
        if setting not in SETTINGS:
            raise SettingsError(f"setting must be one of {', '.join(SETTINGS)}, got {setting!r}")
        tried = list(values)
        if not tried:
            raise SettingsError(f"no value of {setting} was given")
        rows = [_row(self._at_setting(setting, value)) for value in tried]
        return pd.DataFrame(rows, index=pd.Index(tried, name=setting))

    def _at_setting(self, setting: str, value: Any) -> Results:
        return cast("Results", self).rediagnose(**{setting: value})

    def smallest_k(self) -> pd.DataFrame:
        """Return for each query the depth that would have done, as far as the recording goes.

        Returns
        -------
        pandas.DataFrame
            One row a query with labels, index as in ``frame``: ``query_id, category, n_relevant``;
            ``first_k`` from which on a relevant chunk is there, ``complete_k`` from which on all
            are, and ``smallest_k`` at which no rule of retrieval fires. Missing where no depth of
            the recording does: for ``smallest_k`` also when the first relevant chunk comes below
            ``rank_threshold``, which only better ranking heals.
        """
        results = cast("Results", self)
        pairs = results.expected
        pairs = pairs[pairs["grade"] >= 1]
        ranks = pairs["rank"].astype("Float64")
        grouped = ranks.groupby(pairs["query_id"].astype(object))
        found = pd.DataFrame(
            {
                "n_relevant": grouped.size(),
                "first_k": grouped.min(),
                "complete_k": grouped.max(),
                "n_retrieved": grouped.count(),
            }
        )
        found.loc[found["n_retrieved"] < found["n_relevant"], "complete_k"] = pd.NA
        frame = results.frame[["query_id", "category"]]
        labelled = frame[frame["query_id"].astype(object).isin(found.index)]
        found = found.loc[labelled["query_id"].astype(object)].set_axis(labelled.index)
        high_enough = found["first_k"] <= results.settings.rank_threshold
        # A first rank beyond k is no fault of ranking as long as k is within the threshold, but
        # then nothing relevant is there either: the rule of rank cannot be escaped by depth.
        found["smallest_k"] = found["complete_k"].where(high_enough.fillna(False))
        counts = ["n_relevant", "first_k", "complete_k", "smallest_k"]
        return labelled.join(found[counts].astype(COUNT))

    def stability(self, changes: Mapping[str, Sequence[Any]] | None = None) -> Stability:
        """Return which diagnoses change when a threshold moves one step or the judge is repeated.

        Parameters
        ----------
        changes : mapping of str to sequence, optional
            Settings and values to try instead, for instance ``{"k": [3, 10]}``.

        Returns
        -------
        Stability
            Its ``table`` marks each query, its ``sentence`` counts them.
        """
        return stability(cast("Results", self), changes=changes)


def _row(results: Results) -> dict[str, Any]:
    summary = results.summary().set_index("measure")["value"]
    named = {str(name).removesuffix(f"_at_{results.k}"): value for name, value in summary.items()}
    row: dict[str, Any] = {name: float(named.get(name, np.nan)) for name in MEASURES}
    frame = results.frame
    measured = frame[f"recall_at_{results.k}"].notna()
    row["n_too_shallow"] = int((measured & (frame["n_retrieved"] < results.k)).sum())
    counts = results.counts()["queries"]
    return row | {str(name): int(count) for name, count in counts.items()}
