"""The encoder: dialogues and utterances in, vectors out, whatever model is behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..corpora import load_dialogues
from ..dialogue import Dialogue, Turn
from ..errors import InputError
from .specs import fingerprint
from .whitening import whitened
from .word_vectors import dialogue_texts

Vectors = NDArray[np.float32]
EmbedTexts = Callable[[Sequence[str]], Vectors]
EmbedDialogues = Callable[[Sequence[Dialogue]], Vectors]
Result = TypeVar("Result")


@dataclass(eq=False)
class Encoder:
    """An encoder of dialogues and utterances, as `load_encoder` makes it.

    Examples:
        >>> encoder = hf_dialemb.load_encoder("all-MiniLM-L6-v2")
        >>> encoder.encode([[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]]).shape
        (1, 384)

    A model of texts has ``embed_texts``: a dialogue is its turns joined by spaces, or at the level ``utterances`` the
    mean of its turns' vectors. A model of dialogues has ``embed_dialogues``: an utterance is a dialogue of one turn.

    Attributes:
        name: The name in result tables.
        spec: The spec that loads the encoder again; empty for an object that was in memory.
        level: ``"dialogue"`` or ``"utterances"``.
        whitened: Whether the vectors of a call are whitened by themselves.
        marks: What stands before the turns of ``assistant`` and of all others in a dialogue's text.
        fitted: Whether the encoder is fitted on its input.
        ranker: The `LoadedRanker` behind the vectors, which scores candidates too; else None.
        encode_speakers: Returns vectors (N, R, D) of the R roles, and (N, R) numbers of tokens; None where unknown.
    """

    name: str
    _: KW_ONLY
    embed_texts: EmbedTexts | None = None
    embed_dialogues: EmbedDialogues | None = None
    spec: str = ""
    level: str = "dialogue"
    whitened: bool = False
    marks: tuple[str, str] | None = None
    fitted: bool = False
    ranker: Any = None
    encode_speakers: Callable[[Sequence[Dialogue]], Any] | None = None

    @property
    def fitted_on_input(self) -> bool:
        """Whether a vector depends on the other items of its call, which do not compare between calls."""
        return self.fitted or self.whitened

    @property
    def fingerprint(self) -> str:
        """The digest of everything that decides the vectors (see `specs.fingerprint`); empty without a spec."""
        return fingerprint(self.spec) if self.spec else ""

    def encode(self, dialogues: Any) -> Vectors:  # noqa: ANN401 - see load_dialogues
        """Embed N dialogues, (N, D) float32, in any form that `load_dialogues` takes.

        Raises:
            InputError: There is no dialogue, a dialogue is malformed, or a vector is not finite.
        """
        items = load_dialogues(dialogues)
        return self._finished(self._of_dialogues(items), len(items))

    def encode_utterances(self, texts: Sequence[str]) -> Vectors:
        """Embed N utterances, each by itself, (N, D) float32; refuse anything but a list of strings."""
        if isinstance(texts, str):
            raise InputError(f'texts: got one string, expected a list of strings; pass ["{texts[:30]}"]')
        items = list(texts)
        for place, text in enumerate(items):
            if not isinstance(text, str):
                raise InputError(
                    f"texts[{place}]: got {type(text).__name__}, expected a string; whole dialogues go to encode"
                )
        if not items:
            raise InputError("texts: got none, expected at least one string; give some")
        return self._finished(self._of_texts(items), len(items))

    def push_to_hub(self, repo_id: str, **options: Any) -> str | None:  # noqa: ANN401 - those of push
        """Publish the model behind the encoder, as `hf_dialemb.push` does with its options."""
        from .. import push

        return push(self, repo_id, **options)

    def timed(self, work: Callable[[], Result]) -> Result:
        """Do other work of the encoder, such as ranking; `RememberingEncoder` adds its duration to the seconds."""
        return work()

    def _of_dialogues(self, dialogues: Sequence[Dialogue]) -> Vectors:
        if self.embed_dialogues is not None:
            return self.embed_dialogues(dialogues)
        if self.level == "dialogue":
            return self._of_texts(dialogue_texts(dialogues, self.marks))
        vectors = self._of_texts([turn.content for dialogue in dialogues for turn in dialogue.turns])
        ends = np.cumsum([len(dialogue.turns) for dialogue in dialogues])
        return np.stack([turns.mean(axis=0) for turns in np.split(vectors, ends[:-1])])

    def _of_texts(self, texts: Sequence[str]) -> Vectors:
        if self.embed_texts is None:
            return self._of_dialogues([Dialogue((Turn("user", text),)) for text in texts])
        rows = dict(zip(dict.fromkeys(texts), range(len(texts)), strict=False))  # equal texts are embedded once
        return self.embed_texts(list(rows))[list(map(rows.__getitem__, texts))]

    def _finished(self, vectors: Vectors, count: int) -> Vectors:
        return self._checked(whitened(vectors, self.name) if self.whitened else vectors, count)

    def _checked(self, vectors: Any, count: int) -> Vectors:  # noqa: ANN401 - whatever an object in memory returns
        checked = np.asarray(vectors, dtype=np.float32)
        if checked.ndim != 2 or len(checked) != count:
            raise InputError(
                f"model '{self.name}': got vectors of shape {checked.shape[1:]} for {count} items, expected a vector "
                "for each; look at the encoder, or choose another"
            )
        if not np.isfinite(checked).all():
            raise InputError(
                f"model '{self.name}': got NaN or infinity, expected a vector of finite numbers; get it again"
            )
        return checked

    def __repr__(self) -> str:
        return f"Encoder({self.name!r})"
