"""What every reader makes of small files made by hand in its format, and which files make the
splits of some."""

import dataclasses
import gzip
import json

import pytest
from made_up_corpora import expected_of, folder_of, pack, write

from hf_dialemb.data import CORPORA, find_source, get_corpus, load_examples
from hf_dialemb.dialogue import Dialogue

NAMES = [name for name in CORPORA if name not in ("sample", "star_small")]


def every_item(name, data_dir):
    """Every item of every split as JSON."""
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
    return json.loads(json.dumps([{"split": split, "item": plain(item)} for split, item in found]))


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
