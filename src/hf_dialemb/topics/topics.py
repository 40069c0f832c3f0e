"""Find the topics of dialogues without labels: the one function of Python and of ``dialemb topics``."""

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checkpoints.pretrained import default_encoder
from ..corpora import load_dialogues
from ..dialogue import ROLES, Dialogue, metadata_columns
from ..encoders import load_encoder
from ..errors import InputError
from ..flow.clustering import average_linkage
from ..flow.exports import as_cell, table_of
from ..flow.extract import checked_vectors, extract_flow
from ..flow.folder import remove_report
from ..flow.language_model import find_writer
from ..metrics.vectors import unit
from ..runs.files import write_atomically, write_json_atomically, write_text_atomically
from ..runs.frames import counted, data_frame, notebook_view, write_page
from .clustering import counted_periods, find_clusters, placed, stability
from .naming import (
    customer,
    names_by_model,
    names_of,
    set_phrases,
    telling_phrases,
    typical_requests,
    without_set_phrases,
)

PAGE, FLOWS, RECORD = "index.html", "flows", "topics.json"
TABLES = ("topics.csv", "dialogues.csv", "dialogues.parquet")
PHRASES = "phrases"
_COLUMNS = ("id", "name", "sentence", "size", "stability", "phrases")
EXAMPLES = 5  # typical dialogues of a topic
FEWEST = 5  # a topic with fewer dialogues gets no flow of its own
MOST_CHARACTERS = 30_000_000  # of a page; dialogues beyond it are there without their turns

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Topic:
    """Dialogues about the same."""

    id: str  # topic-1 is the largest
    name: str
    size: int
    phrases: tuple[str, ...]  # that distinguish it from the others, the best first
    by_role: dict[str, tuple[str, ...]]  # the same of each role alone
    examples: tuple[int, ...]  # the places of its most typical dialogues
    periods: tuple[int, ...]  # its dialogues in each period
    sentence: str  # its most typical request, in the customer's words
    stability: str  # solid, fair or shaky; see `hf_dialemb.topics.clustering.stability`


@dataclass(frozen=True, eq=False, repr=False)
class Topics:
    """The topics of N dialogues, as tables and files."""

    title: str
    by_size: tuple[Topic, ...]  # the largest first
    corpus: tuple[Dialogue, ...]
    labels: NDArray[np.int32]  # the topic of each dialogue, (N,)
    similarity: NDArray[np.float32]  # the cosine of each with the mean of its topic, (N,)
    tree: NDArray[np.float64]  # joins of similar topics, (T - 1, 4); see `hf_dialemb.flow.clustering`
    places: NDArray[np.float32]  # on the map, (N, 2) in [0, 1]
    periods: tuple[str, ...]  # the beginnings of the periods that dialogues are counted in; empty without times
    unit: str  # hour, day, week, month or year

    @property
    def counts(self) -> str:
        """The numbers of dialogues and topics, in words."""
        return f"{counted(len(self.corpus), 'dialogue')}, {counted(len(self.by_size), 'topic')}"

    @property
    def ids(self) -> list[str]:
        """The ids of the dialogues, or their numbers as ``#12``."""
        return [dialogue.id or f"#{number}" for number, dialogue in enumerate(self.corpus, 1)]

    @property
    def topics(self) -> Any:  # noqa: ANN401 - a pandas.DataFrame
        """A row for each topic: id, name, sentence, size, stability, phrases, share, and ids of typical dialogues."""
        return data_frame(self._topic_records())

    @property
    def dialogues(self) -> Any:  # noqa: ANN401 - a pandas.DataFrame
        """A row for each dialogue: id, topic, name, similarity (cosine with the mean of its topic), time."""
        return data_frame(self._dialogue_records())

    def page(self, path: str | Path, flows: Sequence[str] = ()) -> None:
        """Write the page: one HTML file. It links to flows of the topics with these ids beside it."""
        folder, counts = Path(__file__).parent, self.counts.replace(", ", " · ")
        record, styles = self._page_record(flows), folder.parent / "flow" / "page"
        template, scripts = folder / "topics.html.jinja", ("tree.js", "topics.js")
        write_page(Path(path), template, record, scripts, styles=styles, title=self.title, counts=counts)

    def save(self, folder: str | Path, flows: Sequence[str] = ()) -> None:
        """Write the page, ``topics.csv``, ``dialogues.csv`` and ``.parquet``, and ``topics.json``."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        place, topics, dialogues = Path(folder), self._topic_records(), self._dialogue_records()
        write_text_atomically(place / TABLES[0], _csv(topics))
        write_text_atomically(place / TABLES[1], _csv(dialogues))
        write_atomically(place / TABLES[2], partial(pq.write_table, pa.Table.from_pylist(dialogues)))
        pairs = zip(topics, self.by_size, strict=True)
        records = [{**record, "said": topic.by_role, "periods": topic.periods} for record, topic in pairs]
        record = {"title": self.title, "dialogues": len(self.corpus), "unit": self.unit, "periods": self.periods}
        write_json_atomically(place / RECORD, {**record, "topics": records})
        self.page(place / PAGE, flows)

    def save_flows(self, folder: str | Path, encoder: Any = None, **settings: Any) -> list[str]:  # noqa: ANN401
        """Write a flow of each topic of at least `FEWEST` dialogues, and return the ids of these topics.

        Flows of an earlier call, of topics that no longer exist, are removed. The encoder and the settings are those of
        `hf_dialemb.flow.extract.extract_flow`.
        """
        written, loaded = [], load_encoder(encoder or default_encoder("action"))
        for number, topic in enumerate(self.by_size):
            if topic.size >= FEWEST:
                members = [self.corpus[row] for row in np.flatnonzero(self.labels == number)]
                output = Path(folder) / FLOWS / topic.id
                extract_flow(members, loaded, output=output, title=topic.name, overview=folder, **settings)
                written.append(topic.id)
        _remove_flows(Path(folder), written)
        return written

    def __repr__(self) -> str:
        return f"{self.title}: {self.counts}"

    def _repr_html_(self) -> str:
        rows = ((topic.id, topic.name, f"{topic.size:,}", ", ".join(topic.phrases)) for topic in self.by_size)
        return notebook_view(repr(self), ("topic", "name", "dialogues", "phrases"), rows)

    def _topic_records(self) -> list[dict[str, Any]]:
        ids = self.ids
        return [
            {
                **{
                    field: getattr(topic, field) for field in ("id", "name", "sentence", "size", "stability", "phrases")
                },
                "share": topic.size / len(self.corpus),
                "examples": tuple(ids[row] for row in topic.examples),
            }
            for topic in self.by_size
        ]

    def _dialogue_records(self) -> list[dict[str, Any]]:
        rows = zip(self.ids, self.labels.tolist(), self.similarity.tolist(), self.corpus, strict=True)
        records = [
            {
                "id": name,
                "topic": self.by_size[label].id,
                "name": self.by_size[label].name,
                "similarity": round(similarity, 4),
                "time": dialogue.time,
            }
            for name, label, similarity, dialogue in rows
        ]
        columns = metadata_columns(self.corpus, records[0])
        return [record | {name: values[row] for name, values in columns.items()} for row, record in enumerate(records)]

    def _page_record(self, flows: Collection[str]) -> dict[str, Any]:
        roles = _roles_of(self.corpus)
        return {
            "roles": roles,
            "unit": self.unit,
            "periods": self.periods,
            "topics": [
                {
                    **{name: value for name, value in vars(topic).items() if name != "by_role"},
                    "said": [[role, topic.by_role[role]] for role in roles],
                    "flow": topic.id in flows,
                }
                for topic in self.by_size
            ],
            "tree": [[int(left), int(right), round(far, 4)] for left, right, far in self.tree[:, :3].tolist()],
            "ids": self.ids,
            "times": [dialogue.time for dialogue in self.corpus] if self.periods else [],
            "labels": self.labels.tolist(),
            "near": np.round(self.similarity * 1000).astype(int).tolist(),
            "places": np.round(self.places * 10_000).astype(int).ravel().tolist(),
            "texts": self._turns(roles),
        }

    def _turns(self, roles: Sequence[str]) -> list[list[list[Any]]]:
        """Return the turns of each dialogue: the number of its role, its content, and its speaker's name if known."""
        left, texts = MOST_CHARACTERS, []
        for dialogue in self.corpus:
            left -= sum(len(turn.content) for turn in dialogue.turns)
            turns = dialogue.turns if left >= 0 else ()
            texts.append([[roles.index(turn.role), turn.content, *filter(None, [turn.name])] for turn in turns])
        return texts


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
    **reading: Any,  # noqa: ANN401
) -> Topics:
    """Find the topics of dialogues without labels: clusters of whole dialogues, named and counted.

    Example:
        >>> topics = hf_dialemb.find_topics(dialogues)
        >>> topics.page("topics.html")

    Args:
        dialogues: What `load_dialogues` takes.
        encoder: What `load_encoder` takes; by default the best that is at hand.
        topics: The number of topics; by default it is found.
        names: ``phrases``; or a language model: ``api:MODEL``, a folder or a Hub id.
        vectors: The vectors of the dialogues, ``(N, D)``; then no encoder is needed.
        title: The title of the page.
        cache: A folder where answers of the language model are kept.
        seed: The seed of random draws.
        **reading: How files are read, as in `load_dialogues`.

    Raises:
        InputError: There is no dialogue, a setting is wrong, or vectors do not fit.
    """
    corpus = tuple(load_dialogues(dialogues, **reading))
    if topics is not None and not 1 <= topics <= len(corpus):
        raise InputError(f"topics: got {topics}, expected 1 to {len(corpus)}, the number of dialogues; change it")
    if names != PHRASES:
        find_writer(names)  # raises before anything is computed
    encode = None
    if vectors is None or encoder is not None:
        loaded = load_encoder(encoder or default_encoder())
        encode = loaded.encode_utterances
        vectors = loaded.encode(list(corpus)) if vectors is None else vectors
    units = unit(checked_vectors(vectors, len(corpus), "dialogue"))
    labels = find_clusters(units, topics, seed)
    count = int(labels.max()) + 1
    means = np.stack([units[labels == number].mean(axis=0) for number in range(count)])
    similarity = np.einsum("nd,nd->n", units, unit(means)[labels])
    tree = average_linkage(means, np.bincount(labels))
    periods, period, counts = counted_periods([dialogue.time for dialogue in corpus], labels, count)
    sure = stability(units, labels, topics, seed)
    described = _described(
        corpus, labels, similarity, counts, sure, names, Path(cache) if cache else None, means, encode
    )
    return Topics(title, described, corpus, labels, similarity, tree, placed(units, seed), tuple(periods), period)


def remove_topics(folder: Path) -> None:
    """Remove what `Topics.save` wrote beside its page, and the flows of topics; files of others stay."""
    if (folder / RECORD).is_file():
        _remove_flows(folder, ())
        for name in (*TABLES, RECORD):
            (folder / name).unlink(missing_ok=True)


def _remove_flows(folder: Path, but: Collection[str]) -> None:
    for old in (folder / FLOWS).glob("topic-*"):
        if old.name not in but:
            remove_report(old, cache=True)
    with suppress(OSError):  # it does not exist, or has flows
        (folder / FLOWS).rmdir()


def _described(
    corpus: Sequence[Dialogue],
    labels: NDArray[np.int32],
    similarity: NDArray[np.float32],
    counts: NDArray[np.int64],
    sure: Sequence[str],
    names: str,
    cache: Path | None,
    means: NDArray[np.float32],
    encode: Callable[[list[str]], NDArray[np.float32]] | None,
) -> tuple[Topic, ...]:
    members = [np.flatnonzero(labels == number) for number in range(len(counts))]
    members = [rows[np.argsort(-np.round(similarity[rows], 6), kind="stable")] for rows in members]
    groups = [[corpus[row] for row in rows.tolist()] for rows in members]
    left_out = set_phrases(corpus, labels)
    phrases = telling_phrases([_texts(group, left_out) for group in groups])
    requests = [without_set_phrases(own, left_out, customer(own)) for own in corpus]
    given = names_of(requests, labels, means, encode)
    if names != PHRASES:
        given, reason = names_by_model(list(zip(given, phrases, groups, strict=True)), names, cache)
        if reason:
            logger.warning("some topics are named by their phrases: %s", reason)
    sentences = typical_requests(groups, left_out, encode)
    by_role = {role: telling_phrases([_texts(group, left_out, role) for group in groups]) for role in _roles_of(corpus)}
    return tuple(
        Topic(
            f"topic-{number + 1}",
            given[number],
            len(rows),
            phrases[number],
            {role: of_role[number] for role, of_role in by_role.items()},
            tuple(rows[:EXAMPLES].tolist()),
            tuple(counts[number].tolist()),
            sentences[number],
            sure[number],
        )
        for number, rows in enumerate(members)
    )


def _texts(dialogues: Sequence[Dialogue], left_out: Collection[str], role: str = "") -> list[str]:
    """Return what is said in dialogues, or by a role; bars keep phrases from going across turns."""
    return [" | ".join(without_set_phrases(dialogue, left_out, role)) for dialogue in dialogues]


def _roles_of(corpus: Sequence[Dialogue]) -> list[str]:
    return [role for role in ROLES if any(role in dialogue.roles for dialogue in corpus)]


def _csv(records: Sequence[dict[str, Any]]) -> str:
    """Return a table in which no cell is a formula of a spreadsheet."""

    def cell(value: object) -> object:
        text = "; ".join(value) if isinstance(value, tuple | list) else "" if value is None else value
        return as_cell(text) if isinstance(text, str) else text

    return table_of(list(records[0]), [list(map(cell, record.values())) for record in records])
