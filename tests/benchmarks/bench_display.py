"""What it costs to show results, beside measuring and diagnosing them.

Times are processor time, the best of several calls, so that a busy machine says the same. A bundle
is what a notebook asks for: text and HTML.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path

from ragdiag import display
from ragdiag.comparison import Comparison
from ragdiag.display import html, page, text
from ragdiag.results import Results

HERE = Path(__file__).parent
REPEATS = 5


def best(call: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the processor milliseconds of the quickest of several calls."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(1000 * (time.process_time() - start))
    return min(times)


def run(quick: bool) -> None:
    """Print a table: the measures and diagnosis of a run, then what showing them costs."""
    spec = importlib.util.spec_from_file_location("made", HERE.parent / "display" / "conftest.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    print(f"{'queries':>8} {'diagnose':>9} {'bundle':>8} {'html':>8} {'text':>8} {'kB':>5}  ms")
    for n in (100, 1_000) if quick else (100, 1_000, 10_000, 100_000):
        recorded = made.make_large(n)
        results = Results(recorded)
        diagnose = best(lambda recorded=recorded: Results(recorded).frame, 3)
        display.bundle(results)
        ways = (display.bundle, html.render, text.render)
        shown = [best(lambda way=way, results=results: way(results)) for way in ways]
        size = len(html.render(results).encode()) / 1000
        row = " ".join(f"{value:8.1f}" for value in shown)
        print(f"{n:8,} {diagnose:9.1f} {row} {size:5.1f}")
    results = Results(made.make_large(500 if quick else 5_000))
    print(f"explorer of {len(results):,}: opens in {best(results.explore, 3):.0f} ms, ", end="")
    explorer = results.explore()
    print(f"steps in {best(explorer.next.click):.1f} ms, ", end="")
    words = iter(("section 1", "section 12", "section 123", "section", ""))
    first = best(lambda: setattr(explorer.search, "value", next(words)), 1)
    later = best(lambda: setattr(explorer.search, "value", next(words)), 4)
    print(f"searches in {first:.0f} ms at first, then {later:.0f} ms")
    results = Results(made.make_large(200 if quick else 2_000))
    size = len(page.render(results).encode()) / 1e6
    written = best(lambda: page.render(results), 1)
    print(f"report of {len(results):,}: {written:.0f} ms, {size:.1f} MB")
    comparison = Comparison(results, results)
    html.render(comparison)
    shown_ms = best(lambda: display.bundle(comparison), 3)
    print(f"comparison of {len(results):,}: {shown_ms:.0f} ms")
