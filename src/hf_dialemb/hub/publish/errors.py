"""What can go wrong between here and the Hub, how long to wait for it, and how to tell it in a sentence."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from huggingface_hub import constants, get_token, set_client_factory
from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled
from huggingface_hub.utils import _http

from ...checkpoints.hub_client import bounded_client, masked
from ...errors import InputError

LONGEST_PAUSE = 60  # seconds; whoever asks for a longer pause is told of and not waited for

_ANSWER_WITHIN = 600.0  # seconds until a connection counts as lost; large commits take minutes
_PASSING = (408, 429, 500, 502, 503, 504)
_MEANINGS = {
    400: "refuses what was sent",
    401: "does not accept the login: run 'hf auth login' with a token that may write, or correct HF_TOKEN",
    402: "wants this kind of repository to be paid for: see the settings of its owner",
    403: "does not let this login write here: ask its owner for the right, or take a token that may write",
    404: "knows no such repository or branch: correct --repo-id, --repo-type or --revision",
    409: "has something in the way: run the same command again",
    412: "got another commit while this one was on its way: run the same command again",
    413: "finds a file too large: split it",
    429: "asks for a pause: run the same command again later",
}


class GivenUpError(Exception):
    """What failed has been tried often enough; the cause says how."""


class PauseError(Exception):
    """The Hub asks for a pause of so many seconds, its argument, which is too long to wait for."""


def asked_pause(response: Any) -> int | None:  # noqa: ANN401 - a response of whichever HTTP library the Hub's client has
    """Reads how long a response asks to wait."""
    limit = _http.parse_ratelimit_headers(response.headers) if response.status_code == 429 else None
    if limit is not None and limit.remaining == 0:
        return limit.reset_in_seconds
    after = str(response.headers.get("Retry-After", "")).strip()
    return int(after) if after.isdigit() else None


@contextmanager
def patient_client() -> Iterator[None]:
    """Lets the Hub's client wait longer, but neither for silence nor for pauses without bound."""

    def refuse_long_pauses(response: Any) -> None:  # noqa: ANN401
        seconds = asked_pause(response) if response.status_code in _PASSING else None
        if seconds is not None and seconds > LONGEST_PAUSE:
            raise PauseError(seconds)

    def make() -> Any:  # noqa: ANN401
        client = bounded_client(_ANSWER_WITHIN)
        hooks = client.event_hooks
        client.event_hooks = {**hooks, "response": [refuse_long_pauses, *hooks["response"]]}
        return client

    before = _http._GLOBAL_CLIENT_FACTORY
    set_client_factory(make)
    try:
        yield
    finally:
        set_client_factory(before)


def pause_after(error: Exception, pause: float) -> float | None:
    """Says how long to wait before a request is tried again that the Hub's client does not repeat itself."""
    if _is_lost(error):
        return pause
    response = getattr(error, "response", None)
    if response is None or response.status_code not in _PASSING:
        return None
    asked = asked_pause(response)
    return pause if asked is None else float(asked)


def _is_lost(error: BaseException) -> bool:
    """Whether a connection failed, or its answer was none of the Hub's."""
    library = type(error).__module__.split(".")[0]
    return isinstance(error, json.JSONDecodeError) or (
        library.startswith(("httpx", "httpcore")) and getattr(error, "response", None) is None
    )


@contextmanager
def explained(repo_id: str) -> Iterator[None]:
    """Turns whatever the Hub's client raises into one sentence with a remedy; the login is in none."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise _sentence(_root(error), repo_id) from None


def _root(error: BaseException) -> BaseException:
    while isinstance(error, GivenUpError | RuntimeError | LocalEntryNotFoundError) and error.__cause__ is not None:
        error = error.__cause__
    return error


def _sentence(error: BaseException, repo_id: str) -> Exception:
    if isinstance(error, OfflineModeIsEnabled):
        return InputError("HF_HUB_OFFLINE is set; unset it to publish")
    response = getattr(error, "response", None)
    if response is not None:
        return _answered(response.status_code, str(getattr(error, "server_message", None) or ""), repo_id)
    said = _without_login(str(error))
    if isinstance(error, PauseError):
        sentence = f"the Hub asks for a pause of {error.args[0]} seconds: run the same command again then"
    elif _is_lost(error):
        sentence = (
            f"the Hub at {constants.ENDPOINT} cannot be reached or broke off ({said or type(error).__name__}): check "
            "the network and run the same command again; what was there before stays as it was"
        )
    elif isinstance(error, ValueError):
        return InputError(f"{repo_id}: {said}; correct it and run the same command again")
    else:
        sentence = f"{type(error).__name__}: {said}: run the same command again"
    return ConnectionError(errno.EIO, sentence, repo_id)


def _answered(status: int, message: str, repo_id: str) -> Exception:
    said = f"; it says: {_without_login(message)}" if message else ""
    if status >= 500:
        sentence = f"the Hub fails (HTTP {status}): run the same command again later{said}"
    else:
        sentence = f"the Hub {_MEANINGS.get(status, 'refuses the request')} (HTTP {status}){said}"
    passing = status >= 500 or status in _PASSING
    return ConnectionError(errno.EIO, sentence, repo_id) if passing else InputError(f"{repo_id}: {sentence}")


def _without_login(text: str) -> str:
    token = get_token()
    text = " ".join(text.split())
    return masked(text, token) if token else text
