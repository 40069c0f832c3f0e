"""Embed dialogues into a Parquet file, streamed in shards.

The file's metadata name the model of its vectors, so that they are not taken for another's.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm.auto import tqdm

from ...data.reading_options import ReadingOptions
from ...dialogue import Dialogue
from ...encoders import Encoder, load_encoder
from ...encoders.embedding_cache import RememberingEncoder
from ...encoders.specs import trained_encoder
from ...encoders.stored_vectors import METADATA, text_digest
from ...errors import InputError
from ...storage.files import check_writable, locked, write_atomically
from ..files.reading import read_own
from .stored_turns import record_of


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
    by `load_dialogues`, with its options. What is embedded lies in ``<output>.parts`` until the
    file is there: a run after a killed one embeds what is missing.

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
        raise InputError(
            f"--output {output}: is no file that dialemb embed wrote, and would be lost; choose "
            "another"
        )
    trained_encoder(model)
    # The first reading refuses malformed files, and says what is left out, before all else.
    count = sum(1 for _ in read_own(source, how))
    encoder = load_encoder(model)
    made_by = {**record_of(encoder), "rows": level}
    output = output.resolve()  # a link stays a link
    parts = output.with_name(f"{output.name}.parts")
    with (
        locked(parts, "choose another --output"),
        tqdm(desc="embed", unit="dialogue", total=count) as progress,
    ):
        stream = iter(read_own(source, how, silent=True))
        shards = iter(lambda: list(islice(stream, shard_size)), [])
        kept = RememberingEncoder(encoder, parts)
        write_atomically(output, lambda path: _write(path, kept, made_by, shards, progress))
        for file in parts.glob("*.sqlite"):
            file.unlink()
    return int(pq.read_metadata(output).num_rows)


def _write(
    path: Path,
    encoder: RememberingEncoder,
    made_by: dict[str, Any],
    shards: Iterator[list[Dialogue]],
    progress: Any,
) -> None:
    writer = None
    for shard in shards:
        table = vector_table(encoder, made_by, shard)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
        encoder.forget()
        progress.update(len(shard))
    if writer:
        writer.close()


def vector_table(
    encoder: Encoder, made_by: dict[str, Any], dialogues: Sequence[Dialogue]
) -> pa.Table:
    """Embed dialogues, or their utterances as ``made_by["rows"]`` says, and return their rows."""
    rows: list[dict[str, Any]] = []
    for dialogue in dialogues:
        # what else is known is JSON, so that all tables have the same columns
        known = json.dumps(dict(dialogue.metadata), ensure_ascii=False)
        if made_by["rows"] == "dialogues":
            rows.append({"id": dialogue.id, "said": text_digest(dialogue), "metadata": known})
            continue
        for place, turn in enumerate(dialogue.turns):
            digest = text_digest(replace(dialogue, turns=(turn,)))
            rows.append({"id": dialogue.id, "turn": place, "said": digest, "metadata": known})
    if made_by["rows"] == "utterances":
        texts = [turn.content for dialogue in dialogues for turn in dialogue.turns]
        vectors = encoder.encode_utterances(texts)
    else:
        vectors = encoder.encode(dialogues)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    record = json.dumps({**made_by, "width": vectors.shape[1]})
    table = pa.Table.from_pylist(rows).append_column("embedding", column)
    return table.replace_schema_metadata({METADATA: record})


def _is_ours(file: Path) -> bool:
    try:
        return METADATA in (pq.read_schema(file).metadata or {})
    except (OSError, pa.ArrowException):
        return False
