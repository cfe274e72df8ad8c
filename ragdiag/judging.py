"""A judge asked about answers that were recorded: no pipeline is called."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NoReturn

from ragdiag.dataset import GoldenDataset
from ragdiag.errors import PipelineError, RunError
from ragdiag.harness import execute
from ragdiag.judges.base import Judge
from ragdiag.judges.resolve import resolve_judge
from ragdiag.pipeline import Pipeline
from ragdiag.recording import Run

__all__ = ["judged"]

#: What a judge is told of a query.
ASKED = ["query_id", "query", "expected_answer"]

#: What the harness notes of a judge in ``Run.info``.
JUDGE_INFO = ("judge", "judge_host", "judge_details", "judge_replies")


class _Recorded(Pipeline):
    """Stands where a pipeline has to; all its work is in the store already."""

    def retrieve(self, query: str) -> NoReturn:
        raise PipelineError(f"a recorded run cannot be asked anew: {query!r}")

    def generate(self, query: str, chunks: Any) -> NoReturn:
        raise PipelineError(f"a recorded run cannot be asked anew: {query!r}")


def judged(run: Run, judge: Judge | str, **options: Any) -> Run:
    """Return the run with a judge's verdicts on its answers, in the place of any before.

    Parameters
    ----------
    run : Run
        What happened, recorded here or by another tool.
    judge : Judge or str
        Who is asked; ``"lexical"`` works offline.
    **options
        ``judge_workers``, ``judge_repeats``, ``progress``: see :func:`ragdiag.harness.execute`.

    Raises
    ------
    RunError
        No query of the run was completed with an answer.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"query": ["How long?"], "answer": ["Seven days."],
    ...                      "expected_answer": ["Seven days."],
    ...                      "retrieved_chunks": [["Refunds take seven days."]]})
    >>> run = judged(Run.from_frame(rows), "lexical", progress=False)
    >>> run.verdicts["grounded"].tolist()
    [True]
    """
    outcomes = run.outcomes
    answered = outcomes[(outcomes["status"] == "completed") & outcomes["answer"].notna()]
    if answered.empty:
        raise RunError("no query of the run was completed with an answer: nothing to judge")
    subject = resolve_judge(judge)
    part = run.subset(answered["query_id"])
    dataset = GoldenDataset.from_frame(part.queries[ASKED], name=run.dataset_name)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "run.jsonl")
        part.save(store)
        result = execute(
            _Recorded(run.pipeline_name),
            dataset,
            judge=subject,
            store=store,
            reuse=True,
            **options,
        )
    info = {key: value for key, value in run.info.items() if key not in JUDGE_INFO}
    info.update({key: result.info[key] for key in JUDGE_INFO if key in result.info})
    return run.replace(verdicts=result.verdicts, info=info)
