"""Replies of a model judge kept on disk, one file a reply, shared between runs and processes.

The key is a digest of everything that shapes the reply. Only good replies come here: errors,
refusals and truncations are never stored, since asking again may well help. A file is JSON and is
checked when it is read; one that is damaged or was tampered with counts as not there.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ragdiag.errors import ExportError
from ragdiag.files import write_text

__all__ = ["JudgeCache", "cache_key"]

#: Part of the key: raised when the meaning of a stored reply changes.
FORMAT = 1
#: A stored reply is never read beyond this size.
MAX_BYTES = 4 * 1024 * 1024


def cache_key(parts: Mapping[str, Any]) -> str:
    """Return the digest of `parts`, JSON-like; the order of keys does not matter.

    Examples
    --------
    >>> cache_key({"a": 1, "b": 2}) == cache_key({"b": 2, "a": 1})
    True
    """
    text = json.dumps(
        {"format": FORMAT, **parts}, sort_keys=True, ensure_ascii=True, separators=(",", ":")
    )
    return hashlib.sha256(text.encode()).hexdigest()


class JudgeCache:
    """A folder of replies.

    Parameters
    ----------
    path : str or path-like
        The folder; it is made (readable by its owner alone) when the first reply is stored.

    Attributes
    ----------
    hits, misses : int
        Replies that were and were not there since this object was made.

    Raises
    ------
    ExportError
        `path` is a file, or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> cache = JudgeCache(tempfile.mkdtemp())
    >>> cache.get("0" * 64) is None
    True
    >>> cache.put("0" * 64, {"verdict": "correct"})
    >>> cache.get("0" * 64), cache
    ({'verdict': 'correct'}, JudgeCache(hits=1, misses=1))
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.hits = 0
        self.misses = 0
        self._lock = threading.Lock()
        if self.path.exists() and not self.path.is_dir():
            raise ExportError(f"the judge cache must be a folder, and {str(path)!r} is a file")
        nearest = next(p for p in (self.path, *self.path.absolute().parents) if p.exists())
        if not os.access(nearest, os.W_OK):
            raise ExportError(f"the judge cache {str(path)!r} cannot be written")

    def __repr__(self) -> str:
        return f"JudgeCache(hits={self.hits}, misses={self.misses})"

    def __len__(self) -> int:
        return sum(1 for _ in self.path.glob("??/*.json"))

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the reply stored under `key`, or None; what cannot be read is not there."""
        value = self._read(key)
        with self._lock:
            if value is None:
                self.misses += 1
            else:
                self.hits += 1
        return value

    def reject(self) -> None:
        """Count the last hit as a miss: its content was not what the caller needs."""
        with self._lock:
            self.hits -= 1
            self.misses += 1

    def put(self, key: str, value: Mapping[str, Any]) -> None:
        """Store a reply; a cache that cannot be written costs the saving, not the run."""
        target = self._file(key)
        with suppress(OSError):  # ExportError is one
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_text(target, json.dumps({"key": key, "value": dict(value)}))

    def _file(self, key: str) -> Path:
        return self.path / key[:2] / f"{key}.json"

    def _read(self, key: str) -> dict[str, Any] | None:
        try:
            with self._file(key).open("rb") as file:
                content = file.read(MAX_BYTES + 1)
            stored = json.loads(content) if len(content) <= MAX_BYTES else None
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(stored, dict) or stored.get("key") != key:
            return None
        value = stored.get("value")
        return value if isinstance(value, dict) else None
