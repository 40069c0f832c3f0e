"""Writes model_cards/*.md from the records beside them and the results.

Python benchmarks/render_cards.py [--check].

A record (``model_cards/NAME.json``) is what ``dialemb model card --record`` keeps of a model's
folders. Its figures come from all files of docs/results/benchmark that have some of the model,
otherwise from those of docs/results.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hf_dialemb.errors import InputError
from hf_dialemb.hub.card.card import render_card
from hf_dialemb.hub.card.card_record import read_record
from hf_dialemb.hub.card.figures import measured, results_of

ROOT = Path(__file__).parents[1]
CARDS, RESULTS = ROOT / "model_cards", ROOT / "docs" / "results"


def render(path: Path) -> str:
    """Render the card of a record."""
    record = read_record(path)
    names = [known["name"] for known in record["measured_as"]]
    return render_card(record, measured(record, results_of(names, RESULTS)))


def main() -> int:
    """Rewrites the cards, or only tells whether they are up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 if a card is out of date"
    )
    check = parser.parse_args().check
    records = sorted(CARDS.glob("*.json"))
    stale = {
        card
        for card in CARDS.glob("*.md")
        if card.with_suffix(".json") not in records and card.stem != "README"
    }
    try:
        cards = {path.with_suffix(".md"): render(path) for path in records}
    except InputError as error:
        print(error, file=sys.stderr)
        return 1
    for path, text in cards.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.add(path)
            if not check:
                path.write_text(text, encoding="utf-8")
    for path in sorted(stale if check else stale - set(cards)):
        print(
            f"model_cards/{path.name}: run python benchmarks/render_cards.py, or remove it",
            file=sys.stderr,
        )
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
