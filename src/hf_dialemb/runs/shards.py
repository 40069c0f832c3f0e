"""Shards through a function: here, one after another, or on a cluster, where actors of Ray Data hold what is expensive.

There are as many actors as the cluster has room for. What a lost worker or machine had in hand is done again by others.
Results may be kept in files, one of each shard, so that a killed run goes on with the shards that have none.
"""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import blake2b
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from ..errors import InputError
from .files import locked, write_atomically

if TYPE_CHECKING:
    from tqdm import tqdm

LOCAL, RAY = "local", "ray"
ENGINES = (LOCAL, RAY)  # where the shards go: through this process, or through those of a cluster of Ray

Item = TypeVar("Item")
Work = Callable[[Any], Any]
Named = tuple[Any, Any]


class _Actor:
    def __init__(self, work: Any) -> None:  # noqa: ANN401 - a reference of Ray's to it
        import ray

        self.work: Work = ray.get(work)

    def __call__(self, row: dict[str, bytes]) -> dict[str, bytes]:
        name, shard = pickle.loads(row["named"])
        try:
            result = self.work(shard)
        except InputError as error:
            result = error
        return {"named": pickle.dumps((name, result))}


def check_engine(engine: str) -> None:
    """Makes sure that Ray is installed, and that the cluster answers: Ray itself would wait for minutes."""
    if engine != RAY:
        return
    if find_spec("ray") is None:
        raise InputError('--engine ray: the package ray is missing; pip install "hf-dialemb[ray]"')
    address = os.environ.get("RAY_ADDRESS", "auto")
    if address not in ("auto", "local"):
        host, _, port = address.removeprefix("ray://").rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except (OSError, ValueError, OverflowError) as error:
            raise InputError(
                f"RAY_ADDRESS: got {address}, where no cluster answers ({error}); start one there, or correct it"
            ) from None


def in_shards(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Cuts a stream into lists of so many items; the last one may be shorter."""
    stream = iter(items)
    while shard := list(islice(stream, size)):
        yield shard


def named_by_content(work: Work, shards: Iterable[Any]) -> Iterator[Named]:
    """Names shards by their places and by what decides a result: the function, what it is given, and the version.

    So no result is taken for that of other arguments or files, and what these leave as it was is not made again. The
    function must be new: what it remembers of its work gives it another name.
    """
    maker = _digest((version("hf-dialemb"), work))
    for number, shard in enumerate(shards):
        yield f"{number:06d}-{_digest((maker, shard))}", shard


def _digest(what: Any) -> str:  # noqa: ANN401 - whatever can be pickled
    digest = blake2b(digest_size=16)
    pickle.dump(what, SimpleNamespace(write=digest.update))  # a copy in memory would be as large as the function
    return digest.hexdigest()


@contextmanager
def parts_beside(output: Path | None) -> Iterator[Path]:
    """Gives the folder of a result's parts, ``<output>.parts``, which no other run has meanwhile.

    They go when the result is there; those of a killed run stay for the next one. A result that is no file or folder
    has its parts in a temporary one.
    """
    if output is None or (output.exists() and not output.is_file() and not output.is_dir()):
        with TemporaryDirectory() as folder:
            yield Path(folder)
        return
    parts = output.with_name(f"{output.name}.parts")
    with locked(parts, "choose another --output"):
        yield parts
        for pattern in ("part-*.parquet", ".part-*.tmp", "request.json"):  # shards before what says whose they are
            for file in parts.glob(pattern):
                file.unlink()
    with suppress(OSError):  # what others put there stays
        parts.rmdir()


def in_parts(
    work: Work,
    shards: Iterable[Named],
    parts: Path,
    engine: str,
    progress: tqdm[Any],
    *,
    count: Callable[[Any], int] = len,
    gpu: bool = False,
) -> list[Path]:
    """Gives named shards to a function that makes tables, unless a killed run did, and keeps each in a file.

    The tables have metadata, and no shard with another result may have had the same name here. The bar counts items,
    those that were there, too; ``count`` says how many a shard has. Returns the files, in the order of the shards.
    """
    from pyarrow.parquet import write_table

    counts: dict[Path, int] = {}

    def missing() -> Iterator[Named]:
        for name, shard in shards:
            file = parts / f"part-{name}.parquet"
            counts[file] = count(shard)
            if metadata_of(file):
                progress.update(counts[file])
            else:
                yield file, shard

    for file, table in through(work, missing(), engine, gpu=gpu):
        write_atomically(file, partial(write_table, table))
        progress.update(counts[file])
    return list(counts)


def metadata_of(file: Path | BinaryIO) -> dict[bytes, bytes]:
    """Reads what a Parquet file says of itself; nothing where there is no file, or none that is Parquet to its end."""
    import pyarrow
    from pyarrow.parquet import read_schema

    try:
        return dict(read_schema(file).metadata or {})
    except (OSError, pyarrow.ArrowException):
        return {}


def through(work: Work, shards: Iterable[Named], engine: str, *, gpu: bool = False) -> Iterator[Named]:
    """Gives named shards to a function, and yields each name with what the function returns.

    The cluster is the one that ``RAY_ADDRESS`` names, or else one on this machine. There all shards are read before the
    first result comes: they wait in Ray's store, which goes to disk where it is full. Results come as they are ready.
    A cluster gets function and shards pickled; with ``gpu`` each actor takes one, where it has some. An InputError of
    the function is raised here.
    """
    if engine == RAY:
        return _on_cluster(work, shards, gpu)
    return ((name, work(shard)) for name, shard in shards)


def _on_cluster(work: Work, shards: Iterable[Named], gpu: bool) -> Iterator[Named]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import pyarrow
    import ray
    import ray.data

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = False
    started = not ray.is_initialized()
    if started:
        ray.init(log_to_driver=False)
    try:
        blocks = [ray.put(pyarrow.table({"named": [pickle.dumps(each)]})) for each in shards]
        if blocks:
            gpus = min(1, ray.cluster_resources().get("GPU", 0)) if gpu else 0
            dataset = ray.data.from_arrow_refs(blocks).map(
                _Actor, fn_constructor_args=[ray.put(work)], compute=ray.data.ActorPoolStrategy(), num_gpus=gpus
            )
            for row in dataset.iter_rows():
                name, result = pickle.loads(row["named"])
                if isinstance(result, InputError):
                    raise result
                yield name, result
    finally:
        if started:
            ray.shutdown()
