"""Read PLATO (Bao et al., ACL 2020) into a dial2vec model.

Three programs name the same parameters: paddle's, the port to torch, and dial2vec's released program
(``*.best_model.pkl``), which puts ``bert.`` before the names of the port.

PLATO sums the embeddings of token, position, type and turn, normalises, and runs post-norm blocks with a fused
projection to query, key and value: BERT's layers under other names. Its types are speakers, 0 the bot and 1 the user.
Its turns count down to 1; 0 is the response. Its positions begin anew in every utterance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from transformers import BertConfig, BertTokenizer, PreTrainedTokenizerBase

from ...errors import InputError
from ...methods.dial2vec import Dial2VecConfig, Dial2VecModel
from .placing import AS_IT_IS, IN_THREE, REVERSED, TRANSPOSED, TRANSPOSED_IN_THREE, Report, Rule, place

_PADDLE, _DIAL2VEC = "Model/UnifiedTransformer_0", "bert."
_HEAD_SIZE = 64  # of an attention head; weights alone do not show it

_TABLES = (  # of the port, of paddle, of ours
    ("embedder.token_embedding.weight", "/Embedder_0/Embedding_0.w_0", "encoder.embeddings.word_embeddings.weight"),
    ("embedder.pos_embedding.weight", "/Embedder_0/Embedding_1.w_0", "encoder.embeddings.position_embeddings.weight"),
    ("embedder.type_embedding.weight", "/Embedder_0/Embedding_2.w_0", "role_embeddings.weight"),
    ("embedder.turn_embedding.weight", "/Embedder_0/Embedding_3.w_0", "turn_embeddings.weight"),
    ("embed_layer_norm.weight", "/LayerNorm_0.w_0", "encoder.embeddings.LayerNorm.weight"),
    ("embed_layer_norm.bias", "/LayerNorm_0.b_0", "encoder.embeddings.LayerNorm.bias"),
)
_QUERY_KEY_VALUE = ("attention.self.query", "attention.self.key", "attention.self.value")
_LAYER = (
    ("attn.linear_qkv", "MultiheadAttention_0/FC_0", _QUERY_KEY_VALUE),
    ("attn.linear_out", "MultiheadAttention_0/FC_1", ("attention.output.dense",)),
    ("attn_norm", "LayerNorm_0", ("attention.output.LayerNorm",)),
    ("ff.linear_hidden.0", "FeedForward_0/FC_0", ("intermediate.dense",)),
    ("ff.linear_out", "FeedForward_0/FC_1", ("output.dense",)),
    ("ff_norm", "LayerNorm_1", ("output.LayerNorm",)),
)
_WHY_DROPPED = {
    r"pooler\..*": "dial2vec embeds the mean of tokens, not a pooled first token",
    r"discriminator[./].*": "chooses PLATO's responses; no embedding goes through it",
    r"post_network[./].*": "estimates PLATO's latent variable, which dial2vec does not read",
    r"bow_predictor[./].*|pre_bow_predictor[./].*": "predicts a response's words in PLATO's pre-training",
    r"predictor[./].*|pre_predictor[./].*": "generates PLATO's responses",
    r"mask_embed": "the token that stands for PLATO's latent variable; dial2vec does not prepend it",
    r"latent_embeddings": "the values of PLATO's latent variable; dial2vec does not prepend it",
    r"sequence_mask": "a constant of generation",
}
SETTINGS: dict[str, Any] = {
    "wrapped": False,
    "end_of_utterance": "[unused1]",
    "position_layout": "utterance",
    "turn_order": "descending",
    "whole_turns": False,
    "loss_temperature": 0.2,
    "window": 10,
    "num_negatives": 9,
}
"""PLATO's layout and dial2vec's objective (section 4.4); sizes are read from the weights."""


def build(
    tensors: Mapping[str, Any], source: str, vocabulary: str
) -> tuple[Dial2VecModel, PreTrainedTokenizerBase, Report]:
    """Return a dial2vec model with PLATO's values, its tokenizer, and an account of every key.

    Args:
        tensors: PLATO's tensors or arrays, under the names of any of the three programs.
        source: What messages and the report call the checkpoint.
        vocabulary: The WordPiece vocabulary, one token a line.

    Raises:
        InputError: A key is absent that the sizes are read from, a shape or the vocabulary does not fit, or the
            backbone is BERT.
    """
    prefix = next((prefix for prefix in (_PADDLE, _DIAL2VEC) if any(key.startswith(prefix) for key in tensors)), "")
    paddle = prefix == _PADDLE
    if f"{_DIAL2VEC}embeddings.word_embeddings.weight" in tensors:
        raise InputError(
            f"'{source}': got the backbone BERT, expected PLATO; dial2vec's program reads dialogues without a closing "
            "[SEP] there, which no layout of this package does"
        )
    tables = [prefix + row[paddle] for row in _TABLES]
    (rows, width), (positions, _), _, (turns, _) = (_size(tensors, table) for table in tables[:4])
    first = prefix + ("/TransformerBlock_0/FeedForward_0/FC_0.w_0" if paddle else "layers.0.ff.linear_hidden.0.weight")
    inner = _size(tensors, first)[1 if paddle else 0]
    block = rf"{re.escape(prefix)}/TransformerBlock_(\d+)/.*" if paddle else rf"{re.escape(prefix)}layers\.(\d+)\..*"
    layers = 1 + max(int(match[1]) for key in tensors if (match := re.fullmatch(block, key)))
    if width % _HEAD_SIZE:
        raise InputError(f"width: got {width}, expected a multiple of {_HEAD_SIZE}, the size of an attention head")
    backbone = BertConfig(
        vocab_size=rows, hidden_size=width, num_hidden_layers=layers, num_attention_heads=width // _HEAD_SIZE,
        intermediate_size=inner, max_position_embeddings=positions, type_vocab_size=1, layer_norm_eps=1e-6,
        hidden_act="gelu", pad_token_id=0,
    )  # fmt: skip
    config = Dial2VecConfig(
        encoder_config=backbone, max_tokens=positions, num_turn_embeddings=turns, max_turns=turns - 1,
        frozen_layers=layers // 2, **SETTINGS,
    )  # fmt: skip
    tokenizer = _wordpiece(vocabulary, rows)
    Dial2VecModel.prepare_tokenizer(tokenizer, config)
    model = Dial2VecModel(config)
    model.encoder.embeddings.token_type_embeddings.weight.data.zero_()
    report = Report(source, config.model_type)
    report.made = {
        "encoder.embeddings.token_type_embeddings.weight": "zeros; PLATO's types are speakers, in role_embeddings",
        "center": "zeros; nothing is taken off the embeddings",
    }
    start = re.escape(prefix) + (r"[./]" if paddle else "")
    reasons = [(f"{start}(?:{pattern})", reason) for pattern, reason in _WHY_DROPPED.items()]
    place(tensors, _rules(prefix, paddle, layers), model.state_dict(), reasons, report)
    return model, tokenizer, report


def _wordpiece(vocabulary: str, rows: int) -> PreTrainedTokenizerBase:
    """Make BERT's uncased tokenizer of a vocabulary."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.txt"
        path.write_text(vocabulary, encoding="utf-8")
        tokenizer: PreTrainedTokenizerBase = BertTokenizer(vocab=str(path), do_lower_case=True)
    tokenizer.name_or_path = ""
    if len(tokenizer) != rows:
        raise InputError(
            f"vocabulary: got {len(tokenizer)} tokens, expected {rows}, the rows of the token table; "
            "take the vocab.txt that belongs to the checkpoint (--vocab)"
        )
    return tokenizer


def _size(tensors: Mapping[str, Any], key: str) -> tuple[int, ...]:
    """Return the shape of a table that the model's sizes are read from."""
    if key not in tensors:
        some = ", ".join(sorted(tensors)[:3]) or "none"
        raise InputError(
            f"got {len(tensors)} keys ({some}, ...), expected the key '{key}' of PLATO; fetch the checkpoint again"
        )
    shape = tuple(tensors[key].shape)
    if len(shape) != 2:
        raise InputError(f"key '{key}': got the shape {shape}, expected two dimensions; fetch the checkpoint again")
    return shape


def _rules(prefix: str, paddle: bool, layers: int) -> Iterator[Rule]:
    for row in _TABLES:
        yield Rule(prefix + row[paddle], (row[2],), REVERSED if row[2].startswith("role_") else AS_IT_IS)
    for number in range(layers):
        for torch_name, paddle_name, names in _LAYER:
            for part, paddle_part in (("weight", "w_0"), ("bias", "b_0")):
                changes = (IN_THREE, TRANSPOSED_IN_THREE) if names == _QUERY_KEY_VALUE else (AS_IT_IS, TRANSPOSED)
                change = changes[paddle and part == "weight" and "LayerNorm" not in paddle_name]
                ported = f"layers.{number}.{torch_name}.{part}"
                source = f"/TransformerBlock_{number}/{paddle_name}.{paddle_part}" if paddle else ported
                targets = tuple(f"encoder.encoder.layer.{number}.{name}.{part}" for name in names)
                yield Rule(prefix + source, targets, change)
