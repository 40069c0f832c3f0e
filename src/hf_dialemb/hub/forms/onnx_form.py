"""The ONNX form of an encoder: one graph from token ids to embeddings, in float32, for runtimes without torch.

Inputs are ``input_ids`` and ``attention_mask``, each (batch, tokens) int64, as the published tokenizer gives them,
padded on the right; the output is ``sentence_embedding``, (batch, D) float32. All else is inside: the mean of tokens,
roles and turns from the markers of a rendered dialogue, the choice between the towers of contexts and of responses.
"""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import InputError
from ..published_folder import PublishedFolder
from .verification import compare

TOLERANCE = 1e-4  # largest difference from the vectors of the checkpoint, relative to their largest value

FILE = PublishedFolder.ONNX
INPUTS, OUTPUT = ("input_ids", "attention_mask"), "sentence_embedding"


def check_onnx() -> None:
    """Makes sure that the packages are there."""
    for name in ("onnx", "onnxscript", "onnxruntime"):
        if find_spec(name) is None:
            raise InputError(f'ONNX: the package {name} is missing; pip install "hf-dialemb[onnx]"')


class _Embedder(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        embeddings: Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).pooler_output
        return embeddings


def write_onnx(folder: Path, model: Any) -> Iterator[str]:  # noqa: ANN401 - any of our models that embeds
    """Writes the graph of a model into its published folder, and runs it."""
    from onnx_ir.passes.common import ClearMetadataAndDocStringPass

    model = model if model.dtype == torch.float32 else copy.deepcopy(model).float()
    embedder = _Embedder(model).train(False)
    (folder / FILE).parent.mkdir()
    with quietly():
        program = _program(embedder, model.config)
        ClearMetadataAndDocStringPass()(program.model)  # every node has where on this machine it was recorded
        program.save(folder / FILE)
    yield _verified(folder / FILE, embedder, model)


def _program(embedder: nn.Module, config: Any) -> Any:  # noqa: ANN401 - of a library without types
    """Records the graph, which takes batches and lengths of any size."""
    # A ranker cuts what is too long: only an example beyond its limits makes a graph that serves both sides of them.
    length = config.max_context_tokens + config.max_response_tokens if config.kind == "responses" else 7
    example = {name: torch.ones(3, length, dtype=torch.long) for name in INPUTS}
    free = {name: dict.fromkeys((0, 1), torch.export.Dim.DYNAMIC) for name in INPUTS}
    with torch.no_grad():
        recorded = torch.export.export(embedder, (), example, dynamic_shapes=free, strict=False)
    recorded = recorded.run_decompositions({torch.ops.aten.cummax.default: _running_maximum})
    return torch.onnx.export(
        recorded,
        dynamo=True,
        input_names=INPUTS,
        output_names=[OUTPUT],
        dynamic_shapes={name: {0: "batch", 1: "tokens"} for name in INPUTS},
        verbose=False,
    )


def _running_maximum(values: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Stands in for `torch.cummax` of non-negative (N, L), which ONNX lacks; nobody asks for the places."""
    place = torch.arange(values.shape[1])
    maxima = torch.where(place <= place.unsqueeze(1), values.unsqueeze(1), 0).amax(-1)
    return maxima, torch.zeros_like(maxima)


def _verified(file: Path, embedder: nn.Module, model: Any) -> str:  # noqa: ANN401
    from onnxruntime import InferenceSession

    session = InferenceSession(str(file), providers=["CPUExecutionProvider"])
    found, expected = [], []
    for batch in _batches(model):
        found.append(session.run([OUTPUT], {name: value.numpy() for name, value in batch.items()})[0])
        with torch.inference_mode():
            expected.append(embedder(**batch).numpy())
    return compare("ONNX, batches of 1 to 9", np.concatenate(found), np.concatenate(expected), TOLERANCE)


def _batches(model: Any) -> Iterator[dict[str, Tensor]]:  # noqa: ANN401
    """Makes batches of several sizes and lengths, of random tokens, among them many marks."""
    generator, config = torch.Generator().manual_seed(0), model.config
    longest = config.max_context_tokens + 30 if config.kind == "responses" else config.longest_text
    marks = torch.tensor(getattr(config, "marker_ids", None) or [0])
    sizes = [(1, 1), (1, 2), (2, longest), (5, 6), (9, longest // 2)]
    sizes += [(3, longest + 30)] if config.kind == "dialogues" else []  # which the model cuts
    for count, length in sizes:
        ids = torch.randint(model.get_input_embeddings().num_embeddings, (count, length), generator=generator)
        marked = torch.rand(count, length, generator=generator) < 0.1
        ids = torch.where(marked, marks[torch.randint(len(marks), (count, length), generator=generator)], ids)
        lengths = torch.randint(1, length + 1, (count, 1), generator=generator)
        lengths[0] = length
        yield {"input_ids": ids, "attention_mask": (torch.arange(length) < lengths).long()}


@contextmanager
def quietly() -> Iterator[None]:
    """Keeps back what libraries say that only their own developers can use."""
    before, handlers = logging.root.manager.disable, list(logging.root.handlers)
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
        logging.root.handlers[:] = handlers  # some of them set up logging as a whole
