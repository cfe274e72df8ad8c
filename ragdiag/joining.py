"""Bringing several results onto the same queries, or refusing with the difference named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag.errors import ComparisonError
from ragdiag.outcomes import TIE

if TYPE_CHECKING:
    from ragdiag.results import Results

__all__ = ["Joined", "check_options", "join", "position", "tell_apart"]

#: How many ids a message lists before it counts the rest.
LISTED_IDS = 5


@dataclass(frozen=True)
class Joined:
    """Results that hold the same queries.

    Attributes
    ----------
    results : tuple of Results
        Each with its own order of rows.
    rows : tuple of numpy.ndarray of int, shape (n,)
        For each of them the row of every query, in the baseline's order.
    left_out : dict of str to int
        How many queries each lost to the intersection.
    """

    results: tuple[Results, ...]
    rows: tuple[npt.NDArray[np.intp], ...]
    left_out: dict[str, int]


def tell_apart(results: Sequence[Results], names: Sequence[str] | None) -> tuple[str, ...]:
    """Return one distinct name for each of `results`.

    Without `names` they are the pipelines' own. Where two are equal the pipelines' versions are
    added, and where that is not enough a number.

    Raises
    ------
    ComparisonError
        `names` has another length, or names two alike.
    """
    if names is not None:
        return _given(names, len(results))
    own = [each.name or f"Pipeline {_letter(place)}" for place, each in enumerate(results)]
    versioned = [
        f"{name} {each.run.pipeline_version}"
        if own.count(name) > 1 and each.run.pipeline_version
        else name
        for name, each in zip(own, results, strict=True)
    ]
    # A pipeline that is called like no winner at all would make every verdict unreadable.
    taken = {TIE}
    distinct: list[str] = []
    for name in versioned:
        number, candidate = 1, name
        while candidate in taken:
            number += 1
            candidate = f"{name} ({number})"
        taken.add(candidate)
        distinct.append(candidate)
    return tuple(distinct)


def _given(names: Sequence[str], sides: int) -> tuple[str, ...]:
    names = [str(name) for name in names]
    if len(names) != sides:
        raise ComparisonError(f"names= has {len(names)} names for {sides} results: {names!r}")
    if len(set(names)) < len(names) or not all(names) or TIE in names:
        raise ComparisonError(f"names= must be distinct, not empty and not {TIE!r}, got {names!r}")
    return tuple(names)


def check_options(
    sides: int,
    *,
    names: Sequence[str] | None,
    baseline: int | str,
    on: str,
    quality_tolerance: float,
    latency_tolerance_ms: float,
) -> None:
    """Refuse options that no comparison of so many sides can have, before one of them is run.

    Raises
    ------
    ComparisonError
        The message names the option. A `baseline` by name is looked for where `names` are given.
    """
    for tolerance, value in (
        ("quality_tolerance", quality_tolerance),
        ("latency_tolerance_ms", latency_tolerance_ms),
    ):
        if not isinstance(value, Real) or not value >= 0:
            raise ComparisonError(f"{tolerance} must be 0 or more, got {value!r}")
    if on not in ("all", "intersection"):
        raise ComparisonError(f"on must be 'all' or 'intersection', got {on!r}")
    known = None if names is None else _given(names, sides)
    if known is not None or not isinstance(baseline, str):
        position(baseline, sides, known or ())


def position(side: int | str, sides: int, names: Sequence[str]) -> int:
    """Return the place of one side, given as a place or a name."""
    if isinstance(side, str):
        if side not in names:
            raise ComparisonError(f"no side is called {side!r}; there are {list(names)!r}")
        return names.index(side)
    if not -sides <= side < sides:
        raise ComparisonError(f"there is no side {side!r}; there are {sides}")
    return range(sides)[side]


def _letter(place: int) -> str:
    return chr(ord("A") + place) if place < 26 else str(place + 1)


def join(
    results: Sequence[Results],
    names: Sequence[str],
    *,
    baseline: int,
    on: Literal["all", "intersection"],
) -> Joined:
    """Bring `results` onto the same queries.

    Parameters
    ----------
    results, names : sequences of equal length
        What is compared, and what to call each in a message.
    baseline : int
        Whose order of queries holds.
    on : {"all", "intersection"}
        Whether results with different queries are refused or cut to what they share.

    Raises
    ------
    ComparisonError
        Settings, rules, queries, questions or labels differ, or an id occurs twice.
    """
    _refuse_other_settings(results, names)
    ids = [_ids(each) for each in results]
    for index, name in zip(ids, names, strict=True):
        if index.has_duplicates:
            twice = index[index.duplicated()].unique()
            raise ComparisonError(
                f"{name!r} holds {_listed(twice)} more than once, so queries cannot be paired; "
                "keep one of each, for example .select(lambda f: ~f.query_id.duplicated())"
            )
    left_out = dict.fromkeys(names, 0)
    shared = ids[baseline]
    if any(len(index) != len(shared) or not _found(index, shared).all() for index in ids):
        if on == "all":
            raise ComparisonError(_different_queries(ids, names, baseline))
        for index in ids:
            shared = shared[_found(shared, index)]
        left_out = {name: len(index) - len(shared) for name, index in zip(names, ids, strict=True)}
        results = [
            each.select(_found(index, shared)) if len(index) > len(shared) else each
            for each, index in zip(results, ids, strict=True)
        ]
        ids = [_ids(each) for each in results]
    rows = tuple(index.get_indexer(shared) for index in ids)
    for place, each in enumerate(results):
        if place != baseline:
            pair = (results[baseline], each)
            named = (names[baseline], names[place])
            _refuse_other_questions(pair, (rows[baseline], rows[place]), named)
            _refuse_other_labels(pair, named)
    return Joined(tuple(results), rows, left_out)


def _ids(results: Results) -> pd.Index:
    # Looking up Python strings is many times as fast as looking up Arrow strings.
    ids: pd.Index = pd.Index(results.frame["query_id"].to_numpy(dtype=object))
    return ids


def _found(ids: pd.Index, among: pd.Index) -> npt.NDArray[np.bool_]:
    """Return which of `ids` are among others."""
    return among.get_indexer(ids) >= 0


def _refuse_other_settings(results: Sequence[Results], names: Sequence[str]) -> None:
    first = dict(results[0].settings)
    for each, name in zip(results, names, strict=True):
        own = dict(each.settings)
        differing = [setting for setting in first if first[setting] != own[setting]]
        if differing:
            listed = ", ".join(
                f"{setting} is {first[setting]!r} in {names[0]!r} and {own[setting]!r} in {name!r}"
                for setting in differing
            )
            remedy = ", ".join(f"{setting}={first[setting]!r}" for setting in differing)
            letters = ", ".join("abcdefgh"[: len(results)]) if len(results) <= 8 else "..."
            raise ComparisonError(
                f"settings differ: {listed}. compare({letters}, {remedy}) diagnoses all of them "
                "again at one setting, which calls no pipeline and no judge"
            )
        if _rule_names(each) != _rule_names(results[0]):
            raise ComparisonError(
                f"rules of your own differ between {names[0]!r} and {name!r}; give both the same, "
                "for example Results(results.run, results.settings, rules=...)"
            )


def _rule_names(results: Results) -> list[tuple[str, str]]:
    return [(rule.name, rule.severity) for rule in results.rules]


def _different_queries(ids: Sequence[pd.Index], names: Sequence[str], baseline: int) -> str:
    reference = ids[baseline]
    differences = []
    for index, name in zip(ids, names, strict=True):
        for has, lacks, one, other in (
            (reference, index, names[baseline], name),
            (index, reference, name, names[baseline]),
        ):
            only = has[~_found(has, lacks)]
            if len(only):
                differences.append(
                    f"{len(only)} only in {one!r}, not in {other!r}: {_listed(only)}"
                )
    return (
        f"the results do not hold the same queries ({'; '.join(differences)}). "
        "on='intersection' compares what they share"
    )


def _refuse_other_questions(
    pair: tuple[Results, Results],
    rows: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]],
    names: tuple[str, str],
) -> None:
    """Refuse when one id stands for two questions; a text that is missing proves nothing."""
    ids = pair[0].frame["query_id"].take(rows[0]).reset_index(drop=True)
    texts = [
        each.frame["query"].take(order).reset_index(drop=True)
        for each, order in zip(pair, rows, strict=True)
    ]
    differs = (texts[0] != texts[1]).fillna(False).to_numpy(dtype=bool)
    if differs.any():
        row = int(np.flatnonzero(differs)[0])
        raise ComparisonError(
            f"{int(differs.sum())} query ids stand for different questions, the first is "
            f"{ids[row]!r}: {texts[0][row]!r} in {names[0]!r}, {texts[1][row]!r} in {names[1]!r}"
        )


def _refuse_other_labels(pair: tuple[Results, Results], names: tuple[str, str]) -> None:
    """Refuse when the relevant chunks differ: the measures would have different meanings."""
    columns = ["query_id", "chunk_id", "grade"]
    labels = [each.expected[columns].reset_index(drop=True) for each in pair]
    if labels[0].equals(labels[1]):
        return
    differing = pd.concat(labels).drop_duplicates(keep=False)["query_id"].unique()
    if len(differing):
        raise ComparisonError(
            f"relevant chunks of {_listed(differing)} differ between {names[0]!r} and "
            f"{names[1]!r}; diagnose(run, dataset) sees both runs with the labels of one dataset"
        )


def _listed(ids: Sequence[str] | pd.Index | np.ndarray) -> str:
    shown = ", ".join(repr(str(each)) for each in list(ids[:LISTED_IDS]))
    rest = len(ids) - LISTED_IDS
    return f"{shown} and {rest} more" if rest > 0 else shown
