"""Out-of-scope detection by prototypes (DSE, section 4.2.2): what is far from every class mean belongs to none."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..vectors import check_supported, class_means, directions

DECIMALS = 9  # to how many decimals `detection_scores` compares similarities with each other and with the threshold


def prototype_similarities(
    supports: ArrayLike, support_labels: ArrayLike, vectors: ArrayLike
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Computes how near vectors are to the mean of each class: the labels in order, and products ``(N, K)`` in [-1, 1].

    Vectors are brought to length 1; a prototype is the mean of its class's supports and is not (as in
    `hf_dialemb.metrics.prototype_classification`). A ValueError refuses all but finite supports ``(S, D)``, their
    labels ``(S,)``, two or more distinct ones, and finite vectors ``(N, D)``.
    """
    names = np.asarray(support_labels)
    known, others = directions("supports", supports), directions("vectors", vectors)
    if names.shape != known.shape[:1] or known.shape[1] != others.shape[1]:
        raise ValueError(
            f"supports, support_labels and vectors: got shapes {known.shape}, {names.shape} and {others.shape}, "
            "expected (S, D), (S,) and (N, D)"
        )
    labels, prototypes = class_means(known, names)
    return labels, others @ prototypes.T


def score_threshold(largest: ArrayLike, deviations: float) -> float:
    """Computes the similarity below which an item counts as out of scope.

    ``largest`` are the similarities of items to the class that is nearest to each, finite, ``(N,)``, N >= 1 (else a
    ValueError). So many standard deviations (of the population) are added to their mean; the paper takes 0 and -1.
    """
    values = np.asarray(largest, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise ValueError(f"largest: got shape {values.shape}, expected (N,) finite numbers with N > 0")
    return float(values.mean() + deviations * values.std())


def detect_out_of_scope(
    similarities: ArrayLike, labels: ArrayLike, threshold: float, out_of_scope: str | int
) -> NDArray[Any]:
    """Gives each item the label of the nearest class, or ``out_of_scope`` if even that does not exceed the threshold.

    Takes finite similarities to each class, ``(N, K)``, of equal ones the first class wins, and the K classes, strings
    or integers, ``(K,)``, else a ValueError; ``out_of_scope`` may be one of them.
    """
    values, names = np.asarray(similarities, dtype=np.float64), np.asarray(labels)
    if values.ndim != 2 or names.shape != values.shape[1:]:
        raise ValueError(f"similarities and labels: got shapes {values.shape} and {names.shape}, expected (N, K), (K,)")
    found: NDArray[Any] = np.where(values.max(axis=1) > threshold, names[values.argmax(axis=1)], out_of_scope)
    return found


def out_of_scope_scores(guessed: ArrayLike, true: ArrayLike, out_of_scope: str | int) -> dict[str, float]:
    """Computes the four figures of the DSE paper from labels ``(N,)``; a ValueError refuses all or none out of scope.

    Returns shares in ``[0, 1]``: ``accuracy``, of all items with the right label; ``in_accuracy``, of those that belong
    to a class; ``oos_accuracy``, of all items for which it is right whether they belong to any class; ``oos_recall``,
    of those out of scope that are found.
    """
    answers, names = np.asarray(guessed), np.asarray(true)
    if names.ndim != 1 or answers.shape != names.shape:
        raise ValueError(f"guessed and true: got shapes {answers.shape} and {names.shape}, expected both (N,)")
    outside = names == out_of_scope
    if outside.all() or not outside.any():
        raise ValueError(
            f"true: got {int(outside.sum())} of {len(names)} items out of scope, expected some, not all; add others"
        )
    right, rejected = answers == names, answers == out_of_scope
    return {
        "accuracy": float(right.mean()),
        "in_accuracy": float(right[~outside].mean()),
        "oos_accuracy": float((rejected == outside).mean()),
        "oos_recall": float(rejected[outside].mean()),
    }


def detection_scores(
    vectors: ArrayLike,
    labels: ArrayLike,
    supports: ArrayLike,
    support_labels: ArrayLike,
    calibration: ArrayLike,
    *,
    deviations: float = -1.0,
    out_of_scope: str | int = "oos",
) -> dict[str, float]:
    """Finds what is out of scope, classifies the rest, and scores both.

    Takes vectors to classify ``(N, D)`` and their true labels ``(N,)``, strings or integers, each one of the supports'
    or ``out_of_scope``, as some are and some are not; supports ``(S, D)`` and their labels ``(S,)``, at least two
    distinct ones; and in ``calibration`` other vectors in scope ``(C, D)``, whose similarities to their nearest
    prototypes say what is far (`score_threshold`). All are finite; what does not fit is a ValueError.

    Returns what `out_of_scope_scores` returns, and ``threshold``, the similarity below which an item is out of scope.
    """
    true = np.asarray(labels)
    classes, similarities = prototype_similarities(supports, support_labels, vectors)
    check_supported("labels", true[true != out_of_scope], classes)
    nearest = prototype_similarities(supports, support_labels, calibration)[1].max(axis=1)
    # Rounded, so that what is as near as the threshold is out of scope however a product was summed.
    threshold = round(score_threshold(nearest, deviations), DECIMALS)
    guessed = detect_out_of_scope(similarities.round(DECIMALS), classes, threshold, out_of_scope)
    return {**out_of_scope_scores(guessed, true, out_of_scope), "threshold": threshold}
