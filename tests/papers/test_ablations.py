"""Ablations: one speaker alone, and speakers put together."""

from types import SimpleNamespace

import numpy as np
import pytest

from hf_dialemb.data import write_jsonl
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.encoders import load_encoder
from hf_dialemb.encoders.embedding_cache import RememberingEncoder
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation.tasks.task import CorpusPart
from hf_dialemb.papers.tasks.ablations import FIRST, MEAN, SECOND, SUM, load_ablations, views

ASKING = Dialogue((Turn("user", "hello"), Turn("assistant", "hi"), Turn("user", "a room")))
CALLING = Dialogue((Turn("assistant", "good day"), Turn("user", "yes")))


def test_an_encoder_without_parts_is_given_what_one_speaker_says():
    def encode(dialogues):
        return np.array(
            [(len(each.turns), sum(len(turn.content) for turn in each.turns)) for each in dialogues]
        )

    found = views(SimpleNamespace(name="counting", encode=encode), [ASKING, CALLING])
    assert {setting: vectors.tolist() for setting, vectors in found.items()} == {
        FIRST: [[2, 11], [1, 8]],
        SECOND: [[1, 2], [1, 3]],
    }


@pytest.mark.parametrize("remembered", [False, True])
def test_a_dialogue_encoder_gives_its_parts_of_the_whole_dialogue(
    tiny_checkpoint, sample_dialogues, remembered
):
    encoder = load_encoder(str(tiny_checkpoint))
    dialogues = [*sample_dialogues[:5], CALLING]
    found = views(RememberingEncoder(encoder) if remembered else encoder, dialogues)
    speakers, tokens = encoder.encode_speakers(dialogues)
    assert (tokens > 0).all()
    np.testing.assert_array_equal(found[FIRST][-1], speakers[-1, 1])  # the assistant calls
    np.testing.assert_array_equal(found[SECOND][-1], speakers[-1, 0])
    np.testing.assert_array_equal(found[FIRST][:-1], speakers[:-1, 0])
    center = encoder.encode_speakers.args[0].center.numpy()
    np.testing.assert_allclose(found[SUM], encoder.encode(dialogues) + center, atol=1e-5)
    encoder.encode_speakers.args[0].config.pooling = "mean"
    np.testing.assert_allclose(found[MEAN], encoder.encode(dialogues) + center, atol=1e-5)


def test_one_voice_is_left_out_and_all_settings_are_measured(tmp_path):
    path = tmp_path / "mine.jsonl"
    rooms = [
        Dialogue((Turn("user", f"room {n}"), Turn("assistant", "fine")), f"r{n}", ("hotel",))
        for n in range(4)
    ]
    trains = [
        Dialogue((Turn("user", "train"), Turn("assistant", f"at {n}")), f"t{n}", ("train",))
        for n in range(4)
    ]
    alone = Dialogue((Turn("user", "well"),), "alone", ("hotel",))
    write_jsonl([*rooms, *trains, alone], path)
    problem = load_ablations(CorpusPart(str(path)))
    assert (problem.config["dialogues"], problem.config["labels"]) == (8, 2)
    found = {
        (row.task, row.metric, row.setting): row.mean
        for row in problem.measure(load_encoder("tfidf"), [0])
    }
    assert found["dialogue-retrieval", "map", FIRST] == pytest.approx(100)
    measured = [
        ("domain-categorization", "purity", ""),
        ("semantic-relatedness", "spearman", "per-query, "),
    ]
    measured += [("dialogue-retrieval", "map", "")]
    assert set(found) == {
        (*names, at + place) for *names, at in measured for place in (FIRST, SECOND)
    }
    write_jsonl([rooms[0], trains[0], alone], path)
    with pytest.raises(InputError, match="got 2 dialogues of two speakers with 2 distinct labels"):
        load_ablations(CorpusPart(str(path)))
