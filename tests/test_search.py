"""Search: the nearest dialogues of one."""

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
    vectors = np.array([[1, 0], [0, 3], [100, 100], [0.1, 0.01], [-5, 0], [1, 0]], dtype=np.float32)
    found = nearest(vectors, 0, 10)
    assert [row for row, _ in found] == [5, 3, 2, 1, 4]  # a copy is a neighbour, the dialogue itself is not
    assert np.allclose([score for _, score in found], [1, 0.1 / np.hypot(0.1, 0.01), np.sqrt(0.5), 0, -1])
    assert nearest(vectors, 0, 2) == found[:2]
    assert nearest(np.array([[0, 0], [1, 0]], dtype=np.float32), 0, 1) == [(1, 0.0)]  # zeros have no direction


def test_an_unknown_id_is_told_with_the_nearest_one(sample_dialogues):
    known = sample_dialogues[3].id
    with pytest.raises(InputError, match=f"id: got '{known}x', which none of .* has; .*{known}") as caught:
        find_dialogue(sample_dialogues, f"{known}x")
    assert len(str(caught.value)) < 2000


def test_lines_are_short_and_start_with_the_dialogue_itself_and_no_turn_breaks_one(sample_dialogues):
    vectors = np.random.default_rng(0).normal(size=(len(sample_dialogues), 4)).astype(np.float32)
    start = sample_dialogues[5]
    first, *lines = [describe(start), *map(str, search("tfidf", sample_dialogues, 5, 4, vectors))]
    assert first.strip().startswith(f"{start.id} [{start.domains[0]}] {start.turns[0].content[:20]}")
    assert len(lines) == 4
    assert not any(line.split()[1] == start.id for line in lines)
    assert max(map(len, [first, *lines])) < 200
    first = describe(Dialogue((Turn("user", "my\n\naddress"), Turn("assistant", "ok\x1b[31m")), "a"))
    assert first.split(" ", 7)[-1].startswith("a [] my address / ok")
    assert first.isprintable()


def test_the_command_finds_the_nearest_of_a_file(tiny_checkpoint, sample_dialogues, tmp_path, capsys, refused):
    dialogues = sample_dialogues[:9]
    write_jsonl(dialogues, tmp_path / "nine.jsonl")
    words = ["search", "--model", str(tiny_checkpoint), "--corpus", str(tmp_path / "nine.jsonl")]
    assert main([*words, "--id", dialogues[4].id, "--top", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    expected = nearest(encode(*load_checkpoint(str(tiny_checkpoint)), dialogues), 4, 3)
    assert lines[0].split()[0] == dialogues[4].id
    assert [line.split()[1] for line in lines[1:]] == [dialogues[row].id for row, _ in expected]
    assert main([*words, "--id", "#5", "--top", "3"]) == 0
    assert capsys.readouterr().out.splitlines() == lines
    assert "id: got 'nobody', which none of 9 dialogues has" in refused(*words, "--id", "nobody")
    assert "--top: got 0, expected at least 1" in refused(*words, "--id", "#5", "--top", "0")


def test_a_text_is_looked_for_among_stored_vectors_of_the_same_model(
    tiny_bert, sample_dialogues, tmp_path, capsys, refused
):
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
        assert "got vectors of" in refused(*words, "--vectors", vectors, "--model", other)
    write_jsonl(dialogues[1:], source)
    assert "is of other dialogues" in refused(*words, "--vectors", vectors)
