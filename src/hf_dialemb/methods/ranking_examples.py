"""Examples for rankers: a context, its true response, and others to tell it from (Mehri and Eskenazi, section 3)."""

from collections.abc import Sequence

import numpy as np

from ..dialogue import Dialogue, plain, response_places
from ..errors import InputError
from .config import RankerConfig
from .granularity import Segments
from .method import ListedExamples
from .ranker import RankingExample


class RankingExamples(ListedExamples):
    """Contexts, each with its true response and K - 1 others, drawn afresh in each epoch.

    All that is said in the same words, but for case and blanks, is one response: the others never say what the true one
    does. Without ``granularity`` they are drawn from all distinct responses (equation 8), with it from a segment of
    them (equation 12), each at most once where there are enough. Dialogues are of two or more turns.

    Raises:
        InputError: There is no response with a context, or there are too few different ones.
    """

    def __init__(self, dialogues: Sequence[Dialogue], config: RankerConfig, seed: int) -> None:
        self.dialogues, self.config, self.seed = list(dialogues), config, seed
        places: dict[str, int] = {}
        texts: list[str] = []
        self.items: list[tuple[int, int, int]] = []  # dialogue, turn, response
        silent = 0
        for number, dialogue in enumerate(self.dialogues):
            turns = list(response_places(dialogue, config.responses))
            silent += not turns
            for turn in turns:
                text = dialogue.turns[turn].content
                place = places.setdefault(plain(text), len(texts))
                if place == len(texts):
                    texts.append(text)
                self.items.append((number, turn, place))
        self.notes = [f"Left out {silent:,} dialogues without a response that has a context"] if silent else []
        self._texts = texts
        self._check()
        self.response_vectors = np.empty((0, 0), dtype=np.float32)
        self._segments: Segments | None = None

    def _check(self) -> None:
        config, known = self.config, len(self._texts)
        if not self.items:
            raise InputError(
                f"responses: got no response with a context in {len(self.dialogues)} dialogues, expected at least one; "
                f"add dialogues, or choose other turns than {config.responses!r}"
            )
        if known < config.num_candidates:
            raise InputError(
                f"num_candidates: got {config.num_candidates}, but there are {known} different responses; lower it or "
                "add dialogues"
            )
        if config.granularity is not None and known <= config.num_granularities:
            raise InputError(
                f"num_granularities: got {config.num_granularities}, but each response has {known - 1} others, "
                "expected at least one for each granularity; lower it or add dialogues"
            )

    @property
    def response_texts(self) -> list[str]:
        """The distinct responses, as first said, if their vectors are wanted."""
        return [] if self.config.granularity is None else self._texts

    def length(self, index: int) -> int:
        """Estimates the tokens of a context by its words."""
        number, turn, _ = self.items[index]
        words = sum(1 + len(turn.content.split()) for turn in self.dialogues[number].turns[:turn])
        return min(words, self.config.max_context_tokens)

    def example(self, epoch: int, index: int) -> RankingExample:
        """Returns a context, its true response first, and the others."""
        number, turn, response = self.items[index]
        generator = np.random.default_rng([self.seed, epoch, index])
        others = self._others(response, generator)
        turns = self.dialogues[number].turns
        return RankingExample(turns[:turn], (turns[turn].content, *(self._texts[other] for other in others)))

    def _others(self, response: int, generator: np.random.Generator) -> np.ndarray:
        count = self.config.num_candidates - 1
        if self.config.granularity is None:
            drawn = generator.choice(len(self._texts) - 1, count, replace=False)
            return drawn + (drawn >= response)
        if self._segments is None:  # whatever the run's seed, by the same sample of responses
            self._segments = Segments(self.response_vectors, self.config.num_granularities)
        return self._segments.draw(response, self.config.granularity, count, generator)


class GivenExamples(ListedExamples):
    """Contexts whose candidates were drawn before, the true one first, so that every model ranks the same ones."""

    def __init__(self, examples: Sequence[RankingExample]) -> None:
        self.items: list[RankingExample] = list(examples)
        self.notes: list[str] = []

    def example(self, epoch: int, index: int) -> RankingExample:
        """Returns an example, in each epoch the same."""
        return self.items[index]
