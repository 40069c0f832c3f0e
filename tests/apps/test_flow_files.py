"""What is written of a flow.

Files that read back as they were, whatever people said, and the data of the page.
"""

import csv
import json
import re

import numpy as np
from flow_words import ORDER, flow_of_turns, grouped, random_flow

from hf_dialemb.apps.flow.exports import as_cell, line_of, write_tables
from hf_dialemb.apps.flow.flow import Utterances
from hf_dialemb.apps.flow.graph import END, START, Pruning
from hf_dialemb.apps.flow.paths import ends
from hf_dialemb.apps.pages.insights import insights
from hf_dialemb.apps.pages.page import kept_dialogues, write_page

NASTY = (
    "<script>alert(1)</script>",
    '"]; n0 -> n0 [label="',
    "ends in a backslash \\",
    "\\N \\G \\l",
    "n1 --> n2",
    "%% no",
    "`code` **bold** _it_",
    "two\nlines\r\nand a\ttab",
    "zero\0byte",
    "&lt;b&gt; &amp; #quot; #35;",
    "=1+1",
    "-2 of them",
    "@SUM(1)",
    "\u202eright to left",
    "half \ud800 of one",
    "]]> <!-- {{ x }} ${x}",
    "nothing \ufffe",
    "1. a list",
    "end",
    "subgraph x",
    "ein Wörterbuch 字典 😀",
    "'quoted', \"twice\"",
    "a; b, c | d",
    "# heading",
)


def nasty_flow():
    """Each of the texts is once the name of a cluster, and what is said there."""
    roles = tuple(("user", "assistant")[place % 2] for place in range(len(NASTY)))
    empty = ("",) * len(NASTY)
    said = Utterances(
        ("only <one>",), np.zeros(len(NASTY), dtype=np.int32), roles, NASTY, NASTY, empty
    )
    return grouped('<b>"title" \\ & \0 \ud800', said, zip(roles, NASTY, strict=True))


def data_of(flow, folder):
    write_page(flow, folder / "page.html", Pruning())
    page = (folder / "page.html").read_text(encoding="utf-8")
    return page, json.loads(
        re.search(r'<script type="application/json" id="flow">(.*?)</script>', page)[1]
    )


def table(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_tables_read_back_and_compute_nothing(tmp_path):
    flow = nasty_flow()
    write_tables(flow, tmp_path)
    rows = table(tmp_path / "clusters.csv")
    assert list(rows[0]) == ["id", "role", "name", "utterances", "phrases", "examples"]
    for row, cluster in zip(rows, flow.clusters, strict=True):
        name = line_of(cluster.name)
        assert row["name"] == (f"'{name}" if name[0] in "=-@+" else name)
        assert all(text.isprintable() for text in row.values())
        assert (row["id"], row["role"], row["utterances"]) == (cluster.id, cluster.role, "1")
    rows = table(tmp_path / "ends.csv")
    told = {(name, end.kind, end.state) for end in ends(flow) for name in end.dialogues}
    states = {cluster.id: cluster.state for cluster in flow.clusters}
    assert {(row["dialogue"], row["end"], states[row["state"]]) for row in rows} == told
    assert as_cell("\x1b[31mred\r\nand \u202eback") == "\\x1b[31mred and \\u202eback"
    assert (as_cell("\t=1+1"), as_cell(" plain")) == ("'=1+1", "plain")


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
    told = {
        section["title"]: [row["text"] for row in section["rows"]] for section in insights(flow)
    }
    assert told["Loops"] == ["\u2068place\u2069 → \u2068place\u2069: 1 time in 1 dialogue"]
    assert told["How dialogues end"][:2] == [
        "Failed: 1 dialogue, 25 %",
        'Failed at "\u2068sorry\u2069": 1 dialogue',
    ]
    flow = flow_of_turns(
        {"d\u202e1": [("user", "pay\u202eme\n\x1b[31m", "pay")], "d2": [("user", "שלום", "שלום")]}
    )
    texts = [row["text"] for section in insights(flow) for row in section["rows"]]
    assert not any("\u202e" in text for text in texts)
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
