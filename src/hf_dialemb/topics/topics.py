"""Hold the topics of dialogues: as tables, as a page, and in a folder that later runs go on from."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checkpoints.pretrained import default_encoder
from ..dialogue import ROLES, Dialogue, metadata_columns
from ..encoders import load_encoder
from ..flow.exports import as_cell, table_of
from ..flow.extract import extract_flow
from ..flow.folder import remove_report
from ..hashing import json_key
from ..runs.files import write_atomically, write_json_atomically, write_text_atomically
from ..runs.frames import counted, data_frame, notebook_view, write_page
from .edits import Groups
from .naming import (
    customer,
    names_by_model,
    names_of,
    numbered_names,
    set_phrases,
    telling_phrases,
    typical_requests,
    without_set_phrases,
)

PAGE, FLOWS, RECORD = "index.html", "flows", "topics.json"
TABLES = ("topics.csv", "dialogues.csv", "dialogues.parquet")
MEANS = "topics.safetensors"
NO_TOPIC, FITS_NOWHERE = "none", "fits nowhere"  # the id and the name of dialogues on no topic
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
    least: float  # the similarity from which on a new dialogue is on it


@dataclass(frozen=True, eq=False, repr=False)
class Topics:
    """The T topics of N dialogues, as tables and files.

    What fits nowhere is one more group, the last, with the id `NO_TOPIC`.
    """

    title: str
    by_size: tuple[Topic, ...]  # the largest first; some may have no dialogue among these
    corpus: tuple[Dialogue, ...]
    labels: NDArray[np.int32]  # the place of each dialogue's topic in ``by_size``, (N,)
    similarity: NDArray[np.float32]  # the cosine of each with the mean of its topic, or of the nearest, (N,)
    tree: NDArray[np.float64]  # joins of similar topics, (T - 1, 4); see `hf_dialemb.flow.clustering`
    places: NDArray[np.float32]  # on the map, (N, 2) in [0, 1]
    periods: tuple[str, ...]  # the beginnings of the periods that dialogues are counted in; empty without times
    unit: str  # hour, day, week, month or year
    means: NDArray[np.float32]  # of the unit vectors of each topic, (T, D)
    encoder: Mapping[str, str]  # the ``model`` that made the vectors, and a digest of its ``vectors``
    numbered: int  # the highest number that a topic has had

    @property
    def counts(self) -> str:
        """The numbers of dialogues and topics, in words."""
        return f"{counted(len(self.corpus), 'dialogue')}, {counted(len(self.means), 'topic')}"

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
        """Write the page, ``topics.csv``, ``dialogues.csv`` and ``.parquet``, ``topics.json`` and ``.safetensors``.

        `hf_dialemb.load_topics` goes on from the folder.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq
        from safetensors.numpy import save_file

        place, topics, dialogues = Path(folder), self._topic_records(), self._dialogue_records()
        write_text_atomically(place / TABLES[0], _csv(topics))
        write_text_atomically(place / TABLES[1], _csv(dialogues))
        write_atomically(place / TABLES[2], partial(pq.write_table, pa.Table.from_pylist(dialogues)))
        pairs = zip(topics, self.by_size, strict=True)
        more = ("periods", "least")
        records = [
            {**record, "said": topic.by_role, **{name: getattr(topic, name) for name in more}}
            for record, topic in pairs
        ]
        facts = ("title", "unit", "periods", "encoder", "numbered")
        record = {"dialogues": len(self.corpus), **{name: getattr(self, name) for name in facts}, "topics": records}
        record["key"] = json_key(record)
        means = {"means": np.ascontiguousarray(self.means)}
        write_atomically(place / MEANS, lambda path: save_file(means, path, {"key": record["key"]}))
        write_json_atomically(place / RECORD, record)
        self.page(place / PAGE, flows)

    def save_flows(self, folder: str | Path, encoder: Any = None, **settings: Any) -> list[str]:  # noqa: ANN401
        """Write a flow of each topic of at least `FEWEST` dialogues, and return the ids of these topics.

        Flows of an earlier call, of topics that no longer exist, are removed. The encoder and the settings are those of
        `hf_dialemb.flow.extract.extract_flow`.
        """
        written, loaded = [], load_encoder(encoder or default_encoder("action"))
        for number, topic in enumerate(self.by_size):
            if topic.size >= FEWEST and topic.id != NO_TOPIC:
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
                **{field: getattr(topic, field) for field in _COLUMNS},
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


def remove_topics(folder: Path) -> None:
    """Remove what `Topics.save` wrote beside its page, and the flows of topics; files of others stay."""
    if (folder / RECORD).is_file():
        _remove_flows(folder, ())
        for name in (*TABLES, MEANS, RECORD):
            (folder / name).unlink(missing_ok=True)


def _remove_flows(folder: Path, but: Collection[str]) -> None:
    for old in (folder / FLOWS).glob("topic-*"):
        if old.name not in but:
            remove_report(old, cache=True)
    with suppress(OSError):  # it does not exist, or has flows
        (folder / FLOWS).rmdir()


def described(
    corpus: Sequence[Dialogue],
    groups: Groups,
    similarity: NDArray[np.float32],
    counts: NDArray[np.int64],
    names: str,
    cache: Path | None,
    encode: Callable[[list[str]], NDArray[np.float32]] | None,
) -> tuple[Topic, ...]:
    """Describe T groups of N dialogues; those without a name get one.

    Args:
        corpus: The dialogues.
        groups: Their groups.
        similarity: The similarity of each with its group, ``(N,)``.
        counts: How many each group has in each period, ``(T, P)``.
        names: How groups are named; see `find_topics`.
        cache: A folder where answers of a language model are kept.
        encode: Encodes phrases ``(P, D)``.
    """
    members = [np.flatnonzero(groups.labels == number) for number in range(len(groups.ids))]
    members = [rows[np.argsort(-np.round(similarity[rows], 6), kind="stable")] for rows in members]
    of_groups = [[corpus[row] for row in rows.tolist()] for rows in members]
    left_out = set_phrases(corpus, groups.labels)
    phrases = telling_phrases([_texts(group, left_out) for group in of_groups])
    requests = [without_set_phrases(own, left_out, customer(own)) for own in corpus]
    given = list(groups.names)
    if unnamed := [number for number, name in enumerate(given) if not name]:
        proposed = names_of(requests, groups.labels, groups.means, encode)
        new = [proposed[number] for number in unnamed]
        if names != PHRASES:
            shown = [(proposed[number], phrases[number], of_groups[number]) for number in unnamed]
            new, reason = names_by_model(shown, names, cache / "names" if cache else None)
            if reason:
                logger.warning("some topics are named by their phrases: %s", reason)
        kept = list(filter(None, given))
        for number, name in zip(unnamed, numbered_names([*kept, *new])[len(kept) :], strict=True):
            given[number] = name
    sentences = typical_requests(of_groups, given, left_out, encode)
    by_role = {
        role: telling_phrases([_texts(group, left_out, role) for group in of_groups]) for role in _roles_of(corpus)
    }
    return tuple(
        Topic(
            groups.ids[number],
            given[number],
            len(rows),
            phrases[number],
            {role: of_role[number] for role, of_role in by_role.items()},
            tuple(rows[:EXAMPLES].tolist()),
            tuple(counts[number].tolist()),
            sentences[number],
            groups.stability[number],
            float(groups.least[number]),
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
