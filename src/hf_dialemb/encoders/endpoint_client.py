"""Requests to an endpoint that end, whatever its server does, and what its failed answers say, without the key."""

from __future__ import annotations

import os
from threading import Timer
from typing import Any

import openai

from ..checkpoints.hub_client import masked

SILENCE, IN_ALL = 25.0, 60.0  # seconds that a server may be silent, and that an answer may take
LARGEST = 32_000_000  # bytes of an answer
_LONGEST_REASON = 200


class GivenUpError(openai.OpenAIError):  # type: ignore[misc, unused-ignore]  # of an extra that may be absent
    """Says in half a sentence why an answer is not waited for any longer; the package does not ask again then."""


class BoundedClient(openai.DefaultHttpxClient):  # type: ignore[misc, unused-ignore]
    """Gives whole answers, or none: it waits and reads no longer than it may."""

    late = False

    def send(self, request: Any, **options: Any) -> Any:  # noqa: ANN401 - of the package's own HTTP library
        """Sends a request; a redirection is an answer like others."""
        timer = Timer(IN_ALL, self._stop)
        timer.daemon = True
        timer.start()
        body = bytearray()
        try:
            response = super().send(request, **{**options, "stream": True, "follow_redirects": False})
            for part in response.iter_bytes(1 << 16):
                body += part
                if len(body) > LARGEST:
                    response.close()
                    raise GivenUpError(f"got an answer of more than {LARGEST:,} bytes")
        except Exception as error:
            if self.late:
                raise GivenUpError(f"got no whole answer within {IN_ALL:g} seconds") from None
            if any(kind.__name__ == "TimeoutException" for kind in type(error).__mro__):
                raise GivenUpError(f"got no answer for {SILENCE:g} seconds") from None
            raise
        finally:
            timer.cancel()
        packed = {"content-encoding", "content-length", "transfer-encoding"}
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in packed]
        return type(response)(response.status_code, headers=headers, content=bytes(body), request=request)

    def _stop(self) -> None:
        self.late = True
        self.close()  # the connection breaks off at the next byte


def open_client() -> openai.OpenAI:
    """Makes a client of the endpoint that the environment names."""
    return openai.OpenAI(http_client=BoundedClient(timeout=SILENCE))


def readable(text: str, key: str) -> str:
    """Makes of what a server said a line of what prints, without the key: whole, in part, reversed or in base64."""
    line = " ".join("".join(letter for letter in text[:4_000] if letter.isprintable() or letter.isspace()).split())
    return masked(line, key)[:_LONGEST_REASON]


def refusal(error: openai.OpenAIError, wanted: str, url: str, key: str) -> str:
    """Says in half a sentence, without the key, what went wrong and what to do, by the variables of ``url`` and key."""
    if isinstance(error, GivenUpError | openai.APIConnectionError):
        got = str(error) if isinstance(error, GivenUpError) else "got no answer"
        return f"{got}, expected a server of {wanted}; check {url} and the network"
    if not isinstance(error, openai.APIStatusError):
        return f"got an answer that is no JSON, expected OpenAI's form of {wanted}; check {url}"
    status = error.status_code
    if status in (401, 403):
        return f"the key was refused (status {status}); set {key} to one that is valid there"
    said = readable(str(error.message), os.environ.get(key, ""))
    if status == 429:
        return f"the server stayed too busy or the quota is used up (status 429: {said}); try again later"
    return f"got status {status} ({said}); check the model's name and the length of the texts"
