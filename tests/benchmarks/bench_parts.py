"""Ten million retrieved chunks diagnosed from a folder of Parquet parts, and from Dask.

500,000 queries with 20 chunks of 400 characters each in 20 files; a query in five has a label that
was not found. *Peak* is the largest resident memory of a fresh process that does nothing else, all
of its libraries included; less than 4 GB is wanted. *Dask* reads the same files with its threads.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measuring import print_table

DEPTH = 20
PARTS = 20
N_CHUNKS = 2_000_000
CHARACTERS = 400
MAX_GB = 4.0

DIAGNOSE = """
import json, resource, sys, time
import pandas as pd
import ragdiag

folder, how = sys.argv[1:]
start = time.perf_counter()
qrels = pd.read_parquet(f"{folder}/qrels.parquet")
if how == "dask":
    import dask.dataframe
    frame = dask.dataframe.read_parquet(f"{folder}/parts")
    run = ragdiag.Run.from_frame(frame, qrels=qrels)
else:
    run = ragdiag.load_run(f"{folder}/parts").replace(qrels=qrels)
read = time.perf_counter() - start
results = ragdiag.diagnose(run)
report = results.report()
took = time.perf_counter() - start
print(json.dumps({
    "read": read, "all": took, "rows": len(run.retrieved),
    "recall": report.retrieval.mean_recall_at_k, "p95": report.latency.p95_ms,
    "gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
}))
"""


def write(folder: Path, n_queries: int) -> None:
    """Write the parts and the labels."""
    random = np.random.default_rng(7)
    (folder / "parts").mkdir()
    labels = []
    each = n_queries // PARTS
    body = np.array(["".join(chr(97 + c) for c in random.integers(0, 26, CHARACTERS - 8))] * 1)
    for part in range(PARTS):
        query = np.repeat(np.arange(part * each, (part + 1) * each), DEPTH)
        chunk = random.integers(0, N_CHUNKS, len(query))
        ids = pd.Series(query).map("q{:07d}".format)
        frame = pd.DataFrame(
            {
                "query_id": ids,
                "query": "what about " + ids,
                "rank": np.tile(np.arange(1, DEPTH + 1), each),
                "chunk_id": pd.Series(chunk).map("doc-{:07d}".format),
                "score": random.random(len(query)),
                "text": pd.Series(chunk).map("{:07d} ".format) + body[0],
                "retrieval_ms": np.repeat(random.gamma(2, 100, each), DEPTH),
            }
        )
        frame.to_parquet(folder / "parts" / f"{part:02}.parquet")
        rank = random.integers(0, DEPTH, each)
        found = frame["chunk_id"].to_numpy()[np.arange(each) * DEPTH + rank]
        found[::5] = "nowhere"
        labels.append(pd.DataFrame({"query_id": ids[::DEPTH].to_numpy(), "chunk_id": found}))
    pd.concat(labels).to_parquet(folder / "qrels.parquet")


def run(quick: bool) -> None:
    """Measure both ways in fresh processes."""
    n_queries = 25_000 if quick else 500_000
    rows = []
    with tempfile.TemporaryDirectory() as name:
        start = time.perf_counter()
        write(Path(name), n_queries)
        size = sum(path.stat().st_size for path in Path(name).rglob("*.parquet")) / 1e9
        print(f"{size:.2f} GB of Parquet in {time.perf_counter() - start:.0f} s", flush=True)
        for how in ("folder", "dask"):
            done = subprocess.run(
                [sys.executable, "-c", DIAGNOSE, name, how],
                capture_output=True,
                text=True,
                check=True,
                cwd=Path(__file__).parents[2],
            )
            told: dict[str, Any] = json.loads(done.stdout)
            rows.append(
                [
                    how,
                    f"{told['rows']:,}",
                    f"{told['read']:.0f} s",
                    f"{told['all']:.0f} s",
                    f"{told['gb']:.2f} GB" + (" (too much)" if told["gb"] > MAX_GB else ""),
                    f"{told['recall']:.6f}",
                    f"{told['p95']:.3f} ms",
                ]
            )
    print_table(["from", "rows", "reading", "in all", "peak", "recall@5", "p95"], rows)
