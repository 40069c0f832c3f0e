"""dial2vec's ablations: each speaker alone, and how speakers are put together."""

from __future__ import annotations

import numpy as np
import pytest

from hf_dialemb.corpora.own.jsonl import write_jsonl
from hf_dialemb.encoders.remembering import RememberingEncoder
from hf_dialemb.encoders.specs import load_encoder
from hf_dialemb.evaluation.tasks.ablations import FIRST, MEAN, SECOND, SUM, load_ablations, views
from hf_dialemb.evaluation.tasks.task import CorpusPart
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError


class Counting:
    """How many turns and letters there are."""

    name = "counting"

    def encode(self, dialogues):
        return np.array([(len(each.turns), sum(len(turn.content) for turn in each.turns)) for each in dialogues])


ASKING = Dialogue((Turn("user", "hello"), Turn("assistant", "hi"), Turn("user", "a room")))
CALLING = Dialogue((Turn("assistant", "good day"), Turn("user", "yes")))


def test_an_encoder_without_parts_is_given_what_one_speaker_says():
    found = views(Counting(), [ASKING, CALLING])
    assert set(found) == {FIRST, SECOND}
    assert found[FIRST].tolist() == [[2, 11], [1, 8]]
    assert found[SECOND].tolist() == [[1, 2], [1, 3]]


@pytest.mark.parametrize("remembered", [False, True])
def test_a_dialogue_encoder_gives_its_parts_of_the_whole_dialogue(tiny_checkpoint, sample_dialogues, remembered):
    encoder = load_encoder(str(tiny_checkpoint))
    dialogues = [*sample_dialogues[:5], CALLING]
    found = views(RememberingEncoder(encoder) if remembered else encoder, dialogues)
    speakers, tokens = encoder.encode_speakers(dialogues)
    assert (tokens > 0).all()
    np.testing.assert_array_equal(found[FIRST][-1], speakers[-1, 1])  # the assistant calls
    np.testing.assert_array_equal(found[SECOND][-1], speakers[-1, 0])
    np.testing.assert_array_equal(found[FIRST][:-1], speakers[:-1, 0])
    center = encoder.model.center.numpy()
    np.testing.assert_allclose(found[SUM], encoder.encode(dialogues) + center, atol=1e-5)
    encoder.model.config.pooling = "mean"
    np.testing.assert_allclose(found[MEAN], encoder.encode(dialogues) + center, atol=1e-5)


def test_one_voice_is_left_out_and_all_settings_are_measured(tmp_path):
    rooms = [Dialogue((Turn("user", f"room {n}"), Turn("assistant", "fine")), f"r{n}", ("hotel",)) for n in range(4)]
    trains = [Dialogue((Turn("user", "train"), Turn("assistant", f"at {n}")), f"t{n}", ("train",)) for n in range(4)]
    alone = Dialogue((Turn("user", "well"),), "alone", ("hotel",))
    write_jsonl([*rooms, *trains, alone], tmp_path / "mine.jsonl")
    problem = load_ablations(CorpusPart(str(tmp_path / "mine.jsonl")))
    assert (problem.config["dialogues"], problem.config["labels"]) == (8, 2)
    figures = {row[:3]: row.mean for row in problem.measure(load_encoder("tfidf"), [0])}
    assert figures["dialogue-retrieval", "map", FIRST] == pytest.approx(100)
    measured = [("domain-categorization", "purity", "{}"), ("semantic-relatedness", "spearman", "per-query, {}")]
    measured += [("dialogue-retrieval", "map", "{}")]
    assert set(figures) == {(*names, at.format(place)) for *names, at in measured for place in (FIRST, SECOND)}
    write_jsonl([rooms[0], trains[0], alone], tmp_path / "alone.jsonl")
    with pytest.raises(InputError, match="got 2 dialogues of two speakers with 2 distinct labels"):
        load_ablations(CorpusPart(str(tmp_path / "alone.jsonl")))
