"""Files of structures that nobody wrote by hand, and what they hold.

Conversations are nested, renamed, put beside other lists, keyed by ids, or written as questions and
answers. Read back, a file is right, asked about, or wrong in silence.
"""

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from read_files import with_remarks

from hf_dialemb.errors import InputError

WORDS = ("parcel", "card", "window", "order", "garden", "ticket", "bread", "train", "river")
WORDS += ("engine", "report", "lamp", "invoice", "tyre", "router", "hotel", "lesson", "kitchen")
OPENINGS = ("my {} is broken since {}", "where is the {} of {}", "I would like a {} for the {}")
REPLIES = (
    "we look after the {} and the {}",
    "please send the {} with the {}",
    "the {} is in the {}",
)
TEXTS = (
    "text",
    "content",
    "message",
    "body",
    "utterance",
    "msg",
    "said_text",
    "value",
    "line_text",
)
PEOPLE = (
    "speaker",
    "role",
    "author",
    "sender",
    "from",
    "user",
    "participant",
    "who",
    "speaker_name",
)
LISTS = (
    "messages",
    "turns",
    "lines",
    "entries",
    "log",
    "talk",
    "events",
    "thread",
    "utterances",
    "xs",
)
WRAPPERS = ("data", "items", "conversations", "export", "payload", "result", "january", "calls")
PAIRS = (
    ("question", "answer"),
    ("prompt", "response"),
    ("input", "output"),
    ("request", "response"),
)
NOISE = {
    "status": "closed",
    "lang": "en",
    "is_open": False,
    "score": 0.5,
    "url": "https://x.org/a",
    "tags": ["a", "b"],
    "uuid": "8f14e45f-ceea-467f-a0e6-6c9b2f1d3c11",
    "version": 3,
}
Truth = dict[str, list[tuple[int, str]]]  # by id: number of the speaker, text


def conversations(draw: random.Random) -> Truth:
    """Make up conversations."""
    truth: Truth = {}
    for number in range(draw.randint(3, 8)):
        turns = []
        for place in range(2 * draw.randint(1, 4)):
            frame = draw.choice(REPLIES if place % 2 else OPENINGS)
            turns.append((place % 2, f"{frame.format(*draw.sample(WORDS, 2))} {number}.{place}"))
        truth[f"k{number}"] = turns
    return truth


def structure(seed: int) -> tuple[Any, Truth, dict[str, str]]:
    """Return a value of JSON, what it holds, and how it was made."""
    draw = random.Random(seed)
    truth = conversations(draw)
    kind = draw.choice(("objects", "objects", "rows", "pairs", "texts", "lists", "columns"))
    names = {
        "text": draw.choice(TEXTS),
        "who": draw.choice(PEOPLE),
        "time": draw.choice(("time", "timestamp", "created_at", "date", "sent_at")),
        "list": draw.choice(LISTS),
        "id": draw.choice(
            ("id", "conversation_id", "call_id", "chat_id", "dialog_id", "session_id", "ticket_id")
        ),
        "kind": kind,
    }
    speakers = draw.choice(
        (("customer", "agent"), ("user", "assistant"), ("Ann", "Bob"), ("Visitor", "Eva S."))
    )
    pair = draw.choice(PAIRS)
    noise = dict(draw.sample(sorted(NOISE.items()), draw.randint(0, 4)))
    is_deep = draw.random() < 0.4

    def message(side: int, text: str, place: int) -> dict[str, Any]:
        who: Any = speakers[side]
        who = {"name": who, "id": f"u{side}"} if is_deep else who
        made = {
            names["who"]: who,
            names["text"]: text,
            names["time"]: f"2024-03-02T10:{place:02}:00",
        }
        made |= {"id": f"m{place}"} if draw.random() < 0.5 else {}
        return dict(draw.sample(sorted(made.items()), len(made)))

    records: list[Any] = []
    for key, turns in truth.items():
        messages = [message(side, text, place) for place, (side, text) in enumerate(turns)]
        record: dict[str, Any] = {names["id"]: key, **noise}
        if kind == "rows":
            row_id = names["id"] if names["id"] != "id" else "conversation_id"
            records += [
                {**{k: v for k, v in row.items() if k != "id"}, row_id: key, **noise}
                for row in messages
            ]
            continue
        if kind == "pairs":
            asked, answered = pair
            turns[:] = turns[:2]
            record |= {asked: turns[0][1], answered: turns[1][1]}
        elif kind == "texts":
            record["dialog"] = [text for _, text in turns]
        elif kind == "lists":
            record[names["list"]] = [[speakers[side], text] for side, text in turns]
        elif kind == "columns":
            fields = (names["who"], names["text"])
            columns = zip(*((speakers[side], text) for side, text in turns), strict=True)
            record[names["list"]] = dict(zip(fields, map(list, columns), strict=True))
        else:
            record[names["list"]] = messages
        records.append(record)
    return _wrapped(draw, records, names), truth, names


def _wrapped(draw: random.Random, records: list[Any], names: dict[str, str]) -> Any:
    """Put records into objects, halves, or under their ids."""
    value: Any = records
    how = draw.choice(("list", "list", "object", "halves", "keyed", "deep"))
    names["wrap"] = how
    if how == "object":
        value = {"version": 2, draw.choice(WRAPPERS): records}
    elif how == "halves" and names["kind"] != "rows":
        half = len(records) // 2
        value = {"open": records[:half], "closed": records[half:], "spam": []}
    elif how == "keyed" and names["kind"] in ("objects", "lists"):
        value = {
            record[names["id"]]: {k: v for k, v in record.items() if k != names["id"]}
            for record in records
        }
    elif how == "deep":
        value = {
            "meta": {"count": len(records)},
            "export": {"data": {draw.choice(WRAPPERS): records}},
        }
    return value


def judge(value: Any, truth: Truth, path: Path) -> tuple[str, str]:
    """Read a file back; return ``right``, ``asked`` or ``wrong``, and what was said."""
    path.write_text(json.dumps(value), encoding="utf-8")
    try:
        dialogues, remarks = with_remarks(path)
    except InputError as error:
        return "asked", str(error)
    read = {
        item.id: [(turn.name or turn.role, turn.content) for turn in item.turns]
        for item in dialogues
    }
    if _alike(read, truth):
        return "right", remarks
    asked = any(word in remarks for word in ("--columns", "of all words", "first=user"))
    return ("asked" if asked else "wrong"), f"{read}\n{remarks}"[:1500]


def _alike(read: Mapping[str, list[tuple[str, str]]], truth: Truth) -> bool:
    if len(read) != len(truth) or any(not key.endswith(tuple(truth)) for key in read):
        return False
    for key, turns in read.items():
        expected = truth[next(name for name in truth if key.endswith(name))]
        if [text for _, text in turns] != [text for _, text in expected]:
            return False
        sides = {(who, side) for (who, _), (side, _) in zip(turns, expected, strict=True)}
        if len(sides) != len({who for who, _ in sides}) or len(sides) != len(
            {side for _, side in sides}
        ):
            return False
    return True
