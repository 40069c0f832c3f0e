"""Turns as vectors, alone and in their surroundings; and the method that learns them.

What is asked of which turns, and its loss against the vectors of `encode_turns`.
"""

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from hf_dialemb import Dialogue, InputError, Turn, load_encoder
from hf_dialemb.encoders.load_encoder import model_encoder
from hf_dialemb.methods.context_window import AROUND, blocks
from hf_dialemb.methods.layout import Truncation
from hf_dialemb.methods.sessions import THEM, asked_of_each_other, sessions, spoken
from hf_dialemb.methods.turns import NAMES, Asked, TurnsConfig, TurnsExamples, TurnsModel, collate

WORDS = [
    "i",
    "want",
    "a",
    "cheap",
    "hotel",
    "in",
    "the",
    "north",
    "please",
    "for",
    "two",
    "people",
    "tonight",
]


def conversation(count, name="", time="", seed=0):
    random = np.random.default_rng(seed)
    texts = [" ".join(random.choice(WORDS, random.integers(1, 9))) for _ in range(count)]
    return Dialogue(tuple(Turn("user", text, name=name, time=time) for text in texts), f"d{seed}")


def at(*times):
    return Dialogue(
        tuple(Turn("user", f"word {place}", time=time) for place, time in enumerate(times))
    )


@pytest.fixture(scope="module")
def encoder(tiny_bert):
    return load_encoder(tiny_bert)


@pytest.mark.parametrize("most", [1, 12, 40, 400])
@pytest.mark.parametrize("count", [1, 5, 30])
def test_blocks_give_each_text_a_vector_once(most, count, random):
    lengths = random.integers(1, 9, count).tolist()
    plan = list(blocks(lengths, most))
    assert [place for block in plan for place in range(block.start, block.stop)] == list(
        range(count)
    )
    for block in plan:
        assert block.first <= block.start < block.stop <= block.last
        assert sum(lengths[block.first : block.last]) <= max(most, lengths[block.start])


def test_blocks_with_room_read_neighbours_on_both_sides():
    for block in blocks([1] * 100, 40):
        assert block.first == max(0, block.start - AROUND)
        assert block.last == min(100, block.stop + AROUND)


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_turns_do_not_depend_on_their_batch(encoder, batch_size):
    dialogues = [conversation(count, seed=count) for count in (1, 7, 40)]
    together = encoder.encode_turns(dialogues, batch_size=batch_size).vectors
    apart = np.concatenate([encoder.encode_turns([dialogue]).vectors for dialogue in dialogues])
    np.testing.assert_allclose(together, apart, atol=1e-5)


def test_surroundings_are_means_of_own_tokens_read_together(encoder):
    texts = [turn.content for turn in conversation(4).turns]
    model, tokenizer = (kind.from_pretrained(encoder.spec) for kind in (AutoModel, AutoTokenizer))
    counts = [len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in texts]
    with torch.no_grad():
        states = model.eval()(**tokenizer(" ".join(texts), return_tensors="pt")).last_hidden_state[
            0, 1:-1
        ]
    expected = [part.mean(0).numpy() for part in states.split(counts)]
    np.testing.assert_allclose(encoder.embed_together([texts], 8), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["tiny", "dialogue-static"])
def test_hours_of_silence_end_a_session(name, tiny_bert):
    encoder = load_encoder(tiny_bert if name == "tiny" else name)
    parted = at("2026-01-01T10:00:00", "2026-01-01T10:01:00", "2026-01-02T10:00:00")
    first, second = Dialogue(parted.turns[:2]), Dialogue(parted.turns[2:])
    expected = np.concatenate([encoder.encode_turns([part]).vectors for part in (first, second)])
    np.testing.assert_allclose(encoder.encode_turns([parted]).vectors, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("times", "lengths"),
    [
        (["", "", ""], [3]),
        (["2026-01-01T10:00:00", "", "2026-01-01T13:00:00"], [3]),
        (["2026-01-01T10:00:00", "", "2026-01-01T15:00:00"], [2, 1]),
        (["2026-01-01T10:00:00+02:00", "2026-01-01T08:30:00+00:00"], [2]),
        (["2026-01-01T10:00:00+02:00", "2026-01-01T10:30:00"], [2]),
    ],
)
def test_sessions_end_at_gaps_of_known_times(times, lengths):
    assert [len(session) for session in sessions(at(*times))] == lengths


def test_the_table_has_a_row_for_each_turn_whose_name_counts():
    static = load_encoder("dialogue-static")
    assert [spoken(Turn("user", "Hi", name=name)) for name in ("Anna", "")] == ["Anna: Hi", "Hi"]
    named, nameless = (
        static.encode_turns([conversation(3, name)]).vectors for name in ("Anna", "")
    )
    assert not np.allclose(named, nameless, atol=1e-3)
    turns = (
        Turn("user", "Hello", name="Anna", time="2026-01-01T10:00:00"),
        Turn("assistant", "Hi"),
    )
    table = static.encode_turns([Dialogue(turns, "one"), Dialogue(turns[1:])])
    frame = table.frame()
    assert len(table) == len(frame) == 3
    assert list(frame.columns) == [
        "dialogue",
        "turn",
        "role",
        "speaker",
        "time",
        "content",
        "vector",
    ]
    assert frame.iloc[0].tolist()[:-1] == ["one", 0, "user", "Anna", "2026-01-01T10:00:00", "Hello"]
    assert frame.iloc[2].tolist()[:-1] == ["#2", 0, "assistant", "", "", "Hi"]
    np.testing.assert_allclose(np.linalg.norm(table.vectors, axis=1), 1, atol=1e-6)


class Letters:
    """An encoder without tokens."""

    def encode_utterances(self, texts):
        return np.array(
            [[text.count(letter) + 0.1 for letter in "aeiou"] for text in texts], dtype=np.float32
        )


def test_an_encoder_without_tokens_reads_neighbours():
    encoder, dialogue = load_encoder(Letters()), conversation(5)
    alone = encoder.encode_utterances(
        [turn.content for turn in dialogue.turns], normalize_embeddings=True
    )
    cosines = (encoder.encode_turns([dialogue]).vectors * alone).sum(1)
    assert (cosines > 0.7).all()
    assert (cosines < 0.9999).any()


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
