"""One value or one column as it came from a file or a frame: what it is, and how to show it."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
import pandas as pd

from ragdiag.strict_json import Unusable, surrogate_in
from ragdiag.tables import BOOLEAN, COUNT, MEASURE, TEXT

__all__ = ["inferred_column", "plain_list", "shown", "text_of", "whole_of"]

#: What ``Int64`` holds.
INT64_LIMITS = (-(2**63), 2**63 - 1)

#: Whole numbers up to here survive in a column that also holds fractions.
EXACT_FLOAT = 2**53

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80


def shown(value: Any) -> str:
    """Return a bounded repr: what is at fault may be huge, or nested without end.

    Examples
    --------
    >>> len(shown("long" * 1000)) <= 80
    True
    """
    try:
        return _SHORT.repr(value)
    except ValueError:  # an integer too long for Python to write out
        return f"<{type(value).__name__}>"


def text_of(
    value: Any, *, numbers: bool = False, strip: bool = True
) -> tuple[str | None, str | None]:
    """Return the text of a value, None without one, and what is wrong with it, None if nothing.

    Parameters
    ----------
    value : object
        A cell; None stands for a missing one and is nothing wrong.
    numbers : bool
        Whether a whole number is taken as the text of its digits.
    strip : bool
        Whether surrounding white space is dropped.

    Examples
    --------
    >>> text_of("  q1 ")
    ('q1', None)
    >>> text_of("  ")
    (None, "must not be empty, got '  '")
    >>> text_of(7), text_of(7, numbers=True)
    ((None, 'must be text, got 7'), ('7', None))
    """
    if isinstance(value, str):
        # A plain str, whatever subclass (an enumeration, numpy's) it came as.
        text = str.__str__(value)
        stripped = text.strip()
        if not stripped:
            return None, f"must not be empty, got {shown(text)}"
        problem = surrogate_in(text)
        if problem:
            return None, f"{problem}; remove it"
        return (stripped if strip else text), None
    if value is None or isinstance(value, Unusable):
        return None, None
    if numbers and not isinstance(value, float):
        number = whole_of(value)
        if number is not None:
            return str(number), None
    return None, f"must be text, got {shown(value)}"


def whole_of(value: Any) -> int | None:
    """Return a whole number of 64 bits as int; None for anything else, booleans included.

    Examples
    --------
    >>> whole_of(2.0), whole_of(2.5), whole_of(True)
    (2, None, None)
    """
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, float | np.floating) and not float(value).is_integer():
        return None
    if not isinstance(value, int | float | np.integer | np.floating):
        return None
    number = int(value)
    return number if INT64_LIMITS[0] <= number <= INT64_LIMITS[1] else None


def plain_list(values: Any) -> list[Any]:
    """Return a column as Python objects, None where a value is missing.

    Examples
    --------
    >>> plain_list(pd.Series([1, None], dtype="Int64"))
    [1, None]
    """
    if not isinstance(values, pd.Series):
        return list(values)
    missing = values.isna().to_numpy(dtype=bool)
    return [None if gone else value for value, gone in zip(values.tolist(), missing, strict=True)]


def inferred_column(values: list[Any]) -> pd.Series:
    """Return values with the narrowest type of the tables that holds each of them as it is.

    Examples
    --------
    >>> inferred_column([1, None]).dtype, inferred_column([1, "a"]).dtype
    (Int64Dtype(), dtype('O'))
    """
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {str}:
        return pd.Series(values, dtype=TEXT)
    if kinds == {bool}:
        return pd.Series(values, dtype=BOOLEAN)
    if kinds <= {int, float}:
        whole = [value for value in values if type(value) is int]
        if kinds == {int} and all(whole_of(value) is not None for value in whole):
            return pd.Series(values, dtype=COUNT)
        if float in kinds and max(map(abs, whole), default=0) <= EXACT_FLOAT:
            return pd.Series(values, dtype=MEASURE)
    return pd.Series(values, dtype=object)
