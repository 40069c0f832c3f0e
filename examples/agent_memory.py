"""Remembers what was said, and finds what matters to a question.

Python examples/agent_memory.py [MODEL].

MODEL is any encoder, by default the table that comes with the package: it needs no torch and
answers in milliseconds.
"""

import sys
import time

from hf_dialemb import Turn, TurnIndex

if "--help" in sys.argv:
    raise SystemExit(print(__doc__))

SAID = [
    ("user", "Anna", "2026-05-03T09:00:00", "I'm allergic to peanuts, please keep that in mind."),
    ("assistant", "", "2026-05-03T09:00:10", "Noted. I will leave peanuts out of every recipe."),
    ("user", "Anna", "2026-05-03T09:01:00", "My sister Lena visits me next weekend."),
    ("assistant", "", "2026-05-03T09:01:10", "How nice! Shall I plan a dinner?"),
    ("user", "Anna", "2026-05-03T09:02:00", "Yes, she loves Thai food."),
    ("user", "Anna", "2026-06-11T18:30:00", "I start a new job at the city library on Monday."),
    (
        "assistant",
        "",
        "2026-06-11T18:30:10",
        "Congratulations! Do you want a reminder for the bus?",
    ),
]

memory = TurnIndex(sys.argv[1] if len(sys.argv) > 1 else "dialogue-static")
for role, name, when, text in SAID:  # each turn as it comes
    memory.add_turn(Turn(role, text, name=name, time=when), "anna")

for question in (
    "What can't Anna eat?",
    "Which food does Lena like?",
    "What did Anna say in June about work?",
):
    started = time.perf_counter()
    hits = memory.search(question, top=2)
    print(f"\n{question} ({1000 * (time.perf_counter() - started):.0f} ms)\n{hits}")
    # for a language model
    prompt = "\n".join(f"[{hit.time}] {hit.speaker or hit.role}: {hit.text}" for hit in hits)
