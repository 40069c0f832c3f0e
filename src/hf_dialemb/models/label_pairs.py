"""Utterances by label, and pairs of one label drawn from them (Dialog2Flow, appendix B)."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .dialogue import Dialogue, Turn, action_name
from .errors import InputError

_WORDS = re.compile(r"[a-zA-Z0-9'?]+")


class LabelPair(NamedTuple):
    """An anchor and a positive that carry a label, by its number in its space, and its vector (E,), if there is one.

    ``carried`` are all labels of each of them; ``width`` is the most that any utterance of the space carries.
    """

    texts: tuple[str, str]
    label: int
    carried: tuple[tuple[int, ...], tuple[int, ...]]
    width: int
    vector: np.ndarray | None = None


class LabelledUtterances:
    """The distinct utterances of dialogues by their labels in one space.

    An utterance that was said often, or under several labels, is one utterance that carries all of them; so are those
    that ``text_forms`` makes alike. The space is ``"actions"`` (acts and slots together, in canonical order),
    ``"acts"`` or ``"slots"``, all in their unified names; the config is a `Dialog2FlowConfig`.

    Raises:
        InputError: No utterance carries a label, or no label has enough utterances.
    """

    def __init__(self, dialogues: Sequence[Dialogue], space: str, config: Any, seed: int) -> None:  # noqa: ANN401
        self.config, self.seed = config, seed
        carried: dict[str, dict[str, None]] = {}
        first: dict[str, str] = {}
        labelled = wordless = 0
        for dialogue in dialogues:
            for turn in dialogue.turns:
                labels = _labels(turn, space)
                labelled += bool(labels)
                if labels and _word_count(turn.content, config.text_forms) < config.min_words:
                    wordless += 1
                elif labels:
                    form = "words" if config.text_forms == "both" else config.text_forms
                    text = first.setdefault(utterance_text(turn.content, form), turn.content)
                    carried.setdefault(text, {}).update(dict.fromkeys(labels))
        if not labelled:
            raise InputError(
                f"dialog2flow learns from dialogue acts and slots: none of {len(dialogues)} dialogues has {space}; "
                "name a corpus with such labels ('dialemb corpus list' shows them), or another target"
            )
        self.notes = [f"Left out {wordless:,} turns of fewer than {config.min_words} words ({space})"] * bool(wordless)
        self._count(carried, space)

    def _count(self, carried: dict[str, dict[str, None]], space: str) -> None:
        """Numbers utterances and labels, and leaves out labels of too few utterances."""
        sizes = Counter(label for labels in carried.values() for label in labels)
        self.labels = sorted(label for label, size in sizes.items() if size >= self.config.min_utterances)
        rare = len(sizes) - len(self.labels)
        if rare:
            least = self.config.min_utterances
            self.notes.append(f"Left out {rare:,} of {len(sizes):,} {space}: fewer than {least} utterances each")
        if len(self.labels) < 2:
            raise InputError(
                f"dialog2flow: got {len(self.labels)} {space} of at least {self.config.min_utterances} different "
                f"utterances (min_utterances), expected two or more; add dialogues or lower min_utterances"
            )
        numbers = {label: number for number, label in enumerate(self.labels)}
        self.texts: list[str] = []
        self.carried: list[tuple[int, ...]] = []
        members: list[list[int]] = [[] for _ in self.labels]
        for text, labels in carried.items():
            known = tuple(numbers[label] for label in labels if label in numbers)
            for number in known:
                members[number].append(len(self.texts))
            if known:
                self.texts.append(text)
                self.carried.append(known)
        self.members = [np.array(rows) for rows in members]
        self.width = max(map(len, self.carried))
        counts = np.array([len(rows) for rows in members], dtype=np.float64)
        weights = counts ** (1 - self.config.label_balance)
        self.ends = np.cumsum(np.maximum(1, np.round(counts.sum() * weights / weights.sum()))).astype(np.int64)

    def __len__(self) -> int:
        return int(self.ends[-1])

    def pair(self, epoch: int, index: int) -> LabelPair:
        """Draws a pair: within an epoch the anchors of a label go round its utterances, the positive is any other."""
        label = int(np.searchsorted(self.ends, index, side="right"))
        members = self.members[label]
        offset = int(np.random.default_rng([self.seed, epoch, label, 0]).integers(len(members)))
        generator = np.random.default_rng([self.seed, epoch, index, 1])
        anchor = (index + offset) % len(members)
        positive = (anchor + 1 + int(generator.integers(len(members) - 1))) % len(members)
        rows = int(members[anchor]), int(members[positive])
        forms = self.config.text_forms
        texts = [self.texts[row] for row in rows]
        if forms == "both":
            texts = [utterance_text(text, "words") if generator.random() < 0.5 else text for text in texts]
        else:
            texts = [utterance_text(text, forms) for text in texts]
        return LabelPair((texts[0], texts[1]), label, (self.carried[rows[0]], self.carried[rows[1]]), self.width)


def utterance_text(text: str, form: str) -> str:
    """Gives an utterance the form ``"raw"``, ``"words"`` or ``"official"`` (see `Dialog2FlowConfig`)."""
    if form == "raw":
        return text
    words = " ".join(_WORDS.findall(text.lower()))
    return words.replace(" ?", "'") if form == "official" else words


def _word_count(text: str, forms: str) -> int:
    return len(text.split()) if forms == "raw" else len(_WORDS.findall(text))


def _labels(turn: Turn, space: str) -> list[str]:
    slots = [name for name, _ in turn.slots]
    if space == "actions":
        action = action_name(turn.dialogue_acts, slots)
        return [action] if action else []
    return list(dict.fromkeys(name for name in (turn.dialogue_acts if space == "acts" else slots) if name))
