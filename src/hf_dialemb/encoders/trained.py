"""Trained encoders, which are found on one machine and may be loaded on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..models.errors import InputError
from .baselines import BASELINES
from .encoder import EncoderSpec
from .loading import VectorEncoder, load_encoder
from .specs import find_encoder, fingerprint


@dataclass
class TrainedEncoder:
    """An encoder by its spec and the fingerprint of its weights, which are loaded where it is first needed."""

    name: str
    weights: str

    @cached_property
    def loaded(self) -> VectorEncoder:
        """The encoder; an InputError says that its weights are others here."""
        if (got := fingerprint(self.name)) != self.weights:
            raise InputError(f"model '{self.name}': got weights {got}, expected {self.weights}; put them there")
        return load_encoder(self.name)

    def encode_utterances(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds N utterances, (N, D)."""
        return self.loaded.encode_utterances(texts)


def trained_encoder(model: str) -> EncoderSpec:
    """Looks up an encoder; refuses one that is fitted on what it embeds."""
    found = find_encoder(model)
    if found.kind in BASELINES or found.whitened:
        raise InputError(
            f"--model {model}: got one that is fitted on the dialogues that it embeds, expected a trained encoder; "
            "name a checkpoint or a Hub id"
        )
    return found
