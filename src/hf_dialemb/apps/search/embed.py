"""Embed dialogues into a Parquet file, streamed in shards.

The file's metadata name the model of its vectors, so that they are not taken for another's.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import chain, islice
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
from ...hashing import dialogue_key
from ...storage.files import check_writable, locked, write_atomically
from ..files.reading import read_path
from .stored_turns import record_of

METADATA = b"hf_dialemb"
"""The key of the record in a file's metadata."""
SHARD = 2000
"""How many dialogues are embedded and written at once."""


def embed_file(model: str | Encoder, source: Path, output: Path, **options: Any) -> int:
    """Embed a file or folder of dialogues into one Parquet file, a row each.

    Its columns are ``id``, ``said``, ``metadata`` (JSON) and ``embedding``. The file's metadata
    name the model and its fingerprint. The source is read as by
    `load_dialogues`, with its options. What is embedded lies in ``<output>.parts`` until the file
    is there: a run after a killed one embeds what is missing.

    Return the number of rows. An InputError says that the source cannot be read, that the output
    cannot be written, or that another run writes there now.
    """
    how = ReadingOptions(**options)
    check_writable(output, source)
    trained_encoder(model)
    # The first reading refuses malformed files, and says what is left out, before all else.
    count = sum(1 for _ in read_path(source, how))
    encoder = load_encoder(model)
    output = output.resolve()  # a link stays a link
    parts = output.with_name(f"{output.name}.parts")
    with (
        locked(parts, "choose another --output"),
        tqdm(desc="embed", unit="dialogue", total=count) as progress,
    ):
        stream = iter(read_path(source, how, silent=True))
        shards = iter(lambda: list(islice(stream, SHARD)), [])
        kept = RememberingEncoder(encoder, parts)
        write_atomically(output, lambda path: _write(path, kept, shards, progress))
        for file in parts.glob("*.sqlite"):
            file.unlink()
    return int(pq.read_metadata(output).num_rows)


def _write(
    path: Path, encoder: RememberingEncoder, shards: Iterator[list[Dialogue]], progress: Any
) -> None:
    first = vector_table(encoder, next(shards))
    with pq.ParquetWriter(path, first.schema) as writer:
        for table in chain([first], (vector_table(encoder, shard) for shard in shards)):
            writer.write_table(table)
            encoder.forget()
            progress.update(len(table))


def vector_table(encoder: Encoder, dialogues: Sequence[Dialogue]) -> pa.Table:
    """Embed dialogues, and return their rows."""
    rows = [
        {
            "id": dialogue.id,
            "said": dialogue_key(dialogue)[:16],
            # what else is known is JSON, so that all tables have the same columns
            "metadata": json.dumps(dict(dialogue.metadata), ensure_ascii=False),
        }
        for dialogue in dialogues
    ]
    vectors = encoder.encode(dialogues)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    record = json.dumps({**record_of(encoder), "width": vectors.shape[1]})
    table = pa.Table.from_pylist(rows).append_column("embedding", column)
    return table.replace_schema_metadata({METADATA: record})
