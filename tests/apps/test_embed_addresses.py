"""Embedding from addresses to addresses.

On this machine by file://, in memory, on a Hub, and where none is.
"""

import subprocess
import sys

import fsspec
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.local import LocalFileSystem
from hub_server import run_hub
from huggingface_hub import constants

from hf_dialemb.apps.search import embed as module
from hf_dialemb.apps.search.embed import embed, embed_file
from hf_dialemb.data import write_jsonl
from hf_dialemb.data.hub_dataset import to_dataset
from hf_dialemb.encoders import Encoder

MODEL = ["--model", "dialogue-static"]


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The folder in which copies lie while a run works."""
    monkeypatch.setattr(constants, "HF_ASSETS_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept" / "hf_dialemb" / "addresses"


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    yield system
    system.rm("/", recursive=True)


def test_a_killed_run_in_memory_goes_on_to_the_same_file(
    kept, memory, tiny_checkpoint, tmp_path, sample_dialogues, monkeypatch
):
    write_jsonl(sample_dialogues[:11], tmp_path / "d.jsonl")
    embed_file(str(tiny_checkpoint), tmp_path / "d.jsonl", tmp_path / "whole.parquet", 3)
    memory.put_file(str(tmp_path / "d.jsonl"), "/in/d.jsonl")
    request, encoded = (str(tiny_checkpoint), "memory://in/d.jsonl", "memory://out/d.parquet"), []
    encode = Encoder.encode

    def encode_or_stop(encoder, dialogues):
        encoded.append(len(dialogues))
        if len(encoded) == 3:
            raise KeyboardInterrupt
        return encode(encoder, dialogues)

    monkeypatch.setattr(Encoder, "encode", encode_or_stop)
    with pytest.raises(KeyboardInterrupt):
        embed(*request, shard_size=3)
    assert not memory.exists("/out/d.parquet")
    assert embed(*request, shard_size=3) == 11
    assert encoded == [3, 3, 3, 3, 2]  # the third twice
    with memory.open("/out/d.parquet") as file:
        assert pq.read_table(file).equals(pq.read_table(tmp_path / "whole.parquet"))
    assert [*kept.iterdir()] == []
    assert embed(*request, shard_size=3) == 11  # what it wrote itself it may replace
    memory.pipe_file("/out/d.parquet", b"of somebody else")
    with pytest.raises(
        module.InputError, match="is no file that dialemb embed wrote, and would be lost"
    ):
        embed(*request)


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_a_file_from_an_address_appears_whole_at_another(
    ending, kept, tmp_path, sample_dialogues, printed
):
    source, whole = tmp_path / f"calls.{ending}", tmp_path / "whole.parquet"
    to_dataset(sample_dialogues).to_parquet(source) if ending == "parquet" else write_jsonl(
        sample_dialogues, source
    )
    embed_file("dialogue-static", source, whole)
    (tmp_path / "out").mkdir()
    words = ["--input", source.as_uri(), "--output", (tmp_path / "out" / "calls.parquet").as_uri()]
    printed("embed", *MODEL, *words)
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["calls.parquet"]
    assert pq.read_table(tmp_path / "out" / "calls.parquet").equals(pq.read_table(whole))
    assert [*kept.iterdir()] == []


@pytest.mark.slow
def test_a_file_goes_to_the_hub_in_one_commit(tmp_path, sample_dialogues):
    write_jsonl(sample_dialogues, tmp_path / "calls.jsonl")
    with run_hub() as hub:
        hub.create("datasets", "me/x")
        before = len(hub.history("datasets", "me/x"))
        words = [
            "--input",
            str(tmp_path / "calls.jsonl"),
            "--output",
            "hf://datasets/me/x/calls.parquet",
        ]
        command = [sys.executable, "-m", "hf_dialemb.apps.cli", "embed", *MODEL, *words]
        subprocess.run(command, env=hub.environment(tmp_path / "hf"), check=True)
        assert len(hub.history("datasets", "me/x")) == before + 1
        (tmp_path / "fetched.parquet").write_bytes(hub.files("datasets", "me/x")["calls.parquet"])
    embed_file("dialogue-static", tmp_path / "calls.jsonl", tmp_path / "here.parquet")
    assert pq.read_table(tmp_path / "fetched.parquet").equals(
        pq.read_table(tmp_path / "here.parquet")
    )


def test_what_is_wrong_with_an_address_is_told_in_one_sentence(
    kept, memory, tmp_path, sample_dialogues, refused, monkeypatch
):
    source = tmp_path / "d.jsonl"
    write_jsonl(sample_dialogues[:3], source)
    memory.pipe_file("/broken.jsonl", b'{"messages": []}\n')
    monkeypatch.setitem(sys.modules, "s3fs", None)  # as if it were not installed
    for given, output, sentence in (
        (
            "s3://bucket/d.jsonl",
            tmp_path / "o.parquet",
            "Install s3fs to access S3); pip install s3fs",
        ),
        (source, "s3://bucket/o.parquet", "s3://bucket/o.parquet: a package is missing"),
        (
            "nowhere://d.jsonl",
            tmp_path / "o.parquet",
            "cannot be opened (Protocol not known: nowhere)",
        ),
        (
            "memory://none.jsonl",
            tmp_path / "o.parquet",
            "memory://none.jsonl: cannot be read (/none.jsonl)",
        ),
        ("memory://broken.jsonl", tmp_path / "o.parquet", "memory://broken.jsonl: got no dialogue"),
        (source, "https://host/o.parquet", "got an address that can only be read"),
        (source, "memory://o.csv", "expected a name that ends in .parquet"),
        (
            source,
            f"{tmp_path.as_uri()}/none/o.parquet",
            "upload it yourself, or correct the address",
        ),
    ):
        assert sentence in refused("embed", *MODEL, "--input", given, "--output", output)
    assert not (tmp_path / "o.parquet").exists()
    (left,) = (file for file in kept.rglob("*") if file.is_file())
    assert pq.read_table(left).num_rows == 3


def test_a_file_that_is_not_all_there_has_another_name(
    kept, tmp_path, sample_dialogues, refused, monkeypatch
):
    write_jsonl(sample_dialogues[:3], tmp_path / "d.jsonl")
    (tmp_path / "out").mkdir()
    output, put = (tmp_path / "out" / "d.parquet").as_uri(), LocalFileSystem.put_file

    def fill_the_disk(system, here, there, **options):
        put(system, here, there, **options)
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "put_file", fill_the_disk)
        words = ["embed", *MODEL, "--input", tmp_path / "d.jsonl", "--output", output]
        assert "cannot be written (no space left)" in refused(*words)
    assert not (tmp_path / "out" / "d.parquet").exists()
    assert embed("dialogue-static", tmp_path / "d.jsonl", output) == 3
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["d.parquet"]
