"""The conversion as a whole: read, account for every key, write beside, load again, put in place.

And what all kinds share: the request, tokenizers, vocabularies that grow, and what a kind hands back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import AutoModel, AutoTokenizer, BertTokenizer, PreTrainedTokenizerBase

from ...checkpoints.pretrained import reading
from ...errors import InputError, unknown_name
from ...hub.published_folder import appearing_whole
from ...methods import register
from ...methods.backbone_model import BackboneModel
from ...runs.files import write_json_atomically
from .placing import Report

KINDS: dict[str, tuple[str, str]] = {
    "plato": ("plato", "read"),
    "dial2vec": ("plato", "read_dial2vec"),
    "transformers": ("encoders", "read_transformers"),
    "sentence-transformers": ("encoders", "read_sentence_transformers"),
}
"""Kind of checkpoint to its module here and the function that reads it."""

REPORT_FILE = "conversion.json"  # what became of every key, beside the weights
_HEAD_SIZE = 64  # of an attention head in BERT, PLATO and their kin; weights alone do not tell it


@dataclass(frozen=True)
class Request:
    """What is to be converted: a file, folder or Hub id of a kind, a key of `KINDS`.

    Without a WordPiece vocabulary, a token a line, the one beside the weights is taken; without a method, the kind's.
    """

    kind: str
    source: str
    vocabulary: Path | None = None
    method: str | None = None

    def only_method(self, method: str) -> None:
        """Raises InputError if another method was asked for than the one that the kind can become."""
        if self.method not in (None, method):
            raise InputError(f"--method: got {self.method}, expected {method}, the only one for --from {self.kind}")


@dataclass(frozen=True)
class Conversion:
    """One of this package's models with a foreign checkpoint's values, and its tokenizer, with chat template."""

    model: BackboneModel
    tokenizer: PreTrainedTokenizerBase
    report: Report


def convert(request: Request, output: Path, partial: bool = False) -> Iterator[str]:
    """Converts a foreign checkpoint into one of ours; nothing appears at ``output`` unless all of it holds."""
    if output.exists():
        raise InputError(f"--output {output} exists already; choose a new folder or remove it")
    if request.kind not in KINDS:
        raise unknown_name("kind of checkpoint", request.kind, KINDS)
    module, name = KINDS[request.kind]
    read: Callable[[Request], Conversion] = getattr(import_module(f"{__package__}.{module}"), name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # what stays untrained is the same every time
        with reading(request.source):
            conversion = read(request)
    report = conversion.report
    yield from report.lines()
    wrong = [(keys, name) for keys, name in ((report.missing, "missing"), (report.unexpected, "unexpected")) if keys]
    if wrong and not partial:
        some = [f"{len(keys)} {name} ({', '.join(keys[:3])}{', ...' if len(keys) > 3 else ''})" for keys, name in wrong]
        raise InputError(
            f"'{report.source}': got keys that are {' and '.join(some)}, expected all keys of {report.kind} alone; "
            "choose another --from, or pass --partial to convert what is there"
        )
    with appearing_whole(output) as folder:
        conversion.model.save_pretrained(folder)
        conversion.tokenizer.save_pretrained(folder)
        write_json_atomically(folder / REPORT_FILE, asdict(report))
        _load_again(folder, conversion.model)


def _load_again(folder: Path, model: Any) -> None:  # noqa: ANN401
    register()
    loaded, keys = AutoModel.from_pretrained(folder, output_loading_info=True)
    AutoTokenizer.from_pretrained(folder)
    wrong = [*keys["missing_keys"], *keys["unexpected_keys"]]
    theirs = loaded.state_dict()
    wrong += [name for name, value in model.state_dict().items() if not torch.equal(value, theirs[name])]
    if wrong:
        raise InputError(
            f"what was written loads with other tensors ({', '.join(wrong[:3])}), expected the same; nothing is kept"
        )


def vocabulary_in(folder: Path) -> str | None:
    """Reads the vocabulary beside weights, if there is one."""
    file = folder / "vocab.txt"
    return file.read_text(encoding="utf-8") if file.is_file() else None


def wordpiece(request: Request, beside: str | None, rows: int) -> PreTrainedTokenizerBase:
    """Makes BERT's uncased tokenizer of a vocabulary."""
    if request.vocabulary is not None:
        if not request.vocabulary.is_file():
            raise InputError(f"--vocab {request.vocabulary}: got no such file, expected a vocabulary, a token a line")
        beside = request.vocabulary.read_text(encoding="utf-8")
    if beside is None:
        raise InputError(
            f"'{request.source}' has no vocab.txt beside its weights; say where it is (--vocab vocab.txt); "
            "PLATO's is that of bert-base-uncased"
        )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.txt"
        path.write_text(beside, encoding="utf-8")
        tokenizer: PreTrainedTokenizerBase = BertTokenizer(vocab=str(path), do_lower_case=True)
    tokenizer.name_or_path = ""
    if len(tokenizer) != rows:
        raise InputError(
            f"vocabulary: got {len(tokenizer)} tokens, expected {rows}, the rows of the token table; "
            "take the vocab.txt that belongs to the checkpoint (--vocab)"
        )
    return tokenizer


def heads_of(width: int) -> int:
    """Returns how many attention heads a width means."""
    if width % _HEAD_SIZE:
        raise InputError(f"width: got {width}, expected a multiple of {_HEAD_SIZE}, the size of an attention head")
    return width // _HEAD_SIZE


def fit_vocabulary(model: Any, tokenizer: Any, report: Report) -> None:  # noqa: ANN401
    """Gives the token table rows for tokens that the tokenizer was given beyond the vocabulary."""
    table, backbone = model.get_input_embeddings(), model.config.encoder_config
    rows, count = table.num_embeddings, len(tokenizer)
    if count <= rows:
        return
    model.encoder.resize_token_embeddings(count, mean_resizing=False)
    backbone.vocab_size = count
    with torch.no_grad():
        model.get_input_embeddings().weight[rows:] = 0
    report.notes.append(f"Rows {rows} to {count - 1} of the token table are new, zeros, for speakers' markers.")
