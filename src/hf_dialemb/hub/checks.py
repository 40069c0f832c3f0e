"""Check a folder before anything is sent to the Hub.

It is complete, anyone can load it, and it holds an export's files and nothing else.
"""

from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import RepoCard

from ..errors import InputError
from ..methods import method_of
from ..storage.run_folder import RunFolder
from .published_folder import PublishedFolder

_IGNORED = {"__pycache__", ".DS_Store", ".git", ".cache"}
"""Names of files and folders that programs leave behind, which are not sent."""
_SENT = (
    "README.md",
    PublishedFolder.FIGURES,
    PublishedFolder.EVALUATIONS,
    "config.json",
    "model*.safetensors",
    "model.safetensors.index.json",
    "adapter_config.json",
    "adapter_model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
    "chat_template.jinja",
    "modules.json",
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
    "hf_dialemb_config.json",
    "[0-9]_*/config.json",
    "[0-9]_*/model.safetensors",
    "[0-9]_*/tokenizer.json",
)
"""Patterns of the files that are sent, beside a model's code.

That is sent as far as its config or another file of its code refers to it.
"""


def files_of(folder: Path) -> dict[str, Path]:
    """Return a folder's files by their paths on the Hub, sorted, without caches.

    Refuse a file.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give one from dialemb export")
    files = {}
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder)
        if file.is_file() and not set(path.parts) & _IGNORED:
            files[path.as_posix()] = file
    return files


def check(folder: Path, include: Sequence[str] = (), *, private: bool = False) -> list[str]:
    """Return what keeps a folder from being published, in sentences with remedies.

    ``include`` are patterns of further files to send. A model that everybody can see needs a
    licence and figures, too.
    """
    files = files_of(folder)
    problems = [*_card(folder, files.keys(), private), *_model(folder)]
    sent = {*_SENT, *include, *_modules(folder)}
    for path in files:
        if not any(fnmatch(path, pattern) for pattern in sent):
            problems.append(f"{path}: no file of an export; remove it, or --include '{path}'")
    return problems


def card_of(folder: Path) -> tuple[dict[str, Any], str]:
    """Return the front matter of a card and the text below it, both empty if there is no card.

    Refuse broken YAML.
    """
    file = folder / PublishedFolder.CARD
    if not file.is_file():
        return {}, ""
    try:
        card = RepoCard(file.read_text(encoding="utf-8", errors="replace"))
    except (ValueError, TypeError, yaml.YAMLError):
        raise InputError(
            "README.md: the front matter between the --- lines is not a YAML mapping; fix it"
        ) from None
    return card.data.to_dict(), card.text  # type: ignore[no-untyped-call]


def is_checkpoint(folder: Path) -> bool:
    """Return whether a folder holds a model as training writes it, which is exported first."""
    config = PublishedFolder(folder).record(PublishedFolder.CONFIG)
    is_ours = (
        RunFolder(folder).settings_file.is_file()
        or method_of(str(config.get("model_type"))) is not None
    )
    return is_ours and "auto_map" not in config


def _card(folder: Path, files: Collection[str], private: bool) -> Iterator[str]:
    try:
        front, text = card_of(folder)
    except InputError as error:
        yield str(error)
        return
    if not text.strip():
        yield (
            "README.md, the card, is missing or empty; write one with 'dialemb model card --model "
            f"{folder} --run RUN', or by hand"
        )
        return
    remedy = "or keep the model to yourself (--private)"
    if not private and not front.get("license"):
        yield f"README.md: states no licence; add a field license to its front matter, {remedy}"
    if not private and not front.get("model-index") and PublishedFolder.FIGURES not in files:
        yield (
            "README.md: has no figure of the model; measure it with dialemb evaluate, and write "
            f"the card with --results, {remedy}"
        )


def _model(folder: Path) -> Iterator[str]:
    export = f"run 'dialemb export --model {folder} --output FOLDER' and publish that"
    modules = (folder / PublishedFolder.MODULES).is_file()
    if modules and (folder / PublishedFolder.STATIC).is_dir():
        return  # a table, which has no config
    if not modules or is_checkpoint(folder):
        yield f"this is a training checkpoint, or lacks modules.json; {export}"
        return
    if not any(folder.glob("*.safetensors")):
        yield f"the weights, model.safetensors, are missing; {export}"
    for name in sorted(_modules(folder)):
        if not (folder / name).is_file():
            yield f"{name} is missing, but the model's code needs it; {export}"


def _modules(folder: Path) -> set[str]:
    """Return the Python files that the config or another Python file refers to."""
    from transformers.dynamic_module_utils import get_relative_imports

    references = PublishedFolder(folder).record(PublishedFolder.CONFIG).get("auto_map", {})
    names = {str(reference).split("--")[-1].split(".")[0] for reference in references.values()}
    names.update(*map(get_relative_imports, folder.glob("*.py")))
    return {f"{name}.py" for name in names}
