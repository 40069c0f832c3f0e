"""The methods: one file each, registered by name.

A further method is one file that ends in ``METHOD = Method(...)`` and one line in `METHODS`. The
command line, the trainer, AutoModel, export, cards and the benchmark then know it. A method from
outside is added in one of three ways: by `register`, by its file in place of a name (``--method
FILE.py``), or by an entry point of the group ``hf_dialemb.methods`` with the method's name. Methods
are imported when they are needed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..errors import InputError, unknown_name
from ..hooks import Registry, load_file

if TYPE_CHECKING:
    from .method import Method

METHODS = Registry(
    "methods",
    {
        "dial2vec": "hf_dialemb.methods.dial2vec",
        "dse": "hf_dialemb.methods.dse",
        "dialog2flow": "hf_dialemb.methods.dialog2flow",
        "dialogue_cse": "hf_dialemb.methods.dialogue_cse",
        "turns": "hf_dialemb.methods.turns",
        "dual_encoder": "hf_dialemb.methods.dual_encoder",
        "transformer_dual_encoder": "hf_dialemb.methods.dual_encoder:TRANSFORMER_METHOD",
        "multi_granularity": "hf_dialemb.methods.multi_granularity",
    },
)
"""Name to method, or to the module that defines it as ``METHOD`` (``module:NAME`` under another
name)."""


_BY_FILE: dict[Path, Method] = {}  # methods of files that were registered


def get_method(name: str) -> Method:
    """Import a method of `METHODS`, or return that of a file which was registered.

    A name may come from a model's folder, so no file is imported. Raise InputError if there is no
    such method.
    """
    if name.endswith(".py"):
        if (known := _BY_FILE.get(_place(name))) is None:
            raise InputError(
                f"method {name}: got a file that was not registered, expected a method; read it, "
                f"and name it yourself: --method {name}, or hf_dialemb.register('{name}')"
            )
        return known
    if name not in METHODS:
        raise InputError(
            f"{unknown_name('method', name, METHODS)} One of your own goes by its file, as "
            "own_method.py."
        )
    method = METHODS[name]
    if isinstance(method, str):
        module, _, attribute = method.partition(":")
        method = getattr(import_module(module), attribute or "METHOD")
    return cast("Method", method)


def _place(file: str | Path) -> Path:
    return Path(file).expanduser().resolve()


def method_of(model_type: Any) -> Method | None:
    """Return the method of a model, a config or a ``model_type``.

    None for models of other makers.
    """
    config = getattr(model_type, "config", model_type)
    name = str(getattr(config, "model_type", config))
    # The name of this package's methods follows from the type, so that no other of them is
    # imported.
    alike = name.removeprefix("dialemb-").replace("-", "_")
    others = [other for other, path in METHODS.items() if not str(path).startswith("hf_dialemb.")]
    methods = map(get_method, [alike] if alike in METHODS else others)
    return next((method for method in methods if method.config_class.model_type == name), None)


def origin(method: Method) -> str | None:
    """Return the file of a method from outside; None for the package's own."""
    module = method.config_class.__module__
    return (
        None
        if method.name in METHODS.own
        else str(getattr(sys.modules.get(module), "__file__", module))
    )


def check_registered(path: str, config: Mapping[str, Any]) -> None:
    """Refuse a model of a type that neither transformers nor a registered method knows."""
    from ..storage.remote_code import known_to_transformers
    from ..storage.run_folder import RunFolder

    model_type = str(config.get("model_type") or "")
    if (
        not model_type
        or "auto_map" in config
        or known_to_transformers(model_type)
        or method_of(model_type)
    ):
        return
    # of a model, or of one of its checkpoints
    runs = map(RunFolder, (Path(path), Path(path).parent))
    settings = next((run.settings() for run in runs if run.settings_file.is_file()), {})
    file = settings.get("method_from", "FILE.py")
    raise InputError(
        f"'{path}': got a model of the method {settings.get('method', model_type)}, which is not "
        f"registered; name its file (--method {file}), or call hf_dialemb.register('{file}') first"
    )


def register(method: Method | str | Path | None = None) -> None:
    """Make the package, ``AutoConfig`` and ``AutoModel`` know a method, or all of `METHODS`.

    A method is given itself, or by the path of a file that ends in ``METHOD = Method(...)``.
    Registering a method again changes nothing. Raise InputError if another method has the same
    name.
    """
    if isinstance(method, str | Path):
        file = method
        method = getattr(load_file(method), "METHOD", None)
        if method is None or not hasattr(method, "config_class"):
            raise InputError(
                f"{file}: got no METHOD in it, expected METHOD = hf_dialemb.Method(...); end the "
                "file so"
            )
        _BY_FILE[_place(file)] = method
    if method is not None:
        if METHODS.setdefault(method.name, method) is not method:
            raise InputError(
                f"method {method.name}: another method has this name already; choose another"
            )
        register_method(method)
    else:
        for name, path in METHODS.items():
            module = sys.modules.get(str(path).partition(":")[0])
            if isinstance(path, str) and module is not None and not hasattr(module, "METHOD"):
                continue  # it is being imported right now, and registers itself afterwards
            register_method(get_method(name))


def register_method(method: Method) -> None:
    """Make ``AutoConfig`` and ``AutoModel`` know a method."""
    from transformers import CONFIG_MAPPING, AutoConfig, AutoModel

    if method.config_class.model_type not in CONFIG_MAPPING:
        # the model first: whoever sees the config may ask for it at once
        AutoModel.register(method.config_class, method.model_class, exist_ok=True)
        AutoConfig.register(method.config_class.model_type, method.config_class, exist_ok=True)
