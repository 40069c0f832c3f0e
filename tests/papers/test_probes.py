"""A linear layer on vectors of contexts: labels, scores, what it learns, and rankers' vectors."""

from itertools import cycle

import numpy as np
import pytest
from checkpoints import dual_encoder
from given_vectors import Given

from hf_dialemb import data
from hf_dialemb.data import write_jsonl
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation import evaluate
from hf_dialemb.evaluation.tasks.task import CorpusPart
from hf_dialemb.papers.tasks import probes
from hf_dialemb.papers.tasks.probes import ACTS, PARTS, WORDS, assistant_contexts, last_words

TOPICS = ("room", "train", "taxi", "table")


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
    contexts = assistant_contexts([HELLO, BYE])
    assert contexts.turns == [HELLO.turns[:2], HELLO.turns[:4], BYE.turns[:1]]
    assert contexts.acts == [{"request"}, set(), {"bye", "inform"}]
    assert contexts.labelled(ACTS) == contexts.at([0, 2])
    assert contexts.labelled(WORDS) == contexts
    tokenizer = dual_encoder([HELLO], 0, vocabulary_size=30).tokenizer
    known, _ = last_words([HELLO.turns[:2], HELLO.turns[:4]], tokenizer)
    assert {"a", "cheap", "room", "please"} <= known
    assert not known & set(tokenizer.all_special_tokens)
    small = dual_encoder([talk(("user", "north north room", ""))], 0, vocabulary_size=9).tokenizer
    assert last_words([HELLO.turns[:2], HELLO.turns[:4]], small) == [frozenset(), {"north"}]


def test_a_layer_reads_the_labels_whatever_the_scale_of_vectors(random):
    vectors = {part: random.normal(size=(300, 5)).astype(np.float32) for part in PARTS}
    labels = {part: (of_part > 0).astype(np.int64) for part, of_part in vectors.items()}
    moved = {
        part: np.column_stack([8 * of_part + 4, np.full(300, 3, np.float32)])
        for part, of_part in vectors.items()
    }
    for given in (vectors, moved):
        micro, macro = probes.probe("task", given, labels, [0]).rows
        assert min(micro.mean, macro.mean) > 97
    upset = labels | {"dev": 1 - labels["dev"]}  # the more is learnt, the worse on dev
    assert probes.probe("task", vectors, upset, [0]).config["best_epochs"] == [1]


def test_figures_are_scikit_learns_and_a_seed_repeats_them(random):
    vectors = {part: random.normal(size=(40, 6)).astype(np.float32) for part in PARTS}
    labels = {part: (random.random((40, 6)) < 0.3).astype(np.int64) for part in PARTS}
    labels["test"][:, 2] = 0  # a class that never holds
    first, again = (probes.probe("task", vectors, labels, [0, 1]) for _ in range(2))
    assert first.rows == again.rows
    micro, macro = first.rows
    assert (micro.metric, macro.metric, micro.n) == ("micro_f1", "macro_f1", 2)
    hits, wrong, missed = first.counts.sum(axis=1).T  # (S,) each
    assert micro.mean == pytest.approx(np.mean(200 * hits / (2 * hits + wrong + missed)))
    assert (hits + missed == labels["test"].sum()).all()
    assert macro.mean > 0


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
    sizes = {"train": 400, "dev": 40, "test": 12}
    monkeypatch.setattr(
        data, "load_dialogues", lambda corpus, data_dir, split, **_: made(split, sizes[split])
    )


@pytest.mark.parametrize("target", [WORDS, ACTS])
def test_a_layer_reads_what_the_vectors_say_and_guesses_otherwise(small, target):
    problem = probes.load_probe(CorpusPart("multiwoz", None, "test", None), target)
    assert problem.config["contexts"] == {"train": 400, "dev": 40, "test": 12}
    telling = Given(lambda text: np.eye(4)[TOPICS.index(text.split()[1])])
    silent = Given(lambda text: [1.0] * 4)
    told, guessed = (
        {row.metric: row for row in problem.measure(encoder, range(4))}
        for encoder in (telling, silent)
    )
    assert {row.task for row in told.values()} == {f"{target}-probe"}
    assert told["micro_f1"].mean == told["macro_f1"].mean == 100.0
    assert told["micro_f1"].n == probes.REPEATS
    assert guessed["macro_f1"].mean < 60
    limited = probes.load_probe(CorpusPart("multiwoz", None, "test", 10), target)
    assert limited.config["contexts"] == {"train": 10, "dev": 10, "test": 10}


def test_a_split_to_learn_from_is_not_measured(small, tmp_path):
    for split in ("train", "dev", "all"):
        with pytest.raises(InputError, match=f"got split {split}, which the task learns from"):
            probes.load_probe(CorpusPart("multiwoz", None, split, None), ACTS)
    write_jsonl(made("test", 3), tmp_path / "own.jsonl")
    with pytest.raises(InputError, match="got no split train, expected train and dev and another"):
        evaluate(["tfidf"], str(tmp_path / "own.jsonl"), tasks=["bag-of-words-probe"])
