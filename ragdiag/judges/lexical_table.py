"""What the offline judge is worth, measured on human labels. Prints one table, with baselines.

::

    python -m ragdiag.judges.lexical_table DATA          # the tables
    python -m ragdiag.judges.lexical_table DATA --fit    # also weights and rules, to be copied

``DATA`` holds ``correctness/evouna_nq.jsonl.gz`` and ``judged/*.jsonl.gz``. All figures are out of
fold: five folds, no question (correctness) or source text (groundedness) in two of them.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from ragdiag.judges import correctness, grounding
from ragdiag.judges.correctness import Match, alternatives, match
from ragdiag.judges.grounding import Support, support
from ragdiag.judges.lexical import screen_correctness, screen_grounding
from ragdiag.judges.lexical_weights import CORRECT_RULES, UNGROUNDED_RULES, Rule
from ragdiag.judges.linear import INTERCEPT, fit_logistic, grouped_folds, out_of_fold
from ragdiag.judges.prechecks import precheck
from ragdiag.judges.words import content, tokens

__all__ = ["Measured", "auroc", "correctness_rows", "grounding_rows", "kappa", "main"]

CORRECTNESS = ("correctness/evouna_nq",)
GROUNDING = ("judged/ragtruth_dev", "judged/clapnq_human", "judged/begin_wow_dev")
BOOTSTRAP = 1_000
SEED = 20_240_501

#: Between these bounds the score alone gives no verdict on correctness.
UNSURE = (CORRECT_RULES[2].upto, CORRECT_RULES[4].upto)

Array = NDArray[Any]
Row = dict[str, Any]


class Measured(NamedTuple):
    """One line of a table; what it finds is "correct", or "not grounded".

    Attributes
    ----------
    name : str
        What was measured on what.
    n : int
        Items.
    accuracy, kappa, precision, recall, f1 : float
        Of those decided.
    auroc : float
        Of the score, over all items; NaN where there is no score.
    unsure : float
        Share of items left undecided.
    """

    name: str
    n: int
    accuracy: float
    kappa: float
    precision: float
    recall: float
    f1: float
    auroc: float
    unsure: float


def kappa(a: Array, b: Array) -> float:
    """Return Cohen's kappa of two arrays of booleans.

    Examples
    --------
    >>> kappa(np.array([True, True, False, False]), np.array([True, False, False, False]))
    0.5
    """
    observed = float((a == b).mean())
    chance = float(a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean()))
    return (observed - chance) / (1 - chance) if chance < 1 else float("nan")


def auroc(labels: Array, scores: Array) -> float:
    """Return the area under the ROC curve: P(score of a positive > of a negative), ties half.

    Examples
    --------
    >>> auroc(np.array([True, False, True]), np.array([0.9, 0.1, 0.1]))
    0.75
    """
    positives = int(labels.sum())
    negatives = len(labels) - positives
    if not positives or not negatives:
        return float("nan")
    ranks = float(rankdata(scores)[labels].sum())
    return (ranks - positives * (positives + 1) / 2) / (positives * negatives)


def measure(name: str, labels: Array, verdicts: Sequence[bool | None], scores: Array) -> Measured:
    """Return one line: `verdicts` against `labels`, None being undecided."""
    decided = np.array([verdict is not None for verdict in verdicts])
    y = labels[decided]
    found = np.array([bool(verdict) for verdict in verdicts])[decided]
    hits = float((y & found).sum())
    precision = hits / found.sum() if found.any() else float("nan")
    recall = hits / y.sum() if y.any() else float("nan")
    f1 = 2 * hits / float(found.sum() + y.sum()) if found.any() or y.any() else float("nan")
    return Measured(
        name,
        len(labels),
        float((y == found).mean()) if len(y) else float("nan"),
        kappa(y, found) if len(y) else float("nan"),
        precision,
        recall,
        f1,
        auroc(labels, scores),
        1 - float(decided.mean()),
    )


def _read(data: Path, names: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    for name in names:
        with gzip.open(data / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            rows.extend(json.loads(line) for line in file)
    return rows


# Correctness ------------------------------------------------------------------------------------


class CorrectnessData(NamedTuple):
    """Items with their match, label, and out-of-fold probability of being correct."""

    rows: list[Row]
    matches: list[Match | None]
    features: Array
    labels: Array
    scores: Array


def load_correctness(rows: list[Row]) -> CorrectnessData:
    """Match all items and score each with weights fitted on other questions."""
    matches = [match(r["question"], alternatives(r["gold_raw"]), r["response"]) for r in rows]
    empty = (0.0,) * len(correctness.FEATURES)
    features = np.array([m.features if m else empty for m in matches])
    labels = np.array([bool(row["correct"]) for row in rows])
    fold = grouped_folds([row["question"] for row in rows])
    return CorrectnessData(rows, matches, features, labels, out_of_fold(features, labels, fold))


def correctness_rows(data: CorrectnessData) -> Iterator[Measured]:
    """Yield the lines about correctness: baselines first."""
    rows, labels = data.rows, data.labels
    said = [tokens(row["response"]) for row in rows]
    phrase = [
        any(f" {' '.join(tokens(gold))} " in f" {' '.join(words)} " for gold in _golds(row))
        for row, words in zip(rows, said, strict=True)
    ]
    recall = np.array(
        [
            max(_recall(tokens(gold), set(words)) for gold in _golds(row))
            for row, words in zip(rows, said, strict=True)
        ]
    )
    yield measure("baseline: phrase contained", labels, phrase, np.array(phrase, float))
    yield measure("baseline: word recall >= .5", labels, list(recall >= 0.5), recall)
    certain: list[bool | None] = [
        None if 0 < share < 1 else bool(share) for share in recall.tolist()
    ]
    yield measure("baseline: word recall 1 or 0", labels, certain, recall)
    everything = list(data.scores >= 0.5)
    yield measure("lexical, always deciding", labels, everything, data.scores)
    screened = [
        screen_correctness(r["question"], r["gold_raw"], r["response"], m, float(p)).verdict
        for r, m, p in zip(rows, data.matches, data.scores, strict=True)
    ]
    yield measure("lexical", labels, screened, data.scores)
    for model in sorted({row["model"] for row in rows}):
        chosen = np.array([row["model"] == model for row in rows])
        verdicts = [verdict for verdict, c in zip(screened, chosen, strict=True) if c]
        yield measure(f"lexical: {model}", labels[chosen], verdicts, data.scores[chosen])


def _golds(row: Row) -> list[str]:
    return row["gold_answers"] or [row["gold_raw"]]


def _recall(gold: list[str], said: set[str]) -> float:
    facts = content(gold) or gold
    return sum(word in said for word in facts) / len(facts) if facts else 0.0


# Groundedness -----------------------------------------------------------------------------------


class GroundingData(NamedTuple):
    """Items with what supports them, label (not grounded), score, and the baseline's score."""

    rows: list[Row]
    found: list[Support]
    features: Array
    labels: Array
    scores: Array
    baseline: Array
    fold: Array


def load_grounding(rows: list[Row]) -> GroundingData:
    """Look up all items and score each with weights fitted on other sources."""
    found = [support(r["question"], r["response"], r["contexts"], evidence=False) for r in rows]
    features = np.array([f.features for f in found])
    labels = np.array([bool(row["hallucinated"]) for row in rows])
    fold = grouped_folds([_source(row) for row in rows])
    scores = out_of_fold(features, labels, fold)
    baseline = np.array([_absent(row) for row in rows])
    return GroundingData(rows, found, features, labels, scores, baseline, fold)


def _source(row: Row) -> str:
    return f"{row['dataset']}/{row['source_id']}"


def _absent(row: Row) -> float:
    """Return 1 - plain content-word precision."""
    said = content(tokens(row["response"]))
    known = set(tokens("\n".join(row["contexts"])))
    return sum(word not in known for word in said) / len(said) if said else 0.0


def grounding_rows(data: GroundingData) -> Iterator[Measured]:
    """Yield the lines about groundedness, baselines first, for all tasks and for each."""
    task = np.array([f"{row['dataset']} {row['task']}" for row in data.rows])
    plain = out_of_fold(data.baseline[:, None], data.labels, data.fold)
    screened = [
        _not(
            screen_grounding(
                row["response"], found, float(p), has_context=bool(row["contexts"])
            ).verdict
        )
        for row, found, p in zip(data.rows, data.found, data.scores, strict=True)
    ]
    groups = [("all", np.ones(len(task), bool))]
    groups += [(name, task == name) for name in dict.fromkeys(task.tolist())]
    for name, chosen in groups:
        y = data.labels[chosen]
        nothing = np.zeros(len(y))
        yield measure(f"{name}: all not grounded", y, [True] * len(y), nothing)
        words = list(plain[chosen] >= 0.5)
        yield measure(f"{name}: content words", y, words, data.baseline[chosen])
        always = list(data.scores[chosen] >= 0.5)
        yield measure(f"{name}: lexical, always", y, always, data.scores[chosen])
        some = [verdict for verdict, c in zip(screened, chosen, strict=True) if c]
        yield measure(f"{name}: lexical", y, some, data.scores[chosen])


def _not(verdict: bool | None) -> bool | None:
    return None if verdict is None else not verdict


def gain(data: GroundingData, chosen: Array | None = None) -> tuple[float, float, float]:
    """Return the gain in AUROC over plain content words with its 95 % interval.

    Whole sources are drawn, 1,000 times with a fixed seed; both scores see the same draws.
    """
    chosen = np.ones(len(data.labels), bool) if chosen is None else chosen
    places = np.flatnonzero(chosen)
    names = np.array([_source(data.rows[i]) for i in places])
    members = [places[names == name] for name in np.unique(names)]
    rng = np.random.default_rng(SEED)
    draws = []
    for _ in range(BOOTSTRAP):
        taken = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        y = data.labels[taken]
        draws.append(auroc(y, data.scores[taken]) - auroc(y, data.baseline[taken]))
    y = data.labels[chosen]
    point = auroc(y, data.scores[chosen]) - auroc(y, data.baseline[chosen])
    low, high = np.quantile(draws, [0.025, 0.975])
    return point, float(low), float(high)


# Printing ---------------------------------------------------------------------------------------


def show(title: str, rows: Sequence[Measured]) -> str:
    """Return the lines as a table of 100 columns."""
    head = f"{title:<42}{'n':>7}{'acc':>7}{'kappa':>7}{'prec':>7}{'rec':>7}{'F1':>7}{'AUROC':>7}"
    lines = [f"{head}{'unsure':>8}"]
    for row in rows:
        figures = (row.accuracy, row.kappa, row.precision, row.recall, row.f1, row.auroc)
        shown = "".join(f"{value:>7.3f}" if value == value else f"{'-':>7}" for value in figures)
        lines.append(f"{row.name:<42}{row.n:>7,}{shown}{row.unsure:>8.3f}")
    return "\n".join(lines)


def show_fit(name: str, features: Sequence[str], x: Array, y: Array) -> str:
    """Return weights fitted on all items, as they stand in ``lexical_weights``."""
    weights = fit_logistic(x, y)
    pairs = zip((INTERCEPT, *features), weights, strict=True)
    return "\n".join([f"{name} = {{", *(f'    "{key}": {value:.3f},' for key, value in pairs), "}"])


def show_rules(name: str, rules: Sequence[Rule], scores: Array, right: Array) -> str:
    """Return how often each rule's leaning was right; `right` says what True means."""
    lines, low = [name], -1.0
    for rule in rules:
        inside = (scores > low) & (scores <= rule.upto)
        share = float((right[inside] == rule.leaning).mean()) if inside.any() else float("nan")
        lines.append(
            f"    up to {rule.upto:.2f}: {rule.leaning!s:<5} {share:.3f} (n {inside.sum()})"
        )
        low = rule.upto
    return "\n".join(lines)


def show_special(data: CorrectnessData) -> str:
    """Return how often the rules beside the score were right that an answer is not correct."""
    numbers = np.array([bool(m and m.other_numbers) for m in data.matches])
    between = (data.scores > UNSURE[0]) & (data.scores <= UNSURE[1])
    stopped = [
        found.kind if (found := precheck(r["question"], r["gold_raw"], r["response"])) else ""
        for r in data.rows
    ]
    groups = {"OTHER_NUMBERS": numbers & between}
    groups |= {f"precheck {kind}": np.array(stopped) == kind for kind in sorted({*stopped} - {""})}
    return "\n".join(
        f"{name}: {1 - float(data.labels[chosen].mean()):.3f} (n {chosen.sum()})"
        for name, chosen in groups.items()
        if chosen.any()
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; the exit code is 2 for wrong usage."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    fit = "--fit" in given
    paths = [argument for argument in given if not argument.startswith("-")]
    if len(paths) != 1 or not Path(paths[0]).is_dir():
        sys.stderr.write("usage: python -m ragdiag.judges.lexical_table DATA [--fit]\n")
        return 2
    folder = Path(paths[0])
    correct = load_correctness(_read(folder, CORRECTNESS))
    grounded = load_grounding(_read(folder, GROUNDING))
    parts = [
        show("correctness (finds: correct)", list(correctness_rows(correct))),
        show("groundedness (finds: not grounded)", list(grounding_rows(grounded))),
    ]
    ragtruth = np.array([row["dataset"] == "ragtruth" for row in grounded.rows])
    for name, chosen in (("all", None), ("ragtruth", ragtruth)):
        point, low, high = gain(grounded, chosen)
        parts.append(
            f"gain in AUROC over content words, {name}: {point:+.3f} "
            f"[{low:+.3f}, {high:+.3f}] (95 %, sources drawn)"
        )
    if fit:
        parts += [
            show_fit("CORRECT", correctness.FEATURES, correct.features, correct.labels),
            show_rules("CORRECT_RULES", CORRECT_RULES, correct.scores, correct.labels),
            show_special(correct),
            show_fit("UNGROUNDED", grounding.FEATURES, grounded.features, grounded.labels),
            show_rules("UNGROUNDED_RULES", UNGROUNDED_RULES, grounded.scores, ~grounded.labels),
        ]
    sys.stdout.write("\n\n".join(parts) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
