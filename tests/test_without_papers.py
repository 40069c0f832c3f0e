"""The package without `papers/`.

Everything imports, the commands are there, and the README's Python block runs.
"""

import shutil
from pathlib import Path

import pytest
from afresh import printed_afresh

ROOT = Path(__file__).parents[1]
COPY = """
import importlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root.parent))
import hf_dialemb
assert hf_dialemb.__path__ == [str(root)]
"""
IMPORTS = f"""{COPY}
for file in root.rglob("*.py"):
    name = ".".join(file.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
    if not name.endswith("__main__"):
        importlib.import_module(name)
from hf_dialemb.data import CORPORA
from hf_dialemb.evaluation.tasks.task import TASKS
from hf_dialemb.methods import METHODS
for registry in (CORPORA, TASKS, METHODS):
    assert set(registry) == set(registry.own)
from hf_dialemb.apps.cli import main
main(["--help"])
"""
BLOCK = f"""{COPY}
sys.path.append(sys.argv[2])
from interface_block import run_block
run_block(pathlib.Path.cwd(), sys.argv[3])
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(
        ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("papers", "__pycache__")
    )
    shutil.copytree(ROOT / "training_scripts", folder / "training_scripts")
    return folder


@pytest.mark.slow
def test_modules_import_registries_hold_their_own_and_no_command_is_of_papers(copy):
    text = printed_afresh(IMPORTS, copy / "src" / "hf_dialemb")
    assert "train" in text
    assert "papers" not in text


@pytest.mark.slow
def test_the_block_of_the_readme_runs(copy, tiny_bert, tmp_path):
    printed_afresh(BLOCK, copy / "src" / "hf_dialemb", ROOT / "tests", tiny_bert, folder=tmp_path)
