"""What an encoder is, and what the spec of one stands for."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dialogue import Dialogue, Turn
from ..errors import InputError

Numbers = Literal["float32", "bfloat16", "int8"]
"""What a model computes with: float32 as it was published, or fewer bits, which is quicker."""

Kind = Literal["tfidf", "lda", "doc2vec", "words", "api", "static", "dialemb", "sentence-transformers", "transformers"]


class Encoder(Protocol):
    """Anything that turns dialogues into vectors; see `fitted_on_input` for those whose vectors of a dialogue vary."""

    @property
    def name(self) -> str:
        """What result tables call it."""

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Returns one vector per dialogue, ``(N, D)``."""

    def encode_utterances(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector per text, ``(N, D)``."""


class DialogueReader:
    """An encoder that knows dialogues alone: to it an utterance is a dialogue of one turn, the user's."""

    def encode_utterances(self: Encoder, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns one vector per text, ``(N, D)`` float32."""
        return self.encode([Dialogue((Turn("user", text),)) for text in texts])


class EncoderSpec(NamedTuple):
    """What a spec such as ``"MODEL@utterances"``, the name, stands for.

    Attributes:
        kind: How the model loads.
        path: A folder or Hub id, the file of ``words``, the model of ``api``; empty for the other baselines.
        level: ``"dialogue"`` embeds the whole text at once, ``"utterances"`` averages over turns.
        cls: Whether the first token is the vector, not the mean of all.
        whitened: Whether vectors are whitened by what is encoded.
        numbers: What the model computes with.
    """

    name: str
    kind: Kind
    path: str
    level: str = "dialogue"
    cls: bool = False
    whitened: bool = False
    numbers: Numbers = "float32"


def fitted_on_input(encoder: Encoder) -> bool:
    """Says whether vectors depend on what else is encoded in the same call, as an attribute of this name tells."""
    return bool(getattr(encoder, "fitted_on_input", False))


def finite(vectors: ArrayLike, name: str) -> NDArray[np.float32]:
    """Makes an array of an encoder's vectors; an InputError says that they are not finite."""
    found = np.asarray(vectors, dtype=np.float32)
    if not np.isfinite(found).all():
        raise InputError(f"model '{name}': got NaN or infinity, expected a vector of finite numbers; get it again")
    return found
