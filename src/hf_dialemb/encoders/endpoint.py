"""A server that speaks OpenAI's protocol: its address, its key, what its refusals mean, and its vectors of texts.

The ``openai`` package reads the key from OPENAI_API_KEY and the address from OPENAI_BASE_URL, and repeats requests that
a server was too busy for. Neither the key nor an answer that may quote it gets into a message.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from ..models.errors import InputError

if TYPE_CHECKING:
    import openai

URL, KEY = "OPENAI_BASE_URL", "OPENAI_API_KEY"
_OPENAI = "https://api.openai.com/v1"  # where the package turns to without an address
_LONGEST_REASON = 200
_WANTED = "embeddings"


def endpoint_url() -> str:
    """Returns the address that the server is asked at, without a user's name or password in it."""
    parts = urlsplit(os.environ.get(URL, "").strip() or _OPENAI)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl().rstrip("/")


def check_endpoint(spec: str) -> None:
    """Refuses a spec where the package, a key or an address is missing or cannot be right; asks no server."""
    if find_spec("openai") is None:
        raise InputError(f"model '{spec}': the package openai is missing; pip install \"hf-dialemb[api]\"")
    key = os.environ.get(KEY, "")
    if not key:
        raise InputError(
            f"model '{spec}': {KEY} is not set, expected the endpoint's key; set it (to any word where none is needed)"
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise InputError(f"model '{spec}': {KEY} holds blanks or letters that no key has; set it to the key alone")
    url = endpoint_url()
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
        raise InputError(f"model '{spec}': {URL}: got '{url}', expected a URL such as http://127.0.0.1:8080/v1; set it")


def no_json(wanted: str) -> str:
    """Says in half a sentence that an answer was not in the protocol; ``wanted`` is such as ``"embeddings"``."""
    return f"got an answer that is no JSON, expected OpenAI's form of {wanted}; check {URL}"


def refusal(error: openai.APIError, wanted: str) -> str:
    """Says in half a sentence, without the key, what went wrong and what to do."""
    import openai

    if isinstance(error, openai.APIConnectionError):
        return f"got no answer, expected a server of {wanted}; check {URL} and the network"
    if not isinstance(error, openai.APIStatusError):
        return no_json(wanted)
    status = error.status_code
    if status in (401, 403):
        return f"the key was refused (status {status}); set {KEY} to one that is valid there"
    said = " ".join(str(error.message).split()).replace(os.environ.get(KEY) or "\0", "***")[:_LONGEST_REASON]
    if status == 429:
        return f"the server stayed too busy or the quota is used up (status 429: {said}); try again later"
    return f"got status {status} ({said}); check the model's name and the length of the texts"


class Endpoint:
    """Embeds texts by a model of the endpoint, so many at once."""

    def __init__(self, model: str, batch_size: int) -> None:
        self.model = model
        self.batch_size = batch_size

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds N texts, at least one, as ``(N, D)`` float32; the endpoint decides how long they may be."""
        import openai

        parts: list[NDArray[np.float32]] = []
        with openai.OpenAI() as client:
            for start in range(0, len(texts), self.batch_size):
                batch = list(texts[start : start + self.batch_size])
                try:
                    # Not every server knows base64, which the package would ask for by itself.
                    answer = client.embeddings.create(model=self.model, input=batch, encoding_format="float")
                except openai.APIError as error:
                    # The original may hold the request with its key.
                    raise self._error(refusal(error, _WANTED)) from None
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
