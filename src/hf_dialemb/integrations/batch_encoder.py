"""Vectors for a column of dialogues, a batch at a time: for ``map`` of datasets and ``map_batches`` of Ray Data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ..encoders.specs import fingerprint
from ..errors import InputError
from .inputs import TrainedEncoder


class BatchEncoder:
    """A function of batches that adds to a column of dialogues, chat messages or texts, one of vectors.

    Every process loads the weights once, at its first batch. What is sent to processes, and what datasets tells calls
    apart by, are the settings and a digest of the weights: the same call is read from the cache, and a model that was
    trained on is not. ``model`` has the forms of `hf_dialemb.evaluation.load_encoder`, ``device`` is by default a GPU
    where there is one. An InputError refuses a model that is not found, or is fitted on what it encodes.
    """

    def __init__(
        self,
        model: str = "all-MiniLM-L6-v2",
        *,
        column: str = "messages",
        output: str = "embedding",
        batch_size: int = 32,
        device: str | None = None,
    ) -> None:
        self.encoder = TrainedEncoder(model, batch_size, device)
        self.column = column
        self.output = output
        self.fingerprint = fingerprint(model)

    def __call__(self, batch: Mapping[str, Any] | pa.Table) -> dict[str, Any] | pa.Table:
        """Returns a batch, columns or a table of Arrow, which keeps chat messages as they are, with its vectors.

        An InputError says that the column is missing, or the place in the batch of a malformed dialogue.
        """
        found = batch.column_names if isinstance(batch, pa.Table) else list(batch)
        if self.column not in found:
            raise InputError(
                f"column '{self.column}' is missing (found: {', '.join(found)}); say which one holds the dialogues"
            )
        if not isinstance(batch, pa.Table):
            return {**batch, self.output: self.encoder.encode(batch[self.column], self.column)}
        vectors = self.encoder.encode(batch[self.column].to_pylist(), self.column)
        return batch.append_column(self.output, pa.FixedSizeListArray.from_arrays(vectors.ravel(), vectors.shape[1]))
