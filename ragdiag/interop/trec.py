"""TREC: run files and qrels, read as ``trec_eval`` reads them, and written so that it agrees.

``trec_eval`` orders by score, and by id (descending) where scores are equal; the rank column means
nothing to it. A run that is written here therefore has scores that fall strictly.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag.cells import plain_list, shown
from ragdiag.errors import ExportError, RunFormatError
from ragdiag.files import write_text
from ragdiag.interop.records import MAX_LISTED
from ragdiag.recording import Run

__all__ = [
    "EMPTY",
    "QRELS_LINE",
    "QUERIES_FILE",
    "REPEATED",
    "RUN_LINE",
    "SIDECAR",
    "escaped",
    "listed",
    "read_qrels",
    "read_results",
    "read_sidecar",
    "to_trec",
    "unescaped",
]

#: Query, a constant, document, rank, score, tag.
RUN_LINE = re.compile(
    r"\S+\s+\S+\s+\S+\s+-?\d+\s+[-+]?(\d|\.\d|nan|inf)\S*\s+\S+\s*", re.IGNORECASE
)

#: Query, iteration, document, grade.
QRELS_LINE = re.compile(r"\S+\s+\S+\s+\S+\s+-?\d+\s*")

RUN_COLUMNS = ("query_id", "q0", "chunk_id", "rank", "score", "tag")
QRELS_COLUMNS = ("query_id", "iteration", "chunk_id", "grade")

#: What :func:`to_trec` writes, and a reader of it looks for.
RUN_FILE, QRELS_FILE, QUERIES_FILE, SIDECAR = (
    "run.trec",
    "qrels.trec",
    "queries.tsv",
    "ragdiag.json",
)
SIDECAR_FORMAT = "ragdiag-trec"

#: Stands for the result of a query that found nothing: without a line it would not be counted.
EMPTY = "%empty"

#: Stands between an id and its number where a query has the same chunk twice.
REPEATED = "%repeat"

_UNSAFE = re.compile(r"[\s%]|[^\x20-\x7e\w]")


def escaped(identity: str) -> str:
    """Return an id as one word: white space, control characters and ``%`` as ``%XX`` of UTF-8.

    Examples
    --------
    >>> escaped("page 3"), escaped("50%"), escaped("héllo"), unescaped("page%203")
    ('page%203', '50%25', 'héllo', 'page 3')
    """
    return _UNSAFE.sub(lambda match: urllib.parse.quote(match[0], safe=""), identity)


def unescaped(word: str) -> str:
    """Return the id that :func:`escaped` was given."""
    return urllib.parse.unquote(word, errors="strict")


def read_results(path: Path, lost: list[tuple[str, str]], notes: list[str]) -> pd.DataFrame:
    """Return the lines of a run file as the retrieved table, in the order of ``trec_eval``.

    Parameters
    ----------
    path : pathlib.Path
        The file, also ``.gz``.
    lost : list of (str, str)
        Gets place and reason of each line that cannot be used.
    notes : list of str
        Gets a sentence where the rank column tells another order.
    """
    table = _words(path, RUN_COLUMNS, lost)
    score = pd.to_numeric(table["score"], errors="coerce").to_numpy(dtype="float64")
    rank = pd.to_numeric(table["rank"], errors="coerce").to_numpy(dtype="float64")
    good = np.isfinite(score)
    _lose(lost, path, table["line"][~good], "its score is not a number")
    table, score, rank = table[good], score[good], rank[good]
    query = pd.factorize(table["query_id"])[0]
    with np.errstate(over="ignore"):
        single = score.astype("float32")  # the precision of trec_eval
    ids = table["chunk_id"].to_numpy(dtype=object)
    descending_id = pd.Series(ids, dtype=object).rank(method="dense", ascending=False).to_numpy()
    order = np.lexsort((descending_id, -single, query))
    told = rank[order]
    same = np.diff(query[order]) == 0
    disagree = np.unique(query[order][1:][same & (np.diff(told) < 0)])
    if len(disagree):
        notes.append(
            f"{len(disagree):,} queries are ordered by score, as trec_eval does; the rank column "
            "tells another order"
        )
    ordered = table.iloc[order]
    position = ordered.groupby("query_id", sort=False).cumcount().to_numpy() + 1
    return pd.DataFrame(
        {
            "query_id": ordered["query_id"].to_numpy(dtype=object),
            "rank": position,
            "chunk_id": ordered["chunk_id"].to_numpy(dtype=object),
            "score": score[order],
        }
    )


def read_qrels(path: Path, lost: list[tuple[str, str]]) -> pd.DataFrame:
    """Return the lines of a qrels file: of TREC, or of a BEIR folder with its header."""
    tabbed = path.suffix.lower() == ".tsv"
    columns = ("query_id", "chunk_id", "grade") if tabbed else QRELS_COLUMNS
    table = _words(path, columns, lost)
    grade = pd.to_numeric(table["grade"], errors="coerce").to_numpy(dtype="float64")
    good = np.isfinite(grade) & (np.floor(grade) == grade)
    header = tabbed & (table["line"] == 1).to_numpy()
    _lose(lost, path, table["line"][~good & ~header], "its grade is not a whole number")
    found = table.loc[good, ["query_id", "chunk_id"]].assign(grade=grade[good].astype("int64"))
    labels: pd.DataFrame = found.drop_duplicates(["query_id", "chunk_id"])
    return labels.reset_index(drop=True)


def _words(path: Path, columns: tuple[str, ...], lost: list[tuple[str, str]]) -> pd.DataFrame:
    """Return the words of each line that is not empty, with its number; others are lost."""
    names = [*columns, "rest"]
    try:
        table = pd.read_csv(
            path,
            sep=r"\s+",
            header=None,
            names=names,
            dtype=str,
            quoting=3,
            keep_default_na=False,
            skip_blank_lines=False,
            compression="infer",
            encoding="utf-8",
        )
    except UnicodeDecodeError as error:
        raise RunFormatError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from error
    except pd.errors.EmptyDataError:
        table = pd.DataFrame(columns=names, dtype=str)
    except (ValueError, OSError, EOFError) as error:
        raise RunFormatError(f"{path}: cannot be read as lines of {columns}: {error}") from error
    table.insert(0, "line", np.arange(1, len(table) + 1))
    filled = table[columns[-1]].notna() & (table[columns[-1]] != "")
    empty = table[columns[0]].isna() | (table[columns[0]] == "")
    exact = filled & (table["rest"].isna() | (table["rest"] == ""))
    _lose(lost, path, table["line"][~exact & ~empty], f"it does not have {len(columns)} words")
    words: pd.DataFrame = table[exact].drop(columns="rest").reset_index(drop=True)
    return words


def _lose(lost: list[tuple[str, str]], path: Path, lines: Iterable[int], reason: str) -> None:
    lost.extend((f"{path.name} line {line}", reason) for line in lines)


# Out


def to_trec(run: Run, folder: str | Path) -> Path:
    """Write a run and its labels as ``trec_eval``, ``ir_measures`` and ``ranx`` read them.

    ==================  ========================================================================
    ``run.trec``        query, Q0, chunk, rank, score, name of the pipeline
    ``qrels.trec``      query, 0, chunk, grade
    ``queries.tsv``     query and the text of the question, white space made single spaces
    ``ragdiag.json``    names, and which queries failed; :func:`ragdiag.load_run` reads it back
    ==================  ========================================================================

    The numbers come out the same: recall, reciprocal rank, average precision and nDCG as they are,
    precision with ``precision_denominator="k"``. To that end scores are kept where they fall
    strictly in single precision, and are counted down from the number of chunks elsewhere; a query
    that found nothing has one line with the chunk ``%empty``; a chunk that a query has twice is
    written the second time as ``ID%repeat2``; a failed query has no lines. White space, control
    characters and ``%`` in ids are written as ``%XX``.

    Parameters
    ----------
    run : Run
        What happened.
    folder : path
        Where to; it is made where it is missing.

    Returns
    -------
    pathlib.Path
        The folder.

    Raises
    ------
    ExportError
        It cannot be written.
    """
    folder = Path(folder).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(f"{folder}: cannot be made: {error.strerror or error}") from error
    queries = run.queries
    failed = run.outcomes[run.outcomes["status"] == "failed"]
    write_text(folder / RUN_FILE, "".join(_run_lines(run, set(failed["query_id"]))))
    qrels = run.qrels.drop_duplicates(["query_id", "chunk_id"])
    labels = zip(*(plain_list(qrels[name]) for name in qrels), strict=True)
    write_text(
        folder / QRELS_FILE,
        "".join(
            f"{escaped(query_id)} 0 {escaped(chunk_id)} {1 if grade is None else grade}\n"
            for query_id, chunk_id, grade in labels
        ),
    )
    texts = zip(plain_list(queries["query_id"]), plain_list(queries["query"]), strict=True)
    write_text(
        folder / QUERIES_FILE,
        "".join(
            f"{escaped(query_id)}\t{' '.join((text or '').split())}\n" for query_id, text in texts
        ),
    )
    errors = zip(plain_list(failed["query_id"]), plain_list(failed["error"]), strict=True)
    sidecar = {
        "format": SIDECAR_FORMAT,
        "version": 1,
        "dataset": {"name": run.dataset_name, "version": run.dataset_version},
        "pipeline": {"name": run.pipeline_name, "version": run.pipeline_version},
        "failed": dict(errors),
    }
    write_text(folder / SIDECAR, json.dumps(sidecar, ensure_ascii=False, indent=2) + "\n")
    return folder


def _run_lines(run: Run, failed: set[str]) -> Iterable[str]:
    tag = escaped(run.pipeline_name).replace("%20", "_") or "run"
    retrieved = run.retrieved.sort_values("rank", kind="stable")
    groups = dict(list(retrieved.groupby("query_id", sort=False)))
    for query_id in plain_list(run.outcomes["query_id"]):
        if query_id in failed or query_id in run.info.get("retrieval_not_recorded", {}):
            continue
        name = escaped(query_id)
        group = groups.get(query_id)
        if group is None:
            yield f"{name} Q0 {EMPTY} 1 1 {tag}\n"
            continue
        scores = _falling(group["score"].to_numpy(dtype="float64"))
        seen: dict[str, int] = {}
        for rank, (chunk_id, score) in enumerate(
            zip(plain_list(group["chunk_id"]), scores, strict=True), start=1
        ):
            seen[chunk_id] = seen.get(chunk_id, 0) + 1
            count = seen[chunk_id]
            chunk = escaped(chunk_id) + (f"{REPEATED}{count}" if count > 1 else "")
            yield f"{name} Q0 {chunk} {rank} {score!r} {tag}\n"


def _falling(scores: npt.NDArray[np.float64]) -> list[Any]:
    """Return scores as they are where they fall strictly in single precision, else a countdown."""
    with np.errstate(over="ignore"):
        single = scores.astype("float32")
    if np.isfinite(single).all() and (np.diff(single) < 0).all():
        return [float(score) for score in scores]
    return list(range(len(scores), 0, -1))


def read_sidecar(path: Path) -> dict[str, Any] | None:
    """Return what :func:`to_trec` noted beside a run, None where the folder is not of its making.

    Raises
    ------
    RunFormatError
        The note is damaged.
    """
    if not path.is_file():
        return None
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFormatError(f"{path}: cannot be read: {error}") from error
    if not isinstance(note, dict) or note.get("format") != SIDECAR_FORMAT:
        return None
    for name in ("dataset", "pipeline", "failed"):
        if not isinstance(note.get(name), dict):
            raise RunFormatError(f"{path}: {name} must be an object, got {shown(note.get(name))}")
    return note


def listed(lost: list[tuple[str, str]]) -> list[dict[str, str]]:
    """Return the first of what was lost as ``run.info`` has it."""
    return [{"place": place, "reason": reason} for place, reason in lost[:MAX_LISTED]]
