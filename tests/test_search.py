"""Search: the nearest dialogues of one."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hf_dialemb.apps.embed import stored_vectors
from hf_dialemb.apps.search import describe, nearest, search
from hf_dialemb.cli import main
from hf_dialemb.corpora import write_jsonl
from hf_dialemb.corpora.show import find_dialogue
from hf_dialemb.hub.export import load_checkpoint
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.encoder import encode
from hf_dialemb.models.errors import InputError


def test_neighbours_come_by_cosine_whatever_their_length():
    vectors = np.array([[1, 0], [0, 3], [100, 100], [0.1, 0.01], [-5, 0]], dtype=np.float32)
    found = nearest(vectors, 0, 10)
    assert [row for row, _ in found] == [3, 2, 1, 4]
    assert np.allclose([score for _, score in found], [0.1 / np.hypot(0.1, 0.01), np.sqrt(0.5), 0, -1])
    assert nearest(vectors, 0, 2) == found[:2]


def test_a_dialogue_is_not_its_own_neighbour_but_its_copy_is():
    vectors = np.array([[1, 2], [3, 1], [1, 2]], dtype=np.float32)
    assert nearest(vectors, 2, 5)[0] == (0, pytest.approx(1.0))
    assert 2 not in [row for row, _ in nearest(vectors, 2, 5)]


def test_a_vector_of_zeros_has_no_direction_and_breaks_nothing():
    assert nearest(np.array([[0, 0], [1, 0]], dtype=np.float32), 0, 1) == [(1, 0.0)]


def test_an_unknown_id_is_told_with_the_nearest_one(sample_dialogues):
    wrong = f"{sample_dialogues[3].id}x"
    with pytest.raises(
        InputError, match=f"id: got '{wrong}', which none of .* has; .*{sample_dialogues[3].id}"
    ) as caught:
        find_dialogue(sample_dialogues, wrong)
    assert len(str(caught.value)) < 2000


def test_lines_are_short_and_start_with_the_dialogue_itself(sample_dialogues):
    vectors = np.random.default_rng(0).normal(size=(len(sample_dialogues), 4)).astype(np.float32)
    start = sample_dialogues[5]
    lines = [describe(start), *map(str, search("tfidf", sample_dialogues, 5, 4, vectors))]
    assert len(lines) == 5
    assert lines[0].strip().startswith(f"{start.id} [{start.domains[0]}] {start.turns[0].content[:20]}")
    assert not any(line.split()[1] == start.id for line in lines[1:])
    assert max(map(len, lines)) < 200


def test_a_line_break_in_a_turn_breaks_no_line():
    first = describe(Dialogue((Turn("user", "my\n\naddress"), Turn("assistant", "ok\x1b[31m")), "a"))
    assert first.split(" ", 7)[-1].startswith("a [] my address / ok")
    assert first.isprintable()


def test_the_command_finds_the_nearest_of_a_file(tiny_checkpoint, sample_dialogues, tmp_path, capsys):
    dialogues = sample_dialogues[:9]
    write_jsonl(dialogues, tmp_path / "nine.jsonl")
    words = ["search", "--model", str(tiny_checkpoint), "--corpus", str(tmp_path / "nine.jsonl")]
    assert main([*words, "--id", dialogues[4].id, "--top", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    vectors = encode(*load_checkpoint(str(tiny_checkpoint)), dialogues)
    expected = [dialogues[row].id for row, _ in nearest(vectors, 4, 3)]
    assert lines[0].split()[0] == dialogues[4].id
    assert [line.split()[1] for line in lines[1:]] == expected
    assert main([*words, "--id", "#5", "--top", "3"]) == 0
    assert capsys.readouterr().out.splitlines() == lines
    assert main([*words, "--id", "nobody"]) == 2
    assert "dialemb: error: id: got 'nobody', which none of 9 dialogues has" in capsys.readouterr().err
    assert main([*words, "--id", "#5", "--top", "0"]) == 2
    assert "--top: got 0, expected at least 1" in capsys.readouterr().err


def test_a_text_is_looked_for_among_stored_vectors_of_the_same_model(tiny_bert, sample_dialogues, tmp_path, capsys):
    dialogues = sample_dialogues[:9]
    source, vectors, found = (tmp_path / name for name in ("nine.jsonl", "vectors.parquet", "found.jsonl"))
    write_jsonl(dialogues, source)
    assert main(["embed", "--model", tiny_bert, "--input", str(source), "--output", str(vectors)]) == 0
    stored = stored_vectors(vectors)
    assert (stored.model, stored.ids) == (tiny_bert, [dialogue.id for dialogue in dialogues])
    words = ["search", "--corpus", str(source), "--query", "a taxi", "--top", "3"]
    assert main([*words, "--model", tiny_bert]) == 0
    expected = capsys.readouterr().out.splitlines()[1:]
    assert main([*words, "--vectors", str(vectors), "--output", str(found)]) == 0
    assert capsys.readouterr().out.splitlines()[:3] == expected  # embed and search read a dialogue alike
    assert [json.loads(line)["id"] for line in found.read_text().splitlines()] == [line.split()[1] for line in expected]
    for other in (f"{tiny_bert}@utterances", "dialogue-static"):
        assert main([*words, "--vectors", str(vectors), "--model", other]) == 2
        assert "got vectors of" in capsys.readouterr().err
    write_jsonl(dialogues[1:], source)
    assert main([*words, "--vectors", str(vectors)]) == 2
    assert "is of other dialogues" in capsys.readouterr().err
