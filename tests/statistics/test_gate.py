"""The gate: what passes, what fails, what lacks evidence; its files and its pytest fixture."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from ragdiag.comparison import Comparison
from ragdiag.errors import ComparisonError, ExportError, SettingsError
from ragdiag.gate_result import GateCheck, GateResult

N = 40


def states(result) -> dict[str, str]:
    return {check.name: check.state for check in result.checks}


@pytest.fixture
def same(build):
    return Comparison(build("main", [1] * N), build("branch", [1] * N))


def test_a_candidate_that_is_no_worse_passes(same):
    result = same.gate()
    assert result
    assert result.passed
    assert result.exit_code == 0
    assert result.reasons == ()
    assert states(result) == {"no_worse": "passed"}


def test_a_candidate_that_is_proven_worse_fails(build):
    comparison = Comparison(build("main", [1] * N), build("branch", [1] * 20 + [0] * 20))
    result = comparison.gate()
    assert not result
    assert result.exit_code == 3
    assert result.reasons[0].startswith("no_worse failed: recall -0.500 (p < 0.001), MRR -0.500")
    assert comparison.gate(no_worse=False, max_regressed=20).passed
    assert str(result).startswith("Gate failed: branch against main. main is better than branch")


def test_missing_evidence_never_passes_unless_told(build):
    judged = [True] * N
    a = build("main", [1] * N, correct=judged, grounded=judged)
    b = build("branch", [1] * N)
    comparison = Comparison(a, b)
    result = comparison.gate(min_correctness=0.5, max_regressed=0)
    assert states(result) == {
        "no_worse": "missing",
        "max_regressed=0": "missing",
        "min_correctness=0.5": "missing",
    }
    assert not result
    assert result.reasons == (
        "no_worse missing: groundedness, correctness not measured on both sides",
        "max_regressed=0 missing: 0 regressed; 40 could not be compared",
        "min_correctness=0.5 missing: correctness was not measured",
    )
    assert comparison.gate(min_correctness=0.5, max_regressed=0, allow_missing=True)


def test_a_mean_counts_what_was_not_measured_as_zero(build):
    a = build("main", [1] * 10)
    b = build("branch", [1] * 10, failed=[0, 1])
    result = Comparison(a, b).gate(no_worse=False, min_recall=0.8, max_failed=2)
    assert states(result) == {"min_recall=0.8": "passed", "max_failed=2": "passed"}
    result = Comparison(a, b).gate(no_worse=False, min_recall=0.9, max_failed=1)
    assert states(result) == {"min_recall=0.9": "missing", "max_failed=1": "failed"}
    assert result.checks[0].detail == (
        "recall 1.000 of 8 queries; 2 not measured could make it 0.800"
    )


def test_means_below_their_minimum_fail(build):
    judged = [True] * 8 + [False] * 2
    a = build("main", [1] * 10, correct=judged, grounded=judged)
    b = build("branch", [1] * 8 + [0] * 2, correct=judged, grounded=judged)
    result = Comparison(a, b).gate(
        no_worse=False,
        min_recall=0.8,
        min_mrr=0.81,
        min_correctness=0.8,
        min_groundedness=0.9,
        min_pass_rate=0.6,
    )
    assert states(result) == {
        "min_recall=0.8": "passed",
        "min_mrr=0.81": "failed",
        "min_groundedness=0.9": "failed",
        "min_correctness=0.8": "passed",
        "min_pass_rate=0.6": "passed",
    }


def test_regressions_are_counted_and_listed(build):
    comparison = Comparison(build("main", [1] * N), build("branch", [1] * (N - 2) + [0, 0]))
    assert comparison.gate(max_regressed=2)
    result = comparison.gate(max_regressed=1)
    assert result.reasons == ("max_regressed=1 failed: 2 regressed",)
    assert result.regressed == ("q038", "q039")


def test_new_failures_of_a_kind(build):
    comparison = Comparison(
        build("main", [0, 1, 1, 1] * 5), build("branch", [0, 0, 1, 4] * 5, ms=[2_000.0] * 20)
    )
    result = comparison.gate(
        no_worse=False, no_new=["WRONG_CHUNK_RETRIEVED", "WRONG_CHUNK_RANK", "ANSWER_INCORRECT"]
    )
    assert states(result) == {
        "no_new=WRONG_CHUNK_RETRIEVED": "failed",
        "no_new=WRONG_CHUNK_RANK": "failed",
        "no_new=ANSWER_INCORRECT": "missing",
    }
    assert result.checks[0].detail == "5 new (q001, q005, q009, q013, q017)"
    fine = comparison.gate(no_worse=False, no_new="UNKNOWN")
    assert fine
    with pytest.raises(SettingsError, match=r"no_new must be of WRONG_CHUNK_RETRIEVED, .*'PASS'"):
        comparison.gate(no_new="PASS")
    with pytest.raises(SettingsError, match="got 'NONSENSE'"):
        comparison.gate(no_new="NONSENSE")


def test_many_ids_are_counted(build):
    comparison = Comparison(build("main", [1] * N), build("branch", [0] * N))
    result = comparison.gate(no_new="WRONG_CHUNK_RETRIEVED")
    assert result.checks[1].detail.endswith("q009 and 30 more)")
    assert "40 regressed: q000" in result.to_markdown()
    assert "and 30 more" in result.to_markdown()


def test_a_drop_must_be_ruled_out(build):
    few = Comparison(build("main", [1] * 10), build("branch", [1] * 10))
    result = few.gate(no_worse=False, max_drop=0.05)
    assert states(result) == {
        "max_drop=0.05 of recall": "failed",
        "max_drop=0.05 of MRR": "failed",
    }, "ten ties cannot rule out a drop of five points"
    many = Comparison(build("main", [1] * 200), build("branch", [1] * 200))
    assert many.gate(max_drop=0.05)
    gone = Comparison(build("main", [1] * 200), build("branch", [1] * 200, failed=range(30)))
    result = gone.gate(no_worse=False, max_drop=0.05)
    assert set(states(result).values()) == {"missing"}
    assert "30 missing values could make it -0.150" in result.reasons[0]
    one_sided = Comparison(
        build("main", [1] * 9, correct=[True] * 9), build("branch", [1] * 9)
    ).gate(no_worse=False, max_drop=0.9)
    assert states(one_sided)["max_drop=0.9 of correctness"] == "missing"


def test_times_have_a_limit(build):
    a = build("main", [1] * N)
    b = build("branch", [1] * N, ms=[100.0] * N)
    comparison = Comparison(a, b)
    assert comparison.gate(max_p95_ms=100)
    assert not comparison.gate(max_p95_ms=99)
    untimed = Comparison(a, build("branch", [1] * N, ms=[float("nan")] * N))
    assert untimed.gate(max_p95_ms=99).reasons == (
        "max_p95_ms=99 missing: retrieval was not timed",
    )
    partly = Comparison(a, build("branch", [1] * N, ms=[1.0] * 39 + [float("nan")]))
    assert partly.gate(max_p95_ms=99).reasons == (
        "max_p95_ms=99 missing: 1.0 ms over 40 queries; 1 not timed".replace("40", "39"),
    )


def test_nothing_measured_is_missing(build):
    sides = [build(name, [1] * 3, failed=range(3)) for name in ("main", "branch")]
    result = Comparison(*sides).gate(max_drop=0.1)
    assert not result
    assert set(states(result).values()) == {"missing"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"max_regresed": 1},
            "no threshold 'max_regresed'; there are allow_missing, max_drop",
        ),
        ({"max_regressed": -1}, "max_regressed must be a whole number"),
        ({"max_failed": 0.5}, "max_failed must be a whole number"),
        ({"min_recall": 80}, r"min_recall must lie in \[0, 1\], got 80"),
        ({"max_drop": -0.1}, "max_drop must lie"),
        ({"max_p95_ms": 0}, "max_p95_ms must be above 0 ms"),
        ({"no_worse": False}, "checks nothing"),
        ({"alpha": 0}, "alpha must lie"),
    ],
)
def test_senseless_gates_are_refused(same, options, message):
    with pytest.raises(SettingsError, match=message):
        same.gate(**options)


def test_one_of_several_candidates(build):
    comparison = Comparison(build("main", [1] * N), build("x", [1] * N), build("y", [0] * N))
    assert comparison.gate(pipeline="x")
    assert not comparison.gate(pipeline="y")
    with pytest.raises(ComparisonError, match="pipeline must be one of 'x', 'y', got None"):
        comparison.gate()


# -- files -----------------------------------------------------------------------------------------
def hostile() -> GateResult:
    return GateResult(
        "ma\x00in|<b>",
        "br\x1banch",
        (
            GateCheck("min_recall=0.8", "failed", "recall <0.1> & | \ud800"),
            GateCheck("no_worse", "missing", "nothing"),
            GateCheck("max_failed=0", "passed", "0 failed"),
        ),
        "nothing is known",
        regressed=("q|1", "<script>"),
    )


def test_junit_is_read_by_an_xml_parser(tmp_path):
    path = tmp_path / "gate.xml"
    text = hostile().to_junit(path)
    suite = ElementTree.fromstring(path.read_bytes())
    assert ElementTree.tostring(suite) == ElementTree.tostring(
        ElementTree.fromstring(text.encode())
    )
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "2", "0")
    assert [case.get("name") for case in suite.iter("testcase")] == [
        "min_recall=0.8",
        "no_worse",
        "max_failed=0",
    ]
    assert [each.get("type") for each in suite.iter("failure")] == ["failed", "missing"]
    assert "regressed: <script>" in suite.findtext("system-out")


def test_allowed_gaps_are_skipped_in_junit():
    shown = hostile()
    allowed = GateResult(shown.baseline, shown.candidate, shown.checks[1:], "", (), True)
    suite = ElementTree.fromstring(allowed.to_junit().encode())
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")
    assert suite.find("testcase/skipped").get("message") == "nothing"
    assert allowed.passed


def test_markdown_escapes_what_pipelines_are_called(tmp_path):
    path = tmp_path / "gate.md"
    text = hostile().to_markdown(path)
    assert path.read_text(encoding="utf-8") == text
    assert "<script>" not in text
    assert "<b>" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert all(line.replace("\\|", "").count("|") == 4 for line in rows)


def test_the_job_summary_is_appended_to(tmp_path):
    path = tmp_path / "summary.md"
    path.write_text("before\n", encoding="utf-8")
    result = hostile()
    assert result.append_step_summary({"GITHUB_STEP_SUMMARY": str(path)})
    text = path.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert "min\\_recall=0.8" in text
    assert not result.append_step_summary({})
    with pytest.raises(ExportError):
        result.to_junit(tmp_path / "absent" / "gate.xml")


# -- the fixture -----------------------------------------------------------------------------------
def test_the_fixture_passes_and_returns_the_result(ragdiag_gate, build):
    result = ragdiag_gate(build("main", [1] * N), build("branch", [1] * N), min_recall=0.9, k=3)
    assert result.passed


def test_the_fixture_fails_with_reasons(ragdiag_gate, build):
    with pytest.raises(pytest.fail.Exception, match=r"min_recall=0\.9: recall 0\.000"):
        ragdiag_gate(build("main", [1] * N), build("branch", [0] * N), min_recall=0.9)


def test_the_fixture_reads_stored_runs(ragdiag_gate, build, tmp_path):
    paths = [tmp_path / f"{name}.jsonl" for name in ("main", "branch")]
    for path in paths:
        build(path.stem, [1] * N).run.save(path)
    assert ragdiag_gate(*paths, max_regressed=0).candidate == "branch"
