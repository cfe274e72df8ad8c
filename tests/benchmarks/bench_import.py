"""What importing costs, against pandas alone.

``import ragdiag; ragdiag.evaluate; ragdiag.Results`` in a fresh process against ``import pandas``,
in turns; at most 1.3 is wanted. The time of a process that imports nothing is taken off both.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from pathlib import Path

from measuring import milliseconds, print_table

REPOSITORY = Path(__file__).parents[2]
CONTENDERS = {
    "nothing": "pass",
    "pandas": "import pandas",
    "ragdiag": "import ragdiag; ragdiag.evaluate; ragdiag.Results",
}


def child_seconds(code: str) -> float:
    """Return the processor time of a fresh process that runs `code`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def run(quick: bool) -> None:
    turns: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for turn in range(4 if quick else 12):
        for name, code in CONTENDERS.items():
            seconds = child_seconds(code)
            # The first turn writes bytecode and fills the disk's cache.
            if turn:
                turns[name].append(seconds)
    median = {name: statistics.median(times) for name, times in turns.items()}
    pandas = median["pandas"] - median["nothing"]
    print_table(
        ["import", "processor time", "ratio to pandas"],
        [
            [name, milliseconds(seconds), f"{seconds / pandas:.2f}"]
            for name in ("pandas", "ragdiag")
            for seconds in [median[name] - median["nothing"]]
        ],
    )
