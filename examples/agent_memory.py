"""Remembers what people said: whose it is, what is true now, and what nobody said.

Python examples/agent_memory.py [MODEL].

MODEL is an encoder whose probabilities are fitted, by default the table that comes with the
package: it needs no torch and answers in milliseconds.
"""

import sys
import tempfile
from datetime import datetime
from pathlib import Path

from hf_dialemb import Turn, TurnIndex

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))

SAID = [
    ("anna", "2026-05-03T09:00", "I'm allergic to peanuts, please keep that in mind."),
    ("anna", "2026-05-03T09:01", "My sister Lena visits me next weekend, she loves Thai food."),
    ("anna", "2026-05-04T10:00", "I live in Lisbon."),
    ("anna", "2026-06-11T18:30", "I start a new job at the city library on Monday."),
    ("anna", "2026-06-20T18:30", "I live in Berlin now."),
    ("ben", "2026-06-12T08:00", "I live in Oslo, and I am allergic to cats."),
]
MODEL = sys.argv[1] if len(sys.argv) > 1 else "dialogue-static"
NOW = datetime(2026, 6, 25, 12)


def answer(memory: TurnIndex, user: str, question: str) -> str:
    """Return what a user said that answers, or that nothing is known."""
    hits = memory.search(question, top=1, user=user, now=NOW, at_least=0.5)
    said = hits[0].text if hits else "I do not know."
    print(f"{user}: {question}\n    {said}")
    return said


with tempfile.TemporaryDirectory() as folder:
    memory = TurnIndex(Path(folder) / "agent.memory", encoder=MODEL)
    for user, when, text in SAID:  # each turn as it comes; it is on the disk at once
        memory.add_turn(Turn("user", text, name=user.title(), time=when), "chat", user=user)
    answer(memory, "anna", "What is Anna allergic to?")
    answer(memory, "ben", "What is Ben allergic to?")
    answer(memory, "anna", "Which food does Lena love?")
    answer(memory, "anna", "What did Anna say about her new job in June?")
    answer(memory, "anna", "Where does Anna live now?")
    answer(memory, "anna", "Which football team won the cup?")

    memory = TurnIndex(Path(folder) / "agent.memory")  # a new process opens the same
    (peanuts,) = memory.search("peanuts", top=1, user="anna")
    memory.delete(row=peanuts.row)  # forgotten, on the disk too
    answer(memory, "anna", "What is Anna allergic to?")
