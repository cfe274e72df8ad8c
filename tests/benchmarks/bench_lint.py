"""Labels of HotpotQA corrupted on purpose: how many of them ``dataset.lint`` finds.

Of the labels (two passages a question) 5, 10 or 20 % are replaced by another passage of the
corpus: one drawn at random, or the best match of BM25 that is not relevant, which is a wrong label
as hard to tell as there can be. BM25 then retrieves ten passages, sentences cut out of them are the
answer, and the lexical judge says what it is worth. Precision is the share of flagged questions
that have a corrupted label, recall the share of those that are flagged. The limit of
``unrelated_label`` was chosen on this set. The set is the one beside the checkout if there is one,
else the extract in ``examples/hotpotqa``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from measuring import print_table

import ragdiag
from ragdiag.corpus import read_corpus
from ragdiag.lint import lint

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "hotpotqa"
FULL = ROOT.parent / "shared" / "data" / "retrieval" / "hotpotqa"

SHARES = (0.05, 0.1, 0.2)
QUICK_SHARES = (0.1,)
SEED = 7
LABEL_CHECKS = ("suspect_label", "answer_elsewhere", "unrelated_label")


def corrupted(
    dataset: ragdiag.GoldenDataset,
    share: float,
    others: Mapping[str, list[str]],
    rng: np.random.Generator,
) -> tuple[ragdiag.GoldenDataset, set[str]]:
    """Return the dataset with a share of its labels replaced, and the questions concerned."""
    qrels = dataset.qrels
    labels = qrels["chunk_id"].astype(object).tolist()
    queries = qrels["query_id"].astype(object).tolist()
    relevant: dict[str, set[str]] = {}
    for query_id, chunk_id in zip(queries, labels, strict=True):
        relevant.setdefault(query_id, set()).add(chunk_id)
    wrong: set[str] = set()
    for row in rng.choice(len(labels), round(share * len(labels)), replace=False).tolist():
        taken = relevant[queries[row]]
        labels[row] = next(each for each in others[queries[row]] if each not in taken)
        taken.add(labels[row])
        wrong.add(queries[row])
    changed = pd.DataFrame({"query_id": queries, "chunk_id": labels})
    frame = dataset.frame[["query_id", "query", "expected_answer"]]
    return ragdiag.GoldenDataset.from_frame(frame, qrels=changed), wrong


def scores(flagged: set[str], wrong: set[str]) -> list[str]:
    hits = len(flagged & wrong)
    precision = f"{hits / len(flagged):.2f}" if flagged else "-"
    return [str(len(flagged)), precision, f"{hits / len(wrong):.2f}"]


def run(quick: bool) -> None:
    sys.path.insert(0, str(EXAMPLE))
    try:
        import search
    except ragdiag.MissingDependencyError as error:
        print(error)
        return
    folder = FULL if FULL.is_dir() and not quick else EXAMPLE
    search.CORPUS = folder / "corpus.jsonl.gz"
    dataset = ragdiag.load_dataset(folder, query_types="any")
    corpus = read_corpus(folder)
    pipeline = search.BM25Pipeline("bm25", lambda passage: f"{passage['title']} {passage['text']}")
    recorded = ragdiag.evaluate(pipeline, dataset, judge="lexical", progress=False)
    chunks = recorded.run.retrieved
    ranked = chunks.groupby("query_id", sort=False)["chunk_id"].agg(list).to_dict()
    print(f"{len(dataset)} questions, {len(corpus):,} passages")
    rows = []
    for share in QUICK_SHARES if quick else SHARES:
        for kind in ("random", "BM25's best"):
            rng = np.random.default_rng(SEED)
            ids = corpus["chunk_id"].tolist()
            others = (
                {query_id: rng.choice(ids, 5).tolist() for query_id in ranked}
                if kind == "random"
                else ranked
            )
            changed, wrong = corrupted(dataset, share, others, rng)
            results = ragdiag.diagnose(recorded.run, changed, k=10)
            found = lint(changed, corpus=corpus, results=results)
            for check in (*LABEL_CHECKS, "any"):
                named = LABEL_CHECKS if check == "any" else [check]
                flagged = set(found["query_id"][found["check"].isin(named)])
                rows.append([f"{share:.0%} {kind}", check, *scores(flagged, wrong)])
    print_table(["corrupted", "check", "flagged", "precision", "recall"], rows)
