"""The methods: one file each, registered by name.

A further method is one file that ends in ``METHOD = Method(...)`` and one line in `METHODS`. The command line, the
trainer, AutoModel, export, cards and the benchmark then know it. Another package adds a method by `register`, or by an
entry point of the group ``hf_dialemb.methods`` with the method's name. Methods are imported when they are needed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from ..errors import InputError, unknown_name
from ..hooks import Registry

if TYPE_CHECKING:
    from .method import Method

METHODS = Registry(
    "methods",
    {
        "dial2vec": "hf_dialemb.methods.dial2vec",
        "dse": "hf_dialemb.methods.dse",
        "dialog2flow": "hf_dialemb.methods.dialog2flow",
        "dialogue_cse": "hf_dialemb.methods.dialogue_cse",
        "dual_encoder": "hf_dialemb.methods.dual_encoder",
        "transformer_dual_encoder": "hf_dialemb.methods.dual_encoder:TRANSFORMER_METHOD",
        "multi_granularity": "hf_dialemb.methods.multi_granularity",
        "merged": "hf_dialemb.methods.merged",
    },
)
"""Name to method, or to the module that defines it as ``METHOD`` (``module:NAME`` under another name)."""


def get_method(name: str) -> Method:
    """Import a method of `METHODS`; raise InputError if none has this name."""
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    method = METHODS[name]
    if isinstance(method, str):
        module, _, attribute = method.partition(":")
        method = getattr(import_module(module), attribute or "METHOD")
    return cast("Method", method)


def method_of(model_type: Any) -> Method | None:  # noqa: ANN401 - a name, a config or a model
    """Return the method of a model, a config or a ``model_type``; None for models of other makers."""
    config = getattr(model_type, "config", model_type)
    name = str(getattr(config, "model_type", config))
    # The name of this package's methods follows from the type, so that no other of them is imported.
    alike = name.removeprefix("dialemb-").replace("-", "_")
    others = [other for other, path in METHODS.items() if not str(path).startswith("hf_dialemb.")]
    methods = map(get_method, [alike] if alike in METHODS else others)
    return next((method for method in methods if method.config_class.model_type == name), None)


def register(method: Method | None = None) -> None:
    """Make the package, ``AutoConfig`` and ``AutoModel`` know a method from outside, or all methods of `METHODS`.

    Registering a method again changes nothing. Raise InputError if another method has the same name.
    """
    if method is not None:
        if METHODS.setdefault(method.name, method) is not method:
            raise InputError(f"method {method.name}: another method has this name already; choose another")
        register_method(method)
        return
    for name, path in METHODS.items():
        module = sys.modules.get(str(path).partition(":")[0])
        if isinstance(path, str) and module is not None and not hasattr(module, "METHOD"):
            continue  # it is being imported right now, and registers itself afterwards
        register_method(get_method(name))


def register_method(method: Method) -> None:
    """Make ``AutoConfig`` and ``AutoModel`` know a method."""
    from transformers import CONFIG_MAPPING, AutoConfig, AutoModel

    if method.config_class.model_type not in CONFIG_MAPPING:
        AutoConfig.register(method.config_class.model_type, method.config_class)
        AutoModel.register(method.config_class, method.model_class)
