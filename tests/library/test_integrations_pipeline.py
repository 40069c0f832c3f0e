"""Dialogues in scikit-learn, as its own checks want it, and in other libraries' batches."""

import copy
import pickle
import shutil

import numpy as np
import pandas as pd
import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import estimator_checks
from transformers import AutoModel

from hf_dialemb import Dialogue, InputError, Turn, load_encoder
from hf_dialemb.dialogue import ROLES
from hf_dialemb.integrations import DialogueVectorizer, to_transcript
from hf_dialemb.integrations.inputs import from_transcript

CHECKS = (
    "estimator_cloneable",
    "estimator_tags_renamed",
    "valid_tag_types",
    "estimator_repr",
    "no_attributes_set_in_init",
    "do_not_raise_errors_in_init_or_set_params",
    "mixin_order",
    "parameters_default_constructible",
    "get_params_invariance",
    "set_params",
    "transformers_unfitted",
    "estimators_unfitted",
)
"""Those of scikit-learn that fit no table of numbers.

For transformers of text it leaves out all but the first.
"""


@pytest.fixture(scope="module")
def dialogues(sample_dialogues):
    return sample_dialogues[:24]


@pytest.fixture
def vectorizer(tiny_bert):
    return DialogueVectorizer(tiny_bert)


@pytest.mark.parametrize("check", CHECKS)
def test_what_scikit_learn_can_check_without_numbers(check):
    getattr(estimator_checks, f"check_{check}")("DialogueVectorizer", DialogueVectorizer())


def test_vectors_are_those_of_the_encoder_in_every_form_of_input(tiny_bert, dialogues):
    few = dialogues[:4]
    expected = load_encoder(tiny_bert).encode(few)
    fitted = DialogueVectorizer(tiny_bert).fit(dialogues)
    forms = (
        few,
        tuple(dialogue.to_messages() for dialogue in few),
        [dialogue.to_json() for dialogue in few],
        [" ".join(turn.content for turn in dialogue.turns) for dialogue in few],
        pd.Series([np.array(dialogue.to_messages(), dtype=object) for dialogue in few]),
    )
    for form in forms:
        np.testing.assert_allclose(fitted.transform(form), expected, atol=1e-5)
    assert fitted.transform(few).dtype == np.float32
    np.testing.assert_allclose(
        DialogueVectorizer(tiny_bert).fit_transform(few), expected, atol=1e-5
    )
    np.testing.assert_allclose(fitted.transform(few[::-1])[::-1], expected, atol=1e-5)


def test_clones_are_not_fitted_and_copies_are(vectorizer, dialogues):
    expected = vectorizer.fit(dialogues).transform(dialogues)
    assert clone(vectorizer).get_params() == vectorizer.get_params()
    with pytest.raises(NotFittedError):
        clone(vectorizer).transform(dialogues)
    for again in (pickle.loads(pickle.dumps(vectorizer)), copy.deepcopy(vectorizer)):
        assert again.get_feature_names_out().shape == (16,)
        np.testing.assert_array_equal(again.transform(dialogues), expected)


def test_beside_other_encoders_and_columns(vectorizer, tiny_bert, dialogues):
    levels = ("dialogue", "utterances")
    union = FeatureUnion([(level, DialogueVectorizer(tiny_bert, level)) for level in levels])
    assert union.fit_transform(dialogues).shape == (24, 32)
    messages = [dialogue.to_messages() for dialogue in dialogues]
    table = pd.DataFrame({"dialogue": messages, "channel": ["chat", "phone"] * 12})
    columns = ColumnTransformer(
        [("vector", vectorizer, "dialogue"), ("channel", OneHotEncoder(), ["channel"])]
    )
    assert columns.fit_transform(table).shape == (24, 18)
    names = [f"dialoguevectorizer{place}" for place in range(16)]
    assert list(vectorizer.set_output(transform="pandas").fit_transform(dialogues).columns) == names
    channels = ["channel__channel_chat", "channel__channel_phone"]
    assert columns.get_feature_names_out()[15:].tolist() == [
        "vector__dialoguevectorizer15",
        *channels,
    ]
    with pytest.raises(InputError, match="X: got a table"):
        ColumnTransformer([("vector", vectorizer, ["dialogue"])]).fit(table)


@pytest.mark.parametrize(
    ("model", "dialogues", "sentence"),
    [
        ("tfidf", ["a text"], "is fitted on the dialogues"),
        ("no/such-model", ["a text"], "no/such-model"),
        ("tfidf", "a text", "got one str"),
        ("tfidf", ["a text", ""], r"dialogues\[1\]: got the text"),
        ("tfidf", ["a text", float("nan")], r"dialogues\[1\]: got float"),
    ],
)
def test_mistakes_are_told_in_one_sentence(model, dialogues, sentence):
    with pytest.raises(InputError, match=sentence):
        DialogueVectorizer(model).fit(dialogues)


TURNS = st.builds(
    Turn,
    st.sampled_from(ROLES),
    st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip),
)


@given(st.lists(TURNS, min_size=1).map(lambda turns: Dialogue(tuple(turns))))
def test_a_transcript_is_read_back_word_for_word(dialogue):
    assert from_transcript(to_transcript(dialogue)) == dialogue


@pytest.mark.slow
@pytest.mark.habit("dataset.map with an encoder, pickle.dumps(encoder)", "works, and is cached")
def test_the_cache_knows_an_encoder_and_knows_other_weights(tiny_bert, tmp_path, sample_dialogues):
    folder = str(shutil.copytree(tiny_bert, tmp_path / "model"))
    dataset = Dataset.from_list([dialogue.to_json() for dialogue in sample_dialogues[:6]])

    def embedded():
        encoder = load_encoder(folder)
        return dataset.map(
            lambda messages: {"embedding": encoder.encode(messages)},
            input_columns="messages",
            batched=True,
        )

    first = embedded()
    expected = load_encoder(folder).encode(sample_dialogues[:6])
    np.testing.assert_allclose(first.with_format("numpy")["embedding"][:], expected, atol=1e-5)
    assert embedded()._fingerprint == first._fingerprint
    model = AutoModel.from_pretrained(folder)
    model.embeddings.LayerNorm.bias.data.add_(1)
    model.save_pretrained(folder)
    assert embedded()._fingerprint != first._fingerprint
