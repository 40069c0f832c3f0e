"""Search: the dialogues nearest to a text or to another dialogue."""

from collections.abc import Sequence
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
    """Find turns that answer a text, or the dialogues nearest to a text or a dialogue by cosine.

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
    start = _row_of(query, items)
    if start is None and isinstance(query, str) and not whole and known is None:
        return TurnIndex(encoder, items).search(query, top)
    if known is None:
        encoder = load_encoder(encoder)
        if start is None and encoder.fitted_on_input:
            start = len(items)  # the query comes last
            known = encoder.encode([*items, _query_dialogue(query)])
        else:
            known = encoder.encode(items)
    wanted = query_vector(encoder, query) if start is None else known[start]
    scores = unit_vectors(known) @ unit_vectors(wanted[None])[0]
    rows = [row for row in best_rows(scores, top + 1).tolist() if row != start]
    return Hits(_hit(items[row], row, float(scores[row])) for row in rows[:top])


def _of_file(path: str | Path, encoder: Any, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
    from ...encoders.stored_vectors import stored_vectors

    spec = str(encoder) if isinstance(encoder, str | Path) else getattr(encoder, "spec", "")
    return stored_vectors(Path(path), spec or None).of_dialogues(dialogues, "these dialogues")


def _row_of(query: Any, dialogues: Sequence[Dialogue]) -> int | None:
    """Return the row of a dialogue that is named by its id or its place, and None for others."""
    if isinstance(query, str):
        ids = [dialogue.id for dialogue in dialogues]
        return ids.index(query) if query and query in ids else None
    if not isinstance(query, int):
        return None
    if not -len(dialogues) <= query < len(dialogues):
        raise InputError(
            f"query: got place {query} among {len(dialogues)} dialogues; give one of these, or a "
            "text"
        )
    return query % len(dialogues)


def query_vector(encoder: Any, query: Any) -> NDArray[np.float32]:
    """Embed a text or a dialogue, (D,)."""
    if isinstance(query, str) and not query.strip():
        raise InputError("query: got no text, expected some words or a dialogue")
    loaded = load_encoder(encoder)
    if isinstance(query, str):
        vectors = loaded.encode_utterances([query])
    else:
        vectors = loaded.encode([_query_dialogue(query)])
    vector: NDArray[np.float32] = vectors[0]
    return vector


def _query_dialogue(query: Any) -> Dialogue:
    if isinstance(query, str):
        return Dialogue((Turn("user", query),))
    return load_dialogues([query])[0]


def describe(dialogue: Dialogue) -> str:
    """Return a line on a dialogue in the form of hits, without a cosine."""
    return " " * 6 + str(_hit(dialogue, 0, 0.0))[6:]


def _hit(dialogue: Dialogue, row: int, score: float) -> Hit:
    return Hit(row, dialogue.id or f"#{row + 1}", score, dialogue.domains, beginning(dialogue))
