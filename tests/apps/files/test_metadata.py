"""Facts about what else is known of a dialogue: it goes along wherever the dialogue goes."""

import pandas as pd
from talks import to_dataset

from hf_dialemb import Dialogue, Turn, load_dialogues
from hf_dialemb.apps.pages.spreadsheets import metadata_columns
from hf_dialemb.data import write_jsonl


def calls(*metadata):
    return [
        Dialogue(
            (Turn("user", f"Where is parcel {number}?"), Turn("assistant", "Here")),
            f"c{number}",
            metadata=known,
        )
        for number, known in enumerate(metadata)
    ]


CALLS = calls(
    {"team": "cards", "score": 4, "tags": ["vip", "new"]}, {"team": "hotels", "score": 2.5}, {}
)


def test_a_column_has_one_type_and_a_name_of_its_own():
    columns = metadata_columns(calls({"id": 1, "a.b": "x"}, {"id": "y"}), ["id"])
    assert columns == {"metadata_id": ["1", "y"], "a_b": ["x", None]}
    assert metadata_columns(CALLS)["score"] == [4, 2.5, None]


def test_files_datasets_and_tables_keep_it(tmp_path):
    write_jsonl(CALLS, tmp_path / "c.jsonl")
    dataset = to_dataset(CALLS)
    dataset.to_parquet(tmp_path / "c.parquet")
    for source in (tmp_path / "c.jsonl", dataset, tmp_path / "c.parquet", dataset.to_pandas()):
        assert [dict(dialogue.metadata) for dialogue in load_dialogues(source)] == [
            dict(c.metadata) for c in CALLS
        ]


def test_other_columns_of_a_dataset_are_metadata(tmp_path):
    messages = [CALLS[0].to_messages()]
    table = pd.DataFrame(
        {"messages": messages, "team": ["cards"], "score": [4], "vector": [[0.5] * 3]}
    )
    table.to_parquet(tmp_path / "c.parquet")
    for source in (table, tmp_path / "c.parquet"):
        (dialogue,) = load_dialogues(source)
        assert dialogue.metadata == {"team": "cards", "score": 4}


def test_an_id_of_somebody_else_has_its_path():
    talk = {"messages": CALLS[0].to_messages()}
    records = [{**talk, "id": number, "assignee": {"id": 250 + number}} for number in (7, 8)]
    read = load_dialogues(records)
    assert [(item.id, dict(item.metadata)) for item in read] == [
        ("7", {"assignee/id": 257}),
        ("8", {"assignee/id": 258}),
    ]
