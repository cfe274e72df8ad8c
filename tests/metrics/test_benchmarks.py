"""The benchmarks compare like with like, and their runner says what there is."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest


@pytest.fixture
def bench_measures(repository, monkeypatch):
    monkeypatch.syspath_prepend(str(repository / "tests" / "benchmarks"))
    import bench_measures

    return bench_measures


@pytest.mark.parametrize("id_type", ["str", "object", "category"])
def test_what_is_timed_gives_the_same_numbers(bench_measures, id_type):
    if bench_measures.pytrec_eval is None:
        pytest.skip("pytrec_eval, of the extra 'bench', is not installed")
    tables = bench_measures.tables(40, 12, id_type, shuffled=True)
    ours, theirs = bench_measures.measures(tables), bench_measures.peer(tables)
    names = {
        "recall_at_5": "recall_5",
        "precision_at_10": "P_10",
        "ndcg_at_10": "ndcg_cut_10",
        "reciprocal_rank": "recip_rank",
    }
    for our_name, their_name in names.items():
        expected = [theirs[query][their_name] for query in tables.query_ids]
        np.testing.assert_allclose(ours[our_name], expected, rtol=1e-12)
    assert 0 < ours["recall_at_5"].mean() < 0.5


def test_all_of_results_is_timed_on_the_same_tables(bench_measures):
    tables = bench_measures.tables(40, 12)
    frame = bench_measures.whole_results(tables)
    np.testing.assert_array_equal(
        frame["recall_at_5"], bench_measures.measures(tables)["recall_at_5"]
    )


def test_the_runner_names_the_benchmarks_there_are(repository):
    script = repository / "tests" / "benchmarks" / "run.py"
    run = subprocess.run(
        [sys.executable, str(script), "unknown"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 2
    assert "no benchmark 'unknown'; there are" in run.stderr
    assert "measures" in run.stderr
