"""Any evidence in, any tool out: readers and writers of other tools' formats.

``ragdiag.load_run(path)`` and ``ragdiag.diagnose(path)`` come here for every format but our own;
:func:`detect` says what a file was taken for, and :data:`FORMATS` lists what there is.
"""

from __future__ import annotations

from ragdiag.interop.detection import Detection, detect
from ragdiag.interop.formats import FORMATS, Format, load
from ragdiag.interop.frames import run_from_frame
from ragdiag.interop.values import chunk_id_of, query_id_of

__all__ = [
    "FORMATS",
    "Detection",
    "Format",
    "chunk_id_of",
    "detect",
    "load",
    "query_id_of",
    "run_from_frame",
]
