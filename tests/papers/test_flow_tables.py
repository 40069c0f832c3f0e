"""Tables of flows, laid out as the paper's."""

import json

import pytest

from hf_dialemb.cli import main
from hf_dialemb.evaluation.results.rows import read_results
from hf_dialemb.integrations.sentence_evaluators import TaskEvaluator
from hf_dialemb.papers.flow_tables import flow_means


def annotated(path, count):
    """Writes dialogues of two domains whose turns have dialogue acts and slots."""
    lines = []
    for number in range(count):
        domain, slot = ("taxi", "time") if number % 2 else ("hotel", "stars")
        said = [("user", "request", f"I want a {domain}"), ("assistant", "request", "when?"), ("user", "inform", "4")]
        more = {"slots": [{"name": slot, "value": "x"}]}
        messages = [{"role": role, "content": text, "dialogue_acts": [act], **more} for role, act, text in said]
        lines.append(json.dumps({"id": str(number), "domains": [domain], "messages": messages}))
    path.write_text("\n".join(lines))
    return path


def test_measure_prints_the_layout_of_the_papers_table(tmp_path, capsys, tiny_bert):
    words = ["--model", "tfidf", tiny_bert, "--corpus", annotated(tmp_path / "own.jsonl", 120)]
    assert main([str(word) for word in ("papers", "flow", *words, "--output", tmp_path / "flow.json")]) == 0
    printed = capsys.readouterr().out
    table = "in % (Table 6)**\n\n| Model | hotel | taxi | Mean ↓ |\n| :-- | --: | --: | --: |\n| tfidf | **0.0** |"
    assert table in printed
    assert printed.count("| Model |") == 6
    assert printed.count("| after the annotated actions themselves |") == 1
    heading, _, head, _, *lines = flow_means(read_results(tmp_path / "flow.json").results).splitlines()
    assert heading == "**own.jsonl**"
    assert head.startswith("| Model | Size, % off ↓ | V-measure |")
    assert [line.split(" | ")[0] for line in lines] == [
        "| tfidf",
        f"| {tiny_bert}",
        "| after the annotated actions themselves",
    ]
    assert lines[0].startswith("| tfidf | **0.0** |")


@pytest.mark.slow
def test_of_size_differences_the_trainer_keeps_the_least(plain, monkeypatch):
    monkeypatch.setattr("hf_dialemb.papers.tasks.flow_extraction.FEWEST_DIALOGUES", 5)
    flows = TaskEvaluator("flow-extraction", "sample", split="dev", seeds=(0, 1), name="")
    assert not flows.greater_is_better  # which is asked for before anything is measured
    flows(plain)
    assert flows.primary_metric.startswith("size_difference")
    assert not flows.greater_is_better
