"""Execute notebooks in place and normalise them, so that two runs give the same bytes.

Usage: ``python tools/run_notebooks.py [NOTEBOOK ...]`` (all of ``notebooks/`` by default).
Timing, widget state and the version of the kernel's Python are left out; outputs stay, since they
are what readers see and what ``pytest --nbval`` compares.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

CELL_TIMEOUT_S = 120


def normalise(notebook: nbformat.NotebookNode) -> None:
    """Leave only what is the same from run to run."""
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:02d}"
        tags = cell.metadata.get("tags")
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        for output in cell.get("outputs", []):
            # The id of a widget's model is new in every kernel; the static HTML beside it stays.
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
            output.pop("transient", None)


def run(path: Path) -> None:
    """Execute one notebook from its own folder and write it back."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT_S,
        kernel_name="python3",
        record_timing=False,
        store_widget_state=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    client.execute()
    normalise(notebook)
    nbformat.validate(notebook)
    temporary = path.with_suffix(".ipynb.tmp")
    nbformat.write(notebook, temporary)
    temporary.replace(path)


def main(arguments: list[str]) -> int:
    """Run the named notebooks, or all."""
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    folder = Path(__file__).parents[1] / "notebooks"
    for path in map(Path, arguments) if arguments else sorted(folder.glob("[0-9]*.ipynb")):
        print(path.name)
        run(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
