"""Search: the turns, or the dialogues, of a file or of objects that answer a text."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from huggingface_hub.constants import HF_HOME

from ...data import load_dialogues
from ...dialogue import Dialogue
from ...encoders import Encoder
from ...encoders.specs import trained_encoder
from ...hashing import json_key, sha256
from .hits import Hits
from .turn_index import TurnIndex


def search(
    encoder: Any, dialogues: Any, query: str, top: int = 5, *, whole: bool = False, **reading: Any
) -> Hits:
    """Find the turns that answer a text, or are about it; `TurnIndex` remembers them.

    Examples:
        >>> hf_dialemb.search(encoder, dialogues, "what did Anna say about the flat?").to_pandas()
        >>> hf_dialemb.search(encoder, dialogues, "my card was stolen", whole=True)

    Args:
        encoder: What `load_encoder` takes.
        dialogues: The forms of `hf_dialemb.data.load_dialogues`.
        query: The text.
        top: How many are wanted, at least 1.
        whole: Whether dialogues are wanted, each by its best turn.
        **reading: How files are read, as in `load_dialogues`.
    """
    return index_of(load_dialogues(dialogues, **reading), encoder).search(query, top, whole=whole)


def kept_index(path: Path, encoder: str | Encoder, **reading: Any) -> TurnIndex:
    """Return an index of the turns of a file, which is kept for the next time.

    It lies in the cache folder of Hugging Face, under the digest of the file and all that decides
    what an index holds.
    """
    key = json_key(
        [sha256(path), trained_encoder(encoder).fingerprint, version("hf-dialemb"), reading]
    )
    folder = Path(HF_HOME) / "hf_dialemb" / f"{key[:32]}.memory"
    if not folder.exists():
        index_of(load_dialogues(path, **reading), encoder).save(folder)
    return TurnIndex(folder, encoder)


def index_of(dialogues: Sequence[Dialogue], encoder: Any) -> TurnIndex:
    """Return an index in memory; dialogues without ids are called by their numbers, as ``#12``."""
    index = TurnIndex(encoder=encoder)
    index.add(
        [replace(item, id=item.id or f"#{number}") for number, item in enumerate(dialogues, 1)]
    )
    return index
