"""The task turn-retrieval: which turns answer a question."""

import pytest

from hf_dialemb import Dialogue, InputError, Turn, evaluate
from hf_dialemb.methods.sessions import Question, questions_of

TURNS = tuple(
    Turn(("user", "assistant")[place % 2], text, slots=slots)
    for place, (text, slots) in enumerate(
        [
            ("Hello", ()),
            ("What can I do for you?", ()),
            ("I adopted a puppy last week", (("pet-kind", "puppy"), ("pet-name", ""))),
            ("What is its name?", ()),
            ("He is called Rex", (("pet-name", "Rex"), ("pet-kind", "dog"))),
            ("Lovely weather today", ()),
        ]
    )
)


def asked(*questions):
    return Dialogue(TURNS, "pets", metadata={"questions": list(questions)})


def figures(dialogue):
    return {
        (row.setting, row.metric): row.mean
        for row in evaluate(
            "dialogue-static", [dialogue], tasks=["turn-retrieval"], seeds=1
        ).results
        if row.task == "turn-retrieval"
    }


def test_a_question_with_the_words_of_its_turn_is_answered():
    measured = figures(asked({"question": "Who adopted a puppy?", "turns": [2]}))
    assert {setting for setting, _ in measured} == {
        "",
        "alone",
        "surroundings",
        "words",
        "alone and words",
    }
    assert {value for (setting, _), value in measured.items() if setting in ("", "words")} == {100}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"question": "a", "turns": [4, 2, 2]}, [Question("a", (2, 4), 6)]),
        ({"question": "a", "turns": [2], "before": 4}, [Question("a", (2,), 4)]),
        ({"question": "a", "turns": [2, 5], "before": 4}, [Question("a", (2,), 4)]),
        ({"question": "a", "turns": [5], "before": 4}, []),
        ({"question": "a", "turns": [0], "before": 1}, []),
    ],
)
def test_candidates_stand_before_the_question(entry, expected):
    assert list(questions_of(asked(entry))) == expected


def test_slots_are_asked_for_where_there_are_no_questions():
    assert list(questions_of(Dialogue(TURNS))) == [
        Question("What is the kind?", (2,), 6),
        Question("What is the name?", (4,), 6),
    ]


def test_dialogues_without_questions_are_refused():
    with pytest.raises(InputError, match="got no question"):
        evaluate("dialogue-static", [Dialogue(TURNS[:2])], tasks=["turn-retrieval"])


def test_nothing_is_known_of_what_follows_a_question():
    entry = {"question": "What is its name?", "turns": [2], "before": 3}
    cut = Dialogue(TURNS[:3], "pets", metadata={"questions": [entry]})
    assert figures(asked(entry)) == figures(cut)


def test_an_index_grows_up_to_each_question():
    early, late = (
        {"question": "a puppy?", "turns": [2], "before": 4},
        {"question": "Rex?", "turns": [4], "before": 5},
    )
    both, apart = figures(asked(late, early)), [figures(asked(entry)) for entry in (early, late)]
    assert both == {name: pytest.approx((apart[0][name] + apart[1][name]) / 2) for name in both}
