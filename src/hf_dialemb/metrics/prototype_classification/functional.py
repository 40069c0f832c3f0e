"""Few-shot classification by prototypes (DSE, section 4.2; Dialog2Flow, section 5.1): the nearest class mean wins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def prototype_classification(
    supports: ArrayLike,
    support_labels: ArrayLike,
    queries: ArrayLike,
    query_labels: ArrayLike,
    *,
    unit_prototypes: bool = False,
) -> dict[str, float]:
    """Classifies queries by the prototype with the greatest product.

    Vectors are brought to length 1; a prototype is the mean of its class's supports. In the papers' programs it is not
    brought to length 1 again, so that classes whose supports differ from each other get shorter ones and fewer queries.
    A zero vector has product 0 with every prototype. Of equal products the label that is first in order wins.

    Args:
        supports: Labelled vectors, finite, ``(S, D)``.
        support_labels: Their labels, strings or integers, ``(S,)``; at least two distinct ones.
        queries: Vectors to classify, finite, ``(N, D)``.
        query_labels: Their true labels, ``(N,)``; each one of the supports'.
        unit_prototypes: Whether prototypes are brought to length 1 too, so that the nearest one by cosine wins.

    Returns:
        ``{"accuracy": share that is right, "macro_f1": unweighted mean F1 of the labels}``, both in ``[0, 1]``.

    Raises:
        ValueError: The shapes do not fit, a vector is not finite, there is one label, or a query has another label.
    """
    from sklearn.metrics import f1_score

    known = np.asarray(support_labels)
    true = np.asarray(query_labels)
    vectors = [_directions(name, values, labels) for name, values, labels in (
        ("supports", supports, known), ("queries", queries, true)
    )]  # fmt: skip
    if vectors[0].shape[1] != vectors[1].shape[1]:
        raise ValueError(
            f"supports and queries: got widths {vectors[0].shape[1]} and {vectors[1].shape[1]}, expected one width"
        )
    labels, codes = np.unique(known, return_inverse=True)
    if len(labels) < 2:
        raise ValueError("support_labels: got one label, expected at least two; add supports of another label")
    missing = np.setdiff1d(true, labels)
    if len(missing):
        first = missing.tolist()[0]
        raise ValueError(f"query_labels: got {first!r}, which no support has; add supports or leave it out")
    sums = np.zeros((len(labels), vectors[0].shape[1]))
    np.add.at(sums, codes, vectors[0])
    prototypes = sums / np.bincount(codes)[:, None]
    if unit_prototypes:
        lengths = np.linalg.norm(prototypes, axis=1, keepdims=True)
        prototypes = prototypes / np.where(lengths == 0, 1, lengths)
    guessed = labels[(vectors[1] @ prototypes.T).argmax(axis=1)]
    return {
        "accuracy": float((guessed == true).mean()),
        "macro_f1": float(f1_score(true, guessed, labels=np.unique(true), average="macro", zero_division=0)),
    }


def _directions(name: str, values: ArrayLike, labels: NDArray[Any]) -> NDArray[np.float64]:
    vectors = np.asarray(values, dtype=np.float64)
    if vectors.ndim != 2 or labels.shape != vectors.shape[:1] or not len(vectors):
        raise ValueError(f"{name}: got shapes {vectors.shape} and {labels.shape}, expected (N, D) and (N,) with N > 0")
    if not np.isfinite(vectors).all():
        raise ValueError(f"{name}: got a vector with NaN or infinity, expected finite numbers; look at the encoder")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)
