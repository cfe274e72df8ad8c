from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragdiag.covers import complete_ranks, cover_measures, covered_at
from ragdiag.passages import find_covers, passage_names

QUERIES = pd.Series(["q1", "q2", "q3"])


def evidence(*rows):
    return pd.DataFrame(rows, columns=["query_id", "document", "start", "end", "text"])


def retrieved(*rows):
    """(query id, rank, text, metadata) as a table."""
    return pd.DataFrame(
        [
            (q, rank, text, None if about is None else json.dumps(about))
            for q, rank, text, about in rows
        ],
        columns=["query_id", "rank", "text", "metadata"],
    )


def place(start, end, document="d"):
    return {"document": document, "start": start, "end": end}


def test_measures_by_hand():
    covers = find_covers(
        QUERIES,
        evidence(("q1", "d", 10, 30, None), ("q1", "d", 100, 110, None)),
        # The second chunk repeats five characters of the first; the fourth adds nothing.
        retrieved(
            ("q1", 2, None, place(20, 40)),
            ("q1", 1, None, place(5, 25)),
            ("q1", 3, None, place(100, 120)),
            ("q1", 4, None, place(10, 30)),
            ("q2", 1, None, place(10, 30)),
        ),
    )
    assert covered_at(covers, 1).tolist() == [15, 0]
    assert covered_at(covers, 2).tolist() == [20, 0]
    assert covered_at(covers).tolist() == [20, 10]
    assert complete_ranks(covers, 0.75).tolist() == [1, 3]
    assert complete_ranks(covers, 0.76).tolist() == [2, 3]
    measures = cover_measures(covers, [1, 2, 4])
    first = {name: values[0] for name, values in measures.items()}
    assert first["recall_at_1"] == pytest.approx(15 / 30)
    assert first["recall_at_2"] == pytest.approx(20 / 30)
    assert first["recall_at_4"] == 1.0
    assert first["precision_at_2"] == pytest.approx(20 / 40)
    assert first["precision_at_4"] == pytest.approx(30 / 80)
    assert first["iou_at_2"] == pytest.approx(20 / (40 + 30 - 20))
    assert first["reciprocal_rank"] == 1.0
    assert first["average_precision"] == pytest.approx(
        15 / 30 * 15 / 20 + 5 / 30 * 20 / 40 + 10 / 30 * 30 / 60
    )
    assert first["ndcg_at_2"] == pytest.approx(15 / 30 + 5 / 30 / np.log2(3))
    # q2 has chunks and no evidence, q3 neither.
    assert all(np.isnan(values[1:]).all() for values in measures.values())


def test_nothing_retrieved_is_zero():
    covers = find_covers(QUERIES, evidence(("q3", "d", 0, 5, None)), retrieved())
    measures = cover_measures(covers, [5])
    for name in ("recall_at_5", "precision_at_5", "iou_at_5", "ndcg_at_5", "hit_rate_at_5"):
        assert measures[name][2] == 0.0
    assert measures["reciprocal_rank"][2] == 0.0
    assert measures["average_precision"][2] == 0.0
    assert np.isnan(measures["first_relevant_rank"][2])
    assert covers.comparable.all()


def test_white_space_does_not_count():
    text = "a b\n\nc  d"
    covers = find_covers(
        QUERIES,
        evidence(("q1", "d", 0, len(text), text)),
        retrieved(("q1", 1, text[:3], place(0, 3)), ("q1", 2, "  ", place(3, 5))),
    )
    assert covers.passage_size.tolist() == [4]
    assert covers.hit_new.tolist() == [2]
    assert covers.chunk_size.tolist() == [2, 0]


def test_a_crumb_does_not_make_a_chunk_relevant():
    covers = find_covers(
        QUERIES,
        evidence(("q1", "d", 0, 100, None)),
        retrieved(("q1", 1, None, place(95, 300)), ("q1", 2, None, place(90, 300))),
    )
    assert covers.chunk_relevant.tolist() == [False, True]
    measures = cover_measures(covers, [1])
    assert measures["recall_at_1"][0] == 0.05
    assert measures["hit_rate_at_1"][0] == 0.0
    assert measures["reciprocal_rank"][0] == 0.5


def test_a_split_passage_is_one_that_no_chunk_holds_whole():
    spans = evidence(("q1", "d", 10, 20, None), ("q2", "d", 10, 20, None))
    covers = find_covers(
        QUERIES,
        spans,
        retrieved(
            ("q1", 1, None, place(0, 15)),
            ("q1", 2, None, place(15, 30)),
            ("q2", 1, None, place(0, 15)),
            ("q2", 2, None, place(0, 30)),
        ),
    )
    assert covers.passage_split.tolist() == [True, False]


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        (place(10, 20), "x"),
        ({"source": "d", "start_index": 10}, "x" * 10),
        ({"doc_id": "d", "start_char_idx": 10, "end_char_idx": 20}, ""),
        ({"document_id": "d", "start": 10, "end": 20}, None),
    ],
)
def test_offsets_are_known_under_several_names(metadata, text):
    covers = find_covers(
        QUERIES, evidence(("q1", "d", 10, 20, None)), retrieved(("q1", 1, text, metadata))
    )
    assert covers.comparable[0]
    assert covers.hit_size.tolist() == [10]


@pytest.mark.parametrize(
    "metadata",
    [None, {}, [], {"document": "d"}, place(20, 10), place(-1, 5), place(True, 5), place("1", 5)],
)
def test_without_offsets_or_text_a_query_is_not_measured(metadata):
    covers = find_covers(
        QUERIES,
        evidence(("q1", "d", 10, 20, None), ("q2", "d", 1, 2, None)),
        retrieved(("q1", 1, "some text", metadata)),
    )
    assert covers.comparable.tolist() == [False, True, True]


def test_without_offsets_the_text_is_looked_for():
    passage = "Refunds take seven working days."
    covers = find_covers(
        QUERIES,
        evidence(("q1", "d", 5, 5 + len(passage), passage), ("q1", None, None, None, passage)),
        retrieved(
            ("q1", 1, f"... {passage} ...", None),
            # Offsets count where there are any, whatever the text says.
            ("q1", 2, passage, place(0, 5)),
            ("q1", 3, None, None),
        ),
    )
    assert not covers.comparable[0]
    covers = find_covers(
        QUERIES,
        evidence(("q1", "d", 5, 5 + len(passage), passage), ("q1", None, None, None, passage)),
        retrieved(("q1", 1, f"... {passage} ...", None), ("q1", 2, passage, place(0, 5))),
    )
    hits = list(zip(covers.hit_passage.tolist(), covers.hit_chunk.tolist(), strict=True))
    assert hits == [(0, 0), (1, 0), (1, 1)]


def test_unknown_queries_are_left_out():
    covers = find_covers(
        QUERIES,
        evidence(("q9", "d", 1, 2, None), ("q2", "d", 1, 2, None)),
        retrieved(("q9", 1, None, place(0, 5)), ("q2", 1, None, place(0, 5))),
    )
    assert covers.passage_row.tolist() == [1]
    assert covers.chunk_row.tolist() == [1]
    assert covered_at(covers).tolist() == [1]


def test_names_are_distinct_in_a_query():
    long = "word " * 40
    names = passage_names(
        evidence(
            ("q1", None, None, None, long),
            ("q1", None, None, None, f"{long} end"),
            ("q2", None, None, None, long),
            ("q1", "d", 1, 2, "x"),
        )
    )
    assert names[0] == names[2]
    assert names[1] == f"{names[0]} (2)"
    assert len(names[0]) <= 62
    assert names[3] == "d[1:2]"


spans = st.tuples(st.integers(0, 60), st.integers(1, 20)).map(lambda s: (s[0], s[0] + s[1]))


@settings(max_examples=60)
@given(st.lists(spans, min_size=1, max_size=3), st.lists(spans, max_size=8))
def test_covers_equal_sets_of_characters(passages, chunks):
    covers = find_covers(
        pd.Series(["q1"]),
        evidence(*(("q1", "d", start, end, None) for start, end in passages)),
        retrieved(*(("q1", rank, None, place(*span)) for rank, span in enumerate(chunks, 1))),
    )
    ks = [1, 2, 5, 100]
    measures = cover_measures(covers, ks)
    wanted = [set(range(*span)) for span in passages]
    for k in ks:
        came = set().union(*(range(*span) for span in chunks[:k]))
        held = [len(passage & came) for passage in wanted]
        assert covered_at(covers, k).tolist() == held
        assert measures[f"recall_at_{k}"][0] == pytest.approx(sum(held) / sum(map(len, wanted)))
        assert 0 <= measures[f"iou_at_{k}"][0] <= measures[f"precision_at_{k}"][0] <= 1
    for threshold in (0.3, 0.9, 1.0):
        for passage, rank in zip(wanted, complete_ranks(covers, threshold).tolist(), strict=True):
            depths = [
                k
                for k in range(1, len(chunks) + 1)
                if len(passage & set().union(*(range(*span) for span in chunks[:k])))
                >= threshold * len(passage) - 1e-9
            ]
            assert rank == min(depths, default=0)


def test_tokens_do_not_count_once_a_chunk_held_the_passage_whole():
    passage = "Refunds are paid back to the card within seven working days, fees excluded."
    near = passage.replace("paid", "given")
    table = evidence(("q1", None, None, None, passage))
    after = find_covers(QUERIES, table, retrieved(("q1", 1, passage, None), ("q1", 2, near, None)))
    before = find_covers(QUERIES, table, retrieved(("q1", 1, near, None), ("q1", 2, passage, None)))
    assert after.chunk_relevant.tolist() == [True, False]
    assert before.chunk_relevant.tolist() == [True, True]
    assert covered_at(after).tolist() == covered_at(before).tolist()
