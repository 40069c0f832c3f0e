"""Find topics, and go on with those of a folder: assign new dialogues, and find what is new."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data import load_dialogues
from ...dialogue import Dialogue
from ...display import data_frame
from ...encoders import Encoder, load_encoder
from ...encoders.embedding_cache import RememberingEncoder
from ...errors import InputError
from ...metrics.vectors import unit
from ...storage.pretrained import default_encoder
from ..flow.extract import checked_vectors, encoder_facts
from ..flow.flow_clustering import in_order_of_size
from ..flow.paths import end_of
from .describing import described, with_small_talk_joined
from .edits import EDITS, NO_EDITS, Edits, read_edits
from .language_model_names import check_writer
from .topic_clustering import counted_periods, find_clusters, placed
from .topic_groups import LEAST, NEW, NOWHERE, Group, Groups, no_groups
from .topics import FEWEST, FITS_NOWHERE, MODEL, NO_TOPIC, PHRASES, Topics, ids_of, read_model

_AGAIN = "run dialemb topics again"


def find_topics(
    dialogues: Any,
    encoder: Any = None,
    *,
    topics: int | None = None,
    names: str = PHRASES,
    vectors: NDArray[np.float32] | None = None,
    title: str = "Topics",
    cache: str | Path | None = None,
    edits: Edits = NO_EDITS,
    language: str = "",
    **reading: Any,
) -> Topics:
    """Find the topics of dialogues without labels: clusters of whole dialogues, named and counted.

    Example:
        >>> topics = hf_dialemb.find_topics(dialogues)
        >>> topics.page("topics.html")

    Args:
        dialogues: The dialogues, as `load_dialogues` takes them.
        encoder: The encoder, as `load_encoder` takes it; by default the best that is at hand.
        topics: The number of topics; by default it is found.
        names: ``phrases``, or a language model, as ``api:MODEL``.
        vectors: The vectors of the dialogues, ``(N, D)``; then no encoder is needed.
        title: The title of the page.
        cache: A folder where vectors and answers of the language model are kept.
        edits: The changes to make in the topics; see `hf_dialemb.apps.topics.edits.read_edits`.
        language: The language of all dialogues, such as ``de``; ends are read in English alone.
            By default the script of each dialogue decides.
        **reading: How files are read, as in `load_dialogues`.

    Raises:
        InputError: There is no dialogue, a setting is wrong, or vectors do not fit.
    """
    corpus = tuple(load_dialogues(dialogues, **reading))
    if topics is not None and not 1 <= topics <= len(corpus):
        raise InputError(
            f"topics: got {topics}, expected 1 to {len(corpus)}, the number of dialogues; change it"
        )
    loaded = None
    if vectors is None or encoder is not None:
        loaded = load_encoder(encoder or default_encoder())
    run = _Run(corpus, loaded, vectors, names, title, cache, edits, language)
    labels = with_small_talk_joined(corpus, find_clusters(run.units, topics))
    groups = no_groups(run.units).with_more(run.units, labels)
    return run.topics_of(groups)


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
        """Return a DataFrame with the topic of each dialogue.

        Its columns are id, topic and name, which are empty where it fits nowhere, and similarity.
        """
        corpus = tuple(load_dialogues(dialogues, **reading))
        units = unit(self.encoder.encode(list(corpus)))
        labels = self.groups.assigned(units)
        topics = [*self.groups.topics, Group("")]  # the last for `NOWHERE`
        rows = zip(ids_of(corpus), labels, self.groups.nearness(units).max(axis=1), strict=True)
        return data_frame(
            [
                {
                    "id": id,
                    "topic": topics[label].id,
                    "name": topics[label].name,
                    "similarity": similarity,
                }
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
        edits: Edits = NO_EDITS,
        language: str = "",
        **reading: Any,
    ) -> Topics:
        """Assign dialogues, and find new topics among those that fit nowhere.

        Known topics keep ids, names and means. The arguments are those of `find_topics`.
        """
        corpus = tuple(load_dialogues(dialogues, **reading))
        run = _Run(corpus, self.encoder, vectors, names, title, cache, edits, language)
        known = replace(self.groups, labels=self.groups.assigned(run.units))
        return run.topics_of(with_new(known, run.units))


def load_topics(path: str | Path, encoder: Any = None) -> TopicModel:
    """Read the topics of a folder that ``dialemb topics`` or `Topics.save` wrote.

    Args:
        path: The folder.
        encoder: The encoder, as `load_encoder` takes it; by default the one that made the topics.
            It must give the same vectors.

    Raises:
        InputError: The folder is missing or damaged, its topics have no encoder, or another than
            the given one.
    """
    place = f"topics '{path}'"
    if not (Path(path) / MODEL).is_file():
        raise InputError(f"{place}: got no {MODEL} in it, which dialemb topics writes; {_AGAIN}")
    record, means = read_model(path)
    edits = Path(path) / EDITS
    made_by = record["encoder"]
    if edits.is_file() and list(read_edits(edits).entries) != record["edits"]:
        raise InputError(
            f"{place}: got other edits in {EDITS} than were replayed; {_AGAIN}, on what it was of"
        )
    if not made_by["model"]:
        raise InputError(f"{place}: got topics of ready vectors; make them by --model")
    loaded = load_encoder(encoder or made_by["model"])
    if loaded.fitted_on_input:
        raise InputError(
            f"{place}: their model '{loaded.spec}' has no vectors of new dialogues; make them by "
            "another"
        )
    if loaded.fingerprint != made_by["vectors"]:
        raise InputError(
            f"{place}: got vectors of '{loaded.spec or loaded.name}', expected those of the model "
            f"that made the topics, '{made_by['model']}' as it was then; give that model, or "
            f"{_AGAIN}"
        )
    topics = tuple(Group(*facts) for facts in record["topics"])
    return TopicModel(
        Groups(topics, means, np.zeros(0, dtype=np.int32), record["numbered"]), loaded
    )


def with_new(groups: Groups, units: NDArray[np.float32]) -> Groups:
    """Add the topics of dialogues that are like none, and assign all dialogues.

    New is a cluster of `FEWEST` or more whose mean is not like that of any known topic. Clusters
    whose means are as alike are one.
    """
    from scipy.sparse.csgraph import connected_components

    rows = np.flatnonzero(groups.assigned(units, NEW / LEAST) == NOWHERE)
    if len(rows) < FEWEST:
        return groups
    labels = np.full(len(units), NOWHERE, dtype=np.int32)
    labels[rows] = find_clusters(units[rows])
    new = no_groups(units).with_more(units, labels)
    alike = connected_components(new.nearness(unit(new.means)) >= NEW)[1]
    labels[rows] = in_order_of_size(alike[labels[rows]])
    new = no_groups(units).with_more(units, labels)
    is_unlike = groups.nearness(unit(new.means)).max(axis=1) < NEW
    kept = np.flatnonzero((np.bincount(labels[rows]) >= FEWEST) & is_unlike)
    more = groups.with_more(units, new.at(kept.tolist()).labels)
    return replace(more, labels=more.assigned(units))


@dataclass(frozen=True, eq=False)
class _Run:
    """The dialogues whose topics are found, and the settings."""

    corpus: tuple[Dialogue, ...]
    encoder: Encoder | None
    vectors: NDArray[np.float32] | None
    names: str
    title: str
    cache: str | Path | None
    edits: Edits
    language: str

    def __post_init__(self) -> None:
        if self.names != PHRASES:
            check_writer(self.names)  # before anything is computed

    @cached_property
    def units(self) -> NDArray[np.float32]:
        """The unit vectors of the dialogues, ``(N, D)``."""
        vectors = self.vectors
        encoder = self.encoder
        if vectors is None and encoder is not None:
            if self.cache:
                encoder = RememberingEncoder(encoder, Path(self.cache))
            vectors = encoder.encode(list(self.corpus))
        return unit(checked_vectors(vectors, len(self.corpus), "dialogue"))

    def topics_of(self, groups: Groups) -> Topics:
        """Edit groups, sort them by size, and name and count them; what fits nowhere comes last."""
        groups = self.edits.edited(groups, self.units, ids_of(self.corpus))
        sizes = np.bincount(groups.labels[groups.labels != NOWHERE], minlength=len(groups.topics))
        groups = groups.at(np.argsort(-sizes, kind="stable").tolist())
        near = groups.nearness(self.units)
        alone = groups.labels == NOWHERE
        own = near[np.arange(len(near)), groups.labels]
        similarity = np.where(alone, near.max(axis=1), own)
        whole = self._with_no_topic(groups) if alone.any() else groups
        times = [dialogue.time for dialogue in self.corpus]
        periods, period, counts = counted_periods(times, whole.labels, len(whole.topics))
        return Topics(
            title=self.title,
            by_size=described(
                self.corpus,
                whole,
                similarity,
                counts,
                self.names,
                cache=Path(self.cache) if self.cache else None,
                encode=self.encoder.encode_utterances if self.encoder else None,
            ),
            corpus=self.corpus,
            labels=whole.labels,
            similarity=similarity,
            places=placed(self.units),
            periods=tuple(periods),
            unit=period,
            means=groups.means,
            encoder=encoder_facts(self.encoder),
            numbered=groups.numbered,
            edits=self.edits,
            ends=tuple(_end(dialogue, self.language) for dialogue in self.corpus),
        )

    def _with_no_topic(self, groups: Groups) -> Groups:
        """Return groups with one more, that of the dialogues that fit nowhere."""
        alone = groups.labels == NOWHERE
        mean = self.units[alone].mean(axis=0, keepdims=True)
        return replace(
            groups,
            labels=np.where(alone, len(groups.topics), groups.labels).astype(np.int32),
            topics=(*groups.topics, Group(NO_TOPIC, FITS_NOWHERE)),
            means=np.concatenate([groups.means, mean]),
        )


def _end(dialogue: Dialogue, language: str) -> str:
    roles = [turn.role for turn in dialogue.turns]
    return end_of(roles, [turn.content for turn in dialogue.turns], language=language)[0]
