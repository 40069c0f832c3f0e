"""The page of the Space, which computes the metric from JSON. The Space brings gradio along."""

from __future__ import annotations

import json
from pathlib import Path

import evaluate
import gradio as gr

FOLDER = Path(__file__).resolve().parent

EXAMPLE = {"predictions": [9, 10], "references": [10, 8]}


def compute(arguments: str) -> dict[str, float]:
    """Computes the metric.

    Args:
        arguments: Those of the metric's compute, as a JSON object.

    Returns:
        The scores.

    Raises:
        gradio.Error: The metric refuses them.
    """
    try:
        scores: dict[str, float] = evaluate.load(str(FOLDER / "graph_size_difference.py")).compute(
            **json.loads(arguments)
        )
    except (TypeError, ValueError) as error:
        raise gr.Error(str(error)) from error
    return scores


page = gr.Interface(
    fn=compute,
    inputs=gr.Textbox(value=json.dumps(EXAMPLE), lines=10, label="Arguments of compute, as JSON"),
    outputs=gr.JSON(label="Scores"),
    title="Graph Size Difference",
    article=(FOLDER / "README.md").read_text(encoding="utf-8").split("---", 2)[2],
)

if __name__ == "__main__":
    page.launch()
