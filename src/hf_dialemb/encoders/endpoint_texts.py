"""Text embeddings from a server that speaks OpenAI's protocol, through the ``openai`` package.

See `hf_dialemb.encoders.endpoint` for its address and key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models.errors import InputError
from .endpoint import URL, endpoint_url, no_json, refusal

_WANTED = "embeddings"


class Endpoint:
    """Embeds texts by a model of the endpoint."""

    def __init__(self, model: str, batch_size: int) -> None:
        """Asks for nothing yet.

        Args:
            model: What the endpoint calls the model.
            batch_size: How many texts are sent at once.
        """
        self.model = model
        self.batch_size = batch_size

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds texts.

        Args:
            texts: N of them, at least one; the endpoint decides how long they may be.

        Returns:
            Vectors, ``(N, D)`` float32.

        Raises:
            InputError: The endpoint cannot be reached, refuses the key or the texts, or its answer is malformed.
        """
        import openai

        parts: list[NDArray[np.float32]] = []
        with openai.OpenAI() as client:
            for start in range(0, len(texts), self.batch_size):
                batch = list(texts[start : start + self.batch_size])
                try:
                    # Not every server knows base64, which the package would ask for by itself.
                    answer = client.embeddings.create(model=self.model, input=batch, encoding_format="float")
                except openai.APIError as error:
                    raise self._error(
                        refusal(error, _WANTED)
                    ) from None  # the original may hold the request with its key
                except ValueError:
                    raise self._error(no_json(_WANTED)) from None
                parts.append(self._vectors(answer, len(batch)))
                if parts[-1].shape[1] != parts[0].shape[1]:
                    raise self._error("got vectors of different lengths, expected one length; choose another model")
        return np.concatenate(parts)

    def _vectors(self, answer: Any, count: int) -> NDArray[np.float32]:  # noqa: ANN401 - whatever a server sends
        try:
            found = {item.index: item.embedding for item in answer.data}
            if len(answer.data) != count:
                raise self._error(f"got {len(answer.data)} vectors for {count} texts, expected one each; check {URL}")
            vectors = np.array([found[place] for place in range(count)], dtype=np.float32)
        except InputError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError):
            vectors = np.zeros(0, dtype=np.float32)
        if vectors.ndim != 2 or not vectors.size or not np.isfinite(vectors).all():
            raise self._error(f"got no vectors in the answer, expected OpenAI's form of embeddings; check {URL}")
        return vectors

    def _error(self, reason: str) -> InputError:
        return InputError(f"model 'api:{self.model}': {endpoint_url()}: {reason}")
