"""``results.label()``: buttons to say of each answer whether it is correct and grounded.

The widgets mirror a :class:`~ragdiag.judges.labelling.LabelState`. The judge's verdict, the
category and the measures are not shown: they would sway whoever labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from ragdiag.display.blocks import View
from ragdiag.display.clean import shorten
from ragdiag.display.html import render_view
from ragdiag.display.views.query import sections
from ragdiag.judges.calibration import FINDINGS
from ragdiag.judges.labelling import LABELS, SEED, LabelState
from ragdiag.schema import DiagnosisResult, EvaluationResult

__all__ = ["Labeller", "label"]

TEXT_LIMIT = 1_200
#: What the buttons say: finding, then the words for True, False and no label.
BUTTONS = {
    "answer_correct": ("Correct", "Incorrect", "Cannot tell"),
    "grounded": ("Grounded", "Not grounded", "Cannot tell"),
}
VALUES = (True, False, None)


def label(results: Any, n: int = LABELS, seed: int = SEED) -> Labeller:
    """Return a widget to label `n` answers by hand.

    Parameters
    ----------
    results : Results
        What was run; answered queries are drawn at random.
    n : int
        How many to label.
    seed : int
        Of the draw.
    """
    return Labeller(results, n, seed)


class Labeller(widgets.VBox):  # type: ignore[misc]
    """One answer at a time with its question, expected answer and chunks, and two rows of buttons.

    Attributes
    ----------
    state : LabelState
        What has been said; the widgets show nothing else.
    frame : pandas.DataFrame
        The labels, for :func:`ragdiag.agreement`.
    """

    def __init__(self, results: Any, n: int = LABELS, seed: int = SEED) -> None:
        self.state = LabelState(results, n, seed)
        self._results = results
        self._mirroring = False
        self.choices = {
            finding: widgets.ToggleButtons(
                options=list(zip(words, VALUES, strict=True)), value=None, description=""
            )
            for finding, words in BUTTONS.items()
        }
        self.previous = widgets.Button(description="Previous")
        self.next = widgets.Button(description="Next")
        self.counter = widgets.Label()
        self.body = widgets.HTML()
        for finding, buttons in self.choices.items():
            buttons.observe(self._chooser(finding), names="value")
        self.previous.on_click(lambda _: self._step(-1))
        self.next.on_click(lambda _: self._step(1))
        steps = widgets.HBox([self.previous, self.counter, self.next])
        super().__init__([steps, self.body, *self.choices.values()])
        self._mirror()

    @property
    def frame(self) -> Any:
        """The labels so far."""
        return self.state.frame

    def _chooser(self, finding: str) -> Callable[[Any], None]:
        def chosen(change: Any) -> None:
            if not self._mirroring:
                self.state.say(finding, change["new"])
                self._mirror()

        return chosen

    def _step(self, by: int) -> None:
        self.state.step(by)
        self._mirror()

    def _mirror(self) -> None:
        self._mirroring = True
        try:
            for finding in FINDINGS:
                self.choices[finding].value = self.state.said(finding)
            place, total = self.state.place, len(self.state.queue)
            self.counter.value = f"answer {place + 1} of {total}; {self.state.done} labelled"
            self.previous.disabled = place == 0
            self.next.disabled = place == total - 1
            self.body.value = render_view(self._view())
        finally:
            self._mirroring = False

    def _view(self) -> View:
        result = blinded(self._results[self.state.current])
        return View(
            "Is the answer correct, and do the chunks support it?",
            quote=shorten(result.query, 2 * TEXT_LIMIT, tell=True),
            sections=tuple(sections(result, TEXT_LIMIT)),
        )

    def __repr__(self) -> str:
        total = len(self.state.queue)
        return f"Labeller, {self.state.done} of {total} labelled: .frame has the labels"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Return the widgets, and the answer that is shown for where they cannot live."""
        shown: dict[str, Any] = super()._repr_mimebundle_(include=include, exclude=exclude) or {}
        shown["text/plain"] = repr(self)
        shown["text/html"] = self.body.value
        return shown


def blinded(result: EvaluationResult) -> EvaluationResult:
    """Return `result` without what a judge or a rule said of it."""
    return result.model_copy(
        update={
            "metrics": {},
            "judge_error": None,
            "suspect_label": None,
            "trail": [],
            "latency": {},
            "diagnosis": DiagnosisResult(
                category=None, severity="info", confidence=1.0, reason="not shown"
            ),
        }
    )
