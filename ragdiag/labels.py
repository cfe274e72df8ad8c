"""The labels of a sample as people write them: lists of chunk ids, with grades or without.

Other ways to say what is relevant (verbatim passages, spans of a document) belong here as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ragdiag.cells import shown, text_of, whole_of
from ragdiag.strict_json import Unusable

__all__ = ["grade_of", "labels_of"]

LIST_EXAMPLE = '["chunk-1", "chunk-2"]'
ITEM_EXAMPLE = '{"id": ..., "grade": ...}'

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
