"""The worked example of a new corpus in the docs is short, and works as it stands there."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

from hf_dialemb.corpora import get_corpus, load_dialogues, registry
from hf_dialemb.corpora.audit.catalogue import catalogue
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError

DOCS = Path(__file__).parents[1] / "docs" / "corpora.md"
CALLS = [{"call": "c1", "topic": "billing", "talk": [["caller", "my bill is wrong"], ["agent", "let me look"]]}]


@pytest.fixture
def helpdesk(tmp_path, monkeypatch):
    text = DOCS.read_text(encoding="utf-8")
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "helpdesk" in block]
    path = tmp_path / "helpdesk.py"
    path.write_text(code, encoding="utf-8")
    name = "hf_dialemb.corpora.readers.helpdesk"
    specification = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(registry.CORPORA, "helpdesk", "helpdesk")
    return code


def test_the_example_of_a_new_corpus_reads_its_files(helpdesk, tmp_path):
    assert len(helpdesk.splitlines()) < 40
    (tmp_path / "helpdesk").mkdir()
    (tmp_path / "helpdesk" / "train.json").write_text(json.dumps(CALLS))
    turns = (Turn("user", "my bill is wrong"), Turn("assistant", "let me look"))
    assert load_dialogues("helpdesk", tmp_path, "train") == [Dialogue(turns, "c1", ("billing",))]
    (tmp_path / "helpdesk" / "train.json").write_text(json.dumps([*CALLS, {**CALLS[0], "talk": [["agent"]]}]))
    with pytest.raises(InputError, match=r"train\.json: record 1: talk\[0\]: got \['agent'\], expected a list of 2"):
        load_dialogues("helpdesk", tmp_path, "train")


def test_the_catalogue_has_a_row_for_every_corpus():
    rows = catalogue().splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == sorted(registry.CORPORA)
    for row in rows:
        corpus = get_corpus(row.split("|")[1].strip())
        assert corpus.licence in row
        assert corpus.source in row
        assert corpus.real or "not run on the real files" in row
