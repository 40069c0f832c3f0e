"""Baselines that are fitted on what they encode: TF-IDF, topics and document vectors."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity
from talks import DIALOGUES, dialogue

from hf_dialemb.encoders import load_encoder
from hf_dialemb.encoders.specs import FITTED
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
