"""Shards through a function: here, one after another, or on a cluster, where actors of Ray Data hold what is expensive.

There are as many actors as the cluster has room for. What a lost worker or machine had in hand is done again by others.
"""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from itertools import islice
from typing import Any, TypeVar

from ..models.errors import InputError

LOCAL, RAY = "local", "ray"
ENGINES = (LOCAL, RAY)
"""Where the shards go: through this process, or through those of a cluster of Ray."""

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


def through(
    work: Work, shards: Iterable[Named], engine: str, *, in_order: bool = True, gpu: bool = False
) -> Iterator[Named]:
    """Gives named shards to a function, and yields each name with what the function returns.

    The cluster is the one that ``RAY_ADDRESS`` names, or else one on this machine. There all shards are read before the
    first result comes: they wait in Ray's store, which goes to disk where it is full.

    Args:
        work: The function; an InputError of it is raised here. A cluster gets it, and the shards, pickled.
        shards: Pairs of a name and what the function takes.
        engine: One of `ENGINES`.
        in_order: Whether the results of a cluster come in the order of the shards, or as they are ready.
        gpu: Whether each actor takes a GPU, where the cluster has some.
    """
    if engine == RAY:
        return _on_cluster(work, shards, in_order, gpu)
    return ((name, work(shard)) for name, shard in shards)


def _on_cluster(work: Work, shards: Iterable[Named], in_order: bool, gpu: bool) -> Iterator[Named]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import pyarrow
    import ray
    import ray.data

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = in_order
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
