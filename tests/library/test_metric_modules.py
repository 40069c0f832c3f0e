"""Every metric as a module of `evaluate`, loaded from its Space, with this package and without."""

import inspect
import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import evaluate
import numpy as np
import pytest
import torch
from given_vectors import clouds

from hf_dialemb.metrics.space import NAMES, cited, get_metric, write_space

METRICS = {name: get_metric(name) for name in NAMES}
LABELLED = ["alignment_uniformity", "anisotropy", "dialogue_retrieval", "purity"]
random = np.random.default_rng(0)
vectors, labels = clouds(random, count=12, width=4, labels=2)
right = np.eye(12, dtype=bool)
labelled = {"predictions": vectors, "references": labels}
supports = {"supports": vectors[:4] + 0.5, "support_labels": labels[:4]}
INPUTS = {
    **dict.fromkeys(LABELLED, labelled),
    "purity": {**labelled, "seeds": [3, 4]},
    "ndcg": {
        "predictions": random.normal(size=(12, 7)),
        "references": random.random((12, 7)) < 0.6,
        "k": 3,
    },
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
    "response_selection": {
        "predictions": vectors,
        "references": right,
        "candidates": vectors[::-1].copy(),
    },
}
STRINGS = {
    name: dict(INPUTS[name]) for name in [*LABELLED, "out_of_scope", "prototype_classification"]
}
"""The same with labels that are strings."""

for arguments in STRINGS.values():
    for key in {"references", "support_labels"} & set(arguments):
        arguments[key] = np.array([f"label {label}" for label in arguments[key]])
STRINGS["out_of_scope"]["out_of_scope"] = "label -1"


def expected(name, arguments):
    columns = METRICS[name].columns
    renamed = {key: columns[key].parameter for key in columns if columns[key].parameter}
    given = {renamed.get(key, key): value for key, value in arguments.items()}
    if name == "ranking":
        given = {key: list(value) for key, value in given.items()}
    return pytest.approx(METRICS[name].function(**given), abs=1e-12)


@pytest.fixture(scope="module")
def spaces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spaces")
    for name in NAMES:
        write_space(name, folder / name)
    return folder


@pytest.fixture(scope="module")
def load(spaces, tmp_path_factory):
    """Loads a metric by the path of its Space.

    `evaluate` has folders of its own for what it writes.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate.config, "HF_MODULES_CACHE", str(tmp_path_factory.mktemp("modules")))
        patch.setattr(evaluate.config, "HF_METRICS_CACHE", str(tmp_path_factory.mktemp("columns")))
        others = [place for place in sys.path if not Path(place, "evaluate_modules").is_dir()]
        patch.setattr(sys, "path", others)
        for module in [name for name in sys.modules if name.startswith("evaluate_modules")]:
            patch.delitem(sys.modules, module)  # of another folder
        yield lambda name, **options: evaluate.load(str(spaces / name), **options)


def parted(name, arguments):
    """Returns columns, one item per example, and the other arguments."""
    columns = [key for key in arguments if key in METRICS[name].columns]
    rest = {key: value for key, value in arguments.items() if key not in columns}
    return {key: arguments[key] for key in columns}, rest


def converted(arguments, convert):
    numeric = {
        key: value
        for key, value in arguments.items()
        if getattr(value, "dtype", np.dtype("O")).kind in "fib"
    }
    return {**arguments, **{key: convert(value) for key, value in numeric.items()}}


@pytest.mark.parametrize("name", NAMES)
def test_compute_says_what_the_function_says_however_inputs_come(load, name):
    wanted, (columns, rest) = expected(name, INPUTS[name]), parted(name, INPUTS[name])
    assert pickle.loads(pickle.dumps(type(load(name)))) is type(load(name))
    for convert in (np.array, np.ndarray.tolist, torch.from_numpy):
        assert load(name).compute(**converted(INPUTS[name], convert)) == wanted
    assert load(name, keep_in_memory=True).compute(**INPUTS[name]) == wanted
    batches, examples = load(name), load(name, experiment_id="examples")
    for part in (slice(None, 3), slice(3, None)):
        batches.add_batch(**{key: column[part] for key, column in columns.items()})
    for items in zip(*converted(columns, torch.from_numpy).values(), strict=True):
        names = [key if key == "candidates" else key.removesuffix("s") for key in columns]
        examples.add(**dict(zip(names, items, strict=True)))
    assert batches.compute(**rest) == examples.compute(**rest) == wanted
    if name in STRINGS:
        assert load(name).compute(**STRINGS[name]) == expected(name, STRINGS[name])


@pytest.fixture(scope="module")
def report(spaces, tmp_path_factory):
    """What a fresh process without the package found."""
    folder = tmp_path_factory.mktemp("process")
    before = sorted(spaces.rglob("*"))
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    offline = {"HF_HOME": str(folder / "home"), "HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1"}
    script = Path(__file__).with_name("metric_module_process.py")
    command = [sys.executable, "-I", script, spaces, folder / "report.json"]
    run = subprocess.run(
        command, env=kept | offline, cwd=folder, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert sorted(spaces.rglob("*")) == before, "something was left behind"
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_space_is_all_that_it_takes(report, name):
    facts, metric = report[name], METRICS[name]
    assert facts["name"] == name
    assert facts["module"].startswith("evaluate_modules.")
    citation = cited(metric.paper)
    (url,) = re.findall("url = {(.*)}", citation)
    assert facts["texts"] == [inspect.getdoc(metric.function), citation, metric.usage, url]
    ((computed, result),) = facts["cases"]
    assert computed == pytest.approx(metric.result, abs=1e-12)
    assert result == metric.result
    examples, complaints = facts["documented"]
    assert (examples > 2, complaints) == (True, "")
