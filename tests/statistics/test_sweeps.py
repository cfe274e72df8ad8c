"""One recording at many settings, and how firm its diagnoses are."""

from __future__ import annotations

import pandas as pd
import pytest

from ragdiag.errors import SettingsError

RANKS = [1, 2, 3, 4, 6, 8, 0, 1, 5, 10]


def test_every_depth_equals_a_separate_evaluation(build):
    table = build("dense", RANKS).at_k([1, 3, 5, 10])
    for k in (1, 3, 5, 10):
        alone = build("dense", RANKS, k=k)
        summary = alone.summary().set_index("measure")["value"]
        row = table.loc[k]
        for measure in ("precision", "recall", "hit_rate", "ndcg"):
            assert row[measure] == summary[f"{measure}_at_{k}"]
        assert row["reciprocal_rank"] == summary["reciprocal_rank"]
        assert row["passed"] == summary["passed"]
        for category, queries in alone.counts()["queries"].items():
            assert row[category] == queries
    assert table.index.name == "k"
    assert table["recall"].is_monotonic_increasing


def test_depths_beyond_the_recording_are_counted(build):
    table = build("dense", RANKS, depth=5, failed=[7]).at_k([5, 6])
    assert table["n_too_shallow"].tolist() == [0, 9]


@pytest.mark.parametrize(
    ("setting", "values", "category"),
    [
        ("rank_threshold", [1, 3], "WRONG_CHUNK_RANK"),
        ("latency_threshold_ms", [5, 20], "LATENCY_OUTLIER"),
    ],
)
def test_other_thresholds_move_alone(build, setting, values, category):
    results = build("dense", RANKS)
    table = results.sweep(setting, values)
    assert table[category].iloc[0] > table[category].iloc[1]
    assert table["recall"].nunique() == 1
    for value in values:
        counts = results.rediagnose(**{setting: value}).counts()["queries"]
        assert table.loc[value, category] == counts[category]


def test_senseless_sweeps_are_refused(build):
    results = build("dense", RANKS)
    with pytest.raises(SettingsError, match="setting must be one of k, rank_threshold"):
        results.sweep("judge", [1])
    with pytest.raises(SettingsError, match="no value of k"):
        results.at_k([])
    with pytest.raises(SettingsError, match="k must be"):
        results.at_k([0])


def test_the_depth_that_would_have_done(build):
    table = build("dense", RANKS, unlabelled=[9]).smallest_k()
    assert table["query_id"].tolist() == [f"q{i:03d}" for i in range(9)]
    assert table["complete_k"].fillna(-1).tolist() == [1, 2, 3, 4, 6, 8, -1, 1, 5]
    # Below rank 3 the chunk comes too late at any depth.
    assert table["smallest_k"].fillna(-1).tolist() == [1, 2, 3, -1, -1, -1, -1, 1, -1]
    lenient = build("dense", RANKS, rank_threshold=10).smallest_k()
    assert lenient["smallest_k"].fillna(-1).tolist() == [1, 2, 3, 4, 6, 8, -1, 1, 5, 10]


def test_the_smallest_depth_is_the_smallest_that_passes(build):
    for threshold in (1, 3, 10):
        results = build("dense", RANKS, rank_threshold=threshold)
        found = results.smallest_k().set_index("query_id")["smallest_k"]
        passes = {
            k: set(results.rediagnose(k=k).select(category="PASS").query_ids) for k in range(1, 11)
        }
        for query_id, smallest in found.items():
            depths = [k for k, ids in passes.items() if query_id in ids]
            assert (min(depths) if depths else None) == (None if pd.isna(smallest) else smallest)


def test_several_relevant_chunks_need_the_deepest():
    from ragdiag.recording import Run
    from ragdiag.results import Results

    run = Run(
        pd.DataFrame({"query_id": ["q1", "q2"], "query": ["one?", "two?"]}),
        pd.DataFrame({"query_id": ["q1", "q1", "q2", "q2"], "chunk_id": list("abac")}),
        pd.DataFrame(
            {"query_id": ["q1"] * 7 + ["q2"], "rank": [*range(1, 8), 1], "chunk_id": [*"axyzuvba"]}
        ),
        pd.DataFrame({"query_id": ["q1", "q2"], "status": "completed"}),
    )
    table = Results(run).smallest_k()
    assert table["first_k"].tolist() == [1, 1]
    assert table["complete_k"].fillna(-1).tolist() == [7, -1]
    assert table["smallest_k"].fillna(-1).tolist() == [7, -1]


# -- stability -------------------------------------------------------------------------------------
def test_diagnoses_that_hang_on_a_step(build):
    stability = build("dense", RANKS).stability()
    table = stability.table.set_index("query_id")
    assert table.columns.tolist() == [
        "category",
        "k=4",
        "k=6",
        "rank_threshold=2",
        "rank_threshold=4",
        "latency_threshold_ms=900",
        "latency_threshold_ms=1100",
        "flips",
        "stable",
    ]
    # Rank 3 at threshold 2, rank 4 at threshold 4, rank 6 at k 6, rank 5 at k 4.
    assert stability.unstable == ["q002", "q003", "q004", "q008"]
    assert stability.flips.to_dict() == {
        "k=4": 1,
        "k=6": 1,
        "rank_threshold=2": 1,
        "rank_threshold=4": 1,
        "latency_threshold_ms=900": 0,
        "latency_threshold_ms=1100": 0,
    }
    assert table.loc["q008", "k=4"] == "WRONG_CHUNK_RETRIEVED"
    assert stability.sentence.startswith(
        "4 of 10 diagnoses change when a threshold moves one step (k=4: 1"
    )
    harmed = stability.table
    harmed["stable"] = True
    assert len(stability.unstable) == 4


def test_firm_diagnoses_are_said_to_be_firm(build):
    assert build("dense", [1, 1, 0], rank_threshold=1).stability({"k": [3]}).sentence == (
        "all 3 diagnoses stand when a threshold moves one step"
    )
    one = build("dense", [1, 5, 0], k=5, rank_threshold=5).stability({"k": [4]})
    assert one.sentence == "1 of 3 diagnoses changes when a threshold moves one step (k=4: 1)"


def test_a_threshold_is_not_moved_out_of_range(build):
    table = build("dense", [1], k=1, rank_threshold=1).stability().table
    assert "k=0" not in table
    assert "rank_threshold=0" not in table


def test_a_judge_that_changes_its_mind(build):
    replies = {"q000": [[True, True], [False, True], [True, True]], "q001": [[True, True]] * 3}
    results = build(
        "dense",
        [1, 1, 1],
        correct=[True, True, None],
        grounded=[True, True, None],
        info={"judge_replies": replies},
    )
    stability = results.stability({})
    assert stability.table.columns.tolist()[2:-2] == [
        "judge reply 1",
        "judge reply 2",
        "judge reply 3",
    ]
    assert stability.unstable == ["q000"]
    assert stability.table.loc[0, "judge reply 2"] == "ANSWER_INCORRECT"
    assert results.headline.endswith("; the judge changed its mind on 1")
    assert "changed its mind" not in results[["q001"]].headline
    part = results[["q001", "q000"]].stability({})
    assert part.table["query_id"].tolist() == ["q001", "q000"]
    assert part.unstable == ["q000"]
