"""Which queries are meant: masks, callables, values of columns, ids and positions."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag.errors import QueryNotFoundError, SettingsError
from ragdiag.evidence import RunEvidence

__all__ = ["column_mask", "is_mask", "place_of_id", "place_of_position", "row_mask"]

Bools = npt.NDArray[np.bool_]

#: How many similar ids an error names.
SIMILAR_IDS = 3

#: Similar ids are looked for among at most this many.
SEARCHED_IDS = 20_000


def is_mask(value: object) -> bool:
    """Return whether `value` is a list or array of booleans, missing ones included.

    Examples
    --------
    >>> is_mask([True, False]), is_mask(pd.array([True, None], dtype="boolean")), is_mask([1, 0])
    (True, True, False)
    """
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, bool | np.bool_) for item in value)
    dtype = getattr(value, "dtype", None)
    return dtype is not None and pd.api.types.is_bool_dtype(dtype)


def row_mask(mask: Any, index: pd.Index) -> Bools:
    """Return a mask as one bool for each row of `index`; a Series is aligned, missing is False.

    Raises
    ------
    SettingsError
        It has the wrong length, misses rows, or is not made of booleans.
    """
    n = len(index)
    if isinstance(mask, pd.Series):
        if not mask.index.equals(index):
            place = mask.index.get_indexer(index) if mask.index.is_unique else np.array([-1])
            if len(place) != n or (place < 0).any():
                raise SettingsError(
                    f"the mask's index does not hold all {n:,} queries of these results; make it "
                    "from a column of their .frame"
                )
            mask = mask.take(place)
        mask = mask.array
    if not is_mask(mask) and not (isinstance(mask, list) and not mask):
        raise SettingsError(
            f"expected a mask of True and False, one a query, got {type(mask).__name__} "
            f"of {getattr(mask, 'dtype', 'other values')}"
        )
    if len(mask) != n:
        raise SettingsError(f"the mask has {len(mask):,} values for {n:,} queries")
    return np.asarray(pd.array(mask, dtype="boolean").fillna(False).to_numpy(dtype=bool))


def column_mask(
    frame: pd.DataFrame, where: Callable[[pd.DataFrame], Any] | Any, columns: Mapping[str, Any]
) -> Bools:
    """Return which rows of `frame` satisfy a mask or callable and all of ``column=value``.

    A list, tuple or set of values means any of them; None means missing.

    Raises
    ------
    SettingsError
        There is no such column or no such category, or something is not a mask.
    """
    chosen = np.ones(len(frame), dtype=bool)
    if where is not None:
        mask = where(frame) if callable(where) else where
        chosen &= row_mask(mask, frame.index)
    for name, wanted in columns.items():
        if name not in frame.columns:
            similar = difflib.get_close_matches(name, list(map(str, frame.columns)), n=1)
            hint = f"; did you mean {similar[0]!r}?" if similar else ""
            raise SettingsError(f"there is no column {name!r} to select by{hint}")
        chosen &= _equal(frame[name], wanted)
    return chosen


def _equal(column: pd.Series, wanted: Any) -> Bools:
    values = list(wanted) if isinstance(wanted, list | tuple | set | frozenset) else [wanted]
    present = [_plain(value) for value in values if not _is_missing(value)]
    if isinstance(column.dtype, pd.CategoricalDtype):
        # A misspelt category would find nothing, which reads as good news.
        known = column.cat.categories.tolist()
        for value in present:
            if value not in known:
                raise SettingsError(f"{column.name} is one of {', '.join(known)}, got {value!r}")
    chosen = column.isin(present).to_numpy(dtype=bool)
    if len(present) < len(values):
        chosen = chosen | column.isna().to_numpy(dtype=bool)
    return chosen


def _plain(value: Any) -> Any:
    # Arrow does not take the str subclasses that enumerations are.
    return str(value) if isinstance(value, str) else value


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and value != value)


def place_of_id(query_id: str, evidence: RunEvidence, positions: npt.NDArray[np.int64]) -> int:
    """Return where in `positions` the query of this id is.

    Raises
    ------
    QueryNotFoundError
        It is not there; similar ids are named.
    """
    position = int(evidence.by_id.get_indexer([str(query_id)])[0])
    places = np.flatnonzero(positions == position)
    if position >= 0 and len(places):
        return int(places[0])
    ids = evidence.query_ids.take(positions)
    near = difflib.get_close_matches(query_id, ids.head(SEARCHED_IDS).tolist(), n=SIMILAR_IDS)
    hint = f"; similar ids are {', '.join(map(repr, near))}" if near else ""
    raise QueryNotFoundError(f"there is no query {query_id!r} among these {len(ids):,}{hint}")


def place_of_position(key: Any, n: int) -> int:
    """Return a position counted from either end as one in ``0 ... n - 1``.

    Raises
    ------
    IndexError
        It is out of range.
    TypeError
        It is not a whole number.

    Examples
    --------
    >>> place_of_position(-1, 5)
    4
    """
    try:
        position = operator.index(key)
    except TypeError:
        raise TypeError(
            "results are indexed by a query id, a position, a slice, a mask, or a list of ids or "
            f"positions, got {type(key).__name__}"
        ) from None
    if not -n <= position < n:
        raise IndexError(f"position {position} is out of range for {n} queries")
    return position % n
