"""The corpus that the package makes up."""

import hashlib
import importlib
from pathlib import Path

from hf_dialemb.data import load_dialogues

SIZES = {"train": 480, "dev": 96, "test": 240}
DIGEST = "1e259963d408b6fdb7b2e36bf7c6a15b17f1577d1f1b234449005450007bd380"


def test_the_sample_is_what_its_program_makes(monkeypatch):
    splits = {split: load_dialogues("sample", None, split) for split in SIZES}
    assert {split: len(dialogues) for split, dialogues in splits.items()} == SIZES
    assert hashlib.sha256(repr(list(splits.values())).encode()).hexdigest() == DIGEST
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "training_scripts")
    made = importlib.import_module("make_sample").dialogues_of("dev")
    assert list(made) == splits["dev"]
