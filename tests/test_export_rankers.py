"""Rankers of responses as strangers read them: the stock tokenizer, its template, and the similarity."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from jinja2.exceptions import TemplateError
from sentence_transformers import SentenceTransformer
from test_export import AS_MESSAGES, LIMITS, MESSAGES, RESPONSES, TURNS, same, save, words_ranker
from transformers import AutoModel, AutoTokenizer

from hf_dialemb.hub.export import write_checkpoint
from hf_dialemb.models.ranking import encode_contexts, encode_responses, load_ranker
from hf_dialemb.models.transformer_dual_encoder import TransformerDualEncoderModel

pytestmark = pytest.mark.slow


@pytest.fixture
def lstm(sample_dialogues):
    return words_ranker(sample_dialogues)


@pytest.mark.parametrize("family", ["words", "bert", "roberta", "modernbert"])
def test_the_stock_tokenizer_serves_texts_of_any_length(family, lstm, tiny_backbones, tmp_path):
    """What is too long is cut by the model as by our own layout, special tokens kept."""
    made = lstm
    if family != "words":
        made = TransformerDualEncoderModel.build(tiny_backbones[family], (), towers="separate", **LIMITS)
    ranker = load_ranker(str(save(made, tmp_path)))
    model, tokenizer = AutoModel.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    options = {"return_dict": True, "return_tensors": "pt", "padding": True, "truncation": True}
    batch = tokenizer.apply_chat_template(MESSAGES + AS_MESSAGES, **options)
    assert batch["input_ids"].shape[1] > 2 * LIMITS["max_context_tokens"]
    with torch.inference_mode():
        found = model.eval()(**batch).pooler_output.numpy()
    assert same(found[: len(TURNS)], encode_contexts(ranker, TURNS))
    assert same(found[len(TURNS) :], encode_responses(ranker, RESPONSES))


def test_an_old_tokenizer_gets_template_and_limit_and_dot_products_stay_dot_products(lstm, tmp_path):
    model, tokenizer = lstm
    expected = tokenizer.chat_template
    tokenizer.chat_template, tokenizer.model_max_length = "{{- messages[0]['content'] -}}", 24
    write_checkpoint(model, tokenizer, tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again.chat_template == expected
    assert again.model_max_length > 1000
    published = SentenceTransformer(str(tmp_path), device="cpu")
    assert published.similarity_fn_name == "dot"
    one, two = published.encode_query(MESSAGES[:1]), published.encode_document(["yes"])
    assert np.allclose(published.similarity(one, two), one @ two.T)


def test_a_message_of_the_system_is_no_response_unless_it_is_the_prompt(lstm):
    _, tokenizer = lstm
    said = [{"role": "user", "content": "yes"}]
    prompted = tokenizer.apply_chat_template([{"role": "system", "content": "response"}, *said], tokenize=False)
    assert prompted == tokenizer.apply_chat_template([{"role": "response", "content": "yes"}], tokenize=False)
    with pytest.raises(TemplateError, match="Unknown role system: expected one of user, assistant"):
        tokenizer.apply_chat_template([{"role": "system", "content": "You are a helpful assistant."}, *said])
