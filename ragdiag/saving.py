"""A file of results: the run's own format, with the settings beside it in its ``info``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ragdiag.analysis import Analysis
from ragdiag.errors import RunFormatError
from ragdiag.evidence import RunEvidence
from ragdiag.recording import load_run
from ragdiag.rules import Rule, RuleBook
from ragdiag.schema import Settings

__all__ = ["load_analysis", "save_analysis"]

Ints = npt.NDArray[np.int64]

#: Where the settings stand in the ``info`` of a saved run.
INFO_KEY = "results"


def save_analysis(analysis: Analysis, positions: Ints, path: Path) -> None:
    """Write the queries at `positions` with their settings; the order is kept.

    Raises
    ------
    ExportError
        The file cannot be written.
    """
    evidence = analysis.evidence
    rows = np.unique(positions)
    is_part = len(rows) < len(analysis)
    run = evidence.run.subset(evidence.query_ids.take(rows)) if is_part else evidence.run
    about = {
        "settings": analysis.settings.model_dump(),
        "rules": [rule.name for rule in analysis.book.own],
        "index": evidence.index.take(rows).tolist(),
        "places": np.searchsorted(rows, positions).tolist(),
    }
    run.replace(info={**run.info, INFO_KEY: about}).save(path)


def load_analysis(path: Path, own: Sequence[Rule]) -> tuple[Analysis, Ints]:
    """Return what :func:`save_analysis` wrote: the analysis and the positions.

    Raises
    ------
    RunFormatError
        The file holds no results, or they were made with rules that are not among `own`.
    """
    run = load_run(path)
    info = dict(run.info)
    about = info.pop(INFO_KEY, None)
    if not isinstance(about, Mapping):
        raise RunFormatError(
            f"{path}: this file holds a run without settings; use ragdiag.load_run, and "
            "ragdiag.diagnose for the results"
        )
    try:
        settings = Settings(**about["settings"])
        names = [str(name) for name in about["rules"]]
        index = [int(place) for place in about["index"]]
        places = np.array(about["places"], dtype=np.int64)
    except (KeyError, TypeError, ValueError) as error:
        raise RunFormatError(f"{path}: the settings beside the run are damaged: {error}") from error
    if len(index) != len(run) or (places.size and not 0 <= places.min() <= places.max() < len(run)):
        raise RunFormatError(f"{path}: the settings beside the run are of {len(index)} queries")
    missing = sorted(set(names) - {rule.name for rule in own})
    if missing:
        raise RunFormatError(
            f"{path}: these results were made with rules of your own; a file cannot hold them, "
            f"give them as rules=: {', '.join(missing)}"
        )
    evidence = RunEvidence(run.replace(info=info), index)
    return Analysis(evidence, settings, RuleBook.of(own)), places
