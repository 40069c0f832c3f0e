"""Baselines: TF-IDF, topics, document vectors and averaged word vectors.

And whitening, of any model's vectors.
"""

import gzip
import logging

import numpy as np
import pytest
from afresh import printed_afresh
from sklearn.metrics.pairwise import cosine_similarity
from talks import DIALOGUES, dialogue

from hf_dialemb.encoders import Encoder, load_encoder
from hf_dialemb.encoders.specs import FITTED, find_encoder, fingerprint
from hf_dialemb.encoders.whitening import add_whitening, apply_whitening, fit_whitening
from hf_dialemb.encoders.word_vectors import TfidfEncoder
from hf_dialemb.errors import InputError


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
    assert (
        np.mean(cosines.argmax(axis=1) % 2 == np.arange(60) % 2) > 0.9
    )  # the nearest other is of the same kind
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


GLOVE = "book 1 0 0\nhotel 0 2 0\n. . . 9 9 9\nHotel 0 0 4\nnorth 3 3 3\n"


@pytest.fixture
def glove(tmp_path):
    file = tmp_path / "glove.txt"
    file.write_text(GLOVE)
    return file


def test_a_dialogue_is_the_mean_of_its_words(glove, caplog):
    encoder = load_encoder(f"words:{glove}")
    with caplog.at_level(logging.WARNING):
        vectors = encoder.encode(
            [dialogue("Book, hotel!", "Hotel taxi"), dialogue("HOTEL"), dialogue("taxi?")]
        )
    np.testing.assert_allclose(vectors, [[1 / 3, 2 / 3, 4 / 3], [0, 2, 0], [0, 0, 0]])
    assert not encoder.fitted_on_input
    assert "1 of 3 texts hold no word of" in caplog.text
    np.testing.assert_array_equal(encoder.encode([dialogue("north")]), [[3, 3, 3]])
    np.testing.assert_array_equal(encoder.encode_utterances(["north book"]), [[2, 1.5, 1.5]])
    by_turns = load_encoder(f"words:{glove}@utterances")
    np.testing.assert_array_equal(
        by_turns.encode([dialogue("book hotel", "hotel")]), [[0.25, 1.5, 0]]
    )


@pytest.mark.parametrize("name", ["w2v.txt", "glove.txt.gz", "glove@cls"])
def test_files_of_word_vectors_have_several_forms(name, glove, tmp_path):
    content = f"4 3\n{GLOVE}".encode() if name == "w2v.txt" else GLOVE.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    expected = load_encoder(f"words:{glove}").encode(DIALOGUES)
    np.testing.assert_array_equal(
        load_encoder(f"words:{tmp_path / name}").encode(DIALOGUES), expected
    )
    assert (
        fingerprint(f"words:{tmp_path / name}") != fingerprint(f"words:{glove}")
        or name == "glove@cls"
    )


def test_a_malformed_or_missing_file_of_word_vectors_is_one_sentence(tmp_path):
    for content, reason in (
        (b"book 1 2\nhotel 1 2 3\n", "line 2: got 3 numbers, expected 2"),
        (b"book 1 2\n\nhotel 1 2\n", "line 2: got 0 numbers"),
        (b"book 1 2\nhotel 1 inf\n", "line 2: got something that is no finite number"),
        (b"book 1 2\nhotel 1 x\n", "line 2: got something that is no finite number"),
        (b"book\n", "line 1: got 0 numbers, expected a word and numbers"),
        (b"", "got no vector"),
        (None, ".*; expected a text file of word vectors"),
        (
            gzip.compress(b"book 1 2\n" * 500, mtime=0)[:-9],
            ".*; expected a text file of word vectors",
        ),
    ):
        packed = content is None or content.startswith(b"\x1f")
        file = tmp_path / ("vectors.gz" if packed else "vectors.txt")
        file.write_bytes(b"book 1 2\n" if content is None else content)
        with pytest.raises(InputError, match=f"{file.name}: {reason}"):
            load_encoder(f"words:{file}").encode(DIALOGUES)
    with pytest.raises(
        InputError, match=r"got no file '.*nowhere.txt', expected a text file of word vectors"
    ):
        find_encoder(f"words:{tmp_path / 'nowhere.txt'}")
    with pytest.raises(InputError, match="got nothing after the colon"):
        find_encoder("words:")


def embeddings(count=400, width=6):
    generator = np.random.default_rng(0)
    return generator.normal(size=(count, width)) @ generator.normal(size=(width, width)) + 5


def whitened(vectors, dimensions=None):
    return apply_whitening(vectors, *fit_whitening(vectors, dimensions))


def test_whitened_vectors_have_the_identity_the_greatest_variance_first(random):
    vectors = embeddings()
    for dimensions in (None, 1, 3):
        result = whitened(vectors, dimensions)
        assert result.dtype == np.float32
        assert np.abs(result.mean(axis=0)).max() < 1e-6
        covariance = np.cov(result.T, bias=True).reshape(result.shape[1], -1)
        assert np.abs(covariance - np.eye(dimensions or 6)).max() < 1e-5
    one, two = whitened(vectors), whitened(vectors @ random.normal(size=(6, 6)) - 3)
    assert np.allclose(one @ one.T, two @ two.T, atol=1e-3)
    vectors = random.normal(size=(5000, 3)) * [1.0, 9.0, 3.0]
    _, matrix = fit_whitening(vectors, 2)
    assert np.abs(matrix).argmax(axis=0).tolist() == [1, 2]
    assert np.allclose(np.abs(matrix).max(axis=0), [1 / 9, 1 / 3], rtol=0.05)
    assert np.allclose(np.abs(whitened(vectors, 3)[:, :2]), np.abs(whitened(vectors, 2)), atol=1e-5)
    with pytest.raises(InputError, match="4 embeddings vary in 3 directions; give more texts"):
        fit_whitening(embeddings(4))
    assert whitened(embeddings(4), 3).shape == (4, 3)
    with pytest.raises(InputError, match="dimensions: got 9, expected 1 to 6"):
        fit_whitening(embeddings(), 9)


LOAD_WHITENED = """
import sys, warnings
import numpy as np
warnings.simplefilter("error", UserWarning)
sys.modules["hf_dialemb"] = None
from sentence_transformers import SentenceTransformer
path, output = sys.argv[1:]
np.save(output, SentenceTransformer(path, device="cpu").encode(["where is it", "goodbye"]))
"""


@pytest.mark.slow
def test_a_saved_model_needs_only_sentence_transformers(tiny_bert, sample_dialogues, tmp_path):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(tiny_bert, device="cpu")
    texts = [turn.content for dialogue in sample_dialogues[:10] for turn in dialogue.turns]
    mean, matrix = fit_whitening(model.encode(texts), 8)
    expected = apply_whitening(model.encode(["where is it", "goodbye"]), mean, matrix)
    add_whitening(model, mean, matrix)
    assert np.abs(np.cov(model.encode(texts).T, bias=True) - np.eye(8)).max() < 1e-3
    model.save_pretrained(str(tmp_path / "model"))
    printed_afresh(LOAD_WHITENED, tmp_path / "model", tmp_path / "out.npy")
    assert np.abs(np.load(tmp_path / "out.npy") - expected).max() < 1e-3


def test_any_model_can_be_whitened_by_what_it_encodes(glove, caplog):
    assert load_encoder("tfidf@whitened").fitted_on_input
    talks = [dialogue(text) for text in ("book", "hotel", "north", "book hotel", "hotel north")]
    vectors = load_encoder(f"words:{glove}@whitened,utterances").encode(talks)
    np.testing.assert_allclose(np.cov(vectors.T, bias=True), np.eye(2), atol=1e-5)
    encoder = Encoder("one", embed_texts=lambda texts: np.ones((len(texts), 3)), whitened=True)
    with pytest.raises(InputError, match="model 'one': got vectors that are all the same"):
        encoder.encode(DIALOGUES)
    vectors = load_encoder("tfidf@whitened").encode(DIALOGUES)
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)[np.triu_indices(4, 1)]
    np.testing.assert_allclose(distances, distances[0], rtol=1e-4)
    assert "model 'tfidf@whitened': 4 vectors are too few to whiten" in caplog.text
