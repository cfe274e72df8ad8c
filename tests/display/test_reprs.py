"""What every object shows: the same in text and HTML, stable, bounded, readable without style."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from ragdiag import display
from ragdiag.comparison import Comparison
from ragdiag.dataset import GoldenDataset
from ragdiag.diagnosis import Rule
from ragdiag.display import html, text
from ragdiag.display.markdown import markdown
from ragdiag.display.numbers import ascii_signs
from ragdiag.display.views import view
from ragdiag.recording import Run
from ragdiag.results import Results
from ragdiag.schema import Claim, JudgeResult


def _sibling(name):
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"display_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


conftest = _sibling("conftest")
markup = _sibling("markup")
Markup = markup.Markup

KINDS = [
    "results",
    "query",
    "passed query",
    "failed query",
    "comparison",
    "three pipelines",
    "report",
    "comparison report",
    "run",
    "dataset",
    "judge result",
    "unjudged results",
]


@pytest.fixture(scope="session")
def shown_objects(runs, results, comparison):
    bare = Run(
        runs[0].queries,
        runs[0].qrels,
        runs[0].retrieved,
        runs[0].outcomes,
        pipeline_name="bare",
    )
    third = Results(runs[1]).rediagnose()
    return {
        "results": results,
        "query": results["q026"],
        "passed query": results["q001"],
        "failed query": results["q034"],
        "comparison": comparison,
        "three pipelines": Comparison(results, comparison.results[1], third),
        "report": results.report(),
        "comparison report": comparison.report,
        "run": runs[0],
        "dataset": GoldenDataset.from_frame(
            runs[0].queries.assign(
                relevant_chunk_ids=[[f"{query_id}-r0"] for query_id in runs[0].queries["query_id"]]
            ),
            name="payment-faq",
            version="1.2",
            query_types=("direct", "paraphrase", "numeric"),
        ),
        "judge result": JudgeResult(
            answer_correct=True,
            grounded=False,
            confidence=0.8,
            reason="one claim is not in the context",
            claims=[
                Claim(text="the fee is returned", verdict="not_found"),
                Claim(text="180 days", verdict="supported", chunk_id="refunds-04"),
            ],
            wrong_facts=["fee returned"],
            missing_facts=["the deadline"],
            model="model-1",
            prompt_tokens=1200,
            screened=False,
        ),
        "unjudged results": Results(bare),
    }


@pytest.fixture(params=KINDS)
def shown(request, shown_objects):
    return shown_objects[request.param]


def test_text_and_html_have_the_same_sections(shown):
    sections = [section.title for section in view(shown).sections]
    page, lines = Markup(html.render(shown)), text.render(shown).splitlines()
    titles = re.findall(r"<strong>([A-Z][a-z ]+)</strong>", html.render(shown))
    assert [title for title in titles if title in sections] == sections
    starts = [line for line in lines if not line.startswith(" ")]
    for title in sections:
        assert sum(line.startswith(title) for line in starts) == 1, title
    assert not page.faults


def test_text_says_no_number_that_html_does_not(shown):
    """Every number of the text stands in the HTML; the other way round HTML has more."""
    page = ascii_signs(Markup(html.render(shown)).text)
    known = set(re.findall(r"\d[\d,.]*\d|\d", page))
    said = set(
        re.findall(r"\d[\d,.]*\d|\d", re.sub(r"\.\.\.|\bq\d+|\d+/\d+", " ", text.render(shown)))
    )
    assert said <= known | {"1", "2"}, said - known


def test_text_is_narrow_and_short(shown):
    lines = text.render(shown).splitlines()
    assert max(len(line) for line in lines) <= 80
    assert len(lines) <= 42
    assert not any(line.endswith(" ") for line in lines)


def test_two_calls_give_the_same_bytes(shown):
    assert html.render(shown) == html.render(shown)
    assert text.render(shown) == text.render(shown)
    assert markdown(shown) == markdown(shown)


def test_html_is_small_and_holds_nothing_that_acts_or_changes(shown):
    source = html.render(shown)
    page = Markup(source)
    assert len(source.encode()) <= html.MAX_BYTES
    assert not set(page.elements) & {"script", "svg", "img", "iframe", "link", "a", "h1", "h2"}
    assert not set(page.attributes) - {"style", "class", "scope", "colspan"}
    assert not re.search(r"0x[0-9a-f]{6}|np\.|<NA>|\bnan\b|NaN", source)
    assert "prefers-color-scheme" not in source


def test_html_reads_without_any_style(shown):
    """Strip what GitHub strips: nothing that was said is lost, and tables are tables."""
    source = html.render(shown)
    page, bare = Markup(source), Markup(markup.stripped(source))
    assert bare.text == page.text
    assert not bare.faults
    assert bare.elements["table"] == bare.elements["caption"]
    heads = [value for tag, name, value in bare.values if (tag, name) == ("th", "scope")]
    assert len(heads) == bare.elements["th"]
    assert page.text.startswith(view(shown).headline)


def test_markdown_has_the_same_sections(shown):
    said = markdown(shown)
    for section in view(shown).sections:
        assert f"**{section.title}**" in said


def test_the_bundle_is_what_a_notebook_gets(shown):
    assert display.bundle(shown) == {
        "text/plain": text.render(shown),
        "text/html": html.render(shown),
    }
    assert shown._repr_mimebundle_() == display.bundle(shown)
    assert shown._repr_html_() == html.render(shown)


def test_models_keep_their_one_line(shown_objects):
    for name in ("query", "judge result", "report", "comparison report"):
        assert "\n" not in repr(shown_objects[name])


def test_another_process_writes_the_same_bytes(results, comparison):
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import importlib.util, hashlib\n"
        "spec = importlib.util.spec_from_file_location('c', sys.argv[2])\n"
        "c = importlib.util.module_from_spec(spec); spec.loader.exec_module(c)\n"
        "from ragdiag.results import Results\n"
        "from ragdiag.comparison import Comparison\n"
        "from ragdiag.display import html, text\n"
        "a, b = map(Results, c.make_runs())\n"
        "for obj in (a, Comparison(a, b)):\n"
        "    shown = html.render(obj) + text.render(obj)\n"
        "    print(hashlib.sha256(shown.encode()).hexdigest())\n"
    )
    here = Path(__file__)
    printed = subprocess.run(
        [sys.executable, "-c", script, str(here.parents[2]), str(here.with_name("conftest.py"))],
        env={**os.environ, "PYTHONHASHSEED": "4711"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    import hashlib

    ours = [
        hashlib.sha256((html.render(obj) + text.render(obj)).encode()).hexdigest()
        for obj in (results, comparison)
    ]
    assert printed == ours


# ------------------------------------------------------------------------------------- large ones
@pytest.fixture(scope="session")
def large():
    return Results(conftest.make_large(10_000))


def test_ten_thousand_queries_stay_below_25_kilobytes(large):
    source = html.render(large)
    assert 12_000 < len(source.encode()) <= 25_000
    shown, total = re.search(r"showing (\d+) of ([\d,]+)", source).groups()
    assert int(shown) >= 5
    assert int(total.replace(",", "")) == len(large.failures())
    assert len(text.render(large).splitlines()) <= 34


def test_drill_downs_show_every_cause_and_stand_worst_first(results):
    failures = view(results).sections[-1]
    assert failures.title == "Failures"
    causes = {drill.summary[-1].text for drill in failures.body.items}
    assert causes == set(results.failures().frame["category"].astype(str))
    source = html.render(results)
    ids = re.findall(r"<summary><samp>(q\d+)</samp>", source)
    order = results.failures().query_ids
    assert ids == sorted(ids, key=order.index)
    assert f"showing {len(ids)} of {len(order)}" in source


def test_wide_characters_and_long_words_stay_within_the_bound():
    run = conftest.make_large(300, text="<&\"'>" * 80 + "日本語" * 100 + "x" * 300 + " {}")
    results = Results(run)
    for obj in (results, results[0], Comparison(results, results), run):
        assert len(html.render(obj).encode()) <= 25_000
        assert max(map(len, text.render(obj).splitlines())) <= 80


def test_a_query_with_many_chunks_shows_the_relevant_ones():
    chunks = [f"c{n}" for n in range(1, 101)]
    run = Run(
        pd.DataFrame({"query_id": ["q"], "query": ["Where?"]}),
        pd.DataFrame({"query_id": ["q"] * 2, "chunk_id": ["c2", "c90"]}),
        pd.DataFrame(
            {"query_id": "q", "rank": range(1, 101), "chunk_id": chunks, "text": "long " * 200}
        ),
        pd.DataFrame({"query_id": ["q"], "status": ["completed"], "answer": ["There."]}),
    )
    item = Results(run)["q"]
    source = html.render(item)
    assert len(source.encode()) <= 25_000
    page = Markup(source).text
    assert "showing 6 of 100" in page
    assert "84 chunks without a label not shown" in page
    assert "cut at k = 5: the chunks below do not count" in page
    assert "rank 90 (k is 5)" in page


# ------------------------------------------------------------------------------- what was missing
def test_what_was_not_measured_is_said(shown_objects):
    said = " ".join(text.render(shown_objects["unjudged results"]).split())
    assert "correct not judged, grounded not judged (0 of 42 judged)" in said
    assert "not measured: RETRIEVED_BUT_NOT_GROUNDED, ANSWER_INCORRECT" in said
    page = Markup(html.render(shown_objects["unjudged results"])).text
    assert "RETRIEVED_BUT_NOT_GROUNDED not measured" in page


def test_a_query_says_how_it_ended(shown_objects, results):
    assert text.render(shown_objects["query"]).startswith("q026 failed: INSUFFICIENT_CONTEXT.")
    assert text.render(shown_objects["passed query"]).startswith("q001 passed.")
    failed = text.render(shown_objects["failed query"])
    assert "TimeoutError: no reply from the vector store" in failed
    assert "retrieval not run" in failed
    assert text.render(results["q005"]).startswith("q005 passed retrieval; answer not judged.")


def test_words_that_differ_are_marked_in_text_and_html(shown_objects):
    assert "[in proportion to the refund.]" in text.render(shown_objects["query"]).replace(
        "\n" + " " * 17, " "
    )
    assert re.search(r"<b style=[^>]*>not</b>", html.render(shown_objects["query"]))


@pytest.mark.parametrize(
    ("result", "headline"),
    [
        (JudgeResult(), "Not judged: neither correctness nor grounding."),
        (JudgeResult(answer_correct=False), "Judged incorrect; grounding not judged."),
        (JudgeResult(grounded=True), "Judged grounded; correctness not judged."),
        (
            JudgeResult(answer_correct=True, grounded=True, screened=True),
            "Suspected correct and grounded.",
        ),
    ],
)
def test_a_verdict_is_evidence_or_it_is_not_given(result, headline):
    assert view(result).headline == headline


def _run(n=3, **tables):
    ids = [f"q{i}" for i in range(n)]
    return Run(
        pd.DataFrame({"query_id": ids, "query": ["Why?"] * n}),
        outcomes=pd.DataFrame({"query_id": ids, "status": ["failed"] * n}) if n else None,
        **tables,
    )


@pytest.mark.parametrize("n", [0, 1, 3])
def test_nothing_to_show_is_shown(n):
    run = _run(n)
    results = Results(run)
    objects = [run, results, results.report(), Comparison(results, results)]
    objects += [Comparison(results, results).report, *([results[0]] if n else [])]
    for obj in objects:
        shown = display.bundle(obj)
        assert set(shown) == {"text/plain", "text/html"}, shown
        assert not Markup(shown["text/html"]).faults


def test_a_query_that_no_rule_could_judge_has_no_category():
    run = Run(pd.DataFrame({"query_id": ["q"], "query": ["Why?"]}))
    item = Results(run)["q"]
    assert text.render(item).startswith("q: nothing could be measured.")
    assert display.bundle(Results(run))["text/html"]


def test_a_rule_of_ones_own_is_shown_like_the_others(runs):
    rule = Rule(
        name="TOO_LONG",
        severity="warning",
        when=lambda frame: frame["answer"].str.len() > 120,
        reason="The answer is long.",
        action="Ask for a short answer.",
    )
    results = Results(runs[0], rules=[rule])
    said = text.render(results)
    page = html.render(results)
    assert "TOO_LONG" in page
    assert "TOO_LONG" in said
    assert "#8A6D3B" in page


def test_a_display_that_fails_says_so_and_never_raises(results, monkeypatch):
    def broken(*_):
        raise RuntimeError("no template")

    monkeypatch.setattr(html, "render", broken)
    assert display.bundle(results) == {"text/plain": text.render(results)}
    monkeypatch.setattr(text, "render_view", broken)
    shown = display.bundle(results)
    assert shown == {"text/plain": "<Results, not shown because of RuntimeError: no template>"}


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match="nothing shows a dict"):
        view({})


def test_a_dataset_says_what_its_queries_lack():
    frame = pd.DataFrame(
        {
            "query_id": [f"q{n}" for n in range(30)],
            "query": ["Where?", "When?"] * 15,
            "expected_answer": [None, "Now."] * 15,
            "query_type": [None, *[f"type {n % 15}" for n in range(29)]],
            "relevant_chunk_ids": [["c1"], []] * 15,
        }
    )
    dataset = GoldenDataset.from_frame(
        frame, name="partial", version="1", query_types=tuple(f"type {n}" for n in range(15))
    )
    said = " ".join(text.render(dataset).split())
    assert "15 without labelled chunks (retrieval not measured)" in said
    assert "15 without an expected answer" in said
    assert "1 without a type" in said
    page = Markup(html.render(dataset)).text
    assert "showing 12 of 16 types" in page
    assert "not labelled" in page
    bare = GoldenDataset.from_frame(frame[["query_id", "query"]], name="bare", version="1")
    assert "answer length none" in " ".join(text.render(bare).split())
