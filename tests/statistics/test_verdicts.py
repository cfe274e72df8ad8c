"""One word and one sentence a pair."""

from __future__ import annotations

import numpy as np
import pytest

from ragdiag.statistics import Evidence, Plan, decide, examine, examine_latency
from ragdiag.verdicts import PairVerdict, judge_pair, measure_name, signed, summarise


def binary(wins: int, losses: int, n: int):
    a = np.repeat([0.0, 1.0, 1.0], [wins, losses, n - wins - losses])
    b = np.repeat([1.0, 0.0, 1.0], [wins, losses, n - wins - losses])
    return a, b


PLAN = Plan()


def verdict(measures, ratio: float | None = None, plan: Plan = PLAN, **options) -> PairVerdict:
    rows = [examine(name, *binary(*counts), plan=plan) for name, counts in measures.items()]
    n = max([counts[2] for counts in measures.values()], default=40)
    if ratio is not None:
        times = np.linspace(10, 40, n)
        rows.append(examine_latency("p50_retrieval_ms", times, times * ratio))
    return judge_pair(decide(rows, plan), "dense", "hybrid", n, **options)


RECALL, MRR, GROUNDED = "recall_at_5", "reciprocal_rank", "grounded"


def test_a_winner_holds_and_the_rest_is_said():
    found = verdict({RECALL: (20, 2, 100), MRR: (2, 22, 100), GROUNDED: (9, 8, 100)}, 1.0)
    assert found.word == "trade-off"
    found = verdict({RECALL: (20, 2, 100), GROUNDED: (9, 8, 100)}, 1.0)
    assert (found.word, found.winner) == ("winner", "hybrid")
    assert found.sentence == (
        "hybrid is better than dense on recall (+0.18); groundedness is undecided"
    )


def test_the_baseline_may_win():
    found = verdict({RECALL: (2, 20, 100)}, 1.5)
    assert found.winner == "dense"
    assert found.sentence == "dense is better than hybrid on recall (+0.18) and faster (x0.67)"
    assert verdict({RECALL: (20, 2, 100)}, 0.5).sentence.endswith("and faster (x0.50)")


def test_better_and_slower_is_a_trade_off():
    found = verdict({RECALL: (20, 2, 100), MRR: (30, 2, 100)}, 1.2)
    assert (found.word, found.winner) == ("trade-off", None)
    assert found.sentence == (
        "Trade-off: hybrid is better on recall (+0.18) and MRR (+0.28) but slower (x1.20)"
    )
    mirrored = verdict({RECALL: (2, 20, 100)}, 0.8)
    assert mirrored.sentence == "Trade-off: dense is better on recall (+0.18) but slower (x1.25)"


def test_better_on_one_and_worse_on_another_is_a_trade_off():
    found = verdict({RECALL: (20, 2, 100), GROUNDED: (1, 15, 100)}, 1.2, versus=True)
    assert found.sentence == (
        "Trade-off: hybrid is better than dense on recall (+0.18) but worse on groundedness "
        "(-0.14), and slower (x1.20)"
    )


def test_equivalent_is_not_a_win_for_the_faster():
    found = verdict({RECALL: (3, 3, 2_000), MRR: (3, 3, 2_000)}, 0.5)
    assert (found.word, found.winner) == ("equivalent", None)
    assert found.sentence == (
        "dense and hybrid are equivalent on recall and MRR (within 0.02); hybrid is faster (x0.50)"
    )
    assert "dense is faster (x0.50)" in verdict({RECALL: (3, 3, 2_000)}, 2.0).sentence


def test_five_queries_cannot_settle_it():
    found = verdict({RECALL: (1, 0, 5), MRR: (0, 0, 5)})
    assert (found.word, found.winner) == ("too few queries", None)
    assert found.sentence == "hybrid leads on recall (+0.20) but 5 queries cannot settle it"
    assert verdict({RECALL: (1, 0, 5)}, versus=True).sentence == (
        "hybrid leads dense on recall (+0.20) but 5 queries cannot settle it"
    )
    assert verdict({RECALL: (0, 0, 1)}).sentence == (
        "dense and hybrid have the same mean on recall, but 1 query cannot settle it"
    )


def test_undecided_says_what_would_decide():
    found = verdict({RECALL: (12, 6, 60)})
    assert (found.word, found.winner) == ("undecided", None)
    assert found.sentence.startswith(
        "hybrid leads on recall (+0.10) but that could be chance: about"
    )
    assert found.sentence.endswith("queries would be needed to show a difference of 0.05")
    enough = verdict({RECALL: (50, 50, 2_000)}, plan=Plan(tolerance=0.0))
    assert enough.sentence == (
        "dense and hybrid have the same mean on recall, but that could be chance: a difference of "
        "0.05 would probably have shown"
    )
    mixed = verdict({RECALL: (5, 0, 100), MRR: (12, 10, 100)})
    assert mixed.word == "undecided"
    assert mixed.sentence == (
        "hybrid leads on recall (+0.05) but too few queries differ to settle it (5 differ, "
        "7 needed)"
    )


def test_missing_values_are_named():
    a, b = binary(20, 4, 60)
    row = examine(RECALL, np.append(a, np.ones(10)), np.append(b, np.full(10, np.nan)))
    found = judge_pair(decide([row]), "dense", "hybrid", 70)
    assert found.sentence == (
        "hybrid leads on recall (+0.27) but 10 missing values could overturn it"
    )


def test_nothing_measured():
    assert judge_pair([], "a", "b", 3).sentence == (
        "a and b cannot be compared: nothing was measured on both sides"
    )
    times = decide([examine_latency("p50_retrieval_ms", [1.0, 2.0], [2.0, 4.0])])
    found = judge_pair(times, "a", "b", 2)
    assert (found.word, found.winner) == ("not measured", None)
    assert found.sentence.startswith("whether a or b is better is not known")


def test_equivalent_measures_beside_a_win_are_said():
    found = verdict({RECALL: (200, 20, 2_000), MRR: (3, 3, 2_000)})
    assert found.sentence.endswith("; MRR is equivalent")


def test_a_ratio_of_nothing_is_infinite():
    row = Evidence("p50_retrieval_ms", "latency", scale="ratio", verdict="better", difference=0.0)
    won = [examine(RECALL, *binary(2, 20, 100))]
    rows = [*decide(won), row]
    assert "slower (xinf)" in judge_pair(rows, "a", "b", 100).sentence


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.2, "+0.20"), (-0.05, "-0.05"), (0.004, "+0.004"), (0.0, "0.00"), (-0.0, "0.00")],
)
def test_differences_are_signed(value, text):
    assert signed(value) == text


def test_measures_have_the_names_people_use():
    names = [measure_name(name) for name in ("recall_at_10", "answer_correct", "SOMETHING")]
    assert names == ["recall", "correctness", "SOMETHING"]


def test_many_pairs_are_counted():
    won = [
        PairVerdict("base", "x", "winner", "base", ""),
        PairVerdict("base", "y", "winner", "y", ""),
    ]
    rest = [PairVerdict("base", "z", "undecided", None, "")] * 2
    assert summarise([*won, *rest]) == (
        "2 of 4 comparisons have a winner: base is better than x, y is better than base; "
        "2 undecided"
    )
    assert summarise(rest) == "none of 2 comparisons has a winner; 2 undecided"
