"""Truncation, turn numbering and the PLATO layout."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from hf_dialemb.models.dial2vec import Dial2VecModel
from hf_dialemb.models.dialogue import Dialogue
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.layout import Truncation, tokenize


def long_dialogue(turns: int = 6, words: int = 5) -> Dialogue:
    roles = ("user", "assistant")
    return Dialogue.from_messages(
        [{"role": roles[i % 2], "content": " ".join("abcdefghij"[i] * 1 for _ in range(words))} for i in range(turns)]
    )


@pytest.mark.parametrize(("keep", "letters"), [("start", "ab"), ("end", "ef")])
def test_whole_turns_stay_at_the_end_that_is_kept(tiny_bert, keep, letters):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, max_tokens=15, keep=keep)
    count = Truncation()
    batch = tokenize([long_dialogue()], tokenizer, model.config, count)
    text = tokenizer.decode(batch["input_ids"][0], skip_special_tokens=True)
    assert text.split() == [letter for letter in letters for _ in range(5)]
    assert batch["turn_ids"].max() == 1
    assert (count.truncated, count.tokens, count.dropped_tokens) == (1, 30, 20)
    assert str(count) == "1 of 1 dialogues were truncated (20 of 30 tokens dropped)"


@pytest.mark.parametrize(("keep", "first", "last"), [("start", "a", "c"), ("end", "d", "f")])
def test_tokens_are_cut_where_turns_need_not_stay_whole(tiny_bert, keep, first, last):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, max_tokens=15, keep=keep, whole_turns=False)
    batch = tokenize([long_dialogue()], tokenizer, model.config, Truncation())
    words = tokenizer.decode(batch["input_ids"][0], skip_special_tokens=True).split()
    assert (len(words), words[0], words[-1]) == (13, first, last)


def test_a_single_turn_beyond_the_limit_is_cut_and_not_lost(tiny_bert):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, max_tokens=10)
    batch = tokenize([long_dialogue(1, 50)], tokenizer, model.config, Truncation())
    assert batch["input_ids"].shape == (1, 10)


def test_nothing_is_counted_when_all_fits(tiny_bert, sample_dialogues):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert)
    count = Truncation()
    tokenize(sample_dialogues[:5], tokenizer, model.config, count)
    assert (count.dialogues, count.truncated, count.dropped_tokens) == (5, 0, 0)


def any_dialogue(generator, words: int) -> Dialogue:
    """Two speakers in any order, turns of any length, among them such as no token stands for."""
    turns = []
    for _ in range(generator.integers(1, 9)):
        length = int(generator.integers(0, words))
        content = " ".join(generator.choice(list("abcdefghij"), length)) or "\u200b"
        turns.append({"role": str(generator.choice(["user", "assistant"])), "content": content})
    return Dialogue.from_messages(turns)


@pytest.mark.parametrize("keep", ["start", "end"])
@pytest.mark.parametrize("whole_turns", [True, False])
@pytest.mark.parametrize("layout", [{}, {"wrapped": False, "position_layout": "utterance", "turn_order": "descending"}])
@pytest.mark.parametrize("side", ["left", "right"])
def test_rendered_dialogues_are_cut_as_dialogues_are(tiny_bert, keep, whole_turns, layout, side):
    model, tokenizer = Dial2VecModel.from_backbone(
        tiny_bert, max_tokens=20, keep=keep, whole_turns=whole_turns, **layout
    )
    for table in (model.turn_embeddings, model.role_embeddings):
        nn.init.normal_(table.weight)
    generator = np.random.default_rng(0)
    dialogues = [any_dialogue(generator, words) for words in (3, 6, 12, 40) for _ in range(25)]
    tokenizer.padding_side = side
    messages = [dialogue.to_messages() for dialogue in dialogues]
    batch = tokenizer.apply_chat_template(
        messages, return_dict=True, return_tensors="pt", padding=True, truncation=True
    )
    with torch.inference_mode():
        rendered = model(**batch)
        explicit = model(**tokenize(dialogues, tokenizer, model.config, Truncation()))
    torch.testing.assert_close(rendered.pooler_output, explicit.pooler_output, rtol=0, atol=1e-5)
    torch.testing.assert_close(rendered.role_embeddings, explicit.role_embeddings, rtol=0, atol=1e-5)
    assert (rendered.last_hidden_state.abs().sum(-1) > 0).sum(-1).max() == 20


def test_a_role_beyond_the_models_is_an_error(tiny_bert):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert)
    third = Dialogue.from_messages([{"role": "speaker_3", "content": "hello"}])
    with pytest.raises(InputError, match="speaker_3"):
        tokenize([third], tokenizer, model.config, Truncation())


def test_official_role_alignment_repeats_the_programs_error(tiny_bert):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, max_turns=3, wrapped=False)
    six = long_dialogue(6, 1)  # the last three turns are those of assistant, user, assistant
    assert tokenize([six], tokenizer, model.config, Truncation())["role_ids"].tolist() == [[1, 0, 1]]
    model.config.role_alignment = "official"
    assert tokenize([six], tokenizer, model.config, Truncation())["role_ids"].tolist() == [[0, 1, 0]]


PLATO = {"wrapped": False, "end_of_utterance": "[unused1]", "position_layout": "utterance", "turn_order": "descending",
         "max_turns": 15, "num_turn_embeddings": 16, "whole_turns": False}  # fmt: skip


def plato_forward(
    weights: dict[str, torch.Tensor], ids, positions, roles, turns, heads: int, eps: float
) -> torch.Tensor:
    """PLATO's encoder restated: summed embeddings, LayerNorm, post-norm blocks with fused query-key-value."""

    def norm(x, name):
        return nn.functional.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], eps)

    table = {name: weights[f"embedder.{name}_embedding.weight"] for name in ("token", "pos", "type", "turn")}
    x = norm(
        table["token"][ids] + table["pos"][positions] + table["type"][roles] + table["turn"][turns], "embed_layer_norm"
    )
    layer = 0
    while f"layers.{layer}.attn_norm.weight" in weights:
        name = f"layers.{layer}"

        def linear(x, part, name=name):
            return x @ weights[f"{name}.{part}.weight"].T + weights[f"{name}.{part}.bias"]

        q, k, v = (t.unflatten(-1, (heads, -1)).transpose(0, 1) for t in linear(x, "attn.linear_qkv").chunk(3, -1))
        attention = torch.softmax(q @ k.transpose(1, 2) * q.shape[-1] ** -0.5, -1) @ v
        x = norm(x + linear(attention.transpose(0, 1).flatten(1), "attn.linear_out"), f"{name}.attn_norm")
        hidden = nn.functional.gelu(linear(x, "ff.linear_hidden.0"))
        x = norm(x + linear(hidden, "ff.linear_out"), f"{name}.ff_norm")
        layer += 1
    return x


def plato_weights(model: Dial2VecModel) -> dict[str, torch.Tensor]:
    """Reads the model's weights under PLATO's names."""
    w, d = model.state_dict(), model.config.hidden_size
    bert = "encoder.embeddings."
    out = {
        "embedder.token_embedding.weight": w[bert + "word_embeddings.weight"],
        "embedder.pos_embedding.weight": w[bert + "position_embeddings.weight"],
        "embedder.type_embedding.weight": w["role_embeddings.weight"],
        "embedder.turn_embedding.weight": w["turn_embeddings.weight"],
        "embed_layer_norm.weight": w[bert + "LayerNorm.weight"],
        "embed_layer_norm.bias": w[bert + "LayerNorm.bias"],
    }
    names = {"attn.linear_out": "attention.output.dense", "attn_norm": "attention.output.LayerNorm",
             "ff.linear_hidden.0": "intermediate.dense", "ff.linear_out": "output.dense",
             "ff_norm": "output.LayerNorm"}  # fmt: skip
    for layer in range(model.config.encoder_config.num_hidden_layers):
        prefix = f"encoder.encoder.layer.{layer}."
        for kind in ("weight", "bias"):
            qkv = [w[f"{prefix}attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
            out[f"layers.{layer}.attn.linear_qkv.{kind}"] = torch.cat(qkv)
            for theirs, ours in names.items():
                out[f"layers.{layer}.{theirs}.{kind}"] = w[f"{prefix}{ours}.{kind}"]
    assert out["layers.0.attn.linear_qkv.weight"].shape == (3 * d, d)
    return out


def test_the_plato_layout_equals_platos_forward(tiny_bert):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, **PLATO)
    for table in (model.turn_embeddings, model.role_embeddings):
        nn.init.normal_(table.weight)
    model.encoder.embeddings.token_type_embeddings.weight.data.zero_()  # PLATO keeps its roles there, and nothing else
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = 1e-6
    dialogue = long_dialogue(9, 3)
    tokens = [
        tokenizer(turn.content, add_special_tokens=False)["input_ids"] + [tokenizer.convert_tokens_to_ids("[unused1]")]
        for turn in dialogue.turns
    ]
    ids = torch.tensor([token for turn in tokens for token in turn])
    positions = torch.tensor([position for turn in tokens for position in range(len(turn))])
    turns = torch.tensor([len(tokens) - index for index, turn in enumerate(tokens) for _ in turn])
    roles = torch.tensor([index % 2 for index, turn in enumerate(tokens) for _ in turn])
    expected = plato_forward(plato_weights(model), ids, positions, roles, turns, heads=2, eps=1e-6)
    batch = tokenize([dialogue], tokenizer, model.config, Truncation())
    assert batch["input_ids"][0].tolist() == ids.tolist()
    with torch.inference_mode():
        explicit = model(**batch)
        rendered = tokenizer.apply_chat_template([dialogue.to_messages()], return_dict=True, return_tensors="pt")
        marked = model(**rendered)
    assert torch.allclose(explicit.last_hidden_state[0], expected, atol=1e-5)
    assert torch.allclose(marked.pooler_output, explicit.pooler_output, atol=1e-5)


def test_plato_reads_the_last_fifteen_turns(tiny_bert):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, **PLATO)
    roles = ("user", "assistant")
    dialogue = Dialogue.from_messages([{"role": roles[i % 2], "content": f"number {i}"} for i in range(20)])
    batch = tokenize([dialogue], tokenizer, model.config, Truncation())
    assert batch["turn_ids"].max() == 14
    assert "number 4 [" not in tokenizer.decode(batch["input_ids"][0])
    text = tokenizer.apply_chat_template(dialogue.to_messages(), tokenize=False)
    assert text.count("[unused1]") == 15
    assert "number 5[" in text
