"""Encoders that dial2vec compares itself with: topics and document vectors."""

import os
import subprocess
import sys

import numpy as np
import pytest
from talks import DIALOGUES, dialogue

from hf_dialemb import InputError, load_encoder
from hf_dialemb.papers import fitted_encoders
from hf_dialemb.papers.fitted_encoders import Doc2VecEncoder, LdaEncoder

SCRIPT = """
import sys
import numpy as np
from hf_dialemb.papers.fitted_encoders import Doc2VecEncoder
from hf_dialemb.dialogue import Dialogue, Turn
dialogues = [Dialogue((Turn("user", text),)) for text in sys.argv[2:]]
np.save(sys.argv[1], Doc2VecEncoder(size=8).encode(dialogues))
"""


@pytest.mark.slow
def test_document_vectors_do_not_depend_on_how_python_hashes(tmp_path):
    pytest.importorskip("gensim")
    texts = [" ".join(f"word{(place * step) % 17}" for step in range(20)) for place in range(12)]
    words, other = (
        [sys.executable, "-W", "error::UserWarning", "-c", SCRIPT],
        os.environ | {"PYTHONHASHSEED": "1"},
    )
    subprocess.run([*words, tmp_path / "there.npy", *texts], env=other, check=True)
    here = Doc2VecEncoder(size=8).encode([dialogue(text) for text in texts])
    np.testing.assert_array_equal(np.load(tmp_path / "there.npy"), here)


def test_doc2vec_names_its_package_and_skips_dialogues_without_words(monkeypatch):
    monkeypatch.setattr(fitted_encoders, "find_spec", lambda name: None)
    with pytest.raises(
        InputError, match=r"gensim is missing; pip install \"hf-dialemb\[baselines\]\""
    ):
        load_encoder("doc2vec")
    monkeypatch.undo()
    pytest.importorskip("gensim")
    vectors = Doc2VecEncoder(size=8).encode([*DIALOGUES, dialogue("?")])
    assert vectors.any(axis=1).tolist() == [True] * 4 + [False]


def test_shares_of_topics_sum_to_one():
    vectors = LdaEncoder(topics=5).encode(DIALOGUES)
    assert vectors.shape == (4, 5)
    assert vectors.min() > 0
    np.testing.assert_allclose(vectors.sum(axis=1), 1, rtol=1e-5)
