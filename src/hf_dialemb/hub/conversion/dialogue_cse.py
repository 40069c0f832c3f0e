"""DialogueCSE's released program: a TensorFlow checkpoint of a BERT and a turn attention, read by TensorFlow itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from transformers import BertConfig

from ...models.dialogue_cse import DialogueCSEConfig, DialogueCSEModel
from ...models.errors import InputError
from .assembly import Conversion, Request, fit_vocabulary, heads_of, vocabulary_in, wordpiece
from .placing import AS_IT_IS, AS_ROW, TRANSPOSED, Reasons, Report, Rule, place, size_of

_TABLES = ("word_embeddings", "position_embeddings", "token_type_embeddings")
_ATTENTION = (("w", "0.weight", TRANSPOSED), ("b", "0.bias", AS_IT_IS), ("u", "2.weight", AS_ROW))
_REASONS: Reasons = (
    (r"(?:.*/)?(?:Adam|Adam_1|adam_m|adam_v)", "the optimiser's moments"),
    (r"(?:.*/)?(?:beta[12]_power|global_step|step|learning_rate)(?:_\d+)?", "the training's progress"),
    (r"bert/pooler/.*", "the embedding is the mean of tokens, not a pooled first token"),
    (r"cls/.*", "the heads of BERT's pre-training"),
)


class Variables(Mapping[str, Any]):
    """A checkpoint's variables by name, read when they are asked for."""

    def __init__(self, reader: Any) -> None:  # noqa: ANN401 - what tf.train.load_checkpoint returns
        self._reader = reader
        self._names = list(reader.get_variable_to_shape_map())

    def __getitem__(self, name: str) -> NDArray[Any]:
        values: NDArray[Any] = self._reader.get_tensor(name)
        return values

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def open_checkpoint(path: str) -> Any:  # noqa: ANN401 - TensorFlow's own reader
    """Opens a checkpoint."""
    try:
        tensorflow = import_module("tensorflow")
    except ImportError:
        raise InputError(
            'reading a TensorFlow checkpoint needs TensorFlow; pip install "hf-dialemb[tensorflow]" brings it'
        ) from None
    try:
        return tensorflow.train.load_checkpoint(path)
    except Exception as error:  # errors of its own, of many kinds
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise InputError(f"--input '{path}': got no TensorFlow checkpoint ({reason}), expected one") from None


def read(request: Request) -> Conversion:
    """Reads a checkpoint of the released program: its folder, or what the names of its files begin with."""
    request.only_method("dialogue_cse")
    variables = Variables(open_checkpoint(request.source))
    folder = Path(request.source) if Path(request.source).is_dir() else Path(request.source).parent
    backbone = _backbone(variables, folder / "bert_config.json")
    # TensorFlow doubles the slash after a scope with an empty name.
    attention = {re.sub("/+", "/", name): name for name in variables if name.startswith("round_attention/")}
    config = DialogueCSEConfig(
        encoder_config=backbone,
        max_tokens=min(100, backbone.max_position_embeddings),
        frozen_layers=backbone.num_hidden_layers // 2,
        turn_aggregation="official" if attention else "mean",
        loss_scale="official",
    )
    tokenizer = wordpiece(request, vocabulary_in(folder), backbone.vocab_size)
    DialogueCSEModel.prepare_tokenizer(tokenizer, config)
    model = DialogueCSEModel(config)
    report = Report(request.kind, request.source, config.model_type)
    rules = [*_rules(backbone.num_hidden_layers)]
    for name, target, change in _ATTENTION:
        if f"round_attention/{name}" in attention:
            rules.append(Rule(attention[f"round_attention/{name}"], (f"heads.turns.{target}",), change))
    place(variables, rules, model.state_dict(), _REASONS, report)
    fit_vocabulary(model, tokenizer, report)
    report.notes.append("The program computes GELU by tanh, whatever its bert_config.json says: hidden_act gelu_new.")
    return Conversion(model, tokenizer, report)


def _backbone(variables: Variables, file: Path) -> BertConfig:
    """Reads sizes from the weights, and from ``bert_config.json`` what weights do not tell."""
    kind = "DialogueCSE's BERT"
    (rows, width), (positions, _), (types, _) = (
        size_of(variables, f"bert/embeddings/{name}", kind) for name in _TABLES
    )
    inner = size_of(variables, "bert/encoder/layer_0/intermediate/dense/kernel", kind)[1]
    layers = 1 + max(int(match[1]) for name in variables if (match := re.match(r"bert/encoder/layer_(\d+)/", name)))
    given = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    config: BertConfig = BertConfig(
        vocab_size=rows, hidden_size=width, num_hidden_layers=layers,
        num_attention_heads=int(given.get("num_attention_heads", 0)) or heads_of(width), intermediate_size=inner,
        max_position_embeddings=positions, type_vocab_size=types, layer_norm_eps=1e-12, hidden_act="gelu_new",
        pad_token_id=0,
    )  # fmt: skip
    return config


def _rules(layers: int) -> Iterator[Rule]:
    for name in _TABLES:
        yield Rule(f"bert/embeddings/{name}", (f"encoder.embeddings.{name}.weight",))
    yield from _normalisation("bert/embeddings/LayerNorm", "encoder.embeddings.LayerNorm")
    for number in range(layers):
        source, target = f"bert/encoder/layer_{number}", f"encoder.encoder.layer.{number}"
        dense = [f"attention/self/{name}" for name in ("query", "key", "value")]
        for name in (*dense, "attention/output/dense", "intermediate/dense", "output/dense"):
            ours = f"{target}.{name.replace('/', '.')}"
            yield Rule(f"{source}/{name}/kernel", (f"{ours}.weight",), TRANSPOSED)
            yield Rule(f"{source}/{name}/bias", (f"{ours}.bias",))
        for name in ("attention/output/LayerNorm", "output/LayerNorm"):
            yield from _normalisation(f"{source}/{name}", f"{target}.{name.replace('/', '.')}")


def _normalisation(source: str, target: str) -> Iterator[Rule]:
    yield Rule(f"{source}/gamma", (f"{target}.weight",))
    yield Rule(f"{source}/beta", (f"{target}.bias",))
