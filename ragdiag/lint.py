"""Labels that are probably wrong: found with the corpus, with results, or with the dataset alone.

Each check has a name, a severity and a remedy; see :data:`CHECKS`. An ``error`` is certain, a
``warning`` is a suspicion worth a look, ``info`` is something to know.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import NamedTuple

import pandas as pd

from ragdiag.cells import plain_list
from ragdiag.corpus import read_corpus
from ragdiag.dataset import GoldenDataset
from ragdiag.errors import SettingsError
from ragdiag.matching import normalised
from ragdiag.metrics import RELEVANT_GRADE
from ragdiag.results import Results
from ragdiag.tables import TEXT

__all__ = ["CHECKS", "COLUMNS", "Check", "lint"]

#: Words that question or answer share with a labelled chunk are enough when together they would
#: come by chance in at most one of so many chunks; they are then worth the logarithm of it.
CHANCE = 150

#: Longer answers are not expected to stand word for word in a chunk.
MAX_ANSWER_WORDS = 8

#: Share of the runs of words of the smaller of two chunks that the other has, for near-duplicates.
DUPLICATE_SHARE = 0.8

#: Words in such a run, and how few of them make a chunk too short to be compared.
RUN = 4
MIN_RUNS = 5

#: Chunks that share a run with more than so many labelled ones: boilerplate, which proves nothing.
MAX_SHARING = 50

#: Characters of a text shown in a finding.
SHOWN = 60

_WORD = re.compile(r"\w+")
_YES_NO = frozenset(("yes", "no", "true", "false"))


class Check(NamedTuple):
    """What a check is called, how bad a finding is, what to do, and what it looks at."""

    severity: str
    remedy: str
    needs: str


#: All checks, in the order of the table.
CHECKS: dict[str, Check] = {
    "label_not_in_corpus": Check(
        "error", "correct the id, or index the document: no pipeline can find it", "corpus"
    ),
    "passage_not_in_corpus": Check(
        "error", "correct the passage or its offsets: the document reads otherwise", "corpus"
    ),
    "empty_chunk": Check(
        "error", "label a chunk that says something: this one has no text", "corpus"
    ),
    "different_labels": Check(
        "warning", "give both questions the same labels, or word them apart", "dataset"
    ),
    "suspect_label": Check(
        "warning",
        "read the retrieved chunks: one of them seems to answer as well, and needs a label",
        "results",
    ),
    "answer_elsewhere": Check(
        "warning",
        "read the chunk that has the answer: it may be the one to label",
        "corpus, results",
    ),
    "unrelated_label": Check(
        "warning", "read the chunk: it shares hardly a word with question and answer", "corpus"
    ),
    "unlabelled_duplicate": Check(
        "warning", "label it as well, or drop one of the two from the corpus", "corpus, results"
    ),
    "repeated_question": Check("info", "drop one: the question counts twice", "dataset"),
    "no_label": Check(
        "info", "label it: without, retrieval is not measured for this question", "dataset"
    ),
}

COLUMNS = ("severity", "check", "query_id", "chunk_id", "detail", "remedy")

SEVERITIES = ("error", "warning", "info")


class Finding(NamedTuple):
    """One line of the table before its severity and remedy are looked up."""

    check: str
    query_id: str
    chunk_id: str | None
    detail: str


def lint(
    dataset: GoldenDataset,
    *,
    corpus: pd.DataFrame | Mapping[str, str] | str | PathLike[str] | None = None,
    results: Results | Sequence[Results] | None = None,
) -> pd.DataFrame:
    """Return what is probably wrong with the labels of a dataset.

    ========================  ========  ==========================================================
    check                     severity  found when
    ========================  ========  ==========================================================
    ``label_not_in_corpus``   error     a relevant id is not in the corpus
    ``passage_not_in_corpus`` error     evidence does not stand where it says in its document
    ``empty_chunk``           error     a relevant chunk has no text
    ``different_labels``      warning   the same question has different labels
    ``suspect_label``         warning   an answer is correct and grounded, no relevant chunk came
    ``answer_elsewhere``      warning   the expected answer is in a retrieved, in no relevant chunk
    ``unrelated_label``       warning   a relevant chunk shares no telling words with its question
    ``unlabelled_duplicate``  warning   a near-duplicate of a relevant chunk counts as a miss
    ``repeated_question``     info      the same question twice, with the same labels
    ``no_label``              info      a question without labels among others that have some
    ========================  ========  ==========================================================

    Parameters
    ----------
    dataset : GoldenDataset
        Whose labels.
    corpus : DataFrame, mapping of id to text, or path, optional
        All chunks, see :func:`ragdiag.corpus.read_corpus`. Checks that need it are left out
        without; ``unrelated_label`` also for a corpus of fewer chunks than :data:`CHANCE`.
    results : Results or sequence of Results, optional
        Of pipelines on this dataset, judged if ``suspect_label`` is wanted.

    Returns
    -------
    pandas.DataFrame
        ``severity, check, query_id, chunk_id, detail, remedy``, errors first, then in the order of
        the dataset; empty when nothing was found. ``attrs["not_checked"]`` lists the checks for
        which corpus or results were missing.

    Raises
    ------
    DatasetLoadError
        The corpus cannot be read.

    Examples
    --------
    >>> dataset = GoldenDataset("support", "1", [
    ...     {"id": "q1", "query": "How long do refunds take?", "relevant_chunk_ids": ["refund"]}])
    >>> found = dataset.lint(corpus={"refunds": "Refunds take seven days."})
    >>> found.loc[0, ["check", "detail"]].tolist()
    ['label_not_in_corpus', "no chunk 'refund' in the corpus; the nearest id is 'refunds'"]
    """
    seen = [results] if isinstance(results, Results) else list(results or ())
    for each in seen:
        if not isinstance(each, Results):
            raise SettingsError(f"results must be Results, got {type(each).__name__}")
    labels = _Labels(dataset)
    findings = [*_repeated(labels), *_unlabelled(labels)]
    not_checked: list[str] = []
    texts = _texts(read_corpus(corpus)) if corpus is not None else {}
    if corpus is None:
        not_checked += ["label_not_in_corpus", "passage_not_in_corpus", "empty_chunk"]
    else:
        findings += [*_outside(labels, texts), *_misplaced(labels, texts), *_empty(labels, texts)]
    if len(texts) < CHANCE:
        not_checked.append("unrelated_label")
    else:
        findings += _unrelated(labels, texts)
    judged = [each for each in seen if each.frame["answer_correct"].notna().any()]
    for each in judged:
        findings += _suspected(each, labels)
    if not judged:
        not_checked.append("suspect_label")
    for each in seen:
        findings += _elsewhere(each, labels, texts)
    if not seen:
        not_checked.append("answer_elsewhere")
    if not seen and corpus is None:
        not_checked.append("unlabelled_duplicate")
    else:
        findings += _duplicates(labels, texts, seen)
    return _table(labels, findings, not_checked)


class _Labels:
    """A dataset's questions and relevant ids as plain dicts."""

    def __init__(self, dataset: GoldenDataset) -> None:
        frame, qrels, evidence = dataset.frame, dataset.qrels, dataset.evidence
        ids = plain_list(frame["query_id"])
        self.position = {query_id: place for place, query_id in enumerate(ids)}
        self.query = dict(zip(ids, plain_list(frame["query"]), strict=True))
        self.answer = dict(zip(ids, plain_list(frame["expected_answer"]), strict=True))
        relevant = qrels[qrels["grade"] >= RELEVANT_GRADE]
        self.relevant: dict[str, list[str]] = {query_id: [] for query_id in ids}
        for query_id, chunk_id in zip(
            plain_list(relevant["query_id"]), plain_list(relevant["chunk_id"]), strict=True
        ):
            self.relevant[query_id].append(chunk_id)
        #: Chunks that someone judged, as not relevant perhaps.
        self.judged = set(
            zip(plain_list(qrels["query_id"]), plain_list(qrels["chunk_id"]), strict=True)
        )
        self.passages = list(zip(*(plain_list(evidence[name]) for name in evidence), strict=True))


def _table(
    labels: _Labels, findings: Sequence[Finding], not_checked: Sequence[str]
) -> pd.DataFrame:
    order = list(CHECKS)
    distinct = dict.fromkeys(findings)
    ordered = sorted(
        distinct,
        key=lambda each: (
            SEVERITIES.index(CHECKS[each.check].severity),
            labels.position[each.query_id],
            order.index(each.check),
        ),
    )
    rows = [(CHECKS[each.check].severity, *each, CHECKS[each.check].remedy) for each in ordered]
    table = pd.DataFrame(rows, columns=list(COLUMNS), dtype=object).astype(TEXT)
    table.attrs["not_checked"] = [name for name in order if name in not_checked]
    return table


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…")


def _texts(corpus: pd.DataFrame) -> dict[str, str]:
    """Return what each chunk says, its title in front."""
    columns = (plain_list(corpus[name]) for name in ("chunk_id", "title", "text"))
    return {
        chunk_id: f"{title}\n{text}" if title else text
        for chunk_id, title, text in zip(*columns, strict=True)
    }


# -- the dataset alone ----------------------------------------------------------------------------


def _repeated(labels: _Labels) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for query_id, query in labels.query.items():
        other = first.setdefault(normalised(query) or query, query_id)
        if other == query_id:
            continue
        mine, theirs = set(labels.relevant[query_id]), set(labels.relevant[other])
        if mine == theirs:
            yield Finding("repeated_question", query_id, None, f"the same question as {other!r}")
        else:
            apart = ", ".join(map(repr, sorted(mine ^ theirs)[:5]))
            detail = f"the same question as {other!r}, but only one of them has {apart}"
            yield Finding("different_labels", query_id, None, detail)


def _unlabelled(labels: _Labels) -> Iterator[Finding]:
    with_passages = {passage[0] for passage in labels.passages}
    bare = [
        query_id
        for query_id, relevant in labels.relevant.items()
        if not relevant and query_id not in with_passages
    ]
    if len(bare) < len(labels.query):
        for query_id in bare:
            yield Finding("no_label", query_id, None, "neither a relevant chunk nor evidence")


# -- with the corpus ------------------------------------------------------------------------------


def _outside(labels: _Labels, texts: Mapping[str, str]) -> Iterator[Finding]:
    alike = {normalised(chunk_id): chunk_id for chunk_id in reversed(list(texts))}
    for query_id, relevant in labels.relevant.items():
        for chunk_id in relevant:
            if chunk_id in texts:
                continue
            detail = f"no chunk {chunk_id!r} in the corpus"
            nearest = alike.get(normalised(chunk_id)) or _nearest(chunk_id, texts)
            if nearest is not None:
                detail += f"; the nearest id is {nearest!r}"
            yield Finding("label_not_in_corpus", query_id, chunk_id, detail)


def _nearest(chunk_id: str, texts: Mapping[str, str]) -> str | None:
    """Return an id of which this one is a beginning, or the other way round."""
    found = (each for each in texts if each.startswith(chunk_id) or chunk_id.startswith(each))
    return next((each for each in found if each), None)


def _misplaced(labels: _Labels, texts: Mapping[str, str]) -> Iterator[Finding]:
    """Find spans that do not say what they should; only where the corpus holds whole documents."""
    documents = {document for _, document, *_ in labels.passages if document is not None}
    if documents.isdisjoint(texts):
        return
    for query_id, document, start, end, text in labels.passages:
        if document is None:
            continue
        place = f"{document}[{start}:{end}]"
        if document not in texts:
            detail = f"{place}: no document {document!r} in the corpus"
            yield Finding("passage_not_in_corpus", query_id, document, detail)
        elif end > len(texts[document]):
            detail = f"{place}: the document has {len(texts[document]):,} characters"
            yield Finding("passage_not_in_corpus", query_id, document, detail)
        elif text is not None and normalised(texts[document][start:end]) != normalised(text):
            there = _quoted(texts[document][start:end])
            detail = f"{place}: {there} stands there, not {_quoted(text)}"
            yield Finding("passage_not_in_corpus", query_id, document, detail)


def _empty(labels: _Labels, texts: Mapping[str, str]) -> Iterator[Finding]:
    for query_id, relevant in labels.relevant.items():
        for chunk_id in relevant:
            if chunk_id in texts and not texts[chunk_id].strip():
                yield Finding("empty_chunk", query_id, chunk_id, "the labelled chunk has no text")


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _unrelated(labels: _Labels, texts: Mapping[str, str]) -> Iterator[Finding]:
    """Find labelled chunks whose words in common with question and answer are everywhere.

    A word that is in a share p of all chunks tells ln(1 / p). Words are taken as independent, so
    the sum is the logarithm of how many chunks it takes to meet them all by chance.
    """
    wanted = {chunk_id for relevant in labels.relevant.values() for chunk_id in relevant}
    frequency: Counter[str] = Counter()
    words: dict[str, set[str]] = {}
    for chunk_id, text in texts.items():
        own = _words(text)
        frequency.update(own)
        if chunk_id in wanted:
            words[chunk_id] = own
    for query_id, relevant in labels.relevant.items():
        asked = _words(labels.query[query_id] or "")
        answer = _words(labels.answer[query_id] or "")
        asked |= answer - _YES_NO
        for chunk_id in relevant:
            if not words.get(chunk_id):
                continue
            shared = asked & words[chunk_id]
            weight = sum(max(0.0, math.log(len(texts) / (1 + frequency[word]))) for word in shared)
            if weight < math.log(CHANCE):
                named = ", ".join(sorted(shared, key=lambda word: (frequency[word], word))[:5])
                common = f"only {named}" if named else "no word"
                detail = f"shares {common} with question and answer: {_quoted(texts[chunk_id])}"
                yield Finding("unrelated_label", query_id, chunk_id, detail)


# -- with results ---------------------------------------------------------------------------------


def _suspected(results: Results, labels: _Labels) -> Iterator[Finding]:
    frame = results.frame
    doubted = frame.loc[frame["suspect_label"].fillna(False).to_numpy(dtype=bool), "query_id"]
    for query_id in plain_list(doubted):
        for chunk_id in labels.relevant.get(query_id, ()):
            detail = f"{results.name} answered correctly and grounded, without any relevant chunk"
            yield Finding("suspect_label", query_id, chunk_id, detail)


def _elsewhere(results: Results, labels: _Labels, texts: Mapping[str, str]) -> Iterator[Finding]:
    """Find questions whose answer stands, word for word, in a chunk without a label alone."""
    chunks = results.chunks
    came: dict[str, dict[str, str]] = defaultdict(dict)
    for query_id, chunk_id, text in zip(
        *(plain_list(chunks[name]) for name in ("query_id", "chunk_id", "text")), strict=True
    ):
        came[query_id].setdefault(chunk_id, texts.get(chunk_id) or text or "")
    for query_id, relevant in labels.relevant.items():
        wanted = _spaced(labels.answer[query_id] or "")
        n_words = len(wanted.split())
        if not relevant or not 0 < n_words <= MAX_ANSWER_WORDS or wanted.strip() in _YES_NO:
            continue
        own = [texts.get(each) or came[query_id].get(each) for each in relevant]
        if None in own or any(wanted in _spaced(text or "") for text in own):
            continue
        with_answer = (each for each, text in came[query_id].items() if wanted in _spaced(text))
        found = next((each for each in with_answer if (query_id, each) not in labels.judged), None)
        if found is not None:
            answer = _quoted(labels.answer[query_id] or "")
            detail = f"{answer} is in this chunk, and in none of the relevant ones"
            yield Finding("answer_elsewhere", query_id, found, detail)


def _spaced(text: str) -> str:
    """Return the words of a text in lower case, with a space around each."""
    return f" {' '.join(_WORD.findall(text.lower()))} "


def _duplicates(
    labels: _Labels, texts: Mapping[str, str], seen: Sequence[Results]
) -> Iterator[Finding]:
    """Find chunks that nearly repeat a relevant one without a label of their own.

    With results these are chunks that were retrieved for the question and counted as misses,
    without results all of the corpus.
    """
    known: dict[str, str] = dict(texts)
    retrieved: dict[str, set[str]] = defaultdict(set)
    for results in seen:
        chunks = results.chunks
        for query_id, chunk_id, text in zip(
            *(plain_list(chunks[name]) for name in ("query_id", "chunk_id", "text")), strict=True
        ):
            retrieved[query_id].add(chunk_id)
            if text:
                known.setdefault(chunk_id, text)
    queries_of: dict[str, list[str]] = defaultdict(list)
    for query_id, relevant in labels.relevant.items():
        for chunk_id in relevant:
            queries_of[chunk_id].append(query_id)
    for original, copy, share in _alike({each: known.get(each, "") for each in queries_of}, known):
        for query_id in queries_of[original]:
            if (query_id, copy) in labels.judged or (seen and copy not in retrieved[query_id]):
                continue
            what = "was retrieved and counted as a miss" if seen else "is in the corpus"
            detail = f"{share:.0%} of it is in the relevant {original!r}; it {what}"
            yield Finding("unlabelled_duplicate", query_id, copy, detail)


def _runs(text: str) -> set[int]:
    words = _WORD.findall(text.lower())
    return {hash(tuple(words[at : at + RUN])) for at in range(len(words) - RUN + 1)}


def _alike(
    originals: Mapping[str, str], known: Mapping[str, str]
) -> Iterator[tuple[str, str, float]]:
    """Yield an original, another chunk, and the share of the shorter that is in both."""
    runs_of = {each: _runs(text) for each, text in originals.items()}
    holders: dict[int, list[str]] = defaultdict(list)
    for original, runs in runs_of.items():
        if len(runs) >= MIN_RUNS:
            for run in runs:
                holders[run].append(original)
    for chunk_id, text in known.items():
        runs = _runs(text)
        if len(runs) < MIN_RUNS:
            continue
        shared: Counter[str] = Counter()
        for run in runs:
            held = holders.get(run, ())
            if len(held) <= MAX_SHARING:
                shared.update(held)
        for original, count in shared.items():
            share = count / min(len(runs), len(runs_of[original]))
            if original != chunk_id and share >= DUPLICATE_SHARE:
                yield original, chunk_id, share
