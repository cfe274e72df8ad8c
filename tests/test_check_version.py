"""The script that guards a release: three places must say one version."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def script(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "check_version", repository / "tools" / "check_version.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def project(folder: Path, *, said: str = "1.2.0", package: str = "1.2.0", log: str = "1.2.0"):
    (folder / "ragdiag").mkdir()
    (folder / "pyproject.toml").write_text(f'[project]\nversion = "{said}"\n')
    (folder / "ragdiag" / "__init__.py").write_text(f'"""Doc."""\n__version__ = "{package}"\n')
    (folder / "CHANGELOG.md").write_text(f"# Changes\n\n## {log}\n\n- ...\n")
    return folder


@pytest.mark.parametrize("tag", [[], ["1.2.0"], ["v1.2.0"]])
def test_agreement_prints_the_version(script, tmp_path, capsys, tag):
    assert script.main(tag, project(tmp_path)) == 0
    assert capsys.readouterr().out == "version=1.2.0\nprerelease=false\n"


@pytest.mark.parametrize("version", ["2.0.0rc1", "2.0.0a3", "2.0.0b2", "2.0.0.dev4"])
def test_prereleases_are_told_apart(script, tmp_path, capsys, version):
    folder = project(tmp_path, said=version, package=version, log=version)
    assert script.main([f"v{version}"], folder) == 0
    assert "prerelease=true" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("places", "tag", "message"),
    [
        ({"package": "1.1.0"}, [], "ragdiag.__version__ is '1.1.0'"),
        ({}, ["v1.3.0"], "the tag is 'v1.3.0'"),
        ({"log": "1.1.0"}, [], "CHANGELOG.md has no section"),
    ],
)
def test_each_disagreement_is_named(script, tmp_path, capsys, places, tag, message):
    assert script.main(tag, project(tmp_path, **places)) == 1
    assert message in capsys.readouterr().err


def test_a_computed_version_is_refused(script, tmp_path):
    folder = project(tmp_path)
    (folder / "ragdiag" / "__init__.py").write_text("from x import __version__\n")
    with pytest.raises(SystemExit, match="no literal __version__"):
        script.main([], folder)


def test_this_project_agrees(script, repository):
    assert script.main([], repository) == 0
