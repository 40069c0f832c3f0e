"""Candidate sets: contexts with responses to choose from, drawn once and kept, so that every model ranks the same ones.

A file of them has a JSON object on each line: first one that says how they were drawn, then one for each context, with
``id``, ``context`` (messages), ``responses`` and ``correct`` (places in ``responses`` of those that really followed).
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..dialogue import Dialogue, plain, response_places
from ..errors import InputError
from ..runs.files import write_text_atomically
from .examples import ResponseSelection
from .source.parsing import parse_json

HEADER = "candidates"  # the key of the first line's object, which no other line has


def draw_candidates(
    dialogues: Sequence[Dialogue], num_candidates: int, responses: str, seed: int
) -> list[ResponseSelection]:
    """Draws candidates for every response that has a context, uniformly from the dialogues' distinct responses.

    Of the K candidates one is the true response; nothing that says the same, but for case and blanks, is beside it.
    Which turns are responses is said as in `RankerConfig`. An InputError says that there are fewer different ones than
    K.
    """
    items = [(dialogue, place) for dialogue in dialogues for place in response_places(dialogue, responses)]
    forms: dict[str, str] = {}
    for dialogue, place in items:
        forms.setdefault(plain(dialogue.turns[place].content), dialogue.turns[place].content)
    if len(forms) < num_candidates:
        raise InputError(
            f"candidates: got {len(forms)} different responses, expected at least {num_candidates}; add dialogues or "
            "ask for fewer candidates"
        )
    places, texts = {form: number for number, form in enumerate(forms)}, list(forms.values())
    drawn = []
    for number, (dialogue, place) in enumerate(items):
        generator = np.random.default_rng([seed, number])
        true = dialogue.turns[place].content
        others = generator.choice(len(texts) - 1, num_candidates - 1, replace=False)
        offered = [texts[other + (other >= places[plain(true)])] for other in others]
        correct = int(generator.integers(num_candidates))
        offered.insert(correct, true)
        identifier = f"{dialogue.id}:{place}"
        drawn.append(ResponseSelection(dialogue.turns[:place], tuple(offered), (correct,), identifier))
    return drawn


def write_candidates(path: Path, selections: Iterable[ResponseSelection], drawn_from: dict[str, Any]) -> None:
    """Writes candidate sets and how they were drawn (corpus, split, seed and the like), whole or not at all."""
    records: list[dict[str, Any]] = [{HEADER: drawn_from}]
    for selection in selections:
        context = [{"role": turn.role, "content": turn.content} for turn in selection.context]
        responses, correct = list(selection.responses), list(selection.correct)
        records.append({"id": selection.id, "context": context, "responses": responses, "correct": correct})
    write_text_atomically(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))


def read_candidates(path: str | Path) -> tuple[dict[str, Any], list[ResponseSelection]]:
    """Reads candidate sets, and how they were drawn; empty if the file does not say, as its first line may be absent.

    An InputError says that the file cannot be read, that a line is malformed, or that there is none.
    """
    header: dict[str, Any] = {}
    selections = []
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")  # texts may hold other line breaks
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: {getattr(error, 'strerror', None) or error}; expected a file of candidates"
        ) from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            place = f"{path}:{number}"
            record = parse_json(place, line.encode())
            if number == 1 and isinstance(record, dict) and HEADER in record:
                header = record[HEADER]
            else:
                selections.append(_selection(record, place))
    if not selections:
        raise InputError(f"{path}: got no candidate set, expected one JSON object a line")
    return header, selections


def _selection(record: Any, place: str) -> ResponseSelection:  # noqa: ANN401 - whatever a line holds
    try:
        for field in ("context", "responses", "correct"):
            if not isinstance(record, dict) or not isinstance(record.get(field), list):
                raise InputError(f"field {field}: expected a list; repair the record")
        if not all(isinstance(at, int) for at in record["correct"]):
            raise InputError("field correct: expected whole numbers; repair the record")
        context = Dialogue.from_messages(record["context"]).turns
        responses, correct = tuple(record["responses"]), tuple(record["correct"])
        return ResponseSelection(context, responses, correct, str(record.get("id", "")))
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
