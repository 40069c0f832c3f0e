"""A flow for other programs: what is written reads back as it was, whatever people said."""

from __future__ import annotations

import csv
import html
import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import networkx as nx
import numpy as np
import pytest
from flow_words import flow_of, named, random_words, state_of
from scipy.cluster.hierarchy import linkage

from hf_dialemb.flow import drawing
from hf_dialemb.flow.drawing import draw_dendrogram, draw_graph
from hf_dialemb.flow.exports import as_cell, label_lines, line_of, write_flow_files
from hf_dialemb.flow.flow import Utterances, grouped
from hf_dialemb.flow.graph import END, START, FlowGraph
from hf_dialemb.flow.grounding import policy_text, state_machine
from hf_dialemb.flow.pruning import Pruning, pruned

NASTY = (
    "<script>alert(1)</script>", '"]; n0 -> n0 [label="', "ends in a backslash \\", "\\N \\G \\l", "n1 --> n2", "%% no",
    "`code` **bold** _it_", "two\nlines\r\nand a\ttab", "zero\0byte", "&lt;b&gt; &amp; #quot; #35;", "=1+1",
    "-2 of them", "@SUM(1)", "\u202eright to left", "half \ud800 of one", "]]> <!-- {{ x }} ${x}", "nothing \ufffe",
    "1. a list", "end", "subgraph x", "ein Wörterbuch 字典 😀", "'quoted', \"twice\"", "a; b, c | d", "# heading",
)  # fmt: skip


def nasty_flow(title='<b>"title" \\ & \0 \ud800'):
    """Each of the texts is once the name of a cluster, and what is said there."""
    places = np.zeros(len(NASTY), dtype=np.int32)
    roles = tuple(("user", "assistant")[place % 2] for place in range(len(NASTY)))
    said = Utterances(("only <one>",), places, roles, NASTY, NASTY)
    return grouped(title, said, zip(roles, NASTY, strict=True))


def written(flow, folder, pruning=None):
    graph = pruned(flow.graph, pruning or Pruning(0, 0))
    paths = write_flow_files(flow, graph, folder)
    assert sorted(folder.iterdir()) == sorted(paths)
    return graph, {path.name: path.read_text(encoding="utf-8") for path in paths}


def dot_statements(text):
    """Reads DOT as far as it is written here: nodes with attributes, edges with theirs, and nothing else."""
    quoted = r'"(?:[^"\\]|\\.)*"'
    listed = rf"\[(?:\w+=(?:{quoted}|[\w.]+)(?:, )?)+\]"
    nodes, edges = {}, {}
    head, *lines, last = text.strip().split("\n")
    assert (head, last) == ("digraph flow {", "}")
    assert re.fullmatch(rf"  label={quoted}; labelloc=t; rankdir=TB;", lines[0])
    for line in lines[2:]:
        found = re.fullmatch(rf"  (n\d+)(?: -> (n\d+))? ({listed});", line)
        assert found, line
        attributes = dict(re.findall(rf"(\w+)=({quoted}|[\w.]+)", found[3]))
        if found[2]:
            edges[found[1], found[2]] = attributes
        else:
            nodes[found[1]] = attributes
    return nodes, edges


def dot_label(quoted):
    """What graphviz shows of a label."""
    text = re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], quoted[1:-1])
    return html.unescape(text).split("\n")


def mermaid_label(text):
    return re.sub(r"#(\d+);", lambda found: chr(int(found[1])), text).split("<br/>")


def test_everything_reads_back_from_json_and_graphml(tmp_path):
    flow = flow_of(*["aAb"] * 5, *["aBb"] * 2, "c")
    graph, texts = written(flow, tmp_path, Pruning(0.3, 0.2))
    record = json.loads(texts["graph.json"])
    assert record["title"] == "words"
    assert {state["name"]: state["count"] for state in record["states"]} == {"a": 7, "A": 5, "B": 2, "b": 7, "c": 1}
    weights = {state["name"]: state["weight"] for state in record["states"] if state["weight"]}
    assert weights == {named(flow, [state]): graph.nodes[state] for state in graph.states}
    assert record["states"][0]["examples"] == ["say A"]
    assert {(edge["source"], edge["target"]): edge["count"] for edge in record["transitions"]} == {
        (source[1], target[1]): count for (source, target), count in flow.graph.edges.items()
    }
    (unshown,) = [edge for edge in record["transitions"] if edge["target"] == state_of(flow, "c")[1]]
    assert (unshown["weight"], unshown["share"]) == (None, 1 / 8)
    read = nx.read_graphml(tmp_path / "graph.graphml")
    assert set(read) == {state[1] for state in graph.nodes}
    assert {(source, target): data["weight"] for source, target, data in read.edges(data=True)} == {
        (source[1], target[1]): weight for (source, target), weight in graph.edges.items()
    }
    for cluster in (flow.by_state[state] for state in graph.states):
        found = read.nodes[cluster.id]
        assert (found["name"], found["role"], found["count"]) == (cluster.name, cluster.role, cluster.size)
        assert found["examples"] == " | ".join(cluster.examples)


def test_what_people_said_stays_text(tmp_path):
    flow = nasty_flow()
    graph, texts = written(flow, tmp_path)
    names = {cluster.id: cluster.name for cluster in flow.clusters}

    record = json.loads(texts["graph.json"])
    found = {state["id"]: state["name"] for state in record["states"]}
    assert found == {key: name.replace("\ud800", "?") for key, name in names.items()}
    read = nx.read_graphml(tmp_path / "graph.graphml")
    found = {key: data["name"] for key, data in read.nodes(data=True) if key in names}
    assert found == {key: line_of(name) for key, name in names.items()}
    nodes, edges = dot_statements(texts["graph.dot"])
    lines = [label_lines(flow, state) for state in graph.nodes]
    assert [dot_label(node["label"]) for node in nodes.values()] == lines
    assert len(edges) == len(graph.edges) == len(NASTY) + 1

    drawn = re.findall(r'^  n\d+(?:\[|\(\[)"([^"]*)"(?:\]|\]\))$', texts["graph.mmd"], re.MULTILINE)
    assert [mermaid_label(text) for text in drawn] == lines
    assert all(re.fullmatch(r"(?:[\w ,?!]|#\d+;|<br/>)*", text) for text in drawn)


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
            assert (row[0], row[2], float(row[3])) == (cluster.id, "1", pytest.approx(1 / len(expected), abs=1e-4))
    assert as_cell("\x1b[31mred\r\nand \u202eback") == "\\x1b[31mred and \\u202eback"
    assert (as_cell("\t=1+1"), as_cell(" plain")) == ("'=1+1", "plain")
    (tmp_path / "other").mkdir()  # a role with a slash stays in the folder
    said = Utterances(("d",), np.zeros(1, np.int32), ("../a/b",), ("hello",), ("",))
    _, texts = written(grouped("", said, [("../a/b", "hello")]), tmp_path / "other")
    assert "clusters-..%2Fa%2Fb.csv" in texts


def test_start_and_end_alone_are_a_graph(tmp_path):
    for words, pruning in ((["aA", "bB", "cC"], Pruning(0, 0.9, "prob-out")), (["a"], None)):
        folder = tmp_path / words[0]
        folder.mkdir()
        flow = flow_of(*words)
        graph, texts = written(flow, folder, pruning)
        nodes, edges = dot_statements(texts["graph.dot"])
        assert (len(nodes), len(edges)) == (len(graph.nodes), len(graph.edges))
        assert len(nx.read_graphml(folder / "graph.graphml")) == len(graph.nodes)
        assert texts["graph.mmd"].startswith('flowchart TD\n  n0(["start"])\n')
        assert draw_graph(flow, graph, tmp_path / "pictures")[0]


def is_picture(path):
    if path.suffix == ".svg":
        return ElementTree.parse(path).getroot().tag.endswith("svg")
    return path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_matplotlib_draws_quietly_where_graphviz_is_not(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    flow = flow_of(*random_words(1, 5), *["aA字B"] * 3, title="$x_1$ \\frac 字典")  # a letter that fonts lack
    for each in (flow, nasty_flow()):
        paths, sentence = draw_graph(each, pruned(each.graph, Pruning(0, 0)), tmp_path / "pictures")
        assert [path.name for path in paths] == ["graph.svg", "graph.png"]
        assert all(map(is_picture, paths))
        assert sentence == "graphviz, which lays graphs out better, is not on the path; install it"
    flat = linkage(np.ones((4, 2)), "average", "cosine") * [1, 1, 0, 1]  # a tree without height
    draw_dendrogram(flat, 2, tmp_path / "tree.png", "字")
    assert is_picture(tmp_path / "tree.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    paths, sentence = draw_graph(flow, pruned(flow.graph, Pruning()), tmp_path / "none")
    assert paths == ()
    assert "needs matplotlib, which is not installed" in sentence


def test_layers_go_down_from_start_to_end_and_wide_ones_are_parted(tmp_path):
    flow = flow_of(*["aAbB"] * 5, "aAbAbB", "c")
    layers = drawing._layers(flow, pruned(flow.graph, Pruning(0, 0)))
    assert [named(flow, sorted(layer)) for layer in layers] == ["<", "ac", "A", "b", "B", ">"]
    drawn = flow_of(*(f"a{chr(0x4E00 + place)}" for place in range(40)))
    layers = drawing._layers(drawn, pruned(drawn.graph, Pruning(0, 0)))
    assert [len(layer) for layer in layers] == [1, 1, 12, 12, 12, 4, 1]
    many = flow_of(*(f"a{chr(0x4E00 + place)}" for place in range(320)))
    paths, sentence = draw_graph(many, pruned(many.graph, Pruning(0, 0)), tmp_path)
    assert paths == ()
    assert sentence.startswith("321 states with 641 transitions are too many for one; raise the thresholds")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("program", "sentence"), [("cat", ""), ("exit 3", "did not lay the graph out")])
def test_graphviz_draws_where_it_is(tmp_path, monkeypatch, program, sentence):
    stub = tmp_path / "dot"
    stub.write_text(f"#!/bin/sh\n{program}\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    flow = nasty_flow()
    paths, told = draw_graph(flow, pruned(flow.graph, Pruning(0, 0)), tmp_path / "pictures")
    assert sentence in told
    assert bool(told) == bool(sentence)
    if program == "cat":  # what it was given is what the file has
        dot_statements(paths[0].read_text(encoding="utf-8"))
    else:
        assert all(map(is_picture, paths))


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")
def test_graphviz_reads_what_people_said(tmp_path):
    flow = nasty_flow()
    graph, _ = written(flow, tmp_path)
    run = subprocess.run(["dot", "-Tsvg", tmp_path / "graph.dot"], capture_output=True, check=True)
    marks = [one for one in ElementTree.fromstring(run.stdout).iter() if one.tag.endswith("text")]
    drawn = ["".join(one.itertext()) for one in marks]
    for state in graph.states:
        assert {re.sub(r"\s+", " ", line) for line in label_lines(flow, state)} <= {
            re.sub(r"\s+", " ", text.replace("\xa0", " ")) for text in drawn
        }


def test_a_tree_is_drawn_with_its_cut(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(90, 5))
    merges = linkage(vectors, "average", "cosine")
    for clusters in (1, 7, 90):
        draw_dendrogram(merges, clusters, tmp_path / "tree.png", "user $1")
        assert is_picture(tmp_path / "tree.png")
        cut = drawing._cut(merges[:, 2], clusters)
        assert (merges[:, 2] > cut).sum() + 1 == clusters
    draw_dendrogram(linkage(vectors[:2], "average", "cosine"), 2, tmp_path / "two.png")


def test_the_policy_says_what_follows_with_its_share():
    flow = flow_of(*["aAbB"] * 6, *["aCbB"] * 3, "aD", title="A  \n title")
    text = policy_text(flow, pruned(flow.graph, Pruning(0.2, 0.1)))
    assert text.startswith("# A title\n\nConversations usually take the steps below; 10 were observed.")
    assert '1. user-1 "a"\n2. assistant-2 "A"\n3. user-2 "b"\n4. assistant-1 "B"\n\n## Steps' in text
    assert '### user-1 "a"\n\nThe user says something like:\n\n- "say a"\n\nThen usually:\n\n' in text
    assert '- 60%: assistant-2 "A"\n- 30%: assistant-3 "C"\n' in text
    assert text.endswith('End the conversation after:\n\n- assistant-1 "B" (100% of the times that it is taken)\n')
    assert "D" not in text


def test_what_people_said_is_no_instruction():
    flow = nasty_flow()
    text = policy_text(flow, pruned(flow.graph, Pruning(0, 0)))
    heads = [line for line in re.findall("^#.*$", text, re.MULTILINE) if not line.startswith("### ")]
    assert heads[1:] == ["## Main path", "## Steps", "## When to end"]
    said = {json.loads(line[2:]) for line in re.findall('^- ".*$', text, re.MULTILINE)}
    assert said == {line_of(text) for text in NASTY}
    assert "No step is frequent enough" in policy_text(flow, pruned(FlowGraph({}, {}), Pruning()))


def test_the_state_machine_can_be_run():
    flow = flow_of(*random_words(2))
    shares = {(source[1], target[1]): share for (source, target), share in flow.graph.shares.items()}
    for pruning in (Pruning(0, 0), Pruning(0.1, 0.2), Pruning(0, 1, "max")):
        graph = pruned(flow.graph, pruning)
        machine = json.loads(json.dumps(state_machine(flow, graph)))
        assert (machine["initial"], machine["final"]) == (START[1], [END[1]])
        assert set(machine["states"]) == {state[1] for state in graph.nodes}
        for key, state in machine["states"].items():
            chances = [step["probability"] for step in state["on"]]
            assert sum(chances) + state["other"] == pytest.approx(float(key != END[1]))
            assert all(step["probability"] == shares[key, step["target"]] for step in state["on"])
            assert bool(chances) == (key != END[1] and bool(graph.states))
            assert {step["target"] for step in state["on"]} <= set(machine["states"])
    nasty = nasty_flow()
    json.dumps(state_machine(nasty, pruned(nasty.graph, Pruning(0, 0))), ensure_ascii=False).encode()
    assert machine["states"][START[1]] == {"role": "", "name": "start", "examples": [], "on": [], "other": 1.0}
