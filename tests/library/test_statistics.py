"""What a corpus holds, counted; and the corpus that the package makes up."""

import hashlib
import json
import os
import random
import statistics as reference
import struct
import subprocess
import sys
from collections import Counter

import pytest
from talks import dialogue as say

from hf_dialemb.data import describe, load_dialogues
from hf_dialemb.data.audit.statistics import (
    MAX_BINS,
    Histogram,
    Statistics,
    bin_counts,
    draw_histograms,
)
from hf_dialemb.dialogue import Dialogue, Turn

HOTEL = (
    Turn(
        "user",
        "a cheap hotel please",
        ("inform", "greet"),
        (("price", "cheap"), ("stars", "")),
        ("book",),
    ),
    Turn("assistant", "which  area", ("request",), (("area", ""), ("area", "any"))),
    Turn("user", "north", ("inform",), (("area", "north"),)),
)
DIALOGUES = [
    Dialogue(HOTEL, "a", ("hotel",)),
    say("a taxi", "Which area", id="b", domains=("taxi", "hotel", "taxi")),
    say("hello", "hello there", id="c", domains=("taxi",), roles=("assistant",)),
    Dialogue((Turn("speaker_3", "north", intents=("book", "book")),), "d"),
]


def rows(dialogues):
    """Return the rows of the table: two spaces or more lie between name and value."""
    pairs = (line.rsplit("  ", 1) for line in describe(dialogues).splitlines())
    return [(name.strip(), value) for name, value in pairs]


def test_every_count_is_of_the_dialogues():
    def spread(mean, median, least, most, histogram):
        return {"mean": mean, "median": median, "min": least, "max": most, "histogram": histogram}

    stream = iter(DIALOGUES)
    assert Statistics.of(stream).to_json() == {
        **{
            "dialogues": 4,
            "turns": 8,
            "words": 15,
            "labelled_turns": 4,
            "one_speaker_dialogues": 2,
        },
        "turns_per_dialogue": spread(2.0, 2.0, 1, 3, {"1": 1, "2": 2, "3": 1}),
        "words_per_turn": spread(1.875, 2.0, 1, 4, {"1": 3, "2": 4, "4": 1}),
        "words_per_dialogue": spread(3.75, 3.5, 1, 7, {"1": 1, "3": 1, "4": 1, "7": 1}),
        "turns_by_role": {"user": 3, "assistant": 4, "speaker_3": 1},
        "single_domain": {"dialogues": 2, "mean_turns": 2.5, "mean_words": 5.0},
        "domains": {"distinct": 2, "counts": {"hotel": 2, "taxi": 2}},
        "dialogue_acts": {"distinct": 3, "counts": {"inform": 2, "greet": 1, "request": 1}},
        "slots": {"distinct": 3, "counts": {"area": 2, "price": 1, "stars": 1}},
        "intents": {"distinct": 1, "counts": {"book": 2}},
        "duplicates": {
            "dialogues": 0,
            "dialogue_share": 0.0,
            "utterances": 2,
            "utterance_share": 0.25,
        },
    }
    assert next(stream, None) is None
    counts = Statistics.of([]).to_json()
    assert counts["turns_per_dialogue"] == spread(None, None, None, None, {})
    assert counts["single_domain"] == {"dialogues": 0, "mean_turns": None, "mean_words": None}
    assert counts["duplicates"]["dialogue_share"] == 0.0
    assert json.loads(json.dumps(counts, allow_nan=False)) == counts


def test_the_table_has_every_count_and_what_counts_as_a_duplicate():
    assert rows(iter([*DIALOGUES, DIALOGUES[0]])) == [
        *(("dialogues", "5"), ("turns", "11"), ("mean turns", "2.2"), ("mean words", "4.4")),
        *(("single-domain dialogues", "3"), ("mean turns", "2.7"), ("mean words", "5.7")),
        *(
            ("speakers", "3"),
            ("user", "5 turns"),
            ("assistant", "5 turns"),
            ("speaker_3", "1 turns"),
        ),
        *(("labels", "2"), ("hotel", "3"), ("taxi", "2")),
        *(
            ("dialogue acts", "3"),
            ("inform", "4 turns"),
            ("greet", "2 turns"),
            ("request", "2 turns"),
        ),
        *(("slots", "3"), ("area", "4 turns"), ("price", "2 turns"), ("stars", "2 turns")),
        *(("intents", "1"), ("book", "3 turns")),
        *(("duplicate dialogues", "1 (20.0%)"), ("duplicate utterances", "5 (45.5%)")),
    ]
    bare = [
        ("single-domain dialogues", "0"),
        ("speakers", "1"),
        ("user", "1 turns"),
        ("labels", "0"),
    ]
    assert rows([say("hello")])[4:] == bare
    assert [value for _, value in rows([])] == ["0"] * 5
    assert rows([say("hello", domains=("\x1b[2J",))])[-1] == (
        "\\x1b[2J",
        "1",
    )  # no command to the terminal
    result = Statistics.of(
        [say("Hello  there\n", "YES"), say(" hello there", "yes"), say("hello, there", "yes")]
    )
    assert (result.duplicate_dialogues, result.duplicate_utterances) == (1, 3)
    assert Statistics.of([say("a", "b")] * 3).duplicate_dialogues == 2
    others = [
        say("a", "b"),
        say("b", "a"),
        say("a b"),
        say("a", "b", roles=("assistant", "user")),
        say("a", "b", "a"),
    ]
    assert Statistics.of(others).duplicate_dialogues == 0
    assert (
        Statistics.of([say("\ud800"), say("\ud800"), say("\ud801")]).duplicate_dialogues == 1
    )  # half a character


def test_the_ten_most_frequent_labels_do_not_depend_on_the_order(sample_dialogues):
    names = [f"label{number:02}" for number in range(14)]
    dialogues = [say("hello", domains=(name,)) for name in [*names, "label13"]]
    result = [row for row in rows(dialogues) if row[0].startswith("label")]
    assert result == [("labels", "14"), ("label13", "2"), *((name, "1") for name in names[:9])]
    dialogues += [*sample_dialogues, *sample_dialogues[:7], *DIALOGUES]
    first, other = (
        Statistics.of(dialogues),
        Statistics.of(random.Random(3).sample(dialogues, len(dialogues))),
    )
    assert json.dumps(first.to_json()) == json.dumps(other.to_json())  # the order of the labels too
    assert first.to_table() == other.to_table()


@pytest.mark.parametrize("count", [1, 2, 3, 10, 99, 100, 101])
def test_a_histogram_agrees_with_the_numbers_themselves(count):
    values = [random.Random(count).randrange(30) for _ in range(count)]
    result = Histogram(values)
    assert (result, result.total(), result.sum) == (Counter(values), count, sum(values))
    assert result.mean == pytest.approx(reference.fmean(values))
    assert result.median == reference.median(values)
    for percent in (1, 50, 99, 100):
        bound = result.percentile(percent)
        assert sum(value < bound for value in values) * 100 < percent * count
        assert sum(value <= bound for value in values) * 100 >= percent * count


@pytest.mark.parametrize(
    "values", [[3], range(40), range(41), [*range(0, 400, 2), 10_000], [5] * 99 + [10**9]]
)
def test_bins_are_equal_few_and_lose_only_the_tail(values):
    result = Histogram(values)
    starts, counts, width = bin_counts(result)
    assert len(starts) == len(counts) <= MAX_BINS
    assert starts == [min(values) + index * width for index in range(len(starts))]
    assert counts == [sum(start <= value < start + width for value in values) for start in starts]
    assert sum(counts) >= 0.99 * len(values)
    assert bin_counts(Histogram(range(40)))[2] == 1
    assert bin_counts(Histogram(range(101)))[2] == 4
    # a bin holds as many even numbers as odd ones
    _, even, width = bin_counts(Histogram(range(2, 202, 2)))
    assert set(even[:-1]) == {width / 2}


@pytest.fixture
def drawn(tmp_path):
    pytest.importorskip("matplotlib")

    def draw(dialogues, title="corpus"):
        """Return the picture, its width and its height."""
        path = tmp_path / "folder" / "picture.png"
        draw_histograms(Statistics.of(dialogues), path, title)
        assert [entry.name for entry in path.parent.iterdir()] == ["picture.png"]
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        return content, *struct.unpack(">II", content[16:24])

    return draw


@pytest.mark.filterwarnings("error")
def test_text_of_the_corpus_is_drawn_as_it_stands(drawn):
    names = (
        "$\\frac{half$",
        "costs $5_^$",
        "_hidden",
        "%d {} \\alpha",
        "a\nb\x1b[31m",
        "long " * 40,
    )
    dialogues = [
        Dialogue(
            (Turn("user", "hi", names, tuple((name, "") for name in names), names),), domains=names
        )
    ]
    assert drawn(dialogues, title="$\\broken{ title$")[1] == 2250


SIZES = {"train": 480, "dev": 96, "test": 240}
DIGEST = "1e259963d408b6fdb7b2e36bf7c6a15b17f1577d1f1b234449005450007bd380"


@pytest.fixture(scope="module")
def splits():
    return {split: load_dialogues("sample", None, split) for split in SIZES}


def test_the_same_on_every_machine_whatever_the_hash_seed(splits):
    assert hashlib.sha256(repr(list(splits.values())).encode()).hexdigest() == DIGEST
    program = (
        "from hf_dialemb.data import load_dialogues; print(load_dialogues('sample', None, 'dev'))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    there = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert there.stdout.strip() == repr(splits["dev"])
