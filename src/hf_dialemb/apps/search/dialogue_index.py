"""An index of dialogues that grows: a LanceDB table of vectors, words and what is known of them.

LanceDB keeps versions. Dialogues are added in batches, each of which is one version: a run that is
killed leaves the batches before, and run again it adds the rest.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...data import load_dialogues
from ...dialogue import Dialogue, metadata_columns
from ...encoders import Encoder, load_encoder
from ...encoders.specs import trained_encoder
from ...errors import InputError
from ...storage.files import locked
from .hits import Hits, IndexHit, check_top
from .index_rows import identified, rows_of, schema_of, typed_column
from .indexed_turns import find_turns
from .lance_tables import (
    checked_condition,
    connected,
    explained_failures,
    nearest_rows,
    opened,
    quoted,
    unchanged_words,
)
from .search import query_vector

LEVELS = ("dialogues", "turns")
"""What has a row; a turn is found by its words and by its meaning in its surroundings."""

LARGE = 50_000
"""With more rows than this, an approximate index is made of the vectors; fewer are all compared."""

BATCH = 1_000  # dialogues that are embedded and added at once: what a killed run loses at most
_NAME = re.compile(r"(?!\.+lance$)[\w.-]{1,200}\.lance", re.ASCII)  # what LanceDB takes


class DialogueIndex:
    """Dialogues in a LanceDB table, which other programs open too.

    A folder whose name ends in ``.lance``.

    Example:
        >>> index = hf_dialemb.DialogueIndex("calls.lance", "dialogue-static")
        >>> index.add(dialogues)
        >>> index.search("my card was stolen", where="time > '2026-01-01'").to_pandas()

    Its columns are ``id``, ``role`` (of turns), ``turn`` (from 0 on), ``text`` (how it begins),
    ``time`` (ISO 8601, in UTC where an offset is known), ``domains``, ``topic``, ``digest`` and
    ``vector``, and one for each name of the dialogues' metadata, such as ``team``.
    """

    def __init__(self, path: str | Path, encoder: Any = None, level: str | None = None) -> None:
        """Open an index, or make one if the folder does not exist and an encoder is given.

        Args:
            path: The folder.
            encoder: A checkpoint folder, Hub id or spec, or what `load_encoder` made of one; by
                default that of the index.
            level: One of `LEVELS`; by default that of the index, of a new one dialogues.

        Raises:
            InputError: The index is of another encoder or level.
        """
        self.path = Path(path).expanduser().resolve()
        if not _NAME.fullmatch(self.path.name):
            wanted = (
                "a name of at most 200 of the letters a to z, digits, _ and - that ends in .lance"
            )
            raise InputError(f"index {path}: expected {wanted}; rename it")
        if level not in (None, *LEVELS):
            raise InputError(f"level: got {level!r}, expected one of {', '.join(LEVELS)}")
        self._database = connected(self.path.parent)
        newest = opened(self._database, self.path)
        options: dict[str, Any] = {}
        if isinstance(encoder, Encoder) and encoder.source:
            options = encoder.source.options
        elif encoder is None:
            if not newest:
                made_by = f"make one with dialemb index FILE --output {path}"
                raise InputError(f"index {path}: no such index; {made_by}")
            encoder, options = newest[1]["model"], newest[1]["options"]
        model = str(getattr(encoder, "spec", encoder))
        if not model or not isinstance(encoder, str | Path | Encoder):
            raise InputError(
                "encoder: got a model in memory, which none could load later; give its folder or "
                "Hub id"
            )
        self._encoder = encoder if isinstance(encoder, Encoder) else model
        self._record = {
            "model": model,
            "options": options,
            "weights": trained_encoder(self._encoder, **options).fingerprint,
            "level": level or (newest[1]["level"] if newest else LEVELS[0]),
        }
        self._table: Any = None
        self._refresh()

    def _refresh(self) -> None:
        """Open what others wrote since; refuse what they made of another model or level."""
        newest = opened(self._database, self.path)
        if newest is None:
            if self._table is not None:
                raise InputError(
                    f"index {self.path}: is no longer there; open or make an index again"
                )
            return
        table, record = newest
        if any(record[name] != self._record[name] for name in ("weights", "level")):
            raise InputError(
                f"index {self.path}: is of {_named_model(record)}, got {_named_model(self._record)}"
                "; name that model and level, or make another index"
            )
        self._table = table

    @property
    def encoder(self) -> Encoder:
        """What embeds dialogues; it is loaded when it is needed first."""
        if isinstance(self._encoder, str):
            self._encoder = load_encoder(self._encoder, **self._record["options"])
        return self._encoder

    def __len__(self) -> int:
        self._refresh()
        with explained_failures(self.path):
            return 0 if self._table is None else int(self._table.count_rows())

    def add(self, dialogues: Any, **reading: Any) -> int:
        """Add new dialogues, and replace those that changed under their id.

        A changed dialogue keeps its topic, and its former text stays on disk until `compact`.

        Args:
            dialogues: The forms of `hf_dialemb.data.load_dialogues`, or an iterator of `Dialogue`.
                One without an id gets that of its text.
            **reading: How files are read, as in `load_dialogues`.

        Returns:
            How many were embedded.

        Raises:
            InputError: Two have one id, or another run writes to the index.
        """
        if not isinstance(dialogues, Iterator):
            dialogues = iter(load_dialogues(dialogues, **reading))
        count = 0
        with self._locked():
            known = self._known()
            new = (
                item for item in identified(dialogues) if known.get(item[0], ("",))[0] != item[1]
            )
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
        if isinstance(ids, str):
            raise InputError(f"ids: got {ids!r}, expected a list of ids; put it into a list")
        with self._locked():
            there = self._known().keys() & set(ids)
            if there:
                self._table.delete(f"id IN ({quoted(there)})")
        return len(there)

    def label(self, topics: Mapping[str, str]) -> int:
        """Set the topics of dialogues by id; return the number that is there."""
        with self._locked():
            known = self._known().keys() & topics.keys()
            if known:
                values = {"id": list(known), "topic": [topics[name] for name in known]}
                rows = pa.table(values, pa.schema([("id", pa.string()), ("topic", pa.string())]))
                self._table.merge_insert("id").when_matched_update_all().execute(rows)
        return len(known)

    def compact(self) -> None:
        """Write all rows anew, so that deleted and former texts leave the disk.

        Searches that other processes began before may fail; those that they begin later do not.
        """
        with self._locked():
            if self._table is not None:
                self._table = self._database.create_table(
                    self.path.stem,
                    self._table.search().to_batches(),
                    schema=self._table.schema,
                    mode="overwrite",
                )
                self._tidy(timedelta(milliseconds=1), delete_unverified=True)

    def search(self, query: Any, top: int = 5, where: str | None = None) -> Hits:
        """Find the rows nearest to a text or a dialogue by cosine.

        Turns are found by the words of a text too, and by a speaker and a time that it names, as by
        `TurnIndex`.

        Args:
            query: A text, or a dialogue as a list of messages or a `Dialogue`.
            top: How many are wanted, at least 1.
            where: A condition in SQL on the columns, such as ``"topic = 'cards' and time >
                '2026-01-01'"``.

        Raises:
            InputError: The index is empty, or the condition is not one whole expression or names no
                column.
        """
        check_top(top)
        vector = query_vector(self.encoder, query)
        return self._nearest(vector, top, where, words=query if isinstance(query, str) else "")

    def near(self, id: str, top: int = 5, where: str | None = None) -> Hits:
        """Find the rows nearest to the first row of a dialogue of the index, without its own."""
        check_top(top)
        rows = []
        if len(self):
            with explained_failures(self.path):
                rows = self._table.search().where(f"id IN ({quoted([id])})").limit(1).to_list()
        if not rows:
            raise InputError(
                f"id: got {id!r}, which no dialogue of {self.path.name} has; look for its id"
            )
        vector = np.array(rows[0]["vector"], dtype=np.float32)
        return self._nearest(vector, top, where, f"id <> {quoted([id])}")

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
        conditions = [other] if other else []
        if where is not None:
            conditions.append(checked_condition(self._table, where))
        condition = " AND ".join(conditions)
        top = min(top, count)
        with explained_failures(self.path, where or ""):
            if words and self._record["level"] == "turns":
                return find_turns(self._table, words, vector, top, condition)
            asked = nearest_rows(self._table, vector, top)
            if condition:
                asked = asked.where(condition, prefilter=True)
            return Hits([_hit(place, row) for place, row in enumerate(asked.to_list())])

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with locked(self.path, "make another index"), explained_failures(self.path):
            self._refresh()
            yield

    def _known(self) -> dict[str, tuple[str, str | None]]:
        """Return the digest and the topic of each dialogue by its id."""
        if self._table is None:
            return {}
        rows = self._table.search().select(["id", "digest", "topic"]).to_arrow()
        names, digests, topics = (rows[name].to_pylist() for name in ("id", "digest", "topic"))
        return dict(zip(names, zip(digests, topics, strict=True), strict=True))

    def _write(
        self, batch: Sequence[tuple[str, str, Dialogue]], replaced: Mapping[str, str | None]
    ) -> None:
        """Write dialogues in one version, in place of the rows of those that they replace.

        These keep their topics.
        """
        dialogues = [dialogue for *_, dialogue in batch]
        level = self._record["level"]
        if level == "turns":
            vectors = self.encoder.encode_turns(dialogues).vectors
        else:
            vectors = self.encoder.encode(dialogues)
        rows: list[dict[str, Any]] = []
        owners = []
        for name, digest, dialogue in batch:
            for row in rows_of(dialogue, level):
                row |= {"id": name, "digest": digest, "topic": replaced.get(name)}
                rows.append({**row, "vector": vectors[len(rows)]})
                owners.append(dialogue)
        schema = schema_of(vectors.shape[1], self._record)
        if self._table is None:
            self._table = self._database.create_table(self.path.stem, schema=schema, exist_ok=True)
        data = self._with_metadata(pa.Table.from_pylist(rows, schema), owners)
        merge = self._table.merge_insert(["id", "role", "turn"])
        merge = merge.when_matched_update_all().when_not_matched_insert_all()
        if replaced:
            merge = merge.when_not_matched_by_source_delete(f"id IN ({quoted(replaced)})")
        merge.execute(data)

    def _with_metadata(self, data: pa.Table, dialogues: Sequence[Dialogue]) -> pa.Table:
        """Add a column for each name of metadata, to the index too where it is new."""
        known = {field.name: field.type for field in self._table.schema}
        columns = metadata_columns(dialogues, data.schema.names)
        for name in {**known, **columns}:
            values = columns.get(name, [None] * len(data))
            is_empty = name not in known and all(value is None for value in values)
            if name in data.schema.names or is_empty:
                continue
            column = typed_column(values, known.get(name))
            if name not in known:
                self._table.add_columns(pa.field(name, column.type))
            elif column.type != known[name]:
                got = next(value for value in values if value is not None)
                raise InputError(
                    f"metadata {name}: got {got!r}, expected {known[name]} as in {self.path}; make "
                    "another index"
                )
            data = data.append_column(name, column)
        return data

    def _tidy(
        self, older_than: timedelta | None = None, *, delete_unverified: bool = False
    ) -> None:
        """Merge small files, and make or extend the indices of words and of many vectors."""
        indexed = [index.columns for index in self._table.list_indices()]
        if self._table.count_rows() > LARGE and ["vector"] not in indexed:
            self._table.create_index(
                metric="cosine", vector_column_name="vector", index_type="IVF_PQ"
            )
        if self._record["level"] == "turns" and ["words"] not in indexed:
            self._table.create_index("words", config=unchanged_words())
        self._table.optimize(cleanup_older_than=older_than, delete_unverified=delete_unverified)


def _named_model(record: Mapping[str, Any]) -> str:
    return f"{record['level']} by {record['model']} ({record['weights']})"


def _hit(place: int, row: Mapping[str, Any]) -> IndexHit:
    return IndexHit(
        place,
        row["id"],
        1 - row["_distance"],
        tuple(row["domains"]),
        row["text"],
        role=row["role"],
        turn=row["turn"],
        time=row["time"] or "",
        topic=row["topic"] or "",
    )
