"""Check a folder before anything is sent to the Hub.

It is complete, anyone can load it, and it holds an export's files and nothing else.
"""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import RepoCard

from ..errors import InputError
from ..methods import method_of, register
from ..storage.pretrained import load_pretrained
from ..storage.run_folder import RunFolder
from .published_folder import PublishedFolder

_IGNORED = {"__pycache__", ".DS_Store", ".git", ".cache"}

SENT = {
    "model": (
        "README.md",
        PublishedFolder.FIGURES,
        PublishedFolder.EVALUATIONS,
        "config.json",
        "model*.safetensors",
        "model.safetensors.index.json",
        "adapter_config.json",
        "adapter_model.safetensors",
        "*token*.json",
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
    ),
    "space": ("README.md", "requirements.txt", "*.py", "*.css"),
    "dataset": ("README.md", "*.parquet", "*.jsonl", "*.json", "*.csv", "*.txt", "*.gz"),
}
"""The files of each kind of repository on the Hub that are sent, as patterns.

A model's code is sent too, as far as its config or another file of its code refers to it.
"""


def files_of(folder: Path) -> dict[str, Path]:
    """Return a folder's files by their paths on the Hub, sorted, without caches.

    Refuse a file.
    """
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a folder; give one from dialemb export, or that of a metric or "
            "dataset"
        )
    files = {}
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder)
        if file.is_file() and not set(path.parts) & _IGNORED:
            files[path.as_posix()] = file
    return files


def check(folder: Path, kind: str, name: str, include: Sequence[str] = ()) -> list[str]:
    """Return what keeps a folder from being published under a name, in sentences with remedies.

    ``kind`` is a key of `SENT`; ``include`` are patterns of further files to send.
    """
    files = files_of(folder)
    problems = list({"model": _model, "space": _space, "dataset": _dataset}[kind](folder, name))
    sent = {*SENT[kind], *include}
    if kind == "model":
        sent |= _modules(folder)
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


def _card(folder: Path, remedy: str, *fields: str) -> Iterator[str]:
    try:
        front, text = card_of(folder)
    except InputError as error:
        yield str(error)
        return
    if not text.strip():
        yield f"README.md, the card, is missing or empty; {remedy}"
    for field in fields:
        if not front.get(field):
            yield f"README.md: field {field} is missing in the front matter; add it"


def _model(folder: Path, _name: str) -> Iterator[str]:
    yield from _card(
        folder, f"write one with 'dialemb model card --model {folder} --run RUN', or by hand"
    )
    export = f"run 'dialemb export --model {folder} --output FOLDER' and publish that"
    modules = (folder / PublishedFolder.MODULES).is_file()
    if modules and (folder / PublishedFolder.STATIC).is_dir():
        return  # a table, which has no config
    if not modules or is_checkpoint(folder):
        yield f"this is a training checkpoint, or lacks modules.json; {export}"
        return
    missing = [name for name in sorted(_modules(folder)) if not (folder / name).is_file()]
    for name in missing:
        yield f"{name} is missing, but the model's code needs it; {export}"
    if not missing:
        yield from _load_errors(folder)


def _load_errors(folder: Path) -> Iterator[str]:
    """Load a model as its users will, which shows what is missing, damaged or not finite."""
    from transformers import AutoModel, AutoTokenizer

    register()
    config = PublishedFolder(folder).record(PublishedFolder.CONFIG)
    if "auto_map" in config and method_of(str(config.get("model_type"))) is None:
        return  # code of others, which must not run here
    try:
        load_pretrained(AutoModel, str(folder))
        load_pretrained(AutoTokenizer, str(folder))
    except InputError as error:
        yield str(error)


def _modules(folder: Path) -> set[str]:
    """Return the Python files that the config or another Python file refers to."""
    from transformers.dynamic_module_utils import get_relative_imports

    references = PublishedFolder(folder).record(PublishedFolder.CONFIG).get("auto_map", {})
    names = {str(reference).split("--")[-1].split(".")[0] for reference in references.values()}
    names.update(*map(get_relative_imports, folder.glob("*.py")))
    return {f"{name}.py" for name in names}


def _space(folder: Path, name: str) -> Iterator[str]:
    yield from _card(folder, "a Space needs one with front matter: title, sdk", "title", "sdk")
    is_metric = "metric" in (card_of(folder)[0].get("tags") or ())
    if is_metric and not (folder / f"{name}.py").is_file():
        own = folder.resolve().name
        yield f"evaluate looks for {name}.py in a Space of that name; publish it as '{own}'"


def _dataset(folder: Path, _name: str) -> Iterator[str]:
    yield from _card(folder, "dialemb papers corpus unify writes one", "license")
