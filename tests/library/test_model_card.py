"""Model cards: every code block runs, and every figure has a source."""

import json
import re
import shutil
from pathlib import Path

import published_models
import pytest
import yaml
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import model_index_to_eval_results
from made_up_corpora import needs
from published_models import ENSEMBLE, REPO, SETTINGS, Made, blocks, change, make, section, table_of
from safetensors.torch import load_file, save_file

from hf_dialemb.encoders.specs import find_encoder
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation.results.rows import read_results
from hf_dialemb.hub.card.card import render_card
from hf_dialemb.hub.card.card_record import escaped, make_record
from hf_dialemb.hub.checks import check
from hf_dialemb.methods import METHODS, get_method
from hf_dialemb.metrics.space import cited
from hf_dialemb.training.arguments import make_settings


@pytest.fixture(scope="module")
def every_made(tiny_bert, sample_dialogues, tmp_path_factory) -> dict[str, Made]:
    return {
        name: make(name, tiny_bert, sample_dialogues, tmp_path_factory.mktemp(name))
        for name in (*SETTINGS, ENSEMBLE)
    }


@pytest.fixture(params=[*SETTINGS, ENSEMBLE])
def made(request, every_made) -> Made:
    return every_made[request.param]


@pytest.fixture
def copied(every_made, tmp_path) -> Made:
    """Return a copy of DSE's that a test may spoil."""
    dse = every_made["dse"]
    root = shutil.copytree(dse.results.parent, tmp_path / "copied")
    results = published_models.measure(root / "results.json", "runs/dse", dse.reference)
    return Made(root / "published/dse", root / "runs/dse", results, dse.reference)


PROGRAM = """
import json, sys
for method, block in json.load(open(sys.argv[1])):
    print(f"== {method}")
    exec(compile(block, "block", "exec"), {})
assert not [name for name in sys.modules if name.split(".")[0] == "hf_dialemb"]
"""


@pytest.mark.slow
def test_every_python_block_runs_without_the_package(every_made, tmp_path):
    programs = []
    for method, made in every_made.items():
        own = [block.replace(REPO, str(made.folder)) for block in blocks(made.card(), "python")]
        assert len(own) == 2
        programs += [(method, block) for block in own]
    (tmp_path / "blocks.json").write_text(json.dumps(programs))
    output = published_models.output_without_package(PROGRAM, tmp_path, tmp_path / "blocks.json")
    for method, made in every_made.items():
        printed = [part for part in output.split("== ") if part.startswith(f"{method}\n")]
        for shape in re.findall(r"print\(.*\.shape.*# \((.+?),?\)", made.card()):
            assert re.search(rf"[(\[]{shape},?[)\]]", "".join(printed)), (method, shape)


def test_the_front_matter_and_the_table_hold_figures_of_the_results(made):
    data = ModelCard(made.card()).data.to_dict()
    rows = read_results(made.results).results
    own = [row for row in rows if row.model == str(made.run) and row.metric != "seconds"]
    name, results = model_index_to_eval_results(data["model-index"])
    assert name == "some-model"
    fields = ("task_type", "dataset_type", "dataset_split", "metric_type", "metric_value")
    assert [tuple(getattr(result, field) for field in fields) for result in results] == [
        (row.task, row.corpus, row.split, row.metric, row.mean) for row in own
    ]
    assert data["pipeline_tag"] in ("feature-extraction", "sentence-similarity", "text-ranking")
    assert data["language"] == ["en"]
    assert ("widget" in data) == (data["pipeline_tag"] == "sentence-similarity")
    assert yaml.safe_load(made.card().split("---")[1]) == data
    lines = table_of(made.evaluation())
    assert [line.split("|")[3].split()[0] for line in lines] == ["81.23", "-2.346", "38.30"]
    assert not re.search(r"99\.8|17\.5", made.card())  # quoted, a time
    assert len(made.card().split()) <= 900
    if made.reference is not None:
        assert "of 2 figures 1 are better, 1 worse, 0 equal" in made.evaluation()


def test_the_recipe_repeats_the_training_and_names_no_place(made, tmp_path):
    card, record = made.card(), make_record(made.folder, made.run)
    assert str(made.results.parent) not in card
    assert not re.findall(r"\"[/~]", json.dumps(record))
    (text,) = blocks(card, "yaml")
    settings, shown = record["training"][0]["settings"], yaml.safe_load(text)
    assert all(settings[name] == value for name, value in shown.items())
    if len(record["training"]) > 1:
        assert not {"granularity", "seed"} & set(shown)
        return
    (tmp_path / "recipe.yaml").write_text(text)
    again = make_settings({"use_cpu": True, "output_dir": tmp_path}, tmp_path / "recipe.yaml")
    assert json.loads(json.dumps(again.fingerprint())) == settings
    facts = "1,234 steps on 98,765 examples of 4,321 dialogues, 4,568 s on 2 x Quick GPU."
    assert facts in section(card, "Training")


def test_a_model_without_figures_says_so(copied):
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
        ["For research only: kvret states no licence", "): none stated"],
    ),
    "of the Hub": (
        ["data/calls.jsonl", "org/talks"],
        {"data/calls.jsonl": "permissive:MIT", "org/talks": "permissive:MIT"},
        ("apache-2.0", None, ["org/talks"]),
        ["- [org/talks](https://huggingface.co/datasets/org/talks): MIT", "calls.jsonl: MIT"],
    ),
    "of one's own": (
        [f"/data/{OWN}"],
        {OWN: "research:own <b>terms</b> | all"},
        ("other", "research-only", None),
        [r"- cal\|ls \*1\*.jsonl: own &lt;b&gt;terms&lt;/b&gt; \| all"],
    ),
    "unknown": (
        [f"/data/{OWN}"],
        {},
        (None, None, None),
        ["No licence is stated here for cal", ": not stated"],
    ),
}


@needs("kvret")
@pytest.mark.parametrize("corpora", LICENCES)
def test_the_licence_is_that_of_the_corpora(copied, corpora):
    corpus, licences, licence, texts = LICENCES[corpora]
    copied.learnt_from(corpus)
    card = copied.card(licences=licences)
    data = ModelCard(card).data
    assert (data.license, data.license_name, data.datasets) == licence
    assert all(text in card for text in texts)


@pytest.mark.parametrize(
    ("name", "licence"), [("calls.jsonl", "free:MIT"), ("calls.jsonl", "research:")]
)
def test_a_wrong_licence_is_refused(copied, name, licence):
    with pytest.raises(InputError, match="--corpus-licence"):
        make_record(copied.folder, copied.run, {name: licence})


def without_figures(made: Made) -> None:
    def leave_out(record):
        rows = [row for row in record["results"] if Path(row["model"]).name != "dse"]
        record.update(results=rows)

    change(made.results, leave_out)


def other_tensors(made: Made) -> None:
    weights = load_file(made.run / "model.safetensors")
    weights["encoder.embeddings.word_embeddings.weight"] += 1e-4
    save_file(weights, made.run / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda made: (made.run / published_models.REPORT_FILE).unlink(),
            "training_report.json: .*dialemb train",
        ),
        (without_figures, "results.json: got no figures of dse as it is, .*papers benchmark"),
        (
            lambda made: made.measured(weights={"runs/dse": "0123456789abcdef"}),
            "results.json: got no figures of dse as it is",
        ),
        (other_tensors, "got other weights than .* has, expected those of one training"),
        (lambda made: (made.folder / "hf_dialemb_config.json").unlink(), "dialemb export"),
    ],
)
def test_a_missing_source_is_named_with_the_command_that_makes_it(copied, spoil, message, capsys):
    spoil(copied)
    assert copied.command("--results", copied.results) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (copied.folder / "README.md").exists()


def test_figures_of_the_same_weights_count_whatever_their_name(copied):
    copied.rename("model", {"runs/dse": "x/y"})
    copied.measured(weights={"x/y": find_encoder(str(copied.run)).fingerprint})
    assert "81.23 ± 1.99" in copied.card()


def test_markup_in_names_is_shown_and_not_obeyed(copied):
    hostile = "we|ird *corpus* <script>`x`[a](b)\n# head"
    copied.rename("corpus", {"sgd": hostile})
    shown = r"we\|ird \*corpus\* &lt;script&gt;\`x\`\[a\](b) \# head, test"
    rows = [line for line in copied.evaluation().splitlines() if shown in line]
    assert len(rows) == 3
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}
    assert escaped("_a_b_ c_d") == r"\_a_b\_ c_d"


def test_the_command_writes_the_card_its_figures_and_its_record(made, tmp_path, capsys):
    copy = made._replace(folder=shutil.copytree(made.folder, tmp_path / "published"))
    record = tmp_path / "cards" / "dse.json"
    assert copy.command(*["--results", made.results, "--repo-id", REPO, "--record", record]) == 0
    readme, figures = copy.folder / "README.md", copy.folder / "results" / "figures.md"
    entries = copy.folder / ".eval_results" / "hf_dialemb.yaml"
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"Wrote {path}" for path in (readme, figures, entries, record)]
    assert readme.read_text() == copy.card()
    assert render_card(json.loads(record.read_text()), [], REPO) == copy.card(results=())
    own = [row for row in read_results(made.results).results if row.model == str(made.run)]
    assert [
        (entry["dataset"], entry["value"]) for entry in yaml.safe_load(entries.read_text())
    ] == [
        ({"id": row.corpus, "task_id": row.task}, row.mean)
        for row in own
        if row.metric != "seconds"
    ]
    table = figures.read_text()
    assert REPO in table
    assert "81.2 [80.1, 82.2]" in table
    assert str(made.results.parent) not in table
    assert check(copy.folder) == []


def test_every_method_has_its_words_and_the_software_is_cited(every_made):
    methods = list(map(get_method, METHODS))
    assert all(
        method.title and method.what and cited(method.paper) and method.suite for method in methods
    )
    asked = yaml.safe_load((Path(__file__).parents[2] / "CITATION.cff").read_text())
    *_, entry = blocks(every_made["dse"].card(), "bibtex")
    for text in (asked["title"], asked["authors"][0]["name"], asked["version"], asked["license"]):
        assert f"{{{text}}}" in entry


def test_what_the_model_learnt_from_is_no_evidence(copied):
    """It is shown with a mark, without a verdict, and is absent from the front matter."""
    copied.learnt_from(["sgd/test"], exclude=None)
    evaluation = copied.evaluation()
    assert ["†" in line for line in table_of(evaluation)] == [True, True, True]
    assert "† The model learnt from these dialogues" in evaluation
    assert "of 0 figures 0 are better" in evaluation
    assert "model-index" not in yaml.safe_load(copied.card().split("---")[1])
