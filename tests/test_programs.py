"""The programs of benchmarks/ and training_scripts/ run, at sizes that take seconds.

Examples are in test_examples.
"""

import contextlib
import importlib
import io
import json
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from afresh import run_afresh, running

import hf_dialemb
from hf_dialemb.data import load_dialogues

ROOT = Path(__file__).parents[1]
HELPERS = {"hardware", "processes", "encoder_tables", "official_dial2vec"}
NEEDS = {"topics": ("bertopic", "umap"), "render": ("hf_dialemb.papers",)}


def here(program):
    """Stand for `answer_of` where other constants hold in this process.

    It does what the program asks of itself.
    """

    def answer_of(file, *words):
        with (
            contextlib.redirect_stdout(io.StringIO()) as output,
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setattr(sys, "argv", [str(file), *map(str, words)])
            program.main()
        return json.loads(output.getvalue().splitlines()[-1])

    return answer_of


def sample(_corpus, *rest, split=None):
    """Stand for `load_dialogues`: the package's sample in place of any corpus."""
    return load_dialogues("sample", None, split or [*rest, "train"][-1])


def samples(_program):
    """Give a program that stand-in under the name that it imported."""
    return sample


def asked_of_samples(program):
    """Stand for the questions of LoCoMo: of four dialogues, one of each kind."""
    return lambda data: [
        (
            "LoCoMo",
            fold,
            [dialogue],
            [
                (kind, dialogue.turns[0].content, {0} if kind == program.KINDS[0] else set())
                for kind in program.KINDS
            ],
        )
        for fold, dialogue in enumerate(samples(program)("sample")[:4])
    ]


def requests_in_two_languages(_program):
    """Stand for the requests of xSID: of two intents, the same in both languages."""
    texts = [f"{words} {number}" for words in ("play a song", "wake me at") for number in range(8)]
    return lambda data: ({"en": texts, "de": texts}, np.repeat(["music", "alarm"], 8))


RUNS: dict[str, tuple[str, dict[str, object]]] = {
    "bench": ("--help", {}),
    "gpu": ("--help", {}),
    "peers": ("--help", {}),
    "dial2vec_step": (
        "--small --steps 1 --dialogues 2 --output OUT",
        {"SIDES": lambda program: {name: program.SIDES[name] for name in program.COMPARED[:2]}},
    ),
    "encoders": ("--model dialogue-static --task rate --seeds 1 --output OUT", {"READ": "sample"}),
    "encoding": (
        "--model all-MiniLM-L6-v2 --side bfloat16 dialogue-static --utterances 4 "
        "--dialogues 1 --rounds 1 --output OUT",
        {},
    ),
    "flow": ("--utterances 300 --beside 200 --rounds 1 --output OUT", {}),
    "habits": ("--only test_published.py --output OUT", {}),
    "languages": (
        "dialogue-static --data-dir . --output OUT",
        {"requests": requests_in_two_languages},
    ),
    "losses": (
        "--output OUT",
        {
            "CORPORA": ["sample"],
            "MEASURED": {"topics": ("sample", "domains", "map", 20)},
            "TRAININGS": {"DSE": ("dse", {"matryoshka_dims": [64]})},
            "STEPS": 10,
            "PAIRS": 4,
        },
    ),
    "planted_months": (
        "--output OUT",
        {"said": lambda _: lambda: [("doctor", [*own.turns]) for own in sample("star")[:40]]},
    ),
    "render": ("--check", {}),
    "startup": (
        "--repeats 1 --output OUT",
        {"STORED": 9, "answer_of": lambda program: lambda *words: 1024},
    ),
    "topics": (
        "--output OUT",
        {
            "OURS": "dialogue-static",
            "MINILM": "dialogue-static",
            "CORPORA": ("sgd",),
            "SEEDS": range(2),
        },
    ),
    "turn_confidence": (
        "dialogue-static --data-dir . --output OUT --weights OUT.weights",
        {"asked_of": asked_of_samples},
    ),
    "turn_retrieval": (
        "dialogue-static --corpora sgd --limit 20 --output OUT",
        {"load_dialogues": samples},
    ),
    "turn_scale": ("--sizes 300 --output OUT", {"CORPUS": "sample", "answer_of": here}),
    "uncertainty": ("--output OUT", {"DRAWS": 40}),
    "unseen_topics": ("--output OUT", {"CORPORA": ("sample",), "MOST": 16}),
    "utterance_step": ("--small --only dse --steps 1 --precision float32 --output OUT", {}),
}


def test_every_program_is_run_or_has_a_reason():
    programs = {file.stem for file in (ROOT / "benchmarks").glob("*.py")}
    workers = {name for name in programs if name.endswith("_worker")}
    assert programs == {*RUNS, *HELPERS, *workers}


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run a program of benchmarks/ here with other constants, and return its exit code."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.chdir(ROOT)

    def run(name, words, constants):
        module = importlib.import_module(name)
        for constant, value in constants.items():
            monkeypatch.setattr(module, constant, value(module) if callable(value) else value)
        monkeypatch.setattr(sys, "argv", [name, *words])
        try:
            return module.main()
        except SystemExit as end:
            return end.code

    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_benchmark_runs(name, run, tmp_path, monkeypatch):
    missing = [package for package in NEEDS.get(name, ()) if find_spec(package) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    monkeypatch.setattr(hf_dialemb, "load_dialogues", sample)
    if name == "encoding":  # whose processes read a corpus each
        monkeypatch.setenv("HF_DIALEMB_DATA", str(ROOT / "tests" / "corpora_files"))
    words, constants = RUNS[name]
    output = tmp_path / "out.json"
    code = run(name, words.replace("OUT", str(output)).split(), constants)
    assert code in (None, 0, 1)  # 1: what holds at the whole size does not hold
    assert "OUT" not in words or output.stat().st_size


@pytest.mark.slow
def test_the_training_scripts_run(tiny_run, tiny_bert, tmp_path):
    words = (
        "--method dse --corpus sample --max_steps 1 --max_dialogues 9 "
        "--per_device_train_batch_size 2"
    )
    scripts = [["train.py", *words.split(), "--backbone", tiny_bert, "--output_dir", str(tmp_path)]]
    search = [
        "--backbone",
        tiny_bert,
        "--model",
        str(tiny_run),
        "--by",
        "sample/dev",
        "--limit",
        "9",
    ]
    scripts += [["choose_weights.py", *search, "--output", str(tmp_path / "search.json")]]
    scripts += [["pack_star.py", "--help"], ["ship.py"]]
    for script, code in zip(scripts, (0, 0, 0, 1), strict=True):
        done = run_afresh(running(ROOT / "training_scripts" / script[0]), *script[1:], folder=ROOT)
        assert done.returncode == code, done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.skipif(
    not (find_spec("jellyfish") and find_spec("peft")), reason="not installed: jellyfish, peft"
)
def test_an_encoder_hears_and_its_training_merges(tmp_path):
    words = [
        "--model",
        "dialogue-minilm",
        "--corpus",
        "sample/train",
        "--exclude",
        "sample/dev",
        "--steps",
        "1",
    ]
    program = running(ROOT / "training_scripts" / "hear.py")
    done = run_afresh(program, *words, "--output", str(tmp_path / "heard"), folder=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    merge = runpy.run_path(str(ROOT / "training_scripts" / "merge.py"))["merge"]
    run = merge("all-MiniLM-L6-v2", {str(tmp_path / "heard"): 1}, 16, tmp_path / "merged")
    assert {"sample/train", "sgd/train"} <= set(run.settings()["corpus"])
