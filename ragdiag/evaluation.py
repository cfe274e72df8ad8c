"""The verbs ``evaluate``, ``compare`` and ``diagnose``, and the published classes around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import pandas as pd

from ragdiag.dataset import GoldenDataset, load_dataset
from ragdiag.diagnosis import RuleBook
from ragdiag.errors import ComparisonError, DatasetLoadError, EvaluationInterrupted
from ragdiag.recording import Run, load_run
from ragdiag.relabelling import relabelled
from ragdiag.results import Results, load_results
from ragdiag.saving import INFO_KEY
from ragdiag.schema import Settings

if TYPE_CHECKING:
    from ragdiag.comparison import Comparison
    from ragdiag.diagnosis import Rule
    from ragdiag.judges import Judge

__all__ = ["Comparator", "Evaluator", "compare", "diagnose", "evaluate"]

PathLike: TypeAlias = str | Path
Denominator: TypeAlias = Literal["retrieved", "k"]
Relevance: TypeAlias = Literal["ids", "evidence"]

#: A path with this ending is a pipeline's source; any other is a stored run.
SOURCE_SUFFIX = ".py"

#: Options that change how a recorded run is seen, and call nothing.
_SEEN_THROUGH = (*Settings.model_fields, "rules")


def evaluate(
    pipeline: Any,
    dataset: GoldenDataset | pd.DataFrame | PathLike,
    *,
    k: int = 5,
    rank_threshold: int = 3,
    latency_threshold_ms: float = 1000.0,
    precision_denominator: Denominator = "retrieved",
    evidence_threshold: float = 0.9,
    relevance: Relevance = "ids",
    judge: Judge | str | None = None,
    workers: int = 1,
    judge_workers: int = 8,
    store: PathLike | None = None,
    executor: Any = None,
    progress: Any = None,
    clock_factory: Any = None,
    rules: Sequence[Rule] = (),
    **execution: Any,
) -> Results:
    """Run a pipeline over a dataset and diagnose every query.

    Parameters
    ----------
    pipeline : Pipeline, callable or path
        What to evaluate: an object with ``retrieve`` (and ``generate``), a function
        ``retrieve(query)``, or a Python file with a top-level ``pipeline``.
    dataset : GoldenDataset, DataFrame or path
        The questions and what is known to be right about them.
    k : int
        How many of the retrieved chunks count.
    rank_threshold : int
        The first relevant chunk may come at this rank at the latest.
    latency_threshold_ms : float
        Retrieval may take this long, milliseconds.
    precision_denominator : {"retrieved", "k"}
        What precision divides by: min(k, number retrieved), or k.
    evidence_threshold : float
        A passage of evidence is there once this share of its characters has come.
    relevance : {"ids", "evidence"}
        What counts where a question has both labelled chunk ids and passages of evidence.
    judge : Judge or str, optional
        Who says whether answers are correct and grounded; ``"lexical"`` works offline.
    workers, judge_workers : int
        Queries, and calls of the judge, at the same time.
    store : path, optional
        File to which the run is written as it happens, and resumed from.
    executor, progress, clock_factory, **execution
        See :func:`ragdiag.harness.execute`.
    rules : sequence of Rule
        Causes of your own.

    Returns
    -------
    Results

    Raises
    ------
    SettingsError, DatasetError, PipelineLoadError
        Before anything is run.
    EvaluationInterrupted
        On an interrupt; its ``results`` hold what had finished.

    Examples
    --------
    >>> import pandas as pd, ragdiag
    >>> dataset = ragdiag.GoldenDataset.from_frame(pd.DataFrame({
    ...     "query_id": ["q1"], "query": ["How long do refunds take?"],
    ...     "relevant_chunk_ids": [["doc_17"]]}))
    >>> results = ragdiag.evaluate(lambda query: [("doc_17", "Seven days.")], dataset)
    >>> results["q1"].diagnosis.category
    <FailureCategory.PASS: 'PASS'>
    """
    # Whatever is wrong with the options is said before a pipeline is called.
    settings = Settings(
        k=k,
        rank_threshold=rank_threshold,
        latency_threshold_ms=latency_threshold_ms,
        precision_denominator=precision_denominator,
        evidence_threshold=evidence_threshold,
        relevance=relevance,
    )
    RuleBook.of(rules)
    # Loaded when something is run: reaching for a verb must not load thread and process pools.
    from ragdiag import harness

    try:
        run = harness.execute(
            pipeline,
            _dataset(dataset),
            judge=_judge(judge),
            workers=workers,
            judge_workers=judge_workers,
            store=store,
            executor=executor,
            progress=progress,
            clock_factory=clock_factory,
            **execution,
        )
    except harness.ExecutionInterrupted as interrupt:
        done = Results(interrupt.run, settings, rules)
        raise EvaluationInterrupted(str(interrupt), done) from None
    return Results(run, settings, rules)


def _judge(given: Judge | str | None) -> Judge | None:
    if given is None:
        return None
    # Providers are only loaded when someone asks for a judge.
    from ragdiag.judges import resolve_judge

    judge: Judge | None = resolve_judge(given)
    return judge


def _dataset(given: GoldenDataset | pd.DataFrame | PathLike | None) -> GoldenDataset:
    if isinstance(given, GoldenDataset):
        return given
    if isinstance(given, pd.DataFrame):
        return GoldenDataset.from_frame(given)
    if isinstance(given, str | PurePath):
        return load_dataset(given)
    raise DatasetLoadError(
        "dataset must be a GoldenDataset, a DataFrame or the path of a file, got "
        f"{type(given).__name__}: {given!r:.100}"
    )


def diagnose(
    run: Run | Results | pd.DataFrame | PathLike,
    dataset: GoldenDataset | pd.DataFrame | PathLike | None = None,
    *,
    k: int = 5,
    rank_threshold: int = 3,
    latency_threshold_ms: float = 1000.0,
    precision_denominator: Denominator = "retrieved",
    evidence_threshold: float = 0.9,
    relevance: Relevance = "ids",
    rules: Sequence[Rule] = (),
) -> Results:
    """Diagnose a recorded run; no pipeline and no judge is called.

    Parameters
    ----------
    run : Run, Results, DataFrame or path
        What happened: a frame as :meth:`Run.from_frame <ragdiag.recording.Run.from_frame>` takes
        it, or any file that :func:`ragdiag.load_run` reads, those of other tools included.
    dataset : GoldenDataset, DataFrame or path, optional
        Whose questions and labels to use instead of those recorded with the run, joined on query
        id; what another tool recorded also on the text of the question.
    k, rank_threshold, latency_threshold_ms, precision_denominator, evidence_threshold, relevance
        Settings, as in :func:`evaluate`.
    rules : sequence of Rule
        As in :func:`evaluate`.
    """
    settings = Settings(
        k=k,
        rank_threshold=rank_threshold,
        latency_threshold_ms=latency_threshold_ms,
        precision_denominator=precision_denominator,
        evidence_threshold=evidence_threshold,
        relevance=relevance,
    )
    if isinstance(run, Results):
        recorded = run.run
    elif isinstance(run, str | PathLike):
        recorded = load_run(run)
    else:
        recorded = run if isinstance(run, Run) else Run.from_frame(run)
    if dataset is not None:
        recorded = relabelled(recorded, _dataset(dataset))
    return Results(recorded, settings, rules)


def compare(
    *results_or_pipelines: Any,
    dataset: GoldenDataset | pd.DataFrame | PathLike | None = None,
    baseline: int | str = 0,
    names: Sequence[str] | None = None,
    on: Literal["all", "intersection"] = "all",
    quality_tolerance: float = 0.02,
    latency_tolerance_ms: float = 10.0,
    **options: Any,
) -> Comparison:
    """Compare two or more pipelines on the same questions.

    Parameters
    ----------
    *results_or_pipelines : Results, Run, path, Pipeline or callable
        What to compare. Pipelines are evaluated on `dataset` first, runs and the paths of stored
        runs are diagnosed; Results are taken as they are, unless a setting is given, at which they
        are then diagnosed again. That calls nothing.
    dataset : GoldenDataset, DataFrame or path, optional
        Needed for pipelines.
    baseline : int or str
        Which of them the others are compared with: a position or a name.
    names : sequence of str, optional
        What to call them.
    on : {"all", "intersection"}
        Results with different queries are refused, or cut to the queries they share.
    quality_tolerance, latency_tolerance_ms : float
        Differences up to these are ties.
    **options
        Those of :func:`evaluate`, settings and execution. Of several pipelines each needs its own
        store: ``store=["a.jsonl", "b.jsonl"]``.

    Raises
    ------
    ComparisonError
        They cannot be compared as they are; the message names the difference and the remedy.
    """
    if len(results_or_pipelines) < 2:
        raise ComparisonError(
            f"compare needs two or more results or pipelines, got {len(results_or_pipelines)}"
        )
    changes = {name: options.pop(name) for name in _SEEN_THROUGH if name in options}
    recorded = [_recorded(each) for each in results_or_pipelines]
    to_run = [
        each for each, done in zip(results_or_pipelines, recorded, strict=True) if done is None
    ]
    if to_run and dataset is None:
        raise ComparisonError(
            f"{to_run[0]!r} is a pipeline to run, which needs dataset=; what is recorded is given "
            "as Results, as Run, or as the path of a stored run"
        )
    idle = sorted(name for name, value in options.items() if value is not None)
    if idle and not to_run:
        raise ComparisonError(
            f"{idle[0]}= is for running pipelines, and all {len(recorded)} are recorded"
        )
    # Loaded when something is compared: reaching for a verb must not load the statistics.
    from ragdiag.comparison import Comparison
    from ragdiag.joining import check_options
    from ragdiag.pipeline import as_pipeline

    choices: dict[str, Any] = {
        "names": names,
        "baseline": baseline,
        "on": on,
        "quality_tolerance": quality_tolerance,
        "latency_tolerance_ms": latency_tolerance_ms,
    }
    # What is wrong with the choices is said before a pipeline is called and paid for.
    check_options(len(recorded), **choices)
    stores = iter(_stores(options.pop("store", None), len(to_run)))
    pipelines = iter([as_pipeline(each) for each in to_run])
    questions = _dataset(dataset) if to_run else None
    seen = [_seen_through(done, changes) for done in recorded if done is not None]
    # Pipelines are seen as the results they are compared with.
    like = {**_settings_of(seen[0]), **changes} if seen else changes
    finished = iter(seen)
    results = [
        next(finished)
        if done is not None
        else evaluate(
            next(pipelines), cast("GoldenDataset", questions), store=next(stores), **like, **options
        )
        for done in recorded
    ]
    return Comparison(*results, **choices)


def _stores(given: PathLike | Sequence[PathLike] | None, pipelines: int) -> Sequence[Any]:
    """Return one store for each pipeline to run."""
    if given is None:
        return [None] * pipelines
    paths = [given] if isinstance(given, str | Path) else list(given)
    if len(paths) != pipelines or len({Path(path).resolve() for path in paths}) < pipelines:
        raise ComparisonError(
            f"store= must name {pipelines} different files, one for each pipeline that is run, "
            f"got {[str(path) for path in paths]!r}"
        )
    return paths


def _recorded(given: Any) -> Results | None:
    """Return what is recorded as results, and None for a pipeline."""
    if isinstance(given, Results):
        return given
    if isinstance(given, Run):
        return Results(given)
    if isinstance(given, str | Path) and Path(given).suffix != SOURCE_SUFFIX:
        run = load_run(given)
        return load_results(given) if INFO_KEY in run.info else Results(run)
    return None


def _settings_of(results: Results) -> dict[str, Any]:
    return {**results.settings.model_dump(), "rules": results.rules}


def _seen_through(results: Results, changes: Mapping[str, Any]) -> Results:
    """Return `results` at the settings that were asked for."""
    return results.rediagnose(**changes) if changes else results


class Evaluator:
    """Evaluates pipelines with the same options, as the published SDK does.

    Parameters
    ----------
    k : int
        How many of the retrieved chunks count.
    judge : Judge or str, optional
        Who says whether answers are correct and grounded.
    **options
        Any other of :func:`evaluate`.

    Examples
    --------
    ``Evaluator(k=5).evaluate(pipeline, dataset)``
    """

    def __init__(self, k: int = 5, judge: Judge | str | None = None, **options: Any) -> None:
        self.k = k
        self.judge = judge
        self.options = options

    def evaluate(self, pipeline: Any, dataset: GoldenDataset | pd.DataFrame | PathLike) -> Results:
        """Run `pipeline` over `dataset`, see :func:`evaluate`."""
        return evaluate(pipeline, dataset, k=self.k, judge=self.judge, **self.options)


class Comparator:
    """Compares pipelines with the same options, as the published SDK does.

    Parameters
    ----------
    k : int
        How many of the retrieved chunks count.
    judge : Judge or str, optional
        Who says whether answers are correct and grounded.
    quality_tolerance, latency_tolerance_ms : float
        Differences up to these are ties.
    **options
        Any other of :func:`evaluate`.
    """

    def __init__(
        self,
        k: int = 5,
        judge: Judge | str | None = None,
        quality_tolerance: float = 0.02,
        latency_tolerance_ms: float = 10.0,
        **options: Any,
    ) -> None:
        self.k = k
        self.judge = judge
        self.quality_tolerance = quality_tolerance
        self.latency_tolerance_ms = latency_tolerance_ms
        self.options = options

    def compare(
        self,
        pipeline_a: Any,
        pipeline_b: Any,
        dataset: GoldenDataset | pd.DataFrame | PathLike,
    ) -> Comparison:
        """Evaluate both pipelines on `dataset` and compare them, A being the baseline."""
        return compare(
            pipeline_a,
            pipeline_b,
            dataset=dataset,
            quality_tolerance=self.quality_tolerance,
            latency_tolerance_ms=self.latency_tolerance_ms,
            k=self.k,
            judge=self.judge,
            **self.options,
        )
