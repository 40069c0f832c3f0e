"""Two months of one desk with planted changes.

Does the comparison name them, and nothing else first?

Dialogues of three domains of SGD's development split are dealt to January and February. February
has what January has
not: in half of the restaurant calls the assistant asks for a deposit, which the customer gives; a
third of the calls on homes ends as the customer goes elsewhere; and the calls of two more domains,
banks and weather, are a new topic each. Topics of January are found and kept, and February is
compared with them, flows included. The first five findings should be these, in words, and all of
them be there.

    HF_DIALEMB_DATA=corpora python benchmarks/planted_months.py --output
    docs/results/planted_months.json
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import hf_dialemb
from hf_dialemb.apps.topics.topics import Topics
from hf_dialemb.data import single_domain
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.storage.files import write_json_atomically

KEPT, NEW = ("Restaurants", "Homes", "Flights"), ("Banks", "Weather")
ASKS = (
    "We need a deposit of ten pounds to hold it. Which card may I charge?",
    "There is a ten pound deposit. What is your card number, please?",
    "Before I go on, a deposit is due. May I take your card details?",
)
GIVES = (
    "Charge the card ending in 4471.",
    "It is 5500 1233 9011 4471.",
    "Yes, take it from my visa.",
)
LEAVES = "That is too much trouble. I will go elsewhere. Bye."


def months(dialogues: Sequence[Dialogue]) -> tuple[list[Dialogue], list[Dialogue]]:
    """Deal dialogues of one domain each to two months, and plant the changes in the second."""
    of_domain: dict[str, list[Dialogue]] = {name: [] for name in (*KEPT, *NEW)}
    for dialogue in dialogues:
        of_domain.get(dialogue.domains[0].partition("_")[0], []).append(dialogue)
    january = [own for name in KEPT for own in of_domain[name][::2]]
    february = [
        planted(name, place, own)
        for name in KEPT
        for place, own in enumerate(of_domain[name][1::2])
    ]
    return january, february + [own for name in NEW for own in of_domain[name]]


def planted(domain: str, place: int, dialogue: Dialogue) -> Dialogue:
    """Change some of the dialogues of a domain."""
    turns = dialogue.turns
    if domain == "Restaurants" and place % 2:
        middle = len(turns) // 2 // 2 * 2
        step = Turn("assistant", ASKS[place % 3]), Turn("user", GIVES[place % 3])
        turns = (*turns[: middle + 1], *step, *turns[middle + 1 :])
    elif domain == "Homes" and place % 3 == 0:
        turns = (*turns[: len(turns) // 2 // 2 * 2], Turn("user", LEAVES))
    return replace(dialogue, turns=turns)


def compared(folder: Path, encoder: str | None, actions: str | None) -> Topics:
    """Find January's topics and flows, and compare February's with them."""
    dialogues = single_domain(hf_dialemb.load_dialogues("sgd", split="dev"))
    january, february = months(dialogues)
    before = hf_dialemb.find_topics(january, encoder, title="January", cache=folder / "cache")
    before.save(folder)
    before.save_flows(folder, actions).save(folder)
    after = hf_dialemb.load_topics(folder).update(
        february, title="February", cache=folder / "cache"
    )
    return after.save_flows(folder / "february", actions).compared_with(folder)


def main() -> None:
    """Compare, and write the findings."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", help="encoder of dialogues (default: the package's)")
    parser.add_argument("--actions", help="encoder of utterances (default: the package's)")
    parser.add_argument("--output", type=Path, required=True, help="the results file")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        lines = compared(Path(folder), options.model, options.actions).comparisons[0].lines()
    write_json_atomically(options.output, {"table": lines})
    print("\n".join(lines))


if __name__ == "__main__":
    main()
