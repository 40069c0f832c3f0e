"""Facts about your own conversations: tables, transcripts, parquet and JSON lines become the same dialogues."""

import csv
import gzip
import io
import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_dialemb.cli import main
from hf_dialemb.corpora import form_of, iterate_dialogues, load_dialogues, write_jsonl
from hf_dialemb.corpora.own.check import check
from hf_dialemb.corpora.own.hub_dataset import to_dataset
from hf_dialemb.corpora.own.reading import ENDINGS, is_own, read_own
from hf_dialemb.models.dialogue import ROLES, Dialogue, Turn
from hf_dialemb.models.errors import InputError

TWO = [
    Dialogue((Turn("user", 'A "room", please\nfor two'), Turn("assistant", "Which day?\t")), "a", ("hotel", "taxi")),
    Dialogue((Turn("assistant", "你好"), Turn("user", " Hi "), Turn("speaker_3", "Me too")), "b"),
]
HEADER = ["id", "role", "content", "domain"]


def rows_of(dialogues):
    for dialogue in dialogues:
        for turn in dialogue.turns:
            yield [dialogue.id, turn.role, turn.content, "|".join(dialogue.domains)]


def table(rows, delimiter=","):
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue().encode()


def read(path, content, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return list(read_own(path, **options))


def refusal(path, content, **options):
    with pytest.raises(InputError) as raised:
        read(path, content, **options)
    return str(raised.value).removeprefix(str(path))


# Round trips


@pytest.mark.parametrize("name", ["d.csv", "d.csv.gz", "D.CSV", "d.tsv", "d.tsv.gz"])
def test_tables_round_trip(tmp_path, name):
    content = table([HEADER, *rows_of(TWO)], "\t" if ".tsv" in name else ",")
    for start in (b"", b"\xef\xbb\xbf"):
        assert read(tmp_path / name, start + content) == TWO


@pytest.mark.parametrize("name", ["d.jsonl", "d.jsonl.gz"])
def test_json_lines_round_trip(tmp_path, name):
    assert write_jsonl(TWO, tmp_path / name) == 2
    assert list(read_own(tmp_path / name)) == TWO == load_dialogues(str(tmp_path / name))


def test_packed_json_lines_are_the_same_bytes_every_time(tmp_path):
    for name in ("1.jsonl.gz", "2.jsonl.gz"):
        write_jsonl(TWO, tmp_path / name)
    assert (tmp_path / "1.jsonl.gz").read_bytes() == (tmp_path / "2.jsonl.gz").read_bytes()
    write_jsonl(TWO, tmp_path / "d.jsonl")
    assert gzip.decompress((tmp_path / "1.jsonl.gz").read_bytes()) == (tmp_path / "d.jsonl").read_bytes()


def test_parquet_round_trip_keeps_everything(tmp_path, sample_dialogues):
    path = tmp_path / "d.parquet"
    to_dataset(sample_dialogues[:7]).to_parquet(path)
    assert list(read_own(path)) == sample_dialogues[:7]


def test_transcripts_round_trip(tmp_path):
    dialogues = [
        Dialogue((Turn("user", "Hi: there"), Turn("assistant", "at 10:30, see https://example.org")), "one"),
        Dialogue((Turn("speaker_3", "Hm"), Turn("user", "Yes")), "taxi/two", ("taxi",)),
    ]
    for dialogue in dialogues:
        file = tmp_path / f"{dialogue.id}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(f"{turn.role}: {turn.content}\n" for turn in dialogue.turns))
    assert list(read_own(tmp_path)) == dialogues
    assert list(read_own(tmp_path / "taxi")) == [Dialogue(dialogues[1].turns, "two")]
    assert list(read_own(tmp_path / "taxi/two.txt")) == [Dialogue(dialogues[1].turns, "two")]


# NUL is no text for csv before Python 3.11; a cell keeps line ends as they are.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(str.strip)
turns = st.lists(st.builds(Turn, st.sampled_from(ROLES), texts), min_size=1, max_size=4).map(tuple)


@pytest.mark.slow
@given(conversations=st.lists(turns, min_size=1, max_size=4), delimiter=st.sampled_from(",\t"))
@settings(max_examples=60, deadline=None)
def test_any_text_survives_a_table_and_json_lines(tmp_path_factory, conversations, delimiter):
    dialogues = [Dialogue(turns, str(index)) for index, turns in enumerate(conversations)]
    folder = tmp_path_factory.mktemp("any")
    name = folder / ("d.csv" if delimiter == "," else "d.tsv")
    assert read(name, table([HEADER, *rows_of(dialogues)], delimiter)) == dialogues
    write_jsonl(dialogues, folder / "d.jsonl")
    assert list(read_own(folder / "d.jsonl")) == dialogues


# Tables


def test_columns_by_name_by_number_and_by_usual_names(tmp_path):
    body = "7,Agent,Hello,taxi\n7,Client,Hi,taxi\n"
    expected = [Dialogue((Turn("assistant", "Hello"), Turn("user", "Hi")), "7", ("taxi",))]
    path = tmp_path / "d.csv"
    assert read(path, f"Session ID,SPEAKER,utterance,Topic\n{body}") == expected
    assert read(path, f"call,who,what,why\n{body}", columns="id=call, role=who,content=what,domain=why") == expected
    assert read(path, f"call,who,text,label\n{body}", columns="id=call,role=who") == expected
    assert read(path, body, columns="id=1,role=2,content=3,domain=4") == expected
    assert read(path, body, columns="content=3,role=2,id=1") == [Dialogue(expected[0].turns, "7")]


def test_raw_files_of_dial2vec(tmp_path):
    content = "s1\t1\tA room\thotel\ns1\t0\tWhere?\thotel\ns2\t0\tHello\ttaxi\n"
    assert read(tmp_path / "d.tsv", content, columns="id=1,role=2,content=3,domain=4") == [
        Dialogue((Turn("user", "A room"), Turn("assistant", "Where?")), "s1", ("hotel",)),
        Dialogue((Turn("assistant", "Hello"),), "s2", ("taxi",)),
    ]


def test_labels_and_acts_in_cells(tmp_path):
    content = "id,role,content,domain,dialogue_act\n1,user,Hi,taxi | bus,greet|ask\n1,user,Ho,bus|,\n"
    (dialogue,) = read(tmp_path / "d.csv", content)
    assert dialogue.domains == ("taxi", "bus")
    assert [turn.dialogue_acts for turn in dialogue.turns] == [("greet", "ask"), ()]


def test_other_columns_blank_rows_and_any_line_ends(tmp_path):
    rows = ["time,id,role,content,mood", "", "3,1,user,Hi,good", ",,,,", "4,1,bot,Ho,"]
    expected = [Dialogue((Turn("user", "Hi"), Turn("assistant", "Ho")), "1")]
    for end in ("\n", "\r\n", "\r"):
        assert read(tmp_path / "d.csv", end.join(rows)) == expected


def test_a_table_is_read_one_dialogue_at_a_time(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("id,role,content\n1,user,Hi\n2,user,Ho\n2,user,\n")
    reader = read_own(path)
    assert isinstance(reader, Iterator)
    assert next(reader).id == "1"
    with pytest.raises(InputError):
        next(reader)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("1,user,Hi\n", ":1: got no column for id (found: 1, user, Hi); say which with --columns"),
        ("id,session_id,role,text\n", ":1: got several columns for id (id, session_id), expected one"),
        ("id,role,text,text\n", ":1: got several columns for content (text, text), expected one"),
        ("id,role,text,topic,label\n", ":1: got several columns for domain (topic, label), expected one"),
        ("id,role,text\n1,user,\n", ":2: field content: got '', expected text; remove the row"),
        ("id,role,text\n1, ,Hi\n", ":2: field role: got ' ', expected a speaker"),
        ("id,role,text\n,user,Hi\n", ":2: field id: got '', expected an id in every row"),
        ("id,role,text\n1,user,Hi, you\n", ":2: got 4 cell(s), expected 3 as in the first row"),
        ("id,role,text\n1,user\n", ":2: got 2 cell(s), expected 3"),
        ('id,role,text\n\n1,user,"Hi\nthere"\n1,user,"Ho" there\n', ":5: got broken CSV"),
        ('id,role,text\n1,user,Hi\n1,user,"Ho\n', ":3: got broken CSV (unexpected end of data)"),
        (b"id,role,text\n1,user,Hi\n1,user,caf\xe9\n", ":3: got bytes that are not UTF-8"),
        ("id,role,text\n1,user,Hi".encode("utf-16"), ": got UTF-16, expected UTF-8"),
        ("id,role,text\n1,user,Hi\n2,user,Hi\n1,bot,Ho\n", ":4: field id: got '1', which "),
        ("", ": got no dialogue, expected one turn per row"),
        ("id,role,text\n\n", ": got no dialogue, expected one turn per row"),
        ("id,role,text\n" + "".join(f"1,{name},Hi\n" for name in "ABCDEF"), ":7: field role: got 'F' as speaker 6"),
    ],
)
def test_malformed_table_is_refused_with_its_line(tmp_path, content, expected):
    assert refusal(tmp_path / "d.csv", content).startswith(expected)


def test_rows_that_do_not_stand_together_name_both_lines_and_the_remedy(tmp_path):
    path = tmp_path / "d.csv"
    sentence = refusal(path, "id,role,text\n\n1,user,Hi\n2,user,Hi\n1,bot,Ho\n")
    assert sentence == (
        f":5: field id: got '1', which {path}:3 has too; "
        "the rows of a dialogue must stand together: sort the file by id, keeping the order of the turns"
    )


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("id", "columns: got 'id', expected FIELD=NAME"),
        ("id=", "columns: got 'id=', expected FIELD=NAME"),
        ("id=a,,role=b", "columns: got '', expected FIELD=NAME"),
        ("rule=b", "Unknown field in columns 'rule'. Did you mean 'role'?"),
        ("id=a,id=b", "columns: got id twice"),
        ("id=1,role=2", "expected numbers for id, role and content"),
        ("id=1,role=2,content=text", "and no name beside them"),
        ("id=1,role=2,content=4", ":1: columns: got content=4, expected a number from 1 to 3"),
        ("id=0,role=2,content=3", ":1: columns: got id=0, expected a number from 1 to 3"),
        ("id=colour", ":1: Unknown column 'colour'. Did you mean 'color'?"),
    ],
)
def test_malformed_columns(tmp_path, columns, expected):
    assert expected in refusal(tmp_path / "d.csv", "color,role,text\n1,user,Hi\n", columns=columns)


def test_columns_are_for_tables_only(tmp_path):
    for name in ("d.jsonl", "d.txt"):
        assert "got columns, which only .csv and .tsv files have" in refusal(tmp_path / name, "", columns="id=a")


# Transcripts


def test_a_line_without_a_speaker_goes_on_with_the_turn_before(tmp_path):
    content = (
        "\ufeffCaller:  A room \r\n\r\n   for two\r\n: and\r\nat 10: 30\rAgent:\r\nWhich day?\r\n" + "x" * 41 + ": y"
    )
    assert read(tmp_path / "call.txt", content) == [
        Dialogue(
            (
                Turn("user", "A room for two : and"),
                Turn("speaker_3", "30"),
                Turn("assistant", "Which day? " + "x" * 41 + ": y"),
            ),
            "call",
        )
    ]


def test_a_folder_is_read_in_order_and_its_folders_are_labels(tmp_path):
    for name in ("b.txt", "a.b.txt", "taxi/z.TXT", "taxi/2024/y.txt", ".hidden.txt", ".git/x.txt", "notes.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("A: Hi\n")
    found = [(dialogue.id, dialogue.domains) for dialogue in read_own(tmp_path)]
    assert found == [("a.b", ()), ("b", ()), ("taxi/z", ("taxi",)), ("taxi/2024/y", ("2024",))]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("\nHi there\nA: Ho\n", ":2: got 'Hi there' before any speaker, expected 'SPEAKER: text'"),
        ("A: Hi\nB:\nA: Ho\n", ":2: got no text after 'B'"),
        (b"A: Hi\nB: caf\xe9\n", ":2: got bytes that are not UTF-8"),
        ("A: Hi".encode("utf-16"), ":1: got UTF-16, expected UTF-8"),
        ("", ":1: got no turn, expected at least one"),
        ("A: 1\nB: 2\nC: 3\nD: 4\nE: 5\nB: 6\nF: 7\n", ":7: field role: got 'F' as speaker 6 of the dialogue"),
    ],
)
def test_malformed_transcript_is_refused_with_its_line(tmp_path, content, expected):
    assert refusal(tmp_path / "d.txt", content).startswith(expected)


def test_a_folder_without_transcripts(tmp_path):
    (tmp_path / "d.jsonl").write_text("")
    with pytest.raises(
        InputError, match=r"got no dialogue, expected \.txt files; a file of another form is to be given"
    ):
        list(read_own(tmp_path))


# Roles (see test_roles.py)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Agent", "roles: got 'Agent', expected NAME=ROLE"),
        ("=user", "roles: got '=user', expected NAME=ROLE"),
        ("Agent=asistant", "Unknown role 'asistant'. Did you mean 'assistant'?"),
        ("Agent=user,agent=assistant", "roles: got the name 'agent' twice"),
        ("Agent=user,", "roles: got '', expected NAME=ROLE"),
    ],
)
def test_malformed_roles(tmp_path, text, expected):
    assert expected in refusal(tmp_path / "d.jsonl", "", roles=text)


def test_roles_of_chat_messages_are_renamed_only_as_told(tmp_path):
    messages = [{"role": "Agent", "content": "Hi", "dialogue_acts": ["greet"]}, {"role": "user", "content": "Ho"}]
    line = json.dumps({"id": "1", "messages": messages})
    path = tmp_path / "d.jsonl"
    expected = [Dialogue((Turn("assistant", "Hi", ("greet",)), Turn("user", "Ho")), "1")]
    assert read(path, line, roles="agent=assistant") == expected
    assert list(iterate_dialogues(str(path), roles="agent=assistant")) == expected
    assert refusal(path, line).startswith(":1: messages[0]: field role: got 'Agent', expected one of user")
    for odd in ('{"messages": [3, {"role": 3, "content": "Hi"}]}', "[]", '{"messages": 3}', "{}"):
        assert refusal(path, odd, roles="a=user").startswith(":1: ")


# Parquet


def test_parquet_with_other_columns_and_fields(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    messages = [[{"role": "Bot", "content": "Hi", "time": 3}], [{"role": "user", "content": "Ho", "time": 4}]]
    path = tmp_path / "d.parquet"
    expected = [Dialogue((Turn("assistant", "Hi"),), "5"), Dialogue((Turn("user", "Ho"),), "6")]
    for name in ("messages", "conversation"):
        rows = {"score": [0.5, 1.0], name: messages, "id": [5, 6]}
        parquet.write_table(pa.table(rows), path, row_group_size=1)
        assert list(read_own(path, roles="Bot=assistant")) == expected
    with pytest.raises(InputError, match=r"d\.parquet: row 0: messages\[0\]: field role: got 'Bot'"):
        list(read_own(path))
    parquet.write_table(pa.table({"text": ["Hi"], "id": [5]}), path)
    with pytest.raises(InputError, match=r"got no column messages or conversation \(found: text, id\)"):
        list(read_own(path))
    parquet.write_table(pa.table({"messages": pa.array([], pa.list_(pa.string()))}), path)
    with pytest.raises(InputError, match="got no dialogue, expected rows with messages"):
        list(read_own(path))


@pytest.mark.parametrize("size", [0, 3, 400, -10])
def test_damaged_parquet(tmp_path, size):
    path = tmp_path / "d.parquet"
    to_dataset(TWO).to_parquet(path)
    assert "cannot be read" in refusal(path, path.read_bytes()[:size])


# Every form


def test_forms_that_are_not_read(tmp_path):
    for name in ("d.xlsx", "d.jsonl.bz2", "jsonl"):
        sentence = refusal(tmp_path / name, "x")
        assert all(ending in sentence for ending in ENDINGS)
    for name in ("none.csv", "none", "a\0b.csv", "~nobody-of-that-name/d.csv"):
        with pytest.raises(InputError, match="cannot be read"):
            read_own(tmp_path / name if name[0] != "~" else name)


def test_what_is_taken_for_a_path(tmp_path):
    assert all(is_own(f"any{ending}") for ending in ENDINGS)
    assert is_own(tmp_path)
    assert is_own("./calls")
    assert is_own("/no/such/folder")
    assert not any(is_own(name) for name in ("multiwoz", "org/name", "org/name:config", ""))


def test_damaged_gzip(tmp_path):
    content = gzip.compress(table([HEADER, *rows_of(TWO)] * 500))
    path = tmp_path / "d.csv.gz"
    for damaged in (content[:-9], b"no gzip", content[:60] + b"\0\0" + content[62:]):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"d\.csv\.gz.*(gzip|damaged|cut off)"):
            list(read_own(path))


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("d.jsonl", '{}\n{"id": "k", "messages": [{"role": "user", "content": "Hi"}]}\n[]\n', "d.jsonl:1"),
        ("d.csv", "id,role,text\n1,user,Hi\n1,user,\n1,user,Ho\nk,user,Hi\n1,user,Ho\n", "d.csv:3"),
    ],
)
def test_skipping_leaves_out_whole_dialogues_and_counts_them(tmp_path, caplog, name, content, place):
    with caplog.at_level(logging.WARNING):
        dialogues = read(tmp_path / name, content, skip_invalid=True)
    assert dialogues == [Dialogue((Turn("user", "Hi"),), "k")]
    assert len(caplog.records) == 1
    assert caplog.records[0].getMessage().startswith("Skipped 2 malformed record(s)")
    assert place in caplog.text


def test_a_row_without_an_id_may_be_of_the_dialogue_before_and_of_the_one_after(tmp_path):
    table = "id,role,text\na,A,one\nb,A,two\n,A,three\nc,A,four\n,A,five\nc,A,six\nd,A,seven\n"
    assert [dialogue.id for dialogue in read(tmp_path / "d.csv", table, skip_invalid=True)] == ["a", "d"]
    assert [
        dialogue.id
        for dialogue in read(tmp_path / "e.csv", "id,role,text\n,A,one\na,A,two\nb,A,x\n", skip_invalid=True)
    ] == ["b"]


def test_skipping_bad_transcripts_of_a_folder(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xff")
    (tmp_path / "b.txt").write_text("A: Hi")
    assert [dialogue.id for dialogue in read_own(tmp_path, skip_invalid=True)] == ["b"]
    (tmp_path / "b.txt").unlink()
    with pytest.raises(InputError, match="got no dialogue that is not malformed"):
        list(read_own(tmp_path, skip_invalid=True))


def test_a_time_before_the_speaker_is_left_out_and_a_doubtful_speaker_is_told(tmp_path):
    path = tmp_path / "call.txt"
    stamps = ("[00:07] ", "(1:02:03) ", "2024-05-01 10:30:00 ", "10:31 ", "")
    speakers = ("AGENT", "CUSTOMER", "AGENT", "CUSTOMER", "AGENT")
    lines = [f"{stamp}{speaker}: at 10:30" for stamp, speaker in zip(stamps, speakers, strict=True)]
    path.write_text("\n".join(lines), encoding="utf-8")
    (dialogue,) = read_own(path)
    assert [turn.role for turn in dialogue.turns] == ["assistant", "user", "assistant", "user", "assistant"]
    assert {turn.content for turn in dialogue.turns} == {"at 10:30"}
    assert list(check(path)) == []
    path.write_text("\n".join([*lines, "Note: nobody says this"]), encoding="utf-8")
    (doubt,) = check(path)
    assert (doubt.place, doubt.severity) == (f"{path}:6", "warning")
    assert "'Note', who speaks once beside 2 others" in doubt.message


def test_a_time_within_what_is_said_stays(tmp_path):
    path = tmp_path / "call.txt"
    said = [
        "My train leaves at 10:30 from platform 2: am I late?",
        "We open at 9:00 Note: not today",
        "19:30 then: ok?",
    ]
    path.write_text("\n".join(f"[00:0{n}] Customer: {text}" for n, text in enumerate(said)), encoding="utf-8")
    (dialogue,) = read_own(path)
    assert [turn.content for turn in dialogue.turns] == said


def test_transcripts_behind_a_link_are_read(tmp_path):
    said = "Agent: hello\nCustomer: hi\n"
    for name in ("calls/sales/a.txt", "elsewhere/b.txt"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(said)
    (tmp_path / "calls" / "support").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "again").symlink_to(tmp_path / "calls")
    found = [(each.id, each.domains) for each in read_own(tmp_path / "calls")]
    assert found == [("sales/a", ("sales",)), ("support/b", ("support",))]


def test_files_of_other_forms_in_a_folder_are_told(tmp_path, caplog):
    (tmp_path / "a.txt").write_text("A: Hi\nB: Ho")
    assert len(list(read_own(tmp_path))) == 1
    assert not caplog.records
    for name in ("b.jsonl", "c.txt.gz", "d.wav", "README.md"):
        (tmp_path / name).write_text("")
    assert len(list(read_own(tmp_path))) == 1
    assert "passed over 2 files that are no .txt files, such as b.jsonl; give each by itself" in caplog.text


def test_what_is_read_or_written_already_is_not_overwritten(tmp_path, capsys):
    for name in ("one", "two"):
        (tmp_path / f"{name}.txt").write_text("Agent: Hi\nCustomer: Ho\n")
    stats = ["corpus", "stats", "--corpus", str(tmp_path)]
    for words, sentence in (
        (["--report", str(tmp_path / "one.txt")], "is the file that is read"),
        (["--report", str(tmp_path / "r.json"), "--plot", str(tmp_path / "r.json")], "got one file twice"),
        (["--output", str(tmp_path)], "got a folder, expected a file; add a file name"),
    ):
        assert main([*stats, *words]) == 2
        assert sentence in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.txt", "two.txt"]
    assert (tmp_path / "one.txt").read_text() == "Agent: Hi\nCustomer: Ho\n"
    assert main([*stats, "--report", str(tmp_path / "r.json")]) == 0
    assert main([*stats, "--report", str(tmp_path / "r.json")]) == 0  # its own report may be made again


@pytest.mark.parametrize("name", ["nofolder/", "a/b/c"])
def test_a_path_that_does_not_exist_is_told_as_a_path(name):
    with pytest.raises(InputError, match=r"corpus .*: no such file or folder; give one that exists"):
        form_of(name)
