"""Facts about tables.

What headers mean, which rows are a dialogue, what cells hold, and what is refused.
"""

import zipfile

import pytest
from read_files import read

from hf_dialemb import InputError, load_dialogues


def spoken(dialogues):
    """Who says what in each dialogue, by its id."""
    return {item.id: [f"{turn.role}: {turn.content}" for turn in item.turns] for item in dialogues}


def write(path, *rows):
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


HEADERS = {
    "Zendesk": (
        "Ticket ID,Subject,Ticket Channel,Comment Created,Comment Author,Comment Public,Comment "
        "Body (HTML)",
        "id=Ticket ID,role=Comment Author,content=Comment Body (HTML),time=Comment "
        "Created,hidden=Comment Public",
    ),
    "Intercom": (
        "conversation_id,part_type,author_type,author_name,body,created_at",
        "id=conversation_id,role=author_type,name=author_name,content=body,time=created_at,hidden=part_type",
    ),
    "Freshdesk": (
        "Ticket ID,Ticket Subject,Author,Body Text,Private,Created At",
        "id=Ticket ID,role=Author,content=Body Text,hidden=Private,time=Created At",
    ),
    "Salesforce": (
        "CaseNumber,CreatedBy,CommentBody,CreatedDate,Status",
        "id=CaseNumber,role=CreatedBy,content=CommentBody,time=CreatedDate",
    ),
    "HubSpot": (
        "Thread ID,Sender,Direction,Message Text,Created At",
        "id=Thread ID,role=Direction,name=Sender,content=Message Text,time=Created At",
    ),
    "LiveChat": (
        "chat_id,author_type,author_name,text,timestamp",
        "id=chat_id,role=author_type,name=author_name,content=text,time=timestamp",
    ),
    "Genesys": (
        "Conversation ID,Participant Purpose,Utterance Text,Start Time",
        "id=Conversation ID,role=Participant Purpose,content=Utterance Text,time=Start Time",
    ),
    "Amazon Connect": (
        "ContactId,ParticipantRole,Content,AbsoluteTime",
        "id=ContactId,role=ParticipantRole,content=Content,time=AbsoluteTime",
    ),
    "Discord": (
        "AuthorID,Author,Date,Content,Attachments",
        "role=Author,time=Date,content=Content",
    ),
    "chatbot": (
        "session_id,user_message,bot_response,timestamp",
        "id=session_id,user=user_message,assistant=bot_response,time=timestamp",
    ),
    "German": (
        "Gesprächs-ID,Absender,Nachrichtentext,Gesendet am",
        "id=Gesprächs-ID,role=Absender,content=Nachrichtentext,time=Gesendet am",
    ),
    "German calls": (
        "Vorgangsnummer,Sprecher,Äußerung,Zeitpunkt",
        "id=Vorgangsnummer,role=Sprecher,content=Äußerung,time=Zeitpunkt",
    ),
    "French": (
        "N° de ticket,Expéditeur,Contenu du message,Date et heure",
        "id=N° de ticket,role=Expéditeur,content=Contenu du message,time=Date et heure",
    ),
    "Spanish": (
        "ID de conversación,Remitente,Texto del mensaje,Fecha y hora",
        "id=ID de conversación,role=Remitente,content=Texto del mensaje,time=Fecha y hora",
    ),
    "Portuguese": (
        "Código do chamado,Autor,Mensagem,Data e hora",
        "id=Código do chamado,role=Autor,content=Mensagem,time=Data e hora",
    ),
    "Italian": (
        "ID conversazione,Mittente,Testo,Data",
        "id=ID conversazione,role=Mittente,content=Testo,time=Data",
    ),
    "two columns of time": (
        "id,speaker,text,Datum,Uhrzeit",
        "id=id,role=speaker,content=text,day=Datum,time=Uhrzeit",
    ),
}


CELLS_OF = {  # of two rows
    "id": ("c1", "c1"),
    "role": ("customer", "agent"),
    "name": ("Rosa", "Tom"),
    "content": ("Is it open today?", "It is, until six"),
    "time": ("2024-05-01 09:00", "2024-05-01 09:01"),
    "hidden": ("", ""),
    "user": ("Is it open today?", "And now?"),
    "assistant": ("It is, until six", "It is"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_of_systems_and_languages(tmp_path, name):
    header, expected = HEADERS[name]
    fields = {title: field for field, title in (pair.split("=") for pair in expected.split(","))}
    cells = dict(CELLS_OF, day=("2024-05-01",) * 2)
    if "day=" in expected:
        cells["time"] = ("09:00", "09:01")
    rows = [
        ",".join(
            f'"{cells[fields[title]][at]}"' if title in fields else f"x{at}"
            for title in header.split(",")
        )
        for at in (0, 1)
    ]
    (dialogue,) = load_dialogues(write(tmp_path / "d.csv", header, *rows))
    turns = dialogue.turns
    assert [turn.content for turn in turns][:2] == ["Is it open today?", "It is, until six"]
    assert [turn.role for turn in turns][:2] == ["user", "assistant"]
    assert dialogue.id == ("c1" if "id=" in expected else "d")
    assert dialogue.time == ("2024-05-01T09:00:00" if "time=" in expected else "")
    if "name=" in expected:
        assert [turn.name for turn in turns] == ["Rosa", "Tom"]


HI, HO, NAMES = "user: Hi", "assistant: Ho", ("Al", "Zo")
AGAIN = [
    f"{id},2024-05-0{day} 09:0{n},{role},{day} {n}"
    for day in (1, 2)
    for id in "12"
    for n, role in enumerate(("user", "agent"))
]
CHANNEL = [
    "Author,Date,Content",
    "vera,2024-02-01T10:00:00Z,reset?",
    "bot,2024-02-01T10:00:05Z,",
    "sol,2024-02-01T10:01:00Z,so",
    "vera,2024-02-01T18:00:00Z,again",
]
READ = {  # rows, options, what is spoken, and what is remarked
    "an id that each row has anew is no dialogue's": (
        ["id,ticket_id,role,text", "1,7,user,Hi", "2,7,agent,Ho", "3,8,user,Bye"],
        {},
        {"7": [HI, HO], "8": ["user: Bye"]},
        "",
    ),
    "a row that is a dialogue is doubted where speakers differ": (
        ["id,role,text", "1,user,Hi", "2,agent,Ho"],
        {},
        {"1": [HI], "2": [HO]},
        "took each row as a dialogue, as each has an id of its own; if another column tells",
    ),
    "words for missing cells": (
        ["id,role,text", "1,user,Hi", "1,agent,NULL", "1,nan,Who?", "1,user,my name is Null"],
        {},
        {"1": [HI, "user: my name is Null"]},
        "only a word for a missing cell, such as nan or NULL",
    ),
    "ids that a spreadsheet broke": (
        ["id,role,text", "#N/A,user,cards", "#N/A,agent,yes", "7,user,Hi", "#N/A,user,hotels"],
        {},
        {"#N/A": ["user: cards", "assistant: yes"], "7": [HI], "#N/A (2)": ["user: hotels"]},
        "got the id '#N/A', which a spreadsheet made of others",
    ),
    "an apostrophe before what a spreadsheet computes": (
        ["id,role,text", "'+4915,user,'=1+1", "'+4915,agent,'tis so"],
        {},
        {"+4915": ["user: =1+1", "assistant: 'tis so"]},
        "",
    ),
    "rows of both sides without an id": (
        ["prompt,response", "Hi,Ho", '"Two\nlines",Yes', "Only,"],
        {},
        {"1": [HI, HO], "2": ["user: Two\nlines", "assistant: Yes"], "3": ["user: Only"]},
        "",
    ),
    "columns of both sides that are given": (
        ["q,a", "Hi,Ho"],
        {"columns": "user=q,assistant=a"},
        {"1": [HI, HO]},
        "",
    ),
    "the order of turns": (
        ["conversation_id,turn,question,answer", "a,2,Two?,2", "b,1,Hi,Ho", "a,10,Ten?,NULL"],
        {},
        {"a": ["user: Two?", "assistant: 2", "user: Ten?"], "b": [HI, HO]},
        "",
    ),
    "texts without speakers": (
        ["id,text", "1,Stolen", "2,Lost", "2,Found"],
        {},
        {"1": ["user: Stolen"], "2": ["user: Lost", "user: Found"]},
        "no column says who speaks; if one does, say --columns 'role=NAME'",
    ),
    "a channel is split at pauses": (
        CHANNEL,
        {},
        {"d": ["user: reset?", "assistant: so"], "d#2": ["user: again"]},
        "as no column tells dialogues apart; if one does, say --columns 'id=NAME'",
    ),
    "or not": (
        CHANNEL,
        {"gap": "1d"},
        {"d": ["user: reset?", "assistant: so", "user: again"]},
        "left out a turn without text",
    ),
    "an id that comes again a day later": (
        ["id,date,role,text", *AGAIN],
        {},
        {id: ["user: 1 0", "assistant: 1 1", "user: 2 0", "assistant: 2 1"] for id in "12"},
        "if ids begin again, say --gap 4h",
    ),
    "is split as the remedy says": (
        ["id,date,role,text", *AGAIN],
        {"gap": "4h"},
        {
            f"{id}{part}": [f"user: {day} 0", f"assistant: {day} 1"]
            for id in "12"
            for day, part in ((1, ""), (2, "#2"))
        },
        "",
    ),
    "markup, quotes and private notes": (
        [
            "Ticket ID,Channel,Comment Author,Comment Public,Comment Body (HTML)",
            '7,mail,Rosa,true,"<p>My&nbsp;bill is <b>wrong</b></p>"',
            '7,mail,Ann,false,"<p>Internal: fraud?</p>"',
            '7,mail,Ann,true,"<div>Which one?</div><blockquote>My bill is wrong</blockquote>"',
        ],
        {},
        {"7": ["user: My bill is wrong", "assistant: Which one?"]},
        "left out a message whose Comment Public is 'false'",
    ),
    "a choice of columns is printed": (
        [
            "call,who,words",
            *(f"{n // 2},{'Zo' if n % 2 else 'Al'},what part {n}?" for n in range(4)),
        ],
        {},
        {
            "0": ["user: what part 0?", "assistant: what part 1?"],
            "1": ["user: what part 2?", "assistant: what part 3?"],
        },
        "columns: read as --columns 'id=call,role=who,content=words' (call: 2 values; who: 2 "
        "values; words: 4 values in 4 rows)",
    ),
}


@pytest.mark.parametrize("name", READ)
def test_rows_become_dialogues(tmp_path, name):
    rows, options, expected, remark = READ[name]
    dialogues, remarks = read(write(tmp_path / "d.csv", *rows), tmp_path, **options)
    assert spoken(dialogues) == expected
    assert remark in remarks


CELLS = {
    "lines": '"Agent: Hello\nCustomer: My bill\nis wrong."',
    "JSON": '"[{""role"": ""agent"", ""content"": ""Hello""}, {""role"": ""user"", ""content"": '
    '""My bill is wrong.""}]"',
    "Python": "\"[{'role': 'agent', 'content': 'Hello'}, {'role': 'user', 'content': 'My bill is "
    "wrong.'}]\"",
    "HTML": '"Agent: Hello<br>Customer: My bill is wrong."',
}


@pytest.mark.parametrize("form", CELLS)
def test_a_cell_may_hold_a_whole_conversation(tmp_path, form):
    rows = [f"{number},2024-05-01,Ann,{12 + number},{CELLS[form]}" for number in (1, 2)]
    path = write(tmp_path / "d.csv", "Call ID,Date,Agent,Duration,Transcript", *rows)
    dialogues, _ = read(path, tmp_path)
    said = ["assistant: Hello", "user: My bill is wrong."]
    assert spoken(dialogues) == {"1": said, "2": said}
    assert [dict(item.metadata) for item in dialogues] == [
        {"Agent": "Ann", "Duration": 12 + n} for n in (1, 2)
    ]
    assert dialogues[0].time == "2024-05-01T00:00:00"


@pytest.mark.parametrize(
    ("header", "second"),
    [
        ("date,time", "{day},{clock}"),
        ("time,date", "{clock},{day}"),
        ("time,date", "{day},{clock}"),
    ],
)
def test_a_day_and_a_time_of_day_may_stand_in_two_columns(tmp_path, header, second):
    rows = [
        f"1,{who},Hi {clock},{second.format(day='2023-03-01', clock=clock)}"
        for who, clock in (("user", "10:31"), ("agent", "10:30"))
    ]
    (dialogue,), _ = read(write(tmp_path / "d.csv", f"id,role,text,{header}", *rows), tmp_path)
    assert [turn.time for turn in dialogue.turns] == ["2023-03-01T10:30:00", "2023-03-01T10:31:00"]


def test_other_columns_are_metadata_if_they_have_one_value_in_each_dialogue(tmp_path):
    rows = (
        "id;role;text;team;score;rating;code;note;time",
        "1;user;Hi, you;A;4;1,5;007;x;",
        "1;agent;Ho;A;;1,5;007;y;",
        "2;user;Hi;NULL;5;2,25;12;x;",
    )
    dialogues, remarks = read(write(tmp_path / "d.csv", *rows), tmp_path)
    assert [dict(item.metadata) for item in dialogues] == [
        {"team": "A", "score": 4, "rating": 1.5, "code": "007"},
        {"score": 5, "rating": 2.25, "code": "12"},
    ]
    assert "left out columns whose values differ within a dialogue: 'note'" in remarks


@pytest.mark.parametrize("mark", [";", "\t", "|", ","])
@pytest.mark.parametrize("start", ["", "sep={}\n"])
def test_the_whole_beginning_decides_what_separates_cells(tmp_path, mark, start):
    texts = ["one; two | three, four\tfive", "a, b; c | d\te"]
    rows = [("id", "role", "text"), ("1", "user", texts[0]), ("1", "agent", texts[1])]
    text = start.format(mark) + "".join(
        mark.join(f'"{cell}"' if mark in cell else cell for cell in row) + "\n" for row in rows
    )
    (tmp_path / "d.csv").write_text(text)
    assert spoken(load_dialogues(tmp_path / "d.csv")) == {
        "1": [f"user: {texts[0]}", f"assistant: {texts[1]}"]
    }


ROWS = [
    {"id": 7, "role": "Customer", "text": "Where is it?", "time": "2024-05-01 09:00", "score": 4.5},
    {"id": 7, "role": "Ann", "text": "Let me look.", "time": "2024-05-01 09:05", "score": None},
    {"id": 8, "role": "Customer", "text": "Thanks", "time": "2024-05-02 09:00", "score": 3.0},
]


def test_files_frames_and_datasets_of_turns_are_the_same_dialogues(tmp_path):
    pandas, datasets = pytest.importorskip("pandas"), pytest.importorskip("datasets")
    pytest.importorskip("openpyxl")
    frame = pandas.DataFrame(ROWS)
    frame.to_csv(tmp_path / "d.csv", index=False)
    frame.to_csv(tmp_path / "d.tsv", index=False, sep="\t")
    frame.sample(frac=1, random_state=1).to_csv(
        tmp_path / "shuffled.csv", index=False, sep=";", encoding="utf-16"
    )
    frame.to_excel(tmp_path / "d.xlsx", index=False)
    frame.to_parquet(tmp_path / "d.parquet")
    files = [tmp_path / name for name in ("d.csv", "d.tsv", "shuffled.csv", "d.xlsx", "d.parquet")]
    read = [
        load_dialogues(source) for source in (frame, datasets.Dataset.from_pandas(frame), *files)
    ]
    records = [
        sorted((item.to_json() for item in dialogues), key=lambda item: item["id"])
        for dialogues in read
    ]
    assert records == [records[0]] * 7
    assert [item["metadata"] for item in records[0]] == [{"score": 4.5}, {"score": 3}]


def workbook(path, sheets):
    book = pytest.importorskip("openpyxl").Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


HEAD, TURN = ("id", "role", "text"), (1, "user", "Hi")


def test_sheets_are_read_together_and_what_is_no_table_is_named(tmp_path):
    january, february = [HEAD, TURN, (2, "user", "One")], [HEAD, (1, "user", "Other")]
    sheets = {"About": [("About this file",), ("made by us",)], "January": january}
    path = workbook(tmp_path / "d.xlsx", {**sheets, "February": february, "Empty": []})
    dialogues, remarks = read(path, tmp_path)
    assert [*spoken(dialogues)] == ["January/1", "January/2", "February/1"]
    assert "passed over a sheet" in remarks
    assert "About:1: got no column for content" in remarks
    assert [*spoken(read(path, tmp_path, sheet="February")[0])] == ["1"]
    with pytest.raises(InputError, match=r"Unknown sheet 'Febuary'\. Did you mean 'February'"):
        load_dialogues(path, sheet="Febuary")


def test_a_sheet_is_refused_where_nothing_has_sheets(tmp_path):
    path = tmp_path / "calls.csv"
    path.write_text("id,role,content\n1,user,Hi\n", encoding="utf-8")
    with pytest.raises(
        InputError, match="got a sheet, which only files of Excel have; leave it out"
    ):
        load_dialogues(path, sheet="May")


def part_changed(path, part, change):
    """Writes a workbook again with a part that was changed, or added."""
    source = workbook(path.with_name("base.xlsx"), {"S": [HEAD, TURN]})
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, change(old.read(name)) if name == part else old.read(name))
    return path


END = b"</sheetData>"


def test_a_workbook_is_read_whole_whatever_size_it_states(tmp_path):
    row = (
        b'<row r="3"><c r="A3"><v>2</v></c><c r="B3" t="str"><v>user</v></c><c r="C3" '
        b't="str"><v>Ho</v></c></row>'
    )
    far = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    path = part_changed(
        tmp_path / "d.xlsx",
        "xl/worksheets/sheet1.xml",
        lambda xml: xml.replace(b"A1:C2", b"A1:B1").replace(END, row + far + END),
    )
    dialogues, remarks = read(path, tmp_path)
    assert spoken(dialogues) == {"1": [HI], "2": ["user: Ho"]}
    assert "left out what stands beside the columns" in remarks
