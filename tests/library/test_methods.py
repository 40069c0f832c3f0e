"""What methods share. DSE: its losses against their formula, and what utterance encoders share."""

import math

import pytest
import reference_models as reference
import torch
from reference_models import unit
from talks import dialogue

from hf_dialemb import (
    Dial2VecConfig,
    Dial2VecModel,
    DialogueCSEConfig,
    DSEConfig,
    DualEncoderConfig,
    InputError,
)
from hf_dialemb.methods import METHODS, get_method
from hf_dialemb.methods.dse import DSEExamples, DSEModel, collate
from hf_dialemb.methods.layout import Truncation, tokenize, tokenize_utterances
from hf_dialemb.methods.losses import hard_targets, pair_contrastive, soft_targets

SMALL = {
    "embedding_size": 8,
    "num_blocks": 1,
    "max_turns": 3,
    "max_turn_tokens": 6,
    "max_response_tokens": 8,
}


def test_wrong_settings_say_what_is_wrong():
    for config, settings, message in (
        (Dial2VecConfig, {"loss_temprature": 0.1}, "Did you mean 'loss_temperature'"),
        (
            Dial2VecConfig,
            {"loss_temperature": math.nan},
            "loss_temperature: got nan, expected a value above 0",
        ),
        (
            Dial2VecConfig,
            {"loss_temperature": 0.0},
            "loss_temperature: got 0.0, expected a value above 0",
        ),
        (Dial2VecConfig, {"num_roles": 6}, "between 1 and 5"),
        (DSEConfig, {"projection_size": 0}, "projection_size: got 0, expected a value at least 1"),
        (DSEConfig, {"max_tokens": 4}, "max_tokens: got 4"),
        (DialogueCSEConfig, {"context_turns": 0}, "context_turns: got 0"),
        (DualEncoderConfig, {"num_candidates": 1}, "num_candidates: got 1"),
        (
            DualEncoderConfig,
            {"granularity": 6},
            "granularity: got 6, expected a value between 1 and 5",
        ),
    ):
        with pytest.raises(InputError, match=message):
            config(**settings)


@pytest.mark.parametrize(
    "name", ["dial2vec", "dialog2flow", "dialogue_cse", "dual_encoder", "turns"]
)
def test_examples_are_a_pure_function_of_seed_epoch_and_index(name, sample_dialogues):
    method = get_method(name)

    def made(seed):
        examples = method.examples(sample_dialogues, method.config_class(), seed)
        if name == "dialog2flow":
            examples.label_vectors = torch.eye(len(examples.label_texts)).numpy()
        return examples

    left, two, other = made(3), made(3), made(4)
    for index in range(10):
        two.example(0, index)
    drawn, again, others = (
        [repr(item.example(epoch, 5)) for epoch in range(5)] for item in (left, two, other)
    )
    assert drawn == again != others
    assert len(set(drawn)) > 1


def batch_of(name, tokenizer, config, dialogues):
    method = get_method(name)
    examples = method.examples(dialogues[:4], config, 0)
    drawn = [examples.example(0, index % len(examples)) for index in range(6)]
    return method.collate(drawn, tokenizer, config, Truncation())


@pytest.mark.parametrize("family", ["roberta", "mpnet", "distilbert", "modernbert"])
@pytest.mark.parametrize("name", ["dse", "dialogue_cse", "turns"])
def test_any_backbone_learns(tiny_backbones, name, family, sample_dialogues):
    model, tokenizer = get_method(name).model_class.from_backbone(
        tiny_backbones[family], dropout=0.0
    )
    model.train()(**batch_of(name, tokenizer, model.config, sample_dialogues)).loss.backward()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert any(gradient.any() for gradient in gradients)


@pytest.mark.parametrize(
    ("name", "settings", "size"),
    [
        *(("dse", {}, size) for size in (1, 5, 64)),
        ("dse", {"dropout": 0.3}, 12),  # all utterances in one part
        ("dialogue_cse", {}, 4),
        ("turns", {}, 4),
        *(
            ("deep_attention_matching", {"num_candidates": 4, **SMALL}, size)
            for size in (1, 2, 5)
            if "deep_attention_matching" in METHODS
        ),
    ],
)
def test_gradient_caching_changes_no_gradient(tiny_bert, sample_dialogues, name, settings, size):
    torch.manual_seed(0)
    backbone = (
        {"backbone": None}
        if name == "deep_attention_matching"
        else {"backbone": tiny_bert, "dropout": 0.0}
    )
    model, tokenizer = get_method(name).model_class.build(
        dialogues=sample_dialogues, **{**backbone, **settings}
    )
    batch = batch_of(name, tokenizer, model.double().train().config, sample_dialogues)
    losses, gradients = [], []
    for mini_batch_size in (None, size):
        model.config.mini_batch_size = mini_batch_size
        model.zero_grad()
        torch.manual_seed(1)
        losses.append(model(**batch).loss)
        losses[-1].backward()
        gradients.append(
            {
                key: item.grad.clone()
                for key, item in model.named_parameters()
                if item.grad is not None
            }
        )
    assert torch.allclose(*losses, rtol=1e-12)
    assert gradients[0].keys() == gradients[1].keys()
    assert sum(bool(gradient.any()) for gradient in gradients[0].values()) > 15
    for key, expected in gradients[0].items():
        assert torch.allclose(gradients[1][key], expected, atol=1e-12, rtol=1e-10), key


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
def test_each_utterance_counts_its_positions_from_the_familys_first(tiny_backbones, family):
    model, tokenizer = Dial2VecModel.from_backbone(
        tiny_backbones[family], position_layout="utterance", wrapped=False
    )
    seen = {}
    model.encoder.register_forward_pre_hook(
        lambda _, __, given: seen.update(given), with_kwargs=True
    )
    batch = tokenize([dialogue("a b a", "a b a")], tokenizer, model.config, Truncation())
    model(**batch)
    length = batch["input_ids"].shape[1] // 2
    first = 0 if family == "bert" else model.encoder.config.pad_token_id + 1
    assert seen["position_ids"].tolist() == [[*range(first, first + length)] * 2]


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "distilbert", "modernbert"])
def test_of_frozen_layers_and_what_lies_below_nothing_learns(tiny_backbones, family):
    model, _ = Dial2VecModel.from_backbone(tiny_backbones[family], frozen_layers=1)
    model.freeze_lower_layers()
    names = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert any("layer.1." in name or "layers.1." in name for name in names)
    below = ("layer.0.", "layers.0.", "embeddings.", "relative_attention_bias")
    assert not [name for name in names if any(part in name for part in below)]


TALK = [
    dialogue("I need a cheap hotel", "For how many nights then", "Yes", "In which part of town"),
    dialogue("My card was stolen yesterday", "Please tell me its number"),
]


def pairs(dialogues, **settings):
    examples = DSEExamples(dialogues, DSEConfig(encoder_config=None, **settings), seed=0)
    return [examples.example(0, index) for index in range(len(examples))], examples.notes


def test_pairs_are_consecutive_utterances_of_a_dialogue():
    actual, notes = pairs(TALK)
    assert actual == [
        ("I need a cheap hotel", "For how many nights then"),
        ("My card was stolen yesterday", "Please tell me its number"),
    ]
    assert notes == ["Left out 2 pairs with a side of fewer than 4 words"]
    actual, _ = pairs(TALK, min_words=1)
    assert len(actual) == 4
    assert ("In which part of town", "My card was stolen yesterday") not in actual
    chinese = ("我要住酒店", "ホテルはどこ")  # characters are words
    assert pairs([dialogue(*chinese)]) == ([chinese], [])
    with pytest.raises(
        InputError, match=r"no pair of utterances from 1 dialogues \(1 are shorter than min_words 9"
    ):
        pairs(TALK[1:], min_words=9)


@pytest.mark.parametrize(
    ("form", "dims"), [("hard", []), ("hard", [8, 3]), ("printed", []), ("plain", [])]
)
def test_the_loss_of_a_batch_is_that_of_the_formula(tiny_bert, form, dims):
    torch.manual_seed(0)
    options = {"negative_weights": form, "loss_temperature": 0.5, "matryoshka_dims": dims}
    model, tokenizer = DSEModel.from_backbone(tiny_bert, dropout=0.0, **options)
    ids, mask = collate(
        pairs(TALK, min_words=1)[0], tokenizer, model.double().config, Truncation()
    ).values()
    with torch.no_grad():
        output = model(ids, mask)
        pooled = [model(ids[:, side], mask[:, side]).pooler_output for side in (0, 1)]
        expected = []
        for size in (16, *dims):  # the others count as zeros
            cut = [torch.nn.functional.pad(vectors[:, :size], (0, 16 - size)) for vectors in pooled]
            expected.append(reference.dse(*map(model.project, cut), 0.5, form))
        sides = [model.project(vectors) for vectors in pooled]
    assert abs(output.loss.item() - sum(expected) / len(expected)) < 1e-10
    assert torch.allclose(output.similarities[:, 0, 0], (sides[0] * sides[1]).sum(-1))


def test_no_width_is_beyond_the_embedding(tiny_bert):
    with pytest.raises(InputError, match=r"matryoshka_dims: got 17, expected .* 16"):
        DSEModel.from_backbone(tiny_bert, matryoshka_dims=[8, 17])


def test_cut_and_empty_utterances_are_counted(tiny_bert):
    (model, tokenizer), count = DSEModel.from_backbone(tiny_bert), Truncation()
    batch = tokenize_utterances(["\u200b", "[SEP]", "1 2 3 4 5 6 7 8 9"], tokenizer, 8, count)
    assert str(count) == "1 of 3 utterances were truncated (3 of 10 tokens dropped)"
    assert batch["input_ids"][1].tolist().count(tokenizer.sep_token_id) == 2
    assert tokenizer.decode(batch["input_ids"][2]) == "[CLS] 1 2 3 4 5 6 [SEP]"
    with torch.no_grad():
        assert not model(torch.tensor([[7, 8]]), torch.tensor([[0, 0]])).pooler_output.any()


def pairs_loss(queries, responses):
    rows = torch.cat([queries, responses])
    at = torch.arange(len(rows))
    return pair_contrastive(rows @ rows.T, at, at.roll(len(queries)), 0.5, "hard")


def test_the_loss_of_pairs_has_its_gradient_and_that_of_guessing():
    queries, responses = unit(3, 4, 4).requires_grad_(), unit(3, 4, 5)
    assert torch.autograd.gradcheck(lambda queries: pairs_loss(queries, responses), queries)
    rows = torch.ones(4, 3, dtype=torch.float64) / math.sqrt(3)
    assert math.isclose(pairs_loss(rows, rows).item(), math.log(7), rel_tol=1e-10)
    assert pairs_loss(unit(1, 4, 0), unit(1, 4, 1)).item() == 0


def test_soft_targets_become_hard_ones_as_their_temperature_falls():
    labels = unit(6, 4, 0)[[0, 1, 0, 2, 1, 0]]
    shared = (labels @ labels.T) > 1 - 1e-9
    assert torch.allclose(
        soft_targets(labels @ labels.T, shared, 1e-4), hard_targets(shared, labels)
    )
    targets = soft_targets(
        torch.tensor([[1.0, 1.0, -0.3]]), torch.tensor([[True, False, True]]), 0.35
    )
    assert torch.allclose(targets, torch.full((1, 3), 1 / 3))
