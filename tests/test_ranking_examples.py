"""Examples of rankers, and candidate sets that are drawn once."""

import json
from collections import Counter

import numpy as np
import pytest
from talks import dialogue

from hf_dialemb.corpora.candidates import draw_candidates, read_candidates, write_candidates
from hf_dialemb.corpora.examples import ResponseSelection
from hf_dialemb.models.config import RankerConfig
from hf_dialemb.models.dialogue import Dialogue, Turn, plain
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.ranking_examples import RankingExamples
from hf_dialemb.training.candidate_sets import given_examples

DIALOGUES = [dialogue(f"ask {n}", f"answer {n}", f"again {n}", "You're  Welcome", id=f"d{n}") for n in range(40)]
SILENT = dialogue("hello", "anyone?", roles=("user",))


def examples(seed=0, dialogues=DIALOGUES, **settings):
    return RankingExamples(dialogues, RankerConfig(**{"num_candidates": 5, "responses": "assistant", **settings}), seed)


def test_an_example_is_all_that_was_said_before_and_its_true_response_before_others():
    dialogues = [Dialogue((*each.turns, Turn("user", f"bye {each.id}"))) for each in DIALOGUES]
    for responses, count in (("assistant", 80), ("any", 160), ("last", 40)):
        assert len(examples(dialogues=dialogues, responses=responses)) == count
    found = examples().example(0, 1)
    assert [turn.content for turn in found.context] == ["ask 0", "answer 0", "again 0"]
    assert (found.candidates[0], len(found.candidates)) == ("You're  Welcome", 5)
    assert examples().response_texts == []  # no vectors are asked for without a granularity
    made = examples(num_candidates=41)
    for index in range(len(made)):
        forms = [plain(text) for text in made.example(3, index).candidates]
        assert len(set(forms)) == 41  # of 41 distinct responses all are there
    silent = examples(dialogues=[*DIALOGUES, SILENT])
    assert silent.notes == ["Left out 1 dialogues without a response that has a context"]


def test_others_are_drawn_uniformly_from_distinct_responses():
    made = examples()
    counts = Counter(text for epoch in range(1500) for text in made.example(epoch, 0).candidates[1:])
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


def test_candidate_sets_hold_the_true_response_once_at_a_drawn_place():
    drawn = draw_candidates(DIALOGUES, 10, "assistant", seed=3)
    assert len(drawn) == 80
    for selection in drawn:
        assert len({plain(text) for text in selection.responses}) == len(selection.responses) == 10
        assert len(selection.correct) == 1
    assert len({selection.correct for selection in drawn}) == 10
    assert drawn[0].responses[drawn[0].correct[0]] == "answer 0"
    assert drawn == draw_candidates(DIALOGUES, 10, "assistant", seed=3)
    assert drawn != draw_candidates(DIALOGUES, 10, "assistant", seed=4)
    with pytest.raises(InputError, match="got 3 different responses, expected at least 5"):
        draw_candidates(DIALOGUES[:2], 5, "assistant", seed=0)


def test_a_file_of_candidates_says_how_they_were_drawn_and_keeps_other_line_breaks(tmp_path):
    turns = (Turn("user", "one\u2028two\x85three\x0bfour"),)
    sets = [*draw_candidates(DIALOGUES, 10, "any", seed=3), ResponseSelection(turns, ("a\u2029b", "c"), (0,), "x")]
    write_candidates(tmp_path / "c.jsonl", sets, {"seed": 3})
    assert read_candidates(tmp_path / "c.jsonl") == ({"seed": 3}, sets)


def test_a_malformed_set_is_named_by_its_line(tmp_path):
    asked, file = [{"role": "user", "content": "a"}], tmp_path / "c.jsonl"
    for line, reason in (
        ({"context": [], "responses": ["a"], "correct": [0]}, "c.jsonl:2: field messages"),
        ({"context": asked, "responses": ["a"]}, "c.jsonl:2: field correct"),
        ({"context": asked, "responses": ["a"], "correct": [1]}, "c.jsonl:2: field corr"),
        ({"context": [{**asked[0], "role": "guest"}], "responses": ["a"], "correct": [0]}, "c.jsonl:2: mess"),
        (None, "got no candidate set"),
    ):
        file.write_text("" if line is None else json.dumps({"candidates": {}}) + "\n" + json.dumps(line) + "\n")
        with pytest.raises(InputError, match=reason):
            read_candidates(file)
    with pytest.raises(InputError, match="expected a file of candidates"):
        read_candidates(tmp_path / "none.jsonl")


def test_what_is_correct_too_is_no_false_response_and_all_sets_keep_as_many(tmp_path):
    turns, file = (Turn("user", "Which food?"),), tmp_path / "sets.jsonl"
    both = ResponseSelection(turns, ("a", "b", "A", "c", "d"), (0, 1), "x")
    write_candidates(file, [both, ResponseSelection(turns, ("a", "b", "c", "d"), (1,), "y")], {})
    assert [each.candidates for each in given_examples(str(file)).examples] == [("a", "c", "d"), ("b", "a", "c")]
    write_candidates(file, [ResponseSelection(turns, ("a", "A"), (0,), "x")], {})
    with pytest.raises(InputError, match="got a set whose responses are all correct"):
        given_examples(str(file))
