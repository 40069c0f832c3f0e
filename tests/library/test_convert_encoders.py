"""Load released encoders as their authors saved them, without conversion."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer, BertForMaskedLM

from hf_dialemb import load_encoder
from hf_dialemb.errors import InputError

TEXTS = ["I need a cheap hotel in the north.", "which day?", "My card was stolen!"]


def mean_of_tokens(source: str | Path) -> np.ndarray:
    model, tokenizer = (
        AutoModel.from_pretrained(source).eval(),
        AutoTokenizer.from_pretrained(source),
    )
    with torch.inference_mode():
        states = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state for text in TEXTS]
    return np.stack([state[0].mean(0).numpy() for state in states])


@pytest.fixture
def dse(tiny_bert, tmp_path) -> Path:
    """Write a folder as ``aws-ai/dse-bert-base``.

    A pickle with the backbone's prefix and the contrastive head.
    """
    folder = Path(shutil.copytree(tiny_bert, tmp_path / "dse"))
    state = AutoModel.from_pretrained(tiny_bert).state_dict()
    old = {
        f"bert.{key}".replace("LayerNorm.weight", "LayerNorm.gamma"): value
        for key, value in state.items()
    }
    head = {
        "contrast_head.0.weight": torch.randn(16, 16),
        "contrast_head.2.weight": torch.randn(8, 16),
    }
    torch.save(
        {**old, "bert.embeddings.position_ids": torch.arange(512)[None], **head},
        folder / "pytorch_model.bin",
    )
    (folder / "model.safetensors").unlink()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["PSCBert"]}))
    return folder


def test_dse_loads_from_its_pickle_of_tensors_unless_that_calls_something(dse, tiny_bert, tmp_path):
    assert (
        np.abs(load_encoder(str(dse)).encode_utterances(TEXTS) - mean_of_tokens(tiny_bert)).max()
        < 1e-5
    )

    class Calls:
        def __reduce__(self):
            return eval, (f"open({str(tmp_path / 'trace')!r}, 'w').close()",)

    torch.save({"bert.x": Calls()}, dse / "pytorch_model.bin")
    with pytest.raises(InputError, match="cannot be read"):
        load_encoder(str(dse)).encode_utterances(TEXTS)
    assert not (tmp_path / "trace").exists()


def test_tod_bert_loads_without_its_language_model_head(tiny_bert, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    tokenizer.add_tokens(["[sys]", "[usr]"])
    tokenizer.save_pretrained(tmp_path)
    torch.manual_seed(6)
    BertForMaskedLM(
        AutoConfig.from_pretrained(tiny_bert, vocab_size=len(tokenizer))
    ).save_pretrained(tmp_path)
    assert (
        np.abs(
            load_encoder(str(tmp_path)).encode_utterances(TEXTS) - mean_of_tokens(tmp_path)
        ).max()
        < 1e-5
    )
