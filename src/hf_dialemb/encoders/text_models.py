"""Encoders of dialogues made from models of texts: sentence-transformers, and whatever `AutoModel` loads."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..models.backbones import check_tokenizer, check_weights, read_config, short_reason
from ..models.dialogue import Dialogue, Turn
from ..models.errors import InputError
from .encoder import EncoderSpec

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

    from ..models.utterance import UtteranceEncoder

logger = logging.getLogger(__name__)

MAX_TOKENS = 512
"""Where texts are cut for plain transformers models, or earlier at the model's own limit."""

TextEmbedder = Callable[[Sequence[str]], NDArray[np.float32]]


class SpeakerMarks(NamedTuple):
    """Tokens before the turns of the role ``assistant``, and of everybody else, as TOD-BERT's models have them."""

    system: str
    user: str


MARKS = (SpeakerMarks("[SYS]", "[USR]"), SpeakerMarks("[sys]", "[usr]"))
"""What a vocabulary is searched for; the published TOD-BERT is uncased and has the second."""


@dataclass(frozen=True)
class TextEncoder:
    """Makes an encoder of dialogues from an encoder of texts.

    The level ``"dialogue"`` embeds the whole text at once, its turns perhaps behind marks; ``"utterances"`` averages
    over turns.
    """

    name: str
    embed: TextEmbedder
    level: str = "dialogue"
    marks: SpeakerMarks | None = None

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Returns one vector per dialogue, ``(N, D)`` float32."""
        texts = dialogue_texts(dialogues, self.marks)
        if self.level == "dialogue":
            return self.embed(texts)
        places: dict[str, int] = {}
        turns = [[places.setdefault(turn.content, len(places)) for turn in dialogue.turns] for dialogue in dialogues]
        vectors = self.embed(list(places))
        return np.stack([vectors[rows].mean(axis=0) for rows in turns])

    def encode_utterances(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns one vector per text, ``(N, D)`` float32."""
        return self.embed(list(texts))


def dialogue_texts(dialogues: Sequence[Dialogue], marks: SpeakerMarks | None = None) -> list[str]:
    """Writes each dialogue as one text: its turns, perhaps behind marks, joined by spaces; refuses none at all."""
    if not dialogues:
        raise InputError("dialogues: got none, expected at least one; check the corpus and the split")

    def written(turn: Turn) -> str:
        if marks is None:
            return turn.content
        return f"{marks.system if turn.role == 'assistant' else marks.user} {turn.content}"

    return [" ".join(map(written, dialogue.turns)) for dialogue in dialogues]


def embed_utterances(model: UtteranceEncoder, tokenizer: PreTrainedTokenizerBase, batch_size: int) -> TextEmbedder:
    """Makes an embedder of texts from an utterance encoder, which becomes float32, as in its published form."""
    from ..models.utterance import encode_utterances

    model.float()  # type: ignore[no-untyped-call]
    return partial(encode_utterances, model, tokenizer, batch_size=batch_size)


def load_sentence_transformer(path: str, device: str | None = None) -> Any:  # noqa: ANN401 - a SentenceTransformer
    """Loads a folder or Hub id with sentence-transformers, in float32, as `load_pretrained` does."""
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, PreTrainedModel

    for file in Path(path).glob("**/config.json"):
        read_config(str(file.parent))
    try:
        model = SentenceTransformer(path, device=device, trust_remote_code=False).float()
        inner: Any = getattr(model[0], "auto_model", None)
        missing: set[str] = set()
        place = str(inner.name_or_path) if isinstance(inner, PreTrainedModel) else ""
        if place and (Path(place) / "config.json").is_file():
            options = {"device_map": "meta", "output_loading_info": True, "trust_remote_code": False}
            _, told = AutoModel.from_pretrained(place, **options)  # tells what is missing; reads nothing
            missing = told["missing_keys"]
        check_weights(model, missing, path)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"'{path}' cannot be read ({short_reason(error)}); fetch or train the model again") from None
    if inner is not None and hasattr(model.tokenizer, "get_vocab"):
        check_tokenizer(model.tokenizer, path)
    return model


def sentence_embedder(model: Any, batch_size: int) -> TextEmbedder:  # noqa: ANN401
    """Makes an embedder of texts from a loaded SentenceTransformer; it warns when it cuts some at the model's limit."""

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        # Tokenizers of static vectors and of words cannot be called, nor do they cut anything.
        if model.max_seq_length and callable(model.tokenizer):
            _lengths(model.tokenizer, texts, model.max_seq_length)
        vectors = model.encode(list(texts), batch_size=batch_size, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(vectors, dtype=np.float32)

    return embed


def transformers_encoder(found: EncoderSpec, batch_size: int, device: str) -> TextEncoder:
    """Loads any model that `AutoModel` loads; of an encoder-decoder, such as T5 or Blenderbot, the encoder.

    A text's vector is the mean of the last layer's tokens, or the first of them, as the spec has it. Where the
    vocabulary holds a pair of `MARKS`, as TOD-BERT's does, they stand before the turns of whole dialogues. Longer
    texts than the model's limit, or than `MAX_TOKENS`, are cut with a warning.
    """
    import torch
    from transformers import AutoModel, AutoTokenizer

    from ..models.backbones import has_decoder, load_pretrained
    from ..models.utterance import mean_of_tokens

    tokenizer = load_pretrained(AutoTokenizer, found.path)
    model = load_pretrained(AutoModel, found.path).to(device=device, dtype=torch.float32).eval()
    if has_decoder(model):
        model = model.get_encoder()
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token  # masked out below, so any token serves
    marks = _marks_of(tokenizer) if found.level == "dialogue" else None
    positions = getattr(model.config, "max_position_embeddings", None) or MAX_TOKENS
    limit = min(MAX_TOKENS, tokenizer.model_max_length, positions)
    pool = _first_token if found.cls else mean_of_tokens

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        order = np.argsort(-_lengths(tokenizer, texts, limit), kind="stable")
        result = np.zeros((len(texts), model.config.hidden_size), dtype=np.float32)
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            chosen = [texts[row] for row in rows]
            batch = tokenizer(chosen, truncation=True, max_length=limit, padding=True, return_tensors="pt").to(device)
            with torch.inference_mode():
                hidden = model(**batch).last_hidden_state  # (B, L, D)
                result[rows] = pool(hidden, batch["attention_mask"]).float().cpu().numpy()
        return result

    return TextEncoder(found.name, embed, found.level, marks)


def _first_token(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    first = mask.argmax(dim=1)  # not 0 where padding stands on the left
    return hidden[list(range(len(hidden))), first]


def _marks_of(tokenizer: Any) -> SpeakerMarks | None:  # noqa: ANN401 - any of transformers' classes
    vocabulary = tokenizer.get_vocab()
    for marks in MARKS:
        if all(mark in vocabulary for mark in marks):
            # As plain words of the vocabulary they would be parted at their brackets.
            tokenizer.add_special_tokens({"additional_special_tokens": list(marks)}, replace_extra_special_tokens=False)
            return marks
    return None


def _lengths(tokenizer: Any, texts: Sequence[str], limit: int) -> NDArray[np.intp]:  # noqa: ANN401
    """Counts the tokens of texts, and warns of those that are longer than a model reads."""
    ids = tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]
    lengths = np.array([len(tokens) for tokens in ids])
    count = int((lengths > limit).sum())
    if count:
        logger.warning("%d of %d texts are longer than the model's %d tokens and were cut", count, len(lengths), limit)
    return lengths
