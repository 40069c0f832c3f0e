"""What every utterance encoder shares: pooling, parts of like length, gradient caching, encoding, saving."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from hf_dialemb.models.dse import DSEModel, collate
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.layout import Truncation, tokenize_utterances
from hf_dialemb.models.utterance import encode_utterances, mean_of_tokens, positives_first

TEXTS = [
    "a cheap hotel in the north",
    "yes",
    "for how many nights would you like to stay there",
    "my card was stolen",
    "please block it",
    "goodbye and thank you for all of your help today",
    "seven",
]


@pytest.fixture(scope="module")
def encoder(tiny_bert):
    torch.manual_seed(0)
    return DSEModel.from_backbone(tiny_bert, dropout=0.0)


def tokens(tokenizer, texts, **more):
    return tokenize_utterances(texts, tokenizer, more.pop("max_tokens", 32), more.pop("count", Truncation()), **more)


def test_rows_without_tokens_are_zero():
    hidden, mask = torch.randn(2, 3, 4), torch.tensor([[1, 1, 0], [0, 0, 0]])
    pooled = mean_of_tokens(hidden, mask)
    assert torch.allclose(pooled[0], hidden[0, :2].mean(0))
    assert not pooled[1].any()


def test_padding_and_the_order_of_a_batch_do_not_matter(encoder):
    together = encode_utterances(*encoder, TEXTS)
    assert together == pytest.approx(np.concatenate([encode_utterances(*encoder, [text]) for text in TEXTS]), abs=1e-5)


def test_parts_of_like_length_are_put_back_in_order(encoder):
    model, tokenizer = encoder
    texts = [f"{text} {number}" for number in range(12) for text in TEXTS]  # more than two parts
    batch = tokens(tokenizer, texts)
    with torch.no_grad():
        assert torch.allclose(model.embed(**batch), model(**batch).pooler_output, atol=1e-5)


def gradients(tiny_bert, pairs, **settings):
    torch.manual_seed(0)
    model, tokenizer = DSEModel.from_backbone(tiny_bert, dropout=0.0, **settings)
    model.double().train()
    loss = model(**collate(pairs, tokenizer, model.config, Truncation())).loss
    loss.backward()
    return loss, {name: parameter.grad for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("chunk_size", [1, 5, 64])
def test_gradient_caching_changes_no_gradient(tiny_bert, chunk_size):
    pairs = list(itertools.pairwise(TEXTS)) * 3
    loss, expected = gradients(tiny_bert, pairs)
    cached_loss, found = gradients(tiny_bert, pairs, chunk_size=chunk_size)
    assert torch.allclose(loss, cached_loss, rtol=1e-12)
    scale = max(float(gradient.abs().max()) for gradient in expected.values())
    for name, gradient in expected.items():
        assert torch.allclose(found[name], gradient, rtol=0, atol=1e-10 * scale), name


def test_gradient_caching_repeats_the_dropout_of_the_forward_pass(tiny_bert):
    # With dropout, a second pass with other random numbers would differentiate another function.
    def loss_and_gradient(chunk_size):
        torch.manual_seed(0)
        model, tokenizer = DSEModel.from_backbone(tiny_bert, dropout=0.3, chunk_size=chunk_size)
        model.train()
        batch = collate([(TEXTS[0], TEXTS[2]), (TEXTS[3], TEXTS[4])], tokenizer, model.config, Truncation())
        torch.manual_seed(1)
        loss = model(**batch).loss
        loss.backward()
        return loss.item(), model.encoder.get_input_embeddings().weight.grad

    loss, gradient = loss_and_gradient(None)  # four utterances are one part without caching
    cached_loss, cached = loss_and_gradient(4)
    assert loss == cached_loss
    assert torch.allclose(gradient, cached, atol=1e-6)


def test_the_end_of_an_utterance_that_is_too_long_is_cut_and_counted(encoder):
    _, tokenizer = encoder
    count = Truncation()
    start = tokens(tokenizer, ["1 2 3 4 5 6 7 8 9"], max_tokens=8, count=count)["input_ids"][0]
    end = tokens(tokenizer, ["1 2 3 4 5 6 7 8 9"], max_tokens=8, keep="end")["input_ids"][0]
    assert tokenizer.decode(start) == "[CLS] 1 2 3 4 5 6 [SEP]"
    assert tokenizer.decode(end) == "[CLS] 4 5 6 7 8 9 [SEP]"
    assert (count.dialogues, count.truncated, count.tokens, count.dropped_tokens) == (1, 1, 9, 3)


def test_utterances_without_tokens_are_counted(encoder):
    _, tokenizer = encoder
    count = Truncation()
    tokens(tokenizer, ["\u200b", "yes"], count=count)
    assert count.empty == 1
    assert "1 gave no token" in str(count)


def test_control_tokens_in_a_text_are_words(encoder):
    _, tokenizer = encoder
    ids = tokens(tokenizer, ["a [SEP] b"])["input_ids"][0].tolist()
    assert ids.count(tokenizer.sep_token_id) == 1


def test_one_message_reads_as_its_text_alone(encoder):
    _, tokenizer = encoder
    rendered = tokenizer.apply_chat_template([{"role": "user", "content": TEXTS[0]}], return_dict=True)["input_ids"]
    assert rendered == tokens(tokenizer, TEXTS[:1])["input_ids"][0].tolist()


def test_the_positive_comes_first():
    similarities = torch.arange(9.0).view(3, 3)
    assert positives_first(similarities)[:, :, 0].tolist() == [[0, 1, 2], [4, 3, 5], [8, 6, 7]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"projection_size": 0}, "projection_size: got 0, expected a value at least 1"),
        ({"chunk_size": 0}, "chunk_size: got 0"),
        ({"max_tokens": 4}, "max_tokens: got 4"),
        ({"max_tokens": 1000}, "max_tokens: got 1000, expected at most 512"),
        ({"frozen_layers": 3}, "frozen_layers: got 3, expected a value between 0 and 2"),
        ({"loss_temprature": 1}, "loss_temprature.*loss_temperature"),
    ],
)
def test_wrong_settings_are_told(tiny_bert, settings, message):
    with pytest.raises(InputError, match=message):
        DSEModel.from_backbone(tiny_bert, **settings)


@pytest.mark.parametrize("family", ["roberta", "mpnet", "distilbert", "modernbert"])
def test_any_backbone_serves(tiny_backbones, family):
    model, tokenizer = DSEModel.from_backbone(tiny_backbones[family], dropout=0.0)
    model.train()
    pairs = [(TEXTS[0], TEXTS[2]), (TEXTS[3], TEXTS[4])]
    loss = model(**collate(pairs, tokenizer, model.config, Truncation())).loss
    loss.backward()
    assert torch.isfinite(loss)
    assert encode_utterances(model, tokenizer, TEXTS).shape == (7, 16)
