"""Tasks as they are run, and the paired bootstrap."""

from collections import Counter
from itertools import chain
from types import SimpleNamespace

import numpy as np
import pytest
from commands import main
from given_vectors import Given, hashed, said

from hf_dialemb import data
from hf_dialemb.data import write_jsonl
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.encoders import embedding_cache, load_encoder
from hf_dialemb.encoders.embedding_cache import RememberingEncoder
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation import TASKS, default_tasks, evaluate, evaluating, get_task, read_results
from hf_dialemb.evaluation.tasks.sampling import draw_examples, fixed_sample
from hf_dialemb.evaluation.tasks.task import ask_encoder


def test_a_remembered_encoder_answers_for_the_encoder_within():
    ranker, plain = load_encoder(SimpleNamespace(name="ranker", encode=len)), Given(hashed)
    ranker.ranker = "scores"
    for encoder in (ranker, RememberingEncoder(ranker)):
        assert ask_encoder(encoder, "ranker", str) == "scores"
    for encoder in (plain, RememberingEncoder(plain)):
        assert ask_encoder(encoder, "ranker", str) is None


def test_what_suits_a_corpus_and_what_does_not():
    for corpus in data.CORPORA:
        for task in map(get_task, default_tasks(corpus)):
            assert data.get_corpus(corpus).kind in task.kinds, corpus
    assert default_tasks("sgd") == default_tasks("mine.jsonl") == ("domains",)
    assert default_tasks("clinc150") == ("intent-classification", "out-of-scope-detection")
    assert default_tasks("dialog2flow_evaluation") == ("action-similarity",)


def test_samples_are_fixed_and_examples_drawn_of_large_labels(random):
    sample = fixed_sample(range(100), 10)
    assert sample == fixed_sample(range(100), 10) == sorted(sample)
    assert sample != list(range(10))
    assert fixed_sample("abc", None) == fixed_sample("abc", 3) == ["a", "b", "c"]
    labels = np.array(list("aaabbbbc"))
    assert Counter(labels[draw_examples(labels, np.arange(8), 2, 3, random)]) == {"a": 2, "b": 2}
    with pytest.raises(InputError, match="got 1 labels with 4 utterances to draw 2 examples from"):
        draw_examples(labels, np.arange(8), 2, 4, random)


@pytest.fixture
def banking(monkeypatch, tmp_path):
    """Stand in for CLINC150: two intents that a word tells, and utterances out of scope."""

    def load(corpus, data_dir, split, **_):
        known = [
            (f"{split} {word} number {number}", word)
            for word in ("card", "loan")
            for number in range(12)
        ]
        return said(*known, *((f"{split} weather {number}", "oos") for number in range(9)))

    monkeypatch.setattr(data, "load_dialogues", load)
    (tmp_path / "clinc150").mkdir()  # a corpus is looked for, and not read
    monkeypatch.setenv("HF_DIALEMB_DATA", str(tmp_path))
    encoder = Given(hashed)
    monkeypatch.setattr(embedding_cache, "load_encoder", lambda model: load_encoder(encoder))
    monkeypatch.setattr(evaluating, "find_encoder", lambda model: None)
    return encoder


def measured(**more):
    return evaluate(["one"], "clinc150", **more)


def test_tasks_share_vectors_and_many_figures_make_a_long_table(banking, tmp_path):
    output = tmp_path / "results.json"
    results = measured(seeds=[0, 1], output=output)
    assert read_results(output).results == results.results
    assert set(Counter(chain(*banking.calls)).values()) == {1}
    assert {row.task for row in results.results} == {
        "intent-classification",
        "out-of-scope-detection",
        "encoding",
    }
    assert sum(row.task == "encoding" for row in results.results) == 1
    config = read_results(output).run["config"]
    assert (config["corpus"], config["split"], config["labels"]) == ("clinc150", "test", 2)
    assert config["tasks"] == ["intent-classification", "out-of-scope-detection"]
    assert config["intent-classification"]["utterances"] == 24
    assert config["out-of-scope-detection"]["utterances"] == 33
    own, *_ = output.with_suffix(".md").read_text().split("\n**Beside what papers print**\n")
    lines, meanings = (part.splitlines() for part in own.split("\n\n- "))
    assert meanings[0] == "Accuracy: intents recognised from one or five examples of each."
    assert lines[6] == "| Figure | one |"
    assert lines[8].startswith("| Accuracy (1-shot) | ")
    assert lines[-1].startswith("| Encoding (s) ↓ | ")
    assert sum("out-of-scope-detection oos_recall" in line for line in lines) == 8


def test_tasks_of_a_file_of_ones_own_and_help_names_all(tmp_path, capsys, printed):
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    assert set(TASKS) <= set(capsys.readouterr().out.replace(",", " ").replace(";", " ").split())
    path, output = tmp_path / "mine.jsonl", tmp_path / "results.json"
    turns = [Turn("user", f"{act} {n}", (act,)) for act in ("request", "bye") for n in range(15)]
    write_jsonl([Dialogue((turn,)) for turn in turns], path)
    words = ["evaluate", "--model", "tfidf", "--corpus", path, "--output", output, "--seeds", "2"]
    assert "| F1 (1-shot) |" in printed(*words, "--task", "action-similarity")
