"""Running a pipeline in other processes: how it travels there, and what comes back."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from importlib import import_module
from typing import Any

from ragdiag.calls import BackgroundLoop, Caller, ClockFactory, Task, pipeline_records
from ragdiag.errors import PipelineError
from ragdiag.journal import Record
from ragdiag.pipeline import Pipeline, load_pipeline, stages_of

__all__ = ["Remote", "capacity"]

_loop = BackgroundLoop()
_loaded: dict[tuple[str, str], Pipeline] = {}
_loading = threading.Lock()


class Remote:
    """A pipeline in a form that travels: the place it is loaded from, or itself.

    Raises
    ------
    PipelineError
        It has no place and cannot be pickled.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        clock_factory: ClockFactory | None,
        retries: int,
        executor: Executor,
    ) -> None:
        source = pipeline.source
        self._subject: Pipeline | tuple[str, str] = (
            pipeline if source is None else (source.spec, source.digest)
        )
        self._options = (clock_factory, retries)
        self._executor = executor
        pickler = _pickler_of(executor)
        try:
            if pickler is not None:
                pickler.dumps((self._subject, self._options))
        except Exception as error:
            raise PipelineError(
                f"pipeline {pipeline.name!r} cannot travel to another process ({error}); put it "
                "into a file and give 'file.py', or into a module and give 'module:name'"
            ) from error

    def submit(self, task: Task) -> Future[list[Record]]:
        """Hand one query to the executor."""
        # Dask would otherwise give the result of an equal call, instead of calling again.
        options: dict[str, Any] = {"pure": False} if _is_dask(self._executor) else {}
        return self._executor.submit(_work, self._subject, task, *self._options, **options)


def capacity(executor: Executor) -> int:
    """Return how many calls an executor makes at the same time, 0 if it does not tell."""
    if _is_dask(executor):
        client: Any = executor._client  # type: ignore[attr-defined]
        return sum(client.nthreads().values())
    return int(getattr(executor, "_max_workers", 0) or 0)


def _pickler_of(executor: Executor) -> Any:
    """Return what an executor sends objects with, None if that is not known."""
    if _is_dask(executor):
        # It takes more than pickle does: functions of a notebook and lambdas.
        return import_module("cloudpickle")
    return pickle if isinstance(executor, ProcessPoolExecutor) else None


def _is_dask(executor: Executor) -> bool:
    return type(executor).__module__.partition(".")[0] == "distributed"


def _work(
    subject: Pipeline | tuple[str, str],
    task: Task,
    clock_factory: ClockFactory | None,
    retries: int,
) -> list[Record]:
    pipeline = _load(*subject) if isinstance(subject, tuple) else subject
    return list(pipeline_records(stages_of(pipeline), task, Caller(clock_factory, retries, _loop)))


def _load(spec: str, digest: str) -> Pipeline:
    """Return the pipeline of `spec`, loaded once in this process."""
    with _loading:
        if (spec, digest) not in _loaded:
            pipeline = load_pipeline(spec)
            if pipeline.source is None or pipeline.source.digest != digest:
                raise PipelineError(f"{spec}: it was changed while the run went on")
            _loaded[spec, digest] = pipeline
        return _loaded[spec, digest]
