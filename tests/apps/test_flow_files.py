"""What is written of a flow.

Files that read back as they were, whatever people said, and the data of the page.
"""

import csv
import html
import json
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from flow_words import ORDER, flow_of, flow_of_turns, grouped, named, random_flow, state_of

from hf_dialemb.apps.flow.exports import (
    as_cell,
    label_lines,
    line_of,
    policy_text,
    write_flow_files,
)
from hf_dialemb.apps.flow.flow import Utterances
from hf_dialemb.apps.flow.graph import END, START, FlowGraph, Pruning, pruned
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
    said = Utterances(("only <one>",), np.zeros(len(NASTY), dtype=np.int32), roles, NASTY, NASTY)
    return grouped('<b>"title" \\ & \0 \ud800', said, zip(roles, NASTY, strict=True))


def written(flow, folder, pruning=None):
    graph = pruned(flow.graph, pruning or Pruning(0, 0))
    folder.mkdir(exist_ok=True)
    names = write_flow_files(flow, graph, folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    return graph, {name: (folder / name).read_text(encoding="utf-8") for name in names}


def dot_statements(text):
    """Reads DOT as far as it is written here.

    Nodes with attributes, edges with theirs, and nothing else.
    """
    quoted = r'"(?:[^"\\]|\\.)*"'
    listed = rf"\[(?:\w+=(?:{quoted}|[\w.]+)(?:, )?)+\]"
    nodes, edges = {}, {}
    head, title, _, *lines, last = text.strip().split("\n")
    assert (head, last) == ("digraph flow {", "}")
    assert re.fullmatch(rf"  label={quoted}; labelloc=t; rankdir=TB;", title)
    for line in lines:
        found = re.fullmatch(rf"  (n\d+)(?: -> (n\d+))? ({listed});", line)
        assert found, line
        attributes = dict(re.findall(rf"(\w+)=({quoted}|[\w.]+)", found[3]))
        if found[2]:
            edges[found[1], found[2]] = attributes
        else:
            nodes[found[1]] = attributes
    return nodes, edges


def data_of(flow, folder):
    write_page(flow, folder / "page.html", Pruning())
    page = (folder / "page.html").read_text(encoding="utf-8")
    return page, json.loads(
        re.search(r'<script type="application/json" id="flow">(.*?)</script>', page)[1]
    )


def test_everything_reads_back_from_json(tmp_path):
    flow = flow_of(*["aAb"] * 5, *["aBb"] * 2, "c")
    graph, texts = written(flow, tmp_path, Pruning(0.3, 0.2))
    record = json.loads(texts["graph.json"])
    assert {state["name"]: state["count"] for state in record["states"]} == {
        "a": 7,
        "A": 5,
        "B": 2,
        "b": 7,
        "c": 1,
    }
    weights = {state["name"]: state["weight"] for state in record["states"] if state["weight"]}
    assert weights == {named(flow, [state]): graph.nodes[state] for state in graph.states}
    counts = {(edge["source"], edge["target"]): edge["count"] for edge in record["transitions"]}
    assert counts == {
        (source[1], target[1]): count for (source, target), count in flow.graph.edges.items()
    }
    (unshown,) = [
        edge for edge in record["transitions"] if edge["target"] == state_of(flow, "c")[1]
    ]
    assert (unshown["weight"], unshown["share"]) == (None, 1 / 8)


def test_what_people_said_stays_text(tmp_path):
    flow = nasty_flow()
    graph, texts = written(flow, tmp_path)
    names = {cluster.id: cluster.name for cluster in flow.clusters}
    found = {state["id"]: state["name"] for state in json.loads(texts["graph.json"])["states"]}
    assert found == {key: name.replace("\ud800", "?") for key, name in names.items()}
    nodes, edges = dot_statements(texts["graph.dot"])
    lines = [label_lines(flow, state) for state in graph.nodes]
    quoted = [node["label"][1:-1] for node in nodes.values()]
    shown = [
        re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text)
        for text in quoted
    ]
    assert [html.unescape(text).split("\n") for text in shown] == lines  # as graphviz has it
    assert len(edges) == len(graph.edges) == len(NASTY) + 1
    drawn = re.findall(r'^  n\d+(?:\[|\(\[)"([^"]*)"(?:\]|\]\))$', texts["graph.mmd"], re.MULTILINE)
    shown = [
        re.sub(r"#(\d+);", lambda found: chr(int(found[1])), text).split("<br/>") for text in drawn
    ]
    assert shown == lines
    assert all(re.fullmatch(r"(?:[\w ,?!]|#\d+;|<br/>)*", text) for text in drawn)
    policy = policy_text(flow, graph)  # what people said is no instruction
    heads = [
        line for line in re.findall("^#.*$", policy, re.MULTILINE) if not line.startswith("### ")
    ]
    assert heads[1:] == ["## Main path", "## Steps", "## When to end"]
    said = {json.loads(line[2:]) for line in re.findall('^- ".*$', policy, re.MULTILINE)}
    assert said == {line_of(text) for text in NASTY}


def test_tables_read_back_and_compute_nothing(tmp_path):
    flow = nasty_flow()
    written(flow, tmp_path)
    for role in ("user", "assistant"):
        with (tmp_path / f"clusters-{role}.csv").open(encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file)
        assert head == ["id", "name", "utterances", "share", "phrases", "examples"]
        expected = [cluster for cluster in flow.clusters if cluster.role == role]
        for row, cluster in zip(rows, expected, strict=True):
            name = line_of(cluster.name)
            assert row[1] == (f"'{name}" if name[0] in "=-@+" else name)
            assert all(text.isprintable() for text in row)
            assert (row[0], row[2], float(row[3])) == (
                cluster.id,
                "1",
                pytest.approx(1 / len(expected), abs=1e-4),
            )
    with (tmp_path / "ends.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["dialogue", "end", "state", "name"]
    told = {(name, end.kind, end.state) for end in ends(flow) for name in end.dialogues}
    states = {cluster.id: cluster.state for cluster in flow.clusters}
    assert {(name, kind, states[state]) for name, kind, state, _ in rows} == told
    assert [name for name, *_ in rows] == list(flow.utterances.dialogues)
    assert as_cell("\x1b[31mred\r\nand \u202eback") == "\\x1b[31mred and \\u202eback"
    assert (as_cell("\t=1+1"), as_cell(" plain")) == ("'=1+1", "plain")
    said = Utterances(("d",), np.zeros(1, np.int32), ("../a/b",), ("hello",), ("",))
    _, texts = written(grouped("", said, [("../a/b", "hello")]), tmp_path / "other")
    assert "clusters-..%2Fa%2Fb.csv" in texts  # a role with a slash stays in the folder


def test_the_policy_says_what_follows_with_its_share():
    flow = flow_of(*["aAbB"] * 6, *["aCbB"] * 3, "aD", title="A  \n title")
    text = policy_text(flow, pruned(flow.graph, Pruning(0.2, 0.1)))
    assert text.startswith(
        "# A title\n\nConversations usually take the steps below; 10 were observed."
    )
    words = ("user-1", "a"), ("assistant-2", "A"), ("user-2", "b"), ("assistant-1", "B")
    assert "\n".join(f'- {step}: "say {name}"' for step, name in words) + "\n\n## Steps" in text
    assert (
        '### user-1 "a"\n\nThe user says something like:\n\n- "say a"\n\nThen usually:\n\n' in text
    )
    assert '- 60%: assistant-2 "A"\n- 30%: assistant-3 "C"\n' in text
    assert text.endswith(
        'End the conversation after:\n\n- assistant-1 "B" (100% of the times that it is taken)\n'
    )
    assert "D" not in text
    assert "No step is frequent enough" in policy_text(flow, pruned(FlowGraph({}, {}), Pruning()))


def test_the_page_needs_no_other_file_and_tells_settings_in_words(tmp_path):
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
    chosen, counts = {"user": "chosen", "assistant": "chosen"}, {"user": 3, "assistant": 2}
    settings = {
        "model": "",
        "vectors": "0123",
        "chosen_by": chosen,
        "clusters": counts,
        "names": "nearest",
    }
    told = data_of(replace(flow_of_turns(ORDER), settings=settings), tmp_path)[1]["settings"]
    assert told == [
        ["states of each speaker", "user: 3, assistant: 2"],
        ["how many states there are was decided by", "the bend of the curve of distances"],
        ["names of states are", "their most typical utterance"],
    ]


def test_insights_are_told_in_sentences_in_which_names_turn_no_direction(tmp_path):
    flow = flow_of_turns(ORDER)
    told = {
        section["title"]: [row["text"] for row in section["rows"]]
        for section in insights(flow, flow.by_state)
    }
    assert told["Loops"] == ["\u2068place\u2069 → \u2068place\u2069: 1 time in 1 dialogue"]
    assert told["How dialogues end"][0] == 'Failed at "\u2068sorry\u2069": 1 dialogue, 25 %'
    assert "Start: \u2068greet\u2069 75 %, \u2068complain\u2069 25 %" in told["Forks"]
    assert told["Unusual dialogues"][0].startswith("\u2068d4\u2069: its rarest step is")
    flow = flow_of_turns(
        {"d\u202e1": [("user", "pay\u202eme\n\x1b[31m", "pay")], "d2": [("user", "שלום", "שלום")]}
    )
    found = insights(flow, flow.by_state)
    assert (
        found[2]["rows"][0]["text"]
        == "Start: \u2068pay\\u202eme \\x1b[31m\u2069 50 %, \u2068שלום\u2069 50 %"
    )
    assert all("\u202e" not in row["text"] for section in found for row in section["rows"])
    states = data_of(flow, tmp_path)[1]["states"]
    assert {state["name"] for state in states} == {"pay\\u202eme \\x1b[31m", "שלום"}


def test_the_page_keeps_named_dialogues_unless_they_are_too_long(tmp_path):
    flow, wanted = random_flow(dialogues=400), ["d399", "d7"]
    assert kept_dialogues(flow) == list(range(400))
    kept = kept_dialogues(flow, wanted, most=200)
    assert len(kept) == 200
    assert {7, 399} <= set(kept)
    assert kept == kept_dialogues(flow, wanted, most=200)
    assert kept_dialogues(flow, ["d5"], characters=1) == [5]
    frequent = {edge for edge, count in flow.graph.edges.items() if count > 40}
    paths = [(START, *flow.trajectories[place], END) for place in kept_dialogues(flow, most=60)]
    assert frequent <= {edge for path in paths for edge in pairwise(path)}
    long = [("user", f"state {place % 3}", f"{place} " + "x" * 3000) for place in range(2100)]
    assert kept_dialogues(flow_of_turns({"long": long, **ORDER}), ["long"]) == [1, 2, 3, 4]
    page, record = data_of(
        flow_of_turns({"one": [("user", "say", "x" * 4_000_000)], **ORDER}), tmp_path
    )
    assert [dialogue["id"] for dialogue in record["dialogues"]] == ["one", *ORDER]
    assert max(map(len, record["texts"])) == 2000
    assert record["texts"][record["dialogues"][0]["texts"][0]] == "x" * 1999 + "…"
    assert len(page) < 300_000
