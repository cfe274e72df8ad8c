"""NIST's trec_eval as oracle: every measure we share with it, to all the digits it prints."""

from __future__ import annotations

import functools
import gzip
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragdiag.metrics import retrieval_measures
from ragdiag.relevance import relevant_ranks

#: Deeper than any list here: trec_eval's measures without a cut-off.
EVERYTHING = 10_000

#: Our name for a measure of trec_eval's, given its cut-off.
OUR_NAMES = {
    "P": "precision_at_{}",
    "recall": "recall_at_{}",
    "success": "hit_rate_at_{}",
    "ndcg_cut": "ndcg_at_{}",
    "ndcg": "ndcg_at_{}",
    "map": "average_precision",
    "recip_rank": "reciprocal_rank",
    "num_rel": "n_relevant",
    "num_rel_ret": "n_found_at_{}",
}


def lines(path: Path) -> list[str]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()


def read_run(path: Path) -> pd.DataFrame:
    """Return a TREC run with the rank that trec_eval gives: score down, then document id down."""
    rows = [line.split()[:5] for line in lines(path)]
    run = pd.DataFrame(rows, columns=["query_id", "Q0", "chunk_id", "given_rank", "score"])
    run["score"] = run["score"].astype(float)
    run = run.sort_values(["query_id", "score", "chunk_id"], ascending=[True, False, False])
    run["rank"] = run.groupby("query_id").cumcount() + 1
    # The order of rows must not matter.
    return run.sample(frac=1, random_state=1)


def read_qrels(path: Path) -> pd.DataFrame:
    rows = [line.split() for line in lines(path)]
    if rows[0][0] == "query-id":
        rows = [[query, "0", *rest] for query, *rest in rows[1:]]
    qrels = pd.DataFrame(rows, columns=["query_id", "iteration", "chunk_id", "grade"])
    return qrels.astype({"grade": int})


def read_expected(path: Path) -> list[list[str]]:
    """Return trec_eval's output as [measure, query or "all", printed value]."""
    return [line.split() for line in lines(path)]


class OurMeasures:
    """Our values under trec_eval's names.

    Parameters
    ----------
    level : int
        trec_eval's -l: smallest grade that counts as relevant, except for nDCG.
    depth : int
        trec_eval's -M: chunks kept a query.
    """

    def __init__(
        self, run: pd.DataFrame, qrels: pd.DataFrame, level: int = 1, depth: int = EVERYTHING
    ) -> None:
        queries = pd.Series(sorted(set(qrels["query_id"])))
        self.position = {query: position for position, query in enumerate(queries)}
        self.ranks = relevant_ranks(queries, qrels, run[run["rank"] <= depth])
        self.level = level

    @functools.cache  # noqa: B019 (one object a test)
    def values(self, family: str, cut: int) -> np.ndarray:
        """Return the measure of every query."""
        if family == "num_ret":
            return self.ranks.n_retrieved
        pair_rank, pair_grade = self.ranks.pair_rank, self.ranks.pair_grade
        if not family.startswith("ndcg"):
            pair_grade = np.where(pair_grade >= self.level, 1.0, 0.0)
        if family == "map_cut":
            family, pair_rank = "map", np.where(pair_rank <= cut, pair_rank, 0)
        measures = retrieval_measures(
            self.ranks.pair_query,
            pair_rank,
            pair_grade,
            self.ranks.n_retrieved,
            ks=[cut],
            precision_denominator="k",
        )
        return measures[OUR_NAMES[family].format(cut)]

    def printed(self, family: str, cut: int, query: str) -> str:
        """Return the value as trec_eval prints it."""
        values = self.values(family, cut)
        if query == "all":
            value = values.sum() if family.startswith("num_") else values.mean()
        else:
            value = values[self.position[query]]
        return str(value) if family.startswith("num_") else f"{value:.4f}"


def compare(ours: OurMeasures, expected: list[list[str]]) -> list[tuple[str, str, str, str]]:
    """Return (measure, query, trec_eval's value, our value) for every measure that we have."""
    rows = []
    for measure, query, printed in expected:
        family, cut = re.fullmatch(r"(.*?)(?:_(\d+))?", measure).groups()
        if family in OUR_NAMES or family in ("map_cut", "num_ret"):
            rows.append(
                (measure, query, printed, ours.printed(family, int(cut or EVERYTHING), query))
            )
    return rows


def assert_equal(rows: list[tuple[str, str, str, str]]) -> None:
    assert [row for row in rows if row[2] != row[3]] == []


NIST = Path(__file__).parents[1] / "data" / "trec_eval"
HOTPOTQA = Path(__file__).parents[1] / "data" / "trec_hotpotqa"


@pytest.mark.parametrize(
    ("run", "qrels", "options", "expected", "n_values"),
    [
        ("results.test", "qrels.test", {}, "out.test", 14),
        ("results.test", "qrels.test", {}, "out.test.a", 45),
        ("results.test", "qrels.test", {}, "out.test.aq", 180),
        ("results.test", "qrels.test", {}, "out.test.meas_params", 44),
        ("results.trunc", "qrels.test", {}, "out.test.aqc", 180),
        ("results.trunc", "qrels.test", {"depth": 100}, "out.test.aqcM", 180),
        ("results.test", "qrels.rel_level", {"level": 2}, "out.test.aql", 180),
    ],
)
def test_the_outputs_of_nist_are_reproduced(run, qrels, options, expected, n_values):
    ours = OurMeasures(read_run(NIST / f"{run}.gz"), read_qrels(NIST / f"{qrels}.gz"), **options)
    rows = compare(ours, read_expected(NIST / f"{expected}.gz"))
    assert_equal(rows)
    assert len(rows) == n_values


def test_the_committed_questions_of_hotpotqa_agree_with_trec_eval():
    ours = OurMeasures(read_run(HOTPOTQA / "run.trec.gz"), read_qrels(HOTPOTQA / "qrels.tsv"))
    rows = compare(ours, read_expected(HOTPOTQA / "trec_eval.per_query.txt"))
    assert_equal(rows)
    assert len(rows) == 25 * 23


@pytest.mark.parametrize(("name", "n_queries"), [("hotpotqa", 300), ("xquad_en", 1190)])
def test_whole_beir_folders_agree_with_trec_eval(shared_data, name, n_queries):
    folder = shared_data / "retrieval" / name
    ours = OurMeasures(
        read_run(folder / "bm25" / "run.trec.gz"), read_qrels(folder / "qrels" / "test.tsv")
    )
    means = compare(ours, read_expected(folder / "bm25" / "trec_eval.expected.txt"))
    assert_equal(means)
    assert len(means) == 23
    queries = compare(ours, read_expected(folder / "bm25" / "trec_eval.per_query.txt.gz"))
    assert_equal(queries)
    assert len(queries) == 23 * (n_queries + 1)


def test_the_copies_of_nist_files_are_those_of_the_data_folder(shared_data):
    folder = shared_data / "trec" / "trec_eval_official"
    for copy in NIST.glob("*.gz"):
        assert gzip.decompress(copy.read_bytes()) == (folder / copy.stem).read_bytes()
