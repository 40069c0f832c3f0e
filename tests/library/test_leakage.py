"""Parts of evaluation sets in training data, and training data without them."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from made_up_corpora import needs
from talks import dialogue

from hf_dialemb.data import iterate_dialogues, write_jsonl
from hf_dialemb.data.audit import near_duplicates as near
from hf_dialemb.data.audit.leakage import (
    Cleaning,
    EvaluationIndex,
    build_index,
    find_leakage,
    leakage_table,
)
from hf_dialemb.data.audit.near_duplicates import Utterances, comparable
from hf_dialemb.dialogue import Dialogue, Turn
from hf_dialemb.errors import InputError

HARBOUR = (
    "I'm looking for a boat trip to the seal islands, on Sunday if that's possible.",
    "There are two on Sunday: the Kittiwake leaves at 9:30 and the Old Gannet at noon. Which do "
    "you prefer?",
    "We don't get up early. The Gannet, please, for three adults and a child.",
    "Done! Your reference is QX71. Bring warm clothes, it's windy out there.",
)
LIBRARY = (
    "Hello, my library card has expired. What do I need to bring to have it renewed?",
    "A photograph and something with your address on it. The desk is open until seven.",
    "Can my daughter, who is twelve, fetch a card of her own at the same time?",
    "She can, as long as you sign the form for her.",
)
CHINESE = (
    "你好，我想预订星期六晚上去海岛的船票，两个大人和一个小孩。",
    "好的，星期六晚上六点和八点各有一班船，请问您想坐哪一班？",
    "八点那一班吧，我们要先去吃晚饭，麻烦您帮我留三个靠窗的座位。",
)
GREETING = ("Hello there.", "Good morning, how can I help?")
CHANGED = [
    text.replace("Sunday", "Tuesday").replace("three", "two").replace("QX71", "B4")
    for text in HARBOUR
]
EXCHANGE = ("请问怎么退货？我买的鞋子太小了，能不能换大一号的？", "可以的，您申请换货。")
QUESTION = "How do I renew my library card?"


def index(*dialogues, kind="dialogues", sets=()):
    result = EvaluationIndex()
    for name, item, kind_of_set in sets or [("set/test", dialogues, kind)]:
        result.add(name, item, kind_of_set)
    return result


def words(generator, count):
    syllables = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeio"]
    return ["".join(generator.choices(syllables, k=generator.randint(2, 4))) for _ in range(count)]


def spoken(generator, turns=6):
    return [" ".join(words(generator, generator.randint(5, 10))) for _ in range(turns)]


def test_copies_compare_as_equal_and_what_says_something_else_does_not():
    for single, other in (
        ("I don't know, Mr. Smith!", "i do n't know , mr smith"),
        ("It costs £12.50 (per head)", "it costs 12 . 50 per head"),
        *(
            ("STRASSE, Café", "straße  cafe\u0301"),
            ("ｈｏｔｅｌ　２", "hotel 2"),
            ("你好，明天见！", "你好 明天见"),
        ),
        *(
            ("нет, спасибо", "НЕТ СПАСИБО."),
            ("हाँ, ठीक है।", "हाँ ठीक है"),
            ("👍", " 👍 "),
            ("?!", "? !"),
        ),
    ):
        assert comparable(single) == comparable(other) != ""
    for single, other in (
        ("yes", "no"),
        ("room 1", "room 2"),
        ("की", "का"),
        ("?", "!"),
        ("好", ""),
    ):
        assert comparable(single) != comparable(other)


def test_dialogues_that_are_found_and_none_in_empty_sets():
    for held_out, training, expected in (
        (
            HARBOUR,
            [text.lower().replace("'", " '").replace(",", " ,") for text in HARBOUR],
            "exact",
        ),  # tokenised
        (HARBOUR, [text.upper().strip(".!?") for text in HARBOUR], "exact"),
        (HARBOUR, [HARBOUR[0], " ".join(HARBOUR[1:3]), HARBOUR[3]], "exact"),
        (HARBOUR, CHANGED, "near"),
        (HARBOUR, LIBRARY, "nothing"),
        (HARBOUR, HARBOUR[:2], "within"),
        (HARBOUR, [*LIBRARY, *HARBOUR, *LIBRARY], "within"),
        (HARBOUR, [text for pair in zip(HARBOUR, LIBRARY, strict=True) for text in pair], "near"),
        (
            GREETING,
            ["Hello there!", "Good morning. How may I help?"],
            "nothing",
        ),  # a phrase is no dialogue
        (GREETING, ["hello there", "good morning how can i help"], "exact"),
        (CHINESE, [" ".join(text) for text in CHINESE], "exact"),
        (CHINESE, [text.replace("星期六", "星期天") for text in CHINESE], "near"),
        (CHINESE, [CHINESE[2], "谢谢你，再见。"], "near"),
        (CHINESE, EXCHANGE, "nothing"),
    ):
        evaluation = index(dialogue(*spoken(random.Random(9)), id="b"), dialogue(*held_out, id="a"))
        leaks = evaluation.leaks(dialogue(*training))
        for leak in leaks:
            assert (leak.evaluation, leak.id, leak.level, leak.turn) == (
                "set/test",
                "a",
                "dialogue",
                None,
            )
            assert near.DIALOGUE_THRESHOLD < leak.similarity <= 1
        outcome = [
            "exact" if leak.exact else "within" if leak.similarity == 1 else "near"
            for leak in leaks
        ]
        assert outcome == ([expected] if expected != "nothing" else [])
        assert list(evaluation.clean([dialogue(*training)])) == (
            [] if outcome else [dialogue(*training)]
        )


def test_a_leaking_turn_is_removed_and_the_others_stay():
    evaluation = index(dialogue("how do i renew my library card", id="7"), kind="utterances")
    first = Turn("user", "Hello, a question.", ("greet",), (("name", "Ann"),), ("ask",))
    turns = (
        first,
        Turn("assistant", "Ask!"),
        Turn("user", QUESTION),
        Turn("speaker_3", "At the desk."),
    )
    training = Dialogue(turns, "t", ("library",))
    (leak,) = evaluation.leaks(training)
    assert (leak.id, leak.level, leak.exact, leak.turn) == ("7", "utterance", True, 2)
    cleaning = Cleaning()
    assert list(evaluation.clean([training], cleaning)) == [
        replace(training, turns=(*turns[:2], turns[3]))
    ]
    assert cleaning == Cleaning(dialogues=1, removed_dialogues=0, turns=4, removed_turns=1)
    # Training reads no turns as neighbours that were none: it takes the runs of turns between those
    # that leak.
    whole, other, leak = (
        Dialogue((*turns, turns[1]), "t", metadata={"questions": []}),
        dialogue(*GREETING, id="u"),
        dialogue(QUESTION, id="v"),
    )
    cleaning, cleaned = Cleaning(), Cleaning()
    pieces = [other, replace(whole, turns=turns[:2]), replace(whole, turns=whole.turns[3:])]
    actual = list(evaluation.pieces([other, whole, leak], cleaning))
    assert (actual, [piece.metadata for piece in actual]) == (
        pieces,
        [{}, {}, {}],
    )  # places of turns have moved
    assert len(list(evaluation.clean([other, whole, leak], cleaned))) == 2
    assert (
        cleaning == cleaned == Cleaning(dialogues=3, removed_dialogues=1, turns=8, removed_turns=2)
    )


def runs_of(text, length):
    return {text[start : start + length] for start in range(len(text) - length + 1)}


def edited(generator, texts, changes):
    texts = [text.split() for text in texts]
    for _ in range(changes):
        turn = generator.choice(texts)
        turn[generator.randrange(len(turn))] = words(generator, 1)[0]
    return [" ".join(turn) for turn in texts]


def variations(count):
    """Dialogues with a frame in common, and copies of them with none to very many words changed."""
    generator = random.Random(11)
    frame = " ".join(words(generator, 12))
    starts = [[frame, *spoken(generator, generator.randint(1, 6))] for _ in range(count)]
    evaluation = [dialogue(*texts, id=f"e{number}") for number, texts in enumerate(starts)]
    training = []
    for number, start in enumerate(starts):
        texts = edited(generator, start, generator.choice([0, 1, 2, 4, 7, 11, 16]))
        more = generator.choice([[], spoken(generator, 3), []])
        training.append(dialogue(*[*texts, *more][generator.choice([0, 0, 1]) :], id=f"t{number}"))
    return evaluation, training


@pytest.mark.slow
def test_near_dialogues_are_those_of_a_comparison_of_all_pairs():
    def all_runs(item):
        return runs_of(comparable(" ".join(turn.content for turn in item.turns)), 8)

    evaluation, training = variations(200)
    runs = {item.id: all_runs(item) for item in evaluation}
    owners = Counter(run for outcome in runs.values() for run in outcome)
    common = {run for run, count in owners.items() if count > near.MOST_OWNERS}
    assert common
    expected, outcome, index_of_all = {}, {}, index(*evaluation)
    for item in training:
        leaks = index_of_all.leaks(item)
        if len(item.turns) == 1 or (leaks and leaks[0].exact):
            continue
        own, shares = all_runs(item) - common, []
        for identifier, others in runs.items():
            shared, smaller = len(own & others), min(len(own), len(others - common))
            if shared >= near.LEAST_SHARED and shared / smaller >= near.DIALOGUE_THRESHOLD:
                shares.append((-shared / smaller, identifier))
        expected[item.id] = min(shares, default=None)
        outcome[item.id] = (-leaks[0].similarity, leaks[0].id) if leaks else None
    assert outcome == expected
    assert len(outcome) - 50 > sum(map(bool, outcome.values())) > 50


def test_near_utterances_are_those_of_a_comparison_of_all_pairs():
    generator = random.Random(3)
    texts = [" ".join(words(generator, generator.randint(2, 9))) for _ in range(300)]
    copies = [
        edited(generator, [generator.choice(texts)], generator.randint(0, 2))[0] for _ in range(600)
    ]
    training = [
        text + tail for text, tail in zip(copies, ["", "", " so", " bo ka"] * 150, strict=True)
    ]
    utterances, similarities = Utterances(), []
    for number, text in enumerate(texts):
        utterances.add("set", f"e{number}", comparable(text))
    shingles = [runs_of(comparable(text), 3) for text in texts]
    for text in training:
        own = runs_of(comparable(text), 3)
        best = max(len(own & other) / len(own | other) for other in shingles)
        similarities.append(best if best >= near.UTTERANCE_THRESHOLD else 0.0)
    assert 50 < sum(0 < item < 1 for item in similarities) < 500
    outcome = [utterances.find(comparable(text)) for text in training]
    assert [matches[0].similarity if matches else 0.0 for matches in outcome] == similarities


def test_cleaning_leaves_no_leak_whatever_the_order():
    evaluation, training = variations(80)
    utterances = [
        dialogue(turn.content, id=f"u{item.id}")
        for item in training[:20]
        for turn in item.turns[:2]
    ]
    held_out = [("a/test", evaluation[:50], "dialogues"), ("b/test", evaluation[40:], "dialogues")]
    held_out.append(("c/test", utterances, "utterances"))
    training = [("a", training[:60]), ("b", training[60:])]
    report = leakage_table(training, index(sets=held_out))
    assert len(report.rows) == 6
    assert sum(row.near for row in report.rows) > 20 < sum(row.exact for row in report.rows)
    for row in report.rows:  # examples are few, and near ones come first
        assert [item["leak"]["exact"] for item in row.examples] == (
            [False] * row.near + [True] * row.exact
        )[:3]
    evaluation = index(sets=held_out)
    for name, dialogues in training:
        cleaning = Cleaning()
        left = list(evaluation.clean(dialogues, cleaning))
        assert cleaning == report.cleaning[name]
        assert 0 < len(left) == cleaning.dialogues - cleaning.removed_dialogues < len(dialogues)
        assert sum(len(item.turns) for item in left) == cleaning.turns - cleaning.removed_turns
        assert [leak for item in left for leak in evaluation.leaks(item)] == []
        assert list(evaluation.clean(left)) == left


@pytest.fixture
def files(tmp_path):
    held_out, train, utterances = (
        str(tmp_path / f"{name}.jsonl") for name in ("held_out", "train", "utterances")
    )
    write_jsonl([dialogue(*HARBOUR, id="a"), dialogue(*LIBRARY, id="b")], held_out)
    own = [
        dialogue(*[text.upper() for text in LIBRARY], id="x"),
        dialogue("What now?", "Nothing, thanks.", id="y"),
    ]
    write_jsonl([*own, *iterate_dialogues("sample", None, "train")], train)
    write_jsonl([dialogue("what now", id="1"), dialogue("where to", id="2")], utterances)
    return held_out, train, utterances


@pytest.mark.slow
def test_sets_are_read_and_the_report_counts_their_leaks(files):
    held_out, train, utterances = files
    report = find_leakage([train, "sample"], [held_out, utterances, "sample/test"])
    counts = [(row.training, row.evaluation, row.level, row.exact, row.near) for row in report.rows]
    assert counts[:2] == [
        (train, held_out, "dialogue", 1, 0),
        (train, utterances, "utterance", 1, 0),
    ]
    assert (
        f"| {train} | {held_out} | dialogues | {report.rows[0].items:,} | 1 | 0 |"
        in report.to_json()["table"]
    )
    assert report.rows[0].examples[0]["training_id"] == "x"
    assert report.cleaning[train].removed_dialogues >= 1


def test_mistakes_are_sentences(files, tmp_path, monkeypatch):
    for training, evaluation, message in (
        (
            "sample",
            "sample/train",
            "training set sample: got the same set as evaluation set sample/train",
        ),
        (
            "sample/all",
            "sample/test",
            "training set sample/all: got the same set as evaluation set sample/test",
        ),
        (
            "sample",
            "sample/tets",
            "Unknown split 'tets' of corpus sample. Available: train, dev, test",
        ),
        (
            "sample",
            "sample",
            "evaluation set sample: got no split, expected one, as in 'sample/train'",
        ),
        ("held_out.jsonl", "./held_out.jsonl", "got the same set"),
        ("held_out.jsonl", "missing.jsonl", "cannot be read"),
    ):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(InputError, match=message):
            find_leakage([training], [evaluation])


def leaks_of(report):
    return [sum(getattr(row, name) for row in report.rows) for name in ("exact", "near")]


@needs("hdsa")
@pytest.mark.slow
def test_copies_of_multiwoz_are_found_under_their_ids(data_dir):
    multiwoz = build_index(["multiwoz/dev", "multiwoz/test"], data_dir)
    held_out = {
        item.id
        for split in ("dev", "test")
        for item in iterate_dialogues("multiwoz", data_dir, split)
    }
    for corpus, same in (("hdsa", 1999), ("titan", 182)):
        outcome = others = 0
        for item in iterate_dialogues(corpus, data_dir, "all"):
            leaks = multiwoz.leaks(item)
            identifier = item.id.rpartition("/")[2]
            outcome += bool(leaks) and identifier in held_out
            others += bool(leaks) and identifier not in held_out
            assert bool(leaks) or identifier not in held_out, identifier
        assert outcome == same, corpus
        assert others <= 13, corpus
    for corpus, split, exact, near_ones in (
        ("multiwoz", "train", 2, 11),
        ("multiwoz21_restaurant", "all", 111, 0),
    ):
        report = leakage_table([(corpus, iterate_dialogues(corpus, data_dir, split))], multiwoz)
        assert leaks_of(report) == [exact, near_ones], corpus


@pytest.mark.slow
@pytest.mark.parametrize(
    ("training", "evaluation", "exact", "near"),
    [("star/train", "star/test", 38, 9), ("banking77/train", "banking77/test", 29, 192)],
)
def test_leakage_of_the_published_corpora(data_dir, training, evaluation, exact, near):
    assert leaks_of(find_leakage([training], [evaluation], data_dir)) == [exact, near]
