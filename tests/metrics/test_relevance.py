"""The ranks of labelled chunks equal those of a plain dictionary, whatever ids and tables are."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragdiag.errors import RunError
from ragdiag.relevance import BLOCK, query_positions, relevant_ranks

Rows = list[tuple[str, str, int]]


def table(rows: Rows, *columns: str) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(columns)).astype({columns[0]: "str", columns[1]: "str"})


def qrels_of(rows: Rows) -> pd.DataFrame:
    return table(rows, "query_id", "chunk_id", "grade").astype({"grade": int})


def retrieved_of(rows: Rows) -> pd.DataFrame:
    return table(rows, "query_id", "chunk_id", "rank").astype({"rank": int})


def plain_ranks(
    queries: list[str], qrels: Rows, retrieved: Rows
) -> tuple[dict[tuple[str, str], tuple[int, int]], Counter[str]]:
    """Return {(query, chunk): (rank, grade)} and the number retrieved, by dictionaries."""
    first: dict[tuple[str, str], int] = {}
    for query, chunk, rank in retrieved:
        first[query, chunk] = min(rank, first.get((query, chunk), rank))
    pairs: dict[tuple[str, str], tuple[int, int]] = {}
    known = set(queries)
    for query, chunk, grade in qrels:
        if query in known and (query, chunk) not in pairs:
            pairs[query, chunk] = (first.get((query, chunk), 0), grade)
    return pairs, Counter(row[0] for row in retrieved)


def assert_as_plain(queries: list[str], qrels: Rows, retrieved: Rows) -> None:
    ranks = relevant_ranks(
        pd.Series(queries, dtype="str"), qrels_of(qrels), retrieved_of(retrieved)
    )
    pairs, n_retrieved = plain_ranks(queries, qrels, retrieved)
    found = {
        (qrels[row][0], qrels[row][1]): (rank, grade)
        for row, rank, grade in zip(ranks.pair_row, ranks.pair_rank, ranks.pair_grade, strict=True)
    }
    assert found == pairs
    assert len(ranks.pair_row) == len(pairs)
    assert [queries[position] for position in ranks.pair_query] == [
        qrels[row][0] for row in ranks.pair_row
    ]
    assert (np.diff(ranks.pair_query) >= 0).all()
    assert ranks.n_retrieved.tolist() == [n_retrieved[query] for query in queries]
    known = set(queries)
    assert ranks.n_unknown_retrieved == sum(row[0] not in known for row in retrieved)
    assert ranks.n_unknown_pairs == sum(row[0] not in known for row in qrels)
    assert ranks.n_unknown_pairs + ranks.n_repeated_pairs + len(pairs) == len(qrels)


# Few letters make ids that collide, contain one another and differ in one place only.
ids = st.one_of(
    st.text("ab", max_size=3),
    st.text("aé☃𝄞", max_size=5),
    st.builds("docs/{}/chapter.md#{}".format, st.text("01", max_size=4), st.integers(0, 3)),
    st.uuids().map(str),
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[str], Rows, Rows]:
    queries = draw(st.lists(ids, unique=True, max_size=5))
    chunks = draw(st.lists(ids, min_size=1, max_size=8))
    asked = st.sampled_from([*queries, "stranger", ""])
    chunk = st.sampled_from(chunks)
    qrels = draw(st.lists(st.tuples(asked, chunk, st.integers(0, 3)), max_size=12))
    returned = draw(st.lists(st.tuples(asked, chunk), max_size=20))
    depth: dict[str, int] = {}
    retrieved = []
    for query, chunk_id in returned:
        depth[query] = depth.get(query, 0) + 1
        retrieved.append((query, chunk_id, depth[query]))
    return queries, qrels, draw(st.permutations(retrieved))


@given(cases())
@example((["q"], [("q", "", 1)], [("q", "", 1)]))
@example(([], [("q", "a", 1)], [("q", "a", 1)]))
@example((["q"], [], []))
@settings(deadline=None)
def test_ranks_are_those_of_a_dictionary(case):
    assert_as_plain(*case)


def in_the_middle(number: int) -> str:
    return f"corpus/finance/{number:05d}/the_annual_report_of_the_whole_company.pdf"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("d{}".format, id="mixed lengths"),
        pytest.param("doc_{:08d}".format, id="equal lengths"),
        pytest.param(in_the_middle, id="all fingerprints equal"),
        pytest.param("{}_is_the_number_in_front_of_a_long_id".format, id="different at the start"),
        pytest.param("документ-{}-☃".format, id="not ASCII"),
        pytest.param(lambda number: "x" * (number % 700), id="one letter, any length"),
    ],
)
@pytest.mark.parametrize("shuffled", [False, True], ids=["by query", "shuffled"])
def test_more_rows_than_a_block(name: Callable[[int], str], shuffled: bool):
    rng = np.random.default_rng(7)
    n_queries, depth = 700, 50
    assert n_queries * depth > BLOCK
    queries = [name(number) for number in range(n_queries)]
    retrieved = [
        (query, name(chunk), rank)
        for query in queries
        for rank, chunk in enumerate(rng.choice(700, depth, replace=False), 1)
    ]
    qrels = [(query, name(chunk), 1) for query in queries for chunk in rng.integers(0, 700, 3)]
    if shuffled:
        retrieved = [retrieved[row] for row in rng.permutation(len(retrieved))]
    assert_as_plain(queries, qrels, retrieved)


TEXT_TYPES = {
    "object": lambda values: pd.Series(values, dtype=object),
    "str": lambda values: pd.Series(values, dtype="str"),
    "string[python]": lambda values: pd.Series(values, dtype="string[python]"),
    "string[pyarrow]": lambda values: pd.Series(values, dtype="string[pyarrow]"),
    "arrow string": lambda values: pd.Series(values, dtype=pd.ArrowDtype(pa.string())),
    "arrow large_string": lambda values: pd.Series(values, dtype=pd.ArrowDtype(pa.large_string())),
    "categorical": lambda values: pd.Series(values, dtype="category"),
    "arrow dictionary": lambda values: pd.Series(
        pa.array(values).dictionary_encode(),
        dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())),
    ),
    "chunked": lambda values: pd.Series(
        pd.arrays.ArrowExtensionArray(
            pa.chunked_array([values[:1], [], values[1:3], values[3:]], pa.string())
        )
    ),
    "chunked, dictionary": lambda values: pd.Series(
        pd.arrays.ArrowExtensionArray(
            pa.chunked_array(
                [pa.array(part).dictionary_encode() for part in (values[:2], values[2:])]
            )
        )
    ),
    "a slice": lambda values: pd.Series(["skipped", *values, "end"], dtype="string[pyarrow]")[1:-1],
}


if hasattr(pa, "string_view"):
    TEXT_TYPES["arrow string_view"] = lambda values: pd.Series(
        pd.arrays.ArrowExtensionArray(pa.chunked_array([values], pa.string_view()))
    )


@pytest.mark.parametrize(
    ("query_type", "chunk_type"),
    [
        *((name, "str") for name in TEXT_TYPES),
        *(("object", name) for name in TEXT_TYPES),
        *((name, name) for name in TEXT_TYPES),
    ],
)
def test_every_text_type_gives_the_same(query_type: str, chunk_type: str):
    as_query, as_chunk = TEXT_TYPES[query_type], TEXT_TYPES[chunk_type]
    retrieved = pd.DataFrame(
        {
            "query_id": as_query(["q2", "q1", "q1", "q1", "stranger"]).array,
            "chunk_id": as_chunk(["b", "x", "é", "", "b"]).array,
            "rank": [1, 2, 1, 3, 1],
        },
        index=[5, 5, 1, 2, 0],
    )
    qrels = pd.DataFrame(
        {
            "query_id": as_query(["q1", "q2", "q1", "q1"]).array,
            "chunk_id": as_chunk(["é", "b", "", "y"]).array,
        }
    )
    ranks = relevant_ranks(as_query(["q1", "q2", "q3"]), qrels, retrieved)
    assert ranks.pair_row.tolist() == [0, 2, 3, 1]
    assert ranks.pair_rank.tolist() == [1, 3, 0, 1]
    assert ranks.pair_grade.tolist() == [1, 1, 1, 1]
    assert ranks.n_retrieved.tolist() == [3, 1, 0]


@pytest.mark.parametrize("dtype", ["int64", "Int64", "float64", "int32", "int64[pyarrow]"])
def test_ranks_and_grades_may_be_of_any_numeric_type(dtype: str):
    qrels = qrels_of([("q", "a", 2), ("q", "b", 0)]).astype({"grade": dtype})
    retrieved = retrieved_of([("q", "b", 2), ("q", "a", 1)]).astype({"rank": dtype})
    ranks = relevant_ranks(pd.Series(["q"]), qrels, retrieved)
    assert ranks.pair_rank.tolist() == [1, 2]
    assert ranks.pair_grade.tolist() == [2, 0]
    assert ranks.pair_rank.dtype == np.int64
    assert ranks.pair_grade.dtype == np.float64


def test_a_missing_grade_is_1():
    qrels = qrels_of([("q", "a", 2), ("q", "b", 0)]).astype({"grade": "Int64"})
    qrels.loc[0, "grade"] = pd.NA
    assert relevant_ranks(pd.Series(["q"]), qrels, retrieved_of([])).pair_grade.tolist() == [1, 0]


def test_missing_ids_match_nothing():
    qrels = pd.DataFrame({"query_id": ["q", "q", None], "chunk_id": [None, "a", "a"]})
    retrieved = pd.DataFrame(
        {"query_id": ["q", "q", None], "chunk_id": [None, "a", "a"], "rank": [1, 2, 1]}
    )
    ranks = relevant_ranks(pd.Series(["q"]), qrels, retrieved)
    assert ranks.pair_rank.tolist() == [0, 2]
    assert ranks.n_retrieved.tolist() == [2]
    assert ranks.n_unknown_retrieved == 1


def test_a_missing_label_is_not_that_of_another_query():
    qrels = pd.DataFrame({"query_id": ["p", "p", "q"], "chunk_id": [None, "a", None]})
    retrieved = retrieved_of([("p", "a", 1), ("q", "a", 1)])
    ranks = relevant_ranks(pd.Series(["p", "q"]), qrels, retrieved)
    assert ranks.pair_rank.tolist() == [0, 1, 0]


def test_a_pair_labelled_twice_counts_once_with_its_first_grade():
    qrels = qrels_of([("q", "b", 1), ("q", "a", 2), ("q", "a", 0)])
    ranks = relevant_ranks(pd.Series(["q"]), qrels, retrieved_of([("q", "a", 4)]))
    assert ranks.pair_row.tolist() == [0, 1]
    assert ranks.pair_grade.tolist() == [1, 2]
    assert ranks.pair_rank.tolist() == [0, 4]
    assert ranks.n_repeated_pairs == 1


def test_a_chunk_retrieved_twice_counts_at_its_better_rank_and_keeps_its_places():
    retrieved = retrieved_of([("q", "a", 5), ("q", "a", 2), ("q", "x", 1)])
    ranks = relevant_ranks(pd.Series(["q"]), qrels_of([("q", "a", 1)]), retrieved)
    assert ranks.pair_rank.tolist() == [2]
    assert ranks.n_retrieved.tolist() == [3]


QRELS = qrels_of([("q", "a", 1), ("q", "b", 1)])
RETRIEVED = retrieved_of([("q", "a", 1), ("q", "b", 2)])


@pytest.mark.parametrize(
    ("queries", "qrels", "retrieved", "message"),
    [
        (["q", "p", "q"], QRELS, RETRIEVED, "query id 'q' occurs more than once"),
        (["q"], QRELS, RETRIEVED.assign(rank=[1, 0]), "row 1: ranks count from 1, got 0"),
        (["q"], QRELS, RETRIEVED.assign(rank=[1, np.nan]), "row 1: ranks count from 1, got nan"),
        (["q"], QRELS, RETRIEVED.assign(rank=["1", "second"]), "column 'rank': not a number"),
        (["q"], QRELS, RETRIEVED.assign(rank=[3, 3]), "query 'q': several chunks have rank 3"),
        (["q"], QRELS, RETRIEVED.assign(chunk_id=[1, 2]), "column 'chunk_id': ids must be text"),
        (["q"], QRELS, RETRIEVED.assign(query_id=["q", 7]), "column 'query_id': ids must be text"),
        (["q\ud800"], QRELS, RETRIEVED, "table 'queries', column 'query_id': ids must be text"),
        (["q"], QRELS.drop(columns="chunk_id"), RETRIEVED, r"no column 'chunk_id'; .*'grade'"),
        (["q"], QRELS, RETRIEVED.drop(columns="rank"), "table 'retrieved' has no column 'rank'"),
        (["q"], QRELS.assign(grade=["good", "1"]), RETRIEVED, "column 'grade': not a number"),
    ],
)
def test_what_cannot_be_right_is_refused(queries, qrels, retrieved, message):
    with pytest.raises(RunError, match=message):
        relevant_ranks(pd.Series(queries, dtype=object), qrels, retrieved)


def test_memory_stays_below_four_times_the_tables():
    n_queries, depth = 3_000, 50
    queries = np.array([f"query-{number}" for number in range(n_queries)])
    chunks = np.array([f"chunk-{number}" for number in range(n_queries)])
    retrieved = pd.DataFrame(
        {
            "query_id": pd.Series(np.repeat(queries, depth), dtype="string[pyarrow]"),
            "chunk_id": pd.Series(np.tile(chunks, depth), dtype="string[pyarrow]"),
            "rank": np.tile(np.arange(1, depth + 1), n_queries),
        }
    )
    qrels = retrieved.iloc[::20]
    pool, counted = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(counted)
    tracemalloc.start()
    try:
        relevant_ranks(pd.Series(queries), qrels, retrieved)
        needed = tracemalloc.get_traced_memory()[1] + counted.max_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(pool)
    tables = sum(table.memory_usage(deep=True).sum() for table in (qrels, retrieved))
    assert needed + tables < 4 * tables


def test_query_positions():
    positions = query_positions(pd.Series(["b", "b", "x", "a"]), pd.Series(["a", "b"]))
    assert positions.tolist() == [1, 1, -1, 0]
