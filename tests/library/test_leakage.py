"""Parts of evaluation sets in training data, and training data without them."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from made_up_corpora import needs
from talks import dialogue

from hf_dialemb import Dialogue, InputError, Turn
from hf_dialemb.data import iterate_dialogues, write_jsonl
from hf_dialemb.data import near_duplicates as near
from hf_dialemb.data.leakage import EvaluationIndex, build_index
from hf_dialemb.data.near_duplicates import Utterances, comparable

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
QUESTION = "How do I renew my library card?"


def index(*dialogues, kind="dialogues", sets=()):
    result = EvaluationIndex()
    for item, kind_of_set in sets or [(dialogues, kind)]:
        result.add(item, kind_of_set == "dialogues")
    return result


def cleaned(evaluation, dialogues, **how):
    """What is left of dialogues, and the numbers of dialogues and turns that are not."""
    counts = Counter()
    return list(evaluation.clean(dialogues, counts, **how)), (counts["dialogues"], counts["turns"])


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
            "leaks",
        ),  # tokenised
        (HARBOUR, [text.upper().strip(".!?") for text in HARBOUR], "leaks"),
        (HARBOUR, [HARBOUR[0], " ".join(HARBOUR[1:3]), HARBOUR[3]], "leaks"),
        (HARBOUR, CHANGED, "leaks"),
        (HARBOUR, LIBRARY, "stays"),
        (HARBOUR, HARBOUR[:2], "leaks"),
        (HARBOUR, [*LIBRARY, *HARBOUR, *LIBRARY], "leaks"),
        (HARBOUR, [text for pair in zip(HARBOUR, LIBRARY, strict=True) for text in pair], "leaks"),
        (
            GREETING,
            ["Hello there!", "Good morning. How may I help?"],
            "stays",
        ),  # a phrase is no dialogue
        (GREETING, ["hello there", "good morning how can i help"], "leaks"),
        (CHINESE, [" ".join(text) for text in CHINESE], "leaks"),
        (CHINESE, [text.replace("星期六", "星期天") for text in CHINESE], "leaks"),
        (CHINESE, [CHINESE[2], "谢谢你，再见。"], "leaks"),
        (
            CHINESE,
            ("请问怎么退货？我买的鞋子太小了，能不能换大一号的？", "可以的，您申请换货。"),
            "stays",
        ),
    ):
        evaluation = index(dialogue(*spoken(random.Random(9)), id="b"), dialogue(*held_out, id="a"))
        left, _ = cleaned(evaluation, [dialogue(*training)])
        assert left == ([dialogue(*training)] if expected == "stays" else [])


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
    left = replace(training, turns=(*turns[:2], turns[3]))
    assert cleaned(evaluation, [training]) == ([left], (0, 1))
    # Training reads no turns as neighbours that were none: it takes the runs of turns between those
    # that leak.
    whole = Dialogue((*turns, turns[1]), "t", metadata={"questions": []})
    other = dialogue(*GREETING, id="u")
    leak = dialogue(QUESTION, id="v")
    pieces, counts = cleaned(evaluation, [other, whole, leak], cut=True)
    assert pieces == [other, replace(whole, turns=turns[:2]), replace(whole, turns=whole.turns[3:])]
    assert [piece.metadata for piece in pieces] == [{}, {}, {}]  # places of turns have moved
    assert counts == cleaned(evaluation, [other, whole, leak])[1] == (1, 2)


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
    texts = {comparable(" ".join(turn.content for turn in item.turns)) for item in evaluation}
    expected, outcome, index_of_all = [], [], index(*evaluation)
    for item in training:
        if len(item.turns) == 1 or comparable(" ".join(t.content for t in item.turns)) in texts:
            continue
        own = all_runs(item) - common
        leaks = False
        for others in runs.values():
            shared, smaller = len(own & others), min(len(own), len(others - common))
            leaks |= shared >= near.LEAST_SHARED and shared / smaller >= near.DIALOGUE_THRESHOLD
        expected.append(leaks)
        outcome.append(not cleaned(index_of_all, [item])[0])
    assert outcome == expected
    assert len(outcome) - 50 > sum(outcome) > 50


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
    for text in texts:
        utterances.add(comparable(text))
    shingles = [runs_of(comparable(text), 3) for text in texts]
    for text in training:
        own = runs_of(comparable(text), 3)
        best = max(len(own & other) / len(own | other) for other in shingles)
        similarities.append(best if best >= near.UTTERANCE_THRESHOLD else 0.0)
    assert 50 < sum(0 < item < 1 for item in similarities) < 500
    assert [utterances.holds(comparable(text)) for text in training] == list(
        map(bool, similarities)
    )


def test_cleaning_leaves_no_leak_whatever_the_order():
    evaluation, training = variations(80)
    utterances = [
        dialogue(turn.content, id=f"u{item.id}")
        for item in training[:20]
        for turn in item.turns[:2]
    ]
    sets = [(evaluation[:50], "dialogues"), (evaluation[40:], "dialogues")]
    sets.append((utterances, "utterances"))
    left, (dialogues, turns) = cleaned(index(sets=sets), training)
    assert 0 < len(left) == len(training) - dialogues < len(training)
    before, after = (sum(len(item.turns) for item in items) for items in (training, left))
    assert before - turns == after
    assert cleaned(index(sets=sets[::-1]), left) == (left, (0, 0))


def test_sets_are_read_by_name_and_by_path(tmp_path):
    held_out, utterances = (str(tmp_path / f"{name}.jsonl") for name in ("held_out", "utterances"))
    write_jsonl([dialogue(*HARBOUR, id="a"), dialogue(*LIBRARY, id="b")], held_out)
    write_jsonl([dialogue("what now", id="1"), dialogue("where to", id="2")], utterances)
    known = next(iterate_dialogues("sample", None, "test"))
    training = [
        dialogue(*[text.upper() for text in LIBRARY], id="x"),
        dialogue("What now?", "Nothing, thanks.", id="y"),
        known,
    ]
    left, counts = cleaned(build_index([held_out, utterances, "sample/test"]), training)
    assert (left, counts) == ([Dialogue(training[1].turns[1:], "y")], (2, 5 + len(known.turns)))
    for name, message in (
        ("sample/tets", "Unknown split 'tets' of corpus sample. Available: train, dev, test"),
        ("sample", "evaluation set sample: got no split, expected one, as in 'sample/test'"),
        (str(tmp_path / "missing.jsonl"), "cannot be read"),
    ):
        with pytest.raises(InputError, match=message):
            build_index([name])


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
        leaks = {True: [], False: []}
        for item in iterate_dialogues(corpus, data_dir, "all"):
            leaks[cleaned(multiwoz, [item])[0] == []].append(item.id.rpartition("/")[2])
        copies = [identifier for identifier in leaks[True] if identifier in held_out]
        assert (len(copies), held_out & {*leaks[False]}) == (same, set()), corpus
        assert len(leaks[True]) - same <= 13, corpus


@pytest.mark.slow
@pytest.mark.parametrize(
    ("training", "evaluation", "leaks"),
    [
        ("multiwoz/train", "multiwoz/dev multiwoz/test", 13),
        ("star/train", "star/test", 47),
        ("banking77/train", "banking77/test", 221),
    ],
)
def test_leakage_of_the_published_corpora(data_dir, training, evaluation, leaks):
    corpus, _, split = training.partition("/")
    counts = cleaned(
        build_index(evaluation.split(), data_dir), iterate_dialogues(corpus, data_dir, split)
    )
    assert counts[1][0] == leaks
