"""Group dialogues into topics, and change the groups as a person asks.

A small file that every run replays.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray

from ...errors import InputError, nearest
from ...metrics.vectors import unit

NOWHERE = -1  # the label of a dialogue that fits no topic
LEAST, NEW = 0.75, 0.8
"""The least similarity of a dialogue on a topic, and the one below which it may be of a new topic,
as shares of the length of the topic's mean; chosen on the development split of SGD.
"""


class Group(NamedTuple):
    """What is known of a topic."""

    id: str
    name: str = ""  # empty where it is still to be named
    stability: str = ""  # empty where it is not known yet
    description: str = ""  # by a language model, or empty
    coherent: str = ""  # whether such a model takes it for a single topic: yes, no or empty


@dataclass(frozen=True, eq=False)
class Groups:
    """N dialogues in T topics, by their unit vectors."""

    topics: tuple[Group, ...]  # T with different ids
    # of the vectors of each topic, shorter the more these differ, (T, D)
    means: NDArray[np.float32]
    labels: NDArray[np.int32]  # the topic of each dialogue, (N,), in [0, T), or `NOWHERE`
    numbered: int  # the highest number that a topic has had

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the topics."""
        return tuple(topic.id for topic in self.topics)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the topics."""
        return tuple(topic.name for topic in self.topics)

    @property
    def least(self) -> NDArray[np.float32]:
        """The similarity from which on a new dialogue is on a topic, ``(T,)``.

        `LEAST` of the length of its mean.
        """
        lengths: NDArray[np.float32] = LEAST * np.linalg.norm(self.means, axis=1)
        return lengths

    def doubtful(self, units: NDArray[np.float32]) -> NDArray[np.intp]:
        """Return which of the vectors ``(M, D)`` may be of a new topic."""
        return np.flatnonzero(self.assigned(units, NEW / LEAST) == NOWHERE)

    def nearness(self, units: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosine of vectors ``(M, D)`` with the mean of each topic, ``(M, T)``."""
        cosines: NDArray[np.float32] = units @ unit(self.means).T
        return cosines

    def assigned(self, units: NDArray[np.float32], stricter: float = 1.0) -> NDArray[np.int32]:
        """Return the nearest topic of vectors ``(M, D)``, ``(M,)``, or `NOWHERE` if it is not near
        enough.

        Near enough is what has the least similarity, times a factor to be ``stricter``.
        """
        near = self.nearness(units)
        labels = near.argmax(axis=1)
        fits = near[np.arange(len(near)), labels] >= self.least[labels] * stricter
        return np.where(fits, labels, NOWHERE).astype(np.int32)

    def unlike(self, means: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Return whether each mean of M other topics has a cosine below `NEW` with that of every
        topic, ``(M,)``.
        """
        unlike: NDArray[np.bool_] = self.nearness(unit(means)).max(axis=1) < NEW
        return unlike

    def at(self, places: Sequence[int]) -> Groups:
        """Return some of the topics, in this order; dialogues of the others fit nowhere."""
        numbers = np.full(len(self.topics) + 1, NOWHERE, dtype=np.int32)  # the last for `NOWHERE`
        numbers[list(places)] = np.arange(len(places))
        topics = tuple(self.topics[place] for place in places)
        return replace(
            self, topics=topics, means=self.means[list(places)], labels=numbers[self.labels]
        )

    def with_more(self, units: NDArray[np.float32], labels: NDArray[np.int32]) -> Groups:
        """Add topics that are still to be named.

        Those of dialogues ``(N,)`` whose label is not `NOWHERE`.
        """
        count, total = int(labels.max(initial=NOWHERE)) + 1, len(self.topics)
        means = [*self.means, *(units[labels == number].mean(axis=0) for number in range(count))]
        return replace(
            self,
            topics=(
                *self.topics,
                *(Group(f"topic-{self.numbered + number + 1}") for number in range(count)),
            ),
            means=np.array(means, dtype=np.float32).reshape(-1, units.shape[1]),
            labels=np.where(labels == NOWHERE, self.labels, labels + total).astype(np.int32),
            numbered=self.numbered + count,
        )


def no_groups(units: NDArray[np.float32]) -> Groups:
    """Return the groups of vectors ``(N, D)`` that are on no topic yet."""
    labels = np.full(len(units), NOWHERE, dtype=np.int32)
    return Groups((), units[:0], labels, 0)


_KINDS = {
    "merge": "topics",
    "split": "topic",
    "rename": "topic",
    "delete": "topic",
    "move": "dialogue",
    "together": "dialogues",
    "apart": "dialogues",
}
"""The kinds of edits, and what each is about."""
_MORE = {"split": ("into",), "rename": ("name",), "move": ("to",)}
_EXAMPLE = "'- merge: [topic-1, topic-4]'"
_SEEN = "seen"
EDITS = "edits.yaml"  # the name of a file of edits in a folder of topics


@dataclass(frozen=True)
class Edits:
    """What a person changed in topics, in order; made by `read_edits`."""

    entries: tuple[Mapping[str, Any], ...] = ()
    source: str = EDITS  # the file
    text: str = ""  # of the file

    @property
    def merged(self) -> dict[str, str]:
        """The id that each merged topic's dialogues have now."""
        ids: dict[str, str] = {}
        for entry in self.entries:
            first, *others = map(str, entry.get("merge", ("",)))
            ids = {
                name: first if now in others else now for name, now in ids.items()
            } | dict.fromkeys(others, first)
        return ids

    def edited(
        self,
        groups: Groups,
        units: NDArray[np.float32],
        dialogues: Sequence[str],
        known: Collection[str] = (),
    ) -> Groups:
        """Replay all edits on the groups of dialogues with these ids and unit vectors, ``(N, D)``.

        Topics that are ``known`` from an earlier folder are not split, as its dialogues are not
        here. An InputError says that an edit names a topic or a dialogue that there is not, or
        cannot be done.
        """
        rows = {name: row for row, name in enumerate(dialogues)}
        for number, entry in enumerate(self.entries, 1):
            merged = Edits(self.entries[: number - 1]).merged
            edit = _Edit(
                f"{self.source}, entry {number}", entry, groups, units, rows, known, merged
            )
            groups = getattr(edit, edit.kind)()
        return groups


NO_EDITS = Edits()


def read_edits(path: Path) -> Edits:
    """Read a file of edits: YAML, a list of entries such as ``merge: [topic-1, topic-4]``.

    See docs/topics.md.

    An InputError says that the file cannot be read, or an entry is no edit.
    """
    try:
        text = path.read_text(encoding="utf-8")
        entries = yaml.safe_load(text) or []
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{path}: cannot be read ({reason}); write a list of edits in YAML"
        ) from None
    if not isinstance(entries, list):
        raise InputError(
            f"{path}: got {type(entries).__name__}, expected a list of edits, such as {_EXAMPLE}"
        )
    for number, entry in enumerate(entries, 1):
        kinds = [name for name in _KINDS if isinstance(entry, dict) and name in entry]
        known = {*kinds, *_MORE.get(kinds[0], ()), _SEEN} if len(kinds) == 1 else set()
        if (
            len(kinds) != 1
            or not set(entry) <= known
            or not isinstance(entry.get(_SEEN) or {}, dict)
        ):
            got = ", ".join(map(str, entry)) if isinstance(entry, dict) else entry
            raise InputError(
                f"{path}, entry {number}: got {got!r}, expected an edit such as {_EXAMPLE}, with "
                "one of "
                f"{', '.join(_KINDS)}; correct it"
            )
    return Edits(tuple(json.loads(json.dumps(entries, default=str))), str(path), text)


@dataclass(frozen=True, eq=False)
class _Edit:
    """One edit, with what it is done on; the method of its kind does it."""

    place: str
    entry: Mapping[str, Any]
    groups: Groups
    units: NDArray[np.float32]
    rows: Mapping[str, int]
    known: Collection[str]
    merged: Mapping[str, str]  # the ids that topics have that were merged before

    @property
    def kind(self) -> str:
        return next(name for name in _KINDS if name in self.entry)

    def merge(self) -> Groups:
        """Join topics; the first keeps its id."""
        parts = self._topics(self.entry["merge"], 2)
        rows, first = np.flatnonzero(np.isin(self.groups.labels, parts)), parts[0]
        sizes = np.bincount(self.groups.labels[rows], minlength=len(self.groups.topics))[parts]
        mean = np.average(self.groups.means[parts], axis=0, weights=sizes if len(rows) else None)
        merged = self._remade(first, mean)
        return self._labelled(rows, first, merged).at(
            [number for number in range(len(self.groups.topics)) if number not in parts[1:]]
        )

    def split(self) -> Groups:
        """Divide a topic by k-means; its largest part keeps the id."""
        from sklearn.cluster import KMeans

        (topic,), parts = self._topics([self.entry["split"]]), self.entry.get("into", 2)
        if self.groups.topics[topic].id in self.known:
            raise self._error(
                "split",
                self.entry["split"],
                "a new topic; split this one in the folder that it is of",
            )
        rows = np.flatnonzero(self.groups.labels == topic)
        if not isinstance(parts, int) or not 2 <= parts <= len(rows):
            raise self._error("into", parts, f"2 to {len(rows)}, the number of its dialogues")
        drawn = KMeans(parts, n_init=10, random_state=0).fit_predict(self.units[rows])
        order = np.argsort(
            np.argsort(-np.bincount(drawn, minlength=parts), kind="stable"), kind="stable"
        )[drawn]
        more = np.full_like(self.groups.labels, NOWHERE)
        more[rows[order > 0]] = order[order > 0] - 1
        return self._remade(topic, self.units[rows[order == 0]].mean(axis=0)).with_more(
            self.units, more
        )

    def rename(self) -> Groups:
        """Give a topic a name."""
        (topic,), name = self._topics([self.entry["rename"]]), self.entry.get("name")
        if not isinstance(name, str) or not name.strip():
            raise self._error("name", name, "a text")
        others = [other for number, other in enumerate(self.groups.names) if number != topic]
        if name in others:
            raise self._error("name", name, "one that no other topic has, or merge them")
        return self._with_topic(topic, self.groups.topics[topic]._replace(name=name))

    def delete(self) -> Groups:
        """Remove a topic; its dialogues are assigned to the others where they fit."""
        (topic,) = self._topics([self.entry["delete"]])
        if len(self.groups.topics) == 1:
            raise self._error("delete", self.entry["delete"], "another topic to be left")
        rows = np.flatnonzero(self.groups.labels == topic)
        groups = self.groups.at(
            [number for number in range(len(self.groups.topics)) if number != topic]
        )
        return self._labelled(rows, groups.assigned(self.units[rows]), groups)

    def move(self) -> Groups:
        """Put a dialogue on a topic."""
        (row,), (topic,) = (
            self._dialogues([self.entry["move"]]),
            self._topics([self.entry.get("to")]),
        )
        return self._labelled([row], topic)

    def together(self) -> Groups:
        """Put dialogues on the topic of the first of them."""
        first, *others = self._dialogues(self.entry["together"], 2)
        return self._labelled(others, int(self.groups.labels[first]))

    def apart(self) -> Groups:
        """Put each further dialogue that shares a topic with an earlier one on its next nearest
        topic.
        """
        rows, labels = self._dialogues(self.entry["apart"], 2), self.groups.labels.copy()
        near = self.groups.nearness(self.units[rows])
        for place, row in enumerate(rows):
            taken = set(labels[rows[:place]].tolist()) - {NOWHERE}
            if labels[row] in taken:
                free = [
                    topic for topic in near[place].argsort()[::-1].tolist() if topic not in taken
                ]
                labels[row] = free[0] if free else NOWHERE
        return replace(self.groups, labels=labels)

    def _labelled(self, rows: Any, topics: Any, groups: Groups | None = None) -> Groups:
        groups = groups or self.groups
        labels = groups.labels.copy()
        labels[rows] = topics
        return replace(groups, labels=labels)

    def _remade(self, topic: int, mean: NDArray[np.float32]) -> Groups:
        """Give a topic another mean; what was known of the one that it was no longer holds."""
        known, means = self.groups.topics[topic], self.groups.means.copy()
        means[topic] = mean
        return replace(self._with_topic(topic, Group(known.id, known.name)), means=means)

    def _with_topic(self, place: int, topic: Group) -> Groups:
        topics = self.groups.topics
        return replace(self.groups, topics=(*topics[:place], topic, *topics[place + 1 :]))

    def _topics(self, names: Any, least: int = 1) -> list[int]:
        """Return the places of topics by id, or by name where they have one."""
        known, named = self.groups.ids, self.groups.names
        if not isinstance(names, list) or len(set(map(str, names))) < max(least, len(names)):
            raise self._error(self.kind, names, "a list of different topics, at least two")
        ids = [self.merged.get(name, name) for name in names]
        if len(set(ids)) < len(ids):
            raise self._error(
                self.kind, names, "different topics, which these are no longer; remove the entry"
            )
        for name in ids:
            if name not in known and (not name or name not in named):
                remedy = f"one of {', '.join(known)}; correct it, or remove the entry"
                raise self._error("topic", name, f"{remedy}.{nearest(str(name), known)}")
        places = [known.index(name) if name in known else named.index(name) for name in ids]
        self._check_seen(dict(zip(map(str, names), places, strict=True)))
        return places

    def _check_seen(self, places: Mapping[str, int]) -> None:
        """Refuse a topic whose number now stands for another.

        A dialogue that was on it is on another.
        """
        seen = self.entry.get(_SEEN) or {}
        for name, place in places.items():
            row = self.rows.get(str(seen.get(name)))
            if row is not None and self.groups.labels[row] not in (place, NOWHERE):
                now = self.groups.topics[self.groups.labels[row]].id
                raise self._error(
                    "topic",
                    name,
                    f"that of dialogue '{seen[name]}', which is on {now} now; make the edit again",
                )

    def _dialogues(self, names: Any, least: int = 1) -> list[int]:
        if not isinstance(names, list) or len(set(map(str, names))) < max(least, len(names)):
            raise self._error(
                self.kind, names, "a list of ids of different dialogues, at least two"
            )
        for name in map(str, names):
            if name not in self.rows:
                near = nearest(name, self.rows)
                raise self._error(
                    "dialogue",
                    name,
                    f"the id of one in the input; correct it, or remove the entry.{near}",
                )
        return [self.rows[str(name)] for name in names]

    def _error(self, what: str, got: object, expected: str) -> InputError:
        return InputError(f"{self.place}: {what}: got {got!r}, expected {expected}")
