"""Facts about conversations as other programs export them: tables, workbooks, JSON, messengers."""

import json
from dataclasses import replace

import pytest
from made_up_corpora import read_file, write

from hf_dialemb import Dialogue, Turn, load_dialogues
from hf_dialemb.apps.cli import main
from hf_dialemb.apps.files.check import check

SAID = (
    Turn("user", "Where is my parcel?"),
    Turn("assistant", "Let me look."),
    Turn("user", "Thanks"),
)


def remarks(path, **options):
    return [problem.message for problem in check(path, **options)]


def spoken(role, content, user, other):
    return [
        {role: who, content: turn.content}
        for who, turn in zip((user, other, user), SAID, strict=True)
    ]


CUSTOMER = "7,Customer,Where is my parcel?\n7,Ann,Let me look.\n7,Customer,Thanks\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("semicolons.csv", "id;role;text\n" + CUSTOMER.replace(",", ";")),
        ("tabs.csv", "id\trole\ttext\n" + CUSTOMER.replace(",", "\t")),
        ("bars.csv", "id|role|text\n" + CUSTOMER.replace(",", "|")),
        ("utf16.csv", ("id,role,text\n" + CUSTOMER).encode("utf-16")),
        ("zendesk.csv", "Ticket ID,Author Type,Body,Created At\n" + CUSTOMER.replace("\n", ",\n")),
        (
            "intercom.csv",
            "conversation_id,author_type,message_body\n" + CUSTOMER.replace("Ann", "admin"),
        ),
        ("whatever.csv", "call_id,sender,transcript\n" + CUSTOMER),
        ("empty.csv", "id,role,text\n7,Customer,\n,Customer,Hm\n7,,Hm\n" + CUSTOMER),
        (
            "later.csv",
            "id,role,text\n8,Customer,Hi\n" + CUSTOMER.replace("7,Ann", "8,Bob,Ho\n7,Ann"),
        ),
        (
            "times.csv",
            "id,role,text,time\n7,Customer,Thanks,2024-05-01 10:09\n7,Ann,Let me "
            "look.,2024-05-01 10:08\n"
            "7,Customer,Where is my parcel?,2024-05-01 9:59\n",
        ),
        (
            "seconds.csv",
            "id,role,text,start\n"
            "7,Customer,Thanks,10.5\n7,Ann,Let me look.,9\n7,Customer,Where is my parcel?,1\n",
        ),
        ("wide.csv", "id,customer,agent\n7,Where is my parcel?,Let me look.\n7,Thanks,\n"),
        (
            "wide.tsv",
            "case_id\tClient message\tAgent message\n7\tWhere is my parcel?\tLet me "
            "look.\n7\tThanks\t\n",
        ),
        (
            "machine.csv",
            "id,role,text\n7,System,Chat started\n" + CUSTOMER + "7,System,Chat ended\n",
        ),
        (
            "openai.json",
            [
                {
                    "id": 7,
                    "messages": [
                        {"role": "system", "content": "Be kind."},
                        {
                            "role": "user",
                            "content": [{"type": "text", "text": "Where is my parcel?"}],
                        },
                        {"role": "assistant", "content": "Let me look."},
                        {"role": "tool", "content": "{}"},
                        {"role": "user", "content": "Thanks"},
                    ],
                }
            ],
        ),
        ("sharegpt.json", [{"id": "7", "conversations": spoken("from", "value", "human", "gpt")}]),
        (
            "chatgpt.json",
            [
                {
                    "conversation_id": "7",
                    "current_node": "d",
                    "mapping": {
                        "b": {
                            "message": {
                                "author": {"role": "user"},
                                "content": {"parts": ["Where is my parcel?"]},
                            }
                        },
                        "x": {
                            "message": {
                                "author": {"role": "assistant"},
                                "content": {"parts": ["No answer"]},
                            },
                            "parent": "b",
                        },
                        "c": {
                            "message": {
                                "author": {"role": "assistant"},
                                "content": {"parts": ["Let me look."]},
                            },
                            "parent": "b",
                        },
                        "d": {
                            "message": {
                                "author": {"role": "user"},
                                "content": {"parts": ["Thanks"]},
                            },
                            "parent": "c",
                        },
                    },
                }
            ],
        ),
        (
            "intercom.json",
            {
                "conversations": [
                    {
                        "id": "7",
                        "source": {
                            "author": {"type": "user"},
                            "body": "<p>Where is my parcel?</p>",
                        },
                        "conversation_parts": {
                            "conversation_parts": [
                                {"author": {"type": "admin"}, "body": "Let me&nbsp;look."},
                                {"author": {"type": "bot"}, "body": None},
                                {"author": {"type": "user"}, "body": "Thanks"},
                            ]
                        },
                    }
                ]
            },
        ),
        (
            "zendesk.json",
            {"id": 7, "requester_id": 1, "comments": spoken("author_id", "plain_body", 1, 2)},
        ),
        (
            "lines.json",
            "\n\n".join(
                json.dumps(
                    {"id": number, "requester_id": 1, "comments": spoken("author_id", "body", 1, 2)}
                )
                for number in (7, 8)
            ),
        ),
        (
            "deepgram.json",
            {
                "id": "7",
                "results": {
                    "utterances": [
                        {"speaker": 0, "transcript": "Where is"},
                        {"speaker": 0, "transcript": "my parcel?"},
                        {"speaker": 1, "transcript": "Let me look."},
                        {"speaker": 0, "transcript": "Thanks"},
                    ]
                },
            },
        ),
        (
            "whisperx.json",
            {"id": "7", "segments": spoken("speaker", "text", "SPEAKER_00", "SPEAKER_01")},
        ),
        (
            "7.txt",
            "[01/05/2024, 10:08:03] Messages are encrypted.\n"
            "[01/05/2024, 10:08:03] Customer: Where is my parcel?\n"
            "[01/05/2024, 10:09:00] Ann: Let me look.\n[01/05/2024, 10:09:07] Customer: Thanks\n",
        ),
    ],
)
def test_an_export_becomes_the_dialogue_that_it_is_of(tmp_path, name, content):
    if not isinstance(content, str | bytes):
        content = json.dumps(content)
    result = read_file(tmp_path / name, content)
    assert Dialogue(SAID, "7") in [replace(dialogue, time="") for dialogue in result]
    times = {"times.csv": "2024-05-01T09:59:00", "7.txt": "2024-05-01T10:08:03"}
    assert {dialogue.time for dialogue in result} == {times.get(name, "")}


def test_what_was_done_is_told_once_with_a_count_and_examples(tmp_path):
    path = tmp_path / "d.csv"
    rows = "".join(
        f"{number},Visitor,Hi\n{number},System,Chat started\n{number},,\n" for number in range(5)
    )
    path.write_text("id,role,text\n" + rows + "0,Ann,Ho\n1,Bob,Ho\n")
    guess, empty = (sentence for sentence in remarks(path) if "got" not in sentence)
    assert guess.startswith(
        "roles: guessed System: ignore; Ann, Bob: assistant; to confirm or change it, say "
    )
    assert guess.endswith(" --roles 'System=ignore,Ann=assistant,Bob=assistant'")
    assert empty.startswith(f"left out a turn without text (5 times, such as {path}:10, ")
    roles = "System=ignore,Visitor=user,*=assistant"
    assert not [sentence for sentence in remarks(path, roles=roles) if "guessed" in sentence]
    result = {item.id: item.roles for item in load_dialogues(str(path), roles=roles)}
    assert result == dict.fromkeys("01", ("user", "assistant")) | dict.fromkeys("234", ("user",))


def test_who_speaks_in_many_conversations_is_the_desk(tmp_path):
    calls = [("Zoe", "Ann"), ("Ann", "Yan"), ("Xi", "Ann"), ("Wu", "Ann"), ("Ann", "Vic")]
    write(
        tmp_path,
        {
            f"{number}.txt": f"{first}: Hi\n{other}: Ho\n"
            for number, (first, other) in enumerate(calls)
        },
    )
    for dialogue, (first, _) in zip(load_dialogues(str(tmp_path)), calls, strict=True):
        assert dialogue.roles[0] == ("assistant" if first == "Ann" else "user")
    assert "Ann=assistant" in " ".join(remarks(tmp_path))


def test_agents_behind_a_bot_have_names_that_come_back(tmp_path):
    path = tmp_path / "d.csv"
    rows = [(n, who) for n in range(12) for who in ("Bot", f"Kim{n}", "Bot", ("Ann", "Ben")[n % 2])]
    path.write_text("id,role,text\n" + "".join(f"{n},{who},Hi\n" for n, who in rows))
    result = load_dialogues(str(path))
    assert {dialogue.roles for dialogue in result} == {("assistant", "user")}
    assert [turn.role for turn in result[0].turns] == [
        "assistant",
        "user",
        "assistant",
        "assistant",
    ]
    words = "Ann=assistant,Ben=assistant,Bot=assistant,*=user"
    assert load_dialogues(str(path), roles=words) == result


def test_a_folder_holds_exports_of_any_form_beside_transcripts(tmp_path):
    lines = json.dumps({"id": "7", "conversations": spoken("from", "value", "human", "gpt")})
    chat = [spoken("role", "content", "user", "assistant")]
    files = {
        "a.csv": "call,who,said\n" + CUSTOMER,
        "cards/b.jsonl": lines,
        "c.json": chat,
        "v.parquet": "vectors",
    }
    folder = write(tmp_path, {**files, "a/7.txt": "Bob: Hi\nCustomer: Ho\n"})
    columns = "id=call,role=who,content=said"
    result = load_dialogues(str(folder), columns=columns)
    assert [dialogue.id for dialogue in result] == ["a/7", "a.csv/7", "", "cards/b.jsonl/7"]
    assert [dialogue.turns for dialogue in result[1:]] == [SAID] * 3
    assert [dialogue.domains for dialogue in result] == [("a",), (), (), ("cards",)]
    write(folder, {"d.csv": "text\nHi\n"})
    assert any(
        problem.place.startswith(f"{folder}/d.csv") for problem in check(folder, columns=columns)
    )
    output = ["--output", str(folder / "c.json")]  # it is read, and is not written over
    assert (
        main(
            ["evaluate", "--model", "tfidf", "--corpus", str(folder), "--columns", columns, *output]
        )
        == 2
    )
