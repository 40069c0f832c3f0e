"""Transcripts, and encoders in other libraries' batches."""

import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import Dataset
from datasets.fingerprint import Hasher
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModel

from hf_dialemb.dialogue import ROLES, Dialogue, Turn
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation import load_encoder
from hf_dialemb.integrations import BatchEncoder, to_transcript
from hf_dialemb.integrations.inputs import from_transcript

TURNS = st.builds(
    Turn,
    st.sampled_from(ROLES),
    st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip),
)


@given(st.lists(TURNS, min_size=1).map(lambda turns: Dialogue(tuple(turns))))
def test_a_transcript_is_read_back_word_for_word(dialogue):
    assert from_transcript(to_transcript(dialogue)) == dialogue


@pytest.mark.slow
def test_the_cache_knows_the_encoder_used_or_not_and_knows_other_weights(
    tiny_bert, tmp_path, sample_dialogues
):
    folder = str(shutil.copytree(tiny_bert, tmp_path / "model"))
    encoder = BatchEncoder(folder)
    before = Hasher.hash(encoder)
    dataset = Dataset.from_list([dialogue.to_json() for dialogue in sample_dialogues[:6]])
    first = dataset.map(encoder, batched=True)
    assert encoder._encoder is not None
    assert Hasher.hash(encoder) == before == Hasher.hash(BatchEncoder(folder))
    assert dataset.map(BatchEncoder(folder), batched=True)._fingerprint == first._fingerprint
    model = AutoModel.from_pretrained(folder)
    model.embeddings.LayerNorm.bias.data.add_(1)
    model.save_pretrained(folder)
    assert dataset.map(BatchEncoder(folder), batched=True)._fingerprint != first._fingerprint


def test_batches_of_every_form_give_the_same_vectors(tiny_checkpoint, tiny_bert, sample_dialogues):
    encoder = BatchEncoder(str(tiny_checkpoint), output="vector")
    expected = load_encoder(str(tiny_checkpoint)).encode(sample_dialogues[:5])
    table = pa.Table.from_pylist([dialogue.to_json() for dialogue in sample_dialogues[:5]])
    frame = table.to_pandas()  # lists at every depth are arrays in it
    for batch in (
        {name: list(frame[name]) for name in frame},
        {name: frame[name].to_numpy() for name in frame},
    ):
        found = encoder(batch)
        assert list(found) == ["id", "messages", "domains", "vector"]
        np.testing.assert_allclose(found["vector"], expected, atol=1e-5)
    found = encoder(table)
    np.testing.assert_allclose(np.stack(found.to_pandas()["vector"]), expected, atol=1e-5)
    assert found.drop_columns("vector") == table
    texts = BatchEncoder(tiny_bert, column="text")
    assert texts({"text": pd.Series(["a room", "a taxi"])})["embedding"].shape == (2, 16)


@pytest.mark.parametrize(
    ("column", "batch", "sentence"),
    [
        ("messages", {"text": ["a room"]}, r"column 'messages' is missing \(found: text\)"),
        (
            "messages",
            {"messages": ["a room", [{"role": "user"}]]},
            r"messages\[1\]: .*messages\[0\]: "
            r"field content is",
        ),
        ("text", {"text": ["a room", ""]}, r"text\[1\]: field content: got ''"),
    ],
)
def test_mistakes_are_told_in_one_sentence(tiny_bert, column, batch, sentence):
    with pytest.raises(InputError, match=sentence):
        BatchEncoder(tiny_bert, column=column)(batch)
