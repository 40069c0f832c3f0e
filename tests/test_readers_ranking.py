"""Facts about the readers of responses to choose from, retrieval queries and pairs of sentences, on small files."""

import json
import os
from collections import Counter

import pytest

from hf_dialemb.corpora import get_corpus, load_dialogues, load_examples
from hf_dialemb.models.errors import InputError


def write(folder, files):
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def said(selection):
    return [(turn.role, turn.content) for turn in selection.context]


@pytest.mark.parametrize("name", ["ubuntu", "ecommerce_sts"])
def test_what_holds_no_dialogues_is_not_read_as_such(name, tmp_path):
    with pytest.raises(InputError, match=r"holds (response-selection|sentence-pairs), expected dialogues"):
        load_dialogues(name, tmp_path)


def ubuntu(folder, *rows):
    write(folder / "ubuntu", {"train.csv": "\n".join(["Context,Utterance,Label", *rows, ""])})
    return load_examples("ubuntu", folder)


def test_ubuntu_speakers_change_at_the_end_of_a_turn_even_an_empty_one(tmp_path):
    (selection,) = ubuntu(
        tmp_path, "a __eou__ b __eou__ __eot__ __eou__ __eot__ c __eou__ __eot__,d __eou__ e __eou__,1"
    )
    assert said(selection) == [("user", "a"), ("user", "b"), ("user", "c")]
    assert selection.responses == ("d e",)


def test_ubuntu_labels(tmp_path):
    selections = ubuntu(tmp_path, "a,b,1", "a,b,0", "a,b,1.0", "a,b,0.0")
    assert [selection.correct for selection in selections] == [(0,), (), (0,), ()]
    assert [selection.id for selection in selections] == ["train/0", "train/1", "train/2", "train/3"]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("a,b,2", "field Label: got '2', expected 1 or 1.0 or 0 or 0.0"),
        ("a,b", "field Label: got nothing"),
        ("a,b,1,1", "got more cells than columns"),
        (" __eou__ __eot__,b,1", "field context: got no turn"),
        ("a, __eou__ ,1", "field responses: got ''"),
    ],
)
def test_ubuntu_malformed_row(tmp_path, row, expected):
    with pytest.raises(InputError) as raised:
        ubuntu(tmp_path, "a,b,1", row)
    assert str(raised.value).startswith(f"{tmp_path}/ubuntu/train.csv:3: {expected}")


def test_ubuntu_test_needs_all_ten_answers(tmp_path):
    columns = ["Context", "Ground Truth Utterance", *(f"Distractor_{number}" for number in range(8))]
    write(tmp_path / "ubuntu", {"test.csv": ",".join(columns) + "\n" + ",".join("abcdefghij") + "\n"})
    with pytest.raises(InputError, match="column Distractor_8 is missing"):
        load_examples("ubuntu", tmp_path, "test")


def option(identifier):
    return {"candidate-id": identifier, "utterance": f"say {identifier}"}


def dstc7(folder, split, answers="", **changes):
    record = {
        "example-id": 7,
        "messages-so-far": [{"speaker": "participant_2", "utterance": "hi"}],
        "options-for-correct-answers": [option("B")],
        "options-for-next": [option("A"), option("B")],
    }
    changed = {key: value for key, value in {**record, **changes}.items() if value is not ...}
    files = {f"ubuntu_{split}_subtask_1.json": [changed], "ubuntu_responses_subtask_1.tsv": answers}
    write(folder / "dstc7_ubuntu", files)
    (selection,) = load_examples("dstc7_ubuntu", folder, split)
    return selection


def test_dstc7_correct_answers_are_found_by_their_ids(tmp_path):
    selection = dstc7(tmp_path, "dev")
    assert (selection.id, selection.correct, said(selection)) == ("dev/7", (1,), [("assistant", "hi")])
    assert dstc7(tmp_path, "dev", **{"options-for-correct-answers": []}).correct == ()


def test_dstc7_answers_of_test_come_from_a_file_of_their_own(tmp_path):
    absent = {"options-for-correct-answers": ...}
    assert dstc7(tmp_path, "test", "6\tA\tno\n7\tB,A\tyes\n", **absent).correct == (1, 0)
    assert dstc7(tmp_path, "test").correct == (1,)
    with pytest.raises(InputError, match=r"field example-id: got 7, which ubuntu_responses_subtask_1\.tsv lacks"):
        dstc7(tmp_path, "test", "6\tA\tno\n", **absent)
    with pytest.raises(InputError, match=r"ubuntu_responses_subtask_1\.tsv:1: got one cell"):
        dstc7(tmp_path, "test", "7 A yes\n", **absent)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("options-for-correct-answers", ..., "field options-for-correct-answers: got nothing"),
        ("options-for-correct-answers", [option("C")], "a correct answer is not among the candidates"),
        ("options-for-next", [option("B"), {}], "options-for-next[1]: field candidate-id: got nothing"),
        ("messages-so-far", [{"speaker": "bot", "utterance": "x"}], "messages-so-far[0]: field speaker: got 'bot'"),
        ("messages-so-far", [], "field context: got no turn"),
        ("example-id", "7", "field example-id: got str, expected int"),
    ],
)
def test_dstc7_malformed_record(tmp_path, field, value, expected):
    with pytest.raises(InputError) as raised:
        dstc7(tmp_path, "train", **{field: value})
    assert str(raised.value).startswith(f"{tmp_path}/dstc7_ubuntu/ubuntu_train_subtask_1.json: record 0: {expected}")


def ecommerce(folder, *lines):
    write(folder / "edc", {"ECD_sample/train": "".join(line.replace(" ", "\t") + "\n" for line in lines)})
    return load_examples("ecommerce", folder)


def test_ecommerce_lines_of_one_context_are_one_example_of_at_most_ten(tmp_path):
    one, more, rest = ecommerce(tmp_path, "1 a b", *("0 a c b" for _ in range(10)), "1 a c d")
    assert said(one) == [("user", "a")]
    assert (one.responses, one.correct) == (("b",), (0,))
    assert said(more) == [("user", "a"), ("assistant", "c")]
    assert (more.responses, more.correct) == (("b",) * 10, ())
    assert (rest.responses, rest.correct, rest.id) == (("d",), (0,), "train/2")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("1 b", "lines[0]: got 2 cells, expected a label, utterances and an answer"),
        ("2 a b", "lines[0]: field label: got '2', expected 0 or 1"),
        ("1 a ", "field responses: got ''"),
        ("1  b", "field content: got ''"),
    ],
)
def test_ecommerce_malformed_line(tmp_path, line, expected):
    with pytest.raises(InputError) as raised:
        ecommerce(tmp_path, "1 x y", line)
    assert str(raised.value).startswith(f"{tmp_path}/edc/ECD_sample/train:2: {expected}")


def retrieval(folder, *lines):
    write(folder / "jddc", {"dev/select.txt": "".join("\t".join(line) + "\n" for line in lines)})
    return load_examples("jddc_retrieval", folder, "dev")


def test_retrieval_resolves_ids_before_and_after_a_line(tmp_path):
    first, second, third = retrieval(
        tmp_path,
        ("0", "a", "t", "2,2,1", "1"),
        ("9", "b", "", "0", "2"),
        ("2", "c", "", "0", "2,9"),
        ("1", "d", "", "0", "9"),
    )[:3]
    assert (first.text, first.relevant, first.other, first.label) == ("a", ("c", "d"), ("d",), "t")
    assert (second.relevant, second.id) == (("a",), "dev/9")
    assert third.other == ("c", "b")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (("1", "b", "", "0", "3"), "field other: got '3', expected the id of a line"),
        (("1", "b", "", "", "0"), "field relevant: got no candidate"),
        (("1", " ", "", "0", "0"), "field text: got ' '"),
        (("1", "b", "0", "0"), "got 4 cells, expected 5"),
        (("0", "b", "", "0", "0"), "field id: got 'dev/0', which an earlier record has too"),
    ],
)
def test_retrieval_malformed_line(tmp_path, line, expected):
    with pytest.raises(InputError) as raised:
        retrieval(tmp_path, ("0", "a", "", "0", "0"), line)
    assert str(raised.value).startswith(f"{tmp_path}/jddc/dev/select.txt:2: {expected}")


@pytest.mark.parametrize("score", ["", "high", "nan", "inf"])
def test_sts_score_that_is_no_number(tmp_path, score):
    write(tmp_path / "jddc", {"dev/sts.txt": f"2.5\ta\tb\n{score}\ta\tb\n"})
    with pytest.raises(InputError, match=rf"sts\.txt:2: field score: got '{score}', expected a number"):
        load_examples("jddc_sts", tmp_path, "dev")
    (pair,) = load_examples("jddc_sts", tmp_path, "dev", skip_invalid=True)
    assert (pair.first, pair.second, pair.score, pair.id) == ("a", "b", 2.5, "dev/0")


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("lines", [False, True])
def test_dialogue_nli_as_a_list_and_as_lines(tmp_path, lines, mark):
    pairs = [{"sentence1": "i sing .", "sentence2": f"i am {n} .", "label": "neutral"} for n in range(3)]
    content = mark + ("\n".join(map(json.dumps, pairs)) if lines else json.dumps(pairs, indent=1))
    write(tmp_path / "dialogue_nli", {"dialogue_nli_test.jsonl": content})
    read = load_examples("dialogue_nli", tmp_path, "test")
    assert [(pair.second, pair.label, pair.id) for pair in read] == [
        (f"i am {n} .", "neutral", f"test/{n}") for n in range(3)
    ]


real = pytest.mark.skipif("HF_DIALEMB_DATA" not in os.environ, reason="HF_DIALEMB_DATA does not name the corpora")


def load(name, *splits):
    items = [load_examples(name, None, split) for split in splits or get_corpus(name).splits]
    identifiers = [item.id for split in items for item in split]
    assert len(set(identifiers)) == len(identifiers)
    return items


@real
def test_ecommerce_sample():
    train, dev, test = load("ecommerce")
    # Published are lines, 154, 154 and 1,000: one for each answer.
    assert [len(split) for split in (train, dev, test)] == [77, 77, 100]
    assert [sum(len(item.responses) for item in split) for split in (train, dev, test)] == [154, 154, 1_000]
    assert all(len(item.correct) == 1 for split in (train, dev, test) for item in split)
    assert {len(item.responses) for item in test} == {10}
    assert [item.context for item in train] == [item.context for item in dev]


@real
def test_sts_of_dialogue_cse():
    (ecommerce,) = load("ecommerce_sts", "dev")
    assert Counter(pair.score for pair in ecommerce) == {1: 115, 2: 50, 3: 74, 4: 79, 5: 182}
    dev, test = load("jddc_sts")
    assert Counter(pair.score for pair in dev) == {1: 210, 2: 99, 3: 125, 4: 176, 5: 390}
    assert Counter(pair.score for pair in test) == {1: 410, 2: 195, 3: 277, 4: 302, 5: 816}


@real
def test_retrieval_of_dialogue_cse():
    (ecommerce,) = load("ecommerce_retrieval", "dev")
    assert len(ecommerce) == 2_373
    assert {(len(query.relevant), len(query.other), query.label) for query in ecommerce} == {(30, 40, "")}
    dev, test = load("jddc_retrieval")
    assert (len(dev), len(test)) == (2_094, 6_970)
    assert [len({query.label for query in split}) for split in (dev, test)] == [51, 123]
