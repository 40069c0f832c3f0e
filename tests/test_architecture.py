"""The rules of the source tree.

Who may import whom, how large things are, and what an import costs.
"""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import networkx
import pytest
from transformers.dynamic_module_utils import get_relative_import_files

import hf_dialemb
from hf_dialemb.hub.export import write_checkpoint
from hf_dialemb.methods.dial2vec import Dial2VecModel

SOURCE = Path(hf_dialemb.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
# From the bottom to the top; each imports itself and what is below.
RANKS = (
    "errors, ranges hooks, dialogue, hashing, runs metrics, drawing, checkpoints, modeling, "
    "methods, corpora, "
    "encoders, flow, topics, evaluation, training, retrieval, hub integrations, cli, papers"
)
RANK = {part: rank for rank, parts in enumerate(RANKS.split(", ")) for part in parts.split()}


def name_of(file: Path) -> str:
    return str(file.relative_to(SOURCE))


def imports(file: Path) -> list[tuple[int, str]]:
    """Every import of a file, those within functions too.

    Its dots, and the dotted name that it names.
    """
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [
                (node.level, f"{node.module or ''}.{alias.name}".strip(".")) for alias in node.names
            ]
    return found


def own_imports(file: Path) -> list[tuple[str, ...]]:
    """What a file imports of the package, as paths below it."""
    folder, found = file.relative_to(SOURCE).parent.parts, []
    for dots, name in imports(file):
        words = tuple(name.split("."))
        if dots:
            found.append((*folder[: len(folder) - dots + 1], *words))
        elif words[0] == "hf_dialemb":
            found.append(words[1:])
    return found


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_imports_go_downwards_only(file):
    part = file.relative_to(SOURCE).with_suffix("").parts[0]
    others = {words[0] if words and words[0] in RANK else "" for words in own_imports(file)}
    if part == "__init__":
        assert others == {"methods", "hooks"}
    else:
        allowed = {other for other in RANK if other == part or RANK[other] < RANK[part]}
        # The command line reads the package's own names; an encoder and a trainer hand on to push.
        assert others <= allowed | ({""} if part in ("cli", "encoders", "training") else set())


def test_no_module_imports_itself_by_way_of_others():
    """Imports within functions count; an ``__init__`` that hands on names does not."""
    graph = networkx.DiGraph()
    for file in FILES:
        for words in own_imports(file) if file.name != "__init__.py" else ():
            paths = SOURCE.joinpath(*words), SOURCE.joinpath(*words[:-1])
            graph.add_edges_from(
                (file.with_suffix(""), path) for path in paths if path.with_suffix(".py").is_file()
            )
    assert graph.number_of_edges() > len(FILES)
    assert [
        sorted(map(str, part))
        for part in networkx.strongly_connected_components(graph)
        if len(part) > 1
    ] == []


def test_published_code_and_metrics_import_only_what_goes_along():
    for file in (SOURCE / "modeling").rglob("*.py"):
        assert file.parent == SOURCE / "modeling"
        for dots, name in imports(file):
            first = name.split(".")[0]
            if dots:
                assert (dots, file.with_name(f"{first}.py").is_file()) == (1, True), (
                    f"{name_of(file)} imports {name}"
                )
            else:
                assert first in {"torch", "transformers"} | sys.stdlib_module_names, (
                    f"{name_of(file)} imports {name}"
                )
    copied = {"specification", "vectors"}
    for file in (SOURCE / "metrics").rglob("*.py"):
        if file.stem not in {"__init__", "space"}:
            for dots, name in imports(file):
                first = name.split(".")[0]
                assert first != "hf_dialemb", f"{name_of(file)} imports {name}"
                assert not dots or (dots == 1 and first in copied), (
                    f"{name_of(file)} imports {name}"
                )


@pytest.mark.parametrize("name", ["dial2vec", "dual_encoder", "multi_granularity"])
def test_a_published_model_carries_at_most_three_files_of_500_lines(name):
    file = str(SOURCE / "modeling" / f"modeling_{name}.py")
    files = {file, *get_relative_import_files(file)}
    assert len(files) <= 3
    assert sum(len(Path(path).read_text(encoding="utf-8").splitlines()) for path in files) <= 500


def test_modules_import_what_is_installed_and_corpora_no_torch():
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    modules = {"pyyaml": "yaml", "scikit-learn": "sklearn"}
    names = {re.split(r"[^\w-]", line.lower())[0] for line in project["dependencies"]}
    known = (
        {modules.get(name, name.replace("-", "_")) for name in names}
        | sys.stdlib_module_names
        | {"hf_dialemb"}
    )
    # jinja2, accelerate and transformers bring them
    known |= {"markupsafe", "psutil", "tokenizers"}
    for file in FILES:
        body = ast.parse(file.read_text(encoding="utf-8")).body
        plain = [
            alias.name for node in body if isinstance(node, ast.Import) for alias in node.names
        ]
        plain += [
            node.module for node in body if isinstance(node, ast.ImportFrom) and not node.level
        ]
        assert {name.split(".")[0] for name in plain} <= known, name_of(file)
    for file in (SOURCE / "corpora").rglob("*.py"):
        assert not {name.split(".")[0] for _, name in imports(file)} & {"torch", "transformers"}, (
            name_of(file)
        )


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_files_and_functions_are_short_and_named_for_something(file):
    text = file.read_text(encoding="utf-8")
    assert text.count("\n") <= 400
    functions = [
        each
        for each in ast.walk(ast.parse(text))
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert [each.name for each in functions if each.end_lineno - each.lineno >= 60] == []
    parts = file.relative_to(SOURCE).with_suffix("").parts
    assert not {"utils", "util", "common", "helpers", "helper", "misc"} & set(parts)


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_names_say_what_they_hold(file):
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
    assert names & {"found", "told", "each", "one", "here", "such", "said"} == set()


def failure(program: str, *words: str) -> str:
    """Runs a program in a fresh process; returns what it complained of, or nothing."""
    run = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False
    )
    return run.stderr[-3000:] if run.returncode else ""


NAMES = (
    "import hf_dialemb as h; assert sorted(h.__all__) == sorted(sys.argv[1:]) and "
    "set(h.__all__) <= set(dir(h))"
)
HELP = (
    "from contextlib import suppress; import hf_dialemb.apps.cli as c\nwith "
    "suppress(SystemExit): c.main(['--help'])"
)
CORPORA = "import hf_dialemb.data.labels; assert not {'numpy', 'lemminflect'} & set(sys.modules)"
OTHERS = "import hf_dialemb.evaluation, hf_dialemb.integrations as found; dir(found)"
HEAVY = {
    "torch",
    "transformers",
    "sklearn",
    "datasets",
    "matplotlib",
    "sentence_transformers",
    "mteb",
}


@pytest.mark.parametrize(
    "program", [NAMES, HELP, CORPORA, OTHERS], ids=["names", "help", "corpora", "others"]
)
def test_an_import_loads_no_heavy_library(program):
    assert (
        failure(
            f"import sys\n{program}\nassert not {HEAVY} & set(sys.modules)", *hf_dialemb.__all__
        )
        == ""
    )


@pytest.mark.parametrize("name", sorted(hf_dialemb.__all__))
def test_every_public_name_is_there(name):
    assert getattr(hf_dialemb, name).__name__ == name


@pytest.fixture(scope="module")
def published(tiny_bert, tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("published")
    write_checkpoint(*Dial2VecModel.from_backbone(tiny_bert), folder)
    for code in folder.glob(
        "*.py"
    ):  # a folder of weights alone: the classes must come from the installed package
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
    assert (
        failure(EVERY_LOADER, published, order, *(word for loader in LOADERS for word in loader))
        == ""
    )
