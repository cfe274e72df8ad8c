"""What a golden dataset must be: every rule, checked column by column, every fault reported.

Readers hand over a :class:`RawDataset`, whatever it holds; :func:`check` returns the two tables
a dataset consists of or raises one error that lists all that is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from ragdiag.cells import inferred_column, plain_list, shown, text_of
from ragdiag.errors import DatasetValidationError, SettingsError
from ragdiag.labels import grade_of, labels_of, passages_of
from ragdiag.schema import RESERVED_COLUMNS, RESERVED_PREFIXES, QueryType
from ragdiag.strict_json import Unusable, dotted, find_unstorable
from ragdiag.tables import COUNT, EVIDENCE, TEXT, as_table, storable_text

__all__ = ["CheckedDataset", "QueryTypes", "RawDataset", "check", "columns_of"]

QueryTypes = Sequence[str] | Literal["any"]

#: The fields of a sample that have a meaning; all others are the user's metadata.
FIELDS = (
    *("id", "query", "expected_answer", "relevant_chunk_ids", "query_type", "grades"),
    "evidence",
)

#: The id may also be called as the column of the tables is.
ID_ALIAS = "query_id"

#: So many faults are spelt out in the message; ``error.faults`` has them all.
FAULTS_SHOWN = 50

#: So many pairs of ids that differ only in case are named.
PAIRS_SHOWN = 10


@dataclass
class RawDataset:
    """What a reader found, before anything was checked.

    Attributes
    ----------
    source : str
        The file's name, or what else to call the source in a message.
    columns : dict of str to list or Series
        Values by field as found, None where a sample lacks the field; all of one length.
    where : callable
        Gives the place of the sample at a position: ``"samples[3], line 4"``.
    name, version, description, query_types
        Of the dataset; ``query_types`` are those the source itself declares.
    strict : bool
        Whether answer, type and a relevant id are required, and ids must be text.
    renaming : str
        The argument that renames fields, for remedies; empty where there is none.
    pairs : list of tuple, optional
        Labels kept apart from the samples: place, query id, chunk id, grade.
    faults : list of (int, str)
        Found while reading, with the sample's position (-1 for the file as a whole).
    warnings : list of str
        Doubts that do not stop the dataset from being used.
    """

    source: str
    columns: dict[str, Any]
    where: Callable[[int], str]
    name: Any
    version: Any = "unversioned"
    description: Any = None
    query_types: Any = ()
    strict: bool = False
    renaming: str = "rename"
    pairs: list[tuple[str, Any, Any, Any]] | None = None
    faults: list[tuple[int, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))


@dataclass(frozen=True)
class CheckedDataset:
    """A dataset that holds every rule; :class:`ragdiag.dataset.GoldenDataset` wraps it."""

    name: str
    version: str
    description: str | None
    query_types: tuple[str, ...]
    frame: pd.DataFrame
    qrels: pd.DataFrame
    warnings: tuple[str, ...]
    evidence: pd.DataFrame


def columns_of(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Turn records into columns, None where a record lacks a field.

    Examples
    --------
    >>> columns_of([{"id": "q1"}, {"id": "q2", "team": "billing"}])
    {'id': ['q1', 'q2'], 'team': [None, 'billing']}
    """
    names: dict[str, None] = {}
    for record in records:
        names.update(dict.fromkeys(record))
    return {name: [record.get(name) for record in records] for name in names} or {"id": []}


def check(
    raw: RawDataset,
    *,
    query_types: QueryTypes = (),
    rename: Mapping[str, str] | None = None,
) -> CheckedDataset:
    """Check everything and build the tables.

    Parameters
    ----------
    raw : RawDataset
        What was read.
    query_types : list of str or "any"
        Types allowed beside the standard ones and those the source declares.
    rename : mapping of str to str, optional
        Fields to rename first, from the source's name to ours.

    Raises
    ------
    DatasetValidationError
        Anything is at fault; ``faults`` lists all of it.
    SettingsError
        `query_types` is not a list of names or ``"any"``.
    """
    return _Check(raw, query_types, dict(rename or {})).run()


class _Check:
    """One pass over a raw dataset; a class only because every rule adds to the same list."""

    def __init__(self, raw: RawDataset, query_types: QueryTypes, rename: dict[str, str]) -> None:
        self.raw = raw
        self.strict = raw.strict
        self.faults = list(raw.faults)
        self.warnings = list(raw.warnings)
        self.asked_types = _asked_types(query_types)
        self.columns = self._renamed(rename)
        self.given_names = {ours: yours for yours, ours in rename.items()}
        self.ids: list[str | None] = []
        self.with_passages: set[int] = set()

    def run(self) -> CheckedDataset:
        name = self._header("name", required=True)
        version = self._header("version", required=True)
        description = self._header("description", required=False)
        if not len(self.raw) and not self.faults:
            self.fault(-1, "", "there is no sample in it; a dataset needs at least one")
        self._choose_id()
        self.ids = self._texts("id", required=True, numbers=not self.strict)
        self._distinct_ids()
        queries = self._texts("query", required=True)
        answers = self._texts("expected_answer", required=self.strict)
        types, declared = self._types()
        passages = self._passages()
        labels = self._labels() if self.raw.pairs is None else self._pairs(self.raw.pairs)
        metadata = self._metadata()
        if self.faults:
            raise _error(self.raw.source, self.faults)
        frame = pd.DataFrame(
            {
                "query_id": pd.Series(self.ids, dtype=TEXT),
                "query": pd.Series(queries, dtype=TEXT),
                "expected_answer": pd.Series(answers, dtype=TEXT),
                "query_type": pd.Series(types, dtype=TEXT),
                **{
                    name: values if isinstance(values, pd.Series) else inferred_column(values)
                    for name, values in metadata.items()
                },
            }
        )
        query_ids, chunk_ids, grades = zip(*labels, strict=True) if labels else ((), (), ())
        qrels = pd.DataFrame(
            {
                "query_id": pd.Series(query_ids, dtype=TEXT),
                "chunk_id": pd.Series(chunk_ids, dtype=TEXT),
                "grade": pd.Series(grades, dtype=COUNT),
            }
        )
        return CheckedDataset(
            name or "",
            version or "",
            description,
            declared,
            frame,
            qrels,
            tuple(self.warnings),
            as_table(pd.DataFrame(passages, columns=list(EVIDENCE)), EVIDENCE, name="evidence"),
        )

    # Reporting

    def fault(self, position: int, name: str, problem: str) -> None:
        """Note a fault of the sample at `position` (-1: of the dataset) in field `name`."""
        place = ""
        if position >= 0:
            place = self.raw.where(position)
            known = self.ids[position] if position < len(self.ids) else None
            place += f" (id {known!r})" if known is not None else ""
        yours = self.given_names.get(name)
        named = name if name.isprintable() else repr(name)
        named += f" (your {yours!r})" if yours else ""
        self.faults.append((position, ": ".join(part for part in (place, named, problem) if part)))

    # Fields

    def _renamed(self, rename: dict[str, str]) -> dict[str, Any]:
        columns = self.raw.columns
        for yours in rename:
            if yours not in columns:
                known = ", ".join(map(repr, columns))
                self.faults.append(
                    (-1, f"cannot rename {yours!r}: there is no such field; fields are {known}")
                )
        result: dict[str, Any] = {}
        for yours, values in columns.items():
            ours = rename.get(yours, yours)
            if ours in result:
                self.faults.append(
                    (-1, f"two fields would be called {ours!r}; rename or drop one of them")
                )
            result[ours] = values
        return result

    def _choose_id(self) -> None:
        if ID_ALIAS not in self.columns:
            return
        alias = self.columns.pop(ID_ALIAS)
        if "id" in self.columns:
            self.fault(
                -1,
                "",
                f"both 'id' and {ID_ALIAS!r} are given and either names the sample; "
                "rename or drop one of them",
            )
            return
        self.given_names.setdefault("id", ID_ALIAS)
        self.columns["id"] = alias

    def _texts(
        self, name: str, *, required: bool, numbers: bool = False, strip: bool = True
    ) -> list[str | None]:
        """Return the texts of a field; `numbers` lets whole numbers be ids."""
        if required and not self.strict and len(self.raw) and name not in self.columns:
            # In a table this is one fault and not one for each row.
            fields = ", ".join(map(repr, self.raw.columns))
            self.fault(
                -1,
                name,
                f"there is no such field; rename one of {fields}, as in {{'my_{name}': {name!r}}}",
            )
            return [None] * len(self.raw)
        result: list[str | None] = []
        for position, value in enumerate(self._values(name)):
            text, problem = text_of(value, numbers=numbers, strip=strip)
            result.append(text)
            if value is None and required:
                problem = f"is missing; every sample needs one{self._unless_lenient(name)}"
            if problem:
                self.fault(position, name, problem)
        return result

    def _values(self, name: str) -> list[Any]:
        """Return a field as Python objects; a field nobody gave is missing everywhere."""
        return plain_list(self.columns.get(name, [None] * len(self.raw)))

    def _unless_lenient(self, name: str) -> str:
        """Return the remedy for a field that only the strict format demands."""
        return "" if name in ("id", "query") else ", or load with strict=False"

    def _distinct_ids(self) -> None:
        first: dict[str, int] = {}
        folded: dict[str, str] = {}
        alike: list[str] = []
        for position, query_id in enumerate(self.ids):
            if query_id is None:
                continue
            if query_id in first:
                self.fault(
                    position,
                    "id",
                    f"{query_id!r} is already the id of {self.raw.where(first[query_id])}; "
                    "every sample needs its own",
                )
                continue
            first[query_id] = position
            other = folded.setdefault(query_id.casefold(), query_id)
            if other != query_id:
                alike.append(f"ids {other!r} and {query_id!r} differ only in case")
        self.warnings.extend(alike[:PAIRS_SHOWN])
        if len(alike) > PAIRS_SHOWN:
            self.warnings.append(f"{len(alike) - PAIRS_SHOWN:,} more ids differ only in case")

    def _types(self) -> tuple[list[str | None], tuple[str, ...]]:
        """Return the type of each sample and the types declared beside the standard ones."""
        # A type is one word of a list: no white space is forgiven.
        values = self._texts("query_type", required=self.strict, strip=False)
        declared = self._declared_types()
        standard = [kind.value for kind in QueryType]
        if self.asked_types is None:
            declared = [*declared, *(value for value in values if value is not None)]
        known = list(dict.fromkeys([*standard, *declared]))
        for position, value in enumerate(values):
            if value is not None and value not in known:
                self.fault(
                    position,
                    "query_type",
                    f"{shown(value)} is not one of {', '.join(known)}; "
                    "declare it in the dataset's query_types or pass query_types=",
                )
        return values, tuple(known[len(standard) :])

    def _declared_types(self) -> list[str]:
        own = self.raw.query_types
        if own is None:
            own = ()
        if isinstance(own, str) or not isinstance(own, Iterable):
            self.fault(-1, "query_types", f"must be a list of names, got {shown(own)}")
            own = ()
        for position, value in enumerate(own):
            if not isinstance(value, Unusable):
                problem = text_of(value)[1]
                if problem or value is None:
                    self.fault(-1, f"query_types[{position}]", problem or "must be text, got null")
        names = [str(value) for value in own if isinstance(value, str)]
        return [*names, *(self.asked_types or ())]

    # Labels

    def _passages(self) -> list[dict[str, Any]]:
        """Return each sample's passages of evidence with its id."""
        passages: list[dict[str, Any]] = []
        for position, given in enumerate(self._values("evidence")):
            found, faults = passages_of(given, numbers=not self.strict)
            for name, problem in faults:
                self.fault(position, name, problem)
            if found or faults:
                self.with_passages.add(position)
            passages.extend({"query_id": self.ids[position], **passage} for passage in found)
        return passages

    def _labels(self) -> list[tuple[str, str, int]]:
        """Return (query id, chunk id, grade) from each sample's own list."""
        pairs: list[tuple[str, str, int]] = []
        fields = zip(self._values("relevant_chunk_ids"), self._values("grades"), strict=True)
        for position, (given, graded) in enumerate(fields):
            found, faults = labels_of(given, graded, numbers=not self.strict)
            for name, problem in faults:
                self.fault(position, name, problem)
            unusable = faults or isinstance(given, Unusable) or position in self.with_passages
            if self.strict and not unusable and not any(grade >= 1 for grade in found.values()):
                name = "relevant_chunk_ids"
                remedy = self._unless_lenient(name)
                self.fault(
                    position, name, f"names no relevant chunk; every sample needs one{remedy}"
                )
            query_id = self.ids[position]
            if query_id is not None:
                pairs.extend((query_id, chunk_id, grade) for chunk_id, grade in found.items())
        return pairs

    def _pairs(self, pairs: list[tuple[str, Any, Any, Any]]) -> list[tuple[str, str, int]]:
        """Return the labels that came in a table of their own, in the order of the samples."""
        for name in ("relevant_chunk_ids", "grades"):
            if name in self.columns:
                self.fault(-1, name, "labels are given twice: in the samples and as qrels")
        known = {query_id: at for at, query_id in enumerate(self.ids) if query_id is not None}
        found: dict[tuple[int, str], int] = {}
        strangers: Counter[str] = Counter()
        for place, given_query, given_chunk, grade in pairs:
            query_id, query_problem = text_of(given_query, numbers=True)
            chunk_id, chunk_problem = text_of(given_chunk, numbers=True)
            number, grade_problem = grade_of(grade)
            if query_id is None:
                self.fault(-1, place, f"query_id: {query_problem or 'is missing'}")
            if chunk_id is None:
                self.fault(-1, place, f"chunk_id: {chunk_problem or 'is missing'}")
            if grade_problem:
                self.fault(-1, place, grade_problem)
            if query_id is None or chunk_id is None:
                continue
            if query_id not in known:
                strangers[query_id] += 1
                continue
            pair = (known[query_id], chunk_id)
            if pair in found:
                self.fault(-1, place, f"the pair {query_id!r}, {chunk_id!r} is given twice")
            found[pair] = number
        if strangers:
            self.warnings.append(
                f"{sum(strangers.values()):,} labels belong to {len(strangers):,} query ids that "
                f"no sample has, such as {min(strangers)!r}"
            )
        in_order = sorted(found.items(), key=lambda item: item[0][0])
        return [(self.ids[at] or "", chunk_id, grade) for (at, chunk_id), grade in in_order]

    # The rest

    def _header(self, name: str, *, required: bool) -> str | None:
        value = getattr(self.raw, name)
        text, problem = text_of(value)
        if name == "description" and isinstance(value, str) and not value.strip():
            return None
        if problem or (value is None and required):
            self.fault(-1, name, problem or "is missing")
        return text

    def _metadata(self) -> dict[str, Any]:
        """Return the user's own fields, checked: columns with a type of theirs, else lists."""
        result: dict[str, Any] = {}
        for name, values in self.columns.items():
            if name in FIELDS:
                continue
            self._metadata_name(name, values)
            if isinstance(values, pd.Series) and not _is_text_or_object(values.dtype):
                result[name] = values.reset_index(drop=True)
                continue
            result[name] = plain_list(values)
            self._check_metadata(name, result[name])
        return result

    def _metadata_name(self, name: str, values: Any) -> None:
        if text_of(name)[1]:
            self.fault(-1, "", f"a field is called {name!r}; give it a name that can be read")
        if name in RESERVED_COLUMNS or name.startswith(RESERVED_PREFIXES):
            remedy = f"{{{name!r}: 'my_{name}'}}"
            filled = [at for at, value in enumerate(plain_list(values)) if value is not None]
            self.fault(
                filled[0] if filled else -1,
                name,
                "the results have a column of this name, so a field of yours cannot; "
                + (
                    f"pass {self.raw.renaming}={remedy}"
                    if self.raw.renaming
                    else "call it otherwise"
                ),
            )

    def _check_metadata(self, name: str, values: list[Any]) -> None:
        for position, value in enumerate(values):
            # Nearly every value is a short ASCII text or a number.
            if isinstance(value, str) and value.isascii():
                continue
            if isinstance(value, str | list | tuple | dict):
                problem = find_unstorable(value)
                if problem:
                    self.fault(
                        position, dotted((name, *problem.path)), f"{problem.text}; remove it"
                    )


def _is_text_or_object(dtype: Any) -> bool:
    """Tell whether a dtype says too little about its values, or says it in one of several ways."""
    return isinstance(dtype, pd.StringDtype) or bool(pd.api.types.is_object_dtype(dtype))


def _error(source: str, faults: list[tuple[int, str]]) -> DatasetValidationError:
    ordered = [text for _, text in sorted(faults, key=lambda fault: fault[0])]
    count = f"{len(ordered):,} fault{'s' if len(ordered) > 1 else ''}"
    lines = [
        f"{storable_text(source)}: {count}",
        *(f"  - {text}" for text in ordered[:FAULTS_SHOWN]),
    ]
    if len(ordered) > FAULTS_SHOWN:
        lines.append(f"  ... and {len(ordered) - FAULTS_SHOWN:,} more; error.faults lists them all")
    return DatasetValidationError("\n".join(lines), ordered)


def _asked_types(query_types: QueryTypes) -> list[str] | None:
    """Return the types a caller declares, None for "any"."""
    if query_types == "any":
        return None
    if isinstance(query_types, str) or not isinstance(query_types, Iterable):
        hint = f"; write [{query_types!r}]" if isinstance(query_types, str) else ""
        raise SettingsError(
            f"query_types must be a list of names or 'any', got {query_types!r}{hint}"
        )
    names = list(query_types)
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise SettingsError(f"query_types: a name must be text, got {name!r}")
    return [str(name) for name in names]
