"""Facts about dialogues as a Hugging Face dataset: in memory, in parquet, and on the Hub, streamed over HTTP."""

import json
import os
import re
import subprocess
import sys

import datasets
import pyarrow as pa
import pyarrow.parquet
import pytest
from hub_server import run_hub
from made_up_corpora import refusal

from hf_dialemb.corpora import iterate_dialogues
from hf_dialemb.corpora.own.hub_dataset import dialogue_features, from_dataset, load_hub_dataset, to_dataset
from hf_dialemb.corpora.own.reading import read_own
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError

BOT = [{"role": "Bot", "content": "Hi"}, {"role": "user", "content": "Ho"}]
HO = Dialogue((Turn("user", "Ho"),))


def rows(**columns):
    return datasets.Dataset.from_dict(columns)


def test_round_trip_through_a_dataset_and_parquet(tmp_path, sample_dialogues):
    dialogues = [HO, *sample_dialogues]
    dataset = to_dataset(dialogues)
    message = {"role": "user", "content": "Ho", "dialogue_acts": [], "slots": [], "intents": []}
    assert dataset[0] == {"id": "", "messages": [message], "domains": []}
    path = tmp_path / "d.parquet"
    dataset.to_parquet(path)
    loaded = datasets.Dataset.from_parquet(str(path), cache_dir=str(tmp_path / "cache"))
    for each, expected in ((dataset, dialogues), (loaded, dialogues), (to_dataset([]), [])):
        assert each.features == dialogue_features()
        assert from_dataset(each) == expected
    assert list(read_own(path)) == dialogues


def test_missing_columns_and_none_are_fine_and_mistakes_are_told():
    for row in ({"messages": [{**BOT[1], "slots": None}], "domains": None}, {"messages": BOT[1:]}):
        assert from_dataset(datasets.Dataset.from_list([row])) == [HO]
    with pytest.raises(InputError, match=r"^row 1: messages\[0\]: field role: got 'Bot'"):
        from_dataset(rows(messages=[BOT[1:], BOT]))
    with pytest.raises(InputError, match=r"^row 0: field messages is missing \(found: text\)"):
        from_dataset(rows(text=["Hi"]))
    with pytest.raises(InputError, match=r"org/calls: .* HF_HUB_OFFLINE is set: unset it, or .*hf download"):
        iterate_dialogues("org/calls", None, "train")


def test_parquet_with_other_columns_and_fields(tmp_path):
    path = tmp_path / "d.parquet"
    messages = [[{"role": "Bot", "content": "Hi", "time": 3}], [{"role": "user", "content": "Ho", "time": 4}]]
    expected = [Dialogue((Turn("assistant", "Hi"),), "5"), Dialogue((Turn("user", "Ho"),), "6")]
    for name in ("messages", "conversation"):
        pa.parquet.write_table(pa.table({"score": [0.5, 1.0], name: messages, "id": [5, 6]}), path, row_group_size=1)
        assert list(read_own(path, roles="Bot=assistant")) == expected
        assert list(read_own(path)) == expected
    for columns, sentence in (
        ({"text": ["Hi"], "id": [5]}, r"got no column messages or conversation \(found: text, id\)"),
        ({"messages": pa.array([], pa.list_(pa.string()))}, "got no dialogue, expected rows with messages"),
    ):
        pa.parquet.write_table(pa.table(columns), path)
        with pytest.raises(InputError, match=sentence):
            list(read_own(path))
    to_dataset([HO] * 9).to_parquet(path)
    content = path.read_bytes()
    for size in (0, 3, 400, -10):
        assert "cannot be read" in refusal(path, content[:size])


PROGRAM = """
import json, sys
from hf_dialemb.corpora import iterate_dialogues
from hf_dialemb.corpora.own.check import check
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
    folder_of(tmp_path / "words", train=rows(text=["Hi"], label=[1]))
    wanted = [
        *[("org/calls", split) for split in ("train", "dev", "all", "tset")],
        *[("org/calls:default", "validation"), ("org/calls:other", "train")],
        *[("org/words", "train"), ("org/none", "train")],
    ]
    command = [sys.executable, "-c", PROGRAM, json.dumps(wanted)]
    with run_hub() as hub:
        for name in ("calls", "words"):
            hub.fill("datasets", f"org/{name}", tmp_path / name)
        places = {"HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0"}
        environment = {**os.environ, **places, "HF_HUB_DISABLE_XET": "1"}
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    (train, dev, everything, split, default, other, words, none), problems = json.loads(run.stdout)
    assert train == [dialogue.to_json() for dialogue in sample_dialogues[:5]]
    assert dev == default == [dialogue.to_json() for dialogue in sample_dialogues[5:7]]
    assert everything == train + dev
    assert split == "org/calls: Unknown split 'tset'. Known: all, train, validation."
    assert "BuilderConfig 'other' not found. Available: ['default']" in other
    assert "org/words: got no column messages or conversation (found: text, label)" in words
    assert re.search("doesn't exist on the Hub.*correct the id", none)
    assert problems == []


def test_rows_with_other_names_of_roles_and_columns_are_read_one_at_a_time(tmp_path):
    folder = folder_of(tmp_path / "calls", train=rows(score=[1, 2], conversation=[BOT, BOT[1:]]))
    both = Dialogue((Turn("assistant", "Hi"), Turn("user", "Ho")))
    assert list(load_hub_dataset(folder, "train", roles="bot=assistant")) == [both, HO]
    assert next(load_hub_dataset(folder, "train", roles="*=user")).roles == ("user",)
    bad = [{"role": "user", "content": None}]
    folder = folder_of(tmp_path / "more", train=rows(messages=[BOT[1:], bad]))
    assert list(load_hub_dataset(folder, "train", skip_invalid=True)) == [HO]
    reader = load_hub_dataset(folder, "train")
    assert next(reader) == HO
    with pytest.raises(InputError):
        next(reader)
