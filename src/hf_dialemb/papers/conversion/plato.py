"""PLATO (Bao et al., ACL 2020) into a dial2vec checkpoint: from paddle's parameters, or from the port to torch.

Or from a checkpoint of dial2vec's released program (``*.best_model.pkl``), where it lies below the prefix ``bert.``:
the program saves the state of its module, but a module that was saved whole reads as well.

PLATO sums the embeddings of token, position, type and turn, normalises, and runs post-norm blocks with a fused
projection to query, key and value: BERT's layers under other names. Its types are speakers, 0 the bot and 1 the user;
its turns count down to 1, 0 being the response; its positions begin anew in every utterance.
"""

from __future__ import annotations

import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from transformers import BertConfig

from ...errors import InputError
from ...methods.dial2vec import Dial2VecConfig, Dial2VecModel
from .convert import Conversion, Request, fit_vocabulary, heads_of, vocabulary_in, wordpiece
from .paddle_files import is_paddle, read_paddle
from .placing import AS_IT_IS, IN_THREE, REVERSED, TRANSPOSED, TRANSPOSED_IN_THREE, Report, Rule, place, size_of
from .torch_files import read_module, read_tensors

_PADDLE, _DIAL2VEC = "Model/UnifiedTransformer_0", "bert."

_TABLES = (  # of the port, of paddle, of ours
    ("embedder.token_embedding.weight", "/Embedder_0/Embedding_0.w_0", "encoder.embeddings.word_embeddings.weight"),
    ("embedder.pos_embedding.weight", "/Embedder_0/Embedding_1.w_0", "encoder.embeddings.position_embeddings.weight"),
    ("embedder.type_embedding.weight", "/Embedder_0/Embedding_2.w_0", "role_embeddings.weight"),
    ("embedder.turn_embedding.weight", "/Embedder_0/Embedding_3.w_0", "turn_embeddings.weight"),
    ("embed_layer_norm.weight", "/LayerNorm_0.w_0", "encoder.embeddings.LayerNorm.weight"),
    ("embed_layer_norm.bias", "/LayerNorm_0.b_0", "encoder.embeddings.LayerNorm.bias"),
)
_QUERY_KEY_VALUE = ("attention.self.query", "attention.self.key", "attention.self.value")
_LAYER = (
    ("attn.linear_qkv", "MultiheadAttention_0/FC_0", _QUERY_KEY_VALUE),
    ("attn.linear_out", "MultiheadAttention_0/FC_1", ("attention.output.dense",)),
    ("attn_norm", "LayerNorm_0", ("attention.output.LayerNorm",)),
    ("ff.linear_hidden.0", "FeedForward_0/FC_0", ("intermediate.dense",)),
    ("ff.linear_out", "FeedForward_0/FC_1", ("output.dense",)),
    ("ff_norm", "LayerNorm_1", ("output.LayerNorm",)),
)
_WHY_DROPPED = {
    r"pooler\..*": "dial2vec embeds the mean of tokens, not a pooled first token",
    r"discriminator[./].*": "chooses PLATO's responses; no embedding goes through it",
    r"post_network[./].*": "estimates PLATO's latent variable, which dial2vec does not read",
    r"bow_predictor[./].*|pre_bow_predictor[./].*": "predicts a response's words in PLATO's pre-training",
    r"predictor[./].*|pre_predictor[./].*": "generates PLATO's responses",
    r"mask_embed": "the token that stands for PLATO's latent variable; dial2vec does not prepend it",
    r"latent_embeddings": "the values of PLATO's latent variable; dial2vec does not prepend it",
    r"sequence_mask": "a constant of generation",
}
SETTINGS: dict[str, Any] = {
    "wrapped": False,
    "end_of_utterance": "[unused1]",
    "position_layout": "utterance",
    "turn_order": "descending",
    "whole_turns": False,
    "loss_temperature": 0.2,
    "window": 10,
    "num_negatives": 9,
    "anchor": "each",
}
"""PLATO's layout and dial2vec's objective (section 4.4); sizes are read from the weights."""


def read(request: Request) -> Conversion:
    """Reads PLATO: paddle's parameters, ``.pt`` of the port, a tar archive, or a folder that holds one of them."""
    request.only_method("dial2vec")
    tensors, beside = _read_source(Path(request.source))
    paddle = any(key.startswith(_PADDLE) for key in tensors)
    return _build(request, tensors, _PADDLE if paddle else "", beside)


def read_dial2vec(request: Request) -> Conversion:
    """Reads a checkpoint of dial2vec's released program whose backbone is PLATO."""
    request.only_method("dial2vec")
    path = Path(request.source)
    if not path.is_file():
        raise InputError(f"--input '{path}': got no such file, expected a .best_model.pkl of dial2vec")
    tensors = read_module(path)
    if f"{_DIAL2VEC}embeddings.word_embeddings.weight" in tensors:
        raise InputError(
            f"'{path}': got the backbone BERT, expected PLATO; the program reads dialogues without a closing [SEP] "
            "there, which no layout of this package does"
        )
    return _build(request, tensors, _DIAL2VEC, vocabulary_in(path.parent))


def _build(request: Request, tensors: Mapping[str, Any], prefix: str, beside: str | None) -> Conversion:
    paddle = prefix == _PADDLE
    tables = [prefix + row[paddle] for row in _TABLES]
    (rows, width), (positions, _), _, (turns, _) = (size_of(tensors, table, "PLATO") for table in tables[:4])
    first = prefix + ("/TransformerBlock_0/FeedForward_0/FC_0.w_0" if paddle else "layers.0.ff.linear_hidden.0.weight")
    inner = size_of(tensors, first, "PLATO")[1 if paddle else 0]
    block = rf"{re.escape(prefix)}/TransformerBlock_(\d+)/.*" if paddle else rf"{re.escape(prefix)}layers\.(\d+)\..*"
    layers = 1 + max(int(match[1]) for key in tensors if (match := re.fullmatch(block, key)))
    backbone = BertConfig(
        vocab_size=rows, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads_of(width),
        intermediate_size=inner, max_position_embeddings=positions, type_vocab_size=1, layer_norm_eps=1e-6,
        hidden_act="gelu", pad_token_id=0,
    )  # fmt: skip
    config = Dial2VecConfig(
        encoder_config=backbone, max_tokens=positions, num_turn_embeddings=turns, max_turns=turns - 1,
        frozen_layers=layers // 2, **SETTINGS,
    )  # fmt: skip
    tokenizer = wordpiece(request, beside, rows)
    Dial2VecModel.prepare_tokenizer(tokenizer, config)
    model = Dial2VecModel(config)
    model.encoder.embeddings.token_type_embeddings.weight.data.zero_()
    report = Report(request.kind, request.source, config.model_type)
    report.made = {
        "encoder.embeddings.token_type_embeddings.weight": "zeros; PLATO's types are speakers, in role_embeddings",
        "center": "zeros; nothing is taken off the embeddings",
    }
    start = re.escape(prefix) + (r"[./]" if paddle else "")
    reasons = [(f"{start}(?:{pattern})", why) for pattern, why in _WHY_DROPPED.items()]
    place(tensors, _rules(prefix, paddle, layers), model.state_dict(), reasons, report)
    fit_vocabulary(model, tokenizer, report)
    report.notes.append("Role 0 of ours is the user and 1 the assistant; PLATO's type 0 is the bot and 1 the user.")
    return Conversion(model, tokenizer, report)


def _rules(prefix: str, paddle: bool, layers: int) -> Iterator[Rule]:
    for row in _TABLES:
        yield Rule(prefix + row[paddle], (row[2],), REVERSED if row[2].startswith("role_") else AS_IT_IS)
    for number in range(layers):
        for torch_name, paddle_name, names in _LAYER:
            for part, paddle_part in (("weight", "w_0"), ("bias", "b_0")):
                changes = (IN_THREE, TRANSPOSED_IN_THREE) if names == _QUERY_KEY_VALUE else (AS_IT_IS, TRANSPOSED)
                change = changes[paddle and part == "weight" and "LayerNorm" not in paddle_name]
                ported = f"layers.{number}.{torch_name}.{part}"
                source = f"/TransformerBlock_{number}/{paddle_name}.{paddle_part}" if paddle else ported
                targets = tuple(f"encoder.encoder.layer.{number}.{name}.{part}" for name in names)
                yield Rule(prefix + source, targets, change)


def _read_source(path: Path) -> tuple[Mapping[str, Any], str | None]:
    if path.is_dir():
        weights = [file for file in sorted(path.rglob("*")) if file.is_file() and _is_weights(file.name)]
        if len(weights) != 1:
            names = ", ".join(file.name for file in weights) or "none"
            raise InputError(
                f"'{path}': got {len(weights)} files of weights ({names}), expected one, such as PLATO.pdparams or "
                "PLATO.pt; name the file itself (--input)"
            )
        vocabularies = list(path.rglob("vocab.txt"))
        return _read_file(weights[0]), vocabulary_in(vocabularies[0].parent) if len(vocabularies) == 1 else None
    if not path.is_file():
        raise InputError(f"--input '{path}': got no such file or folder, expected PLATO's weights")
    if path.name.endswith((".tar", ".tar.gz", ".tgz")):
        return _read_archive(path)
    return _read_file(path), vocabulary_in(path.parent)


def _is_weights(name: str) -> bool:
    return name.endswith((".pdparams", ".pt", ".np")) or name == "PLATO"


def _read_file(path: Path) -> Mapping[str, Any]:
    with path.open("rb") as stream:
        if path.suffix in (".pt", ".pth", ".bin") or not is_paddle(stream.read(260)):
            return read_tensors(path)
        stream.seek(0)
        return read_paddle(stream, str(path))


def _read_archive(path: Path) -> tuple[Mapping[str, Any], str | None]:
    """Reads an archive from front to end, its members from memory: nothing of it is written to the disk."""
    found: dict[str, Mapping[str, Any]] = {}
    text = None
    try:
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                plain = member.isfile() and not member.issparse()  # the holes of a sparse file need not end
                stream = archive.extractfile(member) if plain else None
                name = member.name.rpartition("/")[2]
                if stream is not None and name == "vocab.txt":
                    text = stream.read(2**24).decode("utf-8")
                elif stream is not None and _is_weights(name) and not name.startswith("."):
                    found[member.name] = read_paddle(stream, f"{path}:{member.name}")
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise InputError(f"'{path}' is cut off or damaged ({type(error).__name__}: {error}); fetch it again") from None
    if len(found) != 1:
        raise InputError(
            f"'{path}': got {len(found)} members of weights ({', '.join(found) or 'none'}), expected one, such as "
            "model/PLATO.pdparams; unpack it and name the file itself (--input)"
        )
    return next(iter(found.values())), text
