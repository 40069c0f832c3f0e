"""One command twice at once, with one output: the second is refused in a sentence, or both end rightly."""

import random

from healthy import COMMANDS, LONG


def draw(name: str, draw: random.Random) -> tuple[str, str] | None:
    """Chooses how long after the first the second begins, in parts of the time that one takes."""
    writes = "out/" in COMMANDS[name] and name not in LONG
    return ("twice", f"{draw.choice([0, 0, draw.random()]):.2f}") if writes else None


def judge(server, name: str, fault: str) -> str:
    """Runs both; says what does not hold."""
    from server import told_wrong

    usual = server.healthy(name)
    first, second = server.twice(name, float(fault) * usual.seconds)
    wrong = [*told_wrong(first), *told_wrong(second)]
    if first.status and second.status:
        wrong.append(f"both failed: {first.err[-200:]} {second.err[-200:]}")
    return "; ".join(wrong or server.other(second, usual, same=True))
