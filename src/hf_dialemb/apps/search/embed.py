"""Embed dialogues into a Parquet file: streamed, in shards that are written once, resumable.

The file's metadata name the model of its vectors, so that they are not taken for another's.
"""

import hashlib
import json
from collections import deque
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm.auto import tqdm

from ...data.reading_options import ReadingOptions
from ...data.source import files_within
from ...dialogue import Dialogue
from ...encoders import Encoder, load_encoder
from ...encoders.specs import trained_encoder
from ...encoders.stored_vectors import METADATA, ROWS
from ...errors import InputError
from ...storage.addresses import Address, copied_here, without_login
from ...storage.files import check_writable, write_json_atomically
from ...storage.shards import in_parts, in_shards, metadata_of, parts_beside
from ..files.reading import read_own


def embed(model: Any, source: Path | str, output: Path | str, **options: Any) -> int:
    """Embed as `embed_file` does.

    A string is an address, whose file is copied to this machine meanwhile.

    A killed run goes on, on the same machine. A file appears whole at its address, or not at all.
    """
    if isinstance(output, str):
        if output.startswith(("http://", "https://")):
            raise InputError(
                f"--output {without_login(output)}: got an address that can only be read; give one "
                "like s3:// or hf://"
            )
        there = Address(output)
        with there.explained("written"):
            if there.system.exists(there.path):
                with there.system.open(there.path) as file:
                    if not is_whole(file):
                        raise _not_ours(output)
    with copied_here(source) as copy:
        rows = embed_file(
            model, copy, output if isinstance(output, Path) else there.place, **options
        )
    if isinstance(output, str):
        there.put()
    return rows


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
    Shards lie in ``<output>.parts`` until all are there; a killed run goes on with the missing
    ones. The file's metadata hold what `hf_dialemb.encoders.stored_vectors` checks. The file is
    read as by `load_dialogues`, with its options. Returns the number of rows.
    """
    how = ReadingOptions(**options)
    if shard_size < 1:
        raise InputError(f"--shard-size: got {shard_size}, expected at least 1")
    check_writable(output, source)
    if output.suffix != ".parquet":
        raise InputError(
            f"--output {without_login(output)}: expected a name that ends in .parquet; rename it"
        )
    if output.exists() and not is_whole(output):
        raise _not_ours(output)
    output = output.resolve()  # a link stays a link
    trained_encoder(model)
    # refuses malformed files, and says what is left out, before all else
    deque(read_own(source, how), maxlen=0)
    encoder = load_encoder(model)
    made_by = {
        "model": encoder.spec,
        "options": encoder.source.options if encoder.source else {},
        "weights": encoder.fingerprint,
        "rows": level,
    }
    digest, lines = _digest(source)
    request = {**made_by, "input": digest, "shard_size": shard_size, "reading": how.chosen}
    with (
        parts_beside(output) as parts,
        tqdm(desc="embed", unit="dialogue", total=lines) as progress,
    ):
        _claim(parts, request)
        shards = (
            (f"{number:06d}", shard)
            for number, shard in enumerate(
                in_shards(read_own(source, how, silent=True), shard_size)
            )
        )
        return _merge(
            in_parts(partial(vector_table, encoder, made_by), shards, parts, progress),
            parts,
            output,
        )


def vector_table(
    encoder: Encoder, made_by: dict[str, Any], dialogues: Sequence[Dialogue]
) -> pa.Table:
    """Embed dialogues, or their utterances as ``made_by["rows"]`` says, and return the columns of
    their rows.
    """
    rows = ROWS[made_by["rows"]](dialogues)
    texts = rows.pop("text", None)
    vectors = encoder.encode(dialogues) if texts is None else encoder.encode_utterances(texts)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    record = json.dumps({**made_by, "width": vectors.shape[1]})
    return pa.table({**rows, "embedding": column}).replace_schema_metadata({METADATA: record})


def is_whole(file: Path | BinaryIO) -> bool:
    """Return whether a file is there, is Parquet to its end and was written by `embed_file`."""
    return METADATA in metadata_of(file)


def _not_ours(output: Path | str) -> InputError:
    return InputError(
        f"--output {without_login(output)}: is no file that dialemb embed wrote, and would be "
        "lost; choose another"
    )


def _claim(parts: Path, owner: dict[str, Any]) -> None:
    """Refuse to go on with shards of another request."""
    file = parts / "request.json"
    try:
        before = dict(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        before = {}
    if before:
        changed = [name for name in owner if before.get(name) != owner[name]]
        if changed and any(parts.glob("part-*.parquet")):
            raise InputError(
                f"{parts} holds shards of another request (its {changed[0]} differs); "
                "remove that folder or choose another --output"
            )
    else:  # of a clean-up that was killed, or of unknown origin
        for shard in parts.glob("part-*.parquet"):
            shard.unlink()
    write_json_atomically(file, owner)


def _merge(files: list[Path], parts: Path, output: Path) -> int:
    temporary, rows = parts / "merged.tmp", 0
    widths = sorted({pq.read_schema(file).field("embedding").type.list_size for file in files})
    if len(widths) > 1:
        raise InputError(
            f"{parts} holds vectors of {widths[0]} and of {widths[-1]} numbers, as the model "
            "changed meanwhile; remove "
            "that folder and embed again"
        )
    with pq.ParquetWriter(temporary, pq.read_schema(files[0])) as writer:
        for file in files:
            table = pq.read_table(file)
            writer.write_table(table)
            rows += table.num_rows
    temporary.replace(output)
    return rows


def _digest(path: Path) -> tuple[str, int | None]:
    """Hash a file or the files of a folder.

    Count lines, each of which is a dialogue in plain JSONL.
    """
    digest, lines = hashlib.sha256(), 0
    for file in files_within(path) if path.is_dir() else [path]:
        digest.update(f"{file.relative_to(path)}\n".encode("utf-8", "surrogateescape"))
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
                lines += block.count(b"\n")
    return digest.hexdigest(), lines if path.suffix == ".jsonl" else None
