"""The examples show what their README says they show."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import ragdiag
from ragdiag import PipelineLoadError, load_dataset, load_pipeline

EXAMPLES = Path(__file__).parents[1] / "examples"


def pipeline(name: str) -> ragdiag.Pipeline:
    return load_pipeline(EXAMPLES / name)


def by_hand(name: str, dataset: ragdiag.GoldenDataset) -> dict[str, tuple[float, float, float]]:
    """Precision@5, recall@5 and reciprocal rank of each question, counted here."""
    found = {}
    searched = pipeline(name)
    for sample in dataset:
        ids = [chunk.id for chunk in searched.retrieve(sample.query)]
        hits = [chunk_id in sample.relevant_chunk_ids for chunk_id in ids]
        found[sample.id] = (
            sum(hits[:5]) / len(ids[:5]),
            sum(hits[:5]) / len(sample.relevant_chunk_ids),
            1 / (hits.index(True) + 1) if any(hits) else 0.0,
        )
    return found


def means(rows: dict[str, tuple[float, float, float]]) -> list[float]:
    return [round(sum(column) / len(rows), 2) for column in zip(*rows.values(), strict=True)]


@pytest.fixture(scope="module")
def demo_dataset() -> ragdiag.GoldenDataset:
    return load_dataset(EXAMPLES / "demo_dataset.json")


@pytest.fixture(scope="module")
def comparison(demo_dataset: ragdiag.GoldenDataset) -> ragdiag.Comparison:
    return ragdiag.compare(
        pipeline("dense_pipeline.py"), pipeline("hybrid_pipeline.py"), dataset=demo_dataset
    )


@pytest.fixture(scope="module")
def hotpotqa() -> ragdiag.GoldenDataset:
    return load_dataset(EXAMPLES / "hotpotqa")


@pytest.fixture(scope="module")
def searched(hotpotqa: ragdiag.GoldenDataset) -> dict[str, ragdiag.Results]:
    return {
        name: ragdiag.evaluate(pipeline(f"hotpotqa/{name}.py"), hotpotqa)
        for name in ("bm25_titles", "bm25_text")
    }


class TestDemo:
    def test_dataset(self, demo_dataset):
        assert demo_dataset.summary().query_type_counts == {
            "factual": 2,
            "reasoning": 2,
            "multi-hop": 1,
        }

    def test_measures_by_hand(self, demo_dataset):
        dense = by_hand("dense_pipeline.py", demo_dataset)
        hybrid = by_hand("hybrid_pipeline.py", demo_dataset)

        assert means(dense) == [0.87, 0.8, 0.87]
        assert means(hybrid) == [0.9, 1.0, 0.87]
        assert dense["q004"] == (1.0, 0.5, 1.0)
        assert dense["q005"] == pytest.approx((1 / 3, 0.5, 1 / 3))
        assert hybrid["q005"] == pytest.approx((2 / 4, 1.0, 1 / 3))

    def test_measures(self, comparison):
        report = comparison.report
        measures = [
            [round(value, 2) for value in (r.mean_precision_at_k, r.mean_recall_at_k, r.mrr)]
            for r in (report.pipeline_a_report.retrieval, report.pipeline_b_report.retrieval)
        ]

        assert measures == [[0.87, 0.8, 0.87], [0.9, 1.0, 0.87]]

    def test_causes(self, comparison):
        report = comparison.report
        counts = [
            {cause: n for cause, n in side.diagnosis_counts.items() if n}
            for side in (report.pipeline_a_report, report.pipeline_b_report)
        ]

        assert counts == [{"PASS": 3, "INSUFFICIENT_CONTEXT": 2}, {"PASS": 5}]

    def test_types(self, comparison):
        report = comparison.report
        rows = {
            kind: [
                (
                    round(side.metrics_by_query_type[kind].mean_recall_at_k, 2),
                    round(side.metrics_by_query_type[kind].mrr, 2),
                )
                for side in (report.pipeline_a_report, report.pipeline_b_report)
            ]
            for kind in ("factual", "reasoning", "multi-hop")
        }

        assert rows == {
            "factual": [(1.0, 1.0), (1.0, 1.0)],
            "reasoning": [(0.75, 1.0), (1.0, 1.0)],
            "multi-hop": [(0.5, 0.33), (1.0, 0.33)],
        }

    def test_decision(self, comparison):
        report = comparison.report

        assert (
            report.queries_improved,
            report.queries_regressed,
            report.queries_unchanged,
        ) == (2, 0, 3)
        assert report.winner == "hybrid_pipeline"
        assert report.trade_off == "Higher quality <-> higher latency"

    def test_times(self, comparison):
        # Sleeping takes at least as long as asked; how much longer is the machine's affair.
        dense, hybrid = (results.frame["retrieval_ms"] for results in comparison.results)

        assert dense.min() >= 5
        assert hybrid.min() >= 25

    @pytest.mark.parametrize("name", ["dense_pipeline.py", "hybrid_pipeline.py"])
    def test_other_questions_are_not_known(self, name):
        loaded = pipeline(name)

        assert loaded.retrieve("Who are you?") == []
        assert loaded.generate("Who are you?", []) == "I do not know."


class TestBasic:
    def test_shows_one_cause_of_each_kind(self):
        results = ragdiag.evaluate(
            pipeline("basic_pipeline.py"), load_dataset(EXAMPLES / "basic_dataset.json")
        )

        assert results.frame["category"].astype(str).tolist() == [
            "PASS",
            "PASS",
            "WRONG_CHUNK_RETRIEVED",
            "WRONG_CHUNK_RANK",
            "INSUFFICIENT_CONTEXT",
        ]
        assert results.frame["answer"].tolist()[0].startswith("A refund to a card takes 5 to 7")

    def test_knows_when_it_found_nothing(self):
        loaded = pipeline("basic_pipeline.py")

        assert loaded.retrieve("xyzzy") == []
        assert loaded.generate("xyzzy", []) == "I do not know."


class TestHotpotQA:
    def test_dataset(self, hotpotqa):
        summary = hotpotqa.summary()

        assert summary.query_type_counts == {"multi-hop": 120}
        assert (summary.without_answer, summary.without_labels) == (0, 0)
        assert summary.relevant_per_query.min == summary.relevant_per_query.max == 2
        assert hotpotqa.warnings == ()
        assert hotpotqa.frame["type"].value_counts().to_dict() == {"bridge": 72, "comparison": 48}

    def test_is_small_and_has_its_attribution(self):
        folder = EXAMPLES / "hotpotqa"

        assert sum(path.stat().st_size for path in folder.glob("*.*")) < 700_000
        assert "CC BY-SA 4.0" in (folder / "ATTRIBUTION.md").read_text(encoding="utf-8")

    @pytest.mark.parametrize("name", ["bm25_titles", "bm25_text"])
    def test_measures_by_hand(self, hotpotqa, searched, name):
        rows = by_hand(f"hotpotqa/{name}.py", hotpotqa)
        frame = searched[name].frame

        assert searched[name].name == name
        columns = frame[["precision_at_5", "recall_at_5", "reciprocal_rank"]].to_numpy()
        assert columns == pytest.approx(np.array([rows[key] for key in frame["query_id"]]))

    def test_texts_find_more_than_titles(self, searched):
        recall = {name: results.frame["recall_at_5"].mean() for name, results in searched.items()}

        assert 0.2 < recall["bm25_titles"] < recall["bm25_text"] < 0.95

    def test_answers_are_cut_out_of_what_was_found(self, searched):
        for result in searched["bm25_text"][:10]:
            texts = " ".join(chunk.text for chunk in result.retrieved_chunks)
            assert result.generated_answer[:40] in texts

    def test_nothing_found(self):
        loaded = pipeline("hotpotqa/bm25_titles.py")

        assert loaded.retrieve("xyzzy qwrtp") == []
        assert loaded.generate("xyzzy qwrtp", []) == "I do not know."

    def test_threads_find_the_same(self, hotpotqa):
        loaded = pipeline("hotpotqa/bm25_text.py")
        queries = hotpotqa.frame["query"].tolist()[:40]

        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(loaded.retrieve, queries))

        assert together == [loaded.retrieve(query) for query in queries]

    def test_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "bm25s", None)

        with pytest.raises(PipelineLoadError, match=r"pip install 'ragdiag\[examples\]'"):
            pipeline("hotpotqa/bm25_text.py")
