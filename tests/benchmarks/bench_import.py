"""What importing costs, against pandas alone.

``import ragdiag; ragdiag.evaluate; ragdiag.Results`` in a fresh process against ``import pandas``,
in turns; at most 1.3 is wanted. The time of a process that imports nothing is taken off both.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import milliseconds, print_table

REPOSITORY = Path(__file__).parents[2]
CONTENDERS = {
    "nothing": "pass",
    "pandas": "import pandas",
    "ragdiag": "import ragdiag; ragdiag.evaluate; ragdiag.Results",
}


def child_seconds(code: str, bytecode: str) -> float:
    """Return the processor time of a fresh process that runs `code`.

    Its bytecode is kept in a folder of its own, as an installer would write it: a checkout may have
    none, which would count the compiler.
    """
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def run(quick: bool) -> None:
    turns: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    with tempfile.TemporaryDirectory() as bytecode:
        for turn in range(4 if quick else 12):
            for name, code in CONTENDERS.items():
                seconds = child_seconds(code, bytecode)
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
