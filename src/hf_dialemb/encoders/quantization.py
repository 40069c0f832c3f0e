"""Transformers that compute in fewer bits: bfloat16 by torch, 8-bit integers by OpenVINO."""

import hashlib
import logging
import warnings
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers.modeling_outputs import BaseModelOutput

from ..errors import InputError
from ..storage.files import working_folder
from .word_vectors import dialogue_texts

logger = logging.getLogger(__name__)

_CALIBRATION = 300  # dialogues that show the range of values between layers


def compute_in(numbers: str, model: Any, tokenizer: Any) -> None:
    """Make a transformer compute in ``"bfloat16"``, ``"float16"`` or ``"int8"`` from now on.

    A model is quantised to int8 once, in half a minute, and the
    result is kept in Hugging Face's cache (``HF_HOME``). Raise InputError for int8 on an
    accelerator.
    """
    if numbers != "int8":
        _compute_in(getattr(torch, numbers), model)
    else:
        if model.device.type != "cpu":
            raise InputError(
                f"int8: got the device {model.device.type}, expected cpu; choose bfloat16 there"
            )
        graph = _compiled(_graph_file(model, tokenizer), torch.get_num_threads())

        def forward(input_ids: Tensor, attention_mask: Tensor, **_: object) -> BaseModelOutput:
            outputs = graph([input_ids.numpy(), attention_mask.numpy()])
            return BaseModelOutput(last_hidden_state=torch.from_numpy(np.array(outputs[0])))

        model.forward = forward


def check_int8() -> None:
    """Raise InputError if a package that int8 needs is missing."""
    for name in ("openvino", "nncf"):
        if find_spec(name) is None:
            raise InputError(f'int8: the package {name} is missing; pip install "hf-dialemb[int8]"')


def _compute_in(dtype: torch.dtype, model: Any) -> None:
    """Keep weights and states in a type; pooling stays in float32."""
    forward = model.to(dtype).forward

    def quick(*args: Any, **kwargs: Any) -> Any:
        output = forward(*args, **kwargs)
        output.last_hidden_state = output.last_hidden_state.float()
        return output

    model.forward = quick


@cache  # never freed: OpenVINO's signal handlers use memory that goes with its last graph
def _compiled(file: Path, threads: int) -> Any:
    import openvino

    return openvino.Core().compile_model(
        file, "CPU", {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1}
    )


def _graph_file(model: Any, tokenizer: Any) -> Path:
    """Return the file of a model's int8 graph; write it first if there is none."""
    from huggingface_hub.constants import HF_HOME

    digest = hashlib.sha256(f"{version('openvino')} {version('nncf')} {_CALIBRATION}".encode())
    for name, value in model.state_dict().items():
        digest.update(name.encode() + value.contiguous().numpy().tobytes())
    file = Path(HF_HOME) / "hf_dialemb" / f"int8-{digest.hexdigest()[:16]}" / "model.xml"
    if not file.is_file():
        logger.warning("Quantising the model to 8-bit integers; this takes half a minute, once")
        _write_graph(model, tokenizer, file)
    return file


def _write_graph(model: Any, tokenizer: Any, file: Path) -> None:
    import nncf
    import openvino

    from ..data import load_dialogues

    class States(torch.nn.Module):
        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
            states: Tensor = model(
                input_ids=input_ids, attention_mask=attention_mask
            ).last_hidden_state
            return states

    texts = dialogue_texts(load_dialogues("sample")[:_CALIBRATION])
    batches = [
        tokenizer([text], truncation=True, max_length=256, return_tensors="pt") for text in texts
    ]
    inputs = [{name: batch[name] for name in ("input_ids", "attention_mask")} for batch in batches]
    states = States()
    states.model = model.eval()
    with warnings.catch_warnings(
        action="ignore"
    ):  # tracing warns of values that are in fact the same for every length
        graph = openvino.convert_model(states, example_input=inputs[0])
    arrays = [{name: value.numpy() for name, value in features.items()} for features in inputs]
    dataset = nncf.Dataset(arrays)
    graph = nncf.quantize(
        graph, dataset, model_type=nncf.ModelType.TRANSFORMER, subset_size=len(arrays)
    )
    with working_folder(file.parent) as temporary:
        new = temporary / file.parent.name
        openvino.save_model(graph, new / file.name)
        if not file.parent.exists():  # another process may have been first
            new.replace(file.parent)
