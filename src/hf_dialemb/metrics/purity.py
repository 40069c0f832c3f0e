"""Purity, mutual information and Rand index of k-means over embeddings (dial2vec, section 4.1)."""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .vectors import labelled_vectors, require

# up to this many vectors one thread is used: on a busy machine several threads took 30 times as
# long
SMALL = 10_000
# random starts; a run keeps the best. It was scikit-learn's default when the papers were written
N_INIT = 10
# of a start of k-means: the most iterations, the relative tolerance on moving centres
MAX_ITER = 500
TOL = 1e-5


def cluster_purity(
    embeddings: ArrayLike, labels: ArrayLike, seeds: Iterable[int] = range(10)
) -> dict[str, Any]:
    """Cluster embeddings with k-means++ once per seed and score each clustering against the labels.

    As in dial2vec's program, k is the number of distinct labels and vectors are not normalised.
    Constant vectors fall into one cluster: purity is the share of the largest label, and the other
    two figures are 0.

    Takes finite vectors ``(N, D)``, their labels ``(N,)``, at least two distinct, and the random
    state of each run. Returns ``{"purity": [...], "nmi": [...], "ari": [...], "clusters": k}`` with
    one value per seed.
    """
    from sklearn import metrics
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    vectors, codes = labelled_vectors(embeddings, labels)
    runs = list(seeds)
    require(len(runs) > 0, "seeds", "none", "at least one; pass for example range(10)")
    count = int(codes.max()) + 1
    scores: dict[str, Any] = {"purity": [], "nmi": [], "ari": [], "clusters": count}
    for seed in runs:
        means = KMeans(
            count, init="k-means++", n_init=N_INIT, max_iter=MAX_ITER, tol=TOL, random_state=seed
        )
        with threadpool_limits(1 if len(vectors) <= SMALL else None), warnings.catch_warnings():
            # fewer distinct vectors than labels: the score says it
            warnings.simplefilter("ignore", ConvergenceWarning)
            clusters = means.fit_predict(vectors)
        largest = metrics.cluster.contingency_matrix(codes, clusters).max(axis=0)
        scores["purity"].append(float(largest.sum() / len(codes)))
        scores["nmi"].append(float(metrics.normalized_mutual_info_score(codes, clusters)))
        scores["ari"].append(float(metrics.adjusted_rand_score(codes, clusters)))
    return scores


def mean_cluster_scores(
    embeddings: ArrayLike, labels: ArrayLike, seeds: Iterable[int] = range(10)
) -> dict[str, float]:
    """Cluster vectors with k-means++, as many clusters as labels, and compare clusters with labels.

    Figures are means over runs (dial2vec, section 4.1: domain categorisation). Vectors are not
    normalised. Purity grows with the number of clusters and is never below the share of the largest
    label: compare models on the same items.
    """
    scores = cluster_purity(embeddings, labels, seeds)
    figures: dict[str, float] = {"clusters": scores["clusters"]}
    for name in ("purity", "nmi", "ari"):
        figures[name] = float(np.mean(scores[name]))
        figures[f"{name}_std"] = (
            float(np.std(scores[name], ddof=1)) if len(scores[name]) > 1 else 0.0
        )
    return figures
