"""Facts that hold for every reader, shown on small files made by hand in the formats of the corpora."""

import dataclasses
import gzip
import json
import shutil
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_up_corpora import pack, write

from hf_dialemb.corpora import CORPORA, find_source, get_corpus, load_examples
from hf_dialemb.corpora.source.files import Source
from hf_dialemb.models.dialogue import Dialogue
from hf_dialemb.models.errors import InputError

HERE = Path(__file__).parent
FILES, EXPECTED = HERE / "corpora_files", HERE / "corpora_expected"
NAMES = [name for name in CORPORA if name not in ("sample", "star_small")]
LONG = "so long " * 25_000
WRONG = [None, "", "?", " ", 0, -1.5, True, [], {}, [[]], [None], {"": None}, LONG, "\ud800"]


def folder_of(name):
    own = FILES / name
    return own if own.is_dir() else FILES / get_corpus(name).folder


def as_json(item):
    return item.to_json() if isinstance(item, Dialogue) else json.loads(json.dumps(dataclasses.asdict(item)))


def read(name, data_dir, **options):
    """Every item of every split; what is no item of a split, or no InputError, fails the test."""
    return [
        {"split": split, "item": as_json(item)}
        for split in get_corpus(name).splits
        for item in load_examples(name, data_dir, split, **options)
    ]


def expected(name):
    return [json.loads(line) for line in (EXPECTED / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def contents_of(folder):
    files = (file for file in sorted(folder.rglob("*"), reverse=True) if file.is_file())  # out of order on purpose
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@pytest.mark.parametrize("name", NAMES)
def test_reads_what_the_format_says(name):
    assert find_source(get_corpus(name), FILES).path == folder_of(name)
    found = read(name, folder_of(name))
    assert found == expected(name)
    identifiers = [line["item"]["id"] for line in found if line["item"]["id"]]
    assert len(set(identifiers)) == len(identifiers)


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_and_files_packed_by_themselves_read_as_the_folder(name, tmp_path):
    contents = contents_of(folder_of(name))
    for suffix in ("tar.gz", "zip", "tar.xz"):
        path = pack(tmp_path / f"packed.{suffix}", contents)
        assert read(name, path) == expected(name)
    packed = {f"{file}.gz": gzip.compress(content) for file, content in contents.items()}
    assert read(name, write(tmp_path / folder_of(name).name, packed)) == expected(name)
    content = path.read_bytes()
    for kept in (0.2, 0.6, 0.95):
        path.write_bytes(content[: int(kept * len(content))])
        with pytest.raises(InputError, match=r"packed\.tar\.xz.*get it again"):
            read(name, path)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_malformed_file_gives_items_or_one_clear_sentence(name, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp(name) / folder_of(name).name
    shutil.copytree(folder_of(name), folder)
    corpus = get_corpus(name)
    patterns = [pattern for patterns in corpus.files.values() for pattern in patterns]
    wanted = sorted({stream_name for pattern in patterns for stream_name, _ in Source(folder).files(pattern)})
    path = Path(data.draw(st.sampled_from(wanted), label="file"))
    path.write_bytes(mutated(path.read_bytes(), data.draw))
    for split, skip_invalid in product(corpus.splits, (False, True)):
        try:
            assert load_examples(name, folder, split, skip_invalid=skip_invalid)
        except InputError as error:
            sentence = str(error)
            assert sentence.startswith(str(folder)), sentence
            assert "\n" not in sentence
            assert len(sentence) < 2_000
    shutil.rmtree(folder.parent)


def mutated(content, draw):
    """A file as it should not be: JSON with a value changed, lost or twice; lines likewise; bytes lost or broken."""
    documents = parsed(content)
    kind = draw(st.sampled_from(["json"] * 3 + ["lines", "bytes"] if documents else ["lines", "lines", "bytes"]))
    if kind == "json":
        document = draw(st.integers(0, len(documents) - 1))
        documents[document] = mutated_value(documents[document], draw)
        return "\n".join(map(json.dumps, documents)).encode()
    if kind == "lines":
        lines = content.split(b"\n")
        position = draw(st.integers(0, len(lines) - 1))
        lines[position : position + 1] = mutated_line(lines[position], draw)
        return b"\n".join(lines)
    start = draw(st.integers(0, len(content)))
    end = draw(st.integers(start, len(content)))
    middle = draw(st.sampled_from([b"", b"\xff\xfe", b"\x00", b"{", b'"', content[start:end] * 2]))
    return content[:start] + middle + (content[end:] if draw(st.booleans()) else b"")


def parsed(content):
    """The JSON documents of a file, one or one a line; none for a file of another format."""
    for texts in ([content], [line for line in content.splitlines() if line.strip()]):
        with suppress(ValueError):
            return [json.loads(text) for text in texts]
    return []


def mutated_value(value, draw):
    """Changes one value somewhere inside; deep ones are as likely as shallow ones."""
    children = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    if not children or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(WRONG))
    key = draw(st.sampled_from(children))
    how = draw(st.sampled_from(["inside", "inside", "inside", "lost", "twice"]))
    if how == "inside":
        value[key] = mutated_value(value[key], draw)
    elif how == "lost":
        del value[key]
    elif isinstance(value, list):
        value.append(value[key])
    else:
        value[f"{key} "] = value[key]
    return value


def mutated_line(line, draw):
    separator = next((mark for mark in (b"\t", b",", b" ") if mark in line), b" ")
    cells = line.split(separator)
    cell = draw(st.integers(0, len(cells) - 1))
    lost, twice, blank, long, broken = [], cells[cell : cell + 1] * 2, [b""], [LONG.encode()], [b"\xc3\x28\xff"]
    lines = [separator.join([*cells[:cell], *each, *cells[cell + 1 :]]) for each in (lost, twice, blank, long, broken)]
    return draw(st.sampled_from([[], [line, line], [b""], [b'"' + line], *([each] for each in lines)]))
