"""The checks that transformers runs on each of its own models, restated for ours: one tiny model per method.

What of them does not apply: generation, caches, tied and pruned heads, ``inputs_embeds`` (dialogues and rankers read
marks off the token ids), labels (training batches have their own layout), and maps over several devices.
"""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModel, BertConfig, PreTrainedModel

from hf_dialemb.models import METHODS, get_method, register

register()
WORDS, MARKS = 60, [5, 6, 7, 8, 9, 10]
LIMITS = {"max_context_tokens": 24, "max_response_tokens": 12}
DIALOGUES, UTTERANCES = ["dial2vec"], ["dse", "dialog2flow", "dialogue_cse"]
WORD_RANKERS = ["dual_encoder", "deep_attention_matching"]
BACKBONES = [*DIALOGUES, *UTTERANCES, "transformer_dual_encoder"]
ENCODERS = [*DIALOGUES, *UTTERANCES]


def bert() -> BertConfig:
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return BertConfig(vocab_size=WORDS, max_position_embeddings=48, **sizes, **dropout)


def config_of(name: str) -> Any:
    config = get_method(name).config_class
    if name == "dial2vec":
        return config(encoder_config=bert(), marker_ids=MARKS[:2], max_tokens=32, num_negatives=2)
    if config.kind == "utterances":
        own = {
            "dialogue_cse": {"turn_aggregation": "attention", "num_negatives": 2},
            "dialog2flow": {"target": "joint"},
        }
        return config(encoder_config=bert(), max_tokens=32, **own.get(name, {}))
    if name == "dual_encoder":
        return config(vocab_size=WORDS, marker_ids=MARKS, embedding_size=6, hidden_size=10, **LIMITS)
    if name == "transformer_dual_encoder":
        return config(encoder_config=bert(), marker_ids=MARKS, towers="separate", **LIMITS)
    if name == "deep_attention_matching":
        sizes = {"max_turns": 3, "max_turn_tokens": 6, "embedding_size": 8, "num_blocks": 1}
        return config(vocab_size=WORDS, max_context_tokens=18, max_response_tokens=9, **sizes)
    members = [config_of("dual_encoder"), config_of("transformer_dual_encoder")]
    return config(members=[member.to_diff_dict() for member in members])


def build(name: str) -> PreTrainedModel:
    """A model in evaluation mode whose weights are large enough to tell inputs apart."""
    torch.manual_seed(0)
    model = get_method(name).model_class(config_of(name)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def tokens(*size: int, seed: int = 1) -> dict[str, torch.Tensor]:
    """Random words, padded on the right; the first row is full."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(11, WORDS, size, generator=generator)
    lengths = torch.randint(2, size[-1] + 1, size[:-1], generator=generator)
    lengths.view(-1)[0] = size[-1]
    return {"input_ids": ids, "attention_mask": (torch.arange(size[-1]) < lengths.unsqueeze(-1)).long()}


def candidates(*size: int) -> dict[str, torch.Tensor]:
    return {name.replace("input", "candidate").replace("attention", "candidate"): value
            for name, value in tokens(*size, seed=2).items()}  # fmt: skip


def inputs_of(name: str) -> dict[str, torch.Tensor]:
    """What a user gives: dialogues or texts, and candidates where nothing else has a result."""
    if name == "deep_attention_matching":
        return {**tokens(3, 2, 5), **candidates(3, 2, 6)}
    batch = tokens(4, 14)
    if get_method(name).kind != "utterances":
        batch["input_ids"][:, 0] = MARKS[0]
        batch["input_ids"][0, 6] = MARKS[1]
        batch["input_ids"][1, 0] = MARKS[-1]  # to a ranker a response
    return batch


def training_batch(name: str) -> dict[str, torch.Tensor]:
    if name == "dial2vec":
        batch = tokens(2, 3, 12)
        turns = torch.arange(12).expand(2, 3, 12) // 3
        return {**batch, "turn_ids": turns, "role_ids": turns % 2}
    if name == "dialog2flow":
        labels = torch.tensor([[0, 1, 2, 3]] * 4) + torch.arange(4).unsqueeze(1)
        vectors = torch.nn.functional.normalize(torch.randn(4, 2, 5), dim=-1)
        rows = {"drawn_labels": labels[:, ::2], "label_vectors": vectors}
        return {**tokens(4, 4, 9), **rows, "carried_labels": labels.unsqueeze(-1)}
    if name == "dialogue_cse":
        return tokens(4, config_of(name).context_rows + 3, 9)
    if get_method(name).kind == "utterances":  # pairs
        return tokens(4, 2, 9)
    if name == "deep_attention_matching":
        return inputs_of(name)
    return {**tokens(3, 14), **candidates(3, 4, 9)}


def result(model: PreTrainedModel, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    with torch.no_grad():
        output = model(**batch)
    return output.logits if output.get("logits") is not None else output.pooler_output


def gradients(model: PreTrainedModel, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor | None]:
    model.zero_grad()
    model.train()(**batch).loss.backward()
    return {name: parameter.grad for name, parameter in model.named_parameters() if parameter.requires_grad}


@dataclass
class Saved:
    name: str
    model: PreTrainedModel
    folder: Path
    before: torch.Tensor


@pytest.fixture(scope="module")
def all_saved(tmp_path_factory) -> dict[str, Saved]:
    made = {}
    for name in METHODS:
        folder, model = tmp_path_factory.mktemp(name), build(name)
        model.save_pretrained(folder)
        made[name] = Saved(name, model, folder, result(model, inputs_of(name)))
    return made


@pytest.fixture(params=list(METHODS))
def saved(request, all_saved) -> Saved:
    return all_saved[request.param]


def test_what_was_saved_loads_with_every_key_and_the_same_results(saved):
    model, loading = AutoModel.from_pretrained(saved.folder, output_loading_info=True)
    assert type(model) is type(saved.model)
    assert not any(loading[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"))
    assert load_file(saved.folder / "model.safetensors").keys() == saved.model.state_dict().keys()
    assert torch.allclose(
        result(model, inputs_of(saved.name)), saved.before, atol=1e-6
    )  # memory may be aligned otherwise
    assert not model.training


def test_shards_load_alike(saved, tmp_path):
    saved.model.save_pretrained(tmp_path, max_shard_size="5KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    assert (tmp_path / "model.safetensors.index.json").is_file()
    assert torch.allclose(result(AutoModel.from_pretrained(tmp_path), inputs_of(saved.name)), saved.before, atol=1e-6)


def test_a_config_comes_back_with_all_fields(saved, tmp_path):
    config = saved.model.config
    config.save_pretrained(tmp_path)
    first, second = AutoConfig.from_pretrained(saved.folder), AutoConfig.from_pretrained(tmp_path)
    volatile = ("_name_or_path", "architectures", "dtype")
    given = {key: value for key, value in config.to_dict().items() if key not in volatile}
    for again in (first, second, type(config).from_dict(config.to_dict()), copy.deepcopy(config)):
        assert type(again) is type(config)
        assert {key: value for key, value in again.to_dict().items() if key not in volatile} == given


def test_the_class_says_what_transformers_asks_of_it(saved):
    model = type(saved.model)
    assert list(inspect.signature(model.forward).parameters)[:3] == ["self", "input_ids", "attention_mask"]
    assert model.main_input_name == "input_ids"
    assert model.config_class is get_method(saved.name).config_class
    assert isinstance(model.base_model_prefix, str)
    assert saved.model.base_model is saved.model  # nothing is wrapped that would load by itself
    assert not getattr(saved.model, "embeds", True) or saved.model.config.hidden_size > 0


def test_no_weights_are_tied(saved):
    assert not saved.model.all_tied_weights_keys
    places = [parameter.data_ptr() for parameter in saved.model.parameters()]
    assert len(set(places)) == len(places)


def test_evaluation_is_deterministic_and_a_copy_is_equal(saved):
    batch = inputs_of(saved.name)
    assert torch.allclose(result(saved.model, batch), saved.before, atol=1e-6)
    assert torch.allclose(result(copy.deepcopy(saved.model), batch), saved.before, atol=1e-6)


def test_a_tuple_holds_what_the_output_holds(saved):
    batch = inputs_of(saved.name)
    with torch.no_grad():
        whole, parts = saved.model(**batch), saved.model(**batch, return_dict=False)
    assert isinstance(parts, tuple)
    flat = [value for value in whole.to_tuple() if isinstance(value, torch.Tensor)]
    assert all(torch.equal(one, other) for one, other in zip(flat, parts, strict=True))


@pytest.mark.parametrize("name", [name for name in METHODS if name != "merged"])
def test_every_trainable_parameter_learns(name):
    found = gradients(build(name), training_batch(name))
    assert [name for name, gradient in found.items() if gradient is None] == []
    assert all(torch.isfinite(gradient).all() for gradient in found.values())
    still = [name for name, gradient in found.items() if not gradient.any()]
    assert [name for name in still if not name.endswith("key.bias")] == []  # what all keys share changes no attention


@pytest.mark.parametrize("name", BACKBONES)
def test_gradient_checkpointing_changes_no_gradient(name):
    model, batch = build(name), training_batch(name)
    expected = gradients(model, batch)
    model.gradient_checkpointing_enable()
    assert model.is_gradient_checkpointing
    found = gradients(model, batch)
    for key, value in expected.items():
        assert torch.allclose(found[key], value, rtol=1e-4, atol=1e-6), key
    model.gradient_checkpointing_disable()
    assert not model.is_gradient_checkpointing


@pytest.mark.parametrize("name", [*WORD_RANKERS, "multi_granularity"])
def test_models_without_layers_of_a_backbone_refuse_gradient_checkpointing(name):
    """LSTMs and images of words have none; the members of an ensemble learn one by one, before they are in it."""
    assert not type(build(name)).supports_gradient_checkpointing
    with pytest.raises(ValueError, match="does not support"):
        build(name).gradient_checkpointing_enable()


@pytest.mark.parametrize("name", BACKBONES)
def test_attention_implementations_agree(name, all_saved):
    folder = all_saved[name].folder
    results = {}
    for kind in ("eager", "sdpa"):
        model = AutoModel.from_pretrained(folder, attn_implementation=kind)
        used = {module.config._attn_implementation for module in model.modules() if hasattr(module, "query")}
        assert used == {kind}
        results[kind] = result(model, inputs_of(name))
    assert torch.allclose(results["eager"], results["sdpa"], atol=1e-5)
    model.set_attn_implementation("eager")
    assert torch.equal(result(model, inputs_of(name)), results["eager"])


@pytest.mark.parametrize("kind", ["eager", "sdpa"])
def test_an_ensemble_is_loaded_with_the_attention_implementation_of_ones_choice(kind, all_saved):
    ensemble = all_saved["multi_granularity"]
    model = AutoModel.from_pretrained(ensemble.folder, attn_implementation=kind)
    assert {module.config._attn_implementation for module in model.modules() if hasattr(module, "query")} == {kind}
    assert torch.allclose(result(model, inputs_of(ensemble.name)), ensemble.before, atol=1e-5)


def test_an_ensemble_hands_its_attention_implementation_to_its_members(all_saved):
    ensemble = all_saved["multi_granularity"]
    model = copy.deepcopy(ensemble.model)
    model.set_attn_implementation("eager")
    assert {module.config._attn_implementation for module in model.modules() if hasattr(module, "query")} == {"eager"}
    assert torch.allclose(result(model, inputs_of(ensemble.name)), ensemble.before, atol=1e-5)


@pytest.mark.parametrize("name", ENCODERS)
def test_hidden_states_and_attentions_come_out(name):
    model, batch = build(name), inputs_of(name)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        output = model(**batch, output_hidden_states=True, output_attentions=True)
    assert [state.shape[-1] for state in output.hidden_states] == [16] * 3
    assert [weights.shape[:2] for weights in output.attentions] == [(4, 2)] * 2
    model.config.output_hidden_states = True
    plain = model(**batch)
    assert plain.attentions is None


@pytest.mark.parametrize("name", ENCODERS)
def test_the_token_table_can_be_replaced(name, all_saved):
    model = copy.deepcopy(all_saved[name].model)
    table = model.get_input_embeddings()
    assert table.num_embeddings == WORDS
    other = torch.nn.Embedding(WORDS, table.embedding_dim)
    model.set_input_embeddings(other)
    assert model.get_input_embeddings() is other
    assert not torch.allclose(result(model, inputs_of(name)), all_saved[name].before)


@pytest.mark.parametrize("name", [*WORD_RANKERS, "transformer_dual_encoder", "multi_granularity"])
def test_rankers_refuse_another_token_table(name):
    """Contexts and responses may have one each, and words are counted once, before the training."""
    model = build(name)
    assert model.get_input_embeddings().num_embeddings == WORDS
    with pytest.raises(NotImplementedError):
        model.resize_token_embeddings(WORDS + 1)


@pytest.mark.parametrize(("size", "multiple", "expected"), [(WORDS + 3, None, 63), (WORDS + 3, 8, 64), (40, None, 40)])
@pytest.mark.parametrize("name", ENCODERS)
def test_the_token_table_is_resized_and_stays_so(name, size, multiple, expected, tmp_path):
    model, batch = build(name), inputs_of(name)
    old = model.get_input_embeddings().weight.detach().clone()
    batch = {key: value.clamp(max=39) if key.endswith("ids") else value for key, value in batch.items()}
    before = result(model, batch)
    model.resize_token_embeddings(size, pad_to_multiple_of=multiple)
    table = model.get_input_embeddings().weight
    assert table.shape[0] == expected
    assert torch.equal(table[: min(expected, WORDS)], old[:expected])
    assert torch.equal(result(model, batch), before)
    model.save_pretrained(tmp_path)
    assert torch.equal(result(AutoModel.from_pretrained(tmp_path), batch), before)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_any_precision_loads_and_runs(saved, dtype, tmp_path):
    model = AutoModel.from_pretrained(saved.folder, dtype=str(dtype).removeprefix("torch."))
    assert {value.dtype for value in model.state_dict().values() if value.is_floating_point()} == {dtype}
    assert model.dtype == dtype
    found = result(model, inputs_of(saved.name)).double()
    scale = saved.before.abs().max()
    assert (found - saved.before).abs().max() <= (1e-5 if dtype == torch.float64 else 0.1) * scale
    model.save_pretrained(tmp_path)
    again = AutoModel.from_pretrained(tmp_path)  # "auto" is the default
    assert again.dtype == dtype
    assert torch.equal(result(again, inputs_of(saved.name)).double(), found)


def test_a_model_moves_as_a_whole(saved):
    half = copy.deepcopy(saved.model).half()
    assert {value.dtype for value in half.state_dict().values() if value.is_floating_point()} == {torch.float16}
    assert torch.isfinite(result(half, inputs_of(saved.name))).all()
    moved = copy.deepcopy(saved.model).to("meta")
    assert {value.device.type for value in [*moved.parameters(), *moved.buffers()]} == {"meta"}
    with torch.device("meta"):
        empty = type(saved.model)(saved.model.config)
    assert {name: value.shape for name, value in empty.state_dict().items()} == {
        name: value.shape for name, value in saved.model.state_dict().items()
    }


def test_what_no_file_holds_is_drawn_as_in_a_new_model(saved):
    """Loading happens on the meta device: what is missing in the files must be initialised, buffers too."""
    cls, config = type(saved.model), saved.model.config
    new = cls(copy.deepcopy(config))
    found = cls.from_pretrained(None, config=copy.deepcopy(config), state_dict={})
    expected = {**dict(new.named_parameters()), **dict(new.named_buffers())}
    values = {**dict(found.named_parameters()), **dict(found.named_buffers())}
    assert values.keys() == expected.keys()
    for name, value in values.items():
        assert value.device.type == "cpu", name
        one, other = value.detach().double(), expected[name].detach().double()
        assert torch.isfinite(one).all(), name
        if other.numel() < 2 or other.std() < 1e-12 or not value.is_floating_point():
            assert torch.equal(one, other), name
        else:
            assert 0.5 < one.std() / other.std() < 2, name


def padded(name: str, batch: dict[str, torch.Tensor], left: bool) -> dict[str, torch.Tensor]:
    """Adds three masked columns of words to contexts, and to candidates."""
    widths = (3, 0) if left else (0, 3)
    return {key: torch.nn.functional.pad(value, widths, value=0 if "mask" in key else 17)
            for key, value in batch.items()}  # fmt: skip


def test_neither_company_nor_padding_changes_a_result(saved):
    batch = inputs_of(saved.name)
    alone = torch.cat([result(saved.model, {key: value[row : row + 1] for key, value in batch.items()})
                       for row in range(len(batch["input_ids"]))])  # fmt: skip
    assert torch.allclose(alone, saved.before, atol=1e-5)
    assert torch.allclose(result(saved.model, padded(saved.name, batch, left=False)), saved.before, atol=1e-5)
    order = torch.arange(len(batch["input_ids"]) - 1, -1, -1)
    assert torch.allclose(result(saved.model, {key: value[order] for key, value in batch.items()}),
                          saved.before[order], atol=1e-5)  # fmt: skip


@pytest.mark.parametrize("name", [*DIALOGUES, "deep_attention_matching"])
def test_padding_on_the_left_changes_no_result(name, all_saved):
    """The others number positions from the left, as their backbones do, or read words in turn: they pad right."""
    model, before = all_saved[name].model, all_saved[name].before
    assert torch.allclose(result(model, padded(name, inputs_of(name), left=True)), before, atol=1e-5)


def test_no_mask_means_all_tokens(saved):
    batch = inputs_of(saved.name)
    full = {key: torch.ones_like(value) if "mask" in key else value for key, value in batch.items()}
    bare = {key: value for key, value in batch.items() if "mask" not in key}
    assert torch.equal(result(saved.model, bare), result(saved.model, full))


@pytest.mark.parametrize("name", ENCODERS)
def test_inputs_can_require_gradients(name):
    """What adapters ask for together with gradient checkpointing."""
    model = build(name)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    model.enable_input_require_grads()
    assert model(**inputs_of(name)).pooler_output.requires_grad
    model.disable_input_require_grads()
    assert not model(**inputs_of(name)).pooler_output.requires_grad
