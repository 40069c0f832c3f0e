"""From many dimensions to few: labels' centroids, the plane or the sphere by t-SNE, UMAP if it is there, or PCA."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import InputError
from ....metrics.vectors import unit_vectors

METHODS = {"tsne": "t-SNE", "umap": "UMAP", "pca": "PCA"}  # the ways to project, with what they are called
FEWEST = 10  # vectors that t-SNE and UMAP need; fewer are projected by PCA

_NEIGHBOURS = 15  # UMAP's own choice


def largest_labels(labels: Sequence[str], most: int) -> list[str]:
    """Lists the labels that most items have, the largest first; equally large ones in alphabetical order."""
    counts = Counter(labels)
    return sorted(counts, key=lambda label: (-counts[label], label))[:most]


def mean_directions(vectors: NDArray[Any], labels: Sequence[str], names: Sequence[str]) -> NDArray[np.float64]:
    """Computes where the vectors ``(N, D)`` of K named labels point on average, ``(K, D)`` of length 1."""
    points, places = unit_vectors(vectors), np.asarray(labels)
    centroids = np.stack([points[places == name].mean(axis=0) for name in names])
    for name, length in zip(names, np.linalg.norm(centroids, axis=1), strict=True):
        if length < 1e-9:
            raise InputError(
                f"label '{name}': got vectors that cancel out, expected a common direction; leave the label out"
            )
    return unit_vectors(centroids)


def umap_or_pca() -> str:
    """Names the projection of a benchmark's pictures: ``"umap"`` where umap-learn is installed, else ``"pca"``."""
    return "umap" if find_spec("umap") is not None else "pca"


def project(embeddings: NDArray[Any], method: str = "tsne") -> NDArray[np.float64]:
    """Maps embeddings ``(N, D)`` to the plane, ``(N, 2)``, nearby ones close together, by a key of `METHODS`.

    They are L2-normalised first, so that distance means cosine. The same vectors always give the same points, and below
    ten PCA; where all point the same way, all points are the same.
    """
    vectors = unit_vectors(embeddings)
    if _constant(vectors):
        return np.zeros((len(vectors), 2))
    if method == "pca" or len(vectors) < FEWEST:
        return _principal(vectors, 2)
    return _umap(vectors, "euclidean") if method == "umap" else _tsne(vectors)


def project_to_sphere(embeddings: NDArray[Any], method: str = "pca") -> NDArray[np.float64]:
    """Maps embeddings to the unit sphere in three dimensions, ``(N, 3)``, as Dialog2Flow's Figure 3 shows them.

    ``"umap"`` lays them out on the sphere itself; of ``"pca"`` the three directions of largest variance are
    L2-normalised. All else is as in `project`.
    """
    vectors = unit_vectors(embeddings)
    if _constant(vectors):
        return np.tile([0.0, 0.0, 1.0], (len(vectors), 1))
    if method == "pca" or len(vectors) < FEWEST:
        points = unit_vectors(_principal(vectors, 3))
        points[~points.any(axis=1)] = (0.0, 0.0, 1.0)  # a vector at the mean has no direction
        return points
    polar, azimuth = _umap(vectors, "haversine").T  # as umap-learn documents it
    return np.column_stack([np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar)])


def _constant(vectors: NDArray[np.float64]) -> bool:
    return bool(np.ptp(vectors, axis=0).max() < 1e-12)


def _principal(vectors: NDArray[np.float64], dimensions: int) -> NDArray[np.float64]:
    from sklearn.decomposition import PCA

    found = min(dimensions, *vectors.shape)
    points = np.asarray(PCA(found, svd_solver="full").fit_transform(vectors), dtype=np.float64)
    return np.pad(points, ((0, 0), (0, dimensions - found)))


def _tsne(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    vectors = np.pad(vectors, ((0, 0), (0, max(0, 2 - vectors.shape[1]))))
    tsne = TSNE(2, perplexity=min(30.0, (len(vectors) - 1) / 3), init="pca", random_state=0)
    with threadpool_limits(1):  # on a shared machine, threads that wait for each other cost far more than they give
        return np.asarray(tsne.fit_transform(vectors), dtype=np.float64)


def _umap(vectors: NDArray[np.float64], output_metric: str) -> NDArray[np.float64]:
    if umap_or_pca() != "umap":
        raise InputError('method: got umap, which is not installed; run: pip install "hf-dialemb[umap]", or choose pca')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on the spectral start of few points, and on what is missing for other uses
        from umap import UMAP

        neighbours = min(_NEIGHBOURS, len(vectors) - 1)
        reducer = UMAP(neighbours, 2, metric="cosine", output_metric=output_metric, random_state=0, n_jobs=1)
        return np.asarray(reducer.fit_transform(vectors.astype(np.float32)), dtype=np.float64)
