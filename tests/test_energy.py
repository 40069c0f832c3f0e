"""What a run keeps of its machine, and of its energy where one asks for it."""

import json
from types import SimpleNamespace

import pytest

from hf_dialemb.models.errors import InputError
from hf_dialemb.runs.hardware import describe_hardware
from hf_dialemb.training import energy
from hf_dialemb.training.arguments import parse
from hf_dialemb.training.energy import COUNTRY, EnergyCallback, requested_energy
from hf_dialemb.training.run import train

ARGUMENTS = (
    "--method dual_encoder --hidden_size 8 --embedding_size 8 --corpus sample --train_split dev --max_dialogues 20 "
    "--max_steps 1 --use_cpu True --exclude none --disable_tqdm True --output_dir"
)


def trained(folder) -> dict:
    train(parse(None, [*ARGUMENTS.split(), str(folder)]))
    return json.loads((folder / "training_report.json").read_text())


def test_a_run_tells_its_machine_and_measures_no_energy_unasked(tmp_path, monkeypatch):
    monkeypatch.delenv(COUNTRY, raising=False)
    report = trained(tmp_path)
    assert report["hardware"] == describe_hardware(gpu=False)
    assert report["hardware"].endswith("cores")
    assert report["energy"] is report["resumed_from"] is None


@pytest.mark.slow
def test_a_run_that_is_asked_to_measures_its_energy(tmp_path, monkeypatch):
    pytest.importorskip("codecarbon")
    monkeypatch.setenv(COUNTRY, "DEU")
    found = trained(tmp_path)["energy"]
    assert found["kwh"] > 0
    assert 0 < found["co2eq_kg"] < found["kwh"]  # no mix of electricity emits a kilogram per kWh
    assert found["country"] == "Germany"
    assert found["tool"].startswith("codecarbon ")


def test_only_the_main_process_measures_and_a_wrong_country_or_a_missing_package_stops_before_the_work(monkeypatch):
    callback, other = EnergyCallback("DEU"), SimpleNamespace(is_world_process_zero=False)
    callback.on_train_begin(None, other, None)
    callback.on_train_end(None, other, None)
    assert callback.record is None
    monkeypatch.setenv(COUNTRY, "")
    assert requested_energy() is None
    monkeypatch.setenv(COUNTRY, "DEU")
    monkeypatch.setattr(energy, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r'codecarbon is missing; pip install "hf-dialemb\[energy\]"'):
        requested_energy()
    monkeypatch.undo()
    pytest.importorskip("codecarbon")
    for wrong in ("XXX", "Germany", "de"):
        monkeypatch.setenv(COUNTRY, wrong)
        with pytest.raises(InputError, match=f"{COUNTRY}: got '{wrong}', expected a country's three letters"):
            requested_energy()
