"""Root-cause diagnosis and honest comparison of RAG pipelines, at home in Jupyter.

The public names load their rooms on first use, so that ``import ragdiag`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "1.0.0"

_ROOMS: dict[str, tuple[str, ...]] = {
    "errors": (
        "ComparisonError",
        "DatasetError",
        "DatasetLoadError",
        "DatasetValidationError",
        "EvaluationInterrupted",
        "ExportError",
        "JudgeAuthenticationError",
        "JudgeError",
        "JudgeParseError",
        "JudgeProviderError",
        "JudgeRefusalError",
        "MissingDependencyError",
        "PipelineError",
        "PipelineLoadError",
        "QueryNotFoundError",
        "RagdiagError",
        "RunError",
        "RunFormatError",
        "SettingsError",
        "StoreBusyError",
        "StoreMismatchError",
    ),
    "taxonomy": ("FailureCategory",),
    "schema": (
        "DiagnosisResult",
        "EvaluationResult",
        "JudgeResult",
        "QuerySample",
        "QueryType",
        "RetrievedChunk",
        "Settings",
    ),
    "dataset": ("GoldenDataset", "load_dataset", "validate_dataset"),
    "pipeline": ("AsyncPipeline", "Pipeline", "as_pipeline", "load_pipeline"),
    "metrics": ("mean_reciprocal_rank", "precision_at_k", "recall_at_k", "reciprocal_rank"),
    "power": ("detectable_difference", "sample_size"),
    "judges": (
        "AnthropicJudge",
        "GeminiJudge",
        "Judge",
        "LexicalJudge",
        "OpenAIJudge",
        "agreement",
        "estimate",
        "flip_rate",
    ),
    "recording": ("Run", "load_run"),
    "diagnosis": ("Rule",),
    "report": ("ComparisonReport", "EvaluationReport", "TopFailure", "build_report", "load_report"),
    "results": ("Results", "load_results"),
    "comparison": ("Comparison",),
    "interop.http": ("HttpPipeline",),
    "evaluation": ("Comparator", "Evaluator", "compare", "diagnose", "evaluate"),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [*sorted(_HOME), "__version__"]


def __getattr__(name: str) -> Any:
    room = _HOME.get(name)
    if room is None:
        raise AttributeError(f"module 'ragdiag' has no attribute {name!r}")
    value = getattr(import_module(f"ragdiag.{room}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
