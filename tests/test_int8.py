"""Encoders in integers of 8 bits: what is refused, how well they do, and that a process outlives their graphs."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

import hf_dialemb
from hf_dialemb.encoders import fewer_bits
from hf_dialemb.encoders.specs import find_encoder
from hf_dialemb.errors import InputError
from hf_dialemb.evaluation.tasks.task import CorpusPart, load_problem

needs_nncf = pytest.mark.skipif(not find_spec("nncf"), reason="nncf is not installed")
REFUSED = {
    "tfidf@int8": "got int8 for a baseline",
    "dialogue-static@int8": "expected a transformer that reads texts",
    "dialogue-minilm@int8,bfloat16": "one of bfloat16, float16 and int8",
}


@pytest.mark.parametrize("spec", REFUSED)
def test_int8_is_for_transformers_of_texts_alone(spec):
    with pytest.raises(InputError, match=REFUSED[spec]):
        find_encoder(spec)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(fewer_bits, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r'openvino is missing; pip install "hf-dialemb\[int8\]"'):
        hf_dialemb.load_encoder("dialogue-minilm@int8")


@pytest.mark.slow
@needs_nncf
def test_int8_finds_dialogues_of_one_topic_nearly_as_well(data_dir):
    problem = load_problem("domains", CorpusPart("sgd", data_dir, "dev", 300))
    precision = {}
    for spec in ("dialogue-minilm", "dialogue-minilm@int8"):
        rows = problem.measure(hf_dialemb.load_encoder(spec), [0])
        precision[spec] = next(row.mean for row in rows if row.metric == "map")
    assert precision["dialogue-minilm@int8"] > precision["dialogue-minilm"] - 0.5


GRAPHS_COME_AND_GO = """
import gc, signal, subprocess, sys
import hf_dialemb
signal.signal(signal.SIGCHLD, lambda *_: None)
encoders = [hf_dialemb.load_encoder(sys.argv[1] + "@int8") for _ in range(2)]
while encoders:
    del encoders[0]
    gc.collect()
subprocess.run([sys.executable, "-c", ""], check=True)
print("goes on")
"""


@pytest.mark.slow
@needs_nncf
def test_a_process_outlives_the_encoders_whatever_signals_come(tiny_bert, tmp_path):
    words = [sys.executable, "-X", "faulthandler", "-c", GRAPHS_COME_AND_GO, tiny_bert]
    run = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "HF_HOME": str(tmp_path)})
    assert (run.returncode, run.stdout.splitlines()[-1:]) == (0, ["goes on"]), run.stderr[-2000:]
