"""Embedding on a cluster: Ray Data gives shards of dialogues to actors that hold the model.

There are as many as the cluster has room for. What a lost worker or machine had in hand is done again by others.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from ..models.dialogue import Dialogue
from ..models.errors import InputError

Encode = Callable[[list[Dialogue]], pa.Table]


class _Actor:
    def __init__(self, encode: Encode) -> None:
        self.encode = encode

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        try:
            table = self.encode([Dialogue.from_json(json.loads(line)) for line in row["dialogues"]])
        except InputError as error:
            return {"name": row["name"], "table": b"", "error": str(error)}
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table)
        return {"name": row["name"], "table": stream.getvalue().to_pybytes(), "error": ""}


def check_ray() -> None:
    """Makes sure that Ray is installed, and that the cluster answers: Ray itself would wait for minutes."""
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


def encode_on_cluster(encode: Encode, shards: Iterable[tuple[str, list[Dialogue]]]) -> Iterator[tuple[str, pa.Table]]:
    """Encodes named shards on the cluster that ``RAY_ADDRESS`` names, or else on this machine, and yields their tables.

    They come in the order in which they are ready. Dialogues wait in Ray's store, which goes to disk where it is full.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    import ray.data

    ray.data.DataContext.get_current().enable_progress_bars = False
    started = not ray.is_initialized()
    if started:
        ray.init(log_to_driver=False)
    try:
        blocks = [ray.put(_block(name, dialogues)) for name, dialogues in shards]
        if blocks:
            gpus = min(1, ray.cluster_resources().get("GPU", 0))
            dataset = ray.data.from_arrow_refs(blocks).map(
                _Actor, fn_constructor_args=[encode], compute=ray.data.ActorPoolStrategy(), num_gpus=gpus
            )
            for row in dataset.iter_rows():
                if row["error"]:
                    raise InputError(row["error"])
                yield row["name"], pa.ipc.open_stream(row["table"]).read_all()
    finally:
        if started:
            ray.shutdown()


def _block(name: str, dialogues: list[Dialogue]) -> pa.Table:
    return pa.table({"name": [name], "dialogues": [[json.dumps(dialogue.to_json()) for dialogue in dialogues]]})
