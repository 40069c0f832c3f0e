"""Retrieval by the turns of one speaker."""

import numpy as np
import pytest

from hf_dialemb.data import write_jsonl
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.encoders import load_encoder
from hf_dialemb.encoders.embedding_cache import RememberingEncoder
from hf_dialemb.evaluation import get_task
from hf_dialemb.evaluation.tasks.task import CorpusPart
from hf_dialemb.papers.tasks.ablations import SPEAKERS, speaker_vectors

CALLING = Dialogue((Turn("assistant", "good day"), Turn("user", "yes")))


def test_each_speaker_is_measured_by_what_it_says(tmp_path, tiny_checkpoint, sample_dialogues):
    said = {"hotel": "a room", "train": "a ticket"}
    dialogues = [
        Dialogue((Turn("user", text), Turn("assistant", f"for {n}")), f"{name} {n}", (name,))
        for name, text in said.items()
        for n in range(4)
    ]
    alone = Dialogue((Turn("user", "well"),), "alone", ("hotel",))
    path = tmp_path / "mine.jsonl"
    write_jsonl([*dialogues, alone], path)
    problem = get_task("ablations").load(CorpusPart(str(path)))
    assert (problem.config["dialogues"], problem.config["labels"]) == (8, 2)
    first, second = problem.measure(load_encoder("tfidf"), [0])
    assert (first.metric, first.setting, second.setting) == ("map", *SPEAKERS)
    assert first.mean == pytest.approx(100)
    assert second.mean < 100
    encoder = load_encoder(str(tiny_checkpoint))
    given = [*sample_dialogues[:3], CALLING]
    vectors = speaker_vectors(RememberingEncoder(encoder), given)
    speakers, _ = encoder.encode_speakers(given)
    for place, setting in enumerate(SPEAKERS):
        np.testing.assert_array_equal(vectors[setting][:-1], speakers[:-1, place])
        np.testing.assert_array_equal(vectors[setting][-1], speakers[-1, 1 - place])
