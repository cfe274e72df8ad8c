"""Every measure against numbers worked out by hand, and properties that hold for any input."""

# ruff: noqa: E501 (the table of cases is one line a case)

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdiag import metrics
from ragdiag.errors import SettingsError
from ragdiag.metrics import retrieval_measures
from ragdiag.schema import RetrievedChunk

NAN = math.nan


def log2(value: float) -> float:
    return math.log2(value)


@dataclass(frozen=True)
class Case:
    """One query: what is labelled, what came, and its measures at k, worked out by hand."""

    name: str
    grades: dict[str, int]
    retrieved: str
    k: int
    precision: float
    precision_by_k: float
    recall: float
    hit: float
    ndcg: float
    reciprocal_rank: float
    average_precision: float
    first: float
    n_found: int

    def __str__(self) -> str:
        return self.name


A, AB, ABC = {"a": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 1}

# fmt: off
CASES = [
    #    name                          grades  retrieved  k  P    P by k  R   hit  nDCG                          RR   AP            first n_found
    Case("first",                      A,  "axyz",        3, 1/3, 1/3,  1,    1,   1,                            1,   1,            1,    1),
    Case("third, at the border of k",  A,  "xyaz",        3, 1/3, 1/3,  1,    1,   1/log2(4),                    1/3, 1/3,          3,    1),
    Case("just beyond k",              A,  "xyza",        3, 0,   0,    0,    0,   0,                            1/4, 1/4,          4,    0),
    Case("nothing relevant came",      A,  "xyz",         3, 0,   0,    0,    0,   0,                            0,   0,            NAN,  0),
    Case("nothing came",               A,  "",            3, 0,   0,    0,    0,   0,                            0,   0,            NAN,  0),
    Case("k beyond the list",          A,  "xa",          5, 1/2, 1/5,  1,    1,   1/log2(3),                    1/2, 1/2,          2,    1),
    Case("some of several",            ABC, "axbyz",      3, 2/3, 2/3,  2/3,  1,   (1+1/2)/(1+1/log2(3)+1/2),    1,   (1+2/3)/3,    1,    2),
    Case("all of several",             AB, "xab",         3, 2/3, 2/3,  1,    1,   (1/log2(3)+1/2)/(1+1/log2(3)), 1/2, (1/2+2/3)/2, 2,    2),
    Case("more relevant than k",       ABC, "abc",        2, 1,   1,    2/3,  1,   1,                            1,   1,            1,    2),
    Case("twice the same",             A,  "aax",         2, 1/2, 1/2,  1,    1,   1,                            1,   1,            1,    1),
    Case("twice, places are kept",     AB, "aab",         3, 2/3, 2/3,  1,    1,   (1+1/2)/(1+1/log2(3)),        1,   (1+2/3)/2,    1,    2),
    Case("twice what is irrelevant",   A,  "xxa",         2, 0,   0,    0,    0,   0,                            1/3, 1/3,          3,    0),
    Case("no label",                   {}, "abc",         3, NAN, NAN,  NAN,  NAN, NAN,                          NAN, NAN,          NAN,  0),
    Case("no label, nothing came",     {}, "",            3, NAN, NAN,  NAN,  NAN, NAN,                          NAN, NAN,          NAN,  0),
    Case("only grade 0",               {"a": 0}, "abc",   3, NAN, NAN,  NAN,  NAN, NAN,                          NAN, NAN,          NAN,  0),
    Case("grade 0 is not relevant",    {"a": 0, "b": 1}, "ab", 2, 1/2, 1/2, 1, 1,  1/log2(3),                    1/2, 1/2,          2,    1),
    Case("graded, best order",         {"a": 3, "b": 1}, "ab", 2, 1, 1, 1,    1,   1,                            1,   1,            1,    2),
    Case("graded, linear gain",        {"a": 3, "b": 1}, "ba", 2, 1, 1, 1,    1,   (1+3/log2(3))/(3+1/log2(3)),  1,   1,            1,    2),
    Case("graded, ideal cut at k",     {"a": 3, "b": 1, "c": 2}, "bx", 2, 1/2, 1/2, 1/3, 1, 1/(3+2/log2(3)),     1,   1/3,          1,    1),
    Case("a negative grade",           {"a": 1, "b": -2}, "ba", 2, 1/2, 1/2, 1, 1, 1/log2(3),                    1/2, 1/2,          2,    1),
    Case("k = 1",                      AB, "ba",          1, 1,   1,    1/2,  1,   1,                            1,   1,            1,    1),
]
# fmt: on


def arrays(queries: list[tuple[dict[str, int], list[str]]]) -> dict[str, np.ndarray]:
    """Return what the kernel takes, for some (grades, retrieved ids)."""
    pairs = [
        (position, retrieved.index(chunk) + 1 if chunk in retrieved else 0, grade)
        for position, (grades, retrieved) in enumerate(queries)
        for chunk, grade in grades.items()
    ]
    query, rank, grade = np.array(pairs, dtype=np.int64).reshape(-1, 3).T
    return {
        "pair_query": query,
        "pair_rank": rank,
        "pair_grade": grade.astype(np.float64),
        "n_retrieved": np.array([len(retrieved) for _, retrieved in queries], dtype=np.int64),
    }


def expected(case: Case) -> dict[str, float]:
    return {
        f"precision_at_{case.k}": case.precision,
        f"recall_at_{case.k}": case.recall,
        f"hit_rate_at_{case.k}": case.hit,
        f"ndcg_at_{case.k}": case.ndcg,
        f"n_found_at_{case.k}": case.n_found,
        "reciprocal_rank": case.reciprocal_rank,
        "average_precision": case.average_precision,
        "first_relevant_rank": case.first,
        "n_relevant": sum(grade >= 1 for grade in case.grades.values()),
    }


@pytest.mark.parametrize("case", CASES, ids=str)
def test_measures_of_one_query(case: Case):
    measures = retrieval_measures(**arrays([(case.grades, list(case.retrieved))]), ks=[case.k])
    assert {name: values.item() for name, values in measures.items()} == pytest.approx(
        expected(case), nan_ok=True
    )


def test_measures_of_all_queries_and_ks_at_once():
    queries = [(case.grades, list(case.retrieved)) for case in CASES]
    measures = retrieval_measures(**arrays(queries), ks=sorted({case.k for case in CASES}))
    for position, case in enumerate(CASES):
        ours = {name: measures[name][position] for name in expected(case)}
        assert ours == pytest.approx(expected(case), nan_ok=True)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_precision_may_divide_by_k(case: Case):
    measures = retrieval_measures(
        **arrays([(case.grades, list(case.retrieved))]), ks=[case.k], precision_denominator="k"
    )
    assert measures[f"precision_at_{case.k}"][0] == pytest.approx(case.precision_by_k, nan_ok=True)
    ours = metrics.precision_at_k(
        case.grades, list(case.retrieved), case.k, precision_denominator="k"
    )
    assert ours == pytest.approx(case.precision_by_k, nan_ok=True)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_functions_of_one_query(case: Case):
    grades, k = case.grades, case.k
    relevant = [chunk for chunk, grade in grades.items() if grade >= 1]
    for retrieved in (
        list(case.retrieved),
        [RetrievedChunk(id=chunk, text="...") for chunk in case.retrieved],
    ):
        ours = {
            "P": metrics.precision_at_k(relevant, retrieved, k),
            "R": metrics.recall_at_k(relevant, retrieved, k),
            "hit": metrics.hit_rate_at_k(relevant, retrieved, k),
            "nDCG": metrics.ndcg_at_k(grades, retrieved, k),
            "RR": metrics.reciprocal_rank(relevant, retrieved),
            "AP": metrics.average_precision(relevant, retrieved),
        }
        by_hand = {
            "P": case.precision,
            "R": case.recall,
            "hit": case.hit,
            "nDCG": case.ndcg,
            "RR": case.reciprocal_rank,
            "AP": case.average_precision,
        }
        assert ours == pytest.approx(by_hand, nan_ok=True)


def test_k_is_5_by_default():
    retrieved = list("wxyza")
    assert metrics.precision_at_k(["a"], retrieved) == 1 / 5
    assert metrics.recall_at_k(["a"], retrieved) == 1
    assert metrics.recall_at_k(["a"], ["v", *retrieved]) == 0
    assert metrics.hit_rate_at_k({"a"}, (chunk for chunk in retrieved)) == 1
    assert metrics.ndcg_at_k(["a"], retrieved) == pytest.approx(1 / log2(6))


def test_the_published_argument_names():
    given_by_name = {"relevant_chunk_ids": ["a"], "retrieved_chunks": ["x", "a"]}
    assert metrics.precision_at_k(**given_by_name, k=2) == 1 / 2
    assert metrics.recall_at_k(**given_by_name, k=2) == 1
    assert metrics.reciprocal_rank(**given_by_name) == 1 / 2
    assert metrics.mean_reciprocal_rank(reciprocal_ranks=[1.0, 0.0]) == 1 / 2


@pytest.mark.parametrize("k", [0, -1])
def test_a_depth_below_1_holds_nothing(k: int):
    assert metrics.precision_at_k(["a"], ["a", "b"], k) == 0
    assert metrics.precision_at_k(["a"], ["a", "b"], k, precision_denominator="k") == 0
    assert metrics.recall_at_k(["a"], ["a", "b"], k) == 0
    assert metrics.hit_rate_at_k(["a"], ["a", "b"], k) == 0
    assert metrics.ndcg_at_k(["a"], ["a", "b"], k) == 0


def test_mean_reciprocal_rank():
    assert metrics.mean_reciprocal_rank([1.0, 0.5, 0.0]) == 0.5
    assert metrics.mean_reciprocal_rank([1.0, NAN, 0.0]) == 0.5
    assert math.isnan(metrics.mean_reciprocal_rank([]))
    assert math.isnan(metrics.mean_reciprocal_rank([NAN]))


def test_one_text_is_not_several_ids():
    with pytest.raises(SettingsError, match=r"relevant_chunk_ids must be several ids.*'doc_17'"):
        metrics.recall_at_k("doc_17", ["doc_17"])
    with pytest.raises(SettingsError, match=r"retrieved_chunks must be several chunks.*'doc_17'"):
        metrics.recall_at_k(["doc_17"], "doc_17")


def test_unknown_options_are_refused():
    one = arrays([(A, ["a"])])
    with pytest.raises(SettingsError, match="k must be 1 or more, got 0"):
        retrieval_measures(**one, ks=[5, 0])
    with pytest.raises(SettingsError, match="must be 'retrieved' or 'k', got 'n'"):
        retrieval_measures(**one, ks=[5], precision_denominator="n")
    with pytest.raises(SettingsError, match="must be 'retrieved' or 'k', got 'n'"):
        metrics.precision_at_k(["a"], ["a"], precision_denominator="n")


def test_no_queries_and_no_ks():
    assert {len(values) for values in retrieval_measures(**arrays([]), ks=[3]).values()} == {0}
    assert set(retrieval_measures(**arrays([(A, ["a"])]), ks=[])) == {
        "reciprocal_rank",
        "average_precision",
        "first_relevant_rank",
        "n_relevant",
    }


@pytest.mark.parametrize("queries", [[], [({}, [])], [(A, [])], [({"a": 0}, ["a"])]], ids=str)
def test_types_do_not_depend_on_what_there_is(queries):
    for name, values in retrieval_measures(**arrays(queries), ks=[1, 5]).items():
        assert values.dtype == (np.int64 if name.startswith("n_") else np.float64), name
        assert values.shape == (len(queries),)


# Properties

chunks = st.sampled_from("abcdefgh")
query = st.tuples(
    st.dictionaries(chunks, st.integers(-1, 4), max_size=6), st.lists(chunks, max_size=12)
)
several = st.lists(query, min_size=1, max_size=6)
KS = [1, 2, 3, 5, 10, 50]
RATIOS = ("precision", "recall", "hit", "ndcg", "reciprocal", "average")


@given(several, st.sampled_from(["retrieved", "k"]))
def test_all_queries_at_once_equal_one_at_a_time(queries, denominator):
    measures = retrieval_measures(**arrays(queries), ks=KS, precision_denominator=denominator)
    for position, (grades, retrieved) in enumerate(queries):
        one = {
            "reciprocal_rank": metrics.reciprocal_rank(grades, retrieved),
            "average_precision": metrics.average_precision(grades, retrieved),
        }
        for k in KS:
            one[f"precision_at_{k}"] = metrics.precision_at_k(
                grades, retrieved, k, precision_denominator=denominator
            )
            one[f"recall_at_{k}"] = metrics.recall_at_k(grades, retrieved, k)
            one[f"hit_rate_at_{k}"] = metrics.hit_rate_at_k(grades, retrieved, k)
            one[f"ndcg_at_{k}"] = metrics.ndcg_at_k(grades, retrieved, k)
        ours = {name: measures[name][position] for name in one}
        assert ours == pytest.approx(one, nan_ok=True, rel=1e-12)


@given(several)
def test_bounds(queries):
    measures = retrieval_measures(**arrays(queries), ks=KS)
    for name, values in measures.items():
        known = values[~np.isnan(values)]
        assert (known >= 0).all(), name
        if name.startswith(RATIOS):
            assert (known <= 1 + 1e-12).all(), name
            assert (np.isnan(values) == (measures["n_relevant"] == 0)).all(), name
    assert (measures["average_precision"] <= measures["recall_at_50"] + 1e-12)[
        measures["n_relevant"] > 0
    ].all()


@given(several)
def test_more_depth_never_loses_what_was_found(queries):
    measures = retrieval_measures(**arrays(queries), ks=KS)
    for family in ("recall_at_{}", "hit_rate_at_{}", "n_found_at_{}"):
        deeper = np.array([measures[family.format(k)] for k in KS], dtype=float)
        rises = np.diff(deeper, axis=0)
        assert (rises[~np.isnan(rises)] >= 0).all()


@given(several, st.randoms(use_true_random=False))
def test_the_order_of_queries_and_pairs_does_not_matter(queries, random):
    order = random.sample(range(len(queries)), len(queries))
    inputs = arrays(queries)
    measures = retrieval_measures(**inputs, ks=KS)
    of_shuffled = retrieval_measures(**arrays([queries[place] for place in order]), ks=KS)
    pairs = random.sample(range(len(inputs["pair_query"])), len(inputs["pair_query"]))
    by_pair = {
        name: values if name == "n_retrieved" else values[pairs] for name, values in inputs.items()
    }
    of_shuffled_pairs = retrieval_measures(**by_pair, ks=KS)
    for name, values in measures.items():
        np.testing.assert_allclose(values[order], of_shuffled[name], rtol=1e-12)
        np.testing.assert_allclose(values, of_shuffled_pairs[name], rtol=1e-12)


@given(query)
def test_a_perfect_order_has_every_measure_at_its_best(one):
    grades, _ = one
    best = sorted((chunk for chunk in grades if grades[chunk] >= 1), key=lambda c: -grades[c])
    if best:
        measures = retrieval_measures(**arrays([(grades, best)]), ks=[1, 50])
        for name in ("ndcg_at_1", "ndcg_at_50", "precision_at_50", "recall_at_50"):
            assert measures[name][0] == pytest.approx(1)
        assert measures["average_precision"][0] == pytest.approx(1)


def test_inputs_are_left_alone():
    inputs = arrays([(case.grades, list(case.retrieved)) for case in CASES])
    before = {name: values.copy() for name, values in inputs.items()}
    for values in inputs.values():
        values.flags.writeable = False
    retrieval_measures(**inputs, ks=KS)
    for name, values in inputs.items():
        np.testing.assert_array_equal(values, before[name])
