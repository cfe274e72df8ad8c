"""Plots: what their artists say, and that their numbers are those of the objects."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from ragdiag import aggregates
from ragdiag.comparison import Comparison
from ragdiag.display import plots
from ragdiag.errors import ComparisonError, SettingsError
from ragdiag.recording import Run
from ragdiag.results import Results
from ragdiag.taxonomy import FailureCategory

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.colors import same_color, to_hex
from matplotlib.text import Text

spec = importlib.util.spec_from_file_location(
    "display_conftest", Path(__file__).with_name("conftest.py")
)
conftest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(conftest)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def texts(ax):
    """Return all that is written on the axes."""
    found = [child.get_text() for child in ax.figure.findobj(Text)]
    return [text for text in found if text]


def lines(ax, gid):
    return [line for line in ax.get_lines() if line.get_gid() == gid]


@pytest.mark.parametrize("kind", ["categories", "latency", "rank", "recall_at_k"])
def test_results_draw_on_given_axes_and_change_no_setting(results, kind):
    before = dict(mpl.rcParams)
    figure, ax = plt.subplots()
    assert plots.plot(results, kind, ax) is ax
    assert results.plot(kind, ax=ax) is ax
    assert plt.get_fignums() == [figure.number]
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("kind", ["deltas", "transitions", "queries", "latency"])
def test_comparisons_draw_on_given_axes(comparison, kind):
    _, ax = plt.subplots()
    assert comparison.plot(kind, ax=ax) is ax
    assert isinstance(comparison.plot_data(kind), pd.DataFrame)
    assert ax.get_title(loc="left")


def test_kinds(results, comparison):
    assert plots.kinds(results) == ("categories", "latency", "rank", "recall_at_k")
    assert plots.kinds(comparison) == ("deltas", "transitions", "queries", "latency")
    with pytest.raises(SettingsError, match="kind must be one of categories, latency"):
        results.plot("pie")
    with pytest.raises(TypeError, match="no plot of a dict"):
        plots.plot({})


def test_categories_are_stacked_in_their_colours(results):
    ax = results.plot()
    data = results.plot_data()
    assert int(data["queries"].sum()) == 42
    bars = {to_hex(bar.get_facecolor()).upper(): 0.0 for bar in ax.patches}
    for bar in ax.patches:
        bars[to_hex(bar.get_facecolor()).upper()] += bar.get_width()
    counts = results.counts()["queries"]
    for category in FailureCategory:
        assert bars.get(category.colour.upper(), 0) == counts[category]
    assert ax.get_title(loc="left") == "dense passed 22 of 42 queries"
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [
        "direct",
        "numeric",
        "paraphrase",
        "multi-hop",
    ]
    assert "11 of 15 passed" in texts(ax)
    assert ax.get_xlabel() == "queries"


def test_latency_shows_percentiles_and_the_limit(results):
    ax = results.plot("latency")
    stats = aggregates.latency(results.frame["retrieval_ms"])
    percentiles = lines(ax, "percentiles")
    np.testing.assert_allclose(
        percentiles[0].get_xdata(), [stats.p50_ms, stats.p95_ms, stats.p99_ms]
    )
    assert len(percentiles) == 3
    slow = lines(ax, "slow")[0].get_xdata()
    assert sorted(slow) == [1062.0, 1120.0, 1874.0, 2310.0]
    assert same_color(lines(ax, "slow")[0].get_color(), FailureCategory.LATENCY_OUTLIER.colour)
    assert lines(ax, "limit")[0].get_xdata()[0] == 1000.0
    assert "41 of 42 queries" in " ".join(texts(ax))
    assert set(results.plot_data("latency")["stage"]) == {"retrieval", "generation", "total"}


def test_rank_counts_where_the_first_relevant_chunk_came(results):
    ax = results.plot("rank")
    data = results.plot_data("rank")
    assert int(data["queries"].sum()) == 41
    heights = [bar.get_height() for bar in ax.patches]
    labels = [tick.get_text() for tick in ax.get_xticklabels()]
    assert labels[-1] == "not\nretrieved"
    assert heights[-1] == data.loc[data["rank"].isna(), "queries"].sum() == 2
    assert heights[0] == data.loc[data["rank"] == 1, "queries"].sum()
    assert to_hex(ax.patches[0].get_facecolor()).upper() == FailureCategory.PASS.colour


def test_recall_at_k_equals_a_new_diagnosis_at_that_k(results):
    data = results.plot_data("recall_at_k").set_index("k")
    for k in (1, 3, 5, 10):
        summary = results.rediagnose(k=k).summary().set_index("measure")["value"]
        assert data.loc[k, "recall"] == pytest.approx(summary[f"recall_at_{k}"])
        assert data.loc[k, "precision"] == pytest.approx(summary[f"precision_at_{k}"])
    ax = results.plot("recall_at_k")
    np.testing.assert_allclose(lines(ax, "recall")[0].get_ydata(), data["recall"])
    assert "k = 5 in use" in texts(ax)
    assert any(text.startswith("k = 8 is enough for 4 of") for text in texts(ax))


def test_deltas_put_better_to_the_right(comparison):
    ax = comparison.plot()
    data = comparison.plot_data()
    points = [line.get_xdata()[0] for line in lines(ax, "difference")]
    np.testing.assert_allclose(points, data["position"])
    intervals = [tuple(line.get_xdata()) for line in lines(ax, "interval")]
    tested = data[data["low"].notna()]
    np.testing.assert_allclose(intervals, tested[["low", "high"]])
    slower = data.set_index("measure").loc["Retrieval p50"]
    assert slower["verdict"] == "worse"
    assert slower["high"] < 0
    assert ax.get_title(loc="left") == comparison.headline.rstrip(".")
    assert any("95 % intervals" in text for text in texts(ax))


def test_transitions_count_the_moves(comparison):
    ax = comparison.plot("transitions")
    data = comparison.plot_data("transitions")
    assert data["queries"].sum() == 42
    assert ax.get_title(loc="left") == "10 now pass, 3 no longer pass"
    columns = [tick.get_text().replace("\n", "") for tick in ax.get_xticklabels()]
    rows = [tick.get_text() for tick in ax.get_yticklabels()]
    for note in ax.texts:
        if note.get_text().isdigit():
            x, y = (int(part) for part in note.xy)
            move = (data["category_a"] == rows[y]) & (data["category_b"] == columns[x])
            assert data.loc[move, "queries"].item() == int(note.get_text())


def test_queries_put_regressions_on_top(comparison):
    ax = comparison.plot("queries")
    data = comparison.plot_data("queries")
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names[:2] == ["q025", "q021"]
    assert data["change"].is_monotonic_increasing
    changes = lines(ax, "change")
    assert len(changes) == (data["change"] != 0).sum()
    assert changes[0].get_xdata()[1] < changes[0].get_xdata()[0]
    assert any("22 ties not shown" in text for text in texts(ax))


def test_many_changes_are_counted_and_the_largest_shown():
    a, b = Results(conftest.make_large(400)), Results(conftest.make_large(400))
    shuffled = Run(
        b.run.queries,
        b.run.qrels,
        b.run.retrieved.assign(rank=(11 - b.run.retrieved["rank"])),
        b.run.outcomes,
    )
    comparison = Comparison(a, Results(shuffled), names=["up", "down"])
    ax = comparison.plot("queries")
    assert len(ax.get_yticks()) == 40
    assert any("showing 40, the largest changes" in text for text in texts(ax))


def test_latency_of_a_comparison(comparison):
    ax = comparison.plot("latency")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["dense", "hybrid"]
    data = comparison.plot_data("latency")
    assert data.groupby("pipeline").size().to_dict() == {"dense": 41, "hybrid": 42}
    assert "+39" in ax.get_title(loc="left")


def test_three_pipelines(results, comparison):
    three = Comparison(results, comparison.results[1], results, names=["a", "b", "c"])
    ax = three.plot()
    assert "Recall@5, b" in [tick.get_text() for tick in ax.get_yticklabels()]
    three.plot("latency")
    for kind in ("transitions", "queries"):
        with pytest.raises(ComparisonError, match=r"take \.pair\('a', 'b'\)"):
            three.plot(kind)


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_ink_comes_from_the_active_style(results, style):
    with plt.style.context(style):
        ax = results.plot("recall_at_k")
        ink = mpl.rcParams["axes.labelcolor"]
    assert same_color(lines(ax, "recall")[0].get_color(), ink)


def test_many_types_are_the_largest_twenty():
    run = conftest.make_large(300)
    queries = run.queries.assign(query_type=[f"type {i % 50}" for i in range(300)])
    results = Results(Run(queries, run.qrels, run.retrieved, run.outcomes))
    ax = results.plot()
    assert len(ax.get_yticks()) == 20
    assert any("20 largest of 50 types" in text for text in texts(ax))


@pytest.mark.parametrize("kind", ["categories", "latency", "rank", "recall_at_k"])
@pytest.mark.parametrize("n", [0, 2])
def test_nothing_to_draw_is_said(kind, n):
    ids = [f"q{i}" for i in range(n)]
    run = Run(pd.DataFrame({"query_id": ids, "query": ["?"] * n}))
    results = Results(run)
    assert results.plot(kind).get_title(loc="left")
    assert results.plot_data(kind) is not None


@pytest.mark.parametrize("kind", ["deltas", "transitions", "queries", "latency"])
def test_nothing_to_compare_is_said(kind):
    run = Run(pd.DataFrame({"query_id": ["q"], "query": ["?"]}))
    comparison = Comparison(Results(run), Results(run))
    assert comparison.plot(kind).get_title(loc="left")


def test_hostile_labels_are_text(results):
    run = conftest.make_hostile(conftest.EXTRACT)
    hostile = Results(run)
    comparison = Comparison(hostile, Results(run), names=["$a^", "\x1b[31m$\\frac{1}{0}$"])
    for obj in (hostile, comparison):
        for kind in plots.kinds(obj):
            ax = plots.plot(obj, kind)
            ax.figure.canvas.draw()
            for text in ax.figure.findobj(Text):
                assert "\x1b" not in text.get_text()
                if "$" in text.get_text():
                    assert not text.get_parse_math(), text.get_text()
