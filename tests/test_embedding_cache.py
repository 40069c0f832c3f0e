"""Vectors in memory and on disk: encoded once, whatever stops a run, and never taken for another model's."""

import logging
from collections import Counter

import numpy as np
import pytest
from given_vectors import hashed
from talks import dialogue

from hf_dialemb.encoders import remembering
from hf_dialemb.encoders.baselines import TfidfEncoder
from hf_dialemb.encoders.embedding_cache import EmbeddingCache, dialogue_key, list_key
from hf_dialemb.encoders.remembering import RememberingEncoder
from hf_dialemb.encoders.text_models import TextEncoder
from hf_dialemb.encoders.whitening import InputWhitenedEncoder
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError

TALKS = [dialogue(f"text {number}", "and so on") for number in range(7)]


class CountingEncoder:
    """Draws a vector for each text; counts what it was asked for, and is stopped after so many calls."""

    name = "counting"

    def __init__(self, calls=100, fitted_on_input=False):
        self.asked, self.calls, self.fitted_on_input = Counter(), calls, fitted_on_input

    def encode(self, dialogues):
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        texts = [" / ".join(turn.content for turn in item.turns) for item in dialogues]
        self.asked.update(texts)
        return np.stack([hashed(text)[:5] for text in texts]).astype(np.float32)


def gives(encoder, talks, like=None):
    np.testing.assert_array_equal(encoder.encode(talks), (like or CountingEncoder()).encode(talks))


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Remembers what an encoder gives in one folder, in parts of three."""
    monkeypatch.setattr(remembering, "PART", 3)
    return lambda encoder: RememberingEncoder(encoder, EmbeddingCache(tmp_path))


def test_nothing_is_encoded_twice_before_it_is_forgotten():
    counting = CountingEncoder()
    encoder = RememberingEncoder(counting)
    gives(encoder, [TALKS[0], TALKS[1], TALKS[0]])
    gives(encoder, [TALKS[1], TALKS[2], TALKS[0]])
    seconds = encoder.seconds
    gives(encoder, TALKS[:2])
    assert encoder.seconds == seconds > 0
    assert list(counting.asked.values()) == [1, 1, 1]
    encoder.forget()
    encoder.encode(TALKS[:1])
    assert counting.asked["text 0 / and so on"] == 2
    with pytest.raises(InputError, match="dialogues: got none"):
        RememberingEncoder(TextEncoder("texts", lambda texts: np.ones((len(texts), 1)))).encode([])


def test_a_second_run_encodes_nothing_and_reports_the_first_ones_time(kept):
    first = kept(CountingEncoder())
    gives(first, TALKS)
    counting = CountingEncoder(calls=0)
    second, third = kept(counting), kept(counting)
    gives(second, [*TALKS[::-1], TALKS[2]])
    assert second.encode(TALKS[:2]).dtype == np.float32
    assert second.seconds == pytest.approx(first.seconds)
    third.encode(TALKS[:2])
    assert 0 < third.seconds < first.seconds


def test_a_stopped_run_keeps_its_parts(kept, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        kept(CountingEncoder(calls=2)).encode(TALKS)
    (tmp_path / ".rows-0.safetensors.1.tmp").write_bytes(b"half of a file")
    counting = CountingEncoder()
    encoder = kept(counting)
    for _ in range(2):
        gives(encoder, TALKS)
        assert counting.asked.total() == 1  # only what is new
        encoder.forget()


@pytest.mark.parametrize("damage", ["cut", "cut to nothing", "changed"])
def test_what_is_damaged_is_told_and_encoded_again(damage, kept, tmp_path, caplog):
    kept(CountingEncoder()).encode(TALKS)
    file = min(tmp_path.glob("rows-*"))
    content = file.read_bytes()
    file.write_bytes({"cut": content[:-7], "cut to nothing": b"", "changed": content[:-7] + b"another"}[damage])
    counting = CountingEncoder()
    with caplog.at_level(logging.WARNING):
        gives(kept(counting), TALKS)
    assert caplog.text.count("is damaged") == 1
    assert 0 < counting.asked.total() <= 3
    kept(CountingEncoder(calls=0)).encode(TALKS)
    with pytest.raises(InputError, match="the folder cannot be written"):
        EmbeddingCache(file / "embeddings")


def test_a_dialogue_is_known_by_who_says_what():
    others = [("one two",), ('one"], ["user", "two',), ("two", "one"), ("one \ud800",)]
    other_role = Dialogue((Turn("assistant", "one"), Turn("assistant", "two")))
    talks = [dialogue("one", "two"), other_role, *(dialogue(*words) for words in others)]
    assert len({dialogue_key(talk) for talk in talks}) == len(talks)
    labelled = Dialogue((Turn("user", "one", intents=("greet",)), Turn("assistant", "two")), id="7", domains=("hotel",))
    assert dialogue_key(labelled) == dialogue_key(talks[0])
    assert list_key(["a", "b"]) != list_key(["b", "a"])


def test_what_is_fitted_on_its_input_is_kept_by_the_whole_list(kept, tmp_path):
    talks = [dialogue("red car"), dialogue("red bus"), dialogue("old car")]
    first, second = kept(TfidfEncoder()), kept(CountingEncoder(calls=0, fitted_on_input=True))
    for encoder in (RememberingEncoder(TfidfEncoder()), first, second):
        for some in (talks[:2], talks[::2], talks, talks[::-1], talks[:2]):
            gives(encoder, some, TfidfEncoder())
        assert encoder.encode(talks) is encoder.encode(talks)
    assert first.fitted_on_input
    assert second.seconds == pytest.approx(first.seconds)
    files = list(tmp_path.glob("list-*"))
    assert len(files) == 4
    for file in files:
        file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(KeyboardInterrupt):
        kept(CountingEncoder(calls=0, fitted_on_input=True)).encode(talks)


def test_whitening_is_done_anew_on_vectors_that_are_kept(kept):
    plain = kept(CountingEncoder())
    plain.encode(TALKS)
    encoder = kept(InputWhitenedEncoder(CountingEncoder(calls=0), "white"))
    for talks in (TALKS, TALKS[:4]):
        gives(encoder, talks, InputWhitenedEncoder(CountingEncoder(), "white"))
    assert encoder.name == "white"
    assert encoder.seconds > plain.seconds
    encoder.forget()
    gives(encoder, talks, InputWhitenedEncoder(CountingEncoder(), "white"))


def test_long_work_shows_how_far_it_is(kept, capsys):
    encoder = RememberingEncoder(CountingEncoder())
    encoder.encode(TALKS[:3])
    assert capsys.readouterr().err == ""
    encoder.encode([dialogue(f"other {number}") for number in range(7)])
    said = capsys.readouterr()
    assert "/7" in said.err
    assert said.out == ""
