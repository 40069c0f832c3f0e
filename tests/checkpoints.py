"""Tiny untrained rankers and utterance encoders, in memory or as training writes them."""

import re
import string
from pathlib import Path

import pytest
import torch

from hf_dialemb import DSEModel, MultiGranularityModel
from hf_dialemb.methods import METHODS, get_method
from hf_dialemb.methods.dual_encoder import METHOD as DUAL
from hf_dialemb.methods.multi_granularity import METHOD as ENSEMBLE
from hf_dialemb.methods.ranker import LoadedRanker


def dual_encoder(dialogues, seed=0, **settings):
    """Return two LSTMs whose scores differ from response to response."""
    torch.manual_seed(seed)
    model, tokenizer = DUAL.model_class.build(
        None, dialogues, hidden_size=12, embedding_size=8, **settings
    )
    return LoadedRanker(model, tokenizer, DUAL)


def deep_attention_matching(dialogues):
    """Return a ranker that embeds nothing, for contexts of three turns of six words.

    Skip where it is not installed.
    """
    if "deep_attention_matching" not in METHODS:
        pytest.skip("deep_attention_matching is not installed")
    method = get_method("deep_attention_matching")
    torch.manual_seed(0)
    sizes = {
        "max_turns": 3,
        "max_turn_tokens": 6,
        "max_response_tokens": 8,
        "embedding_size": 8,
        "num_blocks": 1,
    }
    model, tokenizer = method.model_class.build(None, dialogues, vocabulary_size=1000, **sizes)
    return LoadedRanker(model, tokenizer, method)


def assembled(folders):
    """Return the ensemble of rankers that `save` wrote."""
    return LoadedRanker(*MultiGranularityModel.from_members(folders), ENSEMBLE)


def save(ranker, folder):
    """Write a ranker, and return its folder as text."""
    ranker.model.save_pretrained(folder)
    ranker.tokenizer.save_pretrained(folder)
    return str(folder)


def save_dse(
    backbone: str, folder: Path, dtype: torch.dtype = torch.float32, **settings: object
) -> Path:
    """Write DSE around a backbone, as training does, and return the folder."""
    torch.manual_seed(3)
    settings = {"encoding_tokens": settings.get("max_tokens", 32), **settings}
    model, tokenizer = DSEModel.from_backbone(backbone, **settings)
    model.to(dtype).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_bert(dialogues, folder: Path) -> Path:
    """Write a two-layer BERT of width 16, with a WordPiece vocabulary of the words of the
    dialogues."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    text = " ".join(turn.content.lower() for dialogue in dialogues for turn in dialogue.turns)
    letters = string.ascii_lowercase + string.digits
    marks = sorted({*re.findall(r"[^\w\s]", text), *"[]<>|/_"})
    words = sorted(set(re.findall(r"[^\W_]+", text)))[:600]
    special = [
        "[PAD]",
        *(f"[unused{index}]" for index in range(20)),
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
    ]
    vocabulary = [
        *special,
        *dict.fromkeys([*letters, *(f"##{letter}" for letter in letters), *marks, *words]),
    ]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=512,
    )
    model = BertModel(config)
    for parameter in (
        model.parameters()
    ):  # the usual initialisation is so small that all token vectors look alike
        parameter.data.mul_(5)
    model.save_pretrained(folder)
    return folder
