"""Encoders of dialogues made from models of texts: sentence-transformers, and whatever `AutoModel` loads."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..checkpoints.pretrained import check_tokenizer, check_weights, read_config, reading
from ..dialogue import Dialogue, Turn
from ..errors import InputError
from .encoder import EncoderSpec, Numbers
from .fewer_bits import read_in

if TYPE_CHECKING:
    import torch

    from .sentence_layout import SentenceLayout

logger = logging.getLogger(__name__)

MAX_TOKENS = 512
"""Where texts are cut for plain transformers models, or earlier at the model's own limit."""

_PART = 1_000  # texts that are tokenised at once, and put into batches of like length
_LARGER = 16  # times as many for an accelerator: one of its batches takes a thousand

TextEmbedder = Callable[[Sequence[str]], NDArray[np.float32]]
Prepare = Callable[[list[str]], Mapping[str, Any]]


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
            return self.encode_utterances(texts)
        vectors = self.encode_utterances([turn.content for dialogue in dialogues for turn in dialogue.turns])
        ends = np.cumsum([len(dialogue.turns) for dialogue in dialogues])
        return np.stack([turns.mean(axis=0) for turns in np.split(vectors, ends[:-1])])

    def encode_utterances(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Returns one vector per text, ``(N, D)`` float32; what comes twice is read once."""
        places: dict[str, int] = {}
        rows = [places.setdefault(text, len(places)) for text in texts]
        return self.embed(list(places))[rows]


def dialogue_texts(dialogues: Sequence[Dialogue], marks: SpeakerMarks | None = None) -> list[str]:
    """Writes each dialogue as one text: its turns, perhaps behind marks, joined by spaces; refuses none at all."""
    if not dialogues:
        raise InputError("dialogues: got none, expected at least one; check the corpus and the split")

    def written(turn: Turn) -> str:
        if marks is None:
            return turn.content
        return f"{marks.system if turn.role == 'assistant' else marks.user} {turn.content}"

    return [" ".join(map(written, dialogue.turns)) for dialogue in dialogues]


def load_sentence_transformer(path: str, device: str | None = None, numbers: Numbers = "float32") -> Any:  # noqa: ANN401
    """Loads a folder or Hub id with sentence-transformers, as `load_pretrained` does; it may then use fewer bits."""
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, PreTrainedModel

    for file in Path(path).glob("**/config.json"):
        read_config(str(file.parent))
    with reading(path):
        model = SentenceTransformer(path, device=device, trust_remote_code=False).float()
        inner: Any = getattr(model[0], "auto_model", None)
        missing: set[str] = set()
        place = str(inner.name_or_path) if isinstance(inner, PreTrainedModel) else ""
        if place and (Path(place) / "config.json").is_file():
            options = {"device_map": "meta", "output_loading_info": True, "trust_remote_code": False}
            _, told = AutoModel.from_pretrained(place, **options)  # tells what is missing; reads nothing
            missing = told["missing_keys"]
        check_weights(model, missing, path)
        model.encode(["a"], show_progress_bar=False)  # what its parts say of each other
    if inner is not None and hasattr(model.tokenizer, "get_vocab"):
        check_tokenizer(model.tokenizer, path)
    if numbers != "float32" and inner is None:
        raise InputError(f"'{path}': got {numbers}, but there is no transformer in it; leave '{numbers}' out")
    read_in(numbers, inner, model.tokenizer)
    return model


def sentence_embedder(model: Any, batch_size: int) -> TextEmbedder:  # noqa: ANN401
    """Makes an embedder of texts from a loaded SentenceTransformer; it warns when it cuts some at the model's limit."""

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        limit, found = model.max_seq_length, list(texts)
        how = Reading(model.tokenizer, limit, batch_size, model.device)
        # Tokenizers of static vectors and of words cannot be called, nor do they cut anything.
        if limit and callable(model.tokenizer):
            found = _within(model.tokenizer, texts, limit)
            if hasattr(model[0], "auto_model") and not model._can_flatten_inputs():
                model.eval()
                prompt = model._resolve_prompt(None, None)
                return _in_batches(found, partial(model.preprocess, prompt=prompt), run, how)
            _warn_of_cut(found, len(found), how)
        vectors = model.encode(found, batch_size=batch_size, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(vectors, dtype=np.float32)

    def run(batch: dict[str, Any]) -> torch.Tensor:
        vectors: torch.Tensor = model(batch)["sentence_embedding"]
        return vectors[:, : model.truncate_dim]

    return embed


class Reading(NamedTuple):
    """How texts go through a model: by its tokenizer, cut at so many tokens, in batches of so many rows, and where."""

    tokenizer: Any
    limit: int
    batch_size: int
    device: torch.device


def _in_batches(
    texts: Sequence[str], prepare: Prepare, run: Callable[[dict[str, Any]], torch.Tensor], how: Reading
) -> NDArray[np.float32]:
    """Embeds texts in batches of like length; ``prepare`` tokenises many at once, (N, L), padded on either side."""
    import torch
    from tqdm.auto import tqdm

    from ..methods.batching import any_shape, batches, tokens_of_row

    prepare = _quickest(prepare, texts, how)
    order = np.argsort([-len(text) for text in texts], kind="stable")
    found: list[torch.Tensor] = []
    full: list[str] = []
    # For a terminal, and what takes longer than seconds.
    progress = tqdm(total=len(texts), desc="encode", unit="text", disable=None, delay=3, leave=False)
    part = _PART if how.device.type == "cpu" else _LARGER * _PART
    for start in range(0, len(order), part):
        features = prepare([texts[row] for row in order[start : start + part]])  # while an accelerator reads the last
        found[-1:] = [vectors.cpu() for vectors in found[-1:]]
        mask = features["attention_mask"]
        lengths, left = mask.sum(1), bool((mask[:, 0] == 0).any())
        full += [texts[order[start + row]] for row in (lengths >= how.limit).nonzero().flatten().tolist()]
        parts = batches(lengths.tolist(), how.batch_size * tokens_of_row(how.device))
        rows = np.concatenate(parts)
        like = {name for name, value in features.items() if getattr(value, "shape", None) == mask.shape}
        features = {name: value[rows].to(how.device) if name in like else value for name, value in features.items()}
        vectors, first = [], 0
        for count in map(len, parts):
            longest = int(lengths[rows[first]])
            place = slice(first, first + count), slice(-longest, None) if left else slice(longest)
            batch = {name: value[place].contiguous() if name in like else value for name, value in features.items()}
            with torch.inference_mode(), any_shape():
                vectors.append(run(batch).float())
            first += count
            progress.update(count)
        found.append(torch.cat(vectors)[np.argsort(rows)])
    progress.close()
    _warn_of_cut(full, len(texts), how)
    return torch.cat([vectors.cpu() for vectors in found]).numpy()[np.argsort(order)]


def _quickest(prepare: Prepare, texts: Sequence[str], how: Reading) -> Prepare:
    """Leaves out what transformers makes of a tokenizer's answer, if some texts prove that nothing else would change.

    It takes many times as long as the tokenizer itself.
    """
    import torch

    from ..methods.layout import pad_right, quick_ids

    pad = getattr(how.tokenizer, "pad_token_id", None)
    if pad is None or getattr(how.tokenizer, "backend_tokenizer", None) is None:
        return prepare
    some = [*texts[:8], "  Two  words\n", "[SEP]</s>", ""]
    expected = prepare(some)
    rest = {name: value for name, value in expected.items() if not isinstance(value, torch.Tensor)}

    def quick(texts: list[str]) -> Mapping[str, Any]:
        found = pad_right(quick_ids(texts, how.tokenizer, how.limit, framed=True), pad)
        if "token_type_ids" in expected:
            found["token_type_ids"] = torch.zeros_like(found["input_ids"])
        return {**rest, **found}

    def same(found: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
        names = found.keys() - rest.keys()
        return found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in names)

    long = [" ".join(map(str, range(how.limit)))]  # which is cut
    return quick if same(quick(some), expected) and same(quick(long), prepare(long)) else prepare


def transformers_encoder(
    found: EncoderSpec, batch_size: int, device: str, layout: SentenceLayout | None = None
) -> TextEncoder:
    """Loads any model that `AutoModel` loads; of an encoder-decoder, such as T5 or Blenderbot, the encoder.

    A text's vector is the mean of the last layer's tokens, or the first of them, as the spec has it. Where the
    vocabulary holds a pair of `MARKS`, as TOD-BERT's does, they stand before the turns of whole dialogues. Longer
    texts than the model's limit, or than `MAX_TOKENS`, are cut with a warning. Or a layout says how vectors are made.
    """
    import torch
    from transformers import AutoModel, AutoTokenizer

    from ..checkpoints.pretrained import has_decoder, load_pretrained
    from ..methods.utterance import mean_of_tokens

    tokenizer = load_pretrained(AutoTokenizer, found.path)
    model = load_pretrained(AutoModel, found.path).to(device=device, dtype=torch.float32).eval()
    if has_decoder(model):
        model = model.get_encoder()
    read_in(found.numbers, model, tokenizer)
    marks = _marks_of(tokenizer) if found.level == "dialogue" and layout is None else None
    positions = getattr(model.config, "max_position_embeddings", None) or MAX_TOKENS
    longest = MAX_TOKENS if layout is None else layout.max_tokens or positions
    limit = min(longest, tokenizer.model_max_length, positions)
    pool = _first_token if found.cls else mean_of_tokens

    options = {"truncation": True, "max_length": limit, "padding": True, "return_tensors": "pt"}

    def run(batch: dict[str, Any]) -> torch.Tensor:
        vectors = pool(model(**batch).last_hidden_state, batch["attention_mask"])
        return torch.nn.functional.normalize(vectors) if layout and layout.normalized else vectors

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        how = Reading(tokenizer, limit, batch_size, model.device)
        return _in_batches(_within(tokenizer, texts, limit), partial(tokenizer, **options), run, how)

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


def _within(tokenizer: Any, texts: Sequence[str], limit: int) -> list[str]:  # noqa: ANN401
    from ..methods.layout import shortened

    return shortened(texts, tokenizer, limit, "end" if tokenizer.truncation_side == "left" else "start")


def _warn_of_cut(full: list[str], total: int, how: Reading) -> None:
    """Warns of texts that are longer than a model reads, by those that fill it."""
    ids = how.tokenizer(full, truncation=False, verbose=False)["input_ids"] if full else []
    count = sum(len(tokens) > how.limit for tokens in ids)
    if count:
        logger.warning("%d of %d texts are longer than the model's %d tokens and were cut", count, total, how.limit)
