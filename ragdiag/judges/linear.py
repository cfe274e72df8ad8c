"""A logistic score: fitted in twenty lines, used in one, so that its weights are a plain table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["INTERCEPT", "fit_logistic", "grouped_folds", "out_of_fold", "probability"]

#: The key under which a table of weights keeps its constant.
INTERCEPT = "intercept"

FloatArray = NDArray[np.float64]


def probability(weights: Mapping[str, float], features: Sequence[float]) -> float:
    """Return the logistic of the weighted sum; `weights` is in the order of `features`.

    Examples
    --------
    >>> probability({"intercept": -1.0, "a": 2.0}, [0.5])
    0.5
    """
    constant, *others = weights.values()
    score = constant + sum(w * x for w, x in zip(others, features, strict=True))
    return 1 / (1 + math.exp(-max(-700.0, min(700.0, score))))


def fit_logistic(
    features: FloatArray, labels: NDArray[Any], *, ridge: float = 10.0, steps: int = 50
) -> FloatArray:
    """Fit a logistic regression by Newton's method: constant first, then one weight a feature.

    Parameters
    ----------
    features : ndarray of float, shape (n, m)
        One row an item.
    labels : ndarray of bool, shape (n,)
        What to predict.
    ridge : float
        Penalty on the squared weights of the *standardised* features, constant left out.
    steps : int
        At most so many; it stops when nothing moves.

    Returns
    -------
    ndarray of float, shape (m + 1,)
        Weights for the features as they are, not standardised.
    """
    centre, scale = features.mean(axis=0), features.std(axis=0)
    scale[scale == 0] = 1.0
    x = np.column_stack([np.ones(len(features)), (features - centre) / scale])
    y = labels.astype(np.float64)
    penalty = np.full(x.shape[1], ridge)
    penalty[0] = 0.0
    weights = np.zeros(x.shape[1])
    for _ in range(steps):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        gradient = x.T @ (p - y) + penalty * weights
        curvature = (x * (p * (1 - p))[:, None]).T @ x + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        weights = weights - step
        if float(np.abs(step).max()) < 1e-9:
            break
    slopes = weights[1:] / scale
    return np.concatenate([[weights[0] - float(slopes @ centre)], slopes])


def grouped_folds(groups: Sequence[str], folds: int = 5) -> NDArray[np.int64]:
    """Return the fold of each item; a group is never split, folds are of nearly equal size.

    Groups are dealt largest first, ties by name, each to the fold with the fewest items, so the
    folds are the same in every run.
    """
    names, inverse, counts = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    load = np.zeros(folds, dtype=np.int64)
    fold_of = np.zeros(len(names), dtype=np.int64)
    for group in np.argsort(-counts, kind="stable"):
        fold_of[group] = int(load.argmin())
        load[fold_of[group]] += counts[group]
    return fold_of[inverse]


def out_of_fold(
    features: FloatArray, labels: NDArray[Any], fold: NDArray[np.int64], **options: Any
) -> FloatArray:
    """Return each item's probability from a model fitted without its fold."""
    predicted = np.full(len(labels), np.nan)
    for number in np.unique(fold):
        held_out = fold == number
        weights = fit_logistic(features[~held_out], labels[~held_out], **options)
        score = weights[0] + features[held_out] @ weights[1:]
        predicted[held_out] = 1 / (1 + np.exp(-np.clip(score, -700, 700)))
    return predicted
