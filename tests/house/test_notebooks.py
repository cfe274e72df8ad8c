"""The notebooks are tests: run strictly, and fit to be read where nobody can run them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
TUTORIALS = sorted(FOLDER.glob("[0-9]*.ipynb"))
MAX_BYTES = 300_000
CELL_TIMEOUT_S = 60

pytestmark = pytest.mark.notebook


@pytest.fixture(params=TUTORIALS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> dict[str, Any]:
    assert request.param.stat().st_size < MAX_BYTES, "too large to be read on the web"
    return json.loads(request.param.read_text(encoding="utf-8"))


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_strict_run():
    """One process for all notebooks: every output must be what was committed."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-x", "-q"),
            *("--nbval-sanitize-with", str(FOLDER / "sanitize.cfg")),
            *(
                "--nbval-cell-timeout",
                str(CELL_TIMEOUT_S),
                "-o",
                "addopts=",
                "-o",
                "filterwarnings=",
            ),
            *("-p", "no:randomly", "-p", "no:cacheprovider", *map(str, TUTORIALS)),
        ],
        cwd=FOLDER.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_cells_ran_in_order_without_errors(notebook):
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = [output["output_type"] for cell in cells for output in cell["outputs"]]
    assert "error" not in kinds
    assert any(kind in ("execute_result", "display_data") for kind in kinds)


def test_no_cell_ends_in_a_semicolon(notebook):
    assert not [
        cell for cell in code_cells(notebook) if "".join(cell["source"]).rstrip()[-1:] == ";"
    ]


def test_metadata_is_plain(notebook):
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}


def test_no_path_of_a_machine_and_no_secret(notebook):
    text = json.dumps(notebook)
    assert not re.search(r"/(?:home|root|Users|work)/|[A-Z]:\\\\|\bsk-[A-Za-z0-9]{8}", text)
