"""An index of dialogues that grows: a LanceDB table of vectors and what is known of them, searched by meaning.

LanceDB keeps versions. Dialogues are added in batches, each of which is one version: a run that is killed leaves the
batches before, and run again it adds the rest.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..corpora import load_dialogues
from ..corpora.own.tables import plain_cell
from ..dialogue import Dialogue, metadata_columns
from ..encoders import Encoder, load_encoder
from ..encoders.specs import fingerprint, trained_encoder
from ..encoders.stored_vectors import METADATA
from ..errors import InputError
from ..runs.files import locked
from .hits import Hit, Hits, beginning, check_top
from .search import query_vector

LEVELS = ("dialogues", "speakers", "utterances")
"""What has a row."""

LARGE = 50_000
"""With more rows than this, an approximate index is made of the vectors; fewer are all compared."""

BATCH = 1_000  # dialogues that are embedded and added at once: what a killed run loses at most
_COLUMNS = ("id", "role", "turn", "text", "time", "domains", "topic", "digest", "vector")
_BEGUN = {".lock", "data", "_transactions", "_versions"}
_REFINED = 20  # times the wanted rows; as many are compared exactly after an approximate search


@dataclass(frozen=True)
class IndexHit(Hit):
    """What was found in an index; its ``row`` is its place among what was found."""

    role: str = ""
    turn: int = 0
    time: str = ""
    topic: str = ""


class DialogueIndex:
    """Dialogues in a LanceDB table, which other programs open too: a folder whose name ends in ``.lance``.

    Example:
        >>> index = hf_dialemb.DialogueIndex("calls.lance", "dialogue-static")
        >>> index.add(dialogues)
        >>> index.search("my card was stolen", where="time > '2026-01-01'").to_pandas()

    Its columns are ``id``, ``role`` (of speakers and utterances), ``turn`` (from 0 on), ``text`` (how it begins),
    ``time`` (ISO 8601, in UTC where an offset is known), ``domains``, ``topic``, ``digest`` and ``vector``, and one for
    each name of the dialogues' metadata, such as ``team``.
    """

    def __init__(self, path: str | Path, encoder: Any = None, level: str | None = None) -> None:  # noqa: ANN401
        """Open an index, or make one if the folder does not exist and an encoder is given.

        The encoder is a checkpoint folder, Hub id or spec, or what `load_encoder` made of one; the level is one of
        `LEVELS`. By default they are the index's, of a new one dialogues. An InputError says that it is of others.
        """
        self.path = Path(path).expanduser().resolve()
        if not re.fullmatch(r"[\w.-]+\.lance", self.path.name):
            raise InputError(
                f"index {path}: expected a name of letters, digits, _ and - that ends in .lance; rename it"
            )
        if level not in (None, *LEVELS):
            raise InputError(f"level: got {level!r}, expected one of {', '.join(LEVELS)}")
        spec = None if encoder is None else str(getattr(encoder, "spec", encoder))
        if spec == "" or not isinstance(encoder, str | Path | Encoder | None):
            raise InputError("encoder: got a model in memory, which none could load later; give its folder or Hub id")
        self._database = _lancedb().connect(str(self.path.parent))
        self._table = self._open()
        self._encoder: str | Encoder = encoder if isinstance(encoder, Encoder) else spec or ""
        if self._table is None:
            if spec is None:
                raise InputError(f"index {path}: no such index; make one with dialemb index FILE --output {path}")
            trained_encoder(self._encoder)
            self._record = {"model": spec, "weights": self._weights(), "level": level or LEVELS[0]}
            return
        self._record = json.loads(self._table.schema.metadata[METADATA])
        self._encoder = self._encoder or self._record["model"]
        if self._weights() != self._record["weights"]:
            raise InputError(
                f"index {path}: is of {self._record['model']} ({self._record['weights']}), got "
                f"{spec or 'that model with other weights'}; name that model, or make another index"
            )
        if level not in (None, self._record["level"]):
            raise InputError(f"index {path}: is of {self._record['level']}, got the level {level}; make another index")

    @property
    def encoder(self) -> Encoder:
        """What embeds dialogues; it is loaded when it is needed first."""
        self._encoder = load_encoder(self._encoder)
        return self._encoder

    def _weights(self) -> str:
        return self._encoder.fingerprint if isinstance(self._encoder, Encoder) else fingerprint(self._encoder)

    def __len__(self) -> int:
        return 0 if self._table is None else int(self._table.count_rows())

    def add(self, dialogues: Any, **reading: Any) -> int:  # noqa: ANN401 - see load_dialogues
        """Add new dialogues, and replace dialogues whose text changed under their id; return how many were embedded.

        They come in the forms of `hf_dialemb.corpora.load_dialogues`, with its options, or as an iterator of
        `Dialogue`. One without an id gets that of its text. An InputError says that two have one id, or that another
        run writes to the index.
        """
        loaded = dialogues if isinstance(dialogues, Iterator) else iter(load_dialogues(dialogues, **reading))
        count = 0
        with self._locked():
            known, seen = self._digests(), dict[str, str]()
            new = (item for item in _named(loaded, seen) if known.get(item[0]) != item[1])
            while batch := list(islice(new, BATCH)):
                self._write(batch, [name for name, *_ in batch if name in known])
                count += len(batch)
            if count:
                self._tidy()
        return count

    def delete(self, ids: Iterable[str]) -> int:
        """Delete dialogues by id; return the number that was there."""
        ids = list(ids)
        there = self._digests().keys() & set(ids)
        if there:
            with self._locked():
                self._table.delete(f"id IN ({_quoted(there)})")
        return len(there)

    def label(self, topics: Mapping[str, str]) -> int:
        """Set the topics of dialogues by id; return the number that is there."""
        known = {name: topic for name, topic in topics.items() if name in self._digests()}
        if known:
            rows = pa.table({"id": pa.array(known.keys(), pa.string()), "topic": pa.array(known.values(), pa.string())})
            with self._locked():
                self._table.merge_insert("id").when_matched_update_all().execute(rows)
        return len(known)

    def search(self, query: Any, top: int = 5, where: str | None = None) -> Hits:  # noqa: ANN401 - see search
        """Find the rows nearest to a text, or to a dialogue as a list of messages or a `Dialogue`, by cosine.

        ``where`` is a condition in SQL on the columns, such as ``"topic = 'cards' and time > '2026-01-01'"``. An
        InputError says that the index is empty, or the condition is no SQL or names no column.
        """
        return self._nearest(query_vector(self._encoder, query), top, where)

    def near(self, id: str, top: int = 5, where: str | None = None) -> Hits:
        """Find the rows nearest to a dialogue of the index, by its first row, without that dialogue."""
        rows = [] if not len(self) else self._table.search().where(f"id IN ({_quoted([id])})").limit(1).to_list()
        if not rows:
            raise InputError(f"id: got {id!r}, which no dialogue of {self.path.name} has; look for its id")
        other = f"id <> {_quoted([id])}" + (f" and ({where})" if where else "")
        return self._nearest(np.array(rows[0]["vector"], dtype=np.float32), top, other)

    def _nearest(self, vector: NDArray[np.float32], top: int, where: str | None) -> Hits:
        check_top(top)
        if not len(self):
            raise InputError(f"index {self.path}: is empty; add dialogues with dialemb index")
        asked = self._table.search(vector, vector_column_name="vector").distance_type("cosine").limit(top)
        asked = asked.nprobes(_REFINED).refine_factor(_REFINED)
        if where:
            asked = asked.where(where, prefilter=True)
        try:
            rows = asked.to_list()
        except (ValueError, RuntimeError, OSError) as error:
            columns = ", ".join(name for name in self._table.schema.names if name not in ("digest", "vector"))
            reason = re.split(r", /|\. Valid|\n", str(error).removeprefix("Invalid input, "))[0]
            raise InputError(
                f"where: got {where!r}, which is no condition on the columns ({reason}); write it as \"topic = 'cards' "
                f"and time > '2026-01-01'\", with the columns {columns}"
            ) from None
        return Hits([_hit(place, row) for place, row in enumerate(rows)])

    def _open(self) -> Any:  # noqa: ANN401 - a lancedb table
        if not self.path.exists():
            return None
        try:
            table = self._database.open_table(self.path.stem)
        except (ValueError, OSError, RuntimeError):
            if self.path.is_dir() and {file.name for file in self.path.iterdir()} <= _BEGUN:
                return None  # of a run that was killed before its first batch
            table = None
        if table is None or METADATA not in (table.schema.metadata or {}):
            raise InputError(f"index {self.path}: is none that dialemb index made; choose another name")
        return table

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with locked(self.path, "make another index"):
            if self._table is not None:
                self._table.checkout_latest()
            yield

    def _digests(self) -> dict[str, str]:
        if self._table is None:
            return {}
        rows = self._table.search().select(["id", "digest"]).to_arrow()
        return dict(zip(rows["id"].to_pylist(), rows["digest"].to_pylist(), strict=True))

    def _write(self, batch: Sequence[tuple[str, str, Dialogue]], replaced: Sequence[str]) -> None:
        """Write dialogues in one version, and delete the rows of those that they replace."""
        rows = [row for name, digest, dialogue in batch for row in _rows(name, digest, dialogue, self._record["level"])]
        parts, whole = ([row.pop(name) for row in rows] for name in ("part", "whole"))
        if self._record["level"] == "utterances":
            vectors = self.encoder.encode_utterances([part.turns[0].content for part in parts])
        else:
            vectors = self.encoder.encode(parts)
        schema = _schema(vectors.shape[1], self._record)
        columns = [pa.array([row[name] for row in rows], schema.field(name).type) for name in schema.names[:-1]]
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
        data = self._with_metadata(pa.Table.from_arrays([*columns, column], schema=schema), whole)
        if self._table is None:
            self._table = self._database.create_table(self.path.stem, schema=data.schema, exist_ok=True)
        merge = self._table.merge_insert(["id", "role", "turn"]).when_matched_update_all().when_not_matched_insert_all()
        if replaced:
            merge = merge.when_not_matched_by_source_delete(f"id IN ({_quoted(replaced)})")
        merge.execute(data)

    def _with_metadata(self, data: pa.Table, dialogues: Sequence[Dialogue]) -> pa.Table:
        """Add a column for each name of metadata, to the table too where it is new."""
        known = {field.name: field.type for field in (() if self._table is None else self._table.schema)}
        columns = metadata_columns(dialogues, _COLUMNS)
        for name in {**dict.fromkeys(known), **columns}.keys() - set(_COLUMNS):
            values = columns.get(name, [None] * len(dialogues))
            try:
                column = pa.array(values, known.get(name))
            except (pa.ArrowException, TypeError):
                got = next(value for value in values if value is not None)
                sentence = f"metadata {name}: got {got!r}, expected {known[name]} as in {self.path}; make another index"
                raise InputError(sentence) from None
            if self._table is not None and name not in known:
                self._table.add_columns(pa.field(name, column.type))
            data = data.append_column(name, column)
        return data

    def _tidy(self) -> None:
        """Merge small files, and make or extend the approximate index of many vectors."""
        if len(self) > LARGE and not self._table.list_indices():
            self._table.create_index(metric="cosine", vector_column_name="vector", index_type="IVF_PQ")
        self._table.optimize()


def read_topics(path: Path) -> dict[str, str]:
    """Read topics from a CSV with the columns ``id`` and ``topic``, or their names from `dialemb topics`."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = set(reader.fieldnames or ())
            if not {"id", "topic"} <= columns:
                got = ", ".join(reader.fieldnames or ()) or "none"
                remedy = "rename them, or give the dialogues.csv that dialemb topics wrote"
                raise InputError(f"--labels {path}: got the columns {got}, expected id and topic; {remedy}")
            topic = "name" if {"name", "similarity"} <= columns else "topic"  # a dialogues.csv has both
            return {plain_cell(row["id"]): row[topic] for row in reader if row["id"] and row[topic]}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"--labels {path}: cannot be read ({error}); give a CSV in UTF-8") from None


def _lancedb() -> Any:  # noqa: ANN401
    try:
        import lancedb
    except ImportError:
        raise InputError('lancedb is not installed; run: pip install "hf-dialemb[index]"') from None
    return lancedb


def _schema(width: int, record: Mapping[str, str]) -> pa.Schema:
    texts = dict.fromkeys(_COLUMNS, pa.string())
    types = {**texts, "turn": pa.int32(), "domains": pa.list_(pa.string()), "vector": pa.list_(pa.float32(), width)}
    return pa.schema(list(types.items()), metadata={METADATA: json.dumps({**record, "width": width})})


def _named(dialogues: Iterable[Dialogue], seen: dict[str, str]) -> Iterator[tuple[str, str, Dialogue]]:
    """Yield dialogues with their ids and digests of all else; the digest stands in for a missing id."""
    for dialogue in dialogues:
        record = {**dialogue.to_json(), "id": ""}
        digest = hashlib.sha256(json.dumps(record).encode()).hexdigest()[:32]
        name = dialogue.id or digest
        if name in seen:
            if seen[name] == digest:
                continue
            raise InputError(f"id: got {name!r} twice for different dialogues; give each dialogue its own id")
        seen[name] = digest
        yield name, digest, dialogue


def _rows(name: str, digest: str, dialogue: Dialogue, level: str) -> Iterator[dict[str, Any]]:
    if level == "utterances":
        parts = [(turn.role, place, Dialogue((turn,))) for place, turn in enumerate(dialogue.turns)]
    elif level == "speakers":
        by_role = {role: tuple(turn for turn in dialogue.turns if turn.role == role) for role in dialogue.roles}
        parts = [(role, 0, Dialogue(turns)) for role, turns in by_role.items()]
    else:
        parts = [("", 0, dialogue)]
    known = {"id": name, "time": _in_utc(dialogue.time), "domains": list(dialogue.domains), "topic": None}
    for role, place, part in parts:
        yield {
            **known,
            "digest": digest,
            "role": role,
            "turn": place,
            "text": beginning(part),
            "part": part,
            "whole": dialogue,
        }


def _in_utc(time: str) -> str | None:
    if not time:
        return None
    moment = datetime.fromisoformat(time)
    return (moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment).isoformat()


def _quoted(names: Iterable[str]) -> str:
    return ", ".join("'" + name.replace("'", "''") + "'" for name in names)


def _hit(place: int, row: Mapping[str, Any]) -> IndexHit:
    known = {"role": row["role"], "turn": row["turn"], "time": row["time"] or "", "topic": row["topic"] or ""}
    return IndexHit(place, row["id"], 1 - row["_distance"], tuple(row["domains"]), row["text"], **known)
