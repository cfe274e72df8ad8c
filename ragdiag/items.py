"""From tables to one query at a time: the :class:`~ragdiag.schema.EvaluationResult` of a query."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ragdiag.analysis import Analysis, plain_rows
from ragdiag.diagnosis import FIRED
from ragdiag.explanations import Case, evidence_lines, trail
from ragdiag.reasons import own_reason
from ragdiag.rules import Rule
from ragdiag.schema import DiagnosisResult, EvaluationResult, RetrievedChunk

__all__ = ["build_items"]

Ints = npt.NDArray[np.int64]

#: Columns that become keys of ``latency``, in order.
STAGES = ("retrieval_ms", "generation_ms", "total_ms", "judge_ms")

#: How many queries are turned into objects in one go.
BATCH = 512


def build_items(analysis: Analysis, positions: Ints) -> Iterator[EvaluationResult]:
    """Yield the queries at `positions`, everything known about each.

    Nothing is rounded; a measure that is missing has no key in ``metrics``, a stage that did not
    run none in ``latency``.
    """
    for start in range(0, len(positions), BATCH):
        yield from _build(analysis, positions[start : start + BATCH])


def _build(analysis: Analysis, positions: Ints) -> list[EvaluationResult]:
    evidence = analysis.evidence
    rows = plain_rows(analysis.table.take(positions))
    reasons = analysis.reasons(positions)
    chunks = _split(
        plain_rows(evidence.chunk_rows(positions)), evidence.n_retrieved[positions].tolist()
    )
    pairs, pair_counts = evidence.pairs_of(positions)
    came = (rank or None for rank in evidence.ranks.pair_rank[pairs].tolist())
    named = list(zip(evidence.pair_chunk_ids(pairs), came, strict=True))
    relevant = evidence.pair_relevant[pairs].tolist()
    expected = _split(list(zip(named, relevant, strict=True)), pair_counts.tolist())
    passages = _passages(analysis, positions)
    relevant_ranks = evidence.relevant_ranks_of(positions)
    return [
        _item(analysis, place, row, reason, chunks, pairs, passages.get(row["query_id"], []), ranks)
        for place, row, reason, chunks, pairs, ranks in zip(
            positions.tolist(),
            rows,
            reasons,
            chunks,
            [[pair for pair, ok in own if ok] for own in expected],
            relevant_ranks,
            strict=True,
        )
    ]


def _passages(analysis: Analysis, positions: Ints) -> dict[str, list[Mapping[str, Any]]]:
    """Return the passages of each of the queries that are measured by them."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    if analysis.evidence.covers is not None:
        for row in plain_rows(
            analysis.evidence.passages(np.unique(positions), analysis.settings.k)
        ):
            found.setdefault(row["query_id"], []).append(row)
    return found


def _split(items: Sequence[Any], counts: Sequence[int]) -> list[Sequence[Any]]:
    ends = np.cumsum(counts).tolist()
    return [items[end - count : end] for end, count in zip(ends, counts, strict=True)]


def _item(
    analysis: Analysis,
    place: int,
    row: Mapping[str, Any],
    reason: str,
    chunks: Sequence[Mapping[str, Any]],
    expected: list[tuple[str, int | None]],
    passages: list[Mapping[str, Any]],
    relevant_ranks: list[int],
) -> EvaluationResult:
    case = _case(analysis, place, row, [chunk["chunk_id"] for chunk in chunks], expected, passages)
    return EvaluationResult(
        query_id=row["query_id"],
        query=row["query"] or "",
        query_type=row["query_type"],
        # Passages are nobody's chunk ids.
        expected_chunk_ids=[] if passages else [name for name, _ in expected],
        expected_answer=row["expected_answer"],
        retrieved_chunks=[_chunk(chunk) for chunk in chunks],
        generated_answer=row["answer"],
        metrics=_metrics(analysis, row),
        diagnosis=DiagnosisResult(
            category=row["category"],
            severity=row["severity"],
            confidence=row["confidence"],
            reason=reason,
            evidence=evidence_lines(case),
            action=analysis.action(place),
        ),
        latency=dict(case.latency),
        # A query of which it is not known how it ended did not fail.
        status=row["status"] or "completed",
        error=row["error"],
        judge_error=_judge_error(row),
        trail=trail(case),
        suspect_label=row["suspect_label"],
        evidence=[{k: v for k, v in each.items() if k != "query_id"} for each in passages],
        relevant_ranks=relevant_ranks,
        metadata={name: row[name] for name in analysis.evidence.metadata if row[name] is not None},
    )


def _case(
    analysis: Analysis,
    place: int,
    row: Mapping[str, Any],
    retrieved: Sequence[str],
    expected: Sequence[tuple[str, int | None]],
    passages: Sequence[Mapping[str, Any]],
) -> Case:
    diagnosis = analysis.diagnosis
    states = diagnosis.states[:, place].tolist()
    judged = bool(analysis.evidence.judged[place])
    return Case(
        settings=analysis.settings,
        rules=analysis.book.rules,
        states=states,
        primary=int(diagnosis.primary[place]),
        status=row["status"],
        error=row["error"],
        expected=expected,
        retrieved=retrieved,
        n_found=int(analysis.n_found[place]),
        latency={stage: row[stage] for stage in STAGES if row[stage] is not None},
        verdict=row if judged else {},
        answer=row["answer"],
        expected_answer=row["expected_answer"],
        own_reasons={
            rule.name: own_reason(rule, row)
            for rule, state in zip(analysis.book.rules, states, strict=True)
            if isinstance(rule, Rule) and state == FIRED
        },
        suspect_label=row["suspect_label"],
        passages=passages,
        recall=row[f"recall_at_{analysis.settings.k}"],
        first_rank=row["first_relevant_rank"],
    )


def _judge_error(row: Mapping[str, Any]) -> str | None:
    """Return the judge's first error as it is published: with what failed in front, as others."""
    error = row["correct_error"] or row["grounded_error"]
    return None if error is None else f"judge failed: {error}"


def _metrics(analysis: Analysis, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was measured; a failed query has none, whatever a judge said of it."""
    if row["status"] == "failed":
        return {}
    found = {name: row[name] for name in (*analysis.measures, "first_relevant_rank")}
    found["answer_correct"] = None if row["correct_error"] else row["answer_correct"]
    found["grounded"] = None if row["grounded_error"] else row["grounded"]
    stated = [
        row[f"{side}_confidence"]
        for side in ("correct", "grounded")
        if row[f"{side}_confidence"] is not None and not row[f"{side}_error"]
    ]
    found["judge_confidence"] = min(stated, default=None)
    found["judge_reason"] = row["judge_reason"]
    return {name: value for name, value in found.items() if value is not None}


def _chunk(row: Mapping[str, Any]) -> RetrievedChunk:
    return RetrievedChunk(
        id=row["chunk_id"],
        text=row["text"] or "",
        score=row["score"],
        metadata=None if row["metadata"] is None else json.loads(row["metadata"]),
    )
