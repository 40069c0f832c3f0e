"""The topics of dialogues, found without labels: what ``dialemb topics`` does, from Python."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from ..checkpoints.pretrained import default_encoder
from ..corpora import load_dialogues
from ..dialogue import ROLES, Dialogue
from ..encoders.loading import load_encoder
from ..errors import InputError
from ..flow.average_linkage import average_linkage
from ..flow.exports import as_cell, table_of
from ..flow.extract import extract_flow
from ..flow.naming_by_model import find_writer
from ..flow.report import remove_report
from ..runs.files import write_atomically, write_json_atomically, write_text_atomically
from ..runs.frames import data_frame, notebook_view
from .clustering import find_clusters, placed
from .found import Clustered, Topic
from .naming import names_by_model, names_of, telling_phrases, text_of
from .page import picture_of, write_page
from .periods import counted_periods

PAGE, FLOWS, RECORD = "index.html", "flows", "topics.json"
TABLES = ("topics.csv", "dialogues.csv", "dialogues.parquet")
PHRASES = "phrases"
EXAMPLES = 5  # so many typical dialogues of a topic are named
FEWEST = 5  # a topic with fewer dialogues gets no flow of its own

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, repr=False)
class FoundTopics(Clustered):
    """The topics of N dialogues, as tables and files."""

    @property
    def topics(self) -> Any:  # noqa: ANN401 - a pandas.DataFrame
        """A row for each topic: id, name, size, share, phrases, and ids of typical dialogues."""
        return data_frame(self._topic_records())

    @property
    def dialogues(self) -> Any:  # noqa: ANN401 - a pandas.DataFrame
        """A row for each dialogue: id, topic, name, similarity (cosine with the mean of its topic), time."""
        return data_frame(self._dialogue_records())

    @property
    def over_time(self) -> Any:  # noqa: ANN401 - a pandas.DataFrame
        """A row for each period and a column for each topic, of counts; empty where no dialogue has a time."""
        counts = [{one.id: one.periods[row] for one in self.found} for row in range(len(self.periods))]
        return data_frame([{"period": begins, **of_one} for begins, of_one in zip(self.periods, counts, strict=True)])

    def page(self, path: str | Path, flows: Sequence[str] = ()) -> None:
        """Writes the page to look at: one HTML file; it links to flows of the topics with these ids beside it."""
        write_page(self, Path(path), frozenset(flows))

    def save(self, folder: str | Path, flows: Sequence[str] = ()) -> None:
        """Writes the page, ``topics.csv``, ``dialogues.csv`` and ``.parquet``, and ``topics.json``."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        place, topics, dialogues = Path(folder), self._topic_records(), self._dialogue_records()
        write_text_atomically(place / TABLES[0], _csv(topics))
        write_text_atomically(place / TABLES[1], _csv(dialogues))
        write_atomically(place / TABLES[2], partial(pq.write_table, pa.Table.from_pylist(dialogues)))
        pairs = zip(topics, self.found, strict=True)
        told = [{**record, "said": one.said, "periods": one.periods} for record, one in pairs]
        record = {"title": self.title, "dialogues": len(self.corpus), "unit": self.unit, "periods": self.periods}
        write_json_atomically(place / RECORD, {**record, "topics": told})
        self.page(place / PAGE, flows)

    def save_flows(self, folder: str | Path, model: str = "", **settings: Any) -> list[str]:  # noqa: ANN401
        """Writes a flow of each topic of at least `FEWEST` dialogues; returns their ids.

        Flows that an earlier call wrote, of topics that are no longer there, are removed.
        ``settings`` are those of `hf_dialemb.flow.extract.extract_flow`.
        """
        encoder, written = model or default_encoder("action"), []
        loaded = load_encoder(encoder)
        for number, one in enumerate(self.found):
            if one.size >= FEWEST:
                members = [self.corpus[row] for row in np.flatnonzero(self.labels == number)]
                output = Path(folder) / FLOWS / one.id
                extract_flow(members, loaded, output=output, title=one.name, model=encoder, overview=folder, **settings)
                written.append(one.id)
        _remove_flows(Path(folder), written)
        return written

    def __repr__(self) -> str:
        return f"{self.title}: {self.counts}"

    def _repr_html_(self) -> str:
        rows = ((one.id, one.name, f"{one.size:,}", ", ".join(one.phrases)) for one in self.found)
        return notebook_view(repr(self), picture_of(self), ("topic", "name", "dialogues", "phrases"), rows)

    def _topic_records(self) -> list[dict[str, Any]]:
        names = self.names_of_dialogues()
        fields = ("id", "name", "size", "phrases")
        return [
            {
                **{field: getattr(one, field) for field in fields},
                "share": one.size / len(self.corpus),
                "examples": tuple(names[row] for row in one.examples),
            }
            for one in self.found
        ]

    def _dialogue_records(self) -> list[dict[str, Any]]:
        rows = zip(self.names_of_dialogues(), self.labels.tolist(), self.similarity, self.corpus, strict=True)
        return [
            {
                "id": name,
                "topic": self.found[label].id,
                "name": self.found[label].name,
                "similarity": round(float(similarity), 4),
                "time": dialogue.time,
            }
            for name, label, similarity, dialogue in rows
        ]


def find_topics(
    dialogues: Any,  # noqa: ANN401 - see load_dialogues
    encoder: Any = None,  # noqa: ANN401 - see load_encoder
    *,
    topics: int | None = None,
    names: str = PHRASES,
    vectors: NDArray[np.float32] | None = None,
    title: str = "Topics",
    cache: str | Path | None = None,
    seed: int = 0,
) -> FoundTopics:
    """Finds what dialogues are about, without labels: clusters of whole dialogues, named and counted.

    Example:
        >>> topics = hf_dialemb.find_topics(dialogues)
        >>> topics.page("topics.html")

    Args:
        dialogues: In the forms of `hf_dialemb.corpora.load_dialogues`.
        encoder: What `load_encoder` takes; by default the best that is at hand.
        topics: How many there are; by default it is found.
        names: ``phrases``; or a language model: ``api:MODEL``, a folder or a Hub id.
        vectors: The dialogues' vectors, ``(N, D)``, if they are there already; then no encoder is needed.
        title: What the page is called.
        cache: A folder where answers of the language model are kept.
        seed: Of what is drawn at random.

    Raises:
        InputError: There is no dialogue, a setting is wrong, or vectors do not fit.
    """
    corpus = tuple(load_dialogues(dialogues))
    if topics is not None and not 1 <= topics <= len(corpus):
        raise InputError(f"topics: got {topics}, expected 1 to {len(corpus)}, the number of dialogues; change it")
    if names != PHRASES:
        find_writer(names)  # says what is wrong before anything is computed
    if vectors is None:
        vectors = load_encoder(encoder or default_encoder()).encode(list(corpus))
    if np.ndim(vectors) != 2 or len(vectors) != len(corpus) or not np.isfinite(vectors).all():
        raise InputError(
            f"vectors: got shape {np.shape(vectors)}, expected finite numbers, a row for each of {len(corpus)} "
            "dialogues; embed these again"
        )
    units = normalize(np.asarray(vectors, dtype=np.float32))
    labels = find_clusters(units, topics, seed)
    count = int(labels.max()) + 1
    means = np.stack([units[labels == number].mean(axis=0) for number in range(count)])
    similarity = np.einsum("nd,nd->n", units, normalize(means)[labels])
    tree = average_linkage(means, np.bincount(labels))
    periods, unit, counts = counted_periods([dialogue.time for dialogue in corpus], labels, count)
    found = _described(corpus, labels, similarity, counts, names, Path(cache) if cache else None)
    places = placed(units, seed)
    return FoundTopics(title, found, corpus, labels, similarity, tree, places, tuple(periods), unit)


def remove_topics(folder: Path) -> None:
    """Removes what `FoundTopics.save` wrote beside its page, and the flows of topics; files of others stay."""
    if (folder / RECORD).is_file():
        _remove_flows(folder, ())
        for name in (*TABLES, RECORD):
            (folder / name).unlink(missing_ok=True)


def _remove_flows(folder: Path, but: Collection[str]) -> None:
    for old in (folder / FLOWS).glob("topic-*"):
        if old.name not in but:
            remove_report(old, cache=True)
    with suppress(OSError):  # there is none, or there are some
        (folder / FLOWS).rmdir()


def _described(
    corpus: Sequence[Dialogue],
    labels: NDArray[np.int32],
    similarity: NDArray[np.float32],
    counts: NDArray[np.int64],
    names: str,
    cache: Path | None,
) -> tuple[Topic, ...]:
    members = [np.flatnonzero(labels == number) for number in range(len(counts))]
    typical = [rows[np.argsort(-np.round(similarity[rows], 6), kind="stable")][:EXAMPLES].tolist() for rows in members]
    groups = [[corpus[int(row)] for row in rows] for rows in members]
    texts = [[text_of(dialogue) for dialogue in group] for group in groups]
    phrases = telling_phrases(texts)
    given = names_of(phrases, texts)
    if names != PHRASES:
        told = [
            (name, of_one, [corpus[row] for row in rows])
            for name, of_one, rows in zip(given, phrases, typical, strict=True)
        ]
        given, reason = names_by_model(told, names, cache)
        if reason:
            logger.warning("some topics are named by their phrases: %s", reason)
    roles = [role for role in ROLES if any(role in dialogue.roles for dialogue in corpus)]
    said = {role: telling_phrases([[text_of(one, role) for one in group] for group in groups]) for role in roles}
    return tuple(
        Topic(
            f"topic-{number + 1}",
            given[number],
            len(rows),
            phrases[number],
            {role: of_role[number] for role, of_role in said.items()},
            tuple(typical[number]),
            tuple(counts[number].tolist()),
        )
        for number, rows in enumerate(members)
    )


def _csv(records: Sequence[dict[str, Any]]) -> str:
    """Writes a table; no cell is one that a spreadsheet would compute."""

    def cell(value: object) -> object:
        text = "; ".join(value) if isinstance(value, tuple) else value
        return as_cell(text) if isinstance(text, str) else text

    return table_of(list(records[0]), [list(map(cell, record.values())) for record in records])
