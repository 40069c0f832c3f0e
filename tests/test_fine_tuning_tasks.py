"""Tasks that fine-tune: what is drawn from where, what is read, how it is scored, and that test labels stay unread."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import f1_score

import hf_dialemb.corpora
from hf_dialemb.evaluation.tasks import action_prediction, intent_fine_tuning
from hf_dialemb.evaluation.tasks.action_prediction import assistant_turns, draw, f1_scores, text_of
from hf_dialemb.evaluation.tasks.fine_tuning import RUNS
from hf_dialemb.evaluation.tasks.intent_fine_tuning import draw_parts
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError

FILES = Path(__file__).parent / "corpora_files"
TEXTS = {"book": "a table for two", "play": "a song by them", "sum": "what is 1 plus 1"}


@pytest.fixture
def random():
    return np.random.default_rng(0)


@pytest.fixture
def tuned(monkeypatch):
    """Notes the weights of all models that the tasks fine-tune, in short runs."""
    notes = []

    def noting(*given, **settings):
        found = original(*given, **settings)
        notes.append({name: value.clone() for name, value in found.classifier.layers.state_dict().items()})
        return found

    original = intent_fine_tuning.fine_tune
    for module in (intent_fine_tuning, action_prediction):
        monkeypatch.setattr(module, "fine_tune", noting)
        quick = replace(module.SETTINGS, epochs=3, evaluate_every=2, learning_rate=1e-3)
        monkeypatch.setattr(module, "SETTINGS", quick)
    return notes


@pytest.fixture
def corpora(monkeypatch):
    """Takes splits by name that stand for any corpus's."""
    splits = {}
    monkeypatch.setattr(hf_dialemb.corpora, "load_dialogues", lambda corpus, data_dir, split: splits[split])
    return splits


def utterance(intent: str, number: int) -> Dialogue:
    return Dialogue((Turn("user", f"{TEXTS.get(intent, 'no')} {number}", intents=(intent,)),))


def task_dialogue(number: int) -> Dialogue:
    """The assistant greets, asks, and does one of two things by turns."""
    done = ("inform", "offer") if number % 2 else ("fail",)
    return Dialogue(
        (
            Turn("assistant", "hello", ("greet",)),
            Turn("user", f"a table {number}", ("want",)),
            Turn("assistant", "when", ("request",)),
            Turn("user", "at 7" if number % 2 else "at 8"),
            Turn("assistant", "it is done" if number % 2 else "it is not", done),
        )
    )


def figures(task, encoder, seeds=(3,), limit=None):
    problem = task.load("snips" if task is intent_fine_tuning.TASK else "sim_m", None, "test", limit)
    return problem.measure(SimpleNamespace(name=encoder), list(seeds))


def test_the_parts_of_intents_are_disjoint_and_even(random):
    labels = np.array(["book", "play", "sum"] * 12 + ["rare"] * 3 + ["book", "rare", "sum", "play"])
    parts = draw_parts(labels, 39, 2, random)
    assert Counter(labels[parts.train]) == Counter(labels[parts.validation]) == {"book": 2, "play": 2, "sum": 2}
    assert not set(parts.train) & set(parts.validation)
    assert max(*parts.train, *parts.validation) < 39
    assert parts.queries.tolist() == [39, 41, 42]  # "rare" has too few examples
    assert not np.array_equal(draw_parts(labels, 39, 2, random).train, parts.train)
    with pytest.raises(InputError, match="got 0 labels with 14 utterances"):
        draw_parts(labels, 39, 7, random)


@pytest.mark.slow
def test_intents_are_classified_with_as_many_repeats_as_the_task_has(tuned, corpora, tiny_bert):
    corpora["train"] = [utterance(intent, number) for intent in [*TEXTS, "oos"] for number in range(10)]
    corpora["test"] = [utterance(intent, number) for intent in [*TEXTS, "oos"] for number in range(20, 25)]
    found = figures(intent_fine_tuning.TASK, tiny_bert, range(RUNS + 2))
    assert [(row.task, row.metric, row.setting, row.n) for row in found] == [
        ("intent-classification", "accuracy", "1-shot fine-tuned", RUNS),
        ("intent-classification", "accuracy", "5-shot fine-tuned", RUNS),
    ]
    assert all(0 <= row.mean <= 100 for row in found)
    assert all(len(weights["head.1.bias"]) == 3 for weights in tuned)
    problem = intent_fine_tuning.TASK.load("clinc150", None, "test", 6)
    assert (problem.config["utterances"], problem.config["labels"], problem.config["out_of_scope"]) == (6, 3, 5)
    assert problem.config["fine_tuning"]["learning_rate"] == 1e-3


def test_labels_of_the_test_do_not_change_the_weights(tuned, corpora, tiny_bert):
    corpora["train"] = [utterance(intent, number) for intent in TEXTS for number in range(10)]
    queries = [utterance(intent, number) for intent in TEXTS for number in range(20, 25)]
    others = [*TEXTS, *["sum"] * (len(queries) - len(TEXTS))]
    swapped = [
        Dialogue((Turn("user", query.turns[0].content, intents=(intent,)),))
        for query, intent in zip(queries, others, strict=True)
    ]
    found = []
    for corpora["test"] in (queries, swapped):
        found.append(figures(intent_fine_tuning.TASK, tiny_bert))
    half = len(tuned) // 2
    for first, second in zip(tuned[:half], tuned[half:], strict=True):
        assert all(first[name].equal(second[name]) for name in first)
    assert found[0] != found[1]


@pytest.mark.slow
def test_acts_of_the_test_do_not_change_the_weights(tuned, corpora, tiny_bert):
    corpora["train"] = [task_dialogue(number) for number in range(30)]
    dialogues = [task_dialogue(number) for number in range(30, 40)]
    names = {"fail": ("inform", "offer"), "inform": ("fail",), "request": ("greet",), "greet": ("request",)}
    swapped = [
        Dialogue(
            tuple(
                Turn(turn.role, turn.content, names.get(turn.dialogue_acts[0]) if turn.dialogue_acts else ())
                for turn in dialogue.turns
            )
        )
        for dialogue in dialogues
    ]
    found = []
    for corpora["test"] in (dialogues, swapped):
        found.append(figures(action_prediction.TASK, tiny_bert))
    half = len(tuned) // 2
    assert half == 4
    for first, second in zip(tuned[:half], tuned[half:], strict=True):
        assert all(first[name].equal(second[name]) for name in first)
    assert found[0] != found[1]


def test_acts_are_predicted_from_what_comes_before_and_officially_recognised():
    dialogue = task_dialogue(1)
    right, official = (assistant_turns([dialogue], official) for official in (False, True))
    assert right.acts == [{"request"}, {"inform", "offer"}]
    assert right.contexts == [dialogue.turns[:2], dialogue.turns[:4]]
    assert official.acts == [{"greet"}, {"request"}]
    assert official.contexts == [dialogue.turns[:2], dialogue.turns[:4]]
    for contexts, number in ((right.contexts, 2), (official.contexts, 0)):
        assert (dialogue.turns[number] in contexts[0]) is (number == 0)  # only officially the turn itself is read
    twice = Dialogue((*dialogue.turns[:3], *dialogue.turns[2:]))
    assert assistant_turns([twice], False).acts == right.acts  # a turn that follows the assistant's own is left out


def test_the_official_text_is_its_last_words():
    context = [Turn("user", "a b c d e f"), *(Turn("assistant", "g h") for _ in range(20))]
    whole, official = (text_of(context, "[SEP]", each) for each in (False, True))
    assert whole.startswith("a b c d e f [SEP] g h [SEP] g h")
    assert official.split() == whole.split()[-28:]


def test_turns_are_drawn_for_the_rarest_act_first(random):
    acts = [frozenset(each) for each in [["a"]] * 50 + [["a", "b"]] * 20 + [["b", "c"]] * 10 + [["d"]] * 3]
    train, validation = draw(acts, 4, random)
    counts = Counter(act for row in train for act in acts[row])
    assert (counts["a"], counts["c"], counts["d"]) == (4, 4, 3)
    assert len(train) == 4 + 4 + 3  # the turns of c are also b's, which needs no others
    assert not {row for row in validation if "d" in acts[row]}
    assert not set(train) & set(validation)
    assert len(set(train)) == len(train)
    again = draw(acts, 4, np.random.default_rng(0))
    assert again == (train, validation)
    with pytest.raises(InputError, match="got 3 turns in train, expected more than 4 of an act"):
        draw(acts[-3:], 4, random)


def test_f1_agrees_with_scikit_learn_and_leaves_acts_out_that_do_not_occur(random):
    logits = random.standard_normal((40, 5))
    targets = random.integers(0, 2, (40, 5))
    targets[:, 4] = 0
    found, predicted = f1_scores(logits, targets), 1 / (1 + np.exp(-logits)) > 0.5
    assert found["micro_f1"] == pytest.approx(f1_score(targets, predicted, average="micro"))
    assert found["macro_f1"] == pytest.approx(f1_score(targets[:, :4], predicted[:, :4], average="macro"))
    right = f1_scores(np.where(targets, 1.0, -1.0), targets)
    assert right == {"micro_f1": 1.0, "macro_f1": 1.0}
    assert f1_scores(np.full((40, 5), -1.0), targets) == {"micro_f1": 0.0, "macro_f1": 0.0}


@pytest.mark.slow
def test_both_settings_of_acts_are_measured(tuned, corpora, tiny_bert):
    corpora["train"] = [task_dialogue(number) for number in range(30)]
    corpora["test"] = [task_dialogue(number) for number in range(30, 40)]
    problem = action_prediction.TASK.load("sim_m", None, "test", 7)
    assert (problem.config["turns"], problem.config["turns_official"]) == (7, 7)
    assert problem.config["acts"] == ["fail", "greet", "inform", "offer", "request"]
    found = problem.measure(SimpleNamespace(name=tiny_bert), [0, 1])
    assert [(row.setting, row.metric) for row in found] == [
        (setting, metric)
        for setting in ("10-shot", "20-shot", "10-shot official", "20-shot official")
        for metric in ("micro_f1", "macro_f1")
    ]
    assert {(row.task, row.n) for row in found} == {("dialogue-action-prediction", 2)}


@pytest.mark.parametrize(
    ("module", "corpus", "split", "message"),
    [
        (intent_fine_tuning, "clinc150", "train", "choose dev or test"),
        (action_prediction, "sim_m", "train", "choose dev or test, or another corpus"),
        (action_prediction, "sim_m", "all", "got split all"),
        (action_prediction, "sim_m", "test", "choose a corpus with dialogue acts"),
        (action_prediction, "simm", "test", "Did you mean 'sim_m'"),
    ],
)
def test_what_cannot_be_fine_tuned_on_is_refused(module, corpus, split, message):
    with pytest.raises(InputError, match=message):
        module.TASK.load(corpus, FILES, split, None)


def test_tfidf_is_refused(corpora):
    corpora["train"] = corpora["test"] = [task_dialogue(number) for number in range(4)]
    with pytest.raises(InputError, match="leave it out"):
        figures(action_prediction.TASK, "tfidf")


def test_the_shots_of_the_paper(data_dir, random):
    problem = action_prediction.TASK.load("sim_m", data_dir, "test", None)
    assert (problem.config["turns"], problem.config["turns_official"], len(problem.config["acts"])) == (1100, 1100, 7)
    train = assistant_turns(hf_dialemb.corpora.load_dialogues("sim_m", data_dir, "train"), False)
    for shots, turns in ((10, 60), (20, 120)):
        sizes = [len(draw(train.acts, shots, random)[0]) for _ in range(10)]
        assert np.mean(sizes) == pytest.approx(turns, abs=1)
