"""What a comparison can prove: the part of ``Comparison`` that weighs its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pandas as pd

from ragdiag.changes import changes_of
from ragdiag.contrasts import PRIMARY, Labels
from ragdiag.errors import ComparisonError, SettingsError
from ragdiag.gate import GateResult, Thresholds, check
from ragdiag.inference import Inference, infer
from ragdiag.permutation import DRAWS, MarginalHomogeneity
from ragdiag.slices import homogeneity, latency_percentiles, slice_evidence
from ragdiag.statistics import Plan
from ragdiag.sweeps import DEPTHS
from ragdiag.tables import TEXT, guarded

if TYPE_CHECKING:
    from ragdiag.pairing import Pair, Side
    from ragdiag.results import Results

__all__ = ["GROUP_COLUMN", "Proven"]

#: A metadata column of this name says which queries belong together.
GROUP_COLUMN = "group"
#: Asks for clusters of queries that share a relevant chunk.
DOCUMENTS = "documents"

Pairs = Literal["baseline", "all"]


class Proven:
    """Evidence, verdict and plans of a comparison; nothing here calls a pipeline or a judge."""

    names: tuple[str, ...]
    quality_tolerance: float
    results: tuple[Results, ...]
    _base: int

    def _of(self, results: Sequence[Results], **changes: Any) -> Self:
        """Return a comparison of other results with the same options."""
        raise NotImplementedError

    @property
    def _sides(self) -> tuple[Side, ...]:
        """All sides on the same rows."""
        raise NotImplementedError

    @property
    def _pairs(self) -> tuple[Pair, ...]:
        """The baseline with each of the others."""
        raise NotImplementedError

    @cached_property
    def inference(self) -> Inference:
        """What the paired queries prove at the usual levels, the baseline against the others."""
        return self.infer()

    def infer(
        self,
        *,
        pairs: Pairs = "baseline",
        alpha: float = 0.05,
        tolerance: float | None = None,
        min_effect: float = 0.05,
        power: float = 0.8,
        latency_tolerance: float = 0.05,
        cluster: str | None = None,
        draws: int = DRAWS,
        seed: int = 0,
    ) -> Inference:
        """Weigh the differences with other levels, clusters or pairs than :attr:`inference`.

        Parameters
        ----------
        pairs : {"baseline", "all"}
            The baseline against each of the others, or every pair.
        alpha : float
            Chance of naming any winner where none is better, over all pairs and primary measures
            (recall, MRR, groundedness, correctness).
        tolerance : float, optional
            Differences within ± this are equivalent; the comparison's ``quality_tolerance`` by
            default.
        min_effect : float
            The smallest difference worth showing: needed queries are planned for it.
        power : float
            Chance of showing a true difference of `min_effect`.
        latency_tolerance : float
            Times within a factor of 1 + this are equivalent.
        cluster : str, optional
            Column of metadata whose equal values mark queries that are not independent, or
            ``"documents"`` for queries that share a relevant chunk. A metadata column ``group``
            is used unless another is named.
        draws, seed : int
            Of random sign patterns, where the exact distribution is too dear.

        Raises
        ------
        ComparisonError
            There is no such column.
        SettingsError
            A level makes no sense.
        """
        plan = Plan(
            alpha=alpha,
            tolerance=self.quality_tolerance if tolerance is None else tolerance,
            latency_tolerance=latency_tolerance,
            min_effect=min_effect,
            power=power,
            draws=draws,
            seed=seed,
        )
        if pairs not in ("baseline", "all"):
            raise ComparisonError(f"pairs must be 'baseline' or 'all', got {pairs!r}")
        sides = self._sides
        others = [place for place in range(len(sides)) if place != self._base]
        chosen = (
            [(self._base, place) for place in others]
            if pairs == "baseline"
            else list(combinations([self._base, *others], 2))
        )
        return infer(
            [side.frame for side in sides],
            self.names,
            k=self._pairs[0].k,
            pairs=chosen,
            clusters=self._clusters(cluster),
            categories=sides[self._base].results.category_order,
            plan=plan,
        )

    def _clusters(self, cluster: str | None) -> pd.Series | Labels | None:
        """Return the label of each query's cluster."""
        side = self._sides[self._base]
        if cluster is None:
            return side.frame.get(GROUP_COLUMN)
        if cluster in side.frame:
            return side.frame[cluster]
        if cluster == DOCUMENTS:
            expected = side.results.expected
            return _connected(side.frame["query_id"], expected["query_id"], expected["chunk_id"])
        raise ComparisonError(
            f"there is no column {cluster!r} to cluster by; name a metadata column or {DOCUMENTS!r}"
        )

    @property
    def evidence(self) -> pd.DataFrame:
        """One row a pipeline and measure, see :attr:`Inference.table`.

        ``pipeline, against, measure, family, scale, baseline, value, difference, low, high,
        p_value, p_corrected`` (Holm), ``p_worst_case`` (had every missing value gone against it),
        ``p_equivalence, effect_size, wins, ties, losses, n_paired, n_missing,
        n_missing_baseline, n_missing_value, bound_low, bound_high, n_needed, method, verdict,
        note``. Verdicts are "better", "worse", "equivalent", "undecided", "too few queries" and
        "not measured".
        """
        return guarded(self.inference.table)

    @property
    def verdict(self) -> str:
        """Name of the winner where the evidence holds, else the word for what it is.

        "trade-off", "equivalent", "undecided", "too few queries" or "not measured". With more than
        two pipelines the winner is better than every other, tested over all pairs.
        """
        if len(self.names) == 2:
            found = self.inference.verdicts[0]
            return found.winner or found.word
        everyone = self.infer(pairs="all")
        words = {each.word for each in everyone.verdicts}
        return everyone.winner or (words.pop() if len(words) == 1 else "undecided")

    @property
    def sentence(self) -> str:
        """What is known, in one sentence without a full stop; headline, plots, reports show it."""
        return self.inference.sentence

    @property
    def headline(self) -> str:
        """The sentence with its full stop."""
        return f"{self.sentence}."

    def power(self, delta: float = 0.05, **levels: Any) -> pd.DataFrame:
        """Return what these queries can show, and how many would show a difference of `delta`.

        Parameters
        ----------
        delta : float
            The difference worth showing; what was observed plays no part.
        **levels
            Those of :meth:`infer`.

        Returns
        -------
        pandas.DataFrame
            See :meth:`Inference.power`; :func:`ragdiag.sample_size` plans without any data.
        """
        return self.infer(**levels).power(delta)

    def ranking(self, **levels: Any) -> pd.DataFrame:
        """Return the pipelines, best first, by what every pair of them proves.

        Parameters
        ----------
        **levels
            Those of :meth:`infer` but `pairs`.

        Returns
        -------
        pandas.DataFrame
            ``rank`` (1 for each that no other is proven to beat), ``pipeline``, ``wins, ties,
            losses`` against the others (a tie is everything that is not proven), and the mean of
            each primary measure over the queries it has a value for.
        """
        everyone = self.infer(pairs="all", **levels)
        rows = []
        primary = [name.format(k=self._pairs[0].k) for name in PRIMARY]
        for side in self._sides:
            met = [each for each in everyone.verdicts if side.name in (each.a, each.b)]
            wins = sum(each.winner == side.name for each in met)
            losses = sum(each.winner not in (None, side.name) for each in met)
            means = side.results.summary().set_index("measure")["value"]
            rows.append(
                {
                    "rank": losses + 1,
                    "pipeline": side.name,
                    "wins": wins,
                    "ties": len(met) - wins - losses,
                    "losses": losses,
                    **{name: float(means.get(name, np.nan)) for name in primary},
                }
            )
        table = pd.DataFrame(rows).astype({"pipeline": TEXT})
        table["mean"] = table[primary].mean(axis=1)
        table = table.sort_values(
            ["losses", "wins", "mean"], ascending=[True, False, False], kind="stable"
        )
        return table.drop(columns="mean").reset_index(drop=True)

    def slices(self, column: str = "query_type", **levels: Any) -> pd.DataFrame:
        """Return the evidence for each value of a column: exploratory, all cells corrected.

        Parameters
        ----------
        column : str
            ``query_type``, a metadata column, or any other of the baseline's frame.
        **levels
            Those of :meth:`infer` but `pairs`.

        Returns
        -------
        pandas.DataFrame
            ``pipeline, slice, n_queries``, then the columns of :attr:`evidence`; the primary
            measures and the pass rate. Many looks at the same queries: follow up, do not conclude.

        Raises
        ------
        ComparisonError
            There is no such column.
        """
        base = self._sides[self._base]
        if column not in base.frame:
            raise ComparisonError(
                f"there is no column {column!r}; there are {', '.join(map(str, base.frame))}"
            )
        clusters = self._clusters(levels.pop("cluster", None))
        levels.setdefault("tolerance", self.quality_tolerance)
        tables = []
        for pair in self._pairs:
            table = slice_evidence(
                base.frame,
                pair.b.frame,
                base.frame[column],
                k=pair.k,
                clusters=clusters,
                plan=Plan(**levels),
            )
            table.insert(0, "pipeline", pd.Series(pair.b.name, index=table.index, dtype=TEXT))
            tables.append(table)
        return pd.concat(tables, ignore_index=True)

    @property
    def changes(self) -> pd.DataFrame:
        """Every query that improved or regressed, and why: "chunk doc_12 came up from rank 7 to 2".

        ``query_id, outcome, category_a, category_b, why``; with more than two sides there is a
        first column ``pipeline``.
        """
        tables = []
        for pair in self._pairs:
            table = changes_of(pair)
            if len(self._pairs) > 1:
                table.insert(0, "pipeline", pd.Series(pair.b.name, index=table.index, dtype=TEXT))
            tables.append(table)
        return pd.concat(tables)

    def transitions_test(
        self, pipeline: str | None = None, *, cluster: str | None = None, seed: int = 0
    ) -> MarginalHomogeneity:
        """Test whether the categories have the same shares on both sides.

        Parameters
        ----------
        pipeline : str, optional
            The side that stands for B, needed with more than two.
        cluster : str, optional
            As for :meth:`infer`.
        seed : int
            Of random flips.

        Returns
        -------
        MarginalHomogeneity
            Stuart–Maxwell's statistic with a p-value that holds for sparse tables, too.
        """
        pair = self._pair_of(pipeline)
        return homogeneity(
            pair.a.frame["category"],
            pair.b.frame["category"],
            self._clusters(cluster),
            plan=Plan(seed=seed),
        )

    def gate(
        self, *, pipeline: str | None = None, alpha: float = 0.05, **thresholds: Any
    ) -> GateResult:
        """Check whether a pipeline may replace the baseline.

        Parameters
        ----------
        pipeline : str, optional
            The candidate, needed with more than two sides.
        alpha : float
            Level of the test behind ``no_worse``.
        **thresholds
            Those of :class:`ragdiag.gate.Thresholds`: ``max_regressed, max_failed, min_recall,
            min_mrr, min_groundedness, min_correctness, min_pass_rate, max_p95_ms, max_drop,
            no_new, no_worse, allow_missing``. Without any, the gate fails where a primary measure
            is proven worse.

        Returns
        -------
        GateResult
            True in a condition if the gate passed; ``reasons``, ``to_markdown()``, ``to_junit()``.

        Raises
        ------
        SettingsError
            There is no such threshold, or one makes no sense.

        Examples
        --------
        ``comparison.gate(max_regressed=2, min_recall=0.8, no_new="WRONG_CHUNK_RETRIEVED")``
        """
        known = {each.name for each in fields(Thresholds)}
        unknown = sorted(set(thresholds) - known)
        if unknown:
            raise SettingsError(
                f"there is no threshold {unknown[0]!r}; there are {', '.join(sorted(known))}"
            )
        pair = self._pair_of(pipeline)
        inference = infer(
            [pair.a.frame, pair.b.frame],
            (pair.a.name, pair.b.name),
            k=pair.k,
            clusters=self._clusters(None),
            categories=pair.a.results.category_order,
            plan=Plan(alpha=alpha, tolerance=self.quality_tolerance),
        )
        return check(pair, inference, Thresholds(**thresholds))

    def _pair_of(self, pipeline: str | None) -> Pair:
        """Return the baseline's pair with `pipeline`, or the only one."""
        pairs = [pair for pair in self._pairs if pipeline in (None, pair.b.name)]
        if len(pairs) != 1:
            others = ", ".join(repr(pair.b.name) for pair in self._pairs)
            raise ComparisonError(f"pipeline must be one of {others}, got {pipeline!r}")
        return pairs[0]

    def at_k(self, ks: Iterable[int] = DEPTHS, **levels: Any) -> pd.DataFrame:
        """Return the evidence at several depths, from one recording of each pipeline.

        Parameters
        ----------
        ks : iterable of int
            Depths.
        **levels
            Those of :meth:`infer`.

        Returns
        -------
        pandas.DataFrame
            A first column ``k``, then those of :attr:`evidence`, corrected at each depth by
            itself: one depth is to be chosen before looking.
        """
        tables = []
        for k in ks:
            deeper = self._of([results.rediagnose(k=k) for results in self.results])
            table = guarded(deeper.infer(**levels).table)
            table.insert(0, "k", k)
            tables.append(table)
        if not tables:
            raise SettingsError("no k was given")
        return pd.concat(tables, ignore_index=True)

    def latency(
        self, stage: Literal["retrieval", "generation", "total"] = "retrieval"
    ) -> pd.DataFrame:
        """Return p50, p95 and p99 of each side with intervals, over queries that all answered.

        Parameters
        ----------
        stage : {"retrieval", "generation", "total"}
            Which milliseconds.

        Returns
        -------
        pandas.DataFrame
            ``pipeline, percentile, value, low, high, n``; the 99th needs 100 queries.
        """
        return latency_percentiles(
            [side.frame for side in self._sides],
            self.names,
            column=f"{stage}_ms",
            clusters=self._clusters(None),
        )


def _connected(query_ids: pd.Series, owners: pd.Series, chunks: pd.Series) -> Labels:
    """Return one label a query, equal where queries share a chunk, if only through others."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows = pd.Index(query_ids).get_indexer(pd.Index(owners))
    columns = pd.factorize(chunks)[0]
    known = rows >= 0
    n, m = len(query_ids), int(columns.max(initial=-1)) + 1
    graph = coo_array(
        (np.ones(int(known.sum())), (rows[known], n + columns[known])), shape=(n + m, n + m)
    )
    labels = connected_components(graph, directed=False)[1]
    return labels[:n].astype(np.int64)
