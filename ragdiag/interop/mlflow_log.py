"""Results to MLflow: settings, means and counts, the tables, the HTML report."""

from __future__ import annotations

import json
import math
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragdiag import export
from ragdiag.errors import MissingDependencyError

if TYPE_CHECKING:
    from ragdiag.results import Results

__all__ = ["to_mlflow"]

#: Where in the run's artifacts everything is.
FOLDER = "ragdiag"


def to_mlflow(results: Results, *, run_name: str | None = None) -> str:
    """Log results to MLflow, into the active run or a new one.

    Logged are the settings as parameters; every mean that was measured, and the number of queries
    of each category, as metrics; the tables ``results``, ``chunks`` and ``expected`` (JSON) and the
    HTML report as artifacts under ``ragdiag/``. Where to is up to ``mlflow.set_tracking_uri``.

    Parameters
    ----------
    results : Results
        What to log.
    run_name : str, optional
        Name of a new run; the name of the pipeline by default.

    Returns
    -------
    str
        Id of the MLflow run.

    Raises
    ------
    MissingDependencyError
        mlflow is not installed.
    """
    try:
        import mlflow  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise MissingDependencyError(
            "to_mlflow needs the package mlflow; install it: pip install mlflow-skinny"
        ) from error
    active = mlflow.active_run()
    context: Any = nullcontext(active)
    if active is None:
        context = mlflow.start_run(run_name=run_name or results.name)
    with context as run:
        mlflow.log_params(_parameters(results))
        mlflow.log_metrics(_metrics(results))
        with tempfile.TemporaryDirectory() as folder:
            for name in ("frame", "chunks", "expected"):
                table = getattr(results, name)
                export.write_json(table, Path(folder, f"{_TABLES[name]}.json"))
            results.to_html(Path(folder, "report.html"))
            mlflow.log_artifacts(folder, FOLDER)
        return str(run.info.run_id)


#: What each table is called among the artifacts.
_TABLES = {"frame": "results", "chunks": "chunks", "expected": "expected"}


def _parameters(results: Results) -> dict[str, Any]:
    return {
        "pipeline": results.name,
        "dataset": results.dataset_name,
        "dataset_version": results.dataset_version,
        **json.loads(results.settings.model_dump_json()),
    }


def _metrics(results: Results) -> dict[str, float]:
    summary = results.summary()
    means = dict(zip(summary["measure"].tolist(), summary["value"].tolist(), strict=True))
    measured = {
        str(name): float(value)
        for name, value in means.items()
        if isinstance(value, int | float) and math.isfinite(value)
    }
    counts = results.counts()["queries"]
    return {
        **measured,
        **{f"queries_{str(name).lower()}": float(count) for name, count in counts.items()},
        "queries_total": float(len(results)),
    }
