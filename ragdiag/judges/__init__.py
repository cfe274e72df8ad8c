"""Judges of answers: an interface, model judges that are checked, and an offline screening.

Importing this package loads no provider's SDK; each loads when its judge is made.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ragdiag.judges.base import Judge
from ragdiag.schema import JudgeResult

_ROOMS: dict[str, tuple[str, ...]] = {
    "anthropic": ("AnthropicJudge",),
    "budget": ("Estimate", "estimate"),
    "cache": ("JudgeCache",),
    "calibration": ("Agreement", "agreement", "flip_rate"),
    "google": ("GeminiJudge",),
    "labelling": ("LabelState",),
    "lexical": ("LexicalJudge",),
    "openai": ("OpenAIJudge",),
    "resolve": ("resolve_judge",),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = ["Judge", "JudgeResult", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    room = _HOME.get(name)
    if room is None:
        raise AttributeError(f"module 'ragdiag.judges' has no attribute {name!r}")
    value = getattr(import_module(f"ragdiag.judges.{room}"), name)
    globals()[name] = value
    return value
