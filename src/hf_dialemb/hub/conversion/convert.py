"""The conversion as a whole: read, account for every key, write beside, load again, put in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from ...models import register
from ...models.errors import InputError, unknown_name
from ...runs.files import write_json_atomically
from ..published_folder import appearing_whole
from .assembly import Conversion, Request

KINDS: dict[str, tuple[str, str]] = {
    "plato": ("plato", "read"),
    "dial2vec": ("plato", "read_dial2vec"),
    "transformers": ("encoders", "read_transformers"),
    "sentence-transformers": ("encoders", "read_sentence_transformers"),
}
"""Kind of checkpoint to its module here and the function that reads it."""

REPORT_FILE = "conversion.json"  # what became of every key, beside the weights


def convert(request: Request, output: Path, partial: bool = False) -> Iterator[str]:
    """Converts a foreign checkpoint into one of ours; nothing appears at ``output`` unless all of it holds."""
    if output.exists():
        raise InputError(f"--output {output} exists already; choose a new folder or remove it")
    if request.kind not in KINDS:
        raise unknown_name("kind of checkpoint", request.kind, KINDS)
    module, name = KINDS[request.kind]
    read: Callable[[Request], Conversion] = getattr(import_module(f"{__package__}.{module}"), name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # what stays untrained is the same every time
        conversion = read(request)
    report = conversion.report
    yield from report.lines()
    wrong = [(keys, name) for keys, name in ((report.missing, "missing"), (report.unexpected, "unexpected")) if keys]
    if wrong and not partial:
        some = [f"{len(keys)} {name} ({', '.join(keys[:3])}{', ...' if len(keys) > 3 else ''})" for keys, name in wrong]
        raise InputError(
            f"'{report.source}': got keys that are {' and '.join(some)}, expected all keys of {report.kind} alone; "
            "choose another --from, or pass --partial to convert what is there"
        )
    with appearing_whole(output) as folder:
        conversion.model.save_pretrained(folder)
        conversion.tokenizer.save_pretrained(folder)
        write_json_atomically(folder / REPORT_FILE, asdict(report))
        _load_again(folder, conversion.model)


def _load_again(folder: Path, model: Any) -> None:  # noqa: ANN401
    """Loads what was written as everybody does, and compares every tensor."""
    from transformers import AutoModel, AutoTokenizer

    register()
    loaded, keys = AutoModel.from_pretrained(folder, output_loading_info=True)
    AutoTokenizer.from_pretrained(folder)
    wrong = [*keys["missing_keys"], *keys["unexpected_keys"]]
    theirs = loaded.state_dict()
    wrong += [name for name, value in model.state_dict().items() if not torch.equal(value, theirs[name])]
    if wrong:
        raise InputError(
            f"what was written loads with other tensors ({', '.join(wrong[:3])}), expected the same; nothing is kept"
        )
