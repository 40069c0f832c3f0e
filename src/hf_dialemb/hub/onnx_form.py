"""The ONNX form of an encoder.

A graph from token ids to embeddings in float32, and one of 8-bit integers.

The inputs are ``input_ids`` and ``attention_mask``, each ``(batch, tokens)`` int64, as the
published tokenizer gives them, padded on the right. The output is ``sentence_embedding``, ``(batch,
D)`` float32. The graph holds all else: the mean of tokens, roles and turns from the markers of a
rendered dialogue, the choice between a ranker's towers.

For 8 bits, weights become integers once, one scale per column; activations do so as they come, so
that no texts are needed for calibration. Weights take 7 of the 8 bits: on older processors, sums of
more would overflow.
"""

import copy
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..data import load_dialogues
from ..errors import InputError
from ..methods import register
from ..metrics.vectors import unit
from ..storage.run_folder import write_record
from .published_folder import Messages, PublishedFolder, Vectors, compare, messages

TOLERANCE = (
    1e-4  # largest difference from the vectors of the checkpoint, relative to their largest value
)
LOWEST_COSINE = (
    0.8  # of 8-bit vectors to those in float32, on average; a graph below that is broken
)

INPUTS, OUTPUT = ("input_ids", "attention_mask"), "sentence_embedding"
_TEXTS = 60


def onnx_vectors(
    folder: Path, conversations: Sequence[Messages], file: str = PublishedFolder.ONNX
) -> Vectors:
    """Embed lists of messages by a graph of a published folder, ``(N, D)`` float32.

    This needs no torch.

    Of a text that is too long the tokenizer drops the last token too, which AutoModel and
    sentence-transformers keep.
    """
    from onnxruntime import InferenceSession
    from transformers import AutoTokenizer

    register()
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    session: Any = InferenceSession(str(folder / file), providers=["CPUExecutionProvider"])
    options = {
        "return_tensors": "np",
        "truncation": True,
        "return_dict": True,
        "tokenizer_kwargs": {"verbose": False},
    }
    batches = (tokenizer.apply_chat_template([turns], **options) for turns in conversations)
    parts = [
        session.run(None, {name: batch[name].astype(np.int64) for name in INPUTS})[0]
        for batch in batches
    ]
    return np.concatenate(parts)


def check_onnx() -> None:
    """Raise InputError if a package is missing."""
    for name in ("onnx", "onnxscript", "onnxruntime"):
        if find_spec(name) is None:
            raise InputError(f'ONNX: the package {name} is missing; pip install "hf-dialemb[onnx]"')


def write_int8(folder: Path, utterances: bool) -> str:
    """Quantise the graph of a published folder, record the loss in ``quantisation.json``, and
    return a line on it.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    files = (PublishedFolder.ONNX, PublishedFolder.INT8)
    large, small = (folder / file for file in files)
    with quietly():
        quantize_dynamic(
            large, small, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8
        )
    conversations = [dialogue.to_messages() for dialogue in load_dialogues("sample", split="dev")]
    if utterances:
        texts = dict.fromkeys(message["content"] for turns in conversations for message in turns)
        conversations = [messages(("user", text)) for text in texts]
    vectors = [unit(onnx_vectors(folder, conversations[:_TEXTS], file)) for file in files]
    cosines = (vectors[0] * vectors[1]).sum(axis=1)
    if not cosines.mean() >= LOWEST_COSINE:
        raise InputError(
            "The 8-bit graph gives other embeddings: their cosine to those in float32 is "
            f"{cosines.mean():.3f} on "
            f"average, expected at least {LOWEST_COSINE}; publish without it"
        )
    record = {
        "method": f"onnxruntime {version('onnxruntime')}, quantize_dynamic: 7-bit weights, per "
        "channel",
        "bytes": {file: (folder / file).stat().st_size for file in files},
        "cosine": {
            "texts": len(cosines),
            "mean": float(cosines.mean()),
            "min": float(cosines.min()),
        },
    }
    write_record(folder / PublishedFolder.QUANTISATION, record)
    return (
        f"Quantised: {small.stat().st_size / 1e6:.1f} MB of {large.stat().st_size / 1e6:.1f} MB; "
        "cosine to float32 "
        f"{cosines.mean():.4f} on average, {cosines.min():.4f} at least, on {len(cosines)} texts"
    )


class _Embedder(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Any:
        return self.model(input_ids=input_ids, attention_mask=attention_mask).pooler_output


def write_onnx(folder: Path, model: Any) -> str:
    """Write the graph of a model into its published folder, compare it with the model, and return a
    line on it.
    """
    from onnx_ir.passes.common import ClearMetadataAndDocStringPass

    model = model if model.dtype == torch.float32 else copy.deepcopy(model).float()
    embedder, file = _Embedder(model).train(False), folder / PublishedFolder.ONNX
    file.parent.mkdir()
    with quietly():
        program = _program(embedder, model.config)
        ClearMetadataAndDocStringPass()(program.model)  # which name places on this machine
        program.save(file)
    return verify_onnx(file, model)


def _program(embedder: nn.Module, config: Any) -> Any:
    """Record the graph, which takes batches and lengths of any size."""
    # A ranker cuts what is too long: only an example beyond its limits makes a graph that serves
    # both sides of them.
    length = (
        config.max_context_tokens + config.max_response_tokens if config.kind == "responses" else 7
    )
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
    """Return `torch.cummax` of non-negative ``(N, L)``, which ONNX lacks.

    Its places are not used.
    """
    place = torch.arange(values.shape[1])
    maxima = torch.where(place <= place.unsqueeze(1), values.unsqueeze(1), 0).amax(-1)
    return maxima, torch.zeros_like(maxima)


def verify_onnx(file: Path, model: Any) -> str:
    """Compare a graph with its model on random batches, and return a line with the largest
    difference.
    """
    from onnxruntime import InferenceSession

    session = InferenceSession(str(file), providers=["CPUExecutionProvider"])
    vectors, expected = [], []
    for batch in _batches(model):
        vectors.append(
            session.run([OUTPUT], {name: value.numpy() for name, value in batch.items()})[0]
        )
        with torch.inference_mode():
            expected.append(model(**batch).pooler_output.numpy())
    return compare(
        "ONNX, batches of 1 to 9", np.concatenate(vectors), np.concatenate(expected), TOLERANCE
    )


def _batches(model: Any) -> Iterator[dict[str, Tensor]]:
    """Yield batches of several sizes and lengths, of random tokens, among them many markers."""
    generator, config = torch.Generator().manual_seed(0), model.config
    longest = config.max_context_tokens + 30 if config.kind == "responses" else config.longest_text
    marks = torch.tensor(getattr(config, "marker_ids", None) or [0])
    sizes = [(1, 1), (1, 2), (2, longest), (5, 6), (9, longest // 2)]
    sizes += [(3, longest + 30)] if config.kind == "dialogues" else []  # which the model cuts
    for count, length in sizes:
        ids = torch.randint(
            model.get_input_embeddings().num_embeddings, (count, length), generator=generator
        )
        marked = torch.rand(count, length, generator=generator) < 0.1
        ids = torch.where(
            marked, marks[torch.randint(len(marks), (count, length), generator=generator)], ids
        )
        lengths = torch.randint(1, length + 1, (count, 1), generator=generator)
        lengths[0] = length
        yield {"input_ids": ids, "attention_mask": (torch.arange(length) < lengths).long()}


@contextmanager
def quietly() -> Iterator[None]:
    """Silence warnings and logs of libraries that only their developers can use."""
    before, handlers = logging.root.manager.disable, list(logging.root.handlers)
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
        logging.root.handlers[:] = handlers  # some libraries set up logging as a whole
