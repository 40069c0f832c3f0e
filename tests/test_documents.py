"""The documents.

Every code block of the README and of the tutorials runs, in order, a page in a folder of its own.
"""

import re
import shlex
from pathlib import Path

import pytest

import hf_dialemb

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    *(f"docs/tutorials/{name}.md" for name in ("analyst", "engineer", "researcher")),
]
BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>.+?) -->\n+)?```(?P<kind>\w*)\n(?P<code>.*?)^```$", re.M | re.S
)
# Where a page would train or embed for minutes: by page, what it says and what is run.
SHORTER = {
    "README.md": {
        "labelled, tasks=": "labelled, seeds=range(2), tasks=",
        "labelled.jsonl --output": "labelled.jsonl --seeds 2 --task domains --output",
    },
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


def test_the_reference_has_every_public_name():
    pages = (ROOT / "docs" / "reference").glob("*.md")
    listed = {
        name
        for page in pages
        for name in re.findall(r"^::: hf_dialemb\.\S+\.(\w+)$", page.read_text(), re.M)
    }
    assert set(hf_dialemb.__all__) <= listed


def blocks(page):
    """The code blocks of a page: why each is not run or None, its kind, its text."""
    found = [match.groups() for match in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8"))]
    return [(reason, kind, code) for reason, kind, code in found if kind in ("python", "bash")]


def make_files():
    """What the README takes for granted.

    Conversations as a table and as JSON, and labelled ones.
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


def run_page(page):
    """Run a page in this process.

    Python in one namespace, commands through the command line's own function.
    """
    from hf_dialemb.apps.cli import main

    if page == "README.md":
        make_files()
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
@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_the_readme_is_short():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 160
    assert len(text.split()) <= 1300
