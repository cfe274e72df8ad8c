"""What a comparison says of itself: evidence, verdict, sentence, plans, ranking, slices."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ragdiag
from ragdiag.comparison import Comparison
from ragdiag.errors import ComparisonError, SettingsError
from ragdiag.permutation import mcnemar_exact

N = 60
LOW = [1] * 30 + [0] * 30
HIGH = [1] * 30 + [1] * 22 + [0] * 8


@pytest.fixture
def three(build):
    rng = np.random.default_rng(0)
    ms = rng.lognormal(3, 0.3, N)
    verdict = [bool(each) for each in rng.random(N) < 0.7]
    return (
        build("dense", LOW, correct=verdict, grounded=verdict, ms=list(ms)),
        build("hybrid", HIGH, correct=verdict, grounded=verdict, ms=list(ms)),
        build("rerank", LOW, correct=verdict, grounded=verdict, ms=list(ms * 2)),
    )


def test_the_demo_is_not_settled_by_five_queries(repository):
    examples = repository / "examples"
    comparison = ragdiag.compare(
        examples / "dense_pipeline.py",
        examples / "hybrid_pipeline.py",
        dataset=examples / "demo_dataset.json",
        progress=False,
    )
    assert comparison.sentence == (
        "hybrid_pipeline leads on recall (+0.20) but 5 queries cannot settle it"
    )
    assert comparison.headline == f"{comparison.sentence}."
    assert comparison.verdict == "too few queries"
    assert comparison.overall_winner == "hybrid_pipeline", "the published rule stays"


def test_a_winner_is_named_where_the_evidence_holds(three):
    comparison = Comparison(three[0], three[1])
    assert comparison.verdict == "hybrid"
    assert comparison.sentence.startswith(
        "hybrid is better than dense on recall (+0.37) and MRR (+0.37)"
    )
    row = comparison.evidence.set_index("measure").loc["recall_at_5"]
    assert (row["baseline"], row["value"]) == pytest.approx((30 / N, 52 / N))
    assert (row["wins"], row["losses"]) == (22, 0)
    assert row["p_value"] == pytest.approx(mcnemar_exact(22, 0))
    # Four primary measures; recall and MRR are the same here and come first and second.
    assert row["p_corrected"] == pytest.approx(4 * row["p_value"])
    assert row["low"] < row["difference"] < row["high"]


def test_evidence_has_every_measure_and_says_in_which_family(three):
    evidence = Comparison(three[0], three[1]).evidence
    assert evidence["measure"].tolist() == [
        "recall_at_5",
        "reciprocal_rank",
        "grounded",
        "answer_correct",
        "passed",
        "precision_at_5",
        "ndcg_at_5",
        "p50_retrieval_ms",
        "WRONG_CHUNK_RETRIEVED",
        "RETRIEVED_BUT_NOT_GROUNDED",
    ]
    assert (
        evidence["family"].tolist()
        == ["primary"] * 4 + ["exploratory"] * 3 + ["latency"] + ["exploratory"] * 2
    )
    failures = evidence.set_index("measure").loc["WRONG_CHUNK_RETRIEVED"]
    assert failures["verdict"] == "better", "fewer failures are better"
    assert failures["difference"] < 0


def test_evidence_cannot_be_harmed(three):
    comparison = Comparison(three[0], three[1])
    table = comparison.evidence
    table["verdict"] = "worse"
    assert comparison.evidence["verdict"].iloc[0] == "better"


def test_swapping_mirrors_the_comparison(three):
    there, back = Comparison(three[0], three[1]), Comparison(three[1], three[0])
    assert there.verdict == back.verdict == "hybrid"
    a, b = there.evidence, back.evidence
    quality = a["scale"] == "difference"
    assert (a["difference"][quality] == -b["difference"][quality]).all()
    assert (a["low"][quality] == -b["high"][quality]).all()
    assert (a["p_value"] == b["p_value"]).all()
    mirrored = {"better": "worse", "worse": "better"}
    assert [mirrored.get(word, word) for word in a["verdict"]] == b["verdict"].tolist()


def test_the_order_of_queries_never_matters(three):
    order = np.random.default_rng(1).permutation(N)
    straight = Comparison(three[0], three[1]).evidence
    shuffled = Comparison(three[0][order], three[1]).evidence
    pd.testing.assert_frame_equal(straight, shuffled)


def test_failed_queries_are_missing_pairs_and_withhold_the_win(build):
    a = build("dense", [1] * 30 + [0] * 10)
    b = build("hybrid", [1] * 30 + [1] * 10, failed=range(8))
    row = Comparison(a, b).evidence.set_index("measure").loc["recall_at_5"]
    assert (row["n_paired"], row["n_missing"], row["n_missing_value"]) == (32, 8, 8)
    assert (row["verdict"], row["note"]) == ("undecided", "8 missing values could overturn it")
    assert row["bound_low"] == pytest.approx((10 - 8) / 40)


def test_queries_without_labels_concern_no_retrieval_measure(build):
    a = build("dense", [1] * 10, unlabelled=[0, 1])
    b = build("hybrid", [1] * 10, unlabelled=[0, 1])
    row = Comparison(a, b).evidence.set_index("measure").loc["recall_at_5"]
    assert (row["n_paired"], row["n_missing"]) == (8, 0)


def test_a_measure_that_one_side_lacks_is_not_measured(build):
    a = build("dense", [1] * 10, correct=[True] * 10)
    b = build("hybrid", [1] * 10)
    comparison = Comparison(a, b)
    row = comparison.evidence.set_index("measure").loc["answer_correct"]
    assert row["verdict"] == "not measured"
    assert row["n_missing_value"] == 10
    assert "grounded" not in set(comparison.evidence["measure"]), "neither side has it"


def test_answers_that_neither_side_was_judged_on_may_have_no_expectation(build):
    expected = ["yes"] * 8 + [None] * 2
    correct = [True] * 8 + [None] * 2
    sides = [
        build(name, [1] * 10, correct=correct, columns={"expected_answer": expected})
        for name in ("dense", "hybrid")
    ]
    row = Comparison(*sides).evidence.set_index("measure").loc["answer_correct"]
    assert (row["n_paired"], row["n_missing"]) == (8, 0)


def test_nothing_to_compare(build):
    everything = range(3)
    sides = [build(name, [1] * 3, failed=everything) for name in ("dense", "hybrid")]
    comparison = Comparison(*sides)
    assert comparison.verdict == "not measured"
    assert "is not known" in comparison.sentence


# -- more than two ---------------------------------------------------------------------------------
def test_three_pipelines_share_one_level(three):
    pair, all_three = Comparison(three[0], three[1]), Comparison(*three)
    alone = pair.evidence.query("measure == 'recall_at_5'")["p_corrected"].iloc[0]
    among = all_three.evidence.query("measure == 'recall_at_5'")
    assert among["pipeline"].tolist() == ["hybrid", "rerank"]
    assert among["p_corrected"].iloc[0] == pytest.approx(2 * alone)
    assert all_three.sentence.startswith("hybrid is better than dense on recall")
    assert "rerank" in all_three.sentence
    everyone = all_three.infer(pairs="all")
    assert everyone.pairs == ((0, 1), (0, 2), (1, 2))
    assert everyone.table["against"].unique().tolist() == ["dense", "hybrid"]


def test_the_ranking_knows_who_beats_whom(three):
    ranking = Comparison(*three).ranking()
    assert ranking["pipeline"].tolist() == ["hybrid", "dense", "rerank"]
    assert ranking["rank"].tolist() == [1, 2, 2]
    assert ranking["wins"].tolist() == [2, 0, 0]
    assert (ranking["wins"] + ranking["ties"] + ranking["losses"] == 2).all()
    assert ranking["recall_at_5"].tolist() == pytest.approx([52 / N, 0.5, 0.5])
    assert Comparison(*three).verdict == "hybrid"


def test_the_baseline_may_stand_anywhere(three):
    comparison = Comparison(*three, baseline="hybrid")
    assert comparison.inference.pairs == ((1, 0), (1, 2))
    assert comparison.verdict == "hybrid"
    assert comparison.inference.winner == "hybrid"


def test_no_winner_among_equals(build):
    sides = [build(name, LOW) for name in "abcde"]
    comparison = Comparison(*sides)
    assert comparison.verdict == "too few queries"
    assert comparison.sentence == "none of 4 comparisons has a winner; 4 too few queries"
    assert comparison.inference.winner is None
    assert comparison.ranking()["rank"].tolist() == [1] * 5


# -- levels, clusters, plans -----------------------------------------------------------------------
def test_levels_can_be_set(three):
    comparison = Comparison(three[0], three[1])
    strict = comparison.infer(alpha=1e-9)
    assert strict.table["verdict"].iloc[0] == "too few queries"
    assert comparison.infer(min_effect=0.5).plan.min_effect == 0.5
    tolerant = Comparison(three[0], three[1], quality_tolerance=0.9)
    assert tolerant.verdict == "equivalent"
    assert comparison.infer(tolerance=0.9).verdicts[0].word == "equivalent"
    with pytest.raises(ComparisonError, match="pairs must be"):
        comparison.infer(pairs="some")
    with pytest.raises(SettingsError, match="alpha"):
        comparison.infer(alpha=2.0)


def test_clusters_by_column_by_group_and_by_documents(build):
    column = [f"topic {i // 10}" for i in range(N)]
    a, b = (
        build(name, ranks, columns={"topic": column})
        for name, ranks in (("dense", LOW), ("hybrid", HIGH))
    )
    comparison = Comparison(a, b)
    topics = comparison.infer(cluster="topic")
    assert topics.n_clusters == 6
    assert topics.notes == (
        "only 6 clusters of queries: 20 or more make intervals that can be relied on",
    )
    assert topics.table["verdict"].iloc[0] == "too few queries"
    assert comparison.infer(cluster="documents").n_clusters == N // 2
    assert comparison.inference.n_clusters == 0
    assert comparison.inference.notes == ()
    with pytest.raises(ComparisonError, match="no column 'chapter'"):
        comparison.infer(cluster="chapter")
    grouped = Comparison(
        *(
            build(name, ranks, columns={"group": [*column[:-1], None]})
            for name, ranks in (("dense", LOW), ("hybrid", HIGH))
        )
    )
    assert grouped.inference.n_clusters == 7, "a query without a group stands alone"


def test_power_never_looks_at_the_observed_difference(three):
    comparison = Comparison(three[0], three[1])
    table = comparison.power(0.1)
    assert table["measure"].tolist() == [
        "recall_at_5",
        "reciprocal_rank",
        "grounded",
        "answer_correct",
    ]
    assert (table["delta"] == 0.1).all()
    assert (table["n_needed"] > N).all()
    back = Comparison(three[1], three[0]).power(0.1)
    pd.testing.assert_series_equal(table["n_needed"], back["n_needed"])
    assert (comparison.power(0.3)["power"] > table["power"]).all()
    assert table["detectable"].between(0.05, 1.0).all()
    assert ragdiag.sample_size(0.1) < ragdiag.sample_size(0.05)


def test_power_of_nothing_measured(build):
    sides = [build(name, [1] * 3, failed=range(3)) for name in ("dense", "hybrid")]
    assert Comparison(*sides).power().empty


# -- slices, moves, times --------------------------------------------------------------------------
def test_slices_are_exploratory_and_corrected_together(three):
    comparison = Comparison(*three)
    slices = comparison.slices()
    assert set(slices["pipeline"]) == {"hybrid", "rerank"}
    assert set(slices["slice"]) == {"factual", "multi-hop"}
    assert set(slices["family"]) == {"exploratory"}
    assert (slices["n_queries"] == N // 2).all()
    one = slices[(slices["pipeline"] == "hybrid") & (slices["measure"] == "recall_at_5")]
    assert one["wins"].tolist() == [11, 11]
    assert (one["p_corrected"] > 2 * one["p_value"]).all()
    with pytest.raises(ComparisonError, match="there is no column 'colour'"):
        comparison.slices("colour")


def test_slices_of_clusters(build):
    columns = {"group": [i // 4 for i in range(N)], "lang": ["de", "en"] * (N // 2)}
    sides = [
        build(name, ranks, columns=columns) for name, ranks in (("dense", LOW), ("hybrid", HIGH))
    ]
    slices = Comparison(*sides).slices("lang")
    assert slices["n_paired"].tolist() == [30] * len(slices)
    assert (slices["p_value"] > mcnemar_exact(11, 0)).all()


def test_categories_are_tested_as_one_table(three):
    test = Comparison(three[0], three[1]).transitions_test()
    assert test.n_discordant > 0
    assert test.p_value < 0.01
    same = Comparison(three[0], three[2]).transitions_test()
    assert same.p_value == 1.0
    assert Comparison(*three).transitions_test("hybrid") == test
    with pytest.raises(ComparisonError, match="pipeline must be one of 'hybrid', 'rerank'"):
        Comparison(*three).transitions_test()


def test_moves_of_clusters(build):
    columns = {"group": [i // 15 for i in range(N)]}
    sides = [
        build(name, ranks, columns=columns) for name, ranks in (("dense", LOW), ("hybrid", HIGH))
    ]
    assert Comparison(*sides).transitions_test().p_value >= 0.25


def test_times_have_percentiles_with_intervals(three):
    table = Comparison(three[0], three[2]).latency().set_index(["pipeline", "percentile"])
    dense, rerank = table.loc[("dense", 50.0)], table.loc[("rerank", 50.0)]
    assert rerank["value"] == pytest.approx(2 * dense["value"])
    assert dense["low"] < dense["value"] < dense["high"]
    assert np.isnan(table.loc[("dense", 99.0), "value"]), "60 queries have no 99th percentile"
    assert Comparison(three[0], three[2]).latency("total")["n"].tolist() == [0] * 6


def test_better_but_slower_is_a_trade_off(build):
    a = build("dense", LOW, ms=[10.0] * N)
    b = build("hybrid", HIGH, ms=[15.0] * N)
    comparison = Comparison(a, b)
    assert comparison.verdict == "trade-off"
    assert comparison.sentence == (
        "Trade-off: hybrid is better on recall (+0.37) and MRR (+0.37) but slower (x1.50)"
    )


# -- depths ----------------------------------------------------------------------------------------
def test_evidence_at_every_depth(build):
    ranks = [1] * 30 + [4] * 30
    a = build("dense", ranks)
    b = build("hybrid", [1] * 30 + [2] * 30)
    table = Comparison(a, b).at_k([1, 3, 5])
    recall = table[table["measure"].str.startswith("recall")].set_index("k")
    assert recall["difference"].tolist() == [0.0, 0.5, 0.0]
    separate = Comparison(a.rediagnose(k=3), b.rediagnose(k=3)).evidence
    at_three = table[table["k"] == 3].drop(columns="k").reset_index(drop=True)
    pd.testing.assert_frame_equal(at_three, separate)
    with pytest.raises(SettingsError, match="no k"):
        Comparison(a, b).at_k([])
