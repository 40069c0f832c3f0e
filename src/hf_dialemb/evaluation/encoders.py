"""Encoders of dialogues: our checkpoints, and the baselines they are compared with, behind one small protocol."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..models.dialogue import Dialogue
from ..models.errors import InputError

if TYPE_CHECKING:
    from ..models.encoder import DialogueEncoder
    from ..models.ranking import LoadedRanker
    from ..models.utterance import UtteranceEncoder

logger = logging.getLogger(__name__)

MAX_TOKENS = 512
"""Where texts are cut for plain transformers models, or earlier at the model's own limit."""

_WORD = r"(?u)[\u3400-\u9fff]|\b\w\w+\b"  # scikit-learn's own; and each Chinese character is a word

Kind = Literal["tfidf", "dialemb", "sentence-transformers", "transformers"]
TextEmbedder = Callable[[Sequence[str]], NDArray[np.float32]]


class Encoder(Protocol):
    """Anything that turns dialogues into vectors."""

    @property
    def name(self) -> str:
        """What result tables call it."""

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Returns one vector per dialogue, ``(N, D)``."""


class EncoderSpec(NamedTuple):
    """What a spec such as ``"MODEL@utterances"`` stands for.

    Attributes:
        name: The spec itself.
        kind: How the model loads.
        path: A folder or Hub id; empty for ``tfidf``.
        level: ``"dialogue"`` embeds the whole text at once, ``"utterances"`` averages over turns.
    """

    name: str
    kind: Kind
    path: str
    level: str


def find_encoder(spec: str) -> EncoderSpec:
    """Looks up what a spec stands for without loading weights, so that a wrong name is found before long work.

    Args:
        spec: See `load_encoder`.

    Returns:
        The model's kind, place and level.

    Raises:
        InputError: The model is not found, or does not have the level.
    """
    if spec == "tfidf":
        return EncoderSpec(spec, "tfidf", "", "dialogue")
    model, level = spec, "dialogue"
    if "@" in spec and not Path(spec).is_dir():
        model, level = spec.rsplit("@", 1)
    if level not in ("dialogue", "utterances"):
        raise InputError(f"model '{spec}': got level '{level}', expected '{model}@dialogue' or '{model}@utterances'")
    kind, path = _kind_and_path(model)
    if kind == "dialemb" and level == "utterances" and not _reads_utterances(path):
        raise InputError(f"model '{spec}': this model reads whole dialogues; leave '@utterances' out")
    return EncoderSpec(spec, kind, path, level)


def load_encoder(spec: str, *, batch_size: int = 32, device: str | None = None) -> Encoder:
    """Loads an encoder by name.

    Args:
        spec: One of

            - ``tfidf``: TF-IDF and a truncated SVD, fitted without labels on the very dialogues that it encodes;
            - a folder or Hub id of one of this package's dialogue encoders, or of its rankers of responses, to which a
              dialogue is a context;
            - a folder or Hub id of an encoder of texts: one of this package's utterance encoders, a
              sentence-transformers model, or any other that ``AutoModel`` loads (then the mean of its last layer's
              tokens), as ``MODEL`` or ``MODEL@dialogue``: all turns joined by spaces and cut at the model's limit,
              with a warning that counts what was cut; or as ``MODEL@utterances``: the mean of the vectors of a
              dialogue's turns.
        batch_size: How many texts, or dialogues, go through the model at once.
        device: Such as ``"cuda"``; by default a GPU where there is one.

    Returns:
        The encoder; its vectors are float32 and not normalised beyond what the model does itself.

    Raises:
        InputError: The model is not found, or does not have the level.
    """
    found = find_encoder(spec)
    if found.kind == "tfidf":
        return TfidfEncoder()
    import torch

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if found.kind == "dialemb":
        return _checkpoint(found, batch_size, device)
    make = _sentence_transformer if found.kind == "sentence-transformers" else _auto_model
    return TextEncoder(spec, make(found.path, batch_size, device), found.level)


@dataclass(frozen=True)
class TfidfEncoder:
    """TF-IDF reduced by a truncated SVD: a baseline without any neural network.

    It is fitted on the dialogues that it encodes, without their labels; so its vectors of two calls are not comparable.

    Attributes:
        name: What result tables call it.
        components: Most dimensions of a vector; smaller vocabularies keep all of theirs.
        seed: The random state of the SVD.
    """

    name: str = "tfidf"
    components: int = 256
    seed: int = 0

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Fits on the dialogues and returns their vectors, ``(N, D)`` float32 with D <= components.

        Raises:
            InputError: There is no dialogue, or no word to count.
        """
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts = _texts(dialogues)
        # A word of one dialogue tells nothing about any other, but a handful of dialogues cannot afford to lose it.
        vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2 if len(texts) >= 100 else 1, token_pattern=_WORD)
        try:
            counts = vectorizer.fit_transform(texts)
        except ValueError as error:
            raise InputError(f"tfidf: got dialogues without common words ({error}); use a neural encoder") from error
        if counts.shape[1] <= self.components:
            return np.asarray(counts.toarray(), dtype=np.float32)
        reduction = TruncatedSVD(min(self.components, len(texts)), random_state=self.seed)
        return np.asarray(reduction.fit_transform(counts), dtype=np.float32)


@dataclass(frozen=True)
class TextEncoder:
    """Makes an encoder of dialogues from an encoder of texts.

    Attributes:
        name: What result tables call it.
        embed: Texts in, vectors ``(N, D)`` out.
        level: ``"dialogue"`` embeds the whole text at once, ``"utterances"`` averages over turns.
    """

    name: str
    embed: TextEmbedder
    level: str = "dialogue"

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Returns one vector per dialogue, ``(N, D)`` float32.

        Raises:
            InputError: There is no dialogue.
        """
        texts = _texts(dialogues)
        if self.level == "dialogue":
            return self.embed(texts)
        places: dict[str, int] = {}
        turns = [[places.setdefault(turn.content, len(places)) for turn in dialogue.turns] for dialogue in dialogues]
        vectors = self.embed(list(places))
        return np.stack([vectors[rows].mean(axis=0) for rows in turns])


def embed_utterances(
    model: UtteranceEncoder,
    tokenizer: Any,  # noqa: ANN401 - any of transformers' classes
    batch_size: int = 32,
) -> TextEmbedder:
    """Makes an embedder of texts from one of this package's utterance encoders.

    Args:
        model: The encoder; becomes float32, as in its published form.
        tokenizer: Its tokenizer.
        batch_size: How many texts go through the model at once.

    Returns:
        A function of texts; it warns when it cuts some at the model's limit.
    """
    from ..models.utterance import encode_utterances

    model.float()  # type: ignore[no-untyped-call]

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = encode_utterances(model, tokenizer, texts, batch_size=batch_size)
        return vectors

    return embed


@dataclass(frozen=True)
class _DialogueEncoder:
    """One of this package's dialogue encoders, which read speakers and turns by themselves."""

    name: str
    model: DialogueEncoder
    tokenizer: Any
    batch_size: int

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        from ..models.encoder import encode

        vectors: NDArray[np.float32] = encode(self.model, self.tokenizer, dialogues, batch_size=self.batch_size)
        return vectors


@dataclass(frozen=True)
class RankerEncoder:
    """One of this package's rankers of responses; its vector of a dialogue is that of a context.

    Attributes:
        name: What result tables call it.
        ranker: The ranker, which scores candidates as well.
    """

    name: str
    ranker: LoadedRanker

    def encode(self, dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
        """Returns one vector per dialogue, ``(N, D)`` float32.

        Raises:
            InputError: The ranker reads a context and a response together.
        """
        from ..models.ranking import encode_contexts

        if not self.ranker.model.embeds:
            raise InputError(
                f"model '{self.name}': got a ranker that has no vectors, expected an encoder; "
                "choose the task next-utterance-retrieval"
            )
        return encode_contexts(self.ranker, [dialogue.turns for dialogue in dialogues])


def _checkpoint(found: EncoderSpec, batch_size: int, device: str) -> Encoder:
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    from ..models import register
    from ..models.backbones import load_pretrained
    from ..models.config import RankerConfig
    from ..models.ranking import load_ranker
    from ..models.utterance import UtteranceEncoder

    register()
    if isinstance(load_pretrained(AutoConfig, found.path), RankerConfig):
        ranker = load_ranker(found.path)
        ranker.model.to(device)  # type: ignore[arg-type]
        return RankerEncoder(found.name, ranker)
    model = load_pretrained(AutoModel, found.path).to(device)
    tokenizer = load_pretrained(AutoTokenizer, found.path)
    if isinstance(model, UtteranceEncoder):
        return TextEncoder(found.name, embed_utterances(model, tokenizer, batch_size), found.level)
    return _DialogueEncoder(found.name, model, tokenizer, batch_size)


def _reads_utterances(path: str) -> bool:
    from transformers import AutoConfig

    from ..models import register
    from ..models.backbones import load_pretrained
    from ..models.config import UtteranceConfig

    register()
    return isinstance(load_pretrained(AutoConfig, path), UtteranceConfig)


def _kind_and_path(model: str) -> tuple[Kind, str]:
    from sentence_transformers.util import is_sentence_transformer_model
    from transformers import PretrainedConfig

    path = model if Path(model).is_dir() else _hub_path(model)
    try:
        config, _ = PretrainedConfig.get_config_dict(path)
    except (OSError, json.JSONDecodeError):
        config = {}  # old sentence-transformers folders have none at their root
    model_type = str(config.get("model_type") or "")
    if model_type.startswith("dialemb-"):
        return "dialemb", path
    if is_sentence_transformer_model(path):
        return "sentence-transformers", path
    if not model_type:
        raise InputError(f"model '{model}': got no model in it, expected config.json or modules.json; check the path")
    return "transformers", path


@lru_cache(maxsize=64)
def _hub_path(model: str) -> str:
    # Remembered because finding out that the Hub is out of reach takes half a minute of retries.
    from ..models.backbones import resolve_backbone

    return resolve_backbone(model)


def _sentence_transformer(path: str, batch_size: int, device: str) -> TextEmbedder:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(path, device=device).float()

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        if model.max_seq_length:
            _warn_of_truncation(_lengths(model.tokenizer, texts), model.max_seq_length)
        vectors = model.encode(list(texts), batch_size=batch_size, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(vectors, dtype=np.float32)

    return embed


def _auto_model(path: str, batch_size: int, device: str) -> TextEmbedder:
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path)
    model = AutoModel.from_pretrained(path, dtype=torch.float32).to(device).eval()
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token  # masked out below, so any token serves
    positions = getattr(model.config, "max_position_embeddings", None) or MAX_TOKENS
    limit = min(MAX_TOKENS, tokenizer.model_max_length, positions)

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        lengths = _lengths(tokenizer, texts)
        _warn_of_truncation(lengths, limit)
        order = np.argsort(-lengths, kind="stable")
        result = np.zeros((len(texts), model.config.hidden_size), dtype=np.float32)
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            batch = tokenizer(
                [texts[row] for row in rows], truncation=True, max_length=limit, padding=True, return_tensors="pt"
            ).to(device)
            with torch.inference_mode():
                hidden = model(**batch).last_hidden_state  # (B, L, D)
                mask = batch["attention_mask"].unsqueeze(-1).float()  # (B, L, 1)
                means = (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
            result[rows] = means.float().cpu().numpy()
        return result

    return embed


def _texts(dialogues: Sequence[Dialogue]) -> list[str]:
    if not dialogues:
        raise InputError("dialogues: got none, expected at least one; check the corpus and the split")
    return [" ".join(turn.content for turn in dialogue.turns) for dialogue in dialogues]


def _lengths(tokenizer: Any, texts: Sequence[str]) -> NDArray[np.intp]:  # noqa: ANN401 - any of transformers' classes
    ids = tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]
    return np.array([len(tokens) for tokens in ids])


def _warn_of_truncation(lengths: NDArray[np.intp], limit: int) -> None:
    count = int((lengths > limit).sum())
    if count:
        logger.warning("%d of %d texts are longer than the model's %d tokens and were cut", count, len(lengths), limit)
