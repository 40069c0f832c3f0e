"""Find topics, keep them in a folder, and go on with them.

Assign new dialogues, and find what is new among them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data import load_dialogues
from ...dialogue import Dialogue
from ...display import data_frame
from ...encoders import Encoder, load_encoder
from ...encoders.embedding_cache import RememberingEncoder
from ...errors import InputError, explained
from ...metrics.vectors import unit
from ...storage.pretrained import default_encoder
from ..flow.extract import checked_vectors, source_of
from ..flow.flow_clustering import average_linkage
from ..flow.language_model_names import find_writer
from ..flow.paths import end_of
from .describing import described
from .edits import EDITS, NO_EDITS, NOWHERE, Edits, Group, Groups, no_groups, read_edits
from .naming import with_small_talk_joined
from .taxonomy import read_taxonomy, taxonomy_groups
from .topic_clustering import counted_periods, find_clusters, placed, stability
from .topics import BY_MODEL, FEWEST, FITS_NOWHERE, MEANS, NO_TOPIC, PHRASES, RECORD, Topics, ids_of

_AGAIN = "run dialemb topics again"


@dataclass(frozen=True)
class _Naming:
    """How topics are named."""

    names: str
    cache: Path | None
    encode: Callable[[list[str]], NDArray[np.float32]] | None

    def __post_init__(self) -> None:
        if self.names != PHRASES:
            find_writer(self.names)  # raises before anything is computed


def find_topics(
    dialogues: Any,
    encoder: Any = None,
    *,
    topics: int | None = None,
    nowhere: bool = False,
    names: str = PHRASES,
    vectors: NDArray[np.float32] | None = None,
    title: str = "Topics",
    cache: str | Path | None = None,
    seed: int = 0,
    edits: Edits = NO_EDITS,
    taxonomy: str | Path | None = None,
    **reading: Any,
) -> Topics:
    """Find the topics of dialogues without labels: clusters of whole dialogues, named and counted.

    Example:
        >>> topics = hf_dialemb.find_topics(dialogues)
        >>> topics.page("topics.html")

    Args:
        dialogues: What `load_dialogues` takes.
        encoder: What `load_encoder` takes; by default the best that is at hand.
        topics: The number of topics; by default it is found.
        nowhere: Leave dialogues on no topic that are less similar to theirs than its least
            similarity; by default every dialogue that is clustered has a topic.
        names: ``phrases``; or a language model: ``api:MODEL``, a folder or a Hub id.
        vectors: The vectors of the dialogues, ``(N, D)``; then no encoder is needed.
        title: The title of the page.
        cache: A folder where vectors and answers of the language model are kept.
        seed: The seed of random draws.
        edits: What to change in the topics that are found; see
            `hf_dialemb.apps.topics.edits.read_edits`.
        taxonomy: A table of given topics (CSV: name, description, examples). Dialogues are assigned
            to them first; topics are found among those that fit none.
        **reading: How files are read, as in `load_dialogues`.

    Raises:
        InputError: There is no dialogue, a setting is wrong, or vectors do not fit.
    """
    given = read_taxonomy(Path(taxonomy)) if taxonomy is not None else {}
    if given and (topics is not None or nowhere):
        got = "nowhere=True" if nowhere else f"topics={topics}"
        raise InputError(
            f"taxonomy: got {got} beside it, which decides nothing there; leave one out"
        )
    if given and vectors is not None and encoder is None:
        raise InputError(
            "taxonomy: got ready vectors alone, expected their model, which reads its texts; name "
            "it too"
        )
    corpus = tuple(load_dialogues(dialogues, **reading))
    if topics is not None and not 1 <= topics <= len(corpus):
        raise InputError(
            f"topics: got {topics}, expected 1 to {len(corpus)}, the number of dialogues; change it"
        )
    place = Path(cache) if cache else None
    loaded = (
        load_encoder(encoder or default_encoder())
        if vectors is None or encoder is not None
        else None
    )
    naming = _Naming(names, place, loaded.encode_utterances if loaded else None)
    units = _units(corpus, loaded, vectors, place)
    if given and loaded is not None:
        groups = with_new(taxonomy_groups(given, units, loaded.encode_utterances), units, seed)
    else:
        groups = _clustered(corpus, units, topics, nowhere, seed)
    return _topics(title, corpus, units, groups, naming, encoder_of(loaded), seed, edits)


@dataclass(frozen=True, eq=False)
class TopicModel:
    """The topics of a folder, which new dialogues are assigned to; made by `load_topics`.

    Examples:
        >>> model = hf_dialemb.load_topics("topics")
        >>> model.assign(dialogues)
        >>> model.update(dialogues).save("topics-february")
    """

    groups: Groups  # of no dialogue
    encoder: Encoder

    def assign(self, dialogues: Any, **reading: Any) -> Any:
        """Return a row for each dialogue.

        Id, topic and name, or nothing where it fits nowhere, and similarity.
        """
        corpus = tuple(load_dialogues(dialogues, **reading))
        units = _units(corpus, self.encoder, None, None)
        near, labels = self.groups.nearness(units), self.groups.assigned(units)
        ids, names = [*self.groups.ids, ""], [*self.groups.names, ""]
        rows = zip(ids_of(corpus), labels.tolist(), near.max(axis=1).tolist(), strict=True)
        return data_frame(
            [
                {"id": id, "topic": ids[label], "name": names[label], "similarity": similarity}
                for id, label, similarity in rows
            ]
        )

    def update(
        self,
        dialogues: Any,
        *,
        names: str = PHRASES,
        vectors: NDArray[np.float32] | None = None,
        title: str = "Topics",
        cache: str | Path | None = None,
        seed: int = 0,
        edits: Edits = NO_EDITS,
        **reading: Any,
    ) -> Topics:
        """Assign dialogues, and find new topics among those that fit nowhere.

        Known topics keep ids, names and means.

        The arguments are those of `find_topics`.
        """
        corpus, place = tuple(load_dialogues(dialogues, **reading)), Path(cache) if cache else None
        naming = _Naming(names, place, self.encoder.encode_utterances)
        units = _units(corpus, self.encoder, vectors, place)
        groups = with_new(replace(self.groups, labels=self.groups.assigned(units)), units, seed)
        return _topics(
            title,
            corpus,
            units,
            groups,
            naming,
            encoder_of(self.encoder),
            seed,
            edits,
            self.groups.ids,
        )


def load_topics(path: str | Path, encoder: Any = None) -> TopicModel:
    """Read the topics of a folder that ``dialemb topics`` or `Topics.save` wrote.

    Args:
        path: The folder.
        encoder: What `load_encoder` takes; by default the one that made the topics. It must give
            the same vectors.

    Raises:
        InputError: The folder is missing or damaged, its topics have no encoder, or another than
            the given one.
    """
    folder = Path(path)
    if not (folder / RECORD).is_file():
        raise InputError(
            f"topics '{folder}': got no {RECORD} in it, expected the output of dialemb topics; "
            f"{_AGAIN}"
        )
    with explained(f"topics '{folder}'", _AGAIN):
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        groups, made_by, replayed = _read_groups(folder, record), record["encoder"], record["edits"]
    if (folder / EDITS).is_file() and list(read_edits(folder / EDITS).entries) != replayed:
        raise InputError(
            f"topics '{folder}': got other edits in {EDITS} than were replayed; {_AGAIN}, on what "
            "it was of"
        )
    if not made_by["model"]:
        raise InputError(
            f"topics '{folder}': got topics of ready vectors, expected an encoder; make them by "
            "--model"
        )
    loaded = load_encoder(encoder or made_by["model"])
    if loaded.fitted_on_input:
        raise InputError(
            f"topics '{folder}': their model '{made_by['model']}' has no vectors of new dialogues; "
            "make them by another"
        )
    if source_of(loaded) != made_by["vectors"]:
        raise InputError(
            f"topics '{folder}': got vectors of '{loaded.spec or loaded.name}', expected those of "
            "the model that "
            f"made the topics, '{made_by['model']}' as it was then; give that model, or {_AGAIN}"
        )
    return TopicModel(groups, loaded)


def encoder_of(encoder: Encoder | None) -> dict[str, str]:
    """Return the spec of an encoder and the digest of its vectors, as a folder of topics keeps
    them; or empty texts.
    """
    known = encoder is not None and encoder.spec
    return (
        {"model": encoder.spec, "vectors": source_of(encoder)}
        if encoder and known
        else {"model": "", "vectors": ""}
    )


def with_new(groups: Groups, units: NDArray[np.float32], seed: int) -> Groups:
    """Add the topics of dialogues that are like none, and assign all dialogues.

    New is a cluster of `FEWEST` or more whose mean is not like that of any known topic.
    """
    rows = groups.doubtful(units)
    if len(rows) < FEWEST:
        return groups
    labels = np.full(len(units), NOWHERE, dtype=np.int32)
    labels[rows] = find_clusters(units[rows], None, seed)
    new = no_groups(units).with_more(units, labels)
    kept = (np.bincount(labels[rows]) >= FEWEST) & groups.unlike(new.means)
    more = groups.with_more(units, new.at(np.flatnonzero(kept).tolist()).labels)
    return replace(more, labels=more.assigned(units))


def _clustered(
    corpus: Sequence[Dialogue],
    units: NDArray[np.float32],
    topics: int | None,
    nowhere: bool,
    seed: int,
) -> Groups:
    """Cluster dialogues into topics.

    With ``nowhere``, those below the least similarity of theirs are on none.
    """
    labels = with_small_talk_joined(corpus, find_clusters(units, topics, seed))
    groups = no_groups(units).with_more(units, labels)
    sure = stability(units, groups.labels, topics, seed)
    pairs = zip(groups.topics, sure, strict=True)
    groups = replace(groups, topics=tuple(topic._replace(stability=word) for topic, word in pairs))
    if nowhere:
        near = groups.nearness(units)[np.arange(len(units)), groups.labels]
        fitting = np.where(near >= groups.least[groups.labels], groups.labels, NOWHERE).astype(
            np.int32
        )
        groups = replace(groups, labels=fitting)
    return groups


def _units(
    corpus: tuple[Dialogue, ...],
    encoder: Encoder | None,
    vectors: NDArray[np.float32] | None,
    cache: Path | None,
) -> NDArray[np.float32]:
    if vectors is None and encoder is not None:
        vectors = (RememberingEncoder(encoder, cache) if cache else encoder).encode(list(corpus))
    return unit(checked_vectors(vectors, len(corpus), "dialogue"))


def _read_groups(folder: Path, record: Mapping[str, Any]) -> Groups:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(folder / MEANS, "numpy") as tensors:
            means, key = tensors.get_tensor("means"), (tensors.metadata() or {})["key"]
    except SafetensorError as error:
        raise ValueError(f"{MEANS}: {error}") from None
    topics = [topic for topic in record["topics"] if topic["id"] != NO_TOPIC]
    if key != record["key"] or len(means) != len(topics):
        raise ValueError("its files are of different runs")
    if not (np.abs(means) < 2).all():  # they are at most of unit length
        raise ValueError("its means are damaged")
    known = (
        Group(
            topic["id"],
            topic["name"],
            topic["stability"],
            *(topic.get(name, "") for name in BY_MODEL),
        )
        for topic in topics
    )
    return Groups(tuple(known), means, np.zeros(0, dtype=np.int32), record["numbered"])


def _topics(
    title: str,
    corpus: tuple[Dialogue, ...],
    units: NDArray[np.float32],
    groups: Groups,
    naming: _Naming,
    encoder: Mapping[str, str],
    seed: int,
    edits: Edits,
    known: tuple[str, ...] = (),
) -> Topics:
    """Edit groups, sort them by size, and name and count them; what fits nowhere comes last."""
    groups = edits.edited(groups, units, ids_of(corpus), known)
    labels, near = groups.labels, groups.nearness(units)
    alone = labels == NOWHERE
    similarity = np.where(alone, near.max(axis=1), near[np.arange(len(near)), labels])
    order = np.argsort(-np.bincount(labels[~alone], minlength=len(groups.topics)), kind="stable")
    groups = groups.at(order.tolist())
    groups = replace(groups, topics=_with_stability(groups, units, seed))
    whole = groups
    if alone.any():
        whole = replace(
            groups,
            labels=np.where(alone, len(order), groups.labels).astype(np.int32),
            topics=(*groups.topics, Group(NO_TOPIC, FITS_NOWHERE)),
            means=np.concatenate([groups.means, units[alone].mean(axis=0, keepdims=True)]),
        )
    times = [dialogue.time for dialogue in corpus]
    periods, period, counts = counted_periods(times, whole.labels, len(whole.topics))
    named = described(corpus, whole, similarity, counts, naming.names, naming.cache, naming.encode)
    tree = average_linkage(
        groups.means, np.array([max(1, topic.size) for topic in named[: len(groups.topics)]])
    )
    ends = tuple(
        end_of([turn.role for turn in own.turns], [turn.content for turn in own.turns])[0]
        for own in corpus
    )
    facts = groups.means, encoder, groups.numbered, edits, ends
    return Topics(
        title,
        named,
        corpus,
        whole.labels,
        similarity,
        tree,
        placed(units, seed),
        tuple(periods),
        period,
        *facts,
    )


def _with_stability(groups: Groups, units: NDArray[np.float32], seed: int) -> tuple[Group, ...]:
    """Return the topics, and how sure each is where that is not known yet."""
    unknown = [number for number, topic in enumerate(groups.topics) if not topic.stability]
    rows = np.flatnonzero(np.isin(groups.labels, unknown))
    topics = list(groups.topics)
    if len(rows):
        part = replace(groups, labels=groups.labels[rows]).at(unknown)
        for number, word in zip(
            unknown, stability(units[rows], part.labels, seed=seed), strict=False
        ):
            topics[number] = topics[number]._replace(stability=word)
    return tuple(topics)
