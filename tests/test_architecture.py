"""The rules of the source tree: who may import whom, how large things are, and what an import costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import networkx
import pytest

import hf_dialemb
from hf_dialemb.hub.export import write_checkpoint
from hf_dialemb.models.dial2vec import Dial2VecModel

SOURCE = Path(hf_dialemb.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
RANKS = {
    "cli": 8,
    "apps": 7,
    "hub": 6,
    "integrations": 6,
    "evaluation": 5,
    "training": 5,
    "flow": 4,
    "encoders": 3,
    "corpora": 2,
    "runs": 1,
    "metrics": 1,
    "models": 0,
}
MODEL_LIBRARIES = {"torch", "transformers", "tokenizers", "huggingface_hub", "numpy", "tqdm", "safetensors"}


def name_of(file: Path) -> str:
    return str(file.relative_to(SOURCE))


def part_of(file: Path) -> str:
    """The folder right below the package, or the name of a module that lies there itself."""
    return file.relative_to(SOURCE).with_suffix("").parts[0]


def imports(file: Path) -> list[tuple[int, str]]:
    """Every import of a file, those within functions too: its dots, and the dotted name that it names."""
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found += [(node.level, name) for name in names]
    return found


def own_imports(file: Path) -> list[str]:
    """The parts of the package that a file imports; ``""`` stands for the package's own top level."""
    folder, found = file.relative_to(SOURCE).parent.parts, []
    for dots, name in imports(file):
        words = tuple(name.split("."))
        if dots:
            words = (*folder[: len(folder) - dots + 1], *words)
        elif words[0] == "hf_dialemb":
            words = words[1:]
        else:
            continue
        found.append(words[0] if words and words[0] in RANKS else "")
    return found


def inside(folder: str) -> list[Path]:
    return sorted((SOURCE / folder).rglob("*.py"))


def test_the_reader_of_imports_sees_all_kinds(tmp_path):
    file = tmp_path / "file.py"
    file.write_text("import a.b\nfrom ..c import d\nfrom . import e\ndef f():\n    from hf_dialemb.g import h\n")
    assert sorted(imports(file)) == [(0, "a.b"), (0, "hf_dialemb.g"), (1, "e"), (2, "c")]


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_imports_go_downwards_only(file):
    part = part_of(file)
    if part == "__init__":
        assert set(own_imports(file)) == {"models"}
        return
    assert part in RANKS, "a new part of the package needs a rank"
    for other in own_imports(file):
        if other == "":
            assert part == "cli", "only the command line reads the package's own names"
        else:
            assert other == part or RANKS[other] < RANKS[part], f"{name_of(file)} imports {other}"


def test_no_module_imports_itself_by_way_of_others():
    """Imports within functions count; an ``__init__`` that hands on names does not."""
    graph = networkx.DiGraph()
    for file in FILES:
        folder = file.relative_to(SOURCE).parent.parts
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level and file.name != "__init__.py":
                base = (*folder[: len(folder) - node.level + 1], *(node.module or "").split("."))
                for path in (SOURCE.joinpath(*base, alias.name) for alias in node.names):
                    target = next((each for each in (path, path.parent) if each.with_suffix(".py").is_file()), None)
                    if target is not None:
                        graph.add_edge(file.with_suffix(""), target)
    assert [sorted(map(str, part)) for part in networkx.strongly_connected_components(graph) if len(part) > 1] == []


def test_the_top_level_imports_nothing_but_models_when_it_is_imported():
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    run = [node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.level]
    assert run == ["models"]


def test_models_is_flat_and_imports_only_its_libraries_and_siblings():
    assert [path.name for path in (SOURCE / "models").iterdir() if path.is_dir() and path.name != "__pycache__"] == []
    for file in inside("models"):
        for dots, name in imports(file):
            first = name.split(".")[0]
            assert dots <= 1, f"{name_of(file)} looks above its folder: {name}"
            if dots == 1:
                assert (SOURCE / "models" / f"{name}.py").is_file(), f"{name_of(file)}: no sibling '{name}'"
            else:
                assert first in MODEL_LIBRARIES | sys.stdlib_module_names, f"{name_of(file)} imports {name}"


def test_what_a_space_of_a_metric_copies_imports_nothing_of_ours_but_what_it_copies_too():
    flat = {"building", "ranks", "vectors"}
    for file in inside("metrics"):
        if file.name == "functional.py" or file.stem in flat:
            for dots, name in imports(file):
                assert not dots or (dots == 2 and name in flat - {"building"}), f"{name_of(file)} imports {name}"
                assert name.split(".")[0] != "hf_dialemb", f"{name_of(file)} imports {name}"


def test_corpora_never_import_torch():
    for file in inside("corpora"):
        assert not {name.split(".")[0] for _, name in imports(file)} & {"torch", "transformers"}, name_of(file)


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_files_and_functions_are_short(file):
    text = file.read_text(encoding="utf-8")
    assert text.count("\n") <= 400
    lengths = {
        node.name: node.end_lineno - node.lineno + 1
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: length for name, length in lengths.items() if length > 60} == {}


def test_no_file_is_named_for_nothing():
    words = {part for file in FILES for part in file.relative_to(SOURCE).with_suffix("").parts}
    assert not words & {"utils", "util", "common", "helpers", "helper", "misc"}


@pytest.mark.parametrize("name", sorted(hf_dialemb.__all__))
def test_every_public_name_is_there(name):
    assert getattr(hf_dialemb, name).__name__ == name
    assert name in dir(hf_dialemb)


def test_an_unknown_public_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="No hf_dialemb attribute Dial3VecModel"):
        hf_dialemb.Dial3VecModel  # noqa: B018 - the look-up is the test


def failure(program: str, *words: str) -> str:
    """Runs a program in a fresh process; returns what it complained of, or nothing."""
    run = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    return run.stderr[-3000:] if run.returncode else ""


HELP = """
import hf_dialemb.cli
try:
    hf_dialemb.cli.main(["--help"])
except SystemExit as stop:
    assert stop.code == 0
"""


@pytest.mark.parametrize(
    "program", ["import hf_dialemb", HELP, "import hf_dialemb.corpora"], ids=["package", "help", "corpora"]
)
def test_an_import_does_not_load_torch_or_transformers(program):
    check = "\nimport sys\nassert not {'torch', 'transformers', 'sklearn', 'datasets'} & set(sys.modules)"
    assert failure(program + check) == ""


@pytest.fixture(scope="module")
def published(tiny_bert, tmp_path_factory) -> str:
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert)
    folder = tmp_path_factory.mktemp("published")
    write_checkpoint(model, tokenizer, folder)
    for code in folder.glob("*.py"):  # a folder of weights alone: the classes must come from the installed package
        code.unlink()
    return str(folder)


LOADERS = {
    "AutoConfig": ("transformers", "type(transformers.AutoConfig.from_pretrained(path)).__name__ == 'Dial2VecConfig'"),
    "AutoModel": ("transformers", "type(transformers.AutoModel.from_pretrained(path)).__name__ == 'Dial2VecModel'"),
    "AutoTokenizer": ("transformers", "transformers.AutoTokenizer.from_pretrained(path).chat_template"),
    "pipeline": ("transformers", "len(transformers.pipeline('feature-extraction', path)('a room')[0]) == 16"),
    "SentenceTransformer": (
        "sentence_transformers",
        "sentence_transformers.SentenceTransformer(path, device='cpu').encode(['a room']).shape == (1, 16)",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("order", ["before", "after"])
def test_importing_the_package_is_enough_for_every_loader(published, order, loader):
    library, statement = LOADERS[loader]
    # transformers imports its parts on demand, so "after" asks for the loaders first.
    parts = f"import {library}\nfrom transformers import AutoConfig, AutoModel, AutoTokenizer, pipeline"
    lines = ["import hf_dialemb", parts] if order == "before" else [parts, "import hf_dialemb"]
    program = "\n".join(["import sys", *lines, "path = sys.argv[1]", f"assert {statement}"])
    assert failure(program, published) == ""
