"""Counts of a corpus, made in one pass without keeping its dialogues."""

from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b

from ...dialogue import ROLES, Dialogue, plain
from ...display import visible

LABELS = ("domains", "dialogue_acts", "slots", "intents")
_LISTED = 10  # most frequent labels of a kind


def describe(dialogues: Iterable[Dialogue]) -> str:
    """Count a corpus, which may be a stream, and return a plain table with one count per line.

    The table lists the ten most frequent labels: domains by dialogues; acts, slots and intents by
    turns. White space separates words. Texts that differ only in case and white space count as the
    same.
    """
    totals, single, roles = Counter[str](), Counter[str](), Counter[str]()
    labels = {name: Counter[str]() for name in LABELS}
    distinct_dialogues, distinct_utterances = set[bytes](), set[bytes]()
    for dialogue in dialogues:
        texts = [turn.content for turn in dialogue.turns]
        sizes = {
            "dialogues": 1,
            "turns": len(texts),
            "words": sum(len(text.split()) for text in texts),
        }
        totals.update(sizes)
        if len(dialogue.domains) == 1:
            single.update(sizes)
        roles.update(turn.role for turn in dialogue.turns)
        labels["domains"].update(set(dialogue.domains))
        for turn in dialogue.turns:
            labels["dialogue_acts"].update(set(turn.dialogue_acts))
            labels["slots"].update({name for name, _ in turn.slots})
            labels["intents"].update(set(turn.intents))
        distinct_dialogues.add(content_hash(dialogue))
        distinct_utterances.update(blake2b(_folded(text), digest_size=8).digest() for text in texts)
    rows = [
        ("dialogues", f"{totals['dialogues']:,}"),
        ("turns", f"{totals['turns']:,}"),
        *_means(totals, ""),
        ("single-domain dialogues", f"{single['dialogues']:,}"),
        *_means(single, "  "),
        ("speakers", f"{len(roles):,}"),
    ]
    for role in sorted(roles, key=lambda role: (-roles[role], ROLES.index(role))):
        rows.append((f"  {role}", f"{roles[role]:,} turns"))
    for name, counts in labels.items():
        if name == "domains":
            rows.append(("labels", f"{len(counts):,}"))
        elif counts:
            rows.append((name.replace("_", " "), f"{len(counts):,}"))
        unit = "" if name == "domains" else " turns"
        frequent = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_LISTED]
        rows += [(f"  {visible(label)}", f"{count:,}{unit}") for label, count in frequent]
    repeats = {
        "dialogues": totals["dialogues"] - len(distinct_dialogues),
        "turns": totals["turns"] - len(distinct_utterances),
    }
    if any(repeats.values()):
        for name, count in repeats.items():
            title = "duplicate dialogues" if name == "dialogues" else "duplicate utterances"
            rows.append((title, f"{count:,} ({count / totals[name]:.1%})"))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def content_hash(dialogue: Dialogue) -> bytes:
    """Return 8 bytes that do not depend on the case and the white space of the turns."""
    whole = blake2b(digest_size=8)
    for turn in dialogue.turns:
        whole.update(turn.role.encode() + b"\t" + _folded(turn.content) + b"\n")
    return whole.digest()


def _folded(text: str) -> bytes:
    return plain(text).encode("utf-8", "surrogatepass")  # JSON can hold a lone surrogate


def _means(counts: Counter[str], indent: str) -> list[tuple[str, str]]:
    return [
        (f"{indent}mean {name}", f"{counts[name] / counts['dialogues']:.1f}")
        for name in ("turns", "words")
        if counts["dialogues"]
    ]
