"""The labels of a sample as people write them: lists of chunk ids, and passages of evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ragdiag.cells import shown, text_of, whole_of
from ragdiag.strict_json import Unusable

__all__ = ["grade_of", "labels_of", "passages_of"]

LIST_EXAMPLE = '["chunk-1", "chunk-2"]'
ITEM_EXAMPLE = '{"id": ..., "grade": ...}'

PASSAGE_EXAMPLE = '{"document": ..., "start": ..., "end": ...}'

#: The fields a passage can have.
PASSAGE_FIELDS = ("document", "start", "end", "text")

#: Field and problem.
Fault = tuple[str, str]


def labels_of(given: Any, graded: Any, *, numbers: bool) -> tuple[dict[str, int], list[Fault]]:
    """Return the grade of each chunk id a sample names, and all that is wrong with them.

    Parameters
    ----------
    given : object
        The field ``relevant_chunk_ids``: a list of ids or ``{"id", "grade"}``; None for no labels.
    graded : object
        The field ``grades``: grades by chunk id, where they are not in the list itself.
    numbers : bool
        Whether whole numbers are taken as ids.

    Examples
    --------
    >>> labels_of(["c1", {"id": "c2", "grade": 2}], None, numbers=False)
    ({'c1': 1, 'c2': 2}, [])
    >>> labels_of(["c1", "c1 "], None, numbers=False)[1]
    [('relevant_chunk_ids[1]', "repeats 'c1'; name it once")]
    """
    field = "relevant_chunk_ids"
    faults: list[Fault] = []
    grades: dict[str, Any] = {}
    if isinstance(graded, Mapping):
        grades = {str(key).strip(): grade for key, grade in graded.items()}
    elif graded is not None and not isinstance(graded, Unusable):
        faults.append(("grades", f"must be an object, got {shown(graded)}"))
    if given is None or isinstance(given, Unusable):
        items: Any = []
    elif isinstance(given, np.ndarray):
        items = given.tolist()
    else:
        items = sorted(given, key=str) if isinstance(given, set | frozenset) else given
    if not isinstance(items, list | tuple):
        return {}, [(field, f"must be a list such as {LIST_EXAMPLE}, got {shown(given)}"), *faults]
    result: dict[str, int] = {}
    for at, item in enumerate(items):
        place = f"{field}[{at}]"
        value, grade = item, None
        if isinstance(item, Mapping):
            if set(item) - {"id", "grade"} or "id" not in item:
                wanted = f"must be an id or {ITEM_EXAMPLE}"
                faults.append((place, f"{wanted}, got {shown(dict(item))}"))
                continue
            value, grade = item["id"], item.get("grade")
        chunk_id, problem = text_of(value, numbers=numbers)
        if value is None:
            problem = "must be text, got None"
        if problem:
            faults.append((place, problem))
        if chunk_id is None:
            continue
        if chunk_id in result:
            faults.append((place, f"repeats {shown(chunk_id)}; name it once"))
        number, problem = grade_of(grades.get(chunk_id) if grade is None else grade)
        if problem:
            faults.append((place, problem))
        result[chunk_id] = number
    faults.extend(
        ("grades", f"{shown(chunk_id)} is not among the {field}")
        for chunk_id in grades
        if chunk_id not in result
    )
    return result, faults


def grade_of(value: Any) -> tuple[int, str | None]:
    """Return a grade, 1 where none is given, and what is wrong with it.

    Examples
    --------
    >>> grade_of(None), grade_of(2)
    ((1, None), (2, None))
    >>> grade_of("high")
    (1, "grade must be a whole number, got 'high'")
    """
    if value is None or isinstance(value, Unusable):
        return 1, None
    number = whole_of(value)
    if number is None:
        return 1, f"grade must be a whole number, got {shown(value)}"
    return number, None


def passages_of(given: Any, *, numbers: bool) -> tuple[list[dict[str, Any]], list[Fault]]:
    """Return the passages a sample names as evidence, and all that is wrong with them.

    Parameters
    ----------
    given : object
        The field ``evidence``: a list of verbatim texts or of ``{"document", "start", "end"}``
        with or without ``"text"``, or one of these alone; None for no evidence.
    numbers : bool
        Whether a whole number is taken as the name of a document.

    Returns
    -------
    passages : list of dict
        Each with ``document, start, end, text``, None where not given.
    faults : list of (field, problem)

    Examples
    --------
    >>> passages_of(["Refunds take seven days."], numbers=False)[0]
    [{'document': None, 'start': None, 'end': None, 'text': 'Refunds take seven days.'}]
    >>> passages_of([{"document": "terms", "start": 9, "end": 4}], numbers=False)[1]
    [('evidence[0]', 'end must be greater than start, got start 9 and end 4')]
    """
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if given is None or isinstance(given, Unusable):
        return [], []
    items = [given] if isinstance(given, str | Mapping) else given
    if not isinstance(items, list | tuple):
        wanted = f"must be a list of texts or of {PASSAGE_EXAMPLE}"
        return [], [("evidence", f"{wanted}, got {shown(given)}")]
    passages: list[dict[str, Any]] = []
    faults: list[Fault] = []
    for at, item in enumerate(items):
        passage, problem = _passage(item, numbers)
        if problem:
            faults.append((f"evidence[{at}]", problem))
        elif passage in passages:
            faults.append((f"evidence[{at}]", "repeats a passage; name it once"))
        passages.append(passage)
    return passages, faults


def _passage(item: Any, numbers: bool) -> tuple[dict[str, Any], str | None]:
    """Return one passage and the first thing that is wrong with it."""
    passage: dict[str, Any] = dict.fromkeys(PASSAGE_FIELDS)
    if isinstance(item, str):
        item = {"text": item}
    # Fields that are None are not given: so a table of structs has them.
    fields = {k: v for k, v in item.items() if v is not None} if isinstance(item, Mapping) else {}
    if not fields or set(fields) - set(PASSAGE_FIELDS):
        return passage, f"must be a text or {PASSAGE_EXAMPLE}, got {shown(item)}"
    text = fields.get("text")
    if text is not None:
        # A span says how long the text is, white space included.
        text, problem = text_of(text, strip="start" not in fields)
        if problem:
            return passage, f"text {problem}"
    place = [name for name in PASSAGE_FIELDS[:3] if name in fields]
    passage["text"] = text
    if not place:
        return passage, None
    if len(place) < 3:
        absent = next(name for name in PASSAGE_FIELDS[:3] if name not in fields)
        return passage, f"{absent} is missing; a place is {PASSAGE_EXAMPLE}"
    passage["document"], problem = text_of(fields["document"], numbers=numbers)
    if problem:
        return passage, f"document {problem}"
    for name in ("start", "end"):
        passage[name] = whole_of(fields[name])
        if passage[name] is None or passage[name] < 0:
            return passage, f"{name} must be a whole number from 0 on, got {shown(fields[name])}"
    start, end = passage["start"], passage["end"]
    if end <= start:
        return passage, f"end must be greater than start, got start {start} and end {end}"
    if text is not None and len(text) != end - start:
        return passage, (
            f"the text has {len(text):,} characters and the place {end - start:,}; offsets count "
            "the characters of the document"
        )
    return passage, None
