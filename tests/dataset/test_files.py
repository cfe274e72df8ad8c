"""Reading text: bounded, and clear about what cannot be read."""

from __future__ import annotations

import pytest

from ragdiag import RagdiagError
from ragdiag.files import read_text


def test_reads_utf8_with_and_without_mark_and_packed(tmp_path):
    import gzip

    text = "é\r\n\u2028"
    for name, data in {
        "plain": text.encode(),
        "marked": b"\xef\xbb\xbf" + text.encode(),
        "packed.gz": gzip.compress(text.encode()),
    }.items():
        path = tmp_path / name
        path.write_bytes(data)
        assert read_text(path) == text


def test_what_cannot_be_opened(tmp_path):
    path = tmp_path / "broken.gz"
    path.write_bytes(b"not gzip")

    with pytest.raises(RagdiagError, match="cannot be read: Not a gzipped file"):
        read_text(path)
    with pytest.raises(RagdiagError, match="not a regular file"):
        read_text(tmp_path)
    with pytest.raises(RagdiagError, match="no such file"):
        read_text(tmp_path / "none")
