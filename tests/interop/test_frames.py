"""Tables as runs, of one row a query and of one row a chunk."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ragdiag
from ragdiag import Run
from ragdiag.interop import chunk_id_of, query_id_of

WIDE = pd.DataFrame(
    {
        "no": ["q1", "q2", "q3"],
        "question": ["How long?", "How much?", "Who?"],
        "sources": [["a", "b"], [], ["c"]],
        "retrieved_scores": [[0.9, 0.5], [], [0.1]],
        "relevant_chunk_ids": [["b"], ["a"], None],
        "answer": ["7", None, None],
        "error": [None, None, "retrieval failed: down"],
        "retrieval_ms": [10.0, 20.0, np.nan],
        "team": ["x", "y", "z"],
    },
    index=[5, 5, 9],
)
NAMES = {"no": "query_id", "question": "query", "sources": "retrieved_chunk_ids"}


class TestOneRowAQuery:
    def test_all_tables(self):
        run = Run.from_frame(WIDE, NAMES, pipeline_name="mine", dataset_name="asked")
        assert (run.pipeline_name, run.dataset_name) == ("mine", "asked")
        assert run.retrieved[["query_id", "rank", "chunk_id", "score"]].values.tolist() == [
            ["q1", 1, "a", 0.9],
            ["q1", 2, "b", 0.5],
            ["q3", 1, "c", 0.1],
        ]
        assert run.qrels.values.tolist() == [["q1", "b", 1], ["q2", "a", 1]]
        assert run.outcomes["status"].tolist() == ["completed", "completed", "failed"]
        assert run.queries["team"].tolist() == ["x", "y", "z"]
        assert run.outcomes["retrieval_ms"].tolist()[:2] == [10.0, 20.0]

    def test_lists_as_arrays_json_and_reprs(self):
        plain = Run.from_frame(WIDE, NAMES)
        for cast in (np.array, repr, lambda cell: str(cell).replace("'", '"')):
            frame = WIDE.assign(sources=[cast(cell) for cell in WIDE["sources"]])
            assert Run.from_frame(frame, NAMES).retrieved.equals(plain.retrieved)

    def test_documents_texts_and_made_ids(self):
        frame = pd.DataFrame(
            {
                "query": ["How long?", "How much?"],
                "retrieved_chunks": [[{"id": "a", "text": "Seven days."}, "Two weeks."], []],
            }
        )
        run = Run.from_frame(frame)
        assert run.queries["query_id"].tolist() == list(map(query_id_of, frame["query"]))
        assert run.retrieved["chunk_id"].tolist() == ["a", chunk_id_of("Two weeks.")]
        assert run.retrieved["text"].tolist() == ["Seven days.", "Two weeks."]

    def test_verdicts_and_grades(self):
        frame = pd.DataFrame(
            {
                "query_id": ["q1", "q2"],
                "grounded": [False, None],
                "relevant_chunk_ids": [["a", "b"], ["a"]],
                "grades": [{"a": 2}, None],
                "retrieved_chunk_ids": [["a", "b"], ["a"]],
            }
        )
        run = Run.from_frame(frame)
        assert run.qrels["grade"].tolist() == [2, 1, 1]
        assert run.verdicts["query_id"].tolist() == ["q1"]
        results = ragdiag.diagnose(frame)
        assert results.frame["category"].tolist() == ["RETRIEVED_BUT_NOT_GROUNDED", "PASS"]

    def test_without_lists_there_is_no_retrieval(self):
        run = Run.from_frame(pd.DataFrame({"query": ["Who?"], "answer": ["Me"]}))
        assert len(run.retrieved) == 0


class TestOneRowAChunk:
    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "query_id": ["q2", "q1", "q1", "q3"],
                "query": ["How much?", "How long?", "How long?", "Who?"],
                "chunk_id": ["c", "b", "a", None],
                "rank": [0, 7, 3, None],
                "score": [0.1, 0.2, 0.9, None],
                "page": [1, 2, 3, 4],
                "team": ["y", "x", "x", "z"],
                "relevant": [True, False, True, False],
            }
        )

    def test_order_is_of_queries_and_of_rows(self):
        run = Run.from_frame(self.frame())
        assert run.queries["query_id"].tolist() == ["q2", "q1", "q3"]
        assert run.queries["team"].tolist() == ["y", "x", "z"]
        # q3 has a row and no chunk: it found nothing.
        assert run.retrieved[["query_id", "rank", "chunk_id"]].values.tolist() == [
            ["q2", 1, "c"],
            ["q1", 1, "a"],
            ["q1", 2, "b"],
        ]
        assert run.outcomes["status"].tolist() == ["completed"] * 3

    def test_without_ranks_the_rows_are_in_order(self):
        for frame in (self.frame().drop(columns="rank"), self.frame().assign(rank=[1, None, 2, 3])):
            assert Run.from_frame(frame).retrieved["chunk_id"].tolist() == ["c", "b", "a"]

    def test_what_differs_by_chunk_is_of_the_chunk(self):
        run = Run.from_frame(self.frame().iloc[:3])
        assert run.retrieved["metadata"].tolist() == ['{"page": 1}', '{"page": 3}', '{"page": 2}']
        assert "page" not in run.queries

    def test_the_chunks_of_results_come_back(self):
        run = Run.from_frame(WIDE, NAMES)
        chunks = ragdiag.diagnose(run).chunks
        again = Run.from_frame(chunks)
        pd.testing.assert_frame_equal(again.retrieved, run.retrieved)

    def test_texts_without_ids(self):
        frame = pd.DataFrame({"query": ["Who?"] * 2, "text": ["Me.", "You."]})
        assert Run.from_frame(frame).retrieved["chunk_id"].tolist() == [
            chunk_id_of("Me."),
            chunk_id_of("You."),
        ]


@pytest.mark.parametrize(
    ("frame", "columns", "said"),
    [
        ({"a": [1]}, {}, r"needs a column 'query_id' or 'query'; its columns are \['a'\]"),
        ({"a": [1]}, {"b": "query"}, "columns= renames 'b', which the frame does not have"),
        ({"a": ["x"], "query": ["y"]}, {"a": "query"}, "two columns are called 'query'"),
        ({"query_id": ["q1", None]}, {}, "row 1: query_id must be text"),
        ({"query": ["", "b"]}, {}, "row 0: query must be text, got ''"),
        ({"query_id": ["q", "q"]}, {}, "query 'q' has several rows and no row has a chunk_id"),
        (
            {"query_id": ["q"], "retrieved_chunk_ids": [["a"]], "retrieved_scores": [[1, 2]]},
            {},
            "row 0: its lists are of different lengths",
        ),
        (
            {"query_id": ["q", "q"], "chunk_id": ["a", "b"], "answer": ["x", "y"]},
            {},
            "column 'answer' differs between the rows of query 'q'",
        ),
        (
            {"query_id": ["q"], "chunk_id": ["a"], "rank": ["first"]},
            {},
            "row 0: rank must be a whole number of at least 1, got 'first'",
        ),
        ({"query_id": ["q"], "status": ["ok"]}, {}, "status must be 'completed' or 'failed'"),
        (
            {"query_id": ["q"], "relevant_chunk_ids": [[None]]},
            {},
            "query 'q': relevant_chunk_ids must be a list of ids",
        ),
    ],
)
def test_faults_are_placed(frame: dict, columns: dict, said: str):
    with pytest.raises(ragdiag.RunError, match=said):
        Run.from_frame(pd.DataFrame(frame), columns)


def test_a_file_with_our_names(write):
    rows = (
        '{"query_id": "q1", "query": "Who?", "retrieved_chunk_ids": ["a"], "answer": "Me"}\n{oops\n'
    )
    run = ragdiag.load_run(write("mine.jsonl", rows))
    assert run.info["format"] == "table"
    assert run.retrieved["chunk_id"].tolist() == ["a"]
    assert "1 record of mine.jsonl left out" in run.info["notes"][0]
    csv = "query_id,chunk_id,score\nq1,a,0.5\nq1,b,0.25\n"
    run = ragdiag.load_run(write("mine.csv", csv))
    assert run.retrieved["score"].tolist() == [0.5, 0.25]


ids = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1).filter(
    str.strip
)


@settings(deadline=None, max_examples=40)
@given(
    st.dictionaries(
        ids,
        st.tuples(
            st.lists(st.tuples(ids, st.floats(-1e6, 1e6)), max_size=4),
            st.none() | ids,
            st.lists(ids, max_size=3, unique=True),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_wide_and_long_are_the_same(rows: dict):
    wide = pd.DataFrame(
        {
            "query_id": list(rows),
            "retrieved_chunk_ids": [[name for name, _ in row[0]] for row in rows.values()],
            "retrieved_scores": [[score for _, score in row[0]] for row in rows.values()],
            "answer": [row[1] for row in rows.values()],
            "relevant_chunk_ids": [row[2] for row in rows.values()],
        }
    )
    long = pd.DataFrame(
        [
            {"query_id": query_id, "chunk_id": name, "score": score, "answer": row[1]}
            for query_id, row in rows.items()
            for name, score in row[0] or [(None, None)]
        ]
    )
    one, other = Run.from_frame(wide), Run.from_frame(long)
    for table in ("retrieved", "outcomes"):
        pd.testing.assert_frame_equal(getattr(one, table), getattr(other, table))
    assert one.qrels["query_id"].tolist() == [name for name, row in rows.items() for _ in row[2]]
