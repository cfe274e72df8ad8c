"""Running a pipeline in other processes: how it travels there, and what comes back."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor

from ragdiag.calls import BackgroundLoop, Caller, ClockFactory, Task, pipeline_records
from ragdiag.errors import PipelineError
from ragdiag.journal import Record
from ragdiag.pipeline import Pipeline, load_pipeline, stages_of

__all__ = ["Remote"]

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
        if isinstance(executor, ProcessPoolExecutor):
            try:
                pickle.dumps((self._subject, self._options))
            except Exception as error:
                raise PipelineError(
                    f"pipeline {pipeline.name!r} cannot travel to another process ({error}); put "
                    "it into a file and give 'file.py', or into a module and give 'module:name'"
                ) from error

    def submit(self, task: Task) -> Future[list[Record]]:
        """Hand one query to the executor."""
        return self._executor.submit(_work, self._subject, task, *self._options)


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
