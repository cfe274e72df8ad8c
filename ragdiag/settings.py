"""``Settings``: how evidence is turned into measures and causes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from ragdiag.errors import SettingsError

__all__ = ["Settings"]


class Settings(BaseModel):
    """How evidence is turned into measures and causes; changing it calls nothing.

    Attributes
    ----------
    k : int
        How many of the retrieved chunks count, at least 1.
    rank_threshold : int
        The first relevant chunk may come at this rank at the latest, at least 1.
    latency_threshold_ms : float
        Retrieval may take this long, milliseconds, above 0.
    precision_denominator : str
        ``"retrieved"`` divides by min(k, number retrieved), ``"k"`` by k as trec_eval does.
    evidence_threshold : float
        A passage of evidence is there once this share of its characters has come, in (0, 1].
    relevance : str
        What counts where a query has both: labelled ``"ids"``, or its passages of ``"evidence"``.

    Examples
    --------
    >>> Settings(k=10).replace(rank_threshold=5)
    Settings(k=10, rank_threshold=5, latency_threshold_ms=1000.0, precision_denominator='retrieved')
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    k: int = 5
    rank_threshold: int = 3
    latency_threshold_ms: float = 1000.0
    precision_denominator: Literal["retrieved", "k"] = "retrieved"
    evidence_threshold: float = 0.9
    relevance: Literal["ids", "evidence"] = "ids"

    def __repr_args__(self) -> Any:
        # As in files and messages from before there was evidence, unless it says something.
        return [(k, v) for k, v in super().__repr_args__() if k in self._told()]

    @model_serializer(mode="wrap")
    def _serialised(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {k: v for k, v in handler(self).items() if k in self._told()}

    def _told(self) -> list[str]:
        fields = type(self).model_fields
        quiet = ("evidence_threshold", "relevance")
        return [k for k in fields if k not in quiet or getattr(self, k) != fields[k].default]

    def __init__(self, **values: Any) -> None:
        _check_settings(values)
        super().__init__(**values)

    def replace(self, **changes: Any) -> Settings:
        """Return the settings with `changes` applied; None leaves a setting as it is."""
        return Settings(
            **{**self.model_dump(), **{k: v for k, v in changes.items() if v is not None}}
        )


def _check_settings(values: Mapping[str, Any]) -> None:
    """Raise one readable SettingsError instead of pydantic's list."""
    for name in ("k", "rank_threshold"):
        value = values.get(name, 1)
        if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
            raise SettingsError(f"{name} must be a whole number of at least 1, got {value!r}")
    threshold = values.get("latency_threshold_ms", 1.0)
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not threshold > 0:
        raise SettingsError(f"latency_threshold_ms must be above 0 ms, got {threshold!r}")
    denominator = values.get("precision_denominator", "k")
    if denominator not in ("retrieved", "k"):
        raise SettingsError(
            f"precision_denominator must be 'retrieved' or 'k', got {denominator!r}"
        )
    share = values.get("evidence_threshold", 1.0)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise SettingsError(f"evidence_threshold must be above 0 and at most 1, got {share!r}")
    relevance = values.get("relevance", "ids")
    if relevance not in ("ids", "evidence"):
        raise SettingsError(f"relevance must be 'ids' or 'evidence', got {relevance!r}")
    unknown = set(values) - set(Settings.model_fields)
    if unknown:
        raise SettingsError(
            f"unknown setting {min(unknown)!r}; settings are {', '.join(Settings.model_fields)}"
        )
