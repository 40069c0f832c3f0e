"""What a folder of sentence-transformers says of its vectors.

Pooling, prompts and further modules.
"""

import json
from typing import Any, NamedTuple

from ..errors import InputError, explained
from .pretrained import FETCH, model_file

POOLINGS = ("mean", "cls", "lasttoken")
"""The modes of pooling that encoders of utterances know, by their names in sentence-transformers.
"""

_OLDER = {"mean_tokens": "mean", "cls_token": "cls"}


class Prompts(NamedTuple):
    """The texts that may stand before an input, by name, and which does by default."""

    prompts: dict[str, str]
    default_prompt_name: str | None


class SentenceModules(NamedTuple):
    """The settings of a backbone's vectors; those of a plain transformers model say nothing."""

    pooling: str | None = None  # one of `POOLINGS`; None if nothing is said
    prompts: dict[str, str] | None = None  # texts that may stand before an input, by name
    # the prompt that stands before every input; None for none
    default_prompt_name: str | None = None
    normalized: bool = False  # whether vectors are scaled to length 1
    max_tokens: int | None = None  # the longest sequence, if the files give one
    plain: bool = False  # whether all that its files say of the transformer is in these fields
    renders: bool = False  # whether texts go through the chat template

    def __str__(self) -> str:
        pooling = "" if self.pooling in (None, "mean") else f"{self.pooling} pooling"
        prompt = self.default_prompt_name and f"default prompt '{self.default_prompt_name}'"
        return " and ".join(filter(None, (pooling, prompt)))


def read_sentence_modules(path: str, **files: Any) -> SentenceModules:
    """Read the modules of a model's folder or Hub id; ``files`` are those of `resolve_backbone`.

    An InputError refuses modules besides the transformer, its pooling and `Normalize`, and what is
    none of `POOLINGS`.
    """
    modules = _read(path, "modules.json", [], **files)
    with explained(f"{path}/modules.json", FETCH):
        kinds = {str(module["type"]).rpartition(".")[2]: str(module["path"]) for module in modules}
        further = next(
            (kind for kind in kinds if kind not in ("Transformer", "Pooling", "Normalize")), None
        )
    if further is not None:
        raise InputError(
            f"backbone: got '{path}' with a module {further}, expected a transformer, its pooling "
            f"and perhaps Normalize; name a backbone without {further}"
        )
    if "Pooling" not in kinds:
        return SentenceModules()
    with explained(f"{path}/{kinds['Pooling']}", FETCH):
        pooling = dict(_read(path, f"{kinds['Pooling']}/config.json", {}, **files))
        begin = "pooling_mode_"
        modes = [
            name.removeprefix(begin)
            for name, chosen in pooling.items()
            if name.startswith(begin) and chosen
        ]
        given = pooling.get("pooling_mode") or modes or "mean"
        modes = [_OLDER.get(mode, mode) for mode in ([given] if isinstance(given, str) else given)]
        transformer = dict(_read(path, "sentence_bert_config.json", {}, **files))
    prompts, default = read_prompts(path, **files)
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise InputError(
            f"backbone: got '{path}' with {' and '.join(modes)} pooling, expected "
            f"{', '.join(POOLINGS[:-1])} or {POOLINGS[-1]}; name another backbone"
        )
    if default and not pooling.get("include_prompt", True):
        raise InputError(
            f"backbone: got '{path}' whose pooling leaves out the default prompt, expected one "
            "that pools all tokens; name another backbone"
        )
    further_settings = [
        name
        for name, value in transformer.items()
        if value and (name == "do_lower_case" or name.endswith(("_args", "_kwargs")))
    ]
    return SentenceModules(
        modes[0],
        prompts if any(prompts.values()) else None,
        default,
        normalized="Normalize" in kinds,
        max_tokens=transformer.get("max_seq_length"),
        plain=kinds.get("Transformer") == ""
        and not further_settings
        and pooling.get("include_prompt", True),
        renders="message" in (transformer.get("modality_config") or {}),
    )


def read_prompts(path: str, **files: Any) -> Prompts:
    """Read the prompts of a model's folder or Hub id; ``files`` are those of `resolve_backbone`."""
    name = "config_sentence_transformers.json"
    settings = _read(path, name, {}, **files)
    with explained(f"{path}/{name}", FETCH):
        given = dict(settings.get("prompts") or {})
        prompts = {str(key): str(text) for key, text in given.items() if text is not None}
        default = settings.get("default_prompt_name")
        if default is not None and default not in prompts:
            raise InputError(
                f"{path}/{name}: default_prompt_name: got {default!r}, expected one of the prompts "
                f"({', '.join(prompts) or 'none'}); {FETCH}"
            )
    return Prompts(prompts, default)


def _read(path: str, name: str, default: Any, **files: Any) -> Any:
    file = model_file(path, name, **files)
    if file is None:
        return default
    with explained(file, FETCH):
        return json.loads(file.read_text(encoding="utf-8"))
