"""Read tensors by name from files of paddle and torch.

It needs no paddle, and unpickles nothing but tensors.

Files of paddle (``save_dygraph`` of 1.6) hold 256 reserved bytes, ``TNUM`` and the number of
tensors. For each tensor follow ``NAME``, its name, a version, a protocol-buffer message with type
and dimensions, and the values. All numbers are little-endian.
"""

import pickle
import struct
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import IO

import torch
from torch import Tensor

from ..errors import InputError
from ..storage.pretrained import short_reason

_RESERVED = 256
# numeric values of paddle's VarType
_TYPES = {2: torch.int32, 3: torch.int64, 4: torch.float16, 5: torch.float32, 6: torch.float64}
_WEIGHTS = (".pdparams", ".pt", ".np")


def read_source(path: Path) -> tuple[Mapping[str, Tensor], str | None]:
    """Return the tensors of a file or of the only such file in a folder, and its vocabulary.

    The latter is the text of the ``vocab.txt`` beside them, if any.

    An InputError says that the path holds no or several files of weights, or a file cannot be read.
    """
    if not path.is_file() and not path.is_dir():
        raise InputError(f"'{path}': got no such file or folder, expected PLATO's weights")
    file = _weights_in(path) if path.is_dir() else path
    beside = path.rglob("vocab.txt") if path.is_dir() else path.parent.glob("vocab.txt")
    texts = [vocabulary.read_text(encoding="utf-8") for vocabulary in beside]
    with file.open("rb") as stream:
        is_paddle = stream.read(_RESERVED + 4).endswith(b"TNUM")
    tensors = read_paddle(file) if is_paddle else read_torch(file)
    return tensors, texts[0] if len(texts) == 1 else None


def _weights_in(folder: Path) -> Path:
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and (file.name == "PLATO" or file.name.endswith(_WEIGHTS))
    ]
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "none"
        raise InputError(
            f"'{folder}': got {len(files)} files of weights ({names}), expected one, such as "
            "PLATO.pdparams or PLATO.pt; name the file itself"
        )
    return files[0]


def read_torch(path: Path) -> Mapping[str, Tensor]:
    """Return the tensors that ``torch.save`` wrote, by name."""
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a broken zip or pickle shows as many kinds of error
        raise _unreadable(path, "tensors of torch.save", error) from None
    if isinstance(tensors, Mapping) and isinstance(tensors.get("state_dict"), Mapping):
        tensors = tensors["state_dict"]
    values = tensors.items() if isinstance(tensors, Mapping) else [("the top", tensors)]
    for name, value in values:
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise InputError(
                f"'{path}': got {type(value).__name__} under {name!r}, expected a tensor; choose "
                "another"
            )
    return dict(values)


def read_paddle(path: Path) -> Mapping[str, Tensor]:
    """Return tensors by the names of paddle's parameters."""
    with path.open("rb") as stream:
        stream.seek(_RESERVED + 4)
        try:
            return dict(_tensors(stream))
        except Exception as error:  # a damaged file shows as many kinds of error
            raise _unreadable(path, "paddle's parameters", error) from None


def _unreadable(path: Path, content: str, error: Exception) -> InputError:
    trust = "; do not trust the file" if isinstance(error, pickle.UnpicklingError) else ""
    return InputError(
        f"'{path}' cannot be read as {content} ({short_reason(error)}){trust}; it is damaged, cut "
        "off or of another kind: fetch it again"
    )


def _exactly(stream: IO[bytes], count: int) -> bytes:
    content = stream.read(count)
    if len(content) != count:
        raise EOFError(f"got {len(content)} bytes, expected {count}")
    return content


def _number(stream: IO[bytes], form: str) -> int:
    return int(struct.unpack(form, _exactly(stream, struct.calcsize(form)))[0])


def _tensors(stream: IO[bytes]) -> Iterator[tuple[str, Tensor]]:
    for _ in range(_number(stream, "<Q")):
        if (mark := _exactly(stream, 4)) != b"NAME":
            raise ValueError(f"got {mark!r}, expected the mark b'NAME'")
        name = _exactly(stream, _number(stream, "<Q")).decode("utf-8")
        if (version := _number(stream, "<I")) != 0:
            raise ValueError(f"tensor '{name}': got version {version}, expected 0")
        kind, shape = _description(_exactly(stream, _number(stream, "<i")))
        if kind not in _TYPES or min(shape, default=0) < 0:
            raise ValueError(
                f"tensor '{name}': got type {kind} and shape {shape}, expected numbers"
            )
        content = _exactly(stream, prod(shape) * _TYPES[kind].itemsize)
        yield name, torch.frombuffer(bytearray(content), dtype=_TYPES[kind]).reshape(shape)


def _description(message: bytes) -> tuple[int, tuple[int, ...]]:
    """Read ``TensorDesc``: field 1 is the type, and each field 2 a dimension."""
    numbers = _varints(message)
    kind = -1
    shape = []
    for tag in numbers:
        if tag == 0x08:
            kind = next(numbers)
        elif tag == 0x10:
            shape.append(next(numbers))
        else:
            raise ValueError(f"got the field tag {tag} in a tensor's description, expected 8 or 16")
    return kind, tuple(shape)


def _varints(message: bytes) -> Iterator[int]:
    value = 0
    shift = 0
    for byte in message:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value = 0
            shift = 0
