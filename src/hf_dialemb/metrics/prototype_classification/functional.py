"""Few-shot classification by prototypes (DSE, section 4.2; Dialog2Flow, section 5.1): the nearest class mean wins."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..vectors import check_supported, class_means, directions, unit_vectors


def prototype_classification(
    supports: ArrayLike,
    support_labels: ArrayLike,
    queries: ArrayLike,
    query_labels: ArrayLike,
    *,
    unit_prototypes: bool = False,
) -> dict[str, float]:
    """Classifies queries by the prototype with the greatest product: the share that is right, and the labels' mean F1.

    Vectors are brought to length 1; a prototype is the mean of its class's supports. In the papers' programs it is not
    brought to length 1 again, so that classes whose supports differ from each other get shorter ones and fewer queries.
    A zero vector has product 0 with every prototype. Of equal products the label that is first in order wins.

    Takes finite supports ``(S, D)`` and their labels ``(S,)``, strings or integers, at least two distinct ones, finite
    queries ``(N, D)`` and their true labels ``(N,)``, each one of the supports'; else a ValueError. With
    ``unit_prototypes`` prototypes are brought to length 1 too, so that the nearest one by cosine wins.
    """
    from sklearn.metrics import f1_score

    known, true = np.asarray(support_labels), np.asarray(query_labels)
    vectors = []
    for name, values, names in (("supports", supports, known), ("queries", queries, true)):
        shape = np.shape(values)
        if len(shape) != 2 or names.shape != shape[:1] or not shape[0]:
            raise ValueError(f"{name}: got shapes {shape} and {names.shape}, expected (N, D) and (N,) with N > 0")
        vectors.append(directions(name, values))
    width, other = (each.shape[1] for each in vectors)
    if width != other:
        raise ValueError(f"supports and queries: got widths {width} and {other}, expected one width")
    labels, prototypes = class_means(vectors[0], known)
    check_supported("query_labels", true, labels)
    if unit_prototypes:
        prototypes = unit_vectors(prototypes)
    guessed = labels[(vectors[1] @ prototypes.T).argmax(axis=1)]
    return {
        "accuracy": float((guessed == true).mean()),
        "macro_f1": float(f1_score(true, guessed, labels=np.unique(true), average="macro", zero_division=0)),
    }
