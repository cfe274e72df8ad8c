"""The tables a run consists of: their columns, their types, and how a frame becomes one.

This is the one place that knows the names. Ids and texts are Arrow strings, measures and
milliseconds ``float64`` (NaN = missing), counts and ranks ``Int64``, verdicts and signals nullable
``boolean``. Missing is tested with ``isna()``, never with truth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ragdiag.errors import RunError

__all__ = [
    "BOOLEAN",
    "COUNT",
    "EVIDENCE",
    "MEASURE",
    "OUTCOMES",
    "QRELS",
    "QUERIES",
    "RETRIEVED",
    "TEXT",
    "VERDICTS",
    "as_table",
    "empty_table",
    "guarded",
    "storable_text",
    "text_column",
]

TEXT = pd.StringDtype("pyarrow")
COUNT = pd.Int64Dtype()
BOOLEAN = pd.BooleanDtype()
MEASURE = np.dtype("float64")

Spec = Mapping[str, Any]

#: One row a query; the user's metadata columns follow, of any type.
QUERIES: Spec = {"query_id": TEXT, "query": TEXT, "expected_answer": TEXT, "query_type": TEXT}

#: Ground truth, one row a pair; relevant means ``grade >= 1``.
QRELS: Spec = {"query_id": TEXT, "chunk_id": TEXT, "grade": COUNT}

#: Ground truth as passages, one row each: a span of a source document (characters from 0, the end
#: not included), a verbatim text, or both.
EVIDENCE: Spec = {
    "query_id": TEXT,
    "document": TEXT,
    "start": COUNT,
    "end": COUNT,
    "text": TEXT,
}

#: One row a chunk returned; ``rank`` is 1-based and the pipeline's own order.
#: ``metadata`` is JSON text, a dict at the border.
RETRIEVED: Spec = {
    "query_id": TEXT,
    "rank": COUNT,
    "chunk_id": TEXT,
    "score": MEASURE,
    "text": TEXT,
    "metadata": TEXT,
}

#: One row a query that was run; milliseconds are missing where a stage did not run.
OUTCOMES: Spec = {
    "query_id": TEXT,
    "status": TEXT,
    "error": TEXT,
    "answer": TEXT,
    "retrieval_ms": MEASURE,
    "generation_ms": MEASURE,
    "total_ms": MEASURE,
}

#: One row a judged query. ``screened`` is True for the offline judge: findings are "suspected".
VERDICTS: Spec = {
    "query_id": TEXT,
    "answer_correct": BOOLEAN,
    "grounded": BOOLEAN,
    "correct_confidence": MEASURE,
    "grounded_confidence": MEASURE,
    "correct_error": TEXT,
    "grounded_error": TEXT,
    "judge": TEXT,
    "screened": BOOLEAN,
    "judge_reason": TEXT,
    "judge_ms": MEASURE,
}


def storable_text(text: str) -> str:
    r"""Return `text` with lone surrogates replaced by U+FFFD, since UTF-8 and Arrow hold none.

    The same object comes back when there is nothing to replace, so ``is`` tells whether it changed.

    Examples
    --------
    >>> storable_text("a\ud800b")
    'a\ufffdb'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        # A pair of surrogates that together mean one character becomes that character.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def text_column(values: Iterable[Any], index: pd.Index | None = None) -> pd.Series:
    """Return `values` as a column of Arrow strings, missing where None or NaN.

    Examples
    --------
    >>> text_column(["a", None]).isna().tolist()
    [False, True]
    """
    return pd.Series(list(values), index=index, dtype=TEXT)


def guarded(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a copy of `frame` through which the original cannot be harmed.

    It is shallow, and costs nothing, where pandas copies on write: always from 3.0 on.

    Examples
    --------
    >>> original = pd.DataFrame({"n": [1, 2]})
    >>> copy = guarded(original)
    >>> copy.loc[0, "n"] = 9
    >>> int(original.loc[0, "n"])
    1
    """
    return frame.copy(deep=not _copies_on_write())


def _copies_on_write() -> bool:
    if int(pd.__version__.split(".")[0]) >= 3:
        return True
    return pd.get_option("mode.copy_on_write") is True


def empty_table(spec: Spec) -> pd.DataFrame:
    """Return a table of no rows with the columns and types of `spec`."""
    return pd.DataFrame({name: pd.Series([], dtype=dtype) for name, dtype in spec.items()})


def as_table(
    frame: pd.DataFrame,
    spec: Spec,
    *,
    name: str,
    required: Sequence[str] = ("query_id",),
    keep_extra: bool = False,
) -> pd.DataFrame:
    """Return `frame` with the columns of `spec`, in its order and types.

    Columns of `spec` that `frame` lacks are added as missing; a column that already has its type is
    passed on without a copy.

    Parameters
    ----------
    frame : pandas.DataFrame
        What there is.
    spec : mapping of str to dtype
        One of the specifications of this module.
    name : str
        What to call the table in an error.
    required : sequence of str
        Columns that must be there and hold no missing value.
    keep_extra : bool
        Whether other columns are kept, after those of `spec` (a query's metadata), or dropped.

    Raises
    ------
    RunError
        A required column is absent or has a missing value, or a value is not of its type.
    """
    columns: dict[str, pd.Series] = {}
    index = pd.RangeIndex(len(frame))
    for column, dtype in spec.items():
        if column not in frame:
            if column in required:
                raise RunError(
                    f"table {name!r} has no column {column!r}; its columns are "
                    f"{list(map(str, frame.columns))}"
                )
            columns[column] = _missing_column(dtype, index)
            continue
        values = frame[column]
        if values.dtype != dtype:
            try:
                values = (
                    pd.to_numeric(values).astype(dtype)
                    if dtype == MEASURE
                    else values.astype(dtype)
                )
            except (TypeError, ValueError) as error:
                raise RunError(
                    f"table {name!r}, column {column!r}: cannot be read as {dtype}: {error}"
                ) from error
        if column in required and values.isna().any():
            row = int(np.flatnonzero(values.isna().to_numpy())[0])
            raise RunError(f"table {name!r}, row {row}: {column!r} is missing")
        columns[column] = values.set_axis(index)
    if keep_extra:
        for extra in frame.columns:
            if extra not in columns:
                columns[str(extra)] = frame[extra].set_axis(index)
    return pd.DataFrame(columns, index=index, copy=False)


def _missing_column(dtype: Any, index: pd.Index) -> pd.Series:
    if dtype == TEXT:
        # pandas would first spell the missing values out as objects.
        nothing = pd.array(pa.nulls(len(index), pa.large_string()), dtype=TEXT)
        return pd.Series(nothing, index=index)
    return pd.Series(np.nan if dtype == MEASURE else pd.NA, index=index, dtype=dtype)
