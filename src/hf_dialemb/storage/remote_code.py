"""Python code that comes with a backbone.

Models built on it are saved with it, and it runs only if the user agrees.
"""

from pathlib import Path
from typing import Any

from ..errors import InputError

_FETCHED = "transformers_modules."  # the package that transformers puts such code in
_AUTO = ("AutoConfig", "AutoModel")


def known_to_transformers(model_type: str) -> bool:
    """Return whether transformers itself has a class for a ``model_type``."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES  # type: ignore[attr-defined]

    return model_type in CONFIG_MAPPING_NAMES


def backbone_code(config: dict[str, Any]) -> dict[str, str]:
    """Return the ``auto_map`` of a config's backbone, empty if transformers has its classes."""
    backbone = config.get("encoder_config")
    if not isinstance(backbone, dict) or known_to_transformers(str(backbone.get("model_type"))):
        return {}
    return dict(backbone.get("auto_map") or {})


def register_backbone_code(config: dict[str, Any], path: str, trusted: bool) -> None:
    """Register the classes of a backbone with code of its own.

    Transformers does so for whole models alone.

    Without such a backbone in the ``config.json`` nothing happens. An InputError refuses code that
    is not ``trusted``.
    """
    classes = backbone_code(config) if "encoder_config" in config else {}
    if not classes:
        return
    if not trusted:
        raise InputError(untrusted(path))
    from transformers import AutoConfig, AutoModel
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    own_classes: list[Any] = [get_class_from_dynamic_module(classes[name], path) for name in _AUTO]
    for own_class, auto_class in zip(own_classes, _AUTO, strict=True):
        # so that the code is saved with the model again
        own_class.register_for_auto_class(auto_class)
    AutoConfig.register(config["encoder_config"]["model_type"], own_classes[0], exist_ok=True)
    AutoModel.register(own_classes[0], own_classes[1], exist_ok=True)


def untrusted(path: str) -> str:
    """Return the message that a model needs code which the user has not allowed to run."""
    return (
        f"'{path}' comes with Python code, which runs only if you say so; read it, and set "
        "trust_remote_code=True"
    )


def save_backbone_code(encoder: Any, folder: Path) -> None:
    """Copy the code that came with a backbone beside its weights, and name it in its config."""
    from transformers.dynamic_module_utils import custom_object_save

    for part in (encoder, encoder.config):
        if type(part).__module__.startswith(_FETCHED):
            folder.mkdir(parents=True, exist_ok=True)
            custom_object_save(part, folder, config=encoder.config)
