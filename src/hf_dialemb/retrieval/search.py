"""Search: the dialogues nearest to a text or to another dialogue."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..corpora import load_dialogues
from ..dialogue import Dialogue, Turn
from ..drawing import visible
from ..encoders import load_encoder
from ..errors import InputError
from ..metrics.vectors import unit_vectors
from ..runs.frames import data_frame, html_table


@dataclass(frozen=True)
class Hit:
    """A dialogue that was found."""

    row: int  # its place among the dialogues
    id: str  # ``#12`` for the twelfth if it has none
    score: float  # its cosine with the query
    domains: tuple[str, ...]
    text: str  # how it begins; where a text was looked for, from the turn on that is nearest to it

    def __str__(self) -> str:
        labels = f" [{', '.join(self.domains)}]" if self.domains else ""
        return visible(f"{self.score:6.3f} {self.id}{labels} {self.text}")


class Hits(tuple[Hit, ...]):
    """What a search found, the nearest first."""

    __slots__ = ()

    def to_pandas(self) -> Any:  # noqa: ANN401 - a pandas.DataFrame
        """Return a DataFrame with a row for each dialogue."""
        return data_frame([asdict(hit) for hit in self])

    def __repr__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        lines = [f"| {hit.score:.3f} | {hit.id} | {', '.join(hit.domains)} | {hit.text} |" for hit in self]
        return html_table("\n".join(["| Cosine | Id | Labels | Dialogue |", *lines]))


def search(
    encoder: Any,  # noqa: ANN401 - see load_encoder
    dialogues: Any,  # noqa: ANN401 - see load_dialogues
    query: Any,  # noqa: ANN401 - see below
    top: int = 5,
    vectors: NDArray[np.float32] | str | Path | None = None,
    **reading: Any,  # noqa: ANN401
) -> Hits:
    """Find the dialogues nearest to a query by cosine.

    Examples:
        >>> hf_dialemb.search(encoder, dialogues, "my card was stolen", top=5)

    Args:
        encoder: What `load_encoder` takes.
        dialogues: N dialogues, in the forms of `hf_dialemb.corpora.load_dialogues`.
        query: A text; a dialogue, as `load_dialogues` takes one in a list; or one of the dialogues, by its id or its
            number from 0, which then is not among the hits.
        top: How many are wanted, at least 1.
        vectors: The dialogues' vectors by this encoder, (N, D), if they are there already, or the file of them that
            ``dialemb embed`` wrote.
        **reading: How files are read, as in `load_dialogues`.
    """
    check_top(top)
    items = load_dialogues(dialogues, **reading)
    known = _of_file(vectors, encoder, items) if isinstance(vectors, str | Path) else vectors
    if known is not None and len(known) != len(items):
        raise InputError(f"vectors: got {len(known)} for {len(items)} dialogues; embed these dialogues again")
    if isinstance(query, str):
        query = next((row for row, dialogue in enumerate(items) if dialogue.id == query != ""), query)
    if isinstance(query, int):
        if not -len(items) <= query < len(items):
            raise InputError(f"query: got place {query} among {len(items)} dialogues; give one of these, or a text")
        known = load_encoder(encoder).encode(items) if known is None else known
        return _hits(items, nearest(known, query % len(items), top))
    loaded = load_encoder(encoder)
    if known is None and loaded.fitted_on_input:
        together = loaded.encode([*items, _query_dialogue(query)])
        known, wanted = together[:-1], together[-1]
    else:
        wanted = query_vector(loaded, query)
        known = loaded.encode(items) if known is None else known
    scores = unit_vectors(known) @ unit_vectors(wanted[None])[0]
    hits = [(int(row), float(scores[row])) for row in np.argsort(-scores, kind="stable")[:top]]
    return _hits(items, hits, query if isinstance(query, str) else "")


def _of_file(path: str | Path, encoder: Any, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:  # noqa: ANN401
    from ..encoders.stored_vectors import stored_vectors

    spec = str(encoder) if isinstance(encoder, str | Path) else getattr(encoder, "spec", "")
    return stored_vectors(Path(path), spec or None).of_dialogues(dialogues, "these dialogues")


def check_top(top: int) -> None:
    """Refuse what is no number of wanted hits."""
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise InputError(f"top: got {top!r}, expected a whole number of at least 1")


def query_vector(encoder: Any, query: Any) -> NDArray[np.float32]:  # noqa: ANN401 - see search
    """Embed a text or a dialogue, (D,)."""
    loaded = load_encoder(encoder)
    if isinstance(query, str) and not query.strip():
        raise InputError("query: got no text, expected some words or a dialogue")
    vectors = loaded.encode_utterances([query]) if isinstance(query, str) else loaded.encode([_query_dialogue(query)])
    vector: NDArray[np.float32] = vectors[0]
    return vector


def _query_dialogue(query: Any) -> Dialogue:  # noqa: ANN401 - see search
    if isinstance(query, str):
        return Dialogue((Turn("user", query),))
    return load_dialogues([query])[0]


def nearest(vectors: NDArray[np.float32], index: int, top: int) -> list[tuple[int, float]]:
    """Rank all other rows of vectors (N, D) by their cosine with one: pairs of a row and its cosine, best first."""
    units = unit_vectors(vectors)
    scores = units @ units[index]
    order = [row for row in np.argsort(-scores, kind="stable").tolist() if row != index]
    return [(row, float(scores[row])) for row in order[:top]]


def describe(dialogue: Dialogue) -> str:
    """Return a line on a dialogue in the form of hits, without a cosine."""
    return " " * 6 + str(_hit(dialogue, 0, 0.0))[6:]


def _hits(dialogues: Sequence[Dialogue], items: Sequence[tuple[int, float]], text: str = "") -> Hits:
    """Make hits; for a text each begins at the turn nearest to it, by word vectors if they are there."""
    encoder = None
    if text:
        with suppress(InputError):
            encoder = load_encoder("dialogue-static")
    hits = []
    for row, score in items:
        turns, first = [turn.content for turn in dialogues[row].turns], 0
        if encoder is not None:
            wanted, *others = unit_vectors(encoder.encode_utterances([text, *turns]))
            first = int((np.stack(others) @ wanted).argmax())
        hits.append(_hit(dialogues[row], row, score, first))
    return Hits(hits)


def _hit(dialogue: Dialogue, row: int, score: float, first: int = 0) -> Hit:
    return Hit(row, dialogue.id or f"#{row + 1}", score, dialogue.domains, beginning(dialogue, first))


def beginning(dialogue: Dialogue, first: int = 0) -> str:
    """Return the beginning of a dialogue, from the turn ``first`` on, in a line of at most 100 characters."""
    text = " / ".join(" ".join(turn.content.split()) for turn in dialogue.turns[first:])
    text = f"… {text}" if first else text
    return text if len(text) <= 100 else text[:99] + "…"
