"""Flows for tests, from words: a letter is an utterance and what it does, a capital one the assistant's."""

from __future__ import annotations

import numpy as np

from hf_dialemb.flow.flow import Flow, Utterances, grouped


def role_of(letter: str) -> str:
    return "assistant" if letter.isupper() else "user"


def flow_of(*words: str, title: str = "words") -> Flow:
    """Makes the flow of dialogues d1, d2, ... of a word each."""
    letters = [letter for word in words for letter in word]
    places = np.array([place for place, word in enumerate(words) for _ in word], dtype=np.int32)
    names = tuple(f"d{number}" for number in range(1, len(words) + 1))
    roles = tuple(map(role_of, letters))
    said = Utterances(names, places, roles, tuple(f"say {letter}" for letter in letters), tuple(letters))
    return grouped(title, said, zip(roles, letters, strict=True))


def state_of(flow: Flow, letter: str) -> tuple[str, str]:
    return next(cluster.state for cluster in flow.clusters if cluster.name == letter)


def named(flow: Flow, states) -> str:
    """The letters of states; the start is <, the end >."""
    ends = {"[start]": "<", "[end]": ">"}
    return "".join(ends.get(state[1]) or flow.by_state[state].name for state in states)


def random_words(seed: int, count: int = 60, letters: str = "abcABCD", longest: int = 9) -> list[str]:
    generator = np.random.default_rng(seed)
    shares = 1 / np.arange(1, len(letters) + 1) ** 1.5
    return [
        "".join(generator.choice(list(letters), generator.integers(1, longest + 1), p=shares / shares.sum()))
        for _ in range(count)
    ]
