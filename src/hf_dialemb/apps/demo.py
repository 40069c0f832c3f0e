"""The demo: from raw (here: synthetic) dialogues to a measured, published, searchable encoder."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from ..corpora import load_dialogues
from ..encoders.specs import load_encoder
from ..evaluation.results.tables import markdown_table
from ..evaluation.run import evaluate_models
from ..hub.export import export
from ..models.backbones import MINILM
from ..models.errors import InputError
from ..training.arguments import parse
from ..training.run import train
from .search import describe_nearest

RECIPE = "dial2vec_demo"


def run_demo(output: Path, max_steps: int | None, report: Callable[[str], None]) -> None:
    """Trains, measures, draws, exports, reloads and searches."""
    if max_steps is not None and max_steps < 1:
        raise InputError(f"--max-steps: got {max_steps}, expected at least 1; leave it out for the recipe's own")
    started = time.perf_counter()
    trained, published = output / "dial2vec", output / "published"
    overrides = ["--output_dir", str(trained), *(["--max_steps", str(max_steps)] if max_steps is not None else [])]
    settings = parse(RECIPE, overrides)
    report(f"1. Training dial2vec from {settings.run.backbone} on the synthetic corpus 'sample', without labels")
    train(settings, report)
    report("2. Measuring untrained and trained on the test split (240 dialogues, ten domains)")
    results = evaluate_models(
        ["tfidf", f"{MINILM}@utterances", MINILM, str(trained)],
        "sample",
        None,
        "test",
        output=output / "results.json",
        plot=output / "map.png",
        command="dialemb demo",
    )
    report(markdown_table(results.results))
    if not published.exists():
        report("3. Exporting, and loading the export in fresh processes")
        for line in export(str(trained), published):
            report(f"   {line}")
    report("4. The nearest dialogues of one, with the published encoder")
    dialogues = load_dialogues("sample", None, "test")
    vectors = load_encoder(str(published)).encode(dialogues)
    for line in describe_nearest(dialogues, vectors, dialogues[0].id, top=4):
        report(f"   {line}")
    report(
        f"Wrote {published} (the encoder), {output / 'results.json'}, {output / 'results.md'} and {output / 'map.png'}"
    )
    report(f"Took {time.perf_counter() - started:.0f} s")
