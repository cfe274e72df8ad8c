"""The static report: one file, every query, a strict policy, no help from a script needed."""

from __future__ import annotations

import hashlib
import importlib.util
import re
from base64 import b64encode
from pathlib import Path

import pytest

from ragdiag.comparison import Comparison
from ragdiag.display import page
from ragdiag.errors import ExportError
from ragdiag.results import Results


def _sibling(name):
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"display_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


conftest = _sibling("conftest")
Markup = _sibling("markup").Markup


@pytest.fixture(scope="session")
def report(results):
    return page.render(results)


@pytest.fixture(scope="session")
def pair_report(comparison):
    return page.render(comparison)


@pytest.fixture(params=["report", "pair_report"])
def source(request):
    return request.getfixturevalue(request.param)


def test_every_query_can_be_opened(report, results):
    assert report.count('<details class="query') == 42
    found = re.findall(r"<summary><samp>(q\d+)</samp>", report)
    assert found[:20] == results.failures().query_ids
    assert set(found) == set(results.query_ids)


def test_a_comparison_has_both_sides_of_every_query(pair_report):
    assert pair_report.count('<details class="query') == 42
    assert "42 queries: 3 regressed, 14 improved, 25 unchanged" in pair_report
    outcomes = re.findall(r'data-outcome="(\w+)"', pair_report)
    assert outcomes == ["regressed"] * 3 + ["improved"] * 14 + ["unchanged"] * 25
    assert "Settings, Account, Close" in pair_report
    assert "accounts cannot be closed online" in pair_report.replace('<b class="marked">', "")


def test_the_policy_allows_our_style_and_script_alone(source):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', source)[1]
    assert policy.startswith("default-src 'none';")
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", source, flags=re.DOTALL)
        digest = b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    page_ = Markup(source)
    assert not {"style", "onclick", "src", "href"} & set(page_.attributes)
    assert not {"img", "link", "iframe", "a", "object"} & set(page_.elements)


def test_it_is_well_formed_and_names_its_parts(source):
    found = Markup(source.removeprefix("<!doctype html>"))
    assert not found.faults
    assert found.elements["h1"] == 1
    assert found.elements["table"] == found.elements["caption"]
    ids = [value for _, name, value in found.values if name == "id"]
    assert ids == [f"query-{n}" for n in range(1, 43)]
    heads = [value for tag, name, value in found.values if (tag, name) == ("th", "scope")]
    assert len(heads) == found.elements["th"]


def test_every_colour_has_its_class(source):
    css = re.search(r"<style>(.*?)</style>", source, flags=re.DOTALL)[1]
    used = set(re.findall(r"\bk[0-9a-f]{6}\b", source.replace(css, "")))
    assert used
    assert all(f".{name} {{" in css for name in used)


def test_filters_list_values_with_counts(report):
    assert "<form hidden>" in report
    assert '<option value="INSUFFICIENT_CONTEXT">INSUFFICIENT_CONTEXT (5)</option>' in report
    assert '<select name="type"><option value="">all (42)</option>' in report


def test_two_calls_give_the_same_bytes(results, report):
    assert page.render(results) == report


def test_it_is_written_at_once_or_not_at_all(results, tmp_path):
    path = tmp_path / "report.html"
    results.to_html(path)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(ExportError):
        results.to_html(tmp_path / "no" / "such" / "folder.html")
    with pytest.raises(TypeError, match="a report is of Results or a Comparison"):
        page.write_report(results["q001"], tmp_path / "x.html")


def test_two_thousand_queries_stay_below_ten_megabytes():
    run = conftest.make_large(2000)
    source = page.render(Results(run))
    assert source.count('<details class="query') == 2000
    assert len(source.encode()) < 10_000_000


def test_three_pipelines(results, comparison):
    three = Comparison(results, comparison.results[1], results, names=["a", "b", "c"])
    source = page.render(three)
    assert source.count('<details class="query') == 42
    assert not Markup(source.removeprefix("<!doctype html>")).faults
