"""Facts about transcripts and the texts that messengers export.

Who speaks when, and what is left out.
"""

import re

import pytest

from hf_dialemb.apps.files.findings import Notes
from hf_dialemb.apps.files.transcripts import draft_of_text


def turns_of(content):
    """Return times, speakers and texts of a text, its problems, and what was noted."""
    notes = Notes()
    draft = draft_of_text("chat", content)
    turns = notes.cleaning.turns(
        draft.messages, False, lambda what, _: notes.add(f"left out {what}", "chat")
    )
    spoken = [(turn["time"], turn["role"], turn["content"]) for turn in turns]
    return (
        spoken,
        [problem.message for problem in draft.problems],
        [item.message for item in notes.problems("chat")],
    )


# of WhatsApp by the language of the phone, of its older versions, and of other messengers
STAMPS = (
    "[14/10/2021, 15:34:09]",
    "14/10/21, 15:34 -",
    "1/5/24, 9:41\u202fPM -",
    "[1/5/24, 9:41:10\u202fAM]",
    "20/6/2017 8:28 p.\u00a0m. -",
    "20/6/2017 8:28 p. m. -",
    "14/10/21 3:34 p.m. -",
    "[14/10/21, 3:34:09 p. m.]",
    "01.04.2015 - 16:00:27;",
    "[01-29-2018, 23:33:00]",
    "2022/12/14, 09:05 -",
    "14.10.2021 15.34 -",
    "14.10.2021 klo 15.34 -",
    "14.10.2021, kl. 15.34 –",
    "2021-10-14 15 h 34 -",
    "[14/10/2021 à 15:34:09]",
    "14/10/2021 às 15:34 -",
    "2021. 10. 14. 15:34 -",
    "2021. 10. 14. du. 3:34 -",
    "14. 10. 2021. u 15:34 -",
    "14.10.21 г., 15:34 ч. -",
    "14.10.2021. plkst. 15:34 -",
    "14/10/21, 3:34 μ.μ. -",
    "14/10/21, 3:34 अपराह्न -",
    "14/10/2564 15:34 น. -",
    "14.10.2021 ÖS 3:34 -",
    "15:34, 14/10/2021 -",
    "2021/10/14 下午3:34 -",
    "[2021/10/14 下午3:34:09]",
    "2021年10月14日 15:34 -",
    "[2024. 1. 5. 오후 3:34:09]",
    "2024년 1월 5일 오후 3:34,",
    "[١٤\u200f/١٠\u200f/٢٠٢١، ٣:٣٤:٠٩ م]",
    "١٤\u200f/١٠\u200f/٢٠٢١، ٣:٣٤ م -",
    "۱۴۰۰/۷/۲۲،\u200f ۱۵:۳۴ -",
    "[14 October 2021 3:34 PM]",
    "[14 oct. 2021, 15:34:09]",
    "14.10.21, 15:34:09:",
    "2021-10-14T15:34:09+02:00",
)


@pytest.mark.parametrize("stamp", STAMPS)
def test_no_part_of_a_time_is_a_speaker(stamp):
    spoken, problems, _ = turns_of(
        f"{stamp} \u200eRosa: hola\n{stamp} \u202a+49 170 1\u202c: at 10:30: ok?\nmás\n"
    )
    time = re.sub("[\u200f[\\]]", "", stamp)
    time = " ".join((time[:-1] if time[-1] in "-–;:," else time).split())
    assert not problems
    assert spoken == [(time, "Rosa", "hola"), (time, "+49 170 1", "at 10:30: ok? más")]


@pytest.mark.parametrize(
    "notice",
    [
        "Messages and calls are end-to-end encrypted. Only people in this chat can read them.",
        "<Media omitted>",
        "Los mensajes y las llamadas están cifrados de extremo a extremo.",
        "<Multimedia omitido>",
        "null",
        "Nachrichten und Anrufe sind Ende-zu-Ende-verschlüsselt.",
        "Bild weggelassen",
        "<Medien ausgeschlossen>",
        "Les messages et appels sont chiffrés de bout en bout.",
        "image absente",
        "Appel vocal manqué à 15:34",
        "This message was deleted.",
        "You deleted this message",
        "Se eliminó este mensaje.",
        "Mensagem apagada",
        "Diese Nachricht wurde gelöscht.",
        "Сообщение удалено",
        "Bu mesaj silindi",
        "تم حذف هذه الرسالة",
        "此訊息已刪除",
        "このメッセージは削除されました",
        "삭제된 메시지입니다.",
        "Missed voice call",
        "Llamada perdida a las 9:00",
        "IMG-20211014-WA0001.jpg (file attached)",
        "PTT-20211014-WA0002.opus (archivo adjunto)",
        "plan b.pdf (Datei angehängt)",
        "\u200e<attached: 00000012-PHOTO.jpg>",
        "\u200e<مرفق: 0001.jpg>",
        "\u200eplan.pdf • \u200e3 pages \u200edocument omitted",
        "\u200eOla added you",
        "\u200e+49 170 1 hat die Gruppe verlassen",
        "[Sticker]",
        "☎ Missed call",
    ],
)
def test_what_messengers_say_themselves_is_left_out_and_counted(notice):
    lines = [
        "14/10/21, 15:34 - Ann: Hi",
        f"14/10/21, 15:35 - Bob: {notice}",
        "14/10/21, 15:36 - Bob: Ho",
    ]
    spoken, problems, notes = turns_of("\n".join(lines))
    assert [turn[1:] for turn in spoken] == [("Ann", "Hi"), ("Bob", "Ho")]
    assert (problems, notes) == (
        [],
        ["left out a notice, or what was sent without words or deleted"],
    )


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("see you \u200e<This message was edited>", "see you"),
        ("hasta luego <Se editó este mensaje.>", "hasta luego"),
        ("look \u200e<attached: 1.jpg>", "look"),
        ("look \u200eimage omitted", "look"),
        ("\u200e+49 170 1", "+49 170 1"),
        ("IMG-20211014-WA0001.jpg (file attached)\nlook", "look"),
        ("<Media omitted>\nlook", "look"),
        ("I <3 you (really)", "I <3 you (really)"),
        ("my name is Null", "my name is Null"),
        ("why was this message deleted?", "why was this message deleted?"),
        ("list:\nmilk: 2\nNote: bags", "list: milk: 2 Note: bags"),
        ("Messages and calls are free?", "Messages and calls are free?"),
        ("(inaudible)", "(inaudible)"),
    ],
)
def test_what_is_spoken_stays_without_what_is_added_to_it(line, text):
    spoken, _, _ = turns_of(
        f"[14/10/21, 15:34:00] Ann: Hi\n[14/10/21, 15:35:00] ~\u202fQuin: {line}\n"
    )
    assert [turn[1:] for turn in spoken] == [("Ann", "Hi"), ("Quin", text)]


def test_notices_with_a_time_and_without_a_speaker_are_left_out():
    lines = [
        "Messages are encrypted. Tap.",
        'Ann created group "Trip: Rome"',
        "Ann changed “Trip: Rome” to “A: b”",
    ]
    stamped = "\n".join(
        f"14/10/21, 15:34 - {line}" for line in [*lines, "Ann: Hi", "Bob “Bo” Ott: Ho"]
    )
    spoken, problems, notes = turns_of(stamped)
    assert [turn[1:] for turn in spoken] == [("Ann", "Hi"), ("Bob “Bo” Ott", "Ho")]
    assert (problems, notes) == (
        [],
        ["left out a line that nobody says (3 times: chat, chat, chat)"],
    )


def test_marks_mean_nothing_where_every_message_has_one():
    spoken, _, _ = turns_of(
        "[14/10/21, 15:34:00] Ann: \u200eHi\n[14/10/21, 15:35:00] Bob: \u200eHo\n"
    )
    assert [turn[1:] for turn in spoken] == [("Ann", "Hi"), ("Bob", "Ho")]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            "客服：您好，请问\n顾客：单号：4411\n",
            [("", "客服", "您好，请问"), ("", "顾客", "单号：4411")],
        ),
        ("客服:您好\n顾客:我10:30打过\n", [("", "客服", "您好"), ("", "顾客", "我10:30打过")]),
        ("【客服】您好\n【顾客】：好\n", [("", "客服", "您好"), ("", "顾客", "好")]),
        (
            "\u202bالعميل: لم يصل\u202c\n\u200fالموظف: نعم\n",
            [("", "العميل", "لم يصل"), ("", "الموظف", "نعم")],
        ),
        (
            "Speaker 1 (00:12): Hi\nSpeaker 2 [00:15]: Ho\n",
            [("", "Speaker 1", "Hi"), ("", "Speaker 2", "Ho")],
        ),
        (
            "Speaker 1 (00:12):\nHi: you\n\nBo (00:15):\nHo\n",
            [("", "Speaker 1", "Hi: you"), ("", "Bo", "Ho")],
        ),
        (
            "Mika  0:00\nHi\n\nDr. Ott, Desk  1:05\nHo: x\n",
            [("", "Mika", "Hi"), ("", "Dr. Ott, Desk", "Ho: x")],
        ),
        (
            "[0.00 - 2.34] SPEAKER_00: Hi\n[SPEAKER_01] Ho\n",
            [("", "SPEAKER_00", "Hi"), ("", "SPEAKER_01", "Ho")],
        ),
        ("00:00:00\n\nInes: Hi\n00:05:00\nMax: Ho\n", [("", "Ines", "Hi"), ("", "Max", "Ho")]),
        ("(3:34:09 PM) *** Ann joined ***\n(3:34:19 PM) Ann: Hi\n", [("", "Ann", "Hi")]),
        (
            "2024-01-05 Rosa: Hi\n[2024-01-06] Max: Ho\n",
            [("2024-01-05", "Rosa", "Hi"), ("2024-01-06", "Max", "Ho")],
        ),
        (
            "Agent: see the mail\n2024-05-01 10:30 we met\n",
            [("", "Agent", "see the mail 2024-05-01 10:30 we met")],
        ),
    ],
)
def test_other_marks_of_times_and_speakers(content, expected):
    assert turns_of(content)[:2] == (expected, [])


LAYOUTS = {
    "LINE": "[LINE] Chat history with Ann\nSaved on: 2024/01/05 "
    "15:40\n\n2024/01/05(Fri)\n15:34\tAnn\tHi: you\n"
    "15:35\tBob\t[Sticker]\n15:36\tBob unsent a message.\n15:37\tBob\tHo\nso: there\n",
    "KakaoTalk": "Ann 님과 카카오톡 대화\n저장한 날짜 : 2024-01-05 15:40:11\n\n"
    "--- 2024년 1월 5일 금요일 ---\n"
    "[Ann] [오후 3:34] Hi: you\n[Bob] [오후 3:36] 사진\n[Bob] [오후 3:37] Ho\nso: there\n",
    "KakaoTalk, phone": "Ann 님과 카카오톡 대화\n저장한 날짜 : 2024년 1월 5일 오후 3:40\n\n"
    "2024년 1월 5일 오후 3:33\n"
    "2024년 1월 5일 오후 3:34, Ann : Hi: you\n2024년 1월 5일 오후 3:35, Cem님이 나갔습니다.\n"
    "2024년 1월 5일 오후 3:37, Bob : Ho\n"
    "so: there\n",
    "Telegram": "Ann, [05.01.2024 15:34]\nHi: you\n\nBob, [05.01.2024 15:37]:\nHo\nso: there\n",
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_other_messengers_have_their_own_layouts(name):
    spoken, problems, _ = turns_of(LAYOUTS[name])
    times = {
        "LINE": "2024/01/05 15:3{}",
        "Telegram": "05.01.2024 15:3{}",
        "KakaoTalk": "2024-1-5 오후 3:3{}",
    }
    time = times.get(name, "2024년 1월 5일 오후 3:3{}")
    assert spoken == [(time.format(4), "Ann", "Hi: you"), (time.format(7), "Bob", "Ho so: there")]
    assert not problems
