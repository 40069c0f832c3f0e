"""Corpora of the papers whose readers never met the real files; records made by hand in their format stood in.

The catalogue marks them. The readers share as much as the layouts allow with those that met real files.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from ....corpora.corpus import Files, Reading, Records, Source, catalogued
from ....corpora.examples import ResponseSelection, SentencePair
from ....corpora.parsing import (
    grouped,
    hashed_by,
    json_lines,
    json_list,
    json_members,
    numbered,
    out_of_all,
    split_files,
    table_rows,
    text_lines,
    with_split,
)
from ....corpora.readers.exchanges import WOZ_SPLITS, simulated_dialogue, woz_dialogue
from ....corpora.readers.shapes import Labels, TurnList, alternating, cells, only, split_patterns
from ....corpora.readers.turns import SGD, TASKMASTER, taskmaster_labels, taskmaster_records
from ....corpora.records import (
    Raw,
    Slots,
    convert_each,
    distinct,
    each_of,
    field,
    flattened,
    hashed_split,
    names,
    one_of,
    optional,
)
from ....dialogue import Dialogue, Turn
from ....errors import InputError
from .. import CATALOGUE

# Layouts that readers in use have, too. KETOD are dialogues of SGD with enriched replies, which are not read; its
# domains are those of turns. Sim-R is about restaurants; DSTC2-clean has the layout of WOZ 2.0. The domain of
# Taskmaster 2 is the file, that of Taskmaster 3 the vertical.


def _ketod_services(record: Raw) -> tuple[str, ...]:
    frames = flattened(each_of(record, "turns", lambda turn: field(turn, "frames", list)))
    return tuple(dict.fromkeys(field(frame, "service", str) for frame in frames))


def _tm2_records(source: Source, split: str) -> Records:
    for place, record in taskmaster_records(_TM2)(source, split):
        yield place, (place.rpartition(": record ")[0].rpartition("/")[2].removesuffix(".json"), record)


def _tm2_dialogue(domain: str, record: Raw) -> Dialogue:
    return replace(_TM2_TURNS(record), domains=(domain,))


_TM2, _TM3 = "TM-2-2020/data/*.json", "TM-3-2020/data/data_*.json"
_TM2_TURNS = replace(TASKMASTER, domains=lambda record: (), labels=partial(taskmaster_labels, prefixed=True))

# Lists of turns with labels of their own. BiTOD, tourists in Hong Kong and a wizard: queries of the knowledge base are
# left out, and the domains are those of the active intents, without "chat". Frames, booking a trip: arguments that only
# point to frames are not slots, and the argument ``intent`` is an intent.


def bitod_labels(turn: Raw) -> Labels:
    """Read the actions of an event; "inform_intent" gives an intent and not an act."""
    acts, slots, intents = [], [], []
    for action in field(turn, "Actions", list):
        act, slot, values = field(action, "act", str), field(action, "slot", str), field(action, "value", list)
        value = str(values[0]) if values else ""
        if slot != "intent":
            acts.append(act)
            slots += [(slot.lower(), value)] if slot else []
        elif act == "inform_intent" and value:
            intents.append(value.replace("_en_US", "").removesuffix("_en"))
    return distinct(acts), tuple(dict.fromkeys(slots)), tuple(dict.fromkeys(intents))


def bitod_domain(intent: str) -> tuple[str, ...]:
    """Return the domain of an intent."""
    domain = intent.partition("_")[0]
    return () if domain in ("", "chat") else (domain,)


def _bitod_domains(record: Raw) -> tuple[str, ...]:
    intents = (field(event, "active_intent", str) for event in record["Events"] if "active_intent" in event)
    return tuple(dict.fromkeys(flattened(map(bitod_domain, intents))))


def _bitod_is_spoken(event: Raw) -> bool:
    return one_of(event, "Agent", ("User", "Wizard", "KnowledgeBase")) != "KnowledgeBase" and "Text" in event


def _bitod_dialogue(identifier: str, record: Raw) -> Dialogue:
    return Dialogue(_BITOD.spoken(record), identifier, _bitod_domains(record))


_BITOD_ROLES = {"User": "user", "Wizard": "assistant"}
_BITOD = TurnList("Events", "Agent", "Text", _BITOD_ROLES, labels=bitod_labels, is_spoken=_bitod_is_spoken)


def _frames_labels(turn: Raw) -> Labels:
    acts = field(field(turn, "labels", dict), "acts", list)
    arguments = [
        (field(argument, "key", str).lower(), "" if argument.get("val") is None else str(argument["val"]))
        for act in acts
        for argument in field(act, "args", list)
    ]
    slots = dict.fromkeys(pair for pair in arguments if pair[0] not in ("ref", "id", "read", "write", "intent"))
    intents = dict.fromkeys(value for name, value in arguments if name == "intent" and value)
    return distinct(field(act, "name", str) for act in acts), tuple(slots), tuple(intents)


_FRAMES_ROLES = {"user": "user", "wizard": "assistant"}
_FRAMES = TurnList("turns", "author", "text", _FRAMES_ROLES, "id", lambda record: ("travel",), _frames_labels)

# MetaLWOZ, 47 domains: ``dialogues/<DOMAIN>.txt``. Names in lower case are MultiWOZ's dialogues in this layout. Those
# of ``dstc8_metalwoz_heldout`` are test, where present.

_METALWOZ = "dialogues/[A-Z]*.txt"


def _metalwoz_records(source: Source, split: str) -> Records:
    for place, record in json_lines(source, _METALWOZ):
        identifier = str(record.get("id")) if isinstance(record, dict) else ""
        if split == ("test" if "dstc8_metalwoz_heldout/" in place else hashed_split(identifier)):
            yield place, record


def _metalwoz_dialogue(record: Raw) -> Dialogue:
    turns = convert_each(alternating("Hello how may I help you?", names(record, "turns")), "turns", Turn)
    return Dialogue(turns, field(record, "id", str), only("domain")(record))


# Sim-GEN, 120,000 dialogues that a program put together. What is new in ``dialogue_state`` after a reply is what the
# user informed of. A side without text said nothing.


def _generated_dialogue(record: Raw) -> Dialogue:
    known: dict[str, Raw] = {}

    def exchange(both: Raw) -> list[Turn]:
        nonlocal known
        state, before = field(both, "dialogue_state", dict), known
        new = tuple((slot.lower(), field(state, slot, str)) for slot in state if before.get(slot) != state[slot])
        known = state
        system = (field(both, "system_utterance", str), *generated_labels(field(both, "system_acts", list)))
        user = (field(both, "user_utterance", str), ("inform",) if new else (), new)
        sides = (("assistant", *system), ("user", *user))
        return [Turn(role, text, acts, slots) for role, text, acts, slots in sides if text.strip()]

    return Dialogue(flattened(each_of(record, "turns", exchange)), field(record, "dialogue_id", str), ("movie",))


def generated_labels(acts: list[Raw]) -> tuple[tuple[str, ...], Slots]:
    """Read the system's acts in Sim-GEN; a slot that is requested has no value."""
    slots = []
    for act in acts:
        values = optional(act, "slot_values", dict)
        slots += [(slot.lower(), field(values, slot, str).removeprefix("REQUESTED")) for slot in values]
    return distinct(field(act, "name", str) for act in acts), tuple(slots)


# MS-DC, booking films, restaurants and taxis: ``{movie,restaurant,taxi}_all.tsv``, a row per message and a cell per
# act, such as ``inform(city=Oslo;date)``. Spreadsheets left quotation marks around some texts. An act with a value
# informs as well, as in Dialog2Flow.

_MSDC_COLUMNS = ("session.ID", "Message.ID", "Message.Timestamp", "Message.From", "Message.Text")
_MSDC_ROLES = {"user": "user", "agent": "assistant"}


def msdc_labels(acts: Iterable[str]) -> tuple[tuple[str, ...], Slots]:
    """Read the acts of a message; an argument that repeats the act's name is not a slot."""
    acts_by_name: dict[str, None] = {}
    slots: dict[tuple[str, str], None] = {}
    for match in filter(None, (re.match(r"\W*(\w+)\s*\((.*)", act, re.DOTALL) for act in acts)):
        act = match[1].lower()
        pairs = [pair for pair in _msdc_arguments(match[2]) if pair[0] != act]
        slots.update(dict.fromkeys(pairs))
        acts_by_name |= dict.fromkeys([act, *["inform"] * any(value for _, value in pairs)])
    return tuple(acts_by_name), tuple(slots)


def _msdc_arguments(text: str) -> Iterator[tuple[str, str]]:
    for argument in text.rstrip(' "').removesuffix(")").split(";"):
        name, _, value = (part.strip() for part in argument.partition("="))
        if re.fullmatch(r"\w+", name):
            values = value[1:-1].split("#") if value.startswith("{") and value.endswith("}") else [value]
            yield from ((name.lower(), part.strip()) for part in values)


def _msdc_records(source: Source, split: str) -> Records:
    rows = table_rows(source, "*_all.tsv", delimiter="\t", quoted=False, names=_MSDC_COLUMNS)
    for place, session in grouped(rows, lambda row: (row[0].rpartition(":")[0], row[1]["session.ID"].strip())):
        domain = place.rpartition(":")[0].replace(":", "/").rpartition("/")[2].partition("_")[0]
        number = session[0]["session.ID"].strip()
        if number != "session.ID" and split == hashed_split(f"{domain}/{number}"):
            yield place, (domain, number, session)


def _msdc_dialogue(domain: str, number: str, rows: list[dict[str, str]]) -> Dialogue:
    if not number:
        raise InputError("field session.ID: got an empty cell, expected the session's number; repair the row")
    try:
        rows = sorted(rows, key=lambda row: int(field(row, "Message.ID", str)))
    except ValueError:
        raise InputError("field Message.ID: expected whole numbers; repair the rows") from None
    return Dialogue(convert_each(rows, "messages", _msdc_turn), f"{domain}/{number}", (domain,))


def _msdc_turn(row: Raw) -> Turn:
    role = _MSDC_ROLES[one_of(row, "Message.From", _MSDC_ROLES)]
    text = field(row, "Message.Text", str).strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].replace('""', '"')
    return Turn(role, text, *msdc_labels(row.get("", "").split("\t")))


# AmazonQA, a question and its answer per line with a tab between them, as such or as ParlAI writes them.


def _amazon_records(source: Source, split: str) -> Records:
    for number, (place, line) in enumerate(text_lines(source, "amazonqa.txt")):
        if line.strip() and hashed_split(str(number)) == split:
            yield place, (f"{split}/{number}", line)


def _amazon_dialogue(identifier: str, line: str) -> Dialogue:
    question, tab, rest = line.partition("\t")
    if not tab:
        raise InputError("got one cell, expected a question, a tab and an answer; repair the line")
    answer = rest.partition("\t")[0]
    if question.startswith("text:") and answer.startswith("labels:"):
        question = question.removeprefix("text:").replace("\\n", " ")
        answer = answer.removeprefix("labels:").replace("\\n", " ")
    return Dialogue((Turn("user", question), Turn("assistant", answer)), identifier)


# Dialogue NLI, pairs of sentences from chats: ``dialogue_nli_{train,dev,test}.jsonl``, which are JSON lists in spite of
# their name; an object per line does as well.


@numbered
def _nli_records(source: Source, split: str) -> Records:
    pattern = f"dialogue_nli_{split}.jsonl"
    starts = [stream.peek(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] for _, stream in source.files(pattern)]
    return (json_list if starts == [b"["] else json_lines)(source, pattern)


def _nli_pair(identifier: str, record: Raw) -> SentencePair:
    first, second, label = (field(record, name, str) for name in ("sentence1", "sentence2", "label"))
    return SentencePair(first, second, label=label, id=identifier)


# DSTC7 track 1, Ubuntu, subtask 1: ``ubuntu_{train,dev,test}_subtask_1.json``. The correct answers of test are in
# ``ubuntu_responses_subtask_1.tsv``: example, ids of candidates, text. Who asks, participant_1, is the user.

_DSTC7_ANSWERS = "ubuntu_responses_subtask_1.tsv"
_DSTC7_FILES = split_patterns("ubuntu_{}_subtask_1.json")
_DSTC7_FILES["test"] += (_DSTC7_ANSWERS,)
_DSTC7_TURNS = TurnList(
    "messages-so-far", "speaker", "utterance", {"participant_1": "user", "participant_2": "assistant"}
)


def _dstc7_records(source: Source, split: str) -> Records:
    lines = text_lines(source, _DSTC7_ANSWERS) if split == "test" else ()
    answers = {example: ids.split(",") for _, line in lines for example, ids, *_ in [(line + "\t").split("\t")]}
    for place, record in json_list(source, _DSTC7_FILES[split][0]):
        yield place, (split, record, answers)


def _dstc7_selection(split: str, record: Raw, answers: dict[str, list[str]]) -> ResponseSelection:
    example, inline = str(field(record, "example-id", int)), "options-for-correct-answers"
    candidates = field(record, "options-for-next", list)
    ids = [field(candidate, "candidate-id", str) for candidate in candidates]
    if inline in record or split != "test":
        correct = each_of(record, inline, lambda answer: field(answer, "candidate-id", str))
    else:
        correct = tuple(answers.get(example, ()))
    if not set(correct) <= set(ids) or (split == "test" and not correct):
        raise InputError("a correct answer is not among the candidates, expected its id there; repair the record")
    texts = tuple(field(candidate, "utterance", str) for candidate in candidates)
    return ResponseSelection(_DSTC7_TURNS.spoken(record), texts, tuple(map(ids.index, correct)), f"{split}/{example}")


# Ubuntu Dialogue Corpus 2.0: ``train.csv`` with the columns Context, Utterance and Label (1: it followed),
# ``valid.csv`` and ``test.csv`` with Context, Ground Truth Utterance and Distractor_0 to Distractor_8. ``__eou__`` ends
# an utterance and ``__eot__`` a turn; the first speaker is the user. Utterances of a turn stay apart, those of a
# response are joined.

_UBUNTU_FILES = split_patterns("{}.csv", train="train", dev="valid", test="test")
_RESPONSES = ("Ground Truth Utterance", *(f"Distractor_{number}" for number in range(9)))
_CORRECT = {"1": (0,), "1.0": (0,), "0": (), "0.0": ()}


@numbered
def _ubuntu_records(source: Source, split: str) -> Records:
    columns = ("Utterance", "Label") if split == "train" else _RESPONSES
    return table_rows(source, _UBUNTU_FILES[split][0], ("Context", *columns))


def _ubuntu_selection(identifier: str, row: dict[str, str]) -> ResponseSelection:
    columns = _RESPONSES if _RESPONSES[0] in row else ("Utterance",)
    before, *responses = cells(row, "Context", *columns)
    context = tuple(
        Turn("assistant" if place % 2 else "user", text)
        for place, turn in enumerate(before.split("__eot__"))
        for text in _utterances(turn)
    )
    texts = tuple(" ".join(_utterances(response.replace("__eot__", ""))) for response in responses)
    correct = (0,) if len(texts) > 1 else _CORRECT[one_of(row, "Label", _CORRECT)]
    return ResponseSelection(context, texts, correct, identifier)


def _utterances(turn: str) -> list[str]:
    return [text for text in map(str.strip, turn.split("__eou__")) if text]


def _files(pattern: str, read: Callable[..., Records] = json_list, **splits: str) -> tuple[Files, Reading]:
    """Return the files of each split and the function that reads their records."""
    files = split_patterns(pattern, **splits)
    return files, split_files(read, files)


_WOZ_FILES, _WOZ_RECORDS = _files("dstc2_{}_en.json", json_list, **WOZ_SPLITS)
_KETOD_FILES, _KETOD_RECORDS = _files("{}.json")
_FRAMES_RECORDS = out_of_all(json_list, "frames.json", hashed_by("id"))
CORPORA = catalogued(
    {
        "ketod": (_KETOD_FILES, with_split(_KETOD_RECORDS), replace(SGD, domains=_ketod_services)),
        "dstc2_clean": (_WOZ_FILES, with_split(_WOZ_RECORDS), woz_dialogue),
        "sim_r": (*_files("sim-R/{}.json"), partial(simulated_dialogue, domain="restaurant")),
        "sim_gen": (*_files("{}.json"), _generated_dialogue),
        "taskmaster2": (split_patterns(_TM2), _tm2_records, _tm2_dialogue),
        "taskmaster3": (split_patterns(_TM3), taskmaster_records(_TM3), TASKMASTER),
        "bitod": (*_files("en_{}.json", json_members, train="train", dev="valid", test="test"), _bitod_dialogue),
        "frames": (split_patterns("frames.json"), _FRAMES_RECORDS, _FRAMES),
        "metalwoz": (split_patterns(_METALWOZ), _metalwoz_records, _metalwoz_dialogue),
        "msdc": (split_patterns("*_all.tsv"), _msdc_records, _msdc_dialogue),
        "amazonqa": (split_patterns("amazonqa.txt"), _amazon_records, _amazon_dialogue),
        "dialogue_nli": (split_patterns("dialogue_nli_{}.jsonl"), _nli_records, _nli_pair),
        "dstc7_ubuntu": (_DSTC7_FILES, _dstc7_records, _dstc7_selection),
        "ubuntu": (_UBUNTU_FILES, _ubuntu_records, _ubuntu_selection),
    },
    CATALOGUE,
)
