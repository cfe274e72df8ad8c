"""``Comparison``: two or more results joined on query id. Immutable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag import export
from ragdiag.errors import ComparisonError, QueryNotFoundError
from ragdiag.joining import check_options, join, position, tell_apart
from ragdiag.outcomes import OUTCOMES_IN_ORDER, Outcome
from ragdiag.pairing import Pair, Side
from ragdiag.proof import Proven
from ragdiag.published import PublishedFields
from ragdiag.schema import RESERVED_COLUMNS
from ragdiag.showing import Shown
from ragdiag.tables import TEXT, guarded

if TYPE_CHECKING:
    from ragdiag.report_models import QueryOutcome
    from ragdiag.results import Results
    from ragdiag.schema import EvaluationResult

__all__ = ["Comparison"]


class Comparison(Proven, PublishedFields, Shown):
    """Two or more results on the same queries, one of them the baseline.

    The published fields (``winner``, ``trade_off``, ``metric_deltas`` ...) are those of a pair:
    A is the baseline, B the other. With more than two, ``pair(a, b)`` gives each pair.

    Parameters
    ----------
    *results : Results
        What to compare, at the same settings and with the same labels.
    names : sequence of str, optional
        What to call them; the pipelines' names by default, told apart where two are equal.
    baseline : int or str
        Which of them the others are compared with: a position or a name.
    on : {"all", "intersection"}
        Results with different queries are refused, or cut to the queries they share.
    quality_tolerance : float
        A difference of a mean measure up to this is a tie.
    latency_tolerance_ms : float
        A difference of mean retrieval time up to this is a tie, milliseconds.

    Raises
    ------
    ComparisonError
        There are fewer than two results, or they differ in settings, rules, queries or labels.
    """

    def __init__(
        self,
        *results: Results,
        names: Sequence[str] | None = None,
        baseline: int | str = 0,
        on: Literal["all", "intersection"] = "all",
        quality_tolerance: float = 0.02,
        latency_tolerance_ms: float = 10.0,
    ) -> None:
        if len(results) < 2:
            raise ComparisonError(f"a comparison needs at least two results, got {len(results)}")
        check_options(
            len(results),
            names=names,
            baseline=baseline,
            on=on,
            quality_tolerance=quality_tolerance,
            latency_tolerance_ms=latency_tolerance_ms,
        )
        self.names = tell_apart(results, names)
        self._base = self._position(baseline)
        joined = join(results, self.names, baseline=self._base, on=on)
        self.results = joined.results
        self.left_out = joined.left_out
        self._rows = joined.rows
        self.quality_tolerance = quality_tolerance
        self.latency_tolerance_ms = latency_tolerance_ms

    # --- what is compared -------------------------------------------------------------------

    @property
    def baseline(self) -> str:
        """Name of the baseline."""
        return self.names[self._base]

    @property
    def k(self) -> int:
        """Depth of the measures."""
        return self._pairs[0].k

    @property
    def query_ids(self) -> pd.Series:
        """Ids of the queries, in the baseline's order; the index is the dataset position."""
        return self._sides[self._base].frame["query_id"].copy()

    def __len__(self) -> int:
        return len(self._rows[0])

    def __iter__(self) -> Iterator[QueryOutcome]:
        return iter(self.query_outcomes)

    @overload
    def __getitem__(self, key: int | str) -> QueryOutcome: ...
    @overload
    def __getitem__(self, key: slice | list[bool] | pd.Series | npt.NDArray[Any]) -> Comparison: ...
    def __getitem__(self, key: Any) -> QueryOutcome | Comparison:
        """Return one query's outcome, by id or position, or a comparison of several queries."""
        if isinstance(key, str | int | np.integer):
            return self.query_outcomes[self._row(key)]
        if isinstance(key, slice):
            mask = np.zeros(len(self), dtype=bool)
            mask[key] = True
            return self._where(mask)
        return self.select(key)

    def sides(self, key: int | str) -> dict[str, EvaluationResult]:
        """Return one query as each side answered it, by id or position.

        Raises
        ------
        QueryNotFoundError
            No such id.
        """
        row = self._row(key)
        return {
            name: results[int(rows[row])]
            for name, results, rows in zip(self.names, self.results, self._rows, strict=True)
        }

    def _row(self, key: str | int | np.integer[Any]) -> int:
        if not isinstance(key, str):
            return range(len(self))[int(key)]
        row = int(
            pd.Index(self._sides[self._base].frame["query_id"]).get_indexer(
                pd.Index([key], dtype=object)
            )[0]
        )
        if row < 0:
            raise QueryNotFoundError(f"no query {key!r} in this comparison of {len(self)} queries")
        return row

    def _position(self, side: int | str) -> int:
        return position(side, len(self.names), self.names)

    # --- pairs ------------------------------------------------------------------------------

    def pair(self, a: int | str, b: int | str) -> Comparison:
        """Return the comparison of two of the sides, `a` being the baseline."""
        places = [self._position(side) for side in (a, b)]
        return self._of(
            [self.results[place] for place in places],
            names=[self.names[place] for place in places],
            baseline=0,
        )

    @cached_property
    def pairs(self) -> tuple[Comparison, ...]:
        """The baseline against each of the others."""
        if len(self.names) == 2:
            return (self,)
        return tuple(self.pair(self._base, place) for place in self._others)

    @property
    def _others(self) -> list[int]:
        return [place for place in range(len(self.names)) if place != self._base]

    def _of(self, results: Sequence[Results], **changes: Any) -> Comparison:
        options = {
            "names": self.names,
            "baseline": self._base,
            "quality_tolerance": self.quality_tolerance,
            "latency_tolerance_ms": self.latency_tolerance_ms,
        }
        narrower = Comparison(*results, **{**options, **changes})
        narrower.left_out = {name: self.left_out[name] for name in narrower.names}
        return narrower

    @cached_property
    def _sides(self) -> tuple[Side, ...]:
        index = self.results[self._base].frame.index
        return tuple(
            Side(name, results, results.frame.take(rows).set_axis(index))
            for name, results, rows in zip(self.names, self.results, self._rows, strict=True)
        )

    @cached_property
    def _pairs(self) -> tuple[Pair, ...]:
        return tuple(
            Pair(
                self._sides[self._base],
                self._sides[place],
                self.quality_tolerance,
                self.latency_tolerance_ms,
            )
            for place in self._others
        )

    def _pair_with(self, pipeline: int | str) -> Pair:
        place = self._position(pipeline)
        if place == self._base:
            raise ComparisonError(f"{self.names[place]!r} is the baseline itself")
        return self._pairs[self._others.index(place)]

    @property
    def _pair(self) -> Pair:
        """The only pair there is."""
        if len(self._pairs) > 1:
            raise ComparisonError(
                f"this compares {len(self.names)} pipelines; take two of them first: "
                f".pair({self.names[0]!r}, {self.names[1]!r}), or go through .pairs"
            )
        return self._pairs[0]

    # --- tables -----------------------------------------------------------------------------

    @property
    def outcomes(self) -> pd.DataFrame:
        """One row a query: both sides, and whether it improved, regressed or stayed.

        Columns are ``query_id, query, query_type``, then for either side (``_a``, ``_b``)
        ``category, severity, recall, reciprocal_rank, grounded, answer_correct, retrieval_ms,
        status``, then ``outcome``; the index is the dataset position. With more than two sides
        there is a row for each query and pair, and a first column ``pipeline`` names B.
        """
        if len(self._pairs) == 1:
            return guarded(self._pairs[0].outcomes)
        return pd.concat([_named(pair.b.name, pair.outcomes) for pair in self._pairs])

    @property
    def deltas(self) -> pd.DataFrame:
        """One row a measure (and pipeline): ``pipeline, measure, baseline, value, delta``.

        Measures are those of ``Results.summary()``; ``delta`` is value minus baseline, missing
        where a side has no value; ``n_baseline`` and ``n`` say how many queries each rests on.
        """
        return pd.concat([pair.deltas for pair in self._pairs], ignore_index=True)

    @property
    def transitions(self) -> pd.DataFrame:
        """How many queries went from which category (rows, A) to which (columns, B).

        Categories stand in order of precedence. With more than two sides the rows have two levels,
        B's name and A's category.
        """
        if len(self._pairs) == 1:
            return guarded(self._pairs[0].transitions)
        tables = {pair.b.name: pair.transitions for pair in self._pairs}
        return pd.concat(tables, names=["pipeline", self.baseline])

    # --- narrowing --------------------------------------------------------------------------

    def select(
        self,
        where: npt.ArrayLike | Callable[[pd.DataFrame], Any] | None = None,
        *,
        outcome: Outcome | Sequence[Outcome] | None = None,
        pipeline: str | None = None,
        **columns: Any,
    ) -> Comparison:
        """Return the comparison on some of the queries.

        Parameters
        ----------
        where : array-like of bool, or callable, optional
            A mask in the order of the queries, or a callable that makes one of :attr:`outcomes`.
        outcome : str or sequence of str, optional
            ``improved``, ``regressed``, ``unchanged``. With more than two sides a query counts
            when any pair (or the one that `pipeline` names) has this outcome.
        pipeline : str, optional
            The side that stands for B, needed with more than two sides for `where` as a callable
            and for columns of a side.
        **columns
            ``column=value`` or ``column=[values]``, of :attr:`outcomes` or of the baseline's
            frame (metadata).

        Examples
        --------
        ``comparison.select(outcome="regressed", category_a="PASS")``
        """
        mask = np.ones(len(self), dtype=bool)
        if outcome is not None:
            wanted = _as_list(outcome)
            unknown = [each for each in wanted if each not in OUTCOMES_IN_ORDER]
            if unknown:
                raise ComparisonError(
                    f"outcome must be one of {', '.join(OUTCOMES_IN_ORDER)}, got {unknown[0]!r}"
                )
            pairs = self._pairs if pipeline is None else (self._pair_with(pipeline),)
            hits = [pair.outcomes["outcome"].isin(wanted).to_numpy() for pair in pairs]
            mask &= np.logical_or.reduce(hits)
        if callable(where):
            where = where(self._pair_outcomes(pipeline))
        if where is not None:
            mask &= _mask(where, len(self))
        for column, value in columns.items():
            mask &= self._column(column, pipeline).isin(_as_list(value)).to_numpy(dtype=bool)
        return self._where(mask)

    def _pair_outcomes(self, pipeline: str | None) -> pd.DataFrame:
        return (self._pair if pipeline is None else self._pair_with(pipeline)).outcomes

    def _column(self, column: str, pipeline: str | None) -> pd.Series:
        shared = self._sides[self._base].frame
        own = [str(name) for name in shared if name not in RESERVED_COLUMNS]
        if column in ("query_id", "query", "query_type", *own):
            return shared[column]
        outcomes = self._pair_outcomes(pipeline)
        if column not in outcomes:
            known = ", ".join(dict.fromkeys([*outcomes.columns, *own]))
            raise ComparisonError(f"no column {column!r}; there are {known}")
        return outcomes[column]

    def _where(self, mask: npt.NDArray[np.bool_]) -> Comparison:
        narrowed = []
        for results, rows in zip(self.results, self._rows, strict=True):
            own = np.zeros(len(results), dtype=bool)
            own[rows[mask]] = True
            narrowed.append(results.select(own))
        return self._of(narrowed)

    def to_csv(self, path: str | Path | None = None, *, safe: bool = True) -> str | None:
        """Write :attr:`outcomes` as CSV, or return the text; see :meth:`Results.to_csv`."""
        if path is None:
            return export.csv_text(self.outcomes, safe=safe)
        export.write_csv(self.outcomes, path, safe=safe)
        return None


def _named(pipeline: str, outcomes: pd.DataFrame) -> pd.DataFrame:
    named = guarded(outcomes)
    named.insert(0, "pipeline", pd.Series(pipeline, index=outcomes.index, dtype=TEXT))
    return named


def _as_list(value: Any) -> list[Any]:
    return [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)


def _mask(where: Any, length: int) -> npt.NDArray[np.bool_]:
    """Return `where` as booleans, missing as False."""
    mask = pd.array(where, dtype="boolean")
    if len(mask) != length:
        raise ComparisonError(
            f"a mask needs one value for each of {length} queries, got {len(mask)}"
        )
    selected: npt.NDArray[np.bool_] = mask.to_numpy(dtype=bool, na_value=False)
    return selected
