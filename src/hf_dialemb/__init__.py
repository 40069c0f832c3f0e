"""Dialogue embeddings for Hugging Face.

Learn vectors of dialogues from the conversations themselves.

>>> encoder = hf_dialemb.load_encoder("all-MiniLM-L6-v2")
>>> run = hf_dialemb.train("dial2vec", dialogues, recipe="own_minilm", output_dir="runs/mine")
>>> results = hf_dialemb.evaluate([run, encoder], dialogues, tasks=["domains"])
>>> flow = hf_dialemb.extract_flow(dialogues, encoder=run.encoder())

Importing the package is enough for ``AutoModel.from_pretrained`` and ``SentenceTransformer`` to
load its checkpoints; torch and transformers are imported only when something asks for them. The
public names are those of ``__init__.pyi``.
"""

from threading import RLock
from types import ModuleType
from typing import Any

import wrapt

from .hooks import lazy_names
from .methods import METHODS, get_method, register, register_method

__version__ = "0.1.0"

# as in __init__.pyi, which type checkers read
_PLACES = {
    ".apps.flow.extract": ["extract_flow"],
    ".apps.search.search": ["search"],
    ".apps.search.turn_index": ["TurnIndex"],
    ".apps.topics.model": ["find_topics", "load_topics"],
    ".data": ["load_dialogues"],
    ".dialogue": ["Dialogue", "Turn"],
    ".encoders.load_encoder": ["load_encoder"],
    ".errors": ["InputError"],
    ".evaluation.evaluating": ["evaluate"],
    ".hub.publishing": ["push"],
    ".methods": ["register"],
    ".methods.dial2vec": ["Dial2VecConfig", "Dial2VecModel"],
    ".methods.dialog2flow": ["Dialog2FlowConfig", "Dialog2FlowModel"],
    ".methods.dialogue_cse": ["DialogueCSEConfig", "DialogueCSEModel"],
    ".methods.dse": ["DSEConfig", "DSEModel"],
    ".methods.dual_encoder": [
        "DualEncoderConfig",
        "DualEncoderModel",
        "TransformerDualEncoderConfig",
        "TransformerDualEncoderModel",
    ],
    ".methods.method": ["Method"],
    ".methods.multi_granularity": ["MultiGranularityConfig", "MultiGranularityModel"],
    ".methods.ranker": ["load_ranker"],
    ".methods.turns": ["TurnsConfig", "TurnsModel"],
    ".storage.pretrained": ["weights"],
    ".training.trainer": ["DialogueTrainer"],
    ".training.training_run": ["train"],
}

__getattr__, __dir__, _names = lazy_names(__name__, _PLACES)
# what `help` shows: the classes inherit pages of methods from transformers
__all__ = [name for name in _names if name.islower()]


_REGISTERING = RLock()  # several threads may load their first model at once


def _after_registering(load: Any, _: Any, args: Any, kwargs: Any) -> Any:
    with _REGISTERING:
        register()
    return load(*args, **kwargs)


def _register_on_first_use(auto: ModuleType) -> None:
    for name in ("from_pretrained", "for_model"):
        wrapt.wrap_function_wrapper(auto, f"AutoConfig.{name}", _after_registering)


# transformers has no plugin hook, and importing it here would cost every user of this package two
# seconds. Every loader (AutoModel, AutoTokenizer, SentenceTransformer) asks AutoConfig first, so
# the methods are registered before it answers; a method whose module is imported by name registers
# at once.
wrapt.register_post_import_hook(
    _register_on_first_use, "transformers.models.auto.configuration_auto"
)
for _name in METHODS.own:
    _module = METHODS[_name].partition(":")[0]
    wrapt.register_post_import_hook(
        lambda _, name=_name: register_method(get_method(name)), _module
    )
