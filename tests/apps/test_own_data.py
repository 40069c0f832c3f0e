"""Facts about your own conversations in tables and transcripts, who speaks in them, and what holds
for every form."""

import csv
import gzip
import io
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_corpora import read_file, refusal, write
from talks import dialogue

from hf_dialemb.apps.files.check import check
from hf_dialemb.apps.files.reading import FORMS, read_path
from hf_dialemb.apps.files.roles import WELL_KNOWN, RoleMap
from hf_dialemb.apps.files.row_groups import MISSING
from hf_dialemb.data import write_jsonl
from hf_dialemb.data.corpus_names import form_of, is_own
from hf_dialemb.dialogue import ROLES, Dialogue, Turn
from hf_dialemb.errors import InputError

TWO = [
    Dialogue(
        (Turn("user", 'A "room", please\nfor two'), Turn("assistant", "Which day?\t")),
        "a",
        ("hotel", "taxi"),
    ),
    Dialogue((Turn("assistant", "你好"), Turn("user", " Hi "), Turn("speaker_3", "Me too")), "b"),
]


def table(dialogues, delimiter=","):
    text = io.StringIO(newline="")
    rows = csv.writer(text, delimiter=delimiter)
    rows.writerow(["id", "role", "content", "domain"])
    for item in dialogues:
        rows.writerows(
            [item.id, turn.role, turn.content, "|".join(item.domains)] for turn in item.turns
        )
    return text.getvalue().encode()


@pytest.mark.parametrize("name", ["d.csv", "d.csv.gz", "D.CSV", "d.tsv", "d.tsv.gz"])
def test_tables_round_trip(tmp_path, name):
    content = table(TWO, "\t" if ".tsv" in name else ",")
    for start in (b"", b"\xef\xbb\xbf"):
        assert read_file(tmp_path / name, start + content) == TWO


# NUL is no text for csv before Python 3.11; a cell keeps line ends as they are. A cell of a missing
# value is no text.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)
texts = texts.filter(lambda text: text.strip() not in {"", *MISSING})
turns = st.lists(st.builds(Turn, st.sampled_from(ROLES), texts), min_size=1, max_size=4).map(tuple)


@pytest.mark.slow
@given(conversations=st.lists(turns, min_size=1, max_size=4), delimiter=st.sampled_from(",\t"))
@settings(max_examples=60, deadline=None)
def test_any_text_survives_a_table_and_json_lines(tmp_path_factory, conversations, delimiter):
    dialogues = [Dialogue(turns, str(index)) for index, turns in enumerate(conversations)]
    folder = tmp_path_factory.mktemp("any")
    assert (
        read_file(folder / ("d.csv" if delimiter == "," else "d.tsv"), table(dialogues, delimiter))
        == dialogues
    )
    write_jsonl(dialogues, folder / "d.jsonl")
    assert list(read_path(folder / "d.jsonl")) == dialogues


def test_columns_by_name_by_number_and_by_usual_names_beside_others(tmp_path):
    body = "7,Agent,Hello,taxi\n7,Client,Hi,taxi\n"
    expected = dialogue("Hello", "Hi", id="7", domains=("taxi",), roles=("assistant", "user"))
    for head, columns in (
        ("Session ID,SPEAKER,utterance,Topic\n", None),
        ("call,who,what,why\n", "id=call, role=who,content=what,domain=why"),
        ("call,who,text,label\n", "id=call,role=who"),
        ("", "id=1,role=2,content=3,domain=4"),
    ):
        assert read_file(tmp_path / "d.csv", head + body, columns=columns) == [expected]
    dial2vec = "s1\t1\tA room\thotel\ns1\t0\tWhere?\thotel\n"  # its raw files
    read = read_file(tmp_path / "d.tsv", dial2vec, columns="id=1,role=2,content=3,domain=4")
    assert read == [dialogue("A room", "Where?", id="s1", domains=("hotel",))]
    content = (
        "id,role,content,domain,dialogue_act\n1,user,Hi,taxi | bus,greet|ask\n1,user,Ho,bus|,\n"
    )
    (result,) = read_file(tmp_path / "d.csv", content)
    assert result.domains == ("taxi", "bus")
    assert [turn.dialogue_acts for turn in result.turns] == [("greet", "ask"), ()]
    rows = ["time,id,role,content,mood", "", "3,1,user,Hi,good", ",,,,", "4,1,bot,Ho,"]
    for end in ("\n", "\r\n", "\r"):
        assert read_file(tmp_path / "d.csv", end.join(rows)) == [dialogue("Hi", "Ho", id="1")]


def test_speakers_keep_their_own_names(tmp_path):
    rows = "id,role,content,agent_name\n7,customer,Hi,Maria\n7,agent,Hello,Maria\n"
    for name, content, remarks in (
        ("d.csv", rows, ["", "Maria"]),
        ("d.txt", "Customer: Hi\nMaria Lopez: Hello\n", ["", "Maria Lopez"]),
        ("d.jsonl", '{"messages": [{"role": "user", "content": "Hi", "name": "Ann"}]}\n', ["Ann"]),
    ):
        result = read_file(tmp_path / name, content.encode())
        write_jsonl(result, tmp_path / "again.jsonl")
        for dialogues in (result, list(read_path(tmp_path / "again.jsonl"))):
            assert [turn.name for turn in dialogues[0].turns] == remarks
            assert [turn.role for turn in dialogues[0].turns] == ["user", "assistant"][
                : len(remarks)
            ]


def test_malformed_columns_and_roles(tmp_path):
    for option, text, expected in (
        ("columns", "id", "columns: got 'id', expected FIELD=NAME"),
        ("columns", "rule=b", "Unknown field in columns 'rule'. Did you mean 'role'?"),
        ("columns", "id=a,id=b", "columns: got 'id=b', expected FIELD=NAME, each once"),
        ("columns", "id=1,role=2", "or numbers for id, role and content"),
        ("columns", "id=1,role=2,content=4", ":1: Unknown column '4'"),
        ("columns", "id=colour", ":1: Unknown column 'colour'. Did you mean 'color'?"),
        ("roles", "Agent", "roles: got 'Agent', expected NAME=ROLE"),
        ("roles", "Agent=asistant", "Unknown role 'asistant'. Did you mean 'assistant'?"),
        ("roles", "Agent=user,agent=assistant", "roles: got 'agent=assistant', expected NAME=ROLE"),
    ):
        assert expected in refusal(
            tmp_path / "d.csv", "color,role,text\n1,user,Hi\n", **{option: text}
        )
        assert "got columns, which no transcript has" in refusal(
            tmp_path / "d.txt", "", columns="id=a"
        )


def test_a_line_without_a_speaker_goes_on_with_the_turn_before(tmp_path):
    long = "x" * 41 + ": y"
    lines = [
        "\ufeffCaller:  A room ",
        "",
        "   for two",
        ": and",
        "at 10: 30",
        "Agent:",
        "Which day?",
        long,
    ]
    roles, spoken = (
        ("user", "speaker_3", "assistant"),
        ("A room for two : and", "30", f"Which day? {long}"),
    )
    assert read_file(tmp_path / "call.txt", "\r\n".join(lines)) == [
        dialogue(*spoken, id="call", roles=roles)
    ]


def test_a_time_is_no_speaker_and_a_rare_speaker_is_doubted(tmp_path):
    path = tmp_path / "call.txt"
    stamps = (
        "[00:07] AGENT",
        "(1:02:03) CUSTOMER",
        "2024-05-01 10:30:00 AGENT",
        "10:31 CUSTOMER",
        "AGENT",
    )
    content = "\n".join(f"{stamp}: at 10:30" for stamp in stamps)
    spoken = dialogue(*["at 10:30"] * 5, id="call", roles=("assistant", "user"))
    assert read_file(path, content) == [replace(spoken, time="2024-05-01T10:30:00")]
    assert list(check(path)) == []
    path.write_text(f"{content}\nNote: nobody says this", encoding="utf-8")
    guess, doubt = check(path)
    assert (
        "roles: guessed Note: speaker_3; to confirm or change it, say --roles 'Note=speaker_3'"
        in guess.message
    )
    assert (doubt.place, doubt.severity) == (f"{path}:6", "warning")
    assert "'Note', who speaks once beside 2 others" in doubt.message
    # A time within what is said stays.
    spoken = [
        "A train at 10:30 from platform 2: am I late?",
        "We open at 9:00 Note: not today",
        "19:30 then: ok?",
    ]
    content = "\n".join(f"[00:0{n}] Customer: {text}" for n, text in enumerate(spoken))
    assert read_file(path, content) == [dialogue(*spoken, id="call", roles=("user",))]


def test_a_folder_is_read_in_order_and_its_folders_are_labels(tmp_path):
    names = (
        "b.txt",
        "a.b.txt",
        "taxi/z.TXT",
        "taxi/2024/y.txt",
        ".hidden.txt",
        ".git/x.txt",
        "notes.md",
    )
    spoken = (
        Turn("user", "Hi: there"),
        Turn("speaker_3", "at 10:30, see https://example.org"),
        Turn("assistant", "Hm"),
    )
    content = "".join(f"{turn.role}: {turn.content}\n" for turn in spoken)
    folder = write(tmp_path / "calls", dict.fromkeys(names, content))
    expected = [
        Dialogue(spoken, "a.b"),
        Dialogue(spoken, "b"),
        Dialogue(spoken, "taxi/z", ("taxi",)),
    ]
    expected.append(Dialogue(spoken, "taxi/2024/y", ("2024",)))
    assert list(read_path(folder)) == expected
    for first in ("taxi/2024", "taxi/2024/y.txt"):
        assert list(read_path(folder / first)) == [Dialogue(spoken, "y")]
    (folder / "again").symlink_to(folder)
    (folder / "gone.txt").symlink_to(tmp_path / "nowhere")
    assert list(read_path(folder)) == expected


def test_folders_of_other_files_and_of_bad_transcripts(tmp_path, caplog):
    folder = write(tmp_path, {"b.jsonl": ""})
    with pytest.raises(InputError, match=r"left out b\.jsonl, in which nobody says anything"):
        list(read_path(folder))
    (folder / "b.jsonl").unlink()
    write(folder, {"c.txt.gz": "", "c.parquet": "", "d.wav": "", "README.md": ""})
    with pytest.raises(
        InputError, match=r"got no dialogue \(left out .*\), expected \.jsonl, .*\.xlsx files"
    ):
        list(read_path(folder))
    write(folder, {"a.txt": "Agent: Hi\nUser: Ho"})
    assert [item.id for item in read_path(folder)] == ["a"]
    assert f"{folder}/d.wav: left out a file that a folder is not read with (.wav)" in caplog.text
    write(folder, {"0.txt": b"\xff"})
    assert [item.id for item in read_path(folder)] == ["a"]
    (folder / "a.txt").unlink()
    with pytest.raises(InputError, match=r"0\.txt:1: got .* expected 'SPEAKER: text'"):
        list(read_path(folder))


# What is told comes first, then well-known names, then who speaks first.
def test_roles_of_speakers():
    for remarks, names, expected in (
        *(
            ("", ["Alice", "Bob"], "user assistant"),
            ("", ["Agent", "Customer"], "assistant user"),
            ("", [], ""),
        ),
        (
            "",
            ["Alice", "Bob", "Cem", "Dora", "Eve"],
            "user assistant speaker_3 speaker_4 speaker_5",
        ),
        *(("", ["Alice", "Agent"], "user assistant"), ("", [" SYSTEM ", "usr"], "assistant user")),
        *(("", ["0", "1"], "assistant user"), ("", ["Bot", "Agent"], "assistant user")),
        *(
            ("", ["Bot", "Ann", "Visitor"], "assistant assistant user"),
            ("", ["System", "Visitor"], "assistant user"),
        ),
        ("", ["System", "Visitor", "Ann", "Bob"], "ignore user assistant assistant"),
        ("", ["Customer", "Client", "Agent"], "user speaker_3 assistant"),
        ("", ["agent", "AGENT", "Ann"], "assistant assistant user"),
        ("", ["speaker_4", "Alice", "user"], "speaker_4 assistant user"),
        *(
            ("Agent=user", ["agent", "Customer"], "user assistant"),
            ("No=user", ["Alice", "Bob"], "user assistant"),
        ),
        ("Ann=assistant , Bob = ASSISTANT", ["Cem", "Ann", "Bob"], "user assistant assistant"),
        ("Ann = of = York=speaker_5", ["Ann = of = York", "x"], "speaker_5 user"),
        (
            "System=ignore,Ann=user,*=assistant",
            ["System", "Zoe", "Ann", "Bob"],
            "ignore assistant user assistant",
        ),
    ):
        assigned = RoleMap(remarks).assign(names)
        assert " ".join(assigned[name] for name in names) == " ".join(assigned.values()) == expected


@given(st.lists(st.sampled_from([*WELL_KNOWN, *"ABCDEF"]), max_size=5, unique=True))
def test_up_to_five_unknown_speakers_stay_apart(names):
    assigned = RoleMap().assign(names)
    assert list(assigned) == names
    assert set(assigned.values()) <= {*ROLES, "ignore"}
    if not set(names) & {*WELL_KNOWN}:
        assert len(set(assigned.values())) == len(names)


def test_forms_and_files_that_are_not_read_and_what_is_taken_for_a_path(tmp_path):
    for name in ("d.xls", "d.jsonl.bz2", "jsonl"):
        sentence = refusal(tmp_path / name, "x")
        assert all(ending in sentence for ending in FORMS)
    for name in ("none.csv", "none", "a\0b.csv", "~nobody-of-that-name/d.csv"):
        with pytest.raises(InputError, match="cannot be read"):
            read_path(tmp_path / name if name[0] != "~" else name)
    for name in ("nofolder/", "a/b/c"):
        with pytest.raises(
            InputError, match=r"corpus .*: no such file or folder; give one that exists"
        ):
            form_of(name)
    assert all(
        map(is_own, [*(f"any{ending}" for ending in FORMS), tmp_path, "./calls", "/no/such/folder"])
    )
    assert not any(map(is_own, ["multiwoz", "org/name", "org/name:config", ""]))
    content = gzip.compress(table(TWO * 500))
    for damaged in (content[:-9], b"no gzip", content[:60] + b"\0\0" + content[62:]):
        with pytest.raises(InputError, match=r"d\.csv\.gz.*(gzip|damaged|cut off)"):
            list(read_path(write(tmp_path, {"d.csv.gz": damaged}) / "d.csv.gz"))
