"""Answers of a server that speaks OpenAI's protocol, by the ``openai`` package.

The package reads the key from OPENAI_API_KEY and the address from OPENAI_BASE_URL, and tries again
if the server is busy. No message shows the key.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from ...errors import InputError
from ...storage.addresses import without_login

URL, KEY = "OPENAI_BASE_URL", "OPENAI_API_KEY"
_TIMEOUT = 60.0  # seconds for the server to answer


def _address() -> str:
    # the package's own default
    return os.environ.get(URL, "").strip() or "https://api.openai.com/v1"


def endpoint_url() -> str:
    """Return the server's address without the user name and password that it may hold."""
    return urlsplit(without_login(_address()))._replace(query="").geturl().rstrip("/")


def check_endpoint(spec: str) -> None:
    """Raise InputError if the package or the key is missing, or the key or the address malformed.

    Contact no server.
    """
    key, url = os.environ.get(KEY, ""), _address()
    try:
        parts = urlsplit(url)
        right = (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and " " not in url
            and parts.port != 0
        )
        right = right and "@" not in parts.path  # the end of a password that holds a slash
    except ValueError:
        right = False
    if find_spec("openai") is None:
        problem = 'the package openai is missing; pip install "hf-dialemb[api]"'
    elif not key:
        problem = (
            f"{KEY} is not set, expected the endpoint's key; set it (to any word if the "
            "server needs none)"
        )
    elif not (key.isascii() and key.isprintable()) or " " in key:
        problem = f"{KEY} holds spaces or characters that no key has; set it to the key alone"
    elif not right:
        problem = (
            f"{URL}: got something that is not a URL, expected one such as "
            "http://127.0.0.1:8080/v1; correct it"
        )
    else:
        return
    raise InputError(f"model '{spec}': {problem}")


def open_client() -> Any:
    """Make a client of the endpoint that the environment names."""
    import openai

    return openai.OpenAI(timeout=_TIMEOUT)


@contextmanager
def answered(spec: str, wanted: str) -> Iterator[None]:
    """Raise InputError for any failure to get or understand an answer.

    ``wanted`` names it, as in ``"embeddings"``.
    """
    import openai

    reason = f"got an answer of another form, expected OpenAI's form for {wanted}; check {URL}"
    try:
        yield
        return
    except openai.APITimeoutError:
        reason = (
            f"got no answer within {_TIMEOUT:g} seconds, expected a server that gives "
            f"{wanted}; check {URL}"
        )
    except openai.APIConnectionError:
        reason = (
            f"got no answer, expected a server that gives {wanted}; check {URL} and the network"
        )
    except openai.APIStatusError as error:
        reason = _refusal(error.status_code, str(error.message))
    except InputError:
        raise
    except (
        openai.OpenAIError,
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ):
        pass  # the answer can hold anything
    # `from None`, since the original error may hold the request, and so the key.
    raise InputError(f"model '{spec}': {endpoint_url()}: {reason}") from None


def _refusal(status: int, message: str) -> str:
    if status in (401, 403):
        return f"the key was refused (status {status}); set {KEY} to one that is valid there"
    message = " ".join(
        "".join(letter for letter in message if letter.isprintable() or letter.isspace()).split()
    )
    message = message.replace(os.environ[KEY], "***")[:200]
    if status == 429:
        return (
            f"the server stayed too busy or the quota is used up (status 429: {message}); try "
            "again later"
        )
    return f"got status {status} ({message}); check the model's name and the length of the texts"
