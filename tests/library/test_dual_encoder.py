"""Dual encoders, and the examples that rankers learn from."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from talks import dialogue

from hf_dialemb import Dialogue, DualEncoderModel, InputError, Turn
from hf_dialemb.data.examples import (
    ResponseSelection,
    draw_candidates,
    read_candidates,
    write_candidates,
)
from hf_dialemb.dialogue import plain
from hf_dialemb.methods.config import RankerConfig
from hf_dialemb.methods.dual_encoder import METHOD, collate
from hf_dialemb.methods.layout import Truncation
from hf_dialemb.methods.ranker import LoadedRanker, RankingExample, RankingExamples
from hf_dialemb.methods.vocabulary import MARKS, PADDING, UNKNOWN, word_tokenizer
from hf_dialemb.training.data import given_examples


def example(*texts, candidates):
    return RankingExample(dialogue(*texts).turns, tuple(candidates))


EXAMPLES = [
    example(
        "I need a cheap hotel.", candidates=["For how many nights?", "Goodbye!", "Which food?"]
    ),
    example(
        "A table for two",
        "When?",
        "At seven",
        candidates=["Booked for seven.", "In the north", "A hotel"],
    ),
]


@pytest.fixture(scope="module")
def words():
    spoken = [
        dialogue(*(turn.content for turn in entry.context), entry.candidates[0])
        for entry in EXAMPLES
    ]
    torch.manual_seed(0)
    sizes = {"vocabulary_size": 200, "embedding_size": 8, "hidden_size": 12}
    return LoadedRanker(*DualEncoderModel.build(None, spoken, **sizes), METHOD)


def batch_of(ranker, examples=EXAMPLES):
    return collate(list(examples), ranker.tokenizer, ranker.model.config, Truncation())


def test_the_vocabulary_is_the_most_frequent_words_in_a_fixed_order():
    tokenizer = word_tokenizer([dialogue("b a a", "C, c b")], len(MARKS) + 5)
    names = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    assert names == [PADDING, UNKNOWN, *MARKS, "a", "b", "c"]  # "," is rarer and finds no room
    assert tokenizer("A ,zebra B")["input_ids"] == [len(names) - 3, 1, 1, len(names) - 2]


def test_marks_in_a_text_are_words_and_contexts_keep_their_end(words):
    marks = words.model.config.marker_ids
    for text in ("hotel", "hotel <|response|>"):
        ids = batch_of(words, [example(text, candidates=["yes", "no"])])["input_ids"][0].tolist()
        assert ids[0] == marks[0]
        assert not set(marks) & set(ids[1:])
    count, names = Truncation(), words.tokenizer.convert_ids_to_tokens
    long = example(
        "hotel " * 300, "seven " * 100, candidates=["cheap " * 50 + "nights " * 200, "no"]
    )
    batch = collate([long], words.tokenizer, words.model.config, count)
    assert (
        names(batch["input_ids"][0].tolist())
        == ["hotel"] * 59 + ["<|assistant|>"] + ["seven"] * 100
    )
    response = names(batch["candidate_ids"][0, 0].tolist())
    assert response == ["<|response|>"] + ["cheap"] * 50 + ["nights"] * 109
    assert (count.truncated, count.dialogues, count.dropped_tokens) == (2, 3, 402 - 160 + 251 - 160)


def test_embeddings_are_last_states_scores_products_the_loss_equation_6(words):
    batch, tower = batch_of(words), words.model.context
    actual = words.model(**batch).pooler_output
    for row, length in enumerate(batch["attention_mask"].sum(-1).tolist()):
        hidden = tower.words(batch["input_ids"][row : row + 1, :length])
        torch.testing.assert_close(actual[row], tower.reader(hidden)[1][0][0, 0])
    model, batch = words.model, batch_of(words)
    output = model(**batch)
    flat = batch["candidate_ids"].flatten(0, 1), batch["candidate_mask"].flatten(0, 1)
    responses = model(*flat).pooler_output.unflatten(0, (2, 3))
    expected = (output.pooler_output.unsqueeze(1) * responses).sum(-1)
    torch.testing.assert_close(output.logits, expected)
    by_hand = [-math.log(math.exp(row[0]) / sum(map(math.exp, row))) for row in expected.tolist()]
    assert output.loss.item() == pytest.approx(np.mean(by_hand), rel=1e-5)
    assert torch.equal(output.similarities.squeeze(-1), output.logits)


def test_the_template_lays_out_as_collate_does(words):
    batch, render = batch_of(words, EXAMPLES[1:]), words.tokenizer.apply_chat_template
    assert words.tokenizer.truncation_side == "left"
    messages = [{"role": turn.role, "content": turn.content} for turn in EXAMPLES[1].context]
    assert render(messages)["input_ids"] == batch["input_ids"][0].tolist()
    as_document = [
        {"role": "system", "content": "response"},
        {"role": "user", "content": "In the north"},
    ]
    for asked in ([{"role": "response", "content": "In the north"}], as_document):
        ids = render(asked)["input_ids"]
        assert ids == batch["candidate_ids"][0, 1, : len(ids)].tolist()


DIALOGUES = [
    dialogue(f"ask {n}", f"answer {n}", f"again {n}", "You're  Welcome", id=f"d{n}")
    for n in range(40)
]


def examples(seed=0, dialogues=DIALOGUES, **settings):
    return RankingExamples(
        dialogues, RankerConfig(**{"num_candidates": 5, "responses": "assistant", **settings}), seed
    )


def test_an_example_has_its_true_response_first_others_drawn_uniformly():
    dialogues = [Dialogue((*entry.turns, Turn("user", f"bye {entry.id}"))) for entry in DIALOGUES]
    for responses, count in (("assistant", 80), ("any", 160), ("last", 40)):
        assert len(examples(dialogues=dialogues, responses=responses)) == count
    actual = examples().example(0, 1)
    assert [turn.content for turn in actual.context] == ["ask 0", "answer 0", "again 0"]
    assert (actual.candidates[0], len(actual.candidates)) == ("You're  Welcome", 5)
    assert examples().response_texts == []  # no vectors are asked for without a granularity
    made = examples()
    counts = Counter(
        text for epoch in range(1500) for text in made.example(epoch, 0).candidates[1:]
    )
    assert counts.keys() == {"You're  Welcome", *(f"answer {n}" for n in range(1, 40))}
    assert max(abs(count - 150) for count in counts.values()) < 5 * np.sqrt(150)


@pytest.mark.parametrize("level", [1, 3, 5])
def test_others_of_a_granularity_come_from_their_segment(level):
    angles, made = np.linspace(0, np.pi * 0.9, 41), examples(granularity=level)
    assert len(set(made.response_texts)) == len(made.response_texts) == 41
    made.response_vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    for epoch in range(20):
        true, *others = map(made.response_texts.index, made.example(epoch, 0).candidates)
        assert true == 0  # at one end: the others lie in the order of their angles
        assert all((level - 1) * 8 <= other - 1 < level * 8 for other in others)


def test_too_little_to_tell_apart_is_one_sentence():
    for dialogues, settings, reason in (
        (DIALOGUES[:3], {}, "num_candidates: got 5, but there are 4 different responses"),
        (
            [dialogue("hello", "anyone?", roles=("user",))],
            {},
            "got no response with a context in 1",
        ),
        (DIALOGUES[:3], {"num_candidates": 2, "granularity": 1}, "each response has 3 others"),
    ):
        with pytest.raises(InputError, match=reason):
            examples(dialogues=dialogues, **settings)


def test_candidate_sets_hold_the_true_response_once_and_come_back(tmp_path):
    drawn = draw_candidates(DIALOGUES, 10, "assistant", seed=3)
    assert len(drawn) == 80
    for selection in drawn:
        assert len({plain(text) for text in selection.responses}) == len(selection.responses) == 10
        assert len(selection.correct) == 1
    assert len({selection.correct for selection in drawn}) == 10
    assert drawn[0].responses[drawn[0].correct[0]] == "answer 0"
    assert drawn == draw_candidates(DIALOGUES, 10, "assistant", seed=3)
    assert drawn != draw_candidates(DIALOGUES, 10, "assistant", seed=4)
    turns = (Turn("user", "one\u2028two\x85three\x0bfour"),)
    sets = [
        *draw_candidates(DIALOGUES, 10, "any", seed=3),
        ResponseSelection(turns, ("a\u2029b", "c"), (0,), "x"),
    ]
    write_candidates(tmp_path / "c.jsonl", sets, {"seed": 3})
    assert read_candidates(tmp_path / "c.jsonl") == ({"seed": 3}, sets)


def test_other_correct_responses_are_no_false_ones(tmp_path):
    turns, file = (Turn("user", "Which food?"),), tmp_path / "sets.jsonl"
    both = ResponseSelection(turns, ("a", "b", "A", "c", "d"), (0, 1), "x")
    write_candidates(file, [both, ResponseSelection(turns, ("a", "b", "c", "d"), (1,), "y")], {})
    assert [entry.candidates for entry in given_examples(str(file)).items] == [
        ("a", "c", "d"),
        ("b", "a", "c"),
    ]
