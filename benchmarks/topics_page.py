"""Takes pictures of the pages of topics and of a flow.

The dialogues are those of STAR that come with the package, or of another corpus; the flow is of one
topic or domain.

    python benchmarks/topics_page.py --output docs/results
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import hf_dialemb

_SIZE, _PIXELS = {"width": 700, "height": 760}, 2  # small, as the README shows it at half its width
_NODES, _EDGES = 0.3, 0.5  # what of the flow is shown


def main() -> None:
    """Write the pages for a moment, and leave the pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--corpus", default="star_small", help="a corpus and perhaps a split, as sgd/train"
    )
    parser.add_argument("--limit", type=int, help="so many dialogues at most")
    parser.add_argument(
        "--domain", default="doctor_schedule", help="that of the flow; empty for no flow"
    )
    parser.add_argument("--output", type=Path, required=True, help="folder for the pictures")
    options = parser.parse_args()
    name, _, split = options.corpus.partition("/")
    dialogues = hf_dialemb.load_dialogues(name, split=split or "all")[: options.limit]
    topics = hf_dialemb.find_topics(
        dialogues, "dialogue-static", title="What conversations are about"
    )
    browser = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome")))
    )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tool:
        chromium = tool.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        topics.page(file := Path(folder) / "topics.html")
        page = chromium.new_page(viewport=_SIZE, device_scale_factor=_PIXELS)
        page.goto(f"{file.as_uri()}#list=tree")
        page.wait_for_function("page.sized")
        page.wait_for_timeout(300)
        page.screenshot(path=options.output / "topics_page.png")
        if options.domain:
            of_domain = [
                dialogue for dialogue in dialogues if dialogue.domains == (options.domain,)
            ]
            flow = hf_dialemb.extract_flow(
                of_domain, "action-minilm", title="How they go", nodes=_NODES, edges=_EDGES
            )
            flow.page(file := Path(folder) / "flow.html")
            page.goto(file.as_uri())
            page.wait_for_function("page.picture?.layout")
            page.keyboard.press("0")  # everything in view
            page.wait_for_timeout(300)
            page.screenshot(path=options.output / "flow_page.png")
            print(flow)


if __name__ == "__main__":
    main()
