"""Purity, mutual information and Rand index of k-means over embeddings (dial2vec, section 4.1)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..vectors import labelled_vectors

SMALL = 10_000  # up to so many vectors one thread is used: on a busy machine, several threads took 30 times as long


def purity(labels: ArrayLike, clusters: ArrayLike) -> float:
    """Computes the share of items that carry their cluster's most frequent label, in ``(0, 1]``.

    Labels and clusters are strings or integers, ``(N,)`` each, N >= 1; else a ValueError. One cluster per item gives 1,
    so compare only equal numbers of clusters.
    """
    from sklearn.metrics.cluster import contingency_matrix

    counts = contingency_matrix(*_coded_pair(labels, clusters))
    return float(counts.max(axis=0).sum() / counts.sum())


def normalized_mutual_information(labels: ArrayLike, clusters: ArrayLike) -> float:
    """Computes the mutual information of labels and clusters over the mean of their entropies, in ``[0, 1]``.

    It takes and raises what `purity` does, and is 1 where the partitions are equal, also if both have a single part.
    """
    from sklearn.metrics import normalized_mutual_info_score

    return float(normalized_mutual_info_score(*_coded_pair(labels, clusters)))


def adjusted_rand_index(labels: ArrayLike, clusters: ArrayLike) -> float:
    """Computes the share of pairs on which labels and clusters agree, corrected for chance (Hubert and Arabie, 1985).

    It takes and raises what `purity` does; in ``[-0.5, 1]``, 1 where partitions are equal, about 0 for random clusters.
    """
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(*_coded_pair(labels, clusters)))


def official_runs(count: int) -> int:
    """Returns over how many k-means runs dial2vec's program averages for a test set of ``count`` dialogues.

    The paper says ten; the program runs ``max(3, 10 - count // 500)``.
    """
    return max(3, 10 - count // 500)


def cluster_purity(
    embeddings: ArrayLike,
    labels: ArrayLike,
    seeds: Iterable[int] = range(10),
    n_init: int = 10,
    max_iter: int = 500,
    tol: float = 1e-5,
) -> dict[str, Any]:
    """Clusters embeddings with k-means++ once per seed and scores each clustering against the labels.

    As in dial2vec's program, k is the number of distinct labels and vectors are used as they are, not normalised.
    Constant vectors are no error: they fall into one cluster, purity is the share of the largest label, and the other
    two figures are 0.

    Takes finite vectors ``(N, D)``, labels ``(N,)``, strings or integers, at least two distinct ones (else a
    ValueError), and the random state of each run, at least one; dial2vec's paper averages ten runs (see
    `official_runs`). The best of ``n_init`` random starts is kept: ten was scikit-learn's default when the papers'
    figures were made; since scikit-learn 1.4 it is one for k-means++, which scores lower. ``max_iter`` are the most
    iterations of one start, ``tol`` is the relative tolerance on the movement of the centres.

    Returns ``{"purity": [...], "nmi": [...], "ari": [...], "seeds": [...], "clusters": k}`` with one value per seed:
    `purity`, `normalized_mutual_information` and `adjusted_rand_index`.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    vectors, codes = labelled_vectors(embeddings, labels)
    runs = list(seeds)
    if not runs:
        raise ValueError("seeds: got none, expected at least one; pass for example range(10)")
    count = int(codes.max()) + 1
    scores: dict[str, Any] = {"purity": [], "nmi": [], "ari": [], "seeds": runs, "clusters": count}
    for seed in runs:
        means = KMeans(count, init="k-means++", n_init=n_init, max_iter=max_iter, tol=tol, random_state=seed)
        with threadpool_limits(1 if len(vectors) <= SMALL else None), warnings.catch_warnings():
            # Fewer distinct vectors than labels is a property of the embeddings, and the score says it.
            warnings.simplefilter("ignore", ConvergenceWarning)
            clusters = means.fit_predict(vectors)
        scores["purity"].append(purity(codes, clusters))
        scores["nmi"].append(normalized_mutual_information(codes, clusters))
        scores["ari"].append(adjusted_rand_index(codes, clusters))
    return scores


def mean_cluster_scores(
    embeddings: ArrayLike,
    labels: ArrayLike,
    seeds: Iterable[int] = range(10),
    n_init: int = 10,
    max_iter: int = 500,
    tol: float = 1e-5,
) -> dict[str, float]:
    """Averages `cluster_purity`, whose arguments it takes, over its runs.

    Returns ``clusters``, and of ``purity``, ``nmi`` and ``ari`` the mean and, as ``purity_std`` and so on, the sample
    standard deviation, which is 0 for a single run.
    """
    scores = cluster_purity(embeddings, labels, seeds, n_init, max_iter, tol)
    found: dict[str, float] = {"clusters": scores["clusters"]}
    for name in ("purity", "nmi", "ari"):
        found[name] = float(np.mean(scores[name]))
        found[f"{name}_std"] = float(np.std(scores[name], ddof=1)) if len(scores[name]) > 1 else 0.0
    return found


def _coded_pair(labels: ArrayLike, clusters: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    names, groups = np.asarray(labels), np.asarray(clusters)
    if names.ndim != 1 or names.shape != groups.shape or not len(names):
        raise ValueError(
            f"labels and clusters: got shapes {names.shape} and {groups.shape}, expected (N,) twice with N >= 1; "
            "give every item one label and one cluster"
        )
    return np.unique(names, return_inverse=True)[1], np.unique(groups, return_inverse=True)[1]
