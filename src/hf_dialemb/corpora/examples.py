"""Items of corpora besides dialogues: pairs of sentences, retrieval queries, responses to choose from."""

from dataclasses import dataclass

from ..dialogue import Turn
from ..errors import InputError


@dataclass(frozen=True)
class SentencePair:
    """Two sentences, never blank, and how they belong together."""

    first: str
    second: str
    label: str = ""  # such as "entailment"
    score: float | None = None  # how similar they are, in the corpus's own range
    id: str = ""

    def __post_init__(self) -> None:
        _check_text("first", self.first)
        _check_text("second", self.second)


@dataclass(frozen=True)
class RetrievalQuery:
    """A sentence with sentences to rank by similarity to it; none is blank, and no list is empty."""

    text: str
    relevant: tuple[str, ...]  # what should come first
    other: tuple[str, ...]
    label: str = ""  # what the query is about
    id: str = ""

    def __post_init__(self) -> None:
        _check_text("text", self.text)
        for field, texts in (("relevant", self.relevant), ("other", self.other)):
            if not texts:
                raise InputError(f"field {field}: got no candidate, expected at least one; repair the record")
            for text in texts:
                _check_text(field, text)


@dataclass(frozen=True)
class ResponseSelection:
    """A dialogue so far, with responses to choose from; at least one turn and one candidate, none blank."""

    context: tuple[Turn, ...]
    responses: tuple[str, ...]
    correct: tuple[int, ...]  # positions of those that really followed; none where the corpus says that none did
    id: str = ""

    def __post_init__(self) -> None:
        if not self.context:
            raise InputError("field context: got no turn, expected at least one; repair the record")
        if not self.responses:
            raise InputError("field responses: got no candidate, expected at least one; repair the record")
        for text in self.responses:
            _check_text("responses", text)
        for position in self.correct:
            if not 0 <= position < len(self.responses):
                raise InputError(
                    f"field correct: got {position}, expected a position below {len(self.responses)}; repair the record"
                )


def _check_text(field: str, text: object) -> None:
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"field {field}: got {text!r}, expected text; repair the record or skip invalid records")
