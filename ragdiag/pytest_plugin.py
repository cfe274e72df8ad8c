"""The pytest fixture ``ragdiag_gate``: a test that fails when a pipeline got worse.

The plugin is found by pytest through its entry point; it imports ragdiag only when it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ragdiag.gate_result import GateResult

__all__ = ["make_gate", "ragdiag_gate"]

#: Options that say what is compared; all others are thresholds.
COMPARING = (
    "k",
    "rank_threshold",
    "latency_threshold_ms",
    "precision_denominator",
    "rules",
    "names",
    "on",
    "quality_tolerance",
)


@pytest.fixture
def ragdiag_gate() -> Callable[..., GateResult]:
    """Return ``gate(baseline, candidate, **thresholds)``, which fails the test with its reasons.

    Baseline and candidate are results, runs or paths of stored runs; thresholds are those of
    :meth:`ragdiag.Comparison.gate`, and options of :func:`ragdiag.compare` that call nothing
    (``k=``, ``on=`` ...) are taken, too.

    Examples
    --------
    .. code-block:: python

        def test_new_retriever(ragdiag_gate):
            ragdiag_gate("runs/main.jsonl", "runs/new.jsonl", max_regressed=0, min_recall=0.8)
    """
    return make_gate()


def make_gate() -> Callable[..., GateResult]:
    """Return what the fixture gives: a gate that fails the running test."""

    def gate(baseline: Any, candidate: Any, **options: Any) -> GateResult:
        __tracebackhide__ = True
        from ragdiag.evaluation import compare

        comparing = {name: options.pop(name) for name in COMPARING if name in options}
        result = compare(baseline, candidate, **comparing).gate(**options)
        if not result:
            pytest.fail(str(result), pytrace=False)
        return result

    return gate
