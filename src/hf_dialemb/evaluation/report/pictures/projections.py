"""From many dimensions to the plane or the sphere: t-SNE for the plane, UMAP where it is installed, PCA anywhere."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....models.errors import InputError
from .centroids import directions

METHODS = {"tsne": "t-SNE", "umap": "UMAP", "pca": "PCA"}
"""The ways to project, with what they are called."""

FEWEST = 10
"""Vectors that t-SNE and UMAP need; fewer are projected by PCA."""

_NEIGHBOURS = 15  # UMAP's own choice


def umap_or_pca() -> str:
    """Names the projection of a benchmark's pictures: ``"umap"`` where umap-learn is installed, else ``"pca"``."""
    return "umap" if find_spec("umap") is not None else "pca"


def project(embeddings: NDArray[Any], method: str = "tsne") -> NDArray[np.float64]:
    """Maps embeddings ``(N, D)`` to the plane, ``(N, 2)``, nearby ones close together, by a key of `METHODS`.

    They are L2-normalised first, so that distance means cosine. Points are always the same for the same vectors: t-SNE
    begins at PCA, and both it and UMAP have a fixed random state; PCA below ten points. All points are the same where
    all vectors point the same way.
    """
    _check(method)
    vectors = directions(embeddings)
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
    _check(method, ("umap", "pca"))
    vectors = directions(embeddings)
    if _constant(vectors):
        return np.tile([0.0, 0.0, 1.0], (len(vectors), 1))
    if method == "pca" or len(vectors) < FEWEST:
        points = directions(_principal(vectors, 3))
        points[~points.any(axis=1)] = (0.0, 0.0, 1.0)  # a vector at the mean has no direction
        return points
    polar, azimuth = _umap(vectors, "haversine").T
    return np.column_stack(
        [np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar)]  # as umap-learn documents it
    )


def _check(method: str, known: tuple[str, ...] = tuple(METHODS)) -> None:
    if method not in known:
        raise InputError(f"method: got {method!r}, expected {' or '.join(known)}; choose one of them")
    if method == "umap" and umap_or_pca() != "umap":
        raise InputError('method: got umap, which is not installed; run: pip install "hf-dialemb[umap]", or choose pca')


def _constant(vectors: NDArray[np.float64]) -> bool:
    return bool(np.ptp(vectors, axis=0).max() < 1e-12)


def _principal(vectors: NDArray[np.float64], dimensions: int) -> NDArray[np.float64]:
    from sklearn.decomposition import PCA

    count, width = vectors.shape
    found = min(dimensions, count, width)
    points = np.asarray(PCA(found, svd_solver="full").fit_transform(vectors), dtype=np.float64)
    return np.pad(points, ((0, 0), (0, dimensions - found)))


def _tsne(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    vectors = np.pad(vectors, ((0, 0), (0, max(0, 2 - vectors.shape[1]))))
    perplexity = min(30.0, (len(vectors) - 1) / 3)
    tsne = TSNE(2, perplexity=perplexity, init="pca", random_state=0)
    with threadpool_limits(1):  # on a shared machine, threads that wait for each other cost far more than they give
        return np.asarray(tsne.fit_transform(vectors), dtype=np.float64)


def _umap(vectors: NDArray[np.float64], output_metric: str) -> NDArray[np.float64]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on the spectral start of few points, and on what is missing for other uses
        from umap import UMAP

        neighbours = min(_NEIGHBOURS, len(vectors) - 1)
        reducer = UMAP(neighbours, 2, metric="cosine", output_metric=output_metric, random_state=0, n_jobs=1)
        return np.asarray(reducer.fit_transform(vectors.astype(np.float32)), dtype=np.float64)
