"""Made-up conversations in files as people have them.

Every file has its own order of dates, encoding, separator, header, language and faults. Read back,
it is right, asked about (refused, or read with a remark that names what was taken), or wrong
without a word.
"""

import csv
import io
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from pathlib import Path

from read_files import with_remarks

from hf_dialemb.errors import InputError

MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre "
    "diciembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro "
    "dezembro",
}
Write = Callable[[datetime], str]


def _with_month(names: list[str], time: datetime) -> str:
    return f"{time.day} {names[time.month - 1]} {time.year} {time:%H:%M}"


# How a time is written, and whether the order of day and month is plain from its form.
DATES: dict[str, tuple[Write, bool]] = {
    "iso": (lambda time: time.strftime("%Y-%m-%d %H:%M:%S"), True),
    "iso with offset": (lambda time: time.strftime("%Y-%m-%dT%H:%M:%S+00:00"), True),
    "year first": (lambda time: time.strftime("%Y/%m/%d %H:%M"), True),
    "British": (lambda time: time.strftime("%d/%m/%Y %H:%M"), False),
    "American": (
        lambda time: f"{time.month}/{time.day}/{time.year} {time.strftime('%I:%M %p')}",
        False,
    ),
    "American, 24 hours": (lambda time: time.strftime("%m/%d/%Y %H:%M"), False),
    "German": (lambda time: time.strftime("%d.%m.%Y %H:%M"), True),
    "Dutch": (lambda time: time.strftime("%d-%m-%Y %H:%M"), False),
    "Spanish": (
        lambda time: (
            f"{time.day}/{time.month}/{time.year} {time.hour % 12 or 12}:{time:%M} "
            + ("a. m." if time.hour < 12 else "p. m.")
        ),
        False,
    ),
    "short year": (lambda time: time.strftime("%d.%m.%y, %H:%M"), True),
    "seconds": (lambda time: str(int(time.replace(tzinfo=UTC).timestamp())), True),
    "milliseconds": (lambda time: str(int(time.replace(tzinfo=UTC).timestamp()) * 1000), True),
    "compact": (lambda time: time.strftime("%Y%m%d%H%M%S"), True),
    "serial": (lambda time: f"{(time - datetime(1899, 12, 30)) / timedelta(days=1):.10f}", True),
    "mail": (lambda time: format_datetime(time.replace(tzinfo=UTC)), True),
    **{
        f"month in {language}": (partial(_with_month, names.split()), True)
        for language, names in MONTHS.items()
    },
}
HEADERS = {  # id, speaker, text, time
    "plain": ("id", "speaker", "text", "time"),
    "Zendesk": ("Ticket ID", "Comment Author", "Comment Body", "Comment Created"),
    "Intercom": ("conversation_id", "author_type", "body", "created_at"),
    "Freshdesk": ("ticket_id", "sender_type", "body", "created_at"),
    "Salesforce": ("Case Number", "Sender", "Message", "Sent At"),
    "HubSpot": ("thread_id", "sender", "message_text", "created_at"),
    "LiveChat": ("chat_id", "author", "message", "date"),
    "calls": ("call_id", "participant", "utterance", "start_time"),
    "de": ("Gesprächsnummer", "Sprecher", "Nachricht", "Datum"),
    "fr": ("conversation", "auteur", "message", "date"),
    "es": ("conversación", "autor", "mensaje", "fecha"),
    "pt": ("conversa", "autor", "mensagem", "data"),
}
SPEAKERS = (("customer", "agent"), ("User", "Bot"), ("visitor", "operator"), ("client", "support"))
TEXTS = {
    "ascii": (
        "my card was stolen",
        "which number does it have",
        "it is on its way",
        "thanks a lot, bye",
        "one; two",
    ),
    "latin": (
        "mi tarjeta fue robada, ¿qué hago?",
        "Größe und Straße, bitte",
        "où est le colis ?",
        "São João às dez",
    ),
    "cyrillic": (
        "моя карта украдена",
        "какой у неё номер",
        "посылка уже в пути",
        "спасибо большое, до свидания",
    ),
    "japanese": (
        "カードが盗まれました",
        "番号を教えてください",
        "荷物は配送中です",
        "ありがとうございました",
    ),
}
ENCODINGS = {
    "ascii": ("utf-8", "utf-8-sig", "utf-16"),
    "latin": ("utf-8", "utf-8-sig", "utf-16", "cp1252"),
    "cyrillic": ("utf-8", "utf-16", "cp1251"),
    "japanese": ("utf-8", "utf-8-sig", "shift_jis"),
}

# Words of a remark that would explain a difference.
WORDS = {
    "roles": ("roles",),
    "times": ("--dates", "--columns", "order of the file"),
    "texts": ("read as", "kept"),
    "dialogues": ("column",),
}

Truth = dict[str, list[tuple[str, str, str]]]  # by id: role, text, time to the minute


@dataclass(frozen=True)
class Variant:
    """A file, what it holds, and how it was written."""

    name: str
    content: bytes
    truth: Truth
    dates: str
    choices: dict[str, str]


def variant(seed: int) -> Variant:
    """Write a file of made-up conversations."""
    draw = random.Random(seed)
    script, dates, header = (
        draw.choice(list(TEXTS)),
        draw.choice(list(DATES)),
        draw.choice(list(HEADERS)),
    )
    encoding, separator = draw.choice(ENCODINGS[script]), draw.choice(",;\t|")
    wide, shuffled, missing = draw.random() < 0.2, draw.random() < 0.4, draw.random() < 0.4
    # in the first days of a month, nothing decides the order of dates
    days = 365 * 4 if draw.random() < 0.6 else 12
    speakers, names = draw.choice(SPEAKERS), HEADERS[header]
    rows, truth = list[list[str]](), Truth()
    for number in range(draw.randint(5, 14)):
        time = datetime(2021, draw.randint(1, 9), 1) + timedelta(
            draw.randrange(days), minutes=draw.randrange(1300)
        )
        identifier = f"{chr(97 + seed % 26)}{number}"
        turns = truth[identifier] = []
        for place in range(draw.randint(1, 3) * 2):
            time += timedelta(minutes=draw.randint(1, 9))
            text = f"{draw.choice(TEXTS[script])} {number}.{place}"
            shown, side = DATES[dates][0](time), place % 2
            said = f"{time:%Y-%m-%dT%H:%M}"
            if missing and place and draw.random() < 0.15:
                text = draw.choice(("", "nan", "NULL", "N/A"))
            else:
                turns.append(("assistant" if side else "user", text, said))
            row = (
                [identifier, *([text, ""] if not side else ["", text])]
                if wide
                else [identifier, speakers[side], text]
            )
            rows.append([*row, shown])
    columns = [names[0], "customer", "agent", names[3]] if wide else list(names)
    if shuffled:
        draw.shuffle(rows)
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator).writerows([columns, *rows])
    content = text.getvalue()
    if (
        content.encode(encoding, "replace").decode(encoding) != content
    ):  # a month or a header of another script
        encoding = "utf-8"
    written = {
        "dates": dates,
        "header": header,
        "encoding": encoding,
        "separator": separator,
        "script": script,
    }
    written |= {"form": "wide" if wide else "long", "rows": "shuffled" if shuffled else "in order"}
    ending = "tsv" if separator == "\t" else "csv"
    return Variant(f"{seed}.{ending}", content.encode(encoding), truth, dates, written)


def judge(written: Variant, folder: Path, **options: str) -> tuple[str, str]:
    """Read a file back; return ``right``, ``asked`` or ``wrong``, and what differs or was said."""
    path = folder / written.name
    path.write_bytes(written.content)
    try:
        dialogues, remarks = with_remarks(path, **options)
    except InputError as error:
        return "asked", str(error)
    read = {
        dialogue.id: [(turn.role, turn.content, turn.time[:16]) for turn in dialogue.turns]
        for dialogue in dialogues
    }
    differences = _differences(written.truth, read)
    unsaid = [part for part in differences if not any(word in remarks for word in WORDS[part])]
    answer = "wrong" if unsaid else "asked" if differences else "right"
    return answer, f"{', '.join(unsaid or differences)}: {remarks}"


def _differences(truth: Truth, read: Truth) -> list[str]:
    """Name the parts in which two readings differ."""
    if truth.keys() != read.keys():
        return ["dialogues"]

    def part(dialogues: Truth, *columns: int) -> dict[str, list[tuple[str, ...]]]:
        return {
            id: [tuple(turn[column] for column in columns) for turn in turns]
            for id, turns in dialogues.items()
        }

    if any(sorted(texts) != sorted(part(read, 1)[id]) for id, texts in part(truth, 1).items()):
        return ["texts"]
    roles = any(
        sorted(turns) != sorted(part(read, 0, 1)[id]) for id, turns in part(truth, 0, 1).items()
    )
    times = part(truth, 1, 2) != part(read, 1, 2)
    return ["roles"] * roles + ["times"] * times
