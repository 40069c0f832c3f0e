"""Purity, mutual information and Rand index of k-means over embeddings (dial2vec, section 4.1)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..vectors import labelled_vectors

SMALL = 10_000  # up to so many vectors one thread is used: on a busy machine, several threads took 30 times as long
MAX_ITER, TOL = 500, 1e-5  # of one start of k-means: the most iterations, the relative tolerance on moving centres


def cluster_purity(
    embeddings: ArrayLike, labels: ArrayLike, seeds: Iterable[int] = range(10), n_init: int = 10
) -> dict[str, Any]:
    """Clusters embeddings with k-means++ once per seed and scores each clustering against the labels.

    As in dial2vec's program, k is the number of distinct labels and vectors are used as they are, not normalised.
    Constant vectors are no error: they fall into one cluster, purity is the share of the largest label, and the other
    two figures are 0.

    Takes finite vectors ``(N, D)``, labels ``(N,)``, strings or integers, at least two distinct ones (else a
    ValueError), and the random state of each run, at least one; dial2vec's paper averages ten runs, its program
    ``max(3, 10 - N // 500)``. The best of ``n_init`` random starts is kept: ten was scikit-learn's default when the
    papers' figures were made; since scikit-learn 1.4 it is one for k-means++, which scores lower.

    Returns ``{"purity": [...], "nmi": [...], "ari": [...], "seeds": [...], "clusters": k}`` with one value per seed:
    the share of items that carry their cluster's most frequent label, in ``(0, 1]``; mutual information over the mean
    of the entropies, in ``[0, 1]``; agreement on pairs, corrected for chance (Hubert and Arabie, 1985), ``[-0.5, 1]``.
    """
    from sklearn import metrics
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
        means = KMeans(count, init="k-means++", n_init=n_init, max_iter=MAX_ITER, tol=TOL, random_state=seed)
        with threadpool_limits(1 if len(vectors) <= SMALL else None), warnings.catch_warnings():
            # Fewer distinct vectors than labels is a property of the embeddings, and the score says it.
            warnings.simplefilter("ignore", ConvergenceWarning)
            clusters = means.fit_predict(vectors)
        largest = metrics.cluster.contingency_matrix(codes, clusters).max(axis=0)
        scores["purity"].append(float(largest.sum() / len(codes)))
        scores["nmi"].append(float(metrics.normalized_mutual_info_score(codes, clusters)))
        scores["ari"].append(float(metrics.adjusted_rand_score(codes, clusters)))
    return scores


def mean_cluster_scores(
    embeddings: ArrayLike, labels: ArrayLike, seeds: Iterable[int] = range(10), n_init: int = 10
) -> dict[str, float]:
    """Averages `cluster_purity`, whose arguments it takes, over its runs.

    Returns ``clusters``, and of ``purity``, ``nmi`` and ``ari`` the mean and, as ``purity_std`` and so on, the sample
    standard deviation, which is 0 for a single run.
    """
    scores = cluster_purity(embeddings, labels, seeds, n_init)
    found: dict[str, float] = {"clusters": scores["clusters"]}
    for name in ("purity", "nmi", "ari"):
        found[name] = float(np.mean(scores[name]))
        found[f"{name}_std"] = float(np.std(scores[name], ddof=1)) if len(scores[name]) > 1 else 0.0
    return found
