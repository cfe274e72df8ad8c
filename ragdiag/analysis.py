"""A run seen through settings: measures, diagnosis and the table of one row a query.

:class:`~ragdiag.results.Results` is the face of it; any number of sub-sets share one analysis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ragdiag.aggregates import as_floats
from ragdiag.diagnosis import (
    FIRED,
    NOT_MEASURED,
    Diagnosis,
    diagnose_table,
)
from ragdiag.evidence import RunEvidence
from ragdiag.reasons import Findings, reasons
from ragdiag.rules import Evidence, RuleBook
from ragdiag.schema import Settings
from ragdiag.tables import MEASURE, OUTCOMES, TEXT, VERDICTS
from ragdiag.taxonomy import FailureCategory

__all__ = ["Analysis", "plain_rows"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Measures at one k, in the order of their columns.
MEASURES_AT_K = ("precision", "recall", "hit_rate", "ndcg")

#: Measures of the whole retrieval.
MEASURES_OF_ALL = ("reciprocal_rank", "average_precision")


class Analysis:
    """What :class:`~ragdiag.results.Results` shows, for all queries of the run.

    Parameters
    ----------
    evidence : RunEvidence
        The run, lined up by query.
    settings : Settings
        k and the thresholds.
    book : RuleBook
        The rules.

    Raises
    ------
    SettingsError
        A user's rule raises, or does not return a mask.
    """

    def __init__(self, evidence: RunEvidence, settings: Settings, book: RuleBook) -> None:
        self.evidence = evidence = evidence.under(settings)
        self.settings = settings
        self.book = book
        measured = evidence.measures([settings.k], settings.precision_denominator)
        self.n_found: Ints = measured[f"n_found_at_{settings.k}"]
        by_passage = () if evidence.covers is None else ("iou",)
        at_k = [f"{name}_at_{settings.k}" for name in (*MEASURES_AT_K, *by_passage)]
        self.measures: dict[str, Floats] = {
            name: np.where(evidence.retrieval_measured, measured[name], np.nan)
            for name in (*at_k, *MEASURES_OF_ALL)
        }
        self.first_relevant_rank: Floats = np.where(
            evidence.retrieval_measured, measured["first_relevant_rank"], np.nan
        )
        self.diagnosis: Diagnosis = self._diagnose()
        self._reasons = np.full(len(evidence), None, dtype=object)

    def __len__(self) -> int:
        return len(self.evidence)

    @cached_property
    def rule_evidence(self) -> Evidence:
        """What the rules look at."""
        evidence = self.evidence
        return Evidence(
            settings=self.settings,
            has_outcome=evidence.has_outcome,
            failed=evidence.failed,
            retrieval_measured=evidence.retrieval_measured,
            n_relevant=evidence.n_relevant,
            n_found=self.n_found,
            first_relevant_rank=self.first_relevant_rank,
            retrieval_ms=as_floats(evidence.outcomes["retrieval_ms"]),
            grounded=evidence.verdict("grounded", "grounded"),
            answer_correct=evidence.verdict("answer_correct", "correct"),
            grounded_confidence=as_floats(evidence.verdicts["grounded_confidence"]),
            correct_confidence=as_floats(evidence.verdicts["correct_confidence"]),
        )

    def _diagnose(self) -> Diagnosis:
        if not self.book.own:
            return diagnose_table(self.rule_evidence, self.book)
        built_in = diagnose_table(self.rule_evidence)
        return diagnose_table(self.rule_evidence, self.book, self._rule_table(built_in))

    # -- the table of one row a query -------------------------------------------------------------

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row a query, without the texts that :meth:`reasons` writes."""
        columns = self._measured_columns(self.diagnosis)
        columns["not_measured"] = self._not_measured()
        columns["category"] = self._categories()
        columns["severity"] = self._named(self.book.severities)
        columns["confidence"] = self.diagnosis.confidence
        columns["suspect_label"] = _booleans(self.diagnosis.suspect_label)
        return pd.DataFrame(columns, copy=False).set_axis(self.evidence.index)

    def _rule_table(self, diagnosis: Diagnosis) -> pd.DataFrame:
        """Return what the user's rules get: a comparison with a missing measure is missing."""
        columns = self._measured_columns(diagnosis)
        for name in [*OUTCOMES, *VERDICTS, *self.measures]:
            if name in columns and columns[name].dtype == MEASURE:
                values = as_floats(columns[name])
                columns[name] = pd.arrays.FloatingArray(values.copy(), np.isnan(values))
        return pd.DataFrame(columns).set_axis(self.evidence.index)

    def _measured_columns(self, diagnosis: Diagnosis) -> dict[str, Any]:
        evidence = self.evidence
        columns: dict[str, Any] = {}
        for part in (evidence.queries, evidence.outcomes, evidence.verdicts):
            columns.update({str(name): part[name] for name in part.columns})
        columns.update(self.measures)
        rank = self.first_relevant_rank
        columns["first_relevant_rank"] = _counts(np.nan_to_num(rank), np.isnan(rank))
        columns["n_relevant"] = _counts(evidence.n_relevant)
        columns["n_retrieved"] = _counts(evidence.n_retrieved, ~evidence.was_run)
        columns["n_found"] = _counts(self.n_found, ~evidence.retrieval_measured)
        for place, name in enumerate(diagnosis.book.names[:-1]):
            states = diagnosis.states[place]
            columns[f"signal_{name.lower()}"] = pd.arrays.BooleanArray(
                states == FIRED, states == NOT_MEASURED
            )
        last = len(diagnosis.book.rules)
        columns[f"signal_{FailureCategory.PASS.value.lower()}"] = pd.arrays.BooleanArray(
            diagnosis.primary == last, diagnosis.primary < 0
        )
        return columns

    def _not_measured(self) -> npt.NDArray[np.object_]:
        """Return for each query the rules that lacked evidence; equal tuples are one object."""
        lists, which = self.diagnosis.not_measured
        cells = np.empty(len(lists), dtype=object)
        for place, names in enumerate(lists):
            cells[place] = names
        return cells[which]

    def _categories(self) -> Any:
        order = self.book.quality_order
        # One place more than there are names: -1, missing, is the last.
        codes = np.array([*(order.index(name) for name in self.book.names), -1], dtype=np.int64)
        return pd.Categorical.from_codes(
            codes[self.diagnosis.primary], pd.Index(order, dtype=object), ordered=True
        )

    def _named(self, names: Sequence[str]) -> Any:
        """Return one of `names` for each query by its primary category, missing without one."""
        codes = self.diagnosis.primary
        indices = pa.array(codes.astype(np.int32), mask=codes < 0)
        values = pa.array(list(names), pa.large_string())
        texts = pa.DictionaryArray.from_arrays(indices, values).cast(pa.large_string())
        return pd.array(texts, dtype=TEXT)

    def frame(self, positions: Ints | None = None) -> pd.DataFrame:
        """Return the table with its texts, of all queries or those at `positions`."""
        chosen = np.arange(len(self)) if positions is None else positions
        frame = self.table if positions is None else self.table.take(positions)
        frame = frame.copy(deep=False)
        frame["reason"] = pd.array(self.reasons(chosen), dtype=TEXT)
        actions = self._named(self.book.actions)
        frame["action"] = actions if positions is None else actions.take(positions)
        return frame

    def action(self, place: int) -> str:
        """Return what to do about the query at one position, empty without a category."""
        code = int(self.diagnosis.primary[place])
        return "" if code < 0 else self.book.actions[code]

    # -- texts, written when someone reads them ---------------------------------------------------

    @cached_property
    def findings(self) -> Findings:
        """What the reasons are made of."""
        ranks, k = self.evidence.ranks, self.settings.k
        deeper = self.evidence.pair_relevant & (ranks.pair_rank > k)
        query = ranks.pair_query[deeper]
        next_rank = np.full(len(self), np.inf)
        np.minimum.at(next_rank, query, ranks.pair_rank[deeper])
        outcomes, verdicts = self.evidence.outcomes, self.evidence.verdicts
        return Findings(
            evidence=self.rule_evidence,
            diagnosis=self.diagnosis,
            next_rank=np.where(np.isinf(next_rank), np.nan, next_rank),
            n_deeper=np.bincount(query, minlength=len(self)),
            errors=lambda at: _plain(outcomes["error"].take(at)),
            screened=lambda at: verdicts["screened"].take(at).fillna(False).tolist(),
            by_passage=self.evidence.by_passage,
            covered=self.evidence.covered_shares(k),
            covered_deeper=self.evidence.covered_shares(),
            n_split=self._n_split(k),
            rows=lambda at: plain_rows(self._rule_table(self.diagnosis).take(at)),
        )

    def _n_split(self, k: int) -> Ints:
        """Return how many passages not in the top k a chunk's border cuts, for each query."""
        if self.evidence.covers is None:
            return np.zeros(len(self), dtype=np.int64)
        covers = self.evidence.covers
        came = self.evidence.completed()
        lost = covers.passage_split & ((came == 0) | (came > k))
        return np.bincount(covers.passage_query[lost], minlength=len(self))

    def reasons(self, positions: Ints) -> list[str]:
        """Return why each of the queries at `positions` has its category, one sentence each."""
        unwritten = positions[[self._reasons[place] is None for place in positions.tolist()]]
        if len(unwritten):
            self._reasons[unwritten] = reasons(self.findings, unwritten)
        texts: list[str] = self._reasons[positions].tolist()
        return texts


def _booleans(values: Floats) -> pd.arrays.BooleanArray:
    return pd.arrays.BooleanArray(values == 1, np.isnan(values))


def _counts(values: Any, missing: Any = None) -> pd.arrays.IntegerArray:
    mask = np.zeros(len(values), dtype=bool) if missing is None else missing
    return pd.arrays.IntegerArray(values.astype(np.int64), np.asarray(mask))


def _plain(column: pd.Series) -> list[Any]:
    """Return a column as Python objects, None where missing."""
    missing = column.isna().to_numpy()
    return [None if gone else value for gone, value in zip(missing, column.tolist(), strict=True)]


def plain_rows(frame: pd.DataFrame) -> list[Mapping[str, Any]]:
    """Return the rows of a frame as dicts of Python objects, None where missing.

    Examples
    --------
    >>> plain_rows(pd.DataFrame({"n": pd.array([1, None], dtype="Int64")}))
    [{'n': 1}, {'n': None}]
    """
    columns = {str(name): _plain(frame[name]) for name in frame.columns}
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
