"""Runs of training as users start them, on dialogues that the package generates, and what they
leave behind."""

from pathlib import Path

import torch
from safetensors.torch import load_file

from hf_dialemb.storage.run_folder import RunFolder
from hf_dialemb.training import training_run
from hf_dialemb.training.arguments import make_settings
from hf_dialemb.training.settings import Settings


def values_in(output_dir: Path, **values: object) -> dict[str, object]:
    """Settings of a run in a folder."""
    usual = {"corpus": "sample", "train_split": "dev", "use_cpu": True, "disable_tqdm": True}
    return {**usual, "output_dir": output_dir, **values}


def settings_in(output_dir: Path, **values: object) -> Settings:
    return make_settings(values_in(output_dir, **values))


def words_of(output_dir: Path, **values: object) -> list[str]:
    """The same settings as a command line."""
    return [
        word
        for name, value in values_in(output_dir, **values).items()
        for word in (f"--{name}", str(value))
    ]


def train(folder: Path, **values: object) -> str:
    """Trains in this process; returns the lines that were reported."""
    lines: list[str] = []
    training_run.run_training(settings_in(folder, **values), lines.append)
    return "\n".join(lines)


def report_of(folder: Path) -> dict:
    return RunFolder(folder).report()


def values_of(folder: Path, name: str) -> list[float]:
    """What the log of a run says of a measure, in its order."""
    return [entry[name] for entry in report_of(folder)["log"] if name in entry]


def weights_of(folder: Path | str) -> dict[str, torch.Tensor]:
    return load_file(Path(folder) / "model.safetensors")


def assert_same(weights: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert weights.keys() == expected.keys()
    assert [name for name in expected if not torch.equal(weights[name], expected[name])] == []
