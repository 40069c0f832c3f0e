"""Multi-granularity training as stages.

What is complete stays, what was killed goes on, all end in one ensemble.
"""

import json
import re
from dataclasses import replace

import pytest
from checkpoints import deep_attention_matching, dual_encoder, save
from safetensors.torch import load_file

from hf_dialemb import InputError, load_ranker
from hf_dialemb.data import read_jsonl, write_jsonl
from hf_dialemb.data.examples import read_candidates
from hf_dialemb.evaluation import Results, Row
from hf_dialemb.papers.ensemble import ensemble_report
from hf_dialemb.papers.ensemble import training as ensemble
from hf_dialemb.papers.ensemble.ensemble_report import analysis_dialogues
from hf_dialemb.papers.ensemble.training import EnsemblePlan, best_checkpoints, is_complete
from hf_dialemb.papers.paper_tables import ensemble_tables
from hf_dialemb.papers.tasks import probes
from hf_dialemb.training.training_run import run_training

RECIPE = """{
    method: dual_encoder, corpus: [sample], exclude: [none], responses: assistant, seed: 3,
    vocabulary_size: 300, embedding_size: 8, hidden_size: 8, num_candidates: 4,
    learning_rate: 0.01, lr_scheduler_type: constant, weight_decay: 0.0, max_dialogues: 60,
    per_device_train_batch_size: 128, per_device_eval_batch_size: 512, num_train_epochs: 2,
    save_strategy: epoch, checkpoint_selection: contrastive_accuracy, dev_split: dev,
}"""
SYSTEMS = (
    "Dual Encoder",
    "Ensemble (2)",
    "Ensemble of seeds",
    "Multi-Granularity (2)",
    "granularity 1",
    "granularity 2",
)


def plan_in(folder, corpus="sample", recipe=RECIPE, **changes):
    folder.mkdir(exist_ok=True)
    (folder / "recipe.yaml").write_text(recipe, encoding="utf-8")
    return EnsemblePlan(
        **{"config": str(folder / "recipe.yaml"), "size": 2, **changes},
        corpus=corpus,
        output=folder / "runs",
    )


def trained(plan):
    return ensemble.train_ensemble(plan, lambda line: None)


def dialogues_of(selections):
    return list(dict.fromkeys(selection.id.rsplit(":", 1)[0] for selection in selections))


def write_own(folder, dialogues):
    for name, part in {"train": slice(0, 60), "dev": slice(60, 80), "test": slice(80, 100)}.items():
        write_jsonl(dialogues[part], folder / f"{name}.jsonl")


def weights(folder):
    return load_file(folder / "model.safetensors")


@pytest.fixture
def in_process(monkeypatch):
    """Trains without processes of their own; returns which runs were started."""
    started = []

    def carry_out(plan, name, report):
        if not is_complete(plan, name):
            started.append(name)
            run_training(plan.settings(name))

    monkeypatch.setattr(ensemble, "carry_out", carry_out)
    return started


def test_members_differ_by_their_granularity_and_their_seed_alone(tmp_path):
    plan = plan_in(tmp_path)
    names = ("baseline", "seed-2", "granularity-1", "granularity-2")
    first, *others = (
        vars((made := plan.settings(name)).run) | made.fingerprint() for name in names
    )
    seed, told = (
        first["seed"],
        ("granularity", "seed", "data_seed", "granularity_model", "num_granularities"),
    )
    similar = (str(plan.run("baseline")), 2)
    assert [tuple(each[name] for name in told) for each in others] == [
        (None, seed + 1, seed, None, first["num_granularities"]),
        (1, seed, seed, *similar),
        (2, seed + 1, seed, *similar),
    ]
    assert (first["granularity"], first["granularity_model"]) == (None, None)
    for settings in others:
        assert {name for name in first if settings[name] != first[name]} <= {*told}


@pytest.mark.slow
def test_a_killed_run_goes_on_at_its_stage_and_ends_in_the_same_ensemble(
    tmp_path, in_process, monkeypatch
):
    first = plan_in(tmp_path / "whole")
    whole = trained(first)
    assert in_process == ["baseline", "granularity-1", "granularity-2", "seed-2"]
    in_process.clear()
    carry_out, plan = ensemble.carry_out, plan_in(tmp_path / "parts")

    def killed(plan, name, report):
        assert name != "granularity-2", "killed"
        carry_out(plan, name, report)

    monkeypatch.setattr(ensemble, "carry_out", killed)
    with pytest.raises(AssertionError, match="killed"):
        trained(plan)
    monkeypatch.setattr(ensemble, "carry_out", carry_out)
    in_process.clear()
    parts = trained(plan)
    assert in_process[0] == "granularity-2"
    for name, folder in whole.items():
        other = weights(parts[name])
        assert all(tensor.equal(other[key]) for key, tensor in weights(folder).items()), name
    in_process.clear()
    trained(plan)
    assert in_process == []
    # candidates of dev chose checkpoints
    with pytest.raises(
        InputError, match=r"num_candidates 4.*asked for.*candidates 3.*choose another --output"
    ):
        trained(replace(first, candidates=3))


def test_dev_candidates_keep_to_the_dialogues_asked_for(tmp_path):
    plan = plan_in(tmp_path, overrides={"max_dev_dialogues": 7}, analysis_dialogues=10)
    for split in ("dev", "test"):
        ensemble._draw(plan, split, lambda line: None)
    header, selections = read_candidates(plan.candidate_file("dev"))
    assert (header["max_dialogues"], len(dialogues_of(selections))) == (7, 7)
    fewer = replace(plan, output=tmp_path / "fewer", test_dialogues=5)
    ensemble._draw(fewer, "test", lambda line: None)
    header, selections = read_candidates(fewer.candidate_file("test"))
    measuring = dialogues_of(selections)
    everything = [dialogue.id for dialogue in plan.load("test")]
    assert header["max_dialogues"] == 5
    assert [each for each in everything if each in measuring] == measuring != everything[:5]
    assert len(analysis_dialogues(plan)) == 10
    assert len(analysis_dialogues(replace(plan, analysis_dialogues=None))) == 60


def test_the_best_checkpoint_is_the_earlier_of_equal_ones(tmp_path):
    log = [
        {"step": step, "eval_contrastive_accuracy": score}
        for step, score in enumerate((0.2, 0.5, 0.5, 0.4), 1)
    ]
    (tmp_path / "training_report.json").write_text(json.dumps({"log": log}))
    for step in (1, 2, 3, 4):
        (tmp_path / f"checkpoint-{step}").mkdir()
    assert [folder.name for folder in best_checkpoints(tmp_path, 3)] == [
        "checkpoint-2",
        "checkpoint-3",
        "checkpoint-4",
    ]
    with pytest.raises(InputError, match="got 4 checkpoints, expected 5"):
        best_checkpoints(tmp_path, 5)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"config": "dse_minilm"}, "method: got dse, expected a ranker of responses"),
        ({"overrides": {"checkpoint_selection": "last"}}, "checkpoint_selection: got last"),
        ({"overrides": {"output_dir": "elsewhere"}}, "output_dir: got a folder of one run"),
        ({"size": 1}, "size: got 1, expected a value at least 2"),
        ({"similarity": "no/such"}, "no/such"),
        ({"similarity": "{deep}"}, "scores a context and a response together"),
        (
            {"config": "deep_attention_matching_multiwoz_small"},
            "similarity: got none, but deep_attention_matching",
        ),
        ({"dev": "dev.jsonl"}, "dev, test: got files, but sample has splits"),
        (
            {"corpus": "a.jsonl", "dev": "b.jsonl", "test": "b.jsonl"},
            "dev, test: got b.jsonl for both",
        ),
        (
            {"corpus": "mine.jsonl"},
            r"corpus: got mine.jsonl, which has no splits; give .* \(--dev\)",
        ),
        (
            {"size": 600, "overrides": {"num_train_epochs": 600}},
            "granularities: got 600, but each response has",
        ),
    ],
)
def test_what_cannot_be_an_ensemble_is_refused_before_anything_is_trained(
    tmp_path, in_process, sample_dialogues, changes, reason
):
    if changes.get("similarity") == "{deep}":
        changes = {"similarity": save(deep_attention_matching(sample_dialogues), tmp_path / "deep")}
    plan = plan_in(tmp_path)
    with pytest.raises(InputError, match=reason):
        trained(replace(plan, **changes))
    assert in_process == []


def test_an_ensemble_is_made_again_when_its_members_change(tmp_path, sample_dialogues):
    members = [tmp_path / name for name in ("a", "b", "c")]
    for seed, folder in enumerate(members):
        save(dual_encoder(sample_dialogues, seed), folder)
    told = []
    for chosen in (members[:2], members[:2], members, members[1:]):
        ensemble.assemble(tmp_path / "whole", chosen, told.append)
        made = load_ranker(str(tmp_path / "whole")).model.members
        for member, folder in zip(made, chosen, strict=True):
            assert member.context.words.weight.cpu().equal(weights(folder)["context.words.weight"])
    assert len(told) == 3  # once nothing had changed


@pytest.mark.slow
def test_an_ensemble_of_ones_own_dialogues(
    tmp_path, in_process, sample_dialogues, monkeypatch, printed
):
    monkeypatch.setattr(ensemble_report, "PROBE_SEEDS", (0,))
    monkeypatch.setattr(probes, "EPOCHS", 2)
    monkeypatch.chdir(tmp_path)
    recipe = RECIPE.replace("max_dialogues: 60,", "").replace("[none]", "[sgd/test]")
    plan = plan_in(tmp_path, recipe=recipe)
    write_own(tmp_path, sample_dialogues)
    words = ["papers", "ensemble", "--config", "recipe.yaml", "--corpus", "train.jsonl"]
    words += ["--size", "2", "--output", "runs", "--dev", "dev.jsonl", "--test", "test.jsonl"]
    for skipped in (["--skip-analyses"], []):
        told = printed(*words, *skipped)
        assert ("(the paper's Table 5)" in told) != bool(skipped)
        assert (plan.output / "results.md").read_text().strip() in told
        for system in (*SYSTEMS[:4], f"{SYSTEMS[3]}, by its vectors", "granularity 2"):
            assert re.search(rf"\| {re.escape(system)} \| \d+\.\d\d \|", told), system
    results = json.loads((plan.output / "results.json").read_text())
    config, tasks = results["run"]["config"], ("bag-of-words-probe", "dialogue-act-probe")
    assert list(config["analyses"]) == [f"{task}, {name}" for task in tasks for name in SYSTEMS]
    assert {row["task"] for row in results["results"]} == {"next-utterance-retrieval", *tasks}
    assert len(config["comparisons"]) == 3 * 4  # two figures of ranks, two probes
    for split in ("dev", "test"):
        _, selections = read_candidates(plan.candidate_file(split))
        known = {dialogue.id for dialogue in read_jsonl(tmp_path / f"{split}.jsonl")}
        assert {*dialogues_of(selections)} <= known
    settings = json.loads((plan.run("baseline") / "training_settings.json").read_text())
    assert (settings["corpus"], settings["exclude"]) == (
        ["train.jsonl"],
        ["dev.jsonl", "test.jsonl"],
    )


def test_tables_hold_measured_figures_beside_printed_ones():
    what = {"corpus": "multiwoz", "split": "test", "setting": ""}
    row = Row(
        model="Dual Encoder", task="next-utterance-retrieval", metric="mrr", mean=70.123, **what
    )
    act = {"model": "granularity 1", "task": "dialogue-act-probe", "metric": "micro_f1"}
    quoted = replace(row, mean=79.55, quoted_from="P, Table 2, row Dual Encoder")
    rows = (row, quoted, replace(row, **act, mean=15.5, std=0.25, n=3))
    text = ensemble_tables(Results({"config": {}}, rows))
    assert "| Dual Encoder | 70.12 | 79.55 | — | — |" in text
    assert "| granularity 1 | — | — | 15.50 ± 0.25 | — |" in text
    run = {"dialogues": 100, "examples": 640, "steps": 40, "processes": 2}
    recipe = {
        "per_device_train_batch_size": 16,
        "gradient_accumulation_steps": 1,
        "num_candidates": 5,
    }
    config = {"training": {"baseline": run}, "recipe": recipe, "candidates": {"num_candidates": 20}}
    config["training"]["seed-2"] = run | {"steps": 20}
    config["candidates"]["max_dialogues"] = 1500
    text = ensemble_tables(Results({"config": config}, rows))
    assert text.startswith(
        "Each run: 640 responses of 100 dialogues, 20 to 40 steps of 32 (1 to 2 epochs), the true "
        "response among 5; measured among 20 in 1,500 drawn dialogues.\n"
    )


@pytest.mark.slow
def test_a_run_that_fails_is_named_with_its_reason(tmp_path):
    broken = {"corpus": "sample", "exclude": "none", "max_dialogues": 20, "num_candidates": 100_000}
    (tmp_path / "runs" / "candidates").mkdir(parents=True)
    plan = plan_in(tmp_path, config="dual_encoder_multiwoz", overrides=broken)
    with pytest.raises(InputError, match=r"run baseline failed \(num_candidates: got 100000.*logs"):
        ensemble.carry_out(plan, "baseline", print)
