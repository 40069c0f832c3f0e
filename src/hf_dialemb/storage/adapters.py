"""Adapters of peft: models without them, as they were before or with what the adapters learnt."""

import copy
from pathlib import Path
from typing import Any

BASE = "base"
"""The folder of an adapter's base where that was in no folder of its own, beside the adapter."""


def has_adapters(model: Any) -> bool:
    """Return whether a model has adapters, by ``get_peft_model`` or by ``add_adapter``."""
    return bool(getattr(model, "peft_config", None))


def without_adapters(model: Any, merge: bool) -> Any:
    """Take the adapters out of a model and return the model below them.

    The model is changed: with ``merge`` its weights keep what the active adapters learnt, else they
    are the base's again.
    """
    from peft.tuners.tuners_utils import BaseTunerLayer
    from peft.utils import ModulesToSaveWrapper

    plain = model.get_base_model() if hasattr(model, "get_base_model") else model
    for name, module in list(plain.named_modules()):
        if isinstance(module, BaseTunerLayer):
            if merge:
                module.merge()
            plain.set_submodule(name, module.get_base_layer())
        elif isinstance(module, ModulesToSaveWrapper):
            chosen = (
                module.modules_to_save[module.active_adapters[0]]
                if merge
                else module.original_module
            )
            plain.set_submodule(name, chosen)
    plain._hf_peft_config_loaded = False
    vars(plain).pop("peft_config", None)
    return plain


def load_adapters(model: Any, folder: Path) -> bool:
    """Read the weights of a checkpoint into a model after ``add_adapter``.

    Return False for any other model.

    Trainer resumes those of ``get_peft_model`` by itself.
    """
    if not has_adapters(model) or hasattr(model, "get_base_model"):
        return False
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file

    saved = load_file(folder / "adapter_model.safetensors")
    weights = {name.removeprefix("base_model.model."): value for name, value in saved.items()}
    set_peft_model_state_dict(model, weights, adapter_name=model.active_adapters()[0])
    return True


def save_base(model: Any, folder: Path) -> None:
    """Save the base of a model's adapters in `BASE`, unless it lies in a folder already."""
    unnamed = [
        config for config in model.peft_config.values() if not config.base_model_name_or_path
    ]
    if unnamed:
        place = folder / BASE
        without_adapters(copy.deepcopy(model), merge=False).save_pretrained(place)
        for config in unnamed:
            config.base_model_name_or_path = str(place)
