"""Encoders of the papers: those that are fitted on what they encode, and E5 from its packages."""

import logging
import os
import subprocess
import sys

import numpy as np
import pytest
from exports import stock
from talks import DIALOGUES, dialogue
from transformers import AutoModel, AutoTokenizer

import hf_dialemb
from hf_dialemb import InputError, load_encoder
from hf_dialemb.encoders import specs
from hf_dialemb.papers import fitted_encoders
from hf_dialemb.papers.fitted_encoders import Doc2VecEncoder, LdaEncoder
from hf_dialemb.papers.packed_e5 import BACKBONES, E5, PROMPTS
from hf_dialemb.storage.pretrained import resolve_backbone

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


pytestmark = pytest.mark.skipif(E5 not in BACKBONES, reason="the extra multilingual is missing")
QUESTIONS = ["how much protein should a female eat", "南瓜的家常做法"]
PASSAGES = [
    "As a general guideline, the CDC's average requirement of protein for women ages 19 to 70 is "
    "46 grams per day. But, as you can see from this chart, you'll need to increase that if you're "
    "expecting or training for a marathon. Check out the chart below to see how much protein you "
    "should be eating each day.",
    "1.清炒南瓜丝 原料:嫩南瓜半个 调料:葱、盐、白糖、鸡精 做法: 1、南瓜用刀薄薄的削去表面一层皮,"
    "用勺子刮去瓤 2、擦成细丝(没有擦菜板就用刀慢慢切成细丝) 3、锅烧热放油,入葱花煸出香味 "
    "4、入南瓜丝快速翻炒一分钟左右,放盐、一点白糖和鸡精调味出锅",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The base under its name, made in an empty cache."""
    with pytest.MonkeyPatch.context() as patch:
        home = str(tmp_path_factory.mktemp("home"))
        patch.setattr("huggingface_hub.constants.HF_HOME", home)
        patch.setattr("huggingface_hub.constants.HF_HUB_CACHE", home)
        specs._hub_path.cache_clear()
        yield resolve_backbone(E5)
        specs._hub_path.cache_clear()


def test_questions_find_their_passages_in_english_and_chinese(folder):
    model = stock(folder)
    assert (dict(model.prompts), model.default_prompt_name) == (PROMPTS, "query")
    cosines = model.encode_query(QUESTIONS) @ model.encode_document(PASSAGES).T
    assert np.array_equal(model.encode("ﬁve ½，"), model.encode("five 1⁄2,"))
    assert np.allclose(cosines, [[0.932, 0.756], [0.749, 0.921]], atol=2e-3)


def test_the_name_gives_what_the_folder_gives_and_says_where_from(folder, caplog):
    with caplog.at_level(logging.WARNING):
        encoder = hf_dialemb.load_encoder(E5)
    assert "4 bits" in caplog.text
    vectors = encoder.encode_utterances(QUESTIONS)
    assert np.allclose(vectors, stock(folder).encode(QUESTIONS), atol=1e-5)
    texts = [f"query: {text}" for text in QUESTIONS]
    batch = AutoTokenizer.from_pretrained(folder)(texts, padding=True, return_tensors="pt")
    states = AutoModel.from_pretrained(folder)(**batch).last_hidden_state.detach()
    mask = batch["attention_mask"].unsqueeze(-1)
    means = ((states * mask).sum(1) / mask.sum(1)).numpy()
    assert np.allclose(vectors, means / np.linalg.norm(means, axis=1, keepdims=True), atol=1e-5)
