"""Clusters dialogues by their vectors, and puts them on a map.

Dialogues are joined to their nearest neighbours, the more strongly the more neighbours two of them share (Jarvis and
Patrick, 1973), and groups are found that are joined more within than between (Louvain: Blondel et al., 2008). So the
number of topics is found. `NEIGHBOURS` and `RESOLUTION` were chosen on development splits; see docs/topics.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NEIGHBOURS = (12, 10, 8, 6, 5)
"""So many are joined; of fewer dialogues than `FEW` each number is tried, of others the first is taken."""
FEW = 300
RESOLUTION = 1.0  # Louvain's: more of it, more topics
_MOST_AT_ONCE = 3_000  # so many dialogues the map is made of; others lie beside those that they are nearest to
_SAME = 1e-6  # vectors that differ by less are one
_AXES = 50  # what t-SNE sees of vectors


def find_clusters(vectors: NDArray[np.float32], topics: int | None = None, seed: int = 0) -> NDArray[np.int32]:
    """Clusters unit vectors ``(N, D)``; returns the cluster of each, ``(N,)``, the largest of which is 0.

    So many clusters as are asked for, in ``[1, N]``, or as there are. The order of vectors does not matter.
    """
    count = len(vectors)
    order = np.lexsort(vectors.T[::-1])
    if topics is None:
        found = _communities(vectors[order], seed)
    else:
        from sklearn.cluster import KMeans

        found = KMeans(topics, n_init=10, random_state=seed).fit_predict(vectors[order])
    labels = np.empty(count, dtype=np.intp)
    labels[order] = found
    sizes = np.bincount(labels)
    first = np.full(len(sizes), count)
    np.minimum.at(first, found, np.arange(count))
    ranks = np.empty(len(sizes), dtype=np.int32)
    ranks[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    return ranks[labels]


def _communities(vectors: NDArray[np.float32], seed: int) -> NDArray[np.intp]:
    """Finds groups; where there are few dialogues, so that many neighbours join topics, those that lie best apart."""
    from sklearn.metrics import silhouette_score

    tried = NEIGHBOURS if len(vectors) < FEW else NEIGHBOURS[:1]
    found = [_communities_by(neighbours, vectors, seed) for neighbours in tried]

    def apart(labels: NDArray[np.intp]) -> float:
        defined = 1 < len(np.unique(labels)) < len(labels)
        return float(silhouette_score(vectors, labels, metric="cosine")) if defined else -1.0

    return found[0] if len(found) == 1 else max(found, key=apart)


def _communities_by(neighbours: int, vectors: NDArray[np.float32], seed: int) -> NDArray[np.intp]:
    import networkx
    from sklearn.neighbors import kneighbors_graph

    count = len(vectors)
    neighbours = min(neighbours, count)
    near = kneighbors_graph(vectors, neighbours, include_self=True)
    joined = near.maximum(near.T).tocoo()
    shared = np.asarray((near @ near.T).tocsr()[joined.row, joined.col]).ravel()
    weights = shared / (2 * neighbours - shared)  # of all neighbours of either, those of both
    kept = (joined.row < joined.col) & (weights > 0)
    graph = networkx.Graph()
    graph.add_nodes_from(range(count))
    edges = zip(joined.row[kept].tolist(), joined.col[kept].tolist(), weights[kept].tolist(), strict=True)
    graph.add_weighted_edges_from(edges)
    labels = np.zeros(count, dtype=np.intp)
    for number, members in enumerate(networkx.community.louvain_communities(graph, resolution=RESOLUTION, seed=seed)):
        labels[list(members)] = number
    return labels


def placed(vectors: NDArray[np.float32], seed: int = 0) -> NDArray[np.float32]:
    """Places vectors ``(N, D)`` on a plane, ``(N, 2)`` in ``[0, 1]``: near ones beside each other (t-SNE)."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from sklearn.neighbors import NearestNeighbors

    count = len(vectors)
    if count < 4 or np.ptp(vectors, axis=0).max() < _SAME:  # t-SNE takes neither
        return np.stack([np.linspace(0, 1, count + 2)[1:-1], np.full(count, 0.5)], axis=1).astype(np.float32)
    drawn = np.random.default_rng(seed).permutation(count)
    base, others = np.sort(drawn[:_MOST_AT_ONCE]), np.sort(drawn[_MOST_AT_ONCE:])
    reduced = PCA(min(_AXES, count, vectors.shape[1]), random_state=seed).fit_transform(vectors)
    perplexity = min(30.0, (len(base) - 1) / 3)
    places = np.zeros((count, 2))
    places[base] = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(reduced[base])
    if len(others):
        nearest = NearestNeighbors(n_neighbors=3).fit(reduced[base]).kneighbors(reduced[others])[1]
        spread = np.ptp(places[base], axis=0).max() / 200
        noise = np.random.default_rng(seed).normal(0, spread, (len(others), 2))
        places[others] = np.median(places[base][nearest], axis=1) + noise
    places -= places.min(axis=0)
    found: NDArray[np.float32] = (places / max(places.max(), 1e-9)).astype(np.float32)
    return found
