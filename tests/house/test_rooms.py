"""The house rules a machine can check: order of rooms, size of modules, weight of the import."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "ragdiag"
README = PACKAGE.parent / "README.md"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 500
#: What ``import ragdiag`` and its two commonest names must not load.
HEAVY = ["matplotlib", "ipywidgets", "openai", "scipy", "jinja2", "typer", "rich", "IPython"]


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str, rooms: dict[str, int]) -> str | None:
    """Return the room a dotted name (without ``ragdiag.``) lies in: itself, or a package above."""
    while module:
        if module in rooms:
            return module
        module = module.rpartition(".")[0]
    return None


@pytest.fixture(scope="module")
def rooms() -> dict[str, int]:
    """The order of the rooms, as the README's Architecture section tells it."""
    text = README.read_text(encoding="utf-8")
    section = text.partition("\n## Architecture")[2].partition("\n## ")[0]
    names = re.findall(r"^\| `([\w./]+)`", section, re.MULTILINE)
    order = [name.removesuffix(".py").rstrip("/").replace("/", ".") for name in names]
    assert len(order) == len(set(order)), "a room stands twice in the README"
    return {name: place for place, name in enumerate(order)}


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and module (without ``ragdiag.``) of every import made at import time."""
    waiting: list[ast.stmt] = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("ragdiag."):
                    yield node.lineno, alias.name.removeprefix("ragdiag.")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ragdiag"):
            base = (node.module or "").removeprefix("ragdiag").lstrip(".")
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}".lstrip(".")
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.ClassDef):
            waiting += [
                child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)
            ]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_from_rooms_above(path: Path, rooms: dict[str, int]):
    module = name_of(path)
    if module == "":
        return
    here = room_of(module, rooms)
    assert here is not None, f"ragdiag/{module} is not in the README's Architecture section"
    for line, target in imports(path):
        there = room_of(target, rooms)
        if there is None or there == here or target == "__version__":
            continue
        assert rooms[there] < rooms[here], (
            f"{path.name}:{line} imports {target}, which stands below {here}"
        )


def test_every_room_in_the_readme_exists(rooms: dict[str, int]):
    names = {name_of(path) for path in MODULES}
    assert not [room for room in rooms if room not in names]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_module_passes_the_limit(path: Path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


def test_import_stays_light():
    code = (
        "import sys, ragdiag; ragdiag.evaluate; ragdiag.Results; "
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_resolves():
    import ragdiag

    for name in ragdiag.__all__:
        assert getattr(ragdiag, name) is not None
    assert set(ragdiag.__all__) <= set(dir(ragdiag))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        ragdiag.nonsense  # noqa: B018


def test_the_project_says_nothing_of_the_machine(repository: Path):
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=repository, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    forbidden = re.compile(rb"(?<![\w.])/(?:home|root|work|Users)/\w")
    bad = []
    for name in listed.stdout.split("\0"):
        path = repository / name
        if (
            name
            and path.is_file()
            and path != Path(__file__)
            and forbidden.search(path.read_bytes())
        ):
            bad.append(name)
    assert bad == []
