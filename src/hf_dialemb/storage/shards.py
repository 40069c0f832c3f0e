"""Shards of long work.

Each result is kept in a file, so that a killed run goes on with the shards that have none.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import blake2b
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from .files import locked, write_atomically

if TYPE_CHECKING:
    from tqdm import tqdm

Item = TypeVar("Item")
Work = Callable[[Any], Any]
Named = tuple[Any, Any]


def in_shards(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Cut a stream into lists of ``size`` items; the last one may be shorter."""
    stream = iter(items)
    while shard := list(islice(stream, size)):
        yield shard


def named_by_content(work: Work, shards: Iterable[Any]) -> Iterator[Named]:
    """Name shards by their places and by what decides a result.

    The function, its argument, and the version.

    So no result is taken for that of other arguments or files, and results that these leave as they
    were are not made again. The function must be new: what it remembers of its work changes its
    name.
    """
    maker = _digest((version("hf-dialemb"), work))
    for number, shard in enumerate(shards):
        yield f"{number:06d}-{_digest((maker, shard))}", shard


def _digest(value: Any) -> str:
    digest = blake2b(digest_size=16)
    # a copy in memory would be as large as the function
    pickle.dump(value, SimpleNamespace(write=digest.update))
    return digest.hexdigest()


@contextmanager
def parts_beside(output: Path | None) -> Iterator[Path]:
    """Yield the folder of a result's parts, ``<output>.parts``, which no other run has meanwhile.

    The parts go when the result is there; those of a killed run stay for the next one. A result
    that is no file or folder has its parts in a temporary folder.
    """
    if output is None or (output.exists() and not output.is_file() and not output.is_dir()):
        with TemporaryDirectory() as folder:
            yield Path(folder)
        return
    parts = output.with_name(f"{output.name}.parts")
    with locked(parts, "choose another --output"):
        yield parts
        for pattern in (
            "part-*.parquet",
            ".part-*.tmp",
            "request.json",
        ):  # shards before the request that owns them
            for file in parts.glob(pattern):
                file.unlink()
    with suppress(OSError):  # files of others stay
        parts.rmdir()


def in_parts(
    work: Work,
    shards: Iterable[Named],
    parts: Path,
    progress: tqdm[Any],
    *,
    count: Callable[[Any], int] = len,
) -> list[Path]:
    """Make the table of each named shard, unless a killed run did, and keep it in a file.

    Return the files in order.

    The tables have metadata. Two shards of one name must have one result. The bar counts items,
    ``count`` of a shard.
    """
    from pyarrow.parquet import write_table

    files = []
    for name, shard in shards:
        file = parts / f"part-{name}.parquet"
        if not metadata_of(file):
            write_atomically(file, partial(write_table, work(shard)))
        progress.update(count(shard))
        files.append(file)
    return files


def metadata_of(file: Path | BinaryIO) -> dict[bytes, bytes]:
    """Read the metadata of a Parquet file.

    Return nothing for a file that is absent or not Parquet to its end.
    """
    import pyarrow
    from pyarrow.parquet import read_schema

    try:
        return dict(read_schema(file).metadata or {})
    except (OSError, pyarrow.ArrowException):
        return {}
