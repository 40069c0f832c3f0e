"""Readers of the papers' corpora that were tested only on records made by hand, and never on the
real files.

The catalogue marks their corpora with ``"real": false``.
"""

from ....data.corpus import Records, Source, catalogued
from ....data.examples import ResponseSelection, SentencePair
from ....data.parsing import (
    json_lines,
    json_list,
    json_members,
    numbered,
    split_files,
    table_rows,
    text_lines,
)
from ....data.raw_records import (
    Raw,
    convert_each,
    distinct,
    each_of,
    field,
    flattened,
    hashed_split,
    names,
    one_of,
)
from ....data.readers.shapes import Labels, TurnList, alternating, cells, only, split_patterns
from ....dialogue import Dialogue, Turn
from ....errors import InputError
from .. import CATALOGUE

# BiTOD, tourists in Hong Kong and a wizard: queries of the knowledge base are left out, and the
# domains are those of the active intents, without "chat".


def bitod_labels(turn: Raw) -> Labels:
    """Return the acts, slots and intents of an event.

    The act "inform_intent" counts as an intent.
    """
    acts, slots, intents = [], [], []
    for action in field(turn, "Actions", list):
        act, slot, values = (
            field(action, "act", str),
            field(action, "slot", str),
            field(action, "value", list),
        )
        value = str(values[0]) if values else ""
        if slot != "intent":
            acts.append(act)
            slots += [(slot.lower(), value)] if slot else []
        elif act == "inform_intent" and value:
            intents.append(value.replace("_en_US", "").removesuffix("_en"))
    return distinct(acts), tuple(dict.fromkeys(slots)), tuple(dict.fromkeys(intents))


def bitod_domain(intent: str) -> tuple[str, ...]:
    """Return the domain that an intent such as ``"restaurants_search"`` begins with.

    None for "chat".
    """
    domain = intent.partition("_")[0]
    return () if domain in ("", "chat") else (domain,)


def _bitod_domains(record: Raw) -> tuple[str, ...]:
    intents = (
        field(event, "active_intent", str) for event in record["Events"] if "active_intent" in event
    )
    return tuple(dict.fromkeys(flattened(map(bitod_domain, intents))))


def _bitod_is_spoken(event: Raw) -> bool:
    return (
        one_of(event, "Agent", ("User", "Wizard", "KnowledgeBase")) != "KnowledgeBase"
        and "Text" in event
    )


def _bitod_dialogue(identifier: str, record: Raw) -> Dialogue:
    return Dialogue(_BITOD.spoken(record), identifier, _bitod_domains(record))


_BITOD_FILES = split_patterns("en_{}.json", train="train", dev="valid", test="test")
_BITOD_ROLES = {"User": "user", "Wizard": "assistant"}
_BITOD = TurnList(
    "Events", "Agent", "Text", _BITOD_ROLES, labels=bitod_labels, is_spoken=_bitod_is_spoken
)


# MetaLWOZ, 47 domains: ``dialogues/<DOMAIN>.txt``. Files with lower-case names hold MultiWOZ's
# dialogues and are not read. Those of ``dstc8_metalwoz_heldout``, where present, belong to test;
# the ids of the others decide their split.

_METALWOZ = "dialogues/[A-Z]*.txt"


def _metalwoz_records(source: Source, split: str) -> Records:
    for place, record in json_lines(source, _METALWOZ):
        identifier = str(record.get("id")) if isinstance(record, dict) else ""
        if split == ("test" if "dstc8_metalwoz_heldout/" in place else hashed_split(identifier)):
            yield place, record


def _metalwoz_dialogue(record: Raw) -> Dialogue:
    turns = convert_each(
        alternating("Hello how may I help you?", names(record, "turns")), "turns", Turn
    )
    return Dialogue(turns, field(record, "id", str), only("domain")(record))


# AmazonQA, a question, a tab and its answer per line; ParlAI writes ``text:`` and ``labels:``
# before them.


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


# Dialogue NLI, pairs of sentences from chats: ``dialogue_nli_{train,dev,test}.jsonl``, which are
# JSON lists in spite of their name; an object per line is read as well.


@numbered
def _nli_records(source: Source, split: str) -> Records:
    pattern = f"dialogue_nli_{split}.jsonl"
    starts = [
        stream.peek(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        for _, stream in source.files(pattern)
    ]
    return (json_list if starts == [b"["] else json_lines)(source, pattern)


def _nli_pair(identifier: str, record: Raw) -> SentencePair:
    first, second, label = (
        field(record, name, str) for name in ("sentence1", "sentence2", "label")
    )
    return SentencePair(first, second, label=label, id=identifier)


# DSTC7 track 1, Ubuntu, subtask 1: ``ubuntu_{train,dev,test}_subtask_1.json``. The correct answers
# of test are in ``ubuntu_responses_subtask_1.tsv``: example, ids of candidates, text.
# participant_1, who asks, is the user.

_DSTC7_ANSWERS = "ubuntu_responses_subtask_1.tsv"
_DSTC7_FILES = split_patterns("ubuntu_{}_subtask_1.json")
_DSTC7_FILES["test"] += (_DSTC7_ANSWERS,)
_DSTC7_TURNS = TurnList(
    "messages-so-far",
    "speaker",
    "utterance",
    {"participant_1": "user", "participant_2": "assistant"},
)


def _dstc7_records(source: Source, split: str) -> Records:
    lines = text_lines(source, _DSTC7_ANSWERS) if split == "test" else ()
    answers = {
        example: ids.split(",")
        for _, line in lines
        for example, ids, *_ in [(line + "\t").split("\t")]
    }
    for place, record in json_list(source, _DSTC7_FILES[split][0]):
        yield place, (split, record, answers)


def _dstc7_selection(split: str, record: Raw, answers: dict[str, list[str]]) -> ResponseSelection:
    example, answers_field = str(field(record, "example-id", int)), "options-for-correct-answers"
    candidates = field(record, "options-for-next", list)
    ids = [field(candidate, "candidate-id", str) for candidate in candidates]
    if answers_field in record or split != "test":
        correct = each_of(record, answers_field, lambda answer: field(answer, "candidate-id", str))
    else:
        correct = tuple(answers.get(example, ()))
    if not set(correct) <= set(ids) or (split == "test" and not correct):
        raise InputError(
            "a correct answer is not among the candidates, expected its id there; repair the record"
        )
    texts = tuple(field(candidate, "utterance", str) for candidate in candidates)
    return ResponseSelection(
        _DSTC7_TURNS.spoken(record), texts, tuple(map(ids.index, correct)), f"{split}/{example}"
    )


# Ubuntu Dialogue Corpus 2.0: ``train.csv`` with the columns Context, Utterance and Label (1: it
# followed), ``valid.csv`` and ``test.csv`` with Context, Ground Truth Utterance and Distractor_0 to
# Distractor_8. ``__eou__`` ends an utterance and ``__eot__`` a turn; the first speaker is the user.
# Each utterance of the context is a turn; those of a response are joined.

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


CORPORA = catalogued(
    {
        "bitod": (_BITOD_FILES, split_files(json_members, _BITOD_FILES), _bitod_dialogue),
        "metalwoz": (split_patterns(_METALWOZ), _metalwoz_records, _metalwoz_dialogue),
        "amazonqa": (split_patterns("amazonqa.txt"), _amazon_records, _amazon_dialogue),
        "dialogue_nli": (split_patterns("dialogue_nli_{}.jsonl"), _nli_records, _nli_pair),
        "dstc7_ubuntu": (_DSTC7_FILES, _dstc7_records, _dstc7_selection),
        "ubuntu": (_UBUNTU_FILES, _ubuntu_records, _ubuntu_selection),
    },
    CATALOGUE,
)
