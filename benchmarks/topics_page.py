"""Takes pictures of the pages of topics and of a flow, and measures how long frames take while the map is zoomed.

The dialogues are those of STAR that come with the package, or of another corpus; the flow is of one topic or domain.
The phone is a window of its size and pixels, also with the processor slowed down.

    python benchmarks/topics_page.py --output docs/results
    HF_DIALEMB_DATA=corpora python benchmarks/topics_page.py --corpus sgd/train --limit 10000 --domain "" \
        --output . --figures docs/results/topics_page.json
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from hardware import describe_machine
from playwright.sync_api import Browser, sync_playwright

import hf_dialemb
from hf_dialemb.runs.files import write_json_atomically

_SIZE, _PIXELS = {"width": 700, "height": 760}, 2  # small, as the README shows it at half its width
_DESKTOP = {"viewport": {"width": 1440, "height": 900}}
_PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 3, "is_mobile": True, "has_touch": True}
_SCREENS = {"desktop": (_DESKTOP, 1), "phone": (_PHONE, 1), "phone, processor 4 times slower": (_PHONE, 4)}
_HEAD = ["| Screen | Size | Median, ms | 95th percentile, ms | Slowest, ms |", "| :-- | --: | --: | --: | --: |"]
_NODES, _EDGES = 0.3, 0.5  # what of the flow is shown

_FRAMES = """async () => {
  const spent = [];
  for (let step = 0; step < 120; step++) {
    await new Promise(requestAnimationFrame);
    const begun = performance.now();
    page.zoom(step % 40 < 20 ? 1.06 : 1 / 1.06);
    page.drawNow();
    spent.push(performance.now() - begun);
  }
  page.fit();
  spent.sort((one, other) => one - other);
  return { median: spent[60], percentile95: spent[114], slowest: spent.at(-1) };
}"""


def main() -> None:
    """Write the pages for a moment, measure the frames, and leave the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="star_small", help="a corpus and perhaps a split, as sgd/train")
    parser.add_argument("--limit", type=int, help="so many dialogues at most")
    parser.add_argument("--domain", default="doctor_schedule", help="that of the flow; empty for no flow")
    parser.add_argument("--output", type=Path, required=True, help="folder for the pictures")
    parser.add_argument("--figures", type=Path, help="measure frames, and write them here")
    options = parser.parse_args()
    name, _, split = options.corpus.partition("/")
    dialogues = hf_dialemb.load_dialogues(name, split=split or "all")[: options.limit]
    topics = hf_dialemb.find_topics(dialogues, "dialogue-static", title="What conversations are about")
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tool:
        chromium = tool.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        topics.page(file := Path(folder) / "topics.html")
        if options.figures:
            measure(chromium, file.as_uri(), len(dialogues), options)
        page = chromium.new_page(viewport=_SIZE, device_scale_factor=_PIXELS)
        page.goto(f"{file.as_uri()}#list=tree")
        page.wait_for_function("page.sized")
        page.wait_for_timeout(300)
        page.screenshot(path=options.output / "topics_page.png")
        if options.domain:
            of_domain = [dialogue for dialogue in dialogues if dialogue.domains == (options.domain,)]
            flow = hf_dialemb.extract_flow(of_domain, "action-minilm", title="How they go", nodes=_NODES, edges=_EDGES)
            flow.page(file := Path(folder) / "flow.html")
            page.goto(file.as_uri())
            page.wait_for_function("page.picture?.layout")
            page.keyboard.press("0")  # everything in view
            page.wait_for_timeout(300)
            page.screenshot(path=options.output / "flow_page.png")
            print(flow)


def measure(chromium: Browser, address: str, dialogues: int, options: argparse.Namespace) -> None:
    """Measures the frames on each screen, takes its pictures, and writes figures and table."""
    frames, lines = {}, list(_HEAD)
    for name, (screen, slower) in _SCREENS.items():
        page = chromium.new_page(**screen)
        page.goto(address)
        page.wait_for_function("page.sized")
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(300)
            page.screenshot(path=options.output / f"{name.split(',')[0]}_{scheme}.png")
        page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slower})
        frames[name] = page.evaluate(_FRAMES)
        page.close()
        times = " | ".join(f"{frames[name][key]:.1f}" for key in ("median", "percentile95", "slowest"))
        lines.append(f"| {name} | {' x '.join(map(str, screen['viewport'].values()))} | {times} |")
    given = {"corpus": options.corpus, "dialogues": dialogues}
    write_json_atomically(options.figures, {"machine": describe_machine(), **given, "frames": frames, "table": lines})
    print("\n".join(lines))


if __name__ == "__main__":
    main()
