"""What a run shows while it goes on."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from ragdiag import progress
from ragdiag.errors import SettingsError
from ragdiag.progress import Bar, Counts, Display, Lines, Silent, progress_for


def test_the_state_in_one_line() -> None:
    counts = Counts(
        total=20, completed=17, failed=1, to_judge=17, judged=9, judge_failed=2, reused=5
    )
    assert counts.describe().startswith(
        "18/20 queries: 17 ok, 1 failed, 9 judged, 2 judge errors, 5 cached, 0.0 s"
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (59.94, "59.9 s"), (61, "1 min 01 s"), (7270, "2 h 01 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert progress._duration(seconds) == text


def test_the_place_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(progress_for(None), Lines)
    assert isinstance(progress_for(False), Silent)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert isinstance(progress_for(True), Bar)
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    assert isinstance(progress_for(None), Display)
    own = Silent()
    assert progress_for(own) is own
    with pytest.raises(SettingsError, match="progress must be None, True, False, 'notebook'"):
        progress_for(3)


def feed(shown: Any) -> None:
    shown.start("pipe\x1b[31m")
    shown.note("note <b>[/b]\x07")
    for done in range(50):
        shown.update(Counts(total=50, completed=done))
    shown.finish(Counts(total=50, completed=50), "done")


def test_lines_in_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(Lines())
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "pipe [31m: note <b>[/b] "
    assert lines[1].startswith("pipe [31m: done: 50/50 queries: 50 ok, 0 failed")
    assert len(lines) == 2
    monkeypatch.setattr(progress, "LINE_INTERVAL", 0.0)
    feed(Lines())
    assert len(capsys.readouterr().err.splitlines()) == 52


def test_lines_in_an_old_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stderr", stream)
    shown = Lines()
    shown.start("dépôt")
    shown.note("é")
    stream.seek(0)
    assert stream.read() == "d?p?t: ?\n"


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    stream = io.StringIO()
    bar = Bar()
    bar._rich.live.console = Console(file=stream, force_terminal=True, width=100)
    feed(bar)
    text = stream.getvalue()
    assert "note <b>[/b]" in text
    assert "50/50 queries: 50 ok, 0 failed" in text
    assert "\x07" not in text
    interrupted = Bar()
    interrupted._rich.live.console = Console(file=stream, force_terminal=True, width=100)
    interrupted.start("p")
    interrupted.finish(Counts(total=2), "interrupted")
    assert "interrupted: 0/2" in stream.getvalue()


def test_a_notebook_has_one_output_that_is_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, dict[str, str]]] = []

    class Handle:
        def update(self, bundle: dict[str, str], raw: bool) -> None:
            assert raw
            shown.append(("update", bundle))

    def display(bundle: dict[str, str], raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        shown.append(("display", bundle))
        return Handle()

    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    feed(Display())
    assert [kind for kind, _ in shown] == ["display", "update", "update"]
    assert shown[-1][1]["text/plain"].startswith("pipe [31m: done: 50/50")
    assert "&lt;b&gt;" in shown[-1][1]["text/html"]
    assert "<b>" not in shown[-1][1]["text/html"]


def test_silence() -> None:
    feed(Silent())
