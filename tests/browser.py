"""A real browser without a window: a page of playwright's, by the few verbs that the tests need."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)

# for `Browser.all`
SIDES = "(({left, right, top, bottom}) => [left, right, top, bottom])(one.getBoundingClientRect())"


class Browser:
    """One page of a browser, a context manager.

    ``problems`` are uncaught exceptions and errors of its console.
    """

    def __init__(self, profile: Path) -> None:
        from playwright.sync_api import sync_playwright

        self._playwright = sync_playwright().start()
        options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        self._context = self._playwright.chromium.launch_persistent_context(
            profile, executable_path=str(BROWSER), args=options, no_viewport=True
        )
        self._page = self._context.pages[0]
        self.problems: list[str] = []
        self._page.on("pageerror", lambda error: self.problems.append(str(error)[:500]))
        self._page.on(
            "console", lambda said: said.type == "error" and self.problems.append(said.text)
        )
        self._session = self._context.new_cdp_session(self._page)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._context.close()
        self._playwright.stop()

    def send(self, method: str, **parameters: object) -> dict[str, Any]:
        """Speaks the DevTools protocol."""
        return self._session.send(method, parameters)

    def run(self, script: str) -> Any:
        """Runs a script in the page and returns its value, that of a promise once it is there."""
        answer = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def until(self, condition: str, seconds: int = 60) -> Any:
        """Waits until a condition of the page holds, and returns what it gives."""
        return self._page.wait_for_function(
            f"() => {condition}", timeout=seconds * 1000
        ).json_value()

    def open(self, address: str) -> None:
        self._page.goto(address)

    def size(self, width: int, height: int) -> None:
        pixels = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **pixels)

    def choose_file(self, selector: str, path: Path) -> None:
        self._page.set_input_files(selector, path)

    def press(self, *keys: str) -> None:
        for key in keys:
            self._page.keyboard.press(key)

    def mouse(self, kind: str, x: float, y: float, **more: object) -> None:
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector: str) -> None:
        """Clicks the middle of what a selector finds first, with the mouse."""
        left, right, top, bottom = self.all(selector, SIDES)[0]
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, (left + right) / 2, (top + bottom) / 2, button="left", clickCount=1)

    def all(self, selector: str, value: str = "one.textContent") -> Any:
        """Lists a value of all that a selector finds, such as their texts."""
        return self.run(
            f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => {value})"
        )


@contextmanager
def gradio_page(program: Path, **environment: str) -> Iterator[str]:
    """Run a program of gradio in a process, and yield the address of its page."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    quiet = {"GRADIO_SERVER_PORT": port, "GRADIO_ANALYTICS_ENABLED": "False"}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    command, settings = [sys.executable, "-u", program.name], {**os.environ, **quiet, **environment}
    with subprocess.Popen(command, cwd=program.parent, env=settings, **streams) as process:
        try:
            assert any("Running on" in line for line in process.stdout)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def check_injected_scripts_are_blocked(page: Browser) -> None:
    """Put a script and a handler into the page; neither may run."""
    assert page.run("typeof hacked") == "undefined"
    page.run("document.head.appendChild(document.createElement('script')).text = 'hacked = 1'")
    page.run("document.body.insertAdjacentHTML('beforeend', '<b onclick=\"hacked = 1\"></b>')")
    page.run("document.body.lastElementChild.click()")
    assert page.run("typeof hacked") == "undefined"
    assert any("Content Security Policy" in problem for problem in page.problems)
    page.problems.clear()
