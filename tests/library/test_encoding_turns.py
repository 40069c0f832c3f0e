"""Turns as vectors: alone, and in their surroundings."""

import numpy as np
import pytest

from hf_dialemb import Dialogue, Turn, load_encoder
from hf_dialemb.methods.context_window import AROUND, blocks
from hf_dialemb.methods.sessions import sessions, spoken

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
    import torch
    from transformers import AutoModel, AutoTokenizer

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
