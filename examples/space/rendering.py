"""What the page shows, as HTML and as a picture; whatever a visitor wrote is escaped."""

from __future__ import annotations

from html import escape

import plotly.graph_objects as go
from comparing import Comparison

from hf_dialemb import Dialogue
from hf_dialemb.apps.search.rank import Ranked
from hf_dialemb.display import visible

_COLOURS = {"examples": "#8a94a6", "yours": "#2f8fd3", "chosen": "#e0661a"}


def shortened(text: str, length: int) -> str:
    """Cuts a text to a length, on one line."""
    text = visible(" ".join(text.split()))
    return text if len(text) <= length else f"{text[: length - 1]}…"


def name_of(comparison: Comparison, row: int) -> str:
    """Says which dialogue it is."""
    dialogue = comparison.dialogues[row]
    if row >= comparison.own:
        return f"Example: {dialogue.domains[0].replace('_', ' ')}"
    return shortened(dialogue.id, 30) if dialogue.id != f"{row + 1}" else f"Dialogue {row + 1}"


def choices(comparison: Comparison) -> list[tuple[str, int]]:
    """Lists the visitor's dialogues for a menu."""
    return [
        (f"{row + 1}. {shortened(comparison.dialogues[row].turns[0].content, 60)}", row)
        for row in range(comparison.own)
    ]


def note(sentence: str, *, problem: bool = False) -> str:
    """Writes a line about what was done, or about what is wrong."""
    kind, role = ("problem", "alert") if problem else ("note", "status")
    return f'<p class="{kind}" role="{role}">{escape(visible(sentence))}</p>'


def similar(comparison: Comparison, row: int) -> str:
    """Writes the dialogues that are nearest to one."""
    found = comparison.neighbours(row)
    if not found:
        return note(
            "There is no other dialogue to compare with; add one, or compare with the examples."
        )
    lines = "".join(
        f'<tr><td class="figure">{cosine:.3f}</td><td>{_dialogue(comparison, other)}</td></tr>'
        for other, cosine in found
    )
    head = '<thead><tr><th scope="col">Cosine</th><th scope="col">Dialogue</th></tr></thead>'
    caption = f"<caption>Nearest to {escape(name_of(comparison, row))}</caption>"
    return f'<table class="found">{caption}{head}<tbody>{lines}</tbody></table>'


def replies(ranked: Ranked, title: str) -> str:
    """Writes ranked replies; ``title`` says what the figures are."""
    lines = "".join(
        f'<tr><td class="figure">{score:.4g}</td><td>{escape(visible(text))}</td></tr>'
        for text, score in ranked
    )
    head = f'<thead><tr><th scope="col">{title}</th><th scope="col">Reply</th></tr></thead>'
    return (
        '<table class="found"><caption>What fits '
        f"next</caption>{head}<tbody>{lines}</tbody></table>"
    )


def picture(comparison: Comparison, row: int) -> go.Figure | None:
    """Draws the map, with one dialogue marked; None where there is nothing to draw."""
    if comparison.points is None or len(comparison.dialogues) < 2:
        return None
    groups = {
        "examples": range(comparison.own, len(comparison.dialogues)),
        "yours": [other for other in range(comparison.own) if other != row],
        "chosen": [row],
    }
    figure = go.Figure()
    for name, rows in groups.items():
        if rows:
            figure.add_scatter(
                x=[float(comparison.points[place, 0]) for place in rows],
                y=[float(comparison.points[place, 1]) for place in rows],
                mode="markers",
                name=name,
                marker={
                    "color": _COLOURS[name],
                    "size": 8 if name == "examples" else 13,
                    "symbol": {"examples": "circle", "yours": "diamond", "chosen": "star"}[name],
                },
                text=[_hover(comparison, place) for place in rows],
                hovertemplate="%{text}<extra></extra>",
            )
    figure.update_layout(
        height=400,
        margin={"l": 10, "r": 10, "t": 36, "b": 10},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        xaxis={"visible": False},
        yaxis={"visible": False, "scaleanchor": "x"},
        legend={"orientation": "h", "y": -0.02, "font": {"color": "#808080", "size": 13}},
        dragmode=False,
    )
    return figure


def _hover(comparison: Comparison, row: int) -> str:
    text = shortened(comparison.dialogues[row].turns[0].content, 70)
    return f"<b>{escape(name_of(comparison, row))}</b><br>{escape(text)}"


def _dialogue(comparison: Comparison, row: int) -> str:
    dialogue: Dialogue = comparison.dialogues[row]
    turns = "".join(
        f"<li><b>{escape(turn.role)}</b> {escape(visible(' '.join(turn.content.split())))}</li>"
        for turn in dialogue.turns
    )
    title = (
        f"<b>{escape(name_of(comparison, row))}</b> "
        f"{escape(shortened(dialogue.turns[0].content, 90))}"
    )
    return f"<details><summary>{title}</summary><ul>{turns}</ul></details>"
