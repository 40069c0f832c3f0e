"""Facts about records of any depth, and of what is broken or cannot be read."""

import json

import pytest
from made_up_corpora import refusal, write
from read_files import read

import hf_dialemb
from hf_dialemb import InputError, load_dialogues
from hf_dialemb.apps.cli import main

TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
CHAT = {"messages": TALK}


def texts(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return [[turn.content for turn in dialogue.turns] for dialogue in load_dialogues(path)]


@pytest.mark.parametrize(
    "value",
    [
        CHAT,
        TALK,
        [CHAT],
        [TALK],
        {"conversations": [CHAT]},
        {"data": {"items": [CHAT]}},
        {"7": CHAT},
        {"7": TALK},
        {"version": {"number": 2}, "my_talks": [CHAT]},
        json.dumps({"a": json.dumps(CHAT)}),
    ],
)
def test_a_conversation_is_found_at_any_depth(tmp_path, value):
    assert texts(tmp_path / "d.json", value) == [["Hi", "Ho"]]


def test_records_of_other_structures_are_read_by_their_own_and_the_rest_is_named(tmp_path):
    lines = [CHAT, {"prompt": "Hi", "completion": "Ho"}, [*TALK], {"chat_messages": []}, CHAT]
    path = tmp_path / "d.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    dialogues, remarks = read(path, tmp_path)
    assert [len(item.turns) for item in dialogues] == [2] * 4
    assert f"{path}:4: left out a record in which nobody says anything" in remarks


def test_records_without_messages_are_rows_of_a_table(tmp_path):
    rows = [
        {"call_id": n, "speaker": who, "text": text}
        for n in (1, 2)
        for who, text in (("user", "Hi"), ("bot", "Ho"))
    ]
    lines = "\n".join(map(json.dumps, rows))
    assert texts(tmp_path / "d.json", rows) == [["Hi", "Ho"]] * 2
    assert texts(tmp_path / "d.jsonl", lines) == [["Hi", "Ho"]] * 2


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('[{"messages": []},]', "broken JSON at column 19"),
        ("[1", "broken JSON at column 3"),
        (b"\xff\xfe\xfa", "broken UTF-8 at byte 0"),
    ],
)
def test_what_is_broken_is_one_sentence(tmp_path, content, sentence):
    assert sentence in refusal(tmp_path / "d.json", content)


@pytest.mark.parametrize(
    "strange", [None, "", 0, [], {}, "x", [None], [[]], {"a": 1}, True, -1.5], ids=repr
)
def test_no_value_of_another_kind_stops_the_reading(tmp_path, strange):
    for name in ("messages", "id", "metadata"):
        record = {"id": "1", **CHAT, "metadata": {}, name: strange}
        assert ["Hi", "Ho"] in texts(tmp_path / "d.json", [CHAT, CHAT, CHAT, CHAT, CHAT, record])


MODEL = "dialogue-static"


def lines_of(good, bad):
    places = [
        f"{colour} {thing}"
        for colour in ("red", "green", "blue", "grey", "white")
        for thing in "abcd"
    ]
    said = [("user", "Where is my {} card?"), ("assistant", "It is in the {} house")]
    records = [
        {
            "id": place,
            "messages": [{"role": role, "content": text.format(place)} for role, text in said],
        }
        for place in places[:good]
    ]
    return "".join(
        f"{json.dumps(line)}\n"
        for line in [
            *records[:1],
            *[{"messages": [{"role": "user", "content": 3}]}] * bad,
            *records[1:],
        ]
    )


@pytest.fixture
def file(tmp_path):
    return write(tmp_path, {"calls.jsonl": lines_of(20, 1)}) / "calls.jsonl"


def test_a_file_is_read_without_what_is_malformed(tmp_path, file):
    dialogues, remarks = read(file, tmp_path)
    assert len(dialogues) == 20
    assert (
        f"{file}: left out 1 of 21, which cannot be read:\n  {file}:2: messages[0]: field content: "
        "got 3" in remarks
    )
    with pytest.raises(InputError, match=r"calls\.jsonl:2: messages\[0\]: field content: got 3"):
        load_dialogues(file, strict=True)


@pytest.mark.parametrize(
    "words",
    [
        ["topics", "FILE", "--model", MODEL, "--topics", "1", "--output", "OUT"],
        ["flow", "FILE", "--model", MODEL, "--clusters", "1", "--output", "OUT"],
        ["embed", "FILE", "--model", MODEL, "--output", "OUT.parquet"],
        ["search", "FILE", "--model", MODEL, "--query", "card", "--output", "OUT"],
        ["index", "FILE", "--model", MODEL, "--output", "OUT.lance"],
        [
            "evaluate",
            "FILE",
            "--model",
            "tfidf",
            "--task",
            "next-utterance-retrieval",
            "--seeds",
            "1",
            "--output",
            "OUT",
        ],
        ["corpus", "convert", "FILE", "--output", "OUT.jsonl"],
    ],
    ids=lambda words: words[0],
)
def test_every_command_leaves_out_what_is_malformed_unless_strict(tmp_path, file, words, caplog):
    def done(output, *more):
        filled = (
            word.replace("FILE", str(file)).replace("OUT", str(tmp_path / output)) for word in words
        )
        return main([*filled, *more])

    assert done("strict", "--strict") == 2
    assert not list(tmp_path.glob("strict*"))
    assert done("lenient") == 0
    assert caplog.text.count("left out 1 of 21, which cannot be read") == 1
    file.write_text(lines_of(7, 2))
    assert done("none") == 2
    assert not list(tmp_path.glob("none*"))


@pytest.mark.parametrize(("good", "bad"), [(1, 1), (8, 2), (0, 1), (7, 2), (0, 3)])
def test_more_than_a_fifth_stops_with_reason_counts_and_form(tmp_path, good, bad):
    path = write(tmp_path, {"calls.jsonl": lines_of(good, bad)}) / "calls.jsonl"
    if good and (bad == 1 or 4 * bad <= good):
        assert len(load_dialogues(path)) == good
        return
    with pytest.raises(InputError, match="field content: got 3") as refused:
        load_dialogues(path)
    assert good + bad == 1 or f"{path}: {bad} of {good + bad} cannot be read" in str(refused.value)


def test_functions_take_the_options_of_load_dialogues(tmp_path):
    rows = "".join(f"{number},Zoe,Where is my card?\n{number},Ann,Here\n" for number in range(6))
    path = write(tmp_path, {"d.csv": "call,who,words\n" + rows}) / "d.csv"
    how = {"columns": "id=call,role=who,content=words", "roles": "Zoe=user,Ann=assistant"}
    assert hf_dialemb.find_topics(path, MODEL, topics=1, **how).by_size[0].size == 6
    assert hf_dialemb.search(MODEL, path, "card", top=1, **how)[0].id in "012345"
    assert hf_dialemb.extract_flow(path, MODEL, clusters=1, **how).flow.clusters
