"""What benchmarks share: processor time in turns, and memory at its peak."""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa


def processor_seconds(
    contenders: Mapping[str, Callable[[], object]], repetitions: int
) -> dict[str, float]:
    """Return the median processor time of each contender, run in turns.

    The first turn, which also warms caches up, does not count unless it is the only one.
    """
    turns: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repetitions + (repetitions > 1)):
        for name, contender in contenders.items():
            gc.collect()
            start = time.process_time()
            contender()
            turns[name].append(time.process_time() - start)
    return {name: statistics.median(times[-repetitions:]) for name, times in turns.items()}


def peak_bytes(work: Callable[[], object]) -> int:
    """Return an upper bound of the memory that `work` needs beside what is there already.

    Python and numpy are counted by tracemalloc, Arrow by its pool; the two peaks are added as if
    they came together.
    """
    ordinary = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(ordinary)
    pa.set_memory_pool(counted)
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] + (counted.max_memory() or 0)
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(ordinary)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns: the first to the left, the others to the right."""
    widths = [max(len(row[place]) for row in (header, *rows)) for place in range(len(header))]
    for row in (header, *rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join(cells), flush=True)


def milliseconds(seconds: float) -> str:
    """Return a time for people.

    >>> milliseconds(0.0123)
    '12.3 ms'
    """
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
