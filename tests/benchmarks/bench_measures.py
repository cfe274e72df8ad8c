"""From two DataFrames to the measures of every query, against pytrec_eval.

ragdiag: relevant ranks, then precision, recall, hit rate and nDCG at 5 and 10, reciprocal rank,
average precision and first relevant rank; "and categories" runs the rules on them as well;
"Results" is all that a user of ``Results(Run(...)).frame`` pays, texts included. pytrec_eval:
dictionaries from the same DataFrames, then P, recall and ndcg_cut at 5 and 10, and recip_rank.
Ratios are pytrec_eval's time over ours; wanted for measures and categories: 2 at 1,000 x 10, 8 at
1,000 x 100, 10 at 100,000 x 100. Memory is what ragdiag needs at its peak, tables included, over
the tables alone; under 4 is wanted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from measuring import milliseconds, peak_bytes, print_table, processor_seconds

from ragdiag.diagnosis import Diagnosis, diagnose_table
from ragdiag.metrics import retrieval_measures
from ragdiag.recording import Run
from ragdiag.relevance import relevant_ranks
from ragdiag.results import Results
from ragdiag.rules import Evidence
from ragdiag.schema import Settings

try:
    import pytrec_eval
except ImportError:
    pytrec_eval = None

KS = (5, 10)
RELEVANT_PER_QUERY = 2
SIZES = ((1_000, 10), (1_000, 100), (10_000, 10), (10_000, 100), (100_000, 10), (100_000, 100))
QUICK_SIZES = SIZES[:3]


@dataclass
class Tables:
    """Queries, labels and what was retrieved; ids are text of one type."""

    query_ids: pd.Series
    qrels: pd.DataFrame
    retrieved: pd.DataFrame

    @property
    def nbytes(self) -> int:
        frames = (self.query_ids, self.qrels, self.retrieved)
        return sum(int(np.sum(frame.memory_usage(deep=True))) for frame in frames)


def tables(n_queries: int, depth: int, id_type: str = "str", shuffled: bool = False) -> Tables:
    """Make a run in which 70 % of the queries find one of their two relevant chunks."""
    rng = np.random.default_rng(1)
    n_chunks = max(n_queries, 10 * depth)
    queries = np.array([f"q{number}" for number in range(n_queries)], dtype=object)
    chunks = np.array([f"doc_{number}" for number in range(n_chunks)], dtype=object)
    first = rng.integers(n_chunks, size=(n_queries, 1))
    retrieved = (first + 7 * np.arange(depth)) % n_chunks
    relevant = (first + 7 * depth + np.arange(1, 1 + RELEVANT_PER_QUERY)) % n_chunks
    finds = np.flatnonzero(rng.random(n_queries) < 0.7)
    retrieved[finds, rng.integers(depth, size=len(finds))] = relevant[finds, 0]
    qrels = pd.DataFrame(
        {
            "query_id": pd.Series(np.repeat(queries, RELEVANT_PER_QUERY), dtype=id_type),
            "chunk_id": pd.Series(chunks[relevant.ravel()], dtype=id_type),
            "grade": 1,
        }
    )
    run = pd.DataFrame(
        {
            "query_id": pd.Series(np.repeat(queries, depth), dtype=id_type),
            "rank": np.tile(np.arange(1, depth + 1), n_queries),
            "chunk_id": pd.Series(chunks[retrieved.ravel()], dtype=id_type),
        }
    )
    if shuffled:
        run = run.sample(frac=1, random_state=1, ignore_index=True)
    return Tables(pd.Series(queries, dtype=id_type), qrels, run)


def measures(t: Tables) -> dict[str, np.ndarray]:
    ranks = relevant_ranks(t.query_ids, t.qrels, t.retrieved)
    return retrieval_measures(
        ranks.pair_query, ranks.pair_rank, ranks.pair_grade, ranks.n_retrieved, ks=KS
    )


def measures_and_categories(t: Tables) -> Diagnosis:
    measured = measures(t)
    n = len(t.query_ids)
    unknown = np.full(n, np.nan)
    return diagnose_table(
        Evidence(
            settings=Settings(),
            has_outcome=np.ones(n, dtype=bool),
            failed=np.zeros(n, dtype=bool),
            retrieval_measured=measured["n_relevant"] > 0,
            n_relevant=measured["n_relevant"],
            n_found=measured["n_found_at_5"],
            first_relevant_rank=measured["first_relevant_rank"],
            retrieval_ms=unknown,
            grounded=unknown,
            answer_correct=unknown,
            grounded_confidence=unknown,
            correct_confidence=unknown,
        )
    )


def whole_results(t: Tables) -> pd.DataFrame:
    return Results(Run(pd.DataFrame({"query_id": t.query_ids}), t.qrels, t.retrieved)).frame


def peer(t: Tables) -> dict[str, dict[str, float]]:
    qrels: dict[str, dict[str, int]] = {}
    for query, chunk, grade in zip(*(t.qrels[name].tolist() for name in t.qrels), strict=True):
        qrels.setdefault(query, {})[chunk] = grade
    run: dict[str, dict[str, float]] = {}
    scores = (1.0 / t.retrieved["rank"]).tolist()
    rows = zip(
        t.retrieved["query_id"].tolist(), t.retrieved["chunk_id"].tolist(), scores, strict=True
    )
    for query, chunk, score in rows:
        run.setdefault(query, {})[chunk] = score
    names = {"P.5,10", "recall.5,10", "recip_rank", "ndcg_cut.5,10"}
    return pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run)


def row(title: str, t: Tables, repetitions: int) -> list[str]:
    ours = {
        "measures": lambda: measures(t),
        "categories": lambda: measures_and_categories(t),
        "results": lambda: whole_results(t),
    }
    contenders = ours if pytrec_eval is None else {**ours, "pytrec_eval": lambda: peer(t)}
    seconds = processor_seconds(contenders, repetitions)
    cells = [title, milliseconds(seconds["categories"])]
    if pytrec_eval is None:
        cells += ["-"] * (1 + len(ours))
    else:
        cells += [milliseconds(seconds["pytrec_eval"])]
        cells += [f"{seconds['pytrec_eval'] / seconds[name]:.1f}" for name in ours]
    memory = (t.nbytes + peak_bytes(lambda: measures_and_categories(t))) / t.nbytes
    return [*cells, f"{memory:.2f}"]


def run(quick: bool) -> None:
    if pytrec_eval is None:
        print('pytrec_eval is not installed: pip install "ragdiag[bench]"\n')
    header = [
        "queries x chunks",
        "ragdiag",
        "pytrec_eval",
        "measures",
        "and categories",
        "Results",
        "memory",
    ]
    rows = []
    for n_queries, depth in QUICK_SIZES if quick else SIZES:
        size, repetitions = (
            f"{n_queries:,} x {depth}",
            max(1, min(9, 1_000_000 // n_queries // depth)),
        )
        rows.append(row(size, tables(n_queries, depth), repetitions))
    n_queries, depth = (1_000, 100) if quick else (10_000, 100)
    for title, options in (
        ("rows shuffled", {"shuffled": True}),
        ("object columns", {"id_type": "object"}),
        ("categories", {"id_type": "category"}),
    ):
        rows.append(
            row(f"{n_queries:,} x {depth}, {title}", tables(n_queries, depth, **options), 3)
        )
    print_table(header, rows)
