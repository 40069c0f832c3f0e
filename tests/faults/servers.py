"""A Hub and an endpoint on loopback that answer rightly so many times, and then as no server should."""

import base64
import gzip
import os
import random
import shutil
import threading
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import hub_server
from endpoint_server import embeddings, says
from healthy import COMMANDS, LONG

PASSWORD = "aSecretWordInTheAddress"
MODELS = {"bert", "dse", "sentence", "bert@utterances", "published/dse", "rankers/baseline", "dse=0.5"}
EMBEDDED = {"evaluate", "embed", "search: query", "flow", "topics"}
NAMED = {"flow", "topics"}
LATE = 1.0  # seconds that stand for all patience in the child
JSON, LENGTH = b"Content-Type: application/json\r\n", b"Content-Length: %d\r\n\r\n%s"


def _whole(body: bytes, headers: bytes = JSON, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\n%s" % (status, headers) + LENGTH % (len(body), body)


ANSWERS = {
    "closed": b"",
    "not HTTP": b"\0\xff\n" * 99,
    "redirect to itself": b"HTTP/1.1 302 Found\r\nLocation: PATH\r\nContent-Length: 0\r\n\r\n",
    "redirect on": b"HTTP/1.1 307 On\r\nLocation: PATHx\r\nContent-Length: 0\r\n\r\n",
    "redirect to nowhere": b"HTTP/1.1 308 On\r\nLocation: http://127.0.0.1:1/x\r\nContent-Length: 0\r\n\r\n",
    "redirect to none": b"HTTP/1.1 301 On\r\nLocation: http://[\xe9:x\r\nContent-Length: 0\r\n\r\n",
    "too short": b"HTTP/1.1 200 OK\r\n%sContent-Length: 999\r\n\r\n{}" % JSON,
    "too long": b'HTTP/1.1 200 OK\r\n%sContent-Length: 1\r\n\r\n{"a": 1}' % JSON,
    "no length": b"HTTP/1.1 200 OK\r\n%sContent-Length: x\r\n\r\n{}" % JSON,
    "negative": b"HTTP/1.1 200 OK\r\n%sContent-Length: -7\r\n\r\n{}" % JSON,
    "page": _whole(b"<html><body>Sign in: KEY</body></html>", b"Content-Type: text/html\r\n"),
    "nothing": _whole(b""),
    "null": _whole(b"null"),
    "list": _whole(b"[]"),
    "numbers": _whole(b"[1, 2]"),
    "deep": _whole(b"[" * 100_000),
    "huge": _whole(b'{"data": [{"index": 0, "embedding": [1%s]}]}' % (b"0" * 400)),
    "digits": _whole(b"9" * 5_000),
    "infinite": _whole(b'{"data": [{"index": 0, "embedding": [NaN, 1e999]}]}'),
    "empty": _whole(b'{"data": [{"index": 0, "embedding": []}], "choices": [{"message": {"content": null}}]}'),
    "bytes": _whole(random.Random(0).randbytes(300)),
    "gzip": _whole(b"no gzip", JSON + b"Content-Encoding: gzip\r\n"),
    "bomb": _whole(gzip.compress(b" " * 10**8), JSON + b"Content-Encoding: gzip\r\n"),
    "names": _whole(
        b'{"id": "org/model", "sha": "../../../ran", "siblings": [{"rfilename": "../../../../ran"}], "tags": []}',
        JSON + b'ETag: "../../../../ran"\r\nX-Repo-Commit: ../../../../ran\r\n',
    ),
    **{
        f"status {status}": _whole(b'{"error": "KEY"}', JSON + b"X-Error-Message: KEY\r\n", b"%d No" % status)
        for status in (204, 304, 400, 401, 403, 404, 409, 418, 429, 500, 503, 999)
    },
    "pause": _whole(b"{}", JSON + b"Retry-After: 999999\r\n", b"429 Later"),
}  # fmt: skip
UNENDING = ("hang", "hang within", "stream", "stream slowly", "endless headers")


class _Odd(hub_server._Handler):
    healthy, answer_of, count, model = 0, "", 0, "bert"

    def handle_request(self) -> None:
        self.fault = hub_server.Fault("")
        with self.hub.lock:
            _Odd.count += 1
            right = _Odd.count <= _Odd.healthy
        if not right:
            self.close_connection = True
            with suppress(OSError):
                self.body = self.read_body()
                self.answer_oddly(_Odd.answer_of)
        elif self.path.startswith("/v1/"):
            request = hub_server.json.loads(self.read_body())
            self.answer(*hub_server._json(embeddings(request["input"]) if "input" in request else says("a name")))
        else:
            super().handle_request()

    do_GET = do_HEAD = do_POST = do_PUT = handle_request  # noqa: N815 - the library's names

    def answer_oddly(self, kind: str) -> None:
        send = self.wfile.write
        if kind in ANSWERS:
            key = self.headers.get("Authorization", "").removeprefix("Bearer ")
            forms = f"{key} {key[::-1]} {base64.b64encode(key.encode()).decode()}".encode()
            send(ANSWERS[kind].replace(b"PATH", self.path.encode()).replace(b"KEY", forms))
            return
        head = b"HTTP/1.1 200 OK\r\n" + JSON
        send(b"" if kind == "hang" else head if "headers" in kind else head + b"Transfer-Encoding: chunked\r\n\r\n")
        while not time.sleep(20 if kind.startswith("hang") else 0.05 if kind == "stream slowly" else 0):
            send(b"X-%d: %s\r\n" % (time.monotonic_ns(), b"x" * 999) if "headers" in kind else
                 b"1\r\n \r\n" if kind == "stream slowly" else b"10000\r\n%s\r\n" % (b" " * 65536))  # fmt: skip


_running: list[str] = []


def _address() -> str:
    if not _running:
        hub_server.TOKEN = os.environ["HF_TOKEN"]
        hub = _Odd.hub = hub_server.LocalHub()
        server = hub_server._Server(("127.0.0.1", 0), _Odd)
        hub.address = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        _running.append(hub.address.removeprefix("http://"))
    return _running[0]


def _option(name: str) -> tuple[str, str] | None:
    words = COMMANDS[name].split()
    found = (pair for pair in pairwise(words) if pair[1] in MODELS)
    return next((pair for pair in found if pair[0] in ("--model", "--backbone", "--teacher", "--input")), None)


def draw(name: str, draw: random.Random) -> tuple[str, str] | None:
    """Chooses a server that the command can ask, how often it answers rightly, and how then."""
    places = ["hub"] * bool((_option(name) and name not in ("card", "search")) or name in ("publish", "train"))
    places += ["endpoint"] * (name in EMBEDDED) + ["names"] * (name in NAMED)
    if not places or name in LONG:
        return None
    place, answer = draw.choice(places), draw.choice([*ANSWERS, *UNENDING])
    return place, f"{answer} after {draw.randrange(14 if place == 'hub' else 3)}"


def words(name: str, place: str, fault: str) -> list[str]:
    """Sets up the server; gives the words that ask it."""
    _address()
    answer, healthy = fault.rsplit(" after ", 1)
    _Odd.answer_of, _Odd.count, _Odd.healthy = answer, 0, int(healthy)
    given, (option, model) = COMMANDS[name].split(), _option(name) or ("", "bert")
    shutil.rmtree(os.environ["HF_HOME"], ignore_errors=True)
    if place == "names":
        return [*given, "--names", "api:small"]
    if place == "endpoint":
        given[given.index(model)] = "api:small"
        return given
    _Odd.hub.repositories.clear()
    if name == "publish":
        return [word for word in given if word != "--dry-run"]
    folder = model.split("@")[0].split("=")[0]
    _Odd.hub.fill("models", "org/model", Path(folder))
    if name == "train":
        return [*given, "--backbone", "org/model"]
    given[given.index(option) + 1] = model.replace(folder, "org/model")
    return given


def inside(place: str, fault: str) -> None:
    """Points the child at the server, and lets its clocks run fast."""
    from huggingface_hub import constants

    from hf_dialemb.checkpoints import hub_client
    from hf_dialemb.checkpoints import pretrained as backbones
    from hf_dialemb.encoders import endpoint_client

    os.environ.pop("HF_HUB_OFFLINE")
    os.environ.update(OPENAI_BASE_URL=f"http://me:{PASSWORD}@{_address()}/v1", NO_PROXY="127.0.0.1")
    constants.ENDPOINT = f"http://{_address()}"
    constants.HUGGINGFACE_CO_URL_TEMPLATE = constants.ENDPOINT + "/{repo_id}/resolve/{revision}/{filename}"
    constants.HF_HUB_OFFLINE, constants.HF_HUB_DISABLE_XET = False, True
    constants.HF_HUB_ETAG_TIMEOUT = constants.HF_HUB_DOWNLOAD_TIMEOUT = LATE
    endpoint_client.SILENCE, endpoint_client.IN_ALL, backbones._PATIENCE = LATE, 3 * LATE, LATE
    hub_client.SILENCE = LATE
    sleep = time.sleep
    time.sleep = lambda seconds: sleep(min(seconds, 0.02))
