"""What a corpus holds: the counts, in closed form, and their picture."""

from __future__ import annotations

import json
import random
import statistics as reference
import struct
import sys
from collections import Counter

import pytest

from hf_dialemb.corpora import load_dialogues
from hf_dialemb.corpora.audit.histograms import MAX_BINS, bin_counts, draw_histograms
from hf_dialemb.corpora.audit.statistics import Histogram, Statistics, most_frequent
from hf_dialemb.models.dialogue import Dialogue, Turn
from hf_dialemb.models.errors import InputError

DIALOGUES = [
    Dialogue(
        (
            Turn("user", "a cheap hotel please", ("inform", "greet"), (("price", "cheap"), ("stars", "")), ("book",)),
            Turn("assistant", "which  area", ("request",), (("area", ""), ("area", "any"))),
            Turn("user", "north", ("inform",), (("area", "north"),)),
        ),
        "a",
        ("hotel",),
    ),
    Dialogue((Turn("user", "a taxi"), Turn("assistant", "Which area")), "b", ("taxi", "hotel", "taxi")),
    Dialogue((Turn("assistant", "hello"), Turn("assistant", "hello there")), "c", ("taxi",)),
    Dialogue((Turn("speaker_3", "north", intents=("book", "book")),), "d"),
]


def say(*texts, roles=("user", "assistant")):
    return Dialogue(tuple(Turn(roles[index % len(roles)], text) for index, text in enumerate(texts)))


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
    assert Statistics.of(DIALOGUES).to_json() == {
        "dialogues": 4,
        "turns": 8,
        "words": 15,
        "turns_per_dialogue": {"mean": 2.0, "median": 2.0, "min": 1, "max": 3, "histogram": {"1": 1, "2": 2, "3": 1}},
        "words_per_turn": {"mean": 1.875, "median": 2.0, "min": 1, "max": 4, "histogram": {"1": 3, "2": 4, "4": 1}},
        "words_per_dialogue": {
            "mean": 3.75,
            "median": 3.5,
            "min": 1,
            "max": 7,
            "histogram": {"1": 1, "3": 1, "4": 1, "7": 1},
        },
        "turns_by_role": {"user": 3, "assistant": 4, "speaker_3": 1},
        "one_speaker_dialogues": 2,
        "single_domain": {"dialogues": 2, "mean_turns": 2.5, "mean_words": 5.0},
        "domains": {"distinct": 2, "counts": {"hotel": 2, "taxi": 2}},
        "dialogue_acts": {"distinct": 3, "counts": {"inform": 2, "greet": 1, "request": 1}},
        "slots": {"distinct": 3, "counts": {"area": 2, "price": 1, "stars": 1}},
        "intents": {"distinct": 1, "counts": {"book": 2}},
        "labelled_turns": 4,
        "duplicates": {"dialogues": 0, "dialogue_share": 0.0, "utterances": 2, "utterance_share": 0.25},
    }


def test_a_stream_gives_what_the_list_gives_and_is_read_once():
    stream = iter(DIALOGUES)
    assert Statistics.of(stream).to_json() == Statistics.of(DIALOGUES).to_json()
    assert next(stream, None) is None


def test_the_order_of_the_dialogues_does_not_matter(sample_dialogues):
    dialogues = [*sample_dialogues, *sample_dialogues[:7], *DIALOGUES]
    shuffled = random.Random(3).sample(dialogues, len(dialogues))
    one, other = Statistics.of(dialogues), Statistics.of(shuffled)
    assert json.dumps(one.to_json()) == json.dumps(other.to_json())  # the order of the labels too
    assert one.to_table() == other.to_table()


def test_no_dialogue_gives_counts_of_nothing():
    counts = Statistics.of([]).to_json()
    assert counts["turns_per_dialogue"] == {"mean": None, "median": None, "min": None, "max": None, "histogram": {}}
    assert counts["single_domain"] == {"dialogues": 0, "mean_turns": None, "mean_words": None}
    assert counts["duplicates"]["dialogue_share"] == 0.0
    assert json.loads(json.dumps(counts, allow_nan=False)) == counts


@pytest.mark.parametrize("count", [1, 2, 3, 10, 99, 100, 101])
def test_a_histogram_agrees_with_the_numbers_themselves(count):
    values = [random.Random(count).randrange(30) for _ in range(count)]
    found = histogram(values)
    assert found.counts == Counter(values)
    assert (found.total, found.sum) == (count, sum(values))
    assert found.mean == pytest.approx(reference.fmean(values))
    assert found.median == reference.median(values)
    for percent in (1, 50, 99, 100):
        bound = found.percentile(percent)
        assert sum(value <= bound for value in values) * 100 >= percent * count
        assert sum(value < bound for value in values) * 100 < percent * count


def test_texts_are_the_same_but_for_case_and_white_space():
    found = Statistics.of([say("Hello  there\n", "YES"), say(" hello there", "yes"), say("hello, there", "yes")])
    assert (found.duplicate_dialogues, found.duplicate_utterances) == (1, 3)


def test_dialogues_are_the_same_if_the_same_roles_say_the_same_turns():
    assert Statistics.of([say("a", "b"), say("a", "b"), say("a", "b")]).duplicate_dialogues == 2
    others = [say("a", "b"), say("b", "a"), say("a b"), say("a", "b", roles=("assistant", "user")), say("a", "b", "a")]
    assert Statistics.of(others).duplicate_dialogues == 0


def test_half_a_character_is_counted_as_any_other():
    assert Statistics.of([say("\ud800"), say("\ud800"), say("\ud801")]).duplicate_dialogues == 1


def test_the_most_frequent_labels_come_first_and_ties_by_the_alphabet():
    assert most_frequent(Counter({"b": 1, "c": 2, "a": 1, "d": 3}), 3) == ["d", "c", "a"]
    assert most_frequent(Counter({"a": 1}), 3) == ["a"]
    assert most_frequent(Counter(), 3) == []


@pytest.mark.parametrize("values", [[3], range(40), range(41), [*range(0, 400, 2), 10_000], [5] * 99 + [10**9]])
def test_bins_are_equal_few_and_lose_only_the_tail(values):
    found = histogram(values)
    starts, counts, width = bin_counts(found)
    assert len(starts) == len(counts) <= MAX_BINS
    assert starts == [min(values) + index * width for index in range(len(starts))]
    assert counts == [sum(start <= value < start + width for value in values) for start in starts]
    assert sum(counts) >= 0.99 * len(values)


def test_bins_of_more_than_one_number_hold_as_many_even_as_odd_ones():
    assert bin_counts(histogram(range(40)))[2] == 1
    assert bin_counts(histogram(range(101)))[2] == 4
    even = bin_counts(histogram(range(2, 202, 2)))
    assert set(even[1][:-1]) == {even[2] / 2}


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
    def height(bars):
        return 150 * (4.4 + 1.2 + 0.26 * bars)

    labelled = [Dialogue((Turn("user", "hello"),), domains=(f"label {index}",)) for index in range(30)]
    assert png_size(drawn([say("hello")])) == (2250, 660)
    for count, bars in ((1, 1), (3, 3), (20, 20), (21, 21), (30, 21)):
        assert png_size(drawn(labelled[:count])) == (2250, pytest.approx(height(bars), abs=1))
    assert png_size(drawn(DIALOGUES)) == (2250, pytest.approx(height(3), abs=1))


@pytest.mark.filterwarnings("error")
def test_text_of_the_corpus_is_drawn_as_it_stands(drawn):
    names = ("$\\frac{half$", "costs $5_^$", "_hidden", "%d {} \\alpha", "a\nb\x1b[31m", "long " * 40)
    dialogues = [Dialogue((Turn("user", "hi", names, tuple((name, "") for name in names), names),), domains=names)]
    assert png_size(drawn(dialogues, title="$\\broken{ title$"))[0] == 2250


@pytest.mark.slow
def test_different_corpora_give_different_pictures(drawn):
    assert drawn(DIALOGUES).read_bytes() != drawn(DIALOGUES[:3]).read_bytes()
    assert drawn(DIALOGUES).read_bytes() == drawn(DIALOGUES[::-1]).read_bytes()


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
