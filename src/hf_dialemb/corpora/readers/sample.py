"""The sample: a small SYNTHETIC corpus that this package generates; nobody ever said these dialogues.

Task dialogues of 6 to 16 turns over ten domains, one domain each, with acts, slots and intents; the same on every
machine, from no file. It is there to try the package, to test it and to teach; results on it say nothing about real
conversations. Licence: that of this package.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from ...models.dialogue import Dialogue, Turn
from ..corpus import SPLITS, Corpus
from .sample_phrases import DOMAINS

SIZES = {"train": 480, "dev": 96, "test": 240}
"""How many dialogues each split has."""

_VALUES = {
    "date": (
        "Monday",
        "Tuesday",
        "Thursday",
        "Friday",
        "the 3rd of May",
        "the 12th",
        "the 21st of June",
        "Sunday",
        "Saturday",
    ),
    "time": ("8:30", "9 in the morning", "noon", "1:15 pm", "half past four", "6 pm", "7:45 pm"),
    "place": (
        "Linden Court",
        "Harbour House",
        "Marlow Street",
        "Old Mill House",
        "King's Cross",
        "Eastgate",
        "Corner Yard",
    ),
    "people": ("two people", "three people", "four of us", "five adults", "a family of six"),
    "name": ("Ana Ruiz", "Tom Okafor", "Mei Lindqvist", "Paul Haddad", "Ines Novak", "Sam Whitby", "Lea Moreau"),
    "address": ("## Mill Lane", "# Station Road", "### Park Avenue", "## Church Street", "# Kings Court"),
    "phone": ("0## ### ####", "07### ######", "555 ####"),
    "code": ("KX###", "R####", "B##-###", "QT##Z"),
    "amount": ("## pounds", "# euros", "1## dollars", "##.50"),
    "minutes": ("20 minutes", "an hour", "90 minutes", "two hours"),
    "weeks": ("a week", "two weeks", "four weeks"),
}

# How to ask for a general slot, and how to answer. None of it says what the dialogue is about.
_GENERAL = {
    "date": (
        ("[What|Which] [day|date] [would suit you|do you mean]?", "When [would that be|is it for]?"),
        "[On|That is] {date}.",
    ),
    "time": (("[What|Which] time [is best|suits you]?", "At what time?"), "[About|Around|At] {time}[ if possible|]."),
    "people": (("How many [are you|will you be]?", "For how many[, please|]?"), "[We are|It is for] {people}."),
    "name": (
        ("[May I have|What is] your name[, please|]?", "Under [what|which] name?"),
        "[It is|My name is|Under] {name}.",
    ),
    "address": (
        ("What is [the|your] address?", "[Which|What] street and number[, please|]?"),
        "[It is|The address is] {address}.",
    ),
    "phone": (
        ("[Which|What] number can we [call|reach you on]?", "And your phone number?"),
        "[You can call|It is] {phone}.",
    ),
    "code": (
        ("Do you have [a|the] reference?", "[What|Which] number is on your [letter|mail]?"),
        "[Yes, it|It] says {code}.",
    ),
    "amount": (("[How much|What amount] is it[ about|]?", "What does it say you pay?"), "[It says|About] {amount}."),
}

_OPENINGS = (
    (
        "[Hello|Hi|Good morning|Good evening][, is anyone there|, I have a question|].",
        "[Hello|Welcome][!|,] [how|what] can I [help|do]?",
    ),
    ("Hi, am I [right|talking to the right place] here?", "[You are|Yes]. What can I do for you?"),
)
_STARTS = ("", "", "[Hello|Hi]. ", "Good [morning|afternoon]. ", "Excuse me. ", "I hope you can help. ")
_ACKNOWLEDGED = (
    "",
    "",
    "[Of course|Certainly|Sure|Gladly]. ",
    "[I see|Alright|Thank you|Okay]. ",
    "Let me [look|check]. ",
)
_HESITATIONS = ("", "", "", "[Well|Hm|Oh|Right]. ", "Let me think. ", "[Yes|Sure]. ")

# Side steps that could happen in any domain: before the proposal the assistant begins them, after it the user does.
_ASSISTANT_DETOURS = (
    (
        ("request",),
        "[Could|Can] you [spell|repeat] [your name|that], please?",
        ("inform",),
        "[Sure|Of course], {spelling}, {name}.",
    ),
    (
        ("hold",),
        "[One moment|Please hold on] while I [look it up|check].",
        ("affirm",),
        "[No problem|Take your time|Sure].",
    ),
    (
        ("apologize",),
        "Sorry, the [system|computer] is slow today.",
        ("affirm",),
        "[It is fine|No hurry], [it happens|I can wait].",
    ),
    (("confirm",), "So that is {date} at {time}, [right|correct]?", ("affirm",), "[Yes|Exactly|Right], {time}."),
    (
        ("confirm",),
        "I have {phone} as your number, is that [right|still good]?",
        ("negate", "inform"),
        "No, [it is|use] {new_phone}.",
    ),
    (
        ("chat",),
        "[Lovely|Terrible] weather today, is it not?",
        ("chat",),
        "[It is|Yes], I [am glad|wish I were] outside.",
    ),
)
_USER_DETOURS = (
    (
        ("request_change",),
        "[Sorry|Wait], could we make it {new_date}[ instead|]?",
        ("confirm",),
        "[Sure|Fine], {new_date} it is.",
    ),
    (
        ("request_change",),
        "Is [anything|it] possible at {new_time}?",
        ("affirm",),
        "[Yes|Yes, it is], I have put down {new_time}.",
    ),
    (
        ("request",),
        "How much [is it|would that be] [in all|altogether]?",
        ("inform",),
        "[That comes to|It is] {amount}[ in all|].",
    ),
    (
        ("request",),
        "Can you [say|write] that again[, please|]?",
        ("inform",),
        "[Of course|Sure]: {date}, {time}, under {name}.",
    ),
    (("request",), "[Will I|Do I] get a [message|mail|receipt]?", ("affirm",), "Yes, [to|we send it to] {phone}."),
)
_ACCEPTED = (
    "[Great|Perfect|Good], [please do that|go ahead|let us do it].",
    "[Yes|Okay], that [works|sounds good][ for me|, thank you].",
    "That is [fine|what I hoped for][, please go on|].",
)
_CLOSINGS = (
    (
        "[Thanks|Thank you][ so much| very much|], that is all.",
        "[You are welcome|My pleasure][, goodbye|. Have a nice day].",
    ),
    ("[That is everything|Nothing else], thanks.", "[Glad to help|Any time]. [Goodbye|Take care|Bye]."),
)
_LAST_WORDS = ("[Bye|Goodbye][, thanks again|].", "[Thanks|Thank you], [bye|you too|have a good day].")

_MOST_TURNS = 16
_EXTRAS = ("opening", "closing", "slot", "slot", "slot", "assistant_detour", "user_detour", "question")


def _records(source: object, split: str) -> Iterator[tuple[str, tuple[str, str]]]:
    names = sorted(DOMAINS)
    for index in range(SIZES[split]):
        identifier = f"{split}/{index:04d}"
        yield f"sample {identifier}", (identifier, names[index % len(names)])


def _dialogue(record: tuple[str, str]) -> Dialogue:
    return _Scene(*record).dialogue()


class _Scene:
    """One dialogue in the making: its own random numbers, the slot values drawn so far, and the turns."""

    def __init__(self, identifier: str, domain: str) -> None:
        self.identifier, self.name, self.domain = identifier, domain, DOMAINS[domain]
        self.random = random.Random(identifier)  # a text seed is hashed with SHA-512, the same in every process
        self.values: dict[str, str] = {}
        self.turns: list[Turn] = []

    def dialogue(self) -> Dialogue:
        count = self.random.randint(0, 5)
        extras = self.random.sample(_EXTRAS, count)
        intent_name = self.random.choice(sorted(self.domain.intents))
        intent = self.domain.intents[intent_name]
        if "opening" in extras:
            hello, welcome = self.random.choice(_OPENINGS)
            self.say(("greet",), hello)
            self.say(("greet", "request"), welcome)
        self.say(("inform_intent",), self.pick(_STARTS) + self.pick(intent.goals), intents=(intent_name,))
        ask_first = self.random.random() < 0.7
        if ask_first:
            self.ask(extras)
        self.say(("offer",), self.pick(_ACKNOWLEDGED) + intent.offer)
        self.answer_questions(extras)
        self.say(("affirm",), self.pick(_ACCEPTED))
        if not ask_first:
            self.ask(extras)
        self.say(("notify_success",), self.pick(intent.done))
        if "closing" in extras:
            thanks, bye = self.random.choice(_CLOSINGS)
            self.say(("thank_you",), thanks)
            self.say(("goodbye",), bye)
        if len(self.turns) < _MOST_TURNS and self.random.random() < 0.3:
            self.say(("thank_you", "goodbye"), self.pick(_LAST_WORDS))
        return Dialogue(tuple(self.turns), self.identifier, (self.name,))

    def ask(self, extras: Sequence[str]) -> None:
        """Adds the assistant's questions, with what comes between them."""
        own = self.domain.slot
        slots = [own.name, *self.domain.general_slots]
        fresh = [slot for slot in slots if slot not in self.values]  # what was said already is not asked for
        wanted = self.random.sample(fresh, min(len(fresh), 1 + extras.count("slot")))
        steps: list[str | None] = [*wanted, *[None] * extras.count("assistant_detour")]
        self.random.shuffle(steps)
        for slot in steps:
            if slot is None:
                acts, assistant, reply_acts, user = self.random.choice(_ASSISTANT_DETOURS)
                self.say(acts, assistant)
                self.say(reply_acts, user)
                continue
            if slot == own.name:
                question, answer = own.question, own.answer
            else:
                questions, answer = _GENERAL[slot]
                question = self.random.choice(questions)
            self.say(("request",), self.pick(_ACKNOWLEDGED) + question, ((slot, ""),))
            self.say(("inform",), self.pick(_HESITATIONS) + answer)

    def answer_questions(self, extras: Sequence[str]) -> None:
        """Adds the user's questions about the proposal."""
        steps = [step for step in extras if step in ("question", "user_detour")]
        for step in steps:
            if step == "question":
                question, answer = self.random.choice(self.domain.questions)
                acts, reply_acts = ("request",), ("inform",)
            else:
                acts, question, reply_acts, answer = self.random.choice(_USER_DETOURS)
            self.say(acts, question)
            self.say(reply_acts, answer)

    def say(
        self,
        acts: tuple[str, ...],
        template: str,
        slots: tuple[tuple[str, str], ...] = (),
        intents: tuple[str, ...] = (),
    ) -> None:
        """Adds a turn; the speakers take turns, and the user begins."""
        text = re.sub(r"\[([^]]*)]", lambda match: self.random.choice(match[1].split("|")), template)
        spoken = dict.fromkeys(re.findall(r"{(\w+)}", text))
        for slot in spoken:
            text = text.replace(f"{{{slot}}}", self.value(slot))
        found = tuple((slot.removeprefix("new_"), self.values[slot]) for slot in spoken)
        for slot in spoken:
            if slot.startswith("new_"):  # from here on, the corrected value holds
                self.values[slot.removeprefix("new_")] = self.values[slot]
        role = "assistant" if len(self.turns) % 2 else "user"
        self.turns.append(Turn(role, text[0].upper() + text[1:] if not spoken else text, acts, slots + found, intents))

    def value(self, slot: str) -> str:
        if slot in self.values:
            return self.values[slot]
        if slot == "spelling":
            drawn = "-".join(self.value("name").split()[-1].upper())
        else:
            kind = slot.removeprefix("new_")
            choices = self.domain.slot.values if kind == self.domain.slot.name else _VALUES[kind]
            others = [choice for choice in choices if choice != self.values.get(kind)]
            drawn = re.sub("#", lambda _: str(self.random.randint(1, 9)), self.random.choice(others))
        self.values[slot] = drawn
        return drawn

    def pick(self, templates: Sequence[str]) -> str:
        return self.random.choice(templates)


CORPORA = (
    Corpus(
        "sample",
        dict.fromkeys(SPLITS, ()),
        _records,
        _dialogue,
        source="https://pypi.org/project/hf-dialemb",
        licence="Apache-2.0",
        terms="permissive",
    ),
)
