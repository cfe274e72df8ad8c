"""Values and columns as JSON that gives back exactly what went in, or a refusal.

JSON has no NaN, no tuples, no dates. What it lacks is written as an object with one key that
begins with ``$``; everything else is written as it is, so that a record stays readable.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ragdiag.errors import RunError, RunFormatError

__all__ = [
    "decode",
    "decode_column",
    "decode_dtype",
    "dumps",
    "encode",
    "encode_column",
    "encode_dtype",
    "json_text",
]

_PLAIN = (str, int, bool, type(None))


def dumps(record: Mapping[str, Any]) -> bytes:
    r"""Return one record as a line of UTF-8.

    Examples
    --------
    >>> dumps({"answer": "dépôt"}).decode()
    '{"answer":"dépôt"}\n'
    """
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        # Half of a surrogate pair has no UTF-8; as an escape it survives.
        text = json.dumps(record, allow_nan=False, separators=(",", ":"))
        return text.encode() + b"\n"


def encode(value: object) -> Any:
    """Return `value` as JSON from which :func:`decode` restores it, type included.

    Raises
    ------
    RunError
        The value is of a type that has no faithful form.

    Examples
    --------
    >>> encode({"a": (1, float("nan"))})
    {'a': {'$tuple': [1, {'$float': 'nan'}]}}
    """
    if type(value) in _PLAIN:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if type(value) is list:
        return [encode(item) for item in value]
    if type(value) is dict:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: encode(item) for key, item in value.items()}
        return {"$dict": [[encode(key), encode(item)] for key, item in value.items()]}
    return _encode_special(value)


def _encode_special(value: object) -> Any:
    if value is pd.NA:
        return {"$na": True}
    if value is pd.NaT:
        return {"$nat": True}
    for tag, kind, to_json, _ in _TAGGED:
        if isinstance(value, kind):
            return {tag: to_json(value)}
    if isinstance(value, str):  # an enumeration of strings equals its text
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Mapping):
        return encode(dict(value))
    raise RunError(
        f"a {type(value).__module__}.{type(value).__qualname__} cannot be stored: "
        f"{str(value)[:80]!r}; make it text or a number first"
    )


def decode(value: Any) -> Any:
    """Return what :func:`encode` was given.

    Raises
    ------
    RunFormatError
        An object has an unknown tag.

    Examples
    --------
    >>> decode({"a": {"$tuple": [1, 2]}})
    {'a': (1, 2)}
    """
    if type(value) is list:
        return [decode(item) for item in value]
    if type(value) is not dict:
        return value
    tag = next(iter(value), "")
    if len(value) != 1 or not tag.startswith("$"):
        return {key: decode(item) for key, item in value.items()}
    content = value[tag]
    if tag == "$na":
        return pd.NA
    if tag == "$nat":
        return pd.NaT
    if tag == "$float":
        return float(content)
    if tag == "$dict":
        return {decode(key): decode(item) for key, item in content}
    for known, _, _, from_json in _TAGGED:
        if tag == known:
            return from_json(content)
    raise RunFormatError(f"unknown value tag {tag!r}")


def _numpy_scalar(value: Any) -> Any:
    if value.dtype.kind in "mM":
        return [value.dtype.str, int(value.view("int64"))]
    return [value.dtype.str, encode(value.item())]


def _from_numpy_scalar(content: Any) -> Any:
    dtype = np.dtype(content[0])
    if dtype.kind in "mM":
        return np.int64(content[1]).view(dtype)
    return dtype.type(decode(content[1]))


def _timestamp(value: Any) -> Any:
    return [value.isoformat(), None if value.tz is None else str(value.tz), value.unit]


def _from_timestamp(content: Any) -> pd.Timestamp:
    text, zone, unit = content
    stamp = pd.Timestamp(text)
    return (stamp if zone is None else stamp.tz_convert(zone)).as_unit(unit)


#: Tag, type, to JSON, from JSON. The first type that fits is taken, so special ones come first.
_TAGGED: tuple[tuple[str, Any, Any, Any], ...] = (
    ("$timestamp", pd.Timestamp, _timestamp, _from_timestamp),
    (
        "$timedelta",
        pd.Timedelta,
        lambda v: [int(v.to_numpy().view("int64")), v.unit],
        lambda c: pd.Timedelta(np.timedelta64(c[0], c[1])),
    ),
    (
        "$period",
        pd.Period,
        lambda v: [v.ordinal, v.freqstr],
        lambda c: pd.Period(ordinal=c[0], freq=c[1]),
    ),
    ("$numpy", np.generic, _numpy_scalar, _from_numpy_scalar),
    (
        "$array",
        np.ndarray,
        lambda v: [v.dtype.str, [encode(item) for item in v.tolist()]],
        lambda c: np.array(decode(c[1]), dtype=np.dtype(c[0])),
    ),
    ("$datetime", dt.datetime, lambda v: v.isoformat(), dt.datetime.fromisoformat),
    ("$date", dt.date, lambda v: v.isoformat(), dt.date.fromisoformat),
    ("$time", dt.time, lambda v: v.isoformat(), dt.time.fromisoformat),
    ("$decimal", Decimal, str, Decimal),
    ("$bytes", bytes, lambda v: base64.b64encode(v).decode(), base64.b64decode),
    ("$tuple", tuple, lambda v: [encode(item) for item in v], lambda c: tuple(decode(c))),
    (
        "$set",
        set | frozenset,
        lambda v: sorted((encode(item) for item in v), key=json.dumps),
        lambda c: set(decode(c)),
    ),
)


def encode_dtype(dtype: Any) -> Any:
    """Return a pandas or numpy dtype as JSON.

    Raises
    ------
    RunError
        It is one that has no text form.
    """
    if isinstance(dtype, pd.StringDtype):
        missing = "NA" if getattr(dtype, "na_value", pd.NA) is pd.NA else "nan"
        return {"string": dtype.storage, "missing": missing}
    if isinstance(dtype, pd.CategoricalDtype):
        categories = pd.Series(dtype.categories)
        return {
            "category": encode_column(categories),
            "of": encode_dtype(categories.dtype),
            "ordered": bool(dtype.ordered),
        }
    if isinstance(dtype, pd.ArrowDtype):
        schema = pa.schema([("value", dtype.pyarrow_dtype)])
        return {"arrow": base64.b64encode(schema.serialize().to_pybytes()).decode()}
    if isinstance(dtype, np.dtype):
        return {"numpy": dtype.str}
    name = str(dtype)
    try:
        faithful = pd.api.types.pandas_dtype(name) == dtype
    except TypeError:
        faithful = False
    if not faithful:
        raise RunError(f"a column of type {name} cannot be stored; convert it first")
    return {"pandas": name}


def decode_dtype(form: Mapping[str, Any]) -> Any:
    """Return the dtype that :func:`encode_dtype` was given.

    Raises
    ------
    RunFormatError
        The form is unknown.
    """
    if "string" in form:
        if form["missing"] == "NA":
            return pd.StringDtype(form["string"])
        try:
            return pd.StringDtype(form["string"], na_value=np.nan)
        except TypeError:  # pandas 2.2 has it under another name
            return pd.StringDtype("pyarrow_numpy")
    if "category" in form:
        categories = decode_column(form["category"], decode_dtype(form["of"]))
        return pd.CategoricalDtype(pd.Index(categories), ordered=form["ordered"])
    if "arrow" in form:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(form["arrow"])))
        return pd.ArrowDtype(schema.field(0).type)
    if "numpy" in form:
        return np.dtype(form["numpy"])
    if "pandas" in form:
        return pd.api.types.pandas_dtype(form["pandas"])
    raise RunFormatError(f"unknown column type {dict(form)!r}")


def encode_column(values: pd.Series) -> list[Any]:
    """Return the cells of a column as JSON; None stands for a missing cell of a nullable column.

    Raises
    ------
    RunError
        A cell has no faithful form; the message names the column.
    """
    own_missing = values.dtype != object
    try:
        return [None if own_missing and cell is pd.NA else encode(cell) for cell in values.tolist()]
    except RunError as error:
        raise RunError(f"column {values.name!r}: {error}") from None


def decode_column(cells: list[Any], dtype: Any) -> pd.Series:
    """Return the column that :func:`encode_column` was given."""
    values = [decode(cell) for cell in cells]
    if pd.api.types.is_object_dtype(dtype):
        # Item by item: numpy would make an array of several dimensions of a list of lists.
        column = np.empty(len(values), dtype=object)
        for position, value in enumerate(values):
            column[position] = value
        return pd.Series(column, dtype=object)
    restored: pd.Series = pd.Series(values, dtype=dtype)
    return restored


def json_text(value: object) -> str:
    """Return `value` as strict JSON text for people and other tools; not meant to be restored.

    NaN becomes null, numpy values plain ones, and what JSON does not know its text.

    Examples
    --------
    >>> json_text({"page": np.int64(3), "score": float("nan")})
    '{"page": 3, "score": null}'
    """
    return json.dumps(_simplified(value), ensure_ascii=False, allow_nan=False)


def _simplified(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): _simplified(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_simplified(item) for item in value]
    return str(value)
