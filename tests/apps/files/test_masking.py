"""What masking replaces and leaves in invented texts, its counts, and its command."""

import json
from collections import Counter

import pytest
from masking_table import RESULTS, ours, right

from hf_dialemb import Dialogue, Turn, load_dialogues
from hf_dialemb.apps.files.masking import mask

pytest.importorskip("phonenumbers")
pytest.importorskip("stdnum")

MASKED = {
    "email": (
        ("mail rosa.perez+x@mail.example.co.uk now", "mail [email] now"),
        ("rosa at example dot com", "[email]"),
        ("<ROSA@EXAMPLE.ORG>", "<[email]>"),
    ),
    "link": (
        ("see https://example.org/a?b=c, or www.example.org.", "see [link], or [link]."),
        ("example.com/u/rosa!", "[link]!"),
        ("ip 192.168.0.1. and 2001:db8::1", "ip [link]. and [link]"),
    ),
    "card": (
        ("card 4111 1111 1111 1111 12/27", "card [card] 12/27"),
        ("5500-0000-0000-0004, please", "[card], please"),
        ("378282246310005", "[card]"),
        ("room 2 4111\xa01111  1111.1111", "room 2 [card]"),
    ),
    "account": (
        ("DE89 3704 0044 0532 0130 00 BIC COBADEFF", "[account] BIC COBADEFF"),
        ("AT61 1904 3002 3457 3201 and GB82WEST12345698765432", "[account] and [account]"),
        ("my account number is 12345678", "my account number is [account]"),
        ("Kontonummer: 1234567", "Kontonummer: [account]"),
    ),
    "name": (
        ("my name is Rosa Perez and rosa is lost", "my name is [name] and [name] is lost"),
        ("my name is peter.", "my name is [name]."),
        ("My name is Mrs. Smith. Dr. J. R. van Ott", "My name is Mrs. [name]. Dr. [name]"),
        ("Dr. O'Brien's office, Mr Null", "Dr. [name] office, Mr [name]"),
        ("This is Omar speaking", "This is [name] speaking"),
        ("Frau Müller ruft an. Müller!", "Frau [name] ruft an. [name]!"),
        ("je m'appelle Zoé Dupont, merci", "je m'appelle [name], merci"),
        ("me llamo Ana.", "me llamo [name]."),
    ),
}
# What the masks do not touch; the last are false alarms, or missed.
SAFE = (
    "on 2024-01-02 at 10:00",
    "01.02.2024 10:00",
    "12/04/2024",
    "14 February 2025 08:35",
    "01.02.2024-03.02.2024",
    "order 48215",
    "ticket 4821",
    "20240102",
    "$1,299.00",
    "1.299,00 EUR",
    "1 000 000",
    "2.500.000",
    "10:00-11:30",
    "2024-2025",
    "1200 x 1600 px",
    "train 4711 at 10 15",
    "seat 12 34 56",
    "my account 48215",
    "3.14159",
    "10:30:45",
    "My name is not on the list",
    "a licence of class M. What now?",
    "Will you mark it? I may.",
    "4111 1111 1111 1112",
    # names of persons that are missed, as masking is no guarantee
    "13812345678",
    "555-2671",
    "I am Rosa",
    "12 Main Street",
    "four one five, five five five",
)


def masked(text: str, names: tuple[str, ...] = (), **fields) -> tuple[Dialogue, dict[str, int]]:
    counts = Counter()
    (dialogue,) = mask([Dialogue((Turn("user", text, **fields),))], names, counts)
    return dialogue, {kind: count for kind, count in counts.items() if count}


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [(kind, *pair) for kind, pairs in MASKED.items() for pair in pairs],
)
def test_what_names_a_person_is_replaced_and_counted(kind, text, expected):
    dialogue, counts = masked(text)
    assert dialogue.turns[0].content == expected
    assert counts == {kind: expected.count(f"[{kind}]")}


def test_strings_of_ten_countries_are_masked_as_the_table_says():
    assert json.loads(RESULTS.read_text(encoding="utf-8"))["right"]["this package"] == right(ours)


@pytest.mark.parametrize("part", ["a@", "--", "a:"])
def test_a_long_text_is_masked_in_linear_time(part):
    assert masked(part * 100_000)[0].turns[0].content == part * 100_000


@pytest.mark.parametrize(
    "text",
    [
        "my phone number is 555-2671",
        "Tel.: 5552671",
        "contact no. is +1 555 0100",
        "fax 13812345678",
    ],
)
def test_a_number_after_a_word_for_telephones_is_replaced(text):
    assert masked(text)[0].turns[0].content.endswith(" [phone]")


@pytest.mark.parametrize("text", SAFE)
def test_dates_prices_short_numbers_words_and_what_is_missed_stay(text):
    assert masked(text)[0].turns[0].content == text


@pytest.mark.parametrize("text", ["order 4029357733", "postcode 94110-1234", "version 10.4.2.1"])
def test_what_looks_like_a_secret_is_replaced_too(text):
    assert masked(text)[0].turns[0].content != text


def test_names_of_speakers_and_of_the_list_are_replaced_where_they_stand():
    text = "Vic, vic! Will will help; thanks, omar"
    dialogue, counts = masked(text, ("Omar Feldgate", "Will"), name="Vic Joyce")
    assert dialogue.turns == (Turn("user", "[name], [name]! [name] will help; thanks, [name]"),)
    assert (dialogue.turns[0].name, counts) == ("[name]", {"name": 5})


@pytest.mark.parametrize(
    ("name", "expected"), [("bob", "[name]"), ("Agent", "Agent"), ("jo@example.org", "[email]")]
)
def test_a_speaker_keeps_only_a_name_of_a_role(name, expected):
    assert masked("The agent said hi", name=name)[0].turns[0].name == expected
    assert masked("The agent said hi", name=name)[0].turns[0].content == "The agent said hi"


def test_slots_metadata_and_ids_are_masked_and_ids_stay_different():
    turn = Turn("user", "Hi", slots=(("mail", "jo@example.org"),))
    metadata = {
        "Comment author": "bob",
        "team": "Bob's",
        "tags": ["call +44 20 7946 0958", {"author": "kim", "said": [None, {"to": "Kim"}]}],
        "score": 3,
        "dialled": 4155552671,
        "fee": 0.5,
    }
    dialogues = [
        Dialogue((turn,), id, metadata=metadata)
        for id in ("+4915123456789", "+4915123456780", "4029357733")
    ]
    results = list(mask(dialogues))
    assert [dialogue.id for dialogue in results] == ["[phone]-1", "[phone]-2", "4029357733"]
    assert results[0].turns[0].slots == (("mail", "[email]"),)
    assert results[0].metadata == {
        "Comment author": "[name]",
        "team": "[name]'s",
        "tags": ["call [phone]", {"author": "[name]", "said": [None, {"to": "[name]"}]}],
        "score": 3,
        "dialled": "[phone]",
        "fee": 0.5,
    }


def test_masking_twice_changes_nothing_more():
    text = "I am Vic, vic@example.org, +44 20 7946 0958, my name is Ana Cruz"
    (first,) = mask([Dialogue((Turn("user", text, name="Vic"),), "vic")])
    assert list(mask([first])) == [first]


def test_the_command_masks_counts_and_promises_nothing(tmp_path, printed):
    source, names, output = (
        tmp_path / "calls.csv",
        tmp_path / "names.txt",
        tmp_path / "masked.jsonl",
    )
    source.write_text(
        "id,role,content\n1,user,I know Quentin. Mail jo@example.org\n1,agent,Quentin? Thanks\n"
    )
    names.write_text("Quentin\n\n", encoding="utf-8-sig")
    words = ("corpus", "convert", source, "--mask", "--mask-names", names, "--output", output)
    told = printed(*words)
    assert "Masked: name 2, email 1" in told
    assert "no guarantee" in told
    (dialogue,) = load_dialogues(output)
    assert [turn.content for turn in dialogue.turns] == [
        "I know [name]. Mail [email]",
        "[name]? Thanks",
    ]


def test_a_list_of_names_without_mask_is_refused(tmp_path, refused):
    words = ("--mask-names", "names.txt", "--output", tmp_path / "x.jsonl")
    assert "add --mask" in refused("corpus", "convert", "calls.csv", *words)
