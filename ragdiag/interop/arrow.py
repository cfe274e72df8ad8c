"""Tables as streams of Arrow: polars, DuckDB and others read ``Results`` without knowing them."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ragdiag.export import storable

__all__ = ["stream"]


def stream(frame: pd.DataFrame, requested_schema: Any = None) -> Any:
    """Return the Arrow PyCapsule stream of a frame.

    Cells that Arrow has no type for are JSON text and categories are text, as in Parquet files.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table.
    requested_schema : capsule, optional
        What the consumer would like to have, see the PyCapsule interface of Arrow.
    """
    import pyarrow as pa

    table = pa.Table.from_pandas(storable(frame), preserve_index=False)
    return table.__arrow_c_stream__(requested_schema)
