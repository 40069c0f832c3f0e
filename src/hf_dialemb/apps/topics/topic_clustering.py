"""Cluster dialogues by their vectors, place them on a map, and count topics over time."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..flow.flow_clustering import in_order_of_size

NEIGHBOURS = (12, 10, 8, 6, 5)
"""Numbers of neighbours to join: each is tried for fewer dialogues than `FEW`, else the first."""
FEW = 300
RESOLUTION = 1.0  # Louvain's: a higher one gives more topics
_MOST_AT_ONCE = 3_000  # dialogues that the map is made of; others lie beside their nearest
_SAME = 1e-6  # vectors that differ by less are equal
_AXES = 50  # of vectors that t-SNE sees
_MOST_PERIODS = 60  # of a curve, unless years are more
_UNITS = {
    "h": ("hour", "%Y-%m-%dT%H"),
    "D": ("day", "%Y-%m-%d"),
    "W": ("week", "%Y-%m-%d"),
    "M": ("month", "%Y-%m"),
    "Y": ("year", "%Y"),
}
"""Periods: their names, and how their beginnings are written."""


def find_clusters(
    vectors: NDArray[np.float32], topics: int | None = None, seed: int = 0
) -> NDArray[np.int32]:
    """Return the cluster of each unit vector ``(N, D)``, ``(N,)``; cluster 0 is the largest.

    There are ``topics`` clusters, in ``[1, N]``, by k-means; or as many as are found. The order of
    vectors does not matter.
    """
    from sklearn.cluster import KMeans

    order = np.lexsort(vectors.T[::-1])
    labels = np.empty(len(vectors), dtype=np.int32)
    if topics:
        drawn = KMeans(topics, n_init=10, random_state=seed).fit_predict(vectors[order])
    else:
        drawn = _communities(vectors[order], seed)
    labels[order] = in_order_of_size(drawn)
    return labels


def _communities(vectors: NDArray[np.float32], seed: int) -> NDArray[np.intp]:
    """Return groups of near dialogues; of few dialogues, those groups that lie best apart."""
    from sklearn.metrics import silhouette_score

    if len(vectors) >= FEW:
        return _communities_by(NEIGHBOURS[0], vectors, seed)

    def apart(labels: NDArray[np.intp]) -> float:
        is_defined = 1 < len(np.unique(labels)) < len(labels)
        return float(silhouette_score(vectors, labels, metric="cosine")) if is_defined else -1.0

    return max((_communities_by(number, vectors, seed) for number in NEIGHBOURS), key=apart)


def _communities_by(neighbours: int, vectors: NDArray[np.float32], seed: int) -> NDArray[np.intp]:
    """Group dialogues by Louvain's method (Blondel et al., 2008).

    Dialogues are joined to their nearest neighbours, more strongly the more neighbours two of them
    share (Jarvis and Patrick, 1973).
    """
    import networkx
    from sklearn.neighbors import kneighbors_graph

    neighbours = min(neighbours, len(vectors))
    near = kneighbors_graph(vectors, neighbours, include_self=True)
    joined = near.maximum(near.T).tocoo()
    shared = np.asarray((near @ near.T).tocsr()[joined.row, joined.col]).ravel()
    weights = shared / (2 * neighbours - shared)  # the share of common neighbours among all of both
    kept = (joined.row < joined.col) & (weights > 0)
    graph = networkx.Graph()
    graph.add_nodes_from(range(len(vectors)))
    edges = np.stack([joined.row[kept], joined.col[kept]], axis=1).tolist()
    graph.add_weighted_edges_from(
        (*pair, weight) for pair, weight in zip(edges, weights[kept].tolist(), strict=True)
    )
    labels = np.zeros(len(vectors), dtype=np.intp)
    communities = networkx.community.louvain_communities(graph, resolution=RESOLUTION, seed=seed)
    for number, members in enumerate(communities):
        labels[list(members)] = number
    return labels


def placed(vectors: NDArray[np.float32], seed: int = 0) -> NDArray[np.float32]:
    """Return places on a map for vectors ``(N, D)``, ``(N, 2)`` in ``[0, 1]``, by t-SNE.

    Vectors beyond `_MOST_AT_ONCE` are placed beside the most similar of these.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from sklearn.neighbors import NearestNeighbors

    count = len(vectors)
    if count < 4 or np.ptp(vectors, axis=0).max() < _SAME:  # t-SNE takes neither
        line = np.linspace(0, 1, count + 2, dtype=np.float32)[1:-1]
        return np.stack([line, np.full_like(line, 0.5)], axis=1)
    drawn = np.random.default_rng(seed).permutation(count)
    base = np.sort(drawn[:_MOST_AT_ONCE])
    others = np.sort(drawn[_MOST_AT_ONCE:])
    reduced = PCA(min(_AXES, count, vectors.shape[1]), random_state=seed).fit_transform(vectors)
    tsne = TSNE(perplexity=min(30.0, (len(base) - 1) / 3), init="pca", random_state=seed)
    places = np.zeros((count, 2))
    places[base] = tsne.fit_transform(reduced[base])
    if len(others):
        nearest = NearestNeighbors(n_neighbors=3).fit(reduced[base]).kneighbors(reduced[others])[1]
        places[others] = np.median(places[base][nearest], axis=1)
    places -= places.min(axis=0)
    scaled: NDArray[np.float32] = (places / max(places.max(), 1e-9)).astype(np.float32)
    return scaled


def counted_periods(
    times: Sequence[str], labels: NDArray[np.int32], topics: int
) -> tuple[list[str], str, NDArray[np.int64]]:
    """Count the dialogues of each topic in each period of a unit that gives a readable number.

    Returns:
        The beginnings of the P periods, their unit, and counts ``(topics, P)``. The unit is the
        finest with less than `_MOST_PERIODS`; P is 0 where none of the N times, which are ISO 8601
        or empty, is known.
    """
    import pandas

    moments = pandas.to_datetime(
        pandas.Series(times, dtype=object), format="ISO8601", utc=True, errors="coerce"
    ).dt.tz_localize(None)
    rows = np.flatnonzero(moments.notna())
    if not len(rows):
        return [], "", np.zeros((topics, 0), dtype=np.int64)
    for unit in _UNITS:
        own = pandas.PeriodIndex(moments[rows], freq=unit)
        if (own.max() - own.min()).n < _MOST_PERIODS:
            break
    name, written = _UNITS[unit]
    periods = pandas.period_range(own.min(), own.max())
    counts = np.zeros((topics, len(periods)), dtype=np.int64)
    np.add.at(counts, (labels[rows], periods.get_indexer(own)), 1)
    return periods.start_time.strftime(written).tolist(), name, counts
