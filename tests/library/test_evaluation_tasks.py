"""Tasks as they are run, and the paired bootstrap."""

from collections import Counter
from itertools import chain

import pytest
from given_vectors import Given, hashed, said

from hf_dialemb import data
from hf_dialemb.encoders import embedding_cache, load_encoder
from hf_dialemb.evaluation import default_tasks, evaluate, evaluating, get_task, read_results


def test_what_suits_a_corpus_and_what_does_not():
    for corpus in data.CORPORA:
        for task in map(get_task, default_tasks(corpus)):
            assert data.get_corpus(corpus).kind in task.kinds, corpus
    assert default_tasks("sgd") == default_tasks("mine.jsonl") == ("domains",)
    assert default_tasks("clinc150") == ("intent-classification", "out-of-scope-detection")


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
