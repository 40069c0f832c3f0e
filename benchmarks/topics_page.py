"""Takes the picture of the page of topics, and measures how long its frames take while the map is dragged and zoomed.

The dialogues are those of STAR that come with the package, or of another corpus.

    python benchmarks/topics_page.py --output docs/results/topics_page.png
    HF_DIALEMB_DATA=corpora python benchmarks/topics_page.py --corpus sgd/train --output page.png   # 10,000 and more
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import hf_dialemb

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
    """Writes the page beside the picture's folder for a moment, and prints the milliseconds of a frame."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", default="star_small", help="a corpus and perhaps a split, as sgd/train")
    parser.add_argument("--model", default="dialogue-static")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    name, _, split = options.corpus.partition("/")
    dialogues = hf_dialemb.load_dialogues(name, split=split or "all", skip_invalid=True)
    topics = hf_dialemb.find_topics(dialogues, options.model, title=f"Conversations of {name}")
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tool:
        topics.page(Path(folder) / "index.html")
        page = tool.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page(
            viewport={"width": 1400, "height": 900}
        )
        page.goto((Path(folder) / "index.html").as_uri() + "#list=tree")
        page.wait_for_function("page.sized")
        print(topics, json.dumps(page.evaluate(_FRAMES)))
        page.wait_for_timeout(300)
        page.screenshot(path=options.output)


if __name__ == "__main__":
    main()
