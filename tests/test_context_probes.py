"""Probes of any encoder: what is told perfectly when the vectors say it, and nothing when they say nothing."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest
from given_vectors import Given

from hf_dialemb import corpora
from hf_dialemb.corpora import write_jsonl
from hf_dialemb.encoders.specs import load_encoder
from hf_dialemb.evaluation import evaluate_models
from hf_dialemb.evaluation.tasks import context_probes
from hf_dialemb.evaluation.tasks.context_labels import ACTS, WORDS
from hf_dialemb.evaluation.tasks.registry import get_task, load_problem
from hf_dialemb.evaluation.tasks.task import CorpusPart
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError

TOPICS = ("room", "train", "taxi", "table")


def made(split: str, count: int) -> list[Dialogue]:
    """Each user names one of four things, and the assistant's act is of that thing."""
    return [
        Dialogue(
            (Turn("user", f"a {topic} please"), Turn("assistant", "fine", (f"offer {topic}",))), f"{split}/{number}"
        )
        for number, topic in zip(range(count), cycle(TOPICS))
    ]


@pytest.fixture
def small(monkeypatch):
    sizes = {"train": 40, "dev": 8, "test": 12}
    monkeypatch.setattr(corpora, "load_dialogues", lambda corpus, data_dir, split: made(split, sizes[split]))


@pytest.mark.parametrize("target", [WORDS, ACTS])
def test_a_layer_reads_what_the_vectors_say_and_guesses_otherwise(small, target):
    problem = context_probes.load(CorpusPart("multiwoz", None, "test", None), target)
    assert problem.config["contexts"] == {"train": 40, "dev": 8, "test": 12}
    telling, silent = Given(lambda text: np.eye(4)[TOPICS.index(text.split()[1])]), Given(lambda text: [1.0] * 4)
    told, guessed = ({row.metric: row for row in problem.measure(each, range(4))} for each in (telling, silent))
    assert {row.task for row in told.values()} == {f"{target}-probe"}
    assert told["micro_f1"].mean == told["macro_f1"].mean == 100.0
    assert told["micro_f1"].n == context_probes.REPEATS
    assert guessed["macro_f1"].mean < 60
    limited = context_probes.load(CorpusPart("multiwoz", None, "test", 10), target)
    assert limited.config["contexts"] == {"train": 10, "dev": 8, "test": 10}


def test_what_the_layer_learns_from_is_not_measured_on_and_dialogues_of_ones_own_have_no_splits(small, tmp_path):
    for split in ("train", "dev", "all"):
        with pytest.raises(InputError, match=f"got split {split}, which the layer learns from"):
            context_probes.load(CorpusPart("multiwoz", None, split, None), ACTS)
    write_jsonl(made("test", 3), tmp_path / "own.jsonl")
    with pytest.raises(InputError, match=r"expected one of the catalogue .* and dev splits the layer learns from"):
        evaluate_models(["tfidf"], str(tmp_path / "own.jsonl"), None, "test", tasks=["bag-of-words-probe"])


@pytest.mark.slow
def test_real_contexts_are_told_better_than_by_chance(data_dir):
    problem = load_problem("dialogue-act-probe", "multiwoz", data_dir, "test", 300)
    found = {row.metric: row.mean for row in problem.measure(load_encoder("tfidf"), [0])}
    assert found["micro_f1"] > 20
    assert get_task("bag-of-words-probe").name == "bag-of-words-probe"
