from __future__ import annotations

import random

import pandas as pd
import pytest

import ragdiag
from ragdiag.lint import CHANCE, CHECKS, COLUMNS, lint

CHUNK = "Refunds are paid back to the card within seven working days, fees excluded, as a rule."


def dataset(*samples):
    return ragdiag.GoldenDataset(
        "support", "1", [{"id": f"q{n}", **sample} for n, sample in enumerate(samples, 1)]
    )


def asked(query="How long do refunds take?", *chunks, **fields):
    return {"query": query, "relevant_chunk_ids": list(chunks), **fields}


def checks(table):
    return list(zip(table["check"], table["query_id"], strict=True))


@pytest.fixture(scope="module")
def large():
    """A corpus large enough for words to tell something."""
    rng = random.Random(0)
    words = [f"word{n}" for n in range(400)]
    return {f"c{n}": " ".join(rng.choices(words, k=30)) for n in range(2 * CHANCE)}


def test_a_clean_dataset_has_no_findings():
    table = dataset(asked("How long?", "a"), asked("How much?", "b")).lint(
        corpus={"a": "Seven days.", "b": "Nothing."}
    )
    assert table.empty
    assert list(table) == list(COLUMNS)
    assert table.attrs["not_checked"] == ["suspect_label", "answer_elsewhere", "unrelated_label"]


def test_what_could_not_be_checked_is_said():
    table = dataset(asked("How long?", "a")).lint()
    assert table.attrs["not_checked"] == [
        name for name, check in CHECKS.items() if check.needs != "dataset"
    ]


def test_ids_that_are_not_in_the_corpus():
    data = dataset(
        asked("One?", "Refunds-01", "fees"), asked("Two?", "doc_1#2"), asked("Three?", "zzz")
    )
    table = data.lint(corpus={"refunds_01": "x", "fees": "y", "doc_1": "z"})
    assert checks(table) == [("label_not_in_corpus", f"q{n}") for n in (1, 2, 3)]
    assert table["severity"].unique().tolist() == ["error"]
    assert table["detail"].tolist() == [
        "no chunk 'Refunds-01' in the corpus; the nearest id is 'refunds_01'",
        "no chunk 'doc_1#2' in the corpus; the nearest id is 'doc_1'",
        "no chunk 'zzz' in the corpus",
    ]
    assert "no pipeline can find it" in table["remedy"][0]


def test_a_grade_below_one_is_no_label():
    sample = asked("One?", {"id": "a", "grade": 0}, "b")
    assert dataset(sample).lint(corpus={"b": "x"}).empty


def test_a_labelled_chunk_without_text():
    table = dataset(asked("One?", "a")).lint(corpus={"a": "  "})
    assert checks(table) == [("empty_chunk", "q1")]


def test_passages_that_do_not_stand_where_they_say():
    def span(document, start, text):
        return {"document": document, "start": start, "end": start + len(text), "text": text}

    data = dataset(
        {"query": "1", "evidence": [span("terms", 0, "Refunds")]},
        {"query": "2", "evidence": [span("terms", 3, "Refunds")]},
        {"query": "3", "evidence": [span("terms", 80, "Refunds are")]},
        {"query": "4", "evidence": [span("other", 0, "Refunds"), "Refunds"]},
    )
    table = data.lint(corpus={"terms": CHUNK})
    assert checks(table) == [("passage_not_in_corpus", f"q{n}") for n in (2, 3, 4)]
    assert table["detail"][0] == "terms[3:10]: 'unds ar' stands there, not 'Refunds'"
    assert "the document has 86 characters" in table["detail"][1]
    # A corpus of chunks says nothing of documents.
    assert data.lint(corpus={"chunk-1": CHUNK}).empty


def test_the_same_question_with_other_labels():
    table = dataset(
        asked("How long?", "a"),
        asked("how  LONG", "b"),
        asked("How long?", "a"),
        asked("Why?", "a"),
    ).lint()
    assert checks(table) == [("different_labels", "q2"), ("repeated_question", "q3")]
    assert table["detail"][0] == "the same question as 'q1', but only one of them has 'a', 'b'"
    assert table["severity"].tolist() == ["warning", "info"]


def test_questions_without_labels_among_others():
    data = dataset(asked("One?", "a"), asked("Two?"), {"query": "3?", "evidence": ["x"]})
    assert checks(data.lint()) == [("no_label", "q2")]
    assert dataset(asked("One?"), asked("Two?")).lint().empty


def test_a_label_that_has_nothing_to_do_with_the_question(large):
    corpus = {**large, "refunds": CHUNK}
    good = asked("How long do refunds to a card take?", "refunds", expected_answer="yes")
    wrong = asked("How long do refunds to a card take at all?", "c3")
    by_answer = asked("How long?", "refunds", expected_answer="within seven working days")
    table = dataset(good, wrong, by_answer).lint(corpus=corpus)
    assert checks(table) == [("unrelated_label", "q2")]
    assert table["detail"][0].startswith("shares no word with question and answer: 'word")
    assert "unrelated_label" not in table.attrs["not_checked"]


def test_a_duplicate_in_the_corpus():
    other = "Parcels are handed to the carrier on the day after the order was placed by you."
    copy = CHUNK.replace("as a rule", "in general")
    corpus = {"a": CHUNK, "copy": copy, "b": other, "short": "Refunds are paid back to"}
    table = dataset(asked("One?", "a"), asked("Two?", "a", {"id": "copy", "grade": 0})).lint(
        corpus=corpus
    )
    assert checks(table) == [("unlabelled_duplicate", "q1")]
    assert table["chunk_id"][0] == "copy"
    assert table["detail"][0].endswith("of it is in the relevant 'a'; it is in the corpus")


class _Judge(ragdiag.Judge):
    def evaluate(self, *, query, expected_answer, generated_answer, context):
        return ragdiag.JudgeResult(answer_correct=True, grounded=True)


class _Pipeline(ragdiag.Pipeline):
    def retrieve(self, query):
        return [
            ragdiag.RetrievedChunk(id="copy", text=CHUNK),
            ragdiag.RetrievedChunk(id="x", text="It takes 7 days."),
        ]

    def generate(self, query, chunks):
        return "7 days"


@pytest.fixture
def judged():
    def evaluate(data, judge=_Judge):
        return ragdiag.evaluate(_Pipeline("p"), data, judge=judge and judge(), progress=False)

    return evaluate


def test_a_correct_answer_without_the_labelled_chunk(judged):
    data = dataset(asked("How long?", "a"), asked("How long now?", "copy"))
    table = data.lint(results=judged(data))
    assert checks(table) == [("suspect_label", "q1")]
    assert table["detail"][0] == "p answered correctly and grounded, without any relevant chunk"
    assert table.attrs["not_checked"][-1] == "unrelated_label"
    unjudged = data.lint(results=[judged(data, None)])
    assert unjudged.empty
    assert "suspect_label" in unjudged.attrs["not_checked"]


def test_a_retrieved_duplicate_counted_as_a_miss(judged):
    data = dataset(asked("How long?", "a"), asked("How long now?", "b"))
    table = data.lint(corpus={"a": CHUNK, "b": "nothing", "c": CHUNK}, results=judged(data, None))
    assert checks(table) == [("unlabelled_duplicate", "q1")]
    assert table["chunk_id"].tolist() == ["copy"]
    assert "was retrieved and counted as a miss" in table["detail"][0]


def test_the_answer_is_in_another_chunk_alone(judged):
    data = dataset(
        asked("How long?", "a", expected_answer="7 Days"),
        asked("Is it?", "a", expected_answer="yes"),
        asked("Is it long?", "a", expected_answer="a week"),
        asked("And now?", "gone", expected_answer="7 days"),
        asked("Once more?", "a", "x", expected_answer="7 days"),
    )
    table = data.lint(corpus={"a": "It takes a while.", "gone2": "y"}, results=judged(data, None))
    found = table[table["check"] == "answer_elsewhere"]
    assert checks(found) == [("answer_elsewhere", "q1")]
    assert found["chunk_id"].tolist() == ["x"]


def test_only_results_are_results(judged):
    with pytest.raises(ragdiag.SettingsError, match="results must be Results, got str"):
        lint(dataset(asked("One?", "a")), results=["run.jsonl"])


def test_the_order_is_by_severity_then_by_dataset():
    data = dataset(asked("One?"), asked("Two?", "gone"), asked("One?", "b"), asked("Four?", "no"))
    table = data.lint(corpus=pd.DataFrame({"id": ["b"], "text": ["x"]}))
    assert checks(table) == [
        ("label_not_in_corpus", "q2"),
        ("label_not_in_corpus", "q4"),
        ("different_labels", "q3"),
        ("no_label", "q1"),
    ]


def test_labels_corrupted_at_random_are_found(repository):
    """On the committed extract of HotpotQA: nearly every flag right, most wrong labels flagged."""
    folder = repository / "examples" / "hotpotqa"
    data = ragdiag.load_dataset(folder, query_types="any")
    corpus = ragdiag.corpus.read_corpus(folder)
    rng = random.Random(5)
    ids = corpus["chunk_id"].tolist()
    qrels = data.qrels.astype(object)
    wrong = set(rng.sample(range(len(qrels)), len(qrels) // 10))
    qrels["chunk_id"] = [
        rng.choice(ids) if row in wrong else chunk_id
        for row, chunk_id in enumerate(qrels["chunk_id"])
    ]
    frame = data.frame[["query_id", "query", "expected_answer"]]
    changed = ragdiag.GoldenDataset.from_frame(frame, qrels=qrels)
    found = changed.lint(corpus=corpus)
    found = found[found["check"] == "unrelated_label"]
    flagged = set(zip(found["query_id"], found["chunk_id"], strict=True))
    truth = {(qrels["query_id"][row], qrels["chunk_id"][row]) for row in wrong}
    assert len(flagged & truth) >= 0.9 * len(flagged)
    assert len(flagged & truth) >= 0.6 * len(truth)
    clean = data.lint(corpus=corpus)
    assert (clean["check"] == "unrelated_label").sum() <= 1
