"""Parameters that paddle saved, read without paddle and without running what a pickle asks for.

Binary (``save_dygraph`` of 1.6): 256 reserved bytes, ``TNUM``, the number of tensors, then for each ``NAME``, its name,
a version, a protocol-buffer message with type and dimensions, and the values. Numbers are little-endian. Later versions
pickle a dictionary from name to array.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator
from math import prod
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError

_RESERVED = 256
_TYPES = {2: "i4", 3: "i8", 4: "f2", 5: "f4", 6: "f8"}  # of VarType, those that parameters have
_NAMES = "StructuredToParameterName@@"  # from the names of later versions to those of parameters


def is_paddle(head: bytes) -> bool:
    """Says whether a file that begins like this may hold paddle's parameters."""
    return head[_RESERVED : _RESERVED + 4] == b"TNUM" or head[:1] == b"\x80"


def read_paddle(stream: IO[bytes], name: str) -> dict[str, NDArray[Any]]:
    """Reads arrays by the names of parameters."""
    head = stream.read(_RESERVED + 4)
    try:
        if head[_RESERVED:] == b"TNUM":
            return dict(_binary(stream))
        stream.seek(0)
        return _arrays(_ArrayUnpickler(stream, encoding="latin1").load())
    except InputError as error:
        raise InputError(f"'{name}': {error}") from None
    except Exception as error:  # a damaged file shows as many kinds of error
        raise InputError(
            f"'{name}' cannot be read as paddle's parameters ({type(error).__name__}: {error}); it is damaged, cut off "
            "or of another kind: fetch it again, or choose another --from"
        ) from None


def _exactly(stream: IO[bytes], count: int) -> bytes:
    parts, left = [], count
    while left > 0:  # in parts: a damaged count would ask for more memory than there is
        part = stream.read(min(left, 2**26))
        if not part:
            raise EOFError(f"got {count - left} bytes, expected {count}")
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _number(stream: IO[bytes], form: str) -> int:
    return int(struct.unpack(form, _exactly(stream, struct.calcsize(form)))[0])


def _binary(stream: IO[bytes]) -> Iterator[tuple[str, NDArray[Any]]]:
    for _ in range(_number(stream, "<Q")):
        mark = _exactly(stream, 4)
        if mark != b"NAME":
            raise ValueError(f"got {mark!r}, expected the mark b'NAME'")
        name = _exactly(stream, _number(stream, "<Q")).decode("utf-8")
        version = _number(stream, "<I")
        if version != 0:
            raise ValueError(f"tensor '{name}': got version {version}, expected 0")
        kind, shape = _description(_exactly(stream, _number(stream, "<i")))
        if kind not in _TYPES or min(shape, default=0) < 0:
            raise ValueError(f"tensor '{name}': got type {kind} and shape {shape}, expected numbers")
        dtype = np.dtype("<" + _TYPES[kind])
        yield name, np.frombuffer(_exactly(stream, prod(shape) * dtype.itemsize), dtype).reshape(shape)


def _description(message: bytes) -> tuple[int, tuple[int, ...]]:
    """Reads ``TensorDesc``: field 1 is the type, field 2 the dimensions, packed or not."""
    kind, shape, place = -1, [], 0
    while place < len(message):
        tag, place = _varint(message, place)
        if tag == 0x12:  # packed
            end, place = _varint(message, place)
            end += place
            while place < end:
                size, place = _varint(message, place)
                shape.append(size)
            continue
        value, place = _varint(message, place)
        if tag == 0x08:
            kind = value
        elif tag == 0x10:
            shape.append(value)
        else:
            raise ValueError(f"got the field tag {tag} in a tensor's description, expected 8, 16 or 18")
    return kind, tuple(shape)


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


class _Dtype:
    """What ``numpy.dtype`` pickles as; plain numbers alone."""

    def __init__(self, name: str, align: bool = False, copy: bool = False) -> None:
        if name not in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "b1"):
            raise ValueError(f"got the array type {name!r}, expected numbers")
        self.dtype = np.dtype(name)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder(state[1] if state[1] in ("<", ">") else "=")


class _Array:
    """What ``numpy.ndarray`` pickles as."""

    array: NDArray[Any] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, fortran, data = state
        if not isinstance(kind, _Dtype) or not isinstance(data, bytes):
            raise ValueError("got an array of objects, expected numbers")
        self.array = np.frombuffer(data, kind.dtype).reshape(shape, order="F" if fortran else "C")


def _latin1(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise ValueError(f"got bytes in the encoding {encoding!r}, expected latin1")
    return text.encode("latin1")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("numpy.core.multiarray", "_reconstruct"): lambda kind, shape, code: _Array(),
    ("numpy._core.multiarray", "_reconstruct"): lambda kind, shape, code: _Array(),
    ("_codecs", "encode"): _latin1,
    ("__builtin__", "bytes"): lambda: b"",  # how old protocols write no bytes at all
    ("collections", "OrderedDict"): lambda pairs=(): dict(pairs),
}


class _ArrayUnpickler(pickle.Unpickler):
    """Makes arrays of numbers, and calls nothing that the file names."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401
        if (module, name) not in _ALLOWED:
            raise InputError(f"asks for {module}.{name}, expected nothing but arrays; do not trust the file")
        return _ALLOWED[module, name]


def _arrays(found: Any) -> dict[str, NDArray[Any]]:  # noqa: ANN401 - whatever the file holds
    if not isinstance(found, dict):
        raise ValueError(f"got {type(found).__name__}, expected a dictionary of arrays")
    names = found.pop(_NAMES, {})
    arrays = {}
    for key, value in found.items():
        if isinstance(value, tuple) and len(value) == 2:  # name and array, as some versions have it
            value = value[1]
        if not isinstance(key, str) or not isinstance(value, _Array) or value.array is None:
            raise ValueError(f"got {type(value).__name__} under {key!r}, expected an array")
        arrays[str(names.get(key, key))] = value.array
    return arrays
