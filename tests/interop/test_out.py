"""Runs on their way out: TREC files and what others make of them, ragas, deepeval, Arrow..."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ragdiag
from ragdiag import Run
from ragdiag.interop.trec import escaped, unescaped


def awkward_run() -> Run:
    """Return a run with all that a TREC file has no word for."""
    queries = ["plain", "with space", "50%", "tied", "nothing", "failed", "twice"]
    found = {
        "plain": [("a", 0.9), ("b", 0.5)],
        "with space": [("page 3", 0.9), ("tab\there", 0.8)],
        "50%": [("c%20d", None), ("é", None)],
        "tied": [("z", 0.5), ("a", 0.5), ("m", 0.5 + 1e-12)],
        "nothing": [],
        "twice": [("a", 3.0), ("a", 2.0), ("b", 1.0)],
    }
    relevant = {
        "plain": ["b"],
        "with space": ["page 3", "other page"],
        "50%": ["c%20d"],
        "tied": ["a"],
        "nothing": ["a"],
        "failed": ["a"],
        "twice": ["b"],
    }
    rows = [
        (query, rank, chunk, score)
        for query, chunks in found.items()
        for rank, (chunk, score) in enumerate(chunks, 1)
    ]
    return Run(
        pd.DataFrame({"query_id": queries, "query": [f"About\n{each}?" for each in queries]}),
        pd.DataFrame(
            [(query, chunk, 1) for query, chunks in relevant.items() for chunk in chunks],
            columns=["query_id", "chunk_id", "grade"],
        ),
        pd.DataFrame(rows, columns=["query_id", "rank", "chunk_id", "score"]),
        pd.DataFrame(
            {
                "query_id": queries,
                "status": ["failed" if each == "failed" else "completed" for each in queries],
                "error": ["boom" if each == "failed" else None for each in queries],
            }
        ),
        pipeline_name="my pipeline",
        dataset_name="asked",
        dataset_version="2",
    )


class TestTrec:
    def test_what_is_written(self, tmp_path: Path):
        awkward_run().to_trec(tmp_path / "out")
        lines = (tmp_path / "out" / "run.trec").read_text().splitlines()
        assert lines == [
            "plain Q0 a 1 0.9 my_pipeline",
            "plain Q0 b 2 0.5 my_pipeline",
            "with%20space Q0 page%203 1 0.9 my_pipeline",
            "with%20space Q0 tab%09here 2 0.8 my_pipeline",
            "50%25 Q0 c%2520d 1 2 my_pipeline",
            "50%25 Q0 é 2 1 my_pipeline",
            "tied Q0 z 1 3 my_pipeline",
            "tied Q0 a 2 2 my_pipeline",
            "tied Q0 m 3 1 my_pipeline",
            "nothing Q0 %empty 1 1 my_pipeline",
            "twice Q0 a 1 3.0 my_pipeline",
            "twice Q0 a%repeat2 2 2.0 my_pipeline",
            "twice Q0 b 3 1.0 my_pipeline",
        ]
        assert (tmp_path / "out" / "qrels.trec").read_text().splitlines()[1:3] == [
            "with%20space 0 page%203 1",
            "with%20space 0 other%20page 1",
        ]

    def test_it_comes_back(self, tmp_path: Path):
        run = awkward_run()
        again = ragdiag.load_run(run.to_trec(tmp_path))
        assert again.queries["query_id"].tolist() == run.queries["query_id"].tolist()
        assert again.queries["query"][1] == "About with space?"
        assert again.retrieved[["query_id", "rank", "chunk_id"]].equals(
            run.retrieved[["query_id", "rank", "chunk_id"]]
        )
        assert again.qrels.equals(run.qrels)
        ours = run.outcomes.set_index("query_id").loc[again.outcomes["query_id"]]
        assert again.outcomes["status"].tolist() == ours["status"].tolist()
        assert again.outcomes["error"].tolist()[-1] == "boom"
        assert (again.pipeline_name, again.dataset_name, again.dataset_version) == (
            "my pipeline",
            "asked",
            "2",
        )
        measures = ["recall_at_5", "precision_at_5", "reciprocal_rank", "ndcg_at_5", "category"]
        pd.testing.assert_frame_equal(
            ragdiag.diagnose(again).frame[measures], ragdiag.diagnose(run).frame[measures]
        )

    def test_trec_eval_says_the_same(self, tmp_path: Path):
        pytrec_eval = pytest.importorskip("pytrec_eval")
        run = awkward_run()
        folder = run.to_trec(tmp_path)
        with (folder / "run.trec").open() as stream:
            ranked = pytrec_eval.parse_run(stream)
        with (folder / "qrels.trec").open() as stream:
            qrels = pytrec_eval.parse_qrel(stream)
        names = {"recall_5", "P_5", "recip_rank", "map", "ndcg_cut_5"}
        theirs = pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(ranked)
        self._agree(run, theirs)

    def test_ir_measures_says_the_same(self, tmp_path: Path):
        ir_measures = pytest.importorskip("ir_measures")
        run = awkward_run()
        folder = run.to_trec(tmp_path)
        measures = {
            "recall_5": ir_measures.R @ 5,
            "P_5": ir_measures.P @ 5,
            "recip_rank": ir_measures.RR,
            "map": ir_measures.AP,
            "ndcg_cut_5": ir_measures.nDCG @ 5,
        }
        found: dict[str, dict[str, float]] = {}
        called = {str(measure): name for name, measure in measures.items()}
        for each in ir_measures.iter_calc(
            list(measures.values()),
            list(ir_measures.read_trec_qrels(str(folder / "qrels.trec"))),
            list(ir_measures.read_trec_run(str(folder / "run.trec"))),
        ):
            found.setdefault(each.query_id, {})[called[str(each.measure)]] = each.value
        found.pop("failed", None)  # a query without lines is one of 0 to ir_measures
        self._agree(run, found)

    @pytest.mark.filterwarnings("ignore")
    def test_ranx_says_the_same(self, tmp_path: Path):
        ranx = pytest.importorskip("ranx")
        run = awkward_run()
        folder = run.to_trec(tmp_path)
        names = {
            "recall_5": "recall@5",
            "P_5": "precision@5",
            "recip_rank": "mrr",
            "map": "map",
            "ndcg_cut_5": "ndcg@5",
        }
        ranked = ranx.Run.from_file(str(folder / "run.trec"), kind="trec")
        ranx.evaluate(
            ranx.Qrels.from_file(str(folder / "qrels.trec"), kind="trec"),
            ranked,
            list(names.values()),
            make_comparable=True,
        )
        theirs: dict[str, dict[str, float]] = {}
        for name, metric in names.items():
            for query_id, value in ranked.scores[metric].items():
                theirs.setdefault(query_id, {})[name] = value
        theirs.pop("failed", None)
        self._agree(run, theirs)

    @staticmethod
    def _agree(run: Run, theirs: dict):
        ours = ragdiag.diagnose(run, precision_denominator="k").frame.set_index("query_id")
        completed = ours[ours["status"] == "completed"]
        assert set(theirs) == set(map(escaped, completed.index))
        for query_id, row in completed.iterrows():
            other = theirs[escaped(query_id)]
            for name, column in {
                "recall_5": "recall_at_5",
                "P_5": "precision_at_5",
                "recip_rank": "reciprocal_rank",
                "map": "average_precision",
                "ndcg_cut_5": "ndcg_at_5",
            }.items():
                assert row[column] == pytest.approx(other[name], abs=1e-6), (query_id, name)

    def test_the_official_run_in_the_order_of_trec_eval(self, repository: Path, tmp_path: Path):
        folder = repository / "tests" / "data" / "trec_eval"
        for name in ("results.test", "qrels.test"):
            (tmp_path / name).write_bytes(gzip.decompress((folder / f"{name}.gz").read_bytes()))
        results = ragdiag.diagnose(tmp_path, k=10, precision_denominator="k")
        expected = {}
        for line in gzip.decompress((folder / "out.test.aq.gz").read_bytes()).decode().splitlines():
            name, query, value = line.split()
            if query != "all":
                expected.setdefault(query, {})[name] = value
        assert len(results) == len(expected)
        frame = results.frame.set_index("query_id")
        for query, values in expected.items():
            row = frame.loc[query]
            assert f"{row['reciprocal_rank']:.4f}" == values["recip_rank"]
            assert f"{row['average_precision']:.4f}" == values["map"]
            assert f"{row['precision_at_10']:.4f}" == values["P_10"]
            assert f"{row['recall_at_10']:.4f}" == values["recall_10"]
            assert f"{row['ndcg_at_10']:.4f}" == values["ndcg_cut_10"]

    def test_a_run_alone_and_a_dataset_beside_it(self, write):
        run = write("bm25.run", "q1 Q0 a 1 2.5 tag\nq1 Q0 b 2 3.5 tag\nq1 Q0 c x y tag\n\n")
        dataset = pd.DataFrame(
            {"query_id": ["q1"], "query": ["Who?"], "relevant_chunk_ids": [["b"]]}
        )
        loaded = ragdiag.load_run(run)
        assert loaded.retrieved["chunk_id"].tolist() == ["b", "a"]
        assert loaded.info["skipped"] == [
            {"place": "bm25.run line 3", "reason": "its score is not a number"}
        ]
        assert any("the rank column tells another order" in note for note in loaded.info["notes"])
        results = ragdiag.diagnose(run, dataset)
        assert results.frame["first_relevant_rank"].tolist() == [1]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("q1 Q0 a\n", r"no line is one of a run: bm25.run line 1: it does not have 6 words"),
            ("", "no line is one of a run"),
        ],
    )
    def test_damage(self, write, text: str, said: str):
        with pytest.raises(ragdiag.RunFormatError, match=said):
            ragdiag.load_run(write("bm25.run", text), "trec")

    def test_a_beir_folder(self, shared_data: Path):
        folder = shared_data / "retrieval" / "hotpotqa"
        run = ragdiag.load_run(folder)
        assert (len(run), run.info["format"]) == (300, "beir")
        assert run.queries["expected_answer"].notna().all()
        results = ragdiag.diagnose(run, k=10)
        summary = results.summary().set_index("measure")["value"]
        assert f"{summary['recall_at_10']:.4f}" == "0.8817"
        assert f"{summary['ndcg_at_10']:.4f}" == "0.7575"

    def test_a_beir_folder_without_a_run(self, repository: Path):
        with pytest.raises(ragdiag.RunFormatError, match="only a dataset: load_dataset reads it"):
            ragdiag.load_run(repository / "examples" / "hotpotqa")

    def test_several_rankings(self, tmp_path: Path):
        for name, chunk in (("a.run", "x"), ("b.run", "y")):
            (tmp_path / name).write_text(f"q1 Q0 {chunk} 1 1 tag\n")
        first = ragdiag.load_run(tmp_path)
        assert first.retrieved["chunk_id"].tolist() == ["x"]
        assert any("holds 2 rankings; this is 'a.run'" in note for note in first.info["notes"])
        for wanted in (1, "b.run"):
            other = ragdiag.load_run(tmp_path, pipeline=wanted)
            assert other.retrieved["chunk_id"].tolist() == ["y"]
        with pytest.raises(ragdiag.RunFormatError, match=r"no ranking 'c\.run'; it holds"):
            ragdiag.load_run(tmp_path, pipeline="c.run")

    def test_scores_as_json(self, write):
        run = ragdiag.load_run(write("run.json", '{"q1": {"a": 0.5, "b": 2}, "q2": {"c": 1}}'))
        assert run.info["format"] == "scores"
        assert run.retrieved["chunk_id"].tolist() == ["b", "a", "c"]

    def test_a_folder_that_cannot_be_made(self, write):
        with pytest.raises(ragdiag.ExportError, match="cannot be made"):
            awkward_run().to_trec(write("file", "x") / "folder")

    @given(st.text(min_size=1))
    def test_ids_are_one_word_and_come_back(self, identity: str):
        try:
            identity.encode()
        except UnicodeEncodeError:
            return
        word = escaped(identity)
        assert word.split() == [word]
        assert unescaped(word) == identity

    @settings(
        deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(
        st.lists(
            st.lists(
                st.tuples(st.sampled_from("abcdefgh"), st.none() | st.floats(width=64)), max_size=7
            ),
            min_size=1,
            max_size=4,
        )
    )
    def test_any_order_and_any_scores_survive(self, tmp_path: Path, lists: list):
        rows = [
            (f"q{at}", rank, chunk, score)
            for at, chunks in enumerate(lists)
            for rank, (chunk, score) in enumerate(chunks, 1)
        ]
        ids = [f"q{at}" for at in range(len(lists))]
        run = Run(
            pd.DataFrame({"query_id": ids, "query": ids}),
            pd.DataFrame({"query_id": ids, "chunk_id": ["a"] * len(ids), "grade": 1}),
            pd.DataFrame(rows, columns=["query_id", "rank", "chunk_id", "score"]),
            pd.DataFrame({"query_id": ids, "status": "completed"}),
        )
        again = ragdiag.load_run(run.to_trec(tmp_path))
        columns = ["query_id", "rank", "chunk_id"]
        assert again.retrieved[columns].equals(run.retrieved[columns])
        assert set(again.outcomes["query_id"]) == set(ids)


class TestOtherTools:
    def test_ragas_there_and_back(self, formats: Path, tmp_path: Path):
        run = ragdiag.load_run(formats / "ragas" / "evaluation_dataset.jsonl")
        samples = run.to_ragas(tmp_path / "out.jsonl")
        original = [
            json.loads(line)
            for line in (formats / "ragas" / "evaluation_dataset.jsonl").read_text().splitlines()
        ]
        for sample, source in zip(samples, original, strict=True):
            assert {name: sample[name] for name in source} == source
        again = ragdiag.load_run(tmp_path / "out.jsonl")
        for table in ("queries", "qrels", "retrieved", "outcomes"):
            pd.testing.assert_frame_equal(getattr(again, table), getattr(run, table))

    def test_deepeval_there_and_back(self, formats: Path, tmp_path: Path):
        run = ragdiag.load_run(formats / "ragas" / "evaluation_dataset.jsonl")
        cases = run.to_deepeval(tmp_path / "out.json")
        assert list(cases[0]) == [
            *("name", "input", "actual_output", "expected_output"),
            *("retrieval_context", "context"),
        ]
        again = ragdiag.load_run(tmp_path / "out.json")
        for table in ("qrels", "retrieved", "outcomes"):
            pd.testing.assert_frame_equal(getattr(again, table), getattr(run, table))

    def test_what_is_not_known_is_not_there(self):
        samples = awkward_run().to_ragas()
        assert [sample["user_input"] for sample in samples][-1] == "About\ntwice?"
        assert len(samples) == 6  # the failed query is left out
        assert "retrieved_contexts" not in samples[0]
        assert samples[0]["retrieved_context_ids"] == ["a", "b"]
        assert samples[4]["retrieved_context_ids"] == []
        nothing = Run(pd.DataFrame({"query_id": ["q"], "query": ["Who?"]})).to_deepeval()
        assert nothing == []

    def test_no_retrieval_is_not_an_empty_one(self, formats: Path):
        run = ragdiag.load_run(formats / "langsmith" / "sdk_wrap_openai_batch.json")
        assert run.to_ragas() == [
            {"user_input": "howdy", "response": "Howdy! How can I assist you today?"}
        ]


class TestArrow:
    def results(self) -> ragdiag.Results:
        return ragdiag.diagnose(awkward_run())

    def test_polars(self):
        polars = pytest.importorskip("polars")
        results = self.results()
        frame = polars.DataFrame(results)
        assert frame.shape == results.frame.shape
        assert frame["query_id"].to_list() == results.frame["query_id"].tolist()
        assert frame["category"].to_list() == results.frame["category"].astype(object).tolist()
        recall = [None if x is None else x for x in frame["recall_at_5"].to_list()]
        for ours, theirs in zip(results.frame["recall_at_5"], recall, strict=True):
            assert ours == theirs or (math.isnan(ours) and (theirs is None or math.isnan(theirs)))

    def test_duckdb(self):
        duckdb = pytest.importorskip("duckdb")
        results = self.results()  # noqa: F841 (DuckDB finds it by its name)
        counted = duckdb.sql("select category, count(*) from results group by 1 order by 1")
        assert dict(counted.fetchall())["UNKNOWN"] == 1

    def test_a_part_of_results(self):
        polars = pytest.importorskip("polars")
        assert polars.DataFrame(self.results()[:2]).height == 2

    def test_the_tables_of_a_run(self):
        polars = pytest.importorskip("polars")
        run = awkward_run()
        assert polars.DataFrame(run.retrieved)["chunk_id"].to_list()[:2] == ["a", "b"]


class TestMLflow:
    def test_it_says_what_is_missing(self, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
        with pytest.raises(ragdiag.MissingDependencyError, match="pip install mlflow"):
            ragdiag.diagnose(awkward_run()).to_mlflow()

    @pytest.mark.filterwarnings("ignore")
    def test_a_local_run(self, tmp_path: Path):
        mlflow = pytest.importorskip("mlflow")
        mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
        mlflow.create_experiment("here", artifact_location=(tmp_path / "artifacts").as_uri())
        mlflow.set_experiment("here")
        results = ragdiag.diagnose(awkward_run())
        run = mlflow.get_run(results.to_mlflow())
        assert run.info.run_name == "my pipeline"
        assert run.data.params["k"] == "5"
        summary = results.summary().set_index("measure")["value"]
        assert run.data.metrics["recall_at_5"] == pytest.approx(summary["recall_at_5"])
        assert run.data.metrics["queries_unknown"] == 1
        artifacts = {path.name for path in (tmp_path / "artifacts").rglob("*") if path.is_file()}
        assert artifacts == {"results.json", "chunks.json", "expected.json", "report.html"}
        with mlflow.start_run() as active:
            assert results.to_mlflow() == active.info.run_id
