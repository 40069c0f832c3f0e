"""Make the corpus ``sample`` that comes with the package.

Task dialogues of 6 to 16 turns over ten domains, one domain each, with acts, slots and intents.
They are the same on every machine.

The phrases are in ``sample_phrases.json``: templates with ``[one|of|these]`` choices and
``{slots}``; a ``#`` in a value becomes a digit. The domains share their words on purpose, so that
no single word gives a domain away. Openings, detours and questions about general slots say nothing
of the domain. Detours of the assistant come before its proposal, those of the user after it.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hf_dialemb.data import write_jsonl
from hf_dialemb.data.readers.packed import packed
from hf_dialemb.dialogue import Dialogue, Turn

SIZES = {"train": 480, "dev": 96, "test": 240}  # how many dialogues each split has

_PHRASES = json.loads(Path(__file__).with_name("sample_phrases.json").read_text(encoding="utf-8"))
DOMAINS: dict[str, Any] = _PHRASES["domains"]
"""By domain.

Side questions with answers, its own slot, the general slots that it uses, and its intents.
"""

_MOST_TURNS = 16
_EXTRAS = (
    "opening",
    "closing",
    "slot",
    "slot",
    "slot",
    "assistant_detour",
    "user_detour",
    "question",
)


def dialogues_of(split: str) -> Iterator[Dialogue]:
    """Make the dialogues of a split."""
    names = sorted(DOMAINS)
    for index in range(SIZES[split]):
        yield _Scene(f"{split}/{index:04d}", names[index % len(names)]).dialogue()


class _Scene:
    """A dialogue in the making: its random numbers, the slot values drawn so far, and the turns."""

    def __init__(self, identifier: str, domain: str) -> None:
        self.identifier = identifier
        self.name = domain
        self.domain = DOMAINS[domain]
        # a text seed is hashed with SHA-512, the same in every process
        self.random = random.Random(identifier)
        self.values: dict[str, str] = {}
        self.turns: list[Turn] = []

    def dialogue(self) -> Dialogue:
        count = self.random.randint(0, 5)
        extras = self.random.sample(_EXTRAS, count)
        intent_name = self.random.choice(sorted(self.domain["intents"]))
        intent = self.domain["intents"][intent_name]
        if "opening" in extras:
            hello, welcome = self.random.choice(_PHRASES["openings"])
            self.add_turn(("greet",), hello)
            self.add_turn(("greet", "request"), welcome)
        self.add_turn(
            ("inform_intent",),
            self.general("starts") + self.random.choice(intent["goals"]),
            (),
            (intent_name,),
        )
        ask_first = self.random.random() < 0.7
        if ask_first:
            self.ask(extras)
        self.add_turn(("offer",), self.general("acknowledged") + intent["offer"])
        self.answer_questions(extras)
        self.add_turn(("affirm",), self.general("accepted"))
        if not ask_first:
            self.ask(extras)
        self.add_turn(("notify_success",), self.random.choice(intent["done"]))
        if "closing" in extras:
            thanks, bye = self.random.choice(_PHRASES["closings"])
            self.add_turn(("thank_you",), thanks)
            self.add_turn(("goodbye",), bye)
        if len(self.turns) < _MOST_TURNS and self.random.random() < 0.3:
            self.add_turn(("thank_you", "goodbye"), self.general("last_words"))
        return Dialogue(tuple(self.turns), self.identifier, (self.name,))

    def ask(self, extras: Sequence[str]) -> None:
        own = self.domain["slot"]
        slots = [own["name"], *self.domain["general_slots"]]
        # a known value is not asked for
        fresh = [slot for slot in slots if slot not in self.values]
        wanted = self.random.sample(fresh, min(len(fresh), 1 + extras.count("slot")))
        steps: list[str | None] = [*wanted, *[None] * extras.count("assistant_detour")]
        self.random.shuffle(steps)
        for slot in steps:
            if slot is None:
                self.detour("assistant_detours")
                continue
            if slot == own["name"]:
                question = own["question"]
                answer = own["answer"]
            else:
                general = _PHRASES["general_slots"][slot]
                question = self.random.choice(general["questions"])
                answer = general["answer"]
            self.add_turn(("request",), self.general("acknowledged") + question, ((slot, ""),))
            self.add_turn(("inform",), self.general("hesitations") + answer)

    def answer_questions(self, extras: Sequence[str]) -> None:
        for step in extras:
            if step == "question":
                question, answer = self.random.choice(self.domain["questions"])
                self.add_turn(("request",), question)
                self.add_turn(("inform",), answer)
            elif step == "user_detour":
                self.detour("user_detours")

    def detour(self, kind: str) -> None:
        step = self.random.choice(_PHRASES[kind])
        self.add_turn(step["acts"], step["says"])
        self.add_turn(step["reply_acts"], step["reply"])

    def add_turn(
        self,
        acts: Sequence[str],
        template: str,
        slots: tuple[tuple[str, str], ...] = (),
        intents: tuple[str, ...] = (),
    ) -> None:
        """Add a turn of the next speaker; the user begins."""
        text = re.sub(
            r"\[([^]]*)]", lambda match: self.random.choice(match[1].split("|")), template
        )
        spoken = dict.fromkeys(re.findall(r"{(\w+)}", text))
        for slot in spoken:
            text = text.replace(f"{{{slot}}}", self.value(slot))
        pairs = tuple((slot.removeprefix("new_"), self.values[slot]) for slot in spoken)
        for slot in spoken:
            if slot.startswith("new_"):  # from here on, the corrected value holds
                self.values[slot.removeprefix("new_")] = self.values[slot]
        role = "assistant" if len(self.turns) % 2 else "user"
        text = text if spoken else text[0].upper() + text[1:]
        self.turns.append(Turn(role, text, tuple(acts), slots + pairs, intents))

    def value(self, slot: str) -> str:
        if slot in self.values:
            return self.values[slot]
        if slot == "spelling":
            drawn = "-".join(self.value("name").split()[-1].upper())
        else:
            kind = slot.removeprefix("new_")
            own = self.domain["slot"]
            choices = own["values"] if kind == own["name"] else _PHRASES["values"][kind]
            others = [choice for choice in choices if choice != self.values.get(kind)]
            drawn = re.sub(
                "#", lambda _: str(self.random.randint(1, 9)), self.random.choice(others)
            )
        self.values[slot] = drawn
        return drawn

    def general(self, kind: str) -> str:
        phrase: str = self.random.choice(_PHRASES[kind])
        return phrase


if __name__ == "__main__":
    for split in SIZES:
        write_jsonl(dialogues_of(split), packed("sample", split))
