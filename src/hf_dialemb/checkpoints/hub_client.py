"""The Hub's client with bounds: whatever a server does, it ends, and what the server says holds no login."""

from __future__ import annotations

import base64
import errno
import time
from collections.abc import Callable, Iterator
from threading import Timer
from typing import Any

SILENCE = 10.0  # seconds that a server may be silent, where the Hub's client has no bound of its own
_MOST = 2**26  # bytes of an answer that is packed, or does not say how long it is; files do
_ENDLESS = "the Hub's answer is too long, or comes to no end"
_PACKED = "gzip"  # which has bounds: a byte comes to a thousand at most
_SLOWEST = 500  # bytes a second
_READ = ("GET", "HEAD")  # what is sent may take its time
_PAUSE = 60.0  # seconds for which a lost server is not asked again
_PART = 8  # so many letters of a key in a row are never told
_lost = [-_PAUSE]  # when a server was


def bounded_client(silence: float | None = None) -> Any:  # noqa: ANN401 - of whichever HTTP library is there
    """Makes what the Hub's client asks by."""
    from huggingface_hub.utils._http import default_client_factory

    def wait(request: Any) -> None:  # noqa: ANN401 - many requests ask for no bound by themselves
        if request.headers.get("Accept-Encoding") != "identity":
            request.headers["Accept-Encoding"] = _PACKED
        bounds = request.extensions.get("timeout", {})
        if silence or request.method in _READ:
            longest = {"connect": SILENCE}  # whatever is sent afterwards
            request.extensions["timeout"] = {
                name: bound or longest.get(name, silence or SILENCE) for name, bound in bounds.items()
            }

    client = default_client_factory()
    client.event_hooks = {"request": [*client.event_hooks["request"], wait], "response": [_bound]}
    if silence is None:  # who publishes tries again by himself
        client.send = _once(client.send)  # type: ignore[method-assign, unused-ignore]
    return client


def _once(send: Callable[..., Any]) -> Callable[..., Any]:
    """Lets a server fall silent, or come to no answer, once in a while; the Hub's client would ask again and again."""
    from huggingface_hub import close_session, constants

    def stop() -> None:
        _lost.append(time.monotonic())
        close_session()  # the connection breaks off at the next byte

    def ask(request: Any, **options: Any) -> Any:  # noqa: ANN401
        if request.method not in _READ:
            return send(request, **options)
        timer, started = Timer(3 * SILENCE, stop), time.monotonic()
        timer.daemon = True
        timer.start()
        try:
            if started - _lost[-1] > _PAUSE:
                return send(request, **options)
        except Exception as error:
            if _lost[-1] < started and all(kind.__name__ != "TimeoutException" for kind in type(error).__mro__):
                raise
            _lost.append(time.monotonic())
        finally:
            timer.cancel()
        raise ConnectionError(errno.EIO, "the Hub gives no answer; try again later", constants.ENDPOINT)

    return ask


def bound_hub_client() -> None:
    """Lets the Hub's client ask by `bounded_client`, unless somebody has given it another way."""
    from huggingface_hub.utils import _http

    if _http._GLOBAL_CLIENT_FACTORY is _http.default_client_factory:
        _http.set_client_factory(bounded_client)


def _bound(response: Any) -> None:  # noqa: ANN401
    """Bounds an answer's length and slowness; takes the login out of what failed."""
    from huggingface_hub import get_token

    inner, said = response.stream, response.headers.get("Content-Length")

    class Bounded(type(inner).__mro__[1]):  # type: ignore[misc]  # the library's streams, by whichever name
        def __iter__(self) -> Iterator[bytes]:
            started, size = time.monotonic(), 0
            for part in inner:
                size += len(part)
                passed = time.monotonic() - started
                if (said is None and size > _MOST) or (passed > SILENCE and size < _SLOWEST * passed):
                    raise ConnectionError(errno.EIO, _ENDLESS)
                yield part

        def close(self) -> None:
            inner.close()

    response.stream = Bounded()
    if packed := response.headers.get("Content-Encoding", "identity").lower().replace("identity", ""):
        if packed != _PACKED:
            raise ConnectionError(errno.EIO, f"the Hub's answer is packed by {packed!r}, expected {_PACKED}")
        _bound_decoded(response)
    if response.status_code >= 400 and (token := get_token()):
        response._content = masked(response.read().decode(errors="replace"), token).encode()
        for name, value in response.headers.multi_items():
            response.headers[name] = masked(value, token)


def _bound_decoded(response: Any) -> None:  # noqa: ANN401
    """Bounds what a packed answer comes to."""
    decoded = response.iter_bytes

    def bounded(chunk_size: int | None = None) -> Iterator[bytes]:
        size = 0
        for part in decoded(chunk_size):
            size += len(part)
            if size > _MOST:
                raise ConnectionError(errno.EIO, _ENDLESS)
            yield part

    response.iter_bytes = bounded


def masked(text: str, key: str) -> str:
    """Takes a key out of a text: whole, in part, reversed or in base64."""
    forms = [key, key[::-1]]
    for before in range(3):  # base64 has three ways to write the same bytes
        coded = base64.b64encode(b"\0" * before + key.encode()).decode()
        forms += [coded[2 * before : -4], coded[2 * before : -4].translate(str.maketrans("+/", "-_"))]
    hidden, low = [False] * len(text), text.lower()
    for form in filter(None, forms):
        size = min(_PART, len(form))
        for start in range(len(form) - size + 1):
            place = low.find(part := form[start : start + size].lower())
            while place >= 0:
                hidden[place : place + size] = [True] * size
                place = low.find(part, place + 1)
    shown = [
        letter if not hidden[place] else "" if place and hidden[place - 1] else "***"
        for place, letter in enumerate(text)
    ]
    return "".join(shown)
