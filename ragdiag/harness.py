"""``execute``: runs a pipeline and a judge over a dataset into a ``Run``."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ragdiag.calls import Caller, ClockFactory
from ragdiag.errors import SettingsError
from ragdiag.pipeline import Pipeline, as_pipeline
from ragdiag.progress import progress_for
from ragdiag.recording import Run, load_run
from ragdiag.remote import Remote
from ragdiag.session import ExecutionInterrupted, Session
from ragdiag.store import Store, plan_header

if TYPE_CHECKING:
    from ragdiag.dataset import GoldenDataset

__all__ = ["ExecutionInterrupted", "execute"]


def execute(
    pipeline: Pipeline | str | Path | Callable[[str], Any],
    dataset: GoldenDataset,
    *,
    judge: Any = None,
    workers: int = 1,
    judge_workers: int = 8,
    store: str | Path | None = None,
    executor: Executor | None = None,
    retries: int = 0,
    on_error: Literal["record", "raise"] = "record",
    progress: Any = None,
    clock_factory: ClockFactory | None = None,
    reuse: bool = False,
    judge_repeats: int = 1,
) -> Run:
    """Run `pipeline` over `dataset` and return what happened.

    The result is the same for any number of workers: order is that of the dataset.

    Parameters
    ----------
    pipeline : Pipeline, callable or path
        See :func:`ragdiag.as_pipeline`.
    dataset : GoldenDataset
        The questions.
    judge : Judge, optional
        Asked about every answer, in threads of its own while the pipeline goes on.
    workers : int
        Queries at the same time, each in a thread. 0 runs them one by one in the calling thread,
        for pipelines that are bound to it (an SQLite connection); an interrupt then cuts the
        current call short.
    judge_workers : int
        Calls of the judge at the same time.
    store : path, optional
        File to which every result is written the moment it exists. Called again with the same
        store, only what is missing is done; errors count as missing.
    executor : concurrent.futures.Executor, optional
        Where the pipeline runs instead of threads of ours. For other processes or machines the
        pipeline has to come from a file or module, or be picklable; this process writes the store.
    retries : int
        How often a call of the pipeline that raised is made again, after a pause.
    on_error : {"record", "raise"}
        Whether an error becomes part of the result, or ends the run.
    progress : bool, str or Progress, optional
        See :func:`ragdiag.progress.progress_for`.
    clock_factory : callable, optional
        ``clock_factory(query_id, stage)`` returns a clock that counts seconds; see
        :class:`ragdiag.testing.FixedClock`.
    reuse : bool
        Take what the store holds although dataset, pipeline or code have changed.
    judge_repeats : int
        How often the judge is asked about each answer, to see whether it changes its mind.

    Returns
    -------
    Run
        ``run.info`` holds the judge's identity, flags and tracebacks by query id.

    Raises
    ------
    SettingsError, PipelineLoadError, StoreBusyError, StoreMismatchError, ExportError
        Before the first call.
    ExecutionInterrupted
        On an interrupt; its ``run`` holds what had finished.
    PipelineError, JudgeError
        With ``on_error="raise"``. Like every error that ends a run after it began it has an
        attribute ``run``.

    Examples
    --------
    >>> import pandas as pd
    >>> from ragdiag import GoldenDataset, as_pipeline
    >>> frame = pd.DataFrame({"query_id": ["q1"], "query": ["How long?"]})
    >>> dataset = GoldenDataset.from_frame(frame)
    >>> search = as_pipeline(retrieve=lambda query: [("d1", "Seven days.")])
    >>> execute(search, dataset, progress=False).outcomes["status"].tolist()
    ['completed']
    """
    for name, value, least in (
        ("workers", workers, 0),
        ("judge_workers", judge_workers, 1),
        ("retries", retries, 0),
        ("judge_repeats", judge_repeats, 1),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise SettingsError(f"{name} must be a whole number of at least {least}, got {value!r}")
    if on_error not in ("record", "raise"):
        raise SettingsError(f"on_error must be 'record' or 'raise', got {on_error!r}")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise SettingsError(f"executor must be a concurrent.futures.Executor, got {executor!r}")
    subject = as_pipeline(pipeline)
    shown = progress_for(progress)
    shown.start(subject.name)
    caller = Caller(clock_factory, retries)
    remote = None
    if executor is not None and not isinstance(executor, ThreadPoolExecutor):
        remote = Remote(subject, clock_factory, retries, executor)
    if judge is not None and not callable(getattr(judge, "evaluate", None)):
        raise SettingsError(f"judge must have a method evaluate, got {judge!r}")
    header = plan_header(subject, dataset)
    path = None if store is None else Path(store).expanduser()
    try:
        place = Store.open(path, header, dataset, reuse, shown.note)
    except KeyboardInterrupt:
        done = load_run(path) if path is not None and path.exists() else Run(dataset.frame)
        raise ExecutionInterrupted("interrupted before the first call", done) from None
    session = Session(place, subject, remote, judge, judge_repeats, caller, on_error, shown)
    return session.run(executor, workers, judge_workers)
