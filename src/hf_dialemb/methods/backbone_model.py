"""What every method's model shares, and what those share that wrap a pretrained backbone."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from ..checkpoints.pretrained import has_decoder, load_pretrained
from ..dialogue import Dialogue
from ..errors import InputError
from .batching import any_shape
from .config import EncoderConfig, check_range


class MethodModel(PreTrainedModel):
    """What training asks of the model of any method."""

    main_input_name = "input_ids"
    accepts_loss_kwargs = False

    @classmethod
    def build(
        cls, backbone: str | None, dialogues: Sequence[Dialogue], dropout: float | None = None, **settings: object
    ) -> tuple[Self, PreTrainedTokenizerBase]:
        """Builds an untrained model, and its tokenizer.

        Its weights begin with the backbone's, None where the method needs nothing; methods without a pretrained one
        take their words from the dialogues that they are going to learn from. The dropout replaces the backbone's own.
        The settings are fields of the method's config; an InputError says what is wrong with them or the backbone.
        """
        raise NotImplementedError

    def freeze_lower_layers(self) -> None:
        """Stops learning where the settings say so."""


class AnyAttention:
    """Says that a model computes attention as its backbone does, in whatever way is asked for."""

    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True


class BackboneModel(AnyAttention, MethodModel):
    """A model around ``self.encoder``, any encoder that `AutoModel` loads, without its pooler."""

    config: EncoderConfig
    base_model_prefix = "backbone"
    supports_gradient_checkpointing = True

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(config)
        self.encoder = without_pooler(config)

    @classmethod
    def build(
        cls, backbone: str | None, dialogues: Sequence[Dialogue], dropout: float | None = None, **settings: object
    ) -> tuple[Self, PreTrainedTokenizerBase]:
        """See `MethodModel`; the dialogues are not needed."""
        assert backbone is not None, "settings without a backbone are refused before"
        return cls.from_backbone(backbone, dropout, **settings)

    @classmethod
    def from_backbone(
        cls, name: str, dropout: float | None = None, **settings: object
    ) -> tuple[Self, PreTrainedTokenizerBase]:
        """Builds an untrained encoder around a pretrained backbone, and its tokenizer with chat template; see `build`.

        The name is a folder or Hub id of any encoder that `AutoModel` loads, or of one of this package, whose encoder
        and tables of turns and roles it then starts from, such as a converted PLATO.

        Raises:
            InputError: A setting is wrong, or the backbone's tokenizer is not a fast one.
        """
        backbone = load_backbone(name, dropout)
        config_class: Any = cls.config_class
        config = config_class(encoder_config=backbone.encoder.config, **settings)
        config.fit(backbone.positions, name)
        check_range("frozen_layers", config.frozen_layers, 0, backbone.encoder.config.num_hidden_layers)
        cls.prepare_tokenizer(backbone.tokenizer, config)
        backbone.make_room()
        model = cls(config)
        backbone.fill(model.encoder)
        model.take_tables(backbone.tables, name)
        model.train(False)
        return model, backbone.tokenizer

    @torch.no_grad()
    def take_tables(self, tables: Mapping[str, Tensor], name: str) -> None:
        """Takes over a checkpoint's tables of turns and roles, by parameter name; refuses those of another size."""
        own = dict(self.named_parameters())
        for key in tables.keys() & own.keys():
            if own[key].shape != tables[key].shape:
                raise InputError(
                    f"{key.removesuffix('.weight')}: got settings for {len(own[key])} rows, expected the "
                    f"{len(tables[key])} of '{name}'; correct num_turn_embeddings or num_roles"
                )
            own[key].copy_(tables[key])

    @staticmethod
    def prepare_tokenizer(tokenizer: PreTrainedTokenizerBase, config: Any) -> None:  # noqa: ANN401
        """Gives the tokenizer what the method needs (tokens, chat template, length limit), and completes the config."""
        raise NotImplementedError

    def get_input_embeddings(self) -> Any:  # noqa: ANN401 - a module
        """Returns the backbone's token table."""
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replaces the backbone's token table."""
        self.encoder.set_input_embeddings(value)
        # The config is the encoder's own, and decides what loads: transformers changes only the one around it.
        self.config.encoder_config.vocab_size = value.num_embeddings  # type: ignore[union-attr]

    def freeze_lower_layers(self) -> None:
        """Stops learning in the first ``frozen_layers`` layers and all tables below, so that autograd skips them."""
        if self.config.frozen_layers == 0:
            return
        layers = _layers(self.encoder, self.config.encoder_config.num_hidden_layers)  # type: ignore[union-attr]
        learning = {parameter for layer in layers[self.config.frozen_layers :] for parameter in layer.parameters()}
        below = {parameter for layer in layers for parameter in layer.parameters()} - learning
        for name, module in self.named_modules():
            last = name.split(".")[-1]
            if module is self.get_input_embeddings() or "embeddings" in last or last == "relative_attention_bias":
                below.update(module.parameters())
        for parameter in below:
            parameter.requires_grad_(False)


class Backbone(NamedTuple):
    """A pretrained encoder, with its tokenizer and its number of positions, if it says.

    Of a checkpoint of this package, the tables are its parameters outside of encoder and heads.
    """

    encoder: Any
    tokenizer: PreTrainedTokenizerBase
    positions: int | None
    tables: dict[str, Tensor]

    def make_room(self) -> None:
        """Gives all words of the tokenizer a vector."""
        if len(self.tokenizer) > self.encoder.get_input_embeddings().num_embeddings:
            self.encoder.resize_token_embeddings(len(self.tokenizer))

    def fill(self, *encoders: Any) -> None:  # noqa: ANN401
        """Copies the weights into encoders `without_pooler`."""
        weights = {key: value for key, value in self.encoder.state_dict().items() if not key.startswith("pooler.")}
        for encoder in encoders:
            encoder.load_state_dict(weights, strict=True)


def without_pooler(config: Any) -> Any:  # noqa: ANN401 - whatever class the config names
    """Makes the encoder of a config; a pooler would never be used, and DDP would wait for its gradients."""
    encoder = AutoModel.from_config(config.encoder_config)
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None
    return encoder


def load_backbone(name: str, dropout: float | None) -> Backbone:
    """Loads any encoder that `AutoModel` loads; of a checkpoint of this package, what it was built around.

    The dropout replaces that of hidden layers and attention; None keeps them.

    Raises:
        InputError: The dropout is out of range, or the tokenizer is missing or not a fast one.
    """
    tokenizer = load_pretrained(AutoTokenizer, name)
    if not tokenizer.is_fast:
        raise InputError(f"The tokenizer of '{name}' is {type(tokenizer).__name__}: expected a fast tokenizer")
    # Learning takes float32 weights, whatever they were published in; bf16 and fp16 are settings of the training.
    backbone, tables = load_pretrained(AutoModel, name).float(), {}
    if isinstance(backbone, BackboneModel):
        parameters = backbone.named_parameters()
        tables = {key: value.detach() for key, value in parameters if not key.startswith(("encoder.", "heads."))}
        backbone = backbone.encoder
    elif isinstance(backbone, MethodModel):
        raise InputError(
            f"'{name}' is a {backbone.config.model_type} model, expected an encoder; name another backbone"
        )
    if has_decoder(backbone):
        raise InputError(
            f"backbone: got '{name}', a {backbone.config.model_type} model with encoder and decoder, expected an "
            "encoder; name another backbone"
        )
    backbone.config.dtype = torch.float32
    if dropout is not None:
        check_range("dropout", dropout, 0, 1)
        backbone.config.update(dict.fromkeys(_DROPOUTS & vars(backbone.config).keys(), dropout))
    return Backbone(backbone, tokenizer, _position_limit(backbone.config), tables)


@contextmanager
def quickest_attention(encoder: Any, length: int) -> Iterator[None]:  # noqa: ANN401
    """Lets sequences of one length be attended to, for a backward pass, in the way that is quickest.

    On a processor, up to `PLAIN_TOKENS`, that is plain attention, as the fused kernel's backward pass is slow for short
    texts and above all in bfloat16; beyond, it is the kernel. For an accelerator see `any_shape`.
    """
    config, kernel = encoder.config, encoder.config._attn_implementation
    short = length <= PLAIN_TOKENS["bfloat16" if torch.is_autocast_enabled("cpu") else "float32"]
    short = short and encoder.device.type == "cpu" and torch.is_grad_enabled() and kernel == "sdpa"
    # What is computed again is so outside of here.
    if short and not any(getattr(module, "gradient_checkpointing", False) for module in encoder.modules()):
        config._attn_implementation = "eager"
    try:
        with any_shape():
            yield
    finally:
        config._attn_implementation = kernel


def autocast_off(tensor: torch.Tensor) -> torch.autocast:
    """Makes a context in which losses are computed in the precision of their inputs, not in that of the backbone."""
    return torch.autocast(tensor.device.type, enabled=False)


PLAIN_TOKENS = {"float32": 64, "bfloat16": 256}
"""Up to so many tokens plain attention is quicker, measured by ``benchmarks/attention.py``."""

_ROBERTA_KIN = {
    "camembert", "data2vec-text", "ibert", "longformer", "luke", "mpnet", "roberta", "roberta-prelayernorm",
    "xlm-roberta", "xlm-roberta-xl", "xmod",
}  # fmt: skip
_DROPOUTS = {
    "hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout", "embedding_dropout",
    "mlp_dropout",
}  # fmt: skip


def position_offset(config: Any) -> int:  # noqa: ANN401
    """Returns from where a backbone counts positions: RoBERTa and its kin start at padding_idx + 1."""
    return config.pad_token_id + 1 if config.model_type in _ROBERTA_KIN else 0


def _position_limit(config: Any) -> int | None:  # noqa: ANN401
    limit = getattr(config, "max_position_embeddings", None)
    return None if limit is None or limit < 1 else limit - position_offset(config)  # XLNet says -1: any number


def _layers(encoder: nn.Module, count: int) -> nn.ModuleList:
    for module in encoder.modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            return module
    raise InputError(
        f"frozen_layers: {type(encoder).__name__} has no list of {count} layers; expected frozen_layers: 0"
    )
