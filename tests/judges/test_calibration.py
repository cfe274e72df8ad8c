"""Agreement with people, corrected rates, flips, and the widget that collects the labels."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from ragdiag.errors import SettingsError
from ragdiag.judges import LabelState, agreement, flip_rate
from ragdiag.judges.calibration import cohen_kappa, corrected_rate


def frame(**columns):
    n = len(next(iter(columns.values())))
    return pd.DataFrame({"query_id": [f"q{i}" for i in range(n)], **columns})


def test_a_table_worked_by_hand():
    # people:  T T T T F F F F ; judge: T T T F F F T None
    people = [True] * 4 + [False] * 4
    judge = [True, True, True, False, False, False, True, None]
    found = agreement(frame(answer_correct=judge), frame(answer_correct=people))
    side = found.sides["answer_correct"]
    assert side.confusion.to_numpy().tolist() == [[3, 1, 0], [1, 2, 1]]
    assert side.accuracy.value == pytest.approx(5 / 7)
    # chance: (4/7)(4/7) + (3/7)(3/7) = 25/49; kappa = (5/7 - 25/49) / (24/49) = 10/24
    assert side.kappa.value == pytest.approx(10 / 24)
    assert side.sensitivity.value == pytest.approx(3 / 4)
    assert side.specificity.value == pytest.approx(2 / 3)
    assert side.judged_rate.value == pytest.approx(4 / 7)
    # (4/7 + 2/3 - 1) / (3/4 + 2/3 - 1)
    assert side.corrected_rate.value == pytest.approx((4 / 7 - 1 / 3) / (5 / 12))
    assert "7 labels" in side.note
    assert found.table.loc[("answer_correct", "accuracy"), "n"] == 7
    assert "corrected_rate" in repr(found)
    assert "<table" in found._repr_html_()


def test_both_sides_and_partial_labels():
    judged = frame(answer_correct=[True] * 40, grounded=[True, False] * 20)
    labels = frame(answer_correct=[True] * 36, grounded=[None, False] + [True, False] * 17)
    found = agreement(judged, labels)
    assert found.sides["grounded"].accuracy.n == 35
    assert found.sides["grounded"].kappa.value == 1.0
    assert found.sides["grounded"].kappa.low < 1.0  # thirty-five agreements prove no perfection
    assert found.sides["grounded"].note == ""
    one_kind = found.sides["answer_correct"]
    assert math.isnan(one_kind.kappa.value)
    assert math.isnan(one_kind.corrected_rate.value)
    assert "both kinds" in one_kind.note


def test_a_judge_no_better_than_chance_cannot_be_corrected():
    people = [True, False] * 20
    judge = [False, True] * 20
    side = agreement(frame(grounded=judge), frame(grounded=people)).sides["grounded"]
    assert math.isnan(side.corrected_rate.value)
    assert "no better than chance" in side.note
    assert math.isnan(corrected_rate(0, 0, 1, 1, 1, 1).value)


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (pd.DataFrame({"id": ["q0"]}), "query_id"),
        (frame(answer_correct=[True] * 3).assign(query_id="q0"), "more than once"),
        (frame(answer_correct=[True] * 3).assign(query_id=["q0", "x", "y"]), "'x'"),
        (frame(other=[1, 2]), "answer_correct"),
        (frame(answer_correct=[None, None]), "both labelled and judged"),
        ([1], "DataFrame"),
    ],
)
def test_labels_are_checked(labels, text):
    with pytest.raises(SettingsError, match=text):
        agreement(frame(answer_correct=[True, False]), labels)


def test_labels_may_be_indexed_by_query():
    labels = frame(answer_correct=[True, False]).set_index("query_id")
    assert agreement(frame(answer_correct=[True, False]), labels).sides["answer_correct"]


@pytest.mark.parametrize(
    ("n", "labelled", "rate", "sensitivity", "specificity"),
    [(200, 30, 0.7, 0.9, 0.8), (1_000, 50, 0.5, 0.85, 0.85), (300, 100, 0.6, 0.8, 0.9)],
)
@pytest.mark.parametrize("subset", [True, False])
def test_corrected_rates_cover_the_truth(n, labelled, rate, sensitivity, specificity, subset):
    rng = np.random.default_rng(4)
    covered = raw = kappas = 0
    rounds = 600
    judged_true = rate * sensitivity + (1 - rate) * (1 - specificity)
    chance = rate * judged_true + (1 - rate) * (1 - judged_true)
    observed = rate * sensitivity + (1 - rate) * specificity
    true_kappa = (observed - chance) / (1 - chance)

    def judge(people):
        draws = rng.random(len(people))
        return np.where(people, draws < sensitivity, draws >= specificity)

    for _ in range(rounds):
        truth = rng.random(n) < rate
        said = judge(truth)
        if subset:
            chosen = rng.choice(n, labelled, replace=False)
            people, verdicts = truth[chosen], said[chosen]
        else:
            people = rng.random(labelled) < rate
            verdicts = judge(people)
        found = corrected_rate(
            int(said.sum()),
            n,
            int((verdicts & people).sum()),
            int(people.sum()),
            int((~verdicts & ~people).sum()),
            int((~people).sum()),
        )
        covered += math.isnan(found.value) or found.low <= rate <= found.high
        raw += abs(said.mean() - rate) <= 1.96 * math.sqrt(rate * (1 - rate) / n)
        kappa = cohen_kappa(people, verdicts)
        kappas += kappa.low <= true_kappa <= kappa.high
    # Three standard errors of the simulation below 95 %.
    assert covered / rounds >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / rounds)
    assert kappas / rounds >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / rounds)
    assert judged_true == pytest.approx(rate) or raw < covered  # what is gained


def test_flip_rate():
    repeats = [[True, True, True], [True, False, True], [None, True], [False]]
    found = flip_rate(repeats)
    assert (found.value, found.n) == (pytest.approx(2 / 3), 3)
    assert math.isnan(flip_rate([]).value)


# Labelling --------------------------------------------------------------------------------------


def test_the_queue_is_a_fixed_random_sample_of_answered_queries():
    results = frame(answer=[None if i % 3 == 0 else "a" for i in range(60)])
    state = LabelState(results)
    assert len(state.queue) == 30
    assert state.queue == LabelState(results).queue != LabelState(results, seed=1).queue
    assert all(int(query_id[1:]) % 3 for query_id in state.queue)
    assert len(LabelState(results, n=1_000).queue) == 40


def test_labels_are_kept_and_taken_back():
    state = LabelState(frame(answer=["a", "b", "c"]), n=3)
    first = state.current
    state.say("answer_correct", True)
    state.step(-1)
    assert state.place == 0
    state.step(1)
    state.say("grounded", False)
    state.step(5)
    assert state.place == 2
    assert state.done == 2
    assert state.frame["query_id"].tolist() == state.queue[:2]
    state.step(-2)
    assert state.said("answer_correct") is True
    state.say("answer_correct", None)
    assert state.done == 1
    assert first not in state.frame["query_id"].tolist()


def test_labelling_is_checked():
    with pytest.raises(SettingsError, match="n must"):
        LabelState(frame(answer=["a"]), n=0)
    with pytest.raises(SettingsError, match="no query"):
        LabelState(frame(answer=[None]))
    with pytest.raises(SettingsError, match="finding"):
        LabelState(frame(answer=["a"])).say("fluent", True)


@pytest.fixture
def results():
    from ragdiag.recording import Run
    from ragdiag.results import Results

    ids = ["q0", "q1"]
    return Results(
        Run(
            pd.DataFrame({"query_id": ids, "query": ["<b>How?</b>", "When?"]}),
            pd.DataFrame({"query_id": ids, "chunk_id": ["d1", "d2"], "grade": 1}),
            pd.DataFrame(
                {"query_id": ids, "rank": 1, "chunk_id": ["d1", "d2"], "text": ["A chunk.", "B."]}
            ),
            pd.DataFrame({"query_id": ids, "status": "completed", "answer": ["So.", "Then."]}),
            pd.DataFrame(
                {
                    "query_id": ids,
                    "answer_correct": [True, False],
                    "grounded": [True, False],
                    "judge": "j",
                    "judge_reason": "canary-reason",
                }
            ),
        )
    )


def test_the_widget_mirrors_the_state_and_hides_the_verdict(results):
    from ragdiag.display.labeller import label

    widget = label(results)
    first = widget.state.current
    assert "canary-reason" not in widget.body.value
    assert "judged correct" not in widget.body.value
    assert "<b>How?</b>" not in widget.body.value
    widget.choices["answer_correct"].value = True
    assert widget.frame["query_id"].tolist() == [first]
    assert widget.counter.value == "answer 1 of 2; 1 labelled"
    widget.next.click()
    assert widget.choices["answer_correct"].value is None
    assert widget.next.disabled
    widget.previous.click()
    assert widget.choices["answer_correct"].value is True
    assert repr(widget) == "Labeller, 1 of 2 labelled: .frame has the labels"
    bundle = widget._repr_mimebundle_()
    assert bundle["text/html"] == widget.body.value
    assert agreement(results, widget.frame).sides["answer_correct"].accuracy.n == 1
    widget.close()
