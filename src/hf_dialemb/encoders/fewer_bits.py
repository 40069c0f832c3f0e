"""Transformers that read in fewer bits than they learnt in: bfloat16 by torch, whole numbers of 8 bits by OpenVINO."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np

from ..errors import InputError
from ..runs.files import working_folder
from ..runs.hardware import multiplies_bfloat16
from .encoder import Numbers

if TYPE_CHECKING:
    from torch import Tensor
    from transformers.modeling_outputs import BaseModelOutput

logger = logging.getLogger(__name__)

_CALIBRATION = 300  # dialogues that tell how large numbers get between layers


def read_in(numbers: Numbers, model: Any, tokenizer: Any) -> None:  # noqa: ANN401 - whatever AutoModel loads
    """Lets an encoder of texts compute in fewer bits from now on.

    A processor that does not multiply bfloat16 goes on in float32. Integers of 8 bits are for processors alone; they
    are made once for each model, in half a minute, and kept in Hugging Face's cache (``HF_HOME``).

    Raises:
        InputError: A package is missing, or the model is on an accelerator.
    """
    if numbers == "bfloat16" and (model.device.type != "cpu" or multiplies_bfloat16()):
        _in_bfloat16(model)
    if numbers == "int8":
        check_int8(model.device.type)
        model.forward = _Int8(_graph(model, tokenizer))


def check_int8(device: str = "cpu") -> None:
    """Refuses what has no integers of 8 bits."""
    if device != "cpu":
        raise InputError(f"int8: got the device {device}, expected cpu; choose bfloat16 there")
    for name in ("openvino", "nncf"):
        if find_spec(name) is None:
            raise InputError(f'int8: the package {name} is missing; pip install "hf-dialemb[int8]"')


def _in_bfloat16(model: Any) -> None:  # noqa: ANN401
    """Keeps weights and states in bfloat16; what is made of the last states is made in float32."""
    forward = model.bfloat16().forward

    def quick(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        output = forward(*args, **kwargs)
        output.last_hidden_state = output.last_hidden_state.float()
        return output

    model.forward = quick


class _Int8:
    """A model's ``forward``, by the graph of a file."""

    def __init__(self, file: Path) -> None:
        import openvino
        import torch

        threads = {"INFERENCE_NUM_THREADS": torch.get_num_threads(), "NUM_STREAMS": 1}  # besides: bfloat16 where it is
        with _same_signal_stack():
            self.graph = openvino.Core().compile_model(file, "CPU", threads)

    def __call__(self, input_ids: Tensor, attention_mask: Tensor, **_: object) -> BaseModelOutput:
        import torch
        from transformers.modeling_outputs import BaseModelOutput

        found = self.graph([input_ids.numpy(), attention_mask.numpy()])
        return BaseModelOutput(last_hidden_state=torch.from_numpy(np.array(found[0])))


class _SignalStack(ctypes.Structure):
    _fields_ = (("place", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


@contextmanager
def _same_signal_stack() -> Iterator[None]:
    """Leaves the thread the stack that it has for signals.

    OpenVINO gives it another, which may be freed when several graphs have gone. The next signal that Python handles
    would then end the process, such as that of a child's end where a DataLoader has workers.
    """
    if sys.platform != "linux":
        yield
        return
    library, before = ctypes.CDLL(None), _SignalStack()
    library.sigaltstack(None, ctypes.byref(before))
    try:
        yield
    finally:
        library.sigaltstack(ctypes.byref(before), None)


def _graph(model: Any, tokenizer: Any) -> Path:  # noqa: ANN401
    """Makes the graph of a model in integers, unless that was done before."""
    from huggingface_hub.constants import HF_HOME

    digest = hashlib.sha256(f"{version('openvino')} {version('nncf')} {_CALIBRATION}".encode())
    for name, value in model.state_dict().items():
        digest.update(name.encode() + value.contiguous().numpy().tobytes())
    file = Path(HF_HOME) / "hf_dialemb" / f"int8-{digest.hexdigest()[:16]}" / "model.xml"
    if not file.is_file():
        logger.warning("Making integers of 8 bits of the model's numbers, once; that takes half a minute")
        # By this variable the libraries do not tell their makers that they are used.
        with patch.dict(os.environ, CI="true"), _same_signal_stack():
            _write(model, tokenizer, file)
    return file


def _write(model: Any, tokenizer: Any, file: Path) -> None:  # noqa: ANN401
    import nncf
    import openvino
    import torch

    from ..corpora import load_dialogues

    class States(torch.nn.Module):
        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
            states: Tensor = model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            return states

    texts = [" ".join(turn.content for turn in dialogue.turns) for dialogue in load_dialogues("sample")[:_CALIBRATION]]
    batches = [tokenizer([text], truncation=True, max_length=256, return_tensors="pt") for text in texts]
    inputs = [{name: batch[name] for name in ("input_ids", "attention_mask")} for batch in batches]
    states = States()
    states.model = model.eval()
    with warnings.catch_warnings(action="ignore"):  # of what is the same for every length
        graph = openvino.convert_model(states, example_input=inputs[0])
    nncf.set_log_level(logging.ERROR)
    found = [{name: value.numpy() for name, value in each.items()} for each in inputs]
    graph = nncf.quantize(graph, nncf.Dataset(found), model_type=nncf.ModelType.TRANSFORMER, subset_size=len(found))
    with working_folder(file.parent) as temporary:
        new = temporary / file.parent.name
        openvino.save_model(graph, new / file.name)
        if not file.parent.exists():  # by another process, meanwhile
            new.replace(file.parent)
