"""The GitHub Action: its script runs in a shell as it stands, on stored runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

N = 40


def script(repository: Path) -> str:
    """Return the script of the step ``gate``, found by its indentation."""
    text = (repository / ".github" / "actions" / "gate" / "action.yml").read_text(encoding="utf-8")
    block = text.partition("- id: gate")[2].partition("run: |\n")[2]
    return "\n".join(line[8:] for line in block.splitlines())


@pytest.fixture
def act(repository, tmp_path):
    """Run the action's script with some inputs; return its exit code and what it wrote."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    command = tmp_path / "ragdiag"
    command.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -c "from ragdiag.cli import main; main()" "$@"\n',
        encoding="utf-8",
    )
    command.chmod(0o755)

    def run(baseline: Path, candidate: Path, thresholds: str) -> tuple[int, str]:
        environment = {
            **os.environ,
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(repository),
            "BASELINE": str(baseline),
            "CANDIDATE": str(candidate),
            "THRESHOLDS": thresholds,
            "JUNIT": str(tmp_path / "gate.xml"),
            "MARKDOWN": str(tmp_path / "gate.md"),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        }
        done = subprocess.run(
            [bash, "-e", "-o", "pipefail", "-c", script(repository)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, (tmp_path / "output").read_text(encoding="utf-8")

    return run


@pytest.fixture
def runs(build, tmp_path):
    paths = []
    for name, ranks in (("main", [1] * N), ("branch", [1] * (N - 3) + [0] * 3)):
        paths.append(tmp_path / f"{name}.jsonl")
        build(name, ranks).run.save(paths[-1])
    return paths


def test_the_action_passes(act, runs, tmp_path):
    assert act(*runs, "--max-regressed 3 --min-recall 0.9") == (0, "passed=true\n")
    assert "Gate passed" in (tmp_path / "summary").read_text(encoding="utf-8")
    assert (tmp_path / "gate.xml").is_file()
    assert (tmp_path / "gate.md").is_file()


def test_the_action_fails_with_the_gate(act, runs):
    assert act(*runs, "--max-regressed 2") == (3, "passed=false\n")


def test_the_action_needs_no_thresholds(act, runs):
    assert act(*runs, "") == (0, "passed=true\n")


def test_inputs_are_never_read_as_code(repository, act, runs, tmp_path):
    assert "${{" not in script(repository)
    code, _ = act(*runs, f"$(touch {tmp_path}/owned) ; touch {tmp_path}/owned")
    assert code != 0
    assert not (tmp_path / "owned").exists()


def test_the_example_names_options_that_exist(repository):
    from ragdiag.gate import Thresholds

    text = (repository / "examples" / "ci" / "rag_gate.yml").read_text(encoding="utf-8")
    options = re.search(r"thresholds: (.*)", text)[1]
    for option in re.findall(r"--([\w-]+)", options):
        assert hasattr(Thresholds(), option.replace("-", "_"))
