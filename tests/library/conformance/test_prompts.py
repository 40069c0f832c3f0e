"""Prompts: what stands before a text, by the names that sentence-transformers has for it."""

import numpy as np
import pytest
import torch
from exports import save
from sentence_transformers import SentenceTransformer

from hf_dialemb import Dialogue, DSEModel, InputError, Turn, load_encoder
from hf_dialemb.encoders.embedding_cache import RememberingEncoder
from hf_dialemb.encoders.load_encoder import EncoderRun
from hf_dialemb.hub.export import load_checkpoint, write_checkpoint

PROMPTS = {"query": "query: ", "document": "passage: ", "topic": "about "}
TEXTS = ["I need a cheap hotel.", "My card was stolen!"]
DIALOGUE = Dialogue((Turn("user", TEXTS[0]), Turn("assistant", TEXTS[1])))


class Recording:
    """Keeps the texts that it is given."""

    prompts, default_prompt_name = PROMPTS, "topic"

    def encode_utterances(self, texts):
        self.given = list(texts)
        return np.eye(len(texts), 4, dtype=np.float32) + 1


@pytest.mark.habit("encode_query, encode_document, prompt=, prompt_name=", "as in that library")
@pytest.mark.parametrize(
    ("way", "given", "options", "expected"),
    [
        ("encode", [DIALOGUE], {}, ["about I need a cheap hotel. My card was stolen!"]),
        ("encode_utterances", TEXTS[0], {}, ["about I need a cheap hotel."]),
        ("encode_utterances", TEXTS[:1], {"prompt": ""}, TEXTS[:1]),
        ("encode_utterances", TEXTS[:1], {"prompt_name": "query"}, ["query: " + TEXTS[0]]),
        ("encode_query", TEXTS[0], {}, ["query: " + TEXTS[0]]),
        ("encode_query", [DIALOGUE], {"prompt": "q "}, ["q " + " ".join(TEXTS)]),
        ("encode_document", TEXTS, {}, ["passage: " + text for text in TEXTS]),
        ("encode_turns", [DIALOGUE], {}, ["passage: " + text for text in TEXTS]),
    ],
)
def test_texts_stand_behind_the_prompt_of_their_use(way, given, options, expected):
    stub = Recording()
    getattr(load_encoder(stub), way)(given, **options)
    assert stub.given == expected


@pytest.fixture(scope="module")
def prompted(tiny_bert, tmp_path_factory):
    """A model with prompts, a run over it, and that one's published form."""
    folders = [tmp_path_factory.mktemp(name) for name in ("base", "run", "published")]
    base, run, published = folders
    prompts = {"prompts": PROMPTS, "default_prompt_name": "topic"}
    SentenceTransformer(tiny_bert, device="cpu", **prompts).save(str(base))
    save(DSEModel.from_backbone(str(base)), run)
    write_checkpoint(*load_checkpoint(str(run)), published)
    return [str(folder) for folder in folders]


@pytest.mark.habit("a model's prompts and default_prompt_name", "kept by training and export")
@pytest.mark.parametrize("place", range(3))
def test_prompts_give_the_vectors_of_sentence_transformers(place, prompted):
    theirs = SentenceTransformer(prompted[place if place != 1 else 2], device="cpu")
    ours = [load_encoder(prompted[place])]
    ours += [load_encoder(theirs)] if place != 1 else []
    for encoder in ours:
        assert {name: encoder.prompts[name] for name in PROMPTS} == PROMPTS
        for way in ("encode_query", "encode_document"):
            expected = getattr(theirs, way)(TEXTS)
            assert np.abs(getattr(encoder, way)(TEXTS) - expected).max() <= 1e-5
        assert np.abs(encoder.encode_utterances(TEXTS) - theirs.encode(TEXTS)).max() <= 1e-5


@pytest.mark.habit("vectors of one text behind two prompts", "are never taken for one another")
@pytest.mark.parametrize("form", [TEXTS, [DIALOGUE]])
def test_kept_vectors_know_their_prompt(form, prompted, tmp_path):
    plain = load_encoder(prompted[0])
    for _ in range(2):
        kept = RememberingEncoder(EncoderRun(prompted[0]), tmp_path)
        for way in ("encode_query", "encode_document"):
            np.testing.assert_allclose(
                getattr(kept, way)(form), getattr(plain, way)(form), atol=1e-5
            )


@pytest.mark.habit("encode(precision=, device=, convert_to_numpy=False)", "as in that library")
@pytest.mark.parametrize("name", ["base", "dialogue-static"])
def test_options_of_encoding_have_their_effects(name, prompted):
    encoder = load_encoder(prompted[0] if name == "base" else name)
    theirs = SentenceTransformer(encoder.source.path, device="cpu")
    texts = [f"{text} {number}" for text in TEXTS for number in range(9)]
    for precision in ("float32", "uint8", "int8", "binary", "ubinary"):
        expected = theirs.encode(texts, precision=precision)
        vectors = encoder.encode_utterances(texts, precision=precision, device=torch.device("cpu"))
        assert vectors.dtype == expected.dtype
        assert np.isclose(vectors, expected, atol=1e-5).mean() >= 0.99
    parts = encoder.encode_utterances(texts, convert_to_numpy=False)
    assert all(isinstance(part, torch.Tensor) for part in parts)
    pairs = encoder.similarity_pairwise(parts[0], parts[1])
    assert float(pairs) == pytest.approx(float(encoder.similarity(parts[0], parts[1])), abs=1e-6)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"prompt_name": "passage"}, "expected one of the prompts of .*: query, document, topic"),
        ({"precision": "int4"}, "expected one of float32, int8"),
        ({"batch_size": -1}, "batch_size: got -1, expected a value at least 1"),
        ({"batch_size": 0}, "batch_size: got 0, expected a value at least 1"),
        ({"truncate_dim": 17}, "truncate_dim: got 17, expected a value between 1 and 16"),
        ({"device": "tpu"}, "device: got 'tpu'"),
    ],
)
def test_options_that_do_not_suit_are_refused(options, reason, prompted):
    with pytest.raises(InputError, match=reason):
        load_encoder(prompted[0]).encode_utterances(TEXTS, **options)


def test_a_model_of_dialogues_takes_no_prompt(tiny_checkpoint):
    with pytest.raises(InputError, match=r"prompt: got 'query: ', but .* as they are"):
        load_encoder(str(tiny_checkpoint)).encode([DIALOGUE], prompt="query: ")
