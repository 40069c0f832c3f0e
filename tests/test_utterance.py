"""What every utterance encoder shares: pooling, parts of like length, gradient caching, encoding, saving."""

import numpy as np
import pytest
import torch

from hf_dialemb.models.dse import DSEModel, collate
from hf_dialemb.models.layout import Truncation, tokenize_utterances
from hf_dialemb.models.utterance import encode_utterances, positives_first

TEXTS = [
    "a cheap hotel in the north", "yes", "for how many nights would you like to stay there", "my card was stolen",
    "please block it", "goodbye and thank you for all of your help today", "seven",
]  # fmt: skip


@pytest.fixture(scope="module")
def encoder(tiny_bert):
    torch.manual_seed(0)
    return DSEModel.from_backbone(tiny_bert, dropout=0.0)


def test_padding_and_the_order_of_a_batch_do_not_matter_and_parts_are_put_back_in_order(encoder):
    together = encode_utterances(*encoder, TEXTS)
    assert together == pytest.approx(np.concatenate([encode_utterances(*encoder, [text]) for text in TEXTS]), abs=1e-5)
    model, tokenizer = encoder
    texts = [f"{text} {number}" for number in range(12) for text in TEXTS]  # more than two parts
    batch = tokenize_utterances(texts, tokenizer, 32, Truncation())
    with torch.no_grad():
        assert torch.allclose(model.embed(**batch), model(**batch).pooler_output, atol=1e-5)


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


def test_what_is_cut_or_without_tokens_is_counted_and_control_tokens_in_a_text_are_words(encoder):
    (model, tokenizer), count = encoder, Truncation()
    batch = tokenize_utterances(["\u200b", "[SEP]", "1 2 3 4 5 6 7 8 9"], tokenizer, 8, count)
    assert str(count) == "1 of 3 utterances were truncated (3 of 14 tokens dropped); 1 gave no token"
    assert batch["input_ids"][1].tolist().count(tokenizer.sep_token_id) == 1
    with torch.no_grad():
        assert not model(torch.tensor([[7, 8]]), torch.tensor([[0, 0]])).pooler_output.any()


def test_the_positive_comes_first():
    similarities = torch.arange(9.0).view(3, 3)
    assert positives_first(similarities)[:, :, 0].tolist() == [[0, 1, 2], [4, 3, 5], [8, 6, 7]]
