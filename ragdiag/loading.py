"""Python files as sources of objects, each isolated with the modules beside it.

A pipeline file imports its neighbours by bare names (``import conf``). Put on ``sys.path``, two
such files would share whichever ``conf`` came first. Here every file gets a *home*: a private
package whose modules are the files of its folder. The modules of a home have builtins of their own
whose ``__import__`` looks in the home first; since an ``import`` statement takes ``__import__``
from the builtins of the module it stands in, this holds at any time and in any thread.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import hashlib
import importlib
import importlib.util
import io
import itertools
import linecache
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
)
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from ragdiag.errors import PipelineLoadError

__all__ = ["Source", "load_object", "source_file"]

DEFAULT_NAME = "pipeline"

#: Every home is a package of this prefix and a running number.
_PREFIX = "_ragdiag_home_"
_numbers = itertools.count(1)
_homes: dict[str, _Home] = {}

#: One load at a time: it watches ``sys.path`` and the standard output.
_loading = threading.RLock()

#: What a file printed while it was imported is quoted in an error up to this many characters.
_QUOTED = 500


@dataclass(frozen=True)
class Source:
    """Where an object was loaded from.

    Attributes
    ----------
    spec : str
        ``path/to/file.py:name`` (absolute) or ``package.module:name``; loads it again.
    digest : str
        SHA-256 of the file and of the neighbours it imports, inside functions too.
    """

    spec: str
    digest: str


def load_object(spec: str | Path) -> tuple[Any, Source]:
    """Import a file or module and return the object of it that `spec` names.

    Parameters
    ----------
    spec : str or pathlib.Path
        ``file.py``, ``file.py:name`` or ``package.module:name``.

    Raises
    ------
    PipelineLoadError
        See :func:`ragdiag.load_pipeline`.
    """
    path, module_name, name = _split(spec)
    with _loading:
        if path is not None:
            home = _Home(path.parent)
            label = str(path)
            module = _import(label, home, partial(home.run, path))
            shown, digest = f"{path}:{name}", _digest_of_files(path, [path.parent])
        else:
            label = str(module_name)
            module, digest = _load_module(label)
            shown = f"{label}:{name}"
    value: Any = module
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise PipelineLoadError(f"{label}: {_missing(module, name)}") from None
    return value, Source(shown, digest)


def source_file(spec: str) -> Path:
    """Return the file that ``file.py`` or ``file.py:name`` means, whether it exists or not.

    Examples
    --------
    >>> source_file("pipes/bm25.py:titles").as_posix()
    'pipes/bm25.py'
    """
    file, colon, _ = spec.rpartition(":")
    return Path(file if colon and file.endswith(".py") else spec)


def _split(spec: str | Path) -> tuple[Path | None, str | None, str]:
    """Take ``file.py:name`` or ``module:name`` apart; the colon of a Windows drive stays."""
    text = str(spec)
    place, colon, name = text.rpartition(":")
    if not colon or not all(part.isidentifier() for part in name.split(".")):
        place, name = text, DEFAULT_NAME
    if place.lower().endswith(".py") or isinstance(spec, Path) or "/" in place or "\\" in place:
        path = Path(place).expanduser()
        if path.suffix.lower() != ".py":
            raise PipelineLoadError(f"{place}: expected a Python file (.py) or 'module:name'")
        if not path.is_file():
            raise PipelineLoadError(f"{place}: there is no such file")
        return path.resolve(), None, name
    if not colon or not all(part.isidentifier() for part in place.split(".")):
        raise PipelineLoadError(f"{text!r}: expected 'file.py', 'file.py:name' or 'module:name'")
    return None, place, name


def _load_module(name: str) -> tuple[ModuleType, str]:
    """Import an installed module, or one below the current folder as a home of its own."""
    top = name.partition(".")[0]
    try:
        known = importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        known = top in sys.modules
    folder = Path.cwd()
    if known:
        module = _import(name, None, partial(importlib.import_module, name))
        root = Path(getattr(module, "__file__", None) or folder).resolve()
        for _ in name.split("."):
            root = root.parent
        if Path(getattr(module, "__file__", None) or "").name == "__init__.py":
            root = root.parent
        folder = root
    else:
        home = _Home(folder)
        module = _import(name, home, partial(home.import_module, name))
    file = getattr(module, "__file__", None)
    return module, _digest_of_files(Path(file).resolve(), [folder], top) if file else ""


def _import(label: str, home: _Home | None, run: Any) -> ModuleType:
    """Run an import, with what it prints on the standard error, and explain its failure."""
    path_before = list(sys.path)
    printed = _Tee()
    try:
        with contextlib.redirect_stdout(printed):
            module: ModuleType = run()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if home is not None:
            home.forget()
        raise PipelineLoadError(_explain(label, error, printed.getvalue())) from error
    finally:
        if home is not None:
            home.settle()
        sys.path[:] = path_before
    return module


class _Tee(io.StringIO):
    """Keeps what is printed and passes it on to the standard error."""

    def write(self, text: str) -> int:
        sys.stderr.write(text)
        return super().write(text)


class _Home:
    """One folder as a private package, and the ``__import__`` of the modules in it."""

    def __init__(self, folder: Path) -> None:
        self.package = f"{_PREFIX}{next(_numbers)}"
        self._folders = [str(folder)]
        # While it loads, folders the file itself puts on sys.path count as its own.
        self._foreign: set[str] | None = set(sys.path)
        self._finders: dict[str, FileFinder] = {}
        self.builtins = {**vars(builtins), "__import__": self._import}
        self._importlib = _Importlib(self)
        module = ModuleType(self.package)
        module.__path__ = []
        sys.modules[self.package] = module
        _homes[self.package] = self
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)

    @property
    def folders(self) -> list[str]:
        added = [] if self._foreign is None else [p for p in sys.path if p not in self._foreign]
        return [*self._folders, *(folder for folder in added if folder)]

    def settle(self) -> None:
        """Keep the folders the file added to ``sys.path`` for its later imports."""
        self._folders, self._foreign = self.folders, None

    def forget(self) -> None:
        """Drop the modules of a home whose file could not be loaded."""
        for name in [n for n in sys.modules if n.partition(".")[0] == self.package]:
            del sys.modules[name]

    def run(self, path: Path) -> ModuleType:
        """Execute the file as a module of this home."""
        stem = path.stem if path.stem.isidentifier() else "pipeline_file"
        name = f"{self.package}.{stem}"
        loader = _Loader(self, name, str(path))
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        # Registered under its name first, so that a neighbour may import it in a circle.
        sys.modules[name] = module
        loader.exec_module(module)
        return module

    def import_module(self, name: str, package: str | None = None) -> ModuleType:
        """Stand in for :func:`importlib.import_module` inside the home."""
        if not name.startswith(".") and self._has(name.partition(".")[0]):
            name = f"{self.package}.{name}"
        return importlib.import_module(name, package)

    def find(self, fullname: str, path: Sequence[str]) -> ModuleSpec | None:
        """Find a module of the home in the folders of `path`."""
        namespace = None
        for folder in path:
            finder = self._finders.get(folder)
            if finder is None:
                extensions = (ExtensionFileLoader, EXTENSION_SUFFIXES)
                finder = FileFinder(folder, extensions, (partial(_Loader, self), SOURCE_SUFFIXES))  # type: ignore[arg-type]
                self._finders[folder] = finder
            spec = finder.find_spec(fullname)
            if spec is not None and spec.loader is not None:
                return spec
            namespace = namespace or spec
        return namespace

    def _has(self, top: str) -> bool:
        """Whether a bare name means a file of the home, as it would for ``python file.py``."""
        if f"{self.package}.{top}" in sys.modules:
            return True
        # A second ragdiag would have a Pipeline class of its own.
        if top == __package__ or top in sys.builtin_module_names:
            return False
        spec = self.find(f"{self.package}.{top}", self.folders)
        if spec is None or spec.loader is not None:
            return spec is not None
        # A folder without __init__.py gives way to a module of that name anywhere else.
        try:
            return importlib.util.find_spec(top) is None
        except (ImportError, ValueError):
            return True

    def _import(
        self,
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        top = name.partition(".")[0]
        if level == 0 and self._has(top):
            if fromlist:
                return builtins.__import__(f"{self.package}.{name}", None, None, fromlist)
            importlib.import_module(f"{self.package}.{name}")
            return sys.modules[f"{self.package}.{top}"]
        module = builtins.__import__(name, globals, locals, fromlist or (), level)
        return self._importlib if module is importlib else module


class _Importlib(ModuleType):
    """``importlib`` as the modules of a home see it: its ``import_module`` knows the home."""

    def __init__(self, home: _Home) -> None:
        super().__init__("importlib")
        self.import_module = home.import_module

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib, name)


class _Loader(SourceFileLoader):
    """Loads a source file of a home: with the home's builtins, and never from stale bytecode."""

    def __init__(self, home: _Home, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self._home = home

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        linecache.checkcache(path)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = self._home.builtins
        super().exec_module(module)


class _HomeFinder:
    """The entry in ``sys.meta_path`` for the private packages; it answers for nothing else."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        del target
        if not fullname.startswith(_PREFIX):
            return None
        package, _, rest = fullname.partition(".")
        home = _homes.get(package)
        if home is None or not rest:
            return None
        return home.find(fullname, home.folders if "." not in rest else list(path or ()))


_finder = _HomeFinder()


def _explain(label: str, error: BaseException, printed: str) -> str:
    place = ""
    if isinstance(error, SyntaxError) and error.filename:
        place = f" at {error.filename}, line {error.lineno}"
    else:
        # The last frame outside the import machinery and this file is where the user can look.
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if not frame.filename.startswith("<frozen") and frame.filename != __file__:
                place = f" at {frame.filename}, line {frame.lineno}"
                break
    if isinstance(error, SystemExit):
        what = f"it called sys.exit({'' if error.code is None else repr(error.code)})"
    else:
        what = f"{type(error).__name__}: {error}"
    for package in _homes:
        what = what.replace(f"{package}.", "")
    text = f"{label}: importing it failed{place}: {what}"
    if printed.strip():
        text += f"\nIt printed: {printed.strip()[-_QUOTED:]}"
    return text


def _missing(module: ModuleType, name: str) -> str:
    offers = [
        key
        for key, value in vars(module).items()
        if not key.startswith("_") and not isinstance(value, type) and hasattr(value, "retrieve")
    ]
    hint = f"; it has {', '.join(offers)}: add ':{offers[0]}' to the path" if offers else ""
    return f"it has no top-level name {name!r}{hint or '; assign your pipeline to it'}"


def _digest_of_files(path: Path, folders: Sequence[Path], only: str | None = None) -> str:
    """Return the SHA-256 of a file and of all files below `folders` it imports, in any depth."""
    files: dict[Path, bytes] = {}
    todo = [path]
    while todo:
        file = todo.pop()
        if file in files:
            continue
        try:
            files[file] = file.read_bytes()
            tree = ast.parse(files[file])
        except (OSError, SyntaxError, ValueError):
            continue
        for start, parts in _imports(tree, file, folders):
            if only is None or parts[:1] == [only] or start not in folders:
                todo.extend(_module_files(start, parts))
    digest = hashlib.sha256()
    for file in sorted(files):
        name = next((file.relative_to(f) for f in folders if file.is_relative_to(f)), file.name)
        digest.update(f"{name}\0{hashlib.sha256(files[file]).hexdigest()}\n".encode())
    return digest.hexdigest()


def _imports(
    tree: ast.AST, file: Path, folders: Sequence[Path]
) -> Iterator[tuple[Path, list[str]]]:
    """Yield folder and dotted name of each import statement, those inside functions included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from ((folder, alias.name.split(".")) for folder in folders)
        elif isinstance(node, ast.ImportFrom):
            starts = list(folders) if not node.level else [file.parents[node.level - 1]]
            module = node.module.split(".") if node.module else []
            for alias in node.names:
                yield from ((folder, [*module, alias.name]) for folder in starts)


def _module_files(folder: Path, parts: Sequence[str]) -> Iterator[Path]:
    """Yield the existing files that importing a dotted name below `folder` executes."""
    for part in parts:
        for file in (folder / f"{part}.py", folder / part / "__init__.py"):
            if file.is_file():
                yield file
        folder = folder / part
