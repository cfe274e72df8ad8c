"""``Results``: a run seen through settings; one row a query, with measures and a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag import export, overview
from ragdiag.analysis import Analysis
from ragdiag.evidence import RunEvidence
from ragdiag.items import build_items
from ragdiag.recording import Run
from ragdiag.rules import Rule, RuleBook
from ragdiag.saving import load_analysis, save_analysis
from ragdiag.schema import EvaluationResult, Settings
from ragdiag.selecting import column_mask, is_mask, place_of_id, place_of_position, row_mask
from ragdiag.showing import Shown
from ragdiag.sweeps import Swept
from ragdiag.tables import guarded

if TYPE_CHECKING:
    from ragdiag.report import EvaluationReport

__all__ = ["Results", "load_results"]

Ints = npt.NDArray[np.int64]


class Results(Swept, Shown):
    """One pipeline on one dataset, diagnosed: why each query ended as it did.

    Results wrap a DataFrame and never change: every verb returns new ones. They have a length, can
    be iterated over (one :class:`~ragdiag.schema.EvaluationResult` a query) and indexed:

    ``results["q004"]``, ``results[0]``
        one query, by id or by place among these results;
    ``results[:10]``, ``results[mask]``, ``results[["q004", "q011"]]``
        results again, of these queries.

    Parameters
    ----------
    run : Run
        What happened.
    settings : Settings, optional
        k and the thresholds.
    rules : sequence of Rule, optional
        The user's own causes of failure.

    Raises
    ------
    RunError
        The tables of the run do not fit together.
    SettingsError
        A user's rule raises, or does not return a mask.

    Examples
    --------
    >>> run = Run(
    ...     queries=pd.DataFrame({"query_id": ["q1", "q2"], "query": ["How long?", "How much?"]}),
    ...     qrels=pd.DataFrame({"query_id": ["q1", "q2"], "chunk_id": ["a", "b"]}),
    ...     retrieved=pd.DataFrame({"query_id": ["q1", "q2"], "rank": [1, 1],
    ...                             "chunk_id": ["a", "x"]}),
    ...     outcomes=pd.DataFrame({"query_id": ["q1", "q2"], "status": ["completed"] * 2}))
    >>> results = Results(run)
    >>> results.headline
    '1 of 2 passed retrieval · 1 × WRONG_CHUNK_RETRIEVED; answers not judged'
    >>> results["q2"].diagnosis.reason
    '0 of 1 relevant chunks in the top 5, none retrieved at any rank.'
    """

    _analysis: Analysis
    _positions: Ints

    def __init__(
        self, run: Run, settings: Settings | None = None, rules: Sequence[Rule] = ()
    ) -> None:
        book = RuleBook.of(rules)
        analysis = Analysis(RunEvidence(run), Settings() if settings is None else settings, book)
        self.__dict__.update(_analysis=analysis, _positions=np.arange(len(analysis)))

    @classmethod
    def _of(cls, analysis: Analysis, positions: Ints) -> Self:
        results = cls.__new__(cls)
        results.__dict__.update(_analysis=analysis, _positions=positions)
        return results

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"results never change: {name!r} cannot be set; select and rediagnose make new ones"
        )

    # -- what they are of -------------------------------------------------------------------------

    @cached_property
    def run(self) -> Run:
        """The evidence: of these queries alone, if they are a part of a run."""
        run = self._analysis.evidence.run
        return run if self._is_whole else run.subset(self.query_ids)

    @property
    def settings(self) -> Settings:
        """k, the thresholds and how precision is counted."""
        return self._analysis.settings

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The user's own rules, in order of precedence."""
        return self._analysis.book.own

    @property
    def k(self) -> int:
        """How many of the retrieved chunks count."""
        return self.settings.k

    @property
    def name(self) -> str:
        """Name of the pipeline."""
        return self._analysis.evidence.run.pipeline_name

    @property
    def dataset_name(self) -> str:
        """Name of the dataset."""
        return self._analysis.evidence.run.dataset_name

    @property
    def dataset_version(self) -> str:
        """Version of the dataset."""
        return self._analysis.evidence.run.dataset_version

    @property
    def query_ids(self) -> list[str]:
        """Ids of the queries, in order."""
        ids: list[str] = self._analysis.evidence.query_ids.take(self._positions).tolist()
        return ids

    @property
    def category_order(self) -> tuple[str, ...]:
        """All categories in the order of tables, the user's rules at the end."""
        return self._analysis.book.display_order

    @property
    def precedence(self) -> tuple[str, ...]:
        """All categories in the order in which the rules are tried, ``PASS`` at the end."""
        return self._analysis.book.names

    @property
    def _index(self) -> pd.Index:
        """Positions of all queries of the run in the dataset."""
        return self._analysis.evidence.index

    @property
    def _is_whole(self) -> bool:
        """Whether these are all queries of the run, in their order."""
        n = len(self._analysis)
        return len(self._positions) == n and bool((self._positions == np.arange(n)).all())

    # -- tables -----------------------------------------------------------------------------------

    @cached_property
    def _frame(self) -> pd.DataFrame:
        return self._analysis.frame(None if self._is_whole else self._positions)

    @property
    def frame(self) -> pd.DataFrame:
        """One row a query: evidence, measures, signals and diagnosis.

        The index is the query's position in the dataset. Columns: those of the queries, outcomes
        and verdicts; ``precision_at_{k}, recall_at_{k}, hit_rate_at_{k}, ndcg_at_{k},
        reciprocal_rank, average_precision, first_relevant_rank, n_relevant, n_retrieved, n_found``;
        ``signal_{category}`` (missing where not measured); ``not_measured`` (a tuple of rules),
        ``category, severity, confidence, suspect_label, reason, action``.
        """
        return guarded(self._frame)

    @property
    def chunks(self) -> pd.DataFrame:
        """One row a retrieved chunk, by query and rank, with ``relevant, grade, in_top_k``.

        ``relevant`` is missing for a query without labels, ``grade`` for a chunk without one.
        """
        return self._analysis.evidence.chunks(self._positions, self.k)

    @property
    def expected(self) -> pd.DataFrame:
        """One row a labelled chunk, or passage: ``query_id, chunk_id, grade, rank, in_top_k``.

        ``rank`` is missing where the chunk was not retrieved, ``in_top_k`` where the query was
        not run.
        """
        return self._analysis.evidence.expected(self._positions, self.k)

    @property
    def passages(self) -> pd.DataFrame:
        """One row a passage of evidence: where it stands, its ``covered`` share, rank, split."""
        return self._analysis.evidence.passages(self._positions, self.k)

    def summary(self) -> pd.DataFrame:
        """Return every mean with what it rests on.

        Returns
        -------
        pandas.DataFrame
            ``measure, value, n_used, n_failed, n_missing``; the three counts add up to the number
            of queries. Failed queries are counted, never averaged.
        """
        return overview.summary(self._analysis, self._positions)

    def counts(self) -> pd.DataFrame:
        """Return how many queries each category concerns.

        Returns
        -------
        pandas.DataFrame
            Index ``category`` in display order; ``queries`` (it is the primary cause),
            ``also_fired`` (its rule fired as well), ``not_measured`` (its rule lacked evidence),
            ``severity, action``.
        """
        return overview.counts_table(self._analysis, self._positions)

    def by(self, column: str) -> pd.DataFrame:
        """Return one row for each value of a column: counts, means with their n, main cause.

        Parameters
        ----------
        column : str
            ``query_type``, a metadata column, or any other of :attr:`frame`.

        Raises
        ------
        SettingsError
            There is no such column, or its cells cannot be grouped.
        """
        return overview.group_table(self._analysis, self._positions, column)

    def latency(self) -> pd.DataFrame:
        """Return count, mean, percentiles and range of the milliseconds of each stage."""
        return overview.latency_table(self._analysis, self._positions)

    # -- sentences --------------------------------------------------------------------------------

    @cached_property
    def headline(self) -> str:
        """One sentence: how many passed, what failed most, and what was not measured."""
        return overview.headline(self._analysis, self._positions)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What limits the numbers, for instance that fewer than k chunks were recorded."""
        return overview.notes(self._analysis, self._positions)

    @property
    def insights(self) -> list[str]:
        """What stands out in the numbers, a sentence each."""
        return list(self._insights)

    @cached_property
    def _insights(self) -> tuple[str, ...]:
        return tuple(self.report(max_top_failures=0).overall_insights)

    # -- selection --------------------------------------------------------------------------------

    def select(
        self, where: Callable[[pd.DataFrame], Any] | Any = None, /, **columns: Any
    ) -> Results:
        """Return the results of some of the queries.

        Parameters
        ----------
        where : callable or mask, optional
            A mask of True and False, one a query (a Series is aligned by its index), or a callable
            that gets :attr:`frame` and returns one.
        **columns
            ``column=value``: only queries with this value; a list means any of them, None missing.

        Raises
        ------
        SettingsError
            There is no such column, or something is not a mask.

        Examples
        --------
        ``results.select(lambda f: f.retrieval_ms > 50, query_type="multi-hop")``
        """
        needs_texts = callable(where) or not {"reason", "action"}.isdisjoint(columns)
        frame = self.frame if needs_texts else self._analysis.table.take(self._positions)
        return self._at(np.flatnonzero(column_mask(frame, where, columns)))

    def failures(self, category: Any = None, query_type: Any = None, **columns: Any) -> Results:
        """Return the queries that did not pass, worst first.

        The order is by severity, then confidence, then category in display order, then query id.

        Parameters
        ----------
        category, query_type : str or list of str, optional
            Only these.
        **columns
            As in :meth:`select`.
        """
        asked = {"category": category, "query_type": query_type}
        columns.update({name: value for name, value in asked.items() if value is not None})
        chosen = self.select(**columns) if columns else self
        return self._of(self._analysis, overview.worst_first(self._analysis, chosen._positions))

    def _at(self, places: Any) -> Results:
        return self._of(self._analysis, self._positions[places])

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[EvaluationResult]:
        return build_items(self._analysis, self._positions)

    def __contains__(self, query_id: object) -> bool:
        return (
            isinstance(query_id, str)
            and query_id in self._analysis.evidence.query_ids.take(self._positions).tolist()
        )

    @overload
    def __getitem__(self, key: int | str) -> EvaluationResult: ...
    @overload
    def __getitem__(self, key: slice | list[Any] | npt.NDArray[Any] | pd.Series) -> Results: ...
    def __getitem__(self, key: Any) -> EvaluationResult | Results:
        if isinstance(key, slice):
            return self._at(key)
        if is_mask(key):
            return self._at(np.flatnonzero(row_mask(key, self._index.take(self._positions))))
        if isinstance(key, list | np.ndarray | pd.Series | pd.Index):
            return self._at([self._place(each) for each in key])
        return next(build_items(self._analysis, self._positions[[self._place(key)]]))

    def _place(self, key: Any) -> int:
        """Return the place among these results of a query id or position."""
        if isinstance(key, str):
            return place_of_id(key, self._analysis.evidence, self._positions)
        return place_of_position(key, len(self))

    # -- other settings ---------------------------------------------------------------------------

    def rediagnose(
        self,
        *,
        k: int | None = None,
        rank_threshold: int | None = None,
        latency_threshold_ms: float | None = None,
        precision_denominator: str | None = None,
        evidence_threshold: float | None = None,
        relevance: str | None = None,
        rules: Sequence[Rule] | None = None,
    ) -> Results:
        """Return the same evidence under other settings; no pipeline and no judge is called.

        What is not given stays as it is. See :attr:`notes` for what the recording cannot answer
        at these settings.

        Raises
        ------
        SettingsError
            A setting makes no sense.
        """
        settings = self.settings.replace(
            k=k,
            rank_threshold=rank_threshold,
            latency_threshold_ms=latency_threshold_ms,
            precision_denominator=precision_denominator,
            evidence_threshold=evidence_threshold,
            relevance=relevance,
        )
        book = self._analysis.book if rules is None else RuleBook.of(rules)
        analysis = Analysis(self._analysis.evidence, settings, book)
        return self._of(analysis, self._positions)

    # -- ways out ---------------------------------------------------------------------------------

    def report(self, **options: Any) -> EvaluationReport:
        """Return the typed report, see :func:`ragdiag.build_report`."""
        from ragdiag.report import build_report

        return build_report(self, **options)

    def to_csv(self, path: str | PathLike[str] | None = None, *, safe: bool = True) -> str | None:
        """Write :attr:`frame` as CSV, or return the text when there is no path.

        Parameters
        ----------
        path : str or path, optional
            The file.
        safe : bool
            Put an apostrophe before texts that a spreadsheet would run as a formula.
        """
        if path is None:
            return export.csv_text(self._frame, safe=safe)
        export.write_csv(self._frame, path, safe=safe)
        return None

    def to_json(self, path: str | PathLike[str] | None = None) -> str | None:
        """Write :attr:`frame` as a JSON array of rows, or return the text without a path."""
        if path is None:
            return export.json_text(self._frame)
        export.write_json(self._frame, path)
        return None

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write :attr:`frame` as Parquet."""
        export.write_parquet(self._frame, path)

    def to_mlflow(self, *, run_name: str | None = None) -> str:
        """Log to MLflow, see :func:`ragdiag.interop.mlflow_log.to_mlflow`."""
        from ragdiag.interop import mlflow_log

        return mlflow_log.to_mlflow(self, run_name=run_name)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        from ragdiag.interop import arrow

        return arrow.stream(self._frame, requested_schema)

    def save(self, path: str | PathLike[str]) -> None:
        """Write evidence and settings to one file; :func:`load_results` gives the results back.

        The file is that of :meth:`Run.save <ragdiag.recording.Run.save>` and can be read as a run
        as well. Of the user's rules only the names are kept: code is never read from a file.
        """
        save_analysis(self._analysis, self._positions, Path(path))

    def label(self, n: int = 30, *, seed: int = 0) -> Any:
        """Return a form to label `n` queries by hand, see :func:`ragdiag.agreement`.

        The labels are the form's ``frame``; a random sample, the same for the same `seed`.
        """
        from ragdiag.display import labeller

        return labeller.label(self, n, seed)


def load_results(path: str | PathLike[str], *, rules: Sequence[Rule] = ()) -> Results:
    """Return results that were saved with :meth:`Results.save`.

    Parameters
    ----------
    path : str or path
        The file.
    rules : sequence of Rule, optional
        The user's rules the results were made with, which a file cannot hold.

    Raises
    ------
    RunFormatError
        The file is not of saved results (for a run or a store use :func:`ragdiag.load_run`), or
        it was saved with rules that are not given.
    """
    return Results._of(*load_analysis(Path(path), rules))
