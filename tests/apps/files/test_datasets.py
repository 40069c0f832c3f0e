"""Datasets of dialogues: round trips, Parquet, and the Hub."""

import json
import re
from datetime import datetime

import datasets
import pyarrow as pa
import pyarrow.parquet
import pytest
from afresh import printed_afresh
from hub_server import run_hub
from made_up_corpora import refusal
from talks import to_dataset

from hf_dialemb import Dialogue, InputError, Turn
from hf_dialemb.apps.files.reading import read_path, read_rows
from hf_dialemb.data import iterate_dialogues, load_dialogues
from hf_dialemb.data.reading_options import ReadingOptions

BOT = [{"role": "Bot", "content": "Hi"}, {"role": "user", "content": "Ho"}]
HO = Dialogue((Turn("user", "Ho"),))
WHEN = datetime(2026, 1, 2, 3, 4, 5)


def rows(**columns):
    return datasets.Dataset.from_dict(columns)


def test_round_trip_through_a_dataset_and_parquet(tmp_path, sample_dialogues):
    turn, team = Turn("user", "Ho", name="Kim", time=WHEN.isoformat()), {"team": "cards"}
    dialogues = [Dialogue((turn,), time=WHEN.isoformat(), metadata=team), *sample_dialogues]
    dataset = to_dataset(dialogues)
    path = tmp_path / "d.parquet"
    dataset.to_parquet(path)
    loaded = datasets.Dataset.from_parquet(str(path), cache_dir=str(tmp_path / "cache"))
    for made in (dataset, loaded):
        assert load_dialogues(made) == dialogues
        assert load_dialogues(made)[0].to_json() == dialogues[0].to_json()
    assert list(read_path(path)) == dialogues


def test_missing_or_other_columns_are_read_and_mistakes_told(tmp_path):
    for row in ({"messages": [{**BOT[1], "slots": None}], "domains": None}, {"messages": BOT[1:]}):
        assert load_dialogues(datasets.Dataset.from_list([row])) == [HO]
    with pytest.raises(InputError, match=r"^dialogues\[1\]: messages\[0\]: field role: got None"):
        load_dialogues(rows(messages=[BOT[1:], [{"content": "Hi"}]]), strict=True)
    with pytest.raises(InputError, match="took all turns as said by one user"):
        load_dialogues(rows(text=["Hi"]), strict=True)
    with pytest.raises(
        InputError, match=r"org/calls: .* HF_HUB_OFFLINE is set: unset it, or .*hf download"
    ):
        iterate_dialogues("org/calls", None, "train")
    folder = folder_of(tmp_path / "calls", train=rows(score=[1, 2], conversation=[BOT, BOT[1:]]))
    both = Dialogue((Turn("assistant", "Hi"), Turn("user", "Ho")))
    assert list(read_rows(folder, "train", ReadingOptions(roles="bot=assistant"))) == [both, HO]
    assert next(read_rows(folder, "train", ReadingOptions(roles="*=user"))).roles == ("user",)
    bad = [{"role": None, "content": "Hi"}]
    folder = folder_of(tmp_path / "more", train=rows(messages=[BOT[1:], bad]))
    assert list(read_rows(folder, "train", ReadingOptions())) == [HO]
    reader = read_rows(folder, "train", ReadingOptions(strict=True))
    assert next(reader) == HO
    with pytest.raises(InputError):
        next(reader)


def test_parquet_with_other_columns_and_fields(tmp_path):
    path = tmp_path / "d.parquet"
    messages = [
        [{"role": "Bot", "content": "Hi", "time": 3}],
        [{"role": "user", "content": "Ho", "time": 4}],
    ]
    turns = [(Turn("assistant", "Hi"),), (Turn("user", "Ho"),)]
    expected = [
        Dialogue(*each, time="2026-01-02T03:04:05") for each in zip(turns, "56", strict=True)
    ]
    for name in ("messages", "conversation"):
        pa.parquet.write_table(
            pa.table({"score": [0.5, 1.0], name: messages, "id": [5, 6], "time": [WHEN] * 2}),
            path,
            row_group_size=1,
        )
        assert list(read_path(path, ReadingOptions(roles="Bot=assistant"))) == expected
        assert list(read_path(path)) == expected
    for columns, sentence in (
        ({"score": ["Hi"], "id": [5]}, "got no column for content"),
        (
            {"messages": pa.array([], pa.list_(pa.string()))},
            "got no dialogue, expected rows with messages",
        ),
    ):
        pa.parquet.write_table(pa.table(columns), path)
        with pytest.raises(InputError, match=sentence):
            list(read_path(path))
    to_dataset([HO] * 9).to_parquet(path)
    content = path.read_bytes()
    for size in (0, 3, 400, -10):
        assert "cannot be read" in refusal(path, content[:size])


PROGRAM = """
import json, sys
from hf_dialemb.data import iterate_dialogues
from hf_dialemb.apps.files.check import check
answers = []
for corpus, split in json.loads(sys.argv[1]):
    try:
        answers.append([dialogue.to_json() for dialogue in iterate_dialogues(corpus, None, split)])
    except ValueError as error:
        answers.append(str(error))
print(json.dumps([answers, [str(problem) for problem in check("org/calls")]]))
"""


def folder_of(path, **splits):
    (path / "data").mkdir(parents=True)
    for split, rows in splits.items():
        rows.to_parquet(path / "data" / f"{split}-00000-of-00001.parquet")
    return str(path)


@pytest.mark.slow
def test_over_http(tmp_path, sample_dialogues):
    train, validation = to_dataset(sample_dialogues[:5]), to_dataset(sample_dialogues[5:7])
    folder_of(tmp_path / "calls", train=train, validation=validation)
    wanted = [
        *[("org/calls", split) for split in ("train", "dev", "all", "tset")],
        *[("org/calls:default", "validation"), ("org/calls:other", "train")],
        ("org/none", "train"),
    ]
    with run_hub() as hub:
        hub.fill("datasets", "org/calls", tmp_path / "calls")
        environment = hub.environment(tmp_path / "home")
        answers = printed_afresh(PROGRAM, json.dumps(wanted), environment=environment)
    (train, dev, everything, split, default, other, none), problems = json.loads(answers)
    assert train == [dialogue.to_json() for dialogue in sample_dialogues[:5]]
    assert dev == default == [dialogue.to_json() for dialogue in sample_dialogues[5:7]]
    assert everything == train + dev
    assert split == "org/calls: Unknown split 'tset'. Known: all, train, validation."
    assert "BuilderConfig 'other' not found. Available: ['default']" in other
    assert re.search("doesn't exist on the Hub.*correct the id", none)
    assert problems == []
