"""A server that speaks OpenAI's protocol: its address, its key, what its refusals mean, and its vectors of texts.

The ``openai`` package reads the key from OPENAI_API_KEY and the address from OPENAI_BASE_URL, and repeats requests that
a server was too busy for. Neither the key nor an answer that may quote it gets into a message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

URL, KEY = "OPENAI_BASE_URL", "OPENAI_API_KEY"
_OPENAI = "https://api.openai.com/v1"  # where the package turns to without an address


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
    try:
        url = endpoint_url()
        parts = urlsplit(url)
        right = (
            parts.scheme in ("http", "https") and re.fullmatch(r"[\w.:-]+", parts.hostname or "") and parts.port != 0
        )
    except ValueError:
        url, right = "a text that is none", False
    if not right:
        raise InputError(f"model '{spec}': {URL}: got '{url}', expected a URL such as http://127.0.0.1:8080/v1; set it")


@contextmanager
def answered(spec: str, wanted: str) -> Iterator[None]:
    """Tells every failure to get and to understand an answer; ``wanted`` is such as ``"embeddings"``."""
    import openai

    from .endpoint_client import refusal

    reason = f"got an answer that is no JSON, expected OpenAI's form of {wanted}; check {URL}"
    try:
        yield
        return
    except openai.OpenAIError as error:
        reason = refusal(error, wanted, URL, KEY)
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        pass  # whatever a server sends
    # The original may hold the request with its key.
    raise InputError(f"model '{spec}': {endpoint_url()}: {reason}") from None


class Endpoint:
    """Embeds texts by a model of the endpoint, so many at once."""

    def __init__(self, model: str, batch_size: int) -> None:
        self.model = model
        self.batch_size = batch_size

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds N texts, at least one, as ``(N, D)`` float32; the endpoint decides how long they may be."""
        from .endpoint_client import open_client

        parts: list[NDArray[np.float32]] = []
        with open_client() as client:
            for start in range(0, len(texts), self.batch_size):
                batch = list(texts[start : start + self.batch_size])
                with answered(f"api:{self.model}", "embeddings"):
                    # Not every server knows base64, which the package would ask for by itself.
                    answer = client.embeddings.create(model=self.model, input=batch, encoding_format="float")
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
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            vectors = np.zeros(0, dtype=np.float32)
        if vectors.ndim != 2 or not vectors.size or not np.isfinite(vectors).all():
            raise self._error(f"got no vectors in the answer, expected OpenAI's form of embeddings; check {URL}")
        return vectors

    def _error(self, reason: str) -> InputError:
        return InputError(f"model 'api:{self.model}': {endpoint_url()}: {reason}")
