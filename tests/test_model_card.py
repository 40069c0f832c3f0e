"""Model cards: every code block runs, the Hub reads the front matter, every figure has a source, nothing is made up."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import model_index_to_eval_results
from published_models import ENSEMBLE, SETTINGS, measure, publish, train, train_ensemble

from hf_dialemb.cli import main
from hf_dialemb.corpora import write_jsonl
from hf_dialemb.corpora.source.fingerprint import data_hash
from hf_dialemb.encoders.specs import fingerprint
from hf_dialemb.evaluation.results.learnt import NOTE
from hf_dialemb.evaluation.results.rows import read_results
from hf_dialemb.hub.card.card import cited, escaped, fenced, render_card, render_record
from hf_dialemb.hub.card.record import make_record, matches
from hf_dialemb.hub.forms.verification import WITHOUT_PACKAGE
from hf_dialemb.hub.publish.checks import check
from hf_dialemb.models import METHODS, get_method
from hf_dialemb.models.errors import InputError
from hf_dialemb.training.arguments import parse

REPO = "org/some-model"
ROOT = Path(__file__).parents[1]


class Made(NamedTuple):
    folder: Path
    run: Path
    results: Path
    reference: Path | None

    @property
    def card(self) -> str:
        return render_card(self.folder, self.run, [self.results], REPO)


def make(method: str, backbone: str, dialogues, root: Path) -> Made:
    if method == ENSEMBLE:
        run = train_ensemble(dialogues, root / "runs")
        reference: Path | None = root / "runs" / "baseline"
    else:
        run = train(method, backbone, dialogues, root / "runs" / method)
        reference = None if method == "dual_encoder" else Path(backbone)
    folder = publish(run, root / "published" / method.replace("_", "-"))
    return Made(folder, run, measure(root / "results.json", run, reference), reference)


@pytest.fixture(scope="module", params=[*SETTINGS, ENSEMBLE])
def made(request, tiny_bert, sample_dialogues, tmp_path_factory) -> Made:
    return make(request.param, tiny_bert, sample_dialogues, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def dse(tiny_bert, sample_dialogues, tmp_path_factory) -> Made:
    return make("dse", tiny_bert, sample_dialogues, tmp_path_factory.mktemp("one"))


@pytest.fixture
def copied(dse, tmp_path) -> Made:
    """One whose files a test may spoil."""
    root = shutil.copytree(dse.results.parent, tmp_path / "copied")
    results = measure(root / "results.json", "runs/dse", dse.reference)
    return Made(root / "published/dse", root / "runs/dse", results, dse.reference)


def blocks(card: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", card, re.MULTILINE | re.DOTALL)


def section(card: str, title: str) -> str:
    return re.split(r"^## ", card.split(f"\n## {title}\n")[1], flags=re.MULTILINE)[0]


def change(path: Path, change) -> None:
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


# Those that do without the package come first, in the same process, where it cannot be imported yet.
PROGRAM = """
import json, sys
blocks = json.load(open(sys.argv[1]))
for block in blocks["without"]:
    exec(compile(block, "block", "exec"), {})
assert not [name for name in sys.modules if name.split(".")[0] == "hf_dialemb"]
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "_Blocked"]
for block in blocks["with"]:
    exec(compile(block, "block", "exec"), {})
"""


@pytest.mark.slow
def test_every_python_block_runs(made, tmp_path):
    found = [block.replace(REPO, str(made.folder)) for block in blocks(made.card, "python")]
    packaged = [block for block in found if "import hf_dialemb" in block]
    without = [block for block in found if block not in packaged]
    trusting = [block for block in without if "trust_remote_code=True" in block]
    plain = "hf_dialemb_config.json" in {path.name for path in made.folder.iterdir()}
    assert (len(packaged), len(trusting), len(without) >= 2) == ((0, 0, True) if plain else (2, 2, True))
    assert all(3 <= block.count("\n") <= 14 for block in found)
    (tmp_path / "blocks.json").write_text(json.dumps({"without": without, "with": packaged}))
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_PACKAGE + PROGRAM, str(tmp_path / "blocks.json")],
        env={**os.environ, "HF_MODULES_CACHE": str(tmp_path), "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    for shape in re.findall(r"print\(.*\.shape.*# \((.+?),?\)", made.card):
        assert re.search(rf"[(\[]{shape},?[)\]]", run.stdout), shape


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dse", "dial2vec"])
def test_the_block_for_onnx_runs_and_eight_bits_are_told(tiny_bert, sample_dialogues, tmp_path, method):
    for package in ("onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    from hf_dialemb.hub.export import load_checkpoint
    from hf_dialemb.hub.forms.onnx_form import write_onnx
    from hf_dialemb.hub.forms.quantisation import write_int8

    made = make(method, tiny_bert, sample_dialogues, tmp_path)
    list(write_onnx(made.folder, load_checkpoint(str(made.run))[0]))
    list(write_int8(made.folder, method == "dse"))
    kept = json.loads((made.folder / "onnx/quantisation.json").read_text())
    kept["figures"] = [{"corpus": "s|d", "split": "test", "task": "domains", "metric": "map", "setting": "", "n": 1,
                        "float32": 71.234, "int8": 70.111}]  # fmt: skip
    (made.folder / "onnx/quantisation.json").write_text(json.dumps(kept))
    card = made.card
    assert "onnx" in ModelCard(card).data.tags
    assert f"{kept['cosine']['mean']:.4f} on average" in card
    assert f"| onnx/model\\_int8.onnx | {kept['bytes']['onnx/model_int8.onnx']:,} |".replace("\\_", "_") in card
    assert r"| s\|d, test | domains | map |  | 71.23 | 70.11 | -1.12 |" in card
    (block,) = [block for block in blocks(card, "python") if "onnxruntime" in block]
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_PACKAGE + block.replace(REPO, str(made.folder))],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.strip() in block
    kept["cosine"].pop("mean")
    (made.folder / "onnx/quantisation.json").write_text(json.dumps(kept))
    with pytest.raises(InputError, match=r"quantisation.json: cosine: field mean: .* dialemb export --int8"):
        _ = made.card


def test_every_command_runs(made, tmp_path, monkeypatch, sample_dialogues, capsys):
    monkeypatch.chdir(tmp_path)
    write_jsonl([dialogue.__class__(dialogue.turns, f"call-{n}") for n, dialogue in enumerate(sample_dialogues[:4])],
                Path("dialogues.jsonl"))  # fmt: skip
    Path("responses.txt").write_text("Yes.\nFor how many nights?\nGoodbye.\n")
    commands = [line for block in blocks(section(made.card, "Use"), "bash") for line in block.splitlines()]
    assert commands
    for line in commands:
        words = shlex.split(line.replace(REPO, str(made.folder)))
        assert words[0] == "dialemb"
        assert main(words[1:]) == 0, capsys.readouterr().err


def test_the_hub_reads_the_front_matter_and_its_figures_are_the_results(made):
    card = ModelCard(made.card)
    data = card.data.to_dict()
    own = [row for row in read_results(made.results).results if row.model == str(made.run)]
    name, found = model_index_to_eval_results(data["model-index"])
    assert name == "some-model"
    fields = ("task_type", "dataset_type", "dataset_split", "metric_type", "metric_value")
    assert [tuple(getattr(each, field) for field in fields) for each in found] == [
        (row.task, row.corpus, row.split, row.metric, row.mean) for row in own if row.metric != "seconds"
    ]
    assert data["library_name"] == "sentence-transformers"
    assert data["license"] == "apache-2.0"
    assert data["pipeline_tag"] in ("feature-extraction", "sentence-similarity", "text-ranking")
    assert ("custom_code" in data["tags"]) == ("trust_remote_code" in section(made.card, "Use").replace("nor `t", ""))
    assert yaml.safe_load(made.card.split("---")[1]) == data


def test_every_figure_of_the_evaluation_is_in_the_results(made):
    rows = {(row.model, row.metric): row for row in read_results(made.results).results if not row.quoted_from}
    allowed = set()
    for (model, metric), row in rows.items():
        values = [row.mean, row.std, *(row.interval or ())]
        other = rows.get((str(made.reference), metric))
        values += [row.mean - other.mean] if other and model == str(made.run) else []
        allowed |= {f"{value:{sign}.{decimals}f}" for value in values if value is not None for decimals in (2, 3)
                    for sign in ("", "+")}  # fmt: skip
    table = "\n".join(line for line in section(made.card, "Evaluation").splitlines() if line.startswith("| sgd"))
    printed = re.findall(r"[+-]?\d+\.\d+", table)
    assert len(printed) >= 4
    assert not set(printed) - allowed
    assert "99.8" not in made.card  # quoted
    assert "17.5" not in made.card  # a time


def test_suites_of_other_methods_are_told_in_brief(copied):
    """As long as the method's own is among the files."""
    other = copied.results.with_name("other.json")
    shutil.copy(copied.results, other)
    change(copied.results, lambda record: record["run"]["config"].update(suite="dse"))
    change(other, lambda record: record["run"]["config"].update(suite="dial2vec"))
    alone = evaluation_of(render_card(copied.folder, copied.run, [copied.results], REPO))
    both = evaluation_of(render_card(copied.folder, copied.run, [other, copied.results], REPO))
    rows = len(re.findall(r"^\| sgd", alone, re.MULTILINE))
    assert rows == len(re.findall(r"^\| sgd", both, re.MULTILINE)) > 0
    better, worse, equal = re.findall(r"(\d+)\s+(?:are )?(?:better|worse|equal)", alone)
    assert f"| dial2vec | {rows} | {better} | {worse} | {equal} |" in both
    assert "| Tasks of |" not in alone
    assert evaluation_of(render_card(copied.folder, copied.run, [other], REPO)).count("| sgd") == rows


def evaluation_of(card: str) -> str:
    return section(card, "Evaluation")


def test_losses_are_shown_as_losses(made):
    evaluation = section(made.card, "Evaluation")
    if made.reference is None:
        assert "no backbone to compare it with" in evaluation
        assert "Difference" not in evaluation
        return
    lines = [line for line in evaluation.splitlines() if line.startswith("| sgd")]
    assert [line.split("|")[-3:-1] for line in lines] == [
        [" -2.27 ", " worse "], [" -0.846 ", " better "], [" — ", "  "]
    ]  # fmt: skip
    assert "of 2 figures that both have\n1 are better, 1 worse, 0 equal" in evaluation


def test_the_card_names_no_place_on_the_machine(made):
    assert str(made.results.parent) not in made.card
    assert not re.findall(r"(?:^|[\s\"'`(=|])/\w", made.card)
    record = json.dumps(make_record(made.folder, made.run))
    assert not re.findall(r"\"[/~]", record)


def test_the_recipe_trains_the_same_again(made, tmp_path):
    (text,) = blocks(made.card, "yaml")
    record = make_record(made.folder, made.run)
    settings = record["training"][0]["settings"]
    shown = yaml.safe_load(text)
    assert all(settings[name] == value for name, value in shown.items())
    if len(record["training"]) > 1:
        assert not {"granularity", "seed"} & set(shown)
        assert re.search(r"- granularity-2: .*granularity 2, seed 2\n", section(made.card, "Training"))
        assert re.search(r"- baseline: seed 0\n", section(made.card, "Training"))
        return
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(text)
    words = ["--use_cpu", "true", "--output_dir", str(tmp_path)]
    again = json.loads(json.dumps(parse(str(recipe), words).fingerprint()))
    assert again == settings


def test_time_hardware_and_energy_are_told(dse):
    card = dse.card
    assert "| Time (s) | 4,568 |" in card
    assert "| Hardware | 2 x Quick GPU |" in card
    assert "| Examples | 98,765 |" in card
    assert "Energy was not measured." in card


def test_measured_energy_is_told(copied):
    energy = {"kwh": 0.123456, "co2eq_kg": 0.0456, "country": "Germany", "tool": "codecarbon 3"}
    told = {"energy": energy, "resumed_from": "checkpoint-9"}
    change(copied.run / "training_report.json", lambda report: report.update(told))
    card = " ".join(copied.card.split())
    assert "Energy of dse: 0.123 kWh, 0.0456 kg CO2eq with the electricity of Germany, estimated by code" in card
    assert "dse was resumed from checkpoint-9" in card
    assert "not measured." not in card.split("## Evaluation")[0]


def test_the_licence_is_that_of_the_corpora(copied):
    change(copied.run / "training_settings.json", lambda settings: settings.update(corpus=["sgd/train", "kvret/all"]))
    data = ModelCard(copied.card).data
    assert (data.license, data.license_name) == ("other", "research-only")
    assert "For research only: kvret states no licence" in copied.card
    assert "| kvret | all | none stated | research | https://" in copied.card
    change(copied.run / "training_settings.json", lambda settings: settings.update(corpus="sgd"))
    assert ModelCard(copied.card).data.license == "apache-2.0"
    assert "The corpora are not included here" in copied.card


def test_datasets_of_the_hub_are_told_from_files_of_the_same_form(copied):
    names = ["data/calls.jsonl", "org/talks"]
    change(copied.run / "training_settings.json", lambda settings: settings.update(corpus=names))
    licences = [f"{name}=permissive:MIT" for name in names]
    card = render_card(copied.folder, copied.run, [copied.results], REPO, licences)
    assert ModelCard(card).data.datasets == ["org/talks"]
    assert "| org/talks | — | MIT | permissive | https://huggingface.co/datasets/org/talks |" in card
    assert "calls.jsonl | — | MIT | permissive | not published |" in card


def test_a_corpus_of_ones_own_needs_its_licence(copied):
    change(copied.run / "training_settings.json", lambda settings: settings.update(corpus="/data/cal|ls *1*.jsonl"))
    with pytest.raises(InputError, match=r"field corpus: got 'cal\|ls \*1\*.jsonl', whose licence .* --corpus-licence"):
        _ = copied.card
    licence = "cal|ls *1*.jsonl=research:own <b>terms</b> | all"
    card = render_card(copied.folder, copied.run, [copied.results], REPO, [licence])
    assert r"| cal\|ls \*1\*.jsonl | — | own &lt;b&gt;terms&lt;/b&gt; \| all | research | not published |" in card
    assert ModelCard(card).data.license == "other"
    for wrong in ("calls.jsonl", "calls.jsonl=free:MIT", "calls.jsonl=research:", "sgd=permissive:MIT"):
        with pytest.raises(InputError, match="--corpus-licence"):
            make_record(copied.folder, copied.run, [wrong])


def without(file: str, field: str):
    def spoil(made: Made) -> None:
        change(made.run / file, lambda record: record.pop(field))

    return spoil


def rows_without(name: str):
    def spoil(made: Made) -> None:
        def drop(record):
            record["results"] = [row for row in record["results"] if Path(row["model"]).name != name]

        change(made.results, drop)

    return spoil


def other_weights(made: Made) -> None:
    change(made.results, lambda record: record["run"]["config"].update(weights={"runs/dse": "0123456789abcdef"}))


def other_run(made: Made) -> None:
    change(made.run / "training_settings.json", lambda settings: settings.update(min_words=9))


def other_tensors(made: Made) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(made.run / "model.safetensors")
    weights["encoder.embeddings.word_embeddings.weight"] += 1e-4
    save_file(weights, made.run / "model.safetensors", metadata={"format": "pt"})


MISSING = {
    "steps": (without("training_report.json", "steps"), r"training_report.json: field steps: .*dialemb train"),
    "seconds": (without("training_report.json", "seconds"), r"training_report.json: field seconds: .*dialemb train"),
    "selection": (
        without("training_settings.json", "checkpoint_selection"),
        r"training_settings.json: field checkpoint_selection: .*dialemb train",
    ),
    "report": (lambda made: (made.run / "training_report.json").unlink(), r"training_report.json: .*dialemb train"),
    "model": (rows_without("dse"), r"results.json: results: got no figures of dse, .*dialemb benchmark"),
    "backbone": (rows_without("tiny_bert0"), r"results.json: results: got no figures of tiny_bert0, .*benchmark"),
    "seeds": (
        lambda made: change(made.results, lambda record: record["run"].update(seeds=[])),
        r"results.json: run: field seeds: got none, .*dialemb benchmark",
    ),
    "hardware": (
        lambda made: change(made.results, lambda record: record["run"].pop("hardware")),
        "results.json: run: field hardware is missing",
    ),
    "other weights measured": (other_weights, r"field weights: got 0123456789abcdef for runs/dse, .*dialemb benchmark"),
    "other settings": (other_run, r"field min_words: got \d+, but .*training_settings.json says 9; give the run"),
    "other tensors": (other_tensors, r"got other weights than .* has \(embeddings.word_embeddings.weight\)"),
    "not exported": (lambda made: (made.folder / "modules.json").unlink(), "modules.json.* dialemb export"),
}


@pytest.mark.parametrize("missing", MISSING)
def test_what_a_source_lacks_is_told_with_the_command_that_makes_it(copied, missing, capsys):
    spoil, message = MISSING[missing]
    spoil(copied)
    words = ["card", "--model", copied.folder, "--run", copied.run, "--results", copied.results]
    assert main(list(map(str, words))) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (copied.folder / "README.md").exists()


def test_no_results_no_card(copied, capsys):
    assert main(["card", "--model", str(copied.folder), "--run", str(copied.run)]) == 2
    assert "dialemb benchmark" in capsys.readouterr().err
    with pytest.raises(InputError, match="--results: got no file"):
        render_card(copied.folder, copied.run, [])
    with pytest.raises(InputError, match="--repo-id"):
        render_card(copied.folder, copied.run, [copied.results], "a b/c")


def test_figures_of_the_same_weights_are_found_by_whatever_name(copied):
    named = {"runs/dse": "x/y"}
    change(copied.results, lambda record: [row.update(model=named.get(row["model"], row["model"]))
                                           for row in record["results"]])  # fmt: skip
    with pytest.raises(InputError, match="no figures of"):
        _ = copied.card
    weights = {"x/y": fingerprint(str(copied.run))}
    change(copied.results, lambda record: record["run"]["config"].update(weights=weights))
    assert "81.23 ± 1.99" in copied.card


def test_figures_of_whitened_vectors_are_not_the_models(copied):
    whitened = {"runs": "runs/dse@whitened"}
    change(copied.results, lambda record: [row.update(model=whitened["runs"]) for row in record["results"]
                                           if row["model"] == "runs/dse"])  # fmt: skip
    weights = {"runs/dse@whitened": fingerprint(str(copied.run))}
    change(copied.results, lambda record: record["run"]["config"].update(weights=weights))
    with pytest.raises(InputError, match="no figures of"):
        _ = copied.card


def test_names_of_one_model():
    assert matches("runs/dse", "/home/me/runs/dse")
    assert matches("sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2")
    assert not matches("runs/dse", "other/dse")
    assert not matches("runs/dse@utterances", "runs/dse")
    assert not matches("", "runs/dse")


def test_markup_in_names_is_shown_and_not_obeyed(copied):
    hostile = "we|ird *corpus* <script>`x`[a](b)\n# head"
    change(copied.results, lambda record: [row.update(corpus=hostile) for row in record["results"]])
    card = copied.card
    (head, _, *rows) = [line for line in section(card, "Evaluation").splitlines() if line.startswith("|")]
    assert len(rows) == 3
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) == len(re.findall(r"(?<!\\)\|", head))
        assert r"we\|ird \*corpus\* &lt;script&gt;\`x\`\[a\](b) \# head, test" in row
    assert ModelCard(card).data.eval_results[0].dataset_type == hostile
    assert escaped("_a_b_ c_d") == r"\_a_b\_ c_d"
    assert fenced("a\n````\nb").startswith("`````\n")


def test_the_command_writes_the_card_and_its_record(copied, tmp_path, capsys):
    record = tmp_path / "cards" / "dse.json"
    words = ["card", "--model", copied.folder, "--run", copied.run, "--results", copied.results, "--repo-id", REPO]
    assert main([*map(str, words), "--record", str(record)]) == 0
    readme = copied.folder / "README.md"
    figures = copied.folder / "results" / copied.results.name
    assert capsys.readouterr().out.splitlines() == [f"Wrote {path}" for path in (readme, figures, record)]
    kept = json.loads(record.read_text())
    assert readme.read_text() == copied.card == render_record(kept, [copied.results], REPO)
    assert "org/dse" in render_record(kept, [copied.results])
    shutil.rmtree(figures.parent)
    assert main([*map(str, words), "--output", str(tmp_path / "card.md")]) == 0
    assert (tmp_path / "card.md").read_text() == copied.card
    assert not figures.parent.exists()  # a card that goes elsewhere leaves the folder as it is


def test_the_figures_go_to_the_hub_beside_the_card_and_tell_no_place_on_the_machine(made, tmp_path):
    folder = shutil.copytree(made.folder, tmp_path / "published")
    (folder / "results").mkdir()
    (folder / "results" / "older.json").write_text("{}")
    words = ["card", "--model", folder, "--run", made.run, "--results", made.results, "--repo-id", REPO]
    assert main([str(word) for word in words]) == 0
    (file,) = (folder / "results").iterdir()
    published, measured = read_results(file), read_results(made.results)
    kept = [row for row in measured.results if row.quoted_from is None and row.metric != "seconds"]
    names = {str(made.run): REPO, str(made.reference): Path(str(made.reference)).name}
    assert published.results == tuple(replace(row, model=names[row.model]) for row in kept)
    assert [published.run[name] for name in ("seeds", "versions", "hardware")] == [
        measured.run[name] for name in ("seeds", "versions", "hardware")
    ]
    assert str(tmp_path.parent) not in file.read_text()
    assert str(made.results.parent) not in file.read_text()
    assert check(folder, "model", REPO) == []


def test_results_that_lie_where_they_are_published_are_not_replaced(copied, capsys):
    source = copied.folder / "results" / "mine.json"
    source.parent.mkdir()
    shutil.copy(copied.results, source)
    before = source.read_text()
    words = ["card", "--model", copied.folder, "--run", copied.run, "--results", source]
    assert main([str(word) for word in words]) == 2
    assert "lies where the card's figures are written" in capsys.readouterr().err
    assert source.read_text() == before
    assert not (copied.folder / "README.md").exists()


def test_files_of_one_name_in_two_folders_are_both_published(copied):
    other = copied.results.parent / "more" / copied.results.name
    other.parent.mkdir()
    shutil.copy(copied.results, other)
    words = ["card", "--model", copied.folder, "--run", copied.run, "--results", copied.results, other]
    assert main([str(word) for word in words]) == 0
    assert sorted(path.name for path in (copied.folder / "results").iterdir()) == ["results-2.json", "results.json"]


def test_the_software_is_cited_as_it_asks_for(dse):
    asked = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    *_, entry = blocks(dse.card, "bibtex")
    for text in (asked["title"], asked["authors"][0]["name"], asked["version"], asked["license"]):
        assert f"{{{text}}}" in entry


def test_the_folder_of_all_runs_is_no_ensemble(sample_dialogues, tmp_path):
    run = train_ensemble(sample_dialogues, tmp_path / "runs")
    folder = publish(run, tmp_path / "published")
    with pytest.raises(InputError, match=r"runs: got the folder of all runs.*; give .*runs/multi-granularity$"):
        make_record(folder, run.parent)


def test_every_method_that_is_published_has_its_words():
    methods = list(map(get_method, METHODS))
    assert all(method.title and method.what and cited(method.paper) and method.suite for method in methods)
    assert {method.name for method in methods} - {"deep_attention_matching", "merged"} == {*SETTINGS, ENSEMBLE}


@pytest.mark.parametrize("same", [True, False])
def test_an_own_file_that_was_learnt_from_is_known_by_what_it_holds(copied, tmp_path, same):
    """Results files call it without its folder."""
    file = tmp_path / "train" / "calls.jsonl"
    file.parent.mkdir()
    file.write_text("{}")
    change(copied.run / "training_settings.json", lambda settings: settings.update(corpus=[str(file)]))
    change(copied.results, lambda record: [row.update(corpus="calls.jsonl") for row in record["results"]])
    held = {"corpus": "calls.jsonl", "data_sha256": data_hash(str(file)) if same else "0" * 64}
    change(copied.results, lambda record: record["run"]["config"].update(held))
    card = render_card(copied.folder, copied.run, [copied.results], REPO, [f"{file}=permissive:MIT"])
    lines = [line for line in evaluation_of(card).splitlines() if line.startswith("| calls.jsonl")]
    assert lines
    assert {"†" in line for line in lines} == {same}


def test_what_the_model_learnt_from_is_no_evidence(copied):
    """It is shown with a mark, without a verdict, and the Hub is not told of it."""
    path = copied.run / "training_settings.json"
    if not path.is_file():  # an ensemble's members
        path = copied.run.parent / "granularity-1" / path.name
    change(path, lambda settings: settings.update(corpus=["sgd/test"], exclude=None))
    card = render_card(copied.folder, copied.run, [copied.results], REPO)
    evaluation = evaluation_of(card)
    lines = [line for line in evaluation.splitlines() if line.startswith("| sgd")]
    assert len(lines) == 3
    assert all("†" in line and "better" not in line and "worse" not in line for line in lines)
    assert NOTE in evaluation
    assert "of 0 figures that both have\n0 are better, 0 worse, 0 equal" in evaluation or copied.reference is None
    assert "model-index" not in yaml.safe_load(card.split("---")[1])
