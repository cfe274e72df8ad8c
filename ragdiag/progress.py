"""How a run tells how far it is: one live line in a notebook, a bar in a terminal, lines in a pipe.

A notebook gets one display that is updated and keeps its last state when it is saved. All of it is
drawn by the thread that waits for the run, at most four times a second.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from typing import Any, Protocol

from ragdiag.errors import SettingsError

__all__ = ["Counts", "Progress", "progress_for"]

#: Seconds between two updates that people see live, and between two lines in a pipe.
LIVE_INTERVAL = 0.25
LINE_INTERVAL = 10.0


@dataclass
class Counts:
    """How far a run is.

    Attributes
    ----------
    total : int
        Queries.
    completed, failed : int
        Queries whose pipeline has finished, and how.
    to_judge, judged, judge_failed : int
        Calls of the judge: expected so far, answered, failed.
    reused, calls : int
        Calls that the store answered, of all that are needed.
    cache_hits : int
        Requests of the judge that its cache answered.
    """

    total: int = 0
    completed: int = 0
    failed: int = 0
    to_judge: int = 0
    judged: int = 0
    judge_failed: int = 0
    reused: int = 0
    calls: int = 0
    cache_hits: int = 0
    started: float = field(default_factory=time.monotonic)

    @property
    def done(self) -> int:
        """Queries whose pipeline has finished."""
        return self.completed + self.failed

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.started

    def describe(self) -> str:
        """Return the state in one line.

        Examples
        --------
        >>> Counts(total=20, completed=18, failed=1).describe().rpartition(",")[0]
        '19/20 queries: 18 ok, 1 failed'
        """
        parts = [f"{self.completed} ok", f"{self.failed} failed"]
        if self.to_judge:
            parts.append(f"{self.judged} judged")
        if self.judge_failed:
            parts.append(f"{self.judge_failed} judge errors")
        if self.reused:
            parts.append(f"{self.reused} cached")
        if self.cache_hits:
            parts.append(f"{self.cache_hits} from the judge's cache")
        parts.append(_duration(self.elapsed))
        return f"{self.done}/{self.total} queries: {', '.join(parts)}"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


class Progress(Protocol):
    """What draws the state of a run."""

    def start(self, name: str) -> None:
        """Begin to show the run of a pipeline called `name`."""

    def note(self, text: str) -> None:
        """Say something once that should stay readable."""

    def update(self, counts: Counts) -> None:
        """Show the state; called often."""

    def finish(self, counts: Counts, state: str) -> None:
        """Show the last state: ``done``, ``interrupted`` or ``stopped``."""


class Silent:
    """Shows nothing."""

    def start(self, name: str) -> None:
        """Ignore it."""

    def note(self, text: str) -> None:
        """Ignore it."""

    def update(self, counts: Counts) -> None:
        """Ignore it."""

    def finish(self, counts: Counts, state: str) -> None:
        """Ignore it."""


class Lines(Silent):
    """Plain lines on the standard error: the beginning, now and then the state, the end."""

    def __init__(self) -> None:
        self._name = ""
        self._last = time.monotonic()

    def start(self, name: str) -> None:
        """Remember the name."""
        self._name = _printable(name)[:30]

    def note(self, text: str) -> None:
        """Print it."""
        _print(f"{self._name}: {text}")

    def update(self, counts: Counts) -> None:
        """Print the state every ten seconds."""
        if time.monotonic() - self._last >= LINE_INTERVAL:
            self._last = time.monotonic()
            _print(f"{self._name}: {counts.describe()}")

    def finish(self, counts: Counts, state: str) -> None:
        """Print the last state."""
        _print(f"{self._name}: {state}: {counts.describe()}")


def _print(text: str) -> None:
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    sys.stderr.write(_printable(text).encode(encoding, "replace").decode(encoding) + "\n")
    sys.stderr.flush()


def _printable(text: str) -> str:
    """Return `text` without the control sequences that a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in text)


class Bar(Silent):
    """A bar of rich on a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._rich = RichProgress(
            TextColumn("{task.fields[label]}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[state]}", markup=False),
            console=Console(stderr=True),
            refresh_per_second=1 / LIVE_INTERVAL,
        )
        self._task: Any = None
        self._last = 0.0

    def start(self, name: str) -> None:
        """Make the bar; it is drawn with the first update."""
        self._task = self._rich.add_task("", total=None, label=_printable(name)[:30], state="")

    def note(self, text: str) -> None:
        """Print above the bar."""
        from rich.text import Text

        self._rich.console.print(Text(_printable(text)))

    def update(self, counts: Counts) -> None:
        """Move the bar."""
        if time.monotonic() - self._last >= LIVE_INTERVAL:
            self._last = time.monotonic()
            self._show(counts, "")

    def finish(self, counts: Counts, state: str) -> None:
        """Leave the last state on the screen."""
        self._show(counts, "" if state == "done" else f"{state}: ")
        self._rich.stop()

    def _show(self, counts: Counts, prefix: str) -> None:
        self._rich.start()
        self._rich.update(
            self._task,
            total=max(1, counts.total + counts.to_judge),
            completed=counts.done + counts.judged + counts.judge_failed,
            state=prefix + counts.describe(),
        )


class Display(Silent):
    """One output of a notebook cell, updated in place; it stays readable when saved."""

    def __init__(self) -> None:
        self._name = ""
        self._notes: list[str] = []
        self._handle: Any = None
        self._last = 0.0

    def start(self, name: str) -> None:
        """Remember the name; the output is made when there is something to show."""
        self._name = name

    def note(self, text: str) -> None:
        """Add it to the output."""
        self._notes.append(text)
        self._show("starting")

    def update(self, counts: Counts) -> None:
        """Update the output, at most four times a second."""
        if time.monotonic() - self._last >= LIVE_INTERVAL:
            self._last = time.monotonic()
            self._show(counts.describe())

    def finish(self, counts: Counts, state: str) -> None:
        """Leave the last state in the notebook."""
        self._show(f"{state}: {counts.describe()}")

    def _show(self, state: str) -> None:
        if self._handle is None:
            from IPython.display import display

            self._handle = display(  # type: ignore[no-untyped-call]
                self._bundle(state), raw=True, display_id=True
            )
        else:
            self._handle.update(self._bundle(state), raw=True)

    def _bundle(self, state: str) -> dict[str, str]:
        lines = [_printable(line) for line in (f"{self._name}: {state}", *self._notes)]
        rows = "<br>".join(escape(line) for line in lines)
        return {"text/plain": "\n".join(lines), "text/html": f"<div>{rows}</div>"}


def progress_for(choice: object) -> Progress:
    """Return what draws a run.

    Parameters
    ----------
    choice : bool, str, Progress or None
        None or True picks by where the run happens: a notebook, a terminal, or neither. False
        shows nothing. ``"notebook"``, ``"terminal"`` and ``"lines"`` choose by hand.

    Raises
    ------
    SettingsError
        It is none of these.

    Examples
    --------
    >>> type(progress_for(False)).__name__
    'Silent'
    """
    if choice is None or choice is True:
        choice = "notebook" if _in_notebook() else "terminal" if _on_terminal() else "lines"
    if choice is False:
        return Silent()
    kinds: dict[str, Callable[[], Progress]] = {
        "notebook": Display,
        "terminal": Bar,
        "lines": Lines,
    }
    if isinstance(choice, str) and choice in kinds:
        return kinds[choice]()
    if all(callable(getattr(choice, name, None)) for name in ("start", "note", "update", "finish")):
        return choice  # type: ignore[return-value]
    raise SettingsError(
        f"progress must be None, True, False, 'notebook', 'terminal' or 'lines', got {choice!r}"
    )


def _in_notebook() -> bool:
    """Whether a kernel that shows rich output runs this; IPython is not imported to find out."""
    shell = sys.modules.get("IPython")
    active = None if shell is None else shell.get_ipython()
    return active is not None and hasattr(active, "kernel")


def _on_terminal() -> bool:
    return bool(getattr(sys.stderr, "isatty", lambda: False)())
