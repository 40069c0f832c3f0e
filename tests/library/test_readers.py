"""What every reader makes of small files made by hand in its format, and which files make the
splits of some."""

import dataclasses
import gzip
import json
import shutil
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_up_corpora import expected_of, folder_of, mutated, pack, write

from hf_dialemb.data import CORPORA, find_source, get_corpus, load_examples
from hf_dialemb.data.source import Source
from hf_dialemb.dialogue import Dialogue
from hf_dialemb.errors import InputError

NAMES = [name for name in CORPORA if name not in ("sample", "star_small")]


def every_item(name, data_dir):
    """Every item of every split as JSON.

    What is no item of a split, or no InputError, fails the test.
    """
    found = [
        (split, item)
        for split in get_corpus(name).splits
        for item in load_examples(name, data_dir, split)
    ]
    plain = (
        dataclasses.asdict
        if get_corpus(name).kind not in ("dialogues", "utterances")
        else Dialogue.to_json
    )
    items = json.loads(json.dumps([{"split": split, "item": plain(item)} for split, item in found]))
    for turn in (turn for item in items for turn in item["item"].get("context", ())):
        del turn["time"]  # no corpus of candidates has it
    return items


@pytest.mark.parametrize("name", NAMES)
def test_reads_what_the_format_says(name):
    assert find_source(get_corpus(name), folder_of(name).parent).path == folder_of(name)
    found = every_item(name, folder_of(name))
    assert found == expected_of(name)
    identifiers = [line["item"]["id"] for line in found if line["item"]["id"]]
    assert len(set(identifiers)) == len(identifiers)


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_and_files_packed_by_themselves_read_as_the_folder(name, tmp_path):
    folder = folder_of(name)
    # out of order on purpose
    files = (file for file in sorted(folder.rglob("*"), reverse=True) if file.is_file())
    contents = {str(file.relative_to(folder)): file.read_bytes() for file in files}
    for suffix in ("tar.gz", "zip", "tar.xz"):
        path = pack(tmp_path / f"packed.{suffix}", contents)
        assert every_item(name, path) == expected_of(name)
    packed = {f"{file}.gz": gzip.compress(content) for file, content in contents.items()}
    assert every_item(name, write(tmp_path / folder.name, packed)) == expected_of(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_malformed_file_gives_items_or_one_clear_sentence(name, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp(name) / folder_of(name).name
    shutil.copytree(folder_of(name), folder)
    corpus = get_corpus(name)
    patterns = [pattern for patterns in corpus.files.values() for pattern in patterns]
    wanted = sorted(
        {stream_name for pattern in patterns for stream_name, _ in Source(folder).files(pattern)}
    )
    path = Path(data.draw(st.sampled_from(wanted), label="file"))
    path.write_bytes(mutated(path.read_bytes(), data.draw))
    for split, strict in product(corpus.splits, (False, True)):
        try:
            assert load_examples(name, folder, split, strict=strict)
        except InputError as error:
            sentence = str(error)
            assert sentence.startswith(str(folder)), sentence
            assert "\n" not in sentence
            assert len(sentence) < 2_000
    shutil.rmtree(folder.parent)
