"""Python code that comes with a backbone: models made of it keep it, and it runs only if the user allows that."""

from pathlib import Path
from typing import Any

from ..errors import InputError

_LOADED = "transformers_modules."  # the package of all code that transformers fetched


def known_to_transformers(model_type: str) -> bool:
    """Return whether transformers itself has a class for a ``model_type``."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES  # type: ignore[attr-defined]

    return model_type in CONFIG_MAPPING_NAMES


def backbone_code(config: dict[str, Any]) -> dict[str, str]:
    """Return the classes of the backbone in a model's config, by Auto class, where they come with the weights."""
    inner = config.get("encoder_config")
    if not isinstance(inner, dict) or known_to_transformers(str(inner.get("model_type"))):
        return {}
    return dict(inner.get("auto_map") or {})


def register_backbone_code(config: dict[str, Any], path: str, trusted: bool) -> None:
    """Make transformers know the classes of a backbone with code, as it does itself for a whole model with code.

    Raises:
        InputError: There is such code, and it is not trusted.
    """
    classes = backbone_code(config) if "encoder_config" in config else {}
    if not classes:
        return
    if not trusted:
        raise InputError(untrusted(path))
    from transformers import AutoConfig, AutoModel
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    made: list[Any] = [get_class_from_dynamic_module(classes[name], path) for name in ("AutoConfig", "AutoModel")]
    for kind, auto_class in zip(made, ("AutoConfig", "AutoModel"), strict=True):
        kind.register_for_auto_class(auto_class)  # so that the code goes along when they are saved again
    AutoConfig.register(config["encoder_config"]["model_type"], made[0], exist_ok=True)
    AutoModel.register(made[0], made[1], exist_ok=True)


def untrusted(path: str) -> str:
    """Say that a model needs code which the user has to trust first."""
    return f"'{path}' comes with Python code, which runs only if you say so; read it, and set trust_remote_code=True"


def save_backbone_code(encoder: Any, folder: Path) -> None:  # noqa: ANN401
    """Write the code of a backbone that came with it beside the weights, and name it in its config."""
    from transformers.dynamic_module_utils import custom_object_save

    for part in (encoder, encoder.config):
        if type(part).__module__.startswith(_LOADED):
            folder.mkdir(parents=True, exist_ok=True)
            custom_object_save(part, folder, config=encoder.config)
