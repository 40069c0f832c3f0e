"""What a corpus holds: the counts, in closed form, their table and their picture."""

from __future__ import annotations

import json
import random
import statistics as reference
import struct
import sys
from collections import Counter

import pytest
from talks import dialogue as say

from hf_dialemb.corpora import describe, load_dialogues
from hf_dialemb.corpora.audit.histograms import MAX_BINS, bin_counts, draw_histograms
from hf_dialemb.corpora.audit.statistics import Histogram, Statistics, most_frequent
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError

HOTEL = (
    Turn("user", "a cheap hotel please", ("inform", "greet"), (("price", "cheap"), ("stars", "")), ("book",)),
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
    """The rows of the table: two spaces or more lie between name and value."""
    pairs = (line.rsplit("  ", 1) for line in describe(dialogues).splitlines())
    return [(name.strip(), value) for name, value in pairs]


def histogram(values):
    found = Histogram()
    for value in values:
        found.add(value)
    return found


def png_size(path):
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", content[16:24])


def test_every_count_is_of_the_dialogues():
    def spread(mean, median, least, most, histogram):
        return {"mean": mean, "median": median, "min": least, "max": most, "histogram": histogram}

    stream = iter(DIALOGUES)
    assert Statistics.of(stream).to_json() == {
        **{"dialogues": 4, "turns": 8, "words": 15, "labelled_turns": 4, "one_speaker_dialogues": 2},
        "turns_per_dialogue": spread(2.0, 2.0, 1, 3, {"1": 1, "2": 2, "3": 1}),
        "words_per_turn": spread(1.875, 2.0, 1, 4, {"1": 3, "2": 4, "4": 1}),
        "words_per_dialogue": spread(3.75, 3.5, 1, 7, {"1": 1, "3": 1, "4": 1, "7": 1}),
        "turns_by_role": {"user": 3, "assistant": 4, "speaker_3": 1},
        "single_domain": {"dialogues": 2, "mean_turns": 2.5, "mean_words": 5.0},
        "domains": {"distinct": 2, "counts": {"hotel": 2, "taxi": 2}},
        "dialogue_acts": {"distinct": 3, "counts": {"inform": 2, "greet": 1, "request": 1}},
        "slots": {"distinct": 3, "counts": {"area": 2, "price": 1, "stars": 1}},
        "intents": {"distinct": 1, "counts": {"book": 2}},
        "duplicates": {"dialogues": 0, "dialogue_share": 0.0, "utterances": 2, "utterance_share": 0.25},
    }
    assert next(stream, None) is None
    counts = Statistics.of([]).to_json()
    assert counts["turns_per_dialogue"] == spread(None, None, None, None, {})
    assert counts["single_domain"] == {"dialogues": 0, "mean_turns": None, "mean_words": None}
    assert counts["duplicates"]["dialogue_share"] == 0.0
    assert json.loads(json.dumps(counts, allow_nan=False)) == counts


def test_the_order_of_the_dialogues_does_not_matter(sample_dialogues):
    dialogues = [*sample_dialogues, *sample_dialogues[:7], *DIALOGUES]
    shuffled = random.Random(3).sample(dialogues, len(dialogues))
    one, other = Statistics.of(dialogues), Statistics.of(shuffled)
    assert json.dumps(one.to_json()) == json.dumps(other.to_json())  # the order of the labels too
    assert one.to_table() == other.to_table()


def test_the_table_has_every_count():
    dialogues = [
        say("one two three", "four", domains=("hotel",)),
        say("one  two", "three four", "five", domains=("taxi", "hotel")),
        say("one"),
        say("one two", "three", "four", "five six", domains=("taxi", "hotel", "train")),
    ]
    assert rows(dialogues) == [
        *(("dialogues", "4"), ("turns", "10"), ("mean turns", "2.5"), ("mean words", "4.0")),
        *(("single-domain dialogues", "1"), ("mean turns", "2.0"), ("mean words", "4.0")),
        *(("speakers", "2"), ("user", "6 turns"), ("assistant", "4 turns")),
        *(("labels", "3"), ("hotel", "3"), ("taxi", "2"), ("train", "1")),
        *(("duplicate dialogues", "0 (0.0%)"), ("duplicate utterances", "2 (20.0%)")),
    ]
    bare = [("single-domain dialogues", "0"), ("speakers", "1"), ("user", "1 turns"), ("labels", "0")]
    assert rows([say("hello")])[4:] == bare
    assert [value for _, value in rows([])] == ["0"] * 5
    assert rows([say("hello", domains=("\x1b[2J",))])[-1] == ("\\x1b[2J", "1")  # no command to the terminal
    asked = Turn("user", "a room", ("inform", "greet"), (("area", "north"), ("area", "")), ("book",))
    twice = Dialogue((asked, Turn("assistant", "which", ("request",)), Turn("user", "any", ("inform",))))
    assert rows(iter([twice, say("hello"), twice]))[9:] == [
        *(("dialogue acts", "3"), ("inform", "4 turns"), ("greet", "2 turns"), ("request", "2 turns")),
        *(("slots", "1"), ("area", "2 turns"), ("intents", "1"), ("book", "2 turns")),
        *(("duplicate dialogues", "1 (33.3%)"), ("duplicate utterances", "3 (42.9%)")),
    ]


def test_the_ten_most_frequent_labels_stand_there_whatever_the_order():
    names = [f"label{number:02}" for number in range(14)]
    dialogues = [say("hello", domains=(name,)) for name in [*names, "label13"]]
    found = [row for row in rows(dialogues) if row[0].startswith("label")]
    assert found == [("labels", "14"), ("label13", "2"), *((name, "1") for name in names[:9])]
    assert describe(dialogues[::-1]) == describe(dialogues)
    assert most_frequent(Counter({"b": 1, "c": 2, "a": 1, "d": 3}), 3) == ["d", "c", "a"]
    assert most_frequent(Counter({"a": 1}), 3) == ["a"]
    assert most_frequent(Counter(), 3) == []


@pytest.mark.parametrize("count", [1, 2, 3, 10, 99, 100, 101])
def test_a_histogram_agrees_with_the_numbers_themselves(count):
    values = [random.Random(count).randrange(30) for _ in range(count)]
    found = histogram(values)
    assert (found.counts, found.total, found.sum) == (Counter(values), count, sum(values))
    assert found.mean == pytest.approx(reference.fmean(values))
    assert found.median == reference.median(values)
    for percent in (1, 50, 99, 100):
        bound = found.percentile(percent)
        assert sum(value < bound for value in values) * 100 < percent * count
        assert sum(value <= bound for value in values) * 100 >= percent * count


def test_what_counts_as_a_duplicate():
    found = Statistics.of([say("Hello  there\n", "YES"), say(" hello there", "yes"), say("hello, there", "yes")])
    assert (found.duplicate_dialogues, found.duplicate_utterances) == (1, 3)
    assert Statistics.of([say("a", "b"), say("a", "b"), say("a", "b")]).duplicate_dialogues == 2
    others = [say("a", "b"), say("b", "a"), say("a b"), say("a", "b", roles=("assistant", "user")), say("a", "b", "a")]
    assert Statistics.of(others).duplicate_dialogues == 0
    assert Statistics.of([say("\ud800"), say("\ud800"), say("\ud801")]).duplicate_dialogues == 1  # half a character


@pytest.mark.parametrize("values", [[3], range(40), range(41), [*range(0, 400, 2), 10_000], [5] * 99 + [10**9]])
def test_bins_are_equal_few_and_lose_only_the_tail(values):
    found = histogram(values)
    starts, counts, width = bin_counts(found)
    assert len(starts) == len(counts) <= MAX_BINS
    assert starts == [min(values) + index * width for index in range(len(starts))]
    assert counts == [sum(start <= value < start + width for value in values) for start in starts]
    assert sum(counts) >= 0.99 * len(values)
    assert bin_counts(histogram(range(40)))[2] == 1
    assert bin_counts(histogram(range(101)))[2] == 4
    _, even, width = bin_counts(histogram(range(2, 202, 2)))  # a bin holds as many even numbers as odd ones
    assert set(even[:-1]) == {width / 2}


@pytest.fixture
def drawn(tmp_path):
    pytest.importorskip("matplotlib")

    def draw(dialogues, title="corpus"):
        path = tmp_path / "folder" / "picture.png"
        draw_histograms(Statistics.of(dialogues), path, title)
        assert [entry.name for entry in path.parent.iterdir()] == ["picture.png"]
        return path

    return draw


@pytest.mark.slow
def test_the_picture_is_a_png_that_grows_with_the_number_of_bars(drawn):
    labelled = [say("hello", domains=(f"label {index}",)) for index in range(30)]
    assert png_size(drawn([say("hello")])) == (2250, 660)
    for dialogues, bars in ((DIALOGUES, 3), *((labelled[:count], min(count, 21)) for count in (1, 3, 20, 21, 30))):
        height = 150 * (4.4 + 1.2 + 0.26 * bars)
        assert png_size(drawn(dialogues)) == (2250, pytest.approx(height, abs=1))
    assert drawn(DIALOGUES).read_bytes() != drawn(DIALOGUES[:3]).read_bytes()
    assert drawn(DIALOGUES).read_bytes() == drawn(DIALOGUES[::-1]).read_bytes()


@pytest.mark.filterwarnings("error")
def test_text_of_the_corpus_is_drawn_as_it_stands(drawn):
    names = ("$\\frac{half$", "costs $5_^$", "_hidden", "%d {} \\alpha", "a\nb\x1b[31m", "long " * 40)
    dialogues = [Dialogue((Turn("user", "hi", names, tuple((name, "") for name in names), names),), domains=names)]
    assert png_size(drawn(dialogues, title="$\\broken{ title$"))[0] == 2250


def test_a_picture_needs_a_dialogue_and_matplotlib(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    with pytest.raises(InputError, match="got no dialogue, expected at least one"):
        draw_histograms(Statistics(), tmp_path / "picture.png", "")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r'pip install "hf-dialemb\[plot\]"'):
        draw_histograms(Statistics.of(DIALOGUES), tmp_path / "picture.png", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_sgd_as_published(data_dir):
    counts = Statistics.of(load_dialogues("sgd", data_dir, "dev")).to_json()
    assert (counts["dialogues"], counts["turns"], counts["words"]) == (2_482, 48_726, 470_873)
    assert counts["turns_by_role"] == {"user": 24_363, "assistant": 24_363}
    assert (counts["single_domain"]["dialogues"], counts["domains"]["distinct"]) == (836, 17)
    assert counts["labelled_turns"] == counts["turns"]
    assert counts["duplicates"]["dialogues"] == 0
