"""What differs between families of backbones: where positions begin, how many there are, and what can be frozen."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoConfig, AutoModel

from hf_dialemb.models import backbones
from hf_dialemb.models.backbone_model import _position_limit
from hf_dialemb.models.dial2vec import Dial2VecModel
from hf_dialemb.models.dialogue import Dialogue
from hf_dialemb.models.dse import DSEModel
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.layout import Truncation, tokenize

SIZE = {
    "vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
    "max_position_embeddings": 20, "pad_token_id": 1,
}  # fmt: skip
OFFSET = ("roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "data2vec-text",
          "ibert", "longformer", "luke", "xmod")  # fmt: skip
MORE = {
    "longformer": {"attention_window": 4},
    "luke": {"entity_vocab_size": 4, "entity_emb_size": 8},
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},
    "distilbert": {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16},
}


@pytest.mark.parametrize("family", [*OFFSET, "bert", "electra", "distilbert"])
def test_the_limit_is_the_longest_text_that_a_backbone_reads(family):
    config = AutoConfig.for_model(family, **SIZE, **MORE.get(family, {}))
    model = AutoModel.from_config(config).eval()
    limit = _position_limit(config)
    assert limit == (18 if family in OFFSET else 20)
    model(input_ids=torch.full((1, limit), 7))
    with pytest.raises((IndexError, RuntimeError)):
        model(input_ids=torch.full((1, 24), 7))


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
def test_each_utterance_counts_its_positions_from_the_familys_first(tiny_backbones, family):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_backbones[family], position_layout="utterance", wrapped=False)
    seen = {}
    model.encoder.register_forward_pre_hook(lambda _, __, given: seen.update(given), with_kwargs=True)
    dialogue = Dialogue.from_messages([{"role": role, "content": "a b a"} for role in ("user", "assistant")])
    batch = tokenize([dialogue], tokenizer, model.config, Truncation())
    model(**batch)
    length = batch["input_ids"].shape[1] // 2
    first = 0 if family == "bert" else model.encoder.config.pad_token_id + 1
    assert seen["position_ids"].tolist() == [[*range(first, first + length)] * 2]


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "distilbert", "modernbert"])
def test_of_frozen_layers_and_what_lies_below_nothing_learns(tiny_backbones, family):
    model, _ = DSEModel.from_backbone(tiny_backbones[family], frozen_layers=1)
    model.freeze_lower_layers()
    names = {name for name, parameter in model.encoder.named_parameters() if parameter.requires_grad}
    assert any("layer.1." in name or "layers.1." in name for name in names)
    assert not [name for name in names if "layer.0." in name or "layers.0." in name or "embeddings." in name]
    assert not [name for name in names if "relative_attention_bias" in name]


def test_weights_under_the_name_of_others_are_refused(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"others")
    spec = type("Spec", (), {"origin": str(tmp_path / "__init__.py")})
    monkeypatch.setattr(backbones, "find_spec", lambda name: spec)
    monkeypatch.setattr(backbones, "_why_unreachable", lambda name: "OfflineModeIsEnabled")
    with pytest.raises(InputError, match="are not the Hub's; reinstall that package"):
        backbones.resolve_backbone("all-MiniLM-L6-v2")
