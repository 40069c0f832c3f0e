"""Change topics as a person asks, in a small file that every run replays."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from ...errors import InputError, nearest
from ..flow.flow_clustering import in_order_of_size
from .topic_groups import NOWHERE, Groups

EDITS = "edits.yaml"  # the file of edits in a folder of topics
_FIELDS = {"merge": {"merge"}, "split": {"split", "into"}, "rename": {"rename", "name"}}
_SEEN = "seen"  # the field with a dialogue of each topic, by which the page knows the topic again


@dataclass(frozen=True)
class Edits:
    """The changes of a person in topics, in order; made by `read_edits`."""

    entries: tuple[Mapping[str, Any], ...] = ()
    source: str = EDITS  # the file

    @property
    def merged(self) -> dict[str, str]:
        """The id that the dialogues of each merged topic have now."""
        ids: dict[str, str] = {}
        for entry in self.entries:
            first, *others = entry.get("merge", [""])
            ids = {name: first if now in others else now for name, now in ids.items()}
            ids |= dict.fromkeys(others, first)
        return ids

    def edited(
        self, groups: Groups, units: NDArray[np.float32], dialogues: Sequence[str]
    ) -> Groups:
        """Replay all edits on groups.

        Args:
            groups: The groups of N dialogues.
            units: The unit vectors of the dialogues, ``(N, D)``.
            dialogues: The ids of the dialogues.

        Raises:
            InputError: An edit cannot be done, or names a topic or a dialogue that is missing.
        """
        rows = {name: row for row, name in enumerate(dialogues)}
        for number, entry in enumerate(self.entries, 1):
            merged = Edits(self.entries[: number - 1]).merged
            place = f"{self.source}, entry {number}"
            groups = _Edit(place, entry, groups, units, rows, merged).applied()
        return groups


NO_EDITS = Edits()


def read_edits(path: Path) -> Edits:
    """Read a file of edits: YAML, a list of entries such as ``merge: [topic-1, topic-4]``.

    See docs/topics.md.

    Raises:
        InputError: The file cannot be read, or an entry is no edit.
    """
    try:
        text = path.read_text(encoding="utf-8")
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            raise ValueError("it has an alias")
        entries = yaml.safe_load(text) or []
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise InputError(
            f"{path}: cannot be read ({' '.join(str(error).split())[:200]}); write a list of "
            "edits in YAML"
        ) from None
    if not isinstance(entries, list):
        raise InputError(f"{path}: got {type(entries).__name__}, expected a list of edits; fix it")
    for number, entry in enumerate(entries, 1):
        if not _is_edit(entry):
            raise InputError(
                f"{path}, entry {number}: got {str(entry)[:200]!r}, expected an edit such as "
                f"'- merge: [topic-1, topic-4]', with one of {', '.join(_FIELDS)}; correct it"
            )
    return Edits(tuple(json.loads(json.dumps(entries, default=str))), str(path))


def _is_edit(entry: Any) -> bool:
    """Return whether an entry has the fields of one kind, and values without values of their own.

    Topics to merge are a list, dialogues that were seen a mapping.
    """
    if not isinstance(entry, dict):
        return False
    kinds = entry.keys() & _FIELDS.keys()
    if len(kinds) != 1 or not entry.keys() <= _FIELDS[next(iter(kinds))] | {_SEEN}:
        return False
    seen = entry.get(_SEEN) or {}
    listed = entry.get("merge", [])
    if not isinstance(seen, dict) or not isinstance(listed, list):
        return False
    values = [entry[name] for name in entry if name not in ("merge", _SEEN)]
    return not any(isinstance(value, list | dict) for value in (*values, *listed, *seen.values()))


@dataclass(frozen=True, eq=False)
class _Edit:
    """One edit, with its groups; the method of its kind returns the changed groups."""

    place: str
    entry: Mapping[str, Any]
    groups: Groups
    units: NDArray[np.float32]
    rows: Mapping[str, int]
    merged: Mapping[str, str]  # the ids now of topics that were merged before

    def applied(self) -> Groups:
        kind = next(name for name in _FIELDS if name in self.entry)
        target = self.entry[kind]
        if kind == "merge":
            if len(target) < 2:
                raise self._error(kind, target, "a list of at least two topics")
            return self._merged(list(map(self._topic, target)))
        topic = self._topic(target)
        return self._split(topic) if kind == "split" else self._renamed(topic)

    def _merged(self, topics: list[int]) -> Groups:
        """Join topics; the first keeps its id."""
        first, *others = topics
        if len(set(topics)) < len(topics):
            raise self._error("merge", self.entry["merge"], "different topics, which they are not")
        rows = np.isin(self.groups.labels, topics)
        sizes = np.bincount(self.groups.labels[rows], minlength=len(self.groups.topics))[topics]
        weights = sizes if rows.any() else None
        mean = np.average(self.groups.means[topics], axis=0, weights=weights)
        labels = np.where(rows, first, self.groups.labels).astype(np.int32)
        remade = self._remade(first, mean, labels)
        return remade.at([place for place in range(len(remade.topics)) if place not in others])

    def _split(self, topic: int) -> Groups:
        """Divide a topic by k-means; its largest part keeps the id."""
        from sklearn.cluster import KMeans

        parts = self.entry.get("into", 2)
        rows = np.flatnonzero(self.groups.labels == topic)
        if not isinstance(parts, int) or not 2 <= parts <= len(rows):
            raise self._error("into", parts, f"2 to {len(rows)}, the number of its dialogues")
        drawn = KMeans(parts, n_init=10, random_state=0).fit_predict(self.units[rows])
        order = in_order_of_size(drawn)
        more = np.full_like(self.groups.labels, NOWHERE)
        more[rows] = order - 1  # the largest stays where it is
        mean = self.units[rows[order == 0]].mean(axis=0)
        return self._remade(topic, mean, self.groups.labels).with_more(self.units, more)

    def _renamed(self, topic: int) -> Groups:
        name = self.entry.get("name")
        if not isinstance(name, str) or not name.strip():
            raise self._error("name", name, "a text")
        if name in (other for place, other in enumerate(self.groups.names) if place != topic):
            raise self._error("name", name, "one that no other topic has, or merge them")
        return self.groups.with_topic(topic, self.groups.topics[topic]._replace(name=name))

    def _remade(self, topic: int, mean: NDArray[np.float32], labels: NDArray[np.int32]) -> Groups:
        """Give a topic another mean."""
        means = self.groups.means.copy()
        means[topic] = mean
        return replace(self.groups, means=means, labels=labels)

    def _topic(self, name: Any) -> int:
        """Return the place of a topic by its id.

        An id that stands for another topic since the page was written is refused: the dialogue that
        the page noted for it is on another.
        """
        known = self.groups.ids
        current = self.merged.get(name, name)
        if current not in known:
            raise self._error(
                "topic",
                name,
                f"one of {', '.join(known)}; correct it, or remove the entry."
                f"{nearest(str(name), known)}",
            )
        place = known.index(current)
        seen = str((self.entry.get(_SEEN) or {}).get(name))
        label = self.groups.labels[self.rows[seen]] if seen in self.rows else NOWHERE
        if label not in (place, NOWHERE):
            expected = f"that of dialogue '{seen}', which is on {known[label]} now"
            raise self._error("topic", name, f"{expected}; make the edit again")
        return place

    def _error(self, field: str, got: object, expected: str) -> InputError:
        return InputError(f"{self.place}: {field}: got {got!r}, expected {expected}")
