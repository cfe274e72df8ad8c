"""The explorer: its state without a kernel, its widgets without a browser."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from ragdiag.comparison import Comparison
from ragdiag.display import html
from ragdiag.display.explorer import Explorer
from ragdiag.display.explorer_state import PAGE, ComparisonState, ResultsState, state_of
from ragdiag.results import Results

spec = importlib.util.spec_from_file_location(
    "display_conftest", Path(__file__).with_name("conftest.py")
)
conftest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(conftest)


# ------------------------------------------------------------------------------------------ state
def test_it_opens_on_the_worst_failure(results):
    state = ResultsState(results)
    assert state.counter == "showing 42 of 42"
    assert state.ids[:20] == results.failures().query_ids
    assert state.current == results.failures().query_ids[0]
    assert state.position == "1 of 42"


def test_filters_combine_and_lift(results):
    state = ResultsState(results)
    state.choose("category", "all failures")
    assert len(state) == 20
    state.choose("query_type", "multi-hop")
    assert state.counter == "showing 8 of 42"
    state.choose("product", "refunds")
    frame = state.selected.frame
    assert set(frame["query_type"]) == {"multi-hop"}
    assert set(frame["product"]) == {"refunds"}
    assert not (frame["category"] == "PASS").any()
    state.choose("category", None)
    state.choose("query_type", None)
    state.choose("product", None)
    assert len(state) == 42


def test_options_carry_their_counts(results):
    category, query_type, product = ResultsState(results).choices
    assert category.options[0] == ("all failures", 20)
    assert category.options[1] == ("UNKNOWN", 1)
    assert category.options[-1] == ("PASS", 22)
    assert dict(query_type.options)["direct"] == 15
    assert product.label == "product"


def test_search_looks_at_questions_answers_and_chunks(results):
    state = ResultsState(results)
    state.find("closed CARD refund")
    assert state.ids == ["q026"] or "q026" in state.ids
    state.find("q026-r1")
    assert state.ids == ["q026"]
    state.find("no such words anywhere")
    assert state.ids == []
    assert state.current is None
    assert state.view() is None
    assert state.position == "none"
    assert len(state.selected) == 0
    state.find("")
    assert len(state) == 42


def test_steps_end_at_the_ends(results):
    state = ResultsState(results)
    state.step(-1)
    assert state.place == 0
    state.step(1)
    assert state.place == 1
    state.step(1000)
    assert state.place == 41
    assert state.view().headline.startswith(state.current)


def test_the_query_looked_at_stays_while_it_matches(results):
    state = ResultsState(results)
    state.go_to("q026")
    state.choose("query_type", "multi-hop")
    assert state.current == "q026"
    state.choose("category", "PASS")
    assert state.current != "q026"
    assert state.place == 0


def test_orders(results):
    state = ResultsState(results)
    state.sort("dataset order")
    assert state.ids == results.query_ids
    state.sort("slowest first")
    assert state.current == "q040"
    state.sort("lowest recall first")
    recall = results.frame.set_index("query_id")["recall_at_5"]
    assert recall[state.ids[0]] == 0.0
    assert state.ids[-1] == "q034"


def test_wrong_names_are_refused(results):
    state = ResultsState(results)
    with pytest.raises(KeyError, match="no filter 'colour'; there are category, query_type"):
        state.choose("colour", "red")
    with pytest.raises(KeyError, match="no order"):
        state.sort("by colour")
    with pytest.raises(KeyError, match="no query 'q999' among the 42"):
        state.go_to("q999")
    with pytest.raises(TypeError, match="only Results and a Comparison"):
        state_of([])


def test_a_comparison_shows_regressed_first(comparison):
    state = ComparisonState(comparison)
    assert set(state.ids[:3]) == {"q011", "q014", "q025"}
    state.choose("outcome", "regressed")
    assert isinstance(state.selected, Comparison)
    assert len(state.selected) == 3
    state.choose("outcome", None)
    state.choose("category_0", "UNKNOWN")
    assert state.ids == ["q034"]
    shown = state.view()
    assert shown.headline == "q034 improved."
    state.choose("category_0", None)
    state.find("accounts cannot be closed online")
    assert state.ids == ["q014"]
    state.find("")
    state.sort("largest recall loss first")
    losses = comparison.outcomes.set_index("query_id")
    worst = (losses["recall_b"] - losses["recall_a"]).min()
    first = losses.loc[state.current]
    assert first["recall_b"] - first["recall_a"] == worst


def test_three_pipelines_have_the_worst_outcome_of_any(results, comparison):
    three = Comparison(results, comparison.results[1], results, names=["a", "b", "c"])
    state = ComparisonState(three)
    assert dict(state.choices[0].options) == {"regressed": 3, "improved": 14, "unchanged": 25}
    assert [choice.label for choice in state.choices[1:4]] == ["a", "b", "c"]
    assert state.view() is not None


def test_long_lists_are_shown_by_the_page():
    state = ResultsState(Results(conftest.make_large(250)))
    assert len(state.page) == PAGE
    assert state.page_words == "list: 1 to 100 of 250"
    state.step(PAGE)
    assert state.page[0][1] == state.current
    assert state.page_words == "list: 101 to 200 of 250"
    state.step(1000)
    assert len(state.page) == 50


def test_columns_of_many_values_or_of_lists_get_no_filter():
    run = conftest.make_large(60)
    queries = run.queries.assign(
        serial=range(60), tags=[["a"]] * 60, half=[None, "x"] * 30, one="same"
    )
    results = Results(type(run)(queries, run.qrels, run.retrieved, run.outcomes))
    columns = [choice.column for choice in ResultsState(results).choices]
    assert columns == ["category", "query_type", "team", "half"]
    assert dict(ResultsState(results).choices[-1].options) == {"none": 30, "x": 30}


# ---------------------------------------------------------------------------------------- widgets
def test_widgets_mirror_the_state(results):
    explorer = results.explore()
    assert isinstance(explorer, Explorer)
    assert explorer.counter.value == "showing 42 of 42"
    assert explorer.list.value == explorer.state.current
    assert explorer.previous.disabled
    explorer.next.click()
    assert explorer.state.place == 1
    assert explorer.list.value == explorer.state.current
    assert not explorer.previous.disabled
    assert explorer.state.current in explorer.query.value
    explorer.previous.click()
    assert explorer.state.place == 0


def test_choosing_and_searching_update_everything(results):
    explorer = results.explore()
    explorer.filters["category"].value = "INSUFFICIENT_CONTEXT"
    assert explorer.counter.value == "showing 5 of 42"
    assert len(explorer.list.options) == 5
    explorer.search.value = "dispute window"
    assert explorer.state.search == "dispute window"
    explorer.search.value = "no such words"
    assert "No query matches." in explorer.query.value
    assert explorer.next.disabled
    assert explorer.list.value is None
    explorer.search.value = ""
    explorer.filters["category"].value = ""
    explorer.list.value = "q026"
    assert "q026 failed: INSUFFICIENT_CONTEXT." in explorer.query.value
    explorer.sort.value = "dataset order"
    assert explorer.list.value == "q001"
    assert explorer.selected.query_ids == results.query_ids


def test_the_front_end_moves_the_state(results):
    """What a browser sends when an option is clicked."""
    explorer = results.explore()
    explorer.list.set_state({"index": 3})
    assert explorer.state.place == 3
    explorer.filters["query_type"].set_state({"index": 1})
    assert explorer.counter.value == "showing 15 of 42"


def test_controls_stand_in_the_order_of_the_keyboard(comparison):
    filters, steps, body = comparison.explore().children
    assert [child.description for child in filters.children] == [
        "Outcome",
        "dense",
        "hybrid",
        "Type",
        "product",
        "Sort",
    ]
    assert steps.children[0].description == "Search"
    assert body.children[0].children[0].description == "Queries"


def test_without_a_kernel_the_static_display_stands_in(results):
    explorer = results.explore()
    shown = explorer._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"}
    assert shown["text/html"] == html.render(results)
    assert shown["text/plain"].startswith("Explorer, showing 42 of 42")
    assert "IPY_MODEL" not in repr(explorer)


def test_no_control_interprets_hostile_text():
    run = conftest.make_hostile(conftest.EXTRACT)
    results = Results(run)
    explorers = [results.explore(), Comparison(results, results).explore()]
    for explorer in explorers:
        for _ in range(len(run)):
            body = explorer.query.value
            assert "<script" not in body
            assert "<img" not in body
            assert "\x1b" not in body
            explorer.next.click()
        labels = [label for dropdown in explorer.filters.values() for label, _ in dropdown.options]
        labels += [label for label, _ in explorer.list.options]
        assert not any("\x1b" in label or "\u202e" in label for label in labels)
        assert not any(dropdown.description_allow_html for dropdown in explorer.filters.values())
