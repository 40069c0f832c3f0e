"""From a training checkpoint to a folder that strangers load, with or without this package.

Every way of loading is tried in a fresh process before the folder appears. Weights may be rounded and written in
several files (`precision`); an ONNX graph (`onnx_form`), and one of 8-bit integers (`quantisation`), may go beside.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
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
from .forms.onnx_form import check_onnx, write_onnx
from .forms.precision import AS_TRAINED, WeightForm
from .forms.quantisation import TaskChoice, load_problems, write_int8

FORMS: dict[str, Any] = {"custom": custom_encoder, "plain": plain_encoder, "ranker": ranker_form}
"""The published forms: each a module with `write`, `verify`, `WAYS` of loading and their `TOLERANCE`."""

Model = DialogueEncoder | UtteranceEncoder | Ranker


def form_of(model: Model) -> Any:  # noqa: ANN401 - a module
    """Finds the form that models of a method are published in."""
    method = method_of(model)
    assert method is not None, "models of other makers are refused before"
    return FORMS[method.form]


def load_checkpoint(path: str) -> tuple[Model, Any]:
    """Loads one of our checkpoints, a folder or Hub id, with its tokenizer.

    An InputError says that there is no such checkpoint, it is damaged, or it is not one of ours.
    """
    register()
    folder = resolve_backbone(path)
    config = load_pretrained(AutoConfig, folder)
    if method_of(config) is None:
        raise InputError(f"'{path}' is a {config.model_type} model; expected a checkpoint of {', '.join(METHODS)}")
    model: Model = load_pretrained(AutoModel, folder)
    model.train(False)
    return model, load_pretrained(AutoTokenizer, folder)


def export(
    source: str,
    output: Path,
    *,
    weights: WeightForm = AS_TRAINED,
    onnx: bool = False,
    int8: bool = False,
    measured_on: TaskChoice | None = None,
) -> Iterator[str]:
    """Writes and verifies the published form of a checkpoint; nothing appears at ``output`` unless all of it holds."""
    if output.exists():
        raise InputError(f"--output {output} exists already; choose a new folder or remove it")
    if source in shipped():  # in its whole form already, which needs nothing of ours
        if onnx or int8 or weights != AS_TRAINED:
            raise InputError(f"--model {source}: is exported as it is; leave --onnx, --int8, --dtype and shards out")
        with appearing_whole(output) as folder:
            shutil.copytree(shipped_folder(source), folder, ignore=lambda *_: {RECORD}, dirs_exist_ok=True)
            yield f"{source}: the digests are those that came with the package"
        return
    if onnx or int8:
        check_onnx()
    problems = load_problems(measured_on)
    model, tokenizer = load_checkpoint(source)
    with appearing_whole(output) as folder:
        write_checkpoint(model, tokenizer, folder, weights)
        yield from verify(folder, model, tokenizer, weights)
        if onnx or int8:
            yield from write_onnx(folder, model)
        if int8:
            yield from write_int8(folder, model.config.kind == "utterances", measured_on, problems)


def write_checkpoint(model: Model, tokenizer: Any, folder: Path, weights: WeightForm = AS_TRAINED) -> None:  # noqa: ANN401
    """Writes the published form of a model."""
    form_of(model).write(model, tokenizer, folder, weights)


def verify(folder: Path, model: Model, tokenizer: Any, weights: WeightForm = AS_TRAINED) -> Iterator[str]:  # noqa: ANN401
    """Loads a published folder in fresh processes, in every way that a stranger may, and compares embeddings."""
    form = form_of(model)
    tolerance = weights.tolerance(model, form.TOLERANCE)
    if weights.dtype is not None:
        name = str(weights.dtype).removeprefix("torch.")
        yield f"Weights in {name}: differences up to {tolerance:.0e} of the embeddings' largest value pass"
    try:
        yield from form.verify(folder, model, tokenizer, tolerance)
    except InputError as error:
        remedy = "; rounding may cost too much here: choose --dtype fp32" if tolerance > form.TOLERANCE else ""
        raise InputError(f"{error}{remedy}") from None
