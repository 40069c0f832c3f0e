"""Dialogue embeddings for Hugging Face: learn vectors of dialogues from the conversations themselves.

Importing the package is enough for ``AutoModel.from_pretrained`` and ``SentenceTransformer`` to load its checkpoints;
torch and transformers are imported only when something asks for them.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import wrapt

from .models import METHODS, register, register_method

__version__ = "0.1.0"

_PUBLIC = {
    "Dialogue": "models.dialogue",
    "Turn": "models.dialogue",
    "InputError": "models.errors",
    "Dial2VecConfig": "models.dial2vec",
    "Dial2VecModel": "models.dial2vec",
    "Dialog2FlowConfig": "models.dialog2flow",
    "Dialog2FlowModel": "models.dialog2flow",
    "DialogueCSEConfig": "models.dialogue_cse",
    "DialogueCSEModel": "models.dialogue_cse",
    "DSEConfig": "models.dse",
    "DSEModel": "models.dse",
    "DualEncoderConfig": "models.dual_encoder",
    "DualEncoderModel": "models.dual_encoder",
    "TransformerDualEncoderConfig": "models.transformer_dual_encoder",
    "TransformerDualEncoderModel": "models.transformer_dual_encoder",
    "DeepAttentionMatchingConfig": "models.deep_attention_matching",
    "DeepAttentionMatchingModel": "models.deep_attention_matching",
    "MultiGranularityConfig": "models.multi_granularity",
    "MultiGranularityModel": "models.multi_granularity",
    "load_ranker": "models.ranking",
    "encode": "models.encoder",
    "encode_utterances": "models.utterance",
    "load_dialogues": "corpora",
}

if TYPE_CHECKING:
    from .corpora import load_dialogues as load_dialogues
    from .models.deep_attention_matching import DeepAttentionMatchingConfig as DeepAttentionMatchingConfig
    from .models.deep_attention_matching import DeepAttentionMatchingModel as DeepAttentionMatchingModel
    from .models.dial2vec import Dial2VecConfig as Dial2VecConfig
    from .models.dial2vec import Dial2VecModel as Dial2VecModel
    from .models.dialog2flow import Dialog2FlowConfig as Dialog2FlowConfig
    from .models.dialog2flow import Dialog2FlowModel as Dialog2FlowModel
    from .models.dialogue import Dialogue as Dialogue
    from .models.dialogue import Turn as Turn
    from .models.dialogue_cse import DialogueCSEConfig as DialogueCSEConfig
    from .models.dialogue_cse import DialogueCSEModel as DialogueCSEModel
    from .models.dse import DSEConfig as DSEConfig
    from .models.dse import DSEModel as DSEModel
    from .models.dual_encoder import DualEncoderConfig as DualEncoderConfig
    from .models.dual_encoder import DualEncoderModel as DualEncoderModel
    from .models.encoder import encode as encode
    from .models.errors import InputError as InputError
    from .models.multi_granularity import MultiGranularityConfig as MultiGranularityConfig
    from .models.multi_granularity import MultiGranularityModel as MultiGranularityModel
    from .models.ranking import load_ranker as load_ranker
    from .models.transformer_dual_encoder import TransformerDualEncoderConfig as TransformerDualEncoderConfig
    from .models.transformer_dual_encoder import TransformerDualEncoderModel as TransformerDualEncoderModel
    from .models.utterance import encode_utterances as encode_utterances


def __getattr__(name: str) -> Any:  # noqa: ANN401 - public names of several types
    if name not in _PUBLIC:
        raise AttributeError(f"module 'hf_dialemb' has no attribute '{name}'")
    return getattr(import_module(f"hf_dialemb.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])


def _register_on_first_use(auto: ModuleType) -> None:
    original = vars(auto.AutoConfig)["from_pretrained"]

    def from_pretrained(cls: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - stands in for transformers' own method
        auto.AutoConfig.from_pretrained = original
        register()
        return cls.from_pretrained(*args, **kwargs)

    auto.AutoConfig.from_pretrained = classmethod(from_pretrained)


# transformers has no plugin hook, and importing it here would cost every user of this package two seconds. Every loader
# (AutoModel, AutoTokenizer, SentenceTransformer) asks AutoConfig first, so the methods register themselves at its first
# call; a method whose module is imported by name registers at once.
wrapt.register_post_import_hook(_register_on_first_use, "transformers.models.auto.configuration_auto")
for _module in METHODS.values():
    if isinstance(_module, str):
        wrapt.register_post_import_hook(lambda module: register_method(module.METHOD), _module)
