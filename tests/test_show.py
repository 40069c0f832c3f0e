"""Dialogues as text to read, and how one is found."""

import unicodedata
from difflib import SequenceMatcher
from itertools import count

import pytest
from talks import dialogue

from hf_dialemb.corpora.show import find_dialogue, render_dialogue, visible
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError


def columns(line):
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line)


def numbered(total):
    return [dialogue(f"text {index}", id=f"dev/{index:04}") for index in range(1, total + 1)]


SAID = (
    Turn("user", "I need a room", ("inform",), (("area", "north"), ("price", "")), ("book_hotel",)),
    Turn("assistant", "For how many people shall it be?", ("request",)),
    Turn("user", "two", slots=(("people", "2"),), intents=("book_hotel", "book_taxi")),
    Turn("speaker_3", "[inform] three", ("inform", "negate"), (("people", "3"),)),
)
SHOWN = """\
id       dev/7
domains  hotel, taxi
turns    4 (user 2, assistant 1,
         speaker_3 1)

user       I need a room
               [inform: area=north,
               price | intent:
               book_hotel]

assistant  For how many people shall it
           be?
               [request]

user       two
               [slots: people=2 |
               intent: book_hotel,
               book_taxi]

speaker_3  [inform] three
               [inform, negate:
               people=3]"""


def test_a_dialogue_in_full():
    assert render_dialogue(Dialogue(SAID, "dev/7", ("hotel", "taxi")), 40) == SHOWN
    bare = "id       (none)\ndomains  (none)\nturns    1 (user 1)\n\nuser  "
    assert render_dialogue(dialogue("hello")) == f"{bare}hello"
    lines = "one\n      two three\n\n      user four"  # they stay lines below the speaker
    assert render_dialogue(dialogue("one\r\n\ttwo   three\n\nuser  four")) == bare + lines


def test_no_line_is_wider_than_the_page_and_no_word_is_lost():
    text = "some words of different length, " * 9 + "a" * 150 + " 你好，我想订一个房间。" * 12 + " end"
    for width in (40, 41, 57, 100):
        lines = render_dialogue(Dialogue((Turn("assistant", text, ("act",) * 30),)), width).split("\n")
        assert max(map(columns, lines)) <= width
        spoken = [line for line in lines[lines.index("") + 1 :] if not line.startswith(" " * 15)]
        assert [line[:11] for line in spoken] == ["assistant  ", *[" " * 11] * (len(spoken) - 1)]
        assert "".join("".join(line[11:] for line in spoken).split()) == "".join(text.split())
    narrow = render_dialogue(dialogue("word " * 20), 5).split("\n")
    assert max(len(line) for line in narrow) == len("user  ") + 19  # at least twenty columns for the text


HARMFUL = "\x1b[31mred\x07 \x9b2J \u202eback\u2066 \u200f\u061c\ufeff\u00ad \x00 \u2028 \r \ud800 \U000e0041"


def test_nothing_in_a_corpus_reaches_the_terminal_as_a_command():
    turn = Turn("user", HARMFUL, (HARMFUL,), ((HARMFUL, HARMFUL),), (HARMFUL,))
    shown = render_dialogue(Dialogue((turn,), HARMFUL + "\n", (HARMFUL + "\t",)), 2000)
    kinds = {unicodedata.category(character) for character in shown if character != "\n"}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert shown.count("\\x1b[31mred\\x07 \\x9b2J \\u202eback\\u2066") == 7
    assert len(shown.split("\n")) == 6
    readable = "Zimmer für zwei, 你好 שלום \U0001f468\u200d\U0001f469 ان\u200cها \\x1b"
    assert visible(readable) == readable
    assert visible("\x1b\t\n\u202e\U000e0041") == "\\x1b\\t\\n\\u202e\\U000e0041"


def test_the_first_with_the_id_is_found_and_the_rest_is_not_read():
    def endless():
        for number in count(1):
            assert number <= 12
            yield dialogue(str(number), id=f"id{number // 2}")

    assert find_dialogue(endless(), "id3").turns[0].content == "6"
    assert find_dialogue(endless(), "#12").turns[0].content == "12"
    with pytest.raises(InputError, match=r"none of 2 dialogues has; they have no ids; give a position such as '#12'"):
        find_dialogue([dialogue("one"), dialogue("two")], "two")
    with pytest.raises(InputError, match="there is no dialogue to look in"):
        find_dialogue([], "a")


def test_an_id_that_is_not_there_is_refused_with_the_nearest():
    for wanted, sentence in (
        ("dev/0O12", "got 'dev/0O12', which none of 2,000 dialogues has; the nearest: 'dev/0012', 'dev/"),
        ("dev/12", "the nearest: 'dev/0012', 'dev/0102', 'dev/0112'; give one of them, or a position"),
        ("something else", "ids look like 'dev/0001'; give such an id, or a position such as '#12'"),
        ("\x1b[2J", r"got '\x1b[2J', which none"),
        ("#2001", "got the position '#2001', expected at most '#2000': there are 2,000 dialogues"),
        ("#0", "positions count from one; the first dialogue is '#1'"),
        ("#" + "9" * 5000, "which none of 2,000 dialogues has"),
    ):
        with pytest.raises(InputError) as refusal:
            find_dialogue(iter(numbered(2000)), wanted)
        assert sentence in str(refusal.value)


@pytest.mark.parametrize("wanted", ["dev/12", "ev/0199", "dve/0211", "dev/00123"])
def test_the_nearest_ids_are_the_most_similar_of_all_in_any_order(wanted):
    dialogues = numbered(300)
    ratios = {each.id: SequenceMatcher(None, each.id, wanted, autojunk=False).ratio() for each in dialogues}
    best = sorted(ratios, key=lambda id: (-ratios[id], id))[:3]
    for ordered in (dialogues, dialogues[::-1], dialogues * 2):
        with pytest.raises(InputError) as refusal:
            find_dialogue(ordered, wanted)
        assert f"the nearest: {', '.join(map(repr, best))};" in str(refusal.value)
