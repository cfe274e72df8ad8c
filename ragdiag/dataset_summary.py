"""What a golden dataset consists of, in counts and lengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from pydantic import BaseModel

from ragdiag.schema import QueryType
from ragdiag.tables import QUERIES
from ragdiag.validation import CheckedDataset

__all__ = ["DatasetSummary", "Spread", "summarise"]


class Spread(BaseModel, defer_build=True):
    """How a count is distributed over the queries that have it.

    Attributes
    ----------
    min, median, p95, max : float
        Quantiles, linearly interpolated.
    mean : float
        The mean.
    """

    min: float
    median: float
    p95: float
    max: float
    mean: float


class DatasetSummary(BaseModel, defer_build=True):
    """What a dataset consists of.

    Attributes
    ----------
    name, version, description
        Of the dataset.
    total_samples : int
        Number of queries.
    query_type_counts : dict of str to int
        Queries of each type that occurs: the standard types first, then declared ones.
    without_type, without_answer, without_labels : int
        Queries that lack these; what needs them counts as not measured.
    total_relevant, distinct_relevant : int
        Labels of grade 1 and up, and the different chunks they name.
    graded : bool
        Whether any grade is not 1.
    relevant_per_query : Spread or None
        Over the queries that have labels; None where none has.
    query_characters, answer_characters : Spread or None
        Lengths of questions and expected answers in characters.
    metadata_columns : list of str
        The user's own fields.
    warnings : list of str
        Doubts that do not stop the dataset from being used.
    """

    name: str
    version: str
    description: str | None
    total_samples: int
    query_type_counts: dict[str, int]
    without_type: int
    without_answer: int
    without_labels: int
    total_relevant: int
    distinct_relevant: int
    graded: bool
    relevant_per_query: Spread | None
    query_characters: Spread | None
    answer_characters: Spread | None
    metadata_columns: list[str]
    warnings: list[str]


def summarise(checked: CheckedDataset) -> DatasetSummary:
    """Count what a checked dataset holds."""
    frame, qrels = checked.frame, checked.qrels
    found = frame["query_type"].value_counts().to_dict()
    order = [*(kind.value for kind in QueryType), *checked.query_types]
    relevant = qrels[qrels["grade"] >= 1]
    labelled = relevant["query_id"].value_counts()
    return DatasetSummary(
        name=checked.name,
        version=checked.version,
        description=checked.description,
        total_samples=len(frame),
        query_type_counts={kind: int(found[kind]) for kind in order if kind in found},
        without_type=int(frame["query_type"].isna().sum()),
        without_answer=int(frame["expected_answer"].isna().sum()),
        without_labels=len(frame) - len(labelled),
        total_relevant=len(relevant),
        distinct_relevant=int(relevant["chunk_id"].nunique()),
        graded=bool((qrels["grade"] != 1).any()),
        relevant_per_query=_spread(labelled.tolist()),
        query_characters=_spread(_lengths(frame["query"])),
        answer_characters=_spread(_lengths(frame["expected_answer"])),
        metadata_columns=[str(name) for name in frame.columns if name not in QUERIES],
        warnings=list(checked.warnings),
    )


def _lengths(texts: pd.Series) -> list[int]:
    return texts.dropna().str.len().tolist()


def _spread(counts: Sequence[int]) -> Spread | None:
    if not counts:
        return None
    low, median, high, top = np.quantile(counts, [0, 0.5, 0.95, 1]).tolist()
    return Spread(min=low, median=median, p95=high, max=top, mean=float(np.mean(counts)))
