"""Methods of one's own, from a file or an installed package, in every command."""

import json
import shutil
from pathlib import Path

import pytest
from transformers import TrainingArguments

import hf_dialemb
from hf_dialemb import DialogueTrainer, InputError, load_encoder
from hf_dialemb.data import write_jsonl
from hf_dialemb.hooks import Registry
from hf_dialemb.hub.export import export
from hf_dialemb.methods import METHODS, get_method, origin

OWN_DIALOGUES = """
from dataclasses import replace
from huggingface_hub.dataclasses import strict
from hf_dialemb.methods.dial2vec import METHOD as BASE, Dial2VecConfig, Dial2VecModel

@strict
class OwnConfig(Dial2VecConfig):
    model_type = "own-dialogues"

class OwnModel(Dial2VecModel):
    config_class = OwnConfig

METHOD = replace(BASE, name="own_dialogues", config_class=OwnConfig, model_class=OwnModel)
"""
EXAMPLE = Path(__file__).parents[3] / "examples" / "own_method.py"


@pytest.fixture
def file(tmp_path):
    """A file of a method, which is forgotten afterwards."""
    yield Path(shutil.copy(EXAMPLE, tmp_path / "wordsim.py"))
    METHODS.pop("simcse", None)


@pytest.mark.slow
@pytest.mark.habit("--method FILE.py: a method of one's own", "works in every command")
def test_a_method_in_a_file_works_in_every_command(
    file, tiny_bert, sample_dialogues, tmp_path, printed
):
    run, calls, results, folder = (
        tmp_path / name for name in ("run", "calls.jsonl", "results.json", "published")
    )
    model = ("--method", file, "--model", run)
    write_jsonl(sample_dialogues, calls)
    lines = {}
    for words in (
        (
            "train",
            "sample",
            "--method",
            file,
            "--backbone",
            tiny_bert,
            "--output",
            run,
            "--max-steps",
            2,
            "--max-dialogues",
            16,
            "--exclude",
            "none",
        ),
        ("embed", calls, *model, "--output", tmp_path / "vectors.parquet"),
        (
            "evaluate",
            "--corpus",
            "sample/dev",
            *model,
            tiny_bert,
            "--seeds",
            2,
            "--output",
            results,
        ),
        ("search", calls, *model, "--query", "a cheap hotel"),
        ("export", *model, "--output", folder),
        ("publish", run, "--method", file, "--repo-id", "org/own", "--private", "--dry-run"),
        ("model", "card", "--method", file, "--model", folder, "--run", run, "--results", results),
    ):
        METHODS.pop("simcse", None)
        lines[words[0]] = printed(*words)
    settings = json.loads((run / "training_settings.json").read_text())
    assert (settings["method"], settings["method_from"]) == ("simcse", str(file))
    assert all(lines.values())
    assert lines["export"].count("package absent") >= 4
    assert (
        json.loads((folder / "1_Pooling" / "config.json").read_text())["pooling_mode_cls_token"]
        is True
    )
    card = (folder / "README.md").read_text()
    assert "SimCSE" in card
    assert get_method("simcse").what in " ".join(card.split())
    assert str(tmp_path) not in card


@pytest.mark.slow
@pytest.mark.habit(
    "a dialogue encoder of one's own method, exported", "loads with trust_remote_code"
)
def test_an_own_method_of_dialogues_is_exported(tiny_bert, sample_dialogues, tmp_path):
    (tmp_path / "own.py").write_text(OWN_DIALOGUES)
    settings = {"backbone": tiny_bert, "max_steps": 1, "per_device_train_batch_size": 4}
    run = hf_dialemb.train(
        str(tmp_path / "own.py"), sample_dialogues[:8], output_dir=tmp_path / "run", **settings
    )
    lines = []
    folder = export(run, tmp_path / "published", report=lines.append)
    METHODS.pop("own_dialogues")
    assert all("trust_remote_code" in line for line in lines)
    assert json.loads((folder / "config.json").read_text())["model_type"] == "own-dialogues"


@pytest.mark.habit("train(FILE.py) and register(FILE.py) in Python", "work")
def test_a_file_is_registered_in_python(file, tiny_bert, sample_dialogues, tmp_path):
    settings = {"backbone": tiny_bert, "max_steps": 1, "per_device_train_batch_size": 4}
    run = hf_dialemb.train(str(file), sample_dialogues[:8], output_dir=tmp_path / "run", **settings)
    vectors = run.encoder().encode_utterances(["hello"])
    METHODS.pop("simcse")
    with pytest.raises(
        InputError, match=f"method simcse, which is not registered; name its file .--method {file}"
    ):
        load_encoder(tmp_path / "run")
    hf_dialemb.register(file)
    assert load_encoder(tmp_path / "run").encode_utterances(["hello"]) == pytest.approx(
        vectors, abs=1e-6
    )


@pytest.mark.habit("Trainer over a method of one's own, by hand", "its file is recorded")
def test_a_trainer_by_hand_records_the_file_of_the_method(
    file, tiny_bert, sample_dialogues, tmp_path
):
    hf_dialemb.register(file)
    model, tokenizer = get_method("simcse").model_class.from_backbone(tiny_bert)
    args = TrainingArguments(
        str(tmp_path / "run"), max_steps=1, per_device_train_batch_size=4, report_to="none"
    )
    trainer = DialogueTrainer(
        model, args, train_dataset=sample_dialogues[:8], processing_class=tokenizer
    )
    trainer.train()
    trainer.save_model()
    assert json.loads((tmp_path / "run" / "training_settings.json").read_text())[
        "method_from"
    ] == str(file)


@pytest.mark.habit("a method of an installed package, by entry point", "works as its name")
def test_an_installed_method_goes_by_its_name(monkeypatch, tmp_path):
    shutil.copy(EXAMPLE, tmp_path / "own_package.py")
    (tmp_path / "own-1.dist-info").mkdir()
    (tmp_path / "own-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: own\nVersion: 1\n"
    )
    (tmp_path / "own-1.dist-info" / "entry_points.txt").write_text(
        "[hf_dialemb.methods]\nsimcse = own_package\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(hf_dialemb.methods, "METHODS", Registry("methods", {}))
    method = get_method("simcse")
    assert (method.title, origin(method)) == ("SimCSE", str(tmp_path / "own_package.py"))
