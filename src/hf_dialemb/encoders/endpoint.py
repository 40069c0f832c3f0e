"""A server that speaks OpenAI's protocol: its address, its key, and what its refusals mean.

The ``openai`` package reads the key from OPENAI_API_KEY and the address from OPENAI_BASE_URL, and repeats requests that
a server was too busy for. Neither the key nor an answer that may quote it gets into a message.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..models.errors import InputError

if TYPE_CHECKING:
    import openai

URL, KEY = "OPENAI_BASE_URL", "OPENAI_API_KEY"
_OPENAI = "https://api.openai.com/v1"  # where the package turns to without an address
_LONGEST_REASON = 200


def endpoint_url() -> str:
    """Returns the address that the server is asked at, without a user's name or password in it."""
    parts = urlsplit(os.environ.get(URL, "").strip() or _OPENAI)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl().rstrip("/")


def check_endpoint(spec: str) -> None:
    """Makes sure that there are the package, a key and an address; asks no server.

    Args:
        spec: What the errors shall call the model.

    Raises:
        InputError: One is missing, or cannot be right.
    """
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
    """Says in half a sentence that an answer was not in the protocol.

    Args:
        wanted: What was asked for, such as ``"embeddings"``.
    """
    return f"got an answer that is no JSON, expected OpenAI's form of {wanted}; check {URL}"


def refusal(error: openai.APIError, wanted: str) -> str:
    """Says in half a sentence what went wrong and what to do.

    Args:
        error: What the ``openai`` package raised.
        wanted: What was asked for, such as ``"embeddings"``.

    Returns:
        The reason, without the key.
    """
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
