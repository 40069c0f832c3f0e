"""Export a checkpoint to a folder that other libraries load, with or without this package.

Every way of loading is tried in a fresh process before the folder appears.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoModel, AutoTokenizer

from ..checkpoints.pretrained import load_pretrained, resolve_backbone
from ..checkpoints.pretrained import weights as shipped_folder
from ..checkpoints.shipped import RECORD, shipped
from ..errors import InputError
from ..methods import METHODS, method_of, register
from ..methods.encoder import DialogueEncoder
from ..methods.ranker import Ranker
from ..methods.utterance import UtteranceEncoder
from ..runs.files import appearing_whole
from .forms import custom_encoder, plain_encoder, ranker_form
from .forms.onnx_form import check_onnx, write_int8, write_onnx
from .forms.precision import AS_TRAINED, DTYPES, WeightForm

FORMS: dict[str, Any] = {"custom": custom_encoder, "plain": plain_encoder, "ranker": ranker_form}
"""The published forms: modules with `write`, `verify`, `WAYS` of loading and their `TOLERANCE`."""

Model = DialogueEncoder | UtteranceEncoder | Ranker


def export(
    model: str | os.PathLike[str],
    output: str | Path,
    *,
    dtype: str | None = None,
    max_shard_size: str | None = None,
    onnx: bool = False,
    int8: bool = False,
    report: Callable[[str], object] = print,
) -> Path:
    """Write and verify the published form of a checkpoint, and return its folder.

    Args:
        model: A run, a checkpoint's folder or Hub id, or the name of an encoder that comes with the package.
        output: The folder to write; nothing appears there unless every check holds.
        dtype: ``bf16``, ``fp16`` or ``fp32``; by default fp32 for encoders of utterances, else the checkpoint's own.
        max_shard_size: The largest file of weights, such as ``1GB``.
        onnx: Whether to add an ONNX graph in float32.
        int8: Whether to add that graph and one of 8-bit integers.
        report: Receives a line for each check.

    Raises:
        InputError: The output exists, the model is none of this package's, or a way of loading fails.
    """
    source, output, form = os.fspath(model), Path(output), WeightForm(DTYPES[dtype] if dtype else None, max_shard_size)
    if output.exists():
        raise InputError(f"--output {output} exists already; choose a new folder or remove it")
    if source in shipped():  # its files are in the published form already
        if onnx or int8 or form != AS_TRAINED:
            raise InputError(f"--model {source}: is exported as it is; leave --onnx, --int8, --dtype and shards out")
        with appearing_whole(output) as folder:
            shutil.copytree(shipped_folder(source), folder, ignore=lambda *_: {RECORD}, dirs_exist_ok=True)
        report(f"{source}: the digests are those that came with the package")
        return output
    if onnx or int8:
        check_onnx()
    trained, tokenizer = load_checkpoint(source)
    with appearing_whole(output) as folder:
        write_checkpoint(trained, tokenizer, folder, form)
        for line in verify(folder, trained, tokenizer, form):
            report(line)
        if onnx or int8:
            report(write_onnx(folder, trained))
        if int8:
            report(write_int8(folder, trained.config.kind == "utterances"))
    return output


def load_checkpoint(path: str) -> tuple[Model, Any]:
    """Return one of this package's checkpoints, a folder or Hub id, with its tokenizer.

    Raises:
        InputError: There is no such checkpoint, it is damaged, or another package made it.
    """
    register()
    folder = resolve_backbone(path)
    config = load_pretrained(AutoConfig, folder)
    if method_of(config) is None:
        raise InputError(f"'{path}' is a {config.model_type} model; expected a checkpoint of {', '.join(METHODS)}")
    model: Model = load_pretrained(AutoModel, folder)
    model.train(False)
    return model, load_pretrained(AutoTokenizer, folder)


def write_checkpoint(model: Model, tokenizer: Any, folder: Path, weights: WeightForm = AS_TRAINED) -> None:  # noqa: ANN401
    """Write the published form of a model."""
    _form_of(model).write(model, tokenizer, folder, weights)


def verify(folder: Path, model: Model, tokenizer: Any, weights: WeightForm = AS_TRAINED) -> Iterator[str]:  # noqa: ANN401
    """Load a published folder in fresh processes, in every way of its form, and compare vectors; yield a line each."""
    form = _form_of(model)
    tolerance = weights.tolerance(model, form.TOLERANCE)
    if weights.dtype is not None:
        name = str(weights.dtype).removeprefix("torch.")
        yield f"Weights in {name}: differences up to {tolerance:.0e} of the embeddings' largest value pass"
    try:
        yield from form.verify(folder, model, tokenizer, tolerance)
    except InputError as error:
        remedy = "; rounding may cost too much here: choose --dtype fp32" if tolerance > form.TOLERANCE else ""
        raise InputError(f"{error}{remedy}") from None


def _form_of(model: Model) -> Any:  # noqa: ANN401 - a module
    method = method_of(model)
    assert method is not None, "models of other makers are refused before"
    return FORMS[method.form]
