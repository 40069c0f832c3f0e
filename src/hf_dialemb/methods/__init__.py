"""The methods: one flat file each, registered by name.

A further method is one file that ends in ``METHOD = Method(...)`` and one line in `METHODS`; the command line, the
trainer, AutoModel, export, cards and the benchmark then know it. A method of another package is made known by
`register`, or by an entry point of the group ``hf_dialemb.methods`` whose name is the method's. Nothing here is
imported before it is asked for.
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
        "transformer_dual_encoder": "hf_dialemb.methods.transformer_dual_encoder",
        "multi_granularity": "hf_dialemb.methods.multi_granularity",
        "merged": "hf_dialemb.methods.merged",
    },
)
"""Method name to the method, or to the module that defines it as ``METHOD`` (``module:NAME`` under another name)."""

_PREFIX = "dialemb-"


def get_method(name: str) -> Method:
    """Imports a method of `METHODS`; raises InputError where none has this name."""
    check_method_name(name)
    method = METHODS[name]
    if isinstance(method, str):
        module, _, attribute = method.partition(":")
        method = getattr(import_module(module), attribute or "METHOD")
    return cast("Method", method)


def check_method_name(name: str) -> None:
    """Raises InputError where no method has this name; imports none."""
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)


def method_of(model_type: Any) -> Method | None:  # noqa: ANN401 - a name, a config or a model
    """Finds the method of a model, of its config, or of the ``model_type`` in it; None for models of other makers."""
    config = getattr(model_type, "config", model_type)
    name = str(getattr(config, "model_type", config))
    # The built-in methods are named alike, so that asking for one imports no other, nor for another maker's model any.
    alike = name.removeprefix(_PREFIX).replace("-", "_")
    others = [each for each in METHODS if name.startswith(_PREFIX) or each not in METHODS.own]
    for each in [alike] if alike in METHODS else others:
        method = get_method(each)
        if method.config_class.model_type == name:
            return method
    return None


def register(method: Method | None = None) -> None:
    """Makes the package, ``AutoConfig`` and ``AutoModel`` know a method from outside; calling it again changes nothing.

    Without one, they come to know all that `METHODS` and entry points name. Raises InputError where another method has
    its name already.
    """
    if method is not None:
        if METHODS.setdefault(method.name, method) is not method:
            raise InputError(f"method {method.name}: another method has this name already; choose another")
        register_method(method)
        return
    for name, path in METHODS.items():
        if isinstance(path, str) and path in sys.modules and not hasattr(sys.modules[path], "METHOD"):
            continue  # it is being imported right now, and registers itself when it is whole
        register_method(get_method(name))


def register_method(method: Method) -> None:
    """Makes ``AutoConfig`` and ``AutoModel`` know a method."""
    from transformers import CONFIG_MAPPING, AutoConfig, AutoModel

    if method.config_class.model_type not in CONFIG_MAPPING:
        AutoConfig.register(method.config_class.model_type, method.config_class)
        AutoModel.register(method.config_class, method.model_class)
