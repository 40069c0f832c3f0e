"""Maps of embeddings."""

import numpy as np
import pytest

from hf_dialemb.evaluation.plots import project, scatter
from hf_dialemb.models.errors import InputError

pytest.importorskip("matplotlib")


def test_scatter_draws_a_png_of_several_colours(tmp_path):
    from matplotlib.image import imread

    random = np.random.default_rng(0)
    labels = [f"label {row % 25}" for row in range(75)]
    path = tmp_path / "map.png"
    scatter({"one": random.normal(size=(75, 4)), "two": random.normal(size=(75, 1))}, labels, path, {"one": "MAP 1.0"})
    pixels = imread(path)[..., :3].reshape(-1, 3)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert len(np.unique(np.round(pixels, 1), axis=0)) > 20


def test_projection_of_few_or_equal_vectors_is_finite():
    assert project(np.eye(4)).shape == (4, 2)
    assert not project(np.ones((30, 3))).any()
    assert np.isfinite(project(np.random.default_rng(0).normal(size=(12, 1)))).all()


def test_projection_is_repeatable():
    vectors = np.random.default_rng(0).normal(size=(40, 5))
    np.testing.assert_array_equal(project(vectors), project(vectors))


def test_scatter_refuses_vectors_that_do_not_fit_the_labels(tmp_path):
    with pytest.raises(InputError, match=r"got vectors \(3, 3\), expected \(2, D\)"):
        scatter({"one": np.eye(3)}, ["a", "b"], tmp_path / "map.png")
    with pytest.raises(InputError, match="got no model"):
        scatter({}, ["a", "b"], tmp_path / "map.png")
