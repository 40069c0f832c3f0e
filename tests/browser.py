"""A real browser without a window, driven over the pipe of its DevTools protocol."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

SIDES = "(({left, right, top, bottom}) => [left, right, top, bottom])(one.getBoundingClientRect())"  # for `Browser.all`
_DESCRIPTORS = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null'  # where the protocol wants its pipes


class Browser:
    """One page of a browser; a context manager.

    Attributes:
        problems: What the page reported: uncaught exceptions and errors of its console.
    """

    def __init__(self, profile: Path) -> None:
        self._process = subprocess.Popen(
            ["sh", "-c", _DESCRIPTORS, "sh", str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars", "--remote-debugging-pipe",
             f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._count, self._session, self._rest = 0, "", b""
        self.problems: list[str] = []
        pages = [found for found in self.send("Target.getTargets")["targetInfos"] if found["type"] == "page"]
        target = {"targetId": pages[0]["targetId"], "flatten": True}
        self._session = self.send("Target.attachToTarget", **target)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "DOM"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def send(self, method: str, **parameters: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._process.stdin.write(json.dumps(message).encode() + b"\0")
        self._process.stdin.flush()
        while (answer := self._next()).get("id") != self._count:
            self._note(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def run(self, script: str) -> Any:
        """Runs a script in the page and returns its value, that of a promise once it is there."""
        answer = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def until(self, condition: str, seconds: int = 60) -> Any:
        """Waits until a condition of the page holds, and returns what it gives."""
        return self.run(
            f"""new Promise((resolve, reject) => {{
              const end = Date.now() + {seconds * 1000}
              const ask = () => {{
                const value = {condition}
                if (value) resolve(typeof value === 'string' ? value : true)
                else if (Date.now() > end) reject(new Error('never: ' + document.body.innerText))
                else setTimeout(ask, 50)
              }}
              ask()
            }})"""
        )

    def open(self, address: str) -> None:
        self.send("Page.navigate", url=address)

    def size(self, width: int, height: int) -> None:
        pixels = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **pixels)

    def choose_file(self, selector: str, path: Path) -> None:
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def press(self, *keys: str) -> None:
        for key in keys:
            text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
            self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
            self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def mouse(self, kind: str, x: float, y: float, **more: object) -> None:
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector: str) -> None:
        """Clicks the middle of what a selector finds first, with the mouse."""
        left, right, top, bottom = self.all(selector, SIDES)[0]
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, (left + right) / 2, (top + bottom) / 2, button="left", clickCount=1)

    def all(self, selector: str, value: str = "one.textContent") -> Any:
        """Lists a value of all that a selector finds, such as their texts."""
        return self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => {value})")

    def _next(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        while b"\0" not in self._rest:
            block = self._process.stdout.read1(1 << 16)
            if not block:
                raise RuntimeError("the browser has ended")
            self._rest += block
        message, self._rest = self._rest.split(b"\0", 1)
        found: dict[str, Any] = json.loads(message)
        return found

    def _note(self, event: dict[str, Any]) -> None:
        if event.get("method") == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(event["params"]["exceptionDetails"])[:500])
        entry = event.get("params", {}).get("entry", {})
        if event.get("method") == "Log.entryAdded" and entry.get("level") == "error":
            self.problems.append(f"{entry.get('text')} {entry.get('url', '')}")
