"""Dual encoders, and the examples that rankers learn from."""

import json
import math
from collections import Counter

import numpy as np
import pytest
import torch
from talks import dialogue

from hf_dialemb.data.examples import (
    ResponseSelection,
    draw_candidates,
    read_candidates,
    write_candidates,
)
from hf_dialemb.dialogue import Dialogue, Turn, plain
from hf_dialemb.errors import InputError
from hf_dialemb.methods.config import RankerConfig
from hf_dialemb.methods.dual_encoder import METHOD, DualEncoderModel, collate
from hf_dialemb.methods.dual_encoder import TRANSFORMER_METHOD as TOWERS
from hf_dialemb.methods.layout import Truncation
from hf_dialemb.methods.ranker import (
    LoadedRanker,
    RankingExample,
    RankingExamples,
    score_candidates,
)
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
KINDS = ["words", "shared", "separate"]


@pytest.fixture(scope="module")
def rankers(tiny_bert):
    dialogues = [
        dialogue(*(turn.content for turn in entry.context), entry.candidates[0])
        for entry in EXAMPLES
    ]
    torch.manual_seed(0)
    sizes = {"vocabulary_size": 200, "embedding_size": 8, "hidden_size": 12}
    build = TOWERS.model_class.build
    made = {"words": LoadedRanker(*DualEncoderModel.build(None, dialogues, **sizes), METHOD)}
    return made | {
        kind: LoadedRanker(*build(tiny_bert, (), towers=kind), TOWERS) for kind in KINDS[1:]
    }


@pytest.fixture
def words(rankers):
    return rankers["words"]


def batch_of(ranker, examples=EXAMPLES):
    return collate(list(examples), ranker.tokenizer, ranker.model.config, Truncation())


def test_the_vocabulary_is_the_most_frequent_words_in_a_fixed_order():
    dialogues = [dialogue("b a a", "C, c b")]
    tokenizer = word_tokenizer(dialogues, len(MARKS) + 5)
    names = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    assert names == [PADDING, UNKNOWN, *MARKS, "a", "b", "c"]  # "," is rarer and finds no room
    assert tokenizer("A ,zebra B")["input_ids"] == [len(names) - 3, 1, 1, len(names) - 2]
    with pytest.raises(InputError, match="vocabulary_size: got 8, expected at least 9"):
        word_tokenizer(dialogues, 8)


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


@pytest.mark.parametrize("kind", KINDS)
def test_contexts_and_responses_may_come_mixed(rankers, kind):
    model, batch = rankers[kind].model, batch_of(rankers[kind])
    contexts = batch["input_ids"], batch["attention_mask"]
    responses = batch["candidate_ids"][0], batch["candidate_mask"][0]
    width = max(contexts[0].shape[1], responses[0].shape[1])
    ids, mask = (
        torch.cat([torch.nn.functional.pad(entry, (0, width - entry.shape[1])) for entry in pair])
        for pair in zip(responses, contexts, strict=True)
    )
    expected = torch.cat([model(*responses).pooler_output, model(*contexts).pooler_output])
    torch.testing.assert_close(model(ids, mask).pooler_output, expected, atol=1e-5, rtol=1e-4)


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


def test_sets_of_different_sizes_are_scored_apart(words):
    uneven = [EXAMPLES[0], RankingExample(EXAMPLES[1].context, EXAMPLES[1].candidates[:2])]
    with pytest.raises(InputError, match="got 2 for one context and 3 for another"):
        batch_of(words, uneven)
    assert [len(scores) for scores in score_candidates(words, uneven)] == [3, 2]
    for missing, given in (("turn", ((), ("a", "b"))), ("candidate", (EXAMPLES[0].context, ()))):
        with pytest.raises(InputError, match=f"example 1: got no {missing}"):
            score_candidates(words, [EXAMPLES[0], RankingExample(*given)])


DIALOGUES = [
    dialogue(f"ask {n}", f"answer {n}", f"again {n}", "You're  Welcome", id=f"d{n}")
    for n in range(40)
]
SILENT = dialogue("hello", "anyone?", roles=("user",))


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
    made = examples(num_candidates=41)
    for index in range(len(made)):
        forms = [plain(text) for text in made.example(3, index).candidates]
        assert len(set(forms)) == 41  # of 41 distinct responses all are there
    silent = examples(dialogues=[*DIALOGUES, SILENT])
    assert silent.notes == ["Left out 1 dialogues without a response that has a context"]
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
        ([SILENT], {}, "got no response with a context in 1"),
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


def test_a_malformed_set_is_named_by_its_line(tmp_path):
    asked, file = [{"role": "user", "content": "a"}], tmp_path / "c.jsonl"
    for line, reason in (
        ({"context": [], "responses": ["a"], "correct": [0]}, "c.jsonl:2: field messages"),
        (
            {"context": asked, "responses": ["a"]},
            r"c.jsonl:2: got another form than expected \(KeyError: 'correct'",
        ),
        ({"context": asked, "responses": ["a"], "correct": [1]}, "c.jsonl:2: field corr"),
        (
            {"context": [{**asked[0], "role": "guest"}], "responses": ["a"], "correct": [0]},
            "c.jsonl:2: mess",
        ),
        (None, "got no candidate set"),
    ):
        file.write_text(
            "" if line is None else json.dumps({"candidates": {}}) + "\n" + json.dumps(line) + "\n"
        )
        with pytest.raises(InputError, match=reason):
            read_candidates(file)
    with pytest.raises(InputError, match="expected a file of candidates"):
        read_candidates(tmp_path / "none.jsonl")


def test_other_correct_responses_are_no_false_ones(tmp_path):
    turns, file = (Turn("user", "Which food?"),), tmp_path / "sets.jsonl"
    both = ResponseSelection(turns, ("a", "b", "A", "c", "d"), (0, 1), "x")
    write_candidates(file, [both, ResponseSelection(turns, ("a", "b", "c", "d"), (1,), "y")], {})
    assert [entry.candidates for entry in given_examples(str(file)).items] == [
        ("a", "c", "d"),
        ("b", "a", "c"),
    ]
    write_candidates(file, [ResponseSelection(turns, ("a", "A"), (0,), "x")], {})
    with pytest.raises(InputError, match="got no correct response, or a set of nothing else"):
        given_examples(str(file))
