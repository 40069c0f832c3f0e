"""Measure `dialemb topics` over many dialogues.

Minutes, memory, and how far apart the frames of its page are.

The dialogues of SGD are repeated; from the second round on, a seed drops a tenth of the words. In
Chromium without a window, the map is zoomed and drawn many times; and on a desktop a mouse zooms,
drags and points at it, one event after the other, and the page notes when each frame begins. The
phone is a window of its size and pixels, also with the processor slowed down.

    HF_DIALEMB_DATA=corpora python benchmarks/topics_scale.py --output
    docs/results/topics_scale.json   # 10 minutes
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
from corpus_scale import endless, measured
from hardware import describe_machine
from playwright.sync_api import Browser, Page, sync_playwright

import hf_dialemb
from hf_dialemb.data import write_jsonl
from hf_dialemb.storage.files import write_json_atomically

MODEL = "dialogue-static"
CORPUS = "sgd"
EVENTS = 80  # of the mouse, of each kind
WARM_UP = 5  # of these, whose frames are not counted
DESKTOP = {"viewport": {"width": 1440, "height": 900}}
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 3,
    "is_mobile": True,
    "has_touch": True,
}
SCREENS = {
    "desktop": (DESKTOP, 1),
    "phone": (PHONE, 1),
    "phone, processor 4 times slower": (PHONE, 4),
}
WATCH = """() => {
  window.began = [];
  const note = (now) => { began.push(now); requestAnimationFrame(note); };
  requestAnimationFrame(note);
}"""

DRAW = """(times) => {
  const spent = [];
  for (let time = 0; time < times; time++) {
    page.zoom(time % 40 < 20 ? 1.06 : 1 / 1.06);
    const begun = performance.now();
    page.drawNow();
    spent.push(performance.now() - begun);
  }
  return spent;
}"""


def zoomed(page: Page, event: int, x: float, y: float) -> None:
    """Zoom in, and out again."""
    del x, y
    page.mouse.wheel(0, -60 if event % 40 < 20 else 60)


def dragged(page: Page, event: int, x: float, y: float) -> None:
    """Drag the map from side to side."""
    if event == 0:
        page.mouse.down()
    page.mouse.move(x + 4 * (event % 20), y + 3 * (event % 20))
    if event == EVENTS - 1:
        page.mouse.up()


def pointed(page: Page, event: int, x: float, y: float) -> None:
    """Point at one place of the map after the other."""
    page.mouse.move(x - 100 + 5 * (event % 40), y - 60 + 7 * (event % 17))


ACTIONS: dict[str, Callable[[Page, int, float, float], None]] = {
    "zoom": zoomed,
    "drag": dragged,
    "point": pointed,
}


def frames_of(page: Page, act: Callable[[Page, int, float, float], None]) -> dict[str, float]:
    """Return how many milliseconds the frames are apart while the mouse acts."""
    box = page.locator("#map").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.evaluate("page.fit()")
    page.mouse.move(x, y)
    for event in range(EVENTS):
        if event == WARM_UP:
            page.evaluate("began.length = 0")
        act(page, event, x, y)
    return summary(np.diff(page.evaluate("began")))


def summary(times: np.ndarray) -> dict[str, float]:
    """Return the median of times, their 95th percentile, and the greatest."""
    return {
        "median": float(np.median(times)),
        "percentile95": float(np.quantile(times, 0.95)),
        "most": float(times.max()),
    }


def page_of(chromium: Browser, file: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Measure the frames of a page of topics on each screen, for each action."""
    frames = {}
    for name, (screen, slower) in SCREENS.items():
        page = chromium.new_page(**screen)
        page.goto(file.as_uri())
        page.wait_for_function("page.sized", timeout=120_000)
        page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slower})
        page.evaluate(WATCH)
        drawing = summary(np.array(page.evaluate(DRAW, EVENTS)))
        acts = ACTIONS if screen is DESKTOP else {}  # a phone has no mouse
        apart = {f"frames, a mouse {action}s": frames_of(page, act) for action, act in acts.items()}
        frames[name] = {"one drawing": drawing, **apart}
        page.close()
    return frames


def tables(rows: list[dict[str, object]]) -> list[str]:
    """Return the lines of two tables: the command, and its page."""
    head = "| Dialogues | Minutes | of processor time | Peak memory, GiB | The page, MB |"
    lines = [head, "| --: | --: | --: | --: | --: |"]
    for row in rows:
        minutes = f"{row['seconds'] / 60:.1f} | {row['processor_seconds'] / 60:.1f}"
        figures = f"{minutes} | {row['mib'] / 1024:.1f} | {row['page_bytes'] / 1e6:.0f}"
        lines.append(f"| {row['count']:,} | {figures} |")
    lines += ["", "| Dialogues | Screen | | Median, ms | 95th percentile, ms | Most, ms |"]
    lines.append("| --: | :-- | :-- | --: | --: | --: |")
    for row in rows:
        for screen, actions in row["frames"].items():
            for action, frames in actions.items():
                times = " | ".join(
                    f"{frames[key]:.1f}" for key in ("median", "percentile95", "most")
                )
                lines.append(f"| {row['count']:,} | {screen} | {action} | {times} |")
    return lines


def main() -> None:
    """Measure each size, and write the figures and their tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--dialogues", type=int, nargs="+", default=[100_000], help="sizes (default: 100000)"
    )
    parser.add_argument("--output", type=Path, required=True, help="the results file")
    options = parser.parse_args()
    browser = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome")))
    )
    dialogues = hf_dialemb.load_dialogues(CORPUS, split="train")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder) / "calls.jsonl", Path(folder) / "topics"
        for size in options.dialogues:
            write_jsonl(islice(endless(dialogues), size), source)
            figures = measured(["topics", source, "--model", MODEL, "--output", output], size)
            page = output / "index.html"
            with sync_playwright() as tool:
                frames = page_of(
                    tool.chromium.launch(executable_path=browser, args=["--no-sandbox"]), page
                )
            rows.append({**figures, "page_bytes": page.stat().st_size, "frames": frames})
            shutil.rmtree(output)
    record = {
        "machine": describe_machine(),
        "model": MODEL,
        "corpus": CORPUS,
        "rows": rows,
        "table": tables(rows),
    }
    write_json_atomically(options.output, record)
    print("\n".join(record["table"]))


if __name__ == "__main__":
    main()
