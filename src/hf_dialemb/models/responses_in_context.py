"""Responses with the turns around them, and negatives from other dialogues (DialogueCSE, section 3)."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from .dialogue import Dialogue
from .errors import InputError
from .utterance import UtteranceExamples


class ResponseInContext(NamedTuple):
    """A response, what was said before and after it, in order, and others that its role said in other dialogues."""

    previous: tuple[str, ...]
    following: tuple[str, ...]
    response: str
    negatives: tuple[str, ...]


class _Said(NamedTuple):
    """One turn: whose role, in which dialogue, the how manieth, what."""

    role: str
    dialogue: int
    place: int
    text: str


class DialogueCSEExamples(UtteranceExamples):
    """Responses in their context (section 3); example i is a pure function of (seed, epoch, i).

    What a speaker says in one go is one turn (section 5.1.1). Every turn with a neighbour is a response once an epoch.
    Dialogues are of two or more turns, the config a `DialogueCSEConfig`.

    Raises:
        InputError: No turn has both a context and an utterance to compete with.
    """

    def __init__(self, dialogues: Sequence[Dialogue], config: Any, seed: int) -> None:  # noqa: ANN401
        self.config, self.seed = config, seed
        self.turns: list[list[_Said]] = []
        for number, dialogue in enumerate(dialogues):
            spoken = groupby(dialogue.turns, key=lambda turn: turn.role)
            joined = [(role, " ".join(turn.content for turn in turns)) for role, turns in spoken]
            self.turns.append([_Said(role, number, place, text) for place, (role, text) in enumerate(joined)])
        self.pools: dict[str, list[_Said]] = {}
        for said in (said for turns in self.turns for said in turns):
            self.pools.setdefault(said.role, []).append(said)
        self.notes: list[str] = []
        self.items = self._responses()

    def _responses(self) -> list[_Said]:
        """Finds the turns that can be learnt from, and notes how many cannot."""
        everything = [said for turns in self.turns for said in turns]
        by_dialogue = Counter((said.role, said.dialogue) for said in everything)
        by_text = Counter((said.role, said.text) for said in everything)
        by_both = Counter((said.role, said.dialogue, said.text) for said in everything)
        found, alone, unrivalled = [], 0, 0
        for said in everything:
            role, number, place, text = said
            unfit = by_dialogue[role, number] + by_text[role, text] - by_both[role, number, text]
            if place == 0 and (not self.config.next_turns or len(self.turns[number]) == 1):
                alone += 1
            elif len(self.pools[role]) == unfit:
                unrivalled += 1
            else:
                found.append(said)
        if alone:
            self.notes.append(f"Left out {alone:,} turns without a turn beside them")
        if unrivalled:
            self.notes.append(f"Left out {unrivalled:,} turns whose role says nothing else in any other dialogue")
        if not found:
            raise InputError(
                f"dialogue_cse: got no turn with context and negatives from {len(self.turns)} dialogues ({alone} turns "
                f"have none beside them, the roles of {unrivalled} say nothing else in other dialogues), expected at "
                "least one; add dialogues of two speakers"
            )
        return found

    def example(self, epoch: int, index: int) -> ResponseInContext:
        """Returns a response with its context and negatives."""
        said = self.items[index]
        turns, reach = [turn.text for turn in self.turns[said.dialogue]], self.config.context_turns
        after = turns[said.place + 1 : said.place + 1 + reach] if self.config.next_turns else []
        generator = np.random.default_rng([self.seed, epoch, index])
        negatives = (self._negative(said, generator) for _ in range(self.config.num_negatives))
        before = turns[max(0, said.place - reach) : said.place]
        return ResponseInContext(tuple(before), tuple(after), said.text, tuple(negatives))

    def _negative(self, response: _Said, generator: np.random.Generator) -> str:
        pool = self.pools[response.role]
        for _ in range(100):
            other = pool[generator.integers(len(pool))]
            if other.dialogue != response.dialogue and other.text != response.text:
                return other.text
        rest = [said.text for said in pool if said.dialogue != response.dialogue and said.text != response.text]
        return rest[generator.integers(len(rest))]
