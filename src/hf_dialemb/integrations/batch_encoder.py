"""Vectors for a column of dialogues, a batch at a time.

For ``map`` of datasets and ``map_batches`` of Ray Data.
"""

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any

import pyarrow as pa

from ..encoders import Encoder, load_encoder
from ..encoders.encoder import Vectors
from ..encoders.specs import trained_encoder
from ..errors import InputError
from .inputs import read_items


class BatchEncoder:
    """Add a column of vectors to a column of dialogues, chat messages or texts.

    Every process loads the weights once, at its first batch. A pickle holds the settings and the
    fingerprint of the weights, by which datasets knows a call again: the same call is read from its
    cache, other weights are not. ``model`` and ``loading`` are those of `load_encoder`. An
    InputError refuses a model that is fitted on its input.
    """

    _encoder: Encoder | None
    _lock: Lock

    def __init__(
        self,
        model: str = "all-MiniLM-L6-v2",
        *,
        column: str = "messages",
        output: str = "embedding",
        **loading: Any,
    ) -> None:
        self.model = model
        self.column = column
        self.output = output
        self.loading = loading
        decisive = {key: loading[key] for key in ("level", "dtype", "revision") if key in loading}
        self.fingerprint = trained_encoder(model, **decisive).fingerprint
        self.__setstate__(self.__getstate__())

    def __call__(self, batch: Mapping[str, Any] | pa.Table) -> dict[str, Any] | pa.Table:
        """Return a batch, of columns or a table of Arrow, with its vectors.

        Refuse it without the column.
        """
        names = batch.column_names if isinstance(batch, pa.Table) else list(batch)
        if self.column not in names:
            raise InputError(
                f"column '{self.column}' is missing (found: {', '.join(names)}); say which one "
                "holds the dialogues"
            )
        if not isinstance(batch, pa.Table):
            return {**batch, self.output: self._encode(batch[self.column])}
        vectors = self._encode(batch[self.column].to_pylist())
        return batch.append_column(
            self.output, pa.FixedSizeListArray.from_arrays(vectors.ravel(), vectors.shape[1])
        )

    def _encode(self, items: Iterable[Any]) -> Vectors:
        dialogues = read_items(items, self.column)
        with self._lock:  # fast tokenizers refuse two threads at once
            if self._encoder is None:
                self._encoder = load_encoder(self.model, **self.loading)
            return self._encoder.encode(dialogues)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._encoder = None
        self._lock = Lock()
