"""What corpora hold besides dialogues: pairs of sentences, retrieval queries, responses to choose from."""

from dataclasses import dataclass

from ..models.dialogue import Turn
from ..models.errors import InputError


@dataclass(frozen=True)
class SentencePair:
    """Two sentences and how they belong together.

    Attributes:
        first: A sentence; never blank.
        second: A sentence; never blank.
        label: Such as ``"entailment"``; may be empty.
        score: How similar they are, in the corpus's own range, if it says.
        id: A name that is unique in the corpus, or empty.

    Raises:
        InputError: A sentence is blank.
    """

    first: str
    second: str
    label: str = ""
    score: float | None = None
    id: str = ""

    def __post_init__(self) -> None:
        _check_text("first", self.first)
        _check_text("second", self.second)


@dataclass(frozen=True)
class RetrievalQuery:
    """A sentence with sentences to rank by similarity to it.

    Attributes:
        text: The query; never blank.
        relevant: The sentences that should come first; at least one.
        other: The other candidates; at least one.
        label: What the query is about; may be empty.
        id: A name that is unique in the corpus, or empty.

    Raises:
        InputError: A text is blank, or a list of candidates is empty.
    """

    text: str
    relevant: tuple[str, ...]
    other: tuple[str, ...]
    label: str = ""
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
    """A dialogue so far, with responses to choose from.

    Attributes:
        context: The turns so far; at least one.
        responses: The candidates; at least one.
        correct: Positions in `responses` of those that really followed; empty where the corpus says that none did.
        id: A name that is unique in the corpus, or empty.

    Raises:
        InputError: There is no turn or no candidate, a candidate is blank, or a position is outside the list.
    """

    context: tuple[Turn, ...]
    responses: tuple[str, ...]
    correct: tuple[int, ...]
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
