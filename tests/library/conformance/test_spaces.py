"""The Space of a metric starts, and computes."""

import json

import pytest
from browser import gradio_page

from hf_dialemb.metrics.space import get_metric, write_space

pytestmark = pytest.mark.slow


@pytest.mark.habit("the Space of each metric", "starts with gradio, and computes")
def test_the_page_of_a_metric_computes(tmp_path):
    pytest.importorskip("gradio")
    from gradio_client import Client
    from gradio_client.exceptions import AppError

    metric = get_metric("purity")
    write_space("purity", tmp_path / "purity")
    with gradio_page(tmp_path / "purity" / "app.py") as address:
        client = Client(address, verbose=False)
        scores = client.predict(json.dumps(metric.example), api_name="/compute")
        with pytest.raises(AppError):
            client.predict("[]", api_name="/compute")
    assert scores.keys() == metric.result.keys()
    assert all(
        scores[key] == pytest.approx(value, abs=1e-3) for key, value in metric.result.items()
    )
