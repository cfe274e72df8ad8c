"""A digest of a pipeline's code, so that an edited pipeline never answers with old results.

A pipeline loaded from a file has the digest of its files. For one made in a notebook this module
follows its methods to the functions and classes they use, as far as they are the user's own, and
adds the plain values (numbers, texts) that this code reads and nowhere changes: the module's
constants and the settings of the instance. What it cannot see, such as the content of an index,
belongs into ``version``.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from ragdiag.pipeline import FunctionPipeline, Pipeline
from ragdiag.redaction import is_secret_name

__all__ = ["pipeline_digest"]

_PLAIN = (str, bytes, int, float, bool, type(None))

#: Methods that set an instance up; what any other assigns is state.
_SETTING_UP = ("__init__", "__post_init__", "__new__")

_INSTALLED = tuple(
    Path(sysconfig.get_path(name)).resolve()
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def pipeline_digest(pipeline: Pipeline) -> str:
    """Return a SHA-256 in hex of the code behind `pipeline`.

    Examples
    --------
    >>> from functools import partial
    >>> from ragdiag.pipeline import as_pipeline
    >>> def search(query, top):
    ...     return [("d1", query)] * top
    >>> five = pipeline_digest(as_pipeline(retrieve=partial(search, top=5)))
    >>> five == pipeline_digest(as_pipeline(retrieve=partial(search, top=10)))
    False
    """
    if pipeline.source is not None:
        return pipeline.source.digest
    scan = _Scan()
    roots = pipeline.functions if isinstance(pipeline, FunctionPipeline) else (pipeline,)
    for root in roots:
        scan.visit("", root)
    return scan.digest()


class _Scan:
    """One walk over code, each piece once, in an order that depends on the code alone."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._keep: list[object] = []
        self._lines: list[str] = []
        self._values: dict[str, str] = {}
        self._written: set[str] = set()

    def digest(self) -> str:
        values = [
            f"{name} = {text}"
            for name, text in sorted(self._values.items())
            if name.rpartition(" ")[2] not in self._written
        ]
        text = "\n".join([*self._lines, *values])
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()

    def visit(self, name: str, value: Any) -> None:
        """Take in what `value` does; `name` is how the code refers to it."""
        if _is_plain(value):
            self._values[name] = repr(value)
            return
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        self._keep.append(value)  # so that its id stays its own
        if isinstance(value, functools.partial):
            for position, item in enumerate((value.func, *value.args)):
                self.visit(f"{name}({position})", item)
            for key, item in value.keywords.items():
                self.visit(f"{name}({key})", item)
        elif isinstance(value, MethodType):
            self.visit(name, value.__func__)
            self.visit(name, value.__self__)
        elif isinstance(value, staticmethod | classmethod):
            self.visit(name, value.__func__)
        elif isinstance(value, property):
            self.visit(name, value.fget)
        elif isinstance(value, FunctionType):
            self._visit_function(value)
        elif isinstance(value, type):
            self._visit_class(value)
        elif isinstance(value, ModuleType):
            self._visit_module(value)
        elif _is_users(type(value).__module__):
            self._visit_class(type(value))
            settings = _settings_of(type(value))
            for key, item in sorted(getattr(value, "__dict__", {}).items()):
                if not _is_plain(item):
                    self.visit(f"{name}.{key}", item)
                elif key.strip("_") in settings:
                    self._values[f"{name}.{key} {key}"] = repr(item)

    def _visit_function(self, function: FunctionType) -> None:
        if not _is_users(function.__module__):
            return
        self._lines.append(f"{function.__qualname__}\n{_source(function)}")
        for position, item in enumerate(function.__defaults__ or ()):
            self.visit(f"{function.__qualname__}[{position}]", item)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
        for operation, name in _operations(function.__code__):
            if operation.startswith(("STORE_GLOBAL", "STORE_DEREF")) or (
                operation == "STORE_ATTR" and function.__name__ not in _SETTING_UP
            ):
                self._written.add(name)
            elif operation == "LOAD_GLOBAL" and name in function.__globals__:
                self.visit(f"global {name}", function.__globals__[name])
        for name, cell in cells.items():
            try:
                self.visit(f"closure {name}", cell.cell_contents)
            except ValueError:  # not assigned yet
                continue

    def _visit_class(self, cls: type) -> None:
        for base in cls.__mro__:
            if _is_users(base.__module__):
                for name, item in vars(base).items():
                    if isinstance(item, FunctionType | staticmethod | classmethod | property):
                        self.visit(name, item)
                    elif _is_plain(item) and not name.startswith("__"):
                        self._values[f"{base.__qualname__}.{name} {name}"] = repr(item)

    def _visit_module(self, module: ModuleType) -> None:
        file = getattr(module, "__file__", None)
        if _is_users(module.__name__) and file and module.__name__ != "__main__":
            self._lines.append(f"{module.__name__} {_file_digest(file)}")


def _settings_of(cls: type) -> set[str]:
    """Return the names of the constructor's parameters, keys to services left out.

    Only what the caller gave counts as a setting: a start time or a counter set by the constructor
    differs from run to run.
    """
    try:
        names = set(inspect.signature(cls).parameters)
    except (TypeError, ValueError):
        return set()
    return {name for name in names if not is_secret_name(name)}


def _is_plain(value: object) -> bool:
    if type(value) in (tuple, frozenset):
        return all(_is_plain(item) for item in value)  # type: ignore[attr-defined]
    return type(value) in _PLAIN


def _operations(code: CodeType) -> Iterator[tuple[str, str]]:
    for instruction in dis.get_instructions(code):
        if isinstance(instruction.argval, str):
            yield instruction.opname, instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _operations(constant)


def _source(function: FunctionType) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return _code_text(function.__code__)


def _code_text(code: CodeType) -> str:
    constants = [_code_text(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _is_users(module_name: str | None) -> bool:
    """Whether a module is neither ours nor installed: code that is edited between two runs."""
    if not module_name or module_name.partition(".")[0] == __package__:
        return False
    file = getattr(sys.modules.get(module_name), "__file__", None)
    # What a notebook or a script defines is in __main__, whatever was started.
    if module_name == "__main__" or file is None:
        return module_name == "__main__" or module_name not in sys.modules
    path = Path(file).resolve()
    return not any(path.is_relative_to(folder) for folder in _INSTALLED)


def _file_digest(file: str) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return file
