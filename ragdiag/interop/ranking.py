"""Rankings without answers as runs: a TREC file, a folder with qrels, a BEIR folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

from ragdiag.errors import RunFormatError
from ragdiag.interop import trec
from ragdiag.interop.source import Source
from ragdiag.interop.trec import QRELS_LINE, RUN_LINE
from ragdiag.interop.values import text_or_none
from ragdiag.recording import Run

__all__ = ["kind_of", "rankings_in", "read", "read_scores"]

#: Folders are searched this deep for rankings and labels.
MAX_FOLDER_DEPTH = 2

#: Names a ranking in a folder may end with; others are not opened.
RANKING_SUFFIXES = (".trec", ".run", ".txt", ".test", ".res", ".trec.gz", ".run.gz", ".txt.gz")


def kind_of(path: Path) -> str | None:
    """Return ``"run"`` or ``"qrels"`` by the first line of a file, None for anything else."""
    try:
        text = next((line.strip() for _, line in Source(path).text_lines()), "")
    except RunFormatError:
        return None
    if RUN_LINE.fullmatch(text):
        return "run"
    return "qrels" if QRELS_LINE.fullmatch(text) else None


def rankings_in(folder: Path) -> list[Path]:
    """Return the run files of a folder, in order of their names."""
    return [path for path in _candidates(folder) if kind_of(path) == "run"]


def _candidates(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.rglob("*"))
        if len(path.relative_to(folder).parts) <= MAX_FOLDER_DEPTH
        and path.name.lower().endswith(RANKING_SUFFIXES)
        and path.is_file()
    ]


def read(source: Source, format: str, pipeline: str | int | None = None) -> Run:
    """Return the run of a ranking: its file, or that of a folder with its labels and questions.

    Parameters
    ----------
    source : Source
        A run file; a folder with run and qrels; a BEIR folder with a run in it.
    format : str
        Name of the format.
    pipeline : str or int, optional
        Which ranking, where a folder has several: its name or position.

    Raises
    ------
    RunFormatError
        There is no ranking, or none of its lines can be used.
    """
    if source.shape != "folder":
        return _Ranking(source.path, format).run(None, {}, None)
    folder = source.path
    rankings = rankings_in(folder)
    names = [str(path.relative_to(folder)) for path in rankings]
    if not rankings:
        raise RunFormatError(
            f"{folder}: this folder holds no ranking, only a dataset: load_dataset reads it, and "
            "diagnose(run, dataset=...) takes it beside a run"
        )
    chosen = 0
    if pipeline is not None:
        wanted = pipeline if isinstance(pipeline, int) else _index(names, pipeline)
        if wanted is None or not 0 <= wanted < len(rankings):
            raise RunFormatError(f"{folder}: no ranking {pipeline!r}; it holds {names}")
        chosen = wanted
    ranking = _Ranking(rankings[chosen], format)
    if len(names) > 1:
        others = ", ".join(repr(name) for at, name in enumerate(names) if at != chosen)
        ranking.notes.append(
            f"{folder.name} holds {len(names)} rankings; this is {names[chosen]!r}, and pipeline= "
            f"takes another: {others}"
        )
    return ranking.run(_labels(folder, ranking), _questions(folder, ranking), folder)


def _index(names: list[str], wanted: str) -> int | None:
    matches = [at for at, name in enumerate(names) if wanted in (name, Path(name).name)]
    return matches[0] if matches else None


class _Ranking:
    """One ranking on its way to a run."""

    def __init__(self, path: Path, format: str) -> None:
        self.path = path
        self.format = format
        self.notes: list[str] = []
        self.lost: list[tuple[str, str]] = []
        self.sidecar = trec.read_sidecar(path.parent / trec.SIDECAR)

    def name_of(self, word: str) -> str:
        return trec.unescaped(word) if self.sidecar is not None else word

    def run(self, qrels: pd.DataFrame | None, texts: dict[str, Any], folder: Path | None) -> Run:
        retrieved = trec.read_results(self.path, self.lost, self.notes)
        if retrieved.empty:
            first = "; ".join(f"{place}: {reason}" for place, reason in self.lost[:3])
            raise RunFormatError(
                f"{self.path}: no line is one of a run{f': {first}' * bool(first)}"
            )
        ran = retrieved["query_id"].unique().tolist()
        failed: dict[str, Any] = {}
        if self.sidecar is not None:
            failed = self.sidecar["failed"]
            retrieved = self._as_written(retrieved)
            ran = [self.name_of(each) for each in ran] + list(failed)
        labelled = [] if qrels is None else qrels["query_id"].unique().tolist()
        ids = list(dict.fromkeys([*texts, *labelled, *ran]))
        known = [texts.get(each, {}) for each in ids]
        queries = pd.DataFrame(
            {
                "query_id": ids,
                "query": [each.get("query") or name for each, name in zip(known, ids, strict=True)],
                "expected_answer": [each.get("expected_answer") for each in known],
            }
        )
        if len(texts) < len(ids):
            self.notes.append(
                f"the text of {len(ids) - len(texts):,} of {len(ids):,} questions is not known; "
                "their ids stand for it"
            )
        names: dict[str, Any] = self._names(folder)
        outcomes = pd.DataFrame(
            {
                "query_id": ran,
                "status": ["failed" if each in failed else "completed" for each in ran],
                "error": [failed.get(each) for each in ran],
            }
        )
        return Run(
            queries,
            qrels,
            retrieved,
            outcomes,
            info=self._info(),
            **names,
        )

    def _as_written(self, retrieved: pd.DataFrame) -> pd.DataFrame:
        """Take back what :func:`ragdiag.interop.trec.to_trec` did to ids."""
        kept = retrieved[retrieved["chunk_id"] != trec.EMPTY].reset_index(drop=True)
        words = kept["chunk_id"].str.replace(rf"{trec.REPEATED}\d+$", "", regex=True)
        return kept.assign(
            query_id=kept["query_id"].map(trec.unescaped), chunk_id=words.map(trec.unescaped)
        )

    def _names(self, folder: Path | None) -> dict[str, str]:
        if self.sidecar is None:
            where = self.path if folder is None else folder
            return {"pipeline_name": Source(self.path).stem, "dataset_name": Source(where).stem}
        return {
            f"{part}_{field}": str(self.sidecar[part].get(field) or "")
            for part in ("pipeline", "dataset")
            for field in ("name", "version")
        }

    def _info(self) -> dict[str, Any]:
        counts = Counter(reason for _, reason in self.lost)
        first = dict(reversed([(reason, place) for place, reason in self.lost]))
        self.notes.extend(
            f"{count:,} lines left out: {reason} (first {first[reason]})"
            for reason, count in counts.items()
        )
        info: dict[str, Any] = {"source": self.path.name, "format": self.format}
        if self.notes:
            info["notes"] = self.notes
        if self.lost:
            info["skipped"], info["n_skipped"] = trec.listed(self.lost), len(self.lost)
        return info


def _labels(folder: Path, ranking: _Ranking) -> pd.DataFrame | None:
    """Return the labels of a folder, those of all its qrels files together."""
    beir = sorted((folder / "qrels").glob("*.tsv"))
    files = beir or [path for path in _candidates(folder) if kind_of(path) == "qrels"]
    if not files:
        return None
    if len(files) > 1 and not beir:
        ranking.notes.append(
            f"labels are those of {files[0].name}; {folder.name} has others as well: "
            + ", ".join(path.name for path in files[1:])
        )
        files = files[:1]
    tables = [trec.read_qrels(path, ranking.lost) for path in files]
    labels = pd.concat(tables, ignore_index=True).drop_duplicates(["query_id", "chunk_id"])
    if ranking.sidecar is not None:
        for name in ("query_id", "chunk_id"):
            labels[name] = labels[name].map(trec.unescaped)
    return labels


def _questions(folder: Path, ranking: _Ranking) -> dict[str, dict[str, Any]]:
    """Return what a folder says about its questions, by id."""
    listed = folder / trec.QUERIES_FILE
    if listed.is_file():
        found: dict[str, dict[str, Any]] = {}
        for _, line in Source(listed).text_lines():
            word, _, text = line.rstrip("\r\n").partition("\t")
            found[ranking.name_of(word)] = {"query": text_or_none(text)}
        return found
    for name in ("queries.jsonl", "queries.jsonl.gz"):
        if (folder / name).is_file():
            return dict(_beir_questions(Source(folder / name), ranking))
    return {}


def _beir_questions(source: Source, ranking: _Ranking) -> Any:
    def lose(place: str, reason: str) -> None:
        ranking.lost.append((f"{source.name} {place}", reason))

    for place, item in source.objects(lose):
        query_id = text_or_none(item.get("_id"))
        if query_id is None:
            lose(place, "no _id")
            continue
        metadata = item.get("metadata")
        answer = metadata.get("answer") if isinstance(metadata, dict) else None
        yield (
            query_id,
            {
                "query": text_or_none(item.get("text")),
                "expected_answer": text_or_none(answer),
            },
        )


def read_scores(source: Source, format: str) -> Run:
    """Return the run of an object of objects, ``{query: {chunk: score}}``, as pytrec_eval has."""
    rows: list[tuple[str, int, str, float]] = []
    for query_id, scores in source.document.items():
        ordered = sorted(scores.items(), key=lambda pair: (pair[1], pair[0]), reverse=True)
        rows.extend(
            (query_id, rank, chunk_id, float(score))
            for rank, (chunk_id, score) in enumerate(ordered, start=1)
        )
    ids = list(source.document)
    return Run(
        pd.DataFrame({"query_id": ids, "query": ids}),
        retrieved=pd.DataFrame(rows, columns=["query_id", "rank", "chunk_id", "score"]),
        outcomes=pd.DataFrame({"query_id": ids, "status": ["completed"] * len(ids)}),
        pipeline_name=source.stem,
        dataset_name=source.stem,
        info={
            "source": source.name,
            "format": format,
            "notes": ["the texts of the questions are not known; their ids stand for them"],
        },
    )
