"""Run the benchmarks, or those named: ``python tests/benchmarks/run.py [--quick] [NAME ...]``.

A benchmark is a file ``bench_NAME.py`` beside this one: its docstring says what is compared, and
its function ``run(quick)`` measures and prints. Peers come with ``pip install "ragdiag[bench]"``;
one that is not installed is left out and named.

Read the ratios, not the times: whatever is compared runs in turns in one process or, where that
cannot be, in fresh processes in turns, so that a busy machine slows both alike.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from pathlib import Path

HERE = Path(__file__).parent
# This checkout is measured, whatever else is installed.
sys.path.insert(0, str(HERE.parents[1]))

NAMES = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))


def main() -> None:
    parser = argparse.ArgumentParser(description=inspect.cleandoc(__doc__).split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="small sizes and few repetitions")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(NAMES))
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    for name in arguments.names or NAMES:
        benchmark = importlib.import_module(f"bench_{name}")
        print(f"== {name}\n\n{inspect.cleandoc(benchmark.__doc__)}\n", flush=True)
        benchmark.run(arguments.quick)
        print(flush=True)


if __name__ == "__main__":
    main()
