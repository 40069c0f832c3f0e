"""``dialemb flow``: from conversations to a page, and what goes on from it."""

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest
from talks import to_dataset

from hf_dialemb.apps.cli import main
from hf_dialemb.apps.flow.flow_folder import read_flow, replaced_together
from hf_dialemb.data import write_jsonl
from hf_dialemb.dialogue import Dialogue, Turn


def transcripts(folder, dialogues):
    folder.mkdir(parents=True, exist_ok=True)
    names = {"user": "Customer", "assistant": "Agent"}
    for number, dialogue in enumerate(dialogues):
        lines = [f"{names[turn.role]}: {turn.content}" for turn in dialogue.turns]
        (folder / f"call-{number:02d}.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


def run(*words):
    whole = () if words[0] in ("next", "compare") else ("--by", "all")
    assert main([str(word) for word in ("flow", *words, *whole)]) == 0


@pytest.fixture(scope="module")
def made(tmp_path_factory, sample_dialogues, tiny_bert):
    """A folder with twenty transcripts and their flow, which no test changes."""
    folder = tmp_path_factory.mktemp("made")
    calls = transcripts(folder / "calls", sample_dialogues[:20])
    run(calls, "--model", tiny_bert, "--output", folder / "flow")
    return folder


@pytest.fixture
def model(tiny_bert, tmp_path):
    """The words for a flow by a model in the folder of this test."""
    return ["--model", tiny_bert, "--output", tmp_path / "flow"]


def test_a_folder_of_transcripts_becomes_a_page(model, made, tmp_path, capsys):
    calls, flow = made / "calls", tmp_path / "flow"
    run(calls, *model)
    assert {path.name for path in flow.iterdir()} == {
        "index.html",
        "flow.json",
        "utterances.parquet",
        "centroids.safetensors",
        "cache",
    }
    printed = capsys.readouterr().out
    assert printed.startswith("20 dialogues, ")
    assert "Main path, as in " in printed
    assert printed.endswith(f"Wrote {flow / 'index.html'}\n")
    stored = read_flow(flow)
    assert stored.utterances.dialogues == tuple(path.stem for path in sorted(calls.iterdir()))
    assert sum(cluster.size for cluster in stored.clusters) == len(stored.utterances)


@pytest.mark.parametrize("steps", range(5))
def test_a_stopped_run_leaves_the_files_of_one_flow(tmp_path, monkeypatch, steps):
    def stopping(really):
        def counted(*words, **more):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return really(*words, **more)

        return counted

    left, names = iter(range(steps)), ("flow.json", "index.html")
    for name in names:
        (tmp_path / name).write_text("old")
    with suppress(KeyboardInterrupt), replaced_together(tmp_path, names) as new:
        for name in names:
            (new / name).write_text("new")
        monkeypatch.setattr(Path, "unlink", stopping(Path.unlink))
        monkeypatch.setattr(Path, "replace", stopping(Path.replace))
    texts = {path.read_text() for path in tmp_path.iterdir()}
    assert texts == [{"old"}, {"old"}, set(), {"new"}, {"new"}][steps]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["{calls}", "--clusters", "many"],
            "--clusters: got 'many', expected a number, or one for each role",
        ),
        (["{calls}", "--nodes", "1"], "field nodes: got 1.0, expected a share from 0 to below 1"),
    ],
)
def test_what_is_wrong_is_told_in_one_sentence(made, model, tmp_path, refused, words, said):
    assert said in refused("flow", *[word.format(calls=made / "calls") for word in words], *model)
    assert not (tmp_path / "flow" / "index.html").exists()


def test_what_is_read_is_not_overwritten(tiny_bert, tmp_path, sample_dialogues, refused):
    file = tmp_path / "own" / "utterances.parquet"
    file.parent.mkdir()
    to_dataset(sample_dialogues[:5]).to_parquet(file)
    before = file.read_bytes()
    words = "flow", file, "--model", tiny_bert, "--output", file.parent
    assert "utterances.parquet" in refused(*words)
    assert file.read_bytes() == before


def test_what_is_said_cannot_command_the_terminal(model, tmp_path, capsys):
    turns = [
        {"role": "user", "content": "\x1b[31mhello\x1b]0;owned\x07"},
        {"role": "assistant", "content": "hi"},
    ]
    (tmp_path / "own.jsonl").write_text(json.dumps({"id": "\x1b[2J", "messages": turns}))
    run(tmp_path / "own.jsonl", *model)
    run("next", "--flow", tmp_path / "flow", "--input", tmp_path / "own.jsonl")
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "lines",
    [
        ["Customer: yes"] * 7,
        ["Customer: <script>alert(1)</script>", 'Agent: "]; graph TD'] * 2,
        [
            f"{('Customer', 'Agent')[turn % 2]}: {'abcdefgh'[turn * turn % 7]}"
            for turn in range(10_000)
        ]
        + ["Agent: i"],
    ],
    ids=["same", "odd", "ten thousand"],
)
def test_small_odd_and_very_long_input_gives_a_page(model, tmp_path, lines, capsys):
    (tmp_path / "one.txt").write_text("\n".join(lines))
    run(tmp_path / "one.txt", *model)
    assert "Main path, as in " in capsys.readouterr().out
    assert read_flow(tmp_path / "flow").clusters
    assert "<script>alert(1)" not in (tmp_path / "flow" / "index.html").read_text()


def test_next_says_where_a_dialogue_is(made, tmp_path, capsys, refused):
    lines = (made / "calls" / "call-00.txt").read_text().splitlines()
    part = tmp_path / "part.txt"
    part.write_text("\n".join(lines[:3]))
    words = "next", "--flow", made / "flow", "--input", part, "--top", "1000"
    run(*words)
    first, *likely = capsys.readouterr().out.splitlines()
    assert re.match(r"part: at (user|assistant)-\d+, ", first)
    shares = [float(line.split("%")[0]) for line in likely]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(100, abs=1)
    words = ["flow", "next", "--input", part, "--flow", made / "calls"]
    assert "expected the output of dialemb flow" in refused(*words)


def test_other_dialogues_are_compared_with_all_of_a_flow(made, tmp_path, sample_dialogues, capsys):
    again = transcripts(tmp_path / "again", sample_dialogues[:20])
    run("compare", "--flow", made / "flow", "--input", again, "--output", tmp_path / "comparison")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "calls: 20 dialogues; again: 20"
    assert re.fullmatch(r"0 of \d\d+ transitions differ more than by chance", lines[1])
    assert lines[2:] == [f"Wrote {tmp_path / 'comparison' / 'index.html'}"]


def test_parts_of_a_file_are_compared_and_a_step_that_one_leaves_out_is_told(
    tmp_path, tiny_bert, capsys
):
    def call(number, agent):
        turns = [Turn("user", "my card is lost"), Turn("assistant", "what is your address?")]
        turns += [Turn("user", "Main Street 1"), Turn("assistant", "it is blocked now")]
        kept = turns if agent != "Cy" else [turns[0], turns[3]]
        if agent == "Bo":
            kept = [turns[0], Turn("assistant", "we record all calls for training"), *turns[1:]]
        return Dialogue(tuple(kept), f"{agent}-{number}", metadata={"agent": agent})

    calls = tmp_path / "calls.jsonl"
    write_jsonl([call(n, agent) for n in range(20) for agent in ("Ann", "Bo", "Cy")], calls)
    run(calls, "--model", tiny_bert, "--clusters", "assistant=3", "--output", tmp_path / "flow")
    capsys.readouterr()
    words = "--flow", tmp_path / "flow", "--input", calls, "--output", tmp_path
    run("compare", *words, "--by", "agent")
    lines = capsys.readouterr().out.splitlines()
    first, last = (lines.index(f"others: 40 dialogues; {name}: 20") for name in ("Bo", "Cy"))
    assert (
        'Step: the assistant says "we record all calls for training", 0% to 100% of dialogues'
    ) in lines[first:last]
    assert "mean turns: 3 to 5" in lines[first:last]
    cy = lines[last + 1 :]
    assert "mean turns: 4.5 to 2" in cy
    assert 'Step: the assistant says "what is your address?", 100% to 0% of dialogues' in cy
    assert sorted(path.parent.name for path in tmp_path.glob("[0-9]/index.html")) == ["1", "2", "3"]
