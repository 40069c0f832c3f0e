"""Out-of-scope detection by prototypes (DSE, section 4.2.2).

What is far from every class mean belongs to none.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .vectors import check_supported, prototype_products, require

DECIMALS = 9  # to which `detection_scores` rounds similarities before it compares them


def detect_out_of_scope(
    similarities: NDArray[np.float64],
    labels: NDArray[Any],
    threshold: float,
    out_of_scope: str | int,
) -> NDArray[Any]:
    """Return the label of the nearest class of each item, or ``out_of_scope``.

    An item is out of scope if its similarity does not exceed the threshold.

    Takes finite similarities ``(N, K)``, of equal ones the first class wins, and the K labels.
    """
    return np.where(
        similarities.max(axis=1) > threshold, labels[similarities.argmax(axis=1)], out_of_scope
    )


def out_of_scope_scores(
    guessed: ArrayLike, true: ArrayLike, out_of_scope: str | int
) -> dict[str, float]:
    """Compute the four figures of the DSE paper, in ``[0, 1]``, from labels ``(N,)``.

    Some of the true labels are out of scope, and some are not.
    """
    answers = np.asarray(guessed)
    names = np.asarray(true)
    require(
        names.ndim == 1 and answers.shape == names.shape,
        "guessed and true",
        f"shapes {answers.shape} and {names.shape}",
        "both (N,)",
    )
    outside = names == out_of_scope
    some = f"{int(outside.sum())} of {len(names)} items out of scope"
    require(outside.any() and not outside.all(), "true", some, "some, not all; add others")
    right = answers == names
    rejected = answers == out_of_scope
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
    """Find the items out of scope, classify the rest, and score both (DSE, section 4.2.2).

    A class is the mean of its supports. An item is out of scope where its similarity to the nearest
    class does not exceed a threshold, which comes from other vectors in scope. Never calibrate on
    the supports, which are near their own means, nor on the items themselves as the paper's program
    does. A zero vector has similarity 0 with every class. With constant vectors everything is out
    of scope. Of equal similarities the first label in order wins.
    """
    true = np.asarray(labels)
    classes, similarities = prototype_products(supports, support_labels, vectors)
    check_supported("labels", true[true != out_of_scope], classes)
    nearest = prototype_products(supports, support_labels, calibration)[1].max(axis=1)
    # Rounded, so that an item as near as the threshold is out of scope however a product was
    # summed.
    threshold = round(float(nearest.mean() + deviations * nearest.std()), DECIMALS)
    guessed = detect_out_of_scope(similarities.round(DECIMALS), classes, threshold, out_of_scope)
    return {**out_of_scope_scores(guessed, true, out_of_scope), "threshold": threshold}
