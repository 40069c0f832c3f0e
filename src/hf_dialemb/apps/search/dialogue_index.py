"""An index of dialogues that grows: a LanceDB table of vectors, words and what is known of them.

LanceDB keeps versions. Dialogues are added in batches, each of which is one version: a run that is
killed leaves the batches before, and run again it adds the rest.
"""

import contextlib
import csv
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...data import load_dialogues
from ...dialogue import Dialogue, metadata_columns
from ...encoders import Encoder, load_encoder
from ...encoders.specs import find_encoder, trained_encoder
from ...encoders.stored_vectors import METADATA
from ...errors import InputError
from ...methods.sessions import spoken
from ...storage.files import locked
from ..files.table_rows import plain_cell
from .hits import Hits, IndexHit, beginning, check_top
from .indexed_turns import find_turns
from .lance_tables import (
    checked_condition,
    connected,
    explained_failures,
    nearest_rows,
    opened,
    quoted,
)
from .search import query_vector
from .word_index import words_of

LEVELS = ("dialogues", "speakers", "utterances", "turns")
"""What has a row; a turn is an utterance in its surroundings, which is found by its words too."""

LARGE = 50_000
"""With more rows than this, an approximate index is made of the vectors; fewer are all compared."""

BATCH = 1_000  # dialogues that are embedded and added at once: what a killed run loses at most
_COLUMNS = ("id", "role", "turn", "text", "time", "domains", "topic", "digest", "vector")
_OF_TURNS = ("speaker", "words")


class DialogueIndex:
    """Dialogues in a LanceDB table, which other programs open too.

    A folder whose name ends in ``.lance``.

    Example:
        >>> index = hf_dialemb.DialogueIndex("calls.lance", "dialogue-static")
        >>> index.add(dialogues)
        >>> index.search("my card was stolen", where="time > '2026-01-01'").to_pandas()

    Its columns are ``id``, ``role`` (of speakers and utterances), ``turn`` (from 0 on), ``text``
    (how it begins), ``time`` (ISO 8601, in UTC where an offset is known), ``domains``, ``topic``,
    ``digest`` and ``vector``, and one for each name of the dialogues' metadata, such as ``team``.
    """

    def __init__(self, path: str | Path, encoder: Any = None, level: str | None = None) -> None:
        """Open an index, or make one if the folder does not exist and an encoder is given.

        The encoder is a checkpoint folder, Hub id or spec, or what `load_encoder` made of one; the
        level is one of `LEVELS`. By default they are the index's, of a new one dialogues. An
        InputError says that it is of others.
        """
        self.path = Path(path).expanduser().resolve()
        if not re.fullmatch(
            r"(?!\.+lance$)[\w.-]{1,200}\.lance", self.path.name, re.ASCII
        ):  # what LanceDB takes
            wanted = (
                "a name of at most 200 of the letters a to z, digits, _ and - that ends in .lance"
            )
            raise InputError(f"index {path}: expected {wanted}; rename it")
        if level not in (None, *LEVELS):
            raise InputError(f"level: got {level!r}, expected one of {', '.join(LEVELS)}")
        spec = None if encoder is None else str(getattr(encoder, "spec", encoder))
        if spec == "" or not isinstance(encoder, str | Path | Encoder | None):
            raise InputError(
                "encoder: got a model in memory, which none could load later; give its folder or "
                "Hub id"
            )
        self._database = connected(self.path.parent)
        self._encoder: str | Encoder = encoder if isinstance(encoder, Encoder) else spec or ""
        self._table: Any = None
        self._record: dict[str, Any] = {"level": level} if level else {}
        self._refresh()
        if self._table is None:
            if spec is None:
                raise InputError(
                    f"index {path}: no such index; make one with dialemb index FILE --output {path}"
                )
            trained_encoder(self._encoder)
            self._record = {"model": spec, "weights": self._weights(), "level": level or LEVELS[0]}

    def _refresh(self) -> None:
        """Open what others wrote since.

        Refuse what they made of another model or level, or took away.
        """
        newest = opened(self._database, self.path)
        if newest is None:
            if self._table is not None:
                raise InputError(
                    f"index {self.path}: is no longer there; open or make an index again"
                )
            return
        table, record = newest
        self._encoder = self._encoder or record["model"]
        level, got = (
            self._record.get("level", record["level"]),
            getattr(self._encoder, "spec", self._encoder),
        )
        if record != self._record and self._weights() != record["weights"]:
            got = "that model with other weights" if got == record["model"] else got
            is_of = f"is of {record['model']} ({record['weights']})"
            raise InputError(
                f"index {self.path}: {is_of}, got {got}; name that model, or make another index"
            )
        if level != record["level"]:
            raise InputError(
                f"index {self.path}: is of {record['level']}, got the level {level}; make another "
                "index"
            )
        self._table, self._record = table, record

    @property
    def encoder(self) -> Encoder:
        """What embeds dialogues; it is loaded when it is needed first."""
        self._encoder = load_encoder(self._encoder)
        return self._encoder

    def _weights(self) -> str:
        return (
            self._encoder.fingerprint
            if isinstance(self._encoder, Encoder)
            else find_encoder(self._encoder).fingerprint
        )

    def __len__(self) -> int:
        self._refresh()
        with explained_failures(self.path):
            return 0 if self._table is None else int(self._table.count_rows())

    def add(self, dialogues: Any, **reading: Any) -> int:
        """Add new dialogues, and replace those that changed under their id.

        Return how many were embedded.

        A changed dialogue keeps its topic, and its former text stays on disk until `compact`.
        Dialogues come in the forms of `hf_dialemb.data.load_dialogues`, with its options, or as an
        iterator of `Dialogue`. One without an id gets that of its text. An InputError says that two
        have one id, or that another run writes to the index.
        """
        loaded = (
            dialogues
            if isinstance(dialogues, Iterator)
            else iter(load_dialogues(dialogues, **reading))
        )
        count = 0
        with self._locked():
            known, seen = self._known(), dict[str, str]()
            new = (item for item in _named(loaded, seen) if known.get(item[0], ("",))[0] != item[1])
            while batch := list(islice(new, BATCH)):
                self._write(batch, {name: known[name][1] for name, *_ in batch if name in known})
                count += len(batch)
            if count:
                self._tidy()
        return count

    def delete(self, ids: Iterable[str]) -> int:
        """Delete dialogues by id; return the number that was there.

        Their text stays on disk until `compact`.
        """
        wanted = (
            None if isinstance(ids, str | bytes) or not isinstance(ids, Iterable) else list(ids)
        )
        if wanted is None or not all(isinstance(name, str) for name in wanted):
            raise InputError(
                f"ids: got {ids!r}, expected a list of ids, which are texts; put them into a list"
            )
        with self._locked(), explained_failures(self.path):
            there = self._known().keys() & set(wanted)
            if there:
                self._table.delete(f"id IN ({quoted(there)})")
        return len(there)

    def label(self, topics: Mapping[str, str]) -> int:
        """Set the topics of dialogues by id; return the number that is there."""
        pairs = topics.items() if isinstance(topics, Mapping) else [(None, None)]
        if not all(
            isinstance(name, str) and isinstance(topic, str | None) for name, topic in pairs
        ):
            raise InputError(
                f"topics: got {topics!r:.200}, expected a mapping of ids to topics as texts; write "
                "it so"
            )
        with self._locked(), explained_failures(self.path):
            known = self._known().keys() & topics.keys()
            if known:
                values = {"id": list(known), "topic": [topics[name] for name in known]}
                rows = pa.table(values, pa.schema([("id", pa.string()), ("topic", pa.string())]))
                self._table.merge_insert("id").when_matched_update_all().execute(rows)
        return len(known)

    def compact(self) -> None:
        """Write all rows anew and remove what is older, so that deleted and former texts leave the
        disk.

        Searches that other processes began before may fail; those that they begin later do not.
        """
        with self._locked(), explained_failures(self.path):
            if self._table is not None:
                rows, how = (
                    self._table.search().to_batches(),
                    {"schema": self._table.schema, "mode": "overwrite"},
                )
                self._table = self._database.create_table(self.path.stem, rows, **how)
                self._tidy(timedelta(milliseconds=1), delete_unverified=True)

    def search(self, query: Any, top: int = 5, where: str | None = None) -> Hits:
        """Find the rows nearest to a text, or to a dialogue as a list of messages or a `Dialogue`,
        by cosine.

        Turns are found by the words of a text too, and by a speaker and a time that it names, as by
        `TurnIndex`. ``where`` is a condition in SQL on the columns, such as ``"topic = 'cards' and
        time > '2026-01-01'"``. An InputError says that the index is empty, or the condition is not
        one whole expression or names no column.
        """
        check_top(top)
        vector = query_vector(self._encoder, query)
        return self._nearest(vector, top, where, words=query if isinstance(query, str) else "")

    def near(self, id: str, top: int = 5, where: str | None = None) -> Hits:
        """Find the rows nearest to a dialogue of the index, by its first row, without that
        dialogue.
        """
        check_top(top)
        rows = []
        if len(self) and isinstance(id, str):
            with explained_failures(self.path):
                rows = self._table.search().where(f"id IN ({quoted([id])})").limit(1).to_list()
        if not rows:
            raise InputError(
                f"id: got {id!r}, which no dialogue of {self.path.name} has; look for its id"
            )
        return self._nearest(
            np.array(rows[0]["vector"], dtype=np.float32), top, where, f"id <> {quoted([id])}"
        )

    def _nearest(
        self,
        vector: NDArray[np.float32],
        top: int,
        where: str | None,
        other: str = "",
        words: str = "",
    ) -> Hits:
        count = len(self)
        if not count:
            raise InputError(f"index {self.path}: is empty; add dialogues with dialemb index")
        conditions = [
            *([other] if other else []),
            *([] if where is None else [checked_condition(self._table, where)]),
        ]
        condition, top = " AND ".join(conditions), min(top, count)
        with explained_failures(self.path, self._table, where or ""):
            if words and self._record["level"] == "turns":
                return find_turns(self._table, words, vector, top, condition)
            asked = nearest_rows(self._table, vector, top)
            rows = (asked.where(condition, prefilter=True) if condition else asked).to_list()
            return Hits([_hit(place, row) for place, row in enumerate(rows)])

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with locked(self.path, "make another index"):
            self._refresh()
            yield

    def _known(self) -> dict[str, tuple[str, str | None]]:
        """Return the digest and the topic of each dialogue by its id."""
        if self._table is None:
            return {}
        with explained_failures(self.path):
            rows = self._table.search().select(["id", "digest", "topic"]).to_arrow()
        names, digests, topics = (rows[name].to_pylist() for name in ("id", "digest", "topic"))
        return dict(zip(names, zip(digests, topics, strict=True), strict=True))

    def _write(
        self, batch: Sequence[tuple[str, str, Dialogue]], replaced: Mapping[str, str | None]
    ) -> None:
        """Write dialogues in one version, and delete the rows of those that they replace, whose
        topics they keep.
        """
        rows = [
            row
            for name, digest, dialogue in batch
            for row in _rows(name, digest, dialogue, self._record["level"])
        ]
        parts, whole = ([row.pop(name) for row in rows] for name in ("part", "whole"))
        if self._record["level"] == "turns":
            vectors = self.encoder.encode_turns([dialogue for *_, dialogue in batch]).vectors
        elif self._record["level"] == "utterances":
            vectors = self.encoder.encode_utterances([part.turns[0].content for part in parts])
        else:
            vectors = self.encoder.encode(parts)
        schema = _schema(vectors.shape[1], self._record)
        made = (
            {"topic": replaced.get(row["id"]), "vector": vector}
            for row, vector in zip(rows, vectors, strict=True)
        )
        data = pa.Table.from_pylist(
            [row | more for row, more in zip(rows, made, strict=True)], schema
        )
        with explained_failures(self.path):
            data = self._with_metadata(data, whole)
            if self._table is None:
                self._table = self._database.create_table(
                    self.path.stem, schema=data.schema, exist_ok=True
                )
            merge = self._table.merge_insert(["id", "role", "turn"])
            merge = merge.when_matched_update_all().when_not_matched_insert_all()
            if replaced:
                merge = merge.when_not_matched_by_source_delete(f"id IN ({quoted(replaced)})")
            merge.execute(data)

    def _with_metadata(self, data: pa.Table, dialogues: Sequence[Dialogue]) -> pa.Table:
        """Add a column for each name of metadata, to the table too where it is new."""
        known = {
            field.name: field.type for field in (() if self._table is None else self._table.schema)
        }
        columns = metadata_columns(dialogues, data.schema.names)
        for name in [name for name in {**known, **columns} if name not in data.schema.names]:
            column = _metadata_column(columns.get(name, [None] * len(dialogues)), known.get(name))
            if column is None:
                got = next(value for value in columns[name] if value is not None)
                sentence = (
                    f"metadata {name}: got {got!r}, expected {known[name]} as in "
                    f"{self.path}; make another index"
                )
                raise InputError(sentence)
            if self._table is not None and name not in known and column.null_count < len(column):
                self._table.add_columns(pa.field(name, column.type))
            if name in known or column.null_count < len(column):
                data = data.append_column(name, column)
        return data

    def _tidy(
        self, older_than: timedelta | None = None, *, delete_unverified: bool = False
    ) -> None:
        """Merge small files, and make or extend the index of words and the approximate one of many
        vectors.
        """
        with explained_failures(self.path):
            indices = self._table.list_indices()
            if self._table.count_rows() > LARGE and not any(
                index.columns == ["vector"] for index in indices
            ):
                self._table.create_index(
                    metric="cosine", vector_column_name="vector", index_type="IVF_PQ"
                )
            if "words" in self._table.schema.names and not any(
                index.columns == ["words"] for index in indices
            ):
                self._table.create_index("words", config=_by_spaces())
            self._table.optimize(cleanup_older_than=older_than, delete_unverified=delete_unverified)


def read_topics(path: Path) -> dict[str, str]:
    """Read topics from a CSV with the columns ``id`` and ``topic``, or their names from `dialemb
    topics`.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = set(reader.fieldnames or ())
            if not {"id", "topic"} <= columns:
                got = ", ".join(reader.fieldnames or ()) or "none"
                remedy = "rename them, or give the dialogues.csv that dialemb topics wrote"
                raise InputError(
                    f"--labels {path}: got the columns {got}, expected id and topic; {remedy}"
                )
            # a dialogues.csv has both
            topic = "name" if {"name", "similarity"} <= columns else "topic"
            return {plain_cell(row["id"]): row[topic] for row in reader if row["id"] and row[topic]}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"--labels {path}: cannot be read ({error}); give a CSV in UTF-8"
        ) from None


def _metadata_column(values: Sequence[Any], known: pa.DataType | None) -> pa.Array | None:
    """Make a column of numbers, booleans, lists of texts, or else texts.

    None if it is not of the known type.
    """
    kinds = {type(value) for value in values if value is not None}
    listed = kinds == {list} and all(
        isinstance(item, str) for value in values for item in value or ()
    )
    kind = pa.list_(pa.string()) if listed else pa.bool_() if kinds == {bool} else pa.string()
    kind = pa.float64() if kinds <= {int, float} else kind
    kind = known if known == pa.string() or (known and not kinds) else kind
    if kind == pa.string():
        values = [
            value if isinstance(value, str | None) else json.dumps(value, default=str)
            for value in values
        ]
    elif kind == pa.float64():
        # whole numbers of any size fit
        values = [None if value is None else float(value) for value in values]
    return pa.array(values, kind) if known in (None, kind) else None


def _by_spaces() -> Any:
    from lancedb.index import FTS

    options: dict[str, Any] = dict.fromkeys(
        ("lower_case", "stem", "remove_stop_words", "ascii_folding"), False
    )
    return FTS(base_tokenizer="whitespace", max_token_length=None, **options)


def _schema(width: int, record: Mapping[str, str]) -> pa.Schema:
    texts = dict.fromkeys(
        (*_COLUMNS, *(_OF_TURNS if record["level"] == "turns" else ())), pa.string()
    )
    types = {
        **texts,
        "turn": pa.int32(),
        "domains": pa.list_(pa.string()),
        "vector": pa.list_(pa.float32(), width),
    }
    return pa.schema(
        list(types.items()), metadata={METADATA: json.dumps({**record, "width": width})}
    )


def _named(
    dialogues: Iterable[Dialogue], seen: dict[str, str]
) -> Iterator[tuple[str, str, Dialogue]]:
    """Yield dialogues with their ids and digests of all else.

    The digest stands in for a missing id.
    """
    for dialogue in dialogues:
        record = {**dialogue.to_json(), "id": ""}
        digest = hashlib.sha256(json.dumps(record, default=str).encode()).hexdigest()[:32]
        name = dialogue.id or digest
        if name in seen:
            if seen[name] == digest:
                continue
            raise InputError(
                f"id: got {name!r} twice for different dialogues; give each dialogue its own id"
            )
        seen[name] = digest
        yield name, digest, dialogue


def _rows(name: str, digest: str, dialogue: Dialogue, level: str) -> Iterator[dict[str, Any]]:
    if level in ("utterances", "turns"):
        parts = [(turn.role, place, Dialogue((turn,))) for place, turn in enumerate(dialogue.turns)]
    elif level == "speakers":
        by_role = {
            role: tuple(turn for turn in dialogue.turns if turn.role == role)
            for role in dialogue.roles
        }
        parts = [(role, 0, Dialogue(turns)) for role, turns in by_role.items()]
    else:
        parts = [("", 0, dialogue)]
    known = {
        "id": name,
        "time": _in_utc(dialogue.time, name),
        "domains": list(dialogue.domains),
        "digest": digest,
    }
    for role, place, part in parts:
        row = {**known, "role": role, "turn": place, "text": beginning(part)}
        if level == "turns":
            (turn,) = part.turns
            row |= {
                "text": turn.content,
                "speaker": turn.name,
                "words": " ".join(words_of(spoken(turn))),
            }
            row["time"] = _in_utc(turn.time, name) or row["time"]
        yield {**row, "part": part, "whole": dialogue}


def _in_utc(time: str, name: str) -> str | None:
    if not time:
        return None
    try:
        moment = datetime.fromisoformat(time)
        return (
            moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
        ).isoformat()
    except (ValueError, OverflowError):
        expected = "a time of the years 1 to 9999 in UTC, such as 2026-01-31T14:05:00"
        raise InputError(
            f"dialogue {name!r}, field time: got {time!r}, expected {expected}; correct it"
        ) from None


def _hit(place: int, row: Mapping[str, Any]) -> IndexHit:
    known = {
        "role": row["role"],
        "turn": row["turn"],
        "time": row["time"] or "",
        "topic": row["topic"] or "",
    }
    return IndexHit(
        place, row["id"], 1 - row["_distance"], tuple(row["domains"]), row["text"], **known
    )
