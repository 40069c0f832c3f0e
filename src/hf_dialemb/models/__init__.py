"""The methods: one flat file each, registered by name.

A further method is one file that ends in ``METHOD = Method(...)`` and one line in `METHODS`; the command line, the
trainer, AutoModel and export then know it. Nothing here is imported before it is asked for.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from .errors import unknown_name

if TYPE_CHECKING:
    from .method import Method

METHODS: dict[str, str] = {
    "dial2vec": "hf_dialemb.models.dial2vec",
    "dse": "hf_dialemb.models.dse",
    "dialog2flow": "hf_dialemb.models.dialog2flow",
    "dialogue_cse": "hf_dialemb.models.dialogue_cse",
    "dual_encoder": "hf_dialemb.models.dual_encoder",
    "transformer_dual_encoder": "hf_dialemb.models.transformer_dual_encoder",
    "deep_attention_matching": "hf_dialemb.models.deep_attention_matching",
    "multi_granularity": "hf_dialemb.models.multi_granularity",
}
"""Method name to the module that defines its ``METHOD``."""


def get_method(name: str) -> Method:
    """Imports a method.

    Args:
        name: A key of `METHODS`.

    Returns:
        The module's ``METHOD``.

    Raises:
        InputError: No method has this name.
    """
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    method: Method = import_module(METHODS[name]).METHOD
    return method


def register() -> None:
    """Makes ``AutoConfig`` and ``AutoModel`` know every method; calling it again changes nothing."""
    for name, path in METHODS.items():
        if path in sys.modules and not hasattr(sys.modules[path], "METHOD"):
            continue  # it is being imported right now, and registers itself when it is whole
        register_method(get_method(name))


def register_method(method: Method) -> None:
    """Makes ``AutoConfig`` and ``AutoModel`` know a method; calling it again changes nothing."""
    from transformers import CONFIG_MAPPING, AutoConfig, AutoModel

    if method.config_class.model_type not in CONFIG_MAPPING:
        AutoConfig.register(method.config_class.model_type, method.config_class)
        AutoModel.register(method.config_class, method.model_class)
