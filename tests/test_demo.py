"""The demo and its conversations: what the slice of STAR holds, and that every step of the demo leaves its file."""

from collections import Counter

import pytest

from hf_dialemb.cli import main
from hf_dialemb.corpora import load_dialogues
from hf_dialemb.corpora.readers.star_small import packed


@pytest.mark.parametrize(("split", "size"), [("train", 40), ("test", 20)])
def test_a_split_has_as_many_dialogues_of_each_of_eleven_domains(split, size):
    dialogues = load_dialogues("star_small", None, split)
    domains = Counter(dialogue.domains for dialogue in dialogues)
    assert (len(domains), {*domains.values()}) == (11, {size})
    assert all(dialogue.id.startswith("Complete/") and len(dialogue.roles) == 2 for dialogue in dialogues)
    assert "Copyright (c) 2020 Rasa Technologies" in packed(split).with_name("star_small_licence.txt").read_text()


def test_it_is_a_part_of_star_split_for_split(data_dir):
    for split in ("train", "test"):
        whole = {dialogue.id: dialogue for dialogue in load_dialogues("star", data_dir, split)}
        assert all(whole[dialogue.id] == dialogue for dialogue in load_dialogues("star_small", None, split))


@pytest.mark.slow
def test_the_demo_trains_measures_exports_searches_and_draws(tmp_path, capsys):
    assert main(["demo", "--output", str(tmp_path), "--max-steps", "1"]) == 0
    said = capsys.readouterr().out
    for name in ("trained/model.safetensors", "published/modules.json", "results.json", "map.png", "flow.html"):
        assert (tmp_path / name).stat().st_size, name
    assert all(f"\n{step}. " in f"\n{said}" for step in range(1, 6))
    assert all(name in said for name in ("all-MiniLM-L6-v2", "dialogue-minilm", "dialogue-static", "[apartment]"))
