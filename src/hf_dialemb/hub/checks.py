"""Check a folder before anything is sent to the Hub.

Complete, loadable by anyone, and free of harmful files.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import RepoCard

from ..errors import InputError
from ..methods import method_of, register
from ..storage.pretrained import load_pretrained
from ..storage.run_folder import RunFolder
from .contents import machine_paths_in, pickle_in, secrets_in
from .published_folder import PublishedFolder

_IGNORED = {"__pycache__", ".DS_Store", ".git", ".cache"}
_ALLOWED_HIDDEN = {".gitattributes", ".eval_results", ".huggingface.yaml"}
_DATA_SUFFIXES = {".arrow", ".csv", ".gz", ".json", ".jsonl", ".parquet", ".tsv", ".txt"}


def files_of(folder: Path) -> dict[str, Path]:
    """Return a folder's files by their paths on the Hub, sorted, without caches and version
    control; refuse a file.
    """
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a folder; give one from dialemb export, or that of a metric or "
            "dataset"
        )
    return {path: file for path, file in _entries(folder).items() if file.is_file()}


def _entries(folder: Path) -> dict[str, Path]:
    paths = {file.relative_to(folder): file for file in sorted(folder.rglob("*"))}
    return {path.as_posix(): file for path, file in paths.items() if not set(path.parts) & _IGNORED}


def check(folder: Path, kind: str, name: str) -> list[str]:
    """Return what keeps a folder from being published as one of `KINDS` under a name.

    Sentences with remedies.
    """
    files = files_of(folder)
    problems = [] if files else ["the folder is empty"]
    problems += [*KINDS[kind](folder, name), *_misplaced(folder)]
    for path, file in files.items():
        # the people in dialogues may mention any path
        may_name_paths = kind == "dataset" and "/" in path
        problems += [f"{path}: {problem}" for problem in _harmful(file, may_name_paths)]
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


def _misplaced(folder: Path) -> Iterator[str]:
    for path, entry in _entries(folder).items():
        if entry.is_symlink():
            yield f"{path}: a link; put a copy in its place"
        elif entry.name.startswith(".") and path.partition("/")[0] not in _ALLOWED_HIDDEN:
            yield f"{path}: a hidden file, which is not published; remove it"
        elif re.search(r"[\x00-\x1f\\]", entry.name):
            yield f"{path!r}: not a valid name on the Hub; rename it"


def _harmful(file: Path, may_name_paths: bool) -> Iterator[str]:
    if problem := pickle_in(file):
        yield f"{problem}, and unpickling runs code; remove it or save safetensors"
    for line, secret in secrets_in(file):
        yield f"line {line} looks like {secret}; take it out, and revoke it if it is real"
    try:
        place, path = ("", "") if may_name_paths else next(machine_paths_in(file), ("", ""))
    except (ValueError, RecursionError) as error:
        yield f"cannot be read ({error}); write it again"
        return
    if path:
        remedy = "export it again" if file.suffix == ".onnx" else "give a name or a relative path"
        yield f"{place}: got '{path}', an absolute path of a machine; {remedy}"


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


def is_checkpoint(folder: Path) -> bool:
    """Return whether a folder holds a model of this package as training writes it, which has to be
    exported first.
    """
    config = PublishedFolder(folder).record(PublishedFolder.CONFIG)
    is_ours = (
        RunFolder(folder).settings_file.is_file()
        or method_of(str(config.get("model_type"))) is not None
    )
    return is_ours and "auto_map" not in config


def _check_model(folder: Path, _name: str) -> Iterator[str]:
    export = f"run 'dialemb export --model {folder} --output FOLDER' and publish that"
    config = PublishedFolder(folder).record(PublishedFolder.CONFIG)
    if not config:
        yield "config.json is missing: this is not a model; publish a folder that dialemb export wrote"
    elif not (folder / PublishedFolder.MODULES).is_file() or is_checkpoint(folder):
        yield f"this is a training checkpoint, or lacks modules.json, which other libraries need; {export}"
    else:
        missing = _missing_modules(folder, config)
        problems = [
            f"{name} is missing, but the model's code needs it; {export}" for name in missing
        ]
        if not any(folder.glob("*.safetensors")):
            problems.append(f"{PublishedFolder.WEIGHTS} is missing; {export}")
        yield from problems or _load_errors(folder, config)
    yield from _card(
        folder, f"write one with 'dialemb model card --model {folder} --run RUN', or by hand"
    )


def _load_errors(folder: Path, config: dict[str, Any]) -> Iterator[str]:
    """Load a model as its users will, which shows what is missing, damaged or not finite."""
    from transformers import AutoModel, AutoTokenizer

    register()
    if (
        isinstance(config.get("auto_map"), dict)
        and method_of(str(config.get("model_type"))) is None
    ):
        return  # code of others, which must not run here
    try:
        load_pretrained(AutoModel, str(folder))
        load_pretrained(AutoTokenizer, str(folder))
    except InputError as error:
        yield str(error)


def _missing_modules(folder: Path, config: dict[str, Any]) -> list[str]:
    """Return the Python files that the config or another Python file refers to, and that the folder
    lacks.
    """
    from transformers.dynamic_module_utils import get_relative_imports

    references = config.get("auto_map")
    parts = references.values() if isinstance(references, dict) else ()
    names = {str(reference).split("--")[-1].split(".")[0] for reference in parts}
    names.update(*map(get_relative_imports, folder.glob("*.py")))
    return sorted(f"{name}.py" for name in names if not (folder / f"{name}.py").is_file())


def _check_space(folder: Path, name: str) -> Iterator[str]:
    problems = [
        *_card(folder, "a Space needs one with front matter: title, sdk, app_file", "title", "sdk")
    ]
    yield from problems
    front = {} if problems else card_of(folder)[0]
    app = str(front.get("app_file", "app.py"))
    if front.get("sdk") != "docker" and not (folder / app).is_file():
        yield f"README.md: field app_file: got '{app}', which is not in the folder; correct it"
    if "metric" in (front.get("tags") or ()) and not (folder / f"{name}.py").is_file():
        yield f"evaluate looks for {name}.py in a Space of that name; publish it as '{folder.resolve().name}'"


def _check_dataset(folder: Path, _name: str) -> Iterator[str]:
    yield from _card(folder, "dialemb papers corpus unify writes one", "license")
    if not any(file.suffix in _DATA_SUFFIXES for file in folder.rglob("*.*")):
        yield "there is no data; publish a folder that dialemb papers corpus unify wrote"


KINDS = {"model": _check_model, "space": _check_space, "dataset": _check_dataset}
"""The check of each kind of repository on the Hub."""
