"""Vectors in the Parquet files of ``dialemb embed``, with their model and items."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from ..dialogue import Dialogue
from ..errors import InputError, explained
from ..hashing import dialogue_key
from .encoder import Encoder, Vectors
from .specs import EncoderSpec, find_encoder

METADATA = b"hf_dialemb"
"""The key of the record in a file's metadata."""


def text_digest(dialogue: Dialogue) -> str:
    """Return the digest of who says what in a dialogue, as files have it."""
    return dialogue_key(dialogue)[:16]


@dataclass(frozen=True)
class StoredVectors:
    """Vectors of a file, their encoder, and the dialogues that they are of."""

    path: Path
    source: EncoderSpec
    ids: list[str]
    digests: list[str]  # of who says what
    vectors: Vectors  # (N, D)

    def of_dialogues(self, dialogues: Sequence[Dialogue], place: str) -> Vectors:
        """Return the vectors; refuse other dialogues than the file's, from ``place``."""
        if self.ids != [dialogue.id for dialogue in dialogues]:
            raise InputError(
                f"--vectors {self.path}: holds other dialogues than {place}; embed these"
            )
        for dialogue, digest in zip(dialogues, self.digests, strict=True):
            if text_digest(dialogue) != digest:
                raise InputError(
                    f"--vectors {self.path}: {dialogue.id} had other text or roles than in "
                    f"{place}; embed again"
                )
        return self.vectors

    def encoder(self, dialogues: Sequence[Dialogue], place: str) -> Encoder:
        """Return an encoder of these dialogues, from ``place``, that looks their vectors up."""
        vectors = self.of_dialogues(dialogues, place)
        rows = dict(zip(map(dialogue_key, dialogues), vectors, strict=True))

        def look_up(wanted: Sequence[Dialogue]) -> Vectors:
            try:
                return np.stack([rows[dialogue_key(dialogue)] for dialogue in wanted])
            except KeyError:
                raise InputError(
                    f"--vectors {self.path}: holds whole dialogues, but this task embeds parts of "
                    "them; leave --vectors out and name the model, or choose --task domains"
                ) from None

        return Encoder(self.source.name, embed_dialogues=look_up, source=self.source)


def stored_vectors(path: Path, model: str | None = None) -> StoredVectors:
    """Read the vectors of dialogues from a file of ``dialemb embed``.

    Raises:
        InputError: The file is another, or holds vectors of another model.
    """
    with explained(path, "give a file that dialemb embed wrote"):
        table = pq.read_table(path)
        record = json.loads((table.schema.metadata or {})[METADATA])
        source = find_encoder(model or record["model"], **record["options"])
        if source.fingerprint != record["weights"]:
            raise InputError(
                f"{path}: got vectors of {record['model']} ({record['weights']}), expected those "
                f"of {model or 'that model as it is now'}; embed the dialogues again"
            )
        vectors = table["embedding"].combine_chunks().flatten().to_numpy()
        vectors = vectors.reshape(len(table), record["width"])
        if not np.isfinite(vectors).all():
            raise InputError(f"{path}: got vectors that are not finite; embed the dialogues again")
        ids, digests = table["id"].to_pylist(), table["said"].to_pylist()
        return StoredVectors(path, source, ids, digests, vectors)
