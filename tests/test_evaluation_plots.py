"""Maps of embeddings, and the other pictures of a benchmark."""

from importlib.util import find_spec

import numpy as np
import pytest

from hf_dialemb.evaluation.report.pictures import (
    PathPoint,
    alignment_uniformity_path,
    bars,
    dendrogram,
    drawing,
    measured_point,
    project,
    project_to_sphere,
    spherical_voronoi,
    umap_or_pca,
    voronoi,
)
from hf_dialemb.evaluation.report.pictures.maps import scatter
from hf_dialemb.evaluation.results.rows import Row
from hf_dialemb.models.errors import InputError

pytest.importorskip("matplotlib")

with_umap = (pytest.mark.slow, pytest.mark.skipif(find_spec("umap") is None, reason="umap-learn is not installed"))


@pytest.fixture(autouse=True)
def small_pictures(monkeypatch):
    """Fewer pixels, which take less time and show the same."""
    monkeypatch.setattr(drawing, "DPI", 50)
    monkeypatch.setattr(voronoi, "_PIXELS", 200)


def colours(path):
    """Counts the colours of a picture, near ones as one."""
    from matplotlib.image import imread

    assert path.read_bytes().startswith(b"\x89PNG")
    return len(np.unique(np.round(imread(path)[..., :3].reshape(-1, 3), 1), axis=0))


def groups(count, size=8, width=6):
    """Makes vectors around as many directions, and their labels."""
    random = np.random.default_rng(0)
    labels = [f"label {row % count} $x_1$" for row in range(count * size)]
    return np.tile(random.normal(size=(count, width)), (size, 1)) + random.normal(0, 0.2, (count * size, width)), labels


@pytest.mark.slow
def test_scatter_draws_a_png_of_several_colours(tmp_path):
    random = np.random.default_rng(0)
    labels = [f"label {row % 25}" for row in range(75)]
    path = tmp_path / "map.png"
    vectors = {"one": random.normal(size=(75, 4)), "two": random.normal(size=(75, 1))}
    scatter(vectors, labels, path, {"one": "MAP 1.0"}, "pca")
    assert colours(path) > 20


def test_projection_of_few_or_equal_vectors_is_finite():
    assert project(np.eye(4)).shape == (4, 2)
    assert not project(np.ones((30, 3))).any()
    assert np.isfinite(project(np.random.default_rng(0).normal(size=(12, 1)))).all()
    assert np.isfinite(project(np.random.default_rng(0).normal(size=(12, 1)), "pca")).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["tsne", "pca", pytest.param("umap", marks=with_umap)])
def test_projection_is_repeatable_and_keeps_groups_together(method):
    vectors, labels = groups(3, 14)
    points = project(vectors, method)
    np.testing.assert_array_equal(points, project(vectors, method))
    distances = np.linalg.norm(points[:, None] - points, axis=-1) + np.diag(np.full(len(points), np.inf))
    assert [labels[row] for row in distances.argmin(axis=1)] == labels


def test_projection_does_not_depend_on_length():
    vectors, _ = groups(3)
    np.testing.assert_allclose(project(vectors, "pca"), project(vectors * 7, "pca"), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["pca", pytest.param("umap", marks=with_umap)])
def test_projection_to_the_sphere_has_length_one(method):
    points = project_to_sphere(groups(4)[0], method)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1)
    np.testing.assert_array_equal(points, project_to_sphere(groups(4)[0], method))
    np.testing.assert_allclose(np.linalg.norm(project_to_sphere(np.ones((20, 3)), method), axis=1), 1)


def test_projection_takes_known_and_installed_methods_only(monkeypatch):
    with pytest.raises(InputError, match="got 'lle', expected tsne or umap or pca"):
        project(np.eye(4), "lle")
    with pytest.raises(InputError, match="got 'tsne', expected umap or pca"):
        project_to_sphere(np.eye(4), "tsne")
    monkeypatch.setattr("hf_dialemb.evaluation.report.pictures.projections.find_spec", lambda name: None)
    assert umap_or_pca() == "pca"
    with pytest.raises(InputError, match=r'pip install "hf-dialemb\[umap\]"'):
        project(np.eye(4), "umap")


def test_scatter_refuses_vectors_that_do_not_fit_the_labels(tmp_path):
    with pytest.raises(InputError, match=r"got vectors \(3, 3\), expected \(2, D\)"):
        scatter({"one": np.eye(3)}, ["a", "b"], tmp_path / "map.png")
    with pytest.raises(InputError, match="got no model"):
        scatter({}, ["a", "b"], tmp_path / "map.png")
    with pytest.raises(InputError, match="got 'lle'"):
        scatter({"one": np.eye(3)}, ["a", "b", "c"], tmp_path / "map.png", method="lle")


@pytest.mark.slow
def test_a_sphere_of_cells_is_drawn_and_is_the_same_again(tmp_path):
    vectors, labels = groups(14)
    spherical_voronoi(vectors, labels, tmp_path / "one.png", "a model", "pca")
    spherical_voronoi(vectors, labels, tmp_path / "two.png", "a model", "pca")
    assert colours(tmp_path / "one.png") > 20
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


FLAT = np.array([[1.0, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]] * 4)  # PCA finds but two directions


@pytest.mark.parametrize(
    ("vectors", "labels", "message"),
    [
        (*groups(3), "got 3 distinct, expected at least 4"),
        (FLAT, list("abcd") * 4, "equal or all lie in one plane"),
        (np.ones((16, 3)), list("abcd") * 4, "equal or all lie in one plane"),
        (np.concatenate([FLAT, -FLAT]), list("abcd") * 8, "vectors that cancel out"),
        (np.eye(4), ["a", "b"], r"got shape \(4, 4\), expected \(2, D\)"),
    ],
)
def test_a_sphere_needs_four_centroids_that_divide_it(vectors, labels, message, tmp_path):
    with pytest.raises(InputError, match=message):
        spherical_voronoi(vectors, labels, tmp_path / "sphere.png", method="pca")
    assert not list(tmp_path.iterdir())


def test_borders_of_cells_are_as_far_from_two_centroids_and_nearer_to_no_other():
    centroids = np.random.default_rng(0).normal(size=(9, 3))
    centroids /= np.linalg.norm(centroids, axis=1, keepdims=True)
    nearest = np.sort(np.concatenate(voronoi._edges(centroids)) @ centroids.T, axis=1)
    np.testing.assert_allclose(nearest[:, -1], nearest[:, -2], atol=1e-9)
    assert len(voronoi._edges(centroids)) == 3 * 9 - 6  # Euler's formula


@pytest.mark.slow
def test_a_tree_of_labels_grows_with_them_and_is_capped(tmp_path, monkeypatch):
    from matplotlib.image import imread

    monkeypatch.setattr("hf_dialemb.evaluation.report.pictures.trees.MAX_LEAVES", 20)
    heights = []
    for count in (2, 20, 25):
        dendrogram(*groups(count, 2), tmp_path / "tree.png", "a model")
        heights.append(imread(tmp_path / "tree.png").shape[0])
    assert heights[0] < heights[1] == heights[2]
    assert colours(tmp_path / "tree.png") > 3
    for vectors, labels, message in (
        (np.eye(3), ["a"] * 3, "got 1 distinct, expected at least 2"),
        (np.array([[1.0, 0], [0, 1], [0, -1]]), ["a", "b", "b"], "label 'b': got vectors that cancel out"),
        (np.full((2, 2), np.nan), ["a", "b"], "not finite"),
    ):
        with pytest.raises(InputError, match=message):
            dendrogram(vectors, labels, tmp_path / "tree.png")


@pytest.mark.slow
def test_a_path_of_training_is_drawn_whatever_the_order_of_its_points(tmp_path):
    points = [PathPoint(0, -0.1, -1.0), PathPoint(10, -0.4, -2.0), PathPoint(20, -0.5, -1.8)]
    for name, order in (("one", points), ("two", points[::-1])):
        alignment_uniformity_path({"model": order, "tfidf": points[:1]}, tmp_path / f"{name}.png")
    assert colours(tmp_path / "one.png") > 10
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_a_path_of_training_refuses_what_it_cannot_draw(tmp_path):
    path, point = tmp_path / "path.png", PathPoint(0, 0.0, 0.0)
    for points, message in (({}, "no model"), ({"a": []}, "the steps"), ({"a": [point] * 2}, "each once")):
        with pytest.raises(InputError, match=message):
            alignment_uniformity_path(points, path)
    with pytest.raises(InputError, match="got 17 models, expected at most 16"):
        alignment_uniformity_path({str(name): [point] for name in range(17)}, path)


def test_a_point_of_the_path_is_what_the_benchmark_measures():
    vectors, labels = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]]), ["a", "a", "b", "b"]
    point = measured_point(5, vectors, labels)
    assert point[:2] == (5, pytest.approx(-2))
    assert point.uniformity == pytest.approx(np.log((2 * 1 + 4 * np.exp(-4)) / 6))


def figure(model, mean, metric="f1", corpus="sgd", **more):
    return Row(
        model=model, corpus=corpus, split="test", task="a-task", metric=metric, setting="", mean=mean, **more
    )  # fmt: skip


def test_bars_of_measured_and_quoted_figures_are_drawn(tmp_path):
    from matplotlib.image import imread

    measured = [figure("one $x$", 50.0, std=2.0, n=3), figure("two", 60.0, interval=(58.0, 63.0))]
    quoted = figure("three", 80.0, quoted_from="paper, Table 1, row three")
    time = figure("one", 1.0, "seconds")
    bars([*measured, time], tmp_path / "measured.png")
    bars([*measured, quoted], tmp_path / "quoted.png", "A heading")
    assert colours(tmp_path / "measured.png") > 5
    assert imread(tmp_path / "quoted.png").shape[0] > imread(tmp_path / "measured.png").shape[0]
    bars([figure("one", -1.0, "uniformity"), figure("one", 0.0)], tmp_path / "others.png")
    with pytest.raises(InputError, match="got no figure"):
        bars([time], tmp_path / "none.png")


def test_of_many_figures_each_corpus_has_bars(tmp_path):
    from hf_dialemb.evaluation.report.pictures.bar_charts import MAX_PANELS, _chosen

    places = [(corpus, "test", "a-task", f"metric{index}", "") for corpus in "abc" for index in range(30)]
    chosen = _chosen(places)
    assert len(chosen) == MAX_PANELS
    assert [place[0] for place in chosen] == ["a"] * 8 + ["b"] * 8 + ["c"] * 8
    assert _chosen(places[:5]) == places[:5]
