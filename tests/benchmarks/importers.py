"""Rows a second of each importer, on the committed exports repeated many times.

``python -m tests.benchmarks.importers [SHARED_FORMATS]``; a row is a query, and for spans the
number of spans is told as well. With a folder the largest exports are taken from there.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import ragdiag

EXTRACTS = Path(__file__).parents[1] / "data" / "formats"

#: Line-based exports, and what tells one copy from the next so that traces stay apart.
LINES = {
    "openinference/llamaindex_spans.jsonl": '"trace_id": "0x',
    "otel_genai/pydantic_ai_spans.jsonl": '"trace_id": "0x',
    "langsmith/langchain_runs.jsonl": '"trace_id": "',
    "mlflow/traces.jsonl": '"trace_id": "',
    "promptfoo/eval_output.jsonl": "",
    "ragas/evaluation_dataset.jsonl": "",
}

TARGET_BYTES = 8 * 2**20


def enlarge(source: Path, target: Path, mark: str, size: int = TARGET_BYTES) -> int:
    """Write copies of a file until it has a size; return its number of lines."""
    text = source.read_text(encoding="utf-8")
    lines, number = 0, 0
    with target.open("w", encoding="utf-8") as stream:
        while stream.tell() < size:
            number += 1
            stream.write(text.replace(mark, f"{mark}{number:06x}") if mark else text)
            lines += text.count("\n")
    return lines


def trec(target: Path, queries: int = 5_000, depth: int = 100) -> int:
    """Write a TREC run of many lines."""
    with target.open("w", encoding="utf-8") as stream:
        for query in range(queries):
            stream.writelines(
                f"q{query} Q0 d{(query * 7 + rank) % 99_991} {rank} {1000 - rank} tag\n"
                for rank in range(1, depth + 1)
            )
    return queries * depth


def main(arguments: list[str]) -> None:
    """Print a table."""
    folder = Path(arguments[0]) if arguments else EXTRACTS
    print(f"{'file':40} {'MB':>6} {'lines':>8} {'queries':>8} {'queries/s':>10} {'MB/s':>6}")
    ragdiag.load_run(folder / "ragas/evaluation_dataset.jsonl")  # what is loaded once
    with tempfile.TemporaryDirectory() as temporary:
        for name, mark in LINES.items():
            path = Path(temporary, Path(name).name)
            report(name, path, enlarge(folder / name, path, mark))
        path = Path(temporary, "big.run")
        report("trec run of 100 a query", path, trec(path))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of this process {peak:,.0f} MB")


def report(name: str, path: Path, lines: int) -> None:
    """Print one row; seconds are those of the processor, so that neighbours do not count."""
    start = time.process_time()
    run = ragdiag.load_run(path)
    seconds = time.process_time() - start
    size = path.stat().st_size / 2**20
    print(
        f"{name:40} {size:6.1f} {lines:8,} {len(run):8,} {len(run) / seconds:10,.0f} "
        f"{size / seconds:6.1f}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
