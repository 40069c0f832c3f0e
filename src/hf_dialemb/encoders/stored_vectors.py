"""Vectors in the Parquet files of ``dialemb embed``, with their model and items."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ..dialogue import Dialogue
from ..errors import InputError, explained
from ..hashing import dialogue_key, text_key
from .encoder import Encoder, Vectors
from .specs import EncoderSpec, find_encoder

METADATA = b"hf_dialemb"


def _dialogues(dialogues: Sequence[Dialogue]) -> dict[str, list[Any]]:
    digests = [dialogue_key(item)[:16] for item in dialogues]
    return {
        "id": [item.id for item in dialogues],
        "said": digests,
        "metadata": list(map(_metadata, dialogues)),
    }


def _utterances(dialogues: Sequence[Dialogue]) -> dict[str, list[Any]]:
    turns = [
        (
            dialogue.id,
            place,
            turn.content,
            text_key(replace(dialogue, turns=(turn,))),
            _metadata(dialogue),
        )
        for dialogue in dialogues
        for place, turn in enumerate(dialogue.turns)
    ]
    return {
        name: [turn[at] for turn in turns]
        for at, name in enumerate(("id", "turn", "text", "said", "metadata"))
    }


def _metadata(dialogue: Dialogue) -> str:
    """Return what else is known of a dialogue as JSON.

    Shards have the same columns, whatever their dialogues have.
    """
    return json.dumps(dict(dialogue.metadata), ensure_ascii=False)


ROWS: Mapping[str, Callable[[Sequence[Dialogue]], Any]] = {
    "dialogues": _dialogues,
    "utterances": _utterances,
}
"""The columns of each kind of row beside the vectors.

``text`` is embedded and not written, ``said`` is its digest.
"""


@dataclass(frozen=True)
class StoredVectors:
    """Vectors of a file, (N, D), their encoder, and the items that they are of."""

    path: Path
    source: EncoderSpec
    ids: list[str]
    turns: list[int]  # the places of utterances; empty for dialogues
    digests: list[str]  # of the texts
    vectors: NDArray[np.float32]

    def of_dialogues(self, dialogues: Sequence[Dialogue], place: str) -> NDArray[np.float32]:
        """Return the vectors.

        Refuse to if they are of other dialogues than these, from ``place``.
        """
        rows = _dialogues(dialogues)
        if self.ids != rows["id"]:
            raise InputError(
                f"--vectors {self.path}: holds other dialogues than {place}; embed these"
            )
        for name, expected, got in zip(self.ids, rows["said"], self.digests, strict=True):
            if expected != got:
                raise InputError(
                    f"--vectors {self.path}: {name} had other text or roles than in {place}; embed "
                    "again"
                )
        return self.vectors

    def encoder(self, dialogues: Sequence[Dialogue], place: str) -> Encoder:
        """Return an encoder of these dialogues, from ``place``, that looks their vectors up."""
        rows = dict(
            zip(map(dialogue_key, dialogues), self.of_dialogues(dialogues, place), strict=True)
        )

        def look_up(wanted: Sequence[Dialogue]) -> Vectors:
            try:
                return np.stack([rows[dialogue_key(dialogue)] for dialogue in wanted])
            except KeyError:
                raise InputError(
                    f"--vectors {self.path}: holds whole dialogues, but this task embeds parts of "
                    "them; leave --vectors out and name the model, or choose --task domains"
                ) from None

        return Encoder(self.source.name, embed_dialogues=look_up, source=self.source)

    def of_utterances(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Return the vectors of these dialogues' utterances, in order.

        Refuse to if they are of others.
        """
        rows = _utterances(dialogues)
        wanted = list(zip(rows["id"], rows["turn"], rows["said"], strict=True))
        known = list(zip(self.ids, self.turns, self.digests, strict=True))
        if wanted == known:
            return self.vectors
        places = {utterance: row for row, utterance in enumerate(known)}
        if len(places) < len(known) or not places.keys() >= set(wanted):
            raise InputError(
                f"--vectors {self.path}: holds other utterances; embed these with --level "
                "utterances"
            )
        return self.vectors[[places[utterance] for utterance in wanted]]


def stored_vectors(path: Path, model: str | None = None, rows: str = "dialogues") -> StoredVectors:
    """Read a file of ``dialemb embed``.

    Refuse another file, other rows, or vectors of another model.
    """
    try:
        table = pq.read_table(path)
        record = json.loads((table.schema.metadata or {})[METADATA])
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{path}: cannot be read ({error}); give a file that dialemb embed wrote"
        ) from None
    except (KeyError, ValueError, RecursionError):
        raise InputError(
            f"{path}: does not say whose vectors it has; write it again by dialemb embed"
        ) from None
    with explained(path, "write it again by dialemb embed"):
        if (got := record.get("rows", "dialogues")) != rows:
            raise InputError(
                f"{path}: got vectors of {got}, expected those of {rows}; embed with --level {rows}"
            )
        source = find_encoder(model or record["model"], **record["options"])
        if source.fingerprint != record["weights"]:
            raise InputError(
                f"{path}: got vectors of {record['model']} ({record['weights']}), expected those "
                f"of {model or 'that model as it is now'}; embed the dialogues again"
            )
        vectors = table["embedding"].combine_chunks().flatten().to_numpy()
        vectors = vectors.reshape(len(table), record["width"])
        if not np.isfinite(vectors).all():
            raise InputError(
                f"{path}: got vectors that are not finite; write it again by dialemb embed"
            )
        turns = table["turn"].to_pylist() if rows == "utterances" else []
        ids = table["id"].to_pylist()
        return StoredVectors(path, source, ids, turns, table["said"].to_pylist(), vectors)
