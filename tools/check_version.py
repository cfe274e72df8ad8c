"""Check that the version to be published is said alike everywhere.

Usage: ``python tools/check_version.py [TAG]``. The version of ``pyproject.toml``, ``__version__``
of the package and TAG (with or without a leading ``v``; left out, only the first two) must agree,
and ``CHANGELOG.md`` must have a section for it. Prints ``VERSION`` and ``prerelease=true|false``,
in the form ``$GITHUB_OUTPUT`` takes, and exits with 1 and one line for each disagreement.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

#: PEP 440 spellings of alpha, beta, release candidate and development releases.
PRE_RELEASE = re.compile(r"(a|b|rc)\d+|\.dev\d+")


def package_version(init: Path) -> str:
    """Return the literal assigned to ``__version__``, without importing the package."""
    for node in ast.parse(init.read_text(encoding="utf-8")).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == "__version__"
            and isinstance(node.value, ast.Constant)
        ):
            return str(node.value.value)
    raise SystemExit(f"{init}: no literal __version__ = ...")


def disagreements(root: Path, tag: str | None) -> tuple[str, list[str]]:
    """Return the project's version and one line for each place that says otherwise."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    version = str(project["project"]["version"])
    found = []
    if (said := package_version(root / "ragdiag" / "__init__.py")) != version:
        found.append(f"ragdiag.__version__ is {said!r}, pyproject.toml says {version!r}")
    if tag is not None and tag.removeprefix("v") != version:
        found.append(f"the tag is {tag!r}, pyproject.toml says {version!r}")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## \[?{re.escape(version)}\b", changelog, re.MULTILINE):
        found.append(f"CHANGELOG.md has no section '## {version}'")
    return version, found


def main(arguments: list[str], root: Path) -> int:
    """Print the version, or what disagrees; return the exit code."""
    version, found = disagreements(root, arguments[0] if arguments else None)
    for line in found:
        print(line, file=sys.stderr)
    if found:
        return 1
    print(f"version={version}")
    print(f"prerelease={'true' if PRE_RELEASE.search(version) else 'false'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:], Path(__file__).parents[1]))
