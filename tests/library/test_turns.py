"""The method turns.

What is asked of which turns, and its loss against the vectors of `encode_turns`.
"""

import pytest
import torch

from hf_dialemb import Dialogue, InputError, Turn
from hf_dialemb.encoders.load_encoder import model_encoder
from hf_dialemb.methods.layout import Truncation
from hf_dialemb.methods.sessions import THEM, asked_of_each_other
from hf_dialemb.methods.turns import NAMES, Asked, TurnsConfig, TurnsExamples, TurnsModel, collate

TEXTS = [
    "i need a hotel",
    "in the north please",
    "for two nights",
    "a taxi",
    "book it please",
    "a cheap one",
    "thanks",
]
ROOM = Dialogue(
    tuple(Turn("user", text, name=("Ann", "Bo")[place % 2]) for place, text in enumerate(TEXTS)),
    metadata={
        "questions": [
            {"question": "a taxi", "turns": [2], "before": 3},
            {"question": "who?", "turns": [0, 4]},
        ]
    },
)
TALK = Dialogue(
    (
        Turn("user", "Hello. Where do you and your dog live?"),
        Turn("assistant", "We live in a flat in Bonn"),
        Turn("assistant", "Are you sure?"),
        Turn("user", "it is what I heard"),
    )
)


def examples_of(*dialogues, **settings):
    return TurnsExamples(dialogues, TurnsConfig(**settings), seed=0)


def test_what_is_asked_of_one_is_asked_about_them():
    assert list(asked_of_each_other(TALK.turns)) == [
        (f"Where does {THEM} and {THEM}'s dog live?", 0)
    ]
    examples = examples_of(TALK)
    (turns, (question,), answers), name = (
        examples.example(0, 0),
        examples.example(0, 0).turns[0].partition(":")[0],
    )
    assert name in NAMES
    assert question == f"Where does {name} and {name}'s dog live?"
    assert (answers, turns[0]) == ((0,), f"{name}: We live in a flat in Bonn")
    assert "dog" not in " ".join(turns)


def test_turns_were_said_before_the_question_and_one_answers():
    examples = examples_of(ROOM, window=3)
    drawn = [(index, examples.example(epoch, index)) for index in range(2) for epoch in range(20)]
    written = [f"{turn.name}: {turn.content}" for turn in ROOM.turns]
    for index, (turns, questions, answers) in drawn:
        start = written.index(turns[0])
        assert list(turns) == written[start : start + 3]
        assert len(set(questions)) == len(questions)
        assert start + answers[0] in ([2], [0, 4])[index]
        assert "a taxi" not in questions or start == 0
    assert len({item.turns for _, item in drawn}) > 3
    with pytest.raises(InputError, match="turns: got no question from 1 dialogues"):
        examples_of(Dialogue(ROOM.turns))


@pytest.mark.parametrize("prompts", [None, {"query": "who book ", "passage": "a room "}])
def test_the_loss_is_the_cross_entropy_of_the_vectors_of_turns(tiny_bert, prompts):
    torch.manual_seed(0)
    model, tokenizer = TurnsModel.from_backbone(
        tiny_bert, dropout=0.0, window=4, questions=2, loss_temperature=0.5
    )
    model.config.prompts = prompts
    batch = [
        Asked(
            ("Ann: a hotel", "Bo: in the north", "Ann: a taxi please"), ("where?", "what?"), (1, 2)
        ),
        Asked(
            ("Ann: a taxi please", "Bo: thanks", "Bo: two nights", "Ann: it is cheap"),
            ("what?",),
            (3,),
        ),
        Asked(("Ann: book it",), ("book",), (0,)),
    ]
    output = model(**collate(batch, tokenizer, model.config, Truncation()))
    encoder, parts = model_encoder(model, tokenizer, "m"), [example.turns for example in batch]
    vectors = encoder.encode_turns(
        [Dialogue(tuple(Turn("user", text) for text in part)) for part in parts]
    ).vectors
    candidates = torch.from_numpy(vectors).split(list(map(len, parts)))
    # A turn with the answer's text is no negative, nor are the turns of another example that is
    # asked the same.
    first, second, third = (
        [(row, place) for place in range(count)] for row, count in enumerate((3, 4, 1))
    )
    asked = [
        ("where?", (0, 1), [*first, *second, *third]),
        ("what?", (0, 2), [*first, *third]),
        ("what?", (1, 3), [*second, *third]),
        ("book", (2, 0), [*first, *second, *third]),
    ]
    losses = []
    for text, answer, others in asked:
        question = torch.from_numpy(encoder.encode_query([text], normalize_embeddings=True))[0]
        cosines = torch.stack([question @ candidates[example][place] for example, place in others])
        losses.append(-torch.log_softmax(cosines / 0.5, 0)[others.index(answer)])
    assert output.loss.item() == pytest.approx(torch.stack(losses).mean().item(), abs=1e-5)
    assert output.pooler_output.shape == (4, 16)
    assert output.similarities.shape == (4, 13, 1)
