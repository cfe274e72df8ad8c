"""The terminal: what it prints, where it writes, how it ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ragdiag
from ragdiag.cli import app

EXAMPLES = Path(__file__).parents[2] / "examples"
DEMO = ["-d", str(EXAMPLES / "demo_dataset.json")]
DENSE, HYBRID = str(EXAMPLES / "dense_pipeline.py"), str(EXAMPLES / "hybrid_pipeline.py")

PIPELINE = """
import ragdiag

class Silent(ragdiag.Pipeline):
    name = "[red]hostile[/red] \\x1b[31mred"
    def retrieve(self, query):
        {body}

pipeline = Silent()
"""


def ragdiag_command(*arguments: str, expect: int = 0) -> str:
    """Run the command line and return what it printed, errors included."""
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == expect, result.output
    return result.output


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def widest(printed: str) -> int:
    """Return the longest line, paths that were written aside."""
    return max(len(line) for line in printed.splitlines() if not line.startswith("written: "))


def pipeline_file(folder: Path, body: str, name: str = "pipe.py") -> str:
    path = folder / name
    path.write_text(PIPELINE.format(body=body), encoding="utf-8")
    return str(path)


def test_version_in_both_spellings():
    assert (
        ragdiag_command("--version") == ragdiag_command("-v") == f"ragdiag {ragdiag.__version__}\n"
    )


def test_validate_says_what_the_dataset_holds():
    printed = flat(ragdiag_command("validate", *DEMO))
    assert "5 queries, valid" in printed
    assert "factual 2, reasoning 2, multi-hop 1" in printed


def test_validate_lists_every_fault(tmp_path):
    path = tmp_path / "bad.json"
    common = {"id": "q1", "expected_answer": "a"}
    samples = [
        {**common, "query": " ", "relevant_chunk_ids": ["c"], "query_type": "factual"},
        {**common, "query": "b", "relevant_chunk_ids": [], "query_type": "odd"},
    ]
    path.write_text(json.dumps({"name": "n", "version": "1", "samples": samples}))
    printed = ragdiag_command("validate", "-d", str(path), expect=1)
    for part in ("bad.json", "query", "relevant_chunk_ids", "'odd'", "q1"):
        assert part in printed
    assert "Traceback" not in printed


def test_run_prints_every_section_and_writes_every_file(tmp_path):
    files = {name: tmp_path / f"out.{name}" for name in ("json", "csv", "html", "md")}
    store = tmp_path / "run.jsonl"
    printed = ragdiag_command(
        *("run", "-p", DENSE, *DEMO, "--k", "5", "--store", str(store)),
        *("-o", str(files["json"]), "--csv", str(files["csv"])),
        *("--html", str(files["html"]), "--markdown", str(files["md"])),
    )
    for section in (
        "Overall retrieval measures",
        "Retrieval latency",
        "Failure analysis",
        "Query types",
        "Insights",
        "5 completed, 0 failed",
    ):
        assert section in printed
    for category in ragdiag.FailureCategory:
        assert category.value in printed
    assert widest(printed) <= 80
    # What nobody judged found no failure and no pass.
    assert re.search(r"^ANSWER_INCORRECT +all *$", printed, re.MULTILINE)
    report = ragdiag.EvaluationReport.model_validate_json(files["json"].read_text("utf-8"))
    assert report.diagnosis_counts["INSUFFICIENT_CONTEXT"] == 2
    assert len(files["csv"].read_text("utf-8").splitlines()) >= 6
    assert files["html"].read_text("utf-8").startswith("<!")
    assert "INSUFFICIENT_CONTEXT" in files["md"].read_text("utf-8")
    again = ragdiag_command("run", "-p", DENSE, *DEMO, "--store", str(store))
    assert "3 of 5 passed retrieval" in again


def test_each_side_of_a_judge_has_its_own_n():
    printed = flat(ragdiag_command("run", "-p", DENSE, *DEMO, "--judge", "lexical"))
    assert "Answer correct 1.00 2 of 5" in printed
    assert "Grounded 1.00 5 of 5" in printed
    assert "suspected by the offline judge" in printed


def test_run_shows_failed_queries_and_goes_on(tmp_path):
    path = pipeline_file(tmp_path, "raise ValueError('[bold]no[/bold] \\x1b[2J')")
    printed = ragdiag_command("run", "-p", path, *DEMO)
    assert "0 completed, 5 failed" in printed
    assert "5 queries: retrieval failed: ValueError: [bold]no[/bold]" in flat(printed)
    assert "\x1b" not in printed
    assert "[red]hostile[/red] red" in printed


def test_compare_prints_the_facts_of_the_demo(tmp_path):
    output = tmp_path / "comparison.json"
    printed = ragdiag_command("compare", "-pa", DENSE, "-pb", HYBRID, *DEMO, "-o", str(output))
    said = flat(printed)
    for fact in (
        "Precision@5 0.87 0.90 +0.03",
        "Recall@5 0.80 1.00 +0.20",
        "MRR 0.87 0.87 0.00",
        "PASS 3 5 +2",
        "INSUFFICIENT_CONTEXT 2 0 -2",
        "factual 1.00 -> 1.00 1.00 -> 1.00",
        "reasoning 0.75 -> 1.00 1.00 -> 1.00",
        "multi-hop 0.50 -> 1.00 0.33 -> 0.33",
        "improved 2, regressed 0, unchanged 3",
        "winner hybrid_pipeline",
        "Higher quality <-> higher latency",
        "improves Recall@5 by 20 percentage points and MRR by 0 points",
        "hybrid_pipeline leads on recall (+0.20) but 5 queries cannot settle it.",
    ):
        assert fact in said
    assert widest(printed) <= 80
    report = ragdiag.ComparisonReport.model_validate_json(output.read_text("utf-8"))
    assert report.winner == "hybrid_pipeline"


def test_compare_takes_stored_runs_in_place_of_pipelines(tmp_path):
    stores = [str(tmp_path / f"{name}.jsonl") for name in "ab"]
    for pipeline, store in zip((DENSE, HYBRID), stores, strict=True):
        ragdiag_command("run", "-p", pipeline, *DEMO, "--store", store)
    said = flat(ragdiag_command("compare", "-p", stores[0], "-p", stores[1]))
    assert "improved 2, regressed 0, unchanged 3" in said


def test_compare_needs_two_sides():
    assert "at least two pipelines" in flat(
        ragdiag_command("compare", "-pa", DENSE, *DEMO, expect=2)
    )


@pytest.mark.parametrize("kind", ["store", "report"])
def test_diagnose_names_causes_queries_and_actions(tmp_path, kind):
    store, report = tmp_path / "run.jsonl", tmp_path / "report.json"
    ragdiag_command("run", "-p", DENSE, *DEMO, "--store", str(store), "-o", str(report))
    said = flat(ragdiag_command("diagnose", str(store if kind == "store" else report)))
    assert "INSUFFICIENT_CONTEXT 2 queries" in said
    assert "q004, q005" in said
    assert "raise k" in said


def test_diagnose_sees_a_run_at_another_k(tmp_path):
    store = tmp_path / "run.jsonl"
    ragdiag_command("run", "-p", HYBRID, *DEMO, "--store", str(store))
    assert "WRONG_CHUNK_RETRIEVED" in ragdiag_command("diagnose", str(store), "--k", "1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "-p", "missing.py", *DEMO], "missing.py"),
        (["run", "-p", DENSE, "-d", "missing.json"], "missing.json: there is no such file"),
        (["run", "-p", DENSE, *DEMO, "-o", "no/such/folder/x.json"], "x.json"),
        (["run", "-p", DENSE, *DEMO, "--model", "m"], "--model is for a judge"),
        (["run", "-p", DENSE, *DEMO, "--precision-denominator", "x"], "precision_denominator"),
        (["run", "-p", DENSE, *DEMO, "--judge", "nonsense"], "nonsense"),
        (["diagnose", "missing.jsonl"], "missing.jsonl"),
        (["diagnose", "missing.json"], "missing.json"),
    ],
)
def test_bad_input_gets_one_message_and_exit_code_1(arguments, message):
    printed = ragdiag_command(*arguments, expect=1)
    assert message in printed
    assert "Traceback" not in printed
    assert printed.startswith("error: ")


def test_a_bad_path_is_refused_before_the_pipeline_runs(tmp_path):
    marker = tmp_path / "ran"
    path = pipeline_file(tmp_path, f"open({str(marker)!r}, 'w').close(); return []")
    ragdiag_command("run", "-p", path, *DEMO, "--csv", str(tmp_path), expect=1)
    assert not marker.exists()


def test_outputs_never_replace_a_file_that_is_in_use(tmp_path):
    golden = tmp_path / "golden.json"
    golden.write_bytes((EXAMPLES / "demo_dataset.json").read_bytes())
    before = golden.read_bytes()
    pipeline = pipeline_file(tmp_path, "print('called')")
    run = ["run", "-p", f"{pipeline}:pipeline", "-d", str(golden)]
    both = str(tmp_path / "both")
    for options in (
        ["--output", str(golden)],
        ["--csv", pipeline],
        ["--store", both, "--html", both],
        ["--output", both, "--csv", both],
    ):
        printed = ragdiag_command(*run, *options, expect=1)
        assert "this command uses the file already" in flat(printed)
        assert "called" not in printed
    assert golden.read_bytes() == before


def test_faults_stand_on_lines_of_their_own(tmp_path):
    (tmp_path / "bad.json").write_text('{"samples": [{"id": "q1"}]}', encoding="utf-8")
    printed = ragdiag_command("validate", "-d", str(tmp_path / "bad.json"), expect=1)
    assert [line[:12] for line in printed.splitlines()[1:]] == ["- samples[0]"] * 4


def test_files_are_written_though_nobody_reads_the_terminal(tmp_path, monkeypatch):
    def closed(*arguments: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("ragdiag.cli.show_report", closed)
    report = tmp_path / "report.json"
    CliRunner().invoke(app, ["run", "-p", DENSE, *DEMO, "-o", str(report)])
    assert ragdiag.load_report(report).total_queries == 5


def test_options_without_effect_are_refused(stores, tmp_path):
    sides = [part for store in stores for part in ("-p", store)]
    printed = ragdiag_command("compare", *sides, "--judge", "lexical", expect=1)
    assert "judge= is for running pipelines" in flat(printed)
    report = str(tmp_path / "report.json")
    ragdiag_command("diagnose", stores[0], "-o", report)
    ragdiag_command("diagnose", report)
    for option in (["--k", "3"], ["--csv", str(tmp_path / "rows.csv")]):
        printed = ragdiag_command("diagnose", report, *option, expect=1)
        assert f"is a report: its numbers are final, so {option[0]} has no effect" in flat(printed)


def test_compare_records_each_pipeline(tmp_path):
    stores = [str(tmp_path / name) for name in ("dense.jsonl", "hybrid.jsonl")]
    recorded = [part for store in stores for part in ("--store", store)]
    ragdiag_command("compare", "-pa", DENSE, "-pb", HYBRID, *DEMO, *recorded)
    assert "hybrid_pipeline" in ragdiag_command("compare", "-pa", stores[0], "-pb", stores[1])


def test_long_names_do_not_break_the_columns(tmp_path):
    sides = []
    for letter in "xy":
        path = pipeline_file(tmp_path, "return []", f"{letter}.py")
        text = Path(path).read_text("utf-8").replace("[red]hostile[/red]", letter * 60)
        Path(path).write_text(text, encoding="utf-8")
        sides += ["-p", path]
    printed = ragdiag_command("compare", *sides, *DEMO)
    assert widest(printed) <= 80
    assert "RETRIEVED_BUT_NOT_GROUNDED " in printed
    assert f"{'x' * 60} red (A) against {'y' * 60} red (B)" in flat(printed)


def test_a_console_without_unicode_gets_replacements(tmp_path):
    path = Path(pipeline_file(tmp_path, "return []"))
    path.write_text(path.read_text("utf-8").replace("[red]", "über "), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "from ragdiag.cli import main; main()", "run", "-p", path, *DEMO],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert b"?ber hostile" in done.stdout


def test_usage_errors_exit_with_2():
    assert "No such option" in ragdiag_command("run", "--nonsense", expect=2)


def test_an_interrupt_exits_with_130_and_keeps_what_was_done(tmp_path):
    stop = "if os.path.exists('stop'): raise KeyboardInterrupt"
    body = f"import os\n        {stop}\n        open('stop', 'w').close(); return []"
    path = pipeline_file(tmp_path, body)
    store = tmp_path / "run.jsonl"
    code = "from ragdiag.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "-p", path, *DEMO, "--store", str(store)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(EXAMPLES.parent), "PATH": ""},
    )
    assert done.returncode == 130, done.stderr
    assert "interrupted" in done.stderr
    assert "Traceback" not in done.stderr
    assert store.exists()


def test_interrupted_twice_a_hanging_call_is_left_at_once(tmp_path):
    # The second interrupt comes while the first one's call still hangs.
    body = "import time; open('hangs', 'w').close(); time.sleep(600)"
    path = pipeline_file(tmp_path, body)
    code = (
        "import os, signal, threading, time\n"
        # A shell that starts the tests in the background lets them ignore interrupts.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from ragdiag.cli import main\n"
        "def interrupt():\n"
        "    while not os.path.exists('hangs'): time.sleep(0.05)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "import ragdiag.cli\n"
        "said = ragdiag.cli._say_error\n"
        "def say(text, label='error'):\n"
        "    said(text, label)\n"
        "    if label == 'waiting': os.kill(os.getpid(), signal.SIGINT)\n"
        "ragdiag.cli._say_error = say\n"
        "threading.Thread(target=interrupt, daemon=True).start()\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "-p", path, *DEMO],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"PYTHONPATH": str(EXAMPLES.parent), "PATH": ""},
    )
    assert done.returncode == 130, done.stderr
    assert "waiting: for calls in flight to come back" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("runs")
    paths = [str(folder / f"{name}.jsonl") for name in ("dense", "hybrid")]
    for pipeline, store in zip((DENSE, HYBRID), paths, strict=True):
        ragdiag_command("run", "-p", pipeline, *DEMO, "--store", store)
    return paths


def test_a_gate_that_passes(stores, tmp_path, monkeypatch):
    summary, junit, note = (tmp_path / name for name in ("summary.md", "junit.xml", "note.md"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    printed = ragdiag_command(
        *("gate", *stores, "--max-regressed", "0", "--min-recall", "0.9"),
        *("--junit", str(junit), "--markdown", str(note)),
    )
    assert "Gate passed" in printed
    assert "<testsuite" in junit.read_text("utf-8")
    assert "Gate passed" in note.read_text("utf-8")
    assert "Gate passed" in summary.read_text("utf-8")


@pytest.mark.parametrize(
    ("thresholds", "reason"),
    [
        (["--max-regressed", "1"], "max_regressed"),
        (["--min-recall", "0.9"], "min_recall"),
        (["--no-new", "INSUFFICIENT_CONTEXT"], "no_new"),
        (["--min-groundedness", "0.5"], "min_groundedness"),
    ],
)
def test_a_gate_that_fails_exits_with_3_and_says_why(stores, thresholds, reason):
    printed = ragdiag_command("gate", stores[1], stores[0], *thresholds, expect=3)
    assert "Gate failed" in printed
    assert reason in printed


def test_a_gate_passes_on_missing_evidence_only_when_told_to(stores):
    ragdiag_command("gate", *stores, "--min-groundedness", "0.5", expect=3)
    ragdiag_command("gate", *stores, "--min-groundedness", "0.5", "--allow-missing")


def test_the_dashboard_refuses_a_run_it_cannot_read(tmp_path):
    printed = ragdiag_command("dashboard", str(tmp_path / "no.jsonl"), "--no-browser", expect=1)
    assert "no.jsonl" in printed


def test_compare_writes_one_row_a_query(stores, tmp_path):
    csv = tmp_path / "outcomes.csv"
    ragdiag_command("compare", "-p", stores[0], "-p", stores[1], "--csv", str(csv))
    assert csv.read_text("utf-8").count("improved") == 2


def test_validate_checks_labels_against_a_corpus(tmp_path):
    dataset = tmp_path / "golden.json"
    sample = {"id": "q1", "query": "How long do refunds take?", "expected_answer": "7 days"}
    sample |= {"relevant_chunk_ids": ["refund"], "query_type": "factual"}
    dataset.write_text(json.dumps({"name": "n", "version": "1", "samples": [sample]}))
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"_id": "refunds", "text": "Refunds take seven days."}\n')
    printed = flat(
        ragdiag_command("validate", "-d", str(dataset), "--corpus", str(corpus), expect=1)
    )
    assert "error label_not_in_corpus, q1: no chunk 'refund'" in printed
    assert "not checked" in printed
    corpus.write_text('{"_id": "refund", "text": "Refunds take seven days."}\n')
    printed = flat(ragdiag_command("validate", "-d", str(dataset), "--corpus", str(corpus)))
    assert "nothing suspicious" in printed


def test_validate_finds_bad_labels_with_a_stored_run(stores):
    printed = ragdiag_command("validate", *DEMO, "--run", stores[0])
    assert "Labels" in printed


def test_diagnose_takes_files_of_other_tools(repository):
    folder = repository / "examples" / "traces"
    path = next(path for path in sorted(folder.iterdir()) if "ragas" in path.name)
    assert "6 of 6 passed retrieval; answers not judged" in ragdiag_command("diagnose", str(path))
    assert "no_such" in ragdiag_command("diagnose", str(path), "--format", "no_such", expect=1)
