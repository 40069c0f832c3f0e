"""From a training checkpoint to a folder that strangers load, with or without this package.

Utterance encoders become plain encoders (`plain_encoder`); dialogue encoders (`custom_encoder`) and rankers of
responses (`ranker_form`) keep their kind. Every way of loading is tried in a fresh process before the folder appears.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..models import METHODS
from ..models.backbones import load_pretrained, resolve_backbone
from ..models.encoder import DialogueEncoder
from ..models.errors import InputError
from ..models.ranker import Ranker
from ..models.utterance import UtteranceEncoder
from .custom_encoder import verify_custom, write_custom
from .plain_encoder import verify_plain, write_plain
from .ranker_form import verify_ranker, write_ranker


def load_checkpoint(path: str) -> tuple[DialogueEncoder | UtteranceEncoder | Ranker, Any]:
    """Loads one of our checkpoints with its tokenizer.

    Args:
        path: Folder or Hub id.

    Returns:
        The model, of dialogues, of utterances or a ranker, and the tokenizer.

    Raises:
        InputError: There is no such checkpoint, it is damaged, or it is not one of ours.
    """
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    folder = resolve_backbone(path)
    config = load_pretrained(AutoConfig, folder)
    if not config.model_type.startswith("dialemb-"):
        raise InputError(f"'{path}' is a {config.model_type} model; expected a checkpoint of {', '.join(METHODS)}")
    model: DialogueEncoder | UtteranceEncoder | Ranker = load_pretrained(AutoModel, folder)
    model.train(False)
    return model, load_pretrained(AutoTokenizer, folder)


def export(source: str, output: Path) -> Iterator[str]:
    """Writes the published form of a checkpoint and verifies it; nothing appears at ``output`` unless all of it holds.

    Args:
        source: Folder or Hub id of a training checkpoint.
        output: A folder that does not exist yet.

    Yields:
        A line per verified way of loading, with its largest difference.

    Raises:
        InputError: ``source`` is not a checkpoint, ``output`` exists, or a way of loading gives other embeddings.
    """
    if output.exists():
        raise InputError(f"--output {output} exists already; choose a new folder or remove it")
    model, tokenizer = load_checkpoint(source)
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as temporary:
        folder = Path(temporary) / "checkpoint"
        write_checkpoint(model, tokenizer, folder)
        yield from verify(folder, model, tokenizer)
        folder.replace(output)


def write_checkpoint(
    model: DialogueEncoder | UtteranceEncoder | Ranker,
    tokenizer: Any,  # noqa: ANN401
    folder: Path,
) -> None:
    """Writes the published form of a model.

    Args:
        model: Any of our encoders.
        tokenizer: Its tokenizer.
        folder: Created if absent.
    """
    if isinstance(model, UtteranceEncoder):
        write_plain(model, tokenizer, folder)
    elif isinstance(model, Ranker):
        write_ranker(model, tokenizer, folder)
    else:
        write_custom(model, tokenizer, folder)


def verify(
    folder: Path,
    model: DialogueEncoder | UtteranceEncoder | Ranker,
    tokenizer: Any,  # noqa: ANN401
) -> Iterator[str]:
    """Loads a published folder in fresh processes, in every way that a stranger may, and compares embeddings.

    Args:
        folder: The published form.
        model: What it was made from.
        tokenizer: Its tokenizer.

    Yields:
        A line per way, with the largest difference relative to the largest value.

    Raises:
        InputError: A way fails or gives other embeddings.
    """
    if isinstance(model, UtteranceEncoder):
        return verify_plain(folder, model, tokenizer)
    if isinstance(model, Ranker):
        return verify_ranker(folder, model, tokenizer)
    return verify_custom(folder, model, tokenizer)
