"""The encoder: dialogues and utterances in, vectors out, whatever model is behind it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.conversations import plain_dialogues
from ..data.loading import load_all
from ..dialogue import Dialogue, Turn
from ..errors import InputError
from ..methods.sessions import DOCUMENTS, sessions, spoken
from ..metrics.vectors import unit
from ..ranges import check_range
from ..storage.hardware import checked_device
from .specs import LEVELS, EncoderSpec
from .turn_encoding import TurnTable, with_neighbours
from .vector_form import Precision, check_precision, formed
from .word_vectors import dialogue_texts

Vectors = NDArray[np.float32]
# of a sequence of texts, the size of a batch and whether to show a bar
EmbedTexts = Callable[..., Vectors]
EmbedDialogues = Callable[..., Vectors]  # the same, of dialogues


class _Ready(NamedTuple):
    """Items that were checked, and what embeds them."""

    items: list[Any]
    embed: Callable[..., Vectors]


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
        fitted_on_input: Whether a vector depends on the other items of its call, which do not
            compare between calls.
        batch_size: How many texts or dialogues go through the model at once; None where there are
            no batches, and ``embed_texts`` or ``embed_dialogues`` takes its items alone.
        source: What was loaded; None for an object that was in memory.
        ranker: The `LoadedRanker` behind the vectors, which scores candidates too; else None.
        embed_together: Embeds the texts of sessions in their surroundings, (N, D), as
            `in_surroundings` does; None where a vector is not the mean of its tokens.
        encode_speakers: Returns vectors (N, R, D) of the R roles; None where unknown.
        prompts: Texts that may stand before a text, by name, such as ``query`` and ``document``.
        default_prompt_name: Which of them stands before every text where none is asked for.
        reads_prompts: Whether ``embed_texts`` takes the prompt beside the texts, as ``prompt``.
        module: The torch module behind the vectors; None where there is none.
    """

    name: str
    _: KW_ONLY
    embed_texts: EmbedTexts | None = None
    embed_dialogues: EmbedDialogues | None = None
    level: str = LEVELS[0]
    fitted_on_input: bool = False
    batch_size: int | None = None
    source: EncoderSpec | None = None
    ranker: Any = None
    embed_together: Callable[..., Vectors] | None = None
    encode_speakers: Callable[[Sequence[Dialogue]], Any] | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None
    reads_prompts: bool = False
    module: Any = None

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
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        precision: Precision = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: Any = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
    ) -> Vectors:
        """Embed N dialogues, (N, D) float32, in any form that `load_dialogues` takes.

        Args:
            dialogues: The dialogues.
            prompt_name: Which of ``prompts`` stands before texts; by default the model's, if any.
            prompt: The text itself that stands before every text; ``""`` for none.
            batch_size: How many go through the model at once; by default that of `load_encoder`.
            show_progress_bar: Whether to show a bar; by default a terminal does, after 3 seconds.
            precision: The numbers of the vectors, which sentence-transformers makes from float32.
            convert_to_numpy: Whether to return an array; else a list of torch tensors.
            convert_to_tensor: Whether to return one torch tensor, on the CPU, in place of an array.
            device: Where the model moves before it encodes.
            normalize_embeddings: Whether to scale vectors to length 1, after they are cut.
            truncate_dim: How many of the D numbers to keep, the first ones.

        Raises:
            InputError: A dialogue is malformed, a vector not finite, or an option does not suit.
        """
        check_range("batch_size", batch_size, 1)
        check_precision(precision)
        if isinstance(dialogues, _Ready):
            items, embed = dialogues
        else:
            items = plain_dialogues(dialogues) or load_all(dialogues)
            embed = self._of_dialogues
        text = self._prompt(prompt, prompt_name)
        if device is not None:
            self._move(device)
        batching = (batch_size or self.batch_size, show_progress_bar) if self.batch_size else ()
        vectors = self._finished(embed(items, text, *batching), len(items))
        return formed(  # type: ignore[no-any-return]
            vectors,
            truncate_dim,
            normalize_embeddings,
            precision,
            convert_to_numpy,
            convert_to_tensor,
        )

    def encode_utterances(self, texts: str | Sequence[str], **options: Any) -> Vectors:
        """Embed N utterances by themselves, (N, D), or one string, (D,), float32.

        The options are those of `encode`.
        """
        return self._of_strings(texts, self._of_texts, options)

    def encode_query(self, inputs: Any, **options: Any) -> Vectors:
        """Embed utterances or dialogues that documents are sought for.

        They get the prompt ``query``, if the model has it, unless another is given. Everything
        else is as in `encode` and `encode_utterances`.
        """
        return self._asked(inputs, ("query",), options)

    def encode_document(self, inputs: Any, **options: Any) -> Vectors:
        """Embed utterances or dialogues among which a query seeks.

        They get the prompt ``document``, ``passage`` or ``corpus``, whichever the model has first,
        unless another is given. Of a ranker, the utterances are responses.
        """
        if self.ranker is not None:
            from ..methods.ranker import encode_responses

            def respond(texts: Sequence[str], _prompt: str, *_: Any) -> Vectors:
                return encode_responses(self.ranker, texts)

            return self._of_strings(inputs, respond, options)
        return self._asked(inputs, DOCUMENTS, options)

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
        prompt = self._first_prompt(DOCUMENTS)
        alone = self.encode_utterances(
            texts, prompt=prompt, batch_size=batch_size, show_progress_bar=show_progress_bar
        )
        vectors = with_neighbours(alone, list(map(len, parts)))
        if self.embed_together is not None:
            together = self.embed_together(
                parts, batch_size or self.batch_size, show_progress_bar, prompt
            )
            vectors = unit(vectors + unit(self._finished(together, len(alone))))
        return TurnTable.of(items, vectors)

    def similarity(self, first: Any, second: Any) -> Any:
        """Return the cosines of vectors (N, D) and (M, D), or (D,), as a torch tensor (N, M)."""
        from sentence_transformers.util import cos_sim

        return cos_sim(first, second)

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        """Return the cosines of the rows of vectors (N, D) and (N, D), as a torch tensor (N,)."""
        from sentence_transformers.util import pairwise_cos_sim

        return pairwise_cos_sim(first, second)

    def push_to_hub(self, repo_id: str, **options: Any) -> str | None:
        """Publish the model behind the encoder, as `hf_dialemb.push` does with its options."""
        from .. import push

        return push(self, repo_id, **options)

    def _of_strings(
        self, texts: str | Sequence[str], embed: Callable[..., Vectors], options: dict[str, Any]
    ) -> Vectors:
        items = [texts] if isinstance(texts, str) else list(texts)
        for place, text in enumerate(items):
            if not isinstance(text, str):
                raise InputError(
                    f"texts[{place}]: got {type(text).__name__}, expected a string; whole "
                    "dialogues go to encode"
                )
        if not items:
            raise InputError("texts: got none, expected at least one string; give some")
        rows = self.encode(_Ready(items, embed), **options)
        return rows[0] if isinstance(texts, str) else rows

    def _asked(self, inputs: Any, names: Sequence[str], options: dict[str, Any]) -> Vectors:
        if options.get("prompt_name") is None and options.get("prompt") is None:
            options["prompt"] = self._first_prompt(names)
        if isinstance(inputs, str) or (
            isinstance(inputs, Sequence) and all(isinstance(item, str) for item in inputs)
        ):
            return self.encode_utterances(inputs, **options)
        return self.encode(inputs, **options)

    def _first_prompt(self, names: Sequence[str]) -> str:
        return next((self.prompts[name] for name in names if self.prompts.get(name)), "")

    def _prompt(self, prompt: str | None, name: str | None) -> str:
        """Return the text before every text."""
        prompts = {"query": "", "document": "", **self.prompts}
        if prompt is None and name is not None and name not in prompts:
            known = ", ".join(prompts)
            raise InputError(
                f"prompt_name: got {name!r}, expected one of the prompts of {self.name}: {known}; "
                "name one, or give the text itself as prompt"
            )
        if prompt is None:
            prompt = prompts.get(name or self.default_prompt_name or "", "")
        if prompt and self.embed_texts is None:
            raise InputError(
                f"prompt: got {prompt!r}, but {self.name} reads dialogues as they are; leave it out"
            )
        return prompt

    def _move(self, device: Any) -> None:
        if self.module is not None:
            self.module.to(checked_device(device))
        elif str(device) != "cpu":
            raise InputError(
                f"device: got '{device}', but {self.name} computes without torch; leave it out"
            )

    def _of_dialogues(self, dialogues: Sequence[Dialogue], prompt: str, *batching: Any) -> Vectors:
        if self.embed_dialogues is not None:
            return self.embed_dialogues(dialogues, *batching)
        if self.level == LEVELS[0]:
            return self._of_texts(dialogue_texts(dialogues), prompt, *batching)
        texts = [turn.content for dialogue in dialogues for turn in dialogue.turns]
        vectors = self._of_texts(texts, prompt, *batching)
        ends = np.cumsum([len(dialogue.turns) for dialogue in dialogues])
        return np.stack([turns.mean(axis=0) for turns in np.split(vectors, ends[:-1])])

    def _of_texts(self, texts: Sequence[str], prompt: str, *batching: Any) -> Vectors:
        if self.embed_texts is None:
            blank = next((row for row, text in enumerate(texts) if not text.strip()), None)
            if blank is not None:
                raise InputError(
                    f"texts[{blank}]: got {texts[blank]!r}, expected text, which {self.name} needs "
                    "for a vector; leave it out, with what belongs to its row"
                )
            dialogues = [Dialogue((Turn("user", text),)) for text in texts]
            return self._of_dialogues(dialogues, prompt, *batching)
        # equal texts are embedded once
        rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        if self.reads_prompts:
            vectors = self.embed_texts(list(rows), *batching, prompt=prompt)
        else:
            vectors = self.embed_texts([prompt + text for text in rows], *batching)
        return vectors[[rows[text] for text in texts]]

    def _finished(self, vectors: Any, count: int) -> Vectors:
        """Check the vectors of ``count`` items, (N, D) float32."""
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
        return checked

    def __repr__(self) -> str:
        return f"Encoder({self.name!r})"
