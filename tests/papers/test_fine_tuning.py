"""Tasks that fine-tune.

How the trainer learns and stops, what is drawn and read, and that test labels stay unread.
"""

import copy
import shutil
from collections import Counter
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from given_vectors import said
from transformers import (
    AutoModel,
    AutoTokenizer,
    T5Config,
    T5EncoderModel,
    T5ForConditionalGeneration,
)

import hf_dialemb.data
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation import TASKS
from hf_dialemb.evaluation.tasks.task import CorpusPart
from hf_dialemb.papers.tasks import few_shot_tuning, fine_tuning
from hf_dialemb.papers.tasks.few_shot_tuning import (
    accuracy,
    assistant_turns,
    draw,
    draw_parts,
    text_of,
)
from hf_dialemb.papers.tasks.fine_tuning import (
    RUNS,
    Classifier,
    Examples,
    FineTuning,
    fine_tune,
    load_backbone,
)

QUICK = FineTuning(
    learning_rate=1e-2,
    epochs=20,
    batch_size=8,
    evaluate_every=10,
    patience=5,
    max_length=16,
    dropout=0.1,
)
LETTERS = (list("abcdef"), list("mnopqr"), list("012345"))


@pytest.fixture(scope="module")
def backbone(tiny_bert):
    return load_backbone(tiny_bert)


def utterances(count, seed):
    """Texts of the letters of one of three classes."""
    random, classes = np.random.default_rng(seed), np.arange(count) % len(LETTERS)
    return Examples(
        [" ".join(random.choice(LETTERS[number], random.integers(3, 8))) for number in classes],
        classes,
    )


def tuned(backbone, score=accuracy, seed=0, **changes):
    settings = replace(QUICK, **changes)
    return fine_tune(
        backbone, utterances(60, 1), utterances(30, 2), len(LETTERS), settings, score, seed=seed
    )


def scripted(*values):
    left = iter(values)
    return lambda logits, targets: next(left)


def test_one_class_of_three_is_learnt_and_the_best_weights_are_kept(backbone):
    found, unseen = tuned(backbone), utterances(90, 3)
    assert accuracy(found.classifier.predict(unseen.texts), unseen.targets) > 0.9
    assert found.scores[0] < 0.7
    found, validation = (
        tuned(backbone, epochs=3, evaluate_every=7, learning_rate=3e-3),
        utterances(30, 2),
    )
    assert list(found.scores) == [0, 7, 14, 21, 24]  # 60 examples are 8 batches
    assert accuracy(found.classifier.predict(validation.texts), validation.targets) == max(
        found.scores.values()
    )
    found = tuned(backbone, scripted(0.1, 0.4, 0.3, 0.5, 0.5, 0.2), patience=2, evaluate_every=3)
    assert found.scores == {0: 0.1, 3: 0.4, 6: 0.3, 9: 0.5, 12: 0.5, 15: 0.2}
    # of equal ones the first
    scripts, texts = ([(0.5, 0.5), (0.5, 0.1), (0.5, 0.6, 0.6)], utterances(9, 3).texts)
    found = [
        tuned(backbone, scripted(*scores), patience=1).classifier.predict(texts)
        for scores in scripts
    ]
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


@pytest.mark.slow
def test_a_seed_gives_the_same_figures_twice_and_changes_nothing_else(backbone):
    weights = {name: value.clone() for name, value in backbone.model.state_dict().items()}
    torch.manual_seed(7)
    state = torch.random.get_rng_state()
    found, texts = (
        [tuned(backbone, seed=seed, epochs=2) for seed in (0, 0, 1)],
        utterances(9, 3).texts,
    )
    assert found[0].scores == found[1].scores
    first, second, other = (each.classifier.predict(texts) for each in found)
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(
        torch.equal(value, weights[name]) for name, value in backbone.model.state_dict().items()
    )


def test_logits_are_those_of_the_mean_of_all_tokens_under_the_linear_layer(
    backbone, tiny_bert, monkeypatch
):
    monkeypatch.setattr(fine_tuning, "_has_bfloat16", lambda device: False)
    classifier = Classifier(backbone, 3, QUICK)
    texts, expected = ["a b c d e f", "m", "0 1 2 3 4 5 a b c d e f m n o p q r"], []
    model, tokenizer = (
        AutoModel.from_pretrained(tiny_bert).eval(),
        AutoTokenizer.from_pretrained(tiny_bert),
    )
    linear = copy.deepcopy(classifier.layers["head"][1]).cpu()
    for text in texts:  # one at a time, so that nothing is padded
        ids = tokenizer(text, truncation=True, max_length=16, return_tensors="pt")
        with torch.no_grad():
            expected.append(linear(model(**ids).last_hidden_state[0].mean(dim=0)).numpy())
    assert np.allclose(classifier.predict(texts), expected, atol=1e-4)


def test_a_checkpoint_gives_the_encoder_inside_it(tiny_bert, tiny_checkpoint, backbone):
    inside = load_backbone(str(tiny_checkpoint))
    assert type(inside.model) is type(backbone.model)
    expected = {
        name: value
        for name, value in backbone.model.state_dict().items()
        if not name.startswith("pooler.")
    }
    found = inside.model.state_dict()
    assert found.keys() == expected.keys()
    # whose table has grown by markers
    layers = {name for name in expected if "word_embeddings" not in name}
    assert all(torch.equal(found[name], expected[name]) for name in layers)
    assert load_backbone(f"{tiny_bert}@utterances").model.config.hidden_size == 16
    with pytest.raises(
        InputError, match="got a model without weights, expected one to fine-tune; leave it out"
    ):
        load_backbone("tfidf")
    with pytest.raises(InputError, match="neither a folder nor on the Hub"):
        load_backbone("nobody/nothing")


INTENTS, ACTIONS = TASKS["intent-fine-tuning"], TASKS["dialogue-action-prediction"]
TEXTS = {"book": "a table for two", "play": "a song by them", "sum": "what is 1 plus 1"}


@pytest.fixture
def notes(monkeypatch):
    """The weights of all models that the tasks fine-tune, in short runs."""
    notes = []

    def noting(*given, **settings):
        found = fine_tune(*given, **settings)
        notes.append(
            {name: value.clone() for name, value in found.classifier.layers.state_dict().items()}
        )
        return found

    monkeypatch.setattr(few_shot_tuning, "fine_tune", noting)
    for name in ("INTENT_SETTINGS", "ACT_SETTINGS"):
        quick = replace(
            getattr(few_shot_tuning, name), epochs=3, evaluate_every=2, learning_rate=1e-3
        )
        monkeypatch.setattr(few_shot_tuning, name, quick)
    return notes


@pytest.fixture
def corpora(monkeypatch):
    """Takes splits by name that stand for any corpus's."""
    splits = {}
    monkeypatch.setattr(
        hf_dialemb.data, "load_dialogues", lambda corpus, data_dir, split, **_: splits[split]
    )
    return splits


def asked(intents, numbers):
    return said(
        *(
            (f"{TEXTS.get(intent, 'no')} {number}", intent)
            for intent in intents
            for number in numbers
        )
    )


def task_dialogue(number):
    """The assistant greets, asks, and does one of two things by turns."""
    when, answer, acts = (
        ("at 7", "it is done", ("inform", "offer"))
        if number % 2
        else ("at 8", "it is not", ("fail",))
    )
    turns = [("assistant", "hello", ("greet",)), ("user", f"a table {number}", ("want",))]
    turns += [("assistant", "when", ("request",)), ("user", when), ("assistant", answer, acts)]
    return Dialogue(tuple(Turn(*turn) for turn in turns))


def loaded(task, limit=None):
    return task.load(CorpusPart("clinc150" if task is INTENTS else "sim_m", None, "test", limit))


def test_the_parts_of_intents_are_disjoint_and_even(random):
    labels = np.array(["book", "play", "sum"] * 12 + ["rare"] * 3 + ["book", "rare", "sum", "play"])
    train, validation, queries = draw_parts(labels, 39, 2, random)
    assert Counter(labels[train]) == Counter(labels[validation]) == {"book": 2, "play": 2, "sum": 2}
    assert not set(train) & set(validation)
    assert max(*train, *validation) < 39
    assert queries.tolist() == [39, 41, 42]  # "rare" has too few examples
    assert not np.array_equal(draw_parts(labels, 39, 2, random)[0], train)
    with pytest.raises(InputError, match="got 0 labels with 14 utterances"):
        draw_parts(labels, 39, 7, random)


@pytest.mark.slow
def test_intents_are_classified_with_as_many_repeats_as_the_task_has(notes, corpora, tiny_bert):
    corpora["train"], corpora["test"] = (
        asked([*TEXTS, "oos"], range(10)),
        asked([*TEXTS, "oos"], range(20, 25)),
    )
    found = loaded(INTENTS).measure(SimpleNamespace(name=tiny_bert), list(range(RUNS + 2)))
    assert [(row.task, row.metric, row.setting, row.n) for row in found] == [
        ("intent-classification", "accuracy", "1-shot fine-tuned", RUNS),
        ("intent-classification", "accuracy", "5-shot fine-tuned", RUNS),
    ]
    assert all(0 <= row.mean <= 100 for row in found)
    assert all(len(weights["head.1.bias"]) == 3 for weights in notes)
    config = loaded(INTENTS, 6).config
    assert (config["utterances"], config["labels"], config["out_of_scope"]) == (6, 3, 5)
    assert config["fine_tuning"]["learning_rate"] == 1e-3


OTHER_ACTS = {
    "fail": ("inform", "offer"),
    "inform": ("fail",),
    "request": ("greet",),
    "greet": ("request",),
}


def with_other_acts(turn):
    return replace(
        turn, dialogue_acts=OTHER_ACTS.get(turn.dialogue_acts[0], ()) if turn.dialogue_acts else ()
    )


@pytest.mark.parametrize(
    "task", [INTENTS, pytest.param(ACTIONS, marks=pytest.mark.slow)], ids=["intents", "acts"]
)
def test_labels_of_the_test_do_not_change_the_weights(task, notes, corpora, tiny_bert):
    if task is INTENTS:
        corpora["train"], queries = asked(TEXTS, range(10)), asked(TEXTS, range(20, 25))
        pairs = zip(queries, [*TEXTS, *["sum"] * 12], strict=True)
        swapped = [
            Dialogue((replace(query.turns[0], intents=(intent,)),)) for query, intent in pairs
        ]
    else:
        corpora["train"], queries = (
            [task_dialogue(n) for n in range(30)],
            [task_dialogue(n) for n in range(30, 40)],
        )
        swapped = [Dialogue(tuple(map(with_other_acts, dialogue.turns))) for dialogue in queries]
    found = []
    for corpora["test"] in (queries, swapped):
        found.append(loaded(task).measure(SimpleNamespace(name=tiny_bert), [3]))
    half = len(notes) // 2
    assert half == (2 if task is INTENTS else 4)
    for first, second in zip(notes[:half], notes[half:], strict=True):
        assert all(first[name].equal(second[name]) for name in first)
    assert found[0] != found[1]


def test_acts_are_predicted_before_a_turn_and_drawn_the_rarest_first(random):
    dialogue = task_dialogue(1)
    before = [dialogue.turns[:2], dialogue.turns[:4]]  # only officially it holds the turn itself
    assert assistant_turns([dialogue], False) == (before, [{"request"}, {"inform", "offer"}])
    assert assistant_turns([dialogue], True) == (before, [{"greet"}, {"request"}])
    # a turn that follows the assistant's own is left out
    twice = Dialogue((*dialogue.turns[:3], *dialogue.turns[2:]))
    assert assistant_turns([twice], False).acts == [{"request"}, {"inform", "offer"}]
    context = [Turn("user", "a b c d e f"), *(Turn("assistant", "g h") for _ in range(20))]
    whole, official = (text_of(context, "[SEP]", each) for each in (False, True))
    assert whole.startswith("a b c d e f [SEP] g h [SEP] g h")
    assert official.split() == whole.split()[-28:]
    acts = [frozenset(each) for each in ["a"] * 50 + ["ab"] * 20 + ["bc"] * 10 + ["d"] * 3]
    train, validation = draw(acts, 4, random)
    counts = Counter(act for row in train for act in acts[row])
    assert (counts["a"], counts["c"], counts["d"]) == (4, 4, 3)
    assert (
        len(set(train)) == len(train) == 4 + 4 + 3
    )  # the turns of c are also b's, which needs no others
    assert not {row for row in validation if "d" in acts[row] or row in train}
    assert draw(acts, 4, np.random.default_rng(0)) == (train, validation)
    with pytest.raises(InputError, match="got 3 turns in train, expected more than 4 of an act"):
        draw(acts[-3:], 4, random)


@pytest.mark.slow
def test_both_settings_of_acts_are_measured(notes, corpora, tiny_bert):
    corpora["train"], corpora["test"] = (
        [task_dialogue(n) for n in range(30)],
        [task_dialogue(n) for n in range(30, 40)],
    )
    problem = loaded(ACTIONS, 7)
    assert (problem.config["turns"], problem.config["turns_official"]) == (7, 7)
    assert problem.config["acts"] == ["fail", "greet", "inform", "offer", "request"]
    found = problem.measure(SimpleNamespace(name=tiny_bert), [0, 1])
    settings = ("10-shot", "20-shot", "10-shot official", "20-shot official")
    assert [(row.setting, row.metric) for row in found] == list(
        product(settings, ("micro_f1", "macro_f1"))
    )
    assert {(row.task, row.n) for row in found} == {("dialogue-action-prediction", 2)}


def test_what_cannot_be_fine_tuned_on_is_refused(corpora):
    corpora["train"] = corpora["test"] = asked(TEXTS, [1])
    for split, message in (
        ("train", "got split train, which the task learns from"),
        ("all", "got split all"),
        ("test", "choose a corpus with dialogue acts"),
    ):
        with pytest.raises(InputError, match=message):
            ACTIONS.load(CorpusPart("sim_m", None, split))
    corpora["train"] = corpora["test"] = [task_dialogue(number) for number in range(4)]
    with pytest.raises(InputError, match="leave it out"):
        loaded(ACTIONS).measure(SimpleNamespace(name="tfidf"), [3])


def test_the_shots_of_the_paper(data_dir, random):
    problem = ACTIONS.load(CorpusPart("sim_m", data_dir, "test", None))
    assert (
        problem.config["turns"],
        problem.config["turns_official"],
        len(problem.config["acts"]),
    ) == (1100, 1100, 7)
    train = assistant_turns(hf_dialemb.data.load_dialogues("sim_m", data_dir, "train"), False)
    for shots, turns in ((10, 60), (20, 120)):
        sizes = [len(draw(train.acts, shots, random)[0]) for _ in range(10)]
        assert np.mean(sizes) == pytest.approx(turns, abs=1)


@pytest.mark.parametrize("model_class", [T5EncoderModel, T5ForConditionalGeneration])
def test_of_a_t5_the_encoder_is_fine_tuned(tiny_bert, tmp_path, model_class):
    shutil.copytree(tiny_bert, tmp_path, dirs_exist_ok=True)
    words = len(AutoTokenizer.from_pretrained(tiny_bert))
    config = T5Config(vocab_size=words, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    model_class(config).save_pretrained(tmp_path)
    assert not hasattr(load_backbone(str(tmp_path)).model, "decoder")
