"""Tasks by name, what a corpus is measured by, several tasks in one run, and that no text is encoded twice."""

import json
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from hf_dialemb import corpora
from hf_dialemb.cli import main
from hf_dialemb.corpora.corpus import KINDS
from hf_dialemb.encoders.baselines import TfidfEncoder
from hf_dialemb.encoders.remembering import RememberingEncoder
from hf_dialemb.encoders.text_models import TextEncoder
from hf_dialemb.encoders.whitening import InputWhitenedEncoder
from hf_dialemb.evaluation import TASKS, default_tasks, evaluate_models, get_task, read_results, run
from hf_dialemb.evaluation.tasks.registry import load_problem
from hf_dialemb.evaluation.tasks.sampling import draw_examples, fixed_sample
from hf_dialemb.evaluation.tasks.task import ask_encoder
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError

FILES = Path(__file__).parent / "corpora_files"


def utterance(text, *intents, role="user"):
    return Dialogue((Turn(role, text, intents=intents),))


class CountingEncoder:
    """Vectors of hashed words, and how often each text was asked for."""

    name = "counting"

    def __init__(self):
        self.asked = Counter()

    def encode(self, dialogues):
        texts = [" ".join(turn.content for turn in dialogue.turns) for dialogue in dialogues]
        self.asked.update(texts)
        vectors = np.ones((len(texts), 64), dtype=np.float32)
        for row, text in enumerate(texts):
            np.add.at(vectors[row], [sum(word.encode()) % 64 for word in text.split()], 5)
        return vectors


# registry


@pytest.mark.parametrize("name", TASKS)
def test_every_task_is_there(name):
    task = get_task(name)
    module, _, function = task.loader.partition(".")
    assert callable(getattr(import_module(f"hf_dialemb.evaluation.tasks.{module}"), function))
    assert task.name == name
    assert task.source
    assert 0 < len(task.title) < 100
    assert set() < set(task.kinds) <= set(KINDS)
    assert task.fine_tunes == (name in ("intent-fine-tuning", "dialogue-action-prediction"))


def test_what_an_encoder_can_beside_vectors_is_asked_of_the_one_that_is_remembered():
    ranker = SimpleNamespace(name="ranker", ranker="scores", encode=len)
    for encoder, found in (
        (ranker, "scores"),
        (RememberingEncoder(ranker), "scores"),
        (InputWhitenedEncoder(ranker, "whitened"), None),  # has vectors of its own
        (CountingEncoder(), None),
        (RememberingEncoder(CountingEncoder()), None),
    ):
        assert ask_encoder(encoder, "ranker", str) == found


def test_a_wrong_name_is_told_with_the_nearest():
    with pytest.raises(InputError, match=r"'intent-classifcation'\. Did you mean 'intent-classification'\?"):
        get_task("intent-classifcation")


@pytest.mark.parametrize("corpus", corpora.CORPORA)
def test_every_corpus_is_measured_by_tasks_that_take_it_and_do_not_fine_tune(corpus):
    for name in default_tasks(corpus):
        assert corpora.get_corpus(corpus).kind in get_task(name).kinds
        assert not get_task(name).fine_tunes


def test_what_suits_a_corpus():
    assert default_tasks("sgd") == default_tasks("mine.jsonl") == ("domains",)
    assert default_tasks("banking77") == ("intent-classification",)
    assert default_tasks("clinc150") == ("intent-classification", "out-of-scope-detection")
    assert default_tasks("dialog2flow_evaluation") == ("action-similarity",)
    assert default_tasks("jddc_sts") == ("dialogue-sts",)
    assert default_tasks("dialogue_nli") == ("dialogue-nli",)
    assert default_tasks("jddc_retrieval") == ("semantic-retrieval",)


def test_a_corpus_of_another_kind_is_refused():
    with pytest.raises(InputError, match=r"holds sentence-pairs, expected dialogues; .* the task dialogue-sts"):
        load_problem("domains", "jddc_sts", FILES, "dev", None)


# sampling


def test_a_sample_is_fixed_and_in_order():
    sample = fixed_sample(range(100), 10)
    assert sample == fixed_sample(range(100), 10) == sorted(sample)
    assert sample != list(range(10))
    assert fixed_sample("abc", None) == fixed_sample("abc", 3) == ["a", "b", "c"]


def test_examples_are_drawn_of_labels_that_have_enough():
    labels = np.array(list("aaabbbbc"))
    drawn = draw_examples(labels, np.arange(8), 2, 3, np.random.default_rng(0))
    assert Counter(labels[drawn]) == {"a": 2, "b": 2}
    with pytest.raises(InputError, match="got 1 labels with 4 utterances to draw 2 examples from"):
        draw_examples(labels, np.arange(8), 2, 4, np.random.default_rng(0))


# remembering


def test_nothing_is_encoded_twice():
    counting = CountingEncoder()
    encoder = RememberingEncoder(counting)
    texts = [utterance("one"), utterance("two"), utterance("one", "some intent")]
    vectors = encoder.encode(texts)
    again = encoder.encode([utterance("two"), utterance("three"), utterance("one")])
    assert set(counting.asked.values()) == {1}
    np.testing.assert_array_equal(vectors, counting.encode(texts))
    np.testing.assert_array_equal(again[[0, 2]], vectors[[1, 0]])
    seconds = encoder.seconds
    encoder.encode(texts)
    assert encoder.seconds == seconds > 0
    assert encoder.name == "counting"


def test_who_speaks_makes_a_difference():
    counting = CountingEncoder()
    RememberingEncoder(counting).encode([utterance("one"), utterance("one", role="assistant")])
    assert counting.asked == {"one": 2}


def test_what_is_forgotten_is_encoded_again():
    counting = CountingEncoder()
    encoder = RememberingEncoder(counting)
    encoder.encode([utterance("one")])
    encoder.forget()
    encoder.encode([utterance("one")])
    assert counting.asked == {"one": 2}


def test_tfidf_is_fitted_on_each_list_anew():
    first, second = [utterance("red car"), utterance("red bus")], [utterance("red car"), utterance("old car")]
    encoder = RememberingEncoder(TfidfEncoder())
    for texts in (first, second, first):
        np.testing.assert_array_equal(encoder.encode(texts), TfidfEncoder().encode(texts))
    assert encoder.encode(first) is encoder.encode(first)


def test_no_dialogue_is_refused_as_without_remembering():
    with pytest.raises(InputError, match="dialogues: got none"):
        RememberingEncoder(TextEncoder("texts", lambda texts: np.ones((len(texts), 1)))).encode([])


# runs


@pytest.fixture
def banking(monkeypatch, tmp_path):
    """Two intents of which one word tells, with some utterances out of scope, in place of CLINC150."""
    splits = {
        split: [
            *(utterance(f"{split} {word} number {number}", word) for word in ("card", "loan") for number in range(12)),
            *(utterance(f"{split} weather {number}", "oos") for number in range(9)),
        ]
        for split in ("train", "dev", "test")
    }
    monkeypatch.setattr(corpora, "load_dialogues", lambda corpus, data_dir, split: splits[split])
    (tmp_path / "clinc150").mkdir()  # a corpus is looked for, and not read
    monkeypatch.setenv("HF_DIALEMB_DATA", str(tmp_path))
    counting = CountingEncoder()
    monkeypatch.setattr(run, "load_encoder", lambda model: counting)
    monkeypatch.setattr(run, "find_encoder", lambda model: None)
    monkeypatch.setattr(run, "fingerprint", lambda model: "0" * 16)
    return counting


def test_several_tasks_share_what_is_encoded(banking, tmp_path):
    output = tmp_path / "results.json"
    results = evaluate_models(["one"], "clinc150", None, "test", seeds=[0, 1], output=output)
    assert set(banking.asked.values()) == {1}
    assert {row.task for row in results.results} == {"intent-classification", "out-of-scope-detection", "encoding"}
    assert sum(row.task == "encoding" for row in results.results) == 1
    config = read_results(output).run["config"]
    assert (config["corpus"], config["split"], config["labels"]) == ("clinc150", "test", 2)
    assert config["tasks"] == ["intent-classification", "out-of-scope-detection"]
    assert config["intent-classification"]["utterances"] == 24
    assert config["out-of-scope-detection"]["utterances"] == 33


def test_many_figures_stand_below_each_other(banking, tmp_path):
    output = tmp_path / "results.json"
    evaluate_models(["one"], "clinc150", None, "test", seeds=[0], output=output)
    own, _ = output.with_suffix(".md").read_text().split("\n**Beside what papers print**\n")
    lines = own.splitlines()
    assert lines[2] == "| Figure | one |"
    assert lines[4].startswith("| Accuracy (1-shot) | ")
    assert lines[-1].startswith("| Encoding (s) ↓ | ")
    assert sum("out-of-scope-detection oos_recall" in line for line in lines) == 8


def test_tasks_can_be_named(banking):
    results = evaluate_models(["one"], "clinc150", None, "test", tasks=["intent-classification"], seeds=[0])
    assert {row.task for row in results.results} == {"intent-classification", "encoding"}
    with pytest.raises(InputError, match="Unknown task 'intents'"):
        evaluate_models(["one"], "clinc150", None, "test", tasks=["intents"])


def test_pictures_need_labels(banking, tmp_path):
    pytest.importorskip("matplotlib")
    plot = tmp_path / "map.png"
    with pytest.raises(InputError, match="got out-of-scope-detection, whose items have no labels"):
        evaluate_models(["one"], "clinc150", None, "test", tasks=["out-of-scope-detection"], plot=plot)
    assert not banking.asked
    evaluate_models(["one"], "clinc150", None, "test", seeds=[0], plot=plot)
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert set(banking.asked.values()) == {1}


def test_a_model_without_weights_is_not_fine_tuned():
    with pytest.raises(InputError, match="task intent-fine-tuning: got the model tfidf, which has no weights"):
        evaluate_models(["tfidf"], "clinc150", FILES, "test", tasks=["intent-fine-tuning"])


# command line


def test_help_names_every_task(capsys):
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    words = capsys.readouterr().out.replace(",", " ").replace(";", " ").split()
    assert set(TASKS) <= set(words)


def test_tasks_of_a_file_of_ones_own(tmp_path, capsys):
    path, output = tmp_path / "mine.jsonl", tmp_path / "results.json"
    turns = [
        Turn("user", f"{word} {number}", (act,))
        for word, act in (("what", "request"), ("bye", "bye"))
        for number in range(15)
    ]
    path.write_text("".join(json.dumps(Dialogue((turn,)).to_json()) + "\n" for turn in turns))
    words = ["evaluate", "--model", "tfidf", "--corpus", str(path), "--output", str(output), "--seeds", "2"]
    assert main([*words, "--task", "action-similarity"]) == 0
    assert "| F1 (1-shot) |" in capsys.readouterr().out
    assert main([*words, "--task", "action-similarities"]) == 2
    assert "Did you mean 'action-similarity'?" in capsys.readouterr().err
