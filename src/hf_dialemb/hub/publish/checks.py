"""What a folder must be, before the first request: whole, in a form that strangers load, and free of what harms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from safetensors import SafetensorError, safe_open

from ...checkpoints.pretrained import load_pretrained
from ...errors import InputError
from ...methods import method_of, register
from ...runs.folder import RunFolder
from ..published_folder import PublishedFolder
from .contents import machine_paths_in, pickle_in, secrets_in

KINDS = ("model", "space", "dataset")  # what a repository of the Hub can be

_LARGEST_TEXT = 10 * 10**6
_LONGEST_NAME = 255
_LARGE = {
    ".7z", ".arrow", ".bz2", ".gz", ".h5", ".mlmodel", ".model", ".msgpack", ".npy", ".npz", ".onnx", ".parquet", ".pb",
    ".safetensors", ".tar", ".tflite", ".tgz", ".wasm", ".xz", ".zip",
}  # fmt: skip
_PASSED_OVER = {"__pycache__", ".DS_Store", ".git", ".cache"}
_HIDDEN = {".gitattributes", ".eval_results", ".huggingface.yaml"}
_DATA = {".arrow", ".csv", ".gz", ".json", ".jsonl", ".parquet", ".tsv", ".txt"}


class PublishedFile(NamedTuple):
    """A file on its way to the Hub, its path there, and whether it goes to the storage of large files (LFS)."""

    path: str
    file: Path
    size: int
    large: bool


def files_of(folder: Path) -> list[PublishedFile]:
    """Lists what would be sent, sorted; caches and version control are passed over."""
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder; give one that dialemb export wrote, a metric's or a dataset's")
    found = []
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder)
        if file.is_file() and not set(path.parts) & _PASSED_OVER:
            size = file.stat().st_size
            large = size > 0 and (file.suffix in _LARGE or size > _LARGEST_TEXT)
            found.append(PublishedFile(path.as_posix(), file, size, large))
    return found


def check(folder: Path, kind: str, name: str) -> list[str]:
    """Finds everything that stands in the way of publishing a folder."""
    files = files_of(folder)
    problems = [*_limits(files), *_CHECKS[kind](folder, name), *_strange_entries(folder)]
    for file in files:
        problems += [f"{file.path}: {problem}" for problem in _contents(file, kind)]
    return problems


def _limits(files: list[PublishedFile]) -> Iterator[str]:
    if not files:
        yield "the folder is empty"
    for file in files:
        longest = max(len(part.encode()) for part in file.path.split("/"))
        if longest > _LONGEST_NAME or re.search(r"[\x00-\x1f\\]", file.path):
            yield f"{file.path!r}: no name for the Hub; rename it"


def _strange_entries(folder: Path) -> Iterator[str]:
    for entry in sorted(folder.rglob("*")):
        path, linked = entry.relative_to(folder), entry.is_symlink()
        if set(path.parts) & _PASSED_OVER:
            continue
        if linked and not entry.exists():
            yield f"{path.as_posix()}: a link to nothing; remove it"
        elif linked and not entry.resolve().is_relative_to(folder.resolve()):
            yield f"{path.as_posix()}: a link that leads out of the folder; put a copy in its place"
        elif linked and entry.is_dir():
            yield f"{path.as_posix()}: a link to a folder; put a copy in its place"
        elif path.name.startswith(".") and path.parts[0] not in _HIDDEN:
            yield f"{path.as_posix()}: a hidden file; a publication has none, remove it"


def _contents(file: PublishedFile, kind: str) -> Iterator[str]:
    if found := pickle_in(file.file):
        yield f"{found}, and unpickling runs code; remove it or save safetensors"
    for line, secret in secrets_in(file.file):
        yield f"line {line} looks like {secret}; take it out, and revoke it if it is real"
    if kind == "dataset" and "/" in file.path:
        return  # what people said may name any path
    try:
        place, path = next(machine_paths_in(file.file), ("", ""))
    except (ValueError, RecursionError) as error:
        yield f"cannot be read ({error}); write it again"
        return
    if path and file.file.suffix == ".onnx":
        yield f"{place} says that it was recorded at '{path}' of a machine; export it again (dialemb export --onnx)"
    elif path:
        yield f"{place}: got '{path}', an absolute path of a machine; give a name or a relative path"


def card_of(folder: Path) -> tuple[dict[str, Any] | None, str]:
    """Reads a card: its front matter, None where that is no mapping, and the text below."""
    file = folder / PublishedFolder.CARD
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    found = re.match(r"---\r?\n(.*?)^---\s*$", text, re.DOTALL | re.MULTILINE)
    if not found:
        return (None if text.startswith("---") else {}), text
    try:
        front = yaml.safe_load(found[1]) or {}
    except yaml.YAMLError:
        front = None
    return (front if isinstance(front, dict) else None), text[found.end() :]


def _card(folder: Path, remedy: str) -> Iterator[str]:
    front, text = card_of(folder)
    if front is None:
        yield "README.md: the front matter between the lines --- is no YAML mapping; correct it"
    elif not text.strip():
        yield f"README.md, the card, is missing or empty; {remedy}"


def _check_model(folder: Path, _name: str) -> Iterator[str]:
    export = f"run 'dialemb export --model {folder} --output FOLDER' and publish that"
    published = PublishedFolder(folder)
    config = published.record(published.CONFIG)
    is_ours = RunFolder(folder).settings_file.is_file() or method_of(str(config.get("model_type"))) is not None
    if not config:
        yield "config.json is missing: this is no model; publish a folder that dialemb export wrote"
    elif not published.holds(published.MODULES) or ("auto_map" not in config and is_ours):
        yield f"this is a training's checkpoint or another form that strangers cannot load; {export}"
    else:
        problems = [*_weights(published, export)]
        if not published.holds(published.TOKENIZER) and not published.holds(published.TOKENIZER_CONFIG):
            problems.append(f"the tokenizer is missing; {export}")
        missing = _missing_code(folder, config)
        problems += [f"{module} is missing, but the model's code needs it; {export}" for module in missing]
        yield from problems or _loaded(folder, config)
    yield from _card(
        folder,
        f"write one with 'dialemb card --model {folder} --run RUN' (figures are "
        "optional: --results FILE), or by hand; a few lines on what it is, learnt from and may be used for are enough",
    )


def _loaded(folder: Path, config: dict[str, Any]) -> Iterator[str]:
    """Loads a model as those who get it will: what is missing, not finite or damaged shows there."""
    from transformers import AutoModel, AutoTokenizer

    register()
    if isinstance(config.get("auto_map"), dict) and method_of(str(config.get("model_type"))) is None:
        return  # code of others, which is not run here
    try:
        load_pretrained(AutoModel, str(folder))
        load_pretrained(AutoTokenizer, str(folder))
    except InputError as error:
        yield str(error)


def _weights(published: PublishedFolder, export: str) -> Iterator[str]:
    files = sorted(published.path.glob("*.safetensors"))
    index = published.record(published.SHARDS).get("weight_map")
    listed = set(map(str, index.values())) if isinstance(index, dict) else set()
    if published.holds(published.SHARDS) and not listed:
        yield f"{published.SHARDS}: got no file names by tensor; {export}"
    if not files:
        yield f"{published.WEIGHTS} is missing; {export}"
    for name in sorted(listed - {file.name for file in files}):
        yield f"{name} is missing, but {published.SHARDS} lists it; {export}"
    for file in files:
        try:
            with safe_open(file, "numpy") as tensors:
                names = list(tensors.keys())
        except (SafetensorError, OSError) as error:
            yield f"{file.name}: damaged ({error}); {export}"
            continue
        if published.holds(published.SETTINGS) and any(name.startswith("heads.") for name in names):
            yield f"{file.name} holds the heads of the training, which nobody needs; {export}"


def _missing_code(folder: Path, config: dict[str, Any]) -> list[str]:
    """Modules that the config or a module names but that are not beside it."""
    references = config.get("auto_map")
    parts = references.values() if isinstance(references, dict) else ()
    names = {str(reference).split("--")[-1].split(".")[0] for reference in parts}
    for file in folder.glob("*.py"):
        text = file.read_text(encoding="utf-8", errors="replace")
        names |= set(re.findall(r"^\s*from \.(\w+) import", text, re.MULTILINE))
    return sorted(f"{name}.py" for name in names if not (folder / f"{name}.py").is_file())


def _check_space(folder: Path, name: str) -> Iterator[str]:
    yield from _card(folder, "a Space needs one with front matter: title, sdk, app_file")
    front = card_of(folder)[0] or {}
    for field in ("title", "sdk"):
        if not front.get(field):
            yield f"README.md: field {field} is missing in the front matter; add it"
    app = str(front.get("app_file", "app.py"))
    if front.get("sdk") != "docker" and not (folder / app).is_file():
        yield f"README.md: field app_file: got '{app}', which is not in the folder; correct it"
    if "metric" in (front.get("tags") or ()) and not (folder / f"{name}.py").is_file():
        modules = sorted(file.stem for file in folder.glob("*.py") if file.stem == folder.resolve().name)
        likely = f"publish it as '{modules[0]}'" if modules else f"name the metric's module {name}.py"
        yield f"evaluate looks for {name}.py in a Space of that name; {likely}"


def _check_dataset(folder: Path, _name: str) -> Iterator[str]:
    yield from _card(folder, "dialemb corpus unify writes one")
    front = card_of(folder)[0] or {}
    if not front.get("license"):
        yield "README.md: field license is missing in the front matter; name the data's licence"
    if not any(file.suffix in _DATA for file in folder.rglob("*.*")):
        yield "there is no data; publish a folder that dialemb corpus unify wrote"
    for pattern in _patterns(front.get("configs")):
        if "://" not in pattern and (pattern.startswith("/") or not any(folder.glob(pattern))):
            yield f"README.md: field configs: got '{pattern}', which fits no file; correct it"


def _patterns(configs: Any) -> Iterator[str]:  # noqa: ANN401 - whatever YAML can hold
    """The globs of files under ``configs`` of a dataset's card, in all the ways that they may be written."""
    if isinstance(configs, str):
        yield configs
    for part in configs if isinstance(configs, list) else ():
        yield from _patterns(part.get("data_files", part.get("path")) if isinstance(part, dict) else part)


_CHECKS = {"model": _check_model, "space": _check_space, "dataset": _check_dataset}
