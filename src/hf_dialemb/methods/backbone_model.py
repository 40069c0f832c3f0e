"""Models of methods as training knows them, and models around a pretrained backbone."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.dynamic_module_utils import custom_object_save

from .. import modeling
from ..dialogue import Dialogue
from ..errors import InputError
from ..modeling.modeling_dial2vec import EncoderModel, position_offset
from ..ranges import check_range
from ..storage.adapters import has_adapters, save_base
from ..storage.pretrained import has_decoder, load_pretrained, resolve_backbone
from ..storage.remote_code import save_backbone_code
from ..storage.sentence_modules import SentenceModules, read_sentence_modules
from .config import EncoderConfig, UtteranceConfig

_DROPOUTS = {
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "dropout",
    "attention_dropout",
    "embedding_dropout",
    "mlp_dropout",
}


class MethodModel(PreTrainedModel):
    """The model of a method, with what training needs of it."""

    accepts_loss_kwargs = False

    @classmethod
    def build(
        cls,
        backbone: str | None,
        dialogues: Sequence[Dialogue],
        dropout: float | None = None,
        **settings: object,
    ) -> tuple[Self, PreTrainedTokenizerBase]:
        """Build an untrained model and its tokenizer.

        Raise InputError if a setting or the backbone is wrong.

        Args:
            backbone: Where the weights start; None if the method needs nothing.
            dialogues: What the model is going to learn from; methods without a backbone take their
                words from it.
            dropout: Replaces the backbone's dropout, in [0, 1]; None keeps it.
            **settings: Fields of the method's config.
        """
        raise NotImplementedError

    def freeze_lower_layers(self) -> None:
        """Stop learning where the settings ask for it."""

    def post_init(self) -> None:
        """Complete the model.

        Name the layers of its backbone, and nothing else, as what FSDP wraps by default.

        transformers names tables of word vectors too, which methods read outside of the backbone.
        """
        super().post_init()  # type: ignore[no-untyped-call]
        layers: Any = layers_of(getattr(self, "encoder", None)) or ()
        listed = {name for name in self._no_split_modules or () if "Embeddings" not in name}
        self._no_split_modules = {type(layer).__name__ for layer in layers} or listed

    def save_pretrained(self, save_directory: Any, **kwargs: Any) -> None:  # type: ignore[override]
        """Save the model, or its adapters.

        One that was loaded from its published form keeps its code.
        """
        if has_adapters(self):
            save_base(self, Path(save_directory))
        elif inner := next((part for part in self.children() if has_adapters(part)), None):
            raise InputError(
                f"model: got adapters on its {type(inner).__name__} alone, which no loader finds "
                "again; add them to the model itself, by model.add_adapter or get_peft_model(model)"
            )
        if getattr(self, "encoder", None) is not None:
            save_backbone_code(self.encoder, Path(save_directory))
        super().save_pretrained(save_directory, **kwargs)
        if getattr(self.config, "auto_map", None) is not None:
            custom_object_save(published_class(type(self)), save_directory)


def published_class(model_class: type) -> Any:
    """Return the class of the published model, from the file that lies beside its weights."""
    place = f"{modeling.__name__}."
    return next(parent for parent in model_class.__mro__ if parent.__module__.startswith(place))


class BackboneModel(MethodModel, EncoderModel):
    """A model around ``self.encoder``, any encoder that `AutoModel` loads, without its pooler."""

    config: EncoderConfig

    @classmethod
    def build(cls, backbone: Any, dialogues: Any, dropout: Any = None, **settings: Any) -> Any:
        """Build an untrained model; see `MethodModel`. The dialogues are not needed."""
        return cls.from_backbone(backbone, dropout, **settings)

    @classmethod
    def from_backbone(
        cls,
        name: str,
        dropout: float | None = None,
        trust_remote_code: bool = False,
        **settings: object,
    ) -> tuple[Self, PreTrainedTokenizerBase]:
        """Build an untrained model around a pretrained backbone, and its tokenizer; see `build`.

        The name is a folder or Hub id of any encoder that `AutoModel` loads, with a fast tokenizer.
        A model of this package gives its encoder and its tables of turns and roles.
        ``trust_remote_code`` lets code beside it run.
        """
        backbone = load_backbone(name, dropout, trust_remote_code)
        config_class: Any = cls.config_class
        config = config_class(encoder_config=backbone.encoder.config, **settings)
        config.fit(backbone.positions, name)
        config.take_over(backbone.modules, name)
        # T5Gemma
        layers = getattr(
            backbone.encoder.config, "encoder", backbone.encoder.config
        ).num_hidden_layers
        check_range("frozen_layers", config.frozen_layers, 0, layers)
        cls.prepare_tokenizer(backbone.tokenizer, config)
        backbone.make_room()
        model = cls(config)
        backbone.fill(model.encoder)
        model.take_tables(backbone.tables)
        model.train(False)
        return model, backbone.tokenizer

    @torch.no_grad()
    def take_tables(self, tables: Mapping[str, Tensor]) -> None:
        """Copy a checkpoint's tables of turns and roles, by parameter name."""
        own = dict(self.named_parameters())
        for key in tables.keys() & own.keys():
            own[key].copy_(tables[key])

    @staticmethod
    def prepare_tokenizer(tokenizer: PreTrainedTokenizerBase, config: Any) -> None:
        """Give the tokenizer its tokens, template and length limit, and complete the config."""
        raise NotImplementedError

    def freeze_lower_layers(self) -> None:
        """Stop learning in the first ``frozen_layers`` layers and all tables below.

        Autograd skips them.
        """
        if self.config.frozen_layers == 0:
            return
        layers = layers_of(self.encoder)
        if layers is None:
            raise InputError(
                f"frozen_layers: {type(self.encoder).__name__} has no list of its layers; expected "
                "frozen_layers: 0"
            )
        layers[: self.config.frozen_layers].requires_grad_(False)
        for name, module in self.named_modules():
            last = name.split(".")[-1]
            if (
                module is self.get_input_embeddings()
                or "embeddings" in last
                or last == "relative_attention_bias"
            ):
                module.requires_grad_(False)


def layers_of(encoder: Any) -> nn.ModuleList | None:
    """Return the layers of a backbone.

    None where they are not in one list, as ALBERT's, or there is no backbone.
    """
    if encoder is None:
        return None
    count = getattr(encoder.config, "num_hidden_layers", None)
    lists = (part for part in encoder.modules() if isinstance(part, nn.ModuleList))
    return next((part for part in lists if len(part) == count), None)


class Backbone(NamedTuple):
    """A pretrained encoder, its tokenizer, and its number of positions if the config states it.

    ``tables`` are the parameters outside of encoder and heads of a model of this package,
    ``modules`` what is known of pooling and prompts.
    """

    encoder: Any
    tokenizer: PreTrainedTokenizerBase
    positions: int | None
    tables: dict[str, Tensor]
    modules: SentenceModules

    def make_room(self) -> None:
        """Give every word of the tokenizer a vector."""
        if len(self.tokenizer) > self.encoder.get_input_embeddings().num_embeddings:
            self.encoder.resize_token_embeddings(len(self.tokenizer))

    def fill(self, *encoders: Any) -> None:
        """Copy the weights into encoders that have no pooler."""
        weights = {
            key: value
            for key, value in self.encoder.state_dict().items()
            if not key.startswith("pooler.")
        }
        for encoder in encoders:
            encoder.load_state_dict(weights, strict=True)


def load_backbone(name: str, dropout: float | None, trust_remote_code: bool = False) -> Backbone:
    """Load any encoder that `AutoModel` loads; of a model of this package, the encoder in it.

    The dropout replaces that of hidden layers and attention; None keeps them. Raise InputError if
    the dropout is out of range, the model is no encoder, its tokenizer is not a fast one, or its
    own code is not trusted.
    """
    name = resolve_backbone(name)
    tokenizer = load_pretrained(AutoTokenizer, name, trust_remote_code=trust_remote_code)
    if not tokenizer.is_fast:
        raise InputError(
            f"The tokenizer of '{name}' is {type(tokenizer).__name__}: expected a fast tokenizer"
        )
    # Training needs float32 weights, whatever they were published in; bf16 and fp16 are settings of
    # the training.
    backbone = load_pretrained(AutoModel, name, trust_remote_code=trust_remote_code).float()
    tables = {}
    modules = read_sentence_modules(name)
    if isinstance(backbone, BackboneModel):
        if isinstance(settings := backbone.config, UtteranceConfig):
            modules = SentenceModules(
                settings.pooling, settings.prompts, settings.default_prompt_name
            )
        parameters = backbone.named_parameters()
        tables = {
            key: value.detach()
            for key, value in parameters
            if not key.startswith(("encoder.", "heads."))
        }
        backbone = backbone.encoder
    if isinstance(backbone, MethodModel) or has_decoder(backbone):
        with_decoder = "" if isinstance(backbone, MethodModel) else " with encoder and decoder"
        raise InputError(
            f"backbone: got '{name}', a {backbone.config.model_type} model{with_decoder}, expected "
            "an encoder; name another backbone"
        )
    backbone.config.dtype = torch.float32
    if dropout is not None:
        check_range("dropout", dropout, 0, 1)
        backbone.config.update(dict.fromkeys(_DROPOUTS & vars(backbone.config).keys(), dropout))
    return Backbone(backbone, tokenizer, _position_limit(backbone.config), tables, modules)


def autocast_off(tensor: torch.Tensor) -> torch.autocast:
    """Return a context that computes losses in the precision of their inputs."""
    return torch.autocast(tensor.device.type, enabled=False)


def _position_limit(config: Any) -> int | None:
    limit = getattr(config, "max_position_embeddings", None)
    # XLNet says -1: any number
    return None if limit is None or limit < 1 else limit - position_offset(config)
