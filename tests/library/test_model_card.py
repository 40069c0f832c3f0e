"""Model cards: every code block runs, and every figure has a source."""

import json
import re
import shlex
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import published_models
import pytest
import yaml
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import model_index_to_eval_results
from published_models import ENSEMBLE, REPO, SETTINGS, Made, blocks, change, make, section, table_of
from safetensors.torch import load_file, save_file

from hf_dialemb.apps.cli import main
from hf_dialemb.data import write_jsonl
from hf_dialemb.data.corpus_names import data_hash
from hf_dialemb.encoders.specs import find_encoder
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation.results.contamination import NOTE
from hf_dialemb.evaluation.results.rows import read_results
from hf_dialemb.hub.card.card import cited, escaped, fenced, render_record
from hf_dialemb.hub.card.card_record import make_record
from hf_dialemb.hub.checks import check
from hf_dialemb.methods import METHODS, get_method
from hf_dialemb.training.arguments import make_settings


@pytest.fixture(scope="module")
def every_made(tiny_bert, sample_dialogues, tmp_path_factory) -> dict[str, Made]:
    methods = [*SETTINGS, ENSEMBLE]
    return {
        name: make(name, tiny_bert, sample_dialogues, tmp_path_factory.mktemp(name))
        for name in methods
    }


@pytest.fixture(params=[*SETTINGS, ENSEMBLE])
def made(request, every_made) -> Made:
    return every_made[request.param]


@pytest.fixture
def dse(every_made) -> Made:
    return every_made["dse"]


@pytest.fixture
def copied(dse, tmp_path) -> Made:
    """Return a copy that a test may spoil."""
    root = shutil.copytree(dse.results.parent, tmp_path / "copied")
    results = published_models.measure(root / "results.json", "runs/dse", dse.reference)
    return Made(root / "published/dse", root / "runs/dse", results, dse.reference)


# Blocks without the package come first in the same process, while it cannot be imported.
PROGRAM = """
import json, sys
blocks = json.load(open(sys.argv[1]))
def run(programs):
    for method, block in programs:
        print(f"== {method}")
        exec(compile(block, "block", "exec"), {})
run(blocks["without"])
assert not [name for name in sys.modules if name.split(".")[0] == "hf_dialemb"]
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "_Blocked"]
run(blocks["with"])
"""


@pytest.mark.slow
def test_every_python_block_runs(every_made, tmp_path):
    programs = {"without": [], "with": []}
    for method, made in every_made.items():
        every = [block.replace(REPO, str(made.folder)) for block in blocks(made.card(), "python")]
        packaged = ["import hf_dialemb" in block for block in every]
        plain = (made.folder / "hf_dialemb_config.json").exists()
        trusting = [block for block in every if "trust_remote_code=True" in block]
        assert (sum(packaged), len(trusting)) == ((0, 0) if plain else (2, 2))
        for block, needs in zip(every, packaged, strict=True):
            programs["with" if needs else "without"].append((method, block))
    (tmp_path / "blocks.json").write_text(json.dumps(programs))
    output = published_models.output_without_package(PROGRAM, tmp_path, tmp_path / "blocks.json")
    for method, made in every_made.items():
        printed = [part for part in output.split("== ") if part.startswith(f"{method}\n")]
        for shape in re.findall(r"print\(.*\.shape.*# \((.+?),?\)", made.card()):
            assert re.search(rf"[(\[]{shape},?[)\]]", "".join(printed)), (method, shape)


def test_every_command_runs(made, tmp_path, monkeypatch, sample_dialogues):
    monkeypatch.chdir(tmp_path)
    calls = [
        replace(dialogue, id=f"call-{place}") for place, dialogue in enumerate(sample_dialogues[:4])
    ]
    write_jsonl(calls, Path("dialogues.jsonl"))
    Path("responses.txt").write_text("Yes.\nFor how many nights?\nGoodbye.\n")
    commands = [
        line for block in blocks(section(made.card(), "Use"), "bash") for line in block.splitlines()
    ]
    assert commands
    for program, *words in (shlex.split(line.replace(REPO, str(made.folder))) for line in commands):
        assert (program, main(words)) == ("dialemb", 0)


def test_the_front_matter_holds_the_figures_of_the_results(made):
    card = ModelCard(made.card())
    data = card.data.to_dict()
    own = [row for row in read_results(made.results).results if row.model == str(made.run)]
    name, results = model_index_to_eval_results(data["model-index"])
    assert name == "some-model"
    fields = ("task_type", "dataset_type", "dataset_split", "metric_type", "metric_value")
    assert [tuple(getattr(result, field) for field in fields) for result in results] == [
        (row.task, row.corpus, row.split, row.metric, row.mean)
        for row in own
        if row.metric != "seconds"
    ]
    assert data["pipeline_tag"] in ("feature-extraction", "sentence-similarity", "text-ranking")
    assert yaml.safe_load(made.card().split("---")[1]) == data


def test_every_figure_is_in_the_results_and_losses_are_shown(made):
    rows = {
        (row.model, row.metric): row
        for row in read_results(made.results).results
        if not row.quoted_from
    }
    values = [
        value for row in rows.values() for value in (row.mean, row.std, *(row.interval or ()))
    ]
    for (model, metric), row in rows.items():
        if model == str(made.run) and (other := rows.get((str(made.reference), metric))):
            values.append(row.mean - other.mean)
    evaluation = made.evaluation()
    lines = table_of(evaluation)
    printed = re.findall(r"[+-]?\d+\.\d+", "\n".join(lines))
    assert len(printed) >= 4
    forms = (".2f", ".3f", "+.2f", "+.3f")
    assert {*printed} <= {
        f"{value:{form}}" for value in values if value is not None for form in forms
    }
    assert not re.search(r"99\.8|17\.5", made.card())  # quoted, a time
    if made.reference is None:
        assert "no backbone to compare it with" in evaluation
        assert "Difference" not in evaluation
    else:
        ends = [line.split("|")[-3:-1] for line in lines]
        assert ends == [[" -2.27 ", " worse "], [" -0.846 ", " better "], [" — ", "  "]]
        assert "of 2 figures that both have\n1 are better, 1 worse, 0 equal" in evaluation


def test_suites_of_other_methods_are_counted(copied):
    """Only if the method's own suite is among the files."""
    other = Path(shutil.copy(copied.results, copied.results.with_name("other.json")))
    copied.measured(suite="dse")
    change(other, lambda record: record["run"]["config"].update(suite="dial2vec"))
    alone, both = copied.evaluation(), copied.evaluation(other, copied.results)
    rows = len(table_of(alone))
    assert rows == len(table_of(both)) > 0
    better, worse, equal = re.findall(r"(\d+)\s+(?:are )?(?:better|worse|equal)", alone)
    assert f"| dial2vec | {rows} | {better} | {worse} | {equal} |" in both
    assert "| Tasks of |" not in alone
    assert copied.evaluation(other).count("| sgd") == rows


def test_the_recipe_repeats_the_training_and_names_no_place(made, tmp_path):
    card, record = made.card(), make_record(made.folder, made.run)
    assert str(made.results.parent) not in card
    assert not re.findall(r"(?:^|[\s\"'`(=|])/\w", card)
    assert not re.findall(r"\"[/~]", json.dumps(record))
    (text,) = blocks(card, "yaml")
    settings, shown = record["training"][0]["settings"], yaml.safe_load(text)
    assert all(settings[name] == value for name, value in shown.items())
    if len(record["training"]) > 1:
        assert not {"granularity", "seed"} & set(shown)
        assert re.search(r"- granularity-2: .*granularity 2, seed 2\n", section(card, "Training"))
    else:
        (tmp_path / "recipe.yaml").write_text(text)
        again = make_settings({"use_cpu": True, "output_dir": tmp_path}, tmp_path / "recipe.yaml")
        assert json.loads(json.dumps(again.fingerprint())) == settings


def test_time_hardware_and_energy_are_shown_and_missing_figures_told(copied):
    for fact in (
        "Time (s) | 4,568 |",
        "Hardware | 2 x Quick GPU |",
        "Examples | 98,765 |",
        "Energy was not measured.",
    ):
        assert fact in copied.card()
    energy = {"kwh": 0.123456, "co2eq_kg": 0.0456, "country": "Germany", "tool": "codecarbon 3"}
    more = {"energy": energy, "resumed_from": "checkpoint-9"}
    change(copied.run / published_models.REPORT_FILE, lambda report: report.update(more))
    card = " ".join(copied.card().split())
    assert (
        "Energy of dse: 0.123 kWh, 0.0456 kg CO2eq with the electricity of Germany, estimated by "
        "code" in card
    )
    assert "dse was resumed from checkpoint-9" in card
    assert (
        "On 1,200 dialogues of the corpus that dse did not learn from, a speaker's side finds the "
        "other one in 61.0% "
        "(before training: 50.0%), and the MAP of domains is 72.5% (before: 70.0%)." in card
    )
    assert copied.command() == 0
    card = (copied.folder / "README.md").read_text()
    assert "This model was not measured: there are no figures." in card
    assert not ModelCard(card).data.eval_results


OWN = "cal|ls *1*.jsonl"
LICENCES = {
    "none stated": (
        ["sgd/train", "kvret/all"],
        {},
        ("other", "research-only", None),
        [
            "For research only: kvret states no licence",
            "| kvret | all | none stated | research | https://",
        ],
    ),
    "of the Hub": (
        ["data/calls.jsonl", "org/talks"],
        {"data/calls.jsonl": "permissive:MIT", "org/talks": "permissive:MIT"},
        ("apache-2.0", None, ["org/talks"]),
        [
            "The corpora are not included here",
            "| org/talks | — | MIT | permissive | https://huggingface.co/datasets/org/talks |",
            "calls.jsonl | — | MIT | permissive | not published |",
        ],
    ),
    "of one's own": (
        f"/data/{OWN}",
        {OWN: "research:own <b>terms</b> | all"},
        ("other", "research-only", None),
        [
            r"| cal\|ls \*1\*.jsonl | — | own &lt;b&gt;terms&lt;/b&gt; \| all | research | not "
            r"published |"
        ],
    ),
}


@pytest.mark.parametrize("corpora", LICENCES)
def test_the_licence_is_that_of_the_corpora(copied, corpora):
    corpus, licences, licence, texts = LICENCES[corpora]
    copied.learnt_from(corpus)
    card = copied.card(licences=licences)
    data = ModelCard(card).data
    assert (data.license, data.license_name, data.datasets) == licence
    assert all(text in card for text in texts)


def test_a_corpus_of_unknown_licence_is_marked_and_a_wrong_one_refused(copied):
    copied.learnt_from(f"/data/{OWN}")
    card = copied.card()
    assert ModelCard(card).data.license is None
    assert "| not stated | not stated | not published |" in card
    assert "No licence is stated here for cal" in card
    copied.learnt_from(f"/data/{OWN}")
    for name, licence in (
        ("calls.jsonl", "free:MIT"),
        ("calls.jsonl", "research:"),
        ("sgd", "permissive:MIT"),
    ):
        with pytest.raises(InputError, match="--corpus-licence"):
            make_record(copied.folder, copied.run, {name: licence})
    assert copied.command("--corpus-licence", "calls.jsonl") == 2


def figures_without(name: str):
    return lambda made: change(
        made.results,
        lambda record: record.update(
            results=[row for row in record["results"] if Path(row["model"]).name != name]
        ),
    )


def other_tensors(made: Made) -> None:
    weights = load_file(made.run / "model.safetensors")
    weights["encoder.embeddings.word_embeddings.weight"] += 1e-4
    save_file(weights, made.run / "model.safetensors", metadata={"format": "pt"})


MISSING = [
    (
        lambda made: (made.run / published_models.REPORT_FILE).unlink(),
        r"training_report.json: "
        r".*dialemb train",
    ),
    (
        figures_without("dse"),
        r"results.json: results: got no figures of dse, .*dialemb papers "
        r"benchmark",
    ),
    (
        figures_without("tiny_bert0"),
        r"results.json: results: got no figures of tiny_bert0, "
        r".*benchmark",
    ),
    (
        lambda made: made.measured(weights={"runs/dse": "0123456789abcdef"}),
        r"field weights: got 0123456789abcdef for runs/dse, .*dialemb papers benchmark",
    ),
    (other_tensors, r"got other weights than .* has \(embeddings.word_embeddings.weight\)"),
    (lambda made: (made.folder / "modules.json").unlink(), "modules.json.* dialemb export"),
]


@pytest.mark.parametrize(("spoil", "message"), MISSING)
def test_a_missing_source_is_named_with_the_command_that_makes_it(copied, spoil, message, capsys):
    spoil(copied)
    assert copied.command("--results", copied.results) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (copied.folder / "README.md").exists()


@pytest.mark.parametrize("name", ["x/y", "runs/dse@whitened"])
def test_figures_of_the_same_weights_count_whatever_their_name(copied, name):
    copied.rename("model", {"runs/dse": name})
    copied.measured(weights={name: find_encoder(str(copied.run)).fingerprint})
    with nullcontext() if name == "x/y" else pytest.raises(InputError, match="no figures of"):
        assert "81.23 ± 1.99" in copied.card()


def test_markup_in_names_is_shown_and_not_obeyed(copied):
    hostile = "we|ird *corpus* <script>`x`[a](b)\n# head"
    copied.rename("corpus", {"sgd": hostile})
    (head, _, *rows) = [line for line in copied.evaluation().splitlines() if line.startswith("|")]
    assert len(rows) == 3
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) == len(re.findall(r"(?<!\\)\|", head))
        assert r"we\|ird \*corpus\* &lt;script&gt;\`x\`\[a\](b) \# head, test" in row
    assert escaped("_a_b_ c_d") == r"\_a_b\_ c_d"
    assert fenced("a\n````\nb").startswith("`````\n")


def test_the_command_writes_the_card_and_its_record(copied, tmp_path, capsys):
    record, readme = tmp_path / "cards" / "dse.json", copied.folder / "README.md"
    figures = copied.folder / "results" / copied.results.name
    words = ["--results", copied.results, "--repo-id", REPO]
    assert copied.command(*words, "--record", record) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"Wrote {path}" for path in (readme, figures, record)
    ]
    assert readme.read_text() == copied.card()
    assert readme.read_text() == render_record(
        json.loads(record.read_text()), [copied.results], REPO
    )
    shutil.rmtree(figures.parent)
    assert copied.command(*words, "--output", tmp_path / "card.md") == 0
    assert (tmp_path / "card.md").read_text() == copied.card()
    assert not figures.parent.exists()  # a card that goes elsewhere leaves the folder as it is


def test_published_figures_lie_beside_the_card_and_name_no_place(made, tmp_path):
    copy = made._replace(folder=shutil.copytree(made.folder, tmp_path / "published"))
    (copy.folder / "results").mkdir()
    (copy.folder / "results" / "older.json").write_text("{}")
    assert copy.command("--results", made.results, "--repo-id", REPO) == 0
    (file,) = (copy.folder / "results").iterdir()
    measured = read_results(made.results).results
    kept = [row for row in measured if row.quoted_from is None and row.metric != "seconds"]
    names = {str(made.run): REPO, str(made.reference): Path(str(made.reference)).name}
    assert read_results(file).results == tuple(replace(row, model=names[row.model]) for row in kept)
    assert str(tmp_path.parent) not in file.read_text()
    assert str(made.results.parent) not in file.read_text()
    assert check(copy.folder, "model", REPO) == []


def test_figures_of_one_name_are_both_published_and_none_is_replaced(copied):
    (copied.results.parent / "more").mkdir()
    assert (
        copied.command(
            "--results", copied.results, shutil.copy(copied.results, copied.results.parent / "more")
        )
        == 0
    )
    assert sorted(path.name for path in (copied.folder / "results").iterdir()) == [
        "results-2.json",
        "results.json",
    ]
    source = Path(shutil.copy(copied.results, copied.folder / "results" / "mine.json"))
    assert copied.command("--results", source) == 2
    assert source.read_text() == copied.results.read_text()


def test_every_method_has_its_words_and_the_software_is_cited(dse):
    methods = list(map(get_method, METHODS))
    assert all(
        method.title and method.what and cited(method.paper) and method.suite for method in methods
    )
    asked = yaml.safe_load((Path(__file__).parents[2] / "CITATION.cff").read_text())
    *_, entry = blocks(dse.card(), "bibtex")
    for text in (asked["title"], asked["authors"][0]["name"], asked["version"], asked["license"]):
        assert f"{{{text}}}" in entry


@pytest.mark.parametrize("same", [True, False])
def test_an_own_file_that_was_learnt_from_is_known_by_what_it_holds(copied, tmp_path, same):
    """Results files name it without its folder."""
    file = tmp_path / "calls.jsonl"
    file.write_text("{}")
    copied.learnt_from([str(file)])
    copied.rename("corpus", {"sgd": "calls.jsonl"})
    copied.measured(corpus="calls.jsonl", data_sha256=data_hash(str(file)) if same else "0" * 64)
    lines = table_of(copied.evaluation(licences={str(file): "permissive:MIT"}), "calls.jsonl")
    assert {"†" in line for line in lines} == {same}


def test_what_the_model_learnt_from_is_no_evidence(copied):
    """It is shown with a mark, without a verdict, and is absent from the front matter."""
    copied.learnt_from(["sgd/test"], exclude=None)
    evaluation = copied.evaluation()
    lines = table_of(evaluation)
    assert len(lines) == 3
    assert all("†" in line and "better" not in line and "worse" not in line for line in lines)
    assert NOTE in evaluation
    assert "of 0 figures that both have\n0 are better, 0 worse, 0 equal" in evaluation
    assert "model-index" not in yaml.safe_load(copied.card().split("---")[1])
