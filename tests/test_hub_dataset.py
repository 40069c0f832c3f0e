"""Facts about a corpus that is a dataset on the Hub: streamed over HTTP from a server on loopback."""

import json
import os
import subprocess
import sys

import pytest
from hub_server import serve

from hf_dialemb.corpora import iterate_dialogues
from hf_dialemb.corpora.own.hub_dataset import load_hub_dataset, to_dataset
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError

datasets = pytest.importorskip("datasets")

BOT = [{"role": "Bot", "content": "Hi"}, {"role": "user", "content": "Ho"}]

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
    return path


@pytest.mark.slow
def test_over_http(tmp_path, sample_dialogues):
    folder_of(
        tmp_path / "root/org/calls",
        train=to_dataset(sample_dialogues[:5]),
        validation=to_dataset(sample_dialogues[5:7]),
    )
    folder_of(tmp_path / "root/org/words", train=datasets.Dataset.from_dict({"text": ["Hi"], "label": [1]}))
    wanted = [
        *[("org/calls", split) for split in ("train", "dev", "all", "tset")],
        *[("org/calls:default", "validation"), ("org/calls:other", "train")],
        *[("org/words", "train"), ("org/none", "train")],
    ]
    with serve(tmp_path / "root") as address:
        places = {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0"}
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, json.dumps(wanted)],
            env={**os.environ, **places, "HF_HUB_DISABLE_XET": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 0, run.stderr[-3000:]
    (train, dev, everything, split, default, other, words, none), problems = json.loads(run.stdout)
    assert train == [dialogue.to_json() for dialogue in sample_dialogues[:5]]
    assert dev == default == [dialogue.to_json() for dialogue in sample_dialogues[5:7]]
    assert everything == train + dev
    assert split == "org/calls: Unknown split 'tset'. Known: all, train, validation."
    assert "BuilderConfig 'other' not found. Available: ['default']" in other
    assert "org/words: got no column messages or conversation (found: text, label)" in words
    assert "doesn't exist on the Hub" in none
    assert "correct the id" in none
    assert problems == []


def test_rows_with_other_names_of_roles_and_columns(tmp_path):
    rows = {"score": [1, 2], "conversation": [BOT, BOT[1:]]}
    folder = str(folder_of(tmp_path / "calls", train=datasets.Dataset.from_dict(rows)))
    assert list(load_hub_dataset(folder, "train", roles="bot=assistant")) == [
        Dialogue((Turn("assistant", "Hi"), Turn("user", "Ho"))),
        Dialogue((Turn("user", "Ho"),)),
    ]
    with pytest.raises(InputError, match=r"calls train: row 0: messages\[0\]: field role: got 'Bot'"):
        list(load_hub_dataset(folder, "train"))
    assert list(load_hub_dataset(folder, "train", skip_invalid=True)) == [Dialogue((Turn("user", "Ho"),))]


def test_rows_are_read_one_at_a_time(tmp_path):
    rows = datasets.Dataset.from_dict({"messages": [BOT[1:], BOT]})
    reader = load_hub_dataset(str(folder_of(tmp_path / "calls", train=rows)), "train")
    assert next(reader).turns[0].content == "Ho"
    with pytest.raises(InputError):
        next(reader)


def test_offline_says_how_to_get_it():
    with pytest.raises(InputError, match=r"org/calls: .* HF_HUB_OFFLINE is set: unset it, or .*hf download"):
        iterate_dialogues("org/calls", None, "train")
