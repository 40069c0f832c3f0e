"""Every metric folder as a module of `evaluate` and as a Space, where the package itself is not installed."""

import ast
import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from metric_vectors import clouds

import hf_dialemb
from hf_dialemb.metrics.alignment_uniformity.functional import alignment_uniformity
from hf_dialemb.metrics.anisotropy.functional import anisotropy
from hf_dialemb.metrics.dialogue_retrieval.functional import retrieval_scores
from hf_dialemb.metrics.graph_size_difference.functional import graph_size_difference
from hf_dialemb.metrics.ndcg.functional import ndcg, official_ndcg
from hf_dialemb.metrics.next_utterance.functional import next_utterance_scores
from hf_dialemb.metrics.out_of_scope.functional import detection_scores
from hf_dialemb.metrics.prototype_classification.functional import prototype_classification
from hf_dialemb.metrics.purity.functional import cluster_purity
from hf_dialemb.metrics.ranking.functional import ranking_scores
from hf_dialemb.metrics.response_selection.functional import selection_scores
from hf_dialemb.metrics.semantic_relatedness.functional import pair_relatedness, query_relatedness

FOLDERS = Path(hf_dialemb.__file__).parent / "metrics"
NAMES = sorted(folder.name for folder in FOLDERS.iterdir() if (folder / "functional.py").is_file())
LABELLED = ["alignment_uniformity", "anisotropy", "dialogue_retrieval", "purity", "semantic_relatedness"]
FILES = {"__init__.py", "functional.py", "README.md", "app.py", "requirements.txt", "tests.py"}
SECTIONS = ["How to use", "Inputs", "Output", "Limits and edge cases", "Citation"]
DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def inputs_of_all():
    random = np.random.default_rng(0)
    vectors, labels = clouds(random, count=12, width=4, labels=2)
    right = np.eye(12, dtype=bool)
    labelled = {"predictions": vectors, "references": labels}
    supports = {"supports": vectors[:4] + 0.5, "support_labels": labels[:4]}
    return {
        **{name: labelled for name in LABELLED},
        "semantic_relatedness": {**labelled, "seeds": [3, 4]},
        "purity": {**labelled, "seeds": [3, 4], "n_init": 1},
        "alignment_uniformity": {**labelled, "include_self": True},
        "graph_size_difference": {"predictions": np.arange(12), "references": np.arange(12) % 5 + 1},
        "ndcg": {"predictions": random.normal(size=(12, 7)), "references": random.random((12, 7)) < 0.6, "k": 3},
        "next_utterance": {"predictions": random.normal(size=(12, 12)).round(), "references": right},
        "out_of_scope": {
            "predictions": vectors,
            "references": np.where(np.arange(12) < 8, labels, -1),
            **supports,
            "calibration": vectors[::-1] + 0.1,
            "out_of_scope": -1,
        },
        "prototype_classification": {**labelled, **supports, "unit_prototypes": True},
        "ranking": {
            "predictions": vectors,
            "candidates": random.normal(size=(12, 5, 4)),
            "references": random.permuted(np.arange(60).reshape(12, 5) % 5 < 2, axis=1),
        },
        "response_selection": {"predictions": vectors, "references": right, "candidates": vectors[::-1]},
    }


def in_words(arguments):
    """The same with labels that are strings."""
    words = {
        key: np.array([f"label {label}" for label in arguments[key]])
        for key in ("references", "support_labels")
        if key in arguments
    }
    return {**arguments, **words, **({"out_of_scope": "label -1"} if "out_of_scope" in arguments else {})}


INPUTS = inputs_of_all()
STRINGS = {name: in_words(INPUTS[name]) for name in [*LABELLED, "out_of_scope", "prototype_classification"]}


TASKS = {"inputs": INPUTS, "strings": STRINGS, "combined": (LABELLED, INPUTS["anisotropy"])}


def spread(values, name):
    return {name: np.mean(values), f"{name}_std": np.std(values, ddof=1)}


def of_purity(predictions, references, **settings):
    scores = cluster_purity(predictions, references, **settings)
    figures = [spread(scores[name], name) for name in ("purity", "nmi", "ari")]
    return {"clusters": scores["clusters"], **figures[0], **figures[1], **figures[2]}


def of_relatedness(predictions, references, seeds=range(10)):
    pairs = pair_relatedness(predictions, references, seeds)
    return {
        **query_relatedness(predictions, references),
        **spread(pairs["spearman"], "pair_spearman"),
        "pair_undefined": pairs["undefined"],
    }


def of_ndcg(predictions, references, k):
    return {"ndcg": ndcg(predictions, references, k), "official_ndcg": official_ndcg(predictions, references, k)}


def of_ranking(predictions, candidates, references):
    scores = [ranking_scores(*each) for each in zip(predictions, candidates, references, strict=True)]
    return {
        "map": np.mean([each["average_precision"] for each in scores]),
        "mrr": np.mean([each["reciprocal_rank"] for each in scores]),
        "queries": len(scores),
    }


EXPECTED = {
    "alignment_uniformity": lambda predictions, references, **rest: alignment_uniformity(
        predictions, references, **rest
    ),
    "anisotropy": lambda predictions, references: anisotropy(predictions, references),
    "dialogue_retrieval": lambda predictions, references: retrieval_scores(predictions, references),
    "graph_size_difference": lambda predictions, references: graph_size_difference(predictions, references),
    "ndcg": of_ndcg,
    "next_utterance": lambda predictions, references: next_utterance_scores(predictions, references),
    "out_of_scope": lambda predictions, references, **rest: detection_scores(predictions, references, **rest),
    "prototype_classification": lambda predictions, references, supports, support_labels, **rest: (
        prototype_classification(supports, support_labels, predictions, references, **rest)
    ),
    "purity": of_purity,
    "ranking": of_ranking,
    "response_selection": lambda predictions, references, candidates: selection_scores(
        predictions, candidates, references
    ),
    "semantic_relatedness": of_relatedness,
}


def expected(name, arguments):
    return pytest.approx(EXPECTED[name](**arguments), abs=1e-12)


def listing():
    return sorted(str(path) for path in FOLDERS.rglob("*") if "__pycache__" not in path.parts)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What a fresh process without the package found (see tests/metric_module_process.py)."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "inputs").write_bytes(pickle.dumps(TASKS))
    before = listing()
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    run = subprocess.run(
        [sys.executable, "-I", Path(__file__).with_name("metric_module_process.py"), FOLDERS, folder / "inputs",
         folder / "report.json"],
        env={**kept, "HF_HOME": str(folder / "home"), "HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1"},
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    assert listing() == before, "something was left behind"
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


@pytest.fixture
def facts(report, name):
    return report["facts"][name]


def test_there_are_inputs_for_every_metric():
    assert sorted(INPUTS) == sorted(EXPECTED) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_module_is_named_like_its_folder_and_copied_whole(facts, name):
    assert facts["name"] == name
    assert facts["module"].startswith("evaluate_modules.")
    assert all(facts["texts"])


@pytest.mark.parametrize("name", NAMES)
def test_compute_says_what_the_function_says_however_inputs_come(facts, name):
    assert len(facts["computed"]) == 10
    for way, scores in facts["computed"].items():
        assert scores == expected(name, INPUTS[name]), way


@pytest.mark.parametrize("name", STRINGS)
def test_labels_may_be_strings(report, name):
    assert report["strings"][name] == expected(name, STRINGS[name])


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_finite_numbers_and_documented(facts, name):
    named = facts["texts"][2].split("Returns:")[1]
    for scores in [facts["computed"]["at_once dict"], *(computed for computed, _ in facts["cases"])]:
        assert np.isfinite(list(scores.values())).all()
        for key in scores:
            assert re.search(rf"\b{re.sub('r[0-9]+@[0-9]', 'rN@k', key)}\b", named), key


@pytest.mark.parametrize("name", NAMES)
def test_cases_hold(facts, name):
    assert len(facts["cases"]) > 1
    for computed, result in facts["cases"]:
        assert computed == pytest.approx(result, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_what_makes_no_sense_is_a_value_error(facts, name):
    for what, answer in facts["refusals"].items():
        assert answer.startswith("ValueError: "), what


def test_metrics_of_the_same_inputs_combine(report):
    merged, prefixed = report["combined"]
    scores = {name: EXPECTED[name](**INPUTS["anisotropy"]) for name in LABELLED}
    assert prefixed == pytest.approx({f"{name}_{key}": x for name in LABELLED for key, x in scores[name].items()})
    assert merged["map"] == pytest.approx(scores["dialogue_retrieval"]["map"])
    assert merged["semantic_relatedness_queries"] == scores["semantic_relatedness"]["queries"]
    assert len(merged) == len(prefixed)


def test_two_processes_add_their_halves_and_the_first_computes(report):
    found = report["two processes"]
    assert found["other"] == 0
    assert len(found["scores"]) > 1
    for name, scores in found["scores"].items():
        assert scores == expected(name, INPUTS[name])


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_has_what_a_space_needs(name):
    folder = FOLDERS / name
    assert {path.name for path in folder.iterdir()} - {"__pycache__"} == FILES | {f"{name}.py"}
    front, body = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)[1:]
    card = yaml.safe_load(front)
    assert (card["sdk"], card["sdk_version"], card["license"]) == ("gradio", "6.31.0", "apache-2.0")
    assert card["pinned"] is False
    assert card["tags"] == ["evaluate", "metric"]
    assert card["emoji"]
    assert (folder / card["app_file"]).is_file()
    assert f"# {card['title']}\n" in body
    assert re.findall(r"^## (.*)", body, re.MULTILINE) == SECTIONS


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_says_what_happens(facts, name):
    examples, complaints = facts["documented"]
    assert examples > 2
    assert complaints == ""


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_names_every_argument_figure_and_default(facts, name):
    text = (FOLDERS / name / "README.md").read_text(encoding="utf-8")
    usage, citation = facts["texts"][2], facts["texts"][1]
    assert citation in text
    for line in re.findall(r"^    (\S.*?): ", usage, re.MULTILINE):
        for word in line.split(", "):
            assert f"`{word}`" in text
    tree = ast.parse((FOLDERS / name / f"{name}.py").read_text(encoding="utf-8"))
    compute = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "_compute")
    words, values = [each.arg for each in compute.args.args], compute.args.defaults
    for word, value in zip(words[len(words) - len(values) :], values, strict=True):
        assert f"`{word}` (default `{ast.unparse(value)}`)".replace("'", '"') in text
    assert all(f"    {word}: " in usage for word in words[1:])


@pytest.mark.parametrize("name", NAMES)
def test_the_page_computes_its_example_and_says_what_is_wrong(facts, name):
    page = facts["page"]
    assert page["scores"] == pytest.approx(facts["cases"][0][1])
    assert page["article"].lstrip().startswith(f"# {page['title']}\n")
    assert page["refused"]


@pytest.mark.parametrize("name", NAMES)
def test_requirements_are_what_is_imported(name):
    imported = set()
    for file in (FOLDERS / name).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(node.module.split(".")[0])
    imported -= sys.stdlib_module_names | {"gradio"}  # the Space brings that along
    lines = (FOLDERS / name / "requirements.txt").read_text(encoding="utf-8").split()
    assert [re.split("[<>=]", line)[0] for line in lines] == sorted(DISTRIBUTIONS.get(each, each) for each in imported)
    assert all(re.fullmatch(r"[a-z-]+>=[\d.]+,<[\d.]+", line) for line in lines)
