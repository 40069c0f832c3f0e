"""Hold the topics of dialogues.

As tables, as a page, and in a folder that later runs go on from.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...dialogue import ROLES, Dialogue, metadata_columns
from ...display import counted, data_frame, notebook_view
from ...encoders import load_encoder
from ...errors import InputError, explained
from ...hashing import json_key
from ...storage.files import write_atomically, write_json_atomically, write_text_atomically
from ...storage.pretrained import default_encoder
from ..flow import paths
from ..flow.exports import cell_of, table_of, write_workbook
from ..flow.extract import extract_flow, utterance_vectors
from ..flow.flow_comparison import compare_flow
from ..flow.flow_folder import CACHE, remove_report
from ..pages.standalone_page import write_page
from .edits import EDITS, Edits
from .topic_comparison import TIME, Comparison, compared_topics, rows_of, sets_of

PAGE, FLOWS, RECORD = "index.html", "flows", "topics.json"
TABLES = ("topics.csv", "dialogues.csv", "dialogues.parquet")
MEANS, WORKBOOK = "topics.safetensors", "topics.xlsx"
NO_TOPIC, FITS_NOWHERE = "none", "fits nowhere"  # the id and the name of dialogues on no topic
PHRASES = "phrases"
_COLUMNS = ("id", "name", "sentence", "size", "stability", "phrases")
BY_MODEL = ("description", "coherent")  # columns of topics that a language model described
FEWEST = 5  # a topic with fewer dialogues gets no flow of its own
MOST_CHARACTERS = 30_000_000  # of a page; dialogues beyond it are there without their turns


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
    stability: str  # solid, fair or shaky; see `hf_dialemb.apps.topics.topic_clustering.stability`
    least: float  # the similarity from which on a new dialogue is on it
    description: str = ""  # a sentence by a language model
    coherent: str = ""  # whether that model takes it for a single topic: yes, no or empty


@dataclass(frozen=True, eq=False, repr=False)
class Topics:
    """The T topics of N dialogues, as tables and files.

    What fits nowhere is one more group, the last, with the id `NO_TOPIC`.
    """

    title: str
    by_size: tuple[Topic, ...]  # the largest first; some may have no dialogue among these
    corpus: tuple[Dialogue, ...]
    labels: NDArray[np.int32]  # the place of each dialogue's topic in ``by_size``, (N,)
    # the cosine of each with the mean of its topic, or of the nearest, (N,)
    similarity: NDArray[np.float32]
    # joins of similar topics, (T - 1, 4); see `hf_dialemb.apps.flow.flow_clustering`
    tree: NDArray[np.float64]
    places: NDArray[np.float32]  # on the map, (N, 2) in [0, 1]
    # the beginnings of the periods that dialogues are counted in; empty without times
    periods: tuple[str, ...]
    unit: str  # hour, day, week, month or year
    means: NDArray[np.float32]  # of the unit vectors of each topic, (T, D)
    # the ``model`` that made the vectors, and a digest of its ``vectors``
    encoder: Mapping[str, str]
    numbered: int  # the highest number that a topic has had
    edits: Edits  # what a person changed
    ends: tuple[str, ...]  # how each dialogue ends, (N,); see `hf_dialemb.apps.flow.paths.ends`
    flows: tuple[str, ...] = ()  # the ids of topics whose flow lies beside the page
    comparisons: tuple[Comparison, ...] = ()  # with other dialogues, or of parts of these

    @property
    def counts(self) -> str:
        """The numbers of dialogues and topics, in words."""
        return f"{counted(len(self.corpus), 'dialogue')}, {counted(len(self.means), 'topic')}"

    @property
    def ids(self) -> list[str]:
        """The ids of the dialogues, or their numbers as ``#12``."""
        return ids_of(self.corpus)

    @property
    def topics(self) -> Any:
        """A row for each topic.

        Id, name, sentence, size, stability, phrases, share, ends, and typical dialogues.

        Where a language model described topics, also its ``description`` and whether it takes a
        topic for ``coherent``.
        """
        return data_frame(self._topic_records())

    @property
    def ends_by_topic(self) -> list[dict[str, int]]:
        """How many dialogues of each topic end in each way, by name."""
        counts = Counter(zip(self.labels.tolist(), self.ends, strict=True))
        return [
            {kind: counts[number, kind] for kind in paths.KINDS}
            for number in range(len(self.by_size))
        ]

    @property
    def dialogues(self) -> Any:
        """A row for each dialogue.

        Id, topic, name, similarity (cosine with the mean of its topic), time.
        """
        return data_frame(self._dialogue_records())

    def page(self, path: str | Path) -> None:
        """Write the page: one HTML file. It links to flows beside it."""
        folder, counts = Path(__file__).parent, self.counts.replace(", ", " · ")
        record, styles = self._page_record(), folder.parent / "pages"
        template, scripts = folder / "topics.html.jinja", ("tree.js", "changes.js", "topics.js")
        write_page(
            Path(path), template, record, scripts, styles=styles, title=self.title, counts=counts
        )

    def save(self, folder: str | Path) -> None:
        """Write the page, ``topics.csv``, ``dialogues.csv`` and ``.parquet``, ``topics.json`` and
        ``.safetensors``.

        `hf_dialemb.load_topics` goes on from the folder.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq
        from safetensors.numpy import save_file

        place, topics, dialogues = Path(folder), self._topic_records(), self._dialogue_records()
        write_text_atomically(place / TABLES[0], _csv(topics))
        write_text_atomically(place / TABLES[1], _csv(dialogues))
        write_atomically(
            place / TABLES[2], partial(pq.write_table, pa.Table.from_pylist(dialogues))
        )
        sheets = {
            "topics": topics,
            "conversations": dialogues,
            "comparison": rows_of(self.comparisons),
        }
        write_workbook(place / WORKBOOK, {name: rows for name, rows in sheets.items() if rows})
        pairs = zip(topics, self.by_size, strict=True)
        more = ("periods", "least")
        records = [
            {**record, "said": topic.by_role, **{name: getattr(topic, name) for name in more}}
            for record, topic in pairs
        ]
        facts = ("title", "unit", "periods", "encoder", "numbered", "flows")
        record = {
            "dialogues": len(self.corpus),
            **{name: getattr(self, name) for name in facts},
            "topics": records,
        }
        record["edits"] = self.edits.entries
        record["key"] = json_key(record)
        if self.edits.text:
            write_text_atomically(place / EDITS, self.edits.text)
        means = {"means": np.ascontiguousarray(self.means)}
        write_atomically(place / MEANS, lambda path: save_file(means, path, {"key": record["key"]}))
        write_json_atomically(place / RECORD, record)
        self.page(place / PAGE)

    def save_flows(self, folder: str | Path, encoder: Any = None, **settings: Any) -> Self:
        """Write a flow of each topic of at least `FEWEST` dialogues, and return the topics with
        these and their ends.

        Flows of an earlier call, of topics that no longer exist, are removed. The encoder and the
        settings are those of `hf_dialemb.apps.flow.extract.extract_flow`. Utterances of all topics
        are embedded at once.
        """
        loaded, ends = load_encoder(encoder or default_encoder("action")), list(self.ends)
        large = {
            topic.id: np.flatnonzero(self.labels == number)
            for number, topic in enumerate(self.by_size)
            if topic.size >= FEWEST and topic.id != NO_TOPIC
        }
        texts = [
            turn.content
            for rows in large.values()
            for row in rows
            for turn in self.corpus[row].turns
        ]
        if texts:
            utterance_vectors(
                loaded, [" ".join(text.split()) for text in texts], Path(folder) / CACHE
            )
        names = self._names()
        for id, rows in large.items():
            members, output = [self.corpus[row] for row in rows], Path(folder) / FLOWS / id
            flow = extract_flow(
                members, loaded, output=output, title=names[id], overview=folder, **settings
            ).flow
            kinds = {name: end.kind for end in paths.ends(flow) for name in end.dialogues}
            for row, name in zip(rows, flow.utterances.dialogues, strict=True):
                ends[row] = kinds[name]
        _remove_flows(Path(folder), large)
        return replace(self, ends=tuple(ends), flows=tuple(large))

    def compared(self, by: str) -> Self:
        """Compare parts of the dialogues, by ``month`` or a name of their metadata.

        Return the topics with the result.

        Two parts are compared with each other; of more, each with all the others. See
        `hf_dialemb.apps.topics.topic_comparison.compared_topics`.
        """
        parts, rows = sets_of(self.corpus, by), self._topics_and_ends()
        if len(parts) == 2:
            pairs = [tuple(parts.items())]
        else:
            others = {
                name: [row for other in parts if other != name for row in parts[other]]
                for name in parts
            }
            pairs = [(("others", others[name]), (name, own)) for name, own in parts.items()]
        comparisons = []
        for first, second in pairs:
            sets = [rows[row] for row in first[1]], [rows[row] for row in second[1]]
            comparison = compared_topics(
                self._names(), sets, (first[0], second[0]), times=len(pairs)
            )
            comparisons.append(replace(comparison, in_time=by == TIME and len(pairs) == 1))
        return replace(self, comparisons=tuple(comparisons))

    def compared_with(self, folder: str | Path) -> Self:
        """Compare with the dialogues of the folder of topics that these go on from.

        Return the topics with the result.

        Topics with a flow in both folders are also compared by its steps.
        """
        import pyarrow.parquet as pq

        with explained(f"topics '{folder}'", "run dialemb topics again"):
            record = json.loads((Path(folder) / RECORD).read_text(encoding="utf-8"))
            table = pq.read_table(Path(folder) / TABLES[2], columns=["topic", "end"]).to_pydict()
        check_flows(Path(folder), bool(self.flows))
        merged = self.edits.merged
        before = [
            (merged.get(topic, topic), end)
            for topic, end in zip(table["topic"], table["end"], strict=True)
        ]
        known = {NO_TOPIC, *(topic["id"] for topic in record["topics"])}
        sets, titles = (before, self._topics_and_ends()), (str(record["title"]), self.title)
        comparison = compared_topics(self._names(), sets, titles, known)
        return replace(
            self, comparisons=(replace(comparison, steps=tuple(self._new_steps(Path(folder)))),)
        )

    def _new_steps(self, folder: Path) -> list[str]:
        """Say for each topic with a flow here and in an earlier folder which step is new, the most
        frequent first.
        """
        lines = []
        for number, topic in enumerate(self.by_size):
            if topic.id in self.flows and (folder / FLOWS / topic.id).is_dir():
                members = [self.corpus[row] for row in np.flatnonzero(self.labels == number)]
                new = compare_flow(folder / FLOWS / topic.id, members, self.title).new
                if new:
                    most = max(new, key=lambda change: change.counts[1])
                    more = f", and {len(new) - 1} more" if len(new) > 1 else ""
                    line = f"New step in {topic.name}: {most.name}, {most} of its dialogues{more}"
                    lines.append((-most.counts[1] / most.sizes[1], line))
        return [line for _, line in sorted(lines)]

    def _names(self) -> dict[str, str]:
        return {topic.id: topic.name for topic in self.by_size}

    def _topics_and_ends(self) -> list[tuple[str, str]]:
        pairs = zip(self.labels.tolist(), self.ends, strict=True)
        return [(self.by_size[label].id, end) for label, end in pairs]

    def __repr__(self) -> str:
        return f"{self.title}: {self.counts}"

    def _repr_html_(self) -> str:
        rows = (
            (topic.id, topic.name, f"{topic.size:,}", ", ".join(topic.phrases))
            for topic in self.by_size
        )
        return notebook_view(repr(self), ("topic", "name", "dialogues", "phrases"), rows)

    def _topic_records(self) -> list[dict[str, Any]]:
        ids, by_model = self.ids, any(topic.description or topic.coherent for topic in self.by_size)
        columns = (*_COLUMNS[:3], *(BY_MODEL if by_model else ()), *_COLUMNS[3:])
        return [
            {
                **{field: getattr(topic, field) for field in columns},
                "share": topic.size / len(self.corpus),
                **ends,
                "examples": tuple(ids[row] for row in topic.examples),
            }
            for topic, ends in zip(self.by_size, self.ends_by_topic, strict=True)
        ]

    def _dialogue_records(self) -> list[dict[str, Any]]:
        rows = zip(
            self.ids,
            self.labels.tolist(),
            self.similarity.tolist(),
            self.ends,
            self.corpus,
            strict=True,
        )
        records = [
            {
                "id": name,
                "topic": self.by_size[label].id,
                "name": self.by_size[label].name,
                "similarity": round(similarity, 4),
                "end": end,
                "time": dialogue.time,
            }
            for name, label, similarity, end, dialogue in rows
        ]
        columns = metadata_columns(self.corpus, records[0])
        return [
            record | {name: values[row] for name, values in columns.items()}
            for row, record in enumerate(records)
        ]

    def _page_record(self) -> dict[str, Any]:
        roles = roles_of(self.corpus)
        return {
            "roles": roles,
            "unit": self.unit,
            "periods": self.periods,
            "topics": [
                {
                    **{name: value for name, value in vars(topic).items() if name != "by_role"},
                    "said": [[role, topic.by_role[role]] for role in roles],
                    "flow": topic.id in self.flows,
                    "ends": [ends[kind] for kind in paths.KINDS],
                }
                for topic, ends in zip(self.by_size, self.ends_by_topic, strict=True)
            ],
            "kinds": paths.KINDS,
            "edits": self.edits.entries,
            "comparisons": [comparison.record() for comparison in self.comparisons],
            "tree": [
                [int(left), int(right), round(far, 4)]
                for left, right, far in self.tree[:, :3].tolist()
            ],
            "ids": self.ids,
            "times": [dialogue.time for dialogue in self.corpus] if self.periods else [],
            "labels": self.labels.tolist(),
            "near": np.round(self.similarity * 1000).astype(int).tolist(),
            "places": np.round(self.places * 10_000).astype(int).ravel().tolist(),
            "texts": self._turns(roles),
        }

    def _turns(self, roles: Sequence[str]) -> list[list[list[Any]]]:
        """Return the turns of each dialogue.

        The number of its role, its content, and its speaker's name if known.
        """
        left, texts = MOST_CHARACTERS, []
        for dialogue in self.corpus:
            left -= sum(len(turn.content) for turn in dialogue.turns)
            turns = dialogue.turns if left >= 0 else ()
            texts.append(
                [
                    [roles.index(turn.role), turn.content, *filter(None, [turn.name])]
                    for turn in turns
                ]
            )
        return texts


def check_flows(folder: Path, flows: bool) -> None:
    """Refuse to compare with a folder of topics where one side has flows, by which ends are read,
    and one has none.
    """
    with explained(f"topics '{folder}'", "run dialemb topics again"):
        earlier = bool(json.loads((folder / RECORD).read_text(encoding="utf-8"))["flows"])
    if earlier != flows:
        remedy = (
            "add --flows" if earlier else f"make '{folder}' with --flows, or leave --flows out here"
        )
        word = {True: "ends by flows", False: "ends without flows"}
        raise InputError(
            f"topics '{folder}': got {word[earlier]}, expected {word[flows]}, as here; {remedy}"
        )


def ids_of(corpus: Sequence[Dialogue]) -> list[str]:
    """Return the ids of dialogues, or their numbers as ``#12``."""
    return [dialogue.id or f"#{number}" for number, dialogue in enumerate(corpus, 1)]


def remove_topics(folder: Path) -> None:
    """Remove what `Topics.save` wrote beside its page, and the flows of topics.

    Files of others stay.
    """
    if (folder / RECORD).is_file():
        _remove_flows(folder, ())
        for name in (*TABLES, MEANS, WORKBOOK, RECORD):
            (folder / name).unlink(missing_ok=True)


def _remove_flows(folder: Path, but: Collection[str]) -> None:
    for old in (folder / FLOWS).glob("topic-*"):
        if old.name not in but:
            remove_report(old, cache=True)
    with suppress(OSError):  # it does not exist, or has flows
        (folder / FLOWS).rmdir()


def roles_of(corpus: Sequence[Dialogue]) -> list[str]:
    """Return the roles that speak in any of the dialogues."""
    return [role for role in ROLES if any(role in dialogue.roles for dialogue in corpus)]


def _csv(records: Sequence[dict[str, Any]]) -> str:
    """Return a table in which no cell is a formula of a spreadsheet."""
    return table_of(list(records[0]), [list(map(cell_of, record.values())) for record in records])
