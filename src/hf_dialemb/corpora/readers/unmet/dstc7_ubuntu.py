"""DSTC7 track 1, Ubuntu, subtask 1: chats of two people about Ubuntu, with a hundred answers to choose from.

Layout: ``ubuntu_{train,dev,test}_subtask_1.json``, each a list of examples. The correct answers of test are in
``ubuntu_responses_subtask_1.tsv``: example, ids of candidates, text; those ids are held in memory.

participant_1, who asks, is the user. Candidates keep their order; correct ones are found by their ids.
"""

from ....dialogue import Turn
from ....errors import InputError
from ...corpus import SPLITS, Corpus, Records, Source
from ...examples import ResponseSelection
from ...records import Raw, each_of, field, one_of
from ...source.parsing import json_list, text_lines

_SOURCE, _LICENCE = "https://github.com/IBM/dstc-noesis", "none stated for the data (the repository is MIT)"
_ANSWERS = "ubuntu_responses_subtask_1.tsv"
_FILES: dict[str, tuple[str, ...]] = {split: (f"ubuntu_{split}_subtask_1.json",) for split in SPLITS}
_FILES["test"] += (_ANSWERS,)
_ROLES = {"participant_1": "user", "participant_2": "assistant"}
_INLINE = "options-for-correct-answers"


def _records(source: Source, split: str) -> Records:
    answers: dict[str, list[str]] = {}
    if split == "test":
        for place, line in text_lines(source, _ANSWERS):
            example, tab, rest = line.partition("\t")
            if not tab:
                raise InputError(f"{place}: got one cell, expected an example and the ids of answers; repair the line")
            answers[example] = rest.partition("\t")[0].split(",")
    for place, raw in json_list(source, _FILES[split][0]):
        yield place, (split, raw, answers)


def _selection(split: str, raw: Raw, answers: dict[str, list[str]]) -> ResponseSelection:
    example = str(field(raw, "example-id", int))
    context = each_of(raw, "messages-so-far", _turn)
    candidates = each_of(
        raw, "options-for-next", lambda each: (field(each, "candidate-id", str), field(each, "utterance", str))
    )
    if _INLINE in raw or split != "test":
        found = each_of(raw, _INLINE, lambda answer: field(answer, "candidate-id", str))
    elif example in answers:
        found = tuple(answers[example])
    else:
        raise InputError(f"field example-id: got {example}, which {_ANSWERS} lacks; complete that file")
    positions = {identifier: index for index, (identifier, _) in enumerate(candidates)}
    if not set(found) <= set(positions):
        raise InputError("a correct answer is not among the candidates, expected its id there; repair the record")
    correct = tuple(positions[identifier] for identifier in found)
    return ResponseSelection(context, tuple(text for _, text in candidates), correct, f"{split}/{example}")


def _turn(raw: Raw) -> Turn:
    return Turn(_ROLES[one_of(raw, "speaker", _ROLES)], field(raw, "utterance", str))


_READING = (_FILES, _records, _selection)
CORPORA = (Corpus("dstc7_ubuntu", *_READING, _SOURCE, _LICENCE, "research", kind="response-selection", real=False),)
