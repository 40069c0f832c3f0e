"""What is written of a flow.

The data of the page, whatever people said.
"""

import json
import re

from flow_words import ORDER, flow_of_turns, random_flow

from hf_dialemb.apps.flow.graph import END, START, Pruning
from hf_dialemb.apps.pages.insights import insights
from hf_dialemb.apps.pages.page import kept_dialogues, write_page


def data_of(flow, folder):
    write_page(flow, folder / "page.html", Pruning())
    page = (folder / "page.html").read_text(encoding="utf-8")
    return page, json.loads(
        re.search(r'<script type="application/json" id="flow">(.*?)</script>', page)[1]
    )


def test_the_page_needs_no_other_file(tmp_path):
    flow = random_flow()
    page, record = data_of(flow, tmp_path)
    assert page == data_of(flow, tmp_path)[0]
    assert not re.search(
        r"https?:(?!//www\.w3\.org/2000/svg)|url\(|@import|<link|<iframe|fetch\(|\beval\(", page
    )
    assert page.count("<script") == page.count("</script>")
    assert sum(state["size"] for state in record["states"]) == len(flow.utterances)
    names = [*(one.state for one in flow.clusters), START, END]
    assert {
        (names[source], names[target]): count for source, target, count in record["edges"]
    } == flow.graph.edges


def test_insights_are_told_in_sentences_in_which_names_turn_no_direction(tmp_path):
    flow = flow_of_turns(ORDER)
    assert [row["text"] for row in insights(flow)][:2] == [
        "Failed: 1 dialogue, 25%",
        'Failed at "\u2068sorry\u2069": 1 dialogue',
    ]
    flow = flow_of_turns(
        {"d\u202e1": [("user", "pay\u202eme\n\x1b[31m", "pay")], "d2": [("user", "שלום", "שלום")]}
    )
    assert not any("\u202e" in row["text"] for row in insights(flow))
    states = data_of(flow, tmp_path)[1]["states"]
    assert {state["name"] for state in states} == {"pay\\u202eme \\x1b[31m", "שלום"}


def test_the_page_keeps_named_dialogues_unless_they_are_too_long(tmp_path):
    flow, wanted = random_flow(dialogues=400), ["d399", "d7"]
    assert kept_dialogues(flow) == list(range(400))
    kept = kept_dialogues(flow, wanted, most=200)
    assert len(kept) == 200
    assert {7, 399} <= set(kept)
    assert kept_dialogues(flow, ["d5"], characters=1) == [5]
    page, record = data_of(
        flow_of_turns({"one": [("user", "say", "x" * 4_000_000)], **ORDER}), tmp_path
    )
    assert [dialogue["id"] for dialogue in record["dialogues"]] == ["one", *ORDER]
    assert max(map(len, record["texts"])) == 2000
    assert len(page) < 300_000
