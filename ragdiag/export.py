"""Writing tables to files other programs read: CSV that is safe to open, JSON, Parquet.

Everything is written under a temporary name and renamed.
"""

from __future__ import annotations

import io
import json
import math
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragdiag.files import write_bytes, write_text

__all__ = [
    "csv_text",
    "json_text",
    "neutralised",
    "storable",
    "write_csv",
    "write_json",
    "write_parquet",
]

#: Characters that make a spreadsheet take a cell for a formula, their full-width forms included.
FORMULA_STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20|")

#: Skipped when looking for one of them, as spreadsheets do.
SKIPPED = " \u00a0\ufeff\u200b\x00"

#: Put in front, it makes a cell text.
GUARD = "'"


def neutralised(text: str) -> str:
    """Return `text` with an apostrophe in front if a spreadsheet would run it as a formula.

    Examples
    --------
    >>> neutralised("=HYPERLINK(A1)"), neutralised("a = b")
    ("'=HYPERLINK(A1)", 'a = b')
    """
    return GUARD + text if text.lstrip(SKIPPED).startswith(FORMULA_STARTS) else text


def csv_text(frame: pd.DataFrame, *, safe: bool = True) -> str:
    """Return a frame as CSV text, without its index; list and dict cells are JSON.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    safe : bool
        Whether texts that a spreadsheet would run as a formula are neutralised.

    Examples
    --------
    >>> print(csv_text(pd.DataFrame({"a": ["=1+1", "x"], "b": [["p", "q"], []]})))
    a,b
    '=1+1,"[""p"", ""q""]"
    x,[]
    <BLANKLINE>
    """
    columns: dict[str, Any] = {}
    for name, column in frame.items():
        if _holds_objects(column):
            column = column.map(lambda cell: _cell_text(cell, safe), na_action="ignore")
        columns[neutralised(str(name)) if safe else str(name)] = column
    # Lines end as RFC 4180 has it: a writer quotes cells that hold a character of the line end, and
    # a bare carriage return in a text must not begin a row.
    table = pd.DataFrame(columns, index=frame.index)
    text: str = table.to_csv(index=False, lineterminator="\r\n")
    return text


def write_csv(frame: pd.DataFrame, path: str | PathLike[str], *, safe: bool = True) -> None:
    """Write :func:`csv_text` to a file."""
    write_text(Path(path), csv_text(frame, safe=safe))


def json_text(frame: pd.DataFrame) -> str:
    r"""Return the rows of a frame as a JSON array of objects; what is missing is null.

    Examples
    --------
    >>> json_text(pd.DataFrame({"a": [1.5, float("nan")]}))
    '[\n{"a": 1.5},\n{"a": null}\n]\n'
    """
    names = [str(name) for name in frame.columns]
    columns = [[_json_value(cell) for cell in frame[name].tolist()] for name in frame.columns]
    rows = [
        json.dumps(dict(zip(names, cells, strict=True)), ensure_ascii=False, allow_nan=False)
        for cells in zip(*columns, strict=True)
    ]
    return "[\n" + ",\n".join(rows) + "\n]\n" if rows else "[]\n"


def write_json(frame: pd.DataFrame, path: str | PathLike[str]) -> None:
    """Write :func:`json_text` to a file."""
    write_text(Path(path), json_text(frame))


def write_parquet(frame: pd.DataFrame, path: str | PathLike[str]) -> None:
    """Write a frame as Parquet, see :func:`storable`."""
    buffer = io.BytesIO()
    storable(frame).to_parquet(buffer, engine="pyarrow", index=False)
    write_bytes(Path(path), buffer.getvalue())


def storable(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame that Arrow can hold: other cells are JSON text, categories are text."""
    columns: dict[str, Any] = {}
    for name, column in frame.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = column.astype(pd.StringDtype("pyarrow"))
        elif pd.api.types.is_object_dtype(column.dtype) and not _one_kind(column):
            column = column.map(
                lambda cell: json.dumps(_json_value(cell), ensure_ascii=False), na_action="ignore"
            ).astype(pd.StringDtype("pyarrow"))
        columns[str(name)] = column
    return pd.DataFrame(columns, index=frame.index)


def _holds_objects(column: pd.Series) -> bool:
    types = pd.api.types
    return (
        types.is_object_dtype(column.dtype)
        or isinstance(column.dtype, pd.CategoricalDtype)
        or types.is_string_dtype(column.dtype)
    )


def _cell_text(cell: Any, safe: bool) -> Any:
    if isinstance(cell, list | tuple | dict | set | frozenset | np.ndarray):
        return json.dumps(_json_value(cell), ensure_ascii=False)
    return neutralised(cell) if safe and isinstance(cell, str) else cell


def _one_kind(column: pd.Series) -> bool:
    """Return whether all cells are texts, or all are sequences of texts."""
    cells = [cell for cell in column.tolist() if not _is_missing(cell)]
    return all(isinstance(cell, str) for cell in cells) or all(
        isinstance(cell, list | tuple) and all(isinstance(item, str) for item in cell)
        for cell in cells
    )


def _json_value(value: Any) -> Any:
    """Return what JSON has for a cell: null where missing, text for what it has no form for."""
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_json_value(item) for item in value), key=str)
    if isinstance(value, np.ndarray):
        return [_json_value(item) for item in value.tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    if _is_missing(value):
        return None
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    if isinstance(value, str | bool | int | float):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or value != value
