"""Candidate sets: dialogues so far, each with responses to choose from."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..dialogue import Dialogue, Turn, plain, response_places
from ..errors import InputError
from ..storage.files import write_text_atomically
from .parsing import json_lines
from .raw_records import MISFORMED, fault_of
from .source import Source


@dataclass(frozen=True)
class ResponseSelection:
    """A dialogue so far, with responses to choose from.

    At least one turn and one candidate, none blank.
    """

    context: tuple[Turn, ...]
    responses: tuple[str, ...]
    # positions of those that really followed; none where the corpus says that none did
    correct: tuple[int, ...]
    id: str = ""

    def __post_init__(self) -> None:
        if not self.context:
            raise InputError("field context: got no turn, expected at least one; repair the record")
        check_texts("responses", self.responses)
        count = len(self.responses)
        for position in self.correct:
            if not isinstance(position, int) or not 0 <= position < count:
                raise InputError(
                    f"field correct: got {position!r}, expected a position below {count}; repair "
                    "the record"
                )


def check_texts(name: str, texts: Sequence[object]) -> None:
    """Refuse an empty list of texts, and a text that is blank."""
    if not texts:
        raise InputError(
            f"field {name}: got no candidate, expected at least one; repair the record"
        )
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise InputError(
                f"field {name}: got {text!r}, expected text; repair the record or skip invalid "
                "records"
            )


HEADER = "candidates"  # the key of the first line's object, which no other line has


def draw_candidates(
    dialogues: Sequence[Dialogue], num_candidates: int, responses: str, seed: int
) -> list[ResponseSelection]:
    """Draw candidates for every response that has a context, from all distinct responses.

    One of the candidates is the true response; no other equals it but for case and blanks.
    ``responses`` chooses the turns as in `RankerConfig`. Raise `InputError` if there are fewer
    distinct responses than candidates.
    """
    import numpy as np

    items = [
        (dialogue, place)
        for dialogue in dialogues
        for place in response_places(dialogue, responses)
    ]
    forms: dict[str, str] = {}
    for dialogue, place in items:
        forms.setdefault(plain(dialogue.turns[place].content), dialogue.turns[place].content)
    if len(forms) < num_candidates:
        raise InputError(
            f"candidates: got {len(forms)} different responses, expected at least "
            f"{num_candidates}; add dialogues or "
            "ask for fewer candidates"
        )
    places = {form: number for number, form in enumerate(forms)}
    texts = list(forms.values())
    drawn = []
    for number, (dialogue, place) in enumerate(items):
        generator = np.random.default_rng([seed, number])
        true = dialogue.turns[place].content
        others = generator.choice(len(texts) - 1, num_candidates - 1, replace=False)
        offered = [texts[other + (other >= places[plain(true)])] for other in others]
        correct = int(generator.integers(num_candidates))
        offered.insert(correct, true)
        identifier = f"{dialogue.id}:{place}"
        drawn.append(
            ResponseSelection(dialogue.turns[:place], tuple(offered), (correct,), identifier)
        )
    return drawn


def write_candidates(
    path: Path, selections: Iterable[ResponseSelection], drawn_from: dict[str, Any]
) -> None:
    """Write candidate sets and how they were drawn, such as the corpus, the split and the seed."""
    records: list[dict[str, Any]] = [{HEADER: drawn_from}]
    for selection in selections:
        context = Dialogue(selection.context).to_messages()
        choice = {"responses": selection.responses, "correct": selection.correct}
        records.append({"id": selection.id, "context": context, **choice})
    write_text_atomically(
        path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    )


def read_candidates(path: str | Path) -> tuple[dict[str, Any], list[ResponseSelection]]:
    """Read candidate sets, and how they were drawn if the file says so.

    Raises:
        InputError: The file cannot be read, a line is malformed, or there is no candidate set.
    """
    header: dict[str, Any] = {}
    selections = []
    file = Path(path)
    for place, record in json_lines(Source(file.parent), file.name):
        if isinstance(record, dict) and HEADER in record:
            header = record[HEADER]
            continue
        try:
            context = Dialogue.from_messages(record["context"]).turns
            responses = tuple(record["responses"])
            correct = tuple(record["correct"])
            identifier = str(record.get("id", ""))
            selections.append(ResponseSelection(context, responses, correct, identifier))
        except MISFORMED as error:
            raise InputError(f"{place}: {fault_of(error)}") from None
    if not selections:
        raise InputError(f"{path}: got no candidate set, expected one JSON object a line")
    return header, selections
