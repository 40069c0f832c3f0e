"""The checks that transformers runs on each of its own models, restated for ours.

One tiny model per method.

What of them does not apply: generation, caches, tied and pruned heads, ``inputs_embeds`` (dialogues
and rankers read marks off the token ids), labels (training batches have their own layout), and maps
over several devices.
"""

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModel, BertConfig, PreTrainedModel

from hf_dialemb.methods import METHODS, get_method, register

register()
WORDS, MARKS = 60, [5, 6, 7, 8, 9, 10]
ENCODERS = ["dial2vec", "dse", "dialog2flow", "dialogue_cse"]
WORD_RANKERS = [name for name in ("dual_encoder", "deep_attention_matching") if name in METHODS]
BACKBONES = [*ENCODERS, "transformer_dual_encoder"]


def config_of(name: str) -> Any:
    encoder, words, towers = (
        {"max_tokens": 32},
        {"vocab_size": WORDS},
        {"marker_ids": MARKS, "max_context_tokens": 24, "max_response_tokens": 12},
    )
    limits = {
        "max_turns": 3,
        "max_turn_tokens": 6,
        "max_context_tokens": 18,
        "max_response_tokens": 9,
    }
    own = {
        "dial2vec": {**encoder, "marker_ids": MARKS[:2], "num_negatives": 2},
        "dialog2flow": {**encoder, "target": "joint"},
        "dialogue_cse": {**encoder, "num_negatives": 2},
        "turns": {**encoder, "window": 3, "questions": 2},
        "dual_encoder": {**words, **towers, "embedding_size": 6, "hidden_size": 10},
        "transformer_dual_encoder": {**towers, "towers": "separate"},
        "deep_attention_matching": {**words, **limits, "embedding_size": 8, "num_blocks": 1},
    }.get(name, encoder)
    if name == "multi_granularity":
        own = {
            "members": [
                config_of(item).to_diff_dict()
                for item in ("dual_encoder", "transformer_dual_encoder")
            ]
        }
    elif name not in WORD_RANKERS:
        sizes = {
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 32,
        }
        dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        bert = BertConfig(vocab_size=WORDS, max_position_embeddings=48, **sizes, **dropout)
        own = {**own, "encoder_config": bert}
    return get_method(name).config_class(**own)


def build(name: str) -> PreTrainedModel:
    """Build a model in evaluation mode whose weights are large enough to tell inputs apart."""
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
    return {
        "input_ids": ids,
        "attention_mask": (torch.arange(size[-1]) < lengths.unsqueeze(-1)).long(),
    }


def candidates(*size: int) -> dict[str, torch.Tensor]:
    return dict(
        zip(("candidate_ids", "candidate_mask"), tokens(*size, seed=2).values(), strict=True)
    )


def inputs_of(name: str) -> dict[str, torch.Tensor]:
    """Return what a user gives.

    Dialogues or texts, and candidates where nothing else has a result.
    """
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
        turns = torch.arange(12).expand(2, 3, 12) // 3
        return {**tokens(2, 3, 12), "turn_ids": turns, "role_ids": turns % 2}
    if name == "dialog2flow":
        labels = torch.tensor([[0, 1, 2, 3]] * 4) + torch.arange(4).unsqueeze(1)
        vectors = torch.nn.functional.normalize(torch.randn(4, 2, 5), dim=-1)
        rows = {"drawn_labels": labels[:, ::2], "label_vectors": vectors}
        return {**tokens(4, 4, 9), **rows, "carried_labels": labels.unsqueeze(-1)}
    if name == "dialogue_cse":
        return tokens(4, 2 * config_of(name).context_turns + 3, 9)
    if (
        name == "turns"
    ):  # two examples of two questions and three turns, of three tokens each in their sessions
        sessions = dict(
            zip(("session_ids", "session_mask"), tokens(2, 9, seed=3).values(), strict=True)
        )
        numbers = {
            "keys": torch.arange(1, 11).view(2, 5),
            "answers": torch.tensor([[0, 2], [1, -1]]),
        }
        return {
            **tokens(2, 5, 9),
            **sessions,
            **numbers,
            "owners": torch.arange(9).expand(2, 9) // 3,
        }
    if get_method(name).kind == "utterances":  # pairs
        return tokens(4, 2, 9)
    if name == "deep_attention_matching":
        return inputs_of(name)
    return {**tokens(3, 14), **candidates(3, 4, 9)}


def result(model: PreTrainedModel, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    with torch.no_grad():
        output = model(**batch)
    return output.logits if output.get("logits") is not None else output.pooler_output


def gradients(
    model: PreTrainedModel, batch: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor | None]:
    model.zero_grad()
    model.train()(**batch).loss.backward()
    return {
        name: parameter.grad
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }


@dataclass
class Saved:
    name: str
    model: PreTrainedModel
    folder: Path
    before: torch.Tensor

    def gives(
        self,
        model: PreTrainedModel,
        batch: dict[str, torch.Tensor] | None = None,
        atol: float = 1e-6,
    ) -> bool:
        """Whether a model has the results that this one had before.

        Memory may be aligned otherwise.
        """
        return torch.allclose(result(model, batch or inputs_of(self.name)), self.before, atol=atol)


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


def test_a_saved_model_loads_with_the_same_results(saved, tmp_path):
    model, loading = AutoModel.from_pretrained(saved.folder, output_loading_info=True)
    assert type(model) is type(saved.model)
    assert not any(
        loading[kind]
        for kind in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs")
    )
    assert load_file(saved.folder / "model.safetensors").keys() == saved.model.state_dict().keys()
    assert saved.gives(model)
    assert not model.training
    saved.model.save_pretrained(tmp_path, max_shard_size="5KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    assert saved.gives(AutoModel.from_pretrained(tmp_path))


def test_a_config_comes_back_with_all_fields(saved, tmp_path):
    config = saved.model.config
    config.save_pretrained(tmp_path)
    first, second = AutoConfig.from_pretrained(saved.folder), AutoConfig.from_pretrained(tmp_path)
    volatile = {"_name_or_path": "", "architectures": None, "dtype": None}  # what loading adds
    for again in (first, second, type(config).from_dict(config.to_dict()), copy.deepcopy(config)):
        assert type(again) is type(config)
        got, expected = (
            json.loads(item.to_json_string(use_diff=False)) for item in (again, config)
        )
        assert got | volatile == expected | volatile


def test_a_tuple_holds_what_the_output_holds(saved):
    batch = inputs_of(saved.name)
    with torch.no_grad():
        whole, parts = saved.model(**batch), saved.model(**batch, return_dict=False)
    assert isinstance(parts, tuple)
    flat = [value for value in whole.to_tuple() if isinstance(value, torch.Tensor)]
    assert all(torch.equal(left, other) for left, other in zip(flat, parts, strict=True))


@pytest.mark.parametrize("name", list(METHODS))
def test_every_trainable_parameter_learns(name):
    actual = gradients(build(name), training_batch(name))
    assert all(gradient is not None and gradient.isfinite().all() for gradient in actual.values())
    still = [name for name, gradient in actual.items() if not gradient.any()]
    assert [
        name for name in still if not name.endswith("key.bias")
    ] == []  # what all keys share changes no attention


@pytest.mark.parametrize("name", BACKBONES)
def test_gradient_checkpointing_changes_no_gradient(name):
    model, batch = build(name), training_batch(name)
    expected = gradients(model, batch)
    model.gradient_checkpointing_enable()
    assert model.is_gradient_checkpointing
    # of utterances, by the other way to attend, which rounds differently
    actual = gradients(model, batch)
    for key, value in expected.items():
        least = 1e-6 * max(1.0, float(value.abs().max()))
        assert torch.allclose(actual[key], value, rtol=1e-4, atol=least), key


def attention_of(model: PreTrainedModel) -> set[str]:
    return {
        module.config._attn_implementation for module in model.modules() if hasattr(module, "query")
    }


@pytest.mark.parametrize("name", [*BACKBONES, "multi_granularity"])
def test_attention_implementations_agree(name, all_saved):
    saved = all_saved[name]
    eager, model = (
        AutoModel.from_pretrained(saved.folder, attn_implementation=kind)
        for kind in ("eager", "sdpa")
    )
    assert (attention_of(eager), attention_of(model)) == ({"eager"}, {"sdpa"})
    assert saved.gives(eager, atol=1e-5)
    model.set_attn_implementation("eager")  # an ensemble hands it to its members
    assert attention_of(model) == {"eager"}
    assert torch.equal(result(model, inputs_of(name)), result(eager, inputs_of(name)))


@pytest.mark.parametrize(
    ("size", "multiple", "expected"), [(WORDS + 3, None, 63), (WORDS + 3, 8, 64), (40, None, 40)]
)
@pytest.mark.parametrize("name", ENCODERS)
def test_the_token_table_is_resized_and_stays_so(name, size, multiple, expected, tmp_path):
    model, batch = build(name), inputs_of(name)
    batch = {
        key: value.clamp(max=39) if key.endswith("ids") else value for key, value in batch.items()
    }
    before = result(model, batch)
    model.resize_token_embeddings(size, pad_to_multiple_of=multiple)
    assert model.get_input_embeddings().num_embeddings == expected
    assert torch.equal(result(model, batch), before)
    model.save_pretrained(tmp_path)
    assert torch.equal(result(AutoModel.from_pretrained(tmp_path), batch), before)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_any_precision_loads_and_runs(saved, dtype, tmp_path):
    model = AutoModel.from_pretrained(saved.folder, dtype=str(dtype).removeprefix("torch."))
    assert {value.dtype for value in model.state_dict().values() if value.is_floating_point()} == {
        dtype
    }
    actual = result(model, inputs_of(saved.name)).double()
    assert (actual - saved.before).abs().max() <= (
        1e-5 if dtype == torch.float64 else 0.1
    ) * saved.before.abs().max()
    model.save_pretrained(tmp_path)
    again = AutoModel.from_pretrained(tmp_path)  # "auto" is the default
    assert again.dtype == dtype
    assert torch.equal(result(again, inputs_of(saved.name)).double(), actual)


def test_missing_weights_are_drawn_as_in_a_new_model(saved):
    """Loading happens on the meta device.

    What is missing in the files must be initialised, buffers too.
    """
    cls, config = type(saved.model), saved.model.config
    new = cls(copy.deepcopy(config))
    actual = cls.from_pretrained(None, config=copy.deepcopy(config), state_dict={})
    values, expected = (
        {**dict(item.named_parameters()), **dict(item.named_buffers())} for item in (actual, new)
    )
    assert values.keys() == expected.keys()
    for name, value in values.items():
        assert value.device.type == "cpu", name
        left, other = value.detach().double(), expected[name].detach().double()
        assert torch.isfinite(left).all(), name
        if other.numel() < 2 or other.std() < 1e-12 or not value.is_floating_point():
            assert torch.equal(left, other), name
        else:
            assert 0.5 < left.std() / other.std() < 2, name


def padded(batch: dict[str, torch.Tensor], widths: tuple[int, int]) -> dict[str, torch.Tensor]:
    """Add masked columns of words to contexts, and to candidates."""
    pad = torch.nn.functional.pad
    return {
        key: pad(value, widths, value=0 if "mask" in key else 17) for key, value in batch.items()
    }


def test_order_and_padding_of_a_batch_change_no_result(saved):
    batch, model = inputs_of(saved.name), saved.model
    assert saved.gives(copy.deepcopy(model))
    rows = range(len(batch["input_ids"]))
    alone = [
        result(model, {key: value[row : row + 1] for key, value in batch.items()}) for row in rows
    ]
    assert torch.allclose(torch.cat(alone), saved.before, atol=1e-5)
    backwards = result(model, {key: value.flip(0) for key, value in batch.items()})
    assert torch.allclose(backwards.flip(0), saved.before, atol=1e-5)
    assert saved.gives(model, padded(batch, (0, 3)), atol=1e-5)
    full = {key: torch.ones_like(value) if "mask" in key else value for key, value in batch.items()}
    bare = {key: value for key, value in batch.items() if "mask" not in key}  # all tokens count
    assert torch.equal(result(model, bare), result(model, full))


LEFT = [
    ("dial2vec", inputs_of),
    *(
        (name, make)
        for name in [*WORD_RANKERS, "transformer_dual_encoder", "multi_granularity"]
        for make in (inputs_of, training_batch)
    ),
]


@pytest.mark.parametrize(
    ("name", "make"), LEFT, ids=[f"{name}-{make.__name__}" for name, make in LEFT]
)
def test_padding_on_the_left_changes_no_result(name, make, all_saved):
    """Encoders of utterances number positions from the left, as their backbones do.

    They pad right.
    """
    model, batch = all_saved[name].model, make(name)
    assert torch.allclose(result(model, padded(batch, (3, 0))), result(model, batch), atol=1e-5)
