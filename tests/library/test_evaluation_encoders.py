"""Encoders by name, baselines that are fitted on what they encode, and vectors that are kept."""

import shutil
from collections import Counter

import numpy as np
import pytest
import torch
import transformers
from checkpoints import save_dse
from given_vectors import hashed
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Pooling, Transformer
from sklearn.metrics.pairwise import cosine_similarity
from talks import DIALOGUES, dialogue

from hf_dialemb import Dialogue, InputError, Turn, load_encoder
from hf_dialemb.encoders import Encoder, embedding_cache
from hf_dialemb.encoders.embedding_cache import RememberingEncoder
from hf_dialemb.encoders.specs import FITTED, EncoderSpec, find_encoder
from hf_dialemb.encoders.word_vectors import TfidfEncoder
from hf_dialemb.hashing import dialogue_key
from hf_dialemb.hub.export import load_checkpoint, write_checkpoint

TEXTS = [" ".join(turn.content for turn in item.turns) for item in DIALOGUES]


@pytest.fixture(scope="module")
def folders(tiny_bert, tmp_path_factory):
    """The same BERT plain, as a model of mean pooling, in an untrained utterance encoder, and that
    one published."""
    folder = tmp_path_factory.mktemp("encoders")
    folders = {kind: folder / kind for kind in ("plain", "sentence", "utterance", "published")}
    shutil.copytree(tiny_bert, folders["plain"])
    transformer = Transformer(str(folders["plain"]), max_seq_length=64)
    SentenceTransformer(modules=[transformer, Pooling(16, "mean")], device="cpu").save(
        str(folders["sentence"])
    )
    save_dse(str(folders["plain"]), folders["utterance"], max_tokens=64)
    write_checkpoint(*load_checkpoint(str(folders["utterance"])), folders["published"])
    return folders


def last_hidden(encoder, tokenizer, text):
    with torch.inference_mode():
        return encoder(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()


def mean_of_tokens(folder, text):
    """What neural encoders should give for one short text, computed alone and without padding."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    return last_hidden(model, transformers.AutoTokenizer.from_pretrained(folder), text).mean(axis=0)


def vectors_of(model, dialogues=DIALOGUES, **options):
    return load_encoder(str(model), batch_size=2, device="cpu", **options).encode(dialogues)


LIBRARIES = {"plain": "transformers", "sentence": "sentence-transformers", "utterance": "dialemb"}
LIBRARIES["published"] = LIBRARIES["sentence"]


@pytest.mark.parametrize("kind", LIBRARIES)
def test_vectors_are_means_of_tokens_of_dialogues_and_of_utterances(kind, folders):
    folder = folders[kind]
    vectors = vectors_of(folder)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(
        vectors, [mean_of_tokens(folders["plain"], text) for text in TEXTS], atol=1e-5
    )
    turns = [[turn.content for turn in item.turns] for item in DIALOGUES]
    alone = {text: mean_of_tokens(folders["plain"], text) for texts in turns for text in texts}
    encoder = load_encoder(str(folder), device="cpu")
    np.testing.assert_allclose(
        encoder.encode_utterances(list(alone)), list(alone.values()), atol=1e-5
    )
    expected = [np.mean([alone[text] for text in texts], axis=0) for texts in turns]
    np.testing.assert_allclose(vectors_of(folder, level="utterances"), expected, atol=1e-5)
    found = find_encoder(str(folder), "utterances")
    assert (found.kind, found.path, found.level) == (LIBRARIES[kind], str(folder), "utterances")


def test_what_is_no_model_is_refused_and_a_checkpoint_is_one(tiny_checkpoint, tmp_path):
    assert find_encoder(str(tiny_checkpoint)).kind == "dialemb"
    with pytest.raises(InputError, match="got no model in it"):
        find_encoder(str(tmp_path))
    with pytest.raises(InputError, match="neither a folder nor on the Hub within reach"):
        find_encoder(str(tmp_path / "nowhere" / "at" / "all"))
    shutil.copytree(tiny_checkpoint, tmp_path / "checkpoint-5")
    encoder = load_encoder(str(tmp_path / "checkpoint-5"), device="cpu")
    np.testing.assert_array_equal(
        encoder.encode_utterances(["book"]), encoder.encode([dialogue("book")])
    )


def test_a_fingerprint_is_of_what_decides_the_vectors(folders, tmp_path):
    def fingerprint(model, **options):
        return find_encoder(str(model), **options).fingerprint

    folder = tmp_path / "model@2024"
    shutil.copytree(folders["plain"], folder)
    first = fingerprint(folder)
    assert first == fingerprint(folders["plain"]) == fingerprint(folder, dtype=torch.float32)
    others = {
        first,
        fingerprint("tfidf"),
        fingerprint(folder, level="utterances"),
        fingerprint(folder, dtype="bfloat16"),
    }
    for file in ("vocab.txt", "config.json", "model.safetensors"):
        (folder / file).write_bytes((folder / file).read_bytes() + b" ")
        others.add(fingerprint(folder))
    assert len(others) == 7


def test_an_encoder_decoder_is_read_by_its_encoder(folders, tmp_path):
    # T5 knows distances alone, so that padding on the left moves nothing.
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders["plain"], padding_side="left")
    tokenizer.save_pretrained(tmp_path)
    torch.manual_seed(0)
    size = {
        "vocab_size": len(tokenizer),
        "d_model": 16,
        "d_kv": 8,
        "d_ff": 32,
        "num_layers": 2,
        "num_heads": 2,
    }
    model = transformers.T5Model(transformers.T5Config(**size)).eval()
    model.save_pretrained(tmp_path)
    hidden = [last_hidden(model.get_encoder(), tokenizer, text) for text in TEXTS]
    np.testing.assert_allclose(
        vectors_of(tmp_path), [each.mean(axis=0) for each in hidden], atol=1e-5
    )


TALKS = [dialogue(f"text {number}", "and so on") for number in range(7)]


class CountingEncoder:
    """Draws a vector for each text.

    Counts what it was asked for, and is stopped after so many calls.
    """

    name = "counting"

    def __init__(self, calls=100):
        self.asked, self.calls = Counter(), calls

    def encode(self, dialogues):
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        texts = [" / ".join(turn.content for turn in item.turns) for item in dialogues]
        self.asked.update(texts)
        return np.stack([hashed(text)[:5] for text in texts]).astype(np.float32)


def gives(encoder, talks, like=None):
    np.testing.assert_array_equal(encoder.encode(talks), (like or CountingEncoder()).encode(talks))


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Remembers what an encoder gives in one folder, in parts of three."""
    monkeypatch.setattr(embedding_cache, "PART", 3)
    monkeypatch.setattr(Encoder, "fingerprint", "counting")

    def keep(encoder):
        loaded = load_encoder(encoder)
        loaded.source = EncoderSpec("counting", "fitted", "counting")
        return RememberingEncoder(loaded, tmp_path)

    return keep


def test_nothing_is_encoded_twice_before_it_is_forgotten():
    counting = CountingEncoder()
    encoder = RememberingEncoder(counting)
    gives(encoder, [TALKS[0], TALKS[1], TALKS[0]])
    gives(encoder, [TALKS[1], TALKS[2], TALKS[0]])
    gives(encoder, TALKS[:2])
    assert list(counting.asked.values()) == [1, 1, 1]
    encoder.forget()
    encoder.encode(TALKS[:1])
    assert counting.asked["text 0 / and so on"] == 2
    with pytest.raises(InputError, match="dialogues: got none"):
        RememberingEncoder(
            Encoder("texts", embed_texts=lambda texts: np.ones((len(texts), 1)))
        ).encode([])


def test_a_second_run_encodes_nothing(kept):
    first = kept(CountingEncoder())
    gives(first, TALKS)
    second = kept(CountingEncoder(calls=0))
    gives(second, [*TALKS[::-1], TALKS[2]])
    assert second.encode(TALKS[:2]).dtype == np.float32
    assert second.seconds == pytest.approx(first.seconds)


def test_a_stopped_run_keeps_its_parts(kept):
    with pytest.raises(KeyboardInterrupt):
        kept(CountingEncoder(calls=2)).encode(TALKS)
    counting = CountingEncoder()
    encoder = kept(counting)
    for _ in range(2):
        gives(encoder, TALKS)
        assert counting.asked.total() == 1  # only what is new
        encoder.forget()


def test_a_damaged_file_is_refused(kept, tmp_path):
    kept(CountingEncoder()).encode(TALKS)
    [file] = tmp_path.glob("*.sqlite")
    file.write_bytes(b"x" * 4096)
    with pytest.raises(InputError, match=r"sqlite: SQLite cannot use it \(.*\); remove it"):
        kept(CountingEncoder()).encode(TALKS)


def test_a_dialogue_is_known_by_who_says_what():
    others = [("one two",), ('one"], ["user", "two',), ("two", "one"), ("one \ud800",)]
    other_role = Dialogue((Turn("assistant", "one"), Turn("assistant", "two")))
    talks = [dialogue("one", "two"), other_role, *(dialogue(*words) for words in others)]
    assert len({dialogue_key(talk) for talk in talks}) == len(talks)
    labelled = Dialogue(
        (Turn("user", "one", intents=("greet",)), Turn("assistant", "two")),
        id="7",
        domains=("hotel",),
    )
    assert dialogue_key(labelled) == dialogue_key(talks[0])


def two_themes(count=60):
    """Dialogues of two kinds that share no word, by turns."""
    generator = np.random.default_rng(0)
    words = [[f"{theme}word{number}" for number in range(30)] for theme in ("hotel", "train")]
    return [dialogue(" ".join(generator.choice(words[place % 2], 60))) for place in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec", ["tfidf", *(name for name in ("lda", "doc2vec") if name in FITTED)]
)
def test_what_shares_words_lies_together_and_a_fit_is_repeatable(spec):
    if spec == "doc2vec":
        pytest.importorskip("gensim")
    encoder = load_encoder(spec)
    vectors = encoder.encode(two_themes())
    assert (vectors.dtype, len(vectors)) == (np.float32, 60)
    cosines = cosine_similarity(vectors)
    np.fill_diagonal(cosines, -1)
    # the nearest other is of the same kind
    assert np.mean(cosines.argmax(axis=1) % 2 == np.arange(60) % 2) > 0.9
    np.testing.assert_array_equal(vectors, load_encoder(spec).encode(two_themes()))
    assert encoder.fitted_on_input
    assert encoder.name == spec
    with pytest.raises(InputError, match=f"{spec}: got dialogues without common words"):
        encoder.encode([dialogue("?"), dialogue("!")])


def test_tfidf_separates_what_shares_no_word_and_is_reduced(random):
    vectors = TfidfEncoder().encode(DIALOGUES)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    assert vectors[0] @ vectors[1] == 0 < vectors[0] @ vectors[2]
    cosines = cosine_similarity(
        TfidfEncoder().encode(list(map(dialogue, ["我要退货", "怎么退货", "今天天气好"])))
    )
    assert cosines[0, 1] > cosines[0, 2] == 0
    dialogues = [
        dialogue(" ".join(f"word{number}" for number in random.integers(0, 400, 30)))
        for _ in range(120)
    ]
    assert TfidfEncoder(components=20).encode(dialogues).shape == (120, 20)
