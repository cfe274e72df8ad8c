"""One invented evaluation that every display test shows: 42 payment questions, two pipelines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragdiag.comparison import Comparison
from ragdiag.recording import Run
from ragdiag.results import Results

# id, type, relevant chunks | dense: ranks, retrieval ms, correct and grounded | hybrid: the same.
# "-" is a chunk outside the top 10, "x" a crash, "?" not judged.
PAYMENTS = """
q001 direct 1 | 1 228 yy | 1 283 yy
q002 direct 2 | 1,3 241 yy | 1,2 313 yy
q003 direct 1 | 2 262 yy | 1 311 yy
q004 direct 1 | 1 219 yy | 1 235 yy
q005 direct 1 | 1 305 ?? | 1 352 yy
q006 direct 1 | 9 334 nn | 2 353 yy
q007 direct 2 | 1,2 247 yy | 1,2 309 yy
q008 direct 1 | 1 1874 yy | 1 1540 yy
q009 direct 1 | 1 233 yy | 1 358 yy
q010 direct 1 | 1 318 yn | 1 364 yn
q011 direct 1 | 1 640 yy | 1 1310 yy
q012 direct 1 | 4 291 yy | 1 327 yy
q013 direct 2 | 1,4 276 ?? | 1,3 370 ??
q014 direct 1 | 2 258 yy | 2 339 ny
q015 direct 1 | 1 224 yy | 1 282 yy
q016 paraphrase 1 | 3 402 yy | 1 430 yy
q017 paraphrase 1 | 8 357 yy | 7 441 yy
q018 paraphrase 1 | - 389 ny | 2 539 yy
q019 paraphrase 1 | 7 412 ?? | 4 412 yy
q020 paraphrase 1 | 2 298 yy | 1 343 yy
q021 paraphrase 1 | 1 322 yy | 2 296 yy
q022 paraphrase 1 | 5 284 yy | 2 287 yy
q023 paraphrase 1 | 3 367 ny | 1 339 yy
q024 paraphrase 1 | 2 340 ?? | 1 406 yy
q025 paraphrase 1 | 1 311 yy | 3 315 nn
q026 multi-hop 2 | 2,7 412 n? | 1,4 534 yy
q027 multi-hop 2 | 1,8 438 ny | 1,5 557 yy
q028 multi-hop 3 | 2,6,- 517 yy | 2,4,9 622 ??
q029 multi-hop 3 | 3,-,- 1120 nn | 2,5,- 1204 ny
q030 multi-hop 2 | 1,- 446 yy | 1,- 410 yy
q031 multi-hop 2 | 2,4 489 nn | 1,3 556 yy
q032 multi-hop 2 | 1,3 471 yy | 1,2 580 yy
q033 multi-hop 2 | 6,- 532 nn | 6,10 672 nn
q034 multi-hop 2 | x 0 ?? | 3,8 688 nn
q035 multi-hop 3 | 1,2,5 508 yy | 1,2,4 493 yy
q036 numeric 1 | 1 246 yy | 1 283 yy
q037 numeric 1 | 2 251 yy | 1 266 yy
q038 numeric 2 | 1,3 268 ny | 1,3 292 ny
q039 numeric 1 | - 1062 nn | 3 428 yy
q040 numeric 1 | 1 2310 yy | 1 365 yy
q041 numeric 1 | 1 237 yy | 1 348 yy
q042 numeric 1 | 3 243 yy | 2 265 yy
"""

QUESTIONS = {
    "q006": "Can I refund a customer whose card is closed?",
    "q011": "What is a test key?",
    "q014": "How do I close my account?",
    "q018": "someone paid me twice for one order",
    "q025": "change the name people see on their statement",
    "q026": "Can I still refund half of a card payment once the dispute window has closed, "
    "and do I get the fee back?",
    "q029": "Does a dispute on one instalment freeze the next payout?",
    "q034": "How long are payouts paused after I change both bank account and legal name?",
}
ANSWERS = {
    ("dense", "q026"): "Yes. You can refund part of a card payment for 180 days, even after the "
    "dispute window has closed. The processing fee is returned in proportion to the refund.",
    ("hybrid", "q014"): "Write to support; accounts cannot be closed online.",
    ("dense", "q014"): "Settings, Account, Close; the balance is paid out first.",
}
EXPECTED = {
    "q026": "Yes. You can refund part of a card payment for 180 days, even after the dispute "
    "window has closed. The processing fee is not returned.",
}
TEXTS = (
    "Several partial refunds are possible until the sum of the payment is reached. A refund "
    "cannot be larger than the payment.",
    "The dispute window is 120 days for most cards, and up to 540 days for services that were "
    "paid in advance.",
    "A card refund reaches the customer after 5 to 10 working days; the date depends on their "
    "bank. A reference can be copied from the payment one day later. With it the bank finds the "
    "refund even if the statement shows another name. Weekends and bank holidays do not count. "
    "Refunds to prepaid cards can take up to 30 days, and the bank may ask for a letter.",
    "Disputed amounts are kept out of the next payout. The rest of the balance is paid as planned.",
)
VERDICT = {"y": True, "n": False, "?": None}


def make_runs(table: str = PAYMENTS) -> tuple[Run, Run]:
    """Build the two runs of a table like the one above."""
    rows = [line.split("|") for line in table.strip().splitlines()]
    queries, qrels = [], []
    for head, _, _ in rows:
        query_id, query_type, n = head.split()
        queries.append(
            {
                "query_id": query_id,
                "query": QUESTIONS.get(query_id, f"What does the handbook say in {query_id}?"),
                "expected_answer": EXPECTED.get(query_id, f"The handbook's answer to {query_id}."),
                "query_type": query_type,
                "product": "refunds" if int(query_id[1:]) % 3 else "payouts",
            }
        )
        qrels += [
            {"query_id": query_id, "chunk_id": f"{query_id}-r{i}", "grade": 1}
            for i in range(int(n))
        ]
    return tuple(  # type: ignore[return-value]
        _run(name, [(row[0].split(), row[side].split()) for row in rows], queries, qrels)
        for side, name in ((1, "dense"), (2, "hybrid"))
    )


def _run(name: str, rows: list[Any], queries: list[Any], qrels: list[Any]) -> Run:
    retrieved, outcomes, verdicts = [], [], []
    for (query_id, _, _), (ranks, ms, verdict) in rows:
        failed = ranks == "x"
        outcomes.append(
            {
                "query_id": query_id,
                "status": "failed" if failed else "completed",
                "error": "retrieval failed: TimeoutError: no reply from the vector store within "
                "30 s"
                if failed
                else None,
                "answer": None
                if failed
                else ANSWERS.get((name, query_id), f"An answer of {name} to {query_id}."),
                "retrieval_ms": None if failed else float(ms),
                "generation_ms": None if failed else 1800.0 + float(ms) / 10,
                "total_ms": None if failed else 1800.0 + 1.1 * float(ms),
            }
        )
        if failed:
            continue
        places = {int(r): i for i, r in enumerate(ranks.split(",")) if r != "-"}
        for rank in range(1, 11):
            ours = rank in places
            retrieved.append(
                {
                    "query_id": query_id,
                    "rank": rank,
                    "chunk_id": f"{query_id}-r{places[rank]}" if ours else f"doc-{rank:02d}",
                    "score": round(0.9 - 0.03 * rank, 2),
                    "text": TEXTS[(rank + len(query_id) + int(ours)) % len(TEXTS)],
                }
            )
        correct, grounded = (VERDICT[letter] for letter in verdict)
        verdicts.append(
            {
                "query_id": query_id,
                "answer_correct": correct,
                "grounded": grounded,
                "correct_confidence": None if correct is None else 0.94,
                "grounded_confidence": None if grounded is None else 0.9,
                "correct_error": "JudgeProviderError: the server was busy"
                if correct is None
                else None,
                "judge": "fixed",
                "screened": False,
                "judge_reason": "The answer differs from the expected one."
                if correct is False
                else "The answer agrees with the expected one.",
                "judge_ms": 2210.0,
            }
        )
    return Run(
        pd.DataFrame(queries),
        pd.DataFrame(qrels),
        pd.DataFrame(retrieved),
        pd.DataFrame(outcomes),
        pd.DataFrame(verdicts),
        pipeline_name=name,
        dataset_name="payment-faq",
        dataset_version="1.2",
    )


@pytest.fixture(scope="session")
def runs() -> tuple[Run, Run]:
    """Evidence of ``dense`` and ``hybrid`` on the same 42 questions."""
    return make_runs()


@pytest.fixture(scope="session")
def results(runs) -> Results:
    """Results of ``dense``."""
    return Results(runs[0])


@pytest.fixture(scope="session")
def comparison(runs) -> Comparison:
    """``dense`` against ``hybrid``."""
    return Comparison(Results(runs[0]), Results(runs[1]))


def make_large(n: int, text: str = "What does section {} say of refunds and payouts?") -> Run:
    """Build a run of `n` queries of ten chunks; about two thirds pass."""
    rng = np.random.default_rng(7)
    ids = [f"q{i:05d}" for i in range(n)]
    first = rng.integers(1, 14, n)
    queries = pd.DataFrame(
        {
            "query_id": ids,
            "query": [text.format(i) for i in range(n)],
            "expected_answer": [f"Section {i} says so." for i in range(n)],
            "query_type": np.array(["factual", "reasoning", "multi-hop"])[rng.integers(0, 3, n)],
            "team": np.array(["red", "blue"])[rng.integers(0, 2, n)],
        }
    )
    qrels = pd.DataFrame({"query_id": ids, "chunk_id": [f"gold-{i}" for i in range(n)]})
    rank = np.tile(np.arange(1, 11), n)
    owner = np.repeat(np.arange(n), 10)
    hit = rank == first[owner]
    retrieved = pd.DataFrame(
        {
            "query_id": np.repeat(ids, 10),
            "rank": rank,
            "chunk_id": np.where(hit, [f"gold-{i}" for i in owner], [f"c{r}" for r in rank]),
            "score": 1.0 / rank,
            "text": np.array(TEXTS, dtype=object)[rng.integers(0, len(TEXTS), 10 * n)],
        }
    )
    outcomes = pd.DataFrame(
        {
            "query_id": ids,
            "status": "completed",
            "answer": [f"Section {i} says something." for i in range(n)],
            "retrieval_ms": rng.lognormal(5, 0.8, n),
        }
    )
    verdicts = pd.DataFrame(
        {
            "query_id": ids,
            "answer_correct": rng.random(n) < 0.8,
            "grounded": rng.random(n) < 0.9,
            "correct_confidence": 0.9,
            "grounded_confidence": 0.9,
            "judge": "fixed",
        }
    )
    return Run(
        queries, qrels, retrieved, outcomes, verdicts, pipeline_name="large", dataset_name="large"
    )


def hostile_lines(shared_data: Path) -> list[str]:
    """Return every line of the hostile corpora, and our own escapes for terminals."""
    folder = shared_data / "hostile"
    lines = [line for file in sorted((folder / "xss").iterdir()) for line in _lines(file)]
    lines += json.loads((folder / "blns" / "blns.json").read_text(encoding="utf-8"))
    return [line for line in lines if line.strip()] + EXTRACT


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").splitlines()


#: A few of each kind, so that the proof stands without the corpora.
EXTRACT = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</td></tr></table><h1>out</h1>",
    "</style><script>alert(2)</script>",
    "javascript:alert(3)",
    "{{ 7 * 7 }} {% raw %}",
    "$\\frac{1}{0}$ and $x",
    "| a | b |\n|---|---|",
    "[click](javascript:alert(4)) ![x](http://127.0.0.1:1/x.png)",
    "@everyone #1 https://example.invalid www.example.invalid a@b.example",
    "\x1b[2J\x1b]0;title\x07\x9b31m",
    "\u202egnp.exe\u2066\u2067",
    "a" + "\u0301" * 40,
    "\x00\x01\x08\x7f\x85\u2028\u2029",
    "<!-- --><svg/onload=alert(5)>",
    "`code` ``` **bold** <b>",
    "=cmd|' /C calc'!A0",
    "&lt;already&gt; &amp; &#x3c;",
]


def make_hostile(lines: Sequence[str]) -> Run:
    """Build a run in which every string is hostile; ids are told apart by a number in front."""
    n = len(lines)
    at = [lines[i] for i in range(n)]
    ids = [f"{i} {text}" for i, text in enumerate(at)]
    chunks = [f"c{i} {text}" for i, text in enumerate(at)]
    return Run(
        pd.DataFrame(
            {
                "query_id": ids,
                "query": [text or "?" for text in at],
                "expected_answer": at[::-1],
                "query_type": [at[i % min(n, 12)] or "type" for i in range(n)],
                "note": [at[i % min(n, 9)] for i in range(n)],
            }
        ),
        pd.DataFrame({"query_id": ids, "chunk_id": chunks}),
        pd.DataFrame(
            {
                "query_id": np.repeat(ids, 2),
                "rank": [1, 2] * n,
                "chunk_id": [c for i in range(n) for c in (chunks[i], f"x {chunks[-i]}")][: 2 * n],
                "text": [t for i in range(n) for t in (at[i], at[-i])],
            }
        ),
        pd.DataFrame(
            {
                "query_id": ids,
                "status": ["failed" if i % 7 == 0 else "completed" for i in range(n)],
                "error": [at[i] if i % 7 == 0 else None for i in range(n)],
                "answer": [None if i % 7 == 0 else at[i] for i in range(n)],
                "retrieval_ms": [None if i % 7 == 0 else 10.0 + i for i in range(n)],
            }
        ),
        pd.DataFrame(
            {
                "query_id": ids,
                "answer_correct": [None if i % 7 == 0 else i % 3 > 0 for i in range(n)],
                "grounded": [None if i % 7 == 0 else i % 5 > 0 for i in range(n)],
                "judge": at,
                "judge_reason": at,
                "correct_error": [at[i] if i % 7 == 0 else None for i in range(n)],
            }
        ),
        pipeline_name=lines[1],
        pipeline_version=lines[2 % n],
        dataset_name=lines[0],
        dataset_version=lines[3 % n],
        info={lines[0]: lines[1]},
    )
