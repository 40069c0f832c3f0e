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


class SentenceModules(NamedTuple):
    """The settings of a backbone's vectors; those of a plain transformers model say nothing."""

    pooling: str | None = None  # one of `POOLINGS`; None if nothing is said
    prompts: dict[str, str] | None = None  # texts that may stand before an input, by name
    default_prompt_name: str | None = (
        None  # the prompt that stands before every input; None for none
    )

    def __str__(self) -> str:
        parts = [f"{self.pooling} pooling"] if self.pooling not in (None, "mean") else []
        parts += (
            [f"default prompt '{self.default_prompt_name}'"] if self.default_prompt_name else []
        )
        return " and ".join(parts)


def read_sentence_modules(path: str) -> SentenceModules:
    """Read the modules of a model's folder or Hub id.

    An InputError refuses modules besides the transformer, its pooling and `Normalize`, and what is
    none of `POOLINGS`.
    """
    modules = _read(path, "modules.json", [])
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
        pooling = dict(_read(path, f"{kinds['Pooling']}/config.json", {}))
        begin = "pooling_mode_"
        modes = [
            name.removeprefix(begin)
            for name, chosen in pooling.items()
            if name.startswith(begin) and chosen
        ]
        given = pooling.get("pooling_mode") or modes or "mean"
        modes = [_OLDER.get(mode, mode) for mode in ([given] if isinstance(given, str) else given)]
        settings = dict(_read(path, "config_sentence_transformers.json", {}))
        prompts = dict(settings.get("prompts") or {})
        default = settings.get("default_prompt_name")
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
    return SentenceModules(modes[0], prompts if any(prompts.values()) else None, default)


def _read(path: str, name: str, default: Any) -> Any:
    file = model_file(path, name)
    if file is None:
        return default
    with explained(file, FETCH):
        return json.loads(file.read_text(encoding="utf-8"))
