"""Convert PLATO's released checkpoints (Bao et al., ACL 2020) into dial2vec's.

Every key is accounted for.

Three programs name the same parameters: paddle's, the port to torch, and dial2vec's released
program (``*.best_model.pkl``), which puts ``bert.`` before the names of the port.

PLATO sums the embeddings of token, position, type and turn, normalises, and runs post-norm blocks
with a fused projection to query, key and value: BERT's layers under other names. Its types are
speakers, 0 the bot and 1 the user. Its turns count down to 1; 0 is the response. Its positions
begin anew in every utterance.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor
from transformers import BertConfig, BertTokenizer, PreTrainedTokenizerBase

from ..errors import InputError
from ..methods.dial2vec import Dial2VecConfig, Dial2VecModel
from ..storage.files import appearing_whole, write_json_atomically
from ..storage.pretrained import reading
from .weight_files import read_source

REPORT_FILE = "conversion.json"


def convert(
    source: str | Path,
    output: str | Path,
    *,
    vocabulary: str | Path | None = None,
    report: Callable[[str], object] = print,
) -> Path:
    """Convert PLATO, or dial2vec's checkpoint over PLATO, into a new folder.

    The source is a file or a folder, such as that of PLATO's unpacked archive.

    The vocabulary, one token a line, is by default the ``vocab.txt`` beside the weights.
    ``report`` receives a line for every key. An InputError says that the output exists, the source
    cannot be read, or its keys, shapes or vocabulary do not fit.
    """
    output = Path(output)
    if output.exists():
        raise InputError(f"--output {output} exists already; choose a new folder or remove it")
    with reading(str(source)):
        tensors, beside = read_source(Path(source))
        model, tokenizer, account = build(
            tensors, str(source), _vocabulary(vocabulary, beside, source)
        )
    for line in account.lines():
        report(line)
    with appearing_whole(output) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        write_json_atomically(folder / REPORT_FILE, asdict(account))
    return output


def _vocabulary(path: str | Path | None, beside: str | None, source: str | Path) -> str:
    if path is not None:
        if not Path(path).is_file():
            raise InputError(
                f"--vocab {path}: got no such file, expected a vocabulary, a token a line"
            )
        return Path(path).read_text(encoding="utf-8")
    if beside is None:
        raise InputError(
            f"'{source}' has no vocab.txt beside its weights; say where it is (--vocab vocab.txt); "
            "PLATO's is that of bert-base-uncased"
        )
    return beside


_PADDLE = "Model/UnifiedTransformer_0"
_DIAL2VEC = "bert."
_HEAD_SIZE = 64  # of an attention head; weights alone do not show it

# What happens to a tensor before it is placed, by its name in the report: one tensor for each
# target.
_THIRD = "a third: query, key, value"
_CHANGES: dict[str, Callable[[Tensor], Sequence[Tensor]]] = {
    "": lambda tensor: (tensor,),
    "transposed": lambda tensor: (tensor.transpose(0, -1),),
    _THIRD: lambda tensor: tensor.chunk(3),
    f"transposed, {_THIRD}": lambda tensor: tensor.transpose(0, -1).chunk(3),
    "rows reversed": lambda tensor: (tensor.flip(0),),
}


# a key, the names of its targets in the model, and of the change on the way
Rule = tuple[str, tuple[str, ...], str]


@dataclass
class Placed:
    """A key of the checkpoint and the key of the model that now holds its values."""

    source: str
    target: str
    shape: tuple[int, ...]
    change: str


@dataclass
class Report:
    """An account of all keys of the checkpoint and of the model."""

    source: str
    model_type: str
    used: list[Placed] = field(default_factory=list)
    # keys of the model that need no source, with the reason
    made: dict[str, str] = field(default_factory=dict)
    # keys of the checkpoint without a use, with the reason
    dropped: dict[str, str] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Yield a line for every key, then the sums."""
        for placed in self.used:
            change = f" ({placed.change})" if placed.change else ""
            yield f"used        {placed.source} -> {placed.target} {list(placed.shape)}{change}"
        for name, reasons in (("made", self.made), ("dropped", self.dropped)):
            yield from (f"{name:10}  {key}: {reason}" for key, reason in reasons.items())
        used = len({placed.source for placed in self.used})
        yield (
            f"{self.model_type}: {used} keys used, {len(self.made)} made, "
            f"{len(self.dropped)} dropped"
        )


_PLATO: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("plato.toml").read_text(encoding="utf-8")
)


def build(
    tensors: Mapping[str, Tensor], source: str, vocabulary: str
) -> tuple[Dial2VecModel, PreTrainedTokenizerBase, Report]:
    """Return a dial2vec model with PLATO's values, its tokenizer, and an account of every key."""
    prefix = next(
        (
            prefix
            for prefix in (_PADDLE, _DIAL2VEC)
            if any(key.startswith(prefix) for key in tensors)
        ),
        "",
    )
    paddle = prefix == _PADDLE
    if f"{_DIAL2VEC}embeddings.word_embeddings.weight" in tensors:
        raise InputError(
            f"'{source}': got the backbone BERT, expected PLATO; dial2vec's program reads "
            "dialogues without a closing [SEP] there, which no layout of this package does"
        )
    backbone, turns = _backbone(tensors, prefix, paddle)
    layers = backbone.num_hidden_layers
    config = Dial2VecConfig(
        encoder_config=backbone,
        max_tokens=backbone.max_position_embeddings,
        num_turn_embeddings=turns,
        max_turns=turns - 1,
        frozen_layers=layers // 2,
        **_PLATO["settings"],
    )
    tokenizer = _wordpiece(vocabulary, backbone.vocab_size)
    Dial2VecModel.prepare_tokenizer(tokenizer, config)
    model = Dial2VecModel(config)
    model.encoder.embeddings.token_type_embeddings.weight.data.zero_()
    report = Report(source, config.model_type)
    report.made = {
        "encoder.embeddings.token_type_embeddings.weight": "zeros; PLATO's types are speakers, in "
        "role_embeddings",
        "center": "zeros; nothing is taken off the embeddings",
    }
    start = re.escape(prefix) + (r"[./]" if paddle else "")
    reasons = [(f"{start}(?:{pattern})", reason) for pattern, reason in _PLATO["dropped"].items()]
    place(tensors, _rules(prefix, paddle, layers), model.state_dict(), reasons, report)
    return model, tokenizer, report


def _backbone(tensors: Mapping[str, Tensor], prefix: str, paddle: bool) -> tuple[BertConfig, int]:
    """Return the encoder's configuration and the number of turns, by the shapes of tensors."""
    tables = [prefix + row[paddle] for row in _PLATO["names"]["tables"]]
    rows, width = _size(tensors, tables[0])
    positions, _ = _size(tensors, tables[1])
    turns, _ = _size(tensors, tables[3])
    if paddle:
        inner = _size(tensors, f"{prefix}/TransformerBlock_0/FeedForward_0/FC_0.w_0")[1]
        block = rf"{re.escape(prefix)}/TransformerBlock_(\d+)/.*"
    else:
        inner = _size(tensors, f"{prefix}layers.0.ff.linear_hidden.0.weight")[0]
        block = rf"{re.escape(prefix)}layers\.(\d+)\..*"
    layers = 1 + max(int(match[1]) for key in tensors if (match := re.fullmatch(block, key)))
    if width % _HEAD_SIZE:
        raise InputError(
            f"width: got {width}, expected a multiple of {_HEAD_SIZE}, the size of an attention "
            "head"
        )
    backbone = BertConfig(
        vocab_size=rows,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // _HEAD_SIZE,
        intermediate_size=inner,
        max_position_embeddings=positions,
        type_vocab_size=1,
        layer_norm_eps=1e-6,
        hidden_act="gelu",
        pad_token_id=0,
    )
    return backbone, turns


def _wordpiece(vocabulary: str, rows: int) -> PreTrainedTokenizerBase:
    """Make BERT's uncased tokenizer of a vocabulary."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.txt"
        path.write_text(vocabulary, encoding="utf-8")
        tokenizer: PreTrainedTokenizerBase = BertTokenizer(vocab=str(path), do_lower_case=True)
    tokenizer.name_or_path = ""
    if len(tokenizer) != rows:
        raise InputError(
            f"vocabulary: got {len(tokenizer)} tokens, expected {rows}, the rows of the token "
            "table; "
            "take the vocab.txt that belongs to the checkpoint (--vocab)"
        )
    return tokenizer


def _size(tensors: Mapping[str, Tensor], key: str) -> tuple[int, ...]:
    """Return the shape of a table that the model's sizes are read from."""
    if key not in tensors:
        some = ", ".join(sorted(tensors)[:3]) or "none"
        raise InputError(
            f"got {len(tensors)} keys ({some}, ...), expected the key '{key}' of PLATO; fetch the "
            "checkpoint again"
        )
    shape = tuple(tensors[key].shape)
    if len(shape) != 2:
        raise InputError(
            f"key '{key}': got the shape {shape}, expected two dimensions; fetch the checkpoint "
            "again"
        )
    return shape


def _rules(prefix: str, paddle: bool, layers: int) -> Iterator[Rule]:
    for row in _PLATO["names"]["tables"]:
        yield prefix + row[paddle], (row[2],), "rows reversed" if row[2].startswith("role_") else ""
    for number in range(layers):
        for torch_name, paddle_name, names in _PLATO["names"]["layer"]:
            for part, paddle_part in (("weight", "w_0"), ("bias", "b_0")):
                transposed = paddle and part == "weight" and "LayerNorm" not in paddle_name
                changes = ["transposed"] if transposed else []
                if len(names) == 3:
                    changes.append(_THIRD)
                ported = f"layers.{number}.{torch_name}.{part}"
                source = (
                    f"/TransformerBlock_{number}/{paddle_name}.{paddle_part}" if paddle else ported
                )
                targets = tuple(f"encoder.encoder.layer.{number}.{name}.{part}" for name in names)
                yield prefix + source, targets, ", ".join(changes)


def place(
    tensors: Mapping[str, Tensor],
    rules: Iterable[Rule],
    state: Mapping[str, Tensor],
    reasons: Iterable[tuple[str, str]],
    report: Report,
) -> None:
    """Copy tensors into the state of a model, and enter every key in the report.

    A key that no rule names is dropped for the first of the ``reasons`` whose pattern matches it.
    Raise InputError if others are unexpected, or some are missing.
    """
    known = set()
    for source, targets, change in rules:
        known.add(source)
        if source in tensors:
            values = {target: state[target] for target in targets}
            report.used += _filled(source, tensors[source], values, change)
    filled = {placed.target for placed in report.used} | report.made.keys()
    missing = [target for target in state if target not in filled]
    unexpected = []
    for key in (key for key in tensors if key not in known):
        reason = next((reason for pattern, reason in reasons if re.fullmatch(pattern, key)), None)
        if reason is None:
            unexpected.append(key)
        else:
            report.dropped[key] = reason
    if missing or unexpected:
        raise InputError(
            f"'{report.source}': got keys that are {len(missing)} missing "
            f"({', '.join(missing[:3])}) and {len(unexpected)} unexpected "
            f"({', '.join(unexpected[:3])}), expected all keys of PLATO alone; fetch it again"
        )


def _filled(
    source: str, tensor: Tensor, targets: Mapping[str, Tensor], change: str
) -> list[Placed]:
    parts = _CHANGES[change](tensor)
    expected = [tuple(target.shape) for target in targets.values()]
    got = [tuple(part.shape) for part in parts]
    if got != expected:
        raise InputError(
            f"key '{source}': got the shape {tuple(tensor.shape)}, which gives "
            f"{' and '.join(map(str, got))}, expected "
            f"{' and '.join(map(str, expected))} for {', '.join(targets)}; the file is damaged, or "
            "its model is of "
            "another form"
        )
    with torch.no_grad():
        for target, part in zip(targets.values(), parts, strict=True):
            target.copy_(part)
    return [Placed(source, name, shape, change) for name, shape in zip(targets, got, strict=True)]
