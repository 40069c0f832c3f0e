"""A page that compares dialogues: python examples/space/app.py.

DIALEMB_MODEL names the model, a folder or a Hub id; by default it is all-MiniLM-L6-v2. Replies are
ranked as well where the model is a ranker of responses.
"""

from __future__ import annotations

import os
from pathlib import Path

import gradio as gr
import rendering
from comparing import Comparer, Comparison
from reading import MAX_BYTES, read

from hf_dialemb import InputError, load_dialogues
from hf_dialemb.evaluation.tasks.next_utterance_task import is_ensemble
from hf_dialemb.integrations import to_transcript

PLACEHOLDER = """user: My card was stolen.
assistant: Shall I block it?
---
user: A table for two, please."""

comparer = Comparer(os.environ.get("DIALEMB_MODEL") or "all-MiniLM-L6-v2")


def compare(pasted, upload, with_examples):
    """Reads and compares; of a mistake, says it and leaves the results empty."""
    try:
        dialogues = read(pasted, upload)
        comparison = comparer.compare(dialogues, with_examples)
    except InputError as error:
        nothing = (None, gr.update(visible=False), gr.update(choices=[], value=None), "", None, "")
        return rendering.note(str(error), problem=True), *nothing
    turns = sum(len(dialogue.turns) for dialogue in dialogues)
    count = len(comparison.dialogues) - comparison.own
    status = f"Read {len(dialogues)} dialogues with {turns} turns" + (
        f", and {count} examples." if count else "."
    )
    if comparison.method:
        status += f" The map is made by {comparison.method}."
    menu = gr.update(choices=rendering.choices(comparison), value=0)
    return rendering.note(status), comparison, gr.update(visible=True), menu, *choose(comparison, 0)


def choose(comparison: Comparison | None, row):
    """Shows what is like one of the dialogues; its replies have to be asked for again."""
    if comparison is None or row is None or not comparer.embeds:
        return "", None, ""
    return rendering.similar(comparison, row), rendering.picture(comparison, row), ""


def rank(comparison: Comparison | None, row, pool):
    """Ranks replies after the chosen dialogue."""
    if comparison is None or row is None:
        return rendering.note("There is no dialogue yet; compare some first.", problem=True)
    try:
        ranked = comparer.replies(comparison, row, pool or "")
    except InputError as error:
        return rendering.note(str(error), problem=True)
    return rendering.replies(ranked, "Probability" if is_ensemble(comparer.ranker) else "Score")


def example():
    """Returns two more dialogues, as they may be pasted."""
    return "\n---\n".join(
        to_transcript(dialogue) for dialogue in load_dialogues("sample", split="dev")[-2:]
    )


with gr.Blocks(
    title="Compare dialogues", analytics_enabled=False, delete_cache=(3600, 3600)
) as page:
    gr.Markdown(
        "# Compare dialogues\nWhich conversations are about the same? Paste some, or upload a file."
    )
    comparison = gr.State(time_to_live=3600)
    with gr.Row():
        with gr.Column(scale=1, min_width=320):
            pasted = gr.Textbox(
                label="Dialogues: a turn a line, dialogues parted by ---, or JSON lines with "
                "messages",
                placeholder=PLACEHOLDER,
                lines=10,
                max_lines=20,
                elem_id="pasted",
            )
            upload = gr.File(label="Or a file (.txt, .jsonl)", height=140, elem_id="upload")
            with_examples = gr.Checkbox(
                True,
                label=f"Compare with {len(comparer.examples)} synthetic examples too",
                elem_id="with-examples",
                visible=comparer.embeds,
            )
            with gr.Row():
                go = gr.Button("Compare", variant="primary", elem_id="compare", min_width=120)
                fill = gr.Button("Example", elem_id="example", min_width=120)
            place = Path(comparer.name)
            gr.Markdown(f"Model: `{place.name if place.is_dir() else place}`")
        with gr.Column(scale=2, min_width=320):
            status = gr.HTML(rendering.note("What is found will stand here."), elem_id="status")
            with gr.Column(visible=False) as results:
                chosen = gr.Dropdown(
                    label="Dialogue", choices=[], interactive=True, elem_id="chosen"
                )
                similar = gr.HTML(elem_id="similar", visible=comparer.embeds)
                picture = gr.Plot(label="Map", elem_id="map", visible=comparer.embeds)
                with gr.Column(visible=comparer.ranker is not None):
                    pool = gr.Textbox(
                        label="Replies to choose from, one a line (none: what assistants say here "
                        "and in the examples)",
                        lines=4,
                        max_lines=12,
                        elem_id="pool",
                    )
                    ask = gr.Button("Rank replies", elem_id="rank")
                    replies = gr.HTML(elem_id="replies")
    go.click(
        compare,
        [pasted, upload, with_examples],
        [status, comparison, results, chosen, similar, picture, replies],
        api_visibility="private",
    )
    chosen.input(
        choose, [comparison, chosen], [similar, picture, replies], api_visibility="private"
    )
    ask.click(rank, [comparison, chosen, pool], replies, api_visibility="private")
    fill.click(example, None, pasted, api_visibility="private")
page.queue(max_size=20, default_concurrency_limit=1)

if __name__ == "__main__":
    fonts = ["system-ui", "sans-serif"]  # the theme's own would come from another server
    page.launch(
        max_file_size=5 * MAX_BYTES,  # up to which the page itself says what is wrong
        ssr_mode=False,
        footer_links=[],
        theme=gr.themes.Default(font=fonts, font_mono=["ui-monospace", "monospace"]),
        css_paths=Path(__file__).parent / "style.css",
    )
