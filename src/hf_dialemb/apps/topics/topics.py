"""Hold topics of dialogues as tables, a page, and a folder that later runs go on from."""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...dialogue import ROLES, Dialogue
from ...display import counted, data_frame
from ...encoders import load_encoder
from ...errors import explained
from ...storage.pretrained import default_encoder
from ..flow import paths
from ..flow.differences import parts_of
from ..flow.extract import extract_flow
from ..flow.flow_folder import FLOW, replaced_together
from ..pages.spreadsheets import Id, Share, metadata_columns, write_workbook
from ..pages.standalone_page import write_page
from .edits import Edits
from .topic_comparison import Comparison, compared_topics, ends_of, parts_of_all

PAGE = "index.html"
FLOWS = "flows"
WORKBOOK = "topics.xlsx"
DIALOGUES_FRAME = "dialogues.parquet"
MODEL = "topics.safetensors"
FILES = (PAGE, WORKBOOK, DIALOGUES_FRAME, MODEL)
NO_TOPIC = "none"  # the id of dialogues on no topic
FITS_NOWHERE = "fits nowhere"  # its name
PHRASES = "phrases"
_COLUMNS = ("id", "name", "sentence", "size", "phrases")
_SCRIPTS = ("changes.js", "topic_map.js", "topic_tables.js", "topics.js")
_ID = re.compile(r"topic-[1-9]\d{0,8}")  # what the folder of a topic's flow is called
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


@dataclass(frozen=True, eq=False, repr=False)
class Topics:
    """The T topics of N dialogues, as tables and files.

    What fits nowhere is one more group, the last, with the id `NO_TOPIC`.
    """

    title: str
    by_size: tuple[Topic, ...]  # the largest first; some may have no dialogue among these
    corpus: tuple[Dialogue, ...]
    labels: NDArray[np.int32]  # the place of each dialogue's topic in ``by_size``, (N,)
    similarity: NDArray[np.float32]  # the cosine of each with the mean of its topic, (N,)
    places: NDArray[np.float32]  # on the map, (N, 2) in [0, 1]
    periods: tuple[str, ...]  # the beginnings of the periods; empty without times
    unit: str  # hour, day, week, month or year
    means: NDArray[np.float32]  # of the unit vectors of each topic, (T, D)
    encoder: Mapping[str, str]  # the ``model`` of the vectors, and a digest of its ``vectors``
    numbered: int  # the highest number that a topic has had
    edits: Edits  # what a person changed
    ends: tuple[str, ...]  # how each dialogue ends, (N,); see `hf_dialemb.apps.flow.paths.end_of`
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
        """A DataFrame with a row for each topic.

        Its columns are id, name, sentence, size, phrases, share, the ways in which dialogues end,
        and examples.
        """
        return data_frame(self._topic_records())

    @property
    def kinds(self) -> list[str]:
        """The ways to end; "not in English" only where a dialogue is not."""
        return [kind for kind in paths.KINDS if kind != paths.UNREAD or kind in self.ends]

    @property
    def ends_by_topic(self) -> list[dict[str, int]]:
        """The number of dialogues of each topic that end in each way."""
        counts = Counter(zip(self.labels.tolist(), self.ends, strict=True))
        return [
            {kind: counts[number, kind] for kind in self.kinds}
            for number in range(len(self.by_size))
        ]

    @property
    def dialogues(self) -> Any:
        """A DataFrame with a row for each dialogue.

        Its columns are id, topic, name, similarity, end, time, turns, and the metadata of
        dialogues.
        """
        return data_frame(self._dialogue_records())

    def page(self, path: str | Path) -> None:
        """Write the page: one HTML file. It links to flows beside it."""
        folder = Path(__file__).parent
        write_page(
            Path(path),
            folder / "topics.html.jinja",
            self._page_record(),
            ("../pages/page_make.js", *_SCRIPTS),
            styles=folder.parent / "pages",
            title=self.title,
            counts=self.counts.replace(", ", " · "),
        )

    def save(self, folder: str | Path) -> None:
        """Write the page, tables of topics and dialogues, and what `load_topics` goes on from.

        The tables are ``topics.xlsx`` and ``dialogues.parquet``.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq
        from safetensors.numpy import save_file

        dialogues = self._dialogue_records()
        sheets = {"topics": self._topic_records(), "conversations": dialogues}
        if self.comparisons:
            sheets["ends and scores"] = parts_of_all(self.comparisons)
            sheets["comparison"] = [row for own in self.comparisons for row in own.rows()]
        frame = {name: _column([row[name] for row in dialogues]) for name in dialogues[0]}
        record = {
            "title": self.title,
            "encoder": self.encoder,
            "numbered": self.numbered,
            "edits": self.edits.entries,
            "topics": [(own.id, own.name) for own in self.by_size if own.id != NO_TOPIC],
        }
        with replaced_together(Path(folder), FILES) as place:
            pq.write_table(pa.table(frame), place / DIALOGUES_FRAME)
            write_workbook(place / WORKBOOK, sheets)
            save_file(
                {"means": np.ascontiguousarray(self.means)},
                place / MODEL,
                {"topics": json.dumps(record)},
            )
            self.page(place / PAGE)

    def save_flows(self, folder: str | Path, encoder: Any = None, **settings: Any) -> Self:
        """Write a flow of each topic of at least `FEWEST` dialogues, and return topics with these.

        Flows of an earlier call, of topics that no longer exist, are removed. The encoder and the
        settings are those of `hf_dialemb.apps.flow.extract.extract_flow`.
        """
        loaded = load_encoder(encoder or default_encoder("action"))
        flows = []
        for number, topic in enumerate(self.by_size):
            if topic.size < FEWEST or topic.id == NO_TOPIC:
                continue
            flows.append(topic.id)
            extract_flow(
                [self.corpus[row] for row in np.flatnonzero(self.labels == number)],
                loaded,
                output=Path(folder) / FLOWS / topic.id,
                title=topic.name,
                overview=folder,
                **settings,
            )
        _remove_flows(Path(folder), flows)
        return replace(self, flows=tuple(flows))

    def compared(self, by: str) -> Self:
        """Compare parts of the dialogues, by ``month`` or a name of their metadata.

        Two parts are compared with each other; of more, each with all the others. See
        `hf_dialemb.apps.topics.topic_comparison.compared_topics`.

        Returns:
            The topics with the comparisons.
        """
        rows = self._dialogue_records()
        pairs = parts_of(self.corpus, by)
        comparisons = [
            compared_topics(
                self._names,
                ([rows[row] for row in before], [rows[row] for row in after]),
                (first, second),
                times=len(pairs),
            )
            for (first, before), (second, after) in pairs
        ]
        return replace(self, comparisons=(*self.comparisons, *comparisons))

    def compared_with(self, folder: str | Path) -> Self:
        """Compare with the dialogues of the folder of topics that these go on from.

        Returns:
            The topics with the comparison.
        """
        import pyarrow.parquet as pq

        record = read_model(folder)[0]
        with explained(f"topics '{folder}'", "run dialemb topics again"):
            table = pq.read_table(Path(folder) / DIALOGUES_FRAME).to_pylist()
        merged = self.edits.merged
        before = [row | {"topic": merged.get(row["topic"], row["topic"])} for row in table]
        comparison = compared_topics(
            self._names,
            (before, self._dialogue_records()),
            (record["title"], self.title),
            known={NO_TOPIC, *(id for id, _ in record["topics"])},
        )
        return replace(self, comparisons=(*self.comparisons, comparison))

    @property
    def _names(self) -> dict[str, str]:
        return {topic.id: topic.name for topic in self.by_size}

    def __repr__(self) -> str:
        return f"{self.title}: {self.counts}"

    def _topic_records(self) -> list[dict[str, Any]]:
        return [
            {column: getattr(topic, column) for column in _COLUMNS}
            | {"share": Share(topic.size / len(self.corpus)), **ends}
            | {"examples": tuple(self.ids[row] for row in topic.examples)}
            for topic, ends in zip(self.by_size, self.ends_by_topic, strict=True)
        ]

    def _dialogue_records(self) -> list[dict[str, Any]]:
        topics = [self.by_size[label] for label in self.labels]
        columns: dict[str, Sequence[Any]] = {
            "id": list(map(Id, self.ids)),
            "topic": [topic.id for topic in topics],
            "name": [topic.name for topic in topics],
            "similarity": np.round(self.similarity.astype(np.float64), 4).tolist(),
            "end": self.ends,
            "time": [dialogue.time for dialogue in self.corpus],
            "turns": [len(dialogue.turns) for dialogue in self.corpus],
        }
        columns |= metadata_columns(self.corpus, columns)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _page_record(self) -> dict[str, Any]:
        roles = roles_of(self.corpus)
        topics = [
            vars(topic) | {"flow": topic.id in self.flows, "ends": list(ends.values())}
            for topic, ends in zip(self.by_size, self.ends_by_topic, strict=True)
        ]
        return {
            "roles": roles,
            "unit": self.unit,
            "periods": self.periods,
            "topics": topics,
            "kinds": self.kinds,
            "edits": self.edits.entries,
            "comparisons": [
                {
                    "names": own.names,
                    "sizes": own.sizes,
                    "lines": own.findings(),
                    "rows": own.rows(),
                }
                for own in self.comparisons
            ],
            "compared_ends": ends_of(self.comparisons) if self.comparisons else [],
            "ids": self.ids,
            "times": [dialogue.time for dialogue in self.corpus] if self.periods else [],
            "labels": self.labels.tolist(),
            "ends": list(map(self.kinds.index, self.ends)),
            "near": np.round(self.similarity * 1000).astype(int).tolist(),
            "places": np.round(self.places * 10_000).astype(int).ravel().tolist(),
            "texts": self._turns(roles),
        }

    def _turns(self, roles: Sequence[str]) -> list[list[list[Any]]]:
        """Return the turns of each dialogue: role's number, content, and speaker's name if any."""
        left = MOST_CHARACTERS
        texts = []
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


def read_model(folder: str | Path) -> tuple[dict[str, Any], NDArray[np.float32]]:
    """Return the facts that a folder of topics keeps, and the means of its topics, ``(T, D)``.

    An InputError says that it is missing or damaged.
    """
    from safetensors import SafetensorError, safe_open

    with explained(f"topics '{folder}'", "run dialemb topics again"):
        try:
            with safe_open(Path(folder) / MODEL, "numpy") as tensors:
                means = tensors.get_tensor("means")
                record = json.loads(tensors.metadata()["topics"])
                if wrong := [id for id, _ in record["topics"] if not _ID.fullmatch(id)]:
                    raise ValueError(f"got the id {wrong[0]!r}, expected one such as topic-1")
                return record, means
        except SafetensorError as error:
            raise ValueError(f"{MODEL}: {error}") from None


def _column(values: list[Any]) -> Any:
    """Return values as a column of a table; what no column can hold as it is becomes text."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, UnicodeError):
        texts = [None if value is None else json.dumps(value) for value in values]
        return pa.array(texts, pa.string())


def ids_of(corpus: Sequence[Dialogue]) -> list[str]:
    """Return the ids of dialogues, or their numbers as ``#12``."""
    return [dialogue.id or f"#{number}" for number, dialogue in enumerate(corpus, 1)]


def remove_topics(folder: Path) -> None:
    """Remove what `Topics.save` wrote beside its page, and the flows of topics.

    Other files stay.
    """
    if (folder / MODEL).is_file():
        _remove_flows(folder, ())
        for name in FILES[1:]:
            (folder / name).unlink(missing_ok=True)


def _remove_flows(folder: Path, but: Collection[str]) -> None:
    for old in (folder / FLOWS).glob("topic-*"):
        if old.name not in but and (old / FLOW).is_file():
            rmtree(old)


def roles_of(corpus: Sequence[Dialogue]) -> list[str]:
    """Return the roles that speak in any of the dialogues."""
    return [role for role in ROLES if any(role in dialogue.roles for dialogue in corpus)]
