"""The command ``dialemb demo``: from raw conversations to a measured, published, searchable encoder and a flow."""

import argparse
import time

from ..errors import InputError
from .parser import Commands, add_command, say

RECIPE, CORPUS = "dse_demo", "star_small"
QUERY = "I want to see a flat before I rent it"
SHOWN = ("semantic-relatedness", "dialogue-retrieval")
"""The tasks to print, as far as nothing is drawn: k-means and pairs of few dialogues differ more by seed than by
encoder. The results file has everything."""


def add(commands: Commands) -> None:
    """Add the command."""
    add_command(commands, "demo", _run)


def _run(options: argparse.Namespace) -> None:
    from ..checkpoints.pretrained import MINILM
    from ..corpora import load_dialogues
    from ..evaluation.results.tables import markdown_table
    from ..evaluation.run import evaluate
    from ..flow.extract import extract_flow
    from ..hub.export import export
    from ..retrieval.search import search
    from ..training.arguments import make_settings
    from ..training.run import run_training

    output, max_steps, started = options.output, options.max_steps, time.perf_counter()
    if max_steps is not None and max_steps < 1:
        raise InputError(f"--max-steps: got {max_steps}, expected at least 1; leave it out for the recipe's own")
    trained, published, page = output / "trained", output / "published", output / "flow.html"
    shorter = {} if max_steps is None else {"max_steps": max_steps}
    settings = make_settings({"output_dir": trained, **shorter}, RECIPE)
    say(f"1. Training DSE from {settings.run.backbone} on 448 conversations of STAR, without labels")
    run_training(settings, say)
    say("2. Measuring on 176 others of the same sixteen tasks: untrained, trained, and the encoders in the package")
    models = [MINILM, str(trained), "dialogue-minilm", "dialogue-static"]
    written, picture = output / "results.json", output / "map.png"
    results = evaluate(models, CORPUS, output=written, plot=picture, command="dialemb demo")
    say(markdown_table(row for row in results.results if row.task in SHOWN and row.std is None))
    if not published.exists():
        say("3. Exporting the trained encoder, and loading the export in fresh processes")
        export(trained, published, report=lambda line: say(f"   {line}"))
    dialogues = load_dialogues(CORPUS, None, "test")
    say(f"4. Searching with it: {QUERY!r}")
    for hit in search(str(published), dialogues, QUERY, top=4, whole=True):
        say(f"   {hit}")
    say("5. How these conversations go, as a page")
    extract_flow(dialogues, "dialogue-static", title="STAR").page(page)
    say(f"Wrote {published} (the encoder), {written} and .md (the table), {picture} and {page}")
    say(f"Took {time.perf_counter() - started:.0f} s")
