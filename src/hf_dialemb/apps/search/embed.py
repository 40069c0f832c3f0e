"""Embed dialogues into a Parquet file, streamed in shards.

The file's metadata name the model of its vectors, so that they are not taken for another's.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm.auto import tqdm

from ...data.reading_options import ReadingOptions
from ...dialogue import Dialogue
from ...encoders import Encoder, load_encoder
from ...encoders.specs import trained_encoder
from ...encoders.stored_vectors import METADATA, text_digest
from ...errors import InputError
from ...storage.files import check_writable, locked, write_atomically
from ..files.reading import read_own


def embed_file(
    model: str | Encoder,
    source: Path,
    output: Path,
    shard_size: int = 2000,
    *,
    level: str = "dialogues",
    **options: Any,
) -> int:
    """Embed a file or folder of dialogues into one Parquet file, a row each.

    Its columns are ``id``, ``said``, ``metadata`` (JSON) and ``embedding``. At the level
    ``utterances`` each utterance has a row, whose ``turn`` is its place in the dialogue, from 0 on.
    The file's metadata hold what `hf_dialemb.encoders.stored_vectors` checks. The source is read as
    by `load_dialogues`, with its options.

    Shards lie in ``<output>.parts`` until all are there. They are named by the model and by what
    was said, so that a run after a killed one embeds only what is missing or has changed.

    Return the number of rows. An InputError says that the source cannot be read, that the output
    cannot be written or is no file of `embed_file`'s, or that another run writes there now.
    """
    how = ReadingOptions(**options)
    if shard_size < 1:
        raise InputError(f"--shard-size: got {shard_size}, expected at least 1")
    check_writable(output, source)
    if output.suffix != ".parquet":
        raise InputError(f"--output {output}: expected a name that ends in .parquet; rename it")
    if output.exists() and not _is_ours(output):
        reason = "is no file that dialemb embed wrote, and would be lost; choose another"
        raise InputError(f"--output {output}: {reason}")
    trained_encoder(model)
    # The first reading refuses malformed files, and says what is left out, before all else.
    count = sum(1 for _ in read_own(source, how))
    encoder = load_encoder(model)
    made_by = {
        "model": encoder.spec,
        "options": encoder.source.options if encoder.source else {},
        "weights": encoder.fingerprint,
        "rows": level,
    }
    output = output.resolve()  # a link stays a link
    parts = output.with_name(f"{output.name}.parts")
    files = []
    with (
        locked(parts, "choose another --output"),
        tqdm(desc="embed", unit="dialogue", total=count) as progress,
    ):
        for number, shard in enumerate(_shards(read_own(source, how, silent=True), shard_size)):
            file = parts / f"part-{number:06d}-{_digest(made_by, shard)}.parquet"
            if not file.exists():
                table = vector_table(encoder, made_by, shard)
                write_atomically(file, partial(pq.write_table, table))
            files.append(file)
            progress.update(len(shard))
        write_atomically(output, partial(_join, files))
        for file in parts.glob("part-*.parquet"):
            file.unlink()
    return int(pq.read_metadata(output).num_rows)


def vector_table(
    encoder: Encoder, made_by: dict[str, Any], dialogues: Sequence[Dialogue]
) -> pa.Table:
    """Embed dialogues, or their utterances as ``made_by["rows"]`` says, and return their rows."""
    if made_by["rows"] == "utterances":
        rows = _utterance_rows(dialogues)
        texts = [turn.content for dialogue in dialogues for turn in dialogue.turns]
        vectors = encoder.encode_utterances(texts)
    else:
        rows = _dialogue_rows(dialogues)
        vectors = encoder.encode(dialogues)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    record = json.dumps({**made_by, "width": vectors.shape[1]})
    return pa.table({**rows, "embedding": column}).replace_schema_metadata({METADATA: record})


def _dialogue_rows(dialogues: Sequence[Dialogue]) -> dict[str, list[Any]]:
    return {
        "id": [dialogue.id for dialogue in dialogues],
        "said": list(map(text_digest, dialogues)),
        "metadata": list(map(_metadata, dialogues)),
    }


def _utterance_rows(dialogues: Sequence[Dialogue]) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {"id": [], "turn": [], "said": [], "metadata": []}
    for dialogue in dialogues:
        for place, turn in enumerate(dialogue.turns):
            rows["id"].append(dialogue.id)
            rows["turn"].append(place)
            rows["said"].append(text_digest(replace(dialogue, turns=(turn,))))
            rows["metadata"].append(_metadata(dialogue))
    return rows


def _metadata(dialogue: Dialogue) -> str:
    """Return what else is known of a dialogue as JSON, so that shards have the same columns."""
    return json.dumps(dict(dialogue.metadata), ensure_ascii=False)


def _is_ours(file: Path) -> bool:
    try:
        return METADATA in (pq.read_schema(file).metadata or {})
    except (OSError, pa.ArrowException):
        return False


def _shards(dialogues: Iterable[Dialogue], size: int) -> Iterator[list[Dialogue]]:
    stream = iter(dialogues)
    while shard := list(islice(stream, size)):
        yield shard


def _digest(made_by: dict[str, Any], shard: Sequence[Dialogue]) -> str:
    content = json.dumps([made_by, [dialogue.to_json() for dialogue in shard]], default=str)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _join(files: Sequence[Path], output: Path) -> None:
    with pq.ParquetWriter(output, pq.read_schema(files[0])) as writer:
        for file in files:
            writer.write_table(pq.read_table(file))
