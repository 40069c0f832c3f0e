"""Embedding a file of dialogues: streamed, in shards that are written once, resumable.

With an utterance encoder, a dialogue's embedding is the mean of its utterances' embeddings; with a ranker of responses,
it is that of the dialogue as a context.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ..corpora.own import read_own
from ..evaluation.text_models import TextEncoder, embed_utterances
from ..models.dialogue import Dialogue
from ..models.encoder import DialogueEncoder, encode
from ..models.errors import InputError
from ..models.files import check_writable
from ..models.ranker import Ranker
from ..models.ranking import encode_contexts
from ..models.utterance import UtteranceEncoder
from .export import load_checkpoint
from .ranker_form import loaded


def embed_file(model: str, source: Path, output: Path, shard_size: int = 2000) -> int:
    """Embeds a JSONL file of dialogues into one Parquet file with the columns ``id`` and ``embedding``.

    Shards lie in ``<output>.parts`` until all are there; a killed run goes on after its last whole shard.

    Args:
        model: One of our checkpoints: folder or Hub id. An utterance encoder gives the mean of a dialogue's utterances,
            each turn cut at the model's limit on its own; a dialogue of one turn gets its utterance's embedding.
        source: Dialogues, one JSON object a line; never in memory as a whole.
        output: The Parquet file; it appears whole or not at all.
        shard_size: Dialogues per shard; at least 1.

    Returns:
        The number of embeddings.

    Raises:
        InputError: The input is missing or malformed, or the parts belong to another model, input or shard size.
    """
    if shard_size < 1:
        raise InputError(f"--shard-size: got {shard_size}, expected at least 1")
    if not source.is_file():
        raise InputError(f"--input {source}: no such file; expected a JSONL file of dialogues")
    check_writable(output)
    encoder, tokenizer = load_checkpoint(model)
    parts = output.with_name(f"{output.name}.parts")
    _claim(
        parts,
        {"model": str(model), "weights": _digest(encoder), "input": _file_digest(source), "shard_size": shard_size},
    )
    shards = _shards(source, shard_size)
    files = []
    for number, dialogues in enumerate(tqdm(shards, desc="embed", unit="shard")):
        file = parts / f"part-{number:06d}.parquet"
        files.append(file)
        if file.exists():
            continue
        vectors = _embed(encoder, tokenizer, dialogues)
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
        table = pa.table({"id": [dialogue.id for dialogue in dialogues], "embedding": column})
        _write_atomically(table, file)
    return _merge(files, parts, output)


def _embed(
    model: DialogueEncoder | UtteranceEncoder | Ranker,
    tokenizer: Any,  # noqa: ANN401
    dialogues: list[Dialogue],
) -> NDArray[np.float32]:
    if isinstance(model, UtteranceEncoder):
        return TextEncoder("utterances", embed_utterances(model, tokenizer), "utterances").encode(dialogues)
    if isinstance(model, Ranker):
        return encode_contexts(loaded(model, tokenizer), [dialogue.turns for dialogue in dialogues])
    vectors: NDArray[np.float32] = encode(model, tokenizer, dialogues)
    return vectors


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
        if changed:
            raise InputError(
                f"{parts} holds shards of another request (its {changed[0]} differs); "
                "remove that folder or choose another --output"
            )
        return
    parts.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(owner), encoding="utf-8")


def _write_atomically(table: pa.Table, file: Path) -> None:
    temporary = file.with_suffix(".tmp")
    try:
        pq.write_table(table, temporary)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _merge(files: list[Path], parts: Path, output: Path) -> int:
    temporary, rows = parts / "merged.tmp", 0
    with pq.ParquetWriter(temporary, pq.read_schema(files[0])) as writer:
        for file in files:
            table = pq.read_table(file)
            writer.write_table(table)
            rows += table.num_rows
    temporary.replace(output)
    shutil.rmtree(parts)
    return rows


def _digest(model: DialogueEncoder | UtteranceEncoder | Ranker) -> str:
    """Tells weights apart without reading them all: a hash over every tensor's name, shape and sum."""
    state = [(name, tuple(value.shape), float(value.double().sum())) for name, value in model.state_dict().items()]
    return hashlib.sha256(repr(state).encode()).hexdigest()


def _file_digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
