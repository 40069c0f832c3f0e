"""A transformer of scikit-learn that turns dialogues into vectors."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..dialogue import Dialogue
from ..encoders import load_encoder
from ..encoders.specs import trained_encoder
from ..errors import InputError
from .inputs import read_items


class DialogueVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn dialogues into vectors by a trained encoder; fitting loads it and learns nothing.

    A search over settings of later steps encodes everything anew for each, unless the pipeline has
    a ``memory``.

    The settings are those of `hf_dialemb.load_encoder`. Once fitted, ``encoder_`` is the encoder
    and ``dimension_`` is D.
    """

    def __init__(
        self,
        model: str = "all-MiniLM-L6-v2",
        level: str = "dialogue",
        batch_size: int = 32,
        device: str | None = None,
    ) -> None:
        self.model = model
        self.level = level
        self.batch_size = batch_size
        self.device = device

    def fit(self, X: Iterable[Any], y: object = None) -> Self:  # noqa: N803
        """Load the encoder.

        X holds texts, lists of chat messages, objects with ``messages`` or `Dialogue` objects.

        An InputError says that a dialogue is malformed, or the model is unknown or fitted on its
        input.
        """
        first = _column(X)[:1]
        trained_encoder(self.model)
        self.encoder_ = load_encoder(
            self.model, level=self.level, batch_size=self.batch_size, device=self.device
        )
        self.dimension_ = int(self.encoder_.encode(first).shape[1])
        return self

    def transform(self, X: Iterable[Any]) -> NDArray[np.float32]:  # noqa: N803
        """Return the vectors of N dialogues, ``(N, D)`` float32.

        Raise a NotFittedError before `fit`.
        """
        check_is_fitted(self, "dimension_")
        return self.encoder_.encode(_column(X))

    @property
    def _n_features_out(self) -> int:  # the number of names of features
        return self.dimension_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


def _column(X: Iterable[Any]) -> list[Dialogue]:  # noqa: N803
    if getattr(X, "ndim", 1) != 1:
        raise InputError(
            "X: got a table, expected one column of dialogues; in a ColumnTransformer name the "
            "column, not a list of it"
        )
    return read_items(X)
