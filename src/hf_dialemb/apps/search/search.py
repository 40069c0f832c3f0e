"""Search: the dialogues nearest to a text or to another dialogue."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data import load_dialogues
from ...dialogue import Dialogue, Turn
from ...encoders import load_encoder
from ...errors import InputError
from ...metrics.vectors import unit_vectors
from .hits import Hit, Hits, beginning, best_rows, check_top
from .turn_index import TurnIndex


def search(
    encoder: Any,
    dialogues: Any,
    query: Any,
    top: int = 5,
    vectors: NDArray[np.float32] | str | Path | None = None,
    whole: bool = False,
    **reading: Any,
) -> Hits:
    """Find the turns that answer a text by words and meaning, or the dialogues nearest to a
    dialogue by cosine.

    Examples:
        >>> hf_dialemb.search(encoder, dialogues, "what did Anna say about the flat?").to_pandas()
        >>> hf_dialemb.search(encoder, dialogues, "my card was stolen", whole=True)

    Args:
        encoder: What `load_encoder` takes.
        dialogues: N dialogues, in the forms of `hf_dialemb.data.load_dialogues`.
        query: A text; a dialogue, as `load_dialogues` takes one in a list; or one of the dialogues,
            by its id or its number from 0, which then is not among the hits.
        top: How many are wanted, at least 1.
        vectors: The dialogues' vectors by this encoder, (N, D), if they are there already, or the
            file of them that ``dialemb embed`` wrote; dialogues are then looked for.
        whole: Whether to look for dialogues where the query is a text.
        **reading: How files are read, as in `load_dialogues`.
    """
    check_top(top)
    items = load_dialogues(dialogues, **reading)
    known = _of_file(vectors, encoder, items) if isinstance(vectors, str | Path) else vectors
    if known is not None and len(known) != len(items):
        raise InputError(
            f"vectors: got {len(known)} for {len(items)} dialogues; embed these dialogues again"
        )
    if isinstance(query, str):
        query = next(
            (row for row, dialogue in enumerate(items) if dialogue.id == query != ""), query
        )
    if isinstance(query, str) and not whole and known is None:
        return TurnIndex(encoder, items).search(query, top)
    if isinstance(query, int):
        if not -len(items) <= query < len(items):
            raise InputError(
                f"query: got place {query} among {len(items)} dialogues; give one of these, or a "
                "text"
            )
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
    hits = [(int(row), float(scores[row])) for row in best_rows(scores, top)]
    return _hits(items, hits, query if isinstance(query, str) else "")


def _of_file(path: str | Path, encoder: Any, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
    from ...encoders.stored_vectors import stored_vectors

    spec = str(encoder) if isinstance(encoder, str | Path) else getattr(encoder, "spec", "")
    return stored_vectors(Path(path), spec or None).of_dialogues(dialogues, "these dialogues")


def query_vector(encoder: Any, query: Any) -> NDArray[np.float32]:
    """Embed a text or a dialogue, (D,)."""
    loaded = load_encoder(encoder)
    if isinstance(query, str) and not query.strip():
        raise InputError("query: got no text, expected some words or a dialogue")
    vectors = (
        loaded.encode_utterances([query])
        if isinstance(query, str)
        else loaded.encode([_query_dialogue(query)])
    )
    vector: NDArray[np.float32] = vectors[0]
    return vector


def _query_dialogue(query: Any) -> Dialogue:
    if isinstance(query, str):
        return Dialogue((Turn("user", query),))
    return load_dialogues([query])[0]


def nearest(vectors: NDArray[np.float32], index: int, top: int) -> list[tuple[int, float]]:
    """Rank all other rows of vectors (N, D) by their cosine with one.

    Pairs of a row and its cosine, best first.
    """
    units = unit_vectors(vectors)
    scores = units @ units[index]
    order = [row for row in best_rows(scores, top + 1).tolist() if row != index]
    return [(row, float(scores[row])) for row in order[:top]]


def describe(dialogue: Dialogue) -> str:
    """Return a line on a dialogue in the form of hits, without a cosine."""
    return " " * 6 + str(_hit(dialogue, 0, 0.0))[6:]


def _hits(
    dialogues: Sequence[Dialogue], items: Sequence[tuple[int, float]], text: str = ""
) -> Hits:
    """Make hits.

    For a text each begins at the turn nearest to it, by word vectors if they are there.
    """
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
    return Hit(
        row, dialogue.id or f"#{row + 1}", score, dialogue.domains, beginning(dialogue, first)
    )
