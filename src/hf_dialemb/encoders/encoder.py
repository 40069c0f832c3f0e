"""The encoder: dialogues and utterances in, vectors out, whatever model is behind it."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..data.conversations import plain_dialogues
from ..data.loading import load_all
from ..dialogue import Dialogue, Turn
from ..errors import InputError
from ..methods.sessions import sessions, spoken
from ..metrics.vectors import unit
from .specs import LEVELS, EncoderSpec
from .turn_encoding import TurnTable, with_neighbours
from .word_vectors import dialogue_texts

Vectors = NDArray[np.float32]
# of a sequence of texts, the size of a batch and whether to show a bar
EmbedTexts = Callable[..., Vectors]
EmbedDialogues = Callable[..., Vectors]  # the same, of dialogues
Result = TypeVar("Result")


@dataclass(eq=False)
class Encoder:
    """An encoder of dialogues and utterances, as `load_encoder` makes it.

    Examples:
        >>> encoder = hf_dialemb.load_encoder("all-MiniLM-L6-v2")
        >>> encoder.encode([[{"role": "user", "content": "Hello"}]]).shape
        (1, 384)

    A model of texts has ``embed_texts``: a dialogue is its turns joined by spaces, or at the level
    ``utterances`` the mean of its turns' vectors. A model of dialogues has ``embed_dialogues``: an
    utterance is a dialogue of one turn.

    Attributes:
        name: The name in result tables.
        level: ``"dialogue"`` or ``"utterances"``.
        marks: What stands before the turns of ``assistant`` and of all others in a dialogue's text.
        fitted_on_input: Whether a vector depends on the other items of its call, which do not
            compare between calls.
        batch_size: How many texts or dialogues go through the model at once; None where there are
            no batches, and ``embed_texts`` or ``embed_dialogues`` takes its items alone.
        source: What was loaded; None for an object that was in memory.
        ranker: The `LoadedRanker` behind the vectors, which scores candidates too; else None.
        embed_together: Embeds the texts of sessions in their surroundings, (N, D), as
            `in_surroundings` does; None where a vector is not the mean of its tokens.
        encode_speakers: Returns vectors (N, R, D) of the R roles, and (N, R) numbers of tokens;
            None where unknown.
    """

    name: str
    _: KW_ONLY
    embed_texts: EmbedTexts | None = None
    embed_dialogues: EmbedDialogues | None = None
    level: str = LEVELS[0]
    marks: tuple[str, str] | None = None
    fitted_on_input: bool = False
    batch_size: int | None = None
    source: EncoderSpec | None = None
    ranker: Any = None
    embed_together: Callable[..., Vectors] | None = None
    encode_speakers: Callable[[Sequence[Dialogue]], Any] | None = None

    @property
    def spec(self) -> str:
        """The name that loads the model again; empty for an object that was in memory."""
        return "" if self.source is None else self.source.model

    @property
    def fingerprint(self) -> str:
        """The digest of everything that decides the vectors, see `EncoderSpec.fingerprint`.

        Empty for an object that was in memory.
        """
        return "" if self.source is None else self.source.fingerprint

    def encode(
        self,
        dialogues: Any,
        *,
        batch_size: int | None = None,
        normalize_embeddings: bool = False,
        show_progress_bar: bool | None = None,
        convert_to_tensor: bool = False,
        truncate_dim: int | None = None,
    ) -> Vectors:
        """Embed N dialogues, (N, D) float32, in any form that `load_dialogues` takes.

        Args:
            dialogues: The dialogues.
            batch_size: How many go through the model at once; by default as many as it was loaded
                with.
            normalize_embeddings: Whether to scale vectors to length 1, after they are cut.
            show_progress_bar: Whether to show a bar; by default only a terminal does, after three
                seconds.
            convert_to_tensor: Whether to return a torch tensor, on the CPU, in place of an array.
            truncate_dim: How many of the D numbers to keep, the first ones.

        Raises:
            InputError: There is no dialogue, a dialogue is malformed, a vector is not finite, or D
                is too small.
        """
        items = plain_dialogues(dialogues) or load_all(dialogues)
        batching = (batch_size or self.batch_size, show_progress_bar) if self.batch_size else ()
        vectors = self._of_dialogues(items, *batching)
        options = (truncate_dim, normalize_embeddings, convert_to_tensor)
        return self._finished(vectors, len(items), *options)

    def encode_utterances(
        self,
        texts: str | Sequence[str],
        *,
        batch_size: int | None = None,
        normalize_embeddings: bool = False,
        show_progress_bar: bool | None = None,
        convert_to_tensor: bool = False,
        truncate_dim: int | None = None,
    ) -> Vectors:
        """Embed N utterances by themselves, (N, D), or one string, (D,), float32.

        The options are those of `encode`.
        """
        items = [texts] if isinstance(texts, str) else list(texts)
        for place, text in enumerate(items):
            if not isinstance(text, str):
                raise InputError(
                    f"texts[{place}]: got {type(text).__name__}, expected a string; whole "
                    "dialogues go to encode"
                )
        if not items:
            raise InputError("texts: got none, expected at least one string; give some")
        batching = (batch_size or self.batch_size, show_progress_bar) if self.batch_size else ()
        vectors = self._of_texts(items, *batching)
        options = (truncate_dim, normalize_embeddings, convert_to_tensor)
        rows = self._finished(vectors, len(items), *options)
        return rows[0] if isinstance(texts, str) else rows

    def encode_turns(
        self,
        dialogues: Any,
        *,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
    ) -> TurnTable:
        """Embed every turn of some dialogues, by itself and in its surroundings.

        The table has a row for each turn.

        The speaker's name, where it is known, stands before the text. A turn's own vector gets
        parts of those of its neighbours. Where a model has tokens, the turn as it reads with those
        around it (see `in_surroundings`) counts as much. Nothing is read across dialogues, or
        across hours of silence between times that are known.

        Examples:
            >>> encoder.encode_turns(dialogues).frame()
        """
        items = load_all(dialogues)
        parts = [
            [spoken(turn) for turn in session]
            for dialogue in items
            for session in sessions(dialogue)
        ]
        texts = [text for part in parts for text in part]
        alone = self.encode_utterances(
            texts, batch_size=batch_size, show_progress_bar=show_progress_bar
        )
        vectors = with_neighbours(alone, list(map(len, parts)))
        if self.embed_together is None:
            return TurnTable.of(items, vectors)
        together = self.embed_together(parts, batch_size or self.batch_size, show_progress_bar)
        return TurnTable.of(items, unit(vectors + unit(self._finished(together, len(alone)))))

    def similarity(self, first: Any, second: Any) -> Any:
        """Return the cosines of vectors (N, D) and (M, D), or (D,), as a torch tensor (N, M)."""
        from torch import as_tensor, atleast_2d
        from torch.nn.functional import normalize

        rows, columns = (
            normalize(atleast_2d(as_tensor(vectors)).float()) for vectors in (first, second)
        )
        return rows @ columns.T

    def push_to_hub(self, repo_id: str, **options: Any) -> str | None:
        """Publish the model behind the encoder, as `hf_dialemb.push` does with its options."""
        from .. import push

        return push(self, repo_id, **options)

    def timed(self, work: Callable[[], Result]) -> Result:
        """Do other work of the encoder, such as ranking.

        `RememberingEncoder` adds its duration to the seconds.
        """
        return work()

    def _of_dialogues(self, dialogues: Sequence[Dialogue], *batching: Any) -> Vectors:
        if self.embed_dialogues is not None:
            return self.embed_dialogues(dialogues, *batching)
        if self.level == LEVELS[0]:
            return self._of_texts(dialogue_texts(dialogues, self.marks), *batching)
        texts = [turn.content for dialogue in dialogues for turn in dialogue.turns]
        vectors = self._of_texts(texts, *batching)
        ends = np.cumsum([len(dialogue.turns) for dialogue in dialogues])
        return np.stack([turns.mean(axis=0) for turns in np.split(vectors, ends[:-1])])

    def _of_texts(self, texts: Sequence[str], *batching: Any) -> Vectors:
        if self.embed_texts is None:
            dialogues = [Dialogue((Turn("user", text),)) for text in texts]
            return self._of_dialogues(dialogues, *batching)
        # equal texts are embedded once
        rows = dict(zip(dict.fromkeys(texts), range(len(texts)), strict=False))
        return self.embed_texts(list(rows), *batching)[list(map(rows.__getitem__, texts))]

    def _finished(
        self,
        vectors: Any,
        count: int,
        width: int | None = None,
        normalize: bool = False,
        as_tensor: bool = False,
    ) -> Vectors:
        """Check the vectors of ``count`` items, (N, D) float32, and give them their final form."""
        checked = np.asarray(vectors, dtype=np.float32)
        if checked.ndim != 2 or len(checked) != count:
            raise InputError(
                f"model '{self.name}': got vectors of shape {checked.shape[1:]} for {count} items, "
                "expected a vector for each; look at the encoder, or choose another"
            )
        if not np.isfinite(checked).all():
            raise InputError(
                f"model '{self.name}': got NaN or infinity, expected a vector of finite numbers; "
                "get it again"
            )
        if width is not None and not 1 <= width <= checked.shape[1]:
            raise InputError(
                f"truncate_dim: got {width}, expected 1 to {checked.shape[1]}, the width of the "
                "vectors"
            )
        checked = checked[:, :width]
        if normalize:
            checked = unit(checked)
        if as_tensor:
            from torch import from_numpy

            return from_numpy(checked)  # type: ignore[return-value]
        return checked

    def __repr__(self) -> str:
        return f"Encoder({self.name!r})"
