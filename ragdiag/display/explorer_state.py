"""What an explorer shows and where it stands, without any widget: filters, search, order, place.

The state is changed by plain calls and knows nothing of who mirrors it, so that all of it can be
tested without a kernel or a browser.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from ragdiag.display.blocks import View
from ragdiag.display.clean import fit, shorten
from ragdiag.display.numbers import is_missing
from ragdiag.display.views import TEXT_LIMIT, pair, query
from ragdiag.display.views.common import category_order
from ragdiag.recording import Run
from ragdiag.schema import RESERVED_COLUMNS, RESERVED_PREFIXES

if TYPE_CHECKING:
    from ragdiag.comparison import Comparison
    from ragdiag.results import Results

__all__ = ["Choice", "ComparisonState", "ExplorerState", "ResultsState", "state_of"]

T = TypeVar("T")
Bools = npt.NDArray[np.bool_]

#: Values of a metadata column that a drop-down still lists, and how many columns get one.
MAX_VALUES = 40
MAX_METADATA = 4
#: Queries that the list shows at once; stepping beyond turns the page.
PAGE = 100
LABEL_COLUMNS = 46
MARKS = {"major": "!!", "warning": "!", "info": ""}
NOT_DIAGNOSED = "not diagnosed"
NONE = "none"
#: The one value of a category filter that stands for several.
FAILURES = "all failures"
PASS = "PASS"  # noqa: S105 - not a password


@dataclass(frozen=True)
class Choice:
    """A filter: the column it looks at, what it is called, its values with their counts."""

    column: str
    label: str
    options: tuple[tuple[str, int], ...]


class ExplorerState(Generic[T]):
    """Filters, search, order and place over the queries of one object.

    Parameters
    ----------
    obj : Results or Comparison
        What is explored.
    table : pandas.DataFrame
        One row a query: ``query_id, query, severity`` and the columns that filter, as text.
    choices : sequence of Choice
        The filters.
    orders : mapping of str to array of int
        Named orders of the rows; the first is used until another is chosen.

    Attributes
    ----------
    filters : dict of str to str
        Column → value, for the filters in use.
    search : str
        Words that a query's texts must all contain.
    order : str
        Name of the order.
    place : int
        Which of the matching queries is looked at.
    """

    def __init__(
        self,
        obj: T,
        table: pd.DataFrame,
        choices: Sequence[Choice],
        orders: Mapping[str, npt.NDArray[np.int64]],
    ) -> None:
        self.obj = obj
        self._table = table
        self.choices = tuple(choices)
        self.orders = dict(orders)
        self.filters: dict[str, str] = {}
        self.search = ""
        self.order = next(iter(self.orders))
        self.place = 0
        self._rows = self._find()

    # -- what to look at --------------------------------------------------------------------------

    def choose(self, column: str, value: str | None) -> None:
        """Set a filter, or lift it with None; the query looked at stays if it still matches."""
        if column not in {choice.column for choice in self.choices}:
            known = ", ".join(choice.column for choice in self.choices)
            raise KeyError(f"no filter {column!r}; there are {known}")
        kept = {name: chosen for name, chosen in self.filters.items() if name != column}
        self.filters = kept if value is None else {**kept, column: value}
        self._keep_place()

    def find(self, words: str) -> None:
        """Keep the queries whose question, answers or chunks contain all of `words`."""
        self.search = words
        self._keep_place()

    def sort(self, order: str) -> None:
        """Put the queries in another order and look at the first."""
        if order not in self.orders:
            raise KeyError(f"no order {order!r}; there are {', '.join(self.orders)}")
        self.order = order
        self._rows = self._find()
        self.place = 0

    def step(self, by: int) -> None:
        """Go `by` queries on, or back; the ends are ends."""
        self.place = min(max(self.place + by, 0), max(len(self) - 1, 0))

    def go_to(self, query_id: str) -> None:
        """Look at a query that matches."""
        ids = self.ids
        if query_id not in ids:
            raise KeyError(f"no query {query_id!r} among the {len(ids)} that match")
        self.place = ids.index(query_id)

    def _keep_place(self) -> None:
        current = self.current
        self._rows = self._find()
        ids = self.ids
        self.place = ids.index(current) if current in ids else 0

    def _find(self) -> npt.NDArray[np.int64]:
        rows = self.orders[self.order]
        return rows[self._mask()[rows]]

    def _mask(self) -> Bools:
        mask: Bools = np.ones(len(self._table), dtype=bool)
        for column, value in self.filters.items():
            found = self._table[column]
            mask &= (found != PASS) if value == FAILURES else (found == value)
        for word in self.search.casefold().split():
            hits = [word in text for text in self._haystack]
            mask &= np.array(hits, dtype=bool)
        return mask

    @cached_property
    def _haystack(self) -> list[str]:
        return self._texts()

    # -- what is seen -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def ids(self) -> list[str]:
        """Ids of the matching queries, in order."""
        ids: list[str] = self._table["query_id"].to_numpy()[self._rows].tolist()
        return ids

    @property
    def current(self) -> str | None:
        """Id of the query looked at; None when none matches."""
        if not len(self):
            return None
        return str(self._table["query_id"].to_numpy()[self._rows[self.place]])

    @property
    def counter(self) -> str:
        """How many of how many, in words."""
        return f"showing {len(self):,} of {len(self._table):,}"

    @property
    def position(self) -> str:
        """Where in the matching queries this is."""
        return f"{self.place + 1:,} of {len(self):,}" if len(self) else "none"

    @property
    def page(self) -> list[tuple[str, str]]:
        """Label and id of the queries on the page of the list that holds the current one."""
        start = self.place // PAGE * PAGE
        rows = self._rows[start : start + PAGE]
        part = self._table.iloc[rows]
        return [
            (_label(query_id, severity, question), query_id)
            for query_id, severity, question in zip(
                part["query_id"], part["severity"], part["query"], strict=True
            )
        ]

    @property
    def page_words(self) -> str:
        """Which part of the matching queries the list holds."""
        if len(self) <= PAGE:
            return ""
        start = self.place // PAGE * PAGE
        return f"list: {start + 1:,} to {min(start + PAGE, len(self)):,} of {len(self):,}"

    @property
    def selected(self) -> T:
        """The matching queries, as an object of the kind that is explored, in its own order."""
        mask = np.zeros(len(self._table), dtype=bool)
        mask[self._rows] = True
        return self._select(mask)

    def view(self) -> View | None:
        """Return what is shown of the query looked at."""
        return None if self.current is None else self._view(self.current)

    # -- what differs between the kinds -----------------------------------------------------------

    def _texts(self) -> list[str]:
        raise NotImplementedError

    def _select(self, mask: Bools) -> T:
        raise NotImplementedError

    def _view(self, query_id: str) -> View:
        raise NotImplementedError


def _label(query_id: str, severity: str, question: str) -> str:
    mark = MARKS.get(severity, "")
    return fit(f"{shorten(query_id, 20)} {mark:2} {shorten(question, 60)}", LABEL_COLUMNS)


def _as_text(column: pd.Series, missing: str) -> npt.NDArray[np.object_]:
    """Return a column as cleaned, short text, so that hostile values are values like others."""
    words = [missing if _missing(value) else shorten(value, 60) for value in column]
    return np.array(words, dtype=object)


def _missing(value: object) -> bool:
    return not isinstance(value, list | tuple | dict | set) and is_missing(value)


def _choice(table: pd.DataFrame, column: str, label: str, order: Sequence[str] = ()) -> Choice:
    counts = table[column].value_counts()
    names = [name for name in order if name in counts] or sorted(counts.index)
    return Choice(column, label, tuple((name, int(counts[name])) for name in names))


def _metadata(table: dict[str, Any], frame: pd.DataFrame) -> list[str]:
    """Add the user's own columns of few different values to `table` and name them."""
    found: list[str] = []
    for column in map(str, frame.columns):
        reserved = column in RESERVED_COLUMNS or column.startswith(RESERVED_PREFIXES)
        if reserved or column in table or len(found) == MAX_METADATA:
            continue
        values = frame[column]
        sample = values.dropna().head(200)
        if not all(isinstance(value, Hashable) for value in sample):
            continue
        words = _as_text(values, NONE)
        if 1 < len(set(words)) <= MAX_VALUES:
            table[column] = words
            found.append(column)
    return found


def _run_texts(frame: pd.DataFrame, run: Run) -> list[str]:
    """Return everything that can be searched of each query, in the rows' order."""
    texts: dict[str, list[str]] = {query_id: [] for query_id in frame["query_id"]}
    retrieved = run.retrieved
    for query_id, chunk_id, text in zip(
        retrieved["query_id"], retrieved["chunk_id"], retrieved["text"].fillna(""), strict=True
    ):
        if query_id in texts:
            texts[query_id] += (chunk_id, text)
    parts = [frame[name].fillna("") for name in ("query_id", "query", "answer", "expected_answer")]
    return ["\n".join((*row, *texts[row[0]])).casefold() for row in zip(*parts, strict=True)]


class ResultsState(ExplorerState["Results"]):
    """The state of ``results.explore()``."""

    def __init__(self, results: Results) -> None:
        frame = results.frame.reset_index(drop=True)
        table: dict[str, Any] = {
            "query_id": frame["query_id"].to_numpy(dtype=object),
            "query": frame["query"].to_numpy(dtype=object),
            "severity": frame["severity"].fillna("").to_numpy(dtype=object),
            "category": _as_text(frame["category"], NOT_DIAGNOSED),
            "query_type": _as_text(frame["query_type"], NONE),
        }
        own = _metadata(table, frame)
        rows = pd.DataFrame(table)
        category = _choice(rows, "category", "Category", category_order(rows["category"]))
        failed = int((rows["category"] != PASS).sum())
        category = Choice("category", "Category", ((FAILURES, failed), *category.options))
        choices = [category, _choice(rows, "query_type", "Type")]
        choices += [_choice(rows, column, shorten(column, 16)) for column in own]
        self._frame = frame
        super().__init__(results, rows, choices, _orders(results, frame))

    def _texts(self) -> list[str]:
        return _run_texts(self._frame, self.obj.run)

    def _select(self, mask: Bools) -> Results:
        return self.obj.select(mask)

    def _view(self, query_id: str) -> View:
        return query.view(self.obj[query_id], TEXT_LIMIT, conditions=False)


def _orders(results: Results, frame: pd.DataFrame) -> dict[str, npt.NDArray[np.int64]]:
    place = {query_id: row for row, query_id in enumerate(frame["query_id"])}
    failed = [place[query_id] for query_id in results.failures().query_ids]
    rest = np.setdiff1d(np.arange(len(frame)), np.array(failed, dtype=np.int64))
    recall = frame[f"recall_at_{results.k}"].to_numpy(dtype=float)
    slow = -frame["retrieval_ms"].to_numpy(dtype=float)
    return {
        "worst first": np.concatenate([np.array(failed, dtype=np.int64), rest]),
        "dataset order": np.arange(len(frame)),
        "lowest recall first": np.argsort(recall, kind="stable"),
        "slowest first": np.argsort(slow, kind="stable"),
    }


class ComparisonState(ExplorerState["Comparison"]):
    """The state of ``comparison.explore()``."""

    def __init__(self, comparison: Comparison) -> None:
        base = comparison.names.index(comparison.baseline)
        self._frames = [
            results.frame.set_index("query_id", drop=False).loc[list(comparison.query_ids)]
            for results in comparison.results
        ]
        frame = self._frames[base]
        self._outcomes = pair.outcome_of_each(comparison)
        table: dict[str, Any] = {
            "query_id": frame["query_id"].to_numpy(dtype=object),
            "query": frame["query"].to_numpy(dtype=object),
            "outcome": np.array([self._outcomes[i] for i in frame["query_id"]], dtype=object),
            "query_type": _as_text(frame["query_type"], NONE),
        }
        labels = {}
        for n, (name, side) in enumerate(zip(comparison.names, self._frames, strict=True)):
            table[f"category_{n}"] = _as_text(side["category"], NOT_DIAGNOSED)
            labels[f"category_{n}"] = shorten(name, 16)
        table["severity"] = self._frames[-1 - base]["severity"].fillna("").to_numpy(dtype=object)
        own = _metadata(table, frame)
        rows = pd.DataFrame(table)
        choices = [_choice(rows, "outcome", "Outcome", pair.OUTCOMES)]
        for column, label in labels.items():
            choices.append(_choice(rows, column, label, category_order(rows[column])))
        choices.append(_choice(rows, "query_type", "Type"))
        choices += [_choice(rows, column, shorten(column, 16)) for column in own]
        rank = rows["outcome"].map({name: n for n, name in enumerate(pair.OUTCOMES)})
        recall = f"recall_at_{comparison.k}"
        lost = self._frames[-1 - base][recall].to_numpy() - frame[recall].to_numpy()
        orders = {
            "regressed first": np.argsort(rank.to_numpy(), kind="stable"),
            "dataset order": np.arange(len(rows)),
            "largest recall loss first": np.argsort(lost.astype(float), kind="stable"),
        }
        super().__init__(comparison, rows, choices, orders)

    def _texts(self) -> list[str]:
        sides = [
            _run_texts(frame, results.run)
            for frame, results in zip(self._frames, self.obj.results, strict=True)
        ]
        return ["\n".join(texts) for texts in zip(*sides, strict=True)]

    def _select(self, mask: Bools) -> Comparison:
        return self.obj.select(mask)

    def _view(self, query_id: str) -> View:
        return pair.view(self.obj.sides(query_id), self._outcomes[query_id], TEXT_LIMIT)


def state_of(obj: Any) -> ExplorerState[Any]:
    """Return the state of an explorer of `obj`.

    Raises
    ------
    TypeError
        `obj` is neither results nor a comparison.
    """
    kinds = {kind.__name__ for kind in type(obj).__mro__}
    if "Results" in kinds:
        return ResultsState(obj)
    if "Comparison" in kinds:
        return ComparisonState(obj)
    raise TypeError(f"only Results and a Comparison can be explored, got {type(obj).__name__}")
