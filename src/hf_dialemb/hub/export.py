"""Export a checkpoint to a folder that other libraries load, with or without this package.

Every way of loading is tried in a fresh process before the folder appears.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer

from ..errors import InputError
from ..methods import METHODS, check_registered, method_of, origin, register
from ..methods.encoding import DialogueEncoder
from ..methods.ranker import Ranker
from ..methods.utterance import UtteranceEncoder
from ..storage.files import appearing_whole
from ..storage.pretrained import (
    RECORD,
    load_pretrained,
    read_config,
    resolve_backbone,
    shipped,
    weights,
)
from ..storage.remote_code import backbone_code
from . import custom_code, plain_encoder
from .published_folder import compare, run_afresh

Model = DialogueEncoder | UtteranceEncoder | Ranker


_FORMS: dict[str, tuple[Any, float]] = {
    "dialogues": (custom_code, 1e-5),
    "utterances": (plain_encoder, 1e-6),
    "responses": (custom_code, 1e-6),
}
"""By what models read.

The module of their form, and the largest difference between two ways to load a checkpoint.

Differences are relative to the embeddings' largest value. A module has `write`, `probes` and the
programs `WAYS`.
"""

_ROUNDED = {torch.bfloat16: 1e-1, torch.float16: 2e-2}
"""The largest difference of embeddings that half precision may make.

Some tens of times the rounding of one number (2^-8 and 2^-11), as each layer adds to it: six of a
transformer come to about 0.01 and 0.002, an LSTM over 160 words to ten times as much.
"""


def export(
    model: str | os.PathLike[str], output: str | Path, *, report: Callable[[str], object] = print
) -> Path:
    """Write and verify the published form of a checkpoint, and return its folder.

    Args:
        model: A run, a checkpoint's folder or Hub id, or the name of an encoder that comes with the
            package.
        output: The folder to write; nothing appears there unless every check holds.
        report: Receives a line for each check.

    Raises:
        InputError: The output exists, the model is none of this package's, or a way of loading
            fails.
    """
    source = os.fspath(model)
    output = Path(output)
    if output.exists():
        raise InputError(f"--output {output} exists already; choose a new folder or remove it")
    if source in shipped():  # its files are in the published form already
        with appearing_whole(output) as folder:
            shutil.copytree(weights(source), folder, ignore=lambda *_: {RECORD}, dirs_exist_ok=True)
        report(f"{source}: the digests are those that came with the package")
        return output
    trained, tokenizer = load_checkpoint(source)
    with appearing_whole(output) as folder:
        write_checkpoint(trained, tokenizer, folder)
        for line in verify(folder, trained, tokenizer):
            report(line)
    return output


def load_checkpoint(path: str) -> tuple[Model, Any]:
    """Return one of this package's checkpoints, a folder or Hub id, with its tokenizer.

    An InputError says that there is no such checkpoint, it is damaged, or another package made it.
    """
    register()
    folder = resolve_backbone(path)
    if (Path(folder) / "config.json").is_file():
        config_file = read_config(folder)
        check_registered(folder, config_file)
        if backbone_code(config_file):
            raise InputError(
                f"'{path}': got a model over a backbone with Python code of its own, which exports "
                "do not carry; load it as it is, by load_encoder with trust_remote_code=True"
            )
    config = load_pretrained(AutoConfig, folder)
    if method_of(config) is None:
        raise InputError(
            f"'{path}' is a {config.model_type} model; expected a checkpoint of "
            f"{', '.join(METHODS)}"
        )
    return load_pretrained(AutoModel, folder).train(False), load_pretrained(AutoTokenizer, folder)


def write_checkpoint(model: Model, tokenizer: Any, folder: Path) -> None:
    """Write the published form of a model; that of encoders of utterances is float32."""
    form, _ = _FORMS[model.config.kind]
    if model.config.kind == "utterances":
        model = model.float()  # type: ignore[no-untyped-call]
    form.write(model, tokenizer, folder)


def verify(folder: Path, model: Model, tokenizer: Any) -> Iterator[str]:
    """Load a published folder in fresh processes, in every way of its form, and compare vectors.

    Yield a line each.
    """
    form, largest = _FORMS[model.config.kind]
    allowed = max(largest, _ROUNDED.get(model.dtype, 0.0))
    method = method_of(model)
    # importing this package does not register it
    outside = method is not None and origin(method) is not None
    inputs, expected = form.probes(model, tokenizer)
    for way, program in form.WAYS.items():
        if way == custom_code.IMPORTED and outside:
            continue
        for name, vectors in run_afresh(way, program, folder, inputs).items():
            yield compare(f"{name}, {way}", vectors, expected[name], allowed)
