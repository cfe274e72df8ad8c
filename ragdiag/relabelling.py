"""A recorded run seen with the questions and labels of a dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ragdiag.cells import plain_list
from ragdiag.dataset import GoldenDataset
from ragdiag.errors import RunError
from ragdiag.recording import Run

__all__ = ["relabelled"]


def relabelled(run: Run, dataset: GoldenDataset) -> Run:
    """Return `run` with the questions and labels of `dataset`.

    Queries are joined on their ids. Those of a run that another tool recorded are joined on the
    text of the question where the ids do not tell, white space apart; what is not in the dataset,
    or comes a second time, is left out and noted.

    Parameters
    ----------
    run : Run
        What happened.
    dataset : GoldenDataset
        What was asked, and what is known to be right about it.

    Raises
    ------
    RunError
        A run of ours holds queries the dataset does not have, or one of another tool shares none
        with it.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"query": ["How long?"], "retrieved_chunk_ids": [["doc_17"]]})
    >>> frame = pd.DataFrame({"query_id": ["q1"], "query": ["How long?"],
    ...                       "relevant_chunk_ids": [["doc_17"]]})
    >>> relabelled(Run.from_frame(rows), GoldenDataset.from_frame(frame)).outcomes["query_id"][0]
    'q1'
    """
    notes: list[str] = []
    known = set(dataset.frame["query_id"])
    foreign = [each for each in plain_list(run.queries["query_id"]) if each not in known]
    ran = set(run.outcomes["query_id"])
    if any(each in ran for each in foreign):
        if not _is_imported(run):
            raise RunError(
                f"the run holds {len(foreign)} queries that dataset {dataset.name!r} does not "
                f"have, the first is {foreign[0]!r}; take the dataset it was recorded on, or "
                "run.subset(query_ids) first"
            )
        run = _joined_by_text(run, dataset, foreign, notes)
    labels, found = dataset.qrels["chunk_id"], run.retrieved["chunk_id"]
    if len(labels) and len(found) and not found.isin(labels).any():
        notes.append(
            f"none of the {labels.nunique():,} labelled chunk ids, such as {labels.min()!r}, is "
            f"among the {found.nunique():,} that were retrieved, such as {found.min()!r}: they may "
            "not be ids of the same chunks"
        )
    return run.replace(
        queries=dataset.frame,
        qrels=dataset.qrels,
        evidence=dataset.evidence,
        dataset_name=dataset.name,
        dataset_version=dataset.version,
        info={**run.info, "notes": [*run.info.get("notes", ()), *notes]},
    )


def _is_imported(run: Run) -> bool:
    """Return whether the ids of the queries are those of another tool, or made up."""
    return "format" in run.info or "query_ids_made_from_text" in run.info


def _joined_by_text(
    run: Run, dataset: GoldenDataset, foreign: Iterable[str], notes: list[str]
) -> Run:
    """Return the part of `run` that is of the dataset, under the dataset's ids."""
    frame = dataset.frame
    questions = [_normal(each) for each in plain_list(frame["query"])]
    counts = Counter(questions)
    id_of = {
        question: query_id
        for question, query_id in zip(questions, plain_list(frame["query_id"]), strict=True)
        if counts[question] == 1
    }
    text_of = dict(
        zip(plain_list(run.queries["query_id"]), plain_list(run.queries["query"]), strict=True)
    )
    foreign = list(foreign)
    taken = set(text_of) - set(foreign)
    kept = list(taken)
    names: dict[str, str] = {}
    repeated: list[str] = []
    unknown: list[str] = []
    for query_id in foreign:
        target = id_of.get(_normal(text_of[query_id] or ""))
        if target is None:
            unknown.append(query_id)
        elif target in taken:
            repeated.append(query_id)
        else:
            taken.add(target)
            kept.append(query_id)
            names[query_id] = target
    if not kept:
        raise RunError(
            f"none of the {len(foreign):,} queries of the run is in dataset {dataset.name!r}, "
            f"neither by id (the first is {foreign[0]!r}) nor by the text of the question"
        )
    if names:
        notes.append(
            f"{len(names):,} queries were found in the dataset by the text of the question"
        )
    for lost, why in (
        (unknown, "not in the dataset"),
        (repeated, "asked before, the first counts"),
    ):
        if lost:
            notes.append(f"{len(lost):,} queries of the run left out: {why} (first {lost[0]!r})")
    return run.subset(kept).rename_queries(names)


def _normal(question: str) -> str:
    return " ".join(question.split())
