"""Load a published folder in fresh processes, as its users do, and compare its vectors with the model's."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

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


def messages(*turns: tuple[str, str]) -> Messages:
    """Return chat messages of roles and contents."""
    return [{"role": role, "content": content} for role, content in turns]


def run_afresh(way: str, program: str, folder: Path, probes: Any) -> dict[str, Vectors]:  # noqa: ANN401 - of JSON
    """Run a program in a fresh process, and return the arrays that it writes, by name."""
    with tempfile.TemporaryDirectory() as temporary:
        inputs, outputs = Path(temporary) / "probes.json", Path(temporary) / "vectors.npz"
        inputs.write_text(json.dumps(probes), encoding="utf-8")
        # transformers caches the code of a model; a fresh cache cannot hold an older export of the same name.
        ours = {"HF_MODULES_CACHE": temporary, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        words = [sys.executable, "-c", program, *map(str, (folder.resolve(), inputs, outputs))]
        run = subprocess.run(
            words, env={**os.environ, **ours}, capture_output=True, text=True, check=False, cwd=temporary
        )
        if run.returncode != 0:
            last = (run.stderr.strip().splitlines() or [f"exit code {run.returncode}"])[-1]
            raise InputError(f"The export does not load ({way}): {last}")
        with np.load(outputs) as arrays:
            return dict(arrays)


def compare(way: str, vectors: Vectors, expected: Vectors, tolerance: float) -> str:
    """Compare vectors ``(N, D)`` of a published form with the model's, and return a line with the largest difference.

    Raises:
        InputError: The difference exceeds the tolerance, which is relative to the largest expected value.
    """
    difference = float("inf")
    if vectors.shape == expected.shape:
        difference = float(np.abs(vectors - expected).max() / np.abs(expected).max())
    if not difference <= tolerance:
        raise InputError(f"The export gives other embeddings ({way}): they differ by {difference:.1e}")
    return f"Verified: {way}: largest difference {difference:.1e}"
