"""Exports as sentence-transformers' users handle them.

Vectors of tokens, prompts, and the model within.
"""

import numpy as np
import pytest
import torch
from checkpoints import save_dse
from sentence_transformers import SentenceTransformer
from talks import CHATS
from transformers import AutoModel, AutoTokenizer

from hf_dialemb import load_encoder
from hf_dialemb.hub.export import load_checkpoint, write_checkpoint


@pytest.fixture(scope="module")
def exports(tiny_bert, tiny_export, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    write_checkpoint(*load_checkpoint(str(save_dse(tiny_bert, folder / "run"))), folder / "plain")
    return {"plain": folder / "plain", "dial2vec": tiny_export}


def loaded(exports, name):
    return SentenceTransformer(str(exports[name]), device="cpu")


@pytest.mark.habit(
    "encode(output_value='token_embeddings')", "works; not for dial2vec, see the next line"
)
def test_a_plain_export_gives_the_vectors_of_tokens(exports):
    model = loaded(exports, "plain")
    tokens = model.encode(CHATS, output_value="token_embeddings")
    assert np.allclose([part.mean(0) for part in tokens], model.encode(CHATS), atol=1e-5)


@pytest.mark.habit(
    "vectors of a dial2vec's tokens",
    "AutoModel(...).last_hidden_state; sentence-transformers raises KeyError",
)
def test_a_dial2vec_gives_the_vectors_of_tokens_by_transformers_alone(exports):
    with pytest.raises(
        KeyError, match="token_embeddings"
    ):  # its one module goes from tokens to the dialogue's vector
        loaded(exports, "dial2vec").encode(CHATS, output_value="token_embeddings")
    tokenizer = AutoTokenizer.from_pretrained(exports["dial2vec"])
    batch = tokenizer.apply_chat_template(
        CHATS, return_dict=True, return_tensors="pt", padding=True
    )
    with torch.inference_mode():
        states = AutoModel.from_pretrained(exports["dial2vec"]).eval()(**batch).last_hidden_state
    assert states.shape[:2] == batch["input_ids"].shape


@pytest.mark.habit("encode(prompt=...)", "left out, unless it is a backbone's own")
@pytest.mark.parametrize("name", ["plain", "dial2vec"])
def test_a_prompt_that_was_not_learnt_is_left_out(name, exports):
    model = loaded(exports, name)
    assert np.array_equal(model.encode(CHATS, prompt="query: "), model.encode(CHATS))
    spoken = [[{"role": "system", "content": "query: "}, *chat] for chat in CHATS]
    assert np.allclose(
        load_encoder(str(exports[name])).encode(spoken), model.encode(CHATS), atol=1e-5
    )


@pytest.mark.habit("model[0].auto_model", "works")
@pytest.mark.parametrize("name", ["plain", "dial2vec"])
def test_the_model_within_is_that_of_transformers(name, exports):
    inner = loaded(exports, name)[0].auto_model
    direct = AutoModel.from_pretrained(exports[name])
    assert type(inner) is type(direct)
    weights = direct.state_dict()
    assert all(
        torch.equal(value, weights[key])
        for key, value in inner.state_dict().items()
        if key in weights
    )
    assert weights.keys() & inner.state_dict().keys() >= {
        key for key, _ in inner.named_parameters()
    }
