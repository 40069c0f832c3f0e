"""Embedding a file of dialogues: streamed, in shards that are written once, resumable.

With an encoder of texts, a dialogue's embedding is the mean of its utterances' embeddings; with a ranker of responses,
it is that of the dialogue as a context.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm.auto import tqdm

from ..corpora.own.reading import read_own
from ..encoders.baselines import BASELINES
from ..encoders.specs import find_encoder, fingerprint, load_encoder, with_level
from ..models.dialogue import Dialogue
from ..models.errors import InputError
from ..runs.files import check_writable, write_atomically, write_json_atomically


def embed_file(model: str, source: Path, output: Path, shard_size: int = 2000) -> int:
    """Embeds a JSONL file of dialogues into one Parquet file with the columns ``id`` and ``embedding``.

    Shards lie in ``<output>.parts`` until all are there; a killed run goes on after its last whole shard.
    """
    if shard_size < 1:
        raise InputError(f"--shard-size: got {shard_size}, expected at least 1")
    if not source.is_file():
        raise InputError(f"--input {source}: no such file; expected a JSONL file of dialogues")
    check_writable(output, source)
    if output.suffix != ".parquet":
        raise InputError(f"--output {output}: expected a name that ends in .parquet; rename it")
    spec = _spec(model)
    encoder = load_encoder(spec)
    parts = output.with_name(f"{output.name}.parts")
    digest, lines = _digest(source)
    _claim(parts, {"model": model, "weights": fingerprint(spec), "input": digest, "shard_size": shard_size})
    files = []
    with tqdm(desc="embed", unit="dialogue", total=lines) as progress:
        for number, dialogues in enumerate(_shards(source, shard_size)):
            file = parts / f"part-{number:06d}.parquet"
            files.append(file)
            if not file.exists():
                vectors = encoder.encode(dialogues)
                column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
                table = pa.table({"id": [dialogue.id for dialogue in dialogues], "embedding": column})
                write_atomically(file, partial(pq.write_table, table))
            progress.update(len(dialogues))
    return _merge(files, parts, output)


def _spec(model: str) -> str:
    found = find_encoder(model)
    if found.kind in BASELINES or found.whitened:
        raise InputError(
            f"--model {model}: got one that is fitted on the dialogues that it embeds, expected a trained encoder; "
            "name a checkpoint or a Hub id"
        )
    return with_level(model, "utterances")


def _shards(source: Path, size: int) -> Iterator[list[Dialogue]]:
    dialogues = read_own(source)
    while shard := list(islice(dialogues, size)):
        yield shard


def _claim(parts: Path, owner: dict[str, str | int]) -> None:
    """Makes the folder of shards, or checks that those in it are of this very request."""
    file = parts / "request.json"
    if file.is_file():
        before = json.loads(file.read_text(encoding="utf-8"))
        changed = [name for name in owner if before.get(name) != owner[name]]
        if changed and any(parts.glob("part-*.parquet")):
            raise InputError(
                f"{parts} holds shards of another request (its {changed[0]} differs); "
                "remove that folder or choose another --output"
            )
    else:  # of a clean-up that was killed, whoever asked for them
        for shard in parts.glob("part-*.parquet"):
            shard.unlink()
    write_json_atomically(file, owner)


def _merge(files: list[Path], parts: Path, output: Path) -> int:
    temporary, rows = parts / "merged.tmp", 0
    with pq.ParquetWriter(temporary, pq.read_schema(files[0])) as writer:
        for file in files:
            table = pq.read_table(file)
            writer.write_table(table)
            rows += table.num_rows
    temporary.replace(output)
    for file in files:  # before what says whose they are
        file.unlink()
    shutil.rmtree(parts)
    return rows


def _digest(path: Path) -> tuple[str, int | None]:
    """Hashes a file and counts its lines, each of which is a dialogue where it is not packed."""
    digest, lines = hashlib.sha256(), 0
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
            lines += block.count(b"\n")
    return digest.hexdigest(), lines if path.suffix == ".jsonl" else None
