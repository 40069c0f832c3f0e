"""A dial2vec checkpoint of the released program (``*.best_model.pkl``): PLATO below the prefix ``bert.``.

The program saves the state of its module; a module that was saved whole reads as well.
"""

from __future__ import annotations

from pathlib import Path

from ...models.errors import InputError
from .assembly import Conversion, Request
from .plato import build
from .torch_files import read_module

_PREFIX = "bert."


def read(request: Request) -> Conversion:
    """Reads a checkpoint of the released program whose backbone is PLATO."""
    request.only_method("dial2vec")
    path = Path(request.source)
    if not path.is_file():
        raise InputError(f"--input '{path}': got no such file, expected a .best_model.pkl of dial2vec")
    tensors = read_module(path)
    if f"{_PREFIX}embeddings.word_embeddings.weight" in tensors:
        raise InputError(
            f"'{path}': got the backbone BERT, expected PLATO; the program reads dialogues without a closing [SEP] "
            "there, which no layout of this package does"
        )
    beside = path.parent / "vocab.txt"
    text = beside.read_text(encoding="utf-8") if beside.is_file() else None
    return build(request, tensors, _PREFIX, text)
