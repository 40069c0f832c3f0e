"""Encoders behind one protocol: TF-IDF, our checkpoints, sentence-transformers models and plain transformers models."""

import logging

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import cosine_similarity
from utterance_checkpoints import save_dse

from hf_dialemb.evaluation.encoders import TfidfEncoder, find_encoder, load_encoder
from hf_dialemb.hub.export import load_checkpoint, write_checkpoint
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.utterance import encode_utterances

WORDS = ["hotel", "taxi", "train", "book", "cheap", "north", "please", "thanks"]


def dialogue(*contents):
    return Dialogue(tuple(Turn(("user", "assistant")[place % 2], content) for place, content in enumerate(contents)))


DIALOGUES = [
    dialogue("book hotel", "cheap hotel"),
    dialogue("taxi north please"),
    dialogue("book hotel", "thanks", "book hotel"),
    dialogue("train north", "train north please"),
]


@pytest.fixture(scope="session")
def bert_folder(tmp_path_factory):
    """A random BERT of two layers, 16 wide, for 16 tokens."""
    transformers = pytest.importorskip("transformers")

    folder = tmp_path_factory.mktemp("bert")
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
        initializer_range=0.5,
    )
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def sentence_folder(bert_folder, tmp_path_factory):
    """The same BERT as a sentence-transformers model of mean pooling."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer

    folder = tmp_path_factory.mktemp("sentence")
    transformer = Transformer(str(bert_folder), max_seq_length=16)
    SentenceTransformer(modules=[transformer, Pooling(16, "mean")], device="cpu").save(str(folder))
    return folder


@pytest.fixture(scope="session")
def utterance_folder(bert_folder, tmp_path_factory):
    """The same BERT in an untrained utterance encoder."""
    return save_dse(str(bert_folder), tmp_path_factory.mktemp("utterances") / "dse", max_tokens=16)


@pytest.fixture(scope="session")
def published_folder(utterance_folder, tmp_path_factory):
    """What strangers load of that encoder."""
    folder = tmp_path_factory.mktemp("published") / "dse"
    write_checkpoint(*load_checkpoint(str(utterance_folder)), folder)
    return folder


NEURAL = ["bert_folder", "sentence_folder", "utterance_folder", "published_folder"]


def mean_of_tokens(folder, text):
    """What both neural encoders should give for one short text, computed alone and without padding."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    with torch.inference_mode():
        batch = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
        return AutoModel.from_pretrained(folder).eval()(**batch).last_hidden_state[0].mean(dim=0).numpy()


def test_tfidf_separates_what_shares_no_word():
    vectors = TfidfEncoder().encode(DIALOGUES)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    assert vectors[0] @ vectors[1] == 0 < vectors[0] @ vectors[2]


def test_tfidf_of_a_large_vocabulary_is_reduced_and_repeatable():
    random = np.random.default_rng(0)
    dialogues = [dialogue(" ".join(f"word{number}" for number in random.integers(0, 400, 30))) for _ in range(120)]
    vectors = TfidfEncoder(components=20).encode(dialogues)
    assert vectors.shape == (120, 20)
    np.testing.assert_array_equal(vectors, TfidfEncoder(components=20).encode(dialogues))


def test_tfidf_needs_words():
    with pytest.raises(InputError, match="tfidf: got dialogues without common words"):
        TfidfEncoder().encode([dialogue("?"), dialogue("!")])


@pytest.mark.parametrize("kind", NEURAL)
@pytest.mark.parametrize("level", ["", "@dialogue"])
def test_whole_dialogues_are_the_mean_of_their_tokens(kind, level, bert_folder, request):
    encoder = load_encoder(f"{request.getfixturevalue(kind)}{level}", batch_size=2, device="cpu")
    vectors = encoder.encode(DIALOGUES)
    assert vectors.dtype == np.float32
    expected = [mean_of_tokens(bert_folder, " ".join(turn.content for turn in item.turns)) for item in DIALOGUES]
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


@pytest.mark.parametrize("kind", NEURAL)
def test_utterances_are_averaged_per_dialogue(kind, bert_folder, request):
    encoder = load_encoder(f"{request.getfixturevalue(kind)}@utterances", device="cpu")
    vectors = encoder.encode(DIALOGUES)
    expected = [
        np.mean([mean_of_tokens(bert_folder, turn.content) for turn in item.turns], axis=0) for item in DIALOGUES
    ]
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["bert_folder", "sentence_folder"])
def test_truncated_texts_are_counted(kind, request, caplog):
    encoder = load_encoder(str(request.getfixturevalue(kind)), device="cpu")
    with caplog.at_level(logging.WARNING, logger="hf_dialemb"):
        vectors = encoder.encode([*DIALOGUES, dialogue("hotel " * 15), dialogue("taxi " * 14)])
    assert vectors.shape == (6, 16)
    assert "1 of 6 texts are longer than the model's 16 tokens" in caplog.text  # 14 words and [CLS], [SEP] just fit


def test_truncated_utterances_are_counted(utterance_folder, caplog):
    with caplog.at_level(logging.WARNING, logger="hf_dialemb"):
        load_encoder(f"{utterance_folder}@utterances", device="cpu").encode([*DIALOGUES, dialogue("hotel " * 15)])
    assert "1 of 7 utterances were truncated" in caplog.text


def test_an_utterance_encoder_and_its_published_form_are_one(utterance_folder, published_folder):
    assert find_encoder(f"{utterance_folder}@utterances")[1:] == ("dialemb", str(utterance_folder), "utterances")
    assert find_encoder(f"{published_folder}@utterances").kind == "sentence-transformers"
    for level in ("dialogue", "utterances"):
        one, two = (load_encoder(f"{folder}@{level}", device="cpu") for folder in (utterance_folder, published_folder))
        np.testing.assert_allclose(one.encode(DIALOGUES), two.encode(DIALOGUES), atol=2e-6)


def test_half_precision_is_computed_in_float32(bert_folder, tmp_path):
    folder = save_dse(str(bert_folder), tmp_path / "half", torch.bfloat16, max_tokens=16)
    model, tokenizer = load_checkpoint(str(folder))
    vectors = load_encoder(str(folder), device="cpu").encode(DIALOGUES)
    expected = encode_utterances(model.float(), tokenizer, [" ".join(t.content for t in d.turns) for d in DIALOGUES])
    np.testing.assert_allclose(vectors, expected, atol=2e-6)


def test_kinds_are_told_apart(bert_folder, sentence_folder, tmp_path):
    assert find_encoder("tfidf").kind == "tfidf"
    assert find_encoder(str(bert_folder)).kind == "transformers"
    assert find_encoder(f"{sentence_folder}@utterances")[1:] == (
        "sentence-transformers",
        str(sentence_folder),
        "utterances",
    )
    (tmp_path / "config.json").write_text('{"model_type": "dialemb-dial2vec"}')
    assert find_encoder(str(tmp_path)).kind == "dialemb"
    with pytest.raises(InputError, match="reads whole dialogues"):
        find_encoder(f"{tmp_path}@utterances")


def test_a_folder_name_may_hold_the_sign_of_a_level(tmp_path):
    folder = tmp_path / "model@2024"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "bert"}')
    assert find_encoder(str(folder)).level == "dialogue"


def test_what_is_no_model_is_refused(bert_folder, tmp_path):
    with pytest.raises(InputError, match="got no model in it"):
        find_encoder(str(tmp_path))
    with pytest.raises(InputError, match="got level 'turns'"):
        find_encoder(f"{bert_folder}@turns")
    with pytest.raises(InputError):
        find_encoder(str(tmp_path / "nowhere" / "at" / "all"))


def test_no_dialogue_is_refused():
    with pytest.raises(InputError, match="dialogues: got none"):
        TfidfEncoder().encode([])


def test_tfidf_counts_chinese_characters():
    texts = ["我要退货", "怎么退货", "今天天气好", "天气怎么样"]
    vectors = TfidfEncoder().encode([Dialogue((Turn("user", text),)) for text in texts])
    cosines = cosine_similarity(vectors)
    assert cosines[0, 1] > cosines[0, 2] == 0
