"""A method of another package, in one file, does what those of the package do: see ``simcse.py``."""

import json

import pytest
from simcse import METHOD
from test_model_common import (  # noqa: F401 - the common tests of all models, of this one
    all_saved,
    test_a_config_comes_back_with_all_fields,
    test_a_tuple_holds_what_the_output_holds,
    test_any_precision_loads_and_runs,
    test_every_trainable_parameter_learns,
    test_neither_company_nor_order_nor_padding_nor_repetition_changes_a_result,
    test_what_no_file_holds_is_drawn_as_in_a_new_model,
    test_what_was_saved_loads_with_every_key_and_the_same_results_from_shards_too,
)

import hf_dialemb
from hf_dialemb.cli import main
from hf_dialemb.models import METHODS
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.method import Method


@pytest.fixture(scope="module", autouse=True)
def known():
    hf_dialemb.register(METHOD)
    yield
    del METHODS["simcse"]


@pytest.fixture
def learner():
    return "simcse"


@pytest.fixture
def saved(all_saved, learner):  # noqa: F811
    return all_saved[learner]


@pytest.fixture(scope="module")
def run(tiny_bert, sample_dialogues, tmp_path_factory):
    """A training that nobody disturbed."""
    folder = tmp_path_factory.mktemp("simcse") / "run"
    settings = {"backbone": tiny_bert, "output_dir": folder, "save_steps": 2, "per_device_train_batch_size": 8}
    hf_dialemb.train("simcse", sample_dialogues[:20], max_steps=4, **settings)
    return folder, settings


def test_it_trains_and_a_resumed_run_ends_in_the_same_weights(run, sample_dialogues, tmp_path):
    (folder, settings), again = run, tmp_path / "again"
    other = {**settings, "output_dir": again}
    hf_dialemb.train("simcse", sample_dialogues[:20], max_steps=4, **other)
    expected = (folder / "model.safetensors").read_bytes()
    assert (again / "model.safetensors").read_bytes() == expected
    (again / "training_report.json").unlink()
    (again / "model.safetensors").unlink()
    (again / "checkpoint-4" / "complete").unlink()
    hf_dialemb.train("simcse", sample_dialogues[:20], max_steps=4, **other)
    assert (again / "model.safetensors").read_bytes() == expected


def test_it_is_evaluated_exported_verified_four_ways_and_gets_card_and_graph(run, tiny_bert, tmp_path, capsys):
    folder, exported = run[0], tmp_path / "simcse"
    results = tmp_path / "results.json"
    words = ["--corpus", "sample", "--split", "dev", "--seeds", "2", "--output", str(results)]
    assert main(["evaluate", "--model", str(folder), tiny_bert, *words]) == 0
    assert main(["export", "--model", str(folder), "--output", str(exported), "--onnx"]) == 0
    told = capsys.readouterr().out
    assert sum("package absent" in line for line in told.splitlines()) >= 4
    assert (exported / "onnx" / "model.onnx").is_file()
    assert json.loads((exported / "1_Pooling" / "config.json").read_text())["pooling_mode_cls_token"] is True
    assert main(["card", "--model", str(exported), "--run", str(folder), "--results", str(results)]) == 0
    card = (exported / "README.md").read_text()
    assert "SimCSE" in card
    assert METHOD.what in " ".join(card.split())


def test_another_method_of_its_name_is_refused():
    other = Method("simcse", METHOD.config_class, METHOD.model_class, METHOD.examples, METHOD.collate)
    with pytest.raises(InputError, match="another method has this name"):
        hf_dialemb.register(other)
