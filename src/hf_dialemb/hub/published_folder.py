"""The folder of a published model.

The names of its files, how they are read and loaded afresh, and where it goes.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..storage.run_folder import read_object

Messages = list[dict[str, str]]
Vectors = NDArray[np.float32]

WITHOUT_PACKAGE = """
import sys
class _Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "hf_dialemb":
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
sys.meta_path.insert(0, _Blocked())
"""
"""The start of a program that runs as if this package were not installed."""

ARGUMENTS = """
import json, sys
import numpy as np
import torch
from transformers import AutoModel, AutoModelForTextEncoding, AutoTokenizer
path, probes, output_path = sys.argv[1], json.load(open(sys.argv[2])), sys.argv[3]
"""


def check_repo_id(repo_id: str) -> None:
    """Raise InputError unless a repository of the Hub may have this name."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repo_id):
        raise InputError(
            f"--repo-id: got {repo_id!r}, expected an organisation or user and a name, as org/name"
        )


@dataclass(frozen=True)
class PublishedFolder:
    """The folder of a model that other libraries load; most of its names are theirs."""

    path: Path

    CARD = "README.md"
    FIGURES = "results/figures.md"
    CONFIG = "config.json"
    MODULES = "modules.json"
    SETTINGS = "hf_dialemb_config.json"
    """The method of a plain encoder and its settings, which no config of a backbone has."""

    WEIGHTS = "model.safetensors"
    TOKENIZER_CONFIG = "tokenizer_config.json"
    POOLING = "1_Pooling"
    STATIC = "0_StaticEmbedding"
    EVALUATIONS = ".eval_results/hf_dialemb.yaml"

    def record(self, name: str) -> dict[str, Any]:
        """Return a JSON object; an empty one if the file is absent or holds something else."""
        try:
            return read_object(self.path / name, "")
        except InputError:
            return {}

    def count_weights(self) -> int:
        """Return the number of weights."""
        return sum(prod(part.get_shape()) for _, part in self._tensors())

    def is_made_of(self, run: Path) -> bool:
        """Return whether the weights, as far as a run has them, are those of the run."""
        trained = dict(PublishedFolder(run)._tensors())
        is_shared = False
        for name, part in self._tensors():
            other = trained.get(name, trained.get(f"encoder.{name}"))
            if other is not None:
                is_shared = True
                weights = part[:]
                if not weights.equal(other[:].to(weights.dtype)):
                    return False
        return is_shared

    def _tensors(self) -> Iterator[tuple[str, Any]]:
        from safetensors import safe_open

        files = sorted(self.path.glob("model*.safetensors"))
        if not files:
            raise InputError(
                f"{self.path}: got no model.safetensors, expected a model; write it with dialemb "
                "export"
            )
        for file in files:
            with safe_open(str(file), framework="pt") as tensors:
                for name in tensors.keys():  # noqa: SIM118
                    yield name, tensors.get_slice(name)


def messages(*turns: tuple[str, str]) -> Messages:
    """Return chat messages of roles and contents."""
    return [{"role": role, "content": content} for role, content in turns]


def run_afresh(way: str, program: str, folder: Path, probes: Any) -> dict[str, Vectors]:
    """Run a program in a fresh process, and return the arrays that it writes, by name."""
    with tempfile.TemporaryDirectory() as temporary:
        inputs = Path(temporary) / "probes.json"
        outputs = Path(temporary) / "vectors.npz"
        inputs.write_text(json.dumps(probes), encoding="utf-8")
        # transformers caches the code of a model; a fresh cache cannot hold an older export of the
        # same name.
        ours = {
            "HF_MODULES_CACHE": temporary,
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }
        words = [sys.executable, "-c", program, *map(str, (folder.resolve(), inputs, outputs))]
        run = subprocess.run(
            words,
            env={**os.environ, **ours},
            capture_output=True,
            text=True,
            check=False,
            cwd=temporary,
        )
        if run.returncode != 0:
            last = (run.stderr.strip().splitlines() or [f"exit code {run.returncode}"])[-1]
            raise InputError(f"The export does not load ({way}): {last}")
        with np.load(outputs) as arrays:
            return dict(arrays)


def compare(way: str, vectors: Vectors, expected: Vectors, tolerance: float) -> str:
    """Compare vectors ``(N, D)`` of a published form with the model's.

    Returns a line with the largest difference. An InputError says that it exceeds the tolerance,
    which is relative to the largest expected value.
    """
    difference = float("inf")
    if vectors.shape == expected.shape:
        difference = float(np.abs(vectors - expected).max() / np.abs(expected).max())
    if not difference <= tolerance:
        raise InputError(
            f"The export gives other embeddings ({way}): they differ by {difference:.1e}"
        )
    return f"Verified: {way}: largest difference {difference:.1e}"
