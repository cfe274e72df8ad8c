"""Runs that are killed without warning, and go on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("kill_runs.py")
KILLS = 25


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the runs are forked")
@pytest.mark.parametrize("judge", ["plain", "judge"])
def test_a_killed_run_goes_on_to_the_same_report(
    judge: str, tmp_path: Path, repository: Path
) -> None:
    output = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), str(KILLS), "5", judge],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, "PYTHONPATH": str(repository)},
    )
    assert output.returncode == 0, output.stderr
    seen = json.loads(output.stdout)
    assert seen["kills"] == KILLS
    assert seen["runs"] >= 3
    assert seen["repeated"] == []
    assert seen["different"] == 0
    # Beyond what is needed, only what was in flight at a kill was done twice.
    assert seen["most_calls"] <= 0
