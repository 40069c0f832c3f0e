"""Linear layers on vectors of contexts.

What they are asked, how they are scored, what learns, and any encoder's.
"""

import json
from dataclasses import replace
from itertools import cycle, product

import numpy as np
import pytest
import torch
from checkpoints import deep_attention_matching, dual_encoder
from given_vectors import Given
from scipy.sparse import csr_array
from sklearn.metrics import f1_score

from hf_dialemb import data
from hf_dialemb.data import load_dialogues, write_jsonl
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.encoders import load_encoder
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation import evaluate
from hf_dialemb.evaluation.tasks.task import CorpusPart, get_task, load_problem
from hf_dialemb.methods.ranker import LoadedRanker, encode_contexts
from hf_dialemb.papers.tasks import linear_layer as contexts
from hf_dialemb.papers.tasks import probes
from hf_dialemb.papers.tasks.fine_tuning import precision
from hf_dialemb.papers.tasks.linear_layer import (
    ACTS,
    PARTS,
    WORDS,
    ContextLabels,
    LayerSettings,
    assistant_contexts,
    fit,
)

FAST = LayerSettings(learning_rate=0.05, batch_size=16, epochs=6, patience=6)
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def dialogues() -> dict[str, list[Dialogue]]:
    sample = load_dialogues("sample", None, "dev")
    return {"train": sample[:40], "dev": sample[40:60], "test": sample[60:]}


@pytest.fixture(scope="module")
def rankers(dialogues) -> list[LoadedRanker]:
    return [dual_encoder(dialogues["train"], seed) for seed in (5, 6)]


def talk(*turns: tuple[str, str, str]) -> Dialogue:
    return Dialogue(
        tuple(Turn(role, content, tuple(acts.split())) for role, content, acts in turns)
    )


HELLO = talk(
    ("assistant", "Welcome!", "greet"),
    ("user", "A cheap room <|user|> please", ""),
    ("assistant", "Where?", "request"),
    ("user", "zzz North north", ""),
    ("assistant", "Booked.", ""),
)
BYE = talk(("user", "Bye", ""), ("assistant", "Bye", "bye inform"))


def test_contexts_end_before_the_assistant_and_words_are_the_last_turns():
    found = assistant_contexts([HELLO, BYE])
    assert found == (
        [HELLO.turns[:2], HELLO.turns[:4], BYE.turns[:1]],
        [{"request"}, set(), {"bye", "inform"}],
    )
    tokenizer = dual_encoder([HELLO], 0, vocabulary_size=30).tokenizer
    assert "north" in tokenizer.get_vocab()
    known, _ = contexts.last_words([HELLO.turns[:2], HELLO.turns[:4]], tokenizer)
    assert {"a", "cheap", "room", "please"} <= known
    assert not known & set(tokenizer.all_special_tokens)
    small = dual_encoder([talk(("user", "north north room", ""))], 0, vocabulary_size=9).tokenizer
    assert contexts.last_words([HELLO.turns[:2], HELLO.turns[:4]], small) == [
        frozenset(),
        {"north"},
    ]


def test_acts_of_train_come_first_and_contexts_without_acts_are_counted():
    hello, words = assistant_contexts([HELLO]), dual_encoder([HELLO], 0).tokenizer
    given = {"train": hello, "dev": hello, "test": assistant_contexts([HELLO, BYE])}
    labels = contexts.context_labels(ACTS, given, words)
    assert labels.classes == ("request", "bye", "inform")
    assert [labels.rows[part].tolist() for part in PARTS] == [[0], [0], [0, 2]]
    assert labels.labels["test"].toarray().tolist() == [[1, 0, 0], [0, 1, 1]]
    assert labels.describe() == {
        "classes": 1,
        "classes_not_in_train": 2,
        "contexts": {"train": 1, "dev": 1, "test": 2},
        "contexts_without_labels": {"train": 1, "dev": 1, "test": 1},
    }
    unlabelled = assistant_contexts([talk(("user", "a", ""), ("assistant", "b", ""))])
    with pytest.raises(InputError, match="no labelled context among the 1 of dev"):
        contexts.context_labels(ACTS, given | {"dev": unlabelled}, words)


def test_f1_is_scikit_learns(random):
    truth, told = random.random((2, 40, 6)) < 0.3
    truth[:, 2], told[:, 4] = False, False  # a class that never holds, and one that is never told
    found = contexts.label_scores(csr_array(told.astype(int)), csr_array(truth.astype(int)))
    assert found.micro_f1 == pytest.approx(f1_score(truth, told, average="micro"))
    macro = f1_score(truth, told, average="macro", labels=[0, 1, 3, 4, 5], zero_division=0)
    assert found.macro_f1 == pytest.approx(macro)
    assert (
        found.counts.tolist()
        == np.stack([told & truth, told & ~truth, ~told & truth]).sum(axis=2).T.tolist()
    )


def problem(classes: int = 5, unseen: int = 0) -> tuple[dict[str, np.ndarray], ContextLabels]:
    """Vectors whose signs say which classes hold.

    Further classes occur on test alone, in every context.
    """
    generator = np.random.default_rng(1)
    vectors = {part: generator.normal(size=(300, classes)).astype(np.float32) for part in PARTS}
    marks = {
        part: np.pad((found > 0).astype(np.int32), ((0, 0), (0, unseen)))
        for part, found in vectors.items()
    }
    marks["test"][:, classes:] = 1
    rows = dict.fromkeys(PARTS, np.arange(300))
    names = tuple(f"class {number}" for number in range(classes + unseen))
    labels = {part: csr_array(found) for part, found in marks.items()}
    return vectors, ContextLabels(ACTS, names, classes, rows, labels, dict.fromkeys(PARTS, 0))


def test_a_layer_reads_the_labels_whatever_the_scale_of_vectors():
    (vectors, labels), (_, more) = problem(), problem(unseen=1)
    found = fit(
        probes.frozen_vectors(vectors, CPU), labels, replace(FAST, learning_rate=0.2), seed=0
    )
    assert found.scores.micro_f1 > 0.97
    plain, harder = (
        fit(probes.frozen_vectors(vectors, CPU), given, FAST, seed=0).scores
        for given in (labels, more)
    )
    assert (harder.counts - plain.counts == [0, 0, 1]).all()
    assert harder.macro_f1 == pytest.approx(plain.macro_f1 * 5 / 6)
    upset = replace(
        labels, labels=labels.labels | {"dev": csr_array(1 - labels.labels["dev"].toarray())}
    )
    found = fit(
        probes.frozen_vectors(vectors, CPU), upset, replace(FAST, patience=2, epochs=50), seed=0
    )
    assert found.epoch == 1  # the best on dev: the more is learned, the worse
    vectors, _ = problem()
    threes = np.full(300, 3, dtype=np.float32)
    moved = {part: np.column_stack([8 * found + 4, threes]) for part, found in vectors.items()}
    both = [probes.frozen_vectors(given, CPU) for given in (vectors, moved)]
    first, second = (source.vectors("test", np.arange(300)) for source in both)
    torch.testing.assert_close(6**0.5 * second[:, :5], 5**0.5 * first)
    assert (second[:, 5] == 0).all()
    train = both[0].vectors("train", np.arange(300))
    assert train.square().sum(1).mean() == pytest.approx(1)
    for part in PARTS:
        broken = {name: found.copy() for name, found in vectors.items()}
        broken[part][7, 2] = np.nan
        with pytest.raises(
            ValueError, match=f"a vector with NaN or infinity among those of {part}"
        ):
            probes.frozen_vectors(broken, CPU)


@pytest.mark.slow
def test_probes_are_repeatable_and_leave_the_rankers_alone(dialogues, rankers):
    before = [
        {name: value.clone() for name, value in each.model.state_dict().items()} for each in rankers
    ]
    systems = {"single": rankers[:1], "ensemble": rankers}
    options = {"seeds": (0, 1), "settings": FAST}
    found, again = (
        [
            each
            for target in (WORDS, ACTS)
            for each in probes.run_probes(systems, dialogues, target, **options)
        ]
        for _ in range(2)
    )
    expected = [
        (name, task)
        for task, name in product(("bag-of-words-probe", "dialogue-act-probe"), systems)
    ]
    assert [(each.system, each.task) for each in found] == expected
    for one, other in zip(found, again, strict=True):
        assert one.measurements == other.measurements
        assert (one.counts == other.counts).all()
        hits, wrong, missed = one.counts.sum(axis=1).T  # (S,) each
        micro, macro = one.measurements
        assert (micro.metric, macro.metric, micro.n) == ("micro_f1", "macro_f1", 2)
        assert micro.mean == pytest.approx(np.mean(200 * hits / (2 * hits + wrong + missed)))
        assert json.loads(json.dumps(one.config))["members"] == len(systems[one.system])
    assert [each.config["width"] for each in found] == [12, 24, 12, 24]
    for kept, each in zip(before, rankers, strict=True):
        assert all(
            torch.equal(value, kept[name]) for name, value in each.model.state_dict().items()
        )


def test_encoders_that_learn_embed_as_rankers_do_from_weights_by_seed(dialogues, rankers):
    given = {part: assistant_contexts(found) for part, found in dialogues.items()}
    tokens = [
        {part: probes.ContextTokens(each, found) for part, found in given.items()}
        for each in rankers
    ]
    source = probes.learning_encoders(rankers, tokens, seed=0)
    rows = np.array([5, 0, 3])
    vectors = source.vectors("dev", rows)
    wanted = [encode_contexts(each, [given["dev"].turns[row] for row in rows]) for each in rankers]
    np.testing.assert_allclose(vectors.detach().numpy(), np.concatenate(wanted, axis=1), atol=1e-6)
    if precision() == "bfloat16":  # torch's LSTM refuses it elsewhere
        rounded = probes.learning_encoders(rankers, tokens, seed=0, bfloat16=True).vectors(
            "dev", rows
        )
        assert rounded.dtype == torch.float32
        assert 0 < (rounded - vectors).abs().max() < 0.05
    vectors.sum().backward()
    for model in source.layers:
        assert model.context.words.weight.grad.abs().sum() > 0
        assert model.response.words.weight.grad is None
    twins = [rankers[0], rankers[0]]
    drawn = [
        probes.learning_encoders(twins, [], seed=seed, trained=False).layers for seed in (0, 0, 1)
    ]
    (first, second), (again, _), (other, _) = (
        [twin.context.words.weight for twin in layers] for layers in drawn
    )
    assert torch.equal(first, again)
    for unlike in (second, other, rankers[0].model.context.words.weight):
        assert not torch.equal(first, unlike)


@pytest.mark.slow
def test_fine_tuning_learns_acts_and_leaves_the_rankers_unchanged(rankers):
    answers = {"room": "request", "pounds": "inform", "thank you": "bye", "card": "request inform"}
    asked = [
        talk(("user", word, ""), ("assistant", "Yes.", acts)) for word, acts in answers.items()
    ]
    parts = {"train": asked * 20, "dev": asked, "test": asked * 2}
    before = {name: value.clone() for name, value in rankers[0].model.state_dict().items()}
    systems = {"single": rankers[:1], "ensemble": rankers, "random weights": rankers[:1]}
    settings = replace(FAST, learning_rate=0.02, epochs=10)
    found = probes.run_act_fine_tuning(
        systems, parts, ACTS, seeds=(0, 1), untrained="random weights", settings=settings
    )
    assert [(each.system, each.task) for each in found] == [
        (name, "dialogue-act-fine-tuning") for name in systems
    ]
    assert [each.config["trained"] for each in found] == [True, True, False]
    assert [each.measurements[0].mean for each in found] == [100] * 3
    assert all(each.counts.shape == (2, 8, 3) for each in found)
    assert all(
        torch.equal(value, before[name]) for name, value in rankers[0].model.state_dict().items()
    )


def test_wrong_requests_and_training_dialogues_are_refused(dialogues, small, tmp_path):
    matching = deep_attention_matching(dialogues["train"])
    with pytest.raises(InputError, match="which embeds no contexts"):
        probes.run_probes({"matching": [matching]}, dialogues, WORDS, seeds=(0,))
    for split in ("train", "dev", "all"):
        with pytest.raises(InputError, match=f"got split {split}, which the task learns from"):
            probes.load_probe(CorpusPart("multiwoz", None, split, None), ACTS)
    write_jsonl(made("test", 3), tmp_path / "own.jsonl")
    with pytest.raises(
        InputError, match="got no split train, expected train and dev and another to measure on"
    ):
        evaluate(["tfidf"], str(tmp_path / "own.jsonl"), tasks=["bag-of-words-probe"])


TOPICS = ("room", "train", "taxi", "table")


def made(split: str, count: int) -> list[Dialogue]:
    """Each user names one of four things, and the assistant's act is of that thing."""
    return [
        Dialogue(
            (Turn("user", f"a {topic} please"), Turn("assistant", "fine", (f"offer {topic}",))),
            f"{split}/{number}",
        )
        for number, topic in zip(range(count), cycle(TOPICS))
    ]


@pytest.fixture
def small(monkeypatch):
    sizes = {"train": 40, "dev": 8, "test": 12}
    monkeypatch.setattr(
        data, "load_dialogues", lambda corpus, data_dir, split, **_: made(split, sizes[split])
    )


@pytest.mark.parametrize("target", [WORDS, ACTS])
def test_a_layer_reads_what_the_vectors_say_and_guesses_otherwise(small, target):
    problem = probes.load_probe(CorpusPart("multiwoz", None, "test", None), target)
    assert problem.config["contexts"] == {"train": 40, "dev": 8, "test": 12}
    telling, silent = (
        Given(lambda text: np.eye(4)[TOPICS.index(text.split()[1])]),
        Given(lambda text: [1.0] * 4),
    )
    told, guessed = (
        {row.metric: row for row in problem.measure(each, range(4))} for each in (telling, silent)
    )
    assert {row.task for row in told.values()} == {f"{target}-probe"}
    assert told["micro_f1"].mean == told["macro_f1"].mean == 100.0
    assert told["micro_f1"].n == probes.REPEATS
    assert guessed["macro_f1"].mean < 60
    limited = probes.load_probe(CorpusPart("multiwoz", None, "test", 10), target)
    assert limited.config["contexts"] == {"train": 10, "dev": 8, "test": 10}


@pytest.mark.slow
def test_real_contexts_are_told_better_than_by_chance(data_dir):
    problem = load_problem("dialogue-act-probe", CorpusPart("multiwoz", data_dir, "test", 300))
    found = {row.metric: row.mean for row in problem.measure(load_encoder("tfidf"), [0])}
    assert found["micro_f1"] > 20
    assert get_task("bag-of-words-probe").name == "bag-of-words-probe"
