"""The terminal's door to the same verbs: ``ragdiag validate | run | compare | diagnose``.

Exit codes: 0 ok, 1 bad input, 2 usage, 3 gate failed, 130 interrupted.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable, Iterable
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer

import ragdiag
from ragdiag.display.clean import clean
from ragdiag.display.sheet import Sheet
from ragdiag.display.terminal import show_causes, show_dataset, show_lint, show_report
from ragdiag.display.terminal_comparison import show_comparison
from ragdiag.errors import EvaluationInterrupted, RagdiagError, SettingsError
from ragdiag.files import check_outputs, write_text
from ragdiag.loading import source_file

if TYPE_CHECKING:
    from ragdiag.comparison import Comparison
    from ragdiag.dataset import GoldenDataset
    from ragdiag.results import Results

__all__ = ["app", "main"]

BAD_INPUT = 1
GATE_FAILED = 3
INTERRUPTED = 130

app = typer.Typer(
    name="ragdiag",
    help="Why each question of a RAG pipeline went wrong, and which variant is better.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    # Local variables may hold keys and texts of the user: never in a traceback.
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
)

P = ParamSpec("P")
T = TypeVar("T")

Dataset = Annotated[
    Path,
    typer.Option("--dataset", "-d", help="Dataset: .json .jsonl .csv .parquet, BEIR folder."),
]
OptionalDataset = Annotated[
    Path | None,
    typer.Option("--dataset", "-d", help="Dataset: .json .jsonl .csv .parquet, BEIR folder."),
]
QueryTypes = Annotated[
    str | None, typer.Option(help="Further query types, separated by commas, or 'any'.")
]
PipelineFile = Annotated[
    str,
    typer.Option("--pipeline", "-p", help="A .py file with a 'pipeline', or module:name."),
]
K = Annotated[int, typer.Option("--k", "-k", min=1, help="How many retrieved chunks count.")]
RankThreshold = Annotated[
    int, typer.Option(min=1, help="The first relevant chunk may come at this rank at the latest.")
]
LatencyThreshold = Annotated[
    float, typer.Option("--latency-threshold-ms", help="Retrieval may take this long, ms.")
]
Denominator = Annotated[
    str,
    typer.Option(
        "--precision-denominator", help="'retrieved' divides by min(k, retrieved), 'k' by k."
    ),
]
Minimum = Annotated[float | None, typer.Option(min=0.0, max=1.0, help="The mean must reach it.")]
JudgeName = Annotated[
    str | None,
    typer.Option("--judge", "-j", help="'lexical' (offline), 'openai', 'ollama', ..."),
]
Model = Annotated[str | None, typer.Option("--model", "-m", help="The judge's model.")]
BaseUrl = Annotated[
    str | None, typer.Option(help="Address of an OpenAI-compatible server for the judge.")
]
JudgeCache = Annotated[
    Path | None, typer.Option(help="Folder that keeps judge replies, shared between runs.")
]
Workers = Annotated[int, typer.Option(min=1, help="Queries that run at the same time.")]
JudgeWorkers = Annotated[int, typer.Option(min=1, help="Answers judged at the same time.")]
Retries = Annotated[int, typer.Option(min=0, help="How often a failed query is tried again.")]
Reuse = Annotated[bool, typer.Option(help="Resume a store although pipeline or dataset changed.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write the report as JSON.")]
Csv = Annotated[Path | None, typer.Option(help="Write one row a query as CSV.")]
Html = Annotated[Path | None, typer.Option(help="Write a self-contained HTML report.")]
Markdown = Annotated[Path | None, typer.Option(help="Write the report as Markdown.")]


def _friendly(command: Callable[P, T]) -> Callable[P, T]:
    """One clear message instead of a traceback, and the documented exit codes."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except EvaluationInterrupted as interrupt:
            _say_error(str(interrupt), label="interrupted")
            from ragdiag.session import calls_came_back

            if not calls_came_back(functools.partial(_say_error, label="waiting")):
                os._exit(INTERRUPTED)
            raise typer.Exit(INTERRUPTED) from None
        except KeyboardInterrupt:
            _say_error("nothing was lost that had been stored", label="interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except RagdiagError as error:
            _say_error(str(error))
            raise typer.Exit(BAD_INPUT) from None

    return run


def _say_error(message: str, label: str = "error") -> None:
    # Line by line: a list of faults stays a list.
    lines = "\n".join(clean(line) for line in message.splitlines())
    typer.echo(f"{label}: {lines}", err=True)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ragdiag {ragdiag.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", "-v", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Why each question of a RAG pipeline went wrong, and which variant is better."""


@app.command()
@_friendly
def validate(
    dataset: Dataset,
    query_types: QueryTypes = None,
    corpus: Annotated[
        Path | None, typer.Option(help="All chunks (.jsonl .csv .parquet): look for bad labels.")
    ] = None,
    run: Annotated[
        list[Path] | None, typer.Option(help="A stored run, to find bad labels with; repeat.")
    ] = None,
) -> None:
    """Check a golden dataset: every fault at once, or what it consists of.

    With a corpus or stored runs its labels are checked, too: exit code 1 when some are wrong.
    """
    loaded = _load(dataset, query_types)
    show_dataset(Sheet(), ragdiag.validate_dataset(loaded))
    if corpus is None and not run:
        return
    seen = [ragdiag.diagnose(path, loaded) for path in run or ()]
    found = loaded.lint(corpus=corpus, results=seen)
    show_lint(Sheet(), found)
    if (found["severity"] == "error").any():
        raise typer.Exit(BAD_INPUT)


@app.command()
@_friendly
def run(
    pipeline: PipelineFile,
    dataset: Dataset,
    k: K = 5,
    rank_threshold: RankThreshold = 3,
    latency_threshold_ms: LatencyThreshold = 1000.0,
    precision_denominator: Denominator = "retrieved",
    judge: JudgeName = None,
    model: Model = None,
    base_url: BaseUrl = None,
    judge_cache: JudgeCache = None,
    workers: Workers = 1,
    judge_workers: JudgeWorkers = 8,
    retries: Retries = 0,
    store: Annotated[
        Path | None, typer.Option(help="Record the run as it happens; call again to resume it.")
    ] = None,
    reuse: Reuse = False,
    query_types: QueryTypes = None,
    output: Output = None,
    csv: Csv = None,
    html: Html = None,
    markdown: Markdown = None,
) -> None:
    """Run a pipeline over a dataset and say why each query ended as it did.

    The pipeline file is executed: run only files you trust.
    """
    started = time.perf_counter()
    check_outputs(output, csv, html, markdown, read=(dataset, source_file(pipeline), store))
    results = ragdiag.evaluate(
        pipeline,
        _load(dataset, query_types),
        **_settings(k, rank_threshold, latency_threshold_ms, precision_denominator),
        judge=_judge(judge, model, base_url, judge_cache),
        workers=workers,
        judge_workers=judge_workers,
        retries=retries,
        store=store,
        reuse=reuse,
    )
    # Files first: whoever reads the terminal through a pipe may close it at any line.
    written = _write(results, output=output, csv=csv, html=html, markdown=markdown)
    show_report(Sheet(), results.report(), time.perf_counter() - started, results)
    _say_written(written)


@app.command()
@_friendly
def compare(
    pipeline: Annotated[
        list[str] | None,
        typer.Option("--pipeline", "-p", help="A pipeline or a stored run; repeat for each side."),
    ] = None,
    pipeline_a: Annotated[
        str | None, typer.Option("--pipeline-a", "-pa", help="The baseline, the first side.")
    ] = None,
    pipeline_b: Annotated[
        str | None, typer.Option("--pipeline-b", "-pb", help="The candidate, the second side.")
    ] = None,
    dataset: OptionalDataset = None,
    k: K = 5,
    rank_threshold: RankThreshold = 3,
    latency_threshold_ms: LatencyThreshold = 1000.0,
    precision_denominator: Denominator = "retrieved",
    quality_tolerance: Annotated[
        float, typer.Option(min=0.0, help="Differences of measures up to this are ties.")
    ] = 0.02,
    latency_tolerance_ms: Annotated[
        float,
        typer.Option("--latency-tolerance-ms", min=0.0, help="Differences up to this are ties."),
    ] = 10.0,
    judge: JudgeName = None,
    model: Model = None,
    base_url: BaseUrl = None,
    judge_cache: JudgeCache = None,
    workers: Workers = 1,
    judge_workers: JudgeWorkers = 8,
    retries: Retries = 0,
    store: Annotated[
        list[Path] | None,
        typer.Option(help="Record a run as it happens; repeat, one for each pipeline that is run."),
    ] = None,
    reuse: Reuse = False,
    query_types: QueryTypes = None,
    output: Output = None,
    csv: Csv = None,
    html: Html = None,
    markdown: Markdown = None,
) -> None:
    """Compare two or more pipelines (or stored runs) question by question."""
    started = time.perf_counter()
    sides = [side for side in (pipeline_a, pipeline_b) if side is not None] + (pipeline or [])
    if len(sides) < 2:
        raise typer.BadParameter(
            f"name at least two pipelines (-pa A -pb B, or --pipeline repeated), got {len(sides)}"
        )
    read = (dataset, *map(source_file, sides), *(store or ()))
    check_outputs(output, csv, html, markdown, read=read)
    usual = {"workers": 1, "judge_workers": 8}
    wanted = {
        "judge": _judge(judge, model, base_url, judge_cache),
        "workers": workers,
        "judge_workers": judge_workers,
        "retries": retries,
        "store": store,
        "reuse": reuse,
    }
    comparison = ragdiag.compare(
        *sides,
        quality_tolerance=quality_tolerance,
        latency_tolerance_ms=latency_tolerance_ms,
        dataset=None if dataset is None else _load(dataset, query_types),
        **_settings(k, rank_threshold, latency_threshold_ms, precision_denominator),
        # Only what was asked for: where nothing is run, every one of them is refused.
        **{name: value for name, value in wanted.items() if value and value != usual.get(name)},
    )
    written = _write(comparison, output=output, csv=csv, html=html, markdown=markdown)
    for pair in comparison.pairs:
        seconds = time.perf_counter() - started
        show_comparison(Sheet(), pair.report, seconds, sentence=f"{pair.sentence}.")
    _say_written(written)


@app.command()
@_friendly
def diagnose(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A stored run, another tool's file, or a report.")],
    dataset: OptionalDataset = None,
    file_format: Annotated[
        str, typer.Option("--format", help="What wrote the file; 'auto' finds out.")
    ] = "auto",
    k: K = 5,
    rank_threshold: RankThreshold = 3,
    latency_threshold_ms: LatencyThreshold = 1000.0,
    precision_denominator: Denominator = "retrieved",
    query_types: QueryTypes = None,
    output: Output = None,
    csv: Csv = None,
    html: Html = None,
    markdown: Markdown = None,
) -> None:
    """Say what fails most in a recorded run, on which queries, and what to do; nothing is run."""
    check_outputs(output, csv, html, markdown, read=(file, dataset))
    from ragdiag.report import ComparisonReport, holds_report, load_report

    if file_format == "auto" and file.suffix.lower() == ".json" and holds_report(file):
        report = load_report(file)
        _refuse_beside_a_report(context, file)
        if isinstance(report, ComparisonReport):
            show_comparison(Sheet(), report)
        else:
            show_causes(Sheet(), report)
        return
    results = ragdiag.diagnose(
        ragdiag.load_run(file, file_format),
        None if dataset is None else _load(dataset, query_types),
        **_settings(k, rank_threshold, latency_threshold_ms, precision_denominator),
    )
    written = _write(results, output=output, csv=csv, html=html, markdown=markdown)
    show_causes(Sheet(), results.report(), results)
    _say_written(written)


@app.command()
@_friendly
def gate(
    baseline: Annotated[str, typer.Argument(help="The stored run to hold against.")],
    candidate: Annotated[str, typer.Argument(help="The stored run that may replace it.")],
    max_regressed: Annotated[int | None, typer.Option(help="Queries that may regress.")] = None,
    max_failed: Annotated[int | None, typer.Option(help="Queries that may fail to run.")] = None,
    min_recall: Minimum = None,
    min_mrr: Minimum = None,
    min_groundedness: Minimum = None,
    min_correctness: Minimum = None,
    min_pass_rate: Minimum = None,
    max_p95_ms: Annotated[float | None, typer.Option("--max-p95-ms", help="Retrieval p95.")] = None,
    max_drop: Annotated[float | None, typer.Option(help="Largest drop of a primary mean.")] = None,
    no_new: Annotated[
        list[str] | None, typer.Option(help="A category no further query may fall into; repeat.")
    ] = None,
    allow_missing: Annotated[
        bool, typer.Option(help="Pass although evidence for a threshold is missing.")
    ] = False,
    alpha: Annotated[float, typer.Option(help="Level of the test for proven harm.")] = 0.05,
    k: K = 5,
    rank_threshold: RankThreshold = 3,
    latency_threshold_ms: LatencyThreshold = 1000.0,
    precision_denominator: Denominator = "retrieved",
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML.")] = None,
    markdown: Markdown = None,
) -> None:
    """Decide whether a candidate may replace the baseline: exit code 3 when it may not.

    Without thresholds the gate fails where a primary measure is proven worse.
    """
    check_outputs(junit, markdown, read=(Path(baseline), Path(candidate)))
    comparison = ragdiag.compare(
        baseline,
        candidate,
        **_settings(k, rank_threshold, latency_threshold_ms, precision_denominator),
    )
    thresholds = {
        "max_regressed": max_regressed,
        "max_failed": max_failed,
        "min_recall": min_recall,
        "min_mrr": min_mrr,
        "min_groundedness": min_groundedness,
        "min_correctness": min_correctness,
        "min_pass_rate": min_pass_rate,
        "max_p95_ms": max_p95_ms,
        "max_drop": max_drop,
        "no_new": tuple(no_new or ()),
        "allow_missing": allow_missing,
    }
    given = {name: value for name, value in thresholds.items() if value not in (None, (), False)}
    result = comparison.gate(alpha=alpha, **given)
    typer.echo("\n".join(clean(line) for line in str(result).splitlines()))
    if junit is not None:
        result.to_junit(junit)
    if markdown is not None:
        result.to_markdown(markdown)
    result.append_step_summary()
    if not result.passed:
        raise typer.Exit(GATE_FAILED)


@app.command()
@_friendly
def dashboard(
    runs: Annotated[list[Path], typer.Argument(help="Stored runs; the first is the baseline.")],
    port: Annotated[int, typer.Option(help="Port on the loopback address.")] = 8866,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Show stored runs as a web page on this machine (needs the extra 'dashboard')."""
    from ragdiag.dashboard import serve

    raise typer.Exit(serve(runs, port=port, browser=browser))


def _load(path: Path, query_types: str | None) -> GoldenDataset:
    kinds: Any = () if query_types is None else query_types
    if query_types not in (None, "any"):
        kinds = [kind.strip() for kind in str(query_types).split(",") if kind.strip()]
    from ragdiag.dataset import load_dataset

    return load_dataset(path, query_types=kinds)


def _settings(k: int, rank: int, latency: float, denominator: str) -> dict[str, Any]:
    return {
        "k": k,
        "rank_threshold": rank,
        "latency_threshold_ms": latency,
        "precision_denominator": denominator,
    }


def _judge(name: str | None, model: str | None, base_url: str | None, cache: Path | None) -> Any:
    """Return the judge that the options name; options of a judge without --judge are a mistake."""
    if name is None:
        for option, value in (
            ("--model", model),
            ("--base-url", base_url),
            ("--judge-cache", cache),
        ):
            if value is not None:
                raise SettingsError(f"{option} is for a judge, and no --judge is named")
        return None
    from ragdiag.judges import resolve_judge

    options = {"base_url": base_url, "cache": cache}
    return resolve_judge(
        name if model is None else f"{name}:{model}",
        **{option: value for option, value in options.items() if value is not None},
    )


def _refuse_beside_a_report(context: typer.Context, file: Path) -> None:
    """Refuse options that a report, which holds no run, would silently leave without effect."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if name != "file" and context.params[name] != parameter.get_default(context):
            raise SettingsError(
                f"{file} is a report: its numbers are final, so {parameter.opts[0]} has no effect; "
                "give a stored run (run --store)"
            )


def _write(
    shown: Results | Comparison,
    *,
    output: Path | None,
    csv: Path | None,
    html: Path | None,
    markdown: Path | None,
) -> list[Path]:
    """Write what was asked for, and return the files."""
    if output is not None:
        report = shown.report
        model = report() if callable(report) else report
        write_text(output, model.model_dump_json(indent=2) + "\n")
    if csv is not None:
        shown.to_csv(csv)
    if html is not None:
        shown.to_html(html)
    if markdown is not None:
        write_text(markdown, shown.to_markdown())
    return [path for path in (output, csv, html, markdown) if path is not None]


def _say_written(paths: Iterable[Path]) -> None:
    for path in paths:
        typer.echo(f"written: {path}")


def main() -> None:
    """Run the command line; a sign that the encoding of a terminal or pipe lacks becomes "?"."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()
