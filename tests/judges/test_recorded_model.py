"""The recorded run of the local model: small enough, and judged as the offline judge judges."""

from __future__ import annotations

import pandas as pd

import ragdiag
from ragdiag.judges import LexicalJudge
from ragdiag.schema import RetrievedChunk


def test_the_recorded_run_is_judged_as_today(repository):
    path = repository / "examples" / "local_llm" / "run.jsonl"
    assert path.stat().st_size <= 1_000_000
    run = ragdiag.load_run(path)
    assert len(run) == 120
    assert run.outcomes["status"].eq("completed").all()
    answers = run.outcomes.set_index("query_id")["answer"]
    verdicts = run.verdicts.set_index("query_id")
    chunks = dict(list(run.retrieved.groupby("query_id")))
    judge = LexicalJudge()
    for query in run.queries.itertuples():
        context = [
            RetrievedChunk(id=chunk.chunk_id, text=chunk.text)
            for chunk in chunks[query.query_id].itertuples()
        ]
        answer = answers[query.query_id]
        result = judge.evaluate(query.query, query.expected_answer, answer, context)
        stored = verdicts.loc[query.query_id]
        for finding in ("answer_correct", "grounded"):
            kept = stored[finding]
            assert getattr(result, finding) == (None if kept is pd.NA else kept)
