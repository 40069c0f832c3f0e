"""Cluster dialogues by their vectors, place them on a map, and count topics over time.

See docs/topics.md.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from ..flow.flow_clustering import in_order

NEIGHBOURS = (12, 10, 8, 6, 5)
"""The numbers of neighbours that are joined.

For fewer dialogues than `FEW` each is tried, else the first is taken.
"""
FEW = 300
RESOLUTION = 1.0  # Louvain's: a higher one gives more topics
_MOST_AT_ONCE = 3_000  # dialogues that the map is made of; others lie beside their nearest
_SAME = 1e-6  # vectors that differ by less are equal
_AXES = 50  # of vectors that t-SNE sees
_MOST_PERIODS = 60  # of a curve, unless years are more
# samples that stability is measured on, and how many they hold
_RESAMPLES, _DRAWN, _MOST_DRAWN = (5, 0.8, 5_000)
_SOLID, _FAIR = 0.75, 0.6
_UNITS = {"h": "hour", "D": "day", "W": "week", "M": "month", "Y": "year"}


def find_clusters(
    vectors: NDArray[np.float32], topics: int | None = None, seed: int = 0
) -> NDArray[np.int32]:
    """Return the cluster of each unit vector ``(N, D)``, ``(N,)``; cluster 0 is the largest.

    There are ``topics`` clusters, in ``[1, N]``, by k-means; or as many as are found. The order of
    vectors does not matter.
    """
    from sklearn.cluster import KMeans

    order = np.lexsort(vectors.T[::-1])
    means = KMeans(topics, n_init=10, random_state=seed) if topics else None
    labels = np.empty(len(vectors), dtype=np.int32)
    labels[order] = (
        means.fit_predict(vectors[order]) if means else _communities(vectors[order], seed)
    )
    labels[order] = in_order_of_size(labels[order])
    return labels


def in_order_of_size(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return labels ``(N,)`` in which 0 is the largest cluster.

    Those of a size are in the order in which they come.
    """
    groups = np.array(in_order(labels.tolist()))
    ranks: NDArray[np.int32] = np.argsort(np.argsort(-np.bincount(groups), kind="stable")).astype(
        np.int32
    )
    return ranks[groups]


def _communities(vectors: NDArray[np.float32], seed: int) -> NDArray[np.intp]:
    """Return the groups.

    For few dialogues, whose neighbours may join topics, those that lie best apart.

    Dialogues are joined to their nearest neighbours, more strongly the more neighbours two of them
    share (Jarvis and Patrick, 1973). Louvain's method (Blondel et al., 2008) finds groups that are
    joined more within than between.
    """
    from sklearn.metrics import silhouette_score

    tried = NEIGHBOURS if len(vectors) < FEW else NEIGHBOURS[:1]
    groupings = [_communities_by(neighbours, vectors, seed) for neighbours in tried]

    def apart(labels: NDArray[np.intp]) -> float:
        defined = 1 < len(np.unique(labels)) < len(labels)
        return float(silhouette_score(vectors, labels, metric="cosine")) if defined else -1.0

    return groupings[0] if len(groupings) == 1 else max(groupings, key=apart)


def _communities_by(neighbours: int, vectors: NDArray[np.float32], seed: int) -> NDArray[np.intp]:
    import networkx
    from sklearn.neighbors import kneighbors_graph

    count = len(vectors)
    neighbours = min(neighbours, count)
    near = kneighbors_graph(vectors, neighbours, include_self=True)
    joined = near.maximum(near.T).tocoo()
    shared = np.asarray((near @ near.T).tocsr()[joined.row, joined.col]).ravel()
    weights = shared / (2 * neighbours - shared)  # the share of common neighbours among all of both
    kept = (joined.row < joined.col) & (weights > 0)
    graph = networkx.Graph()
    graph.add_nodes_from(range(count))
    edges = zip(
        joined.row[kept].tolist(), joined.col[kept].tolist(), weights[kept].tolist(), strict=True
    )
    graph.add_weighted_edges_from(edges)
    labels = np.zeros(count, dtype=np.intp)
    for number, members in enumerate(
        networkx.community.louvain_communities(graph, resolution=RESOLUTION, seed=seed)
    ):
        labels[list(members)] = number
    return labels


def stability(
    vectors: NDArray[np.float32],
    labels: NDArray[np.int32],
    topics: int | None = None,
    seed: int = 0,
) -> tuple[str, ...]:
    """Return how sure each of T topics is: ``solid``, ``fair`` or ``shaky``.

    Samples of the unit vectors ``(N, D)`` are clustered again, with other seeds. A topic's
    stability is the mean of the Jaccard index of its dialogues in a sample, by their labels
    ``(N,)``, and the new cluster most like it (Hennig, 2007): solid from 0.75, fair from 0.6.
    ``topics`` is their number if it was given.
    """
    count, likeness = int(labels.max()) + 1, []
    for number in range(_RESAMPLES):
        drawn = np.random.default_rng((seed, number)).permutation(len(labels))
        rows = np.sort(drawn[: max(1, min(_MOST_DRAWN, round(_DRAWN * len(labels))))])
        again = find_clusters(
            vectors[rows], min(topics, len(rows)) if topics else None, seed + number + 1
        )
        both = np.zeros((count, int(again.max()) + 1))
        np.add.at(both, (labels[rows], again), 1)
        sizes = both.sum(axis=1)
        either = sizes[:, None] + both.sum(axis=0) - both
        likeness.append(np.where(sizes > 0, (both / either).max(axis=1), np.nan))
    known = np.ma.masked_invalid(likeness).mean(axis=0).filled(0.0)
    return tuple(
        "solid" if mean >= _SOLID else "fair" if mean >= _FAIR else "shaky"
        for mean in known.tolist()
    )


def placed(vectors: NDArray[np.float32], seed: int = 0) -> NDArray[np.float32]:
    """Place vectors ``(N, D)`` on a plane by t-SNE, near ones beside each other, ``(N, 2)`` in
    ``[0, 1]``.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from sklearn.neighbors import NearestNeighbors

    count = len(vectors)
    if count < 4 or np.ptp(vectors, axis=0).max() < _SAME:  # t-SNE takes neither
        return np.stack([np.linspace(0, 1, count + 2)[1:-1], np.full(count, 0.5)], axis=1).astype(
            np.float32
        )
    drawn = np.random.default_rng(seed).permutation(count)
    base, others = np.sort(drawn[:_MOST_AT_ONCE]), np.sort(drawn[_MOST_AT_ONCE:])
    reduced = PCA(min(_AXES, count, vectors.shape[1]), random_state=seed).fit_transform(vectors)
    perplexity = min(30.0, (len(base) - 1) / 3)
    places = np.zeros((count, 2))
    places[base] = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(
        reduced[base]
    )
    if len(others):
        nearest = NearestNeighbors(n_neighbors=3).fit(reduced[base]).kneighbors(reduced[others])[1]
        spread = np.ptp(places[base], axis=0).max() / 200
        noise = np.random.default_rng(seed).normal(0, spread, (len(others), 2))
        places[others] = np.median(places[base][nearest], axis=1) + noise
    places -= places.min(axis=0)
    scaled: NDArray[np.float32] = (places / max(places.max(), 1e-9)).astype(np.float32)
    return scaled


def counted_periods(
    times: Sequence[str], labels: NDArray[np.int32], topics: int
) -> tuple[list[str], str, NDArray[np.int64]]:
    """Count the dialogues of each topic in each period, in the finest unit with a readable number
    of periods.

    The N times are ISO 8601 or empty. Returns the beginnings of the P periods, their unit, and
    counts ``(topics, P)``; P is 0 where no dialogue has a time.
    """
    rows = [row for row, time in enumerate(times) if time]
    if not rows:
        return [], "", np.zeros((topics, 0), dtype=np.int64)
    moments = np.array([_moment(times[row]) for row in rows], dtype="datetime64[s]")
    for unit in _UNITS:
        places = moments.astype(f"datetime64[{unit}]").astype(np.int64)
        if np.ptp(places) < _MOST_PERIODS:
            break
    first = int(places.min())
    counts = np.zeros((topics, int(np.ptp(places)) + 1), dtype=np.int64)
    np.add.at(counts, (labels[rows], places - first), 1)
    begins = np.arange(first, first + counts.shape[1]).astype(f"datetime64[{unit}]")
    return (
        [str(day.astype("datetime64[D]")) if unit == "W" else str(day) for day in begins],
        _UNITS[unit],
        counts,
    )


def _moment(time: str) -> datetime:
    moment = datetime.fromisoformat(time)
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
