"""Paired tests that hold at any number of queries: sign flips, McNemar, marginal homogeneity, Holm.

If two pipelines are equally good, each query's difference might as well have had the other sign.
The tests here count how many of all the sign patterns give a total at least as far from zero as
the one observed. Whatever is cheapest is used, and the exact answer is often the cheapest:

* all differences of one size: a binomial tail (for pass / fail this *is* the exact McNemar test);
* at most ``ENUMERATED`` non-zero differences: full enumeration, by meeting in the middle;
* differences on a lattice (recall, reciprocal rank, grades): the distribution of the total by FFT;
* else seeded random sign patterns, p = (b + 1) / (m + 1) (Phipson & Smyth 2010).

Nothing depends on the order of the queries, and swapping the pipelines changes no p-value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "DRAWS",
    "MarginalHomogeneity",
    "SignFlipTest",
    "cluster_sums",
    "holm",
    "marginal_homogeneity",
    "mcnemar_exact",
    "sign_flip_test",
]

Floats = NDArray[np.float64]

#: Random sign patterns where the exact distribution would cost more.
DRAWS = 10_000
#: Differences closer than this are the same value; 1/3 - 1/2 and -1/6 must tie.
DECIMALS = 10
#: Up to so many non-zero differences all 2^n patterns are enumerated (2 * 2^(n/2) sums).
ENUMERATED = 28
#: Differences are looked for on lattices of fractions with denominators up to this.
MAX_DENOMINATOR = 420
#: A lattice finer than this is no use.
MAX_LATTICE = 1_000_000
#: A lattice point costs about as much as this many table look-ups of a random draw.
POINT_COST = 3.0
#: Values of a characteristic function below this do not show in a p-value.
NEGLIGIBLE = 1e-20
#: A binomial draw costs about as much as this many look-ups of a random byte.
BINOMIAL_COST = 20
#: Byte columns of random signs that are drawn at a time, so that memory stays bounded.
BLOCK = 256


@dataclass(frozen=True, slots=True)
class SignFlipTest:
    """Outcome of a paired sign-flip test.

    Attributes
    ----------
    p_value : float
        Two-sided.
    smallest_p : float
        The smallest p-value that any sign pattern of these differences could have reached,
        2^(1 - n_nonzero); 1.0 when nothing differs.
    n_units : int
        How many differences could be flipped: queries, or whole clusters.
    n_nonzero : int
        How many of them are not zero.
    method : str
        ``"exact"`` or ``"sampled"``.
    draws : int
        Random patterns, 0 when exact.
    """

    p_value: float
    smallest_p: float
    n_units: int
    n_nonzero: int
    method: str
    draws: int = 0


def sign_flip_test(
    differences: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> SignFlipTest:
    """Test whether the mean of paired differences is zero, by flipping their signs.

    Parameters
    ----------
    differences : array_like of float, shape (n,)
        B minus A, one a query; no NaN.
    clusters : array_like, shape (n,), optional
        Queries with the same label belong together (they share a document, say) and are flipped
        together.
    draws : int
        Random patterns where the exact distribution is too dear.
    seed : int
        Of the random patterns.

    Returns
    -------
    SignFlipTest

    Notes
    -----
    Edgington & Onghena, *Randomization Tests*; Smucker, Allan & Carterette (CIKM 2007) for
    retrieval. An exact p-value has an absolute error below 1e-12 and never falls below
    ``smallest_p``.

    Examples
    --------
    >>> sign_flip_test([0.5, 0.5, 1.0, 0.25, 0.5]).p_value
    0.0625
    >>> sign_flip_test([1, 1, 1, -1, 0, 1, 1, 1, 1]).p_value   # McNemar: 7 to 1
    0.0703125
    """
    units: Floats = np.asarray(differences, dtype=np.float64).round(DECIMALS)
    if clusters is not None:
        units = cluster_sums(units, clusters).round(DECIMALS)
    nonzero = units[units != 0.0]
    n = len(nonzero)
    smallest = min(1.0, math.ldexp(2.0, -n))
    if n == 0:
        return SignFlipTest(1.0, 1.0, len(units), 0, "exact")
    observed = abs(math.fsum(nonzero))
    sizes, counts = np.unique(np.abs(nonzero), return_counts=True)

    p, used = _p_value(sizes, counts, observed, draws, seed)
    return SignFlipTest(
        min(1.0, max(p, smallest)), smallest, len(units), n, "sampled" if used else "exact", used
    )


def mcnemar_exact(wins: int, losses: int) -> float:
    """Return the exact two-sided McNemar p-value of `wins` to `losses` discordant pairs.

    The binomial test of the discordant pairs at one half (McNemar 1947).

    Examples
    --------
    >>> mcnemar_exact(8, 0)
    0.0078125
    >>> mcnemar_exact(0, 0)
    1.0
    """
    from scipy.special import bdtr

    total = wins + losses
    return min(1.0, 2.0 * float(bdtr(min(wins, losses), total, 0.5))) if total else 1.0


def holm(p_values: ArrayLike) -> Floats:
    """Return p-values corrected for the size of their family (Holm 1979).

    NaN stands for a test that was not made: it stays NaN and does not count.

    Examples
    --------
    >>> holm([0.01, 0.04, float("nan"), 0.03]).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    corrected = np.full(p.shape, np.nan)
    made = np.flatnonzero(~np.isnan(p))
    order = made[np.argsort(p[made], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * factors))
    return corrected


def cluster_sums(values: Floats, clusters: ArrayLike) -> Floats:
    """Return the sum of `values` in each cluster, in the order of the sorted labels."""
    _, position = np.unique(np.asarray(clusters), return_inverse=True)
    sums: Floats = np.bincount(position, weights=values).astype(np.float64)
    return sums


def _p_value(
    sizes: Floats, counts: NDArray[np.int64], observed: float, draws: int, seed: int
) -> tuple[float, int]:
    """Return the p-value and the number of random draws it took (0: it is exact)."""
    n = int(counts.sum())
    if len(sizes) == 1:
        # All of one size: only the number of minus signs matters.
        minus = round((n - observed / sizes[0]) / 2)
        return mcnemar_exact(n - minus, minus), 0
    if n <= ENUMERATED:
        return _enumerated(np.repeat(sizes, counts), observed), 0
    step = _lattice(sizes)
    if step:
        weights = np.rint(sizes * step).astype(np.int64)
        points = int(weights @ counts)
        if points * len(sizes) * POINT_COST <= draws * n / 8 or points <= 4096:
            return _by_lattice(weights, counts, round(observed * step)), 0
    return _sampled(sizes, counts, observed, draws, seed), draws


def _enumerated(sizes: Floats, observed: float) -> float:
    """Count all sign patterns: every sum of one half of the sizes against the other half."""
    tolerance = 10.0**-DECIMALS * len(sizes)
    if observed <= tolerance:
        return 1.0
    half = len(sizes) // 2
    left = _all_sums(sizes[:half])
    right = np.sort(_all_sums(sizes[half:]))
    at_least = len(right) - np.searchsorted(right, observed - tolerance - left, side="left")
    return 2.0 * float(at_least.sum()) / 2.0 ** len(sizes)


def _all_sums(sizes: Floats) -> Floats:
    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate((sums - size, sums + size))
    return sums


def _lattice(sizes: Floats) -> int:
    """Return the smallest q for which every size is a multiple of 1/q, 0 if there is none."""
    step = 1
    rest = sizes
    while len(rest):
        # The first size that is off the present lattice says by how much it must be refined.
        refined = rest[0] * step * np.arange(1, MAX_DENOMINATOR + 1)
        on = np.abs(refined - np.rint(refined)) < 1e-8 * step * np.arange(1, MAX_DENOMINATOR + 1)
        if not on.any():
            return 0
        step *= int(np.argmax(on)) + 1
        if step > MAX_LATTICE:
            return 0
        scaled = rest * step
        rest = rest[np.abs(scaled - np.rint(scaled)) >= 1e-8 * step]
    return step


def _by_lattice(weights: NDArray[np.int64], counts: NDArray[np.int64], observed: int) -> float:
    """Return P(|sum of randomly signed weights| >= observed) from its characteristic function.

    With S the sum of the weights that got a plus, the signed sum is 2 S - total, and S has the
    characteristic function prod (1 + exp(i w t)) / 2 = exp(i total t / 2) prod cos(w t / 2): a
    real product on a grid of angles, and one inverse FFT.
    """
    total = int(weights @ counts)
    length = 1 << total.bit_length()
    k = np.arange(length // 2 + 1)
    cosines = np.cos(np.pi * np.arange(2 * length) / length)
    product = np.ones(len(k))
    # The most frequent first: most of the product vanishes at once and need not be followed.
    for at in np.argsort(-counts, kind="stable").tolist():
        # Angles repeat with the table, so the cosine of a multiple is a look-up.
        product = product * cosines[(k * int(weights[at])) & (2 * length - 1)] ** int(counts[at])
        alive = np.abs(product) > NEGLIGIBLE
        k, product = k[alive], product[alive]
    transform = np.zeros(length // 2 + 1, dtype=np.complex128)
    # numpy's inverse transform sums with exp(+i...), hence the minus.
    transform[k] = product * np.exp(-1j * np.pi / length * ((k * total) & (2 * length - 1)))
    mass = np.fft.irfft(transform, n=length)
    sums = 2 * np.arange(total + 1) - total
    return float(mass[: total + 1][np.abs(sums) >= observed].sum())


_SIGNS: Floats = (
    np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64) * 2.0 - 1.0
)


def _sampled(
    sizes: Floats, counts: NDArray[np.int64], observed: float, draws: int, seed: int
) -> float:
    """Return (b + 1) / (m + 1) over random sign patterns.

    The sizes come sorted, so the outcome depends on the seed and not on the order of queries.
    """
    rng = np.random.default_rng(seed)
    n = int(counts.sum())
    few = len(sizes) * BINOMIAL_COST * 8 < n
    sums = (_by_counts if few else _by_bytes)(sizes, counts, draws, rng)
    tolerance = 10.0**-DECIMALS * n
    return (float(np.count_nonzero(np.abs(sums) >= observed - tolerance)) + 1.0) / (draws + 1.0)


def _by_counts(
    sizes: Floats, counts: NDArray[np.int64], draws: int, rng: np.random.Generator
) -> Floats:
    """Draw totals of few distinct sizes: of each only the number of plus signs matters."""
    totals = np.zeros(draws)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        totals += size * (2.0 * rng.binomial(count, 0.5, size=draws) - count)
    return totals


def _by_bytes(
    sizes: Floats, counts: NDArray[np.int64], draws: int, rng: np.random.Generator
) -> Floats:
    """Draw totals of many sizes: eight signs are one random byte, a table holds their sums."""
    each = np.repeat(sizes, counts)
    padded = np.concatenate((each, np.zeros(-len(each) % 8))).reshape(-1, 8)
    totals = np.zeros(draws)
    for start in range(0, len(padded), BLOCK):
        tables = padded[start : start + BLOCK] @ _SIGNS.T
        patterns = rng.integers(0, 256, size=(len(tables), draws), dtype=np.uint8)
        for table, pattern in zip(tables, patterns, strict=True):
            totals += table.take(pattern)
    return totals


@dataclass(frozen=True, slots=True)
class MarginalHomogeneity:
    """Outcome of a test that two paired classifications have the same shares.

    Attributes
    ----------
    statistic : float
        Stuart–Maxwell's quadratic form.
    df : int
        Its degrees of freedom.
    p_value : float
        From flipping pairs; exact or sampled. Holds for sparse tables.
    p_asymptotic : float
        From the chi-squared distribution; for many pairs only.
    n_discordant : int
        Pairs whose two classes differ.
    method : str
        ``"exact"`` or ``"sampled"``.
    """

    statistic: float
    df: int
    p_value: float
    p_asymptotic: float
    n_discordant: int
    method: str


def marginal_homogeneity(
    a: ArrayLike,
    b: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> MarginalHomogeneity:
    """Test whether classes `a` and `b` of the same queries have equal shares.

    Parameters
    ----------
    a, b : array_like of int, shape (n,)
        Class of each query in either pipeline.
    clusters : array_like, shape (n,), optional
        Queries that are flipped together.
    draws, seed : int
        Random patterns where there are too many to enumerate, and their seed.

    Returns
    -------
    MarginalHomogeneity

    Notes
    -----
    Stuart (1955), Maxwell (1970). With D the differences of the class indicators and S = D'D the
    statistic is t' S⁺ t, t the column sums of D; flipping a pair leaves S as it is, so only t has
    to be drawn anew. For two classes the p-value is McNemar's.

    Examples
    --------
    >>> marginal_homogeneity([0, 0, 0, 1, 2, 2], [1, 1, 0, 1, 1, 1]).p_value
    0.25
    """
    from scipy.special import chdtrc

    first, second = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
    differ = first != second
    n_discordant = int(differ.sum())
    if n_discordant == 0:
        return MarginalHomogeneity(0.0, 0, 1.0, 1.0, 0, "exact")
    labels = None if clusters is None else np.asarray(clusters)[differ]
    moves, counts = _moves(first[differ], second[differ], labels)

    square = (moves * counts[:, None]).T @ moves
    inverse = np.linalg.pinv(square, rcond=1e-10, hermitian=True)
    df = int(np.linalg.matrix_rank(square, tol=1e-9, hermitian=True))
    net = _net_moves(first[differ], second[differ], moves.shape[1])
    statistic = float(net @ inverse @ net)
    totals, mass = _flipped_totals(moves, counts, draws, seed)
    reached = np.einsum("ij,jk,ik->i", totals, inverse, totals) >= statistic - 1e-9
    if mass is None:
        p = (float(reached.sum()) + 1.0) / (len(totals) + 1.0)
    else:
        p = min(1.0, float(mass[reached].sum()))
    return MarginalHomogeneity(
        statistic,
        df,
        p,
        float(chdtrc(df, statistic)) if df else 1.0,
        n_discordant,
        "sampled" if mass is None else "exact",
    )


def _net_moves(first: NDArray[np.int64], second: NDArray[np.int64], k: int) -> Floats:
    classes = np.unique(np.concatenate((first, second)))
    at_a, at_b = np.searchsorted(classes, first), np.searchsorted(classes, second)
    return (np.bincount(at_b, minlength=k) - np.bincount(at_a, minlength=k)).astype(np.float64)


def _moves(
    first: NDArray[np.int64], second: NDArray[np.int64], labels: NDArray[np.generic] | None
) -> tuple[Floats, NDArray[np.int64]]:
    """Return the distinct flippable moves between classes, and how often each occurs."""
    classes = np.unique(np.concatenate((first, second)))
    at_a, at_b = np.searchsorted(classes, first), np.searchsorted(classes, second)
    rows = np.arange(len(first))
    n_units = len(first)
    if labels is not None:
        _, rows = np.unique(labels, return_inverse=True)
        n_units = int(rows.max()) + 1
    moves = np.zeros((n_units, len(classes)))
    np.add.at(moves, (rows, at_b), 1.0)
    np.subtract.at(moves, (rows, at_a), 1.0)
    moves = moves[moves.any(axis=1)]
    if not len(moves):
        return np.zeros((1, len(classes))), np.zeros(1, dtype=np.int64)
    # A move and its reverse are the same flippable unit: the first non-zero entry is made positive.
    lead = moves[np.arange(len(moves)), (moves != 0).argmax(axis=1)]
    distinct, counts = np.unique(moves * np.sign(lead)[:, None], axis=0, return_counts=True)
    return distinct, counts.astype(np.int64)


def _flipped_totals(
    moves: Floats, counts: NDArray[np.int64], draws: int, seed: int
) -> tuple[Floats, Floats | None]:
    """Return the possible totals with their probabilities, or random ones with None."""
    from scipy.special import gammaln

    if math.prod(int(count) + 1 for count in counts) <= 2 * draws:
        totals, mass = np.zeros((1, moves.shape[1])), np.ones(1)
        for move, count in zip(moves, counts.tolist(), strict=True):
            plus = np.arange(count + 1)
            ways = gammaln(count + 1) - gammaln(plus + 1) - gammaln(count - plus + 1)
            chance = np.exp(ways - count * math.log(2.0))
            totals = (totals[:, None] + (2 * plus - count)[:, None] * move).reshape(
                -1, moves.shape[1]
            )
            mass = np.multiply.outer(mass, chance).ravel()
        return totals, mass
    plus = np.random.default_rng(seed).binomial(counts, 0.5, size=(draws, len(counts)))
    return (2.0 * plus - counts) @ moves, None
