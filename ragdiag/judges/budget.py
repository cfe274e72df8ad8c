"""``estimate``: how many requests and tokens an evaluation will take, before anything is paid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ragdiag.errors import SettingsError
from ragdiag.judges.base import Judge
from ragdiag.judges.resolve import resolve_judge
from ragdiag.schema import RetrievedChunk

__all__ = ["Estimate", "estimate"]

#: English text has about four characters a token; other languages and code have fewer.
CHARS_PER_TOKEN = 4
#: What a judge writes: its verdict, and for groundedness each claim with a quote.
REPLY_TOKENS = 80
#: What is assumed of a pipeline that has not run.
CHUNKS, CHUNK_TOKENS, ANSWER_TOKENS = 5, 200, 60


@dataclass(frozen=True)
class Estimate:
    """What an evaluation will take.

    Attributes
    ----------
    queries : int
        Questions.
    pipeline_calls : int
        Calls of the pipeline's stages; 0 for a run, which has been made.
    judge : str
        The judge's name, empty for none.
    host : str or None
        The host that receives texts; None if none leave.
    requests : int
        Requests to the judge, repetitions after failures not counted.
    prompt_tokens, completion_tokens : int
        Estimated from the number of characters.
    assumed : str
        What had to be assumed, empty when the answers and chunks are known.
    """

    queries: int
    pipeline_calls: int
    judge: str
    host: str | None
    requests: int
    prompt_tokens: int
    completion_tokens: int
    assumed: str

    def __repr__(self) -> str:
        lines = [f"{self.queries:,} queries"]
        if self.pipeline_calls:
            lines.append(f"{self.pipeline_calls:,} calls of the pipeline")
        if not self.judge:
            lines.append("no judge")
        elif not self.requests:
            lines.append(f"judge {self.judge}: no requests")
        else:
            lines.append(
                f"judge {self.judge}: {self.requests:,} requests to {self.host or 'no host'}, "
                f"about {self.prompt_tokens:,} tokens in and {self.completion_tokens:,} out"
            )
        if self.assumed:
            lines.append(f"assumed: {self.assumed}")
        return "\n".join(lines)


def estimate(
    dataset: Any,
    pipeline: Any = None,
    judge: Judge | str | None = None,
    *,
    judge_repeats: int = 1,
    chunks: int = CHUNKS,
    chunk_tokens: int = CHUNK_TOKENS,
    answer_tokens: int = ANSWER_TOKENS,
) -> Estimate:
    """Estimate requests and tokens; nothing is called and nothing is sent.

    Parameters
    ----------
    dataset : GoldenDataset, Run or Results
        The questions; a run or results hold the answers and chunks too.
    pipeline : Pipeline, Run or Results, optional
        A pipeline that is still to run, or what it has produced.
    judge : Judge or str, optional
        The judge, as for ``evaluate``.
    judge_repeats : int
        How often each answer is judged.
    chunks, chunk_tokens, answer_tokens : int
        Assumed of each query of a pipeline that has not run.

    Returns
    -------
    Estimate
        Shows itself.

    Raises
    ------
    SettingsError
        `dataset` holds no questions.

    Examples
    --------
    >>> from ragdiag.recording import Run
    >>> queries = pd.DataFrame({"query_id": ["q1"], "query": ["How long?"],
    ...                         "expected_answer": ["7 days"]})
    >>> outcomes = pd.DataFrame({"query_id": ["q1"], "status": ["completed"],
    ...                          "answer": ["Refunds take 7 days."]})
    >>> estimate(Run(queries, outcomes=outcomes), judge="lexical")
    1 queries
    judge lexical: no requests
    """
    made = resolve_judge(judge)
    run = next((run for run in (_run(pipeline), _run(dataset)) if run is not None), None)
    if run is not None:
        queries = len(run.queries)
        samples = _recorded(run)
        calls, assumed = 0, ""
    else:
        frame = _questions(dataset)
        queries = len(frame)
        samples = _imagined(frame, chunks, chunk_tokens, answer_tokens)
        stages = 1 + callable(getattr(pipeline, "generate", None))
        calls = queries * stages if pipeline is not None else 0
        assumed = (
            f"{chunks} chunks of {chunk_tokens} tokens and answers of {answer_tokens} tokens "
            "a query"
        )
    requests = prompt = completion = 0
    if made is not None:
        for sample in samples:
            texts = made.prompts(*sample)
            requests += len(texts)
            prompt += sum(map(_tokens, texts))
            completion += len(texts) * REPLY_TOKENS + 2 * _tokens(sample[2]) * bool(texts)
    return Estimate(
        queries,
        calls,
        "" if made is None else made.name,
        None if made is None else made.host,
        requests * judge_repeats,
        prompt * judge_repeats,
        completion * judge_repeats,
        assumed if requests or calls else "",
    )


Sample = tuple[str, str | None, str, list[RetrievedChunk]]


def _tokens(text: str) -> int:
    return -(-len(text) // CHARS_PER_TOKEN)


def _run(given: Any) -> Any:
    """Return the run in `given`, if it is or has one."""
    for candidate in (given, getattr(given, "run", None)):
        if all(hasattr(candidate, name) for name in ("queries", "retrieved", "outcomes")):
            return candidate
    return None


def _questions(dataset: Any) -> pd.DataFrame:
    frame = getattr(dataset, "frame", None)
    if not isinstance(frame, pd.DataFrame) or "query" not in frame:
        raise SettingsError(
            f"estimate needs a dataset, a run or results, got {type(dataset).__name__}"
        )
    return frame


def _recorded(run: Any) -> Iterator[Sample]:
    """Yield what the judge would be given of each query that has an answer."""
    answers = run.outcomes.set_index("query_id")["answer"].dropna()
    retrieved = run.retrieved.dropna(subset=["text"])
    texts = {query_id: list(part) for query_id, part in retrieved.groupby("query_id")["text"]}
    for query_id, query, expected in _texts(run.queries):
        if query_id in answers.index:
            context = [RetrievedChunk(id="", text=text) for text in texts.get(query_id, [])]
            yield query, expected, answers[query_id], context


def _imagined(frame: pd.DataFrame, chunks: int, chunk: int, answer: int) -> Iterator[Sample]:
    """Yield questions with made-up answers and chunks of the assumed sizes."""
    context = [RetrievedChunk(id="", text=_filler(chunk)) for _ in range(chunks)]
    for _, query, expected in _texts(frame):
        yield query, expected, _filler(answer), context


def _filler(tokens: int) -> str:
    return "word" * tokens


def _texts(frame: pd.DataFrame) -> Iterator[tuple[str, str, str | None]]:
    expected = frame["expected_answer"] if "expected_answer" in frame else [None] * len(frame)
    ids = frame.get("query_id", frame.index)
    for query_id, query, answer in zip(ids, frame["query"], expected, strict=True):
        yield query_id, query, None if pd.isna(answer) else answer
