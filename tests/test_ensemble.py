"""Multi-granularity training as stages: what is complete stays, what was killed goes on, all end in one ensemble."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace

import pytest
from ranker_checkpoints import deep_attention_matching, dual_encoder, save
from safetensors.torch import load_file

from hf_dialemb.apps.ensemble import analyses as ensemble_analyses
from hf_dialemb.apps.ensemble import training as ensemble
from hf_dialemb.apps.ensemble.analyses import _training_dialogues
from hf_dialemb.apps.ensemble.report import _quoted, report_ensemble
from hf_dialemb.apps.ensemble.runs import Runs
from hf_dialemb.apps.ensemble.tables import ensemble_tables
from hf_dialemb.apps.ensemble.training import EnsemblePlan, best_checkpoints, train_ensemble
from hf_dialemb.cli import main
from hf_dialemb.corpora import read_jsonl, write_jsonl
from hf_dialemb.corpora.candidates import read_candidates
from hf_dialemb.evaluation.results.rows import Results, Row, read_results
from hf_dialemb.evaluation.tasks import probes
from hf_dialemb.evaluation.tasks.act_fine_tuning import run_act_fine_tuning
from hf_dialemb.models import get_method
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.ranking import load_ranker
from hf_dialemb.training.dialogues import training_dialogues
from hf_dialemb.training.run import train

RECIPE = """
method: dual_encoder
corpus: [sample]
exclude: [none]
responses: assistant
vocabulary_size: 300
embedding_size: 8
hidden_size: 8
num_candidates: 4
learning_rate: 0.01
lr_scheduler_type: constant
weight_decay: 0.0
per_device_train_batch_size: 128
per_device_eval_batch_size: 512
max_dialogues: 60
num_train_epochs: 2
save_strategy: epoch
checkpoint_selection: contrastive_accuracy
dev_split: dev
seed: 3
"""


def plan_in(folder, **changes):
    folder.mkdir(exist_ok=True)
    recipe = folder / "recipe.yaml"
    recipe.write_text(RECIPE, encoding="utf-8")
    return EnsemblePlan(str(recipe), "sample", folder / "runs", **{"size": 2, **changes})


@pytest.fixture
def in_process(monkeypatch):
    """Trains without processes of their own; returns which runs were started."""
    started = []

    def launch(runs, name):
        started.append(name)
        train(runs.plan.settings(name))

    monkeypatch.setattr(Runs, "launch", launch)
    return started


def test_members_differ_by_their_granularity_and_their_seed_alone(tmp_path):
    plan = plan_in(tmp_path)
    first, *others = (vars(plan.settings(name).run) | plan.settings(name).fingerprint()
                      for name in ("baseline", "seed-2", "granularity-1", "granularity-2"))  # fmt: skip
    seed = first["seed"]
    assert (first["granularity"], first["granularity_model"]) == (None, None)
    for settings, granularity, its_seed in zip(others, (None, 1, 2), (seed + 1, seed, seed + 1), strict=True):
        assert (settings["granularity"], settings["seed"], settings["data_seed"]) == (granularity, its_seed, seed)
        changed = {name for name in first if settings[name] != first[name]}
        assert changed <= {"granularity", "granularity_model", "num_granularities", "seed", "data_seed"}
        if granularity:
            assert settings["granularity_model"] == str(plan.run("baseline"))
            assert settings["num_granularities"] == 2


def weights(folder):
    return load_file(folder / "model.safetensors")


@pytest.mark.slow
def test_a_killed_run_goes_on_at_its_stage_and_ends_in_the_same_ensemble(tmp_path, in_process, monkeypatch, capsys):
    whole = train_ensemble(plan_in(tmp_path / "whole"), lambda line: None)
    assert in_process == ["baseline", "granularity-1", "granularity-2", "seed-2"]
    whole_launch = Runs.launch
    in_process.clear()

    def killed(runs, name):
        if name == "granularity-2":
            raise InputError("killed")
        whole_launch(runs, name)

    monkeypatch.setattr(Runs, "launch", killed)
    with pytest.raises(InputError, match="killed"):
        train_ensemble(plan_in(tmp_path / "parts"), lambda line: None)
    monkeypatch.setattr(Runs, "launch", whole_launch)
    assert in_process[:2] == ["baseline", "granularity-1"]
    in_process.clear()
    parts = train_ensemble(plan_in(tmp_path / "parts"), lambda line: None)
    assert in_process[0] == "granularity-2"
    for name, folder in whole.items():
        first, second = weights(folder), weights(parts[name])
        assert first.keys() == second.keys()
        assert all(tensor.equal(second[key]) for key, tensor in first.items()), name
    in_process.clear()
    train_ensemble(plan_in(tmp_path / "parts"), lambda line: None)
    assert in_process == []


@pytest.mark.slow
def test_the_whole_command_measures_and_prints_the_papers_tables(tmp_path, in_process, capsys):
    plan_in(tmp_path)
    words = ["ensemble", "--config", str(tmp_path / "recipe.yaml"), "--corpus", "sample", "--size", "2"]
    assert main([*words, "--output", str(tmp_path / "runs"), "--skip-analyses", "--num_train_epochs", "2"]) == 0
    printed = capsys.readouterr().out
    for system in (*ALL_SYSTEMS[:4], f"{ALL_SYSTEMS[3]}, by its vectors", "granularity 2"):
        assert re.search(rf"\| {re.escape(system)} \| \d+\.\d\d \|", printed), system
    record = json.loads((tmp_path / "runs" / "results.json").read_text())
    assert len(record["run"]["config"]["comparisons"]) == 6
    assert (tmp_path / "runs" / "results.md").read_text().strip() in printed


@pytest.mark.slow
def test_dev_candidates_and_probes_keep_to_the_dialogues_that_are_asked_for(tmp_path, in_process):
    words = ("--max_dev_dialogues", "7", "--num_train_epochs", "1", "--save_strategy", "steps", "--save_steps", "1")
    plan = plan_in(tmp_path, overrides=words, analysis_dialogues=10)
    train_ensemble(plan, lambda line: None)
    header, selections = read_candidates(plan.candidate_file("dev"))
    assert header["max_dialogues"] == 7
    assert len({selection.id.rsplit(":", 1)[0] for selection in selections}) == 7
    assert "max_dialogues" not in read_candidates(plan.candidate_file("test"))[0]
    fewer = replace(plan, output=tmp_path / "fewer", test_dialogues=5)
    ensemble._draw(fewer, "test", lambda line: None)
    header, selections = read_candidates(fewer.candidate_file("test"))
    measuring = [selection.id.rsplit(":", 1)[0] for selection in selections]
    assert header["max_dialogues"] == 5
    assert list(dict.fromkeys(measuring)) == [dialogue.id for dialogue in fewer.load("test")]
    everything = [dialogue.id for dialogue in plan.load("test")]
    assert [each for each in everything if each in measuring] == list(dict.fromkeys(measuring)) != everything[:5]
    with pytest.raises(InputError, match="test_dialogues: got 0, expected at least 1"):
        replace(plan, test_dialogues=0)
    with pytest.raises(InputError, match="test_dialogues: got 5, but ubuntu has contexts with candidates of its"):
        replace(plan, corpus="ubuntu", test_dialogues=5)
    assert len(_training_dialogues(plan, ())) == 10
    assert len(_training_dialogues(replace(plan, analysis_dialogues=None), ())) == 60


ALL_SYSTEMS = (
    "Dual Encoder", "Ensemble (2)", "Ensemble of seeds", "Multi-Granularity (2)", "granularity 1", "granularity 2"
)  # fmt: skip


@pytest.mark.slow
def test_killed_probes_go_on_where_they_were(tmp_path, in_process, monkeypatch):
    plan = plan_in(tmp_path, overrides=("--max_dialogues", "20"), test_dialogues=20)
    train_ensemble(plan, lambda line: None)
    whole = report_ensemble(plan, analyses=True, report=lambda line: None)
    assert "| Multi-Granularity (2) |" in whole.split("(the paper's Table 5)")[1]
    first = json.loads((plan.output / "results.json").read_text())
    computed = {each.get("precision") for each in first["run"]["config"]["analyses"].values()}
    assert computed == {None, "float32"}  # as the recipe says for the rankers
    kept = sorted((plan.output / "analyses").iterdir())
    assert len(kept) == 18  # six systems' probes for words and for acts, and those that learn: one, and five
    for path in kept[8:]:
        path.unlink()

    def killed(*arguments, **options):
        raise InputError("killed")

    monkeypatch.setattr(ensemble_analyses, "run_act_fine_tuning", killed)
    with pytest.raises(InputError, match="killed"):
        report_ensemble(plan, analyses=True, report=lambda line: None)
    partly = json.loads((plan.output / "results.json").read_text())["results"]
    assert {row["task"] for row in partly} == {"next-utterance-retrieval", "bag-of-words-probe"}
    monkeypatch.setattr(ensemble_analyses, "run_act_fine_tuning", run_act_fine_tuning)
    for path in kept[8:]:
        path.unlink(missing_ok=True)
    probed = []

    def run_probes(systems, *arguments, **options):
        probed.extend(systems)
        return probes.run_probes(systems, *arguments, **options)

    monkeypatch.setattr(ensemble_analyses, "run_probes", run_probes)
    assert report_ensemble(plan, analyses=True, report=lambda line: None) == whole
    assert probed == [*ALL_SYSTEMS, *ALL_SYSTEMS[3:]]  # all for words, three for acts
    again = json.loads((plan.output / "results.json").read_text())
    assert again["results"] == first["results"]
    assert again["run"]["config"] == first["run"]["config"]


def test_best_checkpoints_are_those_of_the_dev_candidates_the_earlier_of_equal_ones(tmp_path):
    log = [
        {"step": step, "eval_contrastive_accuracy": score} for step, score in ((1, 0.2), (2, 0.5), (3, 0.5), (4, 0.4))
    ]
    (tmp_path / "training_report.json").write_text(json.dumps({"log": log}))
    for step in (1, 2, 3, 4):
        (tmp_path / f"checkpoint-{step}").mkdir()
    assert [folder.name for folder in best_checkpoints(tmp_path, 3)] == ["checkpoint-2", "checkpoint-3", "checkpoint-4"]
    with pytest.raises(InputError, match="got 4 checkpoints, expected 5"):
        best_checkpoints(tmp_path, 5)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"config": "dse_minilm"}, "method: got dse, expected a ranker of responses"),
        ({"overrides": ("--checkpoint_selection", "last")}, "checkpoint_selection: got last"),
        ({"overrides": ("--output_dir", "elsewhere")}, "output_dir: got a folder of one run"),
        ({"size": 1}, "size: got 1, expected at least 2"),
        ({"candidates": 1}, "candidates: got 1, expected at least 2"),
        ({"analysis_dialogues": 1}, "analysis_dialogues: got 1, expected at least 2"),
        ({"similarity": "no/such"}, "similarity: got no/such, expected the folder of a trained ranker"),
        ({"config": "deep_attention_matching_multiwoz_small"}, "similarity: got none, but deep_attention_matching"),
        ({"dev": "dev.jsonl"}, "dev, test: got files, but sample has splits"),
        ({"corpus": "a.jsonl", "dev": "b.jsonl", "test": "b.jsonl"}, "dev, test: got b.jsonl for both"),
        ({"corpus": "mine.jsonl"}, r"corpus: got mine.jsonl, which has no splits; give .* \(--dev\)"),
        (
            {"size": 600, "overrides": ("--num_train_epochs", "600")},
            "num_granularities: got 600, but each response has",
        ),
    ],
)
def test_what_cannot_be_an_ensemble_is_refused_before_anything_is_trained(tmp_path, in_process, changes, reason):
    plan = plan_in(tmp_path)
    with pytest.raises(InputError, match=reason):
        train_ensemble(replace(plan, **changes), lambda line: None)
    assert in_process == []


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (("--num_train_epochs", "4"), 4),
        (("--num_train_epochs", "3.5", "--max_steps", "-1"), 4),
        (("--save_strategy", "steps", "--save_steps", "3", "--max_steps", "7"), 3),
        (("--save_total_limit", "2"), 2),
    ],
)
def test_too_few_checkpoints_are_known_before_anything_is_trained(tmp_path, in_process, words, kept):
    plan = EnsemblePlan("dual_encoder_multiwoz", "sample", tmp_path / "ensemble", (*words, "--exclude", "none"))
    with pytest.raises(InputError, match=f"size: got 5, but the baseline keeps only {kept} checkpoints; save more"):
        train_ensemble(plan, lambda line: None)
    assert in_process == []
    assert replace(plan, size=2).method().name == "dual_encoder"


@pytest.mark.slow
def test_too_few_checkpoints_are_found_after_the_baseline(tmp_path, in_process):
    rare = ("--save_strategy", "steps", "--save_steps", "100000")  # how many steps there are is known after reading
    with pytest.raises(InputError, match="got 1 checkpoints, expected 3"):
        train_ensemble(plan_in(tmp_path, size=3, overrides=rare), lambda line: None)
    assert in_process == ["baseline"]


def test_a_ranker_that_embeds_nothing_tells_no_similarity(tmp_path, sample_dialogues):
    folder = save(deep_attention_matching(sample_dialogues), tmp_path / "deep")
    with pytest.raises(InputError, match="a deep_attention_matching, which embeds no responses"):
        train_ensemble(plan_in(tmp_path, similarity=folder), lambda line: None)


def test_an_ensemble_is_made_again_when_its_members_change(tmp_path, sample_dialogues):
    members = [tmp_path / name for name in ("a", "b", "c")]
    for seed, folder in enumerate(members):
        save(dual_encoder(sample_dialogues, seed), folder)
    told = []
    for chosen in (members[:2], members[:2], members, members[1:]):
        ensemble.assemble(tmp_path / "whole", chosen, told.append)
        made = load_ranker(str(tmp_path / "whole"))
        assert len(made.model.members) == len(chosen)
        for place, folder in zip(made.model.members, chosen, strict=True):
            kept = weights(folder)["context.words.weight"]
            assert place.context.words.weight.cpu().equal(kept)
    assert len(told) == 3  # once nothing had changed


@pytest.mark.slow
def test_candidates_that_chose_checkpoints_stay(tmp_path, in_process):
    plan = plan_in(tmp_path)
    train_ensemble(plan, lambda line: None)
    before = plan.candidate_file("dev").read_bytes()
    with pytest.raises(InputError, match=r"num_candidates 4.*asked for.*candidates 3.*choose another --output"):
        train_ensemble(replace(plan, candidates=3), lambda line: None)
    assert plan.candidate_file("dev").read_bytes() == before


@pytest.mark.slow
def test_dialogues_that_changed_meanwhile_are_not_mixed_with_others(
    tmp_path, in_process, sample_dialogues, monkeypatch
):
    plan_in(tmp_path)
    for name, part in {"train": slice(0, 60), "dev": slice(60, 80), "test": slice(80, 100)}.items():
        write_jsonl(sample_dialogues[part], tmp_path / f"{name}.jsonl")
    (tmp_path / "recipe.yaml").write_text(RECIPE.replace("max_dialogues: 60\n", ""))
    files = {name: str(tmp_path / f"{name}.jsonl") for name in ("dev", "test")}
    plan = EnsemblePlan(
        str(tmp_path / "recipe.yaml"), str(tmp_path / "train.jsonl"), tmp_path / "runs", size=2, **files
    )
    monkeypatch.setattr(ensemble, "response_vectors", lambda *arguments: {}["stopped after the baseline"])
    with pytest.raises(KeyError):
        train_ensemble(plan, lambda line: None)
    write_jsonl(sample_dialogues[1:60], tmp_path / "train.jsonl")
    with pytest.raises(InputError, match=r"baseline holds a run with another dialogues \(60 there, 59 now\)"):
        train_ensemble(plan, lambda line: None)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such lock")
def test_two_commands_do_not_write_into_one_folder(tmp_path, in_process):
    import fcntl

    plan = plan_in(tmp_path)
    plan.output.mkdir()
    with (plan.output / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another `dialemb ensemble`, or a run that it left, is at work here"):
            train_ensemble(plan, lambda line: None)
    assert in_process == []


@pytest.mark.slow
def test_an_ensemble_of_ones_own_dialogues(tmp_path, in_process, sample_dialogues, monkeypatch, capsys):
    plan_in(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, part in {"train": slice(0, 60), "dev": slice(60, 80), "test": slice(80, 100)}.items():
        write_jsonl(sample_dialogues[part], tmp_path / f"{name}.jsonl")
    (tmp_path / "recipe.yaml").write_text(RECIPE.replace("max_dialogues: 60\n", "").replace("[none]", "[sgd/test]"))
    words = ["ensemble", "--config", "recipe.yaml", "--corpus", "train.jsonl", "--size", "2", "--output", "runs"]
    assert main([*words, "--dev", "dev.jsonl", "--test", "test.jsonl"]) == 0
    assert "(the paper's Table 6)" in capsys.readouterr().out
    for split in ("dev", "test"):
        header, selections = read_candidates(tmp_path / "runs" / "candidates" / f"{split}.jsonl")
        assert header["corpus"] == f"{split}.jsonl"
        known = {dialogue.id for dialogue in read_jsonl(tmp_path / f"{split}.jsonl")}
        assert {selection.id.rsplit(":", 1)[0] for selection in selections} <= known
    settings = json.loads((tmp_path / "runs" / "baseline" / "training_settings.json").read_text())
    assert (settings["corpus"], settings["exclude"]) == (["train.jsonl"], ["dev.jsonl", "test.jsonl"])
    rows = json.loads((tmp_path / "runs" / "results.json").read_text())["results"]
    assert {row["corpus"] for row in rows} == {"test.jsonl"}


ROW = Row(
    model="Dual Encoder", corpus="multiwoz", split="test", task="next-utterance-retrieval", metric="mrr", setting="",
    mean=70.123,
)  # fmt: skip


def test_tables_hold_measured_figures_beside_printed_ones():
    rows = (
        ROW,
        replace(ROW, mean=79.55, quoted_from="P, Table 2, row Dual Encoder"),
        replace(ROW, model="granularity 1", task="dialogue-act-probe", metric="micro_f1", mean=15.5, std=0.25, n=3),
    )
    text = ensemble_tables(Results({"config": {}}, rows))
    assert "| Dual Encoder | 70.12 | 79.55 | — | — |" in text
    assert "| granularity 1 | — | — | 15.50 ± 0.25 | — |" in text
    assert "More than chance" not in text
    run = {"dialogues": 100, "examples": 640, "steps": 40, "processes": 2}
    recipe = {"per_device_train_batch_size": 16, "gradient_accumulation_steps": 1, "num_candidates": 5}
    config = {"training": {"baseline": run}, "recipe": recipe, "candidates": {"num_candidates": 20}}
    text = ensemble_tables(Results({"config": config}, rows))
    assert text.startswith(
        "Each run: 640 responses of 100 dialogues, 40 steps of 32 (2 epochs), the true response among 5; "
        "measured among 20.\n"
    )
    config["training"]["seed-2"] = run | {"steps": 20}
    assert "20 to 40 steps of 32 (1 to 2 epochs)" in ensemble_tables(Results({"config": config}, rows))
    config["candidates"]["max_dialogues"] = 1500
    assert "measured among 20 in 1,500 drawn dialogues.\n" in ensemble_tables(Results({"config": config}, rows))


def ubuntu(folder):
    """The Ubuntu Dialogue Corpus' released form: made-up questions, each answer with those that are from elsewhere."""
    end = " __eou__ __eot__"
    (folder / "ubuntu").mkdir(parents=True)
    lines = [f"how do i fix fault {n}{end} which release {n}{end},try remedy number {n} __eou__,1" for n in range(30)]
    lines += [f"how do i fix fault {n}{end},an answer from elsewhere __eou__,0" for n in range(30)]
    (folder / "ubuntu" / "train.csv").write_text("\n".join(["Context,Utterance,Label", *lines, ""]))
    head = ["Context", "Ground Truth Utterance", *(f"Distractor_{n}" for n in range(9))]
    for split, first in (("valid", 100), ("test", 200)):
        rows = [[f"what is {n}{end}", *(f"it is {n} and {k}" for k in range(10))] for n in range(first, first + 6)]
        text = "\n".join([",".join(head), *map(",".join, rows), ""])
        (folder / "ubuntu" / f"{split}.csv").write_text(text)


@pytest.mark.slow
def test_the_ubuntu_corpus_gives_contexts_with_one_answer_and_its_own_candidates(tmp_path, in_process):
    ubuntu(tmp_path)
    recipe = RECIPE.replace("[sample]", "[ubuntu/train]").replace(
        "exclude: [none]", "exclude: [ubuntu/dev, ubuntu/test]"
    )
    plan = plan_in(tmp_path / "out", data_dir=str(tmp_path))
    (tmp_path / "out" / "recipe.yaml").write_text(recipe.replace("responses: assistant", "responses: last"))
    plan = EnsemblePlan(plan.config, "ubuntu", plan.output, size=2, data_dir=str(tmp_path))
    settings = plan.settings("baseline")
    dialogues = training_dialogues(settings.run, get_method("dual_encoder"), 0, lambda line: None)
    assert [turn.content for turn in dialogues[0].turns] == [
        "how do i fix fault 0", "which release 0", "try remedy number 0",
    ]  # fmt: skip
    assert len(dialogues) == 30
    train_ensemble(plan, lambda line: None)
    _, given = read_candidates(plan.candidate_file("test"))
    assert [len(selection.responses) for selection in given] == [10] * 6
    assert {selection.correct for selection in given} == {(0,)}
    text = report_ensemble(plan, True, lambda line: None)
    assert "(the paper's Table 3)" in text
    assert "(the paper's Table 2)" not in text
    assert "| System | MRR | MRR, paper | R10@1 | R10@1, paper | R2@1 | R2@1, paper |" in text
    rows = {row.metric: row for row in read_results(plan.output / "results.json").results if row.model == "Dual Encoder"
            and row.quoted_from is None}  # fmt: skip
    assert rows["r10@1"].mean == rows["hits1"].mean <= rows["r2@1"].mean
    single = f"{rows['mrr'].mean:.2f} | 76.84 | {rows['r10@1'].mean:.2f} | 63.60 | {rows['r2@1'].mean:.2f} | 90.90 |"
    assert f"| Dual Encoder | {single}" in text


def test_figures_of_deep_attention_matching_stand_beside_those_that_the_paper_prints_of_it(tmp_path):
    plan = plan_in(tmp_path)
    recipe = plan.output.parent / "recipe.yaml"
    found = {}
    for method in ("dual_encoder", "deep_attention_matching", "transformer_dual_encoder"):
        start = "backbone: tiny\n" if method == "transformer_dual_encoder" else ""
        recipe.write_text(f"method: {method}\n{start}corpus: [ubuntu/train]\n")
        known = EnsemblePlan(str(recipe), "ubuntu", plan.output, size=2)
        found[method] = {(row.model, row.metric): row.mean for row in _quoted(known)}
    assert found["dual_encoder"]["Dual Encoder", "r10@1"] == 63.6
    assert found["dual_encoder"]["Multi-Granularity (5)", "mrr"] == 80.1
    assert found["deep_attention_matching"]["Deep Attention Matching", "r10@1"] == 74.54
    assert found["deep_attention_matching"]["Ensemble (5)", "r2@1"] == 93.27
    assert ("Multi-Granularity (5)", "mrr") in found["deep_attention_matching"]
    assert found["transformer_dual_encoder"] == {}
