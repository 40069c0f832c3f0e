"""Topics of whole dialogues.

Planted ones are found in any order, files and page hold what was said as text.
"""

import re
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from browser import BROWSER, Browser, check_injected_scripts_are_blocked
from endpoint_server import says
from openpyxl import load_workbook
from sklearn.metrics import normalized_mutual_info_score

import hf_dialemb
from hf_dialemb.apps.cli import main
from hf_dialemb.apps.topics.naming import names_of, requests_in
from hf_dialemb.apps.topics.topic_clustering import counted_periods, find_clusters, placed
from hf_dialemb.apps.topics.topic_phrases import set_phrases, without_set_phrases
from hf_dialemb.data import write_jsonl
from hf_dialemb.dialogue import Dialogue, Turn

SAID = {
    "card": ("my card was stolen", "shall I block the card"),
    "train": ("a train ticket to rome", "which day do you leave"),
    "hotel": ("I need a hotel room", "how many nights in the hotel"),
}
REQUESTS = {
    "card": (
        "my card was stolen",
        "someone took my bank card",
        "I lost my debit card",
        "my credit card is gone",
    ),
    "room": ("I need a hotel", "book me a room", "a hotel for two nights", "find me a hotel room"),
    "sim": (
        "my new sim does not activate",
        "how do I put in the sim",
        "the sim card is locked",
        "sim not found",
    ),
}
HOSTILE = [
    "</script><script>hacked = 1</script>",
    '<img src=x onerror="hacked = 1">',
    "<!-- <script> \u2028 & &amp;",
]


def made(each=20):
    """Dialogues of three topics in turn, with days, and a name or none."""
    return [
        Dialogue(
            (Turn("user", f"{user}, please {number}"), Turn("assistant", f"{assistant}?")),
            f"{topic}-{number}" if topic != "hotel" else "",
            (topic,),
            f"2026-01-{number % 28 + 1:02d}T10:00:00" if topic != "train" else "",
        )
        for number in range(each)
        for topic, (user, assistant) in SAID.items()
    ]


def table_of(folder):
    head, *rows = load_workbook(Path(folder, "topics.xlsx"))["topics"].values
    return [dict(zip(head, row, strict=True)) for row in rows]


def vectors_of(dialogues, spread=0.1):
    centres = dict(zip(SAID, np.eye(8, dtype=np.float32), strict=False))
    noise = np.random.default_rng(0).normal(0, spread, (len(dialogues), 8)).astype(np.float32)
    return np.stack([centres[dialogue.domains[0]] for dialogue in dialogues]) + noise


def test_planted_topics_are_found_named_and_counted():
    dialogues = made()
    topics = hf_dialemb.find_topics(dialogues, vectors=vectors_of(dialogues), title="Calls")
    assert repr(topics) == "Calls: 60 dialogues, 3 topics"
    truth = [dialogue.domains[0] for dialogue in topics.corpus]
    assert normalized_mutual_info_score(truth, topics.labels) == 1
    for topic in topics.by_size:
        domain = topics.corpus[topic.examples[0]].domains[0]
        assert topic.name.startswith("near copies: ")
        assert domain in topic.name
        assert any(domain in phrase for phrase in topic.by_role["user"])
        assert sum(topic.periods) == (0 if domain == "train" else 20)
        assert topic.sentence == topics.corpus[topic.examples[0]].turns[0].content
    assert topics.topics["size"].tolist() == [20, 20, 20]
    assert topics.dialogues.groupby("topic")["similarity"].mean().between(0.9, 1).all()
    assert topics.dialogues["id"].tolist()[:3] == ["card-0", "train-0", "#3"]


def test_topics_of_one_speaker_are_those_of_the_speakers_turns():
    own = [replace(dialogue, turns=dialogue.turns[:1]) for dialogue in made()]
    topics = hf_dialemb.find_topics(own, vectors=vectors_of(own))
    assert {role for topic in topics.by_size for role in topic.by_role} == {"user"}


def test_the_order_of_dialogues_does_not_matter():
    unit = vectors_of(made(40), 0.5)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    order = np.random.default_rng(1).permutation(len(unit))
    labels = find_clusters(unit)
    assert labels.max() >= 1
    assert find_clusters(unit[order]).tolist() == labels[order].tolist()
    assert (np.diff(np.bincount(labels)) <= 0).all()


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_few_dialogues_have_topics_and_places(count):
    dialogues = made(2)[:count]
    topics = hf_dialemb.find_topics(dialogues, vectors=vectors_of(dialogues))
    assert sum(topic.size for topic in topics.by_size) == count
    assert ((topics.places >= 0) & (topics.places <= 1)).all()
    assert placed(np.ones((count, 4), dtype=np.float32)).shape == (count, 2)


GREETED = (
    "hello",
    "hi there, thanks for contacting us",
    None,
    "anything else I can help you with?",
    "no",
    "bye",
)
CARDS, ROOMS = (
    ("我的信用卡被偷了", "信用卡丢了", "信用卡被盗刷"),
    ("我想订酒店", "酒店有房吗", "订酒店两晚"),
)


def greeted(texts, number):
    """Dialogues in which all is the same but what is wanted."""
    return [
        Dialogue(
            tuple(
                Turn(("user", "assistant")[place % 2], said or text)
                for place, said in enumerate(GREETED)
            )
        )
        for text in texts
        for _ in range(number)
    ]


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        (
            [greeted(["my card was stolen"], 5), greeted(["I need a hotel"], 5)],
            ["stolen card", "need a hotel"],
        ),
        (
            [greeted(["hi"], 5), greeted(["hello"], 4), greeted(["book a taxi"], 5)],
            ["greetings only"] * 2 + ["taxi"],
        ),
        ([greeted(CARDS, 2), greeted(ROOMS, 2)], ["信用卡", "酒店"]),
        ([greeted(["a taxi"], 3), greeted(["the taxis"], 3)], ["taxi", "taxis"]),
    ],
)
def test_names_are_what_is_wanted_and_no_greetings(groups, names):
    dialogues = [dialogue for group in groups for dialogue in group]
    labels = np.repeat(np.arange(len(groups), dtype=np.int32), list(map(len, groups)))
    left_out = set_phrases(dialogues, labels)
    assert {"hello", "anything else i can help you with"} <= left_out
    said = [without_set_phrases(dialogue, left_out, "user") for dialogue in dialogues]
    given = names_of(said, labels, np.eye(len(groups), dtype=np.float32))
    assert len(set(given)) == len(given)
    for name, part in zip(given, names, strict=True):
        assert part in name


CUT = pytest.mark.skipif(find_spec("rjieba") is None, reason="rjieba is not installed")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("我的信用卡被偷了", ["信用卡"], marks=CUT),
        pytest.param("可以开发票吗,hello", ["开发票"], marks=CUT),
        pytest.param("经济型酒店", ["经济型", "经济型酒店", "酒店"], marks=CUT),
        ("My card was stolen.", ["card", "stolen card"]),
        ("how do I report a lost or stolen card?", ["report a stolen card", "report a card"]),
        ("I'm looking for an hotel", ["look for a hotel"]),
        ("I lost my card", ["lost my card"]),
        ("it is not what I want; please can you change the booking", ["change the booking"]),
        ("i still haven't received my parcel", ["not received my parcel"]),
        ("my parcel never came", ["parcel", "parcel never came"]),
        ("could you find me a taxi", ["find a taxi"]),
        ("my card is not working", ["card", "card not working", "working"]),
        ("helloooo, how's it going? don't know", []),
        (
            "クレジットカードを紛失しました",
            ["クレジットカード", "クレジットカードを紛", "クレジットカードを紛失", "紛失"],
        ),
        ("कार्ड खो गया", ["कार्ड", "कार्ड खो", "कार्ड खो गया", "खो", "खो गया", "गया"]),
    ],
)
def test_requests_are_read_with_their_verbs(text, wanted):
    assert [request.name for request in requests_in(text)] == wanted


LANGUAGES = {
    "ja": (
        (
            "クレジットカードを紛失しました",
            "クレジットカードが盗まれた",
            "クレジットカードを再発行したい",
            "クレジットカードの停止",
        ),
        (
            "ホテルの予約をお願いします",
            "ホテルの予約を変更したい",
            "ホテルの予約を取り消したい",
            "東京のホテルの予約",
        ),
        ("クレジットカード", "ホテルの予約"),
    ),
    "zh": (
        ("我的信用卡被偷了", "请帮我挂失信用卡", "我想补办信用卡", "信用卡丢了怎么办"),
        ("我想预订酒店", "酒店还有房间吗", "请取消酒店预订", "酒店可以改期吗"),
        ("信用卡", "酒店"),
    ),
    "th": (
        ("บัตรเครดิตของฉันหาย", "ขอยกเลิกบัตรเครดิต", "บัตรเครดิตถูกขโมย", "ทำบัตรเครดิตใหม่"),
        ("ต้องการจองโรงแรม", "ขอจองโรงแรมสองคืน", "ยกเลิกการจองโรงแรม", "อยากจองโรงแรมพรุ่งนี้"),
        ("บัตรเครดิต", "จองโรงแรม"),
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_of_languages_without_blanks_are_whole_words(language):
    *groups, names = LANGUAGES[language]
    dialogues = [
        Dialogue((Turn("user", text), Turn("assistant", "OK")))
        for texts in groups
        for text in texts * 2
    ]
    units = np.repeat(np.eye(8, dtype=np.float32)[:2], 8, axis=0)
    topics = hf_dialemb.find_topics(dialogues, vectors=units, topics=2)
    assert {topic.name for topic in topics.by_size} == set(names)


def test_periods_are_the_finest_that_can_be_read_and_have_no_gap():
    labels = np.array([0, 1, 1, 0], dtype=np.int32)
    for times, period, first, count in (
        (["2026-01-01T10:05:00", "2026-01-01T12:00:00", "", ""], "hour", "2026-01-01T10", 3),
        (["2026-01-01T00:00:00+02:00", "2026-01-05", "", "2026-01-05"], "day", "2025-12-31", 6),
        (["2020-01-01", "2024-12-31", "", ""], "month", "2020-01", 60),
        (["1900-01-01", "2024-12-31", "", ""], "year", "1900", 125),
    ):
        periods, found, counts = counted_periods(times, labels, 2)
        assert (periods[0], len(periods), found) == (first, count, period)
        assert counts.sum() == sum(map(bool, times))
    assert counted_periods([""], labels[:1], 1)[:2] == ([], "")


def test_the_command_writes_a_page_and_tables_and_reads_ends_in_english_alone(tmp_path, printed):
    chinese = Turn("user", "我的 SIM 卡丢了"), Turn("assistant", "Sorry 已经停用了，不可以恢复")
    write_jsonl([*made(), Dialogue(chinese, "zh")], calls := tmp_path / "calls.jsonl")
    words = ("topics", calls, "--topics", 3, "--model", "dialogue-static", "--output")
    output = printed(*words, tmp_path / "out")
    assert "61 dialogues, 3 topics" in output
    assert "English alone: 1 of 61 are in another language" in output
    rows = table_of(tmp_path / "out")
    assert sorted(row["size"] for row in rows) == [20, 20, 21]
    assert sum(row["not in English"] for row in rows) == 1
    printed(*words, tmp_path / "again", "--language", "de")
    assert sum(row["not in English"] for row in table_of(tmp_path / "again")) == 61
    printed(*words, tmp_path / "again")
    pages = [(tmp_path / folder / "index.html").read_bytes() for folder in ("out", "again")]
    assert pages[0] == pages[1]


def test_who_stops_a_run_is_told_that_vectors_are_kept(monkeypatch, capsys):
    def stopped(_words):
        raise KeyboardInterrupt

    monkeypatch.setattr("hf_dialemb.apps.cli._run", stopped)
    assert main(["topics", "calls.csv"]) == 130
    assert "interrupted; vectors are kept" in capsys.readouterr().err


ODD = [
    {"=HYPERLINK(1)": "=1+1", "\x01key": "x", "count": 2**70},
    {"=HYPERLINK(1)": [1, "a", [2.5]], "count": -1, "kept": [["a"], "b"]},
    {"end": "x", "time": 3, "kept": [1, 2]},
]


def test_odd_metadata_is_kept_computes_nothing_and_files_come_together(tmp_path, monkeypatch):
    dialogues = [replace(own, metadata=ODD[row % 3]) for row, own in enumerate(made())]
    topics = hf_dialemb.find_topics(dialogues, vectors=vectors_of(dialogues))
    topics.save(tmp_path)
    book = load_workbook(tmp_path / "topics.xlsx")
    assert book["topics"]["A1"].font.bold
    assert book["topics"].freeze_panes == "B2"
    assert "f" not in {cell.data_type for sheet in book for row in sheet.rows for cell in row}
    column = next(cell.column_letter for cell in book["topics"][1] if cell.value == "share")
    assert book["topics"][f"{column}2"].number_format == "0.0%"
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr("safetensors.numpy.save_file", None)
    with pytest.raises(TypeError):
        replace(topics, title="Other").save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("id", ["../../outside", "topic-1/..", "", "topic-0", "CON"])
def test_the_id_of_a_topic_is_no_path(tmp_path, monkeypatch, id):
    topics = hf_dialemb.find_topics(made(), "dialogue-static", topics=3)
    changed = replace(topics.by_size[0], id=id)
    replace(topics, by_size=(changed, *topics.by_size[1:])).save(tmp_path)
    with pytest.raises(hf_dialemb.InputError, match="expected one such as topic-1"):
        hf_dialemb.load_topics(tmp_path)


@pytest.mark.slow
def test_the_command_writes_a_flow_of_each_topic(tmp_path, printed):
    write_jsonl(made(), calls := tmp_path / "calls.jsonl")
    words = ("flow", calls, "--model", "tfidf", "--output", tmp_path / "out")
    output = printed(*words)
    rows = table_of(tmp_path / "out")
    flows = sorted(path.parent.name for path in (tmp_path / "out/flows").glob("*/index.html"))
    assert flows == sorted(row["id"] for row in rows if row["size"] >= 5)
    assert len(flows) > 1
    assert f"index.html: {len(flows)} flows of 60 dialogues, " in output
    shutil.copytree(tmp_path / "out/flows/topic-1", tmp_path / "out/flows/topic-9")
    (tmp_path / "out/flows/mine").mkdir()
    printed(*words)
    assert sorted(path.name for path in (tmp_path / "out/flows").iterdir()) == ["mine", *flows]
    printed(*words, "--by", "all")
    assert [path.name for path in (tmp_path / "out/flows").iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--topics", "3", "--from", "topics"], "got --from and --topics"),
        (["--topics", "0"], "topics: got 0, expected 1 to 60"),
        (["--names", "no/such-model-anywhere"], "no/such-model-anywhere"),
    ],
)
def test_mistakes_are_told_in_a_sentence(tmp_path, refused, monkeypatch, words, told):
    monkeypatch.chdir(tmp_path)
    write_jsonl(made(), tmp_path / "calls.jsonl")
    assert told in refused("topics", "calls.jsonl", *words)
    assert not (tmp_path / "topics/index.html").exists()


def test_a_language_model_reads_beginnings_and_its_names_stay(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for month in ("january", "february"):
        calls = [replace(own, id=f"{month}-{row}") for row, own in enumerate(made(6))]
        write_jsonl(calls, tmp_path / f"{month}.jsonl")
    server.answers[:] = [(200, says(name)) for name in "xyz"]
    words = ["--model", "dialogue-static", "--names", "api:small"]
    assert main(["topics", "january.jsonl", "--topics", "3", *words]) == 0
    assert main(["topics", "february.jsonl", "--from", "topics", *words]) == 0
    assert len(server.requests) == 3  # known topics are not asked about again
    for *_, request in server.requests:
        assert request["messages"][0]["content"].count(" | ") == 5  # five dialogues of two turns
    for folder in ("topics", "topics-february"):
        assert [row["name"] for row in table_of(folder)] == ["x", "y", "z"]


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no chromium or chrome is on PATH")
def test_the_page_shows_text_as_text_and_is_walked_through(tmp_path):
    dialogues = made()
    dialogues[0] = Dialogue(tuple(Turn("user", text) for text in HOSTILE), HOSTILE[0], ("card",))
    topics = hf_dialemb.find_topics(dialogues, vectors=vectors_of(dialogues), title=HOSTILE[0])
    replace(topics, flows=("topic-1",)).page(tmp_path / "index.html")
    with Browser(tmp_path / "profile") as page:
        page.size(390, 800)
        page.open((tmp_path / "index.html").as_uri())
        page.until("typeof page === 'object' && page.sized")
        assert page.all("h1") == [HOSTILE[0]]
        assert [int(text.split()[0]) for text in page.all("#panel .figure")] == [20, 20, 20]
        assert page.run("document.documentElement.scrollWidth") == 390
        page.run("document.querySelector('.ways button:nth-child(2)').focus()")
        page.press("Enter")  # by keyboard: the focus stays at the button
        assert page.all("[aria-pressed=true]:focus") == ["How they end"]
        page.run("page.show({topic: 'topic-1'})")
        assert page.all("#panel a", "one.getAttribute('href')") == ["flows/topic-1/index.html"]
        page.run("page.show({dialogue: page.data.ids[0]})")
        assert page.all("#panel .said") == HOSTILE
        page.run("page.find('BLOCK the card')")
        page.until("page.hits !== null")
        assert page.run("page.hits.size") == 19
        assert (page.all("img"), page.problems) == ([], [])
        check_injected_scripts_are_blocked(page)


def test_saved_topics_take_new_dialogues_and_refuse_another_encoder(tmp_path):
    topics = hf_dialemb.find_topics(made(), "dialogue-static", topics=3, title="Calls")
    topics.save(tmp_path)
    model = hf_dialemb.load_topics(tmp_path)
    assert model.groups.ids == [one.id for one in topics.by_size]
    assigned = model.assign(made())
    fits = assigned["topic"] != ""
    assert fits.sum() >= 0.9 * len(fits)
    assert (assigned["topic"] == topics.dialogues["topic"])[fits].all()
    assert np.allclose(assigned["similarity"], topics.dialogues["similarity"], atol=1e-4)
    with pytest.raises(
        hf_dialemb.InputError, match="got vectors of 'action-static', expected those of the model"
    ):
        hf_dialemb.load_topics(tmp_path, "action-static")
    (tmp_path / "topics.safetensors").write_bytes(b"")
    with pytest.raises(hf_dialemb.InputError, match="cannot be read"):
        hf_dialemb.load_topics(tmp_path)


@pytest.mark.slow
def test_earlier_topics_keep_their_ids_and_new_ones_are_told(
    tmp_path, printed, refused, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for month, topics in (("january", ("card", "room")), ("february", ("card", "sim"))):
        dialogues = [
            Dialogue(
                (Turn("user", REQUESTS[name][number % 4]), Turn("assistant", "one moment")),
                f"{month}-{name}-{number}",
                metadata={"sold": name == topics[0]},
            )
            for name in topics
            for number in range(12)
        ]
        write_jsonl(dialogues, tmp_path / f"{month}.jsonl")
    printed("topics", "january.jsonl")
    lines = printed("topics", "february.jsonl", "--from", "topics", "--compare", "sold")
    assert re.search(r"New topic: .*sim.*, 0% to 50% of dialogues\n", lines)
    assert re.search(r"\nFalse: 12 dialogues; True: 12 dialogues\nMore: .*card", lines)
    assert re.search(r"Gone: .*hotel.*, 50% to 0% of dialogues\n", lines)
    before, after = (
        {row["id"]: row["name"] for row in table_of(folder)}
        for folder in ("topics", "topics-february")
    )
    assert before.items() < after.items()
    rows = pq.read_table("topics-february/dialogues.parquet").to_pylist()
    assert {row["topic"] for row in rows if "sim" in row["id"]} == {"topic-3"}
    assert {row["topic"] for row in rows if "card" in row["id"]} < set(before)
    assert load_workbook("topics-february/topics.xlsx")["conversations"].max_row == 25
    words = ("topics", "february.jsonl", "--from", "topics", "--output", "topics")
    assert "would be lost; choose another folder" in refused(*words)
