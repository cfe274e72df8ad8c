"""What is shown of each object, as plain data: one builder each, for text and HTML alike."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ragdiag.display.blocks import View

__all__ = ["TEXT_LIMIT", "view"]

#: Characters of a chunk or an answer that are shown.
TEXT_LIMIT = 300

#: Class name → room of its builder, which is called ``view``.
_BUILDERS = {
    "Comparison": "comparison",
    "ComparisonReport": "comparison_report",
    "EvaluationReport": "report",
    "EvaluationResult": "query",
    "GoldenDataset": "dataset",
    "JudgeResult": "verdict",
    "Results": "results",
    "Run": "run",
}


def view(obj: Any, text_limit: int = TEXT_LIMIT) -> View:
    """Return what is shown of `obj`.

    Parameters
    ----------
    obj : Results, Comparison, Run, GoldenDataset, EvaluationResult, a report or a JudgeResult
        What to show.
    text_limit : int
        Characters of a chunk or an answer at most.

    Raises
    ------
    TypeError
        There is nothing to show such an object with.

    Examples
    --------
    >>> from ragdiag.schema import JudgeResult
    >>> view(JudgeResult(grounded=False)).headline
    'Judged not grounded; correctness not judged.'
    """
    for kind in type(obj).__mro__:
        room = _BUILDERS.get(kind.__name__)
        if room and kind.__module__.split(".")[0] == "ragdiag":
            built: View = import_module(f"ragdiag.display.views.{room}").view(obj, text_limit)
            return built
    raise TypeError(f"nothing shows a {type(obj).__name__}; it can be one of {sorted(_BUILDERS)}")
