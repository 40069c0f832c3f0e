"""An encoder that encodes nothing twice, and knows how long it took."""

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..dialogue import Dialogue, Turn
from ..hashing import dialogue_key, list_key
from ..runs.shards import LOCAL, in_shards, through
from .embedding_cache import EmbeddingCache, Kept
from .encoder import Encoder, finite, fitted_on_input
from .whitening import InputWhitenedEncoder

Result = TypeVar("Result")

PART = 500
"""How many dialogues are encoded, and kept on disk, at once: what a stopped run loses at most."""


class RememberingEncoder:
    """An encoder that remembers vectors, so that several tasks on the same texts cost one pass over them.

    A dialogue is known by who says what; its labels make no difference. Vectors of an encoder that is fitted on what it
    encodes depend on all dialogues of a call, and are remembered for that very list; only whitening is done anew, on
    remembered vectors. A cache keeps vectors for later runs. Others are made by an engine, which gets the encoder; see
    `hf_dialemb.runs.shards`.
    """

    def __init__(self, encoder: Encoder, cache: EmbeddingCache | None = None, engine: str = LOCAL) -> None:
        self.encoder = encoder
        self._engine = engine
        self._cache = cache
        self._seconds = 0.0
        self._vectors: dict[str, NDArray[np.float32]] = {}  # of dialogues, or of lists of them
        self._plain: RememberingEncoder | None = None
        if isinstance(encoder, InputWhitenedEncoder):
            self._plain = RememberingEncoder(encoder.encoder, cache)

    @property
    def name(self) -> str:
        """What result tables call it."""
        return self.encoder.name

    @property
    def seconds(self) -> float:
        """How long encoding took so far; what a cache has counts with the time that it took then."""
        return self._seconds + (self._plain.seconds if self._plain else 0.0)

    @property
    def fitted_on_input(self) -> bool:
        """Whether vectors depend on what else is encoded in the same call."""
        return fitted_on_input(self.encoder)

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Returns one vector per dialogue, ``(N, D)``; equal dialogues get the same one."""
        if not dialogues:
            return self.encoder.encode(dialogues)
        keys = [dialogue_key(dialogue) for dialogue in dialogues]
        if self.fitted_on_input:
            whole = list_key(keys)
            if whole not in self._vectors:
                self._vectors[whole] = self._encode_list(whole, dialogues)
            return self._vectors[whole]
        missing = {key: dialogue for key, dialogue in zip(keys, dialogues, strict=True) if key not in self._vectors}
        if missing and self._cache is not None:
            for key, kept in self._cache.find(missing).items():
                self._vectors[key] = kept.vectors
                self._seconds += kept.seconds
                del missing[key]
        if missing:
            self._encode_rows(missing)
        return np.stack([self._vectors[key] for key in keys])

    def encode_utterances(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed N texts, (N, D); equal texts get the same vector."""
        return self.encode([Dialogue((Turn("user", text),)) for text in texts])

    def timed(self, work: Callable[[], Result]) -> Result:
        """Does what the encoder is asked for beside vectors, counts how long it took, and returns its result."""
        started = time.perf_counter()
        result = work()
        self._seconds += time.perf_counter() - started
        return result

    def forget(self) -> None:
        """Frees the vectors."""
        self._vectors.clear()
        if self._plain is not None:
            self._plain.forget()

    def _encode_rows(self, dialogues: dict[str, Dialogue]) -> None:
        from tqdm.auto import tqdm

        # The longest come first: parts are of one length, and what is cut is told in one warning.
        keys = sorted(dialogues, key=lambda key: -sum(len(turn.content) for turn in dialogues[key].turns))
        name, short = Path(self.name).name, len(keys) <= PART
        unit = "dialogue" if any(len(dialogue.turns) > 1 for dialogue in dialogues.values()) else "utterance"
        with tqdm(total=len(keys), desc=name, unit=unit, file=sys.stderr, leave=False, disable=short) as progress:
            parts = ((part, [dialogues[key] for key in part]) for part in in_shards(keys, PART))
            work = partial(_encoded, self.encoder)
            for part, kept in through(work, parts, self._engine, gpu=True):
                self._seconds += kept.seconds
                if self._cache is not None:
                    self._cache.add(part, *kept)
                self._vectors.update(zip(part, kept.vectors, strict=True))
                progress.update(len(part))

    def _encode_list(self, key: str, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        if self._plain is not None and isinstance(self.encoder, InputWhitenedEncoder):
            whiten, plain = self.encoder.whiten, self._plain.encode(dialogues)
            return self.timed(lambda: whiten(plain))
        kept = self._cache.find_list(key) if self._cache is not None else None
        if kept is not None:
            self._seconds += kept.seconds
            return kept.vectors
        kept = _encoded(self.encoder, dialogues)
        self._seconds += kept.seconds
        if self._cache is not None:
            self._cache.add_list(key, *kept)
        return kept.vectors


def _encoded(encoder: Encoder, dialogues: Sequence[Dialogue]) -> Kept:
    started = time.perf_counter()
    vectors = encoder.encode(dialogues)
    return Kept(finite(vectors, encoder.name), time.perf_counter() - started)
