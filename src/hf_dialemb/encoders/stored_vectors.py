"""Vectors in the Parquet files of ``dialemb embed``, in place of embedding again: whose they are, and what of."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ..dialogue import Dialogue
from ..errors import InputError, told
from ..hashing import dialogue_key, text_key
from .specs import fingerprint

METADATA = b"hf_dialemb"


def _dialogues(dialogues: Sequence[Dialogue]) -> dict[str, list[Any]]:
    return {"id": [each.id for each in dialogues], "said": [dialogue_key(each)[:16] for each in dialogues]}


def _utterances(dialogues: Sequence[Dialogue]) -> dict[str, list[Any]]:
    turns = [
        (dialogue.id, place, turn.content, text_key(replace(dialogue, turns=(turn,))))
        for dialogue in dialogues
        for place, turn in enumerate(dialogue.turns)
    ]
    return {name: [turn[at] for turn in turns] for at, name in enumerate(("id", "turn", "text", "said"))}


ROWS: dict[str, Callable[[Sequence[Dialogue]], dict[str, list[Any]]]] = {
    "dialogues": _dialogues,
    "utterances": _utterances,
}
"""What has a row, and the columns beside the vectors; ``text`` is embedded and not written, ``said`` tells it from any
other."""


@dataclass(frozen=True)
class StoredVectors:
    """Vectors of a file, (N, D), the spec and the weights of their encoder, and of which turns of which dialogues."""

    path: Path
    model: str
    weights: str
    ids: list[str]
    turns: list[int]  # of utterances; else empty
    said: list[str]  # a digest of the text of each
    vectors: NDArray[np.float32]

    def of_dialogues(self, dialogues: Sequence[Dialogue], place: str) -> NDArray[np.float32]:
        """Returns the vectors, which are of these dialogues, from ``place``; an InputError says they are of others."""
        rows = _dialogues(dialogues)
        if self.ids != rows["id"]:
            raise InputError(f"--vectors {self.path}: holds other dialogues than {place}; embed these")
        for name, expected, got in zip(self.ids, rows["said"], self.said, strict=True):
            if expected != got:
                raise InputError(f"--vectors {self.path}: {name} had other text or roles than in {place}; embed again")
        return self.vectors

    def of_utterances(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Returns the vectors of the utterances of these dialogues, in order; an InputError says they are of others."""
        rows = _utterances(dialogues)
        wanted = list(zip(rows["id"], rows["turn"], rows["said"], strict=True))
        found = list(zip(self.ids, self.turns, self.said, strict=True))
        if wanted == found:
            return self.vectors
        places = {each: row for row, each in enumerate(found)}
        if len(places) < len(found) or not places.keys() >= set(wanted):
            raise InputError(f"--vectors {self.path}: holds other utterances; embed these with --level utterances")
        return self.vectors[[places[each] for each in wanted]]


def stored_vectors(path: Path, model: str | None = None, rows: str = "dialogues") -> StoredVectors:
    """Reads what ``dialemb embed`` wrote; an InputError says that it did not, or of other rows, or by another model."""
    try:
        table = pq.read_table(path)
        record = json.loads((table.schema.metadata or {})[METADATA])
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: cannot be read ({error}); give a file that dialemb embed wrote") from None
    except (KeyError, ValueError, RecursionError):
        raise InputError(f"{path}: does not say whose vectors it has; write it again by dialemb embed") from None
    with told(path, "write it again by dialemb embed"):
        if (got := record.get("rows", "dialogues")) != rows:
            raise InputError(f"{path}: got vectors of {got}, expected those of {rows}; embed with --level {rows}")
        if fingerprint(model or record["model"]) != record["weights"]:
            raise InputError(
                f"{path}: got vectors of {record['model']} ({record['weights']}), expected those of "
                f"{model or 'that model as it is now'}; embed the dialogues again"
            )
        vectors = table["embedding"].combine_chunks().flatten().to_numpy().reshape(len(table), record["width"])
        if not np.isfinite(vectors).all():
            raise InputError(f"{path}: got vectors that are not finite; write it again by dialemb embed")
        turns = table["turn"].to_pylist() if rows == "utterances" else []
        ids, said = table["id"].to_pylist(), table["said"].to_pylist()
        return StoredVectors(path, record["model"], record["weights"], ids, turns, said, vectors)


class StoredEncoder:
    """Stored vectors as an encoder of the dialogues that they are of."""

    def __init__(self, stored: StoredVectors, dialogues: Sequence[Dialogue], place: str) -> None:
        vectors = stored.of_dialogues(dialogues, place)
        self.name, self.weights, self._path = stored.model, stored.weights, stored.path
        self._rows = dict(zip(map(dialogue_key, dialogues), vectors, strict=True))

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Returns the vectors of dialogues, (N, D); an InputError says that one of them has none."""
        keys = list(map(dialogue_key, dialogues))
        if not self._rows.keys() >= set(keys):
            raise InputError(
                f"--vectors {self._path}: holds whole dialogues, but this task embeds parts of them; leave --vectors "
                "out and name the model, or choose --task domains"
            )
        return np.stack([self._rows[key] for key in keys])
