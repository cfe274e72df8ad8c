"""Why a query changed, in one line."""

from __future__ import annotations

import pandas as pd
import pytest

from ragdiag.comparison import Comparison


def why(a, b) -> dict[str, str | None]:
    table = Comparison(a, b).changes
    return {
        row.query_id: None if pd.isna(row.why) else row.why for row in table.itertuples(index=False)
    }


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (7, 2, "chunk doc_0 came up from rank 7 to 2"),
        (2, 7, "chunk doc_0 fell from rank 2 to 7"),
        (0, 3, "chunk doc_0 now comes, at rank 3"),
        (3, 0, "chunk doc_0 no longer comes; it was at rank 3"),
    ],
)
def test_ranks_explain_retrieval(build, before, after, words):
    assert why(build("a", [before]), build("b", [after])) == {"q000": words}


@pytest.mark.parametrize(("finding", "words"), [("grounded", "grounded"), ("correct", "correct")])
def test_verdicts_explain_answers(build, finding, words):
    other = "correct" if finding == "grounded" else "grounded"
    good = build("a", [1], **{finding: [True], other: [True]})
    bad = build("b", [1], **{finding: [False], other: [True]})
    assert why(good, bad) == {"q000": f"the answer is no longer {words}"}
    assert why(bad, good) == {"q000": f"the answer is now {words}"}


def test_the_cause_of_the_category_comes_before_a_move_within_the_depth(build):
    a = build("a", [2], correct=[True], grounded=[True])
    b = build("b", [3], correct=[False], grounded=[True])
    assert why(a, b) == {"q000": "the answer is no longer correct"}


def test_failures_come_first(build):
    fine, broken = build("a", [1, 1]), build("b", [1, 1], failed=[0])
    assert why(fine, broken) == {"q000": "the pipeline now fails (retrieval failed: OSError: down)"}
    assert why(broken, fine)["q000"].startswith("the pipeline no longer fails")


def test_times_explain_what_is_left(build):
    assert why(build("a", [1], ms=[10.0]), build("b", [1], ms=[1_200.0])) == {
        "q000": "retrieval took 1,200 ms, before 10 ms"
    }


def test_unchanged_queries_are_not_listed_and_sides_are_named(build):
    table = Comparison(build("a", [1, 0]), build("b", [1, 1]), build("c", [0, 0])).changes
    assert table["pipeline"].tolist() == ["b", "c"]
    assert table["outcome"].tolist() == ["improved", "regressed"]
    assert Comparison(build("a", [1]), build("b", [1])).changes.empty
