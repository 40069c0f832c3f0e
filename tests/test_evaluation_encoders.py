"""Specs, and encoders with weights: our checkpoints, sentence-transformers models and plain transformers models."""

import logging
import shutil

import numpy as np
import pytest
import torch
import transformers
from utterance_checkpoints import save_dse

from hf_dialemb.encoders.specs import find_encoder, fingerprint, has_weights, load_encoder
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


def save_bert(folder, more=(), added=()):
    """Writes a random BERT of two layers, 16 wide, for 16 tokens; returns it and its tokenizer."""
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *more, *WORDS]))
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"))
    tokenizer.add_tokens(list(added))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=16, initializer_range=0.5,
    )  # fmt: skip
    model = transformers.BertModel(config).eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


@pytest.fixture(scope="session")
def bert_folder(tmp_path_factory):
    """A random BERT; see `save_bert`."""
    folder = tmp_path_factory.mktemp("bert")
    save_bert(folder)
    return folder


TEXTS = [" ".join(turn.content for turn in item.turns) for item in DIALOGUES]


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
    """What neural encoders should give for one short text, computed alone and without padding."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    return last_hidden(model, transformers.AutoTokenizer.from_pretrained(folder), text).mean(axis=0)


@pytest.mark.parametrize("kind", NEURAL)
def test_vectors_are_means_of_tokens_of_dialogues_and_of_utterances(kind, bert_folder, request):
    folder = request.getfixturevalue(kind)
    for level in ("", "@dialogue"):
        encoder = load_encoder(f"{folder}{level}", batch_size=2, device="cpu")
        vectors = encoder.encode(DIALOGUES)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(vectors, [mean_of_tokens(bert_folder, text) for text in TEXTS], atol=1e-5)
    turns = [[turn.content for turn in item.turns] for item in DIALOGUES]
    alone = {text: mean_of_tokens(bert_folder, text) for texts in turns for text in texts}
    np.testing.assert_allclose(encoder.encode_utterances(list(alone)), list(alone.values()), atol=1e-5)
    expected = [np.mean([alone[text] for text in texts], axis=0) for texts in turns]
    vectors = load_encoder(f"{folder}@utterances", device="cpu").encode(DIALOGUES)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "level", "said"),
    [
        ("bert_folder", "dialogue", "1 of 6 texts are longer than the model's 16 tokens"),
        ("sentence_folder", "dialogue", "1 of 6 texts are longer than the model's 16 tokens"),
        ("utterance_folder", "utterances", "1 of 8 utterances were truncated"),
    ],
)
def test_what_is_cut_is_counted(kind, level, said, request, caplog):
    encoder = load_encoder(f"{request.getfixturevalue(kind)}@{level}", device="cpu")
    with caplog.at_level(logging.WARNING, logger="hf_dialemb"):  # 14 words and [CLS], [SEP] just fit
        encoder.encode([*DIALOGUES, dialogue("hotel " * 15), dialogue("taxi " * 14)])
    assert said in caplog.text


def test_half_precision_is_computed_in_float32(bert_folder, tmp_path):
    folder = save_dse(str(bert_folder), tmp_path / "half", torch.bfloat16, max_tokens=16)
    model, tokenizer = load_checkpoint(str(folder))
    vectors = load_encoder(str(folder), device="cpu").encode(DIALOGUES)
    np.testing.assert_allclose(vectors, encode_utterances(model.float(), tokenizer, TEXTS), atol=2e-6)


def test_kinds_are_told_apart(request, tiny_checkpoint):
    for name, kind in zip(
        NEURAL, ("transformers", "sentence-transformers", "dialemb", "sentence-transformers"), strict=True
    ):
        folder = str(request.getfixturevalue(name))
        assert find_encoder(f"{folder}@utterances")[1:4] == (kind, folder, "utterances")
    assert find_encoder(str(tiny_checkpoint)).kind == "dialemb"


def test_what_is_no_model_is_refused(bert_folder, tmp_path):
    with pytest.raises(InputError, match="got no model in it"):
        find_encoder(str(tmp_path))
    with pytest.raises(InputError, match="neither a folder nor on the Hub within reach"):
        find_encoder(str(tmp_path / "nowhere" / "at" / "all"))


def test_an_unfinished_training_is_refused(tiny_checkpoint, tmp_path):
    (tmp_path / "training_settings.json").write_text("{}")
    with pytest.raises(InputError, match=r"got a folder of an unfinished training, expected a model; run it again to"):
        find_encoder(str(tmp_path))
    shutil.copytree(tiny_checkpoint, tmp_path / "checkpoint-5")
    with pytest.raises(InputError, match=r"go on, or give one of its checkpoints \(checkpoint-5\)"):
        find_encoder(f"{tmp_path}@whitened")
    encoder = load_encoder(str(tmp_path / "checkpoint-5"), device="cpu")
    np.testing.assert_array_equal(encoder.encode_utterances(["book"]), encoder.encode([dialogue("book")]))


# specs


def test_words_stand_in_any_order_after_the_last_sign(bert_folder, tmp_path):
    found = find_encoder(f"{bert_folder}@whitened,cls, utterances")
    assert found[1:] == ("transformers", str(bert_folder), "utterances", True, True)
    folder = tmp_path / "model@2024"
    shutil.copytree(bert_folder, folder)
    assert find_encoder(f"{folder}@cls")[1:] == ("transformers", str(folder), "dialogue", True, False)
    assert find_encoder(str(folder)).level == "dialogue"
    assert find_encoder("tfidf@whitened,dialogue")[1:] == ("tfidf", "", "dialogue", False, True)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("turns", "got 'turns' after the '@', expected dialogue, utterances, cls or whitened"),
        ("", "got '' after the '@'"),
        ("cls;whitened", "got 'cls;whitened'"),
        ("utterances,dialogue", "expected each word once and one level"),
        ("cls,cls", "expected each word once"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_looked_up(words, reason):
    for work in (find_encoder, load_encoder, fingerprint, has_weights):
        with pytest.raises(InputError, match=reason):
            work(f"no/such model@{words}")


def test_words_that_do_not_go_with_a_model_are_refused(sentence_folder, utterance_folder, tiny_checkpoint):
    for model in (sentence_folder, utterance_folder):
        with pytest.raises(InputError, match="expected a plain transformers model; leave 'cls' out"):
            find_encoder(f"{model}@cls")
    with pytest.raises(InputError, match="got cls for a baseline"):
        find_encoder("lda@cls")
    for model in ("tfidf", tiny_checkpoint):
        with pytest.raises(InputError, match="reads whole dialogues; leave '@utterances' out"):
            find_encoder(f"{model}@utterances")


def test_only_models_have_weights(bert_folder):
    assert has_weights(f"{bert_folder}@cls")
    assert has_weights("some/model")
    assert has_weights("./tfidf")
    for spec in ("tfidf", "lda@whitened", "doc2vec", "words:glove.txt", "api:text-embedding-3-small@utterances"):
        assert not has_weights(spec)


def test_a_fingerprint_is_of_what_decides_the_vectors(bert_folder, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(bert_folder, folder)
    first = fingerprint(str(folder))
    assert first == fingerprint(str(bert_folder)) == fingerprint(f"{folder}@dialogue,whitened")
    for beside in ("training_report.json", "response_vectors-0a1b2c3d.safetensors"):
        (folder / beside).write_text("{}")
    assert first == fingerprint(str(folder))
    others = {fingerprint(f"{folder}@{words}") for words in ("cls", "utterances", "cls,utterances")}
    for file, change in (("vocab.txt", b"more"), ("config.json", b" "), ("model.safetensors", b"more")):
        with (folder / file).open("ab") as stream:
            stream.write(change)
        others.add(fingerprint(str(folder)))
    assert len(others | {first, fingerprint("tfidf"), fingerprint("lda")}) == 9


def test_a_routers_weights_are_in_its_fingerprint(bert_folder, tmp_path):
    for place in ("query_0_Transformer", "document_0_Transformer"):
        shutil.copytree(bert_folder, tmp_path / place)
    (tmp_path / "modules.json").write_text("[]")
    shutil.copy(bert_folder / "config.json", tmp_path)
    first = fingerprint(str(tmp_path))
    with (tmp_path / "document_0_Transformer" / "model.safetensors").open("ab") as stream:
        stream.write(b"more")
    assert fingerprint(str(tmp_path)) != first


def test_vectors_of_words_that_are_looked_up_need_no_tokenizer_of_transformers(bert_folder, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import StaticEmbedding
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(bert_folder / "tokenizer.json"))
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)], device="cpu")
    model.save(str(tmp_path))
    found = load_encoder(f"{tmp_path}@utterances").encode([dialogue("book hotel")])
    np.testing.assert_allclose(found, model.encode(["book hotel"]), atol=1e-6)


# what becomes a vector


def save_words(folder, names, **special):
    """Writes a tokenizer that parts at blanks, and returns the size of its vocabulary."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: place for place, word in enumerate([*names, *WORDS])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token=special["unk_token"]))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    PreTrainedTokenizerFast(tokenizer_object=backend, **special).save_pretrained(folder)
    return len(vocabulary)


def last_hidden(encoder, tokenizer, text):
    with torch.inference_mode():
        return encoder(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()


def encoder_decoder(family, folder, **special):
    """Writes a tiny random T5 or Blenderbot; returns its encoder and tokenizer."""
    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", **special}
    words = save_words(folder, ["<pad>", "</s>", "<unk>"], **special)
    torch.manual_seed(0)
    if family == "t5":
        config = transformers.T5Config(vocab_size=words, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2)
        model = transformers.T5Model(config)
    else:
        config = transformers.BlenderbotConfig(
            vocab_size=words, d_model=16, max_position_embeddings=6, encoder_layers=2, decoder_layers=1,
            encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
            pad_token_id=0, bos_token_id=1, eos_token_id=1, decoder_start_token_id=1, init_std=0.5,
        )  # fmt: skip
        model = transformers.BlenderbotModel(config)
    model.eval().save_pretrained(folder)
    return model.get_encoder(), transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("family", ["t5", "blenderbot"])
def test_an_encoder_decoder_is_read_by_its_encoder(family, tmp_path):
    encoder, tokenizer = encoder_decoder(family, tmp_path)
    expected = [last_hidden(encoder, tokenizer, text).mean(axis=0) for text in TEXTS]
    np.testing.assert_allclose(load_encoder(str(tmp_path), device="cpu").encode(DIALOGUES), expected, atol=1e-5)


def test_the_first_token_may_be_the_vector(bert_folder, tmp_path):
    model = transformers.AutoModel.from_pretrained(bert_folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert_folder)
    vectors = load_encoder(f"{bert_folder}@cls", device="cpu").encode(DIALOGUES)
    np.testing.assert_allclose(vectors, [last_hidden(model, tokenizer, text)[0] for text in TEXTS], atol=1e-5)
    # T5 knows distances alone, so that padding on the left moves nothing.
    encoder, tokenizer = encoder_decoder("t5", tmp_path, padding_side="left")
    vectors = load_encoder(f"{tmp_path}@cls", device="cpu").encode(DIALOGUES)
    np.testing.assert_allclose(vectors, [last_hidden(encoder, tokenizer, text)[0] for text in TEXTS], atol=1e-5)


@pytest.mark.parametrize("marks", [("[SYS]", "[USR]"), ("[sys]", "[usr]")])
@pytest.mark.parametrize("added", [False, True])
def test_speakers_are_marked_where_the_vocabulary_has_their_marks(marks, added, tmp_path):
    model, tokenizer = save_bert(tmp_path, () if added else marks, marks if added else ())
    system, user = tokenizer.convert_tokens_to_ids(list(marks))
    said, answered = (tokenizer.convert_tokens_to_ids(words) for words in (["book", "hotel"], ["thanks"]))
    ids = [2, user, *said, system, *answered, 3]
    with torch.inference_mode():
        expected = model(torch.tensor([ids])).last_hidden_state[0].mean(dim=0).numpy()
    talk = dialogue("book hotel", "thanks")
    np.testing.assert_allclose(load_encoder(str(tmp_path), device="cpu").encode([talk])[0], expected, atol=1e-5)
    alone = [mean_of_tokens(tmp_path, turn.content) for turn in talk.turns]
    turns = load_encoder(f"{tmp_path}@utterances", device="cpu").encode([talk])[0]
    np.testing.assert_allclose(turns, np.mean(alone, axis=0), atol=1e-5)
