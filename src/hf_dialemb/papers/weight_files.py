"""Read tensors by name from files of paddle and torch.

It needs no paddle, and runs nothing that a pickle asks for.

Binary files of paddle (``save_dygraph`` of 1.6) hold 256 reserved bytes, ``TNUM`` and the number of
tensors. For each tensor follow ``NAME``, its name, a version, a protocol-buffer message with type
and dimensions, and the values. All numbers are little-endian. Later versions of paddle pickle a
dictionary of arrays.
"""

import pickle
import struct
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..storage.pretrained import short_reason

_RESERVED = 256
_TYPES = {2: "i4", 3: "i8", 4: "f2", 5: "f4", 6: "f8"}  # numeric values of paddle's VarType
_NAMES = "StructuredToParameterName@@"  # maps the names of later versions to those of parameters
_VOCABULARY = "vocab.txt"


def read_source(path: Path) -> tuple[Mapping[str, Any], str | None]:
    """Return the tensors of a file, a tar archive or a folder, and its vocabulary.

    The latter is the text of the ``vocab.txt`` beside them, if any.

    An InputError says that the path holds no or several files of weights, or a file cannot be read.
    """
    if path.name.endswith((".tar", ".tar.gz", ".tgz")) and path.is_file():
        return _read_archive(path)
    file, vocabularies = path, list(path.parent.glob(_VOCABULARY))
    if path.is_dir():
        files = [
            file for file in sorted(path.rglob("*")) if file.is_file() and _is_weights(file.name)
        ]
        file, vocabularies = _only(files, path, "files"), list(path.rglob(_VOCABULARY))
    elif not path.is_file():
        raise InputError(f"'{path}': got no such file or folder, expected PLATO's weights")
    return _read_file(file), vocabularies[0].read_text(encoding="utf-8") if len(
        vocabularies
    ) == 1 else None


def _read_file(path: Path) -> Mapping[str, Any]:
    with path.open("rb") as stream:
        head = stream.read(_RESERVED + 4)
        stream.seek(0)
        if path.suffix not in (".pt", ".pth", ".bin", ".pkl") and (
            head.endswith(b"TNUM") or head[:1] == b"\x80"
        ):
            return read_paddle(stream, str(path))
    return read_torch(path)


def read_torch(path: Path) -> Mapping[str, Any]:
    """Return the tensors that ``torch.save`` wrote, by name."""
    import torch

    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a broken zip or pickle shows as many kinds of error
        raise _unreadable(str(path), "tensors of torch.save", error) from None
    if isinstance(tensors, Mapping) and isinstance(tensors.get("state_dict"), Mapping):
        tensors = tensors["state_dict"]
    values = tensors.items() if isinstance(tensors, Mapping) else [("the top", tensors)]
    for name, value in values:
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            raise InputError(
                f"'{path}': got {type(value).__name__} under {name!r}, expected a tensor; choose "
                "another"
            )
    return dict(values)


def read_paddle(stream: IO[bytes], name: str) -> dict[str, NDArray[Any]]:
    """Return arrays by the names of paddle's parameters."""
    try:
        if stream.read(_RESERVED + 4).endswith(b"TNUM"):
            return dict(_binary(stream))
        stream.seek(0)
        return _arrays(_ArrayUnpickler(stream, encoding="latin1").load())
    except InputError as error:
        raise InputError(f"'{name}': {error}") from None
    except Exception as error:  # a damaged file shows as many kinds of error
        raise _unreadable(name, "paddle's parameters", error) from None


def _unreadable(name: str, content: str, error: Exception) -> InputError:
    trust = "; do not trust the file" if isinstance(error, pickle.UnpicklingError) else ""
    return InputError(
        f"'{name}' cannot be read as {content} ({short_reason(error)}){trust}; it is damaged, cut "
        "off or of another "
        "kind: fetch it again"
    )


def _is_weights(name: str) -> bool:
    return not name.startswith(".") and (
        name.endswith((".pdparams", ".pt", ".np")) or name == "PLATO"
    )


def _only(files: list[Any], path: Path, noun: str) -> Any:
    if len(files) != 1:
        names = ", ".join(Path(file).name for file in files) or "none"
        raise InputError(
            f"'{path}': got {len(files)} {noun} of weights ({names}), expected one, such as "
            "PLATO.pdparams or "
            "PLATO.pt; name the file itself"
        )
    return files[0]


def _read_archive(path: Path) -> tuple[Mapping[str, Any], str | None]:
    """Read an archive from front to end; nothing is written to the disk."""
    weights: dict[str, Mapping[str, Any]] = {}
    vocabulary = None
    try:
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                name = Path(member.name).name
                # The holes of a sparse file need not end.
                stream = (
                    archive.extractfile(member)
                    if member.isfile() and not member.issparse()
                    else None
                )
                if stream is not None and name == _VOCABULARY:
                    vocabulary = stream.read(2**24).decode("utf-8")
                elif stream is not None and _is_weights(name):
                    weights[member.name] = read_paddle(stream, f"{path}:{member.name}")
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise InputError(
            f"'{path}' is cut off or damaged ({type(error).__name__}: {error}); fetch it again"
        ) from None
    return weights[_only(list(weights), path, "members")], vocabulary


def _exactly(stream: IO[bytes], count: int) -> bytes:
    parts, left = [], count
    while left > 0:  # in parts: a damaged count would ask for more memory than there is
        part = stream.read(min(left, 2**26))
        if not part:
            raise EOFError(f"got {count - left} bytes, expected {count}")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _number(stream: IO[bytes], form: str) -> int:
    return int(struct.unpack(form, _exactly(stream, struct.calcsize(form)))[0])


def _binary(stream: IO[bytes]) -> Iterator[tuple[str, NDArray[Any]]]:
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
        dtype = np.dtype("<" + _TYPES[kind])
        yield (
            name,
            np.frombuffer(_exactly(stream, prod(shape) * dtype.itemsize), dtype).reshape(shape),
        )


def _description(message: bytes) -> tuple[int, tuple[int, ...]]:
    """Read ``TensorDesc``: field 1 is the type, field 2 the dimensions, packed or not."""
    numbers = _varints(message)
    kind, shape = -1, []
    for tag in numbers:
        if tag == 0x08:
            kind = next(numbers)
        elif tag == 0x10:
            shape.append(next(numbers))
        elif tag == 0x12:  # packed, and the last field
            next(numbers)
            shape += numbers
        else:
            raise ValueError(
                f"got the field tag {tag} in a tensor's description, expected 8, 16 or 18"
            )
    return kind, tuple(shape)


def _varints(message: bytes) -> Iterator[int]:
    value, shift = 0, 0
    for byte in message:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value, shift = 0, 0


class _Dtype:
    """Stand for a pickled ``numpy.dtype``.

    Numpy itself would let a file set flags that corrupt memory.
    """

    def __init__(self, name: str, align: bool = False, copy: bool = False) -> None:
        if name not in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "b1"):
            raise ValueError(f"got the array type {name!r}, expected numbers")
        self.dtype = np.dtype(name)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder(state[1] if state[1] in ("<", ">") else "=")


class _Array:
    """Stand for a pickled ``numpy.ndarray``."""

    array: NDArray[Any] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, fortran, data = state
        if not isinstance(kind, _Dtype) or not isinstance(data, bytes):
            raise ValueError("got an array of objects, expected numbers")
        self.array = np.frombuffer(data, kind.dtype).reshape(shape, order="F" if fortran else "C")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("numpy.core.multiarray", "_reconstruct"): lambda kind, shape, code: _Array(),
    ("numpy._core.multiarray", "_reconstruct"): lambda kind, shape, code: _Array(),
    ("_codecs", "encode"): lambda text, encoding: text.encode(
        "latin1"
    ),  # how old protocols write bytes
    ("__builtin__", "bytes"): lambda: b"",
    ("collections", "OrderedDict"): lambda pairs=(): dict(pairs),
}


class _ArrayUnpickler(pickle.Unpickler):
    """Make arrays of numbers, and call nothing that the file names."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise InputError(
                f"asks for {module}.{name}, expected nothing but arrays; do not trust the file"
            )
        return _ALLOWED[module, name]


def _arrays(content: Any) -> dict[str, NDArray[Any]]:
    if not isinstance(content, dict):
        raise ValueError(f"got {type(content).__name__}, expected a dictionary of arrays")
    names = content.pop(_NAMES, {})
    arrays = {}
    for key, value in content.items():
        # some versions add the name
        array = value[1] if isinstance(value, tuple) and len(value) == 2 else value
        if not isinstance(key, str) or not isinstance(array, _Array) or array.array is None:
            raise ValueError(
                f"got {type(array).__name__} under {key!r}, expected an array of numbers"
            )
        arrays[str(names.get(key, key))] = array.array
    return arrays
