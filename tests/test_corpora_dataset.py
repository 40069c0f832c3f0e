"""Facts about dialogues as a Hugging Face dataset: explicit features, equal round trip, gaps allowed."""

import pytest

from hf_dialemb.corpora import load_dialogues
from hf_dialemb.corpora.own.hub_dataset import dialogue_features, from_dataset, to_dataset
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError

datasets = pytest.importorskip("datasets")

BARE = Dialogue((Turn("user", "Nothing known"),))


def test_round_trip():
    dialogues = [BARE, *load_dialogues("sample", None, "dev")]
    dataset = to_dataset(dialogues)
    assert dataset.features == dialogue_features()
    assert from_dataset(dataset) == dialogues


def test_round_trip_through_parquet(tmp_path):
    dialogues = load_dialogues("sample", None, "dev")[:5]
    to_dataset(dialogues).to_parquet(tmp_path / "d.parquet")
    loaded = datasets.Dataset.from_parquet(str(tmp_path / "d.parquet"), cache_dir=str(tmp_path / "cache"))
    assert loaded.features == dialogue_features()
    assert from_dataset(loaded) == dialogues


def test_messages_are_lists_of_mappings():
    row = to_dataset([BARE])[0]
    message = {"role": "user", "content": "Nothing known", "dialogue_acts": [], "slots": [], "intents": []}
    assert row == {"id": "", "messages": [message], "domains": []}


def test_no_dialogue_gives_an_empty_dataset_with_features():
    dataset = to_dataset([])
    assert len(dataset) == 0
    assert dataset.features == dialogue_features()
    assert from_dataset(dataset) == []


def test_missing_columns_and_none_are_fine():
    rows = [{"messages": [{"role": "user", "content": "Hi", "slots": None}], "domains": None}]
    assert from_dataset(datasets.Dataset.from_list(rows)) == [Dialogue((Turn("user", "Hi"),))]
    messages = [{"role": "user", "content": "Hi"}]
    assert from_dataset(datasets.Dataset.from_dict({"messages": [messages]})) == [Dialogue((Turn("user", "Hi"),))]


def test_malformed_row_is_named():
    rows = [{"messages": [{"role": "user", "content": "Hi"}]}, {"messages": [{"role": "bot", "content": "Hi"}]}]
    with pytest.raises(InputError, match=r"^row 1: messages\[0\]: field role: got 'bot'"):
        from_dataset(datasets.Dataset.from_list(rows))
    with pytest.raises(InputError, match=r"^row 0: field messages is missing \(found: text\)"):
        from_dataset(datasets.Dataset.from_dict({"text": ["Hi"]}))
