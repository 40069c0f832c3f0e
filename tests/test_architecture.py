"""The rules of the source tree: who may import whom, how large files are, what an import costs."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import networkx
import pytest
from transformers.dynamic_module_utils import get_relative_import_files

import hf_dialemb
import hf_dialemb.integrations
from hf_dialemb.hub.export import write_checkpoint
from hf_dialemb.methods.dial2vec import Dial2VecModel

SOURCE = Path(hf_dialemb.__file__).parent
TREES = {
    file.relative_to(SOURCE): ast.parse(file.read_text(encoding="utf-8"))
    for file in sorted(SOURCE.rglob("*.py"))
}
# From the bottom to the top; a part imports itself and what is below.
RANKS = (
    "errors, ranges hooks dialogue display, hashing, storage metrics modeling, methods, data, "
    "encoders, evaluation, training, hub integrations, apps, papers"
)
RANK = {part: rank for rank, parts in enumerate(RANKS.split(", ")) for part in parts.split()}


def imports(file: Path) -> list[tuple[int, str]]:
    """List the dots and the dotted name of every import of a file, those in functions too."""
    names = []
    for node in ast.walk(TREES[file]):
        if isinstance(node, ast.Import):
            names += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [
                (node.level, f"{node.module or ''}.{alias.name}".strip(".")) for alias in node.names
            ]
    return names


def own_imports(file: Path) -> list[tuple[str, ...]]:
    """List what a file imports of the package, as paths below it."""
    folder, paths = file.parent.parts, []
    for dots, name in imports(file):
        words = tuple(name.split("."))
        if dots:
            paths.append((*folder[: len(folder) - dots + 1], *words))
        elif words[0] == "hf_dialemb":
            paths.append(words[1:])
    return paths


def test_imports_go_downwards_only():
    """The library never imports the applications, and nothing imports the papers."""
    wrong = []
    for file in TREES:
        part = file.with_suffix("").parts[0]
        others = {words[0] if words and words[0] in RANK else "" for words in own_imports(file)}
        allowed = {other for other in RANK if other == part or RANK[other] < RANK.get(part, 0)}
        if part == "__init__":
            allowed = {"methods", "hooks"}
        if part in ("apps", "encoders", "training"):
            allowed.add("")  # the package's own names: a version, or push
        wrong += [f"{file} imports {other or 'hf_dialemb'}" for other in others - allowed]
    assert wrong == []


def test_no_module_imports_itself_by_way_of_others():
    """Imports within functions count; an ``__init__`` that hands on names does not."""
    graph = networkx.DiGraph()
    for file in TREES:
        for words in own_imports(file) if file.name != "__init__.py" else ():
            paths = Path(f"{'/'.join(words)}.py"), Path(f"{'/'.join(words[:-1])}.py")
            graph.add_edges_from((file, path) for path in paths if path in TREES)
    assert graph.number_of_edges() > len(TREES)
    parts = networkx.strongly_connected_components(graph)
    assert [sorted(map(str, part)) for part in parts if len(part) > 1] == []


def test_published_code_and_metrics_import_only_what_goes_along():
    wrong = []
    for file in TREES:
        for dots, name in imports(file):
            first = name.split(".")[0]
            beside = dots == 1 and file.with_name(f"{first}.py") in TREES
            if file.parts[0] == "modeling":
                known = first in {"torch", "transformers"} | sys.stdlib_module_names
                fits = beside if dots else known
            elif file.parts[0] == "metrics" and file.stem not in {"__init__", "space"}:
                copied = beside and first in {"specification", "vectors"}
                fits = copied if dots else first != "hf_dialemb"
            else:
                fits = True
            wrong += [] if fits else [f"{file} imports {name}"]
    assert wrong == []


@pytest.mark.parametrize("name", ["dial2vec", "dual_encoder", "multi_granularity"])
def test_a_published_model_carries_at_most_three_files_of_500_lines(name):
    file = str(SOURCE / "modeling" / f"modeling_{name}.py")
    files = {file, *get_relative_import_files(file)}
    assert len(files) <= 3
    assert sum(len(Path(path).read_text(encoding="utf-8").splitlines()) for path in files) <= 500


def modules_of(requirements: list[str]) -> set[str]:
    """Name the modules that requirements bring."""
    modules = {
        "jinja2": "markupsafe",
        "python-dateutil": "dateutil",
        "pyyaml": "yaml",
        "scikit-learn": "sklearn",
    }
    names = {re.split(r"[^\w-]", line.lower())[0] for line in requirements}
    return {modules.get(name, name.replace("-", "_")) for name in names} | names


def test_modules_import_what_is_installed_and_data_no_torch():
    """Only applications may import what an extra brings while they are imported."""
    text = (SOURCE.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    extras = project["optional-dependencies"]
    # accelerate and transformers bring the last three
    core = modules_of(project["dependencies"]) | {"hf_dialemb", "psutil", "tokenizers", "filelock"}
    core |= sys.stdlib_module_names
    apps = core | modules_of(extras["apps"])
    known = {"apps": apps, "papers": apps | modules_of(extras["papers"])}
    wrong = []
    for file, tree in TREES.items():
        plain = [
            alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names
        ]
        plain += [
            node.module for node in tree.body if isinstance(node, ast.ImportFrom) and not node.level
        ]
        names = {name.split(".")[0] for name in plain} - known.get(file.parts[0], core)
        if file.parts[0] == "data":
            names |= {name.split(".")[0] for _, name in imports(file)} & {"torch", "transformers"}
        wrong += [f"{file} imports {name}" for name in sorted(names)]
    assert wrong == []


def test_files_and_functions_are_short_and_named_for_something():
    places = {"utils", "util", "common", "helpers", "helper", "misc"}
    vague = {"found", "told", "each", "one", "here", "such", "said"}
    wrong = [file for file in TREES if places & set(file.with_suffix("").parts)]
    for file, tree in TREES.items():
        lines = (SOURCE / file).read_text(encoding="utf-8").count("\n")
        wrong += [f"{file}: {lines} lines"] if lines > 400 else []
        for node in ast.walk(tree):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            is_stored = isinstance(getattr(node, "ctx", None), ast.Store)
            names = {getattr(node, field, "") for field in ("arg", "name", "id" * is_stored)}
            wrong += [f"{file}:{node.lineno}: {name}" for name in names & vague]
            if is_function and node.end_lineno - node.lineno >= 60:
                wrong.append(f"{file}: {node.name} is long")
    assert wrong == []


def decides_more(node: ast.AST) -> bool:
    """Whether code assigns several things, loops over nothing for an if, or nests a condition."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
        left = [ast.unparse(name) for part in node.targets for name in getattr(part, "elts", ())]
        return bool(left) and set(left).isdisjoint(map(ast.unparse, ast.walk(node.value)))
    if isinstance(node, ast.For | ast.comprehension):
        return getattr(getattr(node.iter, "orelse", None), "elts", None) == []
    conditions = sum(isinstance(part, ast.IfExp) for part in ast.walk(node))
    return isinstance(node, ast.IfExp) and conditions > 1


def test_a_line_decides_one_thing():
    wrong = [
        f"{file}: {ast.unparse(node)}"
        for file, tree in TREES.items()
        for node in ast.walk(tree)
        if decides_more(node)
    ]
    assert wrong == []


def test_no_name_of_a_file_stands_twice():
    names = Counter(file.name for file in TREES if file.name != "__init__.py")
    assert [name for name, count in names.items() if count > 1] == []


def failure(program: str, *words: str) -> str:
    """Run a program in a fresh process; return its complaints, or nothing."""
    run = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False
    )
    return run.stderr[-3000:] if run.returncode else ""


HEAVY = {"torch", "transformers", "sklearn", "datasets", "matplotlib", "sentence_transformers"}


@pytest.mark.parametrize(
    "program",
    [
        "import hf_dialemb as h; assert dir(h) == sorted(sys.argv[1:])",
        (
            "from contextlib import suppress; import hf_dialemb.apps.cli as c\nwith "
            "suppress(SystemExit): c.main(['--help'])"
        ),
        "import hf_dialemb.data.labels; assert not {'numpy', 'lemminflect'} & set(sys.modules)",
        "import hf_dialemb.evaluation, hf_dialemb.integrations as found; dir(found)",
    ],
    ids=["names", "help", "data", "others"],
)
def test_an_import_loads_no_heavy_library(program):
    loaded = f"import sys\n{program}\nassert not {HEAVY} & set(sys.modules)"
    assert failure(loaded, *dir(hf_dialemb)) == ""


@pytest.mark.parametrize("package", [hf_dialemb, hf_dialemb.integrations])
def test_public_names_are_those_of_the_stub(package):
    stub = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    names = [node.names[0].name for node in stub.body if isinstance(node, ast.ImportFrom)]
    assert dir(package) == sorted(names)


def test_every_public_name_is_there():
    names = [getattr(hf_dialemb, name).__name__ for name in dir(hf_dialemb)]
    assert [name.rpartition(".")[2] for name in names] == dir(hf_dialemb)


@pytest.fixture(scope="module")
def published(tiny_bert, tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("published")
    write_checkpoint(*Dial2VecModel.from_backbone(tiny_bert), folder)
    # a folder of weights alone: the classes must come from the installed package
    for code in folder.glob("*.py"):
        code.unlink()
    return str(folder)


LOADERS = [  # each a library and what holds of it
    (
        "transformers",
        "type(transformers.AutoConfig.from_pretrained(path)).__name__ == 'Dial2VecConfig'",
    ),
    (
        "transformers",
        "type(transformers.AutoModel.from_pretrained(path)).__name__ == 'Dial2VecModel'",
    ),
    ("transformers", "transformers.AutoTokenizer.from_pretrained(path).chat_template"),
    ("transformers", "len(transformers.pipeline('feature-extraction', path)('a room')[0]) == 16"),
    (
        "sentence_transformers",
        "sentence_transformers.SentenceTransformer(path, device='cpu').encode(['a room']).shape == "
        "(1, 16)",
    ),
]
# Each loader is tried in a fork, which has no other. transformers imports its parts on demand: they
# are asked for.
EVERY_LOADER = """
import os, sys
path, order, *loaders = sys.argv[1:]
if order == "before":
    import hf_dialemb
import transformers
from transformers import AutoConfig, AutoModel, AutoTokenizer, pipeline
for library, statement in zip(loaders[::2], loaders[1::2], strict=True):
    child = os.fork()
    if not child:
        globals()[library] = __import__(library)
        import hf_dialemb
        assert eval(statement), statement
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, statement
"""


@pytest.mark.slow
@pytest.mark.parametrize("order", ["before", "after"])
def test_importing_the_package_is_enough_for_every_loader(published, order):
    words = [word for loader in LOADERS for word in loader]
    assert failure(EVERY_LOADER, published, order, *words) == ""
