"""The models that cross the border: what people give to ragdiag and get from it, one at a time.

Tables (:mod:`ragdiag.tables`) hold the many; these hold one, validated once.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from ragdiag.labels import passages_of
from ragdiag.settings import Settings
from ragdiag.taxonomy import FailureCategory, Severity

__all__ = [
    "RESERVED_COLUMNS",
    "Claim",
    "DiagnosisResult",
    "EvaluationResult",
    "JudgeResult",
    "QuerySample",
    "QueryType",
    "RetrievedChunk",
    "RuleOutcome",
    "Settings",
    "Status",
]

Status = Literal["completed", "failed"]
Confidence = Annotated[float, Field(ge=0.0, le=1.0)]


class QueryType(StrEnum):
    """The kinds of question every dataset may use; a dataset can declare more.

    Examples
    --------
    >>> QueryType("multi-hop")
    <QueryType.MULTI_HOP: 'multi-hop'>
    """

    FACTUAL = "factual"
    REASONING = "reasoning"
    MULTI_HOP = "multi-hop"


#: Names a user's metadata field may not have, because a column of the results has them.
RESERVED_COLUMNS: frozenset[str] = frozenset(
    {
        *("query_id", "query", "expected_answer", "query_type", "relevant_chunk_ids", "grade"),
        *("chunk_id", "rank", "score", "text", "metadata", "relevant", "in_top_k"),
        *("status", "error", "answer", "retrieval_ms", "generation_ms", "total_ms"),
        *("answer_correct", "grounded", "correct_confidence", "grounded_confidence"),
        *("correct_error", "grounded_error", "judge", "screened", "judge_reason", "judge_ms"),
        *("judge_confidence", "judge_error"),
        *("reciprocal_rank", "average_precision", "first_relevant_rank"),
        *("n_relevant", "n_retrieved", "n_found", "not_measured", "category", "severity"),
        *("confidence", "suspect_label", "reason", "action", "evidence", "outcome"),
    }
)

#: Any column of these families is reserved as well (``recall_at_5``, ``signal_pass``).
RESERVED_PREFIXES: tuple[str, ...] = (
    "precision_at_",
    "recall_at_",
    "hit_rate_at_",
    "ndcg_at_",
    "iou_at_",
    "signal_",
)


class _Model(BaseModel):
    # Schemas are built on first use, which keeps the import light.
    model_config = ConfigDict(defer_build=True)


class _Shown(_Model):
    """A model that notebooks show as a report; its own repr stays pydantic's one line."""

    def _repr_html_(self) -> str:
        from ragdiag.display import html

        return html.render(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from ragdiag import display

        return display.bundle(self)


class RetrievedChunk(_Model):
    """One chunk as a pipeline returned it; its place in the list is its rank.

    Attributes
    ----------
    id : str
        Identifier, the one the golden dataset's relevant ids refer to.
    text : str
        What the generator is given to read.
    score : float or None
        The retriever's own score; it never reorders anything.
    metadata : dict or None
        Anything else, JSON-like.

    Examples
    --------
    >>> RetrievedChunk(id="refunds-04", text="Card payments can be refunded ...", score=0.81).id
    'refunds-04'
    """

    id: str
    text: str
    score: float | None = None
    metadata: dict[str, object] | None = None


class QuerySample(_Model):
    """One question with what is known to be right about it.

    Attributes
    ----------
    id, query : str
        Identifier and question; surrounding white space is stripped, empty is an error.
    expected_answer : str or None
        The reference answer, if there is one.
    relevant_chunk_ids : list of str
        The labelled evidence. Items may be given as ``{"id": ..., "grade": ...}``.
    query_type : QueryType, str or None
        ``factual``, ``reasoning``, ``multi-hop``, or a type the dataset declares.
    grades : dict of str to int
        Grade by chunk id where it is not 1.
    evidence : list of dict
        Passages that answer the question, given as texts or ``{"document", "start", "end"}`` with
        or without ``"text"``: what is relevant, however the corpus is cut into chunks.

    Any further field is metadata (see :attr:`metadata`) and becomes a column of the results.

    Examples
    --------
    >>> sample = QuerySample(id="q1", query="How long do refunds take?",
    ...                      expected_answer="7 days", relevant_chunk_ids=["doc_17"],
    ...                      query_type="factual", team="billing")
    >>> sample.metadata
    {'team': 'billing'}
    """

    model_config = ConfigDict(extra="allow")

    id: str
    query: str
    expected_answer: str | None = None
    relevant_chunk_ids: list[str] = Field(default_factory=list)
    query_type: QueryType | str | None = None
    grades: dict[str, int] = Field(default_factory=dict)
    evidence: list[dict[str, Any]] = Field(default_factory=list)

    @property
    def metadata(self) -> dict[str, Any]:
        """The user's own fields."""
        return dict(self.model_extra or {})

    @model_validator(mode="before")
    @classmethod
    def _split_grades(cls, data: Any) -> Any:
        """Turn ``{"id", "grade"}`` items into ids and :attr:`grades`."""
        if not isinstance(data, Mapping):
            return data
        items = data.get("relevant_chunk_ids")
        if not isinstance(items, list) or not any(isinstance(item, Mapping) for item in items):
            return data
        ids: list[Any] = []
        grades = dict(data.get("grades") or {})
        for position, item in enumerate(items):
            if not isinstance(item, Mapping):
                ids.append(item)
                continue
            if set(item) - {"id", "grade"} or "id" not in item:
                raise ValueError(
                    f"relevant_chunk_ids[{position}]: expected an id or "
                    f'{{"id": ..., "grade": ...}}, got {dict(item)!r}'
                )
            ids.append(item["id"])
            if "grade" in item:
                grades[item["id"]] = item["grade"]
        return {**data, "relevant_chunk_ids": ids, "grades": grades}

    @field_validator("id", "query", "expected_answer", mode="after")
    @classmethod
    def _not_blank(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None:
            return None
        stripped = value.strip()
        if not stripped:
            raise ValueError(f"{info.field_name} must not be empty, got {value!r}")
        return stripped

    @field_validator("relevant_chunk_ids", mode="after")
    @classmethod
    def _distinct_ids(cls, value: list[str]) -> list[str]:
        seen: dict[str, None] = {}
        for position, chunk_id in enumerate(value):
            stripped = chunk_id.strip()
            if not stripped:
                raise ValueError(f"relevant_chunk_ids[{position}] must not be empty")
            if stripped in seen:
                raise ValueError(f"relevant_chunk_ids[{position}] repeats {stripped!r}")
            seen[stripped] = None
        return list(seen)

    @field_validator("evidence", mode="before")
    @classmethod
    def _passages(cls, value: Any) -> list[dict[str, Any]]:
        passages, faults = passages_of(value, numbers=False)
        if faults:
            raise ValueError(": ".join(faults[0]))
        return [{k: v for k, v in each.items() if v is not None} for each in passages]

    @field_validator("query_type", mode="after")
    @classmethod
    def _known_type(cls, value: str | None, info: ValidationInfo) -> QueryType | str | None:
        """Accept the standard types and those the validation context declares ("any" for all)."""
        if value is None:
            return None
        declared = (info.context or {}).get("query_types", ())
        if value in list(QueryType):
            return QueryType(value)
        if declared == "any" or value in declared:
            return value
        known = ", ".join([*QueryType, *declared])
        raise ValueError(
            f"query_type {value!r} is not one of {known}; declare it in the dataset's query_types"
        )


class Claim(_Model):
    """One statement of an answer, and what the context says of it.

    Attributes
    ----------
    text : str
        The statement.
    verdict : str
        ``supported``, ``contradicted``, ``not_found`` or ``unverified`` (said to be supported, by a
        quote that is not in the chunk).
    chunk_id : str or None
        The chunk that was named as evidence.
    quote : str or None
        The words that were quoted from it.
    """

    text: str
    verdict: Literal["supported", "contradicted", "not_found", "unverified"]
    chunk_id: str | None = None
    quote: str | None = None


class JudgeResult(_Shown):
    """What a judge says of one answer.

    Attributes
    ----------
    answer_correct, grounded : bool or None
        The two findings; None means the judge could not tell.
    confidence : float or None
        In [0, 1], for both sides unless a side has its own; a model's own is uncalibrated.
    reason : str
        Why, in words.
    correct_confidence, grounded_confidence : float or None
        Confidence of each side.
    correct_error, grounded_error : str or None
        Why a side could not be judged; the other side keeps its finding.
    claims : list of Claim
        The answer's statements with their evidence.
    missing_facts, wrong_facts : list of str
        What the expected answer has and this one lacks or contradicts.
    screened : bool
        True for a deterministic screening: findings read "suspected".
    model : str or None
        The exact model that answered.
    prompt_tokens, completion_tokens : int or None
        As the provider reported them.

    Examples
    --------
    >>> JudgeResult(answer_correct=True, grounded=False, confidence=0.9, reason="...").grounded
    False
    """

    answer_correct: bool | None = None
    grounded: bool | None = None
    confidence: Confidence | None = None
    reason: str = ""
    correct_confidence: Confidence | None = None
    grounded_confidence: Confidence | None = None
    correct_error: str | None = None
    grounded_error: str | None = None
    claims: list[Claim] = Field(default_factory=list)
    missing_facts: list[str] = Field(default_factory=list)
    wrong_facts: list[str] = Field(default_factory=list)
    screened: bool = False
    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    @model_validator(mode="after")
    def _share_confidence(self) -> Self:
        """Give a side without a confidence of its own the common one."""
        if self.correct_confidence is None:
            self.correct_confidence = self.confidence
        if self.grounded_confidence is None:
            self.grounded_confidence = self.confidence
        return self


class RuleOutcome(_Model):
    """What one rule found for one query: a line of the decision trail.

    Attributes
    ----------
    rule : str
        The category the rule stands for, or a user rule's name.
    state : str
        ``fired``, ``passed``, ``not measured`` (no evidence) or ``not applicable``.
    primary : bool
        Whether this rule gave the query its category.
    condition : str
        When the rule fires, in words.
    detail : str
        The numbers the rule looked at.
    """

    rule: str
    state: Literal["fired", "passed", "not measured", "not applicable"]
    primary: bool = False
    condition: str = ""
    detail: str = ""


class DiagnosisResult(_Model):
    """Why a query ended as it did.

    Attributes
    ----------
    category : FailureCategory, str or None
        Primary cause; a user rule's name is a plain string; None when no rule could be measured.
    severity : str or None
        ``info``, ``warning`` or ``major``; None without a category.
    confidence : float or None
        1.0 for deterministic rules, the judge's for semantic ones; None where it stated none, and
        without a category.
    reason : str
        One sentence.
    evidence : list of str
        The facts it rests on: ids, ranks, thresholds, milliseconds.
    action : str
        What to do about it.
    """

    category: FailureCategory | str | None = Field(union_mode="left_to_right")
    severity: Severity | None
    confidence: Confidence | None
    reason: str
    evidence: list[str] = Field(default_factory=list)
    action: str = ""

    @model_validator(mode="after")
    def _default_action(self) -> Self:
        if not self.action and isinstance(self.category, FailureCategory):
            self.action = self.category.action
        return self


class EvaluationResult(_Shown):
    """Everything known about one query of one run: evidence, measures, diagnosis.

    Attributes
    ----------
    query_id, query, query_type, expected_answer, expected_chunk_ids
        The question and what is known to be right about it.
    retrieved_chunks : list of RetrievedChunk
        In the pipeline's order.
    generated_answer : str or None
        None when nothing was generated.
    metrics : dict
        ``precision_at_5``, ``recall_at_5``, ``reciprocal_rank``, ``answer_correct``, ``grounded``,
        ``judge_confidence``, ``judge_reason`` and more; a key is absent where it was not measured.
    diagnosis : DiagnosisResult
        Category, severity, confidence, reason, evidence, action.
    latency : dict of str to float
        ``retrieval_ms``, ``generation_ms``, ``total_ms``, ``judge_ms``; absent where a
        stage did not run.
    status : str
        ``completed`` or ``failed``.
    error, judge_error : str or None
        What went wrong in the pipeline or the judge.
    trail : list of RuleOutcome
        All rules in order of precedence.
    suspect_label : bool or None
        True when a correct, grounded answer came without the labelled chunk.
    metadata : dict
        The user's own fields of the sample.
    evidence : list of dict
        The sample's passages: ``passage`` (what to call it), ``document, start, end, text``,
        ``covered`` (share of it in the top k), ``covered_at_any_rank``, ``rank`` (depth at which it
        is there), ``in_top_k``, ``split`` (a chunk's border cuts it).
    relevant_ranks : list of int
        Ranks of the retrieved chunks that are relevant.
    """

    query_id: str
    query: str
    query_type: str | None = None
    expected_chunk_ids: list[str] = Field(default_factory=list)
    expected_answer: str | None = None
    retrieved_chunks: list[RetrievedChunk] = Field(default_factory=list)
    generated_answer: str | None = None
    metrics: dict[str, Any] = Field(default_factory=dict)
    diagnosis: DiagnosisResult
    latency: dict[str, float] = Field(default_factory=dict)
    status: Status = "completed"
    error: str | None = None
    judge_error: str | None = None
    trail: list[RuleOutcome] = Field(default_factory=list)
    suspect_label: bool | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    evidence: list[dict[str, Any]] = Field(default_factory=list)
    relevant_ranks: list[int] = Field(default_factory=list)
