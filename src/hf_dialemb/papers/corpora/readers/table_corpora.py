"""Corpora in tables and in lines of text: MultiDoGO, the Self-dialogue Corpus, and Ubuntu IRC."""

import io
import random
import re
from dataclasses import replace
from itertools import groupby
from pathlib import PurePosixPath

from ....data.corpus import SPLITS, Records, Source, catalogued
from ....data.parsing import table_rows
from ....data.raw_records import Slots, flattened
from ....data.readers.shapes import cells, split_patterns
from ....dialogue import Dialogue, Turn
from ....errors import InputError
from .. import CATALOGUE
from ..row_forms import grouped, text_lines

# MultiDoGO, customers who call an airline, a bank and the like: ``<domain>/{train,dev,test}.tsv``
# of the splits that are annotated at turn level. Customers' turns alone are annotated, so ``user``
# is the only speaker. ``slot-labels`` has a tag for each word, ``O`` or a slot's name. Where tags
# and words do not pair up, values are empty. 77 turns without text are left out.

_DOGO_FILES = split_patterns("splits_annotated_at_turn_level/*/{}.tsv")
_DOGO_ID = "conversationId"
_DOGO_COLUMNS = ("utterance", "slot-labels", "intent")


def _dogo_records(source: Source, split: str) -> Records:
    rows = table_rows(source, _DOGO_FILES[split][0], (_DOGO_ID, *_DOGO_COLUMNS), delimiter="\t")
    for place, turns in grouped(
        rows, lambda row: (row[0].rpartition(":")[0], row[1].get(_DOGO_ID))
    ):
        yield place, (PurePosixPath(place.rpartition(":")[0]).parent.name, turns)


def _dogo_dialogue(domain: str, rows: list[dict[str, str]]) -> Dialogue:
    identifier = rows[0].get(_DOGO_ID)
    if not identifier:
        raise InputError(
            f"field {_DOGO_ID}: got an empty cell, expected the dialogue's id; repair the row"
        )
    return Dialogue(flattened(map(_dogo_turns, rows)), identifier, (domain,))


def _dogo_turns(row: dict[str, str]) -> list[Turn]:
    text, tags, intent = cells(row, *_DOGO_COLUMNS)
    intents = tuple(filter(None, intent.lower().split("<div>")))
    slots = _dogo_slots(text.split(), tags.split())
    return [Turn("user", text, slots=slots, intents=intents)] if text.strip() else []


def _dogo_slots(words: list[str], tags: list[str]) -> Slots:
    """Join the words of each run of a tag to its value."""
    if len(words) != len(tags):
        words = [""] * len(tags)
    runs = groupby(zip(tags, words, strict=True), lambda pair: pair[0])
    values = ((name, " ".join(word for _, word in run)) for name, run in runs)
    return tuple((name.lower(), value.strip()) for name, value in values if name != "O")


# Self-dialogue, chats on 23 topics that a crowd worker wrote for both sides:
# ``corpus/<topic>/*.csv`` and ``blocked_workers.txt``, which may be missing. As in the authors'
# ``get_data.py``, rejected rows, rows of blocked workers and empty sentences are left out, and a
# later row of an assignment replaces the earlier. The row without a sentence is left out too. There
# is no official split: the sorted ids, shuffled with a fixed seed, are cut 80/10/10.

_SELF_COLUMNS = ("AssignmentId", "WorkerId", "Reject", "Answer.sentence1")
_SENTENCE = re.compile(r"Answer\.sentence(\d{1,4})")
# The two folders that mix topics give both as domains, so a filter for single domains drops their
# dialogues.
_MIXED = dict.fromkeys(("music_and_movies", "transition_music_movies"), ("music", "movies"))


def _self_records(source: Source, split: str) -> Records:
    workers = [
        io.TextIOWrapper(stream, "utf-8", "replace").read()
        for _, stream in source.files("blocked_workers.txt")
    ]
    blocked = {line.strip() for text in workers for line in text.split("\n")}
    rows: dict[str, tuple[str, tuple[str, dict[str, str]]]] = {}
    for place, row in table_rows(source, "corpus/*/*.csv", _SELF_COLUMNS, errors="replace"):
        malformed = _SELF_COLUMNS[-1] not in row
        if (
            not row.get("Reject")
            and row.get("WorkerId") not in blocked
            and (malformed or _sentences(row))
        ):
            topic = PurePosixPath(place.rpartition(":")[0]).parent.name
            rows[row.get("AssignmentId") or place] = place, (topic, row)
    identifiers = sorted(rows)
    random.Random(0).shuffle(identifiers)
    train_end = int(len(identifiers) * 0.8)
    dev_end = train_end + int(len(identifiers) * 0.1)
    parts = {
        "train": slice(train_end),
        "dev": slice(train_end, dev_end),
        "test": slice(dev_end, None),
    }
    return (rows[identifier] for identifier in sorted(identifiers[parts[split]]))


def _sentences(row: dict[str, str]) -> dict[int, str]:
    """Return the sentences by number.

    Numbers stay as they are, so that a gap does not swap the speakers.
    """
    matches = ((_SENTENCE.fullmatch(column), text) for column, text in row.items())
    numbered = sorted((int(match[1]), text) for match, text in matches if match)
    return {number: text for number, text in numbered if text.strip() not in ("", "{}")}


def _self_dialogue(topic: str, row: dict[str, str]) -> Dialogue:
    identifier, *_ = cells(row, *_SELF_COLUMNS)
    if not identifier:
        raise InputError(
            "field AssignmentId: got an empty cell, expected the dialogue's id; repair the row"
        )
    turns = (
        Turn("user" if number % 2 else "assistant", text)
        for number, text in _sentences(row).items()
    )
    return Dialogue(tuple(turns), identifier, _MIXED.get(topic, (topic,)))


# Ubuntu IRC, help with Ubuntu on its chat channel, where people marked which message replies to
# which: ``{train,dev,test}/<log>.ascii.txt``, one message per line, and ``<log>.annotation.txt``
# beside it, whose lines ``i j -`` say that message j replies to message i (``i i -``: it opens a
# conversation). A conversation is a connected component of the replies. Those between exactly two
# nicks with at least three messages are the dialogues: 1,631, 69 and 122. Who opens one is the
# user, the other the assistant; consecutive messages of a nick stay apart. Actions (``* nick
# waves``) are messages too. Notices (``=== nick has left``) and messages without text are left out.
# The logs are whole: each message that replies to another is a question to those before it, as
# `turn-retrieval` asks.

_LINKS = ".annotation.txt"
_MESSAGES = ".ascii.txt"
_IRC_FILES = {split: (f"{split}/*{_LINKS}", f"{split}/*{_MESSAGES}") for split in SPLITS}
_MESSAGE = re.compile(r"\[(\d\d:\d\d)\] (?:<([^>]+)>| \* (\S+)) +(.*\S)")
_LINK = re.compile(r"(\d{1,9}) (\d{1,9}) -\s*", re.ASCII)
_FEWEST_MESSAGES = 3


def _log_records(source: Source, split: str) -> Records:
    def logs(ending: str) -> dict[str, list[tuple[str, str]]]:
        of_files = groupby(
            text_lines(source, f"{split}/*{ending}"), key=lambda line: line[0].rpartition(":")[0]
        )
        return {name.removesuffix(ending): list(lines) for name, lines in of_files}

    replies = logs(_LINKS)
    logged = logs(_MESSAGES)
    for log in sorted({*replies, *logged}):
        if log not in replies:
            raise InputError(
                f"{log}{_MESSAGES}: got messages without {_LINKS[1:]} beside it; add the replies"
            )
        if log not in logged:
            raise InputError(
                f"{log}{_LINKS}: got replies without {_MESSAGES[1:]} beside it; add the messages"
            )
        links = [_link(*line) for line in replies[log]]
        lines = logged[log]
        last = max(map(max, links))
        if last >= len(lines):
            count = f"got {len(lines)} messages, expected message {last} too"
            raise InputError(f"{log}{_MESSAGES}: {count}; get the file again")
        messages = [_message(*line) for line in lines]
        yield lines[0][0], (f"{split}/{log.rpartition('/')[2]}", messages, links)


def _log_dialogue(
    identifier: str, messages: list[Turn | None], links: list[tuple[int, int]]
) -> Dialogue:
    day = PurePosixPath(identifier).name[: len("2004-01-01")]
    spoken = [number for number, turn in enumerate(messages) if turn]
    places = {number: place for place, number in enumerate(spoken)}
    turns = [replace(turn, time=f"{day}T{turn.time}:00") for turn in messages if turn]
    answers: dict[int, list[int]] = {}
    for first, second in map(sorted, links):
        if first != second and first in places and second in places:
            answers.setdefault(places[second], []).append(places[first])
    questions = [
        {"question": turns[at].content, "turns": to, "before": at} for at, to in answers.items()
    ]
    return Dialogue(tuple(turns), identifier, metadata={"questions": questions})


def _irc_records(source: Source, split: str) -> Records:
    import networkx

    for place, (identifier, messages, links) in _log_records(source, split):
        file = place.rpartition(":")[0]
        for numbers in sorted(map(sorted, networkx.connected_components(networkx.Graph(links)))):
            turns = [turn for number in numbers if (turn := messages[number])]
            if len(turns) >= _FEWEST_MESSAGES and len({turn.name for turn in turns}) == 2:
                yield f"{file}:{numbers[0] + 1}", (f"{identifier}/{numbers[0]}", turns)


def _link(place: str, text: str) -> tuple[int, int]:
    match = _LINK.fullmatch(text)
    if not match:
        raise InputError(
            f"{place}: got {text[:40]!r}, expected two numbers of messages and '-'; get the file "
            "again"
        )
    return int(match[1]), int(match[2])


def _message(place: str, line: str) -> Turn | None:
    match = _MESSAGE.match(line)
    if not match and not line.startswith(("===", "[")):
        raise InputError(
            f"{place}: got {line[:40]!r}, expected '[HH:MM] <nick> text'; get the file again"
        )
    return Turn("user", match[4], name=match[2] or match[3], time=match[1]) if match else None


def _irc_dialogue(identifier: str, turns: list[Turn]) -> Dialogue:
    opener = turns[0].name
    roles = ("user" if turn.name == opener else "assistant" for turn in turns)
    return Dialogue(
        tuple(Turn(role, turn.content) for role, turn in zip(roles, turns, strict=True)), identifier
    )


CORPORA = catalogued(
    {
        "muldogo": (_DOGO_FILES, _dogo_records, _dogo_dialogue),
        "self_dialogue": (
            split_patterns("corpus/*/*.csv", "blocked_workers.txt"),
            _self_records,
            _self_dialogue,
        ),
        "ubuntu_irc": (_IRC_FILES, _irc_records, _irc_dialogue),
        "ubuntu_irc_logs": (_IRC_FILES, _log_records, _log_dialogue),
    },
    CATALOGUE,
)
