"""Items of corpora without dialogues: pairs of sentences, and queries to rank sentences by."""

from dataclasses import dataclass

from ...data.examples import check_texts
from ...dialogue import Dialogue, Turn


@dataclass(frozen=True)
class SentencePair:
    """Two sentences, never blank, and how they belong together."""

    first: str
    second: str
    score: float | None = None  # how similar they are, in the corpus's own range
    id: str = ""

    def __post_init__(self) -> None:
        check_texts("first", (self.first,))
        check_texts("second", (self.second,))

    def as_dialogue(self) -> Dialogue:
        """Return the sentences as turns, in which leakage is looked for."""
        return _spoken(self.id, self.first, self.second)


@dataclass(frozen=True)
class RetrievalQuery:
    """A sentence with sentences to rank by similarity to it.

    None is blank, and no list is empty.
    """

    text: str
    relevant: tuple[str, ...]  # what should come first
    other: tuple[str, ...]
    label: str = ""  # what the query is about
    id: str = ""

    def __post_init__(self) -> None:
        check_texts("text", (self.text,))
        check_texts("relevant", self.relevant)
        check_texts("other", self.other)

    def as_dialogue(self) -> Dialogue:
        """Return the query and what is relevant as turns, in which leakage is looked for."""
        return _spoken(self.id, self.text, *self.relevant)


def _spoken(identifier: str, *texts: str) -> Dialogue:
    return Dialogue(tuple(Turn("user", text) for text in texts), identifier)
