"""The documents: what they name exists, and every code block of README and tutorials runs."""

import argparse
import re
import shlex
import shutil
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from weight import ROOT, files

import hf_dialemb

PAGES = files("*.md", ":!tests", ":!docs/results")
CODE = re.compile(r"^```(\w*)\n(.*?)^```$|`([^`\n]+)`", re.M | re.S)
BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>.+?) -->\n+)?```(?P<kind>\w*)\n(?P<code>.*?)^```$", re.M | re.S
)
# Where a page would train or embed for minutes: by page, what it says and what is run.
SHORTER = {
    "README.md": {'load_dialogues("star_small")': 'load_dialogues("star_small")[::9]'},
    "docs/tutorials/analyst.md": {'split="test"):': 'split="test")[:48]:'},
    "docs/tutorials/engineer.md": {
        'train, recipe="own_minilm", ': 'train[:48], recipe="own_minilm", '
    },
    "docs/tutorials/researcher.md": {
        "--seeds 3": "--seeds 2 --limit 40",
        "range(3)": "range(2), limit=40",
        "_steps 10": "_steps 2",
    },
}
OTHERS = {"accelerate", "git", "hf", "make", "pip", "python", "python3", "torchrun", "trackio"}
"""Programs of other people, whose options are theirs."""

VARIABLES = re.compile(r"\b(?:HF_)?DIALEMB_[A-Z_]+\b")
FOLDERS = "src|docs|tests|benchmarks|training_scripts|examples|model_cards"
PLACES = re.compile(rf"(?<![\w./-])(?:{FOLDERS})/[\w./-]*\w")
GROUPS = {"commands", "corpora", "encoders", "forms", "methods", "quoted", "tasks"}
"""The groups of entry points, which read as modules."""

MODULES = re.compile(r"\bhf_dialemb(?:\.\w+)+")
EXTRAS = re.compile(r"(?:hf-dialemb|\.)\[([\w,-]+)\]|[Ee]xtras? `([\w-]+)`")


def code_of(page):
    """The pieces of code on a page, in blocks and in lines, without pictures of terminals."""
    text = page.read_text(encoding="utf-8")
    pieces = ((match[1], match[2] or match[3]) for match in CODE.finditer(text))
    return [code for kind, code in pieces if kind not in ("text", "json")]


@cache
def parsers():
    """The parser of each command, by its words."""
    from hf_dialemb.apps.cli import make_parser

    known, waiting = {}, [("dialemb", make_parser())]
    while waiting:
        name, parser = waiting.pop()
        known[name] = parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += [(f"{name} {word}", inner) for word, inner in action.choices.items()]
    return known


@cache
def settings():
    """The options that a training takes beside those of its parser."""
    from hf_dialemb.apps.cli.encoder_commands import describe_settings

    return set(re.findall(r"^ *(?:--)?(\w+)", describe_settings(), re.M))


@cache
def sources():
    """The text of every program, in which options and variables must stand."""
    return "\n".join(
        path.read_text(encoding="utf-8") for path in files("*.py", "Makefile", ".ci/run", "*.sh")
    )


def commands_of(code):
    """The command lines of this package in a piece of code, as words."""
    for line in code.replace("\\\n", " ").splitlines():
        match = re.search(r"(?:^|[|&;] *|\$ *)(dialemb [^|&;#]*)", line.strip())
        if match:
            yield match[1].rstrip(" `.").split()


def faults_of_command(words):
    name = "dialemb"
    rest = list(words[1:])
    while rest and f"{name} {rest[0]}" in parsers():
        name = f"{name} {rest.pop(0)}"
    if name == "dialemb" and rest and not rest[0].startswith("-") and rest[0].islower():
        return [f"no command {rest[0]}"]
    known = set(parsers()[name]._option_string_actions)
    options = {word.partition("=")[0] for word in rest if re.match(r"--\w", word)}
    if name == "dialemb train":
        known |= {f"--{setting}" for setting in settings()}
    return [f"{name} takes no {option}" for option in sorted(options - known)]


def faults_of_page(page):
    found = []
    pieces = code_of(page)
    for code in pieces:
        for words in commands_of(code):
            found += faults_of_command(words)
        for line in code.replace("\\\n", " ").splitlines():
            words = [word for word in line.split() if "=" not in word or word.startswith("-")]
            if words and words[0].rpartition("/")[2] in OTHERS:
                continue
            for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", line):
                if option[2:] not in settings() and f'"{option}"' not in sources():
                    found.append(f"no option {option}")
        found += [
            f"no make {word}"
            for word in re.findall(r"\bmake ([a-z-]+)", code)
            if not re.search(rf"^{word}:", sources(), re.M)
        ]
        found += [
            f"no variable {word}" for word in VARIABLES.findall(code) if word not in sources()
        ]
        found += [
            f"no path {word}"
            for word in PLACES.findall(code)
            if not (ROOT / word).exists() and "*" not in word
        ]
        found += [f"no name {word}" for word in MODULES.findall(code) if not resolves(word)]
    text = page.read_text(encoding="utf-8")
    references = re.findall(r"^::: (\S+)$", text, re.M)
    found += [f"no name {word}" for word in references if not resolves(word)]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for match in EXTRAS.finditer(text):
        found += [
            f"no extra {name}" for name in (match[1] or match[2]).split(",") if name not in extras
        ]
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[\w-]+)?\)", text):
        if not (page.parent / target).exists():
            found.append(f"no page {target}")
    return found


def resolves(name):
    """Whether a dotted name is a module, or something in one."""
    words = name.split(".")
    if words[1] in GROUPS:
        return True
    value = import_module(words[0])
    for count, word in enumerate(words[1:], 2):
        # a module is imported only where nothing has its name: hf_dialemb.weights is a function
        if not hasattr(value, word):
            try:
                import_module(".".join(words[:count]))
            except ModuleNotFoundError:
                return False
        value = getattr(value, word)
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_exists(page):
    assert faults_of_page(page) == []


def test_the_reference_has_every_public_name():
    pages = (ROOT / "docs" / "reference").glob("*.md")
    listed = {
        name
        for page in pages
        for name in re.findall(r"^::: hf_dialemb\.\S+\.(\w+)$", page.read_text(), re.M)
    }
    assert set(dir(hf_dialemb)) <= listed


def blocks(page):
    """The code blocks of a page: why each is not run or None, its kind, its text."""
    found = [match.groups() for match in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8"))]
    return [(reason, kind, code) for reason, kind, code in found if kind in ("python", "bash")]


def make_files(trained):
    """What the README takes for granted.

    Conversations as a table and as JSON, labelled ones, and a training.
    """
    import csv

    from hf_dialemb.data import write_jsonl

    found = hf_dialemb.load_dialogues("star_small", split="test")[:24]
    write_jsonl(found, "labelled.jsonl")
    write_jsonl(found, "calls.jsonl")
    with Path("calls.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "role", "content"])
        rows.writerows([each.id, turn.role, turn.content] for each in found for turn in each.turns)
    shutil.copytree(trained, "demo/trained")  # make wheel runs the demo


def run_page(page, trained):
    """Run a page in this process.

    Python in one namespace, commands through the command line's own function.
    """
    from hf_dialemb.apps.cli import main

    if page == "README.md":
        make_files(trained)
    names = {"__name__": "__main__"}
    for reason, kind, code in blocks(page):
        if reason:
            continue
        for said, shorter in SHORTER.get(page, {}).items():
            code = code.replace(said, shorter)
        if kind == "python":
            exec(compile(code, page, "exec"), names)
            continue
        for line in code.replace("\\\n", " ").splitlines():
            if words := shlex.split(line, comments=True):
                assert words[0] == "dialemb", (
                    f"{page}: got the command {words[0]}; mark its block <!-- not run: why -->"
                )
                code = main(words[1:])
                assert code == 0, f"{page}: {line}: exit status {code}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    ["README.md", *(f"docs/tutorials/{name}.md" for name in ("analyst", "engineer", "researcher"))],
)
def test_every_block_of_a_page_runs(page, tiny_checkpoint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page, tiny_checkpoint)


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 110
